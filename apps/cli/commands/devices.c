// SPDX-License-Identifier: MIT
// `dragoman devices`: what --device can name on this machine.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"

enum { MOST = 64 };

typedef struct devices_options {
    int json;
} devices_options;

static const option devices_table[] = {
    {"json", 0, OPTION_FLAG, NULL, offsetof(devices_options, json), 0, 0, NULL,
     "print one JSON object per device", NULL, NULL},
    {0},
};

static void put_field(line_writer *w, const char *before, const char *name, const char *text)
{
    writer_format(w, "%s\"%s\":", before, name);
    writer_json(w, text, strlen(text));
}

static void put_json(line_writer *w, const dgm_device_info *d)
{
    put_field(w, "{", "name", d->name);
    if (d->problem[0]) {
        put_field(w, ",", "problem", d->problem);
    } else {
        put_field(w, ",", "title", d->title);
        writer_format(w, ",\"memory\":%llu,\"memory_free\":%llu", (unsigned long long)d->memory,
                      (unsigned long long)d->memory_free);
        put_field(w, ",", "precisions", d->precisions);
    }
    writer_text(w, "}\n");
}

static void put_text(line_writer *w, const dgm_device_info *d)
{
    if (d->problem[0])
        writer_format(w, "! %s\n", d->problem);
    else
        writer_format(w, "  %-12s %9.1f GiB %9.1f GiB free  %-22s  %s\n", d->name,
                      (double)d->memory / 1073741824, (double)d->memory_free / 1073741824,
                      d->precisions, d->title);
}

static int run_devices(const command *self, int argc, char **argv)
{
    static dgm_device_info list[MOST];
    devices_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count) return fail_usage(self, "devices takes no arguments, not '%s'", rest.items[0]);
    size_t count = dgm_devices(list, MOST);
    line_writer *w = writer_open(NULL);
    for (size_t i = 0; i < count && i < MOST; i++)
        if (o.json)
            put_json(w, &list[i]);
        else
            put_text(w, &list[i]);
    return writer_close(w) ? EXIT_FINE : EXIT_RUNTIME;
}

const command command_devices = {
    .name = "devices",
    .summary = "list what this machine can compute on",
    .usage = "[--json]",
    .description =
        "Lists the devices that --device can name, with their memory and the precisions that they "
        "compute products in. The CPU is always there; a GPU is if libdragoman-cuda.so lies beside "
        "the program, in the installation's lib folder or in a folder of DRAGOMAN_PLUGINS (several "
        "with a colon between them). A line marked ! says why a device that was found cannot be "
        "used.",
    .example = "dragoman devices\ndragoman translate --device auto -i text.en",
    .options = devices_table,
    .run = run_devices,
};

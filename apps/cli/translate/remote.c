// SPDX-License-Identifier: MIT
// Lines to a server and back, in groups, in order; see remote.h.
#define _GNU_SOURCE
#include "translate/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/server.h"
#include "io/lineio.h"

enum { GROUP_LINES = 256, GROUP_BYTES = 65536, PAIRS_MAX = 64 };

typedef struct remote {
    const translate_options *o;
    dgm_client *client;
    line_reader *in;
    line_writer *out;
    const char *settings[2 * PAIRS_MAX + 1]; // names and values by turns
    char *values[PAIRS_MAX];
    int pairs;
    char *lines[GROUP_LINES];
    int count;
    size_t bytes;
    uint64_t written, failed;
} remote;

// What needs the model here.
static int refuse(const command *self, const translate_options *o)
{
    const struct {
        const char *name;
        bool given;
    } rows[] = {
        {"--model", o->engine.models.count > 0},
        {"--prefix", o->prefix != NULL},
        {"--constraints", o->constraints != NULL},
        {"--directions", o->directions != NULL},
        {"--lattice", o->lattice != NULL},
        {"--rerank", o->rerank.count > 0},
        {"--failures", o->failures != NULL},
        {"--stats", o->stats != NULL},
        {"--resume", o->resume != 0},
        {"--format", o->format != NULL},
        {"--tmx", o->tmx != NULL || o->tmx_out != NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].given) return fail_usage(self, "--server and %s cannot be combined", rows[i].name);
    return -1;
}

// Settings of the command line go along; those of the machine are the server's.
static int collect_settings(const command *self, remote *r)
{
    static const char *const none[] = {"alignment", "word-scores"}; // the client does not read them
    const setting_values *set = &r->o->engine.set;
    for (size_t i = 0; dgm_setting_at(i); i++) {
        const dgm_setting *row = dgm_setting_at(i);
        char value[256];
        dgm_error error;
        if (i >= SETTINGS_MAX || !set->given[i]) continue;
        if (strcmp(row->name, "source") == 0 || strcmp(row->name, "target") == 0) continue; // fields of the request
        bool sent = row->flags & DGM_SETTING_OUTPUT && r->pairs < PAIRS_MAX;
        for (size_t k = 0; k < sizeof none / sizeof none[0]; k++) sent = sent && strcmp(row->name, none[k]) != 0;
        if (!sent) return fail_usage(self, "--server and --%s cannot be combined", row->name);
        if (dgm_settings_get(&set->settings, row->name, value, sizeof value, &error) != DGM_OK)
            return fail(EXIT_USAGE, "%s", error.text);
        r->values[r->pairs] = need(strdup(value));
        r->settings[2 * r->pairs] = row->name;
        r->settings[2 * r->pairs + 1] = r->values[r->pairs];
        r->pairs++;
    }
    return -1;
}

// Translates and prints the lines that were collected. -1, or the exit code after a message.
static int flush(remote *r)
{
    const dgm_settings *s = &r->o->engine.set.settings;
    dgm_results *results = NULL;
    dgm_error error;
    if (r->count == 0) return -1;
    const dgm_status st = dgm_client_translate(r->client, s->source, s->target, (const char *const *)r->lines,
                                               (size_t)r->count, r->settings, &results, &error);
    for (int i = 0; i < r->count; i++) free(r->lines[i]);
    r->count = 0;
    r->bytes = 0;
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    for (size_t i = 0; i < results->count; i++) {
        const dgm_result *one = results->items[i];
        if (one->status != DGM_OK) {
            warn("line %llu: %s", (unsigned long long)r->written + 1, one->message);
            r->failed++;
        }
        present_result(&r->o->show, r->out, r->written++, one, false);
    }
    dgm_results_free(&results);
    writer_flush(r->out);
    return writer_failed(r->out) ? EXIT_RUNTIME : -1;
}

static int run_lines(remote *r)
{
    const char *line;
    size_t size;
    int code = -1;
    while (code < 0 && reader_next(r->in, &line, &size)) {
        char *copy = need(malloc(size + 1));
        memcpy(copy, line, size);
        copy[size] = 0;
        r->lines[r->count++] = copy;
        r->bytes += size;
        // Who types or pipes slowly is answered line by line.
        if (r->count == GROUP_LINES || r->bytes >= GROUP_BYTES || !reader_ready(r->in)) code = flush(r);
    }
    if (code < 0) code = flush(r);
    while (r->count) free(r->lines[--r->count]);
    return code < 0 && reader_failed(r->in) ? EXIT_RUNTIME : code;
}

int remote_translate(const command *self, translate_options *o)
{
    remote *r = need(calloc(1, sizeof *r));
    dgm_error error;
    r->o = o;
    o->show.nbest = o->engine.set.settings.nbest;
    int code = refuse(self, o);
    if (code < 0) code = collect_settings(self, r);
    const dgm_status st = code < 0 ? dgm_client_open(&r->client, o->server, o->api_key, &error) : DGM_OK;
    if (st != DGM_OK) code = fail(EXIT_USAGE, "--server: %s", error.text);
    if (code < 0) {
        r->in = o->text.count        ? reader_open_texts(o->text.items, o->text.count)
                : o->files.count > 1 ? reader_open_files(o->files.items, o->files.count)
                                     : reader_open(o->files.count ? o->files.items[0] : o->input);
        r->out = r->in ? writer_open(o->output) : NULL;
        code = r->in && r->out ? run_lines(r) : EXIT_RUNTIME;
    }
    if (r->out && !writer_close(r->out) && code < 0) code = EXIT_RUNTIME;
    if (r->in) reader_close(r->in);
    if (code < 0) code = r->failed ? EXIT_LINES : EXIT_FINE;
    dgm_client_close(&r->client);
    for (int i = 0; i < r->pairs; i++) free(r->values[i]);
    free(r);
    return code;
}

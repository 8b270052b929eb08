// SPDX-License-Identifier: MIT
// `dragoman inspect --log-z`: how close a model is to self-normalised, on a text.
#include "translate/log_z.h"

#include <stdio.h>

#include "dragoman/tools.h"
#include "io/lineio.h"
#include "translate/setup.h"

static void put(const dgm_log_z *z, int json)
{
    static const char *const names[] = {"min", "1%",  "5%",  "25%", "50%",
                                        "75%", "95%", "99%", "max"};
    line_writer *w = writer_open(NULL);
    if (json)
        writer_format(w,
                      "{\"lines\":%zu,\"failed\":%zu,\"tokens\":%zu,\"mean\":%.6f,"
                      "\"deviation\":%.6f,\"mean_absolute\":%.6f,\"quantiles\":[",
                      z->lines, z->failed, z->tokens, z->mean, z->deviation, z->mean_absolute);
    else
        writer_format(w,
                      "log Z of %zu tokens in %zu lines (%zu too long)\n"
                      "  mean      %9.4f\n  deviation %9.4f\n  mean |.|  %9.4f\n",
                      z->tokens, z->lines, z->failed, z->mean, z->deviation, z->mean_absolute);
    for (int i = 0; i < 9; i++) {
        if (json)
            writer_format(w, "%s%.6f", i ? "," : "", z->quantiles[i]);
        else
            writer_format(w, "  %-9s %9.4f\n", names[i], z->quantiles[i]);
    }
    if (json) writer_text(w, "]}\n");
    writer_close(w);
}

int inspect_log_z(const char *model, const char *source, const char *references, int json)
{
    text_file from = {0}, to = {0};
    int code = EXIT_RUNTIME;
    if (text_file_read(&from, source) && (!references || text_file_read(&to, references))) {
        if (references && from.count != to.count)
            fail(EXIT_RUNTIME, "'%s' has %zu lines, '%s' has %zu", source, from.count, references,
                 to.count);
        else
            code = EXIT_FINE;
    }
    dgm_translator *t = NULL;
    dgm_error error;
    dgm_log_z z = {.size = sizeof z};
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.threads = 0;
    settings.raw = 1; // what the model itself writes is measured
    if (code == EXIT_FINE) {
        dgm_status st = dgm_open(&t, model, &settings, &error);
        if (st == DGM_OK) st = dgm_log_z_measure(t, from.lines, to.lines, from.count, &z, &error);
        if (st == DGM_OK)
            put(&z, json);
        else
            code = fail(exit_code(st), "%s", error.text);
    }
    dgm_close(&t);
    text_file_free(&from);
    text_file_free(&to);
    return code;
}

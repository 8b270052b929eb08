// SPDX-License-Identifier: MIT
// What exporters share: the table, the folder; see export.h. tools/export.c is the public side.
//
// A folder is filled under another name beside its own and renamed at the end, so that it appears whole.
#define _GNU_SOURCE
#include "export/export.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "base/mem.h"

const dgm_exporter dgm_exporters[] = {
    {{.size = sizeof(dgm_import_format),
      .name = "huggingface",
      .summary = "MarianMT, M2M100, NLLB or mBART folder of transformers: JSON, safetensors, SentencePiece models"},
     dgm_export_huggingface},
    {{.size = sizeof(dgm_import_format),
      .name = "ctranslate2",
      .summary = "CTranslate2 folder: model.bin of version 6, config.json, vocabularies, SentencePiece models"},
     dgm_export_ctranslate2},
    {{0}, NULL},
};

// ---- files ---------------------------------------------------------------------------------------

dgm_status dgm_export_file(const dgm_export_job *job, const char *name, const void *data, size_t size, dgm_error *err)
{
    char *path = dgm_path_in(job->folder, name);
    if (!path) return dgm_no_memory(err);
    const dgm_status st = dgm_file_write(path, data, size, err);
    dgm_free(path);
    return st;
}

dgm_status dgm_export_json(const dgm_export_job *job, const char *name, json_t *value, dgm_error *err)
{
    char *text = dgm_json_text(value, JSON_INDENT(2));
    json_decref(value);
    if (!text) return dgm_no_memory(err);
    const dgm_status st = dgm_export_file(job, name, text, strlen(text), err);
    dgm_free(text);
    return st;
}

dgm_status dgm_export_spelling(const char *text, int id, dgm_error *err)
{
    json_t *checked = json_string(text), *unchecked = json_string_nocheck(text);
    const bool wrong = !checked && unchecked;
    json_decref(checked);
    json_decref(unchecked);
    if (!wrong) return dgm_no_memory(err);
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "id %d has a spelling that is not UTF-8", id);
}

dgm_status dgm_export_open(const dgm_export_job *job, const char *name, FILE **f, dgm_error *err)
{
    char *path = dgm_path_in(job->folder, name);
    if (!path) return dgm_no_memory(err);
    *f = fopen(path, "wbe");
    const int code = errno;
    dgm_free(path);
    DGM_FAIL_IF(!*f, err, DGM_ERR_IO, "cannot write '%s': %s", name, strerror(code));
    return DGM_OK;
}

dgm_status dgm_export_close(const dgm_export_job *job, const char *name, FILE **f, dgm_status so_far, dgm_error *err)
{
    (void)job;
    const bool fine = fflush(*f) == 0 && fsync(fileno(*f)) == 0;
    const int code = errno;
    fclose(*f);
    *f = NULL;
    if (so_far != DGM_OK) return so_far;
    DGM_FAIL_IF(!fine, err, DGM_ERR_IO, "cannot write '%s': %s", name, strerror(code));
    return DGM_OK;
}

void dgm_export_note(const dgm_export_job *job, const char *fmt, ...)
{
    char text[1024];
    if (!job->options->note) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    job->options->note(job->options->note_cookie, text);
}

dgm_status dgm_export_tick(const dgm_export_job *job, double share, dgm_error *err)
{
    const dgm_progress *p = &job->options->progress;
    DGM_FAIL_IF(p->tick && p->tick(p->cookie, "exporting", share) != 0, err, DGM_ERR_CANCELLED, "stopped on request");
    return DGM_OK;
}

// ---- the folder ----------------------------------------------------------------------------------

// dir: the folder, opened while there was memory and a descriptor for that.
static void remove_folder(DIR *dir, const char *folder)
{
    if (dir) rewinddir(dir);
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        if (d->d_name[0] != '.') unlinkat(dirfd(dir), d->d_name, 0);
    rmdir(folder);
}

static dgm_status fill_folder(const dgm_exporter *e, const dgm_export_model *m, const char *folder,
                              const dgm_export_options *options, dgm_error *err)
{
    const size_t room = strlen(folder) + 16;
    char *temporary = dgm_malloc(room);
    if (!temporary) return dgm_no_memory(err);
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') n--;
    snprintf(temporary, room, "%.*s.XXXXXX", (int)n, folder);
    dgm_status st = mkdtemp(temporary) && chmod(temporary, 0755) == 0
                        ? DGM_OK
                        : dgm_fail(err, DGM_ERR_IO, "cannot make a folder beside '%s': %s", folder, strerror(errno));
    if (st == DGM_OK) {
        const dgm_export_job job = {.model = m, .folder = temporary, .options = options};
        DIR *dir = opendir(temporary);
        st = dir ? e->run(&job, err) : dgm_fail(err, DGM_ERR_IO, "cannot open '%s': %s", temporary, strerror(errno));
        if (st == DGM_OK && rename(temporary, folder) != 0)
            st = dgm_fail(err, DGM_ERR_IO, "cannot write '%s': %s", folder, strerror(errno));
        if (st != DGM_OK) remove_folder(dir, temporary);
        if (dir) closedir(dir);
    }
    dgm_free(temporary);
    return st;
}

static dgm_status find_exporter(const char *format, const dgm_exporter **out, dgm_error *err)
{
    for (*out = dgm_exporters; (*out)->run; (*out)++)
        if (strcmp((*out)->info.name, format) == 0) return DGM_OK;
    return dgm_fail(err, DGM_ERR_ARGUMENT, "unknown export format '%.60s', expected one of: huggingface, ctranslate2",
                    format);
}

// An empty folder may be filled; anything else stays.
static dgm_status check_folder(const char *folder, dgm_error *err)
{
    struct stat st;
    if (stat(folder, &st) != 0) return DGM_OK;
    DGM_FAIL_IF(!S_ISDIR(st.st_mode), err, DGM_ERR_IO, "'%s' is there and no folder", folder);
    int count = 0;
    DIR *dir = opendir(folder);
    while (dir && readdir(dir)) count++;
    if (dir) closedir(dir);
    DGM_FAIL_IF(count > 2, err, DGM_ERR_IO, "the folder '%s' is not empty", folder);
    return DGM_OK;
}

dgm_status dgm_export_run(const char *format, const char *model, const char *folder,
                          const dgm_export_options *options, dgm_error *err)
{
    const dgm_exporter *e;
    dgm_gguf *g = NULL;
    dgm_export_model m;
    DGM_TRY(find_exporter(format, &e, err));
    DGM_TRY(check_folder(folder, err));
    dgm_json_init();
    DGM_TRY(dgm_modelfile_open(&g, model, err));
    dgm_status st = dgm_export_look(&m, g, err);
    if (st == DGM_OK) st = fill_folder(e, &m, folder, options, err);
    if (st != DGM_OK && st != DGM_ERR_IO) dgm_error_prefix(err, "'%s'", model);
    dgm_gguf_close(&g);
    return st;
}

// SPDX-License-Identifier: MIT
// The record of a tuning run: one JSON object a line, in the order in which things happened.
//
//     {"tune": {...}}     what the run is for: it must be the same where a record is continued or replayed
//     {"model": {...}}, {"try": {...}}, {"run": {...}}, {"learn": {...}}    what was asked, and the answer
//
// A run decides by these answers alone, its clock included, so that the same record gives the same run. Going on with
// an older one means to read answers as long as there are some; a last line that was cut short does not count.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/outfile.h"
#include "base/textfile.h"
#include "tools/tune_private.h"

struct dgm_tune_record {
    char *path;
    FILE *file;      // NULL: nothing is written
    json_t **events; // of the older run
    size_t count, cap, at;
    bool replay;
};

static dgm_status keep_event(void *cookie, dgm_text line, dgm_error *err)
{
    dgm_tune_record *r = cookie;
    json_t *event = NULL;
    DGM_TRY(dgm_json_parse(&event, line.data, line.size, err));
    const dgm_status st = dgm_grow(&r->events, &r->cap, r->count + 1, sizeof *r->events, err);
    if (st != DGM_OK) {
        json_decref(event);
        return st;
    }
    r->events[r->count++] = event;
    return DGM_OK;
}

// Cuts a line without its end off, as a run that was killed may leave it.
static dgm_status mend(const char *path, dgm_error *err)
{
    dgm_mapfile f = {0};
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    size_t whole = f.size;
    while (whole > 0 && f.data[whole - 1] != '\n') whole--;
    const bool cut = whole < f.size;
    dgm_mapfile_close(&f);
    DGM_FAIL_IF(cut && truncate(path, (off_t)whole) != 0, err, DGM_ERR_IO, "cannot write '%s': %s", path,
                strerror(errno));
    return DGM_OK;
}

static dgm_status open_record(dgm_tune_record *r, bool old, dgm_error *err)
{
    const bool there = dgm_file_exists(r->path);
    DGM_FAIL_IF(there && !old && !r->replay, err, DGM_ERR_ARGUMENT,
                "the record '%s' is there already: continue it with --resume, or name another one", r->path);
    if (there && old && !r->replay) DGM_TRY(mend(r->path, err));
    if (there || r->replay) DGM_TRY(dgm_lines_each(r->path, keep_event, r, err));
    if (r->replay) return DGM_OK;
    r->file = fopen(r->path, "a");
    DGM_FAIL_IF(!r->file, err, DGM_ERR_IO, "cannot write '%s': %s", r->path, strerror(errno));
    return DGM_OK;
}

dgm_status dgm_tune_record_open(dgm_tune_record **out, const char *path, bool old, bool replay, dgm_error *err)
{
    dgm_json_init();
    dgm_tune_record *r = *out = dgm_calloc(1, sizeof *r);
    if (!r) return dgm_no_memory(err);
    r->replay = replay;
    if (!path) return DGM_OK;
    r->path = dgm_strdup(path);
    return r->path ? open_record(r, old, err) : dgm_no_memory(err);
}

void dgm_tune_record_close(dgm_tune_record **record)
{
    dgm_tune_record *r = *record;
    if (!r) return;
    for (size_t i = 0; i < r->count; i++) json_decref(r->events[i]);
    if (r->file) fclose(r->file);
    dgm_free(r->events);
    dgm_free(r->path);
    dgm_free(r);
    *record = NULL;
}

dgm_status dgm_tune_record_next(dgm_tune_record *r, const char *kind, const json_t **event, dgm_error *err)
{
    *event = NULL;
    if (r->at >= r->count) {
        DGM_FAIL_IF(r->replay, err, DGM_ERR_FORMAT,
                    "the record '%s' ends before the run does: %zu events, and another '%s' is needed", r->path,
                    r->count, kind);
        return DGM_OK;
    }
    *event = json_object_get(r->events[r->at++], kind);
    DGM_FAIL_IF(!json_is_object(*event), err, DGM_ERR_FORMAT,
                "the record '%s' is of another run: its line %zu is no '%s'", r->path, r->at, kind);
    return DGM_OK;
}

dgm_status dgm_tune_record_add(dgm_tune_record *r, const char *kind, json_t *event, dgm_error *err)
{
    if (!event) return dgm_no_memory(err);
    if (!r->file) {
        json_decref(event);
        return DGM_OK;
    }
    json_t *line = json_pack("{s:o}", kind, event);
    char *text = line ? dgm_json_text(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text) return dgm_no_memory(err);
    const bool fine = fputs(text, r->file) >= 0 && fputc('\n', r->file) != EOF && fflush(r->file) == 0;
    dgm_free(text);
    DGM_FAIL_IF(!fine, err, DGM_ERR_IO, "cannot write '%s': %s", r->path, strerror(dgm_errno()));
    return DGM_OK;
}

// ---- one measurement ---------------------------------------------------------------------------

void dgm_tune_run_free(dgm_tune_run *r)
{
    for (int i = 0; i < r->sample_count; i++) {
        dgm_free(r->samples[i].source);
        dgm_free(r->samples[i].careful);
        dgm_free(r->samples[i].text);
    }
    dgm_free(r->rows);
    *r = (dgm_tune_run){0};
}

// Counts of the metric as "3 3 1 0;..." one line after the other: arrays of JSON would be several times as long.
static char *rows_text(const int64_t *rows, size_t lines, int width)
{
    dgm_writer w = {0};
    for (size_t i = 0; i < lines; i++)
        for (int k = 0; k < width; k++)
            dgm_write_format(&w, "%lld%c", (long long)rows[i * (size_t)width + (size_t)k], k + 1 < width ? ' ' : ';');
    return dgm_writer_take(&w, NULL);
}

static dgm_status parse_rows(const char *text, size_t lines, int width, int64_t **rows, dgm_error *err)
{
    const size_t count = lines * (size_t)width;
    size_t n = 0;
    *rows = dgm_calloc(count + 1, sizeof **rows);
    if (!*rows) return dgm_no_memory(err);
    for (const char *p = text; *p && n < count; n++) {
        const size_t size = strcspn(p, " ;");
        DGM_FAIL_IF(!dgm_number_i64((dgm_text){p, size}, 0, INT32_MAX, *rows + n), err, DGM_ERR_FORMAT,
                    "the record has a run whose rows are no numbers");
        p += size + (p[size] != 0);
    }
    DGM_FAIL_IF(n != count, err, DGM_ERR_FORMAT, "the record has a run of %zu numbers, not %zu", n, count);
    return DGM_OK;
}

json_t *dgm_tune_run_json(const dgm_tune_run *r, int width)
{
    char hash[24];
    const dgm_tune_counts *c = &r->counts;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
    json_t *j =
        json_pack("{s:f,s:f,s:s,s:I,s:I,s:[I,I,I,I,I,I,I,I,I]}", "wall", r->wall, "cpu", r->cpu, "hash", hash, "same",
                  (json_int_t)r->same, "bytes", (json_int_t)r->bytes, "counts", (json_int_t)c->lines,
                  (json_int_t)c->steps, (json_int_t)c->rows, (json_int_t)c->rank_rows, (json_int_t)c->dots,
                  (json_int_t)c->live, (json_int_t)c->leads, (json_int_t)c->target_tokens, (json_int_t)c->vocabulary);
    char *rows = j && r->rows ? rows_text(r->rows, r->lines, width) : NULL;
    if (rows) json_object_set_new(j, "rows", json_string(rows));
    dgm_free(rows);
    json_t *samples = j && r->sample_count ? json_array() : NULL;
    for (int i = 0; samples && i < r->sample_count; i++)
        json_array_append_new(samples, json_pack("{s:I,s:s,s:s,s:s}", "line", (json_int_t)r->samples[i].line, "source",
                                                 r->samples[i].source, "careful", r->samples[i].careful, "text",
                                                 r->samples[i].text));
    if (samples) json_object_set_new(j, "samples", samples);
    return j;
}

static dgm_status parse_samples(const json_t *list, dgm_tune_run *r, dgm_error *err)
{
    for (size_t i = 0; i < json_array_size(list) && i < DGM_TUNE_SAMPLES; i++) {
        const json_t *j = json_array_get(list, i);
        const char *source = "", *careful = "", *text = "";
        int64_t line = 0;
        DGM_TRY(dgm_json_int(j, "line", 0, INT64_MAX, &line, err));
        DGM_TRY(dgm_json_string(j, "source", &source, err));
        DGM_TRY(dgm_json_string(j, "careful", &careful, err));
        DGM_TRY(dgm_json_string(j, "text", &text, err));
        dgm_tune_difference *s = &r->samples[r->sample_count++];
        *s = (dgm_tune_difference){(uint64_t)line, dgm_strdup(source), dgm_strdup(careful), dgm_strdup(text)};
        if (!s->source || !s->careful || !s->text) return dgm_no_memory(err);
    }
    return DGM_OK;
}

dgm_status dgm_tune_run_parse(const json_t *j, int width, size_t lines, dgm_tune_run *r, dgm_error *err)
{
    const json_t *counts = json_object_get(j, "counts");
    const char *rows = NULL, *hash = "";
    int64_t same = 0, bytes = 0;
    unsigned long long number = 0;
    r->lines = lines;
    DGM_TRY(dgm_json_real(j, "wall", 0, 1e9, &r->wall, err));
    DGM_TRY(dgm_json_real(j, "cpu", 0, 1e9, &r->cpu, err));
    DGM_TRY(dgm_json_string(j, "hash", &hash, err));
    DGM_TRY(dgm_json_int(j, "same", 0, INT64_MAX, &same, err));
    DGM_TRY(dgm_json_int(j, "bytes", 0, INT64_MAX, &bytes, err));
    DGM_TRY(dgm_json_string(j, "rows", &rows, err));
    if (sscanf(hash, "%16llx", &number) == 1) r->hash = number;
    r->same = (uint64_t)same;
    r->bytes = (uint64_t)bytes;
    uint64_t *const fields[] = {&r->counts.lines,     &r->counts.steps,         &r->counts.rows,
                                &r->counts.rank_rows, &r->counts.dots,          &r->counts.live,
                                &r->counts.leads,     &r->counts.target_tokens, &r->counts.vocabulary};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i] = (uint64_t)json_integer_value(json_array_get(counts, i));
    if (rows) DGM_TRY(parse_rows(rows, lines, width, &r->rows, err));
    return parse_samples(json_object_get(j, "samples"), r, err);
}

// SPDX-License-Identifier: MIT
// The shortlist of a model of Marian becomes part of our file, which says for which vocabularies it is; see
// marian_model.h.
//
//     binary   format/shortlist_marian.c, known by its first bytes
//     text     "TARGET SOURCE PROBABILITY" a line, plain or gzip; settings say "shortlist: [FILE, FIRST, BEST,
//              THRESHOLD]", 100, 100 and 0 unless they do
//
// Of a text the BEST most probable targets of every source word count that have more than THRESHOLD, of targets as
// probable those of higher numbers, and the first FIRST words of the target. A pair that stands there twice has the
// probability of the last. Words that a vocabulary lacks are its unknown word, and "NULL" is nothing: all as Marian
// has it.
#include <string.h>

#include "base/fields.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/textfile.h"
#include "format/shortlist.h"
#include "import/marian_model.h"

typedef struct entry {
    int32_t source, target;
    float prob;
} entry;

typedef struct lexicon {
    const dgm_marian_words *words;
    entry *items; // as they are read, then row by row
    size_t count, cap;
    int64_t first, best;
    float threshold; // of Marian's type: what is equal to it is not above it
} lexicon;

// ---- settings ------------------------------------------------------------------------------------

// The n-th of the settings' list, a number or the text of one.
static dgm_status get_number(const dgm_marian_files *f, size_t n, double least, double *out,
                             dgm_error *err)
{
    const json_t *v = json_array_get(json_object_get(f->settings, "shortlist"), n);
    const char *text = json_string_value(v);
    double number = json_number_value(v);
    if (!v) return DGM_OK;
    const bool good = text ? dgm_number_f64(dgm_text_of(text), &number) : json_is_number(v);
    DGM_FAIL_IF(!good || !(number >= least && number <= 1 << 24), err, DGM_ERR_FORMAT,
                "'%s': number %zu of \"shortlist\" is not from %g to %d", f->settings_path, n, least, 1 << 24);
    *out = number;
    return DGM_OK;
}

static dgm_status get_numbers(const dgm_marian_files *f, lexicon *l, dgm_error *err)
{
    double first = 100, best = 100, threshold = 0;
    DGM_TRY(get_number(f, 1, 0, &first, err));
    DGM_TRY(get_number(f, 2, 0, &best, err));
    DGM_TRY(get_number(f, 3, -1, &threshold, err));
    l->threshold = (float)threshold;
    l->first = (int64_t)first;
    l->best = (int64_t)best;
    if (l->first > l->words->sizes[1]) l->first = l->words->sizes[1];
    return DGM_OK;
}

// ---- reading a text ------------------------------------------------------------------------------

static dgm_status take_line(void *cookie, dgm_text line, dgm_error *err)
{
    lexicon *l = cookie;
    const dgm_text whole = line;
    const dgm_text target = dgm_field_next(&line), source = dgm_field_next(&line);
    const dgm_text number = dgm_field_next(&line);
    float prob;
    if (target.size == 0) return DGM_OK;
    DGM_FAIL_IF(dgm_field_next(&line).size > 0 || !dgm_number_f32(number, &prob), err, DGM_ERR_FORMAT,
                "'%.*s' is not TARGET SOURCE PROBABILITY", DGM_SHOWN(whole));
    if (dgm_text_is(target, "NULL") || dgm_text_is(source, "NULL")) return DGM_OK;
    DGM_TRY(dgm_grow(&l->items, &l->cap, l->count + 1, sizeof *l->items, err));
    l->items[l->count++] = (entry){.source = dgm_marian_word(l->words, 0, source),
                                   .target = dgm_marian_word(l->words, 1, target),
                                   .prob = prob};
    return DGM_OK;
}

// Entries by source, those of one as they were read. at [sources + 1]: where each begins.
static dgm_status sort_rows(lexicon *l, size_t *at, dgm_error *err)
{
    entry *sorted = dgm_malloc(l->count * sizeof *sorted);
    if (!sorted) return dgm_no_memory(err);
    const int sources = l->words->sizes[0];
    for (size_t i = 0; i < l->count; i++) at[l->items[i].source + 1]++;
    for (int i = 0; i < sources; i++) at[i + 1] += at[i];
    for (size_t i = 0; i < l->count; i++) sorted[at[l->items[i].source]++] = l->items[i];
    for (int i = sources; i > 0; i--) at[i] = at[i - 1]; // each stands at its end now
    at[0] = 0;
    dgm_free(l->items);
    l->items = sorted;
    return DGM_OK;
}

// By target; of one target the last that was read comes first.
static int by_target(const void *context, uint32_t a, uint32_t b)
{
    const entry *row = context;
    if (row[a].target != row[b].target) return row[a].target < row[b].target ? -1 : 1;
    return a > b ? -1 : a < b;
}

static int by_probability(const void *context, uint32_t a, uint32_t b)
{
    const entry *row = context;
    if (row[a].prob != row[b].prob) return row[a].prob > row[b].prob ? -1 : 1;
    return row[a].target > row[b].target ? -1 : row[a].target < row[b].target;
}

// ---- the list ------------------------------------------------------------------------------------

// The targets of one source word that count, ascending, behind those of the words before. order, kept: room for the
// whole row.
static dgm_status add_row(const lexicon *l, const entry *row, size_t n, uint32_t *order, entry *kept, int source,
                          dgm_shortlist *s, dgm_error *err)
{
    size_t count = 0, chosen = 0;
    dgm_sort_indices(order, n, by_target, row);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || row[order[i]].target != row[order[i - 1]].target) kept[count++] = row[order[i]];
    dgm_sort_indices(order, count, by_probability, kept);
    while (chosen < count && (int64_t)chosen < l->best && kept[order[chosen]].prob > l->threshold) chosen++;
    DGM_FAIL_IF(chosen > DGM_SHORTLIST_BEST_MAX, err, DGM_ERR_UNSUPPORTED,
                "source token %d has %zu translations, more than %d", source, chosen, DGM_SHORTLIST_BEST_MAX);
    int32_t *ids = s->ids + s->at[source];
    for (size_t i = 0; i < chosen; i++) dgm_insert_id(ids, (int)i, kept[order[i]].target);
    s->at[source + 1] = s->at[source] + chosen;
    return DGM_OK;
}

static dgm_status add_rows(const lexicon *l, const size_t *at, dgm_shortlist *s, dgm_error *err)
{
    const int sources = l->words->sizes[0];
    size_t widest = 1;
    for (int i = 0; i < sources; i++)
        if (at[i + 1] - at[i] > widest) widest = at[i + 1] - at[i];
    uint32_t *order = dgm_malloc(widest * sizeof *order);
    entry *kept = dgm_malloc(widest * sizeof *kept);
    dgm_status st = order && kept ? DGM_OK : dgm_no_memory(err);
    for (int i = 0; i < sources && st == DGM_OK; i++)
        st = add_row(l, l->items + at[i], at[i + 1] - at[i], order, kept, i, s, err);
    dgm_free(order);
    dgm_free(kept);
    return st;
}

static dgm_status make_list(lexicon *l, const char *path, dgm_shortlist **out, dgm_error *err)
{
    const int *sizes = l->words->sizes;
    size_t *at = dgm_calloc((size_t)sizes[0] + 1, sizeof *at);
    dgm_status st = at ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = sort_rows(l, at, err);
    if (st == DGM_OK) st = dgm_shortlist_open(out, sizes[0], sizes[1], l->count, (int)l->first, err);
    if (st == DGM_OK && (st = add_rows(l, at, *out, err)) == DGM_ERR_UNSUPPORTED)
        dgm_error_prefix(err, "'%s'", path);
    dgm_free(at);
    if (st != DGM_OK) {
        dgm_shortlist_close(out);
        return st;
    }
    for (int i = 0; i < (int)l->first; i++) (*out)->frequent[i] = i;
    (*out)->frequent_count = (int)l->first;
    return DGM_OK;
}

static dgm_status read_text(const dgm_marian_files *f, const dgm_marian_words *w, dgm_shortlist **out,
                            dgm_error *err)
{
    lexicon l = {.words = w};
    DGM_TRY(get_numbers(f, &l, err));
    dgm_status st = dgm_lines_each(f->shortlist, take_line, &l, err);
    if (st == DGM_OK && l.count == 0)
        st = dgm_fail(err, DGM_ERR_FORMAT, "'%s' holds no pair of words", f->shortlist);
    if (st == DGM_OK) st = make_list(&l, f->shortlist, out, err);
    dgm_free(l.items);
    return st;
}

static dgm_status read_binary(const dgm_marian_files *f, const dgm_marian_words *w, dgm_shortlist **out,
                              bool *is_binary, dgm_error *err)
{
    static const uint8_t magic[] = {0xF5, 0x17, 0x34, 0x01, 0xD5, 0x48, 0x1A, 0xF1};
    const size_t name = strlen(f->shortlist);
    dgm_mapfile file;
    DGM_TRY(dgm_mapfile_open(&file, f->shortlist, err));
    *is_binary = (file.size >= sizeof magic && memcmp(file.data, magic, sizeof magic) == 0) ||
                 (name > 4 && strcmp(f->shortlist + name - 4, ".bin") == 0);
    dgm_status st = DGM_OK;
    if (*is_binary) st = dgm_shortlist_marian_read(out, file.data, file.size, w->sizes[0], w->sizes[1], err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", f->shortlist);
    dgm_mapfile_close(&file);
    return st;
}

// What the list is made for is seen at the keys that were set so far.
static dgm_status store(const dgm_import_job *job, const dgm_shortlist *list, dgm_error *err)
{
    dgm_gguf *so_far = NULL;
    dgm_writer bytes = {0};
    dgm_status st = dgm_gguf_metadata(job->w, &bytes, err);
    if (st == DGM_OK) st = dgm_gguf_open_memory(&so_far, bytes.data, bytes.size, err);
    if (st == DGM_OK) st = dgm_shortlist_store(list, so_far, job->w, err);
    dgm_gguf_close(&so_far);
    dgm_writer_free(&bytes);
    return st;
}

dgm_status dgm_marian_shortlist(const dgm_import_job *job, const dgm_marian_files *f,
                                const dgm_marian_words *w, dgm_error *err)
{
    dgm_shortlist *list = NULL;
    bool binary = false;
    if (!f->shortlist) return DGM_OK;
    DGM_TRY(read_binary(f, w, &list, &binary, err));
    if (!binary) DGM_TRY(read_text(f, w, &list, err));
    list->copy = strcmp(f->vocab[0], f->vocab[1]) == 0;
    const dgm_status st = store(job, list, err);
    dgm_shortlist_close(&list);
    return st;
}

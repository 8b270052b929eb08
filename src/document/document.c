// SPDX-License-Identifier: MIT
// A document: opened by its reader, asked for its lines, given their translations, written again.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/textfile.h"
#include "document/document_private.h"
#include "text/unicode.h"

// ---- kinds ----------------------------------------------------------------------------------------

const dgm_document_format *dgm_document_format_at(size_t index)
{
    for (size_t i = 0; dgm_document_readers[i]; i++)
        if (i == index) return &dgm_document_readers[i]->format;
    return NULL;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

// Is `ending` one of a list with spaces in between?
static bool is_listed(const char *list, const char *ending)
{
    const size_t size = strlen(ending);
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, " ");
        bool same = n == size;
        for (size_t i = 0; same && i < n; i++) same = p[i] == lower(ending[i]);
        if (same) return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

static const dgm_document_reader *reader_of(const char *name, dgm_text data)
{
    const char *slash = name ? strrchr(name, '/') : NULL, *dot = name ? strrchr(slash ? slash : name, '.') : NULL;
    for (size_t i = 0; dot && dgm_document_readers[i]; i++)
        if (is_listed(dgm_document_readers[i]->format.endings, dot + 1)) return dgm_document_readers[i];
    for (size_t i = 0; dgm_document_readers[i]; i++)
        if (dgm_document_readers[i]->sniff && dgm_document_readers[i]->sniff(data)) return dgm_document_readers[i];
    return NULL;
}

const dgm_document_format *dgm_document_format_of(const char *name, const void *data, size_t size)
{
    const dgm_document_reader *r = reader_of(name, (dgm_text){data ? data : "", data ? size : 0});
    return r ? &r->format : NULL;
}

static dgm_status reader_named(const char *format, const dgm_document_reader **out, dgm_error *err)
{
    char names[512] = "";
    for (size_t i = 0; dgm_document_readers[i]; i++) {
        const char *name = dgm_document_readers[i]->format.name;
        if (strcmp(name, format) == 0) {
            *out = dgm_document_readers[i];
            return DGM_OK;
        }
        if (strlen(names) + strlen(name) + 3 > sizeof names) continue;
        if (i) strcat(names, ", ");
        strcat(names, name);
    }
    return dgm_fail(err, DGM_ERR_ARGUMENT, "there is no format '%s': it is one of %s", format, names);
}

// ---- opening --------------------------------------------------------------------------------------

void dgm_document_options_init(dgm_document_options *options, size_t size)
{
    const dgm_document_options standard = {.size = sizeof standard};
    if (!options) return;
    dgm_sized_give(options, size, &standard, sizeof standard);
    options->size = size;
}

static dgm_status copy_text(const char **text, dgm_error *err)
{
    if (!*text) return DGM_OK;
    *text = dgm_strdup(*text);
    return *text ? DGM_OK : dgm_no_memory(err);
}

static dgm_status take_options(dgm_document *d, const dgm_document_options *options, dgm_error *err)
{
    dgm_document_options own;
    dgm_document_options_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_document_options", "dgm_document_options_default", err));
    d->asked = own;
    const char **const texts[] = {&d->asked.format,          &d->asked.columns,     &d->asked.source_language,
                                  &d->asked.target_language, &d->asked.ignore_tags, &d->asked.splitting_tags,
                                  &d->asked.inline_tags,     &d->asked.output};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const dgm_status st = copy_text(texts[i], err);
        for (size_t k = i; st != DGM_OK && k < sizeof texts / sizeof *texts; k++) *texts[k] = NULL; // not ours
        DGM_TRY(st);
    }
    return DGM_OK;
}

static dgm_status check_text(dgm_text t, dgm_error *err)
{
    const size_t bad = dgm_utf8_first_bad(t);
    size_t line = 1;
    if (bad >= t.size) return DGM_OK;
    for (size_t i = 0; i < bad; i++) line += t.data[i] == '\n';
    return dgm_fail(err, DGM_ERR_FORMAT, "line %zu is not UTF-8; text of another kind is read with --encoding", line);
}

static const char *nested_at(const dgm_document *d, uint32_t i)
{
    const dgm_segment_spec *s = &d->segments[d->nested[i]].spec;
    return d->sources[s->source].data + s->begin;
}

static int compare_nested(const void *context, uint32_t a, uint32_t b)
{
    const char *x = nested_at(context, a), *y = nested_at(context, b);
    return x < y ? -1 : x > y;
}

// By address, whatever source they lie in: that is how they are looked up.
static dgm_status sort_nested(dgm_document *d, dgm_error *err)
{
    if (!d->nested_count) return DGM_OK;
    uint32_t *order = dgm_malloc(d->nested_count * sizeof *order);
    size_t *sorted = dgm_malloc(d->nested_count * sizeof *sorted);
    if (order && sorted) {
        dgm_sort_indices(order, d->nested_count, compare_nested, d);
        for (size_t i = 0; i < d->nested_count; i++) sorted[i] = d->nested[order[i]];
        memcpy(d->nested, sorted, d->nested_count * sizeof *sorted);
    }
    const bool fine = order && sorted;
    dgm_free(order);
    dgm_free(sorted);
    return fine ? DGM_OK : dgm_no_memory(err);
}

static dgm_status read_document(dgm_document *d, const void *data, size_t size, const char *name, dgm_error *err)
{
    const dgm_text file = {size ? data : "", size};
    if (d->asked.format)
        DGM_TRY(reader_named(d->asked.format, &d->reader, err));
    else
        d->reader = reader_of(name, file);
    if (!d->reader) DGM_TRY(reader_named("txt", &d->reader, err));
    DGM_FAIL_IF(size > DGM_DOCUMENT_MAX, err, DGM_ERR_UNSUPPORTED, "a document has at most %zu MiB, not %zu",
                DGM_DOCUMENT_MAX >> 20, size >> 20);
    if (!d->reader->binary) DGM_TRY(check_text(file, err));
    d->mark = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0;
    const size_t skip = d->mark ? 3 : 0;
    char *copy = dgm_malloc(size - skip + 1);
    if (!copy) return dgm_no_memory(err);
    memcpy(copy, file.data + skip, size - skip);
    copy[size - skip] = 0;
    int source = 0;
    DGM_TRY(dgm_document_add_source(d, copy, size - skip, &source, err));
    d->info.size = sizeof d->info;
    d->info.format = d->reader->format.name;
    DGM_TRY(d->reader->read(d, err));
    return sort_nested(d, err);
}

dgm_status dgm_document_open(dgm_document **document, const void *data, size_t size, const char *name,
                             const dgm_document_options *options, dgm_error *err)
{
    DGM_FAIL_IF(!document || (!data && size), err, DGM_ERR_ARGUMENT,
                "dgm_document_open needs a document's bytes and where to put it");
    dgm_document *d = dgm_calloc(1, sizeof *d);
    *document = NULL;
    if (!d) return dgm_no_memory(err);
    dgm_status st = take_options(d, options, err);
    if (st == DGM_OK) st = read_document(d, data, size, name, err);
    if (st != DGM_OK) {
        if (name && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "%s", name);
        dgm_document_close(&d);
        return st;
    }
    *document = d;
    return DGM_OK;
}

void dgm_document_close(dgm_document **document)
{
    dgm_document *d = document ? *document : NULL;
    if (!d) return;
    if (d->release) d->release(d->state);
    for (size_t i = 0; i < d->source_count; i++) dgm_free(d->sources[i].data);
    void *const blocks[] = {d->sources, d->parts,        d->segments,  d->items,   d->units, d->taken,
                            d->fixed,   d->replacements, d->line_unit, d->answers, d->links, d->nested,
                            d->open_lines};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) dgm_free(blocks[i]);
    const char *const texts[] = {d->asked.format,          d->asked.columns,     d->asked.source_language,
                                 d->asked.target_language, d->asked.ignore_tags, d->asked.splitting_tags,
                                 d->asked.inline_tags,     d->asked.output};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) dgm_free((void *)(uintptr_t)texts[i]);
    dgm_writer_free(&d->pool);
    dgm_writer_free(&d->done);
    dgm_words_free(&d->lines);
    dgm_free(d);
    *document = NULL;
}

// ---- sources --------------------------------------------------------------------------------------

dgm_text dgm_document_source(const dgm_document *d, int source)
{
    return (dgm_text){d->sources[source].data, d->sources[source].size};
}

bool dgm_document_marked(const dgm_document *d)
{
    return d->mark;
}

int dgm_document_sources(const dgm_document *d)
{
    return (int)d->source_count;
}

dgm_status dgm_document_add_source(dgm_document *d, char *data, size_t size, int *source, dgm_error *err)
{
    const dgm_status st = dgm_grow(&d->sources, &d->source_cap, d->source_count + 1, sizeof *d->sources, err);
    if (st != DGM_OK) {
        dgm_free(data);
        return st;
    }
    *source = (int)d->source_count;
    d->sources[d->source_count++] = (dgm_source){data, size};
    return DGM_OK;
}

dgm_text dgm_source_part(const dgm_document *d, int source, size_t begin, size_t end)
{
    return (dgm_text){d->sources[source].data + begin, end - begin};
}

size_t dgm_source_line(const dgm_document *d, int source, size_t at)
{
    size_t line = 1;
    for (size_t i = 0; i < at && i < d->sources[source].size; i++) line += d->sources[source].data[i] == '\n';
    return line;
}

void dgm_document_set_state(dgm_document *d, void *state, void (*release)(void *state))
{
    d->state = state;
    d->release = release;
}

void *dgm_document_state(const dgm_document *d)
{
    return d->state;
}

const dgm_document_options *dgm_document_asked(const dgm_document *d)
{
    return &d->asked;
}

void dgm_document_set_notice(dgm_document *d, const char *text)
{
    d->info.notice = text;
}

// ---- lines ----------------------------------------------------------------------------------------

const dgm_document_info *dgm_document_describe(const dgm_document *d)
{
    return d ? &d->info : NULL;
}

// Of a line that is asked for, among all lines.
static size_t line_number(const dgm_document *d, size_t index)
{
    return d->open_lines ? d->open_lines[index] : index;
}

const char *dgm_document_line(const dgm_document *d, size_t index, size_t *size)
{
    if (!d || index >= d->info.lines) return NULL;
    const dgm_unit *u = &d->units[d->line_unit[line_number(d, index)]];
    if (size) *size = u->text_size;
    return (const char *)d->pool.data + u->text;
}

static dgm_status keep_answer(dgm_document *d, size_t index, dgm_text text, const dgm_link *links, size_t count,
                              dgm_error *err)
{
    if (!d->answers) {
        d->answers = dgm_calloc(d->info.lines, sizeof *d->answers);
        if (!d->answers) return dgm_no_memory(err);
    }
    DGM_TRY(dgm_grow(&d->links, &d->link_cap, d->link_count + count, sizeof *d->links, err));
    d->answers[index] = (dgm_answer){d->done.size, text.size, d->link_count, count};
    dgm_write_bytes(&d->done, text.data, text.size);
    if (d->done.failed) return dgm_no_memory(err);
    if (count) memcpy(d->links + d->link_count, links, count * sizeof *links);
    d->link_count += count;
    for (size_t next = d->line_unit[index] + 1; next; next = d->units[next - 1].next)
        d->units[next - 1].translated = true;
    return DGM_OK;
}

dgm_status dgm_document_put(dgm_document *d, size_t index, const char *text, size_t size, const dgm_link *links,
                            size_t link_count, dgm_error *err)
{
    DGM_FAIL_IF(!d || (!text && size) || (!links && link_count), err, DGM_ERR_ARGUMENT,
                "dgm_document_put needs a document, a translation and its links");
    DGM_FAIL_IF(index >= d->info.lines, err, DGM_ERR_ARGUMENT, "the document has %zu lines, none of number %zu",
                d->info.lines, index);
    dgm_writer clean = {0};
    bool repaired = false;
    dgm_status st = dgm_line_clean((dgm_text){text ? text : "", size}, &clean, &repaired, err);
    const dgm_text line = {clean.data ? (const char *)clean.data : "", clean.size};
    if (st == DGM_OK) st = keep_answer(d, line_number(d, index), line, links, link_count, err);
    dgm_writer_free(&clean);
    return st;
}

dgm_status dgm_document_recall(dgm_document *d, const dgm_memory *memory, size_t *known, dgm_error *err)
{
    DGM_FAIL_IF(!d || !memory, err, DGM_ERR_ARGUMENT, "dgm_document_recall needs a document and a memory");
    DGM_FAIL_IF(d->answers, err, DGM_ERR_ARGUMENT, "dgm_document_recall comes before the first dgm_document_put");
    size_t *left = dgm_malloc((d->info.lines + 1) * sizeof *left), count = 0;
    dgm_status st = left ? DGM_OK : dgm_no_memory(err);
    for (size_t i = 0; i < d->info.lines && st == DGM_OK; i++) {
        const dgm_unit *u = &d->units[d->line_unit[i]];
        const dgm_text text = dgm_pool_text(d, u->text, u->text_size);
        dgm_text found = {0};
        found.data = dgm_memory_find(memory, text.data, text.size, &found.size);
        if (found.data) st = keep_answer(d, i, found, NULL, 0, err);
        else left[count++] = i;
    }
    if (st != DGM_OK) {
        dgm_free(left);
        return st;
    }
    if (known) *known = d->info.lines - count;
    d->open_lines = left;
    d->info.lines = count;
    return DGM_OK;
}

// ---- writing --------------------------------------------------------------------------------------

static dgm_text answer_text(const dgm_document *d, const dgm_answer *a)
{
    return (dgm_text){a->text_size ? (const char *)d->done.data + a->text : "", a->text_size};
}

static bool is_same(const dgm_document *d, const dgm_unit *u)
{
    return dgm_text_equal(dgm_pool_text(d, u->text, u->text_size), answer_text(d, &d->answers[u->line]));
}

static bool is_translated(const dgm_document *d, size_t segment)
{
    const dgm_segment *s = &d->segments[segment];
    const bool in_place = s->spec.flags & DGM_SEGMENT_IN_PLACE;
    for (size_t i = s->item; i < s->item + s->item_count; i++) {
        if (d->items[i].kind != DGM_ITEM_UNIT) continue;
        const dgm_unit *u = &d->units[d->items[i].at];
        if (u->translated && !(in_place && is_same(d, u))) return true;
    }
    return false;
}

static dgm_status write_item(const dgm_document *d, const dgm_item *item, const dgm_escape *escape, dgm_writer *out,
                             dgm_error *err)
{
    if (item->kind == DGM_ITEM_TEXT) {
        escape->encode(dgm_pool_text(d, item->at, item->size), out);
    } else if (item->kind == DGM_ITEM_BYTES) {
        return dgm_bytes_write(d, item->bytes, out, err);
    } else {
        const dgm_unit *u = &d->units[item->at];
        if (!u->translated) return dgm_unit_source(d, u, out, err);
        const dgm_answer *a = &d->answers[u->line];
        const dgm_text text = answer_text(d, a);
        return dgm_unit_restore(d, u, text, a->link_count ? d->links + a->links : NULL, a->link_count, out, err);
    }
    return DGM_OK;
}

static dgm_status write_segment(const dgm_document *d, size_t index, dgm_writer *out, dgm_error *err)
{
    const dgm_segment *s = &d->segments[index];
    dgm_writer own = {0}, *to = s->spec.write ? &own : out;
    dgm_status st = DGM_OK;
    dgm_write_text(out, s->spec.before ? s->spec.before : "");
    for (size_t i = s->item; st == DGM_OK && i < s->item + s->item_count; i++)
        st = write_item(d, &d->items[i], s->spec.escape, to, err);
    if (st == DGM_OK && to->failed) st = dgm_no_memory(err);
    if (st == DGM_OK && s->spec.write)
        st = s->spec.write(d, index, (dgm_text){own.data ? (const char *)own.data : "", own.size}, out, err);
    dgm_writer_free(&own);
    dgm_write_text(out, s->spec.behind ? s->spec.behind : "");
    return st;
}

// Of a segment that lies inside of bytes of its source.
static bool is_inside(const dgm_document *d, const dgm_segment_spec *s, dgm_text bytes)
{
    const char *data = d->sources[s->source].data;
    return data + s->begin >= bytes.data && data + s->end <= bytes.data + bytes.size;
}

dgm_status dgm_bytes_write(const dgm_document *d, dgm_text bytes, dgm_writer *out, dgm_error *err)
{
    size_t low = 0, high = d->nested_count;
    while (low < high) { // the first that begins in them
        const size_t middle = low + (high - low) / 2;
        const dgm_segment_spec *s = &d->segments[d->nested[middle]].spec;
        if (d->sources[s->source].data + s->begin < bytes.data)
            low = middle + 1;
        else
            high = middle;
    }
    const char *at = bytes.data;
    for (; low < d->nested_count; low++) {
        const dgm_segment_spec *s = &d->segments[d->nested[low]].spec;
        if (!is_inside(d, s, bytes)) break;
        const char *data = d->sources[s->source].data;
        if (!is_translated(d, d->nested[low])) continue;
        dgm_write_bytes(out, at, (size_t)(data + s->begin - at));
        DGM_TRY(write_segment(d, d->nested[low], out, err));
        at = data + s->end;
    }
    if (bytes.size) dgm_write_bytes(out, at, (size_t)(bytes.data + bytes.size - at));
    return DGM_OK;
}

// Segments and constant replacements of a source, by where they begin.
typedef struct edit {
    size_t begin, end;
    size_t index;
    bool constant;
} edit;

static int compare_edits(const void *context, uint32_t a, uint32_t b)
{
    const edit *edits = context, *x = &edits[a], *y = &edits[b];
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return a < b ? -1 : a > b;
}

static size_t list_edits(const dgm_document *d, int source, edit *edits)
{
    size_t count = 0;
    for (size_t i = 0; i < d->segment_count; i++) {
        const dgm_segment_spec *s = &d->segments[i].spec;
        if (s->source == source && is_translated(d, i)) edits[count++] = (edit){s->begin, s->end, i, false};
    }
    for (size_t i = 0; i < d->replacement_count; i++) {
        const dgm_replacement *r = &d->replacements[i];
        if (r->source == source && is_translated(d, r->segment)) edits[count++] = (edit){r->begin, r->end, i, true};
    }
    return count;
}

dgm_status dgm_document_spliced(const dgm_document *d, int source, dgm_writer *out, dgm_error *err)
{
    const dgm_text from = dgm_document_source(d, source);
    const size_t most = d->segment_count + d->replacement_count;
    edit *edits = dgm_malloc((most + 1) * sizeof *edits);
    uint32_t *sorted = dgm_malloc((most + 1) * sizeof *sorted);
    dgm_status st = edits && sorted ? DGM_OK : dgm_no_memory(err);
    const size_t count = st == DGM_OK ? list_edits(d, source, edits) : 0;
    size_t at = 0;
    if (count) dgm_sort_indices(sorted, count, compare_edits, edits);
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        const edit *e = &edits[sorted[i]];
        if (e->begin < at) continue; // would tear what is written apart
        dgm_write_bytes(out, from.data + at, e->begin - at);
        at = e->end;
        if (e->constant)
            dgm_write_bytes(out, d->replacements[e->index].bytes.data, d->replacements[e->index].bytes.size);
        else
            st = write_segment(d, e->index, out, err);
    }
    if (st == DGM_OK) dgm_write_bytes(out, from.data + at, from.size - at);
    if (st == DGM_OK && out->failed) st = dgm_no_memory(err);
    dgm_free(edits);
    dgm_free(sorted);
    return st;
}

dgm_status dgm_document_write(const dgm_document *d, dgm_document_sink put, void *cookie, dgm_error *err)
{
    DGM_FAIL_IF(!d || !put, err, DGM_ERR_ARGUMENT, "dgm_document_write needs a document and where to write it");
    if (d->reader->write) return d->reader->write(d, put, cookie, err);
    dgm_writer out = {0};
    if (d->mark) dgm_write_text(&out, "\xef\xbb\xbf");
    dgm_status st = dgm_document_spliced(d, 0, &out, err);
    if (st == DGM_OK && put(cookie, out.data ? (const char *)out.data : "", out.size) != 0)
        st = dgm_fail(err, DGM_ERR_IO, "the document could not be written");
    dgm_writer_free(&out);
    return st;
}

static int put_file(void *cookie, const char *data, size_t size)
{
    dgm_textout_write(cookie, data, size);
    return 0; // what failed is said by dgm_textout_commit
}

dgm_status dgm_document_save(const dgm_document *d, const char *path, dgm_error *err)
{
    dgm_textout *out = NULL;
    DGM_FAIL_IF(!d || !path, err, DGM_ERR_ARGUMENT, "dgm_document_save needs a document and the name of a file");
    DGM_TRY(dgm_textout_open(&out, path, err));
    const dgm_status st = dgm_document_write(d, put_file, out, err);
    if (st == DGM_OK) return dgm_textout_commit(&out, err);
    dgm_textout_discard(&out);
    return st;
}

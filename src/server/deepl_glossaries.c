// SPDX-License-Identifier: MIT
// DeepL's API: glossaries, /v2/glossaries with one direction each and /v3/glossaries with several. Both see the same
// ones; /v2 those of one direction.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/deepl_private.h"
#include "server/glossary_store.h"

static const char *owner_of(const dgm_request *q)
{
    return q->key ? q->key->key : "";
}

// ---- answers --------------------------------------------------------------------------------------

static void put_direction(dgm_json_out *j, const dgm_glossary_info *g, size_t i)
{
    dgm_out_string(j, "source_lang", g->directions[i].source);
    dgm_out_string(j, "target_lang", g->directions[i].target);
    dgm_out_integer(j, "entry_count", (int64_t)g->directions[i].entries);
}

// many: as /v3 says it.
static void put_glossary(dgm_json_out *j, const dgm_glossary_info *g, bool many)
{
    dgm_out_object(j, NULL);
    dgm_out_string(j, "glossary_id", g->id);
    dgm_out_string(j, "name", g->name);
    if (many) {
        dgm_out_array(j, "dictionaries");
        for (size_t i = 0; i < g->count; i++) {
            dgm_out_object(j, NULL);
            put_direction(j, g, i);
            dgm_out_end(j);
        }
        dgm_out_end(j);
    } else {
        dgm_out_bool(j, "ready", true);
        put_direction(j, g, 0);
    }
    dgm_out_string(j, "creation_time", g->created);
    dgm_out_end(j);
}

static bool is_v3(const dgm_request *q)
{
    return strncmp(q->route->pattern, "/v3/", 4) == 0;
}

static void answer_one(dgm_request *q, const char *id, int status)
{
    dgm_glossary_info g;
    dgm_error err;
    dgm_json_out j = {0};
    const dgm_status st = dgm_glossaries_find(q->server->glossaries, owner_of(q), id, &g, &err);
    if (st == DGM_ERR_ARGUMENT || (st == DGM_OK && !is_v3(q) && g.count != 1)) {
        dgm_deepl_not_found(q);
    } else if (st != DGM_OK) {
        dgm_answer_failure(q, st, &err);
    } else {
        put_glossary(&j, &g, is_v3(q));
        dgm_answer_json(q, status, &j);
    }
    if (st == DGM_OK) dgm_glossary_info_free(&g);
}

void dgm_deepl_glossary_list(dgm_request *q)
{
    dgm_glossary_info g;
    dgm_error err;
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "glossaries");
    for (size_t i = 0; dgm_glossaries_at(q->server->glossaries, owner_of(q), i, &g, &err) == DGM_OK; i++) {
        if (is_v3(q) || g.count == 1) put_glossary(&j, &g, is_v3(q));
        dgm_glossary_info_free(&g);
    }
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

void dgm_deepl_glossary_get(dgm_request *q)
{
    answer_one(q, q->rest, 200);
}

void dgm_deepl_glossary_delete(dgm_request *q)
{
    if (dgm_glossaries_remove(q->server->glossaries, owner_of(q), q->rest, NULL, NULL))
        dgm_answer(q, 204, "application/json", "", 0);
    else
        dgm_deepl_not_found(q);
}

// ---- making them ----------------------------------------------------------------------------------

static void refuse_entries(dgm_request *q, dgm_status st, const dgm_error *err)
{
    if (st == DGM_ERR_FORMAT)
        dgm_answer_error(q, 400, "Invalid glossary entries provided: %s", err->text);
    else if (st == DGM_ERR_UNSUPPORTED)
        dgm_answer_error(q, 456, "Quota for glossaries exceeded: %s", err->text);
    else if (st == DGM_ERR_ARGUMENT)
        dgm_deepl_not_found(q);
    else
        dgm_answer_failure(q, st, err);
}

typedef struct given {
    const char *source, *target, *entries, *format;
    size_t size;
} given;

// The languages of a direction, as the store has them. False: it was answered.
static bool read_direction(dgm_request *q, const char *source, const char *target, dgm_dictionary *d)
{
    const dgm_pool_listing *l = dgm_pool_list(q->server);
    const dgm_pool_language *from = dgm_pool_find(l, source), *to = dgm_pool_find(l, target);
    const bool fine = from && to && from != to && dgm_pool_offers(from, to->code);
    if (fine) {
        dgm_deepl_base(from->code, true, d->source);
        dgm_deepl_base(to->code, true, d->target);
    } else {
        dgm_answer_error(q, 400, "Unsupported glossary source and target language pair");
    }
    dgm_pool_release(&l);
    return fine;
}

static bool read_dictionary(dgm_request *q, const given *g, dgm_dictionary *d)
{
    dgm_error err;
    if (!g->source || !g->target || !g->entries) {
        dgm_answer_error(q, 400, "Parameter '%s' not specified.",
                         !g->source   ? "source_lang"
                         : !g->target ? "target_lang"
                                      : "entries");
        return false;
    }
    const char *format = g->format ? g->format : "tsv";
    if (strcmp(format, "tsv") != 0 && strcmp(format, "csv") != 0) {
        dgm_answer_error(q, 400, "Value for 'entries_format' not supported.");
        return false;
    }
    if (!read_direction(q, g->source, g->target, d)) return false;
    const dgm_status st = dgm_dictionary_read(d, g->entries, g->size, strcmp(format, "csv") == 0, &err);
    if (st == DGM_OK) return true;
    refuse_entries(q, st, &err);
    dgm_dictionary_free(d);
    return false;
}

// The direction that the fields of the request describe.
static bool read_own(dgm_request *q, dgm_dictionary *d)
{
    given g = {.source = dgm_request_text(q, "source_lang", NULL, NULL),
               .target = dgm_request_text(q, "target_lang", NULL, NULL),
               .format = dgm_request_text(q, "entries_format", NULL, NULL)};
    g.entries = dgm_request_text(q, "entries", &g.size, NULL);
    return read_dictionary(q, &g, d);
}

// The objects of "dictionaries", which the table has checked; the caller's to free. False: it was answered.
static bool read_list(dgm_request *q, dgm_dictionary **out, size_t *count)
{
    const json_t *v = q->json ? json_object_get(q->json, "dictionaries") : NULL;
    const size_t wanted = json_array_size(v);
    dgm_dictionary *list = wanted ? dgm_calloc(wanted, sizeof *list) : NULL; // outlives the answer
    *count = 0;
    *out = list;
    for (; list && *count < wanted; ++*count) {
        const json_t *one = json_array_get(v, *count), *entries = json_object_get(one, "entries");
        const given g = {.source = json_string_value(json_object_get(one, "source_lang")),
                         .target = json_string_value(json_object_get(one, "target_lang")),
                         .format = json_string_value(json_object_get(one, "entries_format")),
                         .entries = json_string_value(entries),
                         .size = json_string_length(entries)};
        if (read_dictionary(q, &g, &list[*count])) continue;
        for (size_t i = 0; i < *count; i++) dgm_dictionary_free(&list[i]);
        dgm_free(list);
        return false;
    }
    if (wanted && !list) dgm_answer_error(q, 500, "out of memory");
    return list || !wanted;
}

// The name; NULL: there is none. False: it was answered.
static bool read_name(dgm_request *q, bool needed, const char **name)
{
    *name = dgm_request_text(q, "name", NULL, NULL);
    const bool fine = *name ? (*name)[0] && strlen(*name) <= DGM_GLOSSARY_NAME : !needed;
    if (!fine) dgm_answer_error(q, 400, "Missing or invalid argument: name");
    return fine;
}

void dgm_deepl_glossary_create(dgm_request *q)
{
    char id[DGM_GLOSSARY_ID + 1];
    const char *name;
    dgm_dictionary own = {.source = ""}, *list = &own;
    dgm_error err;
    size_t count = 1;
    if (!dgm_deepl_check(q) || !read_name(q, true, &name)) return;
    if (is_v3(q) ? !read_list(q, &list, &count) : !read_own(q, &own)) return;
    if (!count) {
        dgm_answer_error(q, 400, "Glossary dictionaries must be provided");
        return;
    }
    const dgm_status st = dgm_glossaries_add(q->server->glossaries, owner_of(q), name, list, count, id, &err);
    if (list != &own) dgm_free(list);
    if (st == DGM_OK)
        answer_one(q, id, 201);
    else
        refuse_entries(q, st, &err);
}

// Another name, further terms.
void dgm_deepl_glossary_patch(dgm_request *q)
{
    const char *name;
    dgm_error err;
    size_t count = 0;
    if (!dgm_deepl_check(q) || !read_name(q, false, &name)) return;
    dgm_dictionary *list = NULL;
    if (!read_list(q, &list, &count)) return;
    const dgm_status st =
        dgm_glossaries_change(q->server->glossaries, owner_of(q), q->rest, name, list, count, true, &err);
    dgm_free(list);
    if (st == DGM_OK)
        answer_one(q, q->rest, 200);
    else
        refuse_entries(q, st, &err);
}

// ---- one direction --------------------------------------------------------------------------------

void dgm_deepl_dictionary_put(dgm_request *q)
{
    dgm_dictionary d = {.source = ""};
    dgm_error err;
    dgm_json_out j = {0};
    if (!dgm_deepl_check(q) || !read_own(q, &d)) return;
    const size_t entries = d.sources.count;
    char source[DGM_DEEPL_CODE], target[DGM_DEEPL_CODE];
    memcpy(source, d.source, sizeof source);
    memcpy(target, d.target, sizeof target);
    const dgm_status st =
        dgm_glossaries_change(q->server->glossaries, owner_of(q), q->rest, NULL, &d, 1, false, &err);
    if (st != DGM_OK) {
        refuse_entries(q, st, &err);
        return;
    }
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "source_lang", source);
    dgm_out_string(&j, "target_lang", target);
    dgm_out_integer(&j, "entry_count", (int64_t)entries);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

// source_lang and target_lang of the query. False: it was answered.
static bool asked_direction(dgm_request *q, dgm_dictionary *d)
{
    const char *source = dgm_deepl_needed(q, "source_lang");
    const char *target = source ? dgm_deepl_needed(q, "target_lang") : NULL;
    return target && read_direction(q, source, target, d);
}

void dgm_deepl_dictionary_delete(dgm_request *q)
{
    dgm_dictionary d = {.source = ""};
    if (!asked_direction(q, &d)) return;
    if (dgm_glossaries_remove(q->server->glossaries, owner_of(q), q->rest, d.source, d.target))
        dgm_answer(q, 204, "application/json", "", 0);
    else
        dgm_deepl_not_found(q);
}

static void put_term(void *cookie, dgm_text source, const char *target)
{
    dgm_writer *w = cookie;
    if (w->size) dgm_write_u8(w, '\n');
    dgm_write_bytes(w, source.data, source.size);
    dgm_write_u8(w, '\t');
    dgm_write_text(w, target);
}

// The entries of a direction as TSV; false: it was answered.
static bool collect(dgm_request *q, const char *source, const char *target, dgm_writer *w)
{
    if (dgm_glossaries_each(q->server->glossaries, owner_of(q), q->rest, source, target, put_term, w)) return true;
    dgm_deepl_not_found(q);
    return false;
}

void dgm_deepl_glossary_entries(dgm_request *q)
{
    dgm_glossary_info g;
    dgm_error err;
    dgm_writer w = {0};
    const char *accept = dgm_request_header(q, "Accept");
    if (accept && !strstr(accept, "text/tab-separated-values") && !strstr(accept, "*/*") &&
        !strstr(accept, "text/*")) {
        dgm_answer_error(q, 415, "No supported media type specified in Accept header");
        return;
    }
    const dgm_status st = dgm_glossaries_find(q->server->glossaries, owner_of(q), q->rest, &g, &err);
    if (st != DGM_OK || g.count != 1) {
        if (st == DGM_OK) dgm_glossary_info_free(&g);
        dgm_deepl_not_found(q);
        return;
    }
    if (collect(q, g.directions[0].source, g.directions[0].target, &w))
        dgm_answer_writer(q, 200, "text/tab-separated-values; charset=utf-8", &w);
    dgm_glossary_info_free(&g);
}

void dgm_deepl_dictionary_entries(dgm_request *q)
{
    dgm_dictionary d = {.source = ""};
    dgm_writer w = {0};
    dgm_json_out j = {0};
    if (!asked_direction(q, &d) || !collect(q, d.source, d.target, &w)) return;
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "dictionaries");
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "source_lang", d.source);
    dgm_out_string(&j, "target_lang", d.target);
    dgm_out_text(&j, "entries", (const char *)w.data, w.size);
    dgm_out_string(&j, "entries_format", "tsv");
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_writer_free(&w);
    dgm_answer_json(q, 200, &j);
}

// ---- for translations -----------------------------------------------------------------------------

bool dgm_deepl_terms(dgm_request *q, const dgm_pool_language *from, const dgm_pool_language *to)
{
    char source[DGM_DEEPL_CODE], target[DGM_DEEPL_CODE];
    size_t single = 0, several = 0;
    dgm_error err;
    const dgm_task_text *one = dgm_deepl_texts(q, "glossary_id", false, &single);
    const dgm_task_text *list = one ? dgm_deepl_texts(q, "glossary_ids", true, &several) : NULL;
    if (!list) return false;
    if (single + several == 0) return true;
    if (!from || (single && several)) {
        dgm_answer_error(q, 400, "%s",
                         from ? "'glossary_id' and 'glossary_ids' exclude each other."
                              : "Use of a glossary requires the source_lang parameter to be specified");
        return false;
    }
    dgm_deepl_base(from->code, true, source);
    dgm_deepl_base(to->code, true, target);
    for (size_t i = 0; i < single + several; i++) {
        const char *id = single ? one[i].text : list[i].text;
        dgm_termbook *book = NULL;
        const dgm_status st =
            dgm_glossaries_book(q->server->glossaries, owner_of(q), id, source, target, &book, &err);
        if (st == DGM_OK && dgm_request_book(q, book)) continue;
        if (st == DGM_ERR_ARGUMENT)
            dgm_answer_error(q, 404, "Glossary not found, or it has no dictionary from %s to %s", source, target);
        else
            dgm_answer_error(q, 500, "out of memory");
        return false;
    }
    return true;
}

// SPDX-License-Identifier: MIT
// Languages and directions of a model file; see languages.h.
#include "format/languages.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { MOST = 4096, LONGEST = 63 };

static const char *const side_names[] = {"source", "target", NULL};

// ---- reading ----------------------------------------------------------------------------------

static dgm_status read_codes(const dgm_gguf *g, dgm_side side, dgm_languages *l, dgm_error *err)
{
    char key[64];
    dgm_gguf_strings it = {0};
    snprintf(key, sizeof key, "dragoman.languages.%s", side_names[side]);
    DGM_TRY(dgm_gguf_get_strings(g, key, DGM_OPTIONAL, &it, err));
    DGM_FAIL_IF(it.count > MOST, err, DGM_ERR_FORMAT, "key '%s' has %llu elements", key,
                (unsigned long long)it.count);
    if (it.count == 0) return DGM_OK;
    l->code[side] = dgm_calloc((size_t)it.count, sizeof **l->code);
    if (!l->code[side]) return dgm_no_memory(err);
    for (dgm_gguf_text s; dgm_gguf_strings_next(&it, &s);) {
        DGM_FAIL_IF(s.size < 1 || s.size > LONGEST || memchr(s.data, ' ', s.size), err,
                    DGM_ERR_FORMAT, "key '%s' holds '%.*s', which is no language", key,
                    (int)(s.size < LONGEST ? s.size : LONGEST), s.data);
        char *copy = dgm_strndup(s.data, s.size);
        if (!copy) return dgm_no_memory(err);
        l->code[side][l->count[side]++] = copy;
        for (int i = 0; i + 1 < l->count[side]; i++)
            DGM_FAIL_IF(strcmp(l->code[side][i], copy) == 0, err, DGM_ERR_FORMAT,
                        "key '%s' holds '%s' twice", key, copy);
    }
    return DGM_OK;
}

static int index_of(const dgm_languages *l, dgm_side side, const char *code, size_t size)
{
    for (int i = 0; i < l->count[side]; i++)
        if (strlen(l->code[side][i]) == size && memcmp(l->code[side][i], code, size) == 0) return i;
    return -1;
}

// "en de" of key -> two indices.
static dgm_status read_pair(const dgm_languages *l, const char *key, const char *text, size_t size,
                            int direction[2], dgm_error *err)
{
    const char *space = memchr(text, ' ', size);
    size_t first = space ? (size_t)(space - text) : 0;
    direction[0] = space ? index_of(l, DGM_SOURCE, text, first) : -1;
    direction[1] = space ? index_of(l, DGM_TARGET, space + 1, size - first - 1) : -1;
    DGM_FAIL_IF(direction[0] < 0 || direction[1] < 0, err, DGM_ERR_FORMAT,
                "key '%s' holds '%.*s', which is not two of the model's languages", key,
                (int)(size < 2 * LONGEST ? size : 2 * LONGEST), text);
    return DGM_OK;
}

static dgm_status read_pairs(const dgm_gguf *g, dgm_languages *l, dgm_error *err)
{
    dgm_gguf_strings it = {0};
    DGM_TRY(dgm_gguf_get_strings(g, "dragoman.languages.pairs", DGM_OPTIONAL, &it, err));
    if (it.count == 0) return DGM_OK;
    l->pairs = dgm_calloc((size_t)l->count[0] * (size_t)l->count[1] + 1, sizeof *l->pairs);
    if (!l->pairs) return dgm_no_memory(err);
    for (dgm_gguf_text s; dgm_gguf_strings_next(&it, &s);) {
        int d[2];
        DGM_TRY(read_pair(l, "dragoman.languages.pairs", s.data, s.size, d, err));
        l->pairs[d[0] * l->count[1] + d[1]] = true;
    }
    return DGM_OK;
}

static dgm_status read_default(const dgm_gguf *g, dgm_languages *l, dgm_error *err)
{
    const char *text = NULL;
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.languages.default", DGM_OPTIONAL, &text, err));
    if (!text) return DGM_OK;
    DGM_TRY(read_pair(l, "dragoman.languages.default", text, strlen(text), l->first, err));
    DGM_FAIL_IF(!dgm_languages_offers(l, l->first[0], l->first[1]), err, DGM_ERR_FORMAT,
                "key 'dragoman.languages.default' is '%.100s', which is none of the directions",
                text);
    return DGM_OK;
}

// Tokens of one side's languages; `limit`: of the vocabularies they are used in.
static dgm_status read_tokens(const dgm_gguf *g, dgm_side side, int limit, dgm_languages *l,
                              dgm_error *err)
{
    char key[64];
    const int32_t *ids = NULL;
    size_t count = 0;
    snprintf(key, sizeof key, "dragoman.languages.%s_tokens", side_names[side]);
    DGM_TRY(dgm_gguf_get_i32s(g, key, DGM_REQUIRED, 0, limit - 1, &ids, &count, err));
    DGM_FAIL_IF(count != (size_t)l->count[side], err, DGM_ERR_FORMAT,
                "key '%s' has %zu elements for %d languages", key, count, l->count[side]);
    l->token[side] = dgm_malloc((count + 1) * sizeof **l->token);
    if (!l->token[side]) return dgm_no_memory(err);
    memcpy(l->token[side], ids, count * sizeof *ids);
    return DGM_OK;
}

static dgm_status read_tags(const dgm_gguf *g, dgm_side side, dgm_languages *l, dgm_error *err)
{
    char key[64];
    dgm_gguf_strings it = {0};
    snprintf(key, sizeof key, "dragoman.%s.tags", side_names[side]);
    DGM_TRY(dgm_gguf_get_strings(g, key, DGM_OPTIONAL, &it, err));
    DGM_FAIL_IF(it.count > DGM_TAGS_MAX, err, DGM_ERR_FORMAT, "key '%s' has %llu elements", key,
                (unsigned long long)it.count);
    for (dgm_gguf_text s; dgm_gguf_strings_next(&it, &s);) {
        int which = 0;
        while (side_names[which] && (strlen(side_names[which]) != s.size ||
                                     memcmp(side_names[which], s.data, s.size) != 0))
            which++;
        DGM_FAIL_IF(!side_names[which], err, DGM_ERR_FORMAT,
                    "key '%s' holds '%.*s', which is neither source nor target", key,
                    (int)(s.size < LONGEST ? s.size : LONGEST), s.data);
        l->tag[side][l->tags[side]++] = (dgm_side)which;
    }
    return DGM_OK;
}

static dgm_status read_all(const dgm_gguf *g, const int vocabulary[2], dgm_languages *l,
                           dgm_error *err)
{
    int limit[2] = {INT32_MAX, INT32_MAX}; // of the tokens of each side's languages
    bool used[2] = {false, false};
    for (int side = 0; side < 2; side++) {
        DGM_TRY(read_codes(g, (dgm_side)side, l, err));
        DGM_TRY(read_tags(g, (dgm_side)side, l, err));
        for (int i = 0; i < l->tags[side]; i++) {
            dgm_side of = l->tag[side][i];
            used[of] = true;
            if (vocabulary[side] < limit[of]) limit[of] = vocabulary[side];
        }
    }
    for (int side = 0; side < 2; side++)
        if (used[side]) DGM_TRY(read_tokens(g, (dgm_side)side, limit[side], l, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.source.tags_last", DGM_OPTIONAL, &l->last, err));
    DGM_TRY(read_pairs(g, l, err));
    DGM_TRY(read_default(g, l, err));
    DGM_FAIL_IF((used[0] || used[1]) && dgm_languages_directions(l) == 0, err, DGM_ERR_FORMAT,
                "the model has language tokens but no directions");
    return DGM_OK;
}

dgm_status dgm_languages_read(const dgm_gguf *g, const int vocabulary[2], dgm_languages *out,
                              dgm_error *err)
{
    *out = (dgm_languages){.first = {-1, -1}};
    dgm_status st = read_all(g, vocabulary, out, err);
    if (st != DGM_OK) dgm_languages_free(out);
    return st;
}

void dgm_languages_free(dgm_languages *l)
{
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < l->count[side]; i++) dgm_free(l->code[side][i]);
        dgm_free(l->code[side]);
        dgm_free(l->token[side]);
    }
    dgm_free(l->pairs);
    *l = (dgm_languages){.first = {-1, -1}};
}

// "dragoman.directions.SOURCE.TARGET.NAME"
static const char *direction_key(const dgm_languages *l, const int direction[2], const char *name,
                                 char key[192])
{
    snprintf(key, 192, "dragoman.directions.%s.%s.%s", l->code[0][direction[0]],
             l->code[1][direction[1]], name);
    return key;
}

dgm_status dgm_languages_defaults(const dgm_gguf *g, const dgm_languages *l, const int direction[2],
                                  dgm_direction_spec *io, dgm_error *err)
{
    char key[192];
    const dgm_need opt = DGM_OPTIONAL;
    if (l->count[0] == 0 || l->count[1] == 0) return DGM_OK;
    DGM_TRY(dgm_gguf_get_f32(g, direction_key(l, direction, "length_penalty", key), opt, -10, 10,
                             &io->length_penalty, err));
    DGM_TRY(dgm_gguf_get_f32(g, direction_key(l, direction, "word_penalty", key), opt, -100, 100,
                             &io->word_penalty, err));
    DGM_TRY(dgm_gguf_get_f32(g, direction_key(l, direction, "max_length_factor", key), opt, 0, 1000,
                             &io->max_length_factor, err));
    return dgm_gguf_get_string(g, direction_key(l, direction, "shortlist", key), opt,
                               &io->shortlist, err);
}

bool dgm_languages_offers(const dgm_languages *l, int source, int target)
{
    if (l->pairs) return l->pairs[source * l->count[1] + target];
    // One direction may be a language into itself (spelling, grammar).
    if (l->count[0] == 1 && l->count[1] == 1) return true;
    return strcmp(l->code[0][source], l->code[1][target]) != 0;
}

size_t dgm_languages_directions(const dgm_languages *l)
{
    size_t n = 0;
    for (int s = 0; s < l->count[0]; s++)
        for (int t = 0; t < l->count[1]; t++) n += dgm_languages_offers(l, s, t);
    return n;
}

int dgm_languages_tokens(const dgm_languages *l, dgm_side side, const int direction[2],
                         int32_t *out)
{
    for (int i = 0; i < l->tags[side]; i++) {
        dgm_side of = l->tag[side][i];
        out[i] = l->token[of][direction[of]];
    }
    return l->tags[side];
}

// ---- choosing ---------------------------------------------------------------------------------

// A list for a message: what fits, and how many more.
typedef struct listed {
    char text[320];
    size_t used;
    int more;
} listed;

static void list_add(listed *l, const char *a, const char *b)
{
    char item[2 * LONGEST + 8];
    int n = snprintf(item, sizeof item, "%s%s%s%s", l->used ? ", " : "", a, b ? " " : "", b ? b : "");
    if (l->more || l->used + (size_t)n + 24 > sizeof l->text) {
        l->more++;
        return;
    }
    memcpy(l->text + l->used, item, (size_t)n + 1);
    l->used += (size_t)n;
}

static const char *list_text(listed *l)
{
    if (l->more) snprintf(l->text + l->used, sizeof l->text - l->used, " and %d more", l->more);
    return l->text;
}

// Languages of a side that go with `other` of the other side (-1: with any).
static listed partners(const dgm_languages *l, dgm_side side, int other)
{
    listed list = {.used = 0};
    for (int i = 0; i < l->count[side]; i++) {
        bool fits = other < 0 || (side == DGM_SOURCE ? dgm_languages_offers(l, i, other)
                                                     : dgm_languages_offers(l, other, i));
        if (fits) list_add(&list, l->code[side][i], NULL);
    }
    return list;
}

// The language that `name` means, -1 where there is no name.
static dgm_status find(const dgm_languages *l, dgm_side side, const char *name, int *found,
                       dgm_error *err)
{
    const char *way = side == DGM_SOURCE ? "from" : "to";
    int best = 0, count = 0;
    *found = -1;
    if (!name || !name[0]) return DGM_OK;
    listed alike = {.used = 0};
    for (int i = 0; i < l->count[side]; i++) {
        int match = dgm_language_matches(name, l->code[side][i]);
        if (match > best) best = match, count = 0, alike = (listed){.used = 0};
        if (match == 0 || match < best) continue;
        if (count++ == 0) *found = i;
        list_add(&alike, l->code[side][i], NULL);
    }
    if (count == 0) {
        listed all = partners(l, side, -1);
        return dgm_fail(err, DGM_ERR_ARGUMENT, "the model does not translate %s '%.40s': it has %s",
                        way, name, all.used ? list_text(&all) : "no languages");
    }
    DGM_FAIL_IF(count > 1, err, DGM_ERR_ARGUMENT, "'%.40s' may mean %s: say which", name,
                list_text(&alike));
    return DGM_OK;
}

static dgm_status choose_any(const dgm_languages *l, int d[2], dgm_error *err)
{
    listed all = {.used = 0};
    int found = 0;
    if (l->first[0] >= 0) {
        d[0] = l->first[0];
        d[1] = l->first[1];
        return DGM_OK;
    }
    for (int s = 0; s < l->count[0]; s++)
        for (int t = 0; t < l->count[1]; t++) {
            if (!dgm_languages_offers(l, s, t)) continue;
            if (found++ == 0) d[0] = s, d[1] = t;
            list_add(&all, l->code[0][s], l->code[1][t]);
        }
    DGM_FAIL_IF(found != 1, err, DGM_ERR_ARGUMENT,
                "the model has %d directions, say which, source and target: %s", found,
                list_text(&all));
    return DGM_OK;
}

// Is a token of this side's languages ever given to the model?
static bool is_told(const dgm_languages *l, dgm_side side)
{
    return l->token[side] != NULL;
}

// d[side] is known, the other side's language is not.
static dgm_status choose_other(const dgm_languages *l, dgm_side side, int d[2], dgm_error *err)
{
    dgm_side other = side == DGM_SOURCE ? DGM_TARGET : DGM_SOURCE;
    int found = 0;
    if (l->first[side] == d[side]) {
        d[other] = l->first[other];
        return DGM_OK;
    }
    for (int i = 0; i < l->count[other]; i++) {
        bool offered = side == DGM_SOURCE ? dgm_languages_offers(l, d[0], i)
                                          : dgm_languages_offers(l, i, d[1]);
        if (offered && found++ == 0) d[other] = i;
    }
    // A model that is not told the source's language does not care which it is.
    if (found == 1 || (found > 1 && other == DGM_SOURCE && !is_told(l, DGM_SOURCE))) return DGM_OK;
    listed list = partners(l, other, d[side]);
    return dgm_fail(err, DGM_ERR_ARGUMENT, "%s %s the model translates %s %s: say which",
                    side == DGM_SOURCE ? "from" : "to", l->code[side][d[side]],
                    side == DGM_SOURCE ? "to" : "from", list.used ? list_text(&list) : "nothing");
}

dgm_status dgm_languages_choose(const dgm_languages *l, const char *source, const char *target,
                                int d[2], dgm_error *err)
{
    DGM_TRY(find(l, DGM_SOURCE, source, &d[0], err));
    DGM_TRY(find(l, DGM_TARGET, target, &d[1], err));
    if (d[0] < 0 && d[1] < 0) return choose_any(l, d, err);
    if (d[1] < 0) return choose_other(l, DGM_SOURCE, d, err);
    if (d[0] < 0) return choose_other(l, DGM_TARGET, d, err);
    if (dgm_languages_offers(l, d[0], d[1])) return DGM_OK;
    listed list = partners(l, DGM_TARGET, d[0]);
    return dgm_fail(err, DGM_ERR_ARGUMENT,
                    "the model does not translate from %s to %s: from %s it translates to %s",
                    l->code[0][d[0]], l->code[1][d[1]], l->code[0][d[0]],
                    list.used ? list_text(&list) : "nothing");
}

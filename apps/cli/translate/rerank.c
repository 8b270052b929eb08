// SPDX-License-Identifier: MIT
// Re-ranking of a window's n-best lists; see rerank.h. Each model is a translator of its own, which
// only scores: it may have other vocabularies, another precision, another order of writing.
#define _GNU_SOURCE
#include "translate/rerank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/lineio.h"

struct reranker {
    int count;
    dgm_reranker items[LIST_MAX];
    char *directions[LIST_MAX];
};

struct rerank_sources {
    dgm_line *lines;
    char *text;
};

// A re-ranker of many directions scores in that of the search, whatever its default is; where lines have several, in
// that of each.
static dgm_status open_reranker(const char *path, const engine_options *e, const dgm_translator *search, bool many,
                                dgm_translator **t, dgm_error *error)
{
    const dgm_translator_info *i = dgm_describe(search);
    dgm_settings s;
    dgm_settings_default(&s);
    s.precision = e->set.settings.precision;
    s.cpu = e->set.settings.cpu;
    s.device = e->set.settings.device;
    s.threads = e->set.settings.threads;
    s.direction_later = 1;
    dgm_status st = dgm_open(t, path, &s, error);
    if (st != DGM_OK || many || dgm_directions(*t, 0, NULL) < 2) return st;
    dgm_close(t);
    s.direction_later = 0;
    s.source = i->source_language;
    s.target = i->target_language;
    return dgm_open(t, path, &s, error);
}

// The direction of "en-de=file:0.7"; NULL: it has none.
static char *direction_of(const char *spec)
{
    const char *path = dgm_directed_path(spec);
    return path > spec ? need(strndup(spec, (size_t)(path - spec - 1))) : NULL;
}

// "file:0.7", or a file alone: its weight is 1.
static int open_one(const char *spec, const engine_options *e, const dgm_translator *search, bool many,
                    dgm_reranker *r)
{
    char *path = need(strdup(dgm_directed_path(spec)));
    dgm_member m;
    int code = split_weight(path, &m);
    *r = (dgm_reranker){.size = sizeof *r, .weight = m.weight > 0 ? m.weight : 1, .directed = many};
    if (code < 0 && r->weight > 1e6f)
        code = fail(EXIT_USAGE, "--rerank: the weight of a re-ranker must be at most 1e+06: '%s'",
                    spec);
    dgm_error error;
    dgm_status st = code < 0 ? open_reranker(path, e, search, many, &r->translator, &error) : DGM_OK;
    dgm_pair_scores *nothing = NULL; // can it score at all?
    if (code < 0 && st == DGM_OK) st = dgm_score_pairs(r->translator, NULL, 0, &nothing, &error);
    dgm_pair_scores_free(&nothing);
    if (st != DGM_OK) dgm_close(&r->translator);
    if (st != DGM_OK) code = fail(exit_code(st), "%s", error.text);
    free(path);
    return code;
}

int rerank_open(const option_list *models, const engine_options *e, const dgm_translator *search, bool many,
                reranker **r)
{
    *r = NULL;
    if (models->count == 0) return -1;
    reranker *made = need(calloc(1, sizeof *made));
    int code = -1;
    while (code < 0 && made->count < models->count) {
        const int i = made->count;
        code = open_one(models->items[i], e, search, many, &made->items[i]);
        if (code >= 0) break;
        made->items[i].direction = made->directions[i] = direction_of(models->items[i]);
        made->count++;
    }
    *r = made;
    if (code >= 0) rerank_close(r);
    return code;
}

const dgm_reranker *rerank_list(const reranker *r, size_t *count)
{
    *count = r ? (size_t)r->count : 0;
    return r ? r->items : NULL;
}

int rerank_files(const option_list *models, file_list *f, char *text, size_t size)
{
    int code = -1;
    for (int i = 0; code < 0 && i < models->count; i++) {
        char *path = need(strdup(dgm_directed_path(models->items[i])));
        dgm_member m;
        code = split_weight(path, &m);
        if (code < 0 && f) files_read(f, "--rerank", m.path);
        if (code < 0 && text) code = file_identity(m.path, m.weight, text, size);
        free(path);
    }
    return code;
}

void rerank_close(reranker **r)
{
    if (!*r) return;
    for (int i = 0; i < (*r)->count; i++) {
        dgm_close(&(*r)->items[i].translator);
        free((*r)->directions[i]);
    }
    free(*r);
    *r = NULL;
}

int rerank_candidates(const engine_options *e, int nbest)
{
    const dgm_settings *s = &e->set.settings;
    const char *search = s->search ? s->search : "";
    if (strcmp(search, "sample") == 0) return nbest;
    if (strcmp(search, "greedy") == 0) return 1; // its only translation gets the other model's score
    const int have = s->beam ? s->beam : s->lengths;
    return have > nbest ? have : have ? nbest : 0;
}

rerank_sources *rerank_keep(const reranker *r, const dgm_input *inputs, size_t count)
{
    if (!r) return NULL;
    rerank_sources *s = need(calloc(1, sizeof *s));
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += inputs[i].text_size;
    s->lines = need(calloc(count ? count : 1, sizeof *s->lines));
    s->text = need(malloc(bytes ? bytes : 1));
    char *at = s->text;
    for (size_t i = 0; i < count; i++) {
        memcpy(at, inputs[i].text, inputs[i].text_size);
        s->lines[i] = (dgm_line){at, inputs[i].text_size};
        at += inputs[i].text_size;
    }
    return s;
}

bool rerank_apply(const reranker *r, rerank_sources *sources, dgm_results *results, int nbest)
{
    if (!r || !sources) return true;
    dgm_error error;
    const bool fine = dgm_rerank_by(r->items, (size_t)r->count, sources->lines, results, &error) == DGM_OK;
    if (!fine) fail(EXIT_RUNTIME, "%s", error.text);
    dgm_results_trim(results, (size_t)nbest);
    free(sources->lines);
    free(sources->text);
    free(sources);
    return fine;
}

// SPDX-License-Identifier: MIT
// Fuzz target: evidence. Lines of n-best lists: what is accepted holds what nbest.h promises. A
// whole list through the file reader, and its words (numbers stand for pieces) through posteriors
// and rows: probabilities, ascending rows, states in range, gains that are numbers.
// Parsers: src/lattice/nbest.c src/tools/evidence_file.c src/score/posterior.c
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "lattice/nbest.h"
#include "score/lmbr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void parse(const char *data, size_t size)
{
    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        const size_t n = end ? (size_t)(end - data) : size;
        dgm_nbest_entry e;
        dgm_error err;
        if (dgm_nbest_parse((dgm_text){data, n}, &e, &err) == DGM_OK) {
            require(isfinite(e.score) && e.text.data >= data && e.text.size <= n);
            require(e.text.data + e.text.size <= data + n);
        } else {
            require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
        }
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
}

static void check_rows(const dgm_posteriors *p)
{
    dgm_lmbr_rows *r = NULL;
    const dgm_lmbr_weights w = {.theta = {-1, 0.5f, 1, 2, 4}, .lambda = 1};
    require(dgm_lmbr_compile(&r, p, &w, NULL) == DGM_OK);
    int32_t s = 0;
    for (size_t i = 1; i < p->count; i++) {
        require(p->nodes[i].p >= 0 && p->nodes[i].p < 1 + 1e-9);
        require(isfinite(dgm_lmbr_gain(r, s, p->nodes[i].token)));
        s = dgm_lmbr_next(r, s, p->nodes[i].token);
        require(s >= 0 && s < r->states);
    }
    for (int32_t i = 1; i < r->at[r->states]; i++) require(isfinite(r->values[i]));
    dgm_lmbr_entry *entries = NULL;
    size_t count = 0;
    require(dgm_lmbr_entries(p, r, &entries, &count, NULL) == DGM_OK);
    require(count + 1 == p->count || (count == 0 && p->count == 0));
    for (size_t i = 0; i < count; i++)
        require(entries[i].length >= 1 && entries[i].length <= DGM_LMBR_ORDER && isfinite(entries[i].gain));
    dgm_free(entries);
    dgm_lmbr_free(&r);
}

static void use(const dgm_evidence *e)
{
    dgm_posteriors p = {0};
    double *w = calloc(e->count + 1, sizeof *w);
    require(w != NULL);
    for (size_t i = 0; i < e->count; i++) w[i] = e->candidates[i].score;
    dgm_evidence_weights(w, e->count, 0.5);
    for (size_t i = 0; i < e->count && e->count < 64; i++) {
        int32_t ids[256];
        size_t n = 0;
        for (size_t k = 0; k < e->candidates[i].size && n < 256; k++)
            ids[n++] = (unsigned char)e->candidates[i].text[k];
        require(dgm_posteriors_add(&p, ids, n, w[i], NULL) == DGM_OK);
    }
    check_rows(&p);
    static const int32_t gram[] = {'a', 'b'};
    uint32_t node = 0;
    const double before = dgm_posteriors_get(&p, gram, 2);
    require(dgm_posteriors_node(&p, gram, 2, &node, NULL) == DGM_OK && node < p.count);
    require(dgm_posteriors_get(&p, gram, 2) == before);
    require(dgm_posteriors_child(&p, dgm_posteriors_child(&p, 0, 'a'), 'b') == node);
    dgm_posteriors_clear(&p);
    dgm_posteriors_free(&p);
    free(w);
}

static void read_file(const uint8_t *data, size_t size)
{
    char path[64];
    dgm_evidence_file *f = NULL;
    dgm_evidence e;
    dgm_error err;
    const int fd = memfd_create("evidence", 0);
    if (fd < 0) return;
    require(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    dgm_evidence_options options;
    dgm_evidence_options_default(&options);
    if (dgm_evidence_open(&f, path, size % 3 ? NULL : &options, &err) == DGM_OK) {
        uint64_t line = 0;
        int more = 1;
        for (int n = 0; n < 100 && more; n++) {
            if (dgm_evidence_any(f, &line, &more, &err) != DGM_OK || !more) break;
            if (dgm_evidence_next(f, line, &e, &err) != DGM_OK) break;
            use(&e);
        }
        if (size % 2) (void)dgm_evidence_finish(f, 1 + size % 5, &err);
    }
    dgm_evidence_close(&f);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse((const char *)data, size);
    read_file(data, size);
    return 0;
}

// SPDX-License-Identifier: MIT
// Translation memories; see dragoman/memory.h. Reading and writing TMX is in memory_tmx.c.
#include <string.h>

#include "base/mem.h"
#include "text/memory_private.h"
#include "text/unicode.h"

dgm_status dgm_memory_open(dgm_memory **memory, const char *source_language, const char *target_language,
                           dgm_error *err)
{
    DGM_FAIL_IF(!memory, err, DGM_ERR_ARGUMENT, "dgm_memory_open needs a place for the memory");
    *memory = NULL;
    DGM_FAIL_IF(!source_language || !source_language[0] || !target_language || !target_language[0], err,
                DGM_ERR_ARGUMENT,
                "a translation memory requires the languages of both sides: a model that names them, or -s and -t");
    dgm_memory *m = dgm_calloc(1, sizeof *m);
    if (!m) return dgm_no_memory(err);
    m->source = dgm_strdup(source_language);
    m->target = dgm_strdup(target_language);
    if (!m->source || !m->target) {
        dgm_memory_close(&m);
        return dgm_no_memory(err);
    }
    *memory = m;
    return DGM_OK;
}

void dgm_memory_close(dgm_memory **memory)
{
    dgm_memory *m = memory ? *memory : NULL;
    if (!m) return;
    dgm_words_free(&m->sources);
    dgm_writer_free(&m->pool);
    dgm_free(m->targets);
    dgm_free(m->source);
    dgm_free(m->target);
    dgm_free(m);
    *memory = NULL;
}

size_t dgm_memory_count(const dgm_memory *m)
{
    return m ? m->sources.count : 0;
}

// A text with every run of white space as one blank, none at its ends.
static void squeeze(dgm_text t, dgm_writer *out)
{
    t = dgm_text_trim(t);
    for (size_t i = 0; i < t.size; i++) {
        const char c = t.data[i];
        const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        const bool again = space && out->size > 0 && out->data[out->size - 1] == ' ';
        if (!again) dgm_write_u8(out, (uint8_t)(space ? ' ' : c));
    }
}

static dgm_status add_squeezed(dgm_memory *m, dgm_text source, dgm_text target, dgm_error *err)
{
    uint32_t number;
    DGM_TRY(dgm_grow(&m->targets, &m->target_cap, m->sources.count + 1, sizeof *m->targets, err));
    const size_t begin = m->pool.size;
    dgm_write_bytes(&m->pool, target.data, target.size);
    dgm_write_u8(&m->pool, 0);
    if (m->pool.failed) return dgm_no_memory(err);
    DGM_TRY(dgm_words_add(&m->sources, source, &number, err));
    m->targets[number] = (dgm_memory_target){begin, target.size};
    return DGM_OK;
}

dgm_status dgm_memory_add(dgm_memory *m, const char *source, size_t source_size, const char *target, size_t target_size,
                          dgm_error *err)
{
    DGM_FAIL_IF(!m || (!source && source_size) || (!target && target_size), err, DGM_ERR_ARGUMENT,
                "dgm_memory_add needs a memory and two texts");
    const dgm_text from = {source_size ? source : "", source_size}, to = {target_size ? target : "", target_size};
    DGM_FAIL_IF(!dgm_utf8_valid(from) || !dgm_utf8_valid(to), err, DGM_ERR_ARGUMENT,
                "a text for a translation memory is not UTF-8");
    dgm_writer a = {0}, b = {0};
    squeeze(from, &a);
    squeeze(to, &b);
    dgm_status st = a.failed || b.failed ? dgm_no_memory(err) : DGM_OK;
    if (st == DGM_OK && a.size > 0 && b.size > 0)
        st = add_squeezed(m, (dgm_text){(const char *)a.data, a.size}, (dgm_text){(const char *)b.data, b.size}, err);
    dgm_writer_free(&a);
    dgm_writer_free(&b);
    return st;
}

const char *dgm_memory_find(const dgm_memory *m, const char *source, size_t source_size, size_t *size)
{
    if (!m || !source || source_size == 0) return NULL;
    int64_t number = dgm_words_find(&m->sources, (dgm_text){source, source_size});
    if (number < 0) { // rarely: with other white space
        dgm_writer w = {0};
        squeeze((dgm_text){source, source_size}, &w);
        if (w.size > 0 && !w.failed) number = dgm_words_find(&m->sources, (dgm_text){(const char *)w.data, w.size});
        dgm_writer_free(&w);
    }
    if (number < 0) return NULL;
    const dgm_memory_target *t = &m->targets[number];
    if (size) *size = t->size;
    return (const char *)m->pool.data + t->begin;
}

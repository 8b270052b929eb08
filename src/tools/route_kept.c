// SPDX-License-Identifier: MIT
// What the last of two steps needs of a line: copies of what it must write, and terms as forced words.
//
// The source of a term is looked for in the line, in its own language: what the first model makes of it, nobody named.
// So the last model is told the target alone, and the first is free.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "constraint/demands.h"
#include "tools/route_private.h"

void dgm_route_kept_free(dgm_route_kept *kept)
{
    dgm_free(kept->block);
    dgm_free(kept->demands);
    dgm_free(kept->notice);
    *kept = (dgm_route_kept){0};
}

// ---- terms -----------------------------------------------------------------------------------------

typedef struct terms {
    dgm_demands demands;
    dgm_writer line, constraints, out, notice;
} terms;

static void write_words(dgm_writer *w, dgm_text words)
{
    for (size_t i = 0; i < words.size; i++) {
        const char c = words.data[i];
        if (c && strchr("\\|=!^$\t", c)) dgm_write_text(w, "\\");
        dgm_write_u8(w, (uint8_t)(c == '\t' ? 't' : c));
    }
}

static void begin_entry(dgm_writer *w, dgm_demand_kind kind)
{
    static const char *const marks[] = {"", "! ", "^ ", "$ "};
    if (w->size) dgm_write_text(w, "\t");
    dgm_write_text(w, marks[kind]);
}

// The line's own demands; those of terms without their sources, if these are there.
static void add_demands(terms *t, dgm_text line)
{
    for (size_t i = 0; i < t->demands.count; i++) {
        const dgm_demand *x = &t->demands.items[i];
        const dgm_text source = dgm_demands_text(&t->demands, x->source);
        size_t at = 0;
        if (source.size && !dgm_term_find(line, source, &at)) {
            const int shown = (int)(source.size < 60 ? source.size : 60);
            dgm_write_format(&t->notice, "%s'%.*s' is not in the line", t->notice.size ? "; " : "", shown, source.data);
            continue;
        }
        begin_entry(&t->out, x->kind);
        for (size_t k = 0; k < x->count; k++) {
            if (k) dgm_write_text(&t->out, " | ");
            write_words(&t->out, dgm_demands_text(&t->demands, t->demands.variants[x->first + k]));
        }
    }
}

// Does the line itself say what becomes of this source, or was it found before?
static bool is_known(const terms *t, const dgm_glossary *g, dgm_text line, const dgm_glossary_hit *hit)
{
    const dgm_text source = dgm_glossary_source(g, hit->entry);
    for (size_t i = 0; i < t->demands.count; i++)
        if (dgm_text_equal(dgm_demands_text(&t->demands, t->demands.items[i].source), source)) return true;
    dgm_glossary_hit other = {0};
    while (dgm_glossary_find(g, line, &other) && other.begin < hit->begin)
        if (other.entry == hit->entry) return true;
    return false;
}

static void add_terms(terms *t, const dgm_glossary *g, dgm_text line)
{
    dgm_glossary_hit hit = {0};
    while (g && dgm_glossary_find(g, line, &hit)) {
        if (is_known(t, g, line, &hit)) continue;
        begin_entry(&t->out, DGM_DEMAND_TERM);
        for (size_t k = 0; k < dgm_glossary_variant_count(g, hit.entry); k++) {
            if (k) dgm_write_text(&t->out, " | ");
            write_words(&t->out, dgm_glossary_variant(g, hit.entry, k));
        }
    }
}

static dgm_text written(const dgm_writer *w)
{
    return (dgm_text){w->size ? (const char *)w->data : "", w->size};
}

static dgm_status read_terms(terms *t, const dgm_glossary *g, const dgm_input *in, dgm_route_kept *out, dgm_error *err)
{
    dgm_error why;
    bool repaired;
    const dgm_text given = {in->constraints, in->constraints ? in->constraints_size : 0};
    DGM_TRY(dgm_line_clean((dgm_text){in->text, in->text ? in->text_size : 0}, &t->line, &repaired, err));
    DGM_TRY(dgm_utf8_repair(given, &t->constraints, NULL, err));
    const dgm_status st = given.size ? dgm_demands_parse(&t->demands, written(&t->constraints), &why) : DGM_OK;
    if (st == DGM_ERR_MEMORY) return dgm_no_memory(err);
    if (st != DGM_OK) { // as of one model: none of them counts
        t->demands.count = 0;
        dgm_write_text(&t->notice, why.text);
        out->flags |= DGM_LINE_MALFORMED;
    }
    add_demands(t, written(&t->line));
    add_terms(t, g, written(&t->line));
    if (t->out.failed || t->notice.failed) return dgm_no_memory(err);
    if (t->notice.size) out->flags |= DGM_LINE_UNMET;
    out->in.constraints_size = t->out.size;
    if (t->out.size && !(out->demands = dgm_writer_take(&t->out, NULL))) return dgm_no_memory(err);
    if (t->notice.size && !(out->notice = dgm_writer_take(&t->notice, NULL))) return dgm_no_memory(err);
    out->in.constraints = out->demands;
    return DGM_OK;
}

// ---- copies ----------------------------------------------------------------------------------------

static const char *copy(char **at, const char *text, size_t size)
{
    char *here = *at;
    if (size) memcpy(here, text, size);
    *at += size;
    return here;
}

// Into one block: candidates, and behind them all texts.
static dgm_status copy_input(const dgm_input *in, dgm_route_kept *out, dgm_error *err)
{
    const size_t list = out->evidence.count * sizeof *out->evidence.candidates;
    size_t bytes = list + out->evidence.lattice_size + out->lattice.size + in->prefix_size;
    for (size_t i = 0; i < out->evidence.count; i++) bytes += out->evidence.candidates[i].size;
    dgm_evidence_candidate *candidates = out->block = dgm_malloc(bytes ? bytes : 1);
    if (!candidates) return dgm_no_memory(err);
    char *at = (char *)out->block + list;
    for (size_t i = 0; i < out->evidence.count; i++) {
        candidates[i] = out->evidence.candidates[i];
        candidates[i].text = copy(&at, candidates[i].text, candidates[i].size);
    }
    out->evidence.candidates = candidates;
    if (out->evidence.lattice) out->evidence.lattice = copy(&at, out->evidence.lattice, out->evidence.lattice_size);
    if (in->evidence) out->in.evidence = &out->evidence;
    if (in->lattice) {
        out->lattice.text = copy(&at, out->lattice.text, out->lattice.size);
        out->in.lattice = &out->lattice;
    }
    if (in->prefix) {
        out->in.prefix = copy(&at, in->prefix, in->prefix_size);
        out->in.prefix_size = in->prefix_size;
    }
    return DGM_OK;
}

dgm_status dgm_route_keep(const dgm_route_way *way, dgm_input *in, dgm_route_kept *out, dgm_error *err)
{
    dgm_input_default(&out->in);
    out->in.deadline_ms = in->deadline_ms;
    out->evidence.size = sizeof out->evidence;
    if (!in->prefix) in->prefix_size = 0;
    DGM_TRY(dgm_sized_take(&out->evidence, sizeof out->evidence, in->evidence, "dgm_evidence", NULL, err));
    out->evidence.size = sizeof out->evidence;
    if (!out->evidence.lattice) out->evidence.lattice_size = 0;
    if (in->lattice) out->lattice = *in->lattice;
    DGM_TRY(copy_input(in, out, err));
    if (way->glossary || (in->constraints && in->constraints_size)) {
        terms t = {0};
        const dgm_status st = read_terms(&t, way->glossary, in, out, err);
        dgm_demands_free(&t.demands);
        dgm_writer_free(&t.line);
        dgm_writer_free(&t.constraints);
        dgm_writer_free(&t.out);
        dgm_writer_free(&t.notice);
        DGM_TRY(st);
    }
    in->prefix = in->constraints = NULL;
    in->prefix_size = in->constraints_size = 0;
    in->evidence = NULL;
    in->lattice = NULL;
    return DGM_OK;
}

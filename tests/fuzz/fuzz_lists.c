// SPDX-License-Identifier: MIT
// Fuzz target: n-best lists and lattices in the hands of the commands that read them. The first two bytes choose the
// command and its options; the rest is one file, or two with a zero byte between them.
//
//     lattice   lists or lattices pruned, joined with the second file's, as lattices or n-best lists: what is written
//               is read again and written as the same bytes, and no text is on an n-best list twice
//     mbr       gains are between nothing and everything, and the best is the best
//     mert      weights tuned on lists against the second file, as references; the file of them is read again
//     tokens    lines are the tokens of a small model's texts, which it spells as texts that are tokens again
//
// Parsers: src/tools/lattices.c src/lattice/lattice_list.c src/lattice/lattice_nbest.c
// Parsers: src/lattice/candidate_list.c src/tools/mbr.c src/tools/token_list.c
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "lattice/nbest.h"
#include "memory_file.h"
#include "mutate.h"
#include "phrase/phrase_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static const char *const between[] = {"\n", "\n", "|||", " ", "\t", "="};
    if (size < 3 || fuzz_below(r, 16) == 0) return LLVMFuzzerMutate(data, size, max);
    return 2 + fuzz_fields(data + 2, size - 2, max - 2, between[fuzz_below(r, 6)], r);
}
FUZZ_MUTATOR(mutate)

// ---- files -----------------------------------------------------------------------------------------

// Files in memory, which are made once and written again.
typedef struct input {
    int fd;
    char path[FUZZ_PATH];
} input;

static const char *put_file(input *f, const char *data, size_t size)
{
    if (!f->path[0]) f->fd = fuzz_file("", 0, f->path);
    require(ftruncate(f->fd, 0) == 0 && pwrite(f->fd, data, size, 0) == (ssize_t)size);
    return f->path;
}

static input inputs[3];

static void check_message(const dgm_error *err)
{
    require(err->text[0] && !strchr(err->text, '\n'));
}

// ---- lattice ---------------------------------------------------------------------------------------

static int keep(void *cookie, const char *text, size_t size)
{
    dgm_write_bytes(cookie, text, size);
    return 0;
}

static int stop(void *cookie, const char *text, size_t size)
{
    (void)cookie, (void)text, (void)size;
    return 1;
}

static size_t lines_of(const dgm_writer *w)
{
    size_t lines = 0;
    for (size_t i = 0; i < w->size; i++) lines += w->data[i] == '\n';
    return lines;
}

// Lattices that were written are written again as they are; the texts of an n-best list are all different.
static void read_again(const dgm_writer *out, const dgm_lattice_options *o, const dgm_lattice_report *before)
{
    dgm_writer second = {0};
    dgm_lattice_options plain;
    dgm_lattice_report after = {.size = sizeof after};
    dgm_error err;
    dgm_lattice_default(&plain);
    plain.format = o->nbest ? NULL : o->format;
    plain.write = keep;
    plain.write_cookie = &second;
    plain.lists = o->nbest > 0;
    plain.nbest = o->nbest;
    const char *const path = put_file(&inputs[2], (const char *)out->data, out->size);
    require(dgm_lattice_run(&path, 1, NULL, &plain, &after, &err) == DGM_OK);
    require(after.lattices == before->lattices);
    if (o->nbest) {
        require(o->repeated || lines_of(&second) == lines_of(out));
    } else {
        require(after.nodes == before->nodes && after.arcs == before->arcs);
        require(second.size == out->size && (!out->size || memcmp(second.data, out->data, out->size) == 0));
    }
    dgm_writer_free(&second);
}

// A word of a lattice may hold what separates the fields of a list.
static bool is_plain(const dgm_writer *list)
{
    size_t bars = 0;
    for (size_t i = 0; i + 3 <= list->size; i++)
        if (memcmp(list->data + i, "|||", 3) == 0) bars++, i += 2;
    return bars == 3 * lines_of(list);
}

static void read_blocks(const char *path)
{
    dgm_lattices *f = NULL;
    dgm_lattice_text block;
    uint32_t line = 0;
    dgm_error err;
    if (dgm_lattices_open(&f, path, &err) != DGM_OK) {
        check_message(&err);
        return;
    }
    dgm_status st;
    while ((st = dgm_lattices_next(f, &block, &err)) == DGM_OK && block.text) {
        require(block.size > 0 && block.line > line);
        line = block.line;
    }
    if (st != DGM_OK) check_message(&err);
    dgm_lattices_close(&f);
}

static void run_lattice(uint8_t how, uint8_t more, const char *const paths[2], bool two)
{
    dgm_writer out = {0};
    dgm_lattice_options o;
    dgm_lattice_report report = {.size = sizeof report};
    dgm_error err = {""};
    dgm_lattice_default(&o);
    o.lists = how & 4 ? 1 : 0;
    o.transducer = how & 8 ? 1 : 0;
    o.trim = how & 16 ? 1 : 0;
    o.nbest = how & 32 ? 3 : 0;
    o.repeated = how & 64 ? 1 : 0;
    o.format = how & 128 ? "openfst" : NULL;
    o.prune = more & 1 ? 1.5 : -1;
    o.max_arcs = more & 2 ? 4 : 0;
    o.symbols = more & 4 && two ? paths[1] : NULL;
    o.write = more & 8 ? stop : more & 128 ? NULL : keep;
    o.write_cookie = &out;
    if (more & 16) o.format = more & 32 ? "lattice" : "other";
    if (more & 64) o.prune = NAN;
    const size_t count = two && !o.symbols ? 2 : 1;
    const dgm_status st = dgm_lattice_run(paths, count, NULL, &o, &report, &err);
    if (st == DGM_OK && out.size && (!o.nbest || is_plain(&out))) read_again(&out, &o, &report);
    if (st != DGM_OK) check_message(&err);
    read_blocks(paths[0]);
    dgm_writer_free(&out);
}

// ---- mbr -------------------------------------------------------------------------------------------

static void choose(dgm_mbr *m, const dgm_evidence *list)
{
    size_t best = SIZE_MAX;
    const double *gains = NULL;
    dgm_error err = {""};
    if (dgm_mbr_choose(m, list, &best, &gains, &err) != DGM_OK) {
        check_message(&err);
        return;
    }
    require(best < list->count);
    for (size_t i = 0; i < list->count; i++) {
        require(gains[i] >= 0 && gains[i] <= 100 + 1e-6);
        require(i < best ? gains[i] < gains[best] : gains[i] <= gains[best]);
    }
}

static void run_mbr(uint8_t how, uint8_t more, const char *path)
{
    dgm_mbr *m = NULL;
    dgm_mbr_options o;
    dgm_evidence_file *f = NULL;
    dgm_evidence_options given;
    dgm_error err = {""};
    dgm_mbr_default(&o);
    dgm_evidence_options_default(&given);
    o.utility = how & 4 ? how & 8 ? "other" : "chrf" : how & 8 ? NULL : "bleu";
    o.scale = how & 16 ? how & 32 ? NAN : 0 : how & 32 ? 100 : 1;
    o.tokenize = how & 64 ? how & 128 ? "other" : "none" : how & 128 ? "intl" : NULL;
    given.nbest = more & 1 ? 5 : 0;
    given.detokenize = more & 2 ? "en" : NULL;
    if (dgm_mbr_open(&m, &o, &err) != DGM_OK || dgm_evidence_open(&f, path, &given, &err) != DGM_OK) {
        check_message(&err);
        dgm_mbr_close(&m);
        return;
    }
    int left = 1;
    uint64_t line = 0;
    for (int n = 0; n < 20; n++) {
        dgm_evidence e = {.size = sizeof e};
        if (dgm_evidence_any(f, &line, &left, &err) != DGM_OK || !left) break;
        if (dgm_evidence_next(f, line, &e, &err) != DGM_OK) break;
        if (!e.lattice) choose(m, &e);
    }
    dgm_evidence_close(&f);
    dgm_mbr_close(&m);
}

// ---- mert ------------------------------------------------------------------------------------------

typedef struct promise {
    double before, after;
    int rounds;
} promise;

static int hear(void *cookie, int round, double bleu, double promised, uint64_t hypotheses)
{
    promise *p = cookie;
    *p = (promise){bleu, promised, p->rounds + 1};
    require(round == 0 && hypotheses > 0);
    return 0;
}

static void run_mert(uint8_t how, const char *const paths[2])
{
    promise p = {0};
    dgm_mert_options o;
    dgm_error err = {""};
    dgm_mert_default(&o);
    o.lists = paths[0];
    o.restarts = how >> 2 & 1;
    o.directions = how >> 3 & 1;
    o.lattice = how >> 4 == 1;
    o.radius = how & 32 ? 0.5 : -1;
    o.report = hear;
    o.cookie = &p;
    const char *const references[2] = {paths[1], paths[1]}, *output = fuzz_written("weights");
    if (dgm_mert(NULL, references, how >> 4 == 3 ? 0 : 1 + (how >> 6 & 1), output, &o, &err) == DGM_OK) {
        dgm_pb_weights weights;
        require(dgm_pb_weights_read(&weights, output, &err) == DGM_OK);
        require(p.rounds == 1 && p.before >= 0 && p.before <= 100 + 1e-6 && p.after >= 0 && p.after <= 100 + 1e-6);
    } else {
        check_message(&err);
    }
}

// ---- tokens ----------------------------------------------------------------------------------------

static dgm_translator *small_model(void)
{
    static dgm_translator *t;
    dgm_settings s;
    dgm_settings_default(&s);
    s.workspace = 16 << 20;
    require(t || dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, NULL) == DGM_OK);
    return t;
}

static void spell(dgm_translator *t, int target, const char *const *tokens, size_t count)
{
    char *text = NULL;
    dgm_token_list *list = NULL;
    dgm_error err = {""};
    require(dgm_tokens_text(t, target, tokens, count, &text, &err) == DGM_OK && text);
    require(dgm_utf8_valid(dgm_text_of(text)));
    require(dgm_text_tokens(t, target, text, strlen(text), &list, &err) == DGM_OK);
    require(text[0] == 0 || list->count > 0);
    dgm_token_list_free(&list);
    free(text);
}

static void run_tokens(uint8_t how, const char *data, size_t size)
{
    enum { WORDS = 64 };
    dgm_translator *t = small_model();
    dgm_token_list *list = NULL;
    const char *tokens[WORDS] = {NULL};
    dgm_error err = {""};
    const int target = how & 4 ? 1 : 0;
    if (dgm_text_tokens(t, target, data, size, &list, &err) == DGM_OK) {
        for (size_t i = 0; i < list->count; i++) require(list->items[i][0] != 0);
        spell(t, target, list->items, list->count);
        dgm_token_list_free(&list);
    } else {
        check_message(&err);
    }
    // Words in any bytes as tokens: what is none is unknown.
    char *copy = calloc(1, size + 1), *at = copy;
    require(copy != NULL);
    if (size) memcpy(copy, data, size);
    size_t count = 0;
    for (; at < copy + size && count < WORDS; at += strlen(at) + 1) {
        char *end = strchr(at, ' ');
        if (end) *end = 0;
        tokens[count++] = at;
    }
    spell(t, target, tokens, how & 8 && count < WORDS ? count + 1 : count); // one is NULL
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const uint8_t how = data[0], more = data[1];
    const char *const text = (const char *)data + 2;
    const char *const nul = memchr(text, 0, size -= 2);
    const size_t n = nul ? (size_t)(nul - text) : size, behind = nul ? n + 1 : size;
    if (how % 4 == 3) {
        run_tokens(how, text, size);
        return 0;
    }
    const char *const paths[2] = {put_file(&inputs[0], text, n), put_file(&inputs[1], text + behind, size - behind)};
    switch (how % 4) {
    case 0: run_lattice(how, more, paths, nul != NULL); break;
    case 1: run_mbr(how, more, paths[0]); break;
    default: run_mert(how, paths); break;
    }
    return 0;
}

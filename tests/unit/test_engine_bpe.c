// SPDX-License-Identifier: MIT
// Translators whose vocabulary is a byte-pair encoding, one of each style: translation, links between words,
// constraints, glossaries, what a watching program hears. The model is tiny and random with another vocabulary:
// what it says means nothing, but it must say what it is told to.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine.h"
#include "format/modelfile.h"
#include "format/rewrite.h"
#include "import/bpe_codes.h"
#include "scratch.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"

enum { SIZE_MOST = 512 };

typedef struct vocabulary {
    char text[SIZE_MOST][16];
    const char *tokens[SIZE_MOST];
    int count, size;
} vocabulary;

static void add(vocabulary *v, const char *token)
{
    for (int i = 0; i < v->size; i++)
        if (v->tokens[i] && strcmp(v->tokens[i], token) == 0) return;
    while (v->count < v->size && v->tokens[v->count]) v->count++; // those with a meaning keep their places
    if (v->count == v->size) return;
    snprintf(v->text[v->count], sizeof v->text[0], "%s", token);
    v->tokens[v->count] = v->text[v->count];
}

// Letters and the pieces of "haus", "sun" and "musik" as the style spells them.
static void fill(vocabulary *v, dgm_spec_bpe_style style)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzGHM0123456789.,!?&;#@-'";
    static const char *const plain[] = {"ha", "us", "haus", "su", "sun", "mu", "mus"};
    char token[16];
    const char *end = style == DGM_SPEC_BPE_SUBWORD_NMT ? "@@" : "";
    const char *space = style == DGM_SPEC_BPE_BYTE_LEVEL ? "\xc4\xa0" : "\xe2\x96\x81"; // Ġ, ▁
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        add(v, plain[i]);
        snprintf(token, sizeof token, "%s%s", plain[i], end);
        add(v, token);
    }
    if (!end[0]) add(v, space);
    snprintf(token, sizeof token, "%shaus", space);
    if (!end[0]) add(v, token);
    for (size_t i = 0; letters[i]; i++) {
        snprintf(token, sizeof token, "%c", letters[i]);
        add(v, token);
        snprintf(token, sizeof token, "%c%s", letters[i], end);
        add(v, token);
    }
    for (int i = 0; i < v->size; i++) {
        snprintf(token, sizeof token, "w%d", i);
        if (!v->tokens[i]) add(v, token);
    }
}

static const char *make_model(dgm_spec_bpe_style style)
{
    static const char *const nmt[] = {"h a", "s</w> x", "u s</w>", "ha us</w>", "s u", "su n</w>", "m u", "mu s"};
    static const char *const space[] = {"h a", "u s", "ha us", "s u", "su n", "m u", "mu s", "\xe2\x96\x81 haus"};
    static const char *const bytes[] = {"h a", "u s", "ha us", "s u", "su n", "m u", "mu s", "\xc4\xa0 haus"};
    static const char *const *const merges[] = {nmt, bytes, space};
    static vocabulary v;
    dgm_error err;
    dgm_gguf *g;
    dgm_gguf_writer *w;
    dgm_vocab_spec old;
    memset(&v, 0, sizeof v);
    assert_int_equal(dgm_modelfile_open(&g, MODEL, &err), DGM_OK);
    assert_int_equal(dgm_modelfile_vocab(g, DGM_SOURCE, &old, &err), DGM_OK);
    assert_true(old.size <= SIZE_MOST);
    v.size = old.size;
    v.tokens[old.eos] = "</s>";
    v.tokens[old.unk] = "<unk>";
    if (old.pad >= 0) v.tokens[old.pad] = "<pad>";
    fill(&v, style);
    dgm_bpe_keys k = {.tokens = v.tokens, .size = v.size, .eos = old.eos, .unk = old.unk, .pad = old.pad, .bos = -1,
                      .style = style, .merges = merges[style], .merge_count = 8, .flags = DGM_SPEC_BPE_PREFIX_SPACE};
    if (style == DGM_SPEC_BPE_SUBWORD_NMT) {
        k.flags = 0;
        k.tokenizer = DGM_SPEC_TOKENIZER_SACREMOSES;
        k.moses = 15;
        k.language = "en";
    }
    assert_int_equal(dgm_rewrite_open(&w, g, NULL, &err), DGM_OK);
    dgm_bpe_keys_set(w, DGM_SOURCE, &k);
    dgm_gguf_unset(w, "dragoman.source.vocab.sentencepiece");
    dgm_gguf_unset(w, "dragoman.source.vocab.map");
    dgm_gguf_unset(w, "dragoman.source.vocab.extra");
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++)
        if (!dgm_rewrite_is_scale(g, dgm_gguf_tensor(g, i))) dgm_rewrite_copy(w, dgm_gguf_tensor(g, i));
    if (dgm_rewrite_finish(&w, in_folder("bpe.gguf"), DGM_OK, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_gguf_close(&g);
    return in_folder("bpe.gguf");
}

static const dgm_spec_bpe_style styles[] = {DGM_SPEC_BPE_SUBWORD_NMT, DGM_SPEC_BPE_BYTE_LEVEL, DGM_SPEC_BPE_METASPACE};
enum { STYLES = sizeof styles / sizeof *styles };

static void test_translate(void **state)
{
    (void)state;
    for (int s = 0; s < STYLES; s++) {
        dgm_translator *t = open_usual(make_model(styles[s]), 4, 0, true);
        static const char *const texts[] = {"Good morning, haus.", "", "sun musik haus", "a & b isn't well-known!"};
        dgm_results *r = NULL;
        assert_int_equal(dgm_translate(t, texts, 4, &r, NULL), DGM_OK);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(r->items[i]->status, DGM_OK);
            const dgm_translation *x = r->items[i]->translations[0];
            for (size_t k = 0; k < x->link_count; k++) {
                assert_true(x->links[k].source < (int)strlen(texts[i]));
                assert_true(x->links[k].target < (int)strlen(x->text) + 1);
            }
        }
        assert_true(r->items[0]->translations[0]->link_count > 0);
        char *once = results_text(r, true);
        dgm_results_free(&r);
        char *again = translate_texts(t, texts, 4, true);
        assert_string_equal(once, again);
        free(once);
        free(again);
        dgm_close(&t);
    }
}

static dgm_input input(const char *text, const char *constraints)
{
    return (dgm_input){.size = sizeof(dgm_input),
                       .text = text,
                       .text_size = strlen(text),
                       .constraints = constraints,
                       .constraints_size = constraints ? strlen(constraints) : 0};
}

static void test_demands(void **state)
{
    (void)state;
    for (int s = 0; s < STYLES; s++) {
        dgm_translator *t = open_usual(make_model(styles[s]), 4, 0, false);
        const dgm_input in[] = {input("Good morning.", "haus"), input("Good morning.", "morning => haus sun | musik"),
                                input("Good morning.", "^ haus\t$ sun."), input("Good morning.", "! haus\tsun")};
        dgm_results *r = NULL;
        dgm_error error;
        if (dgm_translate_inputs(t, in, 4, &r, &error) != DGM_OK) fail_msg("%s", error.text);
        for (int i = 0; i < 4; i++) {
            const char *text = dgm_result_text(r->items[i]);
            if (r->items[i]->notice) fail_msg("style %d, line %d: %s", s, i, r->items[i]->notice);
            const bool met = i == 0   ? strstr(text, "haus") != NULL
                             : i == 1 ? strstr(text, "haus sun") || strstr(text, "musik")
                             : i == 2 ? strncmp(text, "haus", 4) == 0 && strlen(text) >= 4 &&
                                            strcmp(text + strlen(text) - 4, "sun.") == 0
                                      : strstr(text, "sun") && !strstr(text, " haus ");
            if (!met) fail_msg("style %d, line %d: '%s'", s, i, text);
        }
        dgm_results_free(&r);
        dgm_close(&t);
    }
}

static void test_glossary(void **state)
{
    (void)state;
    put("terms.tsv", "morning\tmusik\n", 14);
    for (int s = 0; s < STYLES; s++) {
        dgm_settings set;
        dgm_settings_default(&set);
        set.terms[0] = in_folder("terms.tsv");
        dgm_translator *t = open_with(&set, make_model(styles[s]));
        dgm_results *r = translate_one(t, "Good morning.");
        if (!strstr(dgm_result_text(r->items[0]), "musik")) fail_msg("style %d: '%s'", s, dgm_result_text(r->items[0]));
        dgm_results_free(&r);
        dgm_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_translate),
        cmocka_unit_test(test_demands),
        cmocka_unit_test(test_glossary),
    };
    return scratch_open() ? scratch_close(cmocka_run_group_tests(tests, NULL, NULL)) : 1;
}

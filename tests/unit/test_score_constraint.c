// SPDX-License-Identifier: MIT
// The automaton of constraints against a second look at the text it has read.
//
// Random tokens spell random texts; whether terms and forbidden texts stand in them as whole words
// is asked of the finished text by plain comparison. Offers lead to the end in as many subwords as are
// missing. What states cannot hold is refused, and every allocation may fail.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "constraint/constraint.h"

enum { EOS = 0, MOST = 40 };

// Subwords as a subword model has them; 0 is the end symbol.
static const char *const subwords[] = {"",   " a", "a",  " b", "b", " ab", "ab", "ba", ".",    " ",
                                     ",a", " -", "-b", "é", " é", "€",   "漢", "c",  " c ab", "b."};
enum { SUBWORDS = sizeof subwords / sizeof *subwords };

static dgm_surfaces *surfaces;

static int set_up(void **state)
{
    (void)state;
    dgm_surfaces *s = dgm_calloc(1, sizeof *s);
    s->count = SUBWORDS;
    s->at = dgm_calloc(SUBWORDS + 1, sizeof *s->at);
    s->bytes = dgm_calloc(1, 256);
    s->breaks = dgm_calloc(SUBWORDS, sizeof *s->breaks);
    s->continues = dgm_calloc(SUBWORDS, sizeof *s->continues);
    for (int i = 0; i < SUBWORDS; i++) {
        const dgm_text t = dgm_text_of(subwords[i]);
        memcpy(s->bytes + s->at[i], t.data, t.size);
        s->at[i + 1] = s->at[i] + (uint32_t)t.size;
        if (dgm_text_begins_in_word(t))
            s->continues[s->continue_count++] = i;
        else
            s->breaks[s->break_count++] = i;
    }
    surfaces = s;
    return dgm_surfaces_from_right(s, NULL) != DGM_OK;
}

static int tear_down(void **state)
{
    (void)state;
    dgm_surfaces_close(&surfaces);
    return 0;
}

static void spell(const int32_t *tokens, int count, char *out)
{
    out[0] = 0;
    for (int i = 0; i < count; i++) strcat(out, subwords[tokens[i]]);
}

static const char *no_space(const char *t)
{
    while (*t == ' ') t++;
    return t;
}

// How often words stand in a text as whole words.
static int occurrences(const char *text, const char *words)
{
    int count = 0;
    const size_t n = strlen(words), size = strlen(text);
    for (size_t i = 0; i + n <= size; i++) {
        if (memcmp(text + i, words, n) != 0) continue;
        const dgm_text before = {text, i}, behind = {text + i + n, size - i - n};
        const dgm_text w = {words, n};
        if (dgm_text_begins_in_word(w) && i > 0 && dgm_text_ends_in_word(before)) continue;
        if (dgm_text_ends_in_word(w) && dgm_text_begins_in_word(behind)) continue;
        count++;
    }
    return count;
}

typedef struct sample {
    dgm_pattern patterns[6];
    int32_t tokens[6][4];
    char text[6][64];
    int count, terms;
    int most[3]; // of a term
} sample;

// A pattern that may begin and end anywhere but in the middle of a character.
static void add(sample *s, dgm_rng *rng, dgm_pattern_kind kind, int term)
{
    const int i = s->count++;
    int n;
    do {
        n = 1 + (int)(dgm_rng_next(rng) % 3);
        for (int k = 0; k < n; k++)
            s->tokens[i][k] = 1 + (int32_t)(dgm_rng_next(rng) % (SUBWORDS - 1));
        spell(s->tokens[i], n, s->text[i]);
    } while (!*no_space(s->text[i]));
    s->patterns[i] =
        (dgm_pattern){.kind = kind, .term = term, .tokens = s->tokens[i], .count = n, .most = s->most[term]};
}

static void draw_sample(sample *s, dgm_rng *rng)
{
    memset(s, 0, sizeof *s);
    s->terms = (int)(dgm_rng_next(rng) % 3);
    for (int t = 0; t < s->terms; t++) {
        s->most[t] = (int)(dgm_rng_next(rng) % 4);
        add(s, rng, DGM_PATTERN_TERM, t);
        if (dgm_rng_next(rng) % 3 == 0) add(s, rng, DGM_PATTERN_TERM, t); // a variant
    }
    if (dgm_rng_next(rng) % 2 || s->terms == 0) add(s, rng, DGM_PATTERN_FORBID, 0);
}

static bool term_stands(const sample *s, const char *text, int term)
{
    for (int i = 0; i < s->count; i++)
        if (s->patterns[i].kind == DGM_PATTERN_TERM && s->patterns[i].term == term &&
            occurrences(text, no_space(s->text[i])) > 0)
            return true;
    return false;
}

static bool forbidden_stands(const sample *s, const char *text)
{
    for (int i = 0; i < s->count; i++)
        if (s->patterns[i].kind == DGM_PATTERN_FORBID &&
            occurrences(text, no_space(s->text[i])) > 0)
            return true;
    return false;
}

// Does a text of the term stand in another text that is demanded?
static bool is_inside(const sample *s, int term)
{
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->count; k++) {
            const char *part = no_space(s->text[k]), *whole = no_space(s->text[i]);
            if (s->patterns[i].kind != DGM_PATTERN_TERM || s->patterns[k].kind != DGM_PATTERN_TERM) continue;
            if (s->patterns[k].term == term && strcmp(part, whole) != 0 && occurrences(whole, part)) return true;
        }
    return false;
}

static bool exceeds(const sample *s, const char *text)
{
    for (int t = 0; t < s->terms; t++) {
        int found = 0;
        for (int i = 0; i < s->count; i++) {
            bool known = s->patterns[i].kind != DGM_PATTERN_TERM || s->patterns[i].term != t;
            for (int k = 0; k < i && !known; k++)
                known = s->patterns[k].kind == DGM_PATTERN_TERM && s->patterns[k].term == t &&
                        strcmp(no_space(s->text[i]), no_space(s->text[k])) == 0;
            if (!known) found += occurrences(text, no_space(s->text[i]));
        }
        if (s->most[t] && found > s->most[t] && !is_inside(s, t)) return true;
    }
    return false;
}

// Two terms that share a text are met by two occurrences: left to a case of its own.
static bool share_texts(const sample *s)
{
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < i; k++)
            if (s->patterns[i].kind == DGM_PATTERN_TERM &&
                s->patterns[k].kind == DGM_PATTERN_TERM &&
                s->patterns[i].term != s->patterns[k].term &&
                strcmp(no_space(s->text[i]), no_space(s->text[k])) == 0)
                return true;
    return false;
}

typedef dgm_status (*compiler)(dgm_constraint **c, const dgm_surfaces *surfaces, const dgm_pattern *patterns,
                               int count, int terms, dgm_error *err);

// Tokens are added behind the text, or, where it is read from the right, before it.
static void read_texts(compiler make, bool right)
{
    dgm_rng rng = {7};
    int ended = 0, broke = 0, exceeded = 0;
    for (int run = 0; run < 4000; run++) {
        sample s;
        dgm_constraint *c;
        dgm_error err;
        draw_sample(&s, &rng);
        if (share_texts(&s)) continue;
        if (make(&c, surfaces, s.patterns, s.count, s.terms, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dgm_constraint_from_right(c), right);
        int32_t path[MOST], at = dgm_constraint_start(c);
        char text[512];
        bool broken = false;
        for (int n = 0; n < 12; n++) {
            const int32_t token = 1 + (int32_t)(dgm_rng_next(&rng) % (SUBWORDS - 1));
            if (right) memmove(path + 1, path, (size_t)n * sizeof *path);
            path[right ? 0 : n] = token;
            bool now;
            at = dgm_constraint_advance(c, at, token, &now);
            broken |= now;
            spell(path, n + 1, text);
            bool all = true;
            for (int t = 0; t < s.terms; t++) all &= term_stands(&s, text, t);
            const bool forbidden = forbidden_stands(&s, text), often = exceeds(&s, text), bad = forbidden || often;
            if (broken && !bad) fail_msg("'%s' does not hold '%s'", text, s.text[s.count - 1]);
            if (!broken && dgm_constraint_may_end(c, at) != (all && !bad))
                fail_msg("'%s': may end %d, not %d (terms %d, '%s' ...)", text,
                         dgm_constraint_may_end(c, at), all && !bad, s.terms, s.text[0]);
            assert_int_equal(dgm_constraint_meets(c, path, n + 1, true), all && !bad);
            assert_int_equal(dgm_constraint_meets(c, path, n + 1, false), all && !forbidden);
            ended += all && !bad;
            broke += bad;
            exceeded += often && !forbidden;
            if (broken) break;
        }
        dgm_constraint_free(&c);
    }
    assert_true(ended > 500 && broke > 200 && exceeded > 100);
}

static void reads_as_the_text_says(void **state)
{
    (void)state;
    read_texts(dgm_constraint_compile, false);
}

static void reads_it_from_the_right(void **state)
{
    (void)state;
    read_texts(dgm_constraint_compile_right, true);
}

// What comes first in the sentence is what is read last; what comes last is left to forced tokens.
static void a_beginning_is_read_last(void **state)
{
    (void)state;
    static const int32_t a[] = {1}, begin[] = {3, 6}, end[] = {3, 8}; // " a", " bab", " b."
    const dgm_pattern p[] = {{.term = 0, .tokens = a, .count = 1},
                             {.kind = DGM_PATTERN_PREFIX, .tokens = begin, .count = 2},
                             {.kind = DGM_PATTERN_SUFFIX, .tokens = end, .count = 2}};
    dgm_constraint *c;
    dgm_error err;
    int count, numbers[8];
    int32_t offers[8];
    assert_int_equal(dgm_constraint_compile_right(&c, surfaces, p, 3, 1, &err), DGM_OK);
    const int32_t *first = dgm_constraint_end(c, &count);
    assert_true(count == 2 && first[0] == 8 && first[1] == 3 && !dgm_constraint_end_alone(c));
    assert_true(dgm_constraint_meets(c, (int32_t[]){3, 6, 1, 3, 8}, 5, true));
    assert_true(dgm_constraint_meets(c, (int32_t[]){3, 6, 17, 1, 3, 8}, 6, true)); // " babc": may go on
    assert_true(dgm_constraint_meets(c, (int32_t[]){3, 2, 4, 1, 3, 8}, 6, true));  // spelled otherwise
    assert_false(dgm_constraint_meets(c, (int32_t[]){1, 3, 6, 1, 3, 8}, 6, true));
    assert_false(dgm_constraint_meets(c, (int32_t[]){3, 6, 3, 8}, 4, true));
    assert_false(dgm_constraint_meets(c, (int32_t[]){3, 6, 1, 3}, 4, true));
    bool broken;
    int32_t at = dgm_constraint_start(c);
    for (int i = 0; i < 3; i++) at = dgm_constraint_advance(c, at, (int32_t[]){8, 3, 1}[i], &broken);
    assert_int_equal(dgm_constraint_offers(c, at, offers, numbers, 8), 1); // the last subword of the beginning
    assert_int_equal(offers[0], 6);
    assert_int_equal(dgm_constraint_missing(c, at), 2);
    dgm_constraint_free(&c);
}

static bool listed(const int32_t *list, int count, int32_t token)
{
    for (int i = 0; i < count; i++)
        if (list[i] == token) return true;
    return false;
}

// Among the offers is one that brings the end a subword nearer: following it meets everything in
// as many subwords as were missing, up to two where a term ends in the beginning of another one and
// must not go on. The other offers meet everything, too, but may take longer.
static void offers_lead_to_the_end(void **state)
{
    (void)state;
    dgm_rng rng = {11};
    for (int run = 0; run < 2000; run++) {
        sample s = {0};
        dgm_constraint *c;
        dgm_error err;
        for (int t = 0; t < 3; t++) { // as a vocabulary spells words: a space first
            s.tokens[t][0] = (int32_t[]){1, 3, 5, 14, 9}[dgm_rng_next(&rng) % 5];
            s.tokens[t][1] = (int32_t[]){2, 4, 6, 7, 13, 17}[dgm_rng_next(&rng) % 6];
            s.tokens[t][2] = (int32_t[]){2, 4, 8, 12, 15}[dgm_rng_next(&rng) % 5];
            const int n = 2 + (int)(dgm_rng_next(&rng) % 2);
            spell(s.tokens[t], n, s.text[t]);
            s.patterns[s.count++] = (dgm_pattern){.term = t, .tokens = s.tokens[t], .count = n};
        }
        s.terms = 3;
        assert_int_equal(dgm_constraint_compile(&c, surfaces, s.patterns, 3, 3, &err), DGM_OK);
        int32_t at = dgm_constraint_start(c), offers[8], path[MOST];
        int numbers[8], steps = 0;
        const int missing = dgm_constraint_missing(c, at);
        while (!dgm_constraint_may_end(c, at) && steps < MOST) {
            const int32_t *allow, *deny;
            int allowed, denied, n = 0;
            const int all = dgm_constraint_offers(c, at, offers, numbers, 8);
            dgm_constraint_limits(c, at, &allow, &allowed, &deny, &denied);
            for (int i = 0; i < all; i++)
                if (!allow || listed(allow, allowed, offers[i])) offers[n++] = offers[i];
            if (n == 0) offers[n++] = 8; // a full stop lets the next term begin
            bool broken;
            path[steps] = offers[dgm_rng_next(&rng) % (uint64_t)n];
            for (int i = 0; i < n && run % 2; i++)
                if (dgm_constraint_missing(
                        c, dgm_constraint_advance(c, at, offers[i], &broken)) <
                    dgm_constraint_missing(
                        c, dgm_constraint_advance(c, at, path[steps], &broken)))
                    path[steps] = offers[i];
            at = dgm_constraint_advance(c, at, path[steps++], &broken);
        }
        char text[512];
        spell(path, steps, text);
        if (steps > (run % 2 ? missing + 2 : 3 * missing))
            fail_msg("'%s' took %d subwords, %d were missing", text, steps, missing);
        assert_int_equal(dgm_constraint_missing(c, at), 0);
        assert_true(dgm_constraint_bank(c, at) < dgm_constraint_banks(c));
        dgm_constraint_free(&c);
    }
}

static dgm_constraint *compile(const dgm_pattern *p, int count, int terms)
{
    dgm_constraint *c;
    dgm_error err;
    if (dgm_constraint_compile(&c, surfaces, p, count, terms, &err) != DGM_OK)
        fail_msg("%s", err.text);
    return c;
}

static int32_t follow(const dgm_constraint *c, const int32_t *tokens, int count)
{
    int32_t at = dgm_constraint_start(c);
    bool broken;
    for (int i = 0; i < count; i++) at = dgm_constraint_advance(c, at, tokens[i], &broken);
    return at;
}

static void twice_means_twice(void **state)
{
    (void)state;
    static const int32_t ab[] = {5};
    const dgm_pattern p[] = {{.term = 0, .tokens = ab, .count = 1},
                             {.term = 1, .tokens = ab, .count = 1}};
    dgm_constraint *c = compile(p, 2, 2);
    assert_false(dgm_constraint_may_end(c, follow(c, (int32_t[]){5}, 1)));
    assert_true(dgm_constraint_may_end(c, follow(c, (int32_t[]){5, 5}, 2)));
    assert_true(dgm_constraint_may_end(c, follow(c, (int32_t[]){1, 4, 3, 5}, 4))); // " ab b ab"
    dgm_constraint_free(&c);
}

static bool breaks(const dgm_constraint *c, const int32_t *tokens, int count)
{
    int32_t at = dgm_constraint_start(c);
    bool broken = false, now;
    for (int i = 0; i < count; i++) {
        at = dgm_constraint_advance(c, at, tokens[i], &now);
        broken |= now;
    }
    return broken;
}

// Of terms that share a text, and of one that may be said more often than it must.
static void limits_add_up(void **state)
{
    (void)state;
    static const int32_t ab[] = {5}, thrice[] = {5, 5, 5, 3}, twice[] = {5, 5, 3}, longer[] = {5, 5, 17, 3};
    const dgm_pattern each[] = {{.term = 0, .tokens = ab, .count = 1, .most = 1},
                                {.term = 1, .tokens = ab, .count = 1, .most = 1}};
    const dgm_pattern two = {.term = 0, .tokens = ab, .count = 1, .most = 2};
    dgm_constraint *both = compile(each, 2, 2), *one = compile(&two, 1, 1);
    assert_false(dgm_constraint_may_end(both, follow(both, ab, 1)));
    assert_true(dgm_constraint_may_end(one, follow(one, ab, 1)));
    dgm_constraint *of[] = {both, one};
    for (int i = 0; i < 2; i++) {
        assert_false(breaks(of[i], twice, 3));
        assert_true(dgm_constraint_may_end(of[i], follow(of[i], twice, 3)));
        assert_true(breaks(of[i], thrice, 4));
        assert_false(dgm_constraint_may_end(of[i], follow(of[i], thrice, 3))); // unless the word goes on
        assert_false(breaks(of[i], longer, 4));
        int32_t spent[4];
        assert_int_equal(dgm_constraint_spent(of[i], follow(of[i], twice, 3), spent, 4), 0); // the word may go on
        assert_true(dgm_constraint_limited(of[i]));
        dgm_constraint_lift(of[i], twice, 3);
        assert_true(dgm_constraint_limited(of[i]));
        dgm_constraint_lift(of[i], thrice, 3);
        assert_false(dgm_constraint_limited(of[i]) || breaks(of[i], thrice, 4));
        dgm_constraint_free(&of[i]);
    }
}

// From the right a token may have the whole text, and with the space the beginning of its word.
static void what_is_spent_is_known(void **state)
{
    (void)state;
    static const int32_t ab[] = {5};
    const dgm_pattern p = {.term = 0, .tokens = ab, .count = 1, .most = 1};
    dgm_constraint *c;
    dgm_error err;
    int32_t spent[4];
    assert_int_equal(dgm_constraint_compile_right(&c, surfaces, &p, 1, 1, &err), DGM_OK);
    const int32_t at = follow(c, ab, 1);
    assert_int_equal(dgm_constraint_spent(c, dgm_constraint_start(c), spent, 4), 0);
    assert_int_equal(dgm_constraint_spent(c, at, spent, 4), 1);
    assert_int_equal(spent[0], 5);
    dgm_constraint_loosen(c, true);
    assert_int_equal(dgm_constraint_spent(c, at, spent, 4), 0);
    assert_false(breaks(c, (int32_t[]){5, 5}, 2));
    assert_false(dgm_constraint_meets(c, (int32_t[]){5, 5}, 2, true));
    dgm_constraint_free(&c);
}

// Where an end holds a term beside other words it may be said once more, whoever reads the end: an automaton from the
// right begins with it, the left one of both leaves it to the other.
static void an_end_that_holds_a_term_lifts_its_limit(void **state)
{
    (void)state;
    static const int32_t a[] = {1}, longer[] = {1, 3}; // " a", " a b"
    for (int own = 0; own < 2; own++) {
        const dgm_pattern p[] = {{.term = 0, .tokens = a, .count = 1, .most = 1},
                                 {.kind = DGM_PATTERN_SUFFIX, .tokens = own ? a : longer, .count = own ? 1 : 2}};
        dgm_constraint *c[4] = {compile(p, 2, 1)};
        dgm_error err;
        assert_int_equal(dgm_constraint_compile_right(&c[1], surfaces, p, 2, 1, &err), DGM_OK);
        assert_int_equal(dgm_constraint_compile_both(&c[2], &c[3], surfaces, p, 2, 1, &err), DGM_OK);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(dgm_constraint_limited(c[i]), own);
            dgm_constraint_free(&c[i]);
        }
    }
}

// A limit that does not fit a state is no reason to refuse a term.
static void limits_that_do_not_fit_are_left_out(void **state)
{
    (void)state;
    static const int32_t ab[] = {5}, a[] = {1};
    const dgm_pattern p[] = {{.term = 0, .tokens = ab, .count = 1, .most = DGM_CONSTRAINT_BITS},
                             {.term = 1, .tokens = a, .count = 1, .most = INT32_MAX}};
    dgm_constraint *c = compile(p, 2, 2);
    assert_false(dgm_constraint_limited(c));
    assert_false(dgm_constraint_may_end(c, follow(c, ab, 1)));
    assert_true(dgm_constraint_may_end(c, follow(c, (int32_t[]){5, 1}, 2)));
    dgm_constraint_free(&c);
}

static void an_end_comes_last(void **state)
{
    (void)state;
    static const int32_t a[] = {1}, end[] = {3, 8}; // " a", " b."
    const dgm_pattern p[] = {{.term = 0, .tokens = a, .count = 1},
                             {.kind = DGM_PATTERN_SUFFIX, .tokens = end, .count = 2}};
    dgm_constraint *c = compile(p, 2, 1);
    assert_false(dgm_constraint_may_end(c, follow(c, (int32_t[]){3, 8}, 2)));
    assert_true(dgm_constraint_may_end(c, follow(c, (int32_t[]){1, 3, 8}, 3)));
    assert_false(dgm_constraint_may_end(c, follow(c, (int32_t[]){1, 3, 8, 1}, 4)));
    int32_t offers[8];
    int numbers[8];
    int32_t at = follow(c, (int32_t[]){1}, 1); // the term is met: the end is offered
    assert_int_equal(dgm_constraint_offers(c, at, offers, numbers, 8), 1);
    assert_int_equal(offers[0], 3);
    assert_int_equal(dgm_constraint_missing(c, at), 2);
    at = follow(c, (int32_t[]){1, 3}, 2);
    assert_int_equal(dgm_constraint_offers(c, at, offers, numbers, 8), 1);
    assert_int_equal(offers[0], 8);
    dgm_constraint_free(&c);
}

static void words_are_whole(void **state)
{
    (void)state;
    static const int32_t ab[] = {5};
    const dgm_pattern term = {.tokens = ab, .count = 1};
    const dgm_pattern ban = {.kind = DGM_PATTERN_FORBID, .tokens = ab, .count = 1};
    const int32_t *allow, *deny;
    int allowed, denied;
    dgm_constraint *c = compile(&term, 1, 1); // " ab" was said: it must not go on
    dgm_constraint_limits(c, follow(c, ab, 1), &allow, &allowed, &deny, &denied);
    assert_true(allow && !listed(allow, allowed, 2) && listed(allow, allowed, 8));
    dgm_constraint_free(&c);
    c = compile(&ban, 1, 0); // " ab" was said: it must go on
    dgm_constraint_limits(c, follow(c, ab, 1), &allow, &allowed, &deny, &denied);
    assert_true(allow && listed(allow, allowed, 2) && !listed(allow, allowed, 8));
    assert_false(dgm_constraint_may_end(c, follow(c, ab, 1)));
    dgm_constraint_limits(c, follow(c, (int32_t[]){1}, 1), &allow, &allowed, &deny, &denied);
    assert_null(allow);
    assert_true(listed(deny, denied, 19) && !listed(deny, denied, 4)); // " a" + "b." would say it
    dgm_constraint_free(&c);
}

static void too_many_are_refused(void **state)
{
    (void)state;
    static int32_t tokens[40][3];
    dgm_pattern p[40];
    for (int i = 0; i < 40; i++) {
        tokens[i][0] = 1 + i % 15, tokens[i][1] = 1 + i / 15, tokens[i][2] = 2;
        p[i] = (dgm_pattern){.term = i, .tokens = tokens[i], .count = 3};
    }
    dgm_constraint *c;
    dgm_error err;
    assert_int_equal(dgm_constraint_compile(&c, surfaces, p, 40, 40, &err), DGM_ERR_UNSUPPORTED);
    assert_null(c);
    assert_int_equal(dgm_constraint_compile(&c, surfaces, p, 29, 29, &err), DGM_ERR_UNSUPPORTED);
    c = compile(p, 20, 20);
    dgm_constraint_free(&c);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    static const int32_t ab[] = {5, 8}, b[] = {3};
    const dgm_pattern p[] = {{.term = 0, .tokens = ab, .count = 2},
                             {.kind = DGM_PATTERN_FORBID, .tokens = b, .count = 1}};
    const uint64_t live = dgm_mem_live();
    for (uint64_t n = 1;; n++) {
        dgm_constraint *c;
        dgm_error err;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_constraint_compile(&c, surfaces, p, 2, 1, &err);
        dgm_mem_inject(0, 0);
        dgm_constraint_free(&c);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_as_the_text_says),
        cmocka_unit_test(reads_it_from_the_right),
        cmocka_unit_test(a_beginning_is_read_last), cmocka_unit_test(offers_lead_to_the_end),
        cmocka_unit_test(twice_means_twice),      cmocka_unit_test(an_end_comes_last),
        cmocka_unit_test(words_are_whole),        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(allocations_may_fail),   cmocka_unit_test(limits_add_up),
        cmocka_unit_test(limits_that_do_not_fit_are_left_out), cmocka_unit_test(what_is_spent_is_known),
        cmocka_unit_test(an_end_that_holds_a_term_lifts_its_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

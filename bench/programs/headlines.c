// SPDX-License-Identifier: MIT
// Learns the points of src/text/headlines.c from news, and says how well they do.
//
//     headlines learn LANGUAGE:FILE... > points       the rows of sign_points in src/text/headline_points_private.h
//     headlines test LANGUAGE:FILE...                 ends of headlines in the texts, found ones, false cuts
//
// A FILE has a sentence or a headline on every line, as the test sets of WMT have. Lines are joined by threes.
// Every place in front of a capital is an example, up to the first end of a line that final marks do not show: is
// it such an end? Logistic regression (Newton's method, squared weights times PENALTY added) says
// how much each sign counts: one table for German, whose nouns have capitals, one for the other languages.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/headline_points_private.h"
#include "text/headlines.h"
#include "text/split.h"

enum { BY = 3, TEXT_MAX = 1 << 16, TABLES = 2, STEPS = 20 };
static const double PENALTY = 2;

typedef struct example {
    dgm_headline_place place;
    bool end;
} example;

typedef struct examples {
    example *items;
    size_t count, cap;
} examples;

typedef struct paragraph {
    char text[TEXT_MAX];
    size_t size, begins[BY]; // of its lines
    int lines;
} paragraph;

static bool begins_line(const paragraph *p, size_t at)
{
    bool found = false;
    for (int i = 1; i < p->lines; i++) found |= p->begins[i] == at;
    return found;
}

static void collect(const paragraph *p, dgm_language lang, examples *out)
{
    dgm_pieces pieces = {0};
    dgm_headline_place places[DGM_HEADLINE_PLACES_MAX];
    if (dgm_split_at_marks((dgm_text){p->text, p->size}, lang, &pieces, NULL) != DGM_OK) exit(1);
    for (size_t i = 0; i < pieces.count; i++) {
        const dgm_piece piece = pieces.items[i];
        const dgm_text text = {p->text + piece.begin, piece.end - piece.begin};
        size_t first = text.size; // end of a line inside the piece
        for (int k = p->lines - 1; k > 0; k--)
            if (p->begins[k] > piece.begin && p->begins[k] < piece.end)
                first = p->begins[k] - piece.begin;
        const int count = dgm_headline_places(text, lang, places);
        for (int k = 0; k < count && places[k].at <= first; k++) {
            if (dgm_grow(&out->items, &out->cap, out->count + 1, sizeof *out->items, NULL) !=
                DGM_OK)
                exit(1);
            out->items[out->count++] =
                (example){places[k], begins_line(p, piece.begin + places[k].at)};
        }
    }
    dgm_pieces_free(&pieces);
}

static void read_text(const char *name, examples *out)
{
    static paragraph p;
    static char line[TEXT_MAX];
    const char *path = strchr(name, ':');
    FILE *file = path ? fopen(path + 1, "r") : NULL;
    if (!file) {
        fprintf(stderr, "headlines: '%s' is no LANGUAGE:FILE that can be read\n", name);
        exit(2);
    }
    const dgm_language lang = dgm_language_of((dgm_text){name, (size_t)(path - name)});
    for (bool more = true; more;) {
        p.size = 0;
        p.lines = 0;
        while (p.lines < BY && (more = fgets(line, sizeof line, file) != NULL)) {
            const dgm_text t = dgm_text_trim(dgm_text_of(line));
            if (t.size == 0 || p.size + t.size + 1 > sizeof p.text) continue;
            if (p.size) p.text[p.size++] = ' ';
            p.begins[p.lines++] = p.size;
            memcpy(p.text + p.size, t.data, t.size);
            p.size += t.size;
        }
        collect(&p, lang, out);
    }
    fclose(file);
}

// ---- logistic regression -------------------------------------------------------------------

// Solves a x = b, a symmetric and positive: by Cholesky's factors, in place.
static void solve(double a[SIGNS][SIGNS], double b[SIGNS])
{
    for (int i = 0; i < SIGNS; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++) sum -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
        }
        for (int k = 0; k < i; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = SIGNS - 1; i >= 0; i--) {
        for (int k = i + 1; k < SIGNS; k++) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
}

static void learn(const examples *from, double weights[SIGNS])
{
    static double curvature[SIGNS][SIGNS];
    memset(weights, 0, SIGNS * sizeof *weights);
    for (int step = 0; step < STEPS; step++) {
        double gradient[SIGNS], largest = 0;
        memset(curvature, 0, sizeof curvature);
        for (int i = 0; i < SIGNS; i++) {
            curvature[i][i] = PENALTY;
            gradient[i] = PENALTY * weights[i];
        }
        for (size_t e = 0; e < from->count; e++) {
            const dgm_headline_place *p = &from->items[e].place;
            double sum = 0;
            for (int i = 0; i < p->count; i++) sum += weights[p->signs[i]];
            const double odds = 1 / (1 + exp(-sum));
            for (int i = 0; i < p->count; i++) {
                gradient[p->signs[i]] += odds - from->items[e].end;
                for (int j = 0; j < p->count; j++)
                    curvature[p->signs[i]][p->signs[j]] += odds * (1 - odds);
            }
        }
        solve(curvature, gradient);
        for (int i = 0; i < SIGNS; i++) {
            weights[i] -= gradient[i];
            if (fabs(gradient[i]) > largest) largest = fabs(gradient[i]);
        }
        if (largest < 1e-3) break;
    }
}

static void print_table(const char *name, const double weights[SIGNS])
{
    printf("    [%s] = {", name);
    for (int i = 0; i < SIGNS; i++)
        printf("%s%ld,", i % 18 == 0 ? "\n        " : " ",
               lround(fmax(-127, fmin(127, 10 * weights[i]))));
    printf("\n    },\n");
}

int main(int argc, char **argv)
{
    const bool learns = argc > 2 && strcmp(argv[1], "learn") == 0;
    if (!learns && (argc < 3 || strcmp(argv[1], "test") != 0)) {
        fputs("usage: headlines learn|test LANGUAGE:FILE...\n", stderr);
        return 2;
    }
    examples tables[TABLES] = {{0}};
    for (int i = 2; i < argc; i++) {
        examples *out =
            &tables[strncmp(argv[i], "de:", 3) == 0 ? NOUNS_HAVE_CAPITALS : NAMES_HAVE_CAPITALS];
        if (!learns) out->count = 0;
        read_text(argv[i], out);
        size_t ends = 0, found = 0, wrong = 0;
        for (size_t e = 0; e < out->count; e++) {
            const bool cut = out->items[e].place.points > 0;
            ends += out->items[e].end;
            found += cut && out->items[e].end;
            wrong += cut && !out->items[e].end;
        }
        if (!learns) printf("%s: %zu ends, %zu found, %zu false\n", argv[i], ends, found, wrong);
    }
    for (int table = 0; learns && table < TABLES; table++) {
        double weights[SIGNS];
        learn(&tables[table], weights);
        print_table(table == NOUNS_HAVE_CAPITALS ? "NOUNS_HAVE_CAPITALS" : "NAMES_HAVE_CAPITALS",
                    weights);
    }
    for (int table = 0; table < TABLES; table++) dgm_free(tables[table].items);
    return 0;
}

// SPDX-License-Identifier: MIT
// Symmetrisation of word alignments (Och and Ney 2003; Koehn et al. 2003); see symmetrize.h.
//
// One cell per pair of positions, bits F (forward has it), B (backward has it), L (it is a link).
//
//   intersect             L where F and B
//   grow-diag             intersect, then again and again over the links, row by row: a neighbour
//                         (of the eight) that F or B has joins when its row or column has no link
//   ...-final             then cells of F, after them cells of B, join in order when their row OR
//                         column has no link; ...-final-and: when row AND column have none
#include "align/symmetrize.h"

#include <stdbool.h>
#include <string.h>

static const char *const names[DGM_SYM_COUNT] = {
    "forward",   "backward",        "intersect",          "union",
    "grow-diag", "grow-diag-final", "grow-diag-final-and"};

const char *dgm_symmetrize_name(int method)
{
    return method >= 0 && method < DGM_SYM_COUNT ? names[method] : "?";
}

int dgm_symmetrize_find(const char *name)
{
    for (int i = 0; i < DGM_SYM_COUNT; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

enum { FORWARD = 1, BACKWARD = 2, LINK = 4 };

typedef struct grid {
    uint8_t *cell;      // [m, n]
    uint8_t *row, *col; // [m], [n]: has a link
    int m, n;
} grid;

static void add_link(grid *g, int i, int j)
{
    g->cell[i * g->n + j] |= LINK;
    g->row[i] = 1;
    g->col[j] = 1;
}

static void grow_diag(grid *g)
{
    static const int8_t near[8][2] = {{-1, 0},  {0, -1}, {1, 0},  {0, 1},
                                      {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = 0; i < g->m; i++)
            for (int j = 0; j < g->n; j++) {
                if (!(g->cell[i * g->n + j] & LINK)) continue;
                for (int k = 0; k < 8; k++) {
                    int a = i + near[k][0], b = j + near[k][1];
                    if (a < 0 || b < 0 || a >= g->m || b >= g->n) continue;
                    uint8_t c = g->cell[a * g->n + b];
                    if (c == 0 || (c & LINK) || (g->row[a] && g->col[b])) continue;
                    add_link(g, a, b);
                    grown = true;
                }
            }
    }
}

static void finish(grid *g, int direction, bool both)
{
    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            uint8_t c = g->cell[i * g->n + j];
            if (!(c & direction) || (c & LINK)) continue;
            bool free_row = !g->row[i], free_col = !g->col[j];
            if (both ? free_row && free_col : free_row || free_col) add_link(g, i, j);
        }
}

// Is a cell with these bits a link before anything grows?
static bool starts(dgm_symmetrize method, uint8_t c)
{
    switch (method) {
    case DGM_SYM_FORWARD:
        return c & FORWARD;
    case DGM_SYM_BACKWARD:
        return c & BACKWARD;
    case DGM_SYM_UNION:
        return c != 0;
    default:
        return (c & FORWARD) && (c & BACKWARD);
    }
}

size_t dgm_symmetrize_links(dgm_symmetrize method, const int16_t *forward, int n,
                            const int16_t *backward, int m, uint8_t *cells, dgm_align_link *links)
{
    size_t area = (size_t)m * (size_t)n, count = 0;
    memset(cells, 0, area + (size_t)m + (size_t)n);
    grid g = {cells, cells + area, cells + area + m, m, n};
    for (int j = 0; j < n; j++)
        if (forward[j] >= 0 && forward[j] < m) g.cell[forward[j] * n + j] |= FORWARD;
    for (int i = 0; i < m; i++)
        if (backward[i] >= 0 && backward[i] < n) g.cell[i * n + backward[i]] |= BACKWARD;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            if (g.cell[i * n + j] && starts(method, g.cell[i * n + j])) add_link(&g, i, j);
    if (method >= DGM_SYM_GROW_DIAG) grow_diag(&g);
    if (method >= DGM_SYM_GROW_DIAG_FINAL) {
        finish(&g, FORWARD, method == DGM_SYM_GROW_DIAG_FINAL_AND);
        finish(&g, BACKWARD, method == DGM_SYM_GROW_DIAG_FINAL_AND);
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            if (g.cell[i * n + j] & LINK)
                links[count++] = (dgm_align_link){(uint16_t)i, (uint16_t)j};
    return count;
}

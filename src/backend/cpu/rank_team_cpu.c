// SPDX-License-Identifier: MIT
// CPU backend: chunks of the vocabulary that a worker's team shares (rank_cpu.c has the walk of one thread).
//
// Few rows leave room for the logits of many chunks at once. They are computed side by side; so are the sums of
// exponentials, as soon as it is known what the running maximum will be at each chunk; what is added to what, and
// the lists, are the leader's, in the order of the chunks: all numbers are those of one thread.
#include <math.h>

#include "backend/cpu/rank_private.h"

typedef struct round_of_chunks {
    rank_state *q;
    const dgm_candidates *list;
    int row, rows, at, chunks, parts;
} round_of_chunks;

// Columns of the round's chunk g; its rows' logits lie from row g * rows on.
static rank_columns round_chunk(const round_of_chunks *s, int g)
{
    return cpu_rank_columns(s->q, s->list, s->at + g * CHUNK);
}

static void project_part(const void *arg, int part)
{
    const round_of_chunks *s = arg;
    const rank_state *q = s->q;
    for (int g = s->chunks * part / s->parts; g < s->chunks * (part + 1) / s->parts; g++) {
        const rank_columns c = round_chunk(s, g);
        for (int p = 0; p < q->r->part_count; p++) {
            const dgm_linear *w = c.gathered ? &c.gathered[p]->columns : q->r->parts[p].out;
            const size_t first = (size_t)p * ROWS + (size_t)(g * s->rows);
            float *out = q->logits + first * CHUNK;
            cpu_rank_project(q, w, p, s->row, s->rows, c.first, c.first + c.count, out, CHUNK, true);
            for (int i = 0; q->r->normalise && i < s->rows; i++)
                q->chunk[first + (size_t)i].max = q->k->max_f32(out + (size_t)i * CHUNK, c.count);
        }
    }
}

// .sum is the running maximum before, the sum afterwards.
static void sum_part(const void *arg, int part)
{
    const round_of_chunks *s = arg;
    const rank_state *q = s->q;
    for (int g = s->chunks * part / s->parts; g < s->chunks * (part + 1) / s->parts; g++) {
        const int count = round_chunk(s, g).count;
        for (int p = 0; p < q->r->part_count; p++)
            for (int i = 0; i < s->rows; i++) {
                const size_t at = (size_t)p * ROWS + (size_t)(g * s->rows + i);
                if (q->chunk[at].max != -INFINITY)
                    q->chunk[at].sum = q->k->sum_exp_f32(q->logits + at * CHUNK, count, q->chunk[at].sum);
            }
    }
}

// What lse_add will have as its maximum at every chunk.
static void foresee_maxima(const round_of_chunks *s)
{
    const rank_state *q = s->q;
    for (int p = 0; p < q->r->part_count; p++)
        for (int i = 0; i < s->rows; i++) {
            rank_sum running = {q->sums[(s->row + i) * q->r->part_count + p].max, 0};
            for (int g = 0; g < s->chunks; g++) {
                rank_sum *chunk = &q->chunk[p * ROWS + g * s->rows + i];
                if (chunk->max != -INFINITY) cpu_rank_raise(q->k, &running, chunk->max);
                chunk->sum = running.max;
            }
        }
}

static void consume_round(const round_of_chunks *s)
{
    rank_state *q = s->q;
    for (int g = 0; g < s->chunks; g++) {
        const rank_columns c = round_chunk(s, g);
        for (int i = 0; i < s->rows; i++) {
            float bound = INFINITY;
            for (int p = 0; q->r->normalise && p < q->r->part_count; p++) {
                const rank_sum *chunk = &q->chunk[p * ROWS + g * s->rows + i];
                rank_sum *sums = &q->sums[(s->row + i) * q->r->part_count + p];
                bound = chunk->max;
                if (bound == -INFINITY) continue;
                cpu_rank_raise(q->k, sums, bound);
                sums->sum += chunk->sum;
            }
            cpu_rank_offer(q, s->row + i, g * s->rows + i, &c, bound);
        }
    }
}

// Chunks from `at` on that the team computed; 0: it is not worth it, or nobody is there.
int cpu_rank_share(rank_state *q, const dgm_candidates *list, int row, int rows, int at, int total)
{
    dgm_team *team = q->x->team;
    round_of_chunks s = {q, list, row, rows, at, (total - at + CHUNK - 1) / CHUNK, 1};
    double time = 0;
    if (s.chunks > ROWS / rows) s.chunks = ROWS / rows;
    if (s.chunks < 2 || q->x->meter || (list && !list->gathered)) return 0;
    const int wide = total - at < s.chunks * CHUNK ? total - at : s.chunks * CHUNK;
    for (int p = 0; p < q->r->part_count; p++) {
        if (!list && !q->r->parts[p].out->packed) return 0;
        time += cpu_product_time(q->r->parts[p].out, rows, wide);
    }
    s.parts = dgm_team_parts(team, time, s.chunks);
    if (s.parts == 1) return 0;
    dgm_team_run(team, project_part, &s, s.parts);
    if (q->r->normalise) {
        foresee_maxima(&s);
        dgm_team_run(team, sum_part, &s, s.parts);
    }
    consume_round(&s);
    return s.chunks;
}

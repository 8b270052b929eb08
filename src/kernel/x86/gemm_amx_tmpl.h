// SPDX-License-Identifier: MIT
// Products in AMX tiles: the loops that gemm_i8_amx and gemm_bf16_amx share. Layout and epilogue are in
// kernel/gemm_int_tmpl.h. The including file defines
//     AMX_DOT(sum, a, w)      tdpbusd or tdpbf16ps of three tiles
//     enum { AMX_REAL };      1: sums are floats, without scales and start values
// and includes this afterwards; all functions are static.
//
// The instruction multiplies a tile of A (16 rows x 64 bytes of k) with a tile of W (16 groups of k x 16
// columns): the packed panel as it lies, a row of the tile being 64 bytes of a step. Integer sums wrap
// without saturation; the start values of the columns are added in the epilogue.
//   up to 16 rows: tiles 0-3 are the sums of 64 columns, 4 is A, 6 and 7 are W in turn
//   more: tiles 0-3 are 2 x 2 sums (32 rows x 32 columns), 4 and 5 A, 6 and 7 W
// The second form loads half as much for each product; of many steps it loads each tile as soon as its last product of
// the step before has begun. Rows that do not fill a block are taken with rows before them, whose results are there
// and left alone, so that one height of tiles serves a whole product; below 16 rows tiles are as high as there are
// rows. An element is the sum of the same instructions in the same order in either form.
//
// The unit wants a line a cycle, about what the second cache gives at best: A has to come from the first one. W is
// therefore read past that (tileloaddt1), unless a panel is so shallow that other rows find it there again; and of many
// rows as many are taken through W at a time as fit into the first cache, if W stays in the second meanwhile. Measured
// (docs/results/THROUGHPUT.md): 32 rows of 512 x 512 in bf16 went from 52 to 72 % of the unit's peak.
//
// A product of 32 x 32 sums and 256 deep keeps the matrix unit busy for 256 cycles, and its epilogue
// the vector units for nearly as long. Neither waits for the other: the sums of a block are stored
// when it is done, and finished a few at a time between the steps of the next one.
//
// The system's permission to use tiles has been asked for when the flag was set (kernel/cpu.c).
#ifndef DGM_KERNEL_X86_GEMM_AMX_TMPL_H
#define DGM_KERNEL_X86_GEMM_AMX_TMPL_H

#define INLINE static inline __attribute__((always_inline))

enum {
    STEP = PANEL * 4,
    DEEP = 16 * STEP, // bytes of a panel that one tile of A meets
    TILE = 16 * 16, // sums
    UNIT = 8,       // rows of a tile that are finished at a time
    UNITS = 4 * 16 / UNIT, // of a block
    STREAMED = 8,          // steps from which on W is read past the first cache
    KEPT_A = 32 << 10,     // bytes of A that stay in the first cache (48 KiB) ..
    KEPT_W = 3 << 19       // .. and of W in the second (2 MiB)
};

// What ldtilecfg reads.
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "the processor's layout");

// Where the tiles of sums of a block are in the product: side by side (16 x 64) or two above two
// (32 x 32).
typedef struct block {
    bool wide;   // side by side
    int j;       // first column
    int row[2];  // first rows, of the upper and of the lower tiles
    int skip[2]; // rows of them that have been finished before
} block;

// Rows of sums of one tile that wait for their epilogue, and what it needs: of the first of them, in
// its 16 columns.
typedef struct strip {
    const int32_t *sums;
    const char *start; // start values of the columns; not looked at of floats
    int row, j, rows, columns; // columns: that are wanted, 16 or more for all
} strip;

typedef struct tile_product {
    int32_t sums[4 * TILE] __attribute__((aligned(64)));
    strip strips[4]; // of the block that waits for its epilogue ..
    int unit;        // .. from here on; UNITS: nothing waits
    const char *a, *packed;
    size_t lda, panel_size; // bytes
    int m;
    int_out out;
    int steps, height; // tiles of A in a row; rows of a tile
    bool cold;         // W comes from memory
    void (*finish)(struct tile_product *p, int units);
} tile_product;

// Tiles 0-3 hold sums, 4 and 5 rows of A: `rows` high. 6 and 7 hold W.
static void configure(int rows)
{
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.bytes_per_row[i] = 64;
        c.rows[i] = (uint8_t)(i < 6 ? rows : 16);
    }
    __asm__ volatile("" : : "r"(&c) : "memory"); // the intrinsic names but eight bytes of it
    _tile_loadconfig(&c);
}

// ---- epilogue ---------------------------------------------------------------------------------

// Up to UNIT rows from `first` on of a strip whose 16 columns are all wanted. A bias of -0 changes no bit.
INLINE void finish_whole(const int_out *o, const strip *s, int first, const int rows,
                         const dgm_act act, const bool residual, const bool bytes)
{
    const int32_t *sums = s->sums + 16 * first;
    const size_t row = (size_t)(s->row + first), at = (size_t)(s->j - o->n_begin);
    const size_t ldc = (size_t)o->ldc, ldr = (size_t)o->ldr;
    const float *a_scale = AMX_REAL ? NULL : o->a_scale + row, *more = residual ? o->residual + row * ldr + at : NULL;
    float *c = bytes ? NULL : o->c + row * ldc + at;
    const __m512i start = AMX_REAL ? _mm512_setzero_si512() : _mm512_loadu_si512(s->start);
    const vf scale = AMX_REAL ? vf_set(1.0f) : vf_load(o->w_scale + s->j);
    const vf bias = o->bias ? vf_load(o->bias + s->j) : vf_set(-0.0f);
    for (int i = 0; i < rows; i++, sums += 16) {
        const __m512i sum = _mm512_load_si512(sums);
        vf y = AMX_REAL ? vf_add(_mm512_castsi512_ps(sum), bias)
                        : vf_fma(_mm512_cvtepi32_ps(_mm512_add_epi32(sum, start)),
                                 vf_mul(vf_set(a_scale[i]), scale), bias);
        y = math_act(y, act);
        if (residual) y = vf_add(y, vf_load(more + (size_t)i * ldr));
        if (bytes)
            int_store_q(o, y, row + (size_t)i, at, 16);
        else
            vf_store(c + (size_t)i * ldc, y);
    }
}

// The same for columns at the end of the product.
static void finish_part(const int_out *o, const strip *s, int first, int rows)
{
    int32_t sums[16];
    for (int i = first; i < first + rows && s->columns > 0; i++) {
        const __m512i sum = _mm512_loadu_si512(s->sums + 16 * i);
        _mm512_storeu_si512(sums, AMX_REAL ? sum : _mm512_add_epi32(sum, _mm512_loadu_si512(s->start)));
        int_finish_16(o, sums, s->row + i, s->j, s->columns);
    }
}

INLINE void finish_units(tile_product *p, int units, const dgm_act act, const bool residual,
                         const bool bytes)
{
    for (; units > 0 && p->unit < UNITS; units--, p->unit++) {
        const strip *s = &p->strips[p->unit / (16 / UNIT)];
        const int first = p->unit % (16 / UNIT) * UNIT, rows = s->rows - first;
        if (s->columns < 16)
            finish_part(&p->out, s, first, rows < UNIT ? rows : UNIT);
        else if (rows >= UNIT)
            finish_whole(&p->out, s, first, UNIT, act, residual, bytes);
        else
            finish_whole(&p->out, s, first, rows, act, residual, bytes);
    }
}

#define FINISH(name, act, residual, bytes)                                                         \
    static void name(tile_product *p, int units)                                                   \
    {                                                                                              \
        finish_units(p, units, act, residual, bytes);                                              \
    }
FINISH(finish_plain, DGM_ACT_NONE, false, false)
FINISH(finish_residual, DGM_ACT_NONE, true, false)
FINISH(finish_relu, DGM_ACT_RELU, false, false)
FINISH(finish_swish, DGM_ACT_SWISH, false, false)
FINISH(finish_relu_bytes, DGM_ACT_RELU, false, true)
FINISH(finish_swish_bytes, DGM_ACT_SWISH, false, true)
FINISH(finish_any, p->out.act, p->out.residual != NULL, p->out.q != NULL)

static void choose_finish(tile_product *p)
{
    const int_out *o = &p->out;
    const bool plain = !o->residual && !o->q;
    p->finish = finish_any;
    if (o->act == DGM_ACT_NONE && !o->q) p->finish = o->residual ? finish_residual : finish_plain;
    if (o->act == DGM_ACT_RELU && !o->residual) p->finish = plain ? finish_relu : finish_relu_bytes;
    if (o->act == DGM_ACT_SWISH && !o->residual) p->finish = plain ? finish_swish : finish_swish_bytes;
}

// ---- products ---------------------------------------------------------------------------------

// Units to be finished in each step but the first.
static int units_a_step(const tile_product *p)
{
    return p->steps > 1 ? (UNITS + p->steps - 2) / (p->steps - 1) : 0;
}

// Sums of the block before go to memory and a product begins anew in their place: one tile after the
// other, so that the matrix unit always has work.
#define BEGIN_TILE(p, sum, a, w)                                                                   \
    do {                                                                                           \
        _tile_stored(sum, (p)->sums + (sum)*TILE, 64);                                             \
        _tile_zero(sum);                                                                           \
        AMX_DOT(sum, a, w);                                                                        \
    } while (0)
#define ADD_TILE(p, sum, a, w) AMX_DOT(sum, a, w)

// A tile of W.
#define LOAD_W(tile, from, stream)                                                                 \
    do {                                                                                           \
        if (stream)                                                                                \
            _tile_stream_loadd(tile, from, STEP);                                                  \
        else                                                                                       \
            _tile_loadd(tile, from, STEP);                                                         \
    } while (0)

// Up to 16 rows x 64 columns.
#define WIDE_STEP(NEXT)                                                                            \
    do {                                                                                           \
        _tile_loadd(4, a, lda);                                                                    \
        LOAD_W(6, w, stream);                                                                      \
        NEXT(p, 0, 4, 6);                                                                          \
        LOAD_W(7, w + 64, stream);                                                                 \
        NEXT(p, 1, 4, 7);                                                                          \
        LOAD_W(6, w + 128, stream);                                                                \
        NEXT(p, 2, 4, 6);                                                                          \
        LOAD_W(7, w + 192, stream);                                                                \
        NEXT(p, 3, 4, 7);                                                                          \
    } while (0)

INLINE void multiply_wide(tile_product *p, const char *a, const char *w, const bool stream)
{
    const size_t lda = p->lda;
    const int units = units_a_step(p);
    WIDE_STEP(BEGIN_TILE);
    for (int x = 1; x < p->steps; x++) {
        a += 64;
        w += DEEP;
        WIDE_STEP(ADD_TILE);
        p->finish(p, units);
    }
}

// 2 x 16 rows x 32 columns, of few steps.
#define SHALLOW_STEP(NEXT)                                                                         \
    do {                                                                                           \
        _tile_loadd(6, w, STEP);                                                                   \
        _tile_loadd(4, a, lda);                                                                    \
        NEXT(p, 0, 4, 6);                                                                          \
        _tile_loadd(5, b, lda);                                                                    \
        NEXT(p, 2, 5, 6);                                                                          \
        _tile_loadd(7, w + 64, STEP);                                                              \
        NEXT(p, 1, 4, 7);                                                                          \
        NEXT(p, 3, 5, 7);                                                                          \
    } while (0)

static void multiply_shallow(tile_product *p, const char *a, const char *b, const char *w)
{
    const size_t lda = p->lda;
    const int units = units_a_step(p);
    SHALLOW_STEP(BEGIN_TILE);
    for (int x = 1; x < p->steps; x++) {
        a += 64;
        b += 64;
        w += DEEP;
        SHALLOW_STEP(ADD_TILE);
        p->finish(p, units);
    }
}

// The same of STREAMED steps and more. A step's tiles are there when it begins; `more`: it loads those of the next one.
#define SQUARE_STEP(NEXT, more)                                                                    \
    do {                                                                                           \
        if (more) w += DEEP, a += 64, b += 64;                                                     \
        NEXT(p, 0, 4, 6);                                                                          \
        NEXT(p, 2, 5, 6);                                                                          \
        if (more) _tile_stream_loadd(6, w, STEP);                                                  \
        NEXT(p, 1, 4, 7);                                                                          \
        if (more) _tile_loadd(4, a, lda);                                                          \
        NEXT(p, 3, 5, 7);                                                                          \
        if (more) _tile_loadd(5, b, lda);                                                          \
        if (more) _tile_stream_loadd(7, w + 64, STEP);                                             \
    } while (0)

static void multiply_square(tile_product *p, const char *a, const char *b, const char *w)
{
    const size_t lda = p->lda;
    const int units = units_a_step(p);
    _tile_stream_loadd(6, w, STEP);
    _tile_loadd(4, a, lda);
    _tile_loadd(5, b, lda);
    _tile_stream_loadd(7, w + 64, STEP);
    SQUARE_STEP(BEGIN_TILE, true);
    for (int x = 2; x < p->steps; x++) {
        SQUARE_STEP(ADD_TILE, true);
        p->finish(p, units);
    }
    SQUARE_STEP(ADD_TILE, false);
    p->finish(p, units);
}

static const char *panel(const tile_product *p, int column)
{
    return p->packed + (size_t)(column / PANEL) * p->panel_size;
}

// What the epilogue of a block needs; its sums come with the next one.
static void expect(tile_product *p, const block *b)
{
    for (int t = 0; t < 4; t++) {
        const int down = b->wide ? 0 : t / 2, skip = b->skip[down];
        const int j = b->j + 16 * (b->wide ? t : t % 2);
        p->strips[t] = (strip){.sums = p->sums + TILE * t + 16 * skip,
                               .start = panel(p, j) + p->steps * DEEP + j % PANEL * 4,
                               .row = b->row[down] + skip,
                               .j = j,
                               .rows = p->height - skip,
                               .columns = p->out.n_end - j};
    }
    p->unit = 0;
}

// Multiplies a block, while the one before is finished.
static void multiply(tile_product *p, const block *b)
{
    const char *upper = p->a + (size_t)b->row[0] * p->lda;
    const char *lower = p->a + (size_t)b->row[1] * p->lda;
    const char *w = panel(p, b->j) + b->j % PANEL * 4;
    if (p->steps < STREAMED && b->wide)
        multiply_wide(p, upper, w, false);
    else if (p->steps < STREAMED)
        multiply_shallow(p, upper, lower, w);
    else if (b->wide)
        multiply_wide(p, upper, w, true);
    else
        multiply_square(p, upper, lower, w);
    p->finish(p, UNITS);
    expect(p, b);
}

// Rows from `first` to before `last`, a multiple of 32 or the last one of all, x the 64 columns from j on.
static void multiply_panel(tile_product *p, int j, int first, int last)
{
    const int m = p->m, end = p->out.n_end;
    for (int r = first; r < last; r += 32) {
        const int left = m - r;
        if (left <= 16) { // the last 16 rows there are
            const int row = m - p->height;
            multiply(p, &(block){.wide = true, .j = j, .row = {row, row}, .skip = {r - row, 0}});
            return;
        }
        const int lower = left < 32 ? m - 16 : r + 16;
        block b = {.j = j, .row = {r, lower}, .skip = {0, r + 16 - lower}};
        multiply(p, &b);
        b.j += 32;
        if (b.j < end) multiply(p, &b);
    }
}

// Rows that are taken through all of W at a time.
static int rows_at_a_time(const tile_product *p)
{
    const int fit = KEPT_A / 64 / p->steps / 32 * 32;
    const size_t w = (size_t)(p->out.n_end - p->out.n_begin) / PANEL * p->panel_size;
    return p->steps < STREAMED || fit == 0 || p->cold || w > KEPT_W ? p->m : fit;
}

// a, packed, lda, panel_size, m, out, steps and cold of p are there.
static void amx_run(tile_product *p)
{
    p->height = p->m < 16 ? p->m : 16;
    p->unit = UNITS;
    choose_finish(p);
    configure(p->height);
    const int rows = rows_at_a_time(p);
    for (int r = 0; r < p->m; r += rows)
        for (int j = p->out.n_begin; j < p->out.n_end; j += PANEL)
            multiply_panel(p, j, r, p->m - r < rows ? p->m : r + rows);
    _tile_stored(0, p->sums, 64);
    _tile_stored(1, p->sums + TILE, 64);
    _tile_stored(2, p->sums + 2 * TILE, 64);
    _tile_stored(3, p->sums + 3 * TILE, 64);
    p->finish(p, UNITS);
    _tile_release();
}

#endif

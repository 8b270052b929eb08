// SPDX-License-Identifier: MIT
// Lattices as text, in two formats that docs/manual/LATTICES.md defines:
//
//     lattice NAME            ours            0 1 Guten 0.4        OpenFst, words as labels,
//     0 1 -0.4 Guten                          1 2 Morgen 0.1       costs instead of scores
//     1 2 -0.1 Morgen                         2 3 ~. 0
//     2 3 0 ~.                                3
//     3 0
//
// A block is one lattice. The state that its first line names is the start. Numbers of nodes are
// free names: sealing gives new ones, in an order that is the old one where that was topological.
#include <math.h>
#include <string.h>

#include "base/fields.h"
#include "base/lower_bound.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/textfile.h"
#include "lattice/lattice.h"

enum { FIELDS = 6 };

typedef struct parsing {
    dgm_lattice *l;
    const dgm_lattice_syntax *syntax;
    bool native, pairs; // pairs: OpenFst with two labels
    dgm_words nodes;    // numbers as they are written -> node, by first appearance
    int64_t *numbers;   // [nodes] the same the other way round
    size_t number_cap;
    dgm_writer text; // of one arc, unescaped
    uint32_t line;
} parsing;

// ---- reading -----------------------------------------------------------------------------------

static dgm_status node_of(parsing *p, dgm_text field, int32_t *node, dgm_error *err)
{
    uint64_t number = 0;
    char text[16];
    uint32_t found = 0;
    DGM_FAIL_IF(!dgm_number_u64(field, DGM_LATTICE_LABEL_MAX, &number), err, DGM_ERR_FORMAT,
                "'%.*s' is not the number of a node", DGM_SHOWN(field));
    const int64_t value = (int64_t)number;
    size_t digits = sizeof text; // without leading zeros: 07 is 7
    do text[--digits] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    const size_t before = p->nodes.count;
    DGM_TRY(dgm_words_add(&p->nodes, (dgm_text){text + digits, sizeof text - digits}, &found, err));
    if (p->nodes.count > before) {
        DGM_TRY(dgm_grow(&p->numbers, &p->number_cap, p->nodes.count, sizeof *p->numbers, err));
        p->numbers[found] = value;
        DGM_TRY(dgm_lattice_add_node(p->l, p->line, node, err));
    }
    *node = (int32_t)found;
    return DGM_OK;
}

// The text of an arc without its marks and escapes into p->text. "~" alone is a word.
static dgm_status unescape(parsing *p, dgm_text t, uint32_t *glue, dgm_error *err)
{
    *glue = 0;
    p->text.size = 0;
    DGM_FAIL_IF(!dgm_utf8_valid(t), err, DGM_ERR_FORMAT, "not valid UTF-8");
    if (t.size > 1 && t.data[0] == '~') *glue |= DGM_GLUE_LEFT, t.data++, t.size--;
    size_t slashes = 0; // a mark at the end counts unless it is escaped
    while (t.size > slashes + 1 && t.data[t.size - 2 - slashes] == '\\') slashes++;
    if (t.size > 1 && t.data[t.size - 1] == '~' && slashes % 2 == 0)
        *glue |= DGM_GLUE_RIGHT, t.size--;
    for (size_t i = 0; i < t.size; i++) {
        char c = t.data[i];
        if (c == '\\' && i + 1 < t.size) {
            c = t.data[++i];
            if (c == 's') c = ' ';
        }
        if (dgm_is_blank(c) || c == '\r') c = ' ';
        const bool blank = c == ' ' && (p->text.size == 0 || p->text.data[p->text.size - 1] == ' ');
        if (!blank) dgm_write_u8(&p->text, (uint8_t)c);
    }
    while (p->text.size && p->text.data[p->text.size - 1] == ' ') p->text.size--;
    if (p->text.failed) return dgm_no_memory(err);
    DGM_FAIL_IF(t.size && p->text.size == 0, err, DGM_ERR_FORMAT, "a word has only blanks");
    return DGM_OK;
}

static dgm_status add_arc(parsing *p, dgm_text from, dgm_text to, dgm_text text, float score,
                          dgm_error *err)
{
    dgm_lattice_arc a = {.word = DGM_LATTICE_NO_WORD, .score = score, .line = p->line};
    uint32_t word = 0;
    DGM_TRY(node_of(p, from, &a.from, err));
    DGM_TRY(node_of(p, to, &a.to, err));
    DGM_TRY(unescape(p, text, &a.glue, err));
    if (p->text.size) {
        DGM_TRY(dgm_words_add(&p->l->words, (dgm_text){(const char *)p->text.data, p->text.size},
                              &word, err));
        a.word = (int32_t)word;
    }
    return dgm_lattice_add_arc(p->l, &a, err);
}

static dgm_status add_end(parsing *p, dgm_text node, dgm_text score, float sign, dgm_error *err)
{
    int32_t n = 0;
    float value = 0;
    DGM_TRY(node_of(p, node, &n, err));
    if (dgm_text_is(score, "Infinity")) return DGM_OK; // OpenFst's way to say: no end
    DGM_FAIL_IF(score.size && !dgm_number_f32(score, &value), err, DGM_ERR_FORMAT,
                "'%.*s' is not a score", DGM_SHOWN(score));
    dgm_lattice_add_end(p->l, n, sign * value);
    return DGM_OK;
}

// FROM TO SCORE TEXT, or NODE SCORE.
static dgm_status native_line(parsing *p, dgm_text line, dgm_error *err)
{
    const dgm_text from = dgm_field_next(&line), to = dgm_field_next(&line);
    const dgm_text third = dgm_field_next(&line);
    float score = 0;
    if (third.size == 0) return add_end(p, from, to, 1.0f, err);
    DGM_FAIL_IF(!dgm_number_f32(third, &score), err, DGM_ERR_FORMAT,
                "'%.*s' is not a score; an arc is FROM TO SCORE TEXT", DGM_SHOWN(third));
    return add_arc(p, from, to, dgm_field_trim(line), score, err);
}

// Where a label's number stands in the table: binary search.
static bool find_label(const dgm_lattice_syntax *x, int64_t number, dgm_text *word)
{
    size_t at;
    DGM_LOWER_BOUND(size_t, at, 0, x->symbols->count, x->ids[x->order[at]] < number);
    if (at == x->symbols->count || x->ids[x->order[at]] != number) return false;
    *word = dgm_words_spell(x->symbols, x->order[at]);
    return true;
}

// The word of a label: itself, or the one of its number. No word: epsilon.
static dgm_status label_of(const parsing *p, dgm_text label, dgm_text *word, dgm_error *err)
{
    *word = label;
    if (p->syntax->symbols) {
        uint64_t number = 0;
        DGM_FAIL_IF(!dgm_number_u64(label, DGM_LATTICE_LABEL_MAX, &number), err, DGM_ERR_FORMAT,
                    "label '%.*s' is not a number, but there is a table of symbols",
                    DGM_SHOWN(label));
        *word = (dgm_text){"", 0};
        DGM_FAIL_IF(number != 0 && !find_label(p->syntax, (int64_t)number, word), err,
                    DGM_ERR_FORMAT, "label %lld is not in the table of symbols", (long long)number);
    }
    if (dgm_text_is(*word, "<eps>") || dgm_text_is(*word, "<epsilon>")) *word = (dgm_text){"", 0};
    return DGM_OK;
}

// FROM TO LABEL [COST], FROM TO LABEL LABEL [COST], or NODE [COST].
static dgm_status openfst_line(parsing *p, dgm_text line, dgm_error *err)
{
    dgm_text field[FIELDS] = {{0}}, word;
    int count = 0;
    for (; count < FIELDS; count++)
        if ((field[count] = dgm_field_next(&line)).size == 0) break;
    DGM_FAIL_IF(count == FIELDS, err, DGM_ERR_FORMAT, "more than five fields");
    if (count <= 2) return add_end(p, field[0], field[1], -1.0f, err);
    const int labels = p->pairs ? 2 : 1;
    const dgm_text cost = field[2 + labels];
    float value = 0;
    DGM_FAIL_IF(count < 2 + labels, err, DGM_ERR_FORMAT, "an arc without an output label");
    if (dgm_text_is(cost, "Infinity")) { // there is no such path
        int32_t node = 0;
        DGM_TRY(node_of(p, field[0], &node, err));
        return node_of(p, field[1], &node, err);
    }
    DGM_FAIL_IF(cost.size && !dgm_number_f32(cost, &value), err, DGM_ERR_FORMAT,
                "'%.*s' is not a cost", DGM_SHOWN(cost));
    DGM_TRY(label_of(p, field[1 + labels], &word, err));
    return add_arc(p, field[0], field[1], word, -value, err);
}

// The start first, then by rising number.
static int by_number(const void *context, uint32_t a, uint32_t b)
{
    const int64_t *numbers = context;
    if ((a == 0) != (b == 0)) return a == 0 ? -1 : 1;
    return numbers[a] < numbers[b] ? -1 : numbers[a] > numbers[b];
}

// Nodes in the order of their numbers in the text, so that sealing keeps it where it can.
static dgm_status sort_nodes(parsing *p, dgm_error *err)
{
    dgm_lattice *l = p->l;
    const size_t n = (size_t)l->node_count;
    uint32_t *order = dgm_malloc(n * sizeof *order);
    int32_t *place = dgm_malloc(n * sizeof *place);
    float *ends = dgm_malloc(n * sizeof *ends);
    uint32_t *lines = dgm_malloc(n * sizeof *lines);
    const bool fine = order && place && ends && lines;
    if (fine) {
        dgm_sort_indices(order, n, by_number, p->numbers);
        for (size_t i = 0; i < n; i++) {
            place[order[i]] = (int32_t)i;
            ends[i] = l->ends[order[i]];
            lines[i] = l->lines[order[i]];
        }
        memcpy(l->ends, ends, n * sizeof *ends);
        memcpy(l->lines, lines, n * sizeof *lines);
        for (size_t i = 0; i < l->arc_count; i++) {
            l->arcs[i].from = place[l->arcs[i].from];
            l->arcs[i].to = place[l->arcs[i].to];
        }
    }
    dgm_free(order);
    dgm_free(place);
    dgm_free(ends);
    dgm_free(lines);
    return fine ? DGM_OK : dgm_no_memory(err);
}

static dgm_text cut_line(dgm_text *block)
{
    return dgm_field_trim(dgm_line_cut(block));
}

static int field_count(dgm_text line)
{
    int n = 0;
    while (dgm_field_next(&line).size) n++;
    return n;
}

// Looks at the whole block: whose format is it, and does it have two labels?
static void recognise(parsing *p, dgm_text block)
{
    bool begun = false;
    p->pairs = p->syntax->transducer;
    while (block.size) {
        dgm_text line = cut_line(&block);
        if (line.size == 0 || line.data[0] == '#') continue;
        if (!begun) {
            dgm_text rest = line;
            p->native = dgm_text_is(dgm_field_next(&rest), "lattice");
        }
        begun = true;
        if (p->native) return;
        p->pairs |= field_count(line) == 5;
    }
}

static dgm_status parse_line(parsing *p, dgm_text line, dgm_error *err)
{
    if (line.size == 0 || line.data[0] == '#') return DGM_OK;
    if (!p->native) return openfst_line(p, line, err);
    dgm_text rest = line;
    if (!dgm_text_is(dgm_field_next(&rest), "lattice")) return native_line(p, line, err);
    DGM_FAIL_IF(p->l->name || p->l->node_count, err, DGM_ERR_FORMAT,
                "a second lattice begins in the same block");
    rest = dgm_field_trim(rest);
    p->l->name = dgm_strndup(rest.data, rest.size);
    return p->l->name ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_lattice_parse(dgm_lattice **out, dgm_text block, uint32_t first_line,
                             const dgm_lattice_syntax *syntax, dgm_error *err)
{
    static const dgm_lattice_syntax plain;
    parsing p = {.syntax = syntax ? syntax : &plain, .line = first_line};
    *out = NULL;
    DGM_TRY(dgm_lattice_open(&p.l, err));
    recognise(&p, block);
    dgm_status st = DGM_OK;
    for (; st == DGM_OK && block.size; p.line++) {
        st = parse_line(&p, cut_line(&block), err);
        if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "line %u", p.line);
    }
    if (st == DGM_OK && p.l->node_count == 0) {
        st = dgm_fail(err, DGM_ERR_FORMAT, "the lattice has no nodes");
        dgm_error_prefix(err, "line %u", (unsigned)first_line);
    } else if (st == DGM_OK) {
        st = sort_nodes(&p, err);
        if (st == DGM_OK) st = dgm_lattice_seal(p.l, p.syntax->trim, err);
        if (st == DGM_ERR_FORMAT && err && strncmp(err->text, "line ", 5) != 0)
            dgm_error_prefix(err, "line %u", (unsigned)first_line);
    }
    dgm_words_free(&p.nodes);
    dgm_free(p.numbers);
    dgm_writer_free(&p.text);
    if (st != DGM_OK)
        dgm_lattice_close(&p.l);
    else
        *out = p.l;
    return st;
}

// ---- writing -----------------------------------------------------------------------------------

// A score that reads back as the same number.
static void write_score(dgm_writer *out, float v)
{
    dgm_write_format(out, "%.9g", (double)(v == 0 ? 0.0f : v)); // no "-0"
}

static void write_text(dgm_writer *out, dgm_text t, uint32_t glue, bool openfst)
{
    const bool eps = openfst && (dgm_text_is(t, "<eps>") || dgm_text_is(t, "<epsilon>"));
    if (glue & DGM_GLUE_LEFT) dgm_write_u8(out, '~');
    if (eps) dgm_write_u8(out, '\\');
    for (size_t i = 0; i < t.size; i++) {
        const char c = t.data[i];
        const bool mark = c == '~' && (i == 0 || i + 1 == t.size);
        if (c == '\\' || mark) dgm_write_u8(out, '\\');
        if (openfst && c == ' ')
            dgm_write_text(out, "\\s");
        else
            dgm_write_u8(out, (uint8_t)c);
    }
    if (glue & DGM_GLUE_RIGHT) dgm_write_u8(out, '~');
}

static void write_arc(dgm_writer *out, const dgm_lattice *l, const dgm_lattice_arc *a, bool openfst)
{
    const dgm_text t =
        a->word < 0 ? (dgm_text){"", 0} : dgm_words_spell(&l->words, (uint32_t)a->word);
    dgm_write_format(out, "%d %d ", (int)a->from, (int)a->to);
    if (!openfst) {
        write_score(out, a->score);
        if (t.size) dgm_write_u8(out, ' ');
        write_text(out, t, a->glue, false);
    } else {
        if (t.size)
            write_text(out, t, a->glue, true);
        else
            dgm_write_text(out, "<eps>");
        dgm_write_u8(out, ' ');
        write_score(out, -a->score);
    }
    dgm_write_u8(out, '\n');
}

dgm_status dgm_lattice_write(const dgm_lattice *l, dgm_lattice_format format, dgm_writer *out,
                             dgm_error *err)
{
    const bool openfst = format == DGM_LATTICE_OPENFST;
    if (!openfst) {
        dgm_write_text(out, "lattice");
        if (l->name && l->name[0]) dgm_write_format(out, " %s", l->name);
        dgm_write_u8(out, '\n');
    }
    for (size_t i = 0; i < l->arc_count; i++) write_arc(out, l, &l->arcs[i], openfst);
    for (int32_t n = 0; n < l->node_count; n++) {
        if (!(l->ends[n] > -INFINITY)) continue;
        dgm_write_format(out, "%d ", (int)n);
        write_score(out, openfst ? -l->ends[n] : l->ends[n]);
        dgm_write_u8(out, '\n');
    }
    dgm_write_u8(out, '\n');
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

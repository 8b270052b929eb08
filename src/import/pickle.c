// SPDX-License-Identifier: MIT
// The stack machine of pickles; see pickle.h. pickle_values.c looks at what it leaves.
//
// Limits, all far above what models have: 1 GiB of values, 10,000 open marks, memory slots no more than bytes were
// read before them. Instructions of protocols 0 and 1 that torch never writes are refused by their number.
#include "import/pickle.h"

#include <string.h>

#include "base/mem.h"

enum { MARKS_MAX = 10000, NAME_MAX = 200, BLOCK = 64 << 10 };
#define BYTES_MAX ((size_t)1 << 30)

// ---- memory ------------------------------------------------------------------------------------

struct dgm_pickle_block {
    struct dgm_pickle_block *next;
    size_t used, size;
    max_align_t data[];
};

void *dgm_pickle_alloc(dgm_pickle *p, size_t bytes)
{
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct dgm_pickle_block *b = p->blocks;
    if (!b || b->size - b->used < bytes) {
        const size_t size = bytes > BLOCK ? bytes : BLOCK;
        if (bytes > BYTES_MAX || p->bytes > BYTES_MAX - size) return NULL;
        b = dgm_malloc(sizeof *b + size);
        if (!b) return NULL;
        *b = (struct dgm_pickle_block){.next = p->blocks, .size = size};
        p->blocks = b;
        p->bytes += size;
    }
    void *out = (char *)b->data + b->used;
    b->used += bytes;
    return out;
}

void dgm_pickle_free(dgm_pickle *p)
{
    while (p->blocks) {
        struct dgm_pickle_block *next = p->blocks->next;
        dgm_free(p->blocks);
        p->blocks = next;
    }
    dgm_free(p->persistent);
    *p = (dgm_pickle){0};
}

// ---- the machine -------------------------------------------------------------------------------

typedef struct machine {
    dgm_pickle *p;
    dgm_reader in;
    dgm_py **stack, **memo;
    size_t *marks;
    size_t count, cap, memo_count, memo_cap, mark_count, mark_cap;
    dgm_error *err;
} machine;

static dgm_status spoilt(machine *m, const char *what)
{
    return dgm_fail(m->err, DGM_ERR_FORMAT, "%s", what);
}

static dgm_py *make(machine *m, dgm_py_kind kind)
{
    dgm_py *v = dgm_pickle_alloc(m->p, sizeof *v);
    if (v) {
        memset(v, 0, sizeof *v);
        v->kind = kind;
    }
    return v;
}

static dgm_status too_much(machine *m)
{
    return dgm_fail(m->err, DGM_ERR_MEMORY, "out of memory, or more than 1 GiB of values");
}

static dgm_status push(machine *m, dgm_py *v)
{
    if (!v) return too_much(m);
    DGM_TRY(dgm_grow(&m->stack, &m->cap, m->count + 1, sizeof *m->stack, m->err));
    m->stack[m->count++] = v;
    return DGM_OK;
}

// Values above the last mark, or all of them.
static size_t floor_of(const machine *m)
{
    return m->mark_count ? m->marks[m->mark_count - 1] : 0;
}

static dgm_status pop(machine *m, dgm_py **v)
{
    if (m->count <= floor_of(m)) return spoilt(m, "an instruction finds no value");
    *v = m->stack[--m->count];
    return DGM_OK;
}

static dgm_status top(machine *m, dgm_py **v)
{
    if (m->count <= floor_of(m)) return spoilt(m, "an instruction finds no value");
    *v = m->stack[m->count - 1];
    return DGM_OK;
}

// Removes the last mark; the values above it are stack[*first .. count).
static dgm_status pop_mark(machine *m, size_t *first)
{
    if (m->mark_count == 0) return spoilt(m, "an instruction finds no mark");
    *first = m->marks[--m->mark_count];
    return DGM_OK;
}

static dgm_status append(machine *m, dgm_py *list, dgm_py *const *values, size_t n)
{
    const size_t count = list->as.list.count;
    if (count + n > list->as.list.cap) {
        const size_t cap = count + n > 2 * list->as.list.cap ? count + n : 2 * list->as.list.cap;
        dgm_py **items = dgm_pickle_alloc(m->p, cap * sizeof *items);
        if (!items) return too_much(m);
        if (count) memcpy(items, list->as.list.items, count * sizeof *items);
        list->as.list.items = items;
        list->as.list.cap = cap;
    }
    if (n) memcpy(list->as.list.items + count, values, n * sizeof *values);
    list->as.list.count = count + n;
    return DGM_OK;
}

// The values from stack[first] on become one value.
static dgm_status gather(machine *m, dgm_py_kind kind, size_t first)
{
    dgm_py *v = make(m, kind);
    if (!v) return too_much(m);
    if (kind == DGM_PY_DICT && (m->count - first) % 2) return spoilt(m, "a key without a value");
    if (m->count > first) DGM_TRY(append(m, v, m->stack + first, m->count - first)); // the stack may be NULL
    m->count = first;
    return push(m, v);
}

static dgm_status gather_last(machine *m, dgm_py_kind kind, size_t n)
{
    if (m->count - floor_of(m) < n) return spoilt(m, "an instruction finds no value");
    return gather(m, kind, m->count - n);
}

// Where items of a list, a set, a dictionary or an object go.
static dgm_status contents(machine *m, dgm_py *v, dgm_py_kind kind, dgm_py **out)
{
    *out = v;
    if (v->kind == kind || (v->kind == DGM_PY_SET && kind == DGM_PY_LIST)) return DGM_OK;
    if (v->kind != DGM_PY_OBJECT) return spoilt(m, "items for something that holds none");
    if (!v->as.object.items) v->as.object.items = make(m, kind);
    if (!v->as.object.items) return too_much(m);
    if (v->as.object.items->kind != kind) return spoilt(m, "items of two kinds in one object");
    *out = v->as.object.items;
    return DGM_OK;
}

static dgm_status extend(machine *m, dgm_py_kind kind, size_t first)
{
    dgm_py *holder, *into = NULL;
    if (first <= floor_of(m)) return spoilt(m, "items for nothing");
    holder = m->stack[first - 1];
    if (kind == DGM_PY_DICT && (m->count - first) % 2) return spoilt(m, "a key without a value");
    DGM_TRY(contents(m, holder, kind, &into));
    DGM_TRY(append(m, into, m->stack + first, m->count - first));
    m->count = first;
    return DGM_OK;
}

// ---- numbers, texts, names ---------------------------------------------------------------------

static dgm_status push_int(machine *m, int64_t value, dgm_py_kind kind)
{
    dgm_py *v = make(m, kind);
    if (v) v->as.integer = value;
    return push(m, v);
}

// Little endian, in two's complement.
static dgm_status push_long(machine *m, uint64_t bytes)
{
    const uint8_t *data = dgm_read_bytes(&m->in, bytes);
    if (!data) return spoilt(m, "the file ends inside a number");
    if (bytes > 8) {
        dgm_py *v = make(m, DGM_PY_BIG);
        if (v) v->as.text = (dgm_text){(const char *)data, (size_t)bytes};
        return push(m, v);
    }
    uint64_t value = bytes && data[bytes - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = (size_t)bytes; i-- > 0;) value = value << 8 | data[i];
    return push_int(m, (int64_t)value, DGM_PY_INT);
}

static dgm_status push_real(machine *m)
{
    const uint8_t *data = dgm_read_bytes(&m->in, 8);
    if (!data) return spoilt(m, "the file ends inside a number");
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | data[i];
    dgm_py *v = make(m, DGM_PY_REAL);
    if (v) memcpy(&v->as.real, &bits, sizeof bits);
    return push(m, v);
}

static dgm_status push_text(machine *m, dgm_py_kind kind, uint64_t bytes)
{
    const char *data = dgm_read_bytes(&m->in, bytes);
    if (!data) return spoilt(m, "the file ends inside a text");
    dgm_py *v = make(m, kind);
    if (v) v->as.text = (dgm_text){data, (size_t)bytes};
    return push(m, v);
}

static dgm_status push_name(machine *m, dgm_text module, dgm_text name)
{
    const dgm_py_name *row = dgm_py_name_find(module, name);
    if (!row)
        return dgm_fail(m->err, DGM_ERR_UNSUPPORTED,
                        "it names '%.*s.%.*s', which no translation model needs: refused (nothing in a "
                        "pickle is ever run)",
                        (int)(module.size < NAME_MAX ? module.size : NAME_MAX), module.data,
                        (int)(name.size < NAME_MAX ? name.size : NAME_MAX), name.data);
    dgm_py *v = make(m, DGM_PY_NAME);
    if (v) v->as.name = row;
    return push(m, v);
}

// Up to the end of the line.
static dgm_status read_line(machine *m, dgm_text *out)
{
    const uint8_t *begin = m->in.data + m->in.pos;
    const size_t left = dgm_reader_left(&m->in);
    const uint8_t *end = left ? memchr(begin, '\n', left < NAME_MAX ? left : NAME_MAX) : NULL;
    if (!end) return spoilt(m, "a name without an end");
    *out = (dgm_text){(const char *)begin, (size_t)(end - begin)};
    m->in.pos += out->size + 1;
    return DGM_OK;
}

static dgm_status name_of_lines(machine *m)
{
    dgm_text module = {0}, name = {0};
    DGM_TRY(read_line(m, &module));
    DGM_TRY(read_line(m, &name));
    return push_name(m, module, name);
}

static dgm_status name_of_stack(machine *m)
{
    dgm_py *name = NULL, *module = NULL;
    DGM_TRY(pop(m, &name));
    DGM_TRY(pop(m, &module));
    if (name->kind != DGM_PY_TEXT || module->kind != DGM_PY_TEXT)
        return spoilt(m, "a name that is no text");
    return push_name(m, module->as.text, name->as.text);
}

// ---- objects -----------------------------------------------------------------------------------

// What Python would call: a record of the name and the arguments. more: keywords, left out.
static dgm_status push_object(machine *m, bool more)
{
    dgm_py *args = NULL, *callee = NULL, *keywords = NULL;
    if (more) DGM_TRY(pop(m, &keywords));
    DGM_TRY(pop(m, &args));
    DGM_TRY(pop(m, &callee));
    if (callee->kind != DGM_PY_NAME) return spoilt(m, "a call of something that is no name");
    dgm_py *v = make(m, DGM_PY_OBJECT);
    if (!v) return too_much(m);
    v->as.object.name = callee->as.name;
    v->as.object.args = args;
    return push(m, v);
}

static dgm_status set_state(machine *m)
{
    dgm_py *state = NULL, *object = NULL;
    DGM_TRY(pop(m, &state));
    DGM_TRY(top(m, &object));
    if (object->kind == DGM_PY_OBJECT) object->as.object.state = state;
    return DGM_OK;
}

static dgm_status push_persistent(machine *m)
{
    dgm_pickle *p = m->p;
    dgm_py *id = NULL, *v = make(m, DGM_PY_PERSISTENT);
    DGM_TRY(pop(m, &id));
    if (!v) return too_much(m);
    v->as.id = id;
    DGM_TRY(dgm_grow(&p->persistent, &p->persistent_cap, p->persistent_count + 1,
                     sizeof *p->persistent, m->err));
    p->persistent[p->persistent_count++] = v;
    return push(m, v);
}

static dgm_status remember(machine *m, uint64_t slot)
{
    dgm_py *v = NULL;
    DGM_TRY(top(m, &v));
    // Slots are numbered one after the other, each by an instruction: a larger number would only take memory.
    if (slot > m->in.pos) return spoilt(m, "a memory slot far beyond those in use");
    const size_t old = m->memo_count;
    DGM_TRY(dgm_grow(&m->memo, &m->memo_cap, (size_t)slot + 1, sizeof *m->memo, m->err));
    if (slot >= old) {
        memset(m->memo + old, 0, ((size_t)slot + 1 - old) * sizeof *m->memo);
        m->memo_count = (size_t)slot + 1;
    }
    m->memo[slot] = v;
    return DGM_OK;
}

static dgm_status recall(machine *m, uint64_t slot)
{
    if (slot >= m->memo_count || !m->memo[slot]) return spoilt(m, "an empty memory slot");
    return push(m, m->memo[slot]);
}

// ---- instructions ------------------------------------------------------------------------------

static dgm_status push_mark(machine *m)
{
    if (m->mark_count >= MARKS_MAX) return spoilt(m, "nested too deeply");
    DGM_TRY(dgm_grow(&m->marks, &m->mark_cap, m->mark_count + 1, sizeof *m->marks, m->err));
    m->marks[m->mark_count++] = m->count;
    return DGM_OK;
}

static dgm_status run_numbers(machine *m, uint8_t op, bool *known)
{
    dgm_reader *in = &m->in;
    *known = true;
    switch (op) {
    case 'N':
        return push(m, make(m, DGM_PY_NONE));
    case 0x88:
    case 0x89:
        return push_int(m, op == 0x88, DGM_PY_BOOL);
    case 'J':
        return push_int(m, (int32_t)dgm_read_u32(in), DGM_PY_INT);
    case 'K':
        return push_int(m, dgm_read_u8(in), DGM_PY_INT);
    case 'M':
        return push_int(m, dgm_read_u16(in), DGM_PY_INT);
    case 0x8a:
        return push_long(m, dgm_read_u8(in));
    case 0x8b:
        return push_long(m, dgm_read_u32(in));
    case 'G':
        return push_real(m);
    case 'X':
    case 'T':
        return push_text(m, DGM_PY_TEXT, dgm_read_u32(in));
    case 0x8c:
    case 'U':
        return push_text(m, DGM_PY_TEXT, dgm_read_u8(in));
    case 0x8d:
        return push_text(m, DGM_PY_TEXT, dgm_read_u64(in));
    case 'B':
        return push_text(m, DGM_PY_BYTES, dgm_read_u32(in));
    case 'C':
        return push_text(m, DGM_PY_BYTES, dgm_read_u8(in));
    case 0x8e:
    case 0x96:
        return push_text(m, DGM_PY_BYTES, dgm_read_u64(in));
    default:
        *known = false;
        return DGM_OK;
    }
}

static dgm_status run_containers(machine *m, uint8_t op, bool *known)
{
    size_t first = 0;
    *known = true;
    switch (op) {
    case ']':
        return push(m, make(m, DGM_PY_LIST));
    case '}':
        return push(m, make(m, DGM_PY_DICT));
    case ')':
        return push(m, make(m, DGM_PY_TUPLE));
    case 0x8f:
        return push(m, make(m, DGM_PY_SET));
    case 0x85:
    case 0x86:
    case 0x87:
        return gather_last(m, DGM_PY_TUPLE, (size_t)op - 0x84);
    case 't':
    case 'l':
    case 'd':
    case 0x91:
        DGM_TRY(pop_mark(m, &first));
        return gather(m,
                      op == 't'   ? DGM_PY_TUPLE
                      : op == 'l' ? DGM_PY_LIST
                      : op == 'd' ? DGM_PY_DICT
                                  : DGM_PY_SET,
                      first);
    case 'e':
    case 'u':
    case 0x90:
        DGM_TRY(pop_mark(m, &first));
        return extend(m, op == 'u' ? DGM_PY_DICT : DGM_PY_LIST, first);
    case 'a':
    case 's':
        if (m->count < (op == 'a' ? 1u : 2u)) return spoilt(m, "an instruction finds no value");
        return extend(m, op == 's' ? DGM_PY_DICT : DGM_PY_LIST, m->count - (op == 'a' ? 1 : 2));
    default:
        *known = false;
        return DGM_OK;
    }
}

static dgm_status run_others(machine *m, uint8_t op)
{
    dgm_py *v = NULL;
    size_t first = 0;
    switch (op) {
    case 0x95: // a frame: its length says nothing that we need
        (void)dgm_read_u64(&m->in);
        return DGM_OK;
    case '(':
        return push_mark(m);
    case '0':
        return pop(m, &v);
    case '1':
        DGM_TRY(pop_mark(m, &first));
        m->count = first;
        return DGM_OK;
    case '2':
        DGM_TRY(top(m, &v));
        return push(m, v);
    case 'c':
        return name_of_lines(m);
    case 0x93:
        return name_of_stack(m);
    case 'R':
    case 0x81:
        return push_object(m, false);
    case 0x92:
        return push_object(m, true);
    case 'b':
        return set_state(m);
    case 'Q':
        return push_persistent(m);
    case 'q':
        return remember(m, dgm_read_u8(&m->in));
    case 'r':
        return remember(m, dgm_read_u32(&m->in));
    case 0x94:
        return remember(m, m->memo_count);
    case 'h':
        return recall(m, dgm_read_u8(&m->in));
    case 'j':
        return recall(m, dgm_read_u32(&m->in));
    default:
        return dgm_fail(m->err, DGM_ERR_FORMAT, "instruction 0x%02x is not one that torch writes",
                        op);
    }
}

static dgm_status run(machine *m)
{
    if (dgm_read_u8(&m->in) != 0x80 || dgm_read_u8(&m->in) > 5 || m->in.bad)
        return spoilt(m, "not a pickle of protocol 2 to 5");
    for (;;) {
        const uint8_t op = dgm_read_u8(&m->in);
        bool known = false;
        if (m->in.bad) return spoilt(m, "the pickle has no end (truncated?)");
        if (op == '.') return DGM_OK;
        DGM_TRY(run_numbers(m, op, &known));
        if (!known) DGM_TRY(run_containers(m, op, &known));
        if (!known) DGM_TRY(run_others(m, op));
        if (m->in.bad) return spoilt(m, "the file ends inside an instruction");
    }
}

dgm_status dgm_pickle_read(dgm_pickle *p, const void *data, size_t size, size_t *used,
                           const dgm_py **root, dgm_error *err)
{
    machine m = {.p = p, .in = dgm_reader_over(data, size), .err = err};
    dgm_py *v = NULL;
    dgm_status st = run(&m);
    if (st == DGM_OK) st = pop(&m, &v);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "byte %zu", m.in.pos);
    *used = m.in.pos;
    *root = v;
    dgm_free(m.stack);
    dgm_free(m.memo);
    dgm_free(m.marks);
    return st;
}

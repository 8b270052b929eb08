// SPDX-License-Identifier: MIT
// XML of any kind, and parts of it without one root. Which elements end a sentence is asked for (splitting_tags,
// inline_tags) or found out: an element that holds elements and no text of its own is structure, and what lies in
// it are texts by themselves; all others are tags within a sentence. Comments and instructions stay where they are.
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "document/document.h"

enum { NOBODY = -1 };

typedef struct element {
    dgm_text name;
    size_t begin, end; // bytes, with both tags
    int parent;        // NOBODY: it lies in none
    bool has_text, has_elements;
    bool splits, ignored;
    int pair;
    size_t segment; // that its opening tag is in
} element;

typedef enum token_kind { TOKEN_TEXT, TOKEN_OPEN, TOKEN_CLOSE, TOKEN_EMPTY, TOKEN_OTHER } token_kind;

typedef struct token {
    token_kind kind;
    size_t begin, end;
    int element; // of tags
} token;

typedef struct tree {
    dgm_document *d;
    dgm_text t;
    element *elements;
    size_t element_count, element_cap;
    token *tokens;
    size_t token_count, token_cap;
    bool root_text; // beside the outermost elements
    bool making;
    size_t segments; // begun so far
} tree;

// ---- reading --------------------------------------------------------------------------------------

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Behind the bytes `end`, from pos on; 0: they do not come.
static size_t behind(dgm_text t, size_t pos, const char *end)
{
    const size_t n = strlen(end);
    for (; pos + n <= t.size; pos++)
        if (memcmp(t.data + pos, end, n) == 0) return pos + n;
    return 0;
}

// Behind the tag at pos, quotes passed over; 0: it does not end.
static size_t end_of_tag(dgm_text t, size_t pos)
{
    char quote = 0;
    for (; pos < t.size; pos++) {
        const char c = t.data[pos];
        if (quote ? c == quote : c == '"' || c == '\'') quote = quote ? 0 : c;
        if (!quote && c == '>') return pos + 1;
    }
    return 0;
}

// What begins with "<" at pos. end 0: nothing that XML knows.
static token read_token(dgm_text t, size_t pos, dgm_text *name)
{
    static const char cdata[] = "<![CDATA[";
    token k = {.kind = TOKEN_OTHER, .begin = pos, .element = NOBODY};
    const char next = pos + 1 < t.size ? t.data[pos + 1] : 0;
    if (next == '?') k.end = behind(t, pos, "?>");
    if (next == '!' && t.size - pos > 4 && memcmp(t.data + pos, "<!--", 4) == 0)
        k.end = behind(t, pos + 4, "-->");
    else if (next == '!' && t.size - pos > sizeof cdata && memcmp(t.data + pos, cdata, sizeof cdata - 1) == 0)
        k.end = behind(t, pos, "]]>");
    else if (next == '!')
        k.end = end_of_tag(t, pos);
    if (next == '!' || next == '?') return k;
    const size_t from = pos + 1 + (next == '/');
    size_t to = from;
    while (to < t.size && !is_white(t.data[to]) && !strchr("/>=<\"'&", t.data[to])) to++;
    const bool named = to > from && !strchr("0123456789.-", t.data[from]);
    k.end = named ? end_of_tag(t, to) : 0;
    if (!k.end) return k;
    *name = (dgm_text){t.data + from, to - from};
    k.kind = next == '/' ? TOKEN_CLOSE : t.data[k.end - 2] == '/' ? TOKEN_EMPTY : TOKEN_OPEN;
    return k;
}

static dgm_status add_token(tree *x, token k, dgm_error *err)
{
    DGM_TRY(dgm_grow(&x->tokens, &x->token_cap, x->token_count + 1, sizeof *x->tokens, err));
    x->tokens[x->token_count++] = k;
    return DGM_OK;
}

static dgm_status add_element(tree *x, token *k, dgm_text name, int parent, dgm_error *err)
{
    DGM_TRY(dgm_grow(&x->elements, &x->element_cap, x->element_count + 1, sizeof *x->elements, err));
    if (parent != NOBODY) x->elements[parent].has_elements = true;
    k->element = (int)x->element_count;
    x->elements[x->element_count++] =
        (element){.name = name, .begin = k->begin, .end = k->end, .parent = parent, .pair = NOBODY};
    return DGM_OK;
}

static dgm_status add_text(tree *x, size_t begin, size_t end, int parent, dgm_error *err)
{
    bool *has = parent == NOBODY ? &x->root_text : &x->elements[parent].has_text;
    for (size_t i = begin; i < end; i++) *has = *has || !is_white(x->t.data[i]);
    return add_token(x, (token){.kind = TOKEN_TEXT, .begin = begin, .end = end, .element = NOBODY}, err);
}

static dgm_status read_tree(tree *x, dgm_error *err)
{
    int open = NOBODY;
    for (size_t pos = 0; pos < x->t.size;) {
        const char *less = memchr(x->t.data + pos, '<', x->t.size - pos);
        const size_t at = less ? (size_t)(less - x->t.data) : x->t.size;
        if (at > pos) DGM_TRY(add_text(x, pos, at, open, err));
        if (!less) break;
        dgm_text name = {NULL, 0};
        token k = read_token(x->t, at, &name);
        DGM_FAIL_IF(!k.end, err, DGM_ERR_FORMAT, "line %zu: '<' begins no tag", dgm_source_line(x->d, 0, at));
        if (k.kind == TOKEN_CLOSE) {
            DGM_FAIL_IF(open == NOBODY || !dgm_text_equal(x->elements[open].name, name), err, DGM_ERR_FORMAT,
                        "line %zu: </%.*s> closes nothing", dgm_source_line(x->d, 0, at), DGM_SHOWN(name));
            k.element = open;
            x->elements[open].end = k.end;
            open = x->elements[open].parent;
        } else if (k.kind != TOKEN_OTHER) {
            DGM_TRY(add_element(x, &k, name, open, err));
            if (k.kind == TOKEN_OPEN) open = k.element;
        }
        DGM_TRY(add_token(x, k, err));
        pos = k.end;
    }
    DGM_FAIL_IF(open != NOBODY, err, DGM_ERR_FORMAT, "line %zu: <%.*s> is not closed",
                dgm_source_line(x->d, 0, x->elements[open].begin), DGM_SHOWN(x->elements[open].name));
    return DGM_OK;
}

// ---- structure ------------------------------------------------------------------------------------

// Is the name one of a list with commas between?
static bool is_listed(const char *list, dgm_text name)
{
    while (list && *list) {
        while (*list == ' ' || *list == ',') list++;
        size_t n = strcspn(list, ",");
        const size_t step = n;
        while (n && list[n - 1] == ' ') n--;
        if (n == name.size && n && memcmp(list, name.data, n) == 0) return true;
        list += step;
    }
    return false;
}

// Parents come before their children.
static void find_structure(tree *x)
{
    const dgm_document_options *o = dgm_document_asked(x->d);
    for (size_t i = 0; i < x->element_count; i++) {
        element *e = &x->elements[i];
        const element *p = e->parent == NOBODY ? NULL : &x->elements[e->parent];
        const bool frame = p ? p->splits && !p->has_text : !x->root_text;
        e->ignored = is_listed(o->ignore_tags, e->name);
        e->splits = is_listed(o->splitting_tags, e->name) ||
                    (!o->no_outline && frame && !is_listed(o->inline_tags, e->name));
    }
}

// ---- segments -------------------------------------------------------------------------------------

static dgm_status begin_segment(tree *x, size_t at, dgm_error *err)
{
    if (x->making) return DGM_OK;
    const dgm_segment_spec spec = {.begin = at, .end = at, .escape = &dgm_escape_xml, .flags = DGM_SEGMENT_IN_PLACE};
    x->making = true;
    x->segments++;
    return dgm_segment_begin(x->d, &spec, NULL, err);
}

static dgm_status end_segment(tree *x, size_t at, dgm_error *err)
{
    if (!x->making) return DGM_OK;
    x->making = false;
    return dgm_segment_end_at(x->d, at, err);
}

static dgm_status put_tag(tree *x, const token *k, dgm_error *err)
{
    element *e = &x->elements[k->element];
    const dgm_text bytes = {x->t.data + k->begin, k->end - k->begin};
    if (e->splits) return end_segment(x, k->begin, err);
    DGM_TRY(begin_segment(x, k->begin, err));
    if (k->kind == TOKEN_OPEN) {
        e->segment = x->segments;
        return dgm_segment_open(x->d, bytes, &e->pair, err);
    }
    if (k->kind == TOKEN_CLOSE && e->segment == x->segments) return dgm_segment_close(x->d, bytes, e->pair, err);
    return dgm_segment_empty(x->d, bytes, err);
}

// What is ignored is part of the sentence it stands in, and its bytes are. *next: the token behind it.
static dgm_status put_ignored(tree *x, const element *e, size_t *next, dgm_error *err)
{
    if (e->splits) {
        DGM_TRY(end_segment(x, e->begin, err));
    } else {
        DGM_TRY(begin_segment(x, e->begin, err));
        DGM_TRY(dgm_segment_keep(x->d, (dgm_text){x->t.data + e->begin, e->end - e->begin}, NULL, err));
    }
    while (*next < x->token_count && x->tokens[*next].begin < e->end) ++*next;
    return DGM_OK;
}

static dgm_status put_token(tree *x, size_t *next, dgm_error *err)
{
    const token *k = &x->tokens[(*next)++];
    const dgm_text bytes = {x->t.data + k->begin, k->end - k->begin};
    if (k->kind == TOKEN_OTHER) return x->making ? dgm_segment_empty(x->d, bytes, err) : DGM_OK;
    if (k->kind == TOKEN_TEXT) {
        DGM_TRY(begin_segment(x, k->begin, err));
        return dgm_segment_raw(x->d, bytes, err);
    }
    if (k->kind != TOKEN_CLOSE && x->elements[k->element].ignored)
        return put_ignored(x, &x->elements[k->element], next, err);
    return put_tag(x, k, err);
}

static dgm_status read_xml(dgm_document *d, dgm_error *err)
{
    tree x = {.d = d, .t = dgm_document_source(d, 0)};
    dgm_status st = read_tree(&x, err);
    if (st == DGM_OK) find_structure(&x);
    for (size_t i = 0; i < x.token_count && st == DGM_OK;) st = put_token(&x, &i, err);
    if (st == DGM_OK) st = end_segment(&x, x.t.size, err);
    dgm_free(x.elements);
    dgm_free(x.tokens);
    return st;
}

// No ending: files of that name are many things, and most have a kind of their own.
const dgm_document_reader dgm_xml_reader = {
    .format = DGM_FORMAT("xml", "", "XML of any kind, only where it is asked for; comments and instructions stay"),
    .read = read_xml,
};

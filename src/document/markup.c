// SPDX-License-Identifier: MIT
// Tags find their words in a translation: dgm_tags_place of dragoman/document.h.
//
// Pairs of tags are a tree: the text is the root, a pair is the child of the pair around it. Every source word
// belongs to the innermost pair that has most of its letters. A target word belongs where the source words belong
// that it is linked to, the long ones counting for more; then, from the outside inwards, a pair takes the longest run
// of its words that lies within the pair around it. Words that are linked to nothing are bridged. So pairs stay
// nested as they were, and no two that stood side by side overlap. Tags without a partner stand at the word that
// follows them in the source, or else behind the one before; a pair that lost all its words stands around that word.
//
//     source   Press the <b>red button</b> now.      words   0 1 [2 3] 4
//     target   Jetzt den roten Knopf drücken.        belong  4 1  2 3  0   ->  <b>roten Knopf</b>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "document/document.h"
#include "text/unicode.h"

typedef struct word {
    size_t begin, end;  // without marks at its ends, unless there is nothing else
    size_t first, last; // with them
    int32_t node;       // source: of the pair it belongs to; target: likewise
    int32_t letters;
    int32_t links; // source: how many target words are linked to it
} word;

// A pair, or a tag without a partner; 0 is the whole text.
typedef struct node {
    int32_t parent;
    int32_t open, close; // tags; -1: none
    size_t from, to;     // in the source
    size_t begin, end;   // in the translation
    int32_t words;       // source words that belong to it or to pairs inside
    int32_t first, last; // target words of its span; last < first: none
    bool point;
} node;

typedef struct placing {
    dgm_text source, target;
    const dgm_tag *tags;
    size_t tag_count;
    const dgm_link *links;
    size_t link_count;
    size_t *links_from, *of_source; // links by source word: of word i of_source[links_from[i] ... links_from[i + 1])
    word *from, *to;                // words of both sides
    size_t from_count, to_count;
    node *nodes;
    size_t node_count;
    int32_t *node_of; // [tag_count]
} placing;

// ---- words --------------------------------------------------------------------------------------

static bool is_part_of_word(uint32_t code)
{
    return (dgm_char_class(code) & (DGM_CHAR_LETTER | DGM_CHAR_MARK | DGM_CHAR_NUMBER)) != 0;
}

// Marks at both ends of a word are not its own.
static void trim_word(dgm_text text, word *w)
{
    size_t begin = w->last, end = w->first;
    for (size_t i = w->first; i < w->last;) {
        uint32_t code = 0;
        const size_t n = dgm_utf8_next(text.data + i, w->last - i, &code);
        if (is_part_of_word(code)) {
            if (begin > i) begin = i;
            end = i + n;
            w->letters++;
        }
        i += n;
    }
    w->begin = begin < end ? begin : w->first;
    w->end = begin < end ? end : w->last;
}

static dgm_status find_words(dgm_text text, word **words, size_t *count, dgm_error *err)
{
    size_t cap = 0, n = 0;
    bool inside = false;
    for (size_t i = 0; i < text.size;) {
        uint32_t code = 0;
        const size_t size = dgm_utf8_next(text.data + i, text.size - i, &code);
        const bool space = dgm_char_is_space(code);
        if (!space && !inside) {
            const dgm_status st = dgm_grow(words, &cap, n + 1, sizeof **words, err);
            if (st != DGM_OK) return st;
            (*words)[n++] = (word){.first = i};
        }
        inside = !space;
        i += size;
        if (inside) (*words)[n - 1].last = i;
    }
    for (size_t i = 0; i < n; i++) trim_word(text, &(*words)[i]);
    *count = n;
    return DGM_OK;
}

// ---- the tree -----------------------------------------------------------------------------------

static int32_t close_of(const placing *p, size_t open)
{
    if (p->tags[open].kind != DGM_TAG_OPEN || p->tags[open].pair < 0) return -1;
    for (size_t i = open + 1; i < p->tag_count; i++)
        if (p->tags[i].kind == DGM_TAG_CLOSE && p->tags[i].pair == p->tags[open].pair) return (int32_t)i;
    return -1;
}

// A close tag that crosses its neighbours has no partner: the pair would not be nested.
static bool crosses(const placing *p, int32_t parent, int32_t close)
{
    return p->nodes[parent].close >= 0 && p->nodes[parent].close < close;
}

static void make_tree(placing *p)
{
    p->nodes[0] = (node){.parent = -1, .open = -1, .close = -1, .to = p->source.size};
    p->node_count = 1;
    int32_t inside = 0;
    for (size_t i = 0; i < p->tag_count; i++) p->node_of[i] = -1;
    for (size_t i = 0; i < p->tag_count; i++) {
        while (inside > 0 && p->nodes[inside].close < (int32_t)i) inside = p->nodes[inside].parent;
        if (p->node_of[i] >= 0) continue; // the end of a pair
        const int32_t close = close_of(p, i), number = (int32_t)p->node_count;
        const bool pair = close >= 0 && !crosses(p, inside, close);
        p->nodes[p->node_count++] = (node){.parent = inside,
                                           .open = (int32_t)i,
                                           .close = pair ? close : -1,
                                           .from = p->tags[i].at,
                                           .to = pair ? p->tags[close].at : p->tags[i].at,
                                           .point = !pair};
        p->node_of[i] = number;
        if (!pair) continue;
        p->node_of[close] = number;
        inside = number;
    }
}

// The innermost pair with most of a source word; of two that have half of it each the later one.
static void place_source_words(placing *p)
{
    for (size_t w = 0; w < p->from_count; w++) {
        word *x = &p->from[w];
        for (size_t n = 1; n < p->node_count; n++) {
            const node *y = &p->nodes[n];
            const size_t begin = y->from > x->begin ? y->from : x->begin, end = y->to < x->end ? y->to : x->end;
            if (!y->point && begin < end && 2 * (end - begin) >= x->end - x->begin) x->node = (int32_t)n;
        }
        for (int32_t n = x->letters ? x->node : -1; n >= 0; n = p->nodes[n].parent) p->nodes[n].words++;
    }
    // A pair around a small part of a word still takes that word along.
    for (size_t n = 1; n < p->node_count; n++)
        for (size_t w = 0; w < p->from_count && !p->nodes[n].words && !p->nodes[n].point; w++)
            if (p->from[w].letters && p->from[w].begin < p->nodes[n].to && p->nodes[n].from < p->from[w].end &&
                p->from[w].node == p->nodes[n].parent) {
                p->from[w].node = (int32_t)n;
                p->nodes[n].words++;
            }
}

static bool is_within(const placing *p, int32_t inner, int32_t outer)
{
    while (inner > outer) inner = p->nodes[inner].parent;
    return inner == outer;
}

// ---- target words ---------------------------------------------------------------------------------

static bool is_link(const placing *p, size_t i)
{
    const dgm_link *l = &p->links[i];
    return l->source >= 0 && (size_t)l->source < p->from_count && l->target >= 0 && (size_t)l->target < p->to_count;
}

// Texts of thousands of words and tags would look through all links for each of both.
static dgm_status index_links(placing *p, dgm_error *err)
{
    p->links_from = dgm_calloc(p->from_count + 2, sizeof *p->links_from);
    p->of_source = dgm_malloc((p->link_count + 1) * sizeof *p->of_source);
    if (!p->links_from || !p->of_source) return dgm_no_memory(err);
    size_t *const next = p->links_from + 1; // where a word's next link goes: in the end, where the next word's begin
    for (size_t i = 0; i < p->link_count; i++)
        if (is_link(p, i)) next[p->links[i].source + 1]++;
    for (size_t i = 0; i < p->from_count; i++) next[i + 1] += next[i];
    for (size_t i = 0; i < p->link_count; i++)
        if (is_link(p, i)) p->of_source[next[p->links[i].source]++] = i;
    return DGM_OK;
}

// A source word that many target words are linked to says less about each of them; letters show that it has a
// meaning of its own.
static float weight_of(const word *source)
{
    const int32_t letters = source->letters > 8 ? 8 : source->letters;
    return (1 + (float)letters) / (float)(source->links ? source->links : 1);
}

// Which pair has the most of a target word's links [first, last).
static int32_t vote(const placing *p, size_t first, size_t last)
{
    int32_t best = -1;
    float most = 0;
    for (size_t i = first; i < last; i++) {
        if (!is_link(p, i)) continue;
        const int32_t candidate = p->from[p->links[i].source].node;
        float sum = 0;
        for (size_t k = first; k < last; k++)
            if (is_link(p, k) && p->from[p->links[k].source].node == candidate)
                sum += weight_of(&p->from[p->links[k].source]);
        if (sum > most || (sum == most && candidate > best)) {
            best = candidate;
            most = sum;
        }
    }
    return best;
}

static void place_target_words(placing *p)
{
    for (size_t i = 0; i < p->to_count; i++) p->to[i].node = -1;
    for (size_t i = 0; i < p->link_count; i++)
        if (is_link(p, i)) p->from[p->links[i].source].links++;
    for (size_t i = 0, end = 0; i < p->link_count; i = end) {
        for (end = i; end < p->link_count && p->links[end].target == p->links[i].target; end++) {}
        if (is_link(p, i)) p->to[p->links[i].target].node = vote(p, i, end);
    }
}

// Without links: by position.
static void place_by_position(placing *p)
{
    for (size_t i = 0; i < p->to_count && p->from_count; i++)
        p->to[i].node = p->from[i * p->from_count / p->to_count].node;
}

// A pair whose words all went to others takes the word that is linked to it most, from the pair around it.
static void save_pair(placing *p, int32_t n)
{
    int32_t best = -1;
    float most = 0;
    for (size_t i = 0; i < p->link_count; i++) {
        if (!is_link(p, i) || !is_within(p, p->from[p->links[i].source].node, n)) continue;
        const float weight = weight_of(&p->from[p->links[i].source]);
        const bool own = p->to[p->links[i].target].node == p->nodes[n].parent;
        if (own && weight > most) {
            most = weight;
            best = p->links[i].target;
        }
    }
    if (best >= 0) p->to[best].node = n;
}

static bool has_word(const placing *p, int32_t n)
{
    for (size_t i = 0; i < p->to_count; i++)
        if (p->to[i].node >= n && is_within(p, p->to[i].node, n)) return true;
    return false;
}

// ---- spans ----------------------------------------------------------------------------------------

// The longest run of a pair's words within the pair around it.
static void choose_run(placing *p, int32_t n)
{
    node *x = &p->nodes[n];
    const node *around = &p->nodes[x->parent];
    int32_t first = -1, last = -1, size = 0, best = 0;
    x->first = 0;
    x->last = -1;
    for (int32_t i = around->first; i <= around->last + 1; i++) {
        const int32_t own = i <= around->last ? p->to[i].node : -2;
        if (own == -1) continue; // linked to nothing: bridged
        if (own >= n && is_within(p, own, n)) {
            if (first < 0) first = i;
            last = i;
            size += 1 + p->to[i].letters;
            continue;
        }
        if (size > best) {
            best = size;
            x->first = first;
            x->last = last;
        }
        first = -1;
        size = 0;
    }
}

static const word *source_word_at(const placing *p, size_t pos, bool last)
{
    const word *found = NULL;
    for (size_t i = 0; i < p->from_count; i++) {
        const word *w = &p->from[i];
        if (last ? w->first < pos : w->last <= pos) found = w;
        if (!last && w->last > pos) return w;
    }
    return found;
}

static size_t count_marks(dgm_text text, size_t from, size_t to)
{
    return from < to ? dgm_utf8_count((dgm_text){text.data + from, to - from}) : 0;
}

// As many of the marks at the outer ends of the words are inside the pair as in the source: "<b>Note:</b>".
static void place_span(placing *p, int32_t n)
{
    node *x = &p->nodes[n];
    const node *around = &p->nodes[x->parent];
    const word *first = source_word_at(p, x->from, false), *last = source_word_at(p, x->to, true);
    const word *a = &p->to[x->first], *b = &p->to[x->last];
    x->begin = a->begin;
    x->end = b->end;
    size_t marks = first ? count_marks(p->source, x->from > first->first ? x->from : first->first, first->begin) : 0;
    for (; marks && x->begin > a->first; marks--) x->begin = dgm_utf8_prev(p->target.data, x->begin);
    marks = last ? count_marks(p->source, last->end, x->to < last->last ? x->to : last->last) : 0;
    for (; marks && x->end < b->last; marks--) {
        uint32_t code = 0;
        x->end += dgm_utf8_next(p->target.data + x->end, b->last - x->end, &code);
    }
    if (x->begin < around->begin) x->begin = around->begin;
    if (x->end > around->end) x->end = around->end;
    if (x->end < x->begin) x->end = x->begin;
}

// ---- points ---------------------------------------------------------------------------------------

// The target word that belongs to a source word: the first, or the last one that is linked to it. -1: none.
static int32_t linked(const placing *p, size_t source, bool last)
{
    int32_t found = -1;
    for (size_t k = p->links_from[source]; k < p->links_from[source + 1]; k++) {
        const size_t i = p->of_source[k];
        // A mark at the end of a word is a link of its own and says little.
        if (p->to[p->links[i].target].node != p->from[source].node && found >= 0) continue;
        if (found < 0 || last) found = p->links[i].target;
    }
    if (!p->link_count && p->from_count) found = (int32_t)(source * p->to_count / p->from_count);
    return found;
}

// Does the tag stand directly behind a word, not before one?
static bool follows_word(const placing *p, size_t at, size_t *number)
{
    for (size_t i = 0; i < p->from_count; i++)
        if (at > p->from[i].first && at <= p->from[i].last) {
            *number = i;
            return true;
        }
    return false;
}

// The next word with letters from `from` on, forwards or backwards; -1: none.
static int32_t next_word(const placing *p, int32_t from, int32_t step)
{
    while (from >= 0 && from < (int32_t)p->from_count && !p->from[from].letters) from += step;
    return from < (int32_t)p->from_count ? from : -1;
}

// Where a tag stands that was before byte `at` of the source: directly behind the word that it follows, else before
// the word that it stands at, else behind the last one before it.
static size_t point_of(const placing *p, size_t at)
{
    size_t behind = 0, first = 0;
    const bool follows = follows_word(p, at, &behind);
    while (first < p->from_count && p->from[first].first < at) first++;
    const int32_t next = next_word(p, (int32_t)first, 1), before = next_word(p, (int32_t)first - 1, -1);
    if (!p->to_count || before < 0) return 0;
    if (next < 0 && !(follows && at < p->from[behind].last)) return p->target.size;
    int32_t t = follows ? linked(p, behind, true) : -1;
    if (t >= 0) return at > p->from[behind].end ? p->to[t].last : p->to[t].end;
    t = next == (int32_t)first ? linked(p, first, false) : -1;
    if (t >= 0) return p->to[t].first;
    for (int32_t i = before; i >= 0; i--)
        if ((t = linked(p, (size_t)i, true)) >= 0)
            return t + 1 < (int32_t)p->to_count ? p->to[t + 1].first : p->target.size;
    return 0;
}

static void place_point(placing *p, int32_t n)
{
    node *x = &p->nodes[n];
    const node *around = &p->nodes[x->parent];
    size_t at = point_of(p, x->from);
    if (x->from == around->from && x->parent)
        at = around->begin;
    else if (x->from == around->to && x->parent)
        at = around->end;
    if (at < around->begin) at = around->begin;
    if (at > around->end) at = around->end;
    x->begin = x->end = at;
}

// A point that came to stand inside a pair beside it goes to the nearer end of that pair.
static void leave_neighbours(placing *p, int32_t n)
{
    node *x = &p->nodes[n];
    for (size_t i = 1; i < p->node_count; i++) {
        const node *y = &p->nodes[i];
        if (y->parent != x->parent || y->begin >= x->begin || y->end <= x->begin) continue;
        x->begin = x->end = x->from <= y->from ? y->begin : y->end;
    }
}

// Does a word belong to the pair around n alone?
static bool is_free(const placing *p, int32_t n, int32_t target)
{
    const int32_t own = p->to[target].node;
    bool taken = own != p->nodes[n].parent && own != -1;
    for (int32_t i = 1; i < n; i++) { // it may be bridged by another pair
        const node *y = &p->nodes[i];
        taken |= y->parent == p->nodes[n].parent && y->first <= target && target <= y->last;
    }
    return !taken;
}

// A pair that nothing is linked to takes the word where it would stand, if that belongs to nobody but the pair around
// it.
static void take_nearest(placing *p, int32_t n)
{
    node *x = &p->nodes[n];
    const node *around = &p->nodes[x->parent];
    place_point(p, n);
    for (int32_t i = around->first; i <= around->last; i++) {
        const bool here = p->to[i].last >= x->begin;
        if (!here || !is_free(p, n, i)) continue;
        if (i > around->first && p->to[i].first > x->begin + 1) break; // farther away than the next word
        x->first = x->last = i;
        p->to[i].node = n;
        return;
    }
}

// Halves of pairs whose other halves stand in other texts keep their order, so that all of them are nested together.
static void keep_order(placing *p)
{
    for (int32_t n = 1, last = 0; n < (int32_t)p->node_count; n++) {
        node *x = &p->nodes[n];
        if (!x->point || p->tags[x->open].kind == DGM_TAG_EMPTY) continue;
        if (last && p->nodes[last].parent == x->parent && x->begin < p->nodes[last].begin)
            x->begin = x->end = p->nodes[last].begin;
        last = n;
    }
}

static void place_nodes(placing *p)
{
    p->nodes[0].end = p->target.size;
    p->nodes[0].first = 0;
    p->nodes[0].last = (int32_t)p->to_count - 1;
    for (int32_t n = 1; n < (int32_t)p->node_count; n++) {
        node *x = &p->nodes[n];
        const node *around = &p->nodes[x->parent];
        x->first = 0;
        x->last = -1;
        if (x->point) continue;
        if (x->words && x->words == around->words && around->last >= around->first) {
            x->first = around->first; // all words, so all of them again
            x->last = around->last;
        } else if (x->words) {
            if (!has_word(p, n)) save_pair(p, n);
            choose_run(p, n);
        }
        if (x->words && x->last < x->first) take_nearest(p, n);
        if (x->last >= x->first)
            place_span(p, n);
        else
            place_point(p, n);
    }
    for (int32_t n = 1; n < (int32_t)p->node_count; n++)
        if (p->nodes[n].point) place_point(p, n);
    for (int32_t n = 1; n < (int32_t)p->node_count; n++)
        if (p->nodes[n].begin == p->nodes[n].end) leave_neighbours(p, n);
    keep_order(p);
}

// ---- order ----------------------------------------------------------------------------------------

// Siblings from left to right; a pair comes behind what is around it.
static int compare_nodes(const void *context, uint32_t a, uint32_t b)
{
    const node *nodes = context, *x = &nodes[a], *y = &nodes[b];
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Walks the tree; sorted[first_child[n] ...] are the children of n.
static void write_order(const placing *p, const uint32_t *sorted, uint32_t *next, size_t *places, size_t *order)
{
    size_t count = 0;
    for (int32_t n = 0; n >= 0;) {
        node *x = &p->nodes[n];
        const uint32_t child = next[n] < p->node_count ? sorted[next[n]] : 0;
        if (child && p->nodes[child].parent == n) {
            next[n]++;
            n = (int32_t)child;
            places[p->nodes[n].open] = p->nodes[n].begin;
            order[count++] = (size_t)p->nodes[n].open;
            continue;
        }
        if (x->close >= 0) {
            places[x->close] = x->end;
            order[count++] = (size_t)x->close;
        }
        n = x->parent;
    }
}

static dgm_status emit(const placing *p, size_t *places, size_t *order, dgm_error *err)
{
    uint32_t *sorted = dgm_malloc(2 * p->node_count * sizeof *sorted);
    if (!sorted) return dgm_no_memory(err);
    uint32_t *next = sorted + p->node_count;
    dgm_sort_indices(sorted, p->node_count, compare_nodes, p->nodes);
    for (size_t n = 0; n < p->node_count; n++) next[n] = (uint32_t)p->node_count;
    for (size_t i = p->node_count; i-- > 1;) next[p->nodes[sorted[i]].parent] = (uint32_t)i;
    write_order(p, sorted, next, places, order);
    dgm_free(sorted);
    return DGM_OK;
}

static dgm_status place(placing *p, size_t *places, size_t *order, dgm_error *err)
{
    DGM_TRY(find_words(p->source, &p->from, &p->from_count, err));
    DGM_TRY(find_words(p->target, &p->to, &p->to_count, err));
    p->nodes = dgm_calloc(p->tag_count + 1, sizeof *p->nodes);
    p->node_of = dgm_calloc(p->tag_count + 1, sizeof *p->node_of);
    if (!p->nodes || !p->node_of) return dgm_no_memory(err);
    DGM_TRY(index_links(p, err));
    make_tree(p);
    place_source_words(p);
    if (p->link_count)
        place_target_words(p);
    else
        place_by_position(p);
    place_nodes(p);
    return emit(p, places, order, err);
}

dgm_status dgm_tags_place(const char *source, size_t source_size, const dgm_tag *tags, size_t count,
                          const char *translation, size_t translation_size, const dgm_link *links, size_t link_count,
                          size_t *places, size_t *order, dgm_error *err)
{
    DGM_FAIL_IF((!source && source_size) || (!translation && translation_size) || (!links && link_count), err,
                DGM_ERR_ARGUMENT, "dgm_tags_place needs a text, its translation and the links between them");
    DGM_FAIL_IF(count && (!tags || !places || !order), err, DGM_ERR_ARGUMENT,
                "dgm_tags_place needs tags and room for their places and their order");
    DGM_FAIL_IF(count > DGM_TAGS_MOST, err, DGM_ERR_UNSUPPORTED, "%zu tags in one text: at most %d", count,
                DGM_TAGS_MOST);
    for (size_t i = 0; i < count; i++)
        DGM_FAIL_IF(tags[i].at > source_size || (i && tags[i].at < tags[i - 1].at), err, DGM_ERR_ARGUMENT,
                    "tag %zu stands behind the text or before the one before it", i + 1);
    placing p = {.source = {source, source_size},
                 .target = {translation, translation_size},
                 .tags = tags,
                 .tag_count = count,
                 .links = links,
                 .link_count = link_count};
    const dgm_status st = count ? place(&p, places, order, err) : DGM_OK;
    dgm_free(p.links_from);
    dgm_free(p.of_source);
    dgm_free(p.from);
    dgm_free(p.to);
    dgm_free(p.nodes);
    dgm_free(p.node_of);
    return st;
}

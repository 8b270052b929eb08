// SPDX-License-Identifier: MIT
// Terms in alphabetic order, each with the longest other one that it begins with; see termbook.h.
//
// Which terms begin at a place of a text? All of them begin the last term G that does not come behind the text's rest
// in the alphabet: a string between a term and something that begins with it begins with it, too. So G is found by
// halving, and the others are G, what G begins with, and so on.
#include "server/termbook.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

struct dgm_termbook {
    atomic_int holders;
    size_t count;
    dgm_term *terms;    // [count] as they were given
    uint32_t *order;    // [count] their numbers by the alphabet
    uint32_t *within;   // [count] by the alphabet: place of the longest one that it begins with, plus 1; 0: none
    uint32_t first[257]; // of each first letter, in `order`
};

static unsigned char fold(char c)
{
    const unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u + 'a' - 'A') : u;
}

// The alphabet: bytes without case, what is shorter first.
static int by_source(const void *context, uint32_t a, uint32_t b)
{
    const dgm_termbook *book = context;
    const char *x = book->terms[a].source, *y = book->terms[b].source;
    while (*x && fold(*x) == fold(*y)) x++, y++;
    if (*x || *y) return fold(*x) < fold(*y) ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Does the term come behind the text, *begins: or does the text begin with it?
static bool is_behind(const char *term, const char *text, const char *end, bool *begins)
{
    while (*term && text < end && fold(*term) == fold(*text)) term++, text++;
    *begins = !*term;
    return *term && (text == end || fold(*term) > fold(*text));
}

static const char *place(const dgm_termbook *book, uint32_t at)
{
    return book->terms[book->order[at]].source;
}

// Terms in order: whatever one begins with stands on the way from the one before it.
static void link_beginnings(dgm_termbook *book)
{
    for (uint32_t i = 0; i < book->count; i++) {
        const char *term = place(book, i), *end = term + strlen(term);
        uint32_t at = i;
        bool begins = false;
        while (at && !begins) {
            (void)is_behind(place(book, at - 1), term, end, &begins);
            if (!begins) at = book->within[at - 1];
        }
        book->within[i] = at;
    }
}

static void find_letters(dgm_termbook *book)
{
    size_t at = 0;
    for (int letter = 0; letter <= 256; letter++) {
        while (at < book->count && fold(place(book, (uint32_t)at)[0]) < letter) at++;
        book->first[letter] = (uint32_t)at;
    }
}

size_t dgm_termbook_bytes(size_t count, size_t letters)
{
    return count * (sizeof(dgm_term) + 2 * sizeof(uint32_t) + 2) + letters;
}

// One block: the book, its lists, all letters.
dgm_status dgm_termbook_make(dgm_termbook **out, const dgm_term *terms, size_t count, dgm_error *err)
{
    size_t letters = 0;
    *out = NULL;
    DGM_FAIL_IF(count > INT32_MAX, err, DGM_ERR_UNSUPPORTED, "there are too many terms");
    for (size_t i = 0; i < count; i++) letters += strlen(terms[i].source) + strlen(terms[i].target);
    dgm_termbook *book = dgm_malloc(sizeof *book + dgm_termbook_bytes(count, letters));
    if (!book) return dgm_no_memory(err);
    *book = (dgm_termbook){.count = count, .terms = (dgm_term *)(book + 1)};
    atomic_init(&book->holders, 1);
    book->order = (uint32_t *)(book->terms + count);
    book->within = book->order + count;
    char *to = (char *)(book->within + count);
    for (size_t i = 0; i < count; i++) {
        const size_t n = strlen(terms[i].source) + 1, m = strlen(terms[i].target) + 1;
        book->terms[i] = (dgm_term){memcpy(to, terms[i].source, n), memcpy(to + n, terms[i].target, m)};
        to += n + m;
    }
    dgm_sort_indices(book->order, count, by_source, book);
    link_beginnings(book);
    find_letters(book);
    *out = book;
    return DGM_OK;
}

dgm_termbook *dgm_termbook_hold(dgm_termbook *book)
{
    atomic_fetch_add(&book->holders, 1);
    return book;
}

void dgm_termbook_drop(dgm_termbook **at)
{
    dgm_termbook *book = *at;
    *at = NULL;
    if (book && atomic_fetch_sub(&book->holders, 1) == 1) dgm_free(book);
}

size_t dgm_termbook_count(const dgm_termbook *book)
{
    return book->count;
}

const dgm_term *dgm_termbook_at(const dgm_termbook *book, size_t number)
{
    return &book->terms[number];
}

// The last term that does not come behind the text; its place plus 1, 0: none.
static uint32_t last_before(const dgm_termbook *book, const char *text, const char *end)
{
    const unsigned char letter = fold(*text);
    uint32_t low = book->first[letter], high = book->first[letter + 1];
    const uint32_t first = low;
    bool begins;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (is_behind(place(book, middle), text, end, &begins))
            high = middle;
        else
            low = middle + 1;
    }
    return low > first ? low : 0;
}

void dgm_termbook_mark(const dgm_termbook *book, const char *text, size_t size, uint64_t *marks)
{
    const char *end = text + size;
    for (; text < end; text++) {
        bool begins = false;
        for (uint32_t at = last_before(book, text, end); at; at = book->within[at - 1]) {
            if (!begins) (void)is_behind(place(book, at - 1), text, end, &begins);
            if (!begins) continue;
            const uint32_t number = book->order[at - 1];
            const uint64_t bit = (uint64_t)1 << (number % 64);
            if (marks[number / 64] & bit) break; // and with it what it begins with
            marks[number / 64] |= bit;
        }
    }
}

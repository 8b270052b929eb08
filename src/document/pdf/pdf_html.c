// SPDX-License-Identifier: MIT
// The text of a PDF as HTML, by Poppler (the plugin libdragoman-pdf.so; pdf_plugin_private.h).
//
// A PDF has characters at places, and no paragraphs. Poppler puts them into lines in the order of reading; which lines
// are a paragraph is told by what typesetters do: more space between paragraphs than between lines, another size of
// letters, an indented first line, or a line that has room for the first word of the next one. Words that are
// hyphenated at the end of a line are joined.
#include <glib.h>
#include <poppler.h>
#include <string.h>

#include "document/pdf_plugin_private.h"

int dragoman_pdf_html(const void *data, size_t size, dgm_pdf_put put, void *cookie);

typedef struct line {
    const char *text;
    size_t size;
    double left, right, top, bottom, height;
    double word;   // where its first word ends
    double column; // where the lines below and above it end
} line;

// ---- lines ---------------------------------------------------------------------------------------

// The lines of a page: text and rectangles of its characters go together.
static GArray *lines_of(const char *text, const PopplerRectangle *places, guint count)
{
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(line));
    const char *at = text;
    for (guint i = 0; i < count && *at;) {
        line l = {.text = at, .left = 1e9, .top = 1e9, .right = -1e9, .bottom = -1e9};
        double heights = 0;
        int letters = 0;
        gboolean in_word = TRUE;
        for (; i < count && *at && *at != '\n'; i++, at = g_utf8_next_char(at)) {
            const gboolean space = g_unichar_isspace(g_utf8_get_char(at));
            in_word = in_word && (letters == 0 || !space);
            if (space) continue;
            const PopplerRectangle *r = &places[i];
            if (in_word) l.word = r->x2;
            l.left = MIN(l.left, r->x1);
            l.right = MAX(l.right, r->x2);
            l.top = MIN(l.top, r->y1);
            l.bottom = MAX(l.bottom, r->y2);
            heights += r->y2 - r->y1;
            letters++;
        }
        l.size = (size_t)(at - l.text);
        l.height = letters > 0 ? heights / letters : 0;
        if (letters > 0) g_array_append_val(lines, l);
        if (*at == '\n') {
            at++;
            i++;
        }
    }
    return lines;
}

// Lines that begin near the same place are a column.
static void find_columns(GArray *lines)
{
    for (guint i = 0; i < lines->len; i++) {
        line *l = &g_array_index(lines, line, i);
        l->column = l->right;
        for (guint k = 0; k < lines->len; k++) {
            const line *other = &g_array_index(lines, line, k);
            if (ABS(other->left - l->left) < 4 * l->height) l->column = MAX(l->column, other->right);
        }
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double usual_height(const GArray *lines)
{
    if (lines->len == 0) return 0;
    double *heights = g_new(double, lines->len);
    for (guint i = 0; i < lines->len; i++) heights[i] = g_array_index(lines, line, i).height;
    qsort(heights, lines->len, sizeof *heights, compare_numbers);
    const double middle = heights[lines->len / 2];
    g_free(heights);
    return middle;
}

// From line to line inside of paragraphs: the lower quarter of all distances, since others lie between paragraphs.
static double usual_step(const GArray *lines, double height)
{
    double *steps = g_new(double, lines->len + 1);
    size_t count = 0;
    for (guint i = 1; i < lines->len; i++) {
        const double step = g_array_index(lines, line, i).top - g_array_index(lines, line, i - 1).top;
        if (step > 0.5 * height && step < 2 * height) steps[count++] = step;
    }
    qsort(steps, count, sizeof *steps, compare_numbers);
    const double low = count > 0 ? steps[count / 4] : 1.2 * height;
    g_free(steps);
    return low;
}

// ---- paragraphs ----------------------------------------------------------------------------------

static gboolean ends_sentence(const line *l)
{
    size_t n = l->size;
    while (n > 0 && strchr(" \t\r\"')", l->text[n - 1])) n--;
    return n > 0 && strchr(".!?:;", l->text[n - 1]) != NULL;
}

// Bullets, among them those of symbol fonts, which have no meaning elsewhere.
static gboolean begins_item(const line *l)
{
    static const char *const bullets[] = {"\u2022", "\u25e6", "\u25aa", "\u2013 ", "- ", "* "};
    for (size_t i = 0; i < G_N_ELEMENTS(bullets); i++)
        if (g_str_has_prefix(l->text, bullets[i])) return TRUE;
    return g_unichar_type(g_utf8_get_char(l->text)) == G_UNICODE_PRIVATE_USE;
}

// Does a paragraph begin with this line? step: from line to line inside of one.
static gboolean begins_paragraph(const line *before, const line *l, double step)
{
    const double height = MAX(before->height, 1);
    const gboolean higher = l->top < before->top - height; // the next column
    if (l->height > before->height * 1.15 || l->height < before->height * 0.85) return TRUE;
    if (!higher && l->top - before->top > 1.25 * step) return TRUE;
    if (begins_item(l)) return TRUE;
    if (before->right + (l->word - l->left) + 0.5 * height < before->column) return TRUE;
    return ends_sentence(before) && (higher || l->left > before->left + 0.8 * height);
}

// "trans-" and "lation" are one word, "well-" and "Known" are not.
static gboolean is_hyphenated(const GString *text, const line *next)
{
    if (text->len < 2 || text->str[text->len - 1] != '-') return FALSE;
    return g_ascii_isalpha(text->str[text->len - 2]) && g_unichar_islower(g_utf8_get_char(next->text));
}

static void add_line(GString *text, const line *l)
{
    if (is_hyphenated(text, l))
        g_string_truncate(text, text->len - 1);
    else if (text->len > 0)
        g_string_append_c(text, ' ');
    char *trimmed = g_strstrip(g_strndup(l->text, l->size));
    g_string_append(text, trimmed);
    g_free(trimmed);
}

static int put_text(dgm_pdf_put put, void *cookie, const char *before, const GString *text, const char *behind)
{
    GString *out = g_string_new(before);
    for (const char *c = text->str; *c; c++) {
        if (*c == '&')
            g_string_append(out, "&amp;");
        else if (*c == '<')
            g_string_append(out, "&lt;");
        else if (*c == '>')
            g_string_append(out, "&gt;");
        else if ((unsigned char)*c >= ' ')
            g_string_append_c(out, *c);
    }
    g_string_append(out, behind);
    const int stop = put(cookie, out->str, out->len);
    g_string_free(out, TRUE);
    return stop;
}

static int put_paragraph(dgm_pdf_put put, void *cookie, GString *text, gboolean large)
{
    const int stop = text->len == 0 ? 0
                     : large        ? put_text(put, cookie, "<h2>", text, "</h2>\n")
                                    : put_text(put, cookie, "<p>", text, "</p>\n");
    g_string_truncate(text, 0);
    return stop;
}

// ---- pages ---------------------------------------------------------------------------------------

static int put_lines(const GArray *lines, dgm_pdf_put put, void *cookie)
{
    const double usual = usual_height(lines), step = usual_step(lines, usual);
    GString *text = g_string_new("");
    gboolean large = FALSE;
    int stop = 0;
    for (guint i = 0; i < lines->len && !stop; i++) {
        const line *l = &g_array_index(lines, line, i);
        if (i == 0 || begins_paragraph(l - 1, l, step)) {
            stop = put_paragraph(put, cookie, text, large);
            large = l->height > usual * 1.15;
        }
        add_line(text, l);
    }
    if (!stop) stop = put_paragraph(put, cookie, text, large);
    g_string_free(text, TRUE);
    return stop;
}

// *seen: whether the page has text.
static int put_page(PopplerPage *page, dgm_pdf_put put, void *cookie, gboolean *seen)
{
    PopplerRectangle *places = NULL;
    guint count = 0;
    char *text = poppler_page_get_text(page);
    int stop = 0;
    if (text && poppler_page_get_text_layout(page, &places, &count)) {
        GArray *lines = lines_of(text, places, count);
        find_columns(lines);
        *seen = *seen || lines->len > 0;
        stop = put_lines(lines, put, cookie);
        g_array_free(lines, TRUE);
    }
    g_free(places);
    g_free(text);
    return stop;
}

static int put_document(PopplerDocument *pdf, dgm_pdf_put put, void *cookie)
{
    static const char begin[] = "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n";
    static const char end[] = "</body>\n</html>\n";
    char *title = poppler_document_get_title(pdf);
    GString *name = g_string_new(title ? title : "");
    gboolean seen = FALSE;
    int stop = put(cookie, begin, strlen(begin));
    if (!stop) stop = put_text(put, cookie, "<title>", name, "</title>\n</head>\n<body>\n");
    for (int i = 0; i < poppler_document_get_n_pages(pdf) && !stop; i++) {
        PopplerPage *page = poppler_document_get_page(pdf, i);
        if (!page) continue;
        stop = put_page(page, put, cookie, &seen);
        g_object_unref(page);
    }
    if (!stop) stop = put(cookie, end, strlen(end));
    g_string_free(name, TRUE);
    g_free(title);
    return stop ? DGM_PDF_STOPPED : seen ? DGM_PDF_OK : DGM_PDF_EMPTY;
}

__attribute__((visibility("default"))) int dragoman_pdf_html(const void *data, size_t size, dgm_pdf_put put,
                                                             void *cookie)
{
    GError *error = NULL;
    GBytes *bytes = g_bytes_new_static(data, size);
    PopplerDocument *pdf = poppler_document_new_from_bytes(bytes, NULL, &error);
    int result = DGM_PDF_DAMAGED;
    if (pdf) {
        result = put_document(pdf, put, cookie);
        g_object_unref(pdf);
    } else if (g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED)) {
        result = DGM_PDF_LOCKED;
    }
    g_clear_error(&error);
    g_bytes_unref(bytes);
    return result;
}

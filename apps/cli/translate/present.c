// SPDX-License-Identifier: MIT
// How a translated line is printed; see present.h.
#include "translate/present.h"

#include <string.h>

static void put_links(line_writer *w, const dgm_translation *x)
{
    for (size_t i = 0; i < x->link_count; i++)
        writer_format(w, "%s%d-%d", i ? " " : "", (int)x->links[i].source, (int)x->links[i].target);
}

static void put_plain(const presentation *p, line_writer *w, uint64_t number,
                      const dgm_translation *x, bool crlf)
{
    if (p->nbest > 1) writer_format(w, "%llu ||| ", (unsigned long long)number);
    writer_put(w, x->text, x->text_size);
    if (p->alignment) {
        writer_text(w, " ||| ");
        put_links(w, x);
    }
    if (p->word_scores) {
        writer_text(w, " ||| WordScores=");
        for (size_t i = 0; i < x->token_count; i++)
            writer_format(w, " %.4f", (double)x->token_scores[i]);
    }
    const char *mark = x->approximate ? "~" : "";
    if (p->nbest > 1) writer_format(w, " ||| F0= %s%.4f", mark, (double)x->sum);
    if (p->nbest > 1 || p->scores) writer_format(w, " ||| %s%.4f", mark, (double)x->score);
    writer_text(w, crlf ? "\r\n" : "\n");
}

static void put_translation_json(const presentation *p, line_writer *w, const dgm_translation *x)
{
    writer_text(w, "\"text\":");
    writer_json(w, x->text, x->text_size);
    writer_text(w, ",\"score\":");
    writer_real(w, (double)x->score);
    writer_text(w, ",\"sum\":");
    writer_real(w, (double)x->sum);
    if (x->approximate) writer_text(w, ",\"approximate\":true");
    if (p->word_scores) {
        writer_text(w, ",\"tokens\":[");
        for (size_t i = 0; i < x->token_count; i++) {
            if (i) writer_put(w, ",", 1);
            writer_json(w, x->tokens[i], strlen(x->tokens[i]));
        }
        writer_text(w, "],\"token_scores\":[");
        for (size_t i = 0; i < x->token_count; i++) {
            if (i) writer_put(w, ",", 1);
            writer_real(w, (double)x->token_scores[i]);
        }
        writer_text(w, "]");
    }
    if (p->alignment) {
        writer_text(w, ",\"alignment\":[");
        for (size_t i = 0; i < x->link_count; i++)
            writer_format(w, "%s[%d,%d]", i ? "," : "", (int)x->links[i].source,
                          (int)x->links[i].target);
        writer_text(w, "]");
    }
}

static void put_json(const presentation *p, line_writer *w, uint64_t number, const dgm_result *r)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } flags[] = {{DGM_LINE_REPAIRED, "repaired"},
                 {DGM_LINE_SPLIT, "split"},
                 {DGM_LINE_CROPPED, "cropped"},
                 {DGM_LINE_TRUNCATED, "truncated"},
                 {DGM_LINE_COPIED, "copied"},
                 {DGM_LINE_REPEATED, "repeated"},
                 {DGM_LINE_MENDED, "mended"}};
    writer_format(w, "{\"line\":%llu,", (unsigned long long)number);
    if (r->status != DGM_OK) {
        writer_text(w, "\"text\":\"\",\"error\":");
        writer_json(w, r->message, strlen(r->message));
    } else {
        put_translation_json(p, w, r->translations[0]);
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (r->flags & flags[i].flag) writer_format(w, ",\"%s\":true", flags[i].name);
    if (r->language) writer_format(w, ",\"language\":\"%s\"", r->language);
    if (r->notice) {
        writer_text(w, ",\"notice\":");
        writer_json(w, r->notice, strlen(r->notice));
    }
    if (r->status == DGM_OK && p->nbest > 1) {
        writer_text(w, ",\"nbest\":[");
        for (size_t k = 0; k < r->count; k++) {
            writer_text(w, k ? ",{" : "{");
            put_translation_json(p, w, r->translations[k]);
            writer_text(w, "}");
        }
        writer_text(w, "]");
    }
    writer_text(w, "}\n");
}

void present_result(const presentation *p, line_writer *w, uint64_t number, const dgm_result *r, bool crlf)
{
    static const dgm_translation empty = {.text = ""};
    if (p->json) {
        put_json(p, w, number, r);
        return;
    }
    if (r->count == 0) put_plain(p, w, number, &empty, crlf);
    for (size_t k = 0; k < r->count; k++) put_plain(p, w, number, r->translations[k], crlf);
}

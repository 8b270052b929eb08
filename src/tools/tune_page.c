// SPDX-License-Identifier: MIT
// A tuning report as a picture (SVG) and as one page of HTML that needs nothing else: points with their intervals, the
// budget, the front; the page shows a point's settings and translations that differ when somebody points at it.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/tune_private.h"

enum { WIDTH = 860, HEIGHT = 520, LEFT = 70, RIGHT = 20, TOP = 40, BOTTOM = 60 };

typedef struct frame {
    double low_x, high_x; // logarithms of the gain
    double low_y, high_y; // loss; high is at the bottom
} frame;

static void put_escaped(dgm_writer *w, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            dgm_write_text(w, "&lt;");
        else if (*text == '>')
            dgm_write_text(w, "&gt;");
        else if (*text == '&')
            dgm_write_text(w, "&amp;");
        else if (*text == '"')
            dgm_write_text(w, "&quot;");
        else
            dgm_write_bytes(w, text, 1);
    }
}

// Is it drawn? Variants lie where the chosen one does, and what was seen on few lines says little of the loss.
static bool is_drawn(const dgm_tune_point *p)
{
    const bool variant = (p->flags & DGM_TUNE_TIMED) && !(p->flags & DGM_TUNE_CHOSEN);
    return !(p->flags & DGM_TUNE_UNTRIED) && !variant && p->gain > 0;
}

static frame frame_of(const dgm_tune_report *r)
{
    frame f = {0, 0, 0, 0};
    const double far = fmax(4 * r->budget, 1);
    for (size_t i = 0; i < r->count; i++) {
        const dgm_tune_point *p = r->points[i];
        if (!is_drawn(p)) continue;
        f.low_x = fmin(f.low_x, log(p->gain));
        f.high_x = fmax(f.high_x, log(p->gain));
        f.low_y = fmin(f.low_y, fmax(p->flags & DGM_TUNE_WHOLE ? p->loss_low : p->loss, -far));
        f.high_y = fmax(f.high_y, fmin(p->loss, far));
    }
    f.high_y = fmax(f.high_y, 1.5 * r->budget);
    const double wide = fmax(f.high_x - f.low_x, 0.1), tall = fmax(f.high_y - f.low_y, 0.1);
    return (frame){f.low_x - 0.05 * wide, f.high_x + 0.05 * wide, f.low_y - 0.08 * tall, f.high_y + 0.08 * tall};
}

static double at_x(const frame *f, double gain)
{
    return LEFT + (log(gain) - f->low_x) / (f->high_x - f->low_x) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const frame *f, double loss)
{
    return TOP + (loss - f->low_y) / (f->high_y - f->low_y) * (HEIGHT - TOP - BOTTOM);
}

static double step_of(double range)
{
    const double power = pow(10, floor(log10(range / 4)));
    const double parts = range / 4 / power;
    return power * (parts < 2 ? 2 : parts < 5 ? 5 : 10);
}

static void put_axes(const dgm_tune_report *r, const frame *f, dgm_writer *w)
{
    static const double gains[] = {0.25, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200};
    const int bottom = HEIGHT - BOTTOM;
    for (size_t i = 0; i < sizeof gains / sizeof gains[0]; i++) {
        const double x = at_x(f, gains[i]);
        if (x < LEFT || x > WIDTH - RIGHT) continue;
        dgm_write_format(w, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>", x, TOP, x, bottom);
        dgm_write_format(w, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x, bottom + 18, gains[i]);
    }
    const double step = step_of(f->high_y - f->low_y);
    for (double v = ceil(f->low_y / step) * step; v <= f->high_y; v += step) {
        const double y = at_y(f, v);
        dgm_write_format(w, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", LEFT, y,
                         WIDTH - RIGHT, y);
        dgm_write_format(w, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2g</text>\n", LEFT - 8, y + 4,
                         fabs(v) < 1e-9 ? 0 : -v);
    }
    const double y = at_y(f, r->budget);
    dgm_write_format(w, "<line class=\"budget\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", LEFT, y, WIDTH - RIGHT,
                     y);
    dgm_write_format(w, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" class=\"red\">budget %g</text>\n",
                     WIDTH - RIGHT - 4, y - 5, r->budget);
    dgm_write_format(
        w, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">times as fast as the most careful settings (%s)</text>\n",
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18, r->latency ? "one line at a time" : "lines a second");
    dgm_write_format(
        w,
        "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">%s%s against the most careful "
        "settings</text>\n",
        (TOP + bottom) / 2, r->agreement ? "agreement in " : "", r->metric);
}

static void put_mark(const dgm_tune_report *r, const frame *f, size_t index, dgm_writer *w)
{
    const dgm_tune_point *p = r->points[index];
    const double x = at_x(f, p->gain), top = TOP, bottom = HEIGHT - BOTTOM;
    const double y = fmin(fmax(at_y(f, p->loss), top), bottom);
    const bool whole = p->flags & DGM_TUNE_WHOLE, chosen = p->flags & DGM_TUNE_CHOSEN;
    const char *kind = chosen                        ? "chosen"
                       : p->flags & DGM_TUNE_CAREFUL ? "careful"
                       : !whole                      ? "part"
                       : p->flags & DGM_TUNE_FRONT   ? "front"
                                                     : "whole";
    dgm_write_format(w, "<g class=\"p %s\" data-i=\"%zu\">", kind, index);
    if (whole) {
        const double low = fmin(fmax(at_y(f, p->loss_low), top), bottom),
                     high = fmin(fmax(at_y(f, p->loss_high), top), bottom);
        const double spread = p->speed > 0 ? p->gain / p->speed : 0;
        const double left = r->latency ? p->gain * p->speed / p->speed_high : spread * p->speed_low;
        const double right = r->latency ? p->gain * p->speed / p->speed_low : spread * p->speed_high;
        dgm_write_format(w, "<path d=\"M%.1f %.1fV%.1f", x, low, high);
        if (left > 0 && right > 0) dgm_write_format(w, "M%.1f %.1fH%.1f", at_x(f, left), y, at_x(f, right));
        dgm_write_text(w, "\"/>");
    }
    dgm_write_format(w, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/><title>", x, y, chosen ? "7" : whole ? "4.5" : "3");
    if (r->model_count > 1) {
        put_escaped(w, r->models[p->model]);
        dgm_write_text(w, " ");
    }
    put_escaped(w, p->options);
    dgm_write_format(w, "&#10;%.2f times as fast, loss %.2f (%.2f to %.2f), %llu lines</title></g>\n", p->gain, p->loss,
                     p->loss_low, p->loss_high, (unsigned long long)p->lines);
}

// A line through the front, from slow to fast: points come with the fastest of equally many lines first.
static void put_front(const dgm_tune_report *r, const frame *f, dgm_writer *w)
{
    bool begun = false;
    for (size_t i = r->count; i-- > 0;) {
        const dgm_tune_point *p = r->points[i];
        if (!(p->flags & DGM_TUNE_FRONT) || (p->flags & DGM_TUNE_CHOSEN && p->flags & DGM_TUNE_TIMED)) continue;
        dgm_write_text(w, begun ? "L" : "<path class=\"line\" d=\"M");
        dgm_write_format(w, "%.1f %.1f", at_x(f, p->gain), at_y(f, p->loss));
        begun = true;
    }
    if (begun) dgm_write_text(w, "\"/>\n");
}

void dgm_tune_put_svg(const dgm_tune_report *r, dgm_writer *w)
{
    const frame f = frame_of(r);
    dgm_write_format(
        w,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
        "font-size=\"13\">\n<style>.grid{stroke:#ddd}.budget{stroke:#c33;stroke-dasharray:6 4}.red{fill:#c33}"
        ".p path{stroke:#999;fill:none}.p circle{fill:#9ab;stroke:#567}.part circle{fill:#fff;stroke:#bbb}"
        ".front circle{fill:#38c}.careful circle{fill:#333}.chosen circle{fill:#2a4;stroke:#142}"
        ".chosen path{stroke:#2a4}.line{fill:none;stroke:#38c;stroke-opacity:.5}</style>\n",
        WIDTH, HEIGHT);
    dgm_write_format(w, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"22\" font-size=\"15\">",
                     WIDTH, HEIGHT, LEFT);
    put_escaped(w, r->input);
    dgm_write_format(w, ", %llu lines: %zu settings, chosen %.2f times as fast, %.2f %s lost</text>\n",
                     (unsigned long long)r->lines, r->count, r->chosen->gain, r->chosen->loss, r->metric);
    put_axes(r, &f, w);
    put_front(r, &f, w);
    for (int pass = 0; pass < 2; pass++) // those of few lines below the others
        for (size_t i = r->count; i-- > 0;)
            if (is_drawn(r->points[i]) && ((r->points[i]->flags & DGM_TUNE_WHOLE) != 0) == (pass == 1))
                put_mark(r, &f, i, w);
    dgm_write_text(w, "</svg>\n");
}

// ---- page ----------------------------------------------------------------------------------------

static void put_details(const dgm_tune_report *r, size_t index, dgm_writer *w)
{
    const dgm_tune_point *p = r->points[index];
    dgm_write_format(w, "<div class=\"d\" id=\"d%zu\"><p><code>", index);
    if (r->model_count > 1) {
        put_escaped(w, r->models[p->model]);
        dgm_write_text(w, " ");
    }
    put_escaped(w, p->options);
    dgm_write_format(
        w,
        "</code><br>%s; %.2f times as fast, %.1f %s (%.1f to %.1f); loss %.2f (%.2f to %.2f), within the budget in "
        "%.0f %% of the samples; %.1f %% of %llu lines as by the most careful settings; %.0f MiB</p>",
        p->state, p->gain, p->speed, r->latency ? "ms a line" : "lines/s", p->speed_low, p->speed_high, p->loss,
        p->loss_low, p->loss_high, 100 * p->sure, 100 * p->same, (unsigned long long)p->lines,
        (double)p->bytes / 1048576);
    for (size_t i = 0; i < p->sample_count; i++) {
        dgm_write_format(w, "<dl><dt>line %llu</dt><dd class=\"s\">", (unsigned long long)p->samples[i]->line);
        put_escaped(w, p->samples[i]->source);
        dgm_write_text(w, "</dd><dt>careful</dt><dd>");
        put_escaped(w, p->samples[i]->careful);
        dgm_write_text(w, "</dd><dt>here</dt><dd>");
        put_escaped(w, p->samples[i]->text);
        dgm_write_text(w, "</dd></dl>");
    }
    dgm_write_text(w, "</div>\n");
}

static void put_rows(const dgm_tune_report *r, dgm_writer *w)
{
    dgm_write_format(
        w, "<table><thead><tr><th>faster<th>%s<th>loss<th>sure<th>lines<th>state<th>settings</tr></thead><tbody>\n",
        r->latency ? "ms a line" : "lines/s");
    for (size_t i = 0; i < r->count; i++) {
        const dgm_tune_point *p = r->points[i];
        const char *kind = p->flags & DGM_TUNE_CHOSEN ? "chosen" : p->flags & DGM_TUNE_FRONT ? "front" : "";
        dgm_write_format(w, "<tr data-i=\"%zu\" class=\"%s\">", i, kind);
        if (p->flags & DGM_TUNE_UNTRIED)
            dgm_write_text(w, "<td><td><td><td><td>");
        else
            dgm_write_format(w, "<td>%.2f<td>%.1f<td>%.2f (%.2f to %.2f)<td>%.0f %%<td>%llu", p->gain, p->speed,
                             p->loss, p->loss_low, p->loss_high, 100 * p->sure, (unsigned long long)p->lines);
        dgm_write_format(w, "<td>%s<td><code>", p->state);
        if (r->model_count > 1) {
            put_escaped(w, r->models[p->model]);
            dgm_write_text(w, " ");
        }
        put_escaped(w, p->options);
        dgm_write_text(w, "</code></tr>\n");
    }
    dgm_write_text(w, "</tbody></table>\n");
}

void dgm_tune_put_page(const dgm_tune_report *r, dgm_writer *w)
{
    dgm_write_text(w, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>dragoman tune: ");
    put_escaped(w, r->input);
    dgm_write_text(
        w, "</title>\n<style>body{font:15px sans-serif;margin:2em auto;max-width:62em;padding:0 1em}"
           "table{border-collapse:collapse;font-size:13px}td,th{padding:2px 8px;text-align:left;"
           "border-bottom:1px solid #ddd}tr.chosen{background:#dfd}tr.front{background:#def}tr:hover{background:#eee}"
           ".d{display:none}.d.on{display:block}#box{min-height:13em;border:1px solid #ccc;padding:0 1em;"
           "font-size:14px}dl{display:grid;grid-template-columns:5em 1fr;margin:.4em 0}dd{margin:0}dd.s{color:#666}"
           "pre{white-space:pre-wrap;background:#f4f4f4;padding:.7em}g.p{cursor:pointer}</style></head><body>\n"
           "<h1>Settings for ");
    put_escaped(w, r->input);
    dgm_write_text(w, "</h1>\n<pre>");
    put_escaped(w, r->command);
    dgm_write_format(
        w,
        "</pre>\n<p>%.2f times as fast as the most careful settings; loss %.2f %s (95 %%: %.2f to %.2f) on %llu "
        "lines, budget %g. %s Speeds: %s. Noise of a single measurement: %.1f %%.</p>\n",
        r->chosen->gain, r->chosen->loss, r->metric, r->chosen->loss_low, r->chosen->loss_high,
        (unsigned long long)r->chosen->lines, r->budget,
        r->agreement ? "There are no references: quality is agreement with the most careful settings." : "", r->clock,
        100 * r->noise);
    dgm_tune_put_svg(r, w);
    dgm_write_text(
        w,
        "<div id=\"box\"><p id=\"hint\">Point at something: its settings, and lines that come out differently.</p>\n");
    for (size_t i = 0; i < r->count; i++)
        if (!(r->points[i]->flags & DGM_TUNE_UNTRIED)) put_details(r, i, w);
    dgm_write_text(w, "</div>\n<h2>Why</h2>\n<pre>");
    dgm_writer why = {0};
    dgm_tune_put_explain(r, &why);
    dgm_write_u8(&why, 0);
    if (!why.failed) put_escaped(w, (const char *)why.data);
    dgm_writer_free(&why);
    dgm_write_text(w, "</pre>\n<h2>Everything</h2>\n");
    put_rows(r, w);
    for (size_t i = 0; i < r->note_count; i++) {
        dgm_write_text(w, "<p>");
        put_escaped(w, r->notes[i]);
        dgm_write_text(w, "</p>\n");
    }
    dgm_write_text(w,
                   "<script>for(const e of document.querySelectorAll('[data-i]'))e.addEventListener('mouseover',()=>{"
                   "for(const d of document.querySelectorAll('.d.on'))d.classList.remove('on');"
                   "const d=document.getElementById('d'+e.dataset.i);if(d){d.classList.add('on');"
                   "document.getElementById('hint').style.display='none'}})</script>\n</body></html>\n");
}

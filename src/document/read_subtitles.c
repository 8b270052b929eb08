// SPDX-License-Identifier: MIT
// Subtitles: SubRip (srt) and WebVTT (vtt). Numbers and times stay; the lines of a cue are one text, which is wrapped
// again, but a line that begins with a dash is somebody else's.
#include <string.h>

#include "document/document.h"
#include "document/wrap.h"

typedef struct line {
    size_t begin, end, next;
} line;

static line line_at(dgm_text t, size_t pos)
{
    const char *stop = memchr(t.data + pos, '\n', t.size - pos);
    line l = {.begin = pos, .end = stop ? (size_t)(stop - t.data) : t.size};
    l.next = stop ? l.end + 1 : t.size;
    if (l.end > l.begin && t.data[l.end - 1] == '\r') l.end--;
    return l;
}

static bool is_empty(dgm_text t, line l)
{
    for (size_t i = l.begin; i < l.end; i++)
        if (t.data[i] != ' ' && t.data[i] != '\t') return false;
    return true;
}

static bool begins(dgm_text t, line l, const char *with)
{
    const size_t n = strlen(with);
    return l.end - l.begin >= n && memcmp(t.data + l.begin, with, n) == 0;
}

// ---- times ----------------------------------------------------------------------------------------

// "00:00:01,000", in WebVTT "01.000" behind minutes, hours if need be. Returns where it ends, 0: it is none.
static size_t time_at(dgm_text t, size_t pos, size_t end, bool vtt)
{
    int groups = 0, digits = 0;
    for (size_t i = pos; i <= end; i++) {
        const char c = i < end ? t.data[i] : ' ';
        if (c >= '0' && c <= '9') {
            digits++;
        } else if (c == ':' && digits >= 1 && groups < 2) {
            groups++;
            digits = 0;
        } else if ((c == ',' || c == '.') && digits == 2 && groups >= (vtt ? 1 : 2)) {
            size_t k = i + 1;
            while (k < end && t.data[k] >= '0' && t.data[k] <= '9') k++;
            return k > i + 1 && k <= i + 4 ? k : 0;
        } else {
            return 0;
        }
    }
    return 0;
}

static bool is_timing(dgm_text t, line l, bool vtt)
{
    size_t at = l.begin;
    while (at < l.end && t.data[at] == ' ') at++;
    at = time_at(t, at, l.end, vtt);
    if (!at) return false;
    while (at < l.end && t.data[at] == ' ') at++;
    if (l.end - at < 3 || memcmp(t.data + at, "-->", 3) != 0) return false;
    for (at += 3; at < l.end && t.data[at] == ' ';) at++;
    return time_at(t, at, l.end, vtt) != 0;
}

// ---- text -----------------------------------------------------------------------------------------

// The text of one speaker in lines of about the same length.
static void wrap(dgm_text text, size_t width, const char *stop, dgm_writer *out)
{
    const size_t columns = dgm_wrap_columns(text), lines = columns ? (columns + width - 1) / width : 1;
    size_t even = columns / lines + 4; // a word is not cut: a little more than its share
    if (even > width || lines == 1) even = width;
    for (size_t at = 0; at < text.size;) {
        size_t next = 0;
        const size_t end = dgm_wrap_line(text, at, even, &next);
        if (at) dgm_write_text(out, stop);
        dgm_write_bytes(out, text.data + at, end - at);
        at = next;
    }
}

static bool has_crlf(const dgm_document *d)
{
    const dgm_text t = dgm_document_source(d, 0);
    const char *stop = memchr(t.data, '\n', t.size);
    return stop && stop > t.data && stop[-1] == '\r';
}

// Line breaks in it are those between speakers.
static dgm_status write_cue(const dgm_document *d, size_t index, dgm_text encoded, dgm_writer *out, dgm_error *err)
{
    const size_t width = (size_t)(uintptr_t)dgm_segment_user(d, index);
    const char *stop = has_crlf(d) ? "\r\n" : "\n";
    (void)err;
    for (size_t at = 0; at <= encoded.size;) {
        const char *end = memchr(encoded.data + at, '\n', encoded.size - at);
        const size_t to = end ? (size_t)(end - encoded.data) : encoded.size;
        const size_t own = to > at && encoded.data[to - 1] == '\r' ? to - 1 : to;
        if (at) dgm_write_text(out, stop);
        wrap((dgm_text){encoded.data + at, own - at}, width, stop, out);
        at = to + 1;
    }
    return DGM_OK;
}

typedef struct cues {
    dgm_document *d;
    dgm_text t;
    bool vtt;
    size_t width;
} cues;

// Size of the dash that begins what somebody else says, with the blank behind it.
static size_t dash_at(dgm_text t, size_t pos, size_t end)
{
    if (pos >= end || t.data[pos] != '-') return 0;
    return pos + 1 < end && t.data[pos + 1] == ' ' ? 2 : 1;
}

// Lines first to last, as parts: a space between two of them, or a break before a dash.
static dgm_status add_cue(const cues *c, size_t begin, size_t end, dgm_error *err)
{
    const dgm_segment_spec spec = {.begin = begin,
                                   .end = end,
                                   .flags = DGM_SEGMENT_TAGS,
                                   .write = write_cue,
                                   .escape = c->vtt ? &dgm_escape_html : &dgm_escape_none,
                                   .user = (void *)(uintptr_t)c->width};
    size_t from = begin + dash_at(c->t, begin, end);
    DGM_TRY(dgm_segment_begin(c->d, &spec, NULL, err));
    if (from > begin) DGM_TRY(dgm_segment_break(c->d, (dgm_text){c->t.data + begin, from - begin}, err));
    for (line l = line_at(c->t, begin); l.next < end;) {
        const line below = line_at(c->t, l.next);
        const size_t dash = dash_at(c->t, below.begin, end);
        if (dash) {
            DGM_TRY(dgm_segment_raw(c->d, (dgm_text){c->t.data + from, l.end - from}, err));
            DGM_TRY(dgm_segment_break(c->d, dgm_text_of("\n"), err));
            DGM_TRY(dgm_segment_break(c->d, (dgm_text){c->t.data + below.begin, dash}, err));
            from = below.begin + dash;
        }
        l = below;
    }
    DGM_TRY(dgm_segment_raw(c->d, (dgm_text){c->t.data + from, end - from}, err));
    return dgm_segment_end(c->d, err);
}

// The text behind a line with times; returns where the next block begins.
static dgm_status read_cue(const cues *c, size_t pos, size_t *next, dgm_error *err)
{
    size_t begin = pos, end = pos;
    while (pos < c->t.size) {
        const line l = line_at(c->t, pos);
        if (is_empty(c->t, l)) break;
        end = l.end;
        pos = l.next;
    }
    *next = pos;
    return end > begin ? add_cue(c, begin, end, err) : DGM_OK;
}

// The longest line of text in the file, at least 32 columns.
static size_t usual_width(const cues *c)
{
    size_t width = 32;
    bool text = false;
    for (size_t pos = 0; pos < c->t.size;) {
        const line l = line_at(c->t, pos);
        const size_t columns = dgm_wrap_columns((dgm_text){c->t.data + l.begin, l.end - l.begin});
        if (is_empty(c->t, l))
            text = false;
        else if (is_timing(c->t, l, c->vtt))
            text = true;
        else if (text && columns > width)
            width = columns;
        pos = l.next;
    }
    return width;
}

static dgm_status damaged(const cues *c, line l, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "line %zu: a line such as '%s' is expected",
                    dgm_source_line(c->d, 0, l.begin),
                    c->vtt ? "00:01.000 --> 00:04.000" : "00:00:01,000 --> 00:00:04,000");
}

// Blocks of WebVTT that are no cues.
static bool is_other_block(dgm_text t, line l)
{
    return begins(t, l, "NOTE") || begins(t, l, "STYLE") || begins(t, l, "REGION");
}

static size_t skip_block(dgm_text t, size_t pos)
{
    while (pos < t.size && !is_empty(t, line_at(t, pos))) pos = line_at(t, pos).next;
    return pos;
}

static dgm_status read_cues(cues *c, size_t pos, dgm_error *err)
{
    const int32_t asked = dgm_document_asked(c->d)->width;
    c->width = asked > 0 ? (size_t)asked : usual_width(c);
    while (pos < c->t.size) {
        line l = line_at(c->t, pos);
        if (is_empty(c->t, l)) {
            pos = l.next;
            continue;
        }
        if (c->vtt && is_other_block(c->t, l)) {
            pos = skip_block(c->t, pos);
            continue;
        }
        if (!is_timing(c->t, l, c->vtt)) { // the cue's number or name
            if (l.next >= c->t.size) return damaged(c, l, err);
            l = line_at(c->t, l.next);
        }
        if (!is_timing(c->t, l, c->vtt)) return damaged(c, l, err);
        DGM_TRY(read_cue(c, l.next, &pos, err));
    }
    return DGM_OK;
}

static dgm_status read_srt(dgm_document *d, dgm_error *err)
{
    cues c = {.d = d, .t = dgm_document_source(d, 0)};
    return read_cues(&c, 0, err);
}

static dgm_status read_vtt(dgm_document *d, dgm_error *err)
{
    cues c = {.d = d, .t = dgm_document_source(d, 0), .vtt = true};
    const line first = line_at(c.t, 0);
    DGM_FAIL_IF(!begins(c.t, first, "WEBVTT"), err, DGM_ERR_FORMAT, "the first line is not 'WEBVTT'");
    return read_cues(&c, skip_block(c.t, first.next), err);
}

static bool sniff_vtt(dgm_text data)
{
    return data.size > 6 && memcmp(data.data, "WEBVTT", 6) == 0;
}

const dgm_document_reader dgm_srt_reader = {
    .format = DGM_FORMAT("srt", "srt", "subtitles (SubRip); times stay, lines are wrapped again"),
    .read = read_srt,
};

const dgm_document_reader dgm_vtt_reader = {
    .format = DGM_FORMAT("vtt", "vtt", "subtitles (WebVTT); times stay, lines are wrapped again"),
    .sniff = sniff_vtt,
    .read = read_vtt,
};

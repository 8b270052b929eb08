// SPDX-License-Identifier: MIT
// How kinds of files are read: a row in a table, and the functions that a reader calls.
//
// A reader gets the whole file and says which byte ranges of it are text: segments. The document that is written
// is the file with these ranges replaced, and nothing else. Within a segment the reader says what is plain text
// (decoded: "&amp;" is "&") and what are inline parts with their exact bytes:
//
//     <p>Press <b>Enter</b> &amp; wait<br>or leave.</p>
//        [------------- range -------------]
//        text "Press "  open "<b>"  text "Enter"  close "</b>"  text " & wait"  break "<br>"  text "or leave."
//
// Everything between is done once for all of them: segments become lines ("Press Enter & wait", "or leave."),
// translations come back, tags find their words (markup.c), placeholders are checked (placeholders.c), text is
// written in the segment's escaping (escape.c), ranges are spliced in (splice.c).
//
// Files that are packed have several sources: the reader adds the members that have text, segments name the
// source they lie in, and the reader's `write` packs what dgm_document_spliced gives for each.
#ifndef DGM_DOCUMENT_DOCUMENT_H
#define DGM_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "dragoman/document.h"

// ---- escaping ---------------------------------------------------------------------------------

// How a format writes text. decode: appends the text that raw bytes stand for; map (NULL: not wanted) gets,
// for every byte of it, the offset in raw of the first byte that it comes from, 4 bytes each in the machine's order;
// encode: the reverse. Malformed escapes are kept as the characters that they are.
typedef struct dgm_escape {
    const char *name;
    dgm_status (*decode)(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err);
    void (*encode)(dgm_text text, dgm_writer *raw); // writer->failed tells
} dgm_escape;

extern const dgm_escape dgm_escape_none;      // bytes are text
extern const dgm_escape dgm_escape_xml;       // &lt; &gt; &amp; &quot; &apos; &#N; text between tags
extern const dgm_escape dgm_escape_attribute; // the same between quotes of either kind
extern const dgm_escape dgm_escape_html;      // and the named entities of HTML
extern const dgm_escape dgm_escape_html_attribute;
extern const dgm_escape dgm_escape_xhtml, dgm_escape_xhtml_attribute; // read as HTML, written as XML
extern const dgm_escape dgm_escape_html_ascii,
    dgm_escape_html_attribute_ascii;           // with numbers for all that is not ASCII
extern const dgm_escape dgm_escape_json;       // between the quotes of a string
extern const dgm_escape dgm_escape_json_ascii; // the same, with \uXXXX for all that is not ASCII
extern const dgm_escape dgm_escape_po;         // \n \t \" \\, what stands between the quotes
extern const dgm_escape dgm_escape_properties; // \uXXXX, continued lines
extern const dgm_escape dgm_escape_properties_ascii;

// ---- a reader ---------------------------------------------------------------------------------

typedef struct dgm_document_reader {
    dgm_document_format format; // DGM_FORMAT below
    // NULL: the name's ending alone tells. Is asked where there is no name, or its ending is unknown.
    bool (*sniff)(dgm_text data);
    bool binary; // it is packed, not UTF-8
    // Reads source 0 and adds segments, in order within each source. DGM_ERR_FORMAT: the file is damaged.
    dgm_status (*read)(dgm_document *d, dgm_error *err);
    // Packs the spliced sources. NULL: source 0, spliced, is the file.
    dgm_status (*write)(const dgm_document *d, dgm_document_sink put, void *cookie, dgm_error *err);
} dgm_document_reader;

#define DGM_FORMAT(name, endings, summary)                                                                             \
    {                                                                                                                  \
        sizeof(dgm_document_format), name, endings, summary                                                            \
    }

// The rows of readers.c, NULL behind the last.
extern const dgm_document_reader *const dgm_document_readers[];

// ---- sources ----------------------------------------------------------------------------------

// Source 0 is the file as it was opened, without a byte order mark. data of an added source is taken over (dgm_free),
// also on failure.
dgm_text dgm_document_source(const dgm_document *d, int source);
int dgm_document_sources(const dgm_document *d);
bool dgm_document_marked(const dgm_document *d); // did it begin with a byte order mark?
dgm_status dgm_document_add_source(dgm_document *d, char *data, size_t size, int *source, dgm_error *err);
// Something of the reader's own, for `write`; freed with the document by `release` (NULL: not).
void dgm_document_set_state(dgm_document *d, void *state, void (*release)(void *state));
void *dgm_document_state(const dgm_document *d);
const dgm_document_options *dgm_document_asked(const dgm_document *d);
// text: constant, or lives as long as the document.
void dgm_document_set_notice(dgm_document *d, const char *text);

// A source with its translated segments in place, appended to out.
dgm_status dgm_document_spliced(const dgm_document *d, int source, dgm_writer *out, dgm_error *err);

// ---- segments ---------------------------------------------------------------------------------

enum {
    // White space and line breaks in text mean something (values of JSON, PO): each line of text is translated by
    // itself, breaks, tabs and indentation stay. Without it every run of white space is one space.
    DGM_SEGMENT_LINES = 1,
    // Plain text may hold tags of its own ("<b>" in a value of JSON): they are found and taken out.
    DGM_SEGMENT_TAGS = 2,
    // It may be a message of ICU, whose branches are translated one by one.
    DGM_SEGMENT_ICU = 4,
    // It may lie inside of a tag's bytes of another segment (alt="..."): wherever that tag is written, its translation
    // is.
    DGM_SEGMENT_NESTED = 8,
    // Its text is what stands in its range: if translations are the same as the text, the range keeps its bytes.
    DGM_SEGMENT_IN_PLACE = 16
};

typedef struct dgm_segment dgm_segment;

// Writes a translated segment in its range: encoded is the whole text, escaped, tags in place. NULL: as it is.
// index: what dgm_segment_begin gave. For what wraps lines or has to quote.
typedef dgm_status (*dgm_segment_writer)(const dgm_document *d, size_t index, dgm_text encoded, dgm_writer *out,
                                         dgm_error *err);

typedef struct dgm_segment_spec {
    int source;
    size_t begin, end; // range that is replaced; empty: something is inserted there. Ranges do not overlap.
    const dgm_escape *escape;
    unsigned flags;
    // Bytes written before and behind a translation ("<target>", "</target>"); NULL: none. Constant, or copied
    // by the reader into a source. Not written where nothing is translated.
    const char *before, *behind;
    dgm_segment_writer write; // NULL: encoded text as it is
    void *user;               // the reader's own, for `write`: dgm_segment_user
} dgm_segment_spec;

// One segment at a time: begin, parts in order, end. White space at its ends stays where it is (so it may be
// part of the range). A segment without a letter is left alone, and so is one that is dropped.
dgm_status dgm_segment_begin(dgm_document *d, const dgm_segment_spec *spec, size_t *index, dgm_error *err);
dgm_status dgm_segment_end(dgm_document *d, dgm_error *err);
// The same for a range whose end was not known before.
dgm_status dgm_segment_end_at(dgm_document *d, size_t end, dgm_error *err);
void dgm_segment_drop(dgm_document *d);
void *dgm_segment_user(const dgm_document *d, size_t index);

typedef struct dgm_range {
    size_t begin, end;
} dgm_range;
dgm_range dgm_segment_range(const dgm_document *d, size_t index);

// Plain text, decoded already.
dgm_status dgm_segment_text(dgm_document *d, dgm_text text, dgm_error *err);
// The same as raw bytes of the file, in the segment's escaping: they are decoded, and with DGM_SEGMENT_TAGS tags in
// them keep their bytes. raw may be of another place than the range (msgid for msgstr).
dgm_status dgm_segment_raw(dgm_document *d, dgm_text raw, dgm_error *err);
// Tags: bytes are what is written for them, borrowed as long as the document lives (bytes of a source, or constant).
// pair: the number that open returned, for its close. They may be anything: "</w:t></w:r><w:r>...<w:t>" too.
// Every tag that is given is written exactly once, open before close, pairs nested as they were.
dgm_status dgm_segment_open(dgm_document *d, dgm_text bytes, int *pair, dgm_error *err);
dgm_status dgm_segment_close(dgm_document *d, dgm_text bytes, int pair, dgm_error *err);
dgm_status dgm_segment_empty(dgm_document *d, dgm_text bytes, dgm_error *err);
// Ends a line, as <br> does: what stands before and behind is translated by itself.
dgm_status dgm_segment_break(dgm_document *d, dgm_text bytes, dgm_error *err);
// Part of a sentence that is not translated (<code>, translate="no"): written once, in its place. shown: what the
// model sees in its stead; NULL: a stand-in.
dgm_status dgm_segment_keep(dgm_document *d, dgm_text bytes, const char *shown, dgm_error *err);

// A range that is replaced by constant bytes when the segment with this index is translated ("#, fuzzy"). Called
// behind dgm_segment_end; nothing happens where the segment was left alone.
dgm_status dgm_document_replace(dgm_document *d, int source, size_t begin, size_t end, dgm_text bytes, size_t segment,
                                dgm_error *err);

// ---- readers that others use --------------------------------------------------------------------

// A part of a source, terminated by nothing.
dgm_text dgm_source_part(const dgm_document *d, int source, size_t begin, size_t end);
// Number of the line that a byte of a source stands in, for messages.
size_t dgm_source_line(const dgm_document *d, int source, size_t at);

// HTML and XHTML in a source (members of an EPUB). xml: it is XHTML, also where it does not say so.
dgm_status dgm_html_read(dgm_document *d, int source, bool xml, dgm_error *err);
dgm_status dgm_txt_read(dgm_document *d, int source, dgm_error *err);
// Tags and comments in plain text, for formats whose text has some: length of the tag at pos, 0: none; *kind and
// its name.
size_t dgm_tag_at(dgm_text text, size_t pos, dgm_tag_kind *kind, dgm_text *name);

#endif

// SPDX-License-Identifier: MIT
// What the files of document/ that serve all readers share.
//
// Segments are made of parts as the reader gives them (segments.c). When a segment is complete its parts become items
// (units.c): glue, which is written as it is, and units, lines to translate with what was taken out of them. Units
// with the same text are one line of the document.
#ifndef DGM_DOCUMENT_DOCUMENT_PRIVATE_H
#define DGM_DOCUMENT_DOCUMENT_PRIVATE_H

#include "base/words.h"
#include "document/document.h"

typedef enum dgm_part_kind {
    DGM_PART_TEXT,
    DGM_PART_OPEN,
    DGM_PART_CLOSE,
    DGM_PART_EMPTY,
    DGM_PART_BREAK,
    DGM_PART_KEEP
} dgm_part_kind;

typedef struct dgm_part {
    dgm_part_kind kind;
    int pair;
    size_t text, text_size; // TEXT, and what KEEP shows: in the pool
    bool shown;             // KEEP: it shows something of its own
    dgm_text bytes;         // all but TEXT
} dgm_part;

// Something of a unit that must be in its translation as it is: a placeholder, or a KEEP.
typedef struct dgm_fixed {
    size_t begin, end; // in the unit's text
    dgm_text bytes;    // KEEP: what is written; data NULL: the text itself, escaped
    bool word;         // letters beside it would make another word of it: a stand-in
} dgm_fixed;

// A tag taken out of a unit: dgm_tag, its bytes and the white space around it.
typedef struct dgm_taken {
    dgm_tag tag;
    dgm_text bytes;         // data NULL: text of the pool, written escaped
    size_t text, text_size; // that text
    bool sign;              // it is no tag
    bool before, behind; // white space stood there
} dgm_taken;

typedef struct dgm_unit {
    size_t text, text_size;    // in the pool: the line
    size_t taken, taken_count; // in d->taken
    size_t fixed, fixed_count; // in d->fixed
    size_t segment;
    size_t line;
    size_t next; // the next unit with the same line, + 1
    bool translated;
} dgm_unit;

// What came back for a line.
typedef struct dgm_answer {
    size_t text, text_size;   // in d->done
    size_t links, link_count; // in d->links
} dgm_answer;

typedef enum dgm_item_kind { DGM_ITEM_TEXT, DGM_ITEM_BYTES, DGM_ITEM_UNIT } dgm_item_kind;

typedef struct dgm_item {
    dgm_item_kind kind;
    size_t at, size; // TEXT: in the pool, written escaped; UNIT: its number
    dgm_text bytes;
} dgm_item;

struct dgm_segment {
    dgm_segment_spec spec;
    size_t item, item_count;
};

typedef struct dgm_replacement {
    int source;
    size_t begin, end, segment;
    dgm_text bytes;
} dgm_replacement;

typedef struct dgm_source {
    char *data;
    size_t size;
} dgm_source;

struct dgm_document {
    const dgm_document_reader *reader;
    dgm_document_options asked; // strings are copies
    dgm_document_info info;
    bool mark; // the file begins with a byte order mark
    dgm_source *sources;
    size_t source_count, source_cap;
    dgm_writer pool, done; // text before and after
    dgm_part *parts;       // of the segment that is being made
    size_t part_count, part_cap;
    int pairs;
    size_t segment_pool; // where its text begins in the pool
    bool making;
    dgm_segment *segments;
    size_t segment_count, segment_cap;
    dgm_item *items;
    size_t item_count, item_cap;
    dgm_unit *units;
    size_t unit_count, unit_cap;
    dgm_taken *taken;
    size_t taken_count, taken_cap;
    dgm_fixed *fixed;
    size_t fixed_count, fixed_cap;
    dgm_replacement *replacements;
    size_t replacement_count, replacement_cap;
    dgm_words lines;     // texts of the lines
    size_t *line_unit;   // [info.lines] a unit of each
    dgm_answer *answers; // [info.lines] once something came back
    size_t line_cap;
    size_t *open_lines; // [info.lines] those that are still asked for; NULL: all. Numbers of answers do not change
    dgm_link *links;
    size_t link_count, link_cap;
    size_t *nested; // segments that may lie inside of tags, as they were added
    size_t nested_count, nested_cap;
    void *state;
    void (*release)(void *state);
};

// Text of the pool.
dgm_text dgm_pool_text(const dgm_document *d, size_t at, size_t size);
dgm_status dgm_pool_add(dgm_document *d, dgm_text text, size_t *at, dgm_error *err);

// ---- units.c --------------------------------------------------------------------------------------

// Items and units of the segment whose parts are complete. *units: how many there are to translate.
dgm_status dgm_units_make(dgm_document *d, size_t *units, dgm_error *err);
// An item that is written as it is, or a line of its own: what icu.c makes.
dgm_status dgm_items_add_text(dgm_document *d, dgm_text text, dgm_error *err);
dgm_status dgm_items_add_line(dgm_document *d, dgm_text text, bool icu, dgm_error *err);

// ---- restore.c ------------------------------------------------------------------------------------

// Bytes of a source or constant ones, with the translations of segments that lie inside of them.
dgm_status dgm_bytes_write(const dgm_document *d, dgm_text bytes, dgm_writer *out, dgm_error *err);
// A unit's translation with all that was taken out of it, escaped: appended to out.
dgm_status dgm_unit_restore(const dgm_document *d, const dgm_unit *u, dgm_text translation, const dgm_link *links,
                            size_t link_count, dgm_writer *out, dgm_error *err);
// The same of its own text, everything where it was.
dgm_status dgm_unit_source(const dgm_document *d, const dgm_unit *u, dgm_writer *out, dgm_error *err);

// ---- placeholders.c -------------------------------------------------------------------------------

#define DGM_TIE "\xc2\xa0" // the space that is no place to break a line: a placeholder between words

// Length of the placeholder at pos, 0: none. icu: "#" is one.
size_t dgm_placeholder_at(dgm_text text, size_t pos, bool icu);
// Length of the signs at pos that are the same in every language (placeholders, too), 0: none. *apart: they say nothing
// about the sentence, and are taken out of it like tags.
size_t dgm_signs_at(dgm_text text, size_t pos, bool *apart);
// Does a text have letters outside of placeholders, so that there is something to translate?
bool dgm_text_speaks(dgm_text text);

// ---- icu.c ----------------------------------------------------------------------------------------

bool dgm_icu_is_message(dgm_text text); // with branches: plural, select
// Adds the items of such a message; *found: it is one.
dgm_status dgm_icu_items(dgm_document *d, dgm_text text, bool *found, dgm_error *err);

#endif

// SPDX-License-Identifier: MIT
// libFuzzer target: documents of every kind in any bytes. The first byte chooses the kind, the second what is asked
// for. What is read is translated by turning the words of its lines round, with links; it must be written, and what
// was not translated must come back to the byte.
// Parsers: src/document/read_html.c src/document/read_md.c src/document/read_json.c src/document/read_po.c
// Parsers: src/document/read_properties.c src/document/read_subtitles.c src/document/read_table.c
// Parsers: src/document/read_xml.c src/document/read_yaml.c src/document/markup.c src/document/escape.c
// Parsers: src/document/icu.c src/document/placeholders.c src/document/restore.c src/document/read_txt.c
// Parsers: src/document/md_text.c src/document/po_format.c src/document/html_names.c src/document/segments.c
// Parsers: src/document/units.c src/document/wrap.c
#include <stdint.h>
#include <stdlib.h>

#include "documents.h"
#include "mutate.h"

#define REQUIRE(cond)                                                                                                \
    do {                                                                                                             \
        if (!(cond)) abort();                                                                                        \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    if (size < 4 || fuzz_below(r, 2)) return LLVMFuzzerMutate(data, size, max);
    if (memcmp(data + 2, "PK", 2) == 0) return 2 + fuzz_zip(data + 2, size - 2, max - 2, r);
    if (data[2] == '{') return 2 + fuzz_json(data + 2, size - 2, max - 2, r);
    return 2 + fuzz_fields(data + 2, size - 2, max - 2, fuzz_below(r, 2) ? "\n" : "<", r);
}
FUZZ_MUTATOR(mutate)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t kinds = 0;
    dgm_document_options o;
    dgm_document *d = NULL;
    text_buffer same = {NULL, 0}, other = {NULL, 0};
    if (size < 2) return 0;
    while (dgm_document_format_at(kinds)) kinds++;
    dgm_document_options_default(&o);
    o.format = dgm_document_format_at(data[0] % kinds)->name;
    o.columns = data[1] & 1 ? "1,2-3" : "a";
    o.all = data[1] & 2 ? 1 : 0;
    o.width = data[1] & 4 ? 20 : 0;
    o.no_memory = data[1] & 8 ? 1 : 0;
    o.ignore_tags = data[1] & 16 ? "a,c" : NULL;
    o.splitting_tags = data[1] & 32 ? "b" : NULL;
    o.inline_tags = data[1] & 64 ? "p, i" : NULL;
    o.no_outline = data[1] & 128 ? 1 : 0;
    const char *text = (const char *)data + 2;
    if (dgm_document_open(&d, text, size - 2, NULL, &o, NULL) == DGM_OK) {
        REQUIRE(dgm_document_write(d, take_bytes, &same, NULL) == DGM_OK);
        const bool packed = size > 5 && (memcmp(text, "PK", 2) == 0 || memcmp(text, "%PDF", 4) == 0);
        REQUIRE(packed || (same.size == size - 2 && (!same.size || memcmp(same.data, text, same.size) == 0)));
        REQUIRE(translate_by_rule(d, RULE_REVERSED, NULL) == DGM_OK);
        REQUIRE(dgm_document_write(d, take_bytes, &other, NULL) == DGM_OK);
    }
    dgm_document_close(&d);
    free(same.data);
    free(other.data);
    return 0;
}

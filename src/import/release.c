// SPDX-License-Identifier: MIT
// What a release of a model says about its text; see release.h.
#include "import/release.h"

#include <string.h>

#include "base/fields.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/textfile.h"

// In the order of dgm_moses_flag_names.
enum { AGGRESSIVE = 1, ESCAPE = 2, PUNCTUATION = 4, UNICODE = 8 };

static const char *find(dgm_text text, const char *what)
{
    const size_t n = strlen(what);
    for (size_t i = 0; i + n <= text.size; i++)
        if (memcmp(text.data + i, what, n) == 0) return text.data + i;
    return NULL;
}

static bool has(dgm_text text, const char *what)
{
    return find(text, what) != NULL;
}

// ---- the script ----------------------------------------------------------------------------------

// Two or three small letters; anything else, such as "$1", says nothing.
static void set_language(char out[8], dgm_text code)
{
    bool small = code.size == 2 || code.size == 3;
    for (size_t i = 0; small && i < code.size; i++) small = code.data[i] >= 'a' && code.data[i] <= 'z';
    if (!small) return;
    memcpy(out, code.data, code.size);
    out[code.size] = 0;
}

// Options of tokenizer.perl, up to the next command.
static void read_options(dgm_release *r, dgm_text line)
{
    r->tokenized = true;
    r->moses |= ESCAPE;
    for (dgm_text word; (word = dgm_field_next(&line)).size > 0 && word.data[0] != '|';) {
        if (dgm_text_is(word, "-a")) r->moses |= AGGRESSIVE;
        if (dgm_text_is(word, "-no-escape")) r->moses &= ~(unsigned)ESCAPE;
        if (dgm_text_is(word, "-l")) set_language(r->language[0], dgm_field_next(&line));
    }
}

void dgm_release_script(dgm_release *r, dgm_text text)
{
    static const char tokenizer[] = "/tokenizer.perl";
    while (text.size > 0) {
        const dgm_text line = dgm_field_trim(dgm_line_cut(&text));
        if (line.size == 0 || line.data[0] == '#') continue;
        const char *at = find(line, tokenizer);
        if (at) at += sizeof tokenizer - 1;
        if (at) read_options(r, (dgm_text){at, (size_t)(line.data + line.size - at)});
        if (has(line, "/normalize-punctuation.perl")) r->moses |= PUNCTUATION;
        if (has(line, "/replace-unicode-punctuation.perl")) r->moses |= UNICODE;
        if (has(line, "/truecase.perl")) r->truecased = true;
        if (has(line, "apply_bpe") || has(line, "apply-bpe")) r->bpe = true;
    }
}

// ---- the page ------------------------------------------------------------------------------------

// "OPUS-MT-models/fi-en/": the first of such addresses.
void dgm_release_readme(dgm_release *r, dgm_text text)
{
    static const char folder[] = "MT-models/";
    const char *at = find(text, folder);
    if (!at) return;
    at += sizeof folder - 1;
    const char *end = text.data + text.size, *slash = memchr(at, '/', (size_t)(end - at));
    const char *dash = slash ? memchr(at, '-', (size_t)(slash - at)) : NULL;
    if (!dash) return;
    set_language(r->language[0], (dgm_text){at, (size_t)(dash - at)});
    set_language(r->language[1], (dgm_text){dash + 1, (size_t)(slash - dash - 1)});
}

// ---- files ---------------------------------------------------------------------------------------

static dgm_status read_file(dgm_release *r, const char *folder, const char *name,
                            void (*take)(dgm_release *, dgm_text), dgm_error *err)
{
    dgm_mapfile f;
    if (!dgm_file_exists_in(folder, name)) return DGM_OK;
    char *path = dgm_path_in(folder, name);
    if (!path) return dgm_no_memory(err);
    const dgm_status st = dgm_mapfile_open(&f, path, err);
    dgm_free(path);
    if (st != DGM_OK) return st;
    if (f.size) take(r, (dgm_text){(const char *)f.data, f.size});
    dgm_mapfile_close(&f);
    return DGM_OK;
}

dgm_status dgm_release_read(dgm_release *r, const char *folder, dgm_error *err)
{
    *r = (dgm_release){0};
    DGM_TRY(read_file(r, folder, "preprocess.sh", dgm_release_script, err));
    return read_file(r, folder, "README.md", dgm_release_readme, err);
}

void dgm_release_set(const dgm_release *r, dgm_gguf_writer *w, dgm_side side, const char *language)
{
    const char *flags[8];
    size_t count = 0;
    for (unsigned i = 0; dgm_moses_flag_names[i]; i++)
        if (r->moses >> i & 1) flags[count++] = dgm_moses_flag_names[i];
    const dgm_spec_tokenizer kind = r->tokenized ? DGM_SPEC_TOKENIZER_SACREMOSES : DGM_SPEC_TOKENIZER_NONE;
    dgm_gguf_set_string(w, dgm_side_key(side, "vocab.tokenizer").text, dgm_tokenizer_names[kind]);
    if (!r->tokenized) return;
    if (count) dgm_gguf_set_strings(w, dgm_side_key(side, "vocab.moses").text, flags, count);
    if (language) dgm_gguf_set_string(w, dgm_side_key(side, "vocab.language").text, language);
}

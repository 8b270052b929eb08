// SPDX-License-Identifier: MIT
// Normalizer, pre-tokenizer and post-processor of a tokenizer.json; see tokenizer_json.h.
#include <string.h>

#include "base/mem.h"
#include "import/tokenizer_json_private.h"

#define MARK "\xe2\x96\x81" // ▁

const char *dgm_tokenizer_type(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "null";
}

static dgm_status add_step(dgm_tokenizer_reading *r, const char *step, dgm_error *err)
{
    DGM_FAIL_IF(r->step_count == DGM_TOKENIZER_STEPS, err, DGM_ERR_UNSUPPORTED, "normalizer has more than %d steps",
                DGM_TOKENIZER_STEPS);
    r->steps[r->step_count++] = step;
    return DGM_OK;
}

// ---- base64 ---------------------------------------------------------------------------------

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+') return 62;
    return c == '/' ? 63 : -1;
}

static dgm_status read_base64(const char *text, dgm_writer *out, dgm_error *err)
{
    uint32_t bits = 0;
    int count = 0;
    for (size_t i = 0; text[i] && text[i] != '='; i++) {
        const int digit = digit_of(text[i]);
        DGM_FAIL_IF(digit < 0, err, DGM_ERR_FORMAT,
                    "normalizer: precompiled_charsmap is no base64 at character %zu", i);
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        dgm_write_u8(out, (uint8_t)(bits >> count));
    }
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

// ---- normalizer -------------------------------------------------------------------------------

static dgm_status read_replace(dgm_tokenizer_reading *r, const json_t *n, dgm_error *err)
{
    const json_t *pattern = json_object_get(n, "pattern");
    const char *literal = json_string_value(json_object_get(pattern, "String"));
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *content = json_string_value(json_object_get(n, "content"));
    const bool marks = content && strcmp(content, MARK) == 0, space = content && strcmp(content, " ") == 0;
    if (regex && (strcmp(regex, " {2,}") == 0 || strcmp(regex, " +") == 0) && (space || marks))
        return add_step(r, "spaces", err);
    if (regex && strcmp(regex, "\\s+") == 0 && space) return add_step(r, "collapse", err);
    if (literal && strcmp(literal, " ") == 0 && marks) {
        r->marks_spaces = true;
        return DGM_OK;
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "normalizer: Replace of '%.40s' by '%.40s' is not supported",
                    regex ? regex : literal ? literal : "?", content ? content : "?");
}

static dgm_status read_normalizer(dgm_tokenizer_reading *r, const json_t *n, int depth, dgm_error *err)
{
    static const char *const names[][2] = {
        {"NFC", "nfc"}, {"NFD", "nfd"}, {"NFKC", "nfkc"}, {"NFKD", "nfkd"}, {"Lowercase", "lowercase"}};
    const char *type = dgm_tokenizer_type(n);
    if (!n || json_is_null(n)) return DGM_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type, names[i][0]) == 0) return add_step(r, names[i][1], err);
    if (strcmp(type, "Sequence") == 0 && depth < 8) {
        size_t i;
        json_t *part;
        json_array_foreach(json_object_get(n, "normalizers"), i, part)
            DGM_TRY(read_normalizer(r, part, depth + 1, err));
        return DGM_OK;
    }
    if (strcmp(type, "Precompiled") == 0) {
        const char *map = json_string_value(json_object_get(n, "precompiled_charsmap"));
        if (!map || !map[0]) return DGM_OK;
        DGM_FAIL_IF(r->charsmap.size, err, DGM_ERR_UNSUPPORTED, "normalizer has two character maps");
        DGM_TRY(read_base64(map, &r->charsmap, err));
        return add_step(r, "charsmap", err);
    }
    if (strcmp(type, "Replace") == 0) return read_replace(r, n, err);
    if (strcmp(type, "Prepend") == 0) {
        const char *text = json_string_value(json_object_get(n, "prepend"));
        DGM_FAIL_IF(!text || strcmp(text, MARK) != 0, err, DGM_ERR_UNSUPPORTED,
                    "normalizer: Prepend of anything but the space mark is not supported");
        r->prefix_space = r->space_always = true;
        return DGM_OK;
    }
    // white space at the ends is no part of a line here in any case, but a tokenizer may keep one end
    if (strcmp(type, "Strip") == 0) {
        bool left = true, right = true;
        DGM_TRY(dgm_json_bool(n, "strip_left", &left, err));
        DGM_TRY(dgm_json_bool(n, "strip_right", &right, err));
        return left && right ? add_step(r, "strip", err) : DGM_OK;
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "normalizer: type '%.40s' is not supported", type);
}

// ---- pre-tokenizer ----------------------------------------------------------------------------

static dgm_status read_metaspace(dgm_tokenizer_reading *r, const json_t *p, dgm_error *err)
{
    const char *scheme = NULL, *mark = MARK;
    bool add = true;
    r->metaspace = true;
    r->split = true;
    DGM_TRY(dgm_json_string(p, "replacement", &mark, err));
    DGM_FAIL_IF(strcmp(mark, MARK) != 0, err, DGM_ERR_UNSUPPORTED,
                "pre_tokenizer: Metaspace with '%.20s' in place of the space mark is not supported", mark);
    DGM_TRY(dgm_json_bool(p, "add_prefix_space", &add, err)); // older files
    DGM_TRY(dgm_json_bool(p, "split", &r->split, err));
    DGM_TRY(dgm_json_string(p, "prepend_scheme", &scheme, err));
    r->prefix_space = scheme ? strcmp(scheme, "never") != 0 : add;
    return DGM_OK;
}

static dgm_status read_pre_tokenizer(dgm_tokenizer_reading *r, const json_t *p, int depth, dgm_error *err)
{
    const char *type = dgm_tokenizer_type(p);
    if (!p || json_is_null(p)) return DGM_OK;
    if (strcmp(type, "Sequence") == 0 && depth < 8) {
        size_t i;
        json_t *part;
        json_array_foreach(json_object_get(p, "pretokenizers"), i, part)
            DGM_TRY(read_pre_tokenizer(r, part, depth + 1, err));
        return DGM_OK;
    }
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(r, p, err);
    if (strcmp(type, "WhitespaceSplit") == 0) {
        r->collapse = true;
        return DGM_OK;
    }
    if (strcmp(type, "ByteLevel") == 0) {
        bool pattern = true;
        r->byte_level = true;
        r->prefix_space = true;
        DGM_TRY(dgm_json_bool(p, "use_regex", &pattern, err));
        DGM_FAIL_IF(!pattern, err, DGM_ERR_UNSUPPORTED,
                    "pre_tokenizer: ByteLevel without its own pattern is not supported");
        return dgm_json_bool(p, "add_prefix_space", &r->prefix_space, err);
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "pre_tokenizer: type '%.40s' is not supported", type);
}

dgm_status dgm_tokenizer_read_steps(dgm_tokenizer_reading *r, dgm_error *err)
{
    DGM_TRY(read_normalizer(r, json_object_get(r->json, "normalizer"), 0, err));
    DGM_TRY(read_pre_tokenizer(r, json_object_get(r->json, "pre_tokenizer"), 0, err));
    // words between white space, each with a mark: the same as one space between them
    if (r->collapse && r->metaspace) {
        DGM_TRY(add_step(r, "collapse", err));
        DGM_TRY(add_step(r, "strip", err));
    }
    return DGM_OK;
}

// ---- post-processor ---------------------------------------------------------------------------

static dgm_status put_around(dgm_tokenizer_reading *r, bool behind, const json_t *id, dgm_error *err)
{
    int *count = behind ? &r->info.behind_count : &r->info.before_count;
    const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    DGM_FAIL_IF(value < 0 || value >= r->info.size || *count == DGM_TOKENIZER_AROUND, err, DGM_ERR_FORMAT,
                "post_processor: an id outside 0 .. %d, or more than %d of them", r->info.size - 1,
                DGM_TOKENIZER_AROUND);
    (behind ? r->info.behind : r->info.before)[(*count)++] = (int32_t)value;
    return DGM_OK;
}

static dgm_status read_template(dgm_tokenizer_reading *r, const json_t *p, dgm_error *err)
{
    size_t i, k;
    json_t *part, *id;
    bool behind = false;
    json_array_foreach(json_object_get(p, "single"), i, part)
    {
        const char *name = json_string_value(json_object_get(json_object_get(part, "SpecialToken"), "id"));
        if (!name) {
            behind = true;
            continue;
        }
        const json_t *ids = json_object_get(json_object_get(json_object_get(p, "special_tokens"), name), "ids");
        DGM_FAIL_IF(!json_is_array(ids), err, DGM_ERR_FORMAT, "post_processor: '%.40s' has no ids", name);
        json_array_foreach(ids, k, id) DGM_TRY(put_around(r, behind, id, err));
    }
    return DGM_OK;
}

static dgm_status read_processor(dgm_tokenizer_reading *r, const json_t *p, int depth, dgm_error *err)
{
    const char *type = dgm_tokenizer_type(p);
    if (!p || json_is_null(p) || strcmp(type, "ByteLevel") == 0) return DGM_OK;
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(r, p, err);
    if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0) {
        DGM_TRY(put_around(r, false, json_array_get(json_object_get(p, "cls"), 1), err));
        return put_around(r, true, json_array_get(json_object_get(p, "sep"), 1), err);
    }
    if (strcmp(type, "Sequence") == 0 && depth < 8) {
        size_t i;
        json_t *part;
        json_array_foreach(json_object_get(p, "processors"), i, part)
            DGM_TRY(read_processor(r, part, depth + 1, err));
        return DGM_OK;
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "post_processor: type '%.40s' is not supported", type);
}

dgm_status dgm_tokenizer_read_around(dgm_tokenizer_reading *r, dgm_error *err)
{
    return read_processor(r, json_object_get(r->json, "post_processor"), 0, err);
}

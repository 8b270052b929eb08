// SPDX-License-Identifier: MIT
// How formats write text: entities of XML and HTML, strings of JSON, PO and properties files; see document.h.
#include <stdio.h>
#include <string.h>

#include "base/xml.h"
#include "document/document.h"
#include "text/unicode.h"

// ---- shared -----------------------------------------------------------------------------------------

// Appends text that comes from raw byte `from`.
static void put(dgm_writer *text, dgm_writer *map, const char *data, size_t size, size_t from)
{
    const uint32_t offset = (uint32_t)from;
    dgm_write_bytes(text, data, size);
    for (size_t i = 0; map && i < size; i++) dgm_write_bytes(map, &offset, sizeof offset);
}

// The same of bytes that stand for themselves.
static void put_same(dgm_writer *text, dgm_writer *map, dgm_text raw, size_t from, size_t to)
{
    dgm_write_bytes(text, raw.data + from, to - from);
    for (size_t i = from; map && i < to; i++) {
        const uint32_t offset = (uint32_t)i;
        dgm_write_bytes(map, &offset, sizeof offset);
    }
}

static void put_code(dgm_writer *text, dgm_writer *map, uint32_t code, size_t from)
{
    char bytes[4];
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    put(text, map, bytes, dgm_utf8_put(code, bytes), from);
}

static dgm_status decode_none(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err)
{
    (void)err;
    put_same(text, map, raw, 0, raw.size);
    return DGM_OK;
}

static void encode_none(dgm_text text, dgm_writer *raw)
{
    dgm_write_bytes(raw, text.data, text.size);
}

const dgm_escape dgm_escape_none = {"none", decode_none, encode_none};

// ---- entities -------------------------------------------------------------------------------------

// Names of U+00A0 to U+00FF, in order, then others.
static const char latin[] =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute "
    "micro para "
    "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil "
    "Egrave Eacute "
    "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc "
    "Uuml Yacute "
    "THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc "
    "iuml eth ntilde "
    "ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml ";

static const struct {
    const char *name;
    uint32_t code;
} others[] = {
    {"OElig", 0x152},   {"oelig", 0x153},   {"Scaron", 0x160},  {"scaron", 0x161},  {"Yuml", 0x178},
    {"fnof", 0x192},    {"circ", 0x2C6},    {"tilde", 0x2DC},   {"Alpha", 0x391},   {"Beta", 0x392},
    {"Gamma", 0x393},   {"Delta", 0x394},   {"Theta", 0x398},   {"Lambda", 0x39B},  {"Pi", 0x3A0},
    {"Sigma", 0x3A3},   {"Phi", 0x3A6},     {"Omega", 0x3A9},   {"alpha", 0x3B1},   {"beta", 0x3B2},
    {"gamma", 0x3B3},   {"delta", 0x3B4},   {"epsilon", 0x3B5}, {"theta", 0x3B8},   {"lambda", 0x3BB},
    {"mu", 0x3BC},      {"pi", 0x3C0},      {"sigma", 0x3C3},   {"phi", 0x3C6},     {"omega", 0x3C9},
    {"ensp", 0x2002},   {"emsp", 0x2003},   {"thinsp", 0x2009}, {"zwnj", 0x200C},   {"zwj", 0x200D},
    {"lrm", 0x200E},    {"rlm", 0x200F},    {"ndash", 0x2013},  {"mdash", 0x2014},  {"lsquo", 0x2018},
    {"rsquo", 0x2019},  {"sbquo", 0x201A},  {"ldquo", 0x201C},  {"rdquo", 0x201D},  {"bdquo", 0x201E},
    {"dagger", 0x2020}, {"Dagger", 0x2021}, {"bull", 0x2022},   {"hellip", 0x2026}, {"permil", 0x2030},
    {"prime", 0x2032},  {"Prime", 0x2033},  {"lsaquo", 0x2039}, {"rsaquo", 0x203A}, {"euro", 0x20AC},
    {"trade", 0x2122},  {"larr", 0x2190},   {"uarr", 0x2191},   {"rarr", 0x2192},   {"darr", 0x2193},
    {"harr", 0x2194},   {"rArr", 0x21D2},   {"hArr", 0x21D4},   {"minus", 0x2212},  {"infin", 0x221E},
    {"asymp", 0x2248},  {"ne", 0x2260},     {"le", 0x2264},     {"ge", 0x2265},     {"check", 0x2713},
    {"hyphen", 0x2010}, {"nbhy", 0x2011},
};

static uint32_t latin_code(dgm_text name)
{
    uint32_t code = 0xA0;
    for (const char *p = latin; *p; code++) {
        const size_t n = strcspn(p, " ");
        if (n == name.size && memcmp(p, name.data, n) == 0) return code;
        p += n + 1;
    }
    return 0;
}

static uint32_t entity_code(dgm_text name, bool html)
{
    static const struct {
        const char *name;
        uint32_t code;
    } basic[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < sizeof basic / sizeof *basic; i++)
        if (dgm_text_equal(name, dgm_text_of(basic[i].name))) return basic[i].code;
    if (!html) return 0;
    const uint32_t code = latin_code(name);
    if (code) return code;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (dgm_text_equal(name, dgm_text_of(others[i].name))) return others[i].code;
    return 0;
}

static int digit_of(char c, int base)
{
    const int v = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : 99;
    return v < base ? v : -1;
}

// The name or number between "&" at pos and ";": its length with both, 0: no entity. *code 0: not known.
static size_t entity_at(dgm_text raw, size_t pos, bool html, uint32_t *code)
{
    enum { LONGEST = 32 };
    size_t end = pos + 1;
    *code = 0;
    while (end < raw.size && end < pos + LONGEST && raw.data[end] != ';' && raw.data[end] != '&' && raw.data[end] > ' ')
        end++;
    if (end >= raw.size || raw.data[end] != ';' || end == pos + 1) return 0;
    const dgm_text name = {raw.data + pos + 1, end - pos - 1};
    for (size_t i = 0; i < name.size; i++) // letters, digits, "#"
        if (digit_of(name.data[i], 10) < 0 && !(name.data[i] >= 'A' && name.data[i] <= 'Z') &&
            !(name.data[i] >= 'a' && name.data[i] <= 'z') && !(i == 0 && name.data[i] == '#'))
            return 0;
    if (name.data[0] != '#') {
        *code = entity_code(name, html);
        return end + 1 - pos;
    }
    const bool hex = name.size > 1 && (name.data[1] == 'x' || name.data[1] == 'X');
    for (size_t i = hex ? 2 : 1; i < name.size; i++) {
        const int v = digit_of(name.data[i], hex ? 16 : 10);
        if (v < 0 || *code > 0x10FFFF) return 0;
        *code = *code * (hex ? 16 : 10) + (uint32_t)v;
    }
    if (!*code) return 0;
    if (*code < 0x20) *code = 0; // a line break that must not be one: it stays an entity
    return end + 1 - pos;
}

static void decode_entities(dgm_text raw, dgm_writer *text, dgm_writer *map, bool html)
{
    size_t done = 0;
    for (size_t i = 0; i < raw.size;) {
        uint32_t code = 0;
        const size_t n = raw.data[i] == '&' ? entity_at(raw, i, html, &code) : 0;
        if (n && code) {
            put_same(text, map, raw, done, i);
            put_code(text, map, code, i);
            done = i + n;
        }
        i += n ? n : 1;
    }
    put_same(text, map, raw, done, raw.size);
}

static dgm_status decode_xml(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err)
{
    (void)err;
    decode_entities(raw, text, map, false);
    return DGM_OK;
}

static dgm_status decode_html(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err)
{
    (void)err;
    decode_entities(raw, text, map, true);
    return DGM_OK;
}

// "&" of an entity that decoding does not know has stayed as it is, and does again.
static const char *entity_for(dgm_text t, size_t pos, bool attribute)
{
    uint32_t code = 0;
    switch (t.data[pos]) {
    case '&':
        return entity_at(t, pos, true, &code) && !code ? NULL : "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return attribute ? "&quot;" : NULL;
    case '\'':
        return attribute ? "&#39;" : NULL;
    case '\xc2':
        return pos + 1 < t.size && t.data[pos + 1] == '\xa0' ? "&nbsp;" : NULL;
    default:
        return NULL;
    }
}

static void encode_entities(dgm_text t, dgm_writer *raw, bool attribute)
{
    size_t done = 0;
    for (size_t i = 0; i < t.size; i++) {
        const char *entity = entity_for(t, i, attribute);
        if (!entity) continue;
        dgm_write_bytes(raw, t.data + done, i - done);
        dgm_write_text(raw, entity);
        i += t.data[i] == '\xc2';
        done = i + 1;
    }
    if (done < t.size) dgm_write_bytes(raw, t.data + done, t.size - done);
}

// Bytes that are not ASCII as numbers.
static void encode_ascii(dgm_text t, dgm_writer *raw, bool attribute)
{
    size_t done = 0;
    for (size_t i = 0; i < t.size;) {
        uint32_t code = 0;
        const size_t n = dgm_utf8_next(t.data + i, t.size - i, &code);
        if (code >= 0x80 && code != 0xA0) {
            encode_entities((dgm_text){t.data + done, i - done}, raw, attribute);
            dgm_write_format(raw, "&#%u;", (unsigned)code);
            done = i + n;
        }
        i += n;
    }
    encode_entities((dgm_text){t.data + done, t.size - done}, raw, attribute);
}

static void encode_html_ascii(dgm_text t, dgm_writer *raw)
{
    encode_ascii(t, raw, false);
}

static void encode_html_attribute_ascii(dgm_text t, dgm_writer *raw)
{
    encode_ascii(t, raw, true);
}

static void encode_xml(dgm_text t, dgm_writer *raw)
{
    dgm_xml_write(raw, t);
}

static void encode_attribute(dgm_text t, dgm_writer *raw)
{
    dgm_xml_write_attribute(raw, t);
}

static void encode_html(dgm_text t, dgm_writer *raw)
{
    encode_entities(t, raw, false);
}

static void encode_html_attribute(dgm_text t, dgm_writer *raw)
{
    encode_entities(t, raw, true);
}

const dgm_escape dgm_escape_xml = {"xml", decode_xml, encode_xml};
const dgm_escape dgm_escape_attribute = {"attribute", decode_xml, encode_attribute};
const dgm_escape dgm_escape_html = {"html", decode_html, encode_html};
const dgm_escape dgm_escape_html_attribute = {"html attribute", decode_html, encode_html_attribute};
const dgm_escape dgm_escape_xhtml = {"xhtml", decode_html, encode_xml};
const dgm_escape dgm_escape_xhtml_attribute = {"xhtml attribute", decode_html, encode_attribute};
const dgm_escape dgm_escape_html_ascii = {"html in ASCII", decode_html, encode_html_ascii};
const dgm_escape dgm_escape_html_attribute_ascii = {"html attribute in ASCII", decode_html,
                                                    encode_html_attribute_ascii};

// ---- backslashes ----------------------------------------------------------------------------------

// Four digits behind "\u"; false: there are none.
static bool unit_at(dgm_text raw, size_t pos, uint32_t *unit)
{
    *unit = 0;
    for (size_t i = pos; i < pos + 4; i++) {
        const int v = i < raw.size ? digit_of(raw.data[i], 16) : -1;
        if (v < 0) return false;
        *unit = *unit * 16 + (uint32_t)v;
    }
    return true;
}

// "\uXXXX" at pos, of two halves if need be: its length, 0: none.
static size_t unicode_at(dgm_text raw, size_t pos, uint32_t *code)
{
    uint32_t low = 0;
    if (pos + 6 > raw.size || raw.data[pos + 1] != 'u' || !unit_at(raw, pos + 2, code)) return 0;
    const bool high = *code >= 0xD800 && *code < 0xDC00;
    if (!high || pos + 12 > raw.size || raw.data[pos + 6] != '\\' || raw.data[pos + 7] != 'u') return 6;
    if (!unit_at(raw, pos + 8, &low) || low < 0xDC00 || low > 0xDFFF) return 6;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return 12;
}

// A line that goes on below: backslash, line break, indentation. 0: none.
static size_t continued_at(dgm_text raw, size_t pos)
{
    size_t end = pos + 1;
    if (end < raw.size && raw.data[end] == '\r') end++;
    if (end >= raw.size || (raw.data[end] != '\n' && raw.data[end - 1] != '\r')) return 0;
    end += raw.data[end] == '\n';
    while (end < raw.size && (raw.data[end] == ' ' || raw.data[end] == '\t')) end++;
    return end - pos;
}

static void decode_backslashes(dgm_text raw, dgm_writer *text, dgm_writer *map, bool properties)
{
    static const char from[] = "nrtbfav", to[] = "\n\r\t\b\f\a\v";
    size_t done = 0;
    for (size_t i = 0; i < raw.size;) {
        if (raw.data[i] != '\\' || i + 1 >= raw.size) {
            i++;
            continue;
        }
        uint32_t code = 0;
        const char *known = strchr(from, raw.data[i + 1]);
        size_t n = unicode_at(raw, i, &code);
        put_same(text, map, raw, done, i);
        if (n)
            put_code(text, map, code, i);
        else if (properties && (n = continued_at(raw, i))) {
        } else {
            n = 2;
            put(text, map, known && raw.data[i + 1] ? &to[known - from] : &raw.data[i + 1], 1, i);
        }
        done = i += n;
    }
    put_same(text, map, raw, done, raw.size);
}

static dgm_status decode_json(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err)
{
    (void)err;
    decode_backslashes(raw, text, map, false);
    return DGM_OK;
}

static dgm_status decode_properties(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err)
{
    (void)err;
    decode_backslashes(raw, text, map, true);
    return DGM_OK;
}

static void put_unit(dgm_writer *raw, uint32_t unit)
{
    dgm_write_format(raw, "\\u%04x", (unsigned)unit);
}

static void put_unicode(dgm_writer *raw, uint32_t code)
{
    if (code < 0x10000) {
        put_unit(raw, code);
        return;
    }
    put_unit(raw, 0xD800 + ((code - 0x10000) >> 10));
    put_unit(raw, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

static void encode_backslashes(dgm_text t, dgm_writer *raw, const char *escaped, bool ascii)
{
    static const char control[] = "\n\r\t\b\f", letters[] = "nrtbf";
    for (size_t i = 0; i < t.size;) {
        uint32_t code = 0;
        const size_t n = dgm_utf8_next(t.data + i, t.size - i, &code);
        const char c = t.data[i], *known = c ? strchr(control, c) : NULL;
        if (known)
            dgm_write_format(raw, "\\%c", letters[known - control]);
        else if (code < 0x20 || (ascii && code > 0x7E))
            put_unicode(raw, code);
        else {
            if (c && strchr(escaped, c)) dgm_write_u8(raw, '\\');
            dgm_write_bytes(raw, t.data + i, n);
        }
        i += n;
    }
}

static void encode_json(dgm_text t, dgm_writer *raw)
{
    encode_backslashes(t, raw, "\"\\", false);
}

static void encode_json_ascii(dgm_text t, dgm_writer *raw)
{
    encode_backslashes(t, raw, "\"\\", true);
}

static void encode_properties(dgm_text t, dgm_writer *raw)
{
    encode_backslashes(t, raw, "\\", false);
}

static void encode_properties_ascii(dgm_text t, dgm_writer *raw)
{
    encode_backslashes(t, raw, "\\", true);
}

const dgm_escape dgm_escape_json = {"json", decode_json, encode_json};
const dgm_escape dgm_escape_json_ascii = {"json in ASCII", decode_json, encode_json_ascii};
const dgm_escape dgm_escape_po = {"po", decode_json, encode_json};
const dgm_escape dgm_escape_properties = {"properties", decode_properties, encode_properties};
const dgm_escape dgm_escape_properties_ascii = {"properties in ASCII", decode_properties, encode_properties_ascii};

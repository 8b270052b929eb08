// SPDX-License-Identifier: MIT
// See encoding.h. UTF-16, Latin-1 and Windows-1252: the encodings that text files of other systems come in.
// Their tables are small, and what iconv(3) knows depends on the machine.
#include "base/encoding.h"

#include <stdint.h>
#include <string.h>

#include "base/status.h"

// By number; the first names are dgm_encoding_name's. What people write beside them ("latin1", "UTF16-LE",
// "iso_8859-1") is the same without marks and case, or has a row of its own.
static const struct {
    const char *name;
    dgm_encoding encoding;
} names[] = {
    {"utf-8", DGM_ENCODING_UTF8},       {"utf-16", DGM_ENCODING_UTF16},
    {"utf-16le", DGM_ENCODING_UTF16LE}, {"utf-16be", DGM_ENCODING_UTF16BE},
    {"latin-1", DGM_ENCODING_LATIN1},   {"windows-1252", DGM_ENCODING_WINDOWS1252},
    {"utf-8-sig", DGM_ENCODING_UTF8},   {"us-ascii", DGM_ENCODING_UTF8},
    {"ascii", DGM_ENCODING_UTF8},       {"iso-8859-1", DGM_ENCODING_LATIN1},
    {"l1", DGM_ENCODING_LATIN1},        {"cp-1252", DGM_ENCODING_WINDOWS1252},
    {"win-1252", DGM_ENCODING_WINDOWS1252},
};

const char *dgm_encoding_name(dgm_encoding encoding)
{
    size_t i = 0;
    while (names[i].encoding != encoding) i++;
    return names[i].name;
}

// The next letter or digit, in lower case; 0 at the end.
static char next_sign(const char **at)
{
    while (**at == '-' || **at == '_' || **at == ' ') ++*at;
    const char c = **at;
    if (c) ++*at;
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool same_name(const char *a, const char *b)
{
    char x, y;
    do {
        x = next_sign(&a);
        y = next_sign(&b);
    } while (x && x == y);
    return x == y;
}

dgm_status dgm_encoding_named(const char *name, dgm_encoding *encoding, dgm_error *err)
{
    DGM_FAIL_IF(!name || !encoding, err, DGM_ERR_ARGUMENT, "dgm_encoding_named needs a name");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (same_name(name, names[i].name)) {
            *encoding = names[i].encoding;
            return DGM_OK;
        }
    return dgm_fail(err, DGM_ERR_ARGUMENT,
                    "the encoding must be one of utf-8, utf-16, utf-16le, utf-16be, latin-1, windows-1252, not '%s'",
                    name);
}

dgm_encoding dgm_encoding_guess(const char *text, size_t size)
{
    enum { LOOK = 1024, LEAST = 6 };
    size_t zeros[2] = {0};
    if (size >= 2 && memcmp(text, "\xff\xfe", 2) == 0) return DGM_ENCODING_UTF16LE;
    if (size >= 2 && memcmp(text, "\xfe\xff", 2) == 0) return DGM_ENCODING_UTF16BE;
    if (size > LOOK) size = LOOK;
    for (size_t i = 0; i < size; i++) zeros[i % 2] += text[i] == 0;
    for (int low = 0; size >= LEAST && low < 2; low++) // one half of the bytes is zero, hardly any of the other
        if (zeros[!low] * 4 >= size && zeros[low] * 8 <= zeros[!low])
            return low ? DGM_ENCODING_UTF16BE : DGM_ENCODING_UTF16LE;
    return DGM_ENCODING_UTF8;
}

dgm_encoding dgm_encoding_order(dgm_encoding encoding, const char *in, size_t size, const char **wrong)
{
    *wrong = NULL;
    if (encoding < DGM_ENCODING_UTF16 || encoding > DGM_ENCODING_UTF16BE) return encoding;
    const dgm_encoding found = dgm_encoding_guess(in, size);
    bool ascii = size >= 2;
    for (size_t i = 0; i < size && ascii; i++) ascii = in[i] >= '\t' && in[i] < 0x7f;
    if (ascii) *wrong = "every byte is an ASCII character";
    if (encoding != DGM_ENCODING_UTF16) return encoding;
    return found == DGM_ENCODING_UTF16BE ? found : DGM_ENCODING_UTF16LE;
}

// ---- conversion ----------------------------------------------------------------------------------

static size_t put(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; --i > 0; code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xF0) | code);
    return n;
}

static dgm_converted convert_utf16(const unsigned char *in, size_t size, bool big, bool last, char *out)
{
    dgm_converted c = {0};
    while (c.used + 2 <= size) {
        const unsigned char *p = in + c.used;
        uint32_t code = big ? (uint32_t)(p[0] << 8 | p[1]) : (uint32_t)(p[1] << 8 | p[0]);
        size_t n = 2;
        if (code >= 0xD800 && code < 0xDC00) {
            if (c.used + 4 > size) break;
            const uint32_t low = big ? (uint32_t)(p[2] << 8 | p[3]) : (uint32_t)(p[3] << 8 | p[2]);
            if (low < 0xDC00 || low > 0xDFFF) {
                c.wrong = "a surrogate without its other half";
                return c;
            }
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            n = 4;
        } else if (code >= 0xDC00 && code < 0xE000) {
            c.wrong = "a surrogate without its other half";
            return c;
        }
        c.used += n;
        c.made += put(code, out + c.made);
    }
    if (last && c.used < size) c.wrong = "it ends in the middle of a character";
    return c;
}

static dgm_converted convert_bytes(const unsigned char *in, size_t size, bool windows, char *out)
{
    static const uint16_t upper[32] = { // of Windows-1252; 0: nothing
        0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};
    dgm_converted c = {0};
    for (; c.used < size; c.used++) {
        uint32_t code = in[c.used];
        if (windows && code >= 0x80 && code < 0xA0) code = upper[code - 0x80];
        if (code == 0 && in[c.used] != 0) {
            c.wrong = "a byte that stands for no character";
            return c;
        }
        c.made += put(code, out + c.made);
    }
    return c;
}

dgm_converted dgm_encoding_convert(dgm_encoding encoding, const char *in, size_t size, bool last, char *out)
{
    const unsigned char *bytes = (const unsigned char *)in;
    if (encoding == DGM_ENCODING_LATIN1 || encoding == DGM_ENCODING_WINDOWS1252)
        return convert_bytes(bytes, size, encoding == DGM_ENCODING_WINDOWS1252, out);
    return convert_utf16(bytes, size, encoding == DGM_ENCODING_UTF16BE, last, out);
}

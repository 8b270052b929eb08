// SPDX-License-Identifier: MIT
// Mutations that know a format, for fuzz targets: JSON, HTTP forms, GGUF, zip archives, pickles. Bytes changed at
// random rarely get past a parser's first checks; these keep a text's brackets, an archive's sums and a file's counts
// in order and change what lies between, or one of these on purpose. A target has one line for it: FUZZ_MUTATOR(name).
#ifndef DGM_TESTS_FUZZ_MUTATE_H
#define DGM_TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max); // libFuzzer's own, byte by byte
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

// Where files of a target lie: in the folder of a run (scripts/fuzz), else in memory where there is such a place.
static inline const char *fuzz_scratch(void)
{
    const char *own = getenv("FUZZ_SCRATCH");
    return own ? own : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

typedef size_t (*fuzz_mutate)(uint8_t *data, size_t size, size_t max, uint32_t *r);

// One mutation in four is libFuzzer's, so that what a format does not foresee is tried, too.
#define FUZZ_MUTATOR(mutate)                                                                                           \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)                              \
    {                                                                                                                  \
        uint32_t r = seed * 2654435761u + 1;                                                                           \
        return fuzz_below(&r, 4) == 0 ? LLVMFuzzerMutate(data, size, max) : mutate(data, size, max, &r);               \
    }

enum { FUZZ_SPANS = 512 };

typedef struct fuzz_span {
    size_t begin, end;
} fuzz_span;

static inline uint32_t fuzz_below(uint32_t *r, size_t n)
{
    *r ^= *r << 13;
    *r ^= *r >> 17;
    *r ^= *r << 5;
    return n ? *r % (uint32_t)n : 0;
}

// Puts n bytes, which do not lie in data, in place of a span; the new size, the old one where there is no room.
static inline size_t fuzz_put(uint8_t *data, size_t size, size_t max, fuzz_span s, const void *with, size_t n)
{
    if (size - (s.end - s.begin) + n > max) return size;
    memmove(data + s.begin + n, data + s.end, size - s.end);
    if (n) memcpy(data + s.begin, with, n);
    return size - (s.end - s.begin) + n;
}

// The same with a copy of another span.
static inline size_t fuzz_copy(uint8_t *data, size_t size, size_t max, fuzz_span to, fuzz_span from)
{
    const size_t n = from.end - from.begin;
    uint8_t *copy = malloc(n + 1);
    if (!copy) return size;
    memcpy(copy, data + from.begin, n);
    size = fuzz_put(data, size, max, to, copy, n);
    free(copy);
    return size;
}

static inline size_t fuzz_inside(uint8_t *data, size_t size, size_t max, fuzz_span s, fuzz_mutate by, uint32_t *r)
{
    const size_t n = s.end - s.begin, room = n + 64 + fuzz_below(r, 64);
    uint8_t *part = malloc(room);
    if (!part) return size;
    memcpy(part, data + s.begin, n);
    const size_t now = by ? by(part, n, room, r) : LLVMFuzzerMutate(part, n, room);
    size = fuzz_put(data, size, max, s, part, now);
    free(part);
    return size;
}

// A number of 1 to 8 bytes that parsers stumble over, least byte first.
static inline void fuzz_number(uint8_t *at, int width, uint32_t *r)
{
    static const uint64_t odd[] = {0, 1, 2, 7, 8, 31, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000,
                                   0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
                                   0x8000000000000000, 0xfffffffffffffff8, 0xffffffffffffffff};
    uint64_t v = odd[fuzz_below(r, sizeof odd / sizeof *odd)], old = 0;
    for (int i = 0; i < width; i++) old |= (uint64_t)at[i] << 8 * i;
    if (fuzz_below(r, 3) == 0) v = old + fuzz_below(r, 9) - 4;
    for (int i = 0; i < width; i++) at[i] = (uint8_t)(v >> 8 * i);
}

static inline uint64_t fuzz_read(const uint8_t *at, int width)
{
    uint64_t v = 0;
    for (int i = 0; i < width; i++) v |= (uint64_t)at[i] << 8 * i;
    return v;
}

// ---- JSON ------------------------------------------------------------------------------------------

// Spans of all values; members of objects begin with their key.
static inline size_t fuzz_json_values(const uint8_t *d, size_t size, fuzz_span *v)
{
    size_t count = 0, open[64], depth = 0;
    for (size_t i = 0; i < size && count < FUZZ_SPANS;) {
        const size_t begin = i;
        if (d[i] == '{' || d[i] == '[') {
            if (depth < 64) open[depth++] = count;
            v[count++] = (fuzz_span){begin, ++i};
        } else if (d[i] == '}' || d[i] == ']') {
            i++;
            if (depth) v[open[--depth]].end = i;
        } else if (d[i] == '"') {
            for (i++; i < size && d[i] != '"'; i++) i += d[i] == '\\' && i + 1 < size;
            if (i < size) i++;
            v[count++] = (fuzz_span){begin, i};
        } else if (d[i] == '-' || (d[i] >= '0' && d[i] <= '9') || (d[i] >= 'a' && d[i] <= 'z')) {
            while (i < size && !strchr(",:]} \n\t", d[i])) i++;
            v[count++] = (fuzz_span){begin, i > begin ? i : ++i};
        } else {
            i++;
        }
    }
    return count;
}

static inline size_t fuzz_json(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static const char *const odd[] = {"null", "true", "false", "0", "-1", "1", "1e999", "1e-400", "0.5", "-0",
                                      "9223372036854775807", "9223372036854775808", "4294967296", "65536", "\"\"", "[]",
                                      "{}", "[[]]", "\"\\u0000\"", "\"\\ud800\"", "\"\\ud83d\\ude00\"", "\"</s>\"",
                                      "\"auto\"", "\"en\"", "\"de\"", "[\"a\",\"b\"]", "{\"a\":1}", "\"\xff\xfe\""};
    fuzz_span v[FUZZ_SPANS];
    const size_t count = fuzz_json_values(data, size, v);
    if (count == 0) return LLVMFuzzerMutate(data, size, max);
    const fuzz_span s = v[fuzz_below(r, count)], other = v[fuzz_below(r, count)];
    const char *const value = odd[fuzz_below(r, sizeof odd / sizeof *odd)];
    fuzz_span cut = s;
    switch (fuzz_below(r, 7)) {
    case 0: return fuzz_put(data, size, max, s, value, strlen(value));
    case 1: return fuzz_copy(data, size, max, s, other);
    case 2: // with its comma
        while (cut.end < size && strchr(": \n", data[cut.end]) && data[cut.end]) cut.end++;
        if (cut.end < size && data[cut.end] == ',') cut.end++;
        return fuzz_put(data, size, max, cut, "", 0);
    case 3: // once more behind itself
        size = fuzz_put(data, size, max, (fuzz_span){s.end, s.end}, ",", 1);
        return fuzz_copy(data, size, max, (fuzz_span){s.end + 1, s.end + 1}, s);
    case 4: {
        const size_t depth = 1 + fuzz_below(r, 40);
        uint8_t brackets[40];
        memset(brackets, ']', depth);
        size = fuzz_put(data, size, max, (fuzz_span){s.end, s.end}, brackets, depth);
        memset(brackets, '[', depth);
        return fuzz_put(data, size, max, (fuzz_span){s.begin, s.begin}, brackets, depth);
    }
    case 5:
        if (data[s.begin] == '"' && s.end - s.begin >= 2) cut = (fuzz_span){s.begin + 1, s.end - 1};
        return fuzz_inside(data, size, max, cut, NULL, r);
    default: // the key or value of another place
        return fuzz_copy(data, size, max, (fuzz_span){s.begin, s.begin}, other);
    }
}

// ---- HTTP: fields of forms, parts of multipart bodies, lines ----------------------------------------

static inline size_t fuzz_fields(uint8_t *data, size_t size, size_t max, const char *between, uint32_t *r)
{
    static const char *const odd[] = {"%", "%0", "%00", "%ff", "%e2%82", "+", "=", "&", "&q=", "&source=auto",
                                      "q=%C3%A4&", "\r\n", "\r\n\r\n", "--B", "\r\n--B--\r\n", "\r\n--B\r\n",
                                      "Content-Disposition: form-data; name=\"q\"\r\n\r\n",
                                      "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n",
                                      "; filename*=utf-8''%e2", "\"", "\\\"", "boundary="};
    fuzz_span v[FUZZ_SPANS];
    const size_t step = strlen(between);
    size_t count = 0, begin = 0;
    for (size_t i = 0; i + step <= size && count < FUZZ_SPANS; i++)
        if (memcmp(data + i, between, step) == 0) {
            v[count++] = (fuzz_span){begin, i + step};
            begin = i + step;
        }
    if (count < FUZZ_SPANS) v[count++] = (fuzz_span){begin, size};
    const fuzz_span s = v[fuzz_below(r, count)], other = v[fuzz_below(r, count)];
    const char *const value = odd[fuzz_below(r, sizeof odd / sizeof *odd)];
    const size_t at = s.begin + fuzz_below(r, s.end - s.begin + 1);
    switch (fuzz_below(r, 5)) {
    case 0: return fuzz_put(data, size, max, s, "", 0);
    case 1: return fuzz_copy(data, size, max, (fuzz_span){s.begin, s.begin}, other);
    case 2: return fuzz_copy(data, size, max, s, other);
    case 3: return fuzz_put(data, size, max, (fuzz_span){at, at}, value, strlen(value));
    default: return fuzz_inside(data, size, max, s, NULL, r);
    }
}

// ---- GGUF ------------------------------------------------------------------------------------------

typedef struct fuzz_gguf_map {
    fuzz_span entries[FUZZ_SPANS]; // of metadata, then of tensors
    size_t meta, count;            // entries of metadata, and all
    size_t numbers[FUZZ_SPANS];    // where lengths, types and counts stand
    uint8_t widths[FUZZ_SPANS];
    size_t number_count;
} fuzz_gguf_map;

static inline uint64_t fuzz_gguf_number(fuzz_gguf_map *m, const uint8_t *d, size_t size, size_t *at, int width)
{
    if (*at > size || size - *at < (size_t)width) {
        *at = SIZE_MAX / 2;
        return 0;
    }
    if (m->number_count < FUZZ_SPANS) {
        m->numbers[m->number_count] = *at;
        m->widths[m->number_count++] = (uint8_t)width;
    }
    *at += (size_t)width;
    return fuzz_read(d + *at - width, width);
}

static inline void fuzz_gguf_skip(size_t *at, uint64_t bytes)
{
    *at = bytes > SIZE_MAX / 4 || *at > SIZE_MAX / 4 ? SIZE_MAX / 2 : *at + (size_t)bytes;
}

static inline void fuzz_gguf_value(fuzz_gguf_map *m, const uint8_t *d, size_t size, size_t *at, uint64_t type)
{
    static const uint8_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
        fuzz_gguf_skip(at, fuzz_gguf_number(m, d, size, at, 8));
    } else if (type == 9) {
        const uint64_t of = fuzz_gguf_number(m, d, size, at, 4), n = fuzz_gguf_number(m, d, size, at, 8);
        if (of != 8) fuzz_gguf_skip(at, of < 13 ? n * widths[of] : SIZE_MAX);
        for (uint64_t i = 0; of == 8 && i < n && *at < size; i++)
            fuzz_gguf_skip(at, fuzz_gguf_number(m, d, size, at, 8));
    } else if (type < 13) {
        fuzz_gguf_skip(at, widths[type]);
    } else {
        *at = SIZE_MAX / 2;
    }
}

static inline void fuzz_gguf_read(fuzz_gguf_map *m, const uint8_t *d, size_t size)
{
    size_t at = 4;
    fuzz_gguf_number(m, d, size, &at, 4);
    const uint64_t tensors = fuzz_gguf_number(m, d, size, &at, 8), meta = fuzz_gguf_number(m, d, size, &at, 8);
    for (uint64_t i = 0; i < meta + tensors && at < size && m->count < FUZZ_SPANS; i++) {
        const size_t begin = at;
        fuzz_gguf_skip(&at, fuzz_gguf_number(m, d, size, &at, 8));
        if (i < meta) {
            fuzz_gguf_value(m, d, size, &at, fuzz_gguf_number(m, d, size, &at, 4));
        } else {
            const uint64_t dims = fuzz_gguf_number(m, d, size, &at, 4);
            for (uint64_t k = 0; k < dims && k < 8; k++) fuzz_gguf_number(m, d, size, &at, 8);
            fuzz_gguf_number(m, d, size, &at, 4);
            fuzz_gguf_number(m, d, size, &at, 8);
        }
        if (at <= size) m->entries[m->count++] = (fuzz_span){begin, at};
        m->meta += i < meta && at <= size;
    }
}

static inline size_t fuzz_gguf(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static fuzz_gguf_map m;
    memset(&m, 0, sizeof m);
    if (size < 24) return LLVMFuzzerMutate(data, size, max);
    fuzz_gguf_read(&m, data, size);
    if (m.count == 0) return LLVMFuzzerMutate(data, size, max);
    const size_t k = fuzz_below(r, m.count), n = fuzz_below(r, m.number_count);
    const fuzz_span s = m.entries[k], other = m.entries[fuzz_below(r, m.count)];
    const size_t counter = k < m.meta ? 16 : 8; // where the number of such entries stands
    const uint64_t count = fuzz_read(data + counter, 8);
    size_t now = size;
    switch (fuzz_below(r, 5)) {
    case 0: fuzz_number(data + m.numbers[n], m.widths[n], r); return size;
    case 1:
        now = fuzz_copy(data, size, max, (fuzz_span){s.end, s.end}, s);
        if (now != size)
            for (int i = 0; i < 8; i++) data[counter + (size_t)i] = (uint8_t)((count + 1) >> 8 * i);
        return now;
    case 2:
        for (int i = 0; i < 8; i++) data[counter + (size_t)i] = (uint8_t)((count - 1) >> 8 * i);
        return fuzz_put(data, size, max, s, "", 0);
    case 3: return fuzz_copy(data, size, max, s, other);
    default: { // a byte of its name or value
        const size_t at = s.begin + fuzz_below(r, s.end - s.begin);
        data[at] = (uint8_t)(fuzz_below(r, 2) ? data[at] ^ 1u << fuzz_below(r, 8) : fuzz_below(r, 256));
        return size;
    }
    }
}

// ---- pickles ---------------------------------------------------------------------------------------

// Bytes of an operation with its arguments.
static inline size_t fuzz_pickle_length(const uint8_t *d, size_t size)
{
    size_t n = 1;
    switch (d[0]) {
    case 'K': case 'h': case 'q': case 0x80: case 0x82: n = 2; break;
    case 'M': case 0x83: n = 3; break;
    case 'J': case 'r': case 'j': case 0x84: n = 5; break;
    case 'G': case 0x95: n = 9; break;
    case 'U': case 'C': case 0x8a: case 0x8c: n = size > 1 ? 2u + d[1] : 1; break;
    case 'T': case 'X': case 'B': n = size > 4 ? 5 + (size_t)fuzz_read(d + 1, 4) : 1; break;
    case 0x8d: case 0x8e: case 0x96: n = size > 8 ? 9 + (size_t)(fuzz_read(d + 1, 8) & 0xffffff) : 1; break;
    case 'c': case 'i':
        for (int lines = 0; n < size && lines < 2; n++) lines += d[n] == '\n';
        break;
    case 'F': case 'I': case 'L': case 'S': case 'V': case 'P': case 'g': case 'p':
        while (n < size && d[n - 1] != '\n') n++;
        break;
    default: break;
    }
    return n > size ? size : n;
}

static inline size_t fuzz_pickle(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static const char plain[] = "(.012NQRabdeostul])}\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94";
    fuzz_span v[FUZZ_SPANS];
    size_t count = 0;
    for (size_t i = 0; i < size && count < FUZZ_SPANS; count++) {
        v[count] = (fuzz_span){i, i + fuzz_pickle_length(data + i, size - i)};
        i = v[count].end;
    }
    if (count == 0) return LLVMFuzzerMutate(data, size, max);
    const fuzz_span s = v[fuzz_below(r, count)], other = v[fuzz_below(r, count)];
    const size_t n = s.end - s.begin - 1;
    switch (fuzz_below(r, 5)) {
    case 0: return fuzz_put(data, size, max, s, "", 0);
    case 1: return fuzz_copy(data, size, max, (fuzz_span){s.begin, s.begin}, other);
    case 2: return fuzz_copy(data, size, max, s, other);
    case 3: return fuzz_put(data, size, max, (fuzz_span){s.begin, s.begin}, plain + fuzz_below(r, sizeof plain - 1), 1);
    default:
        if (n == 0) return LLVMFuzzerMutate(data, size, max);
        fuzz_number(data + s.begin + 1, (int)(n < 4 ? n : n < 8 ? 4 : 8), r);
        return size;
    }
}

// ---- zip archives ----------------------------------------------------------------------------------

typedef struct fuzz_member {
    const uint8_t *name, *data;
    size_t name_size, size;
    uint32_t full, sum; // its size unpacked; its sum where it is packed
    uint16_t method;
} fuzz_member;

// Members by their local heads, as far as they are whole and say their sizes.
static inline size_t fuzz_zip_members(const uint8_t *d, size_t size, fuzz_member *m, size_t most)
{
    size_t count = 0;
    for (size_t at = 0; at + 30 <= size && count < most && memcmp(d + at, "PK\3\4", 4) == 0;) {
        const size_t packed = (size_t)fuzz_read(d + at + 18, 4), name = (size_t)fuzz_read(d + at + 26, 2);
        const size_t extra = (size_t)fuzz_read(d + at + 28, 2);
        if (size - at - 30 < name + extra || size - at - 30 - name - extra < packed) break;
        m[count++] = (fuzz_member){.name = d + at + 30, .name_size = name, .data = d + at + 30 + name + extra,
                                   .size = packed, .full = (uint32_t)fuzz_read(d + at + 22, 4),
                                   .sum = (uint32_t)fuzz_read(d + at + 14, 4),
                                   .method = (uint16_t)fuzz_read(d + at + 8, 2)};
        at += 30 + name + extra + packed;
    }
    return count;
}

static inline size_t fuzz_zip_put(uint8_t *to, size_t at, size_t max, uint64_t value, int width)
{
    for (int i = 0; i < width && at < max; i++) to[at++] = (uint8_t)(value >> 8 * i);
    return at;
}

static inline size_t fuzz_zip_bytes(uint8_t *to, size_t at, size_t max, const void *from, size_t n)
{
    if (n > max - at) n = max - at;
    if (n) memcpy(to + at, from, n);
    return at + n;
}

// The head of a member; where: its place, in the directory, or -1 for the local one.
static inline size_t fuzz_zip_head(uint8_t *to, size_t at, size_t max, const fuzz_member *m, int64_t where)
{
    const uint32_t sum = m->method == 0 ? (uint32_t)crc32(0, m->data, (uInt)m->size) : m->sum;
    at = fuzz_zip_put(to, at, max, where < 0 ? 0x04034b50 : 0x02014b50, 4);
    if (where >= 0) at = fuzz_zip_put(to, at, max, 20, 2);
    at = fuzz_zip_put(to, at, max, 20, 2);
    at = fuzz_zip_put(to, at, max, 0, 2);
    at = fuzz_zip_put(to, at, max, m->method, 2);
    at = fuzz_zip_put(to, at, max, 0x00210000, 4);
    at = fuzz_zip_put(to, at, max, sum, 4);
    at = fuzz_zip_put(to, at, max, m->size, 4);
    at = fuzz_zip_put(to, at, max, m->full, 4);
    at = fuzz_zip_put(to, at, max, m->name_size, 2);
    at = fuzz_zip_put(to, at, max, 0, 2);
    if (where >= 0) {
        at = fuzz_zip_put(to, at, max, 0, 8);
        at = fuzz_zip_put(to, at, max, 0, 2);
        at = fuzz_zip_put(to, at, max, (uint64_t)where, 4);
    }
    return fuzz_zip_bytes(to, at, max, m->name, m->name_size);
}

static inline size_t fuzz_zip_make(uint8_t *to, size_t max, const fuzz_member *m, size_t count)
{
    size_t at = 0, places[64] = {0};
    for (size_t i = 0; i < count; i++) {
        places[i] = at;
        at = fuzz_zip_head(to, at, max, &m[i], -1);
        at = fuzz_zip_bytes(to, at, max, m[i].data, m[i].size);
    }
    const size_t directory = at;
    for (size_t i = 0; i < count; i++) at = fuzz_zip_head(to, at, max, &m[i], (int64_t)places[i]);
    const size_t end = at;
    at = fuzz_zip_put(to, at, max, 0x06054b50, 4);
    at = fuzz_zip_put(to, at, max, 0, 4);
    at = fuzz_zip_put(to, at, max, count, 2);
    at = fuzz_zip_put(to, at, max, count, 2);
    at = fuzz_zip_put(to, at, max, end - directory, 4);
    at = fuzz_zip_put(to, at, max, directory, 4);
    return fuzz_zip_put(to, at, max, 0, 2);
}

static inline size_t fuzz_zip_content(uint8_t *d, size_t size, size_t max, uint32_t *r)
{
    if (size && (d[0] == '{' || d[0] == '[')) return fuzz_json(d, size, max, r);
    if (size && (d[0] == 0x80 || d[0] == '(' || d[0] == '}')) return fuzz_pickle(d, size, max, r);
    if (size && d[0] == '<') return fuzz_fields(d, size, max, ">", r);
    return LLVMFuzzerMutate(d, size, max);
}

static inline size_t fuzz_zip(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    fuzz_member m[32];
    size_t count = fuzz_zip_members(data, size, m, 31);
    if (count == 0) return LLVMFuzzerMutate(data, size, max);
    const size_t k = fuzz_below(r, count), other = fuzz_below(r, count);
    uint8_t *part = NULL, *out = malloc(max + 1);
    if (!out) return size;
    switch (fuzz_below(r, 6)) {
    case 0: m[count++] = m[k]; break;
    case 1: memmove(m + k, m + k + 1, (--count - k) * sizeof *m); break;
    case 2: m[k].name = m[other].name, m[k].name_size = m[other].name_size; break;
    case 3: m[k].data = m[other].data, m[k].size = m[other].size, m[k].full = m[other].full;
        m[k].method = m[other].method, m[k].sum = m[other].sum;
        break;
    default:
        if (m[k].method == 0 && (part = malloc(m[k].size + 256))) {
            memcpy(part, m[k].data, m[k].size);
            m[k].size = fuzz_zip_content(part, m[k].size, m[k].size + 256, r);
            m[k].data = part, m[k].full = (uint32_t)m[k].size;
        }
    }
    const size_t made = fuzz_zip_make(out, max, m, count);
    if (fuzz_below(r, 8) == 0 && made > 64) fuzz_number(out + fuzz_below(r, made - 8), 1 << fuzz_below(r, 4), r);
    memcpy(data, out, made);
    free(out);
    free(part);
    return made;
}

#endif

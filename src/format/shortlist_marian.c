// SPDX-License-Identifier: MIT
// Marian's binary shortlist, little-endian:
//
//     u64 magic, u64 checksum, u64 first, u64 best, u64 n = sources + 1, u64 size
//     u64 offset[n]       offset[n - 1] = size
//     u32 ids[size]       ascending within each source token's range
//
// The checksum runs over the file from byte 16 on, as u64 words (an odd last u32 is not in it):
// h ^= word + 0x9e3779b9 + (h << 6) + (h >> 2), from 0.
#include <string.h>

#include "base/mem.h"
#include "format/shortlist.h"

#define MAGIC 0xF11A48D5013417F5u

enum { HEADER = 48, SUMMED_FROM = 16 };

static uint64_t checksum(const uint8_t *data, size_t size)
{
    dgm_reader r = dgm_reader_over(data + SUMMED_FROM, (size - SUMMED_FROM) / 8 * 8);
    uint64_t h = 0;
    while (dgm_reader_left(&r) > 0) h ^= dgm_read_u64(&r) + 0x9e3779b9u + (h << 6) + (h >> 2);
    return h;
}

// How many of the frequent ids are 0, 1, 2, ...
static int leading(const dgm_shortlist *s)
{
    int n = 0;
    while (n < s->frequent_count && s->frequent[n] == n) n++;
    return n;
}

// Ids of source token i: its own, and for the end symbol the frequent ones that Marian's "first"
// cannot say. out [longest + frequent_count]
static size_t merged_row(const dgm_shortlist *s, int i, int source_eos, int first, uint32_t *out)
{
    uint64_t a = s->at[i], a_end = s->at[i + 1];
    int b = first, b_end = i == source_eos ? s->frequent_count : first;
    size_t n = 0;
    while (a < a_end || b < b_end) {
        int32_t x = a < a_end ? s->ids[a] : INT32_MAX, y = b < b_end ? s->frequent[b] : INT32_MAX;
        out[n++] = (uint32_t)(x < y ? x : y);
        if (x <= y) a++;
        if (y <= x) b++;
    }
    return n;
}

dgm_status dgm_shortlist_marian_write(const dgm_shortlist *s, int source_eos, dgm_writer *out,
                                      dgm_error *err)
{
    int first = leading(s);
    DGM_FAIL_IF(first < s->frequent_count && (source_eos < 0 || source_eos >= s->sources), err,
                DGM_ERR_UNSUPPORTED,
                "the source has no end symbol: Marian's file cannot hold these frequent tokens");
    size_t longest = (size_t)dgm_shortlist_longest(s);
    uint32_t *row = dgm_malloc((longest + (size_t)s->frequent_count) * sizeof *row);
    if (!row) return dgm_no_memory(err);
    dgm_writer offsets = {0}, ids = {0};
    uint64_t size = 0;
    for (int i = 0; i < s->sources; i++) {
        size_t n = merged_row(s, i, source_eos, first, row);
        dgm_write_u64(&offsets, size);
        for (size_t k = 0; k < n; k++) dgm_write_u32(&ids, row[k]);
        size += n;
    }
    dgm_write_u64(&offsets, size);
    size_t begin = out->size;
    dgm_write_u64(out, MAGIC);
    dgm_write_u64(out, 0);
    dgm_write_u64(out, (uint64_t)first);
    dgm_write_u64(out, longest);
    dgm_write_u64(out, (uint64_t)s->sources + 1);
    dgm_write_u64(out, size);
    dgm_write_bytes(out, offsets.data, offsets.size);
    dgm_write_bytes(out, ids.data, ids.size);
    bool failed = out->failed || offsets.failed || ids.failed;
    dgm_writer_free(&offsets);
    dgm_writer_free(&ids);
    dgm_free(row);
    if (failed) return dgm_no_memory(err);
    uint64_t sum = checksum(out->data + begin, out->size - begin);
    for (int i = 0; i < 8; i++) out->data[begin + 8 + (size_t)i] = (uint8_t)(sum >> (8 * i));
    return DGM_OK;
}

// ---- reading ----------------------------------------------------------------------------------

typedef struct header {
    uint64_t first, best, offsets, size;
} header;

static dgm_status read_header(const uint8_t *data, size_t size, int sources, int targets, header *h,
                              dgm_error *err)
{
    dgm_reader r = dgm_reader_over(data, size);
    uint64_t magic = dgm_read_u64(&r), sum = dgm_read_u64(&r);
    h->first = dgm_read_u64(&r);
    h->best = dgm_read_u64(&r);
    h->offsets = dgm_read_u64(&r);
    h->size = dgm_read_u64(&r);
    DGM_FAIL_IF(r.bad || magic != MAGIC, err, DGM_ERR_FORMAT, "not a binary shortlist of Marian");
    uint64_t a = 0, b = 0, total = 0;
    bool good = dgm_mul_size(h->offsets, 8, &a) && dgm_mul_size(h->size, 4, &b) &&
                dgm_add_size(a, b, &total) && dgm_add_size(total, HEADER, &total);
    DGM_FAIL_IF(!good || total != size, err, DGM_ERR_FORMAT,
                "the shortlist says %llu offsets and %llu ids, which does not fit its %zu bytes",
                (unsigned long long)h->offsets, (unsigned long long)h->size, size);
    DGM_FAIL_IF(checksum(data, size) != sum, err, DGM_ERR_FORMAT,
                "the shortlist's checksum is wrong: the file is damaged");
    DGM_FAIL_IF(h->offsets != (uint64_t)sources + 1, err, DGM_ERR_FORMAT,
                "the shortlist is for %llu source tokens, the vocabulary has %d",
                (unsigned long long)(h->offsets ? h->offsets - 1 : 0), sources);
    DGM_FAIL_IF(h->first > (uint64_t)targets, err, DGM_ERR_FORMAT,
                "the shortlist allows the first %llu tokens, the vocabulary has %d",
                (unsigned long long)h->first, targets);
    return DGM_OK;
}

static dgm_status read_rows(dgm_shortlist *s, dgm_reader *offsets, dgm_reader *ids, uint64_t size,
                            dgm_error *err)
{
    uint64_t last = dgm_read_u64(offsets);
    DGM_FAIL_IF(last != 0, err, DGM_ERR_FORMAT, "the shortlist's first offset is not 0");
    for (int i = 0; i < s->sources; i++) {
        uint64_t next = dgm_read_u64(offsets);
        DGM_FAIL_IF(next < last || next > size, err, DGM_ERR_FORMAT,
                    "the shortlist's offsets are damaged at source token %d", i);
        for (uint64_t k = last; k < next; k++) {
            uint32_t id = dgm_read_u32(ids);
            DGM_FAIL_IF(id >= (uint32_t)s->targets || (k > last && (int32_t)id <= s->ids[k - 1]),
                        err, DGM_ERR_FORMAT, "the shortlist of source token %d is damaged", i);
            s->ids[k] = (int32_t)id;
        }
        DGM_FAIL_IF(next - last > DGM_SHORTLIST_BEST_MAX, err, DGM_ERR_UNSUPPORTED,
                    "source token %d has %llu translations, more than %d", i,
                    (unsigned long long)(next - last), DGM_SHORTLIST_BEST_MAX);
        s->at[i + 1] = last = next;
    }
    DGM_FAIL_IF(last != size, err, DGM_ERR_FORMAT, "the shortlist's last offset is not its size");
    return DGM_OK;
}

dgm_status dgm_shortlist_marian_read(dgm_shortlist **s, const void *data, size_t size, int sources,
                                     int targets, dgm_error *err)
{
    *s = NULL;
    header h;
    DGM_TRY(read_header(data, size, sources, targets, &h, err));
    DGM_TRY(dgm_shortlist_open(s, sources, targets, h.size, (int)h.first, err));
    (*s)->frequent_count = (int)h.first;
    for (int i = 0; i < (int)h.first; i++) (*s)->frequent[i] = i;
    const uint8_t *from = (const uint8_t *)data + HEADER;
    dgm_reader offsets = dgm_reader_over(from, h.offsets * 8);
    dgm_reader ids = dgm_reader_over(from + h.offsets * 8, h.size * 4);
    dgm_status st = read_rows(*s, &offsets, &ids, h.size, err);
    if (st != DGM_OK) dgm_shortlist_close(s);
    return st;
}

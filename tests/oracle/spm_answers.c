// SPDX-License-Identifier: MIT
// Encodings and decodings of a SentencePiece model by our segmenter, for tests/oracle/check_spm.py.
//
//     spm_answers MODEL.spm < requests > answers
//     spm_answers MODEL.spm --time LINES        microseconds to open the model, and a line to encode and to decode
//
// A request: u32 kind, u32 count, then count bytes of text (kind 0) or count ids as i32 (kind 1). Its answer: i32
// count of tokens, -1 for an error, then id, begin, end of each as u32; for a decoding, before the tokens, u32 size of
// the text and its bytes. When the model is refused the only answer is i32 -2.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "text/spm.h"

typedef struct answer {
    dgm_writer text, tokens;
    int32_t count, *ids;
    size_t ids_count, ids_cap;
} answer;

static dgm_status take_text(void *arg, const char *text, size_t size)
{
    dgm_write_bytes(&((answer *)arg)->text, text, size);
    return DGM_OK;
}

static dgm_status take_token(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    answer *a = arg;
    dgm_write_u32(&a->tokens, (uint32_t)piece);
    dgm_write_u32(&a->tokens, begin);
    dgm_write_u32(&a->tokens, end);
    a->count++;
    return DGM_OK;
}

static void write_answer(const answer *a, bool good, bool decoded)
{
    const int32_t count = good ? a->count : -1;
    fwrite(&count, 4, 1, stdout);
    if (!good) return;
    if (decoded) {
        const uint32_t size = (uint32_t)a->text.size;
        fwrite(&size, 4, 1, stdout);
        fwrite(a->text.data, 1, size, stdout);
    }
    fwrite(a->tokens.data, 1, a->tokens.size, stdout);
}

static dgm_status keep_id(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    (void)begin, (void)end;
    answer *a = arg;
    DGM_TRY(dgm_grow(&a->ids, &a->ids_cap, a->ids_count + 1, sizeof *a->ids, NULL));
    a->ids[a->ids_count++] = piece;
    return DGM_OK;
}

static dgm_status keep_nothing(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    (void)arg, (void)piece, (void)begin, (void)end;
    return DGM_OK;
}

// The quickest of 15 rounds, in time of the processor.
static void print_times(const dgm_mapfile *model, const dgm_mapfile *lines)
{
    enum { ROUNDS = 15 };
    double best[3] = {1e9, 1e9, 1e9};
    size_t count = 0, tokens = 0;
    answer a = {0};
    for (int round = 0; round < ROUNDS; round++) {
        double took[3] = {-dgm_thread_time(), 0, 0};
        dgm_spm *spm;
        if (dgm_spm_open(&spm, model->data, model->size, NULL) != DGM_OK) return;
        took[0] += dgm_thread_time();
        count = tokens = 0;
        const char *line = (const char *)lines->data, *end = line + lines->size, *stop;
        for (; line < end && (stop = memchr(line, '\n', (size_t)(end - line)));
             line = stop + 1, count++) {
            a.ids_count = a.text.size = 0;
            const double begin = dgm_thread_time();
            if (dgm_spm_encode(spm, line, (size_t)(stop - line), keep_id, &a, NULL) != DGM_OK)
                continue;
            const double middle = dgm_thread_time();
            (void)dgm_spm_decode(spm, a.ids, a.ids_count, take_text, keep_nothing, &a, NULL);
            took[1] += middle - begin, took[2] += dgm_thread_time() - middle;
            tokens += a.ids_count;
        }
        dgm_spm_close(&spm);
        for (int i = 0; i < 3; i++) best[i] = took[i] < best[i] ? took[i] : best[i];
    }
    printf("open %.0f us; a line: encode %.2f us, decode %.2f us (%zu lines, %zu tokens)\n",
           best[0] * 1e6, best[1] * 1e6 / (double)count, best[2] * 1e6 / (double)count, count,
           tokens);
    dgm_writer_free(&a.text);
    dgm_free(a.ids);
}

int main(int argc, char **argv)
{
    dgm_mapfile file;
    dgm_error err;
    dgm_spm *spm;
    if (argc < 2 || dgm_mapfile_open(&file, argv[1], &err) != DGM_OK) return 2;
    if (argc > 2) {
        dgm_mapfile lines;
        if (argc != 4 || strcmp(argv[2], "--time") != 0 ||
            dgm_mapfile_open(&lines, argv[3], &err) != DGM_OK)
            return 2;
        print_times(&file, &lines);
        dgm_mapfile_close(&lines);
        dgm_mapfile_close(&file);
        return 0;
    }
    if (dgm_spm_open(&spm, file.data, file.size, &err) != DGM_OK) {
        fprintf(stderr, "%s\n", err.text);
        const int32_t refused = -2;
        return fwrite(&refused, 4, 1, stdout) != 1;
    }
    uint32_t head[2];
    char *body = NULL;
    answer a = {0};
    while (fread(head, 4, 2, stdin) == 2) {
        const size_t size = head[0] ? (size_t)head[1] * 4 : head[1];
        free(body);
        body = malloc(size ? size : 1); // no byte more: a sanitizer sees what reads past it
        if (!body || fread(body, 1, size, stdin) != size) return 2;
        a.text.size = a.tokens.size = 0;
        a.count = 0;
        const dgm_status st = head[0] ? dgm_spm_decode(spm, (const int32_t *)(const void *)body,
                                                       head[1], take_text, take_token, &a, &err)
                                      : dgm_spm_encode(spm, body, size, take_token, &a, &err);
        write_answer(&a, st == DGM_OK, head[0] != 0);
    }
    free(body);
    dgm_writer_free(&a.text);
    dgm_writer_free(&a.tokens);
    dgm_spm_close(&spm);
    dgm_mapfile_close(&file);
    return 0;
}

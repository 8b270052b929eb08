// SPDX-License-Identifier: MIT
// Fuzz target: files of torch.save in both layouts. Every accepted tensor is read whole, and settings are looked for.
// Parsers: src/import/pickle.c src/import/pickle_names.c src/import/pickle_values.c src/import/torch_file.c
// Parsers: src/import/zip_list.c
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "import/torch_file.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Archives by their members, old files as one pickle behind the other.
static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    return size > 2 && memcmp(data, "PK", 2) == 0 ? fuzz_zip(data, size, max, r) : fuzz_pickle(data, size, max, r);
}
FUZZ_MUTATOR(mutate)

static volatile double sink;

static void read_tensors(dgm_torch *t, const dgm_py *dict)
{
    dgm_store *s = NULL;
    if (dgm_store_open(&s, (dgm_store_container){0}, NULL) != DGM_OK) return;
    if (dgm_torch_tensors(t, dict, "", s, NULL) == DGM_OK)
        for (size_t i = 0; i < dgm_store_count(s); i++) {
            const dgm_view v = dgm_view_whole(s, dgm_store_get(s, i));
            float out[256];
            // A row may stand for itself many times over; its ends show a step outside.
            for (int r = 0; r < v.rows && v.cols <= 256 && r < 4096; r++)
                if (dgm_view_read(&v, r, 1, out, NULL) == DGM_OK && v.cols) sink += (double)out[0];
            if (v.rows && v.cols && v.cols <= 256) (void)dgm_view_read(&v, v.rows - 1, 1, out, NULL);
        }
    dgm_store_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_error err;
    dgm_torch *t;
    if (dgm_torch_open_memory(&t, "fuzz", data, size, &err) != DGM_OK) return 0;
    const dgm_py *root = dgm_torch_root(t), *args = dgm_py_get(root, "args");
    int64_t layers = 0;
    dgm_text arch = {0};
    (void)dgm_py_int(args, "layers", 0, 99, &layers, &err);
    (void)dgm_py_string(args, "arch", &arch, &err);
    bool tied = false;
    (void)dgm_py_bool(args, "share_decoder_input_output_embed", &tied, &err);
    for (size_t i = 0; i < arch.size; i++) sink += arch.data[i];
    read_tensors(t, root);
    read_tensors(t, dgm_py_get(root, "model"));
    dgm_torch_close(&t);
    return 0;
}

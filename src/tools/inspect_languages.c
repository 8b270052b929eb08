// SPDX-License-Identifier: MIT
// What `inspect` says about the directions and the experts of a model; called by inspect.c.
//
//   directions   4: en de, de en, en fr, fr en; tokens: source on the source, target on the target
//   experts      32, 2 of them for a row, in encoder layers 4, 8, ...; decoder layers 4, 8, ...
#include <string.h>

#include "engine/engine_private.h"
#include "tools/inspect_private.h"

enum { SHOWN = 40 };

static void put_tags(dgm_writer *w, const dgm_languages *l)
{
    static const char *const names[] = {"source", "target"};
    bool any = false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < l->tags[side]; i++, any = true)
            dgm_write_format(w, "%s%s language %s the %s", any ? ", " : "; tokens: ",
                             names[l->tag[side][i]], side == 0 && l->last ? "behind" : "before",
                             names[side]);
}

// Decoding defaults that directions have of their own: how many keys, which.
static void put_defaults(dgm_writer *w, const dgm_gguf *file)
{
    static const char prefix[] = "dragoman.directions.";
    size_t n = 0;
    for (int i = 0; i < dgm_gguf_meta_count(file); i++) {
        const dgm_meta *m = dgm_gguf_meta(file, i);
        if (strncmp(m->key, prefix, sizeof prefix - 1) != 0 || n++ >= SHOWN) continue;
        if (n == 1) dgm_write_format(w, "  %-13s ", "own defaults");
        dgm_write_format(w, "%s%s", n > 1 ? ", " : "", m->key + sizeof prefix - 1);
    }
    if (n > SHOWN) dgm_write_format(w, " and %zu more", n - SHOWN);
    if (n) dgm_write_text(w, "\n");
}

dgm_status dgm_inspect_directions(dgm_writer *w, const dgm_gguf *file, dgm_error *err)
{
    dgm_vocab_spec source, target;
    dgm_languages l;
    DGM_TRY(dgm_modelfile_vocab(file, DGM_SOURCE, &source, err));
    DGM_TRY(dgm_modelfile_vocab(file, DGM_TARGET, &target, err));
    const int sizes[2] = {source.size, target.size};
    DGM_TRY(dgm_languages_read(file, sizes, &l, err));
    size_t count = dgm_languages_directions(&l), n = 0;
    if (count > 1 || l.tags[0] + l.tags[1] > 0) {
        dgm_write_format(w, "  %-13s %zu", "directions", count);
        if (!l.pairs && count > SHOWN) dgm_write_text(w, ": every language into every other");
        for (int s = 0; s < l.count[0] && (l.pairs || count <= SHOWN); s++)
            for (int t = 0; t < l.count[1]; t++) {
                if (!dgm_languages_offers(&l, s, t) || n++ >= SHOWN) continue;
                dgm_write_format(w, "%s%s %s", n == 1 ? ": " : ", ", l.code[0][s], l.code[1][t]);
            }
        if (n > SHOWN) dgm_write_format(w, " and %zu more", n - SHOWN);
        if (l.first[0] >= 0)
            dgm_write_format(w, "; default %s %s", l.code[0][l.first[0]], l.code[1][l.first[1]]);
        put_tags(w, &l);
        dgm_write_text(w, "\n");
        put_defaults(w, file);
    }
    dgm_languages_free(&l);
    return DGM_OK;
}

void dgm_inspect_experts(dgm_writer *w, const dgm_gguf *file)
{
    uint32_t experts = 0, top = 1, every[2] = {0, 0};
    const char *const keys[] = {"dragoman.transformer.moe.encoder_every",
                                "dragoman.transformer.moe.decoder_every"};
    const uint32_t most = UINT32_MAX;
    if (dgm_gguf_get_u32(file, "dragoman.transformer.moe.experts", DGM_OPTIONAL, 0, most, &experts,
                         NULL) != DGM_OK || experts == 0)
        return;
    if (dgm_gguf_get_u32(file, "dragoman.transformer.moe.top", DGM_OPTIONAL, 0, most, &top, NULL))
        top = 0;
    dgm_write_format(w, "  %-13s %u, %u of them for a row", "experts", experts, top);
    for (int side = 0; side < 2; side++) {
        if (dgm_gguf_get_u32(file, keys[side], DGM_OPTIONAL, 0, most, &every[side], NULL)) continue;
        if (every[side])
            dgm_write_format(w, "; %s layers %u, %llu, ...", side ? "decoder" : "encoder",
                             every[side], 2ull * every[side]);
    }
    dgm_write_text(w, "\n");
}

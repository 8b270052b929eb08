// SPDX-License-Identifier: MIT
// What a model file says about the model itself; see card.h.
#include "format/card.h"

#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"

enum { CARD_MAX = 1 << 20 };

dgm_status dgm_card_read(const char *path, char **text, dgm_error *err)
{
    *text = NULL;
    if (!path) return DGM_OK;
    dgm_mapfile f;
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    dgm_status st = DGM_OK;
    if (f.size > CARD_MAX || (f.size && memchr(f.data, 0, f.size)))
        st = dgm_fail(err, DGM_ERR_ARGUMENT, "'%s' is not a text of at most 1 MiB", path);
    else if (!(*text = dgm_strndup(f.size ? (const char *)f.data : "", f.size)))
        st = dgm_no_memory(err);
    dgm_mapfile_close(&f);
    return st;
}

void dgm_card_set(dgm_gguf_writer *w, const dgm_card *card, bool empty)
{
    const struct {
        const char *key, *value;
    } said[] = {{"general.name", card->name},       {"general.description", card->description},
                {"general.license", card->license}, {"general.author", card->author},
                {"general.source.url", card->url},  {"dragoman.card", card->text}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].value && (empty || said[i].value[0]))
            dgm_gguf_set_string(w, said[i].key, said[i].value);
}

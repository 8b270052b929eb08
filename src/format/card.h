// SPDX-License-Identifier: MIT
// What a model file says about the model itself: name, licence and the like, and its card.
#ifndef DGM_FORMAT_CARD_H
#define DGM_FORMAT_CARD_H

#include "format/gguf.h"

typedef struct dgm_card { // NULL: not said
    const char *name, *description, *license, *author, *url;
    const char *text; // Markdown
} dgm_card;

// The text of a card's file, terminated, for the caller to free; NULL where path is NULL.
dgm_status dgm_card_read(const char *path, char **text, dgm_error *err);
// Sets the keys of what is said. Empty texts count only with `empty`: they replace what was there.
void dgm_card_set(dgm_gguf_writer *w, const dgm_card *card, bool empty);

#endif

// SPDX-License-Identifier: MIT
// Marian's recurrent model types: s2s, amun and nematus.
#ifndef DGM_IMPORT_MARIAN_RNN_H
#define DGM_IMPORT_MARIAN_RNN_H

#include "base/json.h"
#include "import/recurrent.h"

// Does Marian call that a recurrent translation model?
bool dgm_marian_is_recurrent(const char *type);
// All keys of dragoman.rnn.* and all weights of a model whose special:model.yml is `config`. What this program
// cannot run is DGM_ERR_UNSUPPORTED; messages name the setting or the tensor. m: what it found.
dgm_status dgm_marian_recurrent(dgm_composer *c, const json_t *config, dgm_recurrent *m,
                                dgm_error *err);

#endif

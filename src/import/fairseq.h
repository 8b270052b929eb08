// SPDX-License-Identifier: MIT
// Private to the importer of fairseq's checkpoints: what their settings say.
#ifndef DGM_IMPORT_FAIRSEQ_H
#define DGM_IMPORT_FAIRSEQ_H

#include "import/marian_config.h"
#include "import/pickle.h"
#include "import/store.h"

typedef struct dgm_fairseq_settings {
    dgm_marian_config c;
    char source[40], target[40]; // languages; "": not said
    bool moses;                  // text was tokenised by Moses' rules
} dgm_fairseq_settings;

// root: of the checkpoint. Sizes are those of the tensors. Vocabularies' sizes and the rest of what generate would do
// are set, too. An architecture that is no Transformer for translation is refused by its name.
dgm_status dgm_fairseq_settings_read(dgm_fairseq_settings *s, const dgm_py *root,
                                     const dgm_store *tensors, dgm_error *err);

#endif

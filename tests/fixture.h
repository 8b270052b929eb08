// SPDX-License-Identifier: MIT
// Test models and what PyTorch computes with them (training/dragoman_training/fixtures.py).
//
// tests/data/models holds NAME.gguf, a tiny random model, and NAME.fixture.gguf, activations of a
// few sentences with forced decoder inputs. A fixture opens both and can walk any set of its
// sentences through the model seam, started at different steps, with sibling rows beside them.
// Used by the tests of every architecture. Functions fail the running cmocka test on errors.
#ifndef DGM_TESTS_FIXTURE_H
#define DGM_TESTS_FIXTURE_H

#include "backend/ops.h"
#include "model/model.h"

enum { FIXTURE_SENTENCES = 8 };

typedef struct fixture_sentence {
    const int32_t *source, *target; // target: the decoder's inputs of each step; -1 = start
    const int32_t *greedy;          // arg-max output without the end symbol, or NULL
    int source_count, steps, greedy_count;
    const float *logits;       // [steps * tokens, vocabulary]
    const float *attention;    // [steps * tokens, source_count]
    const char *text, *output; // NULL where the source is no text
} fixture_sentence;

typedef struct fixture {
    char name[64];
    dgm_gguf *file, *dump;
    dgm_backend *backend;
    dgm_model *model;
    dgm_exec *exec;
    dgm_state *state;
    int vocabulary, count;
    int tokens; // of a step
    fixture_sentence sentence[FIXTURE_SENTENCES];
} fixture;

// How to walk: sentence list[i] enters at global step delay[i] (NULL: all at once), and every row
// has `siblings` neighbours that feed other tokens to the same parent.
typedef struct fixture_walk {
    const int *list, *delay;
    int count, siblings;
} fixture_walk;

// What the model gave, in the order of the walk's list; freed by fixture_result_free.
typedef struct fixture_result {
    float *logits[FIXTURE_SENTENCES];    // [steps * tokens, vocabulary]
    float *attention[FIXTURE_SENTENCES]; // [steps * tokens, source_count]
} fixture_result;

// level: highest ISA, NULL = the best. The state holds all sentences at once.
void fixture_open(fixture *f, const char *name, const char *level);
// The same in another precision and with another tuning (NULL: the default).
void fixture_open_tuned(fixture *f, const char *name, const char *level, dgm_precision precision,
                        const dgm_tuning *tuning);
void fixture_close(fixture *f);
void fixture_run(fixture *f, const fixture_walk *walk, fixture_result *out);
void fixture_result_free(fixture_result *r);

// Largest difference of a step, as a part of the step's largest |expected|; the worst step's.
double fixture_difference(const float *got, const float *expected, int steps, int width);

// Names of the fixtures that begin with prefix, sorted. Fails if there are fewer than at_least.
int fixture_list(const char *prefix, char names[][64], int most, int at_least);

// All of the above for every fixture of a family, on the C reference, AVX2 and the best kernels:
// logits within 1e-4, attention too, one sentence or many, bit for bit the same.
void fixture_check_family(const char *prefix, int at_least);

// Encoding and stepping allocate nothing; every allocation of loading may fail and is survived.
void fixture_check_memory(const char *name);

// Loads copies of the model, each without one tensor: an error that names the tensor, or a model
// that can do without it (a bias, a tied matrix). At least `required` of them must be errors.
void fixture_check_missing(const char *name, int required);

#endif

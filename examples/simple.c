// SPDX-License-Identifier: MIT
// The smallest program: opens a model and translates two sentences.
//
//     cc simple.c -o simple $(pkg-config --cflags --libs dragoman)
//     ./simple [MODEL]            without a name: the default model
#include <dragoman/dragoman.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    dgm_translator *t = NULL;
    dgm_error error;
    if (dgm_open(&t, argc > 1 ? argv[1] : NULL, NULL, &error) != DGM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const char *texts[] = {"Good morning.", "How are you today?"};
    dgm_results *results = NULL;
    int code = 1;
    if (dgm_translate(t, texts, 2, &results, &error) == DGM_OK) {
        for (size_t i = 0; i < results->count; i++)
            printf("%s\n", dgm_result_text(results->items[i]));
        code = 0;
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    dgm_results_free(&results);
    dgm_close(&t);
    return code;
}

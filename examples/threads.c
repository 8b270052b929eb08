// SPDX-License-Identifier: MIT
// One translator used by four threads at once, each with its own lines. Their sentences share the
// batch, and nobody's translation depends on the others': the program checks that.
//
//     cc threads.c -o threads -pthread $(pkg-config --cflags --libs dragoman)
#include <dragoman/dragoman.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 3 };

static const char *const texts[] = {"Good morning.", "The house is small.", "I like red apples.",
                                    "Where is the station?"};

typedef struct job {
    pthread_t thread;
    dgm_translator *translator;
    const char *text;
    char first[512];
    int different, failed;
} job;

static void *work(void *arg)
{
    job *j = (job *)arg; // the cast is for C++
    for (int i = 0; i < ROUNDS; i++) {
        dgm_results *results = NULL;
        if (dgm_translate(j->translator, &j->text, 1, &results, NULL) != DGM_OK) {
            j->failed++;
            continue;
        }
        const char *text = dgm_result_text(results->items[0]);
        if (i == 0)
            snprintf(j->first, sizeof j->first, "%s", text);
        else
            j->different += strcmp(j->first, text) != 0;
        dgm_results_free(&results);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    dgm_translator *t = NULL;
    dgm_error error;
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.threads = 2;
    if (dgm_open(&t, argc > 1 ? argv[1] : NULL, &settings, &error) != DGM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    job jobs[THREADS];
    memset(jobs, 0, sizeof jobs);
    int started = 0, bad = 0;
    for (; started < THREADS; started++) {
        jobs[started].translator = t;
        jobs[started].text = texts[started];
        if (pthread_create(&jobs[started].thread, NULL, work, &jobs[started]) != 0) break;
    }
    for (int i = 0; i < started; i++) pthread_join(jobs[i].thread, NULL);
    for (int i = 0; i < started; i++) {
        printf("%s\n", jobs[i].first);
        bad += jobs[i].different + jobs[i].failed;
    }
    dgm_close(&t);
    return bad || started < THREADS;
}

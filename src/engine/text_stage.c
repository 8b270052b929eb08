// SPDX-License-Identifier: MIT
// Text threads: everything that is not arithmetic, off the threads that decode, so that a fast
// device never waits for it.
//
//     lines   pieces are all decoded: one text thread makes the line's result   (assemble.c)
//     shares  lines of a job that is being submitted, in parts: the submitting
//             thread takes some, idle text threads the others                   (pipeline.c)
//
// A line that is ready goes first: somebody may be waiting for it, and a job that is submitted has
// its own thread. Both lists are guarded by the translator's lock. Neither can grow beyond the jobs
// that callers have in flight, whose memory they are.
//
// One text thread for every four workers: on the CPU text is a few per cent of the work, and with a
// device each worker stands for less. Where a phrase-based system decodes every line first, which takes
// about as long as the search, there is one for every worker. They sleep while there is nothing to do.
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine_private.h"

// A call of dgm_text_share; lives in the frame of the thread that made it.
typedef struct share {
    struct share *next;
    dgm_text_fn run;
    void *arg;
    size_t parts, taken, done;
    pthread_cond_t all;
} share;

typedef struct text_thread {
    dgm_translator *t;
    pthread_t thread;
    int index; // from 1
} text_thread;

struct dgm_text_stage {
    pthread_cond_t wake;
    bool wake_ready, quit;
    text_thread *threads; // [count]
    int count, started, idle;
    dgm_line_state *first, *last;
    share *shares; // with parts that nobody has taken
};

int dgm_text_threads(const dgm_translator *t)
{
    return t->phrases ? t->threads : (t->threads + 3) / 4;
}

void dgm_text_take(dgm_translator *t, dgm_line_state *line)
{
    dgm_text_stage *x = t->text;
    line->next = NULL;
    if (x->last)
        x->last->next = line;
    else
        x->first = line;
    x->last = line;
}

void dgm_text_wake(dgm_translator *t)
{
    const dgm_text_stage *x = t->text;
    if (x->idle > 0 && (x->first || x->shares)) pthread_cond_signal(&t->text->wake);
}

// ---- telling while a search runs ----------------------------------------------------------------

// Cuts the end of a text off that is not a whole word yet: characters that are written without spaces
// are words by themselves.
static void keep_words(dgm_writer *text)
{
    const char *data = (const char *)text->data;
    while (text->size && data[text->size - 1] != ' ' && data[text->size - 1] != '\t') {
        const size_t last = dgm_utf8_prev(data, text->size);
        uint32_t code = 0;
        dgm_utf8_next(data + last, text->size - last, &code);
        if (dgm_char_class(code) & DGM_CHAR_SPACELESS) return;
        text->size = last;
    }
}

static void trim_end(dgm_writer *text)
{
    while (text->size && (text->data[text->size - 1] == ' ' || text->data[text->size - 1] == '\t'))
        text->size--;
}

// Every call has more than the one before: a sentence that was begun again repeats itself.
static void tell_more(dgm_line_state *line, dgm_writer *text)
{
    const dgm_watch *w = &line->job->watch;
    const size_t size = text->size;
    dgm_write_u8(text, 0);
    pthread_mutex_lock(&line->job->telling);
    dgm_writer *said = &line->said;
    if (!text->failed && size > said->size &&
        (said->size == 0 || memcmp(said->data, text->data, said->size) == 0)) {
        said->size = 0;
        dgm_write_bytes(said, text->data, size);
        if (!said->failed)
            w->partial(w->user, (size_t)(line - line->job->lines), (const char *)text->data, size);
    }
    pthread_mutex_unlock(&line->job->telling);
}

// The pieces of a line up to the first one that is not there yet.
static size_t count_ready(dgm_translator *t, dgm_piece_state *piece, bool decoded)
{
    const dgm_line_state *line = piece->line;
    const dgm_piece_state *first = &line->job->encoded.pieces[line->first];
    size_t ready = 0;
    pthread_mutex_lock(&t->lock);
    if (decoded) piece->decoded = true;
    while (ready < line->pieces.count && (first[ready].decoded || first[ready].copied)) ready++;
    pthread_mutex_unlock(&t->lock);
    return ready;
}

bool dgm_text_say(dgm_piece_state *piece, const int32_t *tokens, int count)
{
    dgm_line_state *line = piece->line;
    const dgm_vocab *target = line->job->translator->target;
    const size_t index = (size_t)(piece - &line->job->encoded.pieces[line->first]);
    const size_t ready = count_ready(line->job->translator, piece, tokens == NULL);
    if (ready < index + (tokens == NULL)) return false;
    dgm_raw begun = {.tokens = tokens};
    if (tokens) {
        if (line->careful) count = dgm_runaway_settled(tokens, count);
        begun.count = (int)dgm_vocab_settled(target, tokens, (size_t)count);
    }
    dgm_scratch s = {0};
    if (dgm_line_begin(line, tokens ? index + 1 : ready, tokens ? &begun : NULL, &s, NULL) == DGM_OK) {
        if (tokens) keep_words(&s.joined);
        trim_end(&s.joined);
        tell_more(line, &s.joined);
    }
    dgm_scratch_free(&s); // without memory nothing is told until the line is ready
    return true;
}

// ---- the threads -------------------------------------------------------------------------------

// Whoever watches the job hears of a line that is ready.
static void tell_line(dgm_job *job, size_t index)
{
    const dgm_watch *w = &job->watch;
    const dgm_result *result = &job->box->items[index];
    pthread_mutex_lock(&job->telling);
    job->told++;
    if (w->partial && result->status == DGM_OK)
        w->partial(w->user, index, dgm_result_text(result), result->translations[0]->text_size);
    if (w->line) w->line(w->user, index, result);
    if (w->progress) w->progress(w->user, job->told, job->line_count);
    pthread_mutex_unlock(&job->telling);
}

// Lock held before and after, not in between.
static void assemble_line(dgm_translator *t, dgm_scratch *scratch)
{
    dgm_text_stage *x = t->text;
    dgm_line_state *line = x->first;
    dgm_job *job = line->job;
    const double begin = t->profiling ? dgm_thread_time() : 0;
    x->first = line->next;
    if (!x->first) x->last = NULL;
    dgm_text_wake(t); // another one, for the next
    pthread_mutex_unlock(&t->lock);
    dgm_line_assemble(line, scratch, &job->box->items[line - job->lines]);
    const double end = t->profiling ? dgm_thread_time() : 0;
    if (job->watch.size) tell_line(job, (size_t)(line - job->lines));
    pthread_mutex_lock(&t->lock);
    if (t->profiling) t->text_seconds += end - begin;
    dgm_line_count(t, line);
    if (--job->left > 0) return;
    t->timed -= job->timed;
    t->streams -= job->streamed;
    pthread_cond_broadcast(&job->done);
}

// The next part of a share, likewise.
static void run_part(dgm_translator *t, share *s, int who)
{
    const size_t part = s->taken++;
    if (s->taken == s->parts) {
        share **at = &t->text->shares;
        while (*at != s) at = &(*at)->next;
        *at = s->next;
    }
    if (who > 0) dgm_text_wake(t);
    pthread_mutex_unlock(&t->lock);
    s->run(s->arg, who, part);
    pthread_mutex_lock(&t->lock);
    if (++s->done == s->parts && who > 0) pthread_cond_signal(&s->all);
}

static void *text_main(void *arg)
{
    const text_thread *self = arg;
    dgm_translator *t = self->t;
    dgm_text_stage *x = t->text;
    dgm_scratch scratch = {0};
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!x->quit && !x->first && !x->shares) {
            x->idle++;
            pthread_cond_wait(&x->wake, &t->lock);
            x->idle--;
        }
        if (x->first) {
            assemble_line(t, &scratch);
        } else if (x->shares) {
            const double begin = t->profiling ? dgm_thread_time() : 0;
            run_part(t, x->shares, self->index);
            if (t->profiling) t->text_seconds += dgm_thread_time() - begin;
        } else {
            break;
        }
    }
    pthread_mutex_unlock(&t->lock);
    dgm_scratch_free(&scratch);
    return NULL;
}

// ---- sharing -----------------------------------------------------------------------------------

void dgm_text_share(dgm_translator *t, dgm_text_fn run, void *arg, size_t parts)
{
    share s = {.run = run, .arg = arg, .parts = parts};
    if (parts < 2 || pthread_cond_init(&s.all, NULL) != 0) {
        for (size_t i = 0; i < parts; i++) run(arg, 0, i);
        return;
    }
    pthread_mutex_lock(&t->lock);
    share **at = &t->text->shares;
    while (*at) at = &(*at)->next;
    *at = &s;
    dgm_text_wake(t);
    while (s.taken < parts) run_part(t, &s, 0);
    while (s.done < parts) pthread_cond_wait(&s.all, &t->lock);
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&s.all);
}

// ---- opening and closing -----------------------------------------------------------------------

dgm_status dgm_text_start(dgm_translator *t, dgm_error *err)
{
    dgm_text_stage *x = t->text = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    if (pthread_cond_init(&x->wake, NULL) != 0) return dgm_no_memory(err);
    x->wake_ready = true;
    x->count = dgm_text_threads(t);
    x->threads = dgm_calloc((size_t)x->count, sizeof *x->threads);
    if (!x->threads) return dgm_no_memory(err);
    for (int i = 0; i < x->count; i++) {
        x->threads[i] = (text_thread){.t = t, .index = i + 1};
        if (pthread_create(&x->threads[i].thread, NULL, text_main, &x->threads[i]) != 0)
            return dgm_fail(err, DGM_ERR_MEMORY, "cannot start text thread %d of %d", i + 1,
                            x->count);
        x->started++;
    }
    return DGM_OK;
}

void dgm_text_stop(dgm_translator *t)
{
    dgm_text_stage *x = t->text;
    if (!x) return;
    if (x->started) {
        pthread_mutex_lock(&t->lock);
        x->quit = true;
        pthread_cond_broadcast(&x->wake);
        pthread_mutex_unlock(&t->lock);
    }
    for (int i = 0; i < x->started; i++) pthread_join(x->threads[i].thread, NULL);
    if (x->wake_ready) pthread_cond_destroy(&x->wake);
    dgm_free(x->threads);
    dgm_free(x);
    t->text = NULL;
}

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
// One text thread for every four workers: on the CPU text is a few per cent of the work. Beside a device that
// leaves the cores alone half of those that have no worker, up to eight, since it waits for the text of a
// call's first lines and callers for that of the last. Where a phrase-based system decodes every line first,
// which takes about as long as the search, there is one for every worker. They sleep while there is nothing to
// do.
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
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

int dgm_text_suits(int workers, int cores, bool device)
{
    enum { MOST = 8 };
    const int few = (workers + 3) / 4, left = (cores - workers) / 2, more = left < MOST ? left : MOST;
    return device && more > few ? more : few;
}

int dgm_text_threads(const dgm_translator *t)
{
    if (t->text) return t->text->count;
    const bool device = !dgm_backend_properties(t->backend)->host_memory;
    return t->phrase_count ? t->threads : dgm_text_suits(t->threads, dgm_cpu_count(), device);
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

bool dgm_text_say(dgm_piece_state *piece, const int32_t *tokens, int count, bool whole)
{
    dgm_line_state *line = piece->line;
    const dgm_vocab *target = line->job->translator->target;
    const size_t index = (size_t)(piece - &line->job->encoded.pieces[line->first]);
    const size_t ready = count_ready(line->job->translator, piece, tokens == NULL);
    if (ready < index + (tokens == NULL)) return false;
    dgm_raw begun = {.tokens = tokens};
    if (tokens) {
        const int given = count;
        if (line->careful) count = dgm_runaway_settled(tokens, count);
        begun.count = (int)dgm_vocab_settled(target, tokens, (size_t)count);
        whole = whole && begun.count == given;
    }
    dgm_scratch s = {0};
    if (dgm_line_begin(line, tokens ? index + 1 : ready, tokens ? &begun : NULL, &s, NULL) == DGM_OK) {
        if (tokens && !whole) keep_words(&s.joined);
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

// ---- second attempts ---------------------------------------------------------------------------
//
// A piece whose translation lost something that is protected is translated again with stand-ins, as a line of a
// job of its own; the line waits for it, and takes what keeps the most. Translations do not depend on
// company, so this does not either.

typedef struct attempt {
    size_t piece; // of the line
    dgm_standins standins;
} attempt;

struct dgm_retry {
    int rounds; // begun so far
    dgm_standins *respelt; // [pieces of the line]: numbers that need no attempt
    struct {
        dgm_job *job; // a line for every attempt
        attempt *attempts;
        size_t count;
    } round[DGM_STANDIN_ROUNDS];
};

static void free_retry(dgm_line_state *line)
{
    struct dgm_retry *r = line->retry;
    for (int i = 0; r && i < r->rounds; i++) {
        dgm_job_free(r->round[i].job);
        for (size_t k = 0; k < r->round[i].count; k++) dgm_standins_free(&r->round[i].attempts[k].standins);
        dgm_free(r->round[i].attempts);
    }
    for (size_t i = 0; r && r->respelt && i < line->pieces.count; i++) dgm_standins_free(&r->respelt[i]);
    if (r) dgm_free(r->respelt);
    dgm_free(r);
    line->retry = NULL;
}

static dgm_protector protector_of(const dgm_line_state *line)
{
    const dgm_translator *t = line->job->translator;
    if (!line->other) return t->protector;
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    return dgm_protector_for(dgm_text_of(l->code[0][line->direction[0]]), dgm_text_of(l->code[1][line->direction[1]]));
}

static dgm_text source_of(const dgm_line_state *line, size_t i)
{
    const dgm_piece *p = &line->pieces.items[i];
    return (dgm_text){line->text + p->begin, p->end - p->begin};
}

// What is protected in a piece of the line, to s->protected: all that no glossary speaks of.
static dgm_status find_protected(const dgm_line_state *line, size_t i, const dgm_protector *p, dgm_scratch *s,
                                 dgm_error *err)
{
    const dgm_translator *t = line->job->translator;
    dgm_protected_list *found = &s->protected;
    const dgm_text text = source_of(line, i);
    DGM_TRY(dgm_protect_find(p, text, found, err));
    size_t kept = 0;
    for (size_t k = 0; (line->glossary || t->keep) && k < found->count; k++)
        if (!dgm_constrain_claims(line, text, found->items[k].begin, found->items[k].end))
            found->items[kept++] = found->items[k];
    if (line->glossary || t->keep) found->count = kept;
    return dgm_grow(&s->kept, &s->kept_cap, found->count, sizeof *s->kept, err);
}

// How good a piece's translation is: how much of what is protected it keeps (and which, in s->kept), and what is
// wrong with its stand-ins.
typedef struct quality {
    size_t kept, faults;
} quality;

static dgm_status judge(const dgm_line_state *line, size_t i, const dgm_protector *p, dgm_piece_state *piece,
                        const dgm_standins *standins, dgm_scratch *s, quality *out, dgm_error *err)
{
    s->text.size = 0;
    DGM_TRY(dgm_piece_text(piece, s, err));
    dgm_text said = {s->text.data ? (const char *)s->text.data : "", s->text.size};
    out->faults = standins ? dgm_standins_faults(standins, said) : 0;
    if (standins) DGM_TRY(dgm_standins_restore(standins, &s->text, 0, NULL, 0, err));
    said = (dgm_text){s->text.data ? (const char *)s->text.data : "", s->text.size};
    out->kept = dgm_protect_check(p, source_of(line, i), s->protected.items, s->protected.count, said, s->kept);
    return DGM_OK;
}

// Takes an attempt that was decoded where it is better than what there is.
static dgm_status choose(dgm_line_state *line, const dgm_protector *p, const attempt *a, const dgm_line_state *tried,
                         dgm_scratch *s, dgm_error *err)
{
    dgm_piece_state *own = &line->job->encoded.pieces[line->first + a->piece];
    dgm_piece_state *piece = &tried->job->encoded.pieces[tried->first];
    quality before, after;
    if (tried->status != DGM_OK || tried->pieces.count != 1 || piece->copied || piece->status != DGM_OK ||
        piece->late || piece->hyp_count == 0 || piece->relaxed != own->relaxed)
        return DGM_OK;
    DGM_TRY(find_protected(line, a->piece, p, s, err));
    DGM_TRY(judge(line, a->piece, p, own->better ? own->better : own, own->standins, s, &before, err));
    DGM_TRY(judge(line, a->piece, p, piece, &a->standins, s, &after, err));
    if (piece->repeated && !own->repeated) return DGM_OK;
    const bool cleaner = own->better && after.kept == before.kept && after.faults < before.faults;
    if (after.kept <= before.kept && !cleaner) return DGM_OK;
    own->better = piece;
    own->standins = &a->standins;
    return DGM_OK;
}

// Writes numbers right that are there in the wrong form; s->text is the translation, s->kept what it has.
static dgm_status respell(dgm_line_state *line, size_t i, const dgm_protector *p, dgm_scratch *s, quality *now,
                          dgm_error *err)
{
    dgm_piece_state *own = &line->job->encoded.pieces[line->first + i];
    const dgm_text said = {s->text.data ? (const char *)s->text.data : "", s->text.size};
    dgm_standins made = {0};
    quality after;
    dgm_status st = dgm_standins_respell(&made, p, source_of(line, i), s->protected.items, s->protected.count, s->kept,
                                         said, err);
    if (st == DGM_OK && made.count) st = judge(line, i, p, own, &made, s, &after, err);
    if (st != DGM_OK || made.count == 0 || after.kept <= now->kept) {
        dgm_standins_free(&made);
        return st;
    }
    if (!line->retry) line->retry = dgm_calloc(1, sizeof *line->retry);
    if (line->retry && !line->retry->respelt)
        line->retry->respelt = dgm_calloc(line->pieces.count, sizeof *line->retry->respelt);
    if (!line->retry || !line->retry->respelt) {
        dgm_standins_free(&made);
        return dgm_no_memory(err);
    }
    line->retry->respelt[i] = made;
    own->standins = &line->retry->respelt[i];
    *now = after;
    return DGM_OK;
}

// Is it worth a second attempt? Numbers and names alone are not: what the first did not bring the next seldom does.
static bool is_worth(const dgm_scratch *s, int round)
{
    for (size_t k = 0; k < s->protected.count; k++) {
        const int32_t kind = s->protected.items[k].kind;
        if (!s->kept[k] && kind != DGM_PROTECTED_NUMBER && kind != DGM_PROTECTED_NAME) return true;
    }
    return round == 0;
}

// An attempt at a piece that has lost something, or whose stand-ins did not fit; none (*made false) at others.
static dgm_status plan(dgm_line_state *line, size_t i, const dgm_protector *p, int round, dgm_scratch *s,
                       attempt *a, bool *made, dgm_error *err)
{
    dgm_piece_state *own = &line->job->encoded.pieces[line->first + i];
    quality now = {0};
    *made = false;
    if (own->copied) return DGM_OK;
    DGM_TRY(find_protected(line, i, p, s, err));
    if (s->protected.count == 0) return DGM_OK;
    if (own->better) DGM_TRY(judge(line, i, p, own->better, own->standins, s, &now, err));
    if (own->better && now.kept == s->protected.count && now.faults == 0) return DGM_OK;
    const dgm_standins *respelt = line->retry && line->retry->respelt ? &line->retry->respelt[i] : NULL;
    DGM_TRY(judge(line, i, p, own, respelt, s, &now, err)); // what it lost by itself
    if (now.kept < s->protected.count && round == 0) DGM_TRY(respell(line, i, p, s, &now, err));
    if (now.kept == s->protected.count || !is_worth(s, round)) return DGM_OK;
    a->piece = i;
    DGM_TRY(dgm_standins_make(&a->standins, p, source_of(line, i), s->protected.items, s->protected.count, s->kept,
                              round, err));
    *made = a->standins.count > 0;
    return DGM_OK;
}

// Queues a round's attempts; *waits: there are some, and the line may be gone by now.
static dgm_status queue_round(dgm_line_state *line, attempt *attempts, size_t count, bool *waits, dgm_error *err)
{
    const dgm_languages *l = dgm_model_describe(line->job->translator->members[0].model)->languages;
    dgm_direction direction = {0};
    if (line->other) direction = (dgm_direction){l->code[0][line->direction[0]], l->code[1][line->direction[1]]};
    dgm_input *inputs = dgm_calloc(count, sizeof *inputs);
    if (!inputs) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        dgm_input_default(&inputs[i]);
        inputs[i].text = (const char *)attempts[i].standins.text.data;
        inputs[i].text_size = attempts[i].standins.text.size;
        if (line->other) inputs[i].direction = &direction;
    }
    dgm_job **job = &line->retry->round[line->retry->rounds - 1].job;
    const dgm_status st = dgm_submit_again(line, inputs, count, job, waits, err);
    dgm_free(inputs);
    return st;
}

// The next round of attempts at what the line lost.
static dgm_status next_round(dgm_line_state *line, const dgm_protector *p, dgm_scratch *s, bool *waits, dgm_error *err)
{
    const int round = line->retry ? line->retry->rounds : 0;
    attempt *attempts = NULL;
    size_t count = 0, cap = 0;
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < line->pieces.count && st == DGM_OK; i++) {
        attempt a = {0};
        bool made = false;
        st = plan(line, i, p, round, s, &a, &made, err);
        if (st == DGM_OK && made) st = dgm_grow(&attempts, &cap, count + 1, sizeof *attempts, err);
        if (st == DGM_OK && made)
            attempts[count++] = a;
        else
            dgm_standins_free(&a.standins);
    }
    if (st == DGM_OK && count && !line->retry) line->retry = dgm_calloc(1, sizeof *line->retry);
    if (st == DGM_OK && count && !line->retry) st = dgm_no_memory(err);
    if (st != DGM_OK || count == 0) {
        for (size_t i = 0; i < count; i++) dgm_standins_free(&attempts[i].standins);
        dgm_free(attempts);
        return st;
    }
    line->retry->rounds++;
    line->retry->round[round].attempts = attempts;
    line->retry->round[round].count = count;
    return queue_round(line, attempts, count, waits, err);
}

// Looks at what the line's translation lost, and at what came of the attempts to save it. True: there are new ones,
// and the line is not to be touched before they are decoded.
static bool try_again(dgm_line_state *line, dgm_scratch *s)
{
    const dgm_translator *t = line->job->translator;
    const struct dgm_retry *r = line->retry;
    dgm_error err;
    size_t skip;
    bool waits = false;
    dgm_status st = DGM_OK;
    if (!t->protect || !line->careful || line->status != DGM_OK) return false;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_piece_state *piece = &line->job->encoded.pieces[line->first + i];
        if (piece->status != DGM_OK || piece->late) return false;
    }
    const dgm_text text = dgm_text_trim((dgm_text){line->text, line->size});
    if (!line->other && dgm_vocab_language_prefix(t->source, text, &skip) >= 0) return false;
    const dgm_protector p = protector_of(line);
    const int last = r ? r->rounds - 1 : -1;
    for (size_t i = 0; last >= 0 && r->round[last].job && i < r->round[last].count && st == DGM_OK; i++)
        st = choose(line, &p, &r->round[last].attempts[i], &r->round[last].job->lines[i], s, &err);
    if (st == DGM_OK && last + 1 < DGM_STANDIN_ROUNDS) st = next_round(line, &p, s, &waits, &err);
    if (st != DGM_OK) line->job->encoded.pieces[line->first].status = st; // no memory: the line fails
    return waits;
}

void dgm_text_guard(dgm_job *job)
{
    dgm_scratch s = {0};
    for (size_t i = 0; job->translator->protect && i < job->line_count; i++) {
        dgm_line_state *line = &job->lines[i];
        const dgm_protector p = protector_of(line);
        for (size_t k = 0; line->careful && k < line->pieces.count && !line->guarded; k++)
            line->guarded = find_protected(line, k, &p, &s, NULL) != DGM_OK || s.protected.count > 0;
    }
    dgm_scratch_free(&s);
}

// ---- lines -------------------------------------------------------------------------------------

// Lock held before and after, not in between.
static void assemble_line(dgm_translator *t, dgm_scratch *scratch)
{
    dgm_text_stage *x = t->text;
    dgm_line_state *line = x->first;
    dgm_job *job = line->job;
    const double begin = t->profiling ? dgm_thread_time() : 0;
    x->first = line->next;
    if (!x->first) x->last = NULL;
    if (job->parent) { // an attempt: the last one sends its line on
        if (--job->left > 0) return;
        t->timed -= job->timed;
        dgm_text_take(t, job->parent);
        return;
    }
    dgm_text_wake(t); // another one, for the next
    pthread_mutex_unlock(&t->lock);
    if (try_again(line, scratch)) {
        const double looked = t->profiling ? dgm_thread_time() - begin : 0;
        pthread_mutex_lock(&t->lock);
        t->text_seconds += looked;
        return;
    }
    dgm_line_assemble(line, scratch, &job->box->items[line - job->lines]);
    free_retry(line);
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
    const int count = dgm_text_threads(t);
    dgm_text_stage *x = t->text = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    if (pthread_cond_init(&x->wake, NULL) != 0) return dgm_no_memory(err);
    x->wake_ready = true;
    x->count = count;
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

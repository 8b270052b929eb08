// SPDX-License-Identifier: MIT
// DeepL's API: documents. An upload is answered at once with a name and a key; the file is translated as if a second
// request had brought it, which nobody waits for; its translation waits half an hour to be fetched, once.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/deepl_private.h"
#include "server/papers.h"
#include "server/random_id.h"
#include "server/usage.h"

enum { ID = 32, KEY = 64, KEEP_SECONDS = 1800, RUNNING_MOST = 256, KEPT_MOST = 4096, NAME = 256, DAY_MS = 86400000 };
#define KEPT_BYTES ((size_t)512 << 20) // of all translations; the oldest go

typedef enum state { WORKING, DONE, FAILED } state;

typedef struct document {
    struct document *next; // older ones
    char id[ID + 1], key[KEY + 1], owner[DGM_KEY_MAX], name[NAME];
    struct dgm_deepl_documents *store;
    dgm_request *work; // brings the file; its own
    state state;
    bool held;    // by the request that brought it, until that is answered
    bool dropped; // nobody wants it any more: freed when it is done and not held
    dgm_writer data;
    char error[200];
    double since;
} document;

struct dgm_deepl_documents {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    document *first;
    size_t running, count;
    bool closing;
};

static void free_document(document *d)
{
    dgm_request_free(d->work);
    dgm_writer_free(&d->data);
    dgm_free(d);
}

dgm_status dgm_deepl_documents_open(struct dgm_deepl_documents **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    pthread_mutex_init(&(*out)->lock, NULL);
    pthread_cond_init(&(*out)->idle, NULL);
    return DGM_OK;
}

// Takes it out of the list; lock held. One in work is given up, and goes when that is done.
static void drop(struct dgm_deepl_documents *s, document **at)
{
    document *d = *at;
    *at = d->next;
    s->count--;
    d->dropped = true;
    if (d->state == WORKING)
        dgm_request_gone(d->work);
    else if (!d->held)
        free_document(d);
}

// Those that came before `before`, and as many as are too much; lock held.
static void drop_old(struct dgm_deepl_documents *s, double before)
{
    size_t bytes = 0, kept = 0;
    for (document **at = &s->first; *at;) {
        bytes += (*at)->data.size;
        kept++;
        const bool old = (*at)->since < before || bytes > KEPT_BYTES || kept > KEPT_MOST;
        if (old && (*at)->state != WORKING)
            drop(s, at);
        else
            at = &(*at)->next;
    }
}

void dgm_deepl_documents_stop(struct dgm_deepl_documents *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    for (document *d = s->first; d; d = d->next)
        if (d->state == WORKING) dgm_request_gone(d->work);
    while (s->running) pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void dgm_deepl_documents_close(struct dgm_deepl_documents **store)
{
    struct dgm_deepl_documents *s = *store;
    if (!s) return;
    while (s->first) drop(s, &s->first);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    dgm_free(s);
    *store = NULL;
}

void dgm_deepl_documents_expire(struct dgm_deepl_documents *s, double now)
{
    pthread_mutex_lock(&s->lock);
    drop_old(s, now - KEEP_SECONDS);
    pthread_mutex_unlock(&s->lock);
}

// ---- POST /v2/document ------------------------------------------------------------------------------

static void written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs, size_t count)
{
    document *d = user;
    struct dgm_deepl_documents *s = d->store;
    (void)count;
    dgm_free(d->work->body); // of the file; the translation has its own
    d->work->body = NULL;
    if (st != DGM_OK) dgm_request_refund(d->work);
    pthread_mutex_lock(&s->lock);
    d->state = st == DGM_OK ? DONE : FAILED;
    d->since = dgm_now();
    if (st == DGM_OK)
        d->data = outputs[0];
    else
        snprintf(d->error, sizeof d->error, "%.*s", (int)sizeof d->error - 1,
                 err->text[0] ? err->text : dgm_status_name(st));
    s->running--;
    if (d->dropped && !d->held) free_document(d);
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

// The second request: file, key and client of the first. NULL: no memory.
static dgm_request *second_request(dgm_request *q)
{
    dgm_request *w = dgm_request_new(q->server);
    dgm_key *key = w && q->key ? dgm_request_memory(w, sizeof *key) : NULL;
    const char *client = w ? dgm_request_copy(w, q->client, strlen(q->client)) : NULL;
    if (!client || (q->key && !key)) {
        dgm_request_free(w);
        return NULL;
    }
    if (key) {
        *key = *q->key;
        w->key = key;
    }
    w->client = client;
    w->route = q->route;
    w->body = q->body; // the upload's data lies in it
    w->body_size = q->body_size;
    q->body = NULL;
    return w;
}

static document *new_document(dgm_request *q, const char *name, dgm_request *work)
{
    document *d = dgm_calloc(1, sizeof *d);
    if (!d) return NULL;
    dgm_random_hex(d->id, ID);
    dgm_random_hex(d->key, KEY);
    snprintf(d->owner, sizeof d->owner, "%s", q->key ? q->key->key : "");
    snprintf(d->name, sizeof d->name, "%.*s", NAME - 1, name);
    d->store = q->server->documents;
    d->work = work;
    d->held = true;
    d->since = dgm_now();
    return d;
}

// False: there are too many.
static bool add(struct dgm_deepl_documents *s, document *d)
{
    pthread_mutex_lock(&s->lock);
    const bool fine = s->running < RUNNING_MOST && !s->closing;
    if (fine) {
        d->next = s->first;
        s->first = d;
        s->running++;
        s->count++;
        drop_old(s, d->since - KEEP_SECONDS);
    }
    pthread_mutex_unlock(&s->lock);
    return fine;
}

// The request that brought it looks at it no longer.
static void let_go(struct dgm_deepl_documents *s, document *d)
{
    pthread_mutex_lock(&s->lock);
    d->held = false;
    if (d->dropped && d->state != WORKING) free_document(d);
    pthread_mutex_unlock(&s->lock);
}

// It is not translated; the caller still holds it.
static void take_back(struct dgm_deepl_documents *s, document *d)
{
    pthread_mutex_lock(&s->lock);
    s->running--;
    d->state = FAILED;
    document **at = &s->first;
    while (*at && *at != d) at = &(*at)->next;
    if (*at) drop(s, at);
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

static void answer_names(dgm_request *q, const char *id, const char *key)
{
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "document_id", id);
    dgm_out_string(&j, "document_key", key);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

// What becomes of a PDF.
static void name_page(struct dgm_deepl_documents *s, document *d)
{
    pthread_mutex_lock(&s->lock);
    char *dot = strrchr(d->name, '.');
    if (dot && dot + sizeof ".html" <= d->name + sizeof d->name) memcpy(dot, ".html", sizeof ".html");
    pthread_mutex_unlock(&s->lock);
}

static void begin(dgm_request *q, dgm_papers_spec *spec, const char *name)
{
    struct dgm_deepl_documents *s = q->server->documents;
    char id[ID + 1], key[KEY + 1];
    dgm_error err;
    dgm_request *work = second_request(q);
    document *d = work ? new_document(q, name, work) : NULL;
    if (!d) {
        dgm_request_free(work);
        dgm_answer_error(q, 500, "out of memory");
        return;
    }
    memcpy(id, d->id, sizeof id);
    memcpy(key, d->key, sizeof key);
    if (!add(s, d)) {
        free_document(d);
        dgm_answer_error(q, 429, "Too many documents are being translated.");
        return;
    }
    spec->user = d;
    const char *format = NULL;
    const dgm_status st = dgm_papers_start(work, spec, &format, &err); // from now on it may be done at any time
    if (st != DGM_OK) {
        take_back(s, d);
        dgm_answer_failure(q, st, &err);
    } else if (work->status) { // its quota did not suffice
        take_back(s, d);
        dgm_answer(q, work->status, work->type, work->out.data, work->out.size);
    } else {
        q->characters = work->characters;
        if (format && strcmp(format, "pdf") == 0) name_page(s, d);
        answer_names(q, id, key);
    }
    let_go(s, d);
}

// Another ending than the file's own is another kind of file, which is not made.
static bool check_output(dgm_request *q, const char *name)
{
    const char *wanted = dgm_request_text(q, "output_format", NULL, NULL), *dot = strrchr(name, '.');
    if (!wanted || !wanted[0] || (dot && strcasecmp(dot + 1, wanted) == 0)) return true;
    dgm_answer_error(q, 400, "Value for 'output_format' not supported.");
    return false;
}

static const dgm_upload *find_file(dgm_request *q)
{
    for (size_t i = 0; i < q->upload_count; i++)
        if (strcmp(q->uploads[i].name, "file") == 0) return &q->uploads[i];
    dgm_answer_error(q, 400, "Invalid file data.");
    return NULL;
}

typedef struct listing {
    const dgm_pool_listing *items;
} listing;

static void free_listing(void *user)
{
    dgm_pool_release(&((listing *)user)->items);
}

void dgm_deepl_upload(dgm_request *q)
{
    const dgm_pool_language *from = NULL, *to = NULL;
    dgm_error err;
    if (q->server->options.disable_files_translation) {
        dgm_answer_error(q, 403, "Files are not translated here.");
        return;
    }
    if (!dgm_deepl_manners(q) || !dgm_deepl_check(q)) return;
    listing *l = dgm_request_memory(q, sizeof *l);
    const dgm_upload *file = l ? find_file(q) : NULL;
    if (!l) dgm_answer_error(q, 500, "out of memory");
    if (!file) return;
    l->items = dgm_pool_list(q->server);
    q->user = l;
    q->user_free = free_listing;
    const char *named = dgm_request_text(q, "filename", NULL, NULL);
    const char *name = named && named[0] ? named : file->file[0] ? file->file : "document.txt";
    const dgm_task_text text = {.text = file->data, .size = file->size};
    dgm_papers_spec spec = {
        .texts = &text, .count = 1, .name = name, .timeout_ms = DAY_MS, .bill = true, .done = written};
    if (!check_output(q, name) || !dgm_deepl_pair(q, l->items, &from, &to)) return;
    if (!from) {
        dgm_writer sample = {0};
        const dgm_status st = dgm_papers_sample(&spec, &sample, &err);
        if (st == DGM_OK) from = dgm_deepl_detect(l->items, (const char *)sample.data, sample.size);
        dgm_writer_free(&sample);
        if (st != DGM_OK) dgm_answer_failure(q, st, &err);
        if (st != DGM_OK) return;
    }
    if (!dgm_deepl_terms(q, from, to)) return;
    spec.books = q->books;
    spec.book_count = q->book_count;
    q->source = spec.source = from->code;
    q->target = spec.target = to->code;
    q->texts = 1;
    begin(q, &spec, name);
}

// ---- status and result ------------------------------------------------------------------------------

// Lock held. NULL: not there, or not this client's.
static document **find(struct dgm_deepl_documents *s, dgm_request *q)
{
    const char *key = dgm_request_text(q, "document_key", NULL, NULL), *owner = q->key ? q->key->key : "";
    for (document **at = &s->first; key && *at; at = &(*at)->next)
        if (strcasecmp((*at)->id, q->rest) == 0)
            return strcmp((*at)->key, key) == 0 && strcmp((*at)->owner, owner) == 0 ? at : NULL;
    return NULL;
}

void dgm_deepl_document_status(dgm_request *q)
{
    static const char *const words[] = {"translating", "done", "error"};
    struct dgm_deepl_documents *s = q->server->documents;
    if (!dgm_deepl_needed(q, "document_key")) return;
    pthread_mutex_lock(&s->lock);
    document **at = find(s, q);
    dgm_json_out j = {0};
    if (at) {
        const document *d = *at;
        dgm_out_object(&j, NULL);
        dgm_out_string(&j, "document_id", d->id);
        dgm_out_string(&j, "status", words[d->state]);
        if (d->state == WORKING) dgm_out_integer(&j, "seconds_remaining", 1);
        if (d->state == DONE) dgm_out_integer(&j, "billed_characters", (int64_t)d->work->characters);
        if (d->state == FAILED) dgm_out_string(&j, "error_message", d->error);
        dgm_out_end(&j);
    }
    pthread_mutex_unlock(&s->lock);
    if (at)
        dgm_answer_json(q, 200, &j);
    else
        dgm_deepl_not_found(q);
}

void dgm_deepl_document_result(dgm_request *q)
{
    struct dgm_deepl_documents *s = q->server->documents;
    dgm_writer data = {0};
    char header[NAME + 40] = "";
    bool ready = false;
    if (!dgm_deepl_needed(q, "document_key")) return;
    pthread_mutex_lock(&s->lock);
    document **at = find(s, q);
    const bool there = at != NULL;
    if (at && (*at)->state == DONE) {
        snprintf(header, sizeof header, "attachment; filename=\"%s\"", (*at)->name);
        for (char *p = header + 22; *p && p[1]; p++)
            if (strchr("\"\\;", *p)) *p = '_';
        ready = true;
        if (strcmp(q->method, "HEAD") != 0) { // which only looks
            data = (*at)->data;
            (*at)->data = (dgm_writer){0};
            drop(s, at);
        }
    }
    pthread_mutex_unlock(&s->lock);
    if (!there) {
        dgm_deepl_not_found(q);
        return;
    }
    if (!ready) {
        dgm_answer_error(q, 503, "Document translation is not done");
        return;
    }
    dgm_answer_header(q, "Content-Disposition", header);
    dgm_answer_writer(q, 200, "application/octet-stream", &data);
}

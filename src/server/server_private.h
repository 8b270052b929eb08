// SPDX-License-Identifier: MIT
// Private to server/: what a server, a model, a lane and a task are made of.
//
//   dgm_server   options, models, handler threads, keys, numbers; libmicrohttpd in front of it
//   pool model   a model file: its languages, its bytes while a lane needs them
//   lane         a translator of a model with certain settings, a thread, and the turns in front of it
//   task         texts of a request in one lane, or in two, one behind the other
#ifndef DGM_SERVER_SERVER_PRIVATE_H
#define DGM_SERVER_SERVER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "server/access_log.h"
#include "server/api_keys.h"
#include "server/model_pool.h"
#include "server/rates.h"
#include "server/route.h"
#include "server/server_metrics.h"
#include "server/task.h"
#include "server/turns.h"
#include "server/handlers.h"

typedef struct dgm_http dgm_http;

// Pages, and room for the header that says what each of them may do.
enum { DGM_PAGE_TRANSLATE, DGM_PAGE_STATUS, DGM_PAGES, DGM_PAGE_POLICY = 512 };
void dgm_pages_open(dgm_server *s); // fills s->policies

struct dgm_server {
    dgm_server_options options; // strings and settings are the server's own
    dgm_settings settings;
    char **strings; // that options point to
    size_t string_count, string_cap;
    dgm_pool_models *models;
    dgm_handlers *handlers;
    dgm_keys *keys; // NULL: none
    dgm_rates *rates;
    struct dgm_usage *usage; // characters by key
    dgm_meters *meters;
    dgm_access_log *log;     // NULL: none
    struct dgm_files *files; // translated ones that wait to be fetched (libre_files.c)
    struct dgm_glossaries *glossaries;
    struct dgm_deepl_documents *documents; // of DeepL's API
    dgm_http *http;          // NULL: it does not listen
    int suggestions;         // the file of /suggest, -1: none
    char url[256];
    char policies[DGM_PAGES][DGM_PAGE_POLICY]; // Content-Security-Policy of each page
    double begin;
    // Signals: counted by handlers, looked at by the clock thread.
    atomic_int stops, reloads;
    int pipe[2];
    pthread_mutex_t lock;
    pthread_cond_t idle;
    uint64_t in_flight; // requests that were handed over and not answered
    atomic_bool closing; // new ones are refused
    pthread_t clock;
    bool clock_runs;
    bool quit;
};

// server.c: finds route, key and limits and runs the handler, or answers by itself; on any thread, does not wait.
void dgm_server_handle(dgm_request *q);
// The same in parts: before the body is read (false: it was answered), and after it, on a handler thread.
bool dgm_server_admit(dgm_request *q);
void dgm_server_dispatch(dgm_request *q);
// An answer was sent, or nobody wants it: numbers, log.
void dgm_server_answered(dgm_request *q);
void dgm_server_note(dgm_server *s, const char *fmt, ...) DGM_PRINTF(2, 3);
bool dgm_server_offers(const dgm_server *s, const dgm_route *route); // by its options
int64_t dgm_server_body_limit(const dgm_server *s, const dgm_route *route);

// server_options.c: checked copies of everything.
dgm_status dgm_server_take_options(dgm_server *s, const dgm_server_options *given, dgm_error *err);

// sandbox.c, by the options: before any thread is started, and when all of them are.
dgm_status dgm_server_confine_files(dgm_server *s, dgm_error *err);
dgm_status dgm_server_confine_calls(dgm_server *s, dgm_error *err);

// http.c: a socket that listens, and certificates; answers after dgm_http_start.
dgm_status dgm_http_open(dgm_server *s, dgm_http **http, dgm_error *err);
dgm_status dgm_http_start(dgm_http *http, dgm_error *err);
void dgm_http_quiesce(dgm_http *http); // no new connections
void dgm_http_tick(dgm_http *http);    // clocks of connections; now and then
void dgm_http_close(dgm_http **http);  // accepts NULL inside
uint64_t dgm_http_connections(const dgm_http *http);

// listen.c: a socket that listens, by the options; *port: where.
dgm_status dgm_listen_open(const dgm_server_options *o, int *fd, int *port, dgm_error *err);
size_t dgm_listen_most(const dgm_server_options *o); // connections
void dgm_listen_url(dgm_server *s, int port); // what clients call it, into s->url

// libre_files.c
dgm_status dgm_files_open(struct dgm_files **files, dgm_error *err);
void dgm_files_close(struct dgm_files **files);
void dgm_files_expire(struct dgm_files *files, double now);
// Keeps a translated file, whose bytes are taken over, to be fetched at /download_file/NAME; NULL: no memory. format:
// of the document, or NULL.
const char *dgm_files_keep(dgm_request *q, const char *file, const char *language, const char *format,
                           dgm_writer *data);
// Such a name without keeping anything; the part of it that a client sees; and the header that says it.
const char *dgm_files_name(dgm_request *q, const char *file, const char *language, const char *format);
const char *dgm_files_plain(const char *name);
void dgm_files_attach(dgm_request *q, const char *name);

// deepl_documents.c
dgm_status dgm_deepl_documents_open(struct dgm_deepl_documents **documents, dgm_error *err);
void dgm_deepl_documents_stop(struct dgm_deepl_documents *documents); // gives up those in work; accepts NULL
void dgm_deepl_documents_close(struct dgm_deepl_documents **documents);
void dgm_deepl_documents_expire(struct dgm_deepl_documents *documents, double now);

// ---- models and lanes -----------------------------------------------------------------------------

typedef struct dgm_pool_model {
    char *path, *name;
    struct stat identity; // of the file that was read last; guarded by `lock`
    bool gone;            // replaced or removed: no new tasks
    int users;            // lanes and listings; the pool counts as one (lock of the pool)
    // From the file, without loading it.
    char **sources, **targets; // [directions] pairs
    size_t directions;
    bool paragraphs;
    uint64_t bytes, parameters;
    void *data; // its bytes, of all lanes; NULL: none has been opened
    size_t size;
    pthread_mutex_t lock; // of identity and data
} dgm_pool_model;

typedef enum dgm_lane_state { DGM_LANE_LOADING, DGM_LANE_READY, DGM_LANE_FAILED } dgm_lane_state;

struct dgm_lane {
    dgm_server *server;
    dgm_pool_model *model;
    char *key;        // its settings beside the server's, in words: "beam=4\nnbest=3"
    dgm_lane *next;   // of the pool
    int users;        // tasks (lock of the pool)
    double last_used; // (lock of the pool)
    bool retired;     // no longer in the pool (lock of the pool)
    // lock:
    pthread_mutex_t lock;
    pthread_cond_t wake;
    dgm_lane_state state;
    dgm_error error;
    dgm_translator *t;
    dgm_turns turns;
    struct dgm_task *tasks;    // that are not done
    int64_t in_flight, budget; // tokens
    double crowded;            // when two tasks were there at once
    double oldest;             // when the first sentence that waits came; 0: none does
    uint64_t running;          // sentences
    uint64_t requests, sentences, target_tokens;
    bool quit;
    pthread_t thread;
};

// model_pool.c
dgm_status dgm_pool_read(dgm_pool_model *m, dgm_error *err); // its bytes, into m->data; m->lock held
dgm_status dgm_pool_models_open(dgm_server *s, dgm_error *err);
dgm_status dgm_pool_models_warm(dgm_server *s, dgm_error *err); // loads the first one
// Paths of the models that were found when it was opened.
size_t dgm_pool_files(const dgm_server *s);
const char *dgm_pool_file(const dgm_server *s, size_t index);
void dgm_pool_models_close(dgm_server *s);
// Which files there are and whether they changed; forced: what changed is read at once.
void dgm_pool_look(dgm_server *s, bool forced);
// Closes lanes that nobody uses, of models that are gone, and while they take more memory than they may.
void dgm_pool_sweep(dgm_server *s);
// The lanes of a direction, for one task: counted. second NULL: one is enough. pivot: language between them.
typedef struct dgm_pool_way {
    dgm_lane *first, *second;
    char source[64], target[64], pivot[64]; // as the models write them; pivot "": none
    char second_source[64];                 // the pivot, as the second model writes it
} dgm_pool_way;
dgm_status dgm_pool_take(dgm_server *s, const dgm_task_spec *spec, dgm_pool_way *way, dgm_error *err);
void dgm_pool_give(dgm_lane *lane); // a task is done with it; accepts NULL
// Calls fn for every lane, under the pool's lock.
void dgm_pool_each(dgm_server *s, void (*fn)(dgm_lane *lane, void *cookie), void *cookie);
// The same for every model that can be asked for.
void dgm_pool_each_model(dgm_server *s, void (*fn)(const dgm_pool_model *m, bool loaded, void *cookie), void *cookie);
// May a request set it? A row of dragoman/settings.h.
struct dgm_setting;
bool dgm_pool_may_set(const struct dgm_setting *row);
void dgm_pool_count(dgm_server *s, dgm_server_counters *c);

// lane.c
dgm_status dgm_lane_open(dgm_server *s, dgm_pool_model *m, const char *key, dgm_lane **lane, dgm_error *err);
// Sets what a key says; its bytes are cut, and borrowed by the settings.
dgm_status dgm_lane_settings(char *key, dgm_settings *settings, dgm_error *err);
void dgm_lane_close(dgm_lane *lane); // no task is left
void dgm_lane_add(dgm_lane *lane, dgm_task *task);
void dgm_lane_cancel(dgm_lane *lane, dgm_task *task);
uint64_t dgm_lane_bytes(dgm_lane *lane); // of weights and touched memory

// ---- tasks ----------------------------------------------------------------------------------------

typedef struct dgm_task_job {
    struct dgm_task_job *next;
    dgm_task *task;
    size_t first, count; // segments
    dgm_job *job;
    dgm_results *results;
} dgm_task_job;

// The same texts in one lane. A task of two steps has two.
typedef struct dgm_task_leg {
    dgm_lane *lane;
    const char *source, *target; // for models of several directions
    dgm_task_text *texts;
    dgm_segment *segments;
    char **demands; // [segments] constraints; NULL where there are none
    uint32_t *costs;
    size_t segment_count;
    dgm_task_job *jobs;
} dgm_task_leg;

struct dgm_task {
    dgm_server *server;
    dgm_request *request; // NULL: nobody's
    dgm_task_spec spec;   // pointers in it are the task's own
    dgm_task_view view;
    dgm_task_result *results;
    dgm_termbook **books; // those of the spec, held
    dgm_pool_way way;
    dgm_task_leg legs[2];
    int leg;
    double begin, deadline; // 0: none
    char *client;
    // lock of the lane:
    dgm_turn_task turn;
    dgm_task *before, *after; // in the lane
    size_t left;              // segments not done
    int submitting;           // the lane's thread is in dgm_submit with it
    double taken_at;          // its first sentence was handed over
    bool cancelled, posted;
    dgm_status failure; // of a submission
    dgm_error error;
    pthread_mutex_t telling; // of `told`, whole segments
    size_t told;
    dgm_handler_item work;
    struct dgm_task_block *blocks;
};

void *dgm_task_memory(dgm_task *task, size_t size); // as long as the task; NULL: none
// task_text.c: cuts the texts of a leg into segments.
dgm_status dgm_task_cut(dgm_task *task, dgm_task_leg *leg, dgm_error *err);
// Joins what the leg's segments became; fills results.
dgm_status dgm_task_join(dgm_task *task, dgm_task_leg *leg, dgm_error *err);
// A handler thread: all segments of the leg are done.
void dgm_task_leg_done(void *task);
// By the engine, while it runs.
void dgm_task_tell(dgm_task *task, size_t segment, const char *text, size_t size, bool whole);

#endif

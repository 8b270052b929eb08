// SPDX-License-Identifier: MIT
// Dragoman as a service: one process, models that are loaded when they are needed, clients of LibreTranslate's API, of
// DeepL's and of our own (docs/manual/SERVER.md). Conventions as in tools.h.
//
//     dgm_server_options options;
//     dgm_server_default(&options);
//     options.port = 5000;
//     dgm_server *s = NULL;
//     if (dgm_server_open(&s, &options, &error) != DGM_OK) ...
//     dgm_server_run(s);          serves until dgm_server_stop, then until requests in flight are answered
//     dgm_server_close(&s);
#ifndef DRAGOMAN_SERVER_H
#define DRAGOMAN_SERVER_H

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dgm_server dgm_server;

enum { DGM_SERVER_MODELS_MAX = 64 };

// Fill with dgm_server_default, then change what you like. Strings are borrowed during dgm_server_open. Limits of -1
// are none.
typedef struct dgm_server_options {
    size_t size;

    // -- where it listens --
    const char *host;   // address or name. Default "127.0.0.1".
    int32_t port;       // 0: one that is free (dgm_server_url says which). Default 5000.
    const char *socket; // path of a Unix socket instead. Default NULL.
    int32_t listen_fd;  // a socket that listens already, which is the server's from then on. Default -1: none.
    // PEM files; both or none. Default NULL: no TLS.
    const char *certificate, *private_key;
    const char *url_prefix; // "/mt": paths begin with it. Default "".

    // -- models --
    const char *models[DGM_SERVER_MODELS_MAX]; // as dgm_open takes them; NULL behind the last. Default: none
    // A folder of model files, which may come and go. Default NULL. Neither of both: all of dgm_models_find.
    const char *models_dir;
    const dgm_settings *settings; // of all translators; NULL: defaults
    // Translators that nobody uses are closed while all of them take more bytes than this. Default 0: none is.
    int64_t memory;
    int32_t reload_seconds; // how often files are looked at; 0: only dgm_server_reload. Default 2.

    // -- the queue --
    // Milliseconds that a sentence waits for others to share its steps while the machine is busy, 0 to 1000. Default
    // 10.
    int32_t max_wait;
    int32_t handlers; // threads that read requests and write answers, 1 to 64. Default 4.

    // -- limits --
    int32_t connections;        // open at once. Default 0: what the system allows, at most 16384.
    int64_t request_bytes;      // largest body. Default 16 MiB; files: file_bytes
    int64_t file_bytes;         // largest upload. Default 64 MiB
    int32_t char_limit;         // characters of a request's texts. Default -1.
    int32_t batch_limit;        // texts of a request. Default -1.
    int32_t alternatives_limit; // Default -1: 64, the most there can be.
    int32_t req_limit, hourly_req_limit, daily_req_limit; // of a client. Default -1.
    int32_t req_flood_threshold; // refusals by these limits after which a client is locked out. Default -1: never.
    int32_t header_seconds;      // until a request's headers are there, also of one that has not begun. Default 60.
    int32_t body_seconds;        // from then on until its body is. Default 60.
    int32_t request_seconds; // until it is answered; what is not translated by then fails. Default 600. 0: no limit

    // -- who may do what --
    const char *api_keys;         // file of keys (docs/manual/SERVER.md). Default NULL: no keys
    int32_t require_api_key;      // 1: without one nothing is translated. Default 0.
    const char *get_api_key_link; // where people get one. Default NULL.
    int32_t trust_forwarded_for;  // 1: clients are told apart by X-Forwarded-For. Default 0.
    const char *cors;             // Access-Control-Allow-Origin; "": no such headers. Default "*".
    int32_t suggestions;          // 1: /suggest keeps what it is told in suggestions_file. Default 0.
    const char *suggestions_file;
    int32_t disable_files_translation, disable_web_ui; // Default 0.
    int32_t metrics;                                   // 1: /metrics. Default 0.
    const char *metrics_auth_token;                    // Default NULL: anybody may read it.

    // -- what it says --
    const char *log;   // file that gets one JSON object for every request; "-": standard error. Default NULL: none
    int32_t log_texts; // 1: with their texts. Default 0.
    // Hears what an operator should know, in one line; from any thread. Default NULL: nobody.
    void (*note)(void *cookie, const char *text);
    void *note_cookie;
    const char *frontend_language_source, *frontend_language_target, *frontend_title; // of the page. Default NULL.
    int32_t frontend_timeout;                                                         // milliseconds. Default 500.

    // -- what it may do (dgm_sandbox_mode) --
    // On: when it is open, the thread that called dgm_server_open, threads that it starts and those of the server can
    // read the folders of models, keys and the system's libraries, write to what was open then, and answer clients: no
    // other file, no new connection, no program. A log is not opened anew by dgm_server_reload. Refused where the
    // system cannot do it, and for devices other than the CPU; auto goes on with what it can do. Default off.
    int32_t sandbox;
} dgm_server_options;

typedef enum dgm_sandbox_mode { DGM_SANDBOX_OFF, DGM_SANDBOX_ON, DGM_SANDBOX_AUTO } dgm_sandbox_mode;

DGM_API void dgm_server_init(dgm_server_options *options, size_t size);
static inline void dgm_server_default(dgm_server_options *options)
{
    dgm_server_init(options, sizeof *options);
}

// Listens from then on; requests are answered while dgm_server_run runs or not. The first model is loaded.
DGM_API dgm_status dgm_server_open(dgm_server **server, const dgm_server_options *options, dgm_error *error);
// Waits until dgm_server_stop, and until what is in flight is answered.
DGM_API void dgm_server_run(dgm_server *server);
// New requests are refused; a second call ends those in flight, too. May be called from a signal handler.
DGM_API void dgm_server_stop(dgm_server *server);
// Model files and keys are looked at again; what is new replaces what there is when the last request that uses it
// is answered. May be called from a signal handler.
DGM_API void dgm_server_reload(dgm_server *server);
DGM_API void dgm_server_close(dgm_server **server); // sets NULL; accepts NULL inside

// "http://127.0.0.1:5000"; of a Unix socket its path.
DGM_API const char *dgm_server_url(const dgm_server *server);

// Since it was opened; fields of `now` are those of this moment.
typedef struct dgm_server_counters {
    size_t size;
    uint64_t requests, refused, failed;    // answered at all, with 4xx, with 5xx
    uint64_t gone;                         // given up by their clients
    uint64_t texts, sentences, characters; // translated; characters of the source
    uint64_t source_tokens, target_tokens;
    uint64_t steps, rows; // of all translators, closed ones included: rows / steps is how full batches are
    uint64_t loads, reloads, evictions; // of translators
    struct {
        uint64_t connections, requests, queued, running; // queued, running: sentences
        uint64_t models, translators;                    // loaded
        uint64_t bytes;                                  // of all translators: weights and touched memory
    } now;
} dgm_server_counters;

DGM_API void dgm_server_count(const dgm_server *server, dgm_server_counters *counters);

// ---- a sandbox ----------------------------------------------------------------------------------

// The two parts of it, for good; what a program has opened before stays open. DGM_ERR_UNSUPPORTED, with the reason,
// where the system has no such thing. Files: this thread, and those it starts from now on, read files and folders below
// `readable` and no others, make and write none, and connect to nothing (Landlock; connections from Linux 6.7 on).
DGM_API dgm_status dgm_sandbox_files(const char *const *readable, size_t count, dgm_error *error);
// Calls of the system: no thread of the process opens a file to write, makes a socket, a process or a name, or starts a
// program (seccomp).
DGM_API dgm_status dgm_sandbox_calls(dgm_error *error);

// ---- a client -----------------------------------------------------------------------------------

typedef struct dgm_client dgm_client; // for one thread at a time

// A server that speaks our API: "http://HOST:PORT[/PREFIX]" or "unix:PATH". key: API key, NULL: none.
DGM_API dgm_status dgm_client_open(dgm_client **client, const char *url, const char *key, dgm_error *error);
DGM_API void dgm_client_close(dgm_client **client); // sets NULL; accepts NULL inside
// Translates lines. source NULL or "auto": found out; target NULL: the server's. settings: names and values by turns,
// NULL behind the last. Results as of dgm_translate; those of lines that the server refuses say why.
DGM_API dgm_status dgm_client_translate(dgm_client *client, const char *source, const char *target,
                                        const char *const *texts, size_t count, const char *const *settings,
                                        dgm_results **results, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif

// SPDX-License-Identifier: MIT
// `dragoman serve`: the service. Options of LibreTranslate and its LT_... variables are taken as they are; the library
// does the rest (dragoman/server.h).
#define _GNU_SOURCE
#include <ctype.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/commands.h"
#include "dragoman/server.h"
#include "dragoman/tools.h"
#include "io/notify.h"
#include "translate/setup.h"

typedef struct serve_options {
    dgm_server_options lib;
    option_list models;
    setting_values set;
    int keys;    // --api-keys: a flag there
    int ignored; // options of LibreTranslate that mean nothing here
    const char *ignored_text;
    int quiet;
    const char *sandbox;
} serve_options;

#define AT(field) offsetof(serve_options, field)
// An option of LibreTranslate without a meaning here: a flag, or one with a value.
#define NO_MEANING(name)                                                                                             \
    {                                                                                                                \
        name, 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(ignored), 0, 0, NULL,                                         \
            "of LibreTranslate; has no meaning here", NULL, NULL                                                     \
    }
#define NO_MEANING_TEXT(name)                                                                                        \
    {                                                                                                                \
        name, 0, OPTION_TEXT | OPTION_SELDOM, "TEXT", AT(ignored_text), 0, 0, NULL,                                  \
            "of LibreTranslate; has no meaning here", NULL, NULL                                                     \
    }

static const option options[] = {
    {"model", 'm', OPTION_LIST | OPTION_MODEL | OPTION_COMMON, "MODEL", AT(models), 0, 0, NULL,
     "model file, or a name that 'dragoman models' lists; several serve their directions (default: all that "
     "'dragoman "
     "models' lists)",
     "models-list", NULL},
    {"models", 0, OPTION_TEXT, "FOLDER", AT(lib.models_dir), 0, 0, NULL,
     "serve the model files of a folder; they are loaded when they are needed, and may come and go", "models-dir",
     NULL},
    {"host", 0, OPTION_TEXT, "ADDRESS", AT(lib.host), 0, 0, NULL, "address to listen on (default 127.0.0.1)", NULL,
     NULL},
    {"port", 'p', OPTION_COUNT, "N", AT(lib.port), 0, 65535, NULL,
     "port to listen on (default 5000); 0: one that is free", NULL, NULL},
    {"socket", 0, OPTION_TEXT | OPTION_SELDOM, "PATH", AT(lib.socket), 0, 0, NULL, "listen on a Unix socket instead",
     "unix", NULL},
    {"certificate", 0, OPTION_TEXT | OPTION_SELDOM, "FILE", AT(lib.certificate), 0, 0, NULL,
     "answer by TLS, with this certificate (PEM; those that signed it behind it)", "tls-cert", NULL},
    {"private-key", 0, OPTION_TEXT | OPTION_SELDOM, "FILE", AT(lib.private_key), 0, 0, NULL,
     "its private key (PEM)", "tls-key", NULL},
    {"url-prefix", 0, OPTION_TEXT | OPTION_SELDOM, "PATH", AT(lib.url_prefix), 0, 0, NULL,
     "paths begin with PATH, e.g. /mt", NULL, NULL},
    {"memory", 0, OPTION_SIZE | OPTION_SELDOM, "SIZE", AT(lib.memory), 0, 1e15, NULL,
     "close models that nobody uses while all of them take more than SIZE (default: never)", NULL, NULL},
    {"reload-seconds", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.reload_seconds), 0, 86400, NULL,
     "look for changed model files every N seconds (default 2); 0: only on SIGHUP", NULL, NULL},
    {"max-wait", 0, OPTION_COUNT | OPTION_SELDOM, "MS", AT(lib.max_wait), 0, 1000, NULL,
     "hold a sentence back up to MS milliseconds while others are translated, so that more of them share a step "
     "(default "
     "10)",
     NULL, NULL},
    {"handlers", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.handlers), 1, 64, NULL,
     "threads that read requests and write answers (default 4)", NULL, NULL},
    {"connections", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.connections), 0, 1000000, NULL,
     "open connections, at most (default: what the system allows, up to 16384); idle ones make room for new ones",
     NULL, NULL},
    {"request-size", 0, OPTION_SIZE | OPTION_SELDOM, "SIZE", AT(lib.request_bytes), 1024, 2147483647, NULL,
     "largest request (default 16M)", NULL, NULL},
    {"file-size", 0, OPTION_SIZE | OPTION_SELDOM, "SIZE", AT(lib.file_bytes), 1024, 2147483647, NULL,
     "largest file (default 64M)", NULL, NULL},
    {"char-limit", 0, OPTION_COUNT, "N", AT(lib.char_limit), -1, 2147483647, NULL,
     "characters of a request, at most (default -1: any number)", NULL, NULL},
    {"batch-limit", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.batch_limit), -1, 2147483647, NULL,
     "texts of a request, at most (default -1: any number)", NULL, NULL},
    {"alternatives-limit", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.alternatives_limit), -1, 2147483647, NULL,
     "alternatives of a translation, at most (default -1: what there can be)", NULL, NULL},
    {"req-limit", 0, OPTION_COUNT, "N", AT(lib.req_limit), -1, 2147483647, NULL,
     "requests of a client in a minute, at most (default -1: any number)", NULL, NULL},
    {"hourly-req-limit", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.hourly_req_limit), -1, 2147483647, NULL,
     "the same in an hour", NULL, NULL},
    {"daily-req-limit", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.daily_req_limit), -1, 2147483647, NULL,
     "the same in a day", NULL, NULL},
    {"req-flood-threshold", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.req_flood_threshold), -1, 2147483647, NULL,
     "lock a client out for a day after N refusals by these limits (default -1: never)", NULL, NULL},
    {"header-seconds", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.header_seconds), 1, 86400, NULL,
     "close a connection that sends no whole request header for N seconds (default 60)", NULL, NULL},
    {"body-seconds", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.body_seconds), 1, 86400, NULL,
     "close a connection whose request takes longer than N seconds to arrive (default 60)", NULL, NULL},
    {"request-seconds", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(lib.request_seconds), 0, 86400, NULL,
     "answer within N seconds, or with 503 (default 600); 0: whenever", "timeout", NULL},
    {"api-keys", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(keys), 0, 0, NULL, "use API keys, of --api-keys-db-path",
     NULL, NULL},
    {"api-keys-db-path", 0, OPTION_TEXT, "FILE", AT(lib.api_keys), 0, 0, NULL,
     "file of API keys: KEY [req_limit=N] [char_limit=N] [name=WORD]", "api-keys-file", NULL},
    {"require-api-key", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(lib.require_api_key), 0, 0, NULL,
     "translate nothing without a key", NULL, NULL},
    {"get-api-key-link", 0, OPTION_TEXT | OPTION_SELDOM, "URL", AT(lib.get_api_key_link), 0, 0, NULL,
     "where people get a key", NULL, NULL},
    {"trust-forwarded-for", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(lib.trust_forwarded_for), 0, 0, NULL,
     "behind a proxy: tell clients apart by X-Forwarded-For", NULL, NULL},
    {"cors", 0, OPTION_TEXT | OPTION_SELDOM, "ORIGIN", AT(lib.cors), 0, 0, NULL,
     "pages of this origin may use the server (default *: all of them); empty: none", NULL, NULL},
    {"suggestions", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(lib.suggestions), 0, 0, NULL,
     "take suggestions, into --suggestions-file", NULL, NULL},
    {"suggestions-file", 0, OPTION_TEXT | OPTION_SELDOM, "FILE", AT(lib.suggestions_file), 0, 0, NULL,
     "where they go, as JSON lines", NULL, NULL},
    {"disable-files-translation", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(lib.disable_files_translation), 0, 0, NULL,
     "translate no files", NULL, NULL},
    {"disable-web-ui", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(lib.disable_web_ui), 0, 0, NULL, "have no pages",
     NULL, NULL},
    {"metrics", 0, OPTION_FLAG, NULL, AT(lib.metrics), 0, 0, NULL, "have /metrics, for Prometheus", NULL, NULL},
    {"metrics-auth-token", 0, OPTION_TEXT | OPTION_SELDOM, "TOKEN", AT(lib.metrics_auth_token), 0, 0, NULL,
     "for those who have this token (Authorization: Bearer TOKEN)", NULL, NULL},
    {"log", 0, OPTION_TEXT, "FILE", AT(lib.log), 0, 0, NULL,
     "write a JSON object for every request to FILE; '-': to standard error; without texts", "access-log", NULL},
    {"log-texts", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(lib.log_texts), 0, 0, NULL,
     "with the texts that were translated", NULL, NULL},
    {"frontend-language-source", 0, OPTION_TEXT | OPTION_SELDOM, "LANG", AT(lib.frontend_language_source), 0, 0, NULL,
     "language that the page begins with (default auto)", NULL, NULL},
    {"frontend-language-target", 0, OPTION_TEXT | OPTION_SELDOM, "LANG", AT(lib.frontend_language_target), 0, 0, NULL,
     "language that it translates into (default: the first model's)", NULL, NULL},
    {"frontend-title", 0, OPTION_TEXT | OPTION_SELDOM, "TEXT", AT(lib.frontend_title), 0, 0, NULL,
     "title of the page", NULL, NULL},
    {"frontend-timeout", 0, OPTION_COUNT | OPTION_SELDOM, "MS", AT(lib.frontend_timeout), 0, 100000, NULL,
     "milliseconds that it waits while somebody types (default 500)", NULL, NULL},
    {"sandbox", 0, OPTION_CHOICE, "MODE", AT(sandbox), 0, 0, "off|on|auto",
     "after the start only read models: no connections, no programs; on: or refuse to start; auto: as far as the "
     "system can (default off)",
     NULL, NULL},
    {"quiet", 'q', OPTION_FLAG | OPTION_SELDOM, NULL, AT(quiet), 0, 0, NULL,
     "say nothing on standard error but errors", NULL, NULL},
    NO_MEANING("debug"),
    NO_MEANING("ssl"),
    NO_MEANING("require-api-key-secret"),
    NO_MEANING("require-api-key-fingerprint"),
    NO_MEANING("hide-api"),
    NO_MEANING("under-attack"),
    NO_MEANING("secondary"),
    NO_MEANING("update-models"),
    NO_MEANING("force-update-models"),
    NO_MEANING_TEXT("req-limit-storage"),
    NO_MEANING_TEXT("hourly-req-limit-decay"),
    NO_MEANING_TEXT("req-time-cost"),
    NO_MEANING_TEXT("api-keys-remote"),
    NO_MEANING_TEXT("require-api-key-origin"),
    NO_MEANING_TEXT("shared-storage"),
    NO_MEANING_TEXT("load-only"),
    NO_MEANING_TEXT("translation-cache"),
    NO_MEANING_TEXT("frontend-language"),
    {0},
};

// ---- LT_... variables -------------------------------------------------------------------------------

// "LT_CHAR_LIMIT" of "char-limit".
static const char *variable_of(const char *name)
{
    char text[80] = "LT_";
    size_t n = 3;
    for (; *name && n + 1 < sizeof text; name++) text[n++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    text[n] = 0;
    return getenv(text);
}

static bool is_true(const char *value)
{
    return strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0 || strcasecmp(value, "yes") == 0;
}

enum { WORDS = 512 };

// The variables as options before those of the command line, which therefore win. NULL: too many.
static char **with_variables(const command *self, int *argc, char **argv)
{
    static char *list[WORDS];
    static char names[WORDS][80];
    int n = 0;
    list[n++] = argv[0];
    size_t at = 0;
    for (option o; option_next(self, &at, &o);) {
        const char *value = variable_of(o.name);
        if (!value || !value[0] || n + 3 > WORDS) continue;
        const bool flag = option_kind_of(&o) == OPTION_FLAG;
        if (flag && !is_true(value)) continue;
        snprintf(names[n], sizeof names[n], flag ? "--%s" : "--%s=%s", o.name, value);
        if (!flag && strlen(value) + strlen(o.name) + 4 > sizeof names[n]) continue;
        list[n] = names[n];
        n++;
    }
    for (int i = 1; i < *argc; i++) {
        if (n + 1 >= WORDS) return NULL;
        list[n++] = argv[i];
    }
    list[n] = NULL;
    *argc = n;
    return list;
}

// Options that LibreTranslate has and we take without a meaning are named.
static void name_ignored(const command *self, int argc, char **argv)
{
    size_t at = 0;
    for (option o; option_next(self, &at, &o);) {
        if (o.offset != AT(ignored) && o.offset != AT(ignored_text)) continue;
        if (o.kind & OPTION_SETTING) continue;
        const size_t n = strlen(o.name);
        for (int i = 1; i < argc; i++)
            if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, o.name, n) == 0 &&
                (argv[i][n + 2] == 0 || argv[i][n + 2] == '=')) {
                warn("--%s has no meaning here", o.name);
                break;
            }
    }
}

// ---- running ----------------------------------------------------------------------------------------

static void say(void *cookie, const char *text)
{
    (void)cookie;
    inform("%s", text);
}

typedef struct signals {
    dgm_server *server;
    atomic_bool over; // the server has stopped: the next signal is for the thread itself
} signals;

// Signals are waited for by a thread of their own, so that no handler runs in the middle of anything.
static void *signals_main(void *arg)
{
    signals *self = arg;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    for (int stops = 0, number; sigwait(&set, &number) == 0 && !atomic_load(&self->over);) {
        if (number == SIGHUP) {
            dgm_server_reload(self->server);
            continue;
        }
        if (stops++ == 0) notify("STOPPING=1");
        dgm_server_stop(self->server);
    }
    return NULL;
}

static void hold_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

// A socket that systemd opened for us is number 3.
static int activated(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid() || strtol(count, NULL, 10) < 1) return -1;
    if (strtol(count, NULL, 10) > 1) warn("of the %s sockets that were handed over the first is used", count);
    return 3;
}

// Large blocks (bodies, documents) go back to the system when they are freed: glibc would learn from the first of them
// to keep the next ones, between which what lives longer then lies.
static void return_memory(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

static int serve(const serve_options *o)
{
    dgm_server *s = NULL;
    dgm_error error;
    signals waiting = {0};
    pthread_t thread;
    return_memory();
    notify_open(); // a server in its sandbox makes no socket
    hold_signals(); // before any thread starts, so that all of them inherit it
    const dgm_status st = dgm_server_open(&s, &o->lib, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (!o->quiet) inform("listening on %s", dgm_server_url(s));
    waiting.server = s;
    if (pthread_create(&thread, NULL, signals_main, &waiting) != 0) {
        dgm_server_close(&s);
        return fail(EXIT_RUNTIME, "cannot start a thread for signals");
    }
    notify("READY=1");
    dgm_server_run(s);
    if (!o->quiet) inform("stopped");
    atomic_store(&waiting.over, true); // never cancelled: it may hold locks of the server
    pthread_kill(thread, SIGTERM);
    pthread_join(thread, NULL);
    dgm_server_close(&s);
    return EXIT_FINE;
}

static int run(const command *self, int argc, char **argv)
{
    serve_options o = {0};
    words rest;
    dgm_server_default(&o.lib);
    settings_default(&o.set);
    char **all = with_variables(self, &argc, argv);
    if (!all) return fail_usage(self, "there are more than %d words", WORDS);
    int code = options_parse(self, argc, all, &o, &rest);
    if (code >= 0) return code;
    if (rest.count)
        return fail_usage(self, "serve takes no arguments, not '%s'; models are given with -m", rest.items[0]);
    if (o.keys && !o.lib.api_keys) return fail_usage(self, "--api-keys requires --api-keys-db-path FILE");
    name_ignored(self, argc, all);
    for (int i = 0; i < o.models.count && i < DGM_SERVER_MODELS_MAX; i++) o.lib.models[i] = o.models.items[i];
    o.lib.settings = &o.set.settings;
    if (!settings_given(&o.set, "threads")) o.set.settings.threads = 0; // all cores
    if (!o.quiet) o.lib.note = say;
    o.lib.listen_fd = activated();
    if (o.sandbox) o.lib.sandbox = strcmp(o.sandbox, "on") == 0     ? DGM_SANDBOX_ON
                                   : strcmp(o.sandbox, "auto") == 0 ? DGM_SANDBOX_AUTO
                                                                    : DGM_SANDBOX_OFF;
    return serve(&o);
}

const command command_serve = {
    .name = "serve",
    .summary = "serve translations over HTTP",
    .usage = "[-m MODEL]... [--host ADDRESS] [--port N] [options]",
    .description =
        "Answers requests until SIGTERM or Ctrl-C; what is in flight is finished first, unless a second one comes. "
        "Speaks "
        "LibreTranslate's API, so that its clients work unchanged, and an API of its own with everything that the "
        "engine has: "
        "/v1/translate. Sentences of all clients are translated together, and take turns, so that short requests do "
        "not wait for long ones.\n\n"
        "SIGHUP, or a model file that was replaced, loads models anew without dropping a request. Options of "
        "LibreTranslate "
        "and its variables (LT_PORT=5000 for --port 5000) are accepted; those without a meaning here are named. "
        "docs/manual/SERVER.md describes all of it.",
    .example = "dragoman serve\ndragoman serve -m en-de -m de-en --port 8080 --metrics\n"
               "curl -s localhost:5000/translate -d q='Good morning.' -d source=en -d target=de",
    .options = options,
    .settings = SETTINGS_PLAIN,
    .settings_at = AT(set),
    .run = run,
};

// SPDX-License-Identifier: MIT
// The options of a server: defaults, ranges, and copies of everything they point to.
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "server/server_private.h"

#define MIB ((int64_t)1 << 20)

static const dgm_server_options usual = {
    .size = sizeof usual,
    .host = "127.0.0.1",
    .port = 5000,
    .listen_fd = -1,
    .url_prefix = "",
    .reload_seconds = 2,
    .max_wait = 10,
    .handlers = 4,
    .request_bytes = 16 * MIB,
    .file_bytes = 64 * MIB,
    .char_limit = -1,
    .batch_limit = -1,
    .alternatives_limit = -1,
    .req_limit = -1,
    .hourly_req_limit = -1,
    .daily_req_limit = -1,
    .req_flood_threshold = -1,
    .header_seconds = 60,
    .body_seconds = 60,
    .request_seconds = 600,
    .cors = "*",
    .frontend_timeout = 500,
};

void dgm_server_init(dgm_server_options *options, size_t size)
{
    if (options) dgm_sized_give(options, size, &usual, sizeof usual);
}

static dgm_status own_text(dgm_server *s, const char **text, dgm_error *err)
{
    if (!*text) return DGM_OK;
    DGM_TRY(dgm_grow(&s->strings, &s->string_cap, s->string_count + 1, sizeof *s->strings, err));
    char *copy = dgm_strdup(*text);
    if (!copy) return dgm_no_memory(err);
    *text = s->strings[s->string_count++] = copy;
    return DGM_OK;
}

static dgm_status own_texts(dgm_server *s, dgm_error *err)
{
    dgm_server_options *o = &s->options;
    const char **const texts[] = {&o->host,
                                  &o->socket,
                                  &o->certificate,
                                  &o->private_key,
                                  &o->url_prefix,
                                  &o->models_dir,
                                  &o->api_keys,
                                  &o->get_api_key_link,
                                  &o->cors,
                                  &o->suggestions_file,
                                  &o->metrics_auth_token,
                                  &o->log,
                                  &o->frontend_language_source,
                                  &o->frontend_language_target,
                                  &o->frontend_title};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) DGM_TRY(own_text(s, texts[i], err));
    for (size_t i = 0; i < DGM_SERVER_MODELS_MAX && o->models[i]; i++) DGM_TRY(own_text(s, &o->models[i], err));
    // Lanes are opened later: texts of the settings must live as long as the server.
    dgm_settings *set = &s->settings;
    const char **const names[] = {&set->source,        &set->target,        &set->softmax,       &set->mix,
                                  &set->search,        &set->finish,        &set->cube,          &set->cube_key,
                                  &set->pairs,         &set->shortlist,     &set->dictionary,    &set->keep,
                                  &set->device,        &set->cpu,           &set->precision,     &set->activations,
                                  &set->source_tokens, &set->phrase_system, &set->evidence_kind, &set->split};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) DGM_TRY(own_text(s, names[i], err));
    for (size_t i = 0; i < DGM_TERMS_MAX && set->terms[i]; i++) DGM_TRY(own_text(s, &set->terms[i], err));
    return DGM_OK;
}

static dgm_status check(const dgm_server_options *o, dgm_error *err)
{
    const struct {
        const char *name;
        int64_t value, min, max;
    } ranges[] = {
        {"port", o->port, -1, 65535},
        {"max-wait", o->max_wait, 0, 1000},
        {"handlers", o->handlers, 1, 64},
        {"connections", o->connections, 0, 1000000},
        {"request-size", o->request_bytes, 1024, INT_MAX},
        {"file-size", o->file_bytes, 1024, INT_MAX},
        {"char-limit", o->char_limit, -1, INT32_MAX},
        {"batch-limit", o->batch_limit, -1, INT32_MAX},
        {"alternatives-limit", o->alternatives_limit, -1, INT32_MAX},
        {"req-limit", o->req_limit, -1, INT32_MAX},
        {"hourly-req-limit", o->hourly_req_limit, -1, INT32_MAX},
        {"daily-req-limit", o->daily_req_limit, -1, INT32_MAX},
        {"req-flood-threshold", o->req_flood_threshold, -1, INT32_MAX},
        {"header-seconds", o->header_seconds, 1, 86400},
        {"body-seconds", o->body_seconds, 1, 86400},
        {"request-seconds", o->request_seconds, 0, 86400},
        {"reload-seconds", o->reload_seconds, 0, 86400},
        {"memory", o->memory, 0, INT64_MAX},
        {"sandbox", o->sandbox, DGM_SANDBOX_OFF, DGM_SANDBOX_AUTO},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        DGM_FAIL_IF(ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max, err, DGM_ERR_ARGUMENT,
                    "%s must be %lld to %lld, not %lld", ranges[i].name, (long long)ranges[i].min,
                    (long long)ranges[i].max, (long long)ranges[i].value);
    DGM_FAIL_IF(!o->certificate != !o->private_key, err, DGM_ERR_ARGUMENT,
                "TLS needs a certificate and a private key");
    DGM_FAIL_IF(o->url_prefix && o->url_prefix[0] && o->url_prefix[0] != '/', err, DGM_ERR_ARGUMENT,
                "url-prefix must begin with '/', not '%.40s'", o->url_prefix);
    DGM_FAIL_IF(o->suggestions && !o->suggestions_file, err, DGM_ERR_ARGUMENT,
                "suggestions need a suggestions-file to keep them in");
    DGM_FAIL_IF(o->require_api_key && !o->api_keys, err, DGM_ERR_ARGUMENT,
                "require-api-key needs a file of keys (api-keys)");
    return DGM_OK;
}

dgm_status dgm_server_take_options(dgm_server *s, const dgm_server_options *given, dgm_error *err)
{
    s->options = usual;
    DGM_TRY(dgm_sized_take(&s->options, sizeof s->options, given, "dgm_server_options", "dgm_server_default", err));
    dgm_settings_default(&s->settings);
    if (s->options.settings)
        DGM_TRY(dgm_sized_take(&s->settings, sizeof s->settings, s->options.settings, "dgm_settings",
                               "dgm_settings_default", err));
    s->options.settings = &s->settings;
    DGM_TRY(check(&s->options, err));
    return own_texts(s, err);
}

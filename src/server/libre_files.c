// SPDX-License-Identifier: MIT
// LibreTranslate's API: files. A translated file waits in memory, half an hour, to be fetched by its name, which is a
// random number and the file's own; names are looked up in a list, so that none leads to a file of the machine.
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/json_out.h"
#include "server/libre_private.h"
#include "server/papers.h"
#include "server/random_id.h"

enum { KEEP_SECONDS = 1800, NAME_MAX_BYTES = 300, UUID = DGM_UUID };
#define FILES_BYTES ((size_t)512 << 20) // of all files; the oldest go

typedef struct kept_file {
    struct kept_file *next; // older ones
    char name[NAME_MAX_BYTES];
    dgm_writer data;
    double since;
} kept_file;

struct dgm_files {
    pthread_mutex_t lock;
    kept_file *first;
    size_t bytes;
};

dgm_status dgm_files_open(struct dgm_files **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    pthread_mutex_init(&(*out)->lock, NULL);
    return DGM_OK;
}

// Those that came before `before`, and as many as are too much; lock held.
static void drop(struct dgm_files *f, double before)
{
    size_t bytes = 0;
    for (kept_file **at = &f->first; *at;) {
        kept_file *one = *at;
        bytes += one->data.size;
        if (one->since >= before && bytes <= FILES_BYTES) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        f->bytes -= one->data.size;
        dgm_writer_free(&one->data);
        dgm_free(one);
    }
}

void dgm_files_close(struct dgm_files **files)
{
    if (!*files) return;
    drop(*files, 1e300);
    pthread_mutex_destroy(&(*files)->lock);
    dgm_free(*files);
    *files = NULL;
}

void dgm_files_expire(struct dgm_files *f, double now)
{
    pthread_mutex_lock(&f->lock);
    drop(f, now - KEEP_SECONDS);
    pthread_mutex_unlock(&f->lock);
}

// ---- names ----------------------------------------------------------------------------------------

// "<uuid>.report_de.docx" of "report.docx"; characters that mean something to shells or headers become "_".
static void make_name(char *out, const char *file, const char *language, const char *format)
{
    char uuid[UUID + 1], stem[160], ending[24];
    const char *dot = strrchr(file, '.');
    dgm_random_uuid(uuid);
    snprintf(stem, sizeof stem, "%.*s", (int)(dot && dot > file ? dot - file : (ptrdiff_t)strlen(file)), file);
    snprintf(ending, sizeof ending, "%s", dot && dot > file ? dot : ".txt");
    if (strcmp(format, "pdf") == 0) snprintf(ending, sizeof ending, ".html"); // what a PDF becomes
    snprintf(out, NAME_MAX_BYTES, "%s.%s_%s%s", uuid, stem, language, ending);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p <= ' ' || strchr("\"'\\/;%?#&<>", *p)) *p = '_';
}

// Where the client sees this server.
static void make_url(dgm_request *q, char *out, size_t size, const char *name)
{
    const char *host = dgm_request_header(q, "Host"), *prefix = q->server->options.url_prefix;
    bool fine = host && host[0] && strlen(host) < 200;
    for (const char *p = host; fine && *p; p++) fine = isalnum((unsigned char)*p) || strchr(".:-[]_", *p);
    if (fine)
        snprintf(out, size, "%s://%s%s/download_file/%s", q->server->options.certificate ? "https" : "http", host,
                 prefix ? prefix : "", name);
    else
        snprintf(out, size, "%s/download_file/%s", q->server->url, name);
}

// ---- /translate_file ------------------------------------------------------------------------------

typedef struct file_wish {
    dgm_libre_wish *libre;
    dgm_request *request;
    const char *file, *format;
} file_wish;

static void put_url(dgm_request *q, const char *name)
{
    char url[NAME_MAX_BYTES + 300];
    dgm_json_out j = {0};
    make_url(q, url, sizeof url, name);
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "translatedFileUrl", url);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

const char *dgm_files_keep(dgm_request *q, const char *file, const char *language, const char *format, dgm_writer *data)
{
    struct dgm_files *files = q->server->files;
    kept_file *one = dgm_calloc(1, sizeof *one);
    char *name = dgm_request_memory(q, NAME_MAX_BYTES);
    if (!one || !name) {
        dgm_free(one);
        dgm_writer_free(data);
        return NULL;
    }
    make_name(one->name, file, language, format ? format : "");
    memcpy(name, one->name, NAME_MAX_BYTES);
    one->data = *data;
    *data = (dgm_writer){0};
    one->since = dgm_now();
    pthread_mutex_lock(&files->lock);
    one->next = files->first;
    files->first = one;
    files->bytes += one->data.size;
    drop(files, one->since - KEEP_SECONDS);
    pthread_mutex_unlock(&files->lock);
    return name;
}

void dgm_files_attach(dgm_request *q, const char *name)
{
    char header[NAME_MAX_BYTES + 40];
    snprintf(header, sizeof header, "attachment; filename=\"%s\"", dgm_files_plain(name));
    dgm_answer_header(q, "Content-Disposition", header);
}

const char *dgm_files_plain(const char *name)
{
    return strlen(name) > UUID ? name + UUID + 1 : name;
}

const char *dgm_files_name(dgm_request *q, const char *file, const char *language, const char *format)
{
    char *name = dgm_request_memory(q, NAME_MAX_BYTES);
    if (name) make_name(name, file, language, format ? format : "");
    return name;
}

static void written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs, size_t count)
{
    file_wish *w = user;
    dgm_request *q = w->request;
    (void)count;
    if (st != DGM_OK) {
        dgm_answer_failure(q, st, err);
        return;
    }
    const char *name = dgm_files_keep(q, w->file, w->libre->to->code, w->format, &outputs[0]);
    if (name)
        put_url(q, name);
    else
        dgm_answer_error(q, 500, "out of memory");
}

// Is it one of the kinds that can be read, by the ending of its name?
static bool has_ending(const char *file, const char *endings)
{
    const char *dot = strrchr(file, '.');
    for (const char *p = endings; dot && *p;) {
        const size_t n = strcspn(p, " ");
        if (strncasecmp(dot + 1, p, n) == 0 && dot[1 + n] == 0) return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

static bool is_supported(const char *file)
{
    for (size_t i = 0; dgm_document_format_at(i); i++)
        if (has_ending(file, dgm_document_format_at(i)->endings)) return true;
    return false;
}

static void put_endings(dgm_json_out *j, const char *endings)
{
    for (const char *p = endings; *p;) {
        char ending[24];
        const size_t n = strcspn(p, " ");
        snprintf(ending, sizeof ending, ".%.*s", (int)n, p);
        dgm_out_string(j, NULL, ending);
        p += n + (p[n] == ' ');
    }
}

void dgm_libre_endings(dgm_json_out *j)
{
    for (size_t i = 0; dgm_document_format_at(i); i++) put_endings(j, dgm_document_format_at(i)->endings);
}

// The file of the form. NULL: it was answered.
static const dgm_upload *find_upload(dgm_request *q)
{
    const dgm_upload *file = NULL;
    for (size_t i = 0; i < q->upload_count && !file; i++)
        if (strcmp(q->uploads[i].name, "file") == 0) file = &q->uploads[i];
    if (!file)
        dgm_answer_error(q, 400, "Invalid request: missing file parameter");
    else if (!file->file[0])
        dgm_answer_error(q, 400, "Invalid request: empty file");
    else if (!is_supported(file->file))
        dgm_answer_error(q, 400, "Invalid request: file format not supported");
    else
        return file;
    return NULL;
}

// Languages, by the text in the file where the source is to be found out. False: it was answered.
static bool find_pair(dgm_request *q, dgm_libre_wish *w, const dgm_papers_spec *spec)
{
    dgm_writer sample = {0};
    dgm_error err;
    const dgm_status st = strcmp(w->source, "auto") == 0 ? dgm_papers_sample(spec, &sample, &err) : DGM_OK;
    const dgm_task_text text = {.text = (const char *)sample.data, .size = sample.size};
    w->texts = &text;
    w->count = 1;
    const bool fine = st == DGM_OK && dgm_libre_pair(q, w) && dgm_libre_offered(q, w);
    if (fine) w->texts = NULL; // otherwise it was answered, or is about to be: w goes with the request
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
    dgm_writer_free(&sample);
    return fine;
}

void dgm_libre_translate_file(dgm_request *q)
{
    dgm_error err;
    if (q->server->options.disable_files_translation) {
        dgm_answer_error(q, 403, "Files translation are disabled on this server.");
        return;
    }
    dgm_libre_wish *w = dgm_libre_wish_new(q);
    if (!w) return;
    file_wish *f = dgm_request_memory(q, sizeof *f);
    if (!f) {
        dgm_answer_error(q, 500, "out of memory");
        return;
    }
    const dgm_upload *file = find_upload(q);
    if (!file || !dgm_libre_language(q, "source", &w->source) || !dgm_libre_language(q, "target", &w->target)) return;
    const dgm_task_text text = {.text = file->data, .size = file->size};
    dgm_papers_spec spec = {.texts = &text,
                            .count = 1,
                            .name = file->file,
                            .columns = dgm_request_text(q, "columns", NULL, NULL),
                            .bill = true,
                            .done = written,
                            .user = f};
    if (!find_pair(q, w, &spec)) return;
    *f = (file_wish){.libre = w, .request = q, .file = file->file};
    spec.source = w->from->code;
    spec.target = w->to->code;
    q->texts = 1;
    const dgm_status st = dgm_papers_start(q, &spec, &f->format, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}

// ---- /download_file -------------------------------------------------------------------------------

void dgm_libre_download_file(dgm_request *q)
{
    struct dgm_files *files = q->server->files;
    if (q->server->options.disable_files_translation) {
        dgm_answer_error(q, 400, "Files translation are disabled on this server.");
        return;
    }
    if (strchr(q->rest, '/')) {
        dgm_answer_error(q, 400, "Invalid filename");
        return;
    }
    dgm_writer copy = {0};
    bool found = false;
    pthread_mutex_lock(&files->lock);
    for (const kept_file *one = files->first; one && !found; one = one->next) {
        found = strcmp(one->name, q->rest) == 0;
        if (found) dgm_write_bytes(&copy, one->data.data, one->data.size);
    }
    pthread_mutex_unlock(&files->lock);
    if (!found) {
        dgm_answer_error(q, 404, "There is no such file, or it was kept long enough.");
        return;
    }
    dgm_files_attach(q, q->rest);
    dgm_answer_writer(q, 200, "application/octet-stream", &copy);
}

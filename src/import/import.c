// SPDX-License-Identifier: MIT
// What importers share: the table, the options, conversion of weights to their storage type, the
// general keys; see import.h. tools/import.c is the public side.
#include "import/import.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "format/card.h"
#include "format/convert.h"
#include "format/foreign.h"
#include "format/gguf_private.h"
#include "format/modelfile.h"
#include "format/quantize.h"

const dgm_importer dgm_importers[] = {
    {{.size = sizeof(dgm_import_format),
      .name = "huggingface",
      .summary =
          "MarianMT, M2M100, NLLB, mBART, FSMT or T5 folder: config.json, safetensors or "
          "pytorch_model.bin, SentencePiece models, vocab.json"},
     dgm_import_huggingface},
    {{.size = sizeof(dgm_import_format),
      .name = "ctranslate2",
      .summary = "CTranslate2 folder: model.bin of versions 1 to 6, vocabularies, a SentencePiece model beside"},
     dgm_import_ctranslate2},
    {{.size = sizeof(dgm_import_format),
      .name = "argos",
      .summary = "package of Argos Translate and LibreTranslate: .argosmodel, or the folder it was unpacked into"},
     dgm_import_argos},
    {{.size = sizeof(dgm_import_format),
      .name = "marian",
      .summary = "Marian: a folder, .npz, .bin or decoder.yml, with its vocabularies"},
     dgm_import_marian},
    {{.size = sizeof(dgm_import_format),
      .name = "opus-mt",
      .summary = "release of OPUS-MT: a zip archive of Marian's files, or the folder made of it"},
     dgm_import_marian},
    {{.size = sizeof(dgm_import_format),
      .name = "bergamot",
      .summary = "student of Bergamot or Firefox: *.intgemm.alphas.bin, vocabularies, shortlist"},
     dgm_import_bergamot},
    {{.size = sizeof(dgm_import_format),
      .name = "nematus",
      .summary = "Nematus, Amun or dl4mt: model.npz, model.npz.json, dictionaries"},
     dgm_import_nematus},
    {{.size = sizeof(dgm_import_format),
      .name = "fairseq",
      .summary = "checkpoint of a Transformer, or its folder: NAME.pt, dict.LANGUAGE.txt, SentencePiece models "
                 "or codes of byte-pair encoding"},
     dgm_import_fairseq},
    {{.size = sizeof(dgm_import_format),
      .name = "opennmt-py",
      .summary = "checkpoint of a Transformer, or its folder: NAME.pt; SentencePiece models or codes of "
                 "byte-pair encoding beside it"},
     dgm_import_opennmt_py},
    {{0}, NULL},
};

// ---- weights ----------------------------------------------------------------------------------

// One tensor of the output. The data and the scale of an integer matrix are two of them that read the
// same input, a few rows at a time each.
struct dgm_import_weight {
    dgm_import_weight *next;
    char name[DGM_GGUF_MAX_NAME + 1]; // of the matrix, for messages
    const char *file;                 // where it comes from, likewise
    int rows, cols, type;
    int bits; // i16: of the fraction; MORE_BITS until all rows were seen
    dgm_import_fetch fetch;
    dgm_import_fetch_i8 fetch_i8; // instead of fetch: kept as stored
    dgm_import_scales scales;
    const void *source;
};

enum { READ_BYTES = 2 << 20, I16_BITS_MAX = 30, MORE_BITS = I16_BITS_MAX + 1 };

static int rows_at_once(const dgm_import_weight *t)
{
    const size_t row = (size_t)t->cols * sizeof(float);
    const size_t n = row < READ_BYTES ? READ_BYTES / row : 1;
    return n < (size_t)t->rows ? (int)n : t->rows;
}

// The position of the point in an i16 matrix depends on all of its rows.
static dgm_status find_bits(dgm_import_weight *t, dgm_error *err)
{
    if (t->type != DGM_TYPE_I16 || t->bits != MORE_BITS) return DGM_OK;
    const int step = rows_at_once(t);
    float largest = 0, *real = dgm_malloc((size_t)step * (size_t)t->cols * sizeof *real);
    dgm_status st = real ? DGM_OK : dgm_no_memory(err);
    for (int at = 0; at < t->rows && st == DGM_OK; at += step) {
        const int n = t->rows - at < step ? t->rows - at : step;
        st = t->fetch(t->source, at, n, real, err);
        for (size_t i = 0; st == DGM_OK && i < (size_t)n * (size_t)t->cols; i++)
            largest = fmaxf(largest, fabsf(real[i])); // what is not finite is refused by converting
    }
    dgm_free(real);
    if (st == DGM_OK) t->bits = dgm_quantize_i16_bits(largest, I16_BITS_MAX);
    return st;
}

static dgm_status convert_i16(const dgm_import_weight *t, const float *real, size_t n, void *out,
                              dgm_error *err)
{
    for (size_t i = 0; i < n; i++)
        DGM_FAIL_IF(!isfinite(real[i]), err, DGM_ERR_FORMAT,
                    "tensor '%s' has values that are not finite", t->name);
    dgm_quantize_i16_by(real, n, t->bits, out);
    return DGM_OK;
}

// Rows in their storage type. scales [rows]: of i8.
static dgm_status convert_rows(const dgm_import_weight *t, const float *real, int rows, void *out,
                               float *scales, dgm_error *err)
{
    const dgm_status st =
        t->type == DGM_TYPE_I16
            ? convert_i16(t, real, (size_t)rows * (size_t)t->cols, out, err)
            : dgm_convert(t->name, real, rows, t->cols, t->type, out, scales, NULL, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "'%s'", t->file);
    return st;
}

static dgm_status produce_rows(void *arg, int first, int rows, void *out, dgm_error *err)
{
    dgm_import_weight *t = arg;
    if (t->fetch_i8) return t->fetch_i8(t->source, first, rows, out, err);
    DGM_TRY(find_bits(t, err));
    float *real = dgm_malloc((size_t)rows * (size_t)t->cols * sizeof *real);
    float *scales = dgm_malloc((size_t)rows * sizeof *scales);
    dgm_status st = real && scales ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = t->fetch(t->source, first, rows, real, err);
    if (st == DGM_OK) st = convert_rows(t, real, rows, out, scales, err);
    dgm_free(real);
    dgm_free(scales);
    return st;
}

// All scales of an i8 matrix: its rows are converted for their sake and thrown away.
static dgm_status scales_of_rows(const dgm_import_weight *t, float *out, dgm_error *err)
{
    const int step = rows_at_once(t);
    const size_t n = (size_t)step * (size_t)t->cols;
    float *real = dgm_malloc(n * sizeof *real);
    int8_t *spare = dgm_malloc(n);
    dgm_status st = real && spare ? DGM_OK : dgm_no_memory(err);
    for (int at = 0; at < t->rows && st == DGM_OK; at += step) {
        const int rows = t->rows - at < step ? t->rows - at : step;
        st = t->fetch(t->source, at, rows, real, err);
        if (st == DGM_OK) st = convert_rows(t, real, rows, spare, out + at, err);
    }
    dgm_free(real);
    dgm_free(spare);
    return st;
}

static dgm_status produce_scales(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)bytes;
    dgm_import_weight *t = arg;
    float *const scales = out;
    if (t->scales) {
        t->scales(t->source, t->rows, scales);
        return DGM_OK;
    }
    if (t->type == DGM_TYPE_I8) return scales_of_rows(t, scales, err);
    DGM_TRY(find_bits(t, err));
    *scales = ldexpf(1, -t->bits);
    return DGM_OK;
}

static dgm_status add_weight(dgm_import_job *job, const dgm_import_weight *proto, const char *name,
                             dgm_import_weight **out, dgm_error *err)
{
    DGM_FAIL_IF(strlen(name) > DGM_GGUF_MAX_NAME, err, DGM_ERR_ARGUMENT, "name too long: %s", name);
    dgm_import_weight *t = dgm_malloc(sizeof *t);
    if (!t) return dgm_no_memory(err);
    *t = *proto;
    t->file = job->file ? job->file : job->dir;
    t->bits = MORE_BITS;
    strcpy(t->name, name);
    t->next = job->weights;
    job->weights = t;
    *out = t;
    return DGM_OK;
}

// A matrix and, for integers, its scales.
static dgm_status add_matrix(dgm_import_job *job, const dgm_import_weight *proto, const char *name,
                             dgm_error *err)
{
    dgm_import_weight *t;
    DGM_TRY(add_weight(job, proto, name, &t, err));
    const int shape[2] = {t->rows, t->cols}, scales = dgm_convert_scales(t->type, t->rows);
    dgm_gguf_add_rows(job->w, name, (dgm_tensor_type)t->type, 2, shape, produce_rows, t);
    if (!scales) return DGM_OK;
    char scale[DGM_GGUF_MAX_NAME + 8];
    dgm_scale_name(scale, name);
    dgm_gguf_add_produced(job->w, scale, DGM_TYPE_F32, 1, &scales, produce_scales, t);
    return DGM_OK;
}

dgm_status dgm_import_matrix(dgm_import_job *job, const char *name, int rows, int cols,
                             int input_type, dgm_import_fetch fetch, const void *source,
                             dgm_error *err)
{
    const dgm_import_weight proto = {.rows = rows,
                                     .cols = cols,
                                     .type = job->storage < 0 ? input_type : job->storage,
                                     .fetch = fetch,
                                     .source = source};
    return add_matrix(job, &proto, name, err);
}

dgm_status dgm_import_matrix_i8(dgm_import_job *job, const char *name, int rows, int cols,
                                dgm_import_fetch_i8 fetch, dgm_import_scales scales,
                                const void *source, dgm_error *err)
{
    const dgm_import_weight proto = {.rows = rows,
                                     .cols = cols,
                                     .type = DGM_TYPE_I8,
                                     .fetch_i8 = fetch,
                                     .scales = scales,
                                     .source = source};
    return add_matrix(job, &proto, name, err);
}

dgm_status dgm_import_vector(dgm_import_job *job, const char *name, int size,
                             dgm_import_fetch fetch, const void *source, dgm_error *err)
{
    const dgm_import_weight proto = {
        .rows = 1, .cols = size, .type = DGM_TYPE_F32, .fetch = fetch, .source = source};
    dgm_import_weight *t;
    DGM_TRY(add_weight(job, &proto, name, &t, err));
    dgm_gguf_add_rows(job->w, name, DGM_TYPE_F32, 1, &size, produce_rows, t);
    return DGM_OK;
}

void dgm_import_free_weights(dgm_import_job *job)
{
    while (job->weights) {
        dgm_import_weight *next = job->weights->next;
        dgm_free(job->weights);
        job->weights = next;
    }
}

// ---- general keys -----------------------------------------------------------------------------

const char *dgm_import_language(const char *code)
{
    static const char table[][2][4] = {
        {"afr", "af"}, {"ara", "ar"}, {"bel", "be"}, {"ben", "bn"}, {"bul", "bg"}, {"cat", "ca"},
        {"ces", "cs"}, {"cym", "cy"}, {"dan", "da"}, {"deu", "de"}, {"ell", "el"}, {"eng", "en"},
        {"epo", "eo"}, {"est", "et"}, {"eus", "eu"}, {"fas", "fa"}, {"fin", "fi"}, {"fra", "fr"},
        {"gle", "ga"}, {"glg", "gl"}, {"heb", "he"}, {"hin", "hi"}, {"hrv", "hr"}, {"hun", "hu"},
        {"hye", "hy"}, {"ind", "id"}, {"isl", "is"}, {"ita", "it"}, {"jpn", "ja"}, {"kat", "ka"},
        {"kaz", "kk"}, {"kor", "ko"}, {"lat", "la"}, {"lav", "lv"}, {"lit", "lt"}, {"mkd", "mk"},
        {"mlt", "mt"}, {"msa", "ms"}, {"nld", "nl"}, {"nno", "nn"}, {"nob", "nb"}, {"nor", "no"},
        {"pol", "pl"}, {"por", "pt"}, {"ron", "ro"}, {"rus", "ru"}, {"slk", "sk"}, {"slv", "sl"},
        {"spa", "es"}, {"sqi", "sq"}, {"srp", "sr"}, {"swa", "sw"}, {"swe", "sv"}, {"tam", "ta"},
        {"tel", "te"}, {"tha", "th"}, {"tur", "tr"}, {"ukr", "uk"}, {"urd", "ur"}, {"vie", "vi"},
        {"zho", "zh"},
    };
    for (size_t i = 0; code && i < sizeof table / sizeof *table; i++)
        if (strcmp(code, table[i][0]) == 0) return table[i][1];
    return code;
}

static void set_language(dgm_import_job *job, const char *key, const char *option,
                         const char *found)
{
    const char *code = dgm_import_language(option ? option : found);
    if (code && code[0]) dgm_gguf_set_strings(job->w, key, &code, 1);
}

// The last part of the folder's path.
static void set_folder_name(dgm_import_job *job)
{
    size_t end = strlen(job->dir), begin;
    while (end > 0 && job->dir[end - 1] == '/') end--;
    for (begin = end; begin > 0 && job->dir[begin - 1] != '/';) begin--;
    char name[256];
    size_t n = end - begin < sizeof name ? end - begin : sizeof name - 1;
    memcpy(name, job->dir + begin, n);
    name[n] = 0;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        dgm_card_set(job->w, &(dgm_card){.name = name}, false);
}

void dgm_import_general(dgm_import_job *job, const char *architecture, const char *source_language,
                        const char *target_language)
{
    const dgm_import_options *o = &job->options;
    dgm_gguf_set_string(job->w, "general.architecture", "dragoman");
    set_folder_name(job);
    const dgm_card card = {.name = o->name,
                           .description = o->description,
                           .license = o->license,
                           .author = o->author,
                           .url = o->url,
                           .text = o->card};
    dgm_card_set(job->w, &card, false);
    dgm_gguf_set_u32(job->w, "dragoman.format_version", DGM_FORMAT_VERSION);
    dgm_gguf_set_string(job->w, "dragoman.architecture", architecture);
    dgm_gguf_set_string(job->w, "dragoman.producer", "dragoman " DGM_VERSION);
    set_language(job, "dragoman.languages.source", o->source_language, source_language);
    set_language(job, "dragoman.languages.target", o->target_language, target_language);
}

static dgm_status watch(void *arg, double share, dgm_error *err)
{
    const dgm_progress *p = arg;
    DGM_FAIL_IF(p->tick && p->tick(p->cookie, "importing", share) != 0, err, DGM_ERR_CANCELLED,
                "stopped on request");
    return DGM_OK;
}

dgm_status dgm_import_write(dgm_import_job *job, dgm_error *err)
{
    dgm_gguf_watch_writing(job->w, watch, &job->options.progress);
    return dgm_gguf_write(job->w, job->output, err);
}

void dgm_import_note(const dgm_import_job *job, const char *fmt, ...)
{
    char text[1024];
    if (!job->options.note) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    job->options.note(job->options.note_cookie, text);
}

// ---- the import -------------------------------------------------------------------------------

static dgm_status unknown_format(const char *format, dgm_error *err)
{
    char list[256] = "auto";
    for (const dgm_importer *i = dgm_importers; i->run; i++) {
        if (strlen(list) + strlen(i->info.name) + 3 > sizeof list) break;
        if (list[0]) strcat(list, ", ");
        strcat(list, i->info.name);
    }
    return dgm_fail(err, DGM_ERR_ARGUMENT, "unknown import format '%.60s', expected one of: %s",
                    format, list);
}

static dgm_status choose_storage(const char *type, int *out, dgm_error *err)
{
    *out = type ? dgm_convert_type(type) : -1;
    if (!type || *out >= 0) return DGM_OK;
    return dgm_fail(err, DGM_ERR_ARGUMENT,
                    "unknown storage type '%.60s', expected one of: f32, f16, bf16, i16, i8", type);
}

const dgm_importer *dgm_importer_named(const char *name)
{
    for (const dgm_importer *i = dgm_importers; name && i->run; i++)
        if (strcmp(i->info.name, name) == 0) return i;
    return NULL;
}

static bool is_auto(const char *format)
{
    return !format || strcmp(format, "auto") == 0;
}

// The first bytes of a file, or none.
static bool begins_as(const char *path, const char *begin)
{
    char head[64] = {0};
    const size_t n = strlen(begin);
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    FILE *f = fopen(path, "rbe");
    if (!f) return false;
    const bool yes = n <= sizeof head && fread(head, 1, n, f) == n && memcmp(head, begin, n) == 0;
    fclose(f);
    return yes;
}

static dgm_status choose_importer(const dgm_import_job *job, const char *format, dgm_foreign kind,
                                  const dgm_importer **out, dgm_error *err)
{
    *out = dgm_importer_named(is_auto(format) ? dgm_foreign_importer(kind) : format);
    if (*out) {
        if (is_auto(format)) dgm_import_note(job, "'%s' is %s", job->dir, dgm_foreign_what(kind));
        return DGM_OK;
    }
    if (!is_auto(format)) return unknown_format(format, err);
    if (dgm_foreign_explain(job->dir, err)) return DGM_ERR_FORMAT;
    DGM_FAIL_IF(!dgm_file_exists(job->dir), err, DGM_ERR_IO, "cannot open '%s': %s", job->dir,
                strerror(errno));
    DGM_FAIL_IF(begins_as(job->dir, "GGUF"), err, DGM_ERR_FORMAT,
                "'%s' is a model file already: 'dragoman translate -m %s'", job->dir, job->dir);
    return dgm_fail(err, DGM_ERR_FORMAT,
                    "'%s' holds no model that is known by its files; name its format: 'dragoman import "
                    "FORMAT PATH' ('dragoman import --help' lists them)",
                    job->dir);
}

// What was asked for failed, and the files look like another kind: the message says so, too.
static void mention_kind(const dgm_import_job *job, const dgm_importer *asked, dgm_foreign kind,
                         dgm_error *err)
{
    const char *name = dgm_foreign_importer(kind);
    if (!err || !name || strcmp(name, asked->info.name) == 0) return;
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    dgm_fail(err, DGM_ERR_FORMAT, "%s ('%.200s' looks like %s: 'dragoman import %s')", text, job->dir,
             dgm_foreign_what(kind), name);
}

// A folder that git fetched without its large files has small texts in their place.
static void mention_pointers(const dgm_import_job *job, dgm_error *err)
{
    char path[4096];
    DIR *dir = err ? opendir(job->dir) : NULL;
    if (!dir) return;
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (snprintf(path, sizeof path, "%s/%s", job->dir, d->d_name) >= (int)sizeof path) continue;
        if (!begins_as(path, "version https://git-lfs.github.com/spec/")) continue;
        dgm_fail(err, DGM_ERR_FORMAT,
                 "'%s' is a pointer of Git LFS in place of the file: 'git lfs pull' in that folder fetches it", path);
        break;
    }
    closedir(dir);
}

dgm_status dgm_import_run(const char *format, const char *path, const char *output,
                          const dgm_import_options *options, dgm_import_opens opens, dgm_error *err)
{
    const dgm_foreign kind = dgm_foreign_kind(path);
    if (kind == DGM_FOREIGN_NAME) {
        dgm_foreign_explain(path, err);
        return DGM_ERR_FORMAT;
    }
    dgm_import_job job = {.dir = path, .output = output, .opens = opens};
    if (options) job.options = *options;
    const dgm_importer *importer;
    DGM_TRY(choose_importer(&job, format, kind, &importer, err));
    DGM_TRY(choose_storage(job.options.type, &job.storage, err));
    char *card;
    DGM_TRY(dgm_card_read(job.options.card_file, &card, err));
    if (card) job.options.card = card;
    dgm_status st = dgm_gguf_writer_open(&job.w, err);
    if (st == DGM_OK) st = importer->run(&job, err);
    if (st == DGM_ERR_FORMAT || st == DGM_ERR_IO) mention_kind(&job, importer, kind, err);
    if (st == DGM_ERR_FORMAT) mention_pointers(&job, err);
    dgm_gguf_writer_close(&job.w);
    dgm_free(card);
    dgm_import_free_weights(&job);
    return st;
}

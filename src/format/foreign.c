// SPDX-License-Identifier: MIT
// What a path that is no model file holds; see foreign.h.
#define _GNU_SOURCE
#include "format/foreign.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

// ---- the kinds --------------------------------------------------------------------------------

static const struct {
    const char *importer, *what;
} kinds[DGM_FOREIGN_COUNT] = {
    [DGM_FOREIGN_HUGGINGFACE] = {"huggingface", "the folder of a Hugging Face model"},
    [DGM_FOREIGN_CTRANSLATE2] = {"ctranslate2", "a model of CTranslate2"},
    [DGM_FOREIGN_ARGOS] = {"argos", "a package of Argos Translate"},
    [DGM_FOREIGN_MARIAN] = {"marian", "a model of Marian"},
    [DGM_FOREIGN_BERGAMOT] = {"bergamot", "a model of Bergamot, as in Firefox"},
    [DGM_FOREIGN_OPUS] = {"opus-mt", "a release of OPUS-MT"},
    [DGM_FOREIGN_NEMATUS] = {"nematus", "a model of Nematus"},
    [DGM_FOREIGN_FAIRSEQ] = {"fairseq", "a checkpoint of fairseq"},
    [DGM_FOREIGN_OPENNMT] = {"opennmt-py", "a checkpoint of OpenNMT-py"},
    [DGM_FOREIGN_PART] = {NULL, "one file of a Hugging Face model"},
    [DGM_FOREIGN_MODELS] = {NULL, "a folder of model files"},
    [DGM_FOREIGN_NAME] = {NULL, "neither a file nor a folder here"},
};

const char *dgm_foreign_importer(dgm_foreign kind)
{
    return kinds[kind].importer;
}

const char *dgm_foreign_what(dgm_foreign kind)
{
    return kinds[kind].what;
}

// ---- folders ----------------------------------------------------------------------------------

enum {
    CONFIG = 1 << 0,
    SAFETENSORS = 1 << 1,
    PICKLE = 1 << 2,
    CT2_BIN = 1 << 3,
    METADATA = 1 << 4,
    MODEL_FOLDER = 1 << 5,
    INTGEMM = 1 << 6,
    NPZ = 1 << 7,
    NPZ_JSON = 1 << 8,
    MARIAN_YML = 1 << 9,
    MARIAN_BIN = 1 << 10,
    PT = 1 << 11,
    DICT = 1 << 12,
    GGUF = 1 << 13
};

// Signs that a file's name gives. Between begin and end anything may stand; with both the same, nothing.
static const struct {
    int sign;
    const char *begin, *end;
} signs[] = {
    {CONFIG, "config.json", "config.json"},
    {SAFETENSORS, "", ".safetensors"},
    {SAFETENSORS, "", ".safetensors.index.json"}, // its parts may be missing: the importer says which
    {PICKLE, "pytorch_model", ".bin"},
    {PICKLE, "pytorch_model", ".bin.index.json"},
    {METADATA, "metadata.json", "metadata.json"},
    {MODEL_FOLDER, "model", "model"},
    {INTGEMM, "", ".intgemm.alphas.bin"},
    {INTGEMM, "", ".intgemm8.bin"},
    {INTGEMM, "", ".intgemm.alphas.bin.gz"},
    {INTGEMM, "", ".intgemm8.bin.gz"},
    {NPZ, "", ".npz"},
    {NPZ, "", ".npz.gz"},
    {NPZ_JSON, "", ".npz.json"},
    {MARIAN_YML, "decoder.yml", "decoder.yml"},
    {MARIAN_YML, "", ".decoder.yml"},
    {PT, "", ".pt"},
    {DICT, "dict.", ".txt"},
    {GGUF, "", ".gguf"},
};

// What a folder's signs mean; the first row that fits counts.
static const struct {
    dgm_foreign kind;
    int all, none;
} rules[] = {
    {DGM_FOREIGN_HUGGINGFACE, CONFIG | SAFETENSORS, 0},
    {DGM_FOREIGN_HUGGINGFACE, CONFIG | PICKLE, 0},
    {DGM_FOREIGN_CTRANSLATE2, CT2_BIN, 0},
    {DGM_FOREIGN_ARGOS, METADATA | MODEL_FOLDER, 0},
    {DGM_FOREIGN_BERGAMOT, INTGEMM, 0},
    {DGM_FOREIGN_NEMATUS, NPZ | NPZ_JSON, MARIAN_YML},
    {DGM_FOREIGN_MARIAN, NPZ, 0},
    {DGM_FOREIGN_MARIAN, MARIAN_YML, 0},
    {DGM_FOREIGN_MARIAN, MARIAN_BIN, 0},
    {DGM_FOREIGN_FAIRSEQ, PT | DICT, 0},
    {DGM_FOREIGN_OPENNMT, PT, 0},
    {DGM_FOREIGN_MODELS, GGUF, 0},
};

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int name_signs(const char *name)
{
    int found = 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const bool whole = strcmp(signs[i].begin, signs[i].end) == 0;
        if (whole ? strcmp(name, signs[i].begin) == 0
                  : begins_with(name, signs[i].begin) && ends_in(name, signs[i].end))
            found |= signs[i].sign;
    }
    return found;
}

static int folder_signs(const char *path)
{
    int found = 0;
    DIR *dir = opendir(path);
    if (!dir) return 0;
    for (struct dirent *d; (d = readdir(dir)) != NULL;) found |= name_signs(d->d_name);
    closedir(dir);
    return found;
}

// ---- files ------------------------------------------------------------------------------------

enum { HEAD = 80, TAIL = 65536 };

// Marian's files begin with the number 1 in eight bytes and a count of tensors.
static bool is_marian_head(const unsigned char *h)
{
    static const unsigned char one[8] = {1};
    return memcmp(h, one, 8) == 0 && (h[8] | h[9]) && !(h[11] | h[12] | h[13] | h[14] | h[15]);
}

// CTranslate2's begin with a version in four bytes and, from version 2 on, the name of a specification
// behind its size in two. Version 1 has a count of variables and the first one's name in that place.
static bool is_ct2_head(const unsigned char *h)
{
    if (h[0] == 0 || h[0] > 32 || (h[1] | h[2] | h[3])) return false;
    if (h[0] == 1 && !(h[6] | h[7])) return (h[4] | h[5]) && memmem(h + 8, 40, "coder/", 6);
    const size_t name = h[4] | (size_t)h[5] << 8;
    return name > 4 && name < 64 && (memmem(h + 6, name, "Spec", 4) || memmem(h + 6, name, "Transformer", 11));
}

// Names of a zip's members stand in plain letters near its end.
static bool zip_names(FILE *f, const char *name)
{
    if (fseek(f, 0, SEEK_END) != 0) return false;
    const long size = ftell(f);
    if (size < 0 || fseek(f, size > TAIL ? size - TAIL : 0, SEEK_SET) != 0) return false;
    char *tail = dgm_malloc(TAIL);
    const bool found = tail && memmem(tail, fread(tail, 1, TAIL, f), name, strlen(name));
    dgm_free(tail);
    return found;
}

static dgm_foreign zip_kind(const char *path, FILE *f)
{
    char json[4096];
    struct stat st;
    if (ends_in(path, ".npz")) {
        const int n = snprintf(json, sizeof json, "%s.json", path);
        return n < (int)sizeof json && stat(json, &st) == 0 ? DGM_FOREIGN_NEMATUS : DGM_FOREIGN_MARIAN;
    }
    if (ends_in(path, ".argosmodel") || zip_names(f, "/metadata.json")) return DGM_FOREIGN_ARGOS;
    return zip_names(f, "decoder.yml") ? DGM_FOREIGN_OPUS : DGM_FOREIGN_PART;
}

// A checkpoint that PyTorch wrote: of fairseq where its dictionaries lie beside it.
static dgm_foreign pt_kind(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    const int n = slash ? (int)(slash - path) : 0;
    snprintf(folder, sizeof folder, "%.*s", slash ? (n ? n : 1) : 1, slash ? path : ".");
    return folder_signs(folder) & DICT ? DGM_FOREIGN_FAIRSEQ : DGM_FOREIGN_OPENNMT;
}

// Settings of Marian's decoder name models or vocabularies in a line of their own; those of Bergamot also say how
// products are rounded.
static dgm_foreign yml_kind(FILE *f)
{
    char text[4096];
    if (fseek(f, 0, SEEK_SET) != 0) return DGM_FOREIGN_NONE;
    text[0] = '\n';
    const size_t n = 1 + fread(text + 1, 1, sizeof text - 1, f);
    if (!memmem(text, n, "\nmodels:", 8) && !memmem(text, n, "\nvocabs:", 8)) return DGM_FOREIGN_NONE;
    return memmem(text, n, "int8shift", 9) ? DGM_FOREIGN_BERGAMOT : DGM_FOREIGN_MARIAN;
}

// Safetensors begin with the size of a JSON object in eight bytes.
static dgm_foreign file_kind(const char *path)
{
    unsigned char head[HEAD] = {0};
    FILE *f = fopen(path, "rbe");
    if (!f) return DGM_FOREIGN_NONE;
    const size_t n = fread(head, 1, sizeof head, f);
    const bool zip = n > 4 && memcmp(head, "PK\3\4", 4) == 0;
    const bool pickle = n > 4 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
    dgm_foreign kind = DGM_FOREIGN_NONE;
    if (n > 10 && head[8] == '{' && !(head[5] | head[6] | head[7]))
        kind = DGM_FOREIGN_PART;
    else if ((zip || pickle) && ends_in(path, ".pt"))
        kind = pt_kind(path);
    else if (zip)
        kind = zip_kind(path, f);
    else if (pickle)
        kind = DGM_FOREIGN_PART;
    else if (ends_in(path, ".yml") || ends_in(path, ".yaml"))
        kind = yml_kind(f);
    else if (n == HEAD && is_marian_head(head))
        kind = strstr(path, ".intgemm") ? DGM_FOREIGN_BERGAMOT : DGM_FOREIGN_MARIAN;
    else if (n == HEAD && is_ct2_head(head))
        kind = DGM_FOREIGN_CTRANSLATE2;
    fclose(f);
    return kind;
}

static bool is_kind_of_file(const char *path, int mode)
{
    struct stat st;
    return stat(path, &st) == 0 && (int)(st.st_mode & S_IFMT) == mode;
}

// What the file that CTranslate2 and Marian both call model.bin is. One that is neither is taken for
// CTranslate2's, whose importer says what is wrong with it.
static int model_bin_signs(const char *folder)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/model.bin", folder) >= (int)sizeof path) return 0;
    if (!is_kind_of_file(path, S_IFREG)) return 0;
    return file_kind(path) == DGM_FOREIGN_MARIAN ? MARIAN_BIN : CT2_BIN;
}

static dgm_foreign folder_kind(const char *path)
{
    const int found = folder_signs(path) | model_bin_signs(path);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if ((found & rules[i].all) == rules[i].all && !(found & rules[i].none)) return rules[i].kind;
    return DGM_FOREIGN_NONE;
}

// "Helsinki-NLP/opus-mt-en-de": two parts of the hub's letters.
static bool is_hub_name(const char *path)
{
    const char *const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    const size_t owner = strspn(path, letters);
    if (owner == 0 || path[0] == '.' || path[owner] != '/') return false;
    const char *name = path + owner + 1;
    return name[0] && name[0] != '.' && name[strspn(name, letters)] == 0 && !ends_in(name, ".gguf");
}

// A missing file of a folder that is there is a mistyped path, not a name.
static bool parent_exists(const char *path)
{
    char parent[256];
    const size_t n = strcspn(path, "/");
    snprintf(parent, sizeof parent, "%.*s", (int)(n < sizeof parent ? n : sizeof parent - 1), path);
    return is_kind_of_file(parent, S_IFDIR);
}

dgm_foreign dgm_foreign_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT && is_hub_name(path) && !parent_exists(path) ? DGM_FOREIGN_NAME
                                                                            : DGM_FOREIGN_NONE;
    if (S_ISDIR(st.st_mode)) return folder_kind(path);
    return S_ISREG(st.st_mode) ? file_kind(path) : DGM_FOREIGN_NONE;
}

// ---- messages ---------------------------------------------------------------------------------

static const char *advice(dgm_foreign kind)
{
    switch (kind) {
    case DGM_FOREIGN_PART:
        return ": make a model file of the folder that it lies in, with config.json and the vocabulary: "
               "'dragoman import huggingface FOLDER -o NAME.gguf'";
    case DGM_FOREIGN_MODELS:
        return ": name one of them";
    case DGM_FOREIGN_NAME:
        return ", and nothing is fetched from the Hugging Face hub: download the model, then 'dragoman "
               "import huggingface FOLDER -o NAME.gguf'";
    default:
        return NULL;
    }
}

bool dgm_foreign_explain(const char *path, dgm_error *err)
{
    const dgm_foreign kind = dgm_foreign_kind(path);
    if (kind == DGM_FOREIGN_NONE) return false;
    if (kinds[kind].importer)
        dgm_fail(err, DGM_ERR_FORMAT,
                 "'%.200s' is %s: make a model file of it with 'dragoman import %s %.200s -o NAME.gguf'", path,
                 kinds[kind].what, kinds[kind].importer, path);
    else
        dgm_fail(err, DGM_ERR_FORMAT, "'%.200s' is %s%s", path, kinds[kind].what, advice(kind));
    return true;
}

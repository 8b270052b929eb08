// SPDX-License-Identifier: MIT
// What a path that is no model file holds; see foreign.h.
#define _GNU_SOURCE
#include "format/foreign.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// ---- folders ----------------------------------------------------------------------------------

typedef struct contents {
    bool config, safetensors, pickles, model_bin, marian, gguf;
} contents;

static void note_name(contents *c, const char *name)
{
    c->config |= strcmp(name, "config.json") == 0;
    c->safetensors |= ends_in(name, ".safetensors");
    c->pickles |= strncmp(name, "pytorch_model", 13) == 0 && ends_in(name, ".bin");
    c->model_bin |= strcmp(name, "model.bin") == 0;
    c->marian |= ends_in(name, ".npz") || strcmp(name, "decoder.yml") == 0 ||
                 strstr(name, ".intgemm") != NULL;
    c->gguf |= ends_in(name, ".gguf");
}

static dgm_foreign folder_kind(const char *path)
{
    contents c = {0};
    DIR *dir = opendir(path);
    if (!dir) return DGM_FOREIGN_NONE;
    for (struct dirent *d; (d = readdir(dir)) != NULL;) note_name(&c, d->d_name);
    closedir(dir);
    if (c.config && c.safetensors) return DGM_FOREIGN_HUGGINGFACE;
    if (c.config && c.pickles) return DGM_FOREIGN_PICKLES;
    if (c.model_bin) return DGM_FOREIGN_CTRANSLATE2;
    if (c.marian) return DGM_FOREIGN_MARIAN;
    return c.gguf ? DGM_FOREIGN_MODELS : DGM_FOREIGN_NONE;
}

// ---- files ------------------------------------------------------------------------------------

// Safetensors begin with the size of a JSON object in eight bytes; CTranslate2 with a version in four and
// the name of a specification behind its size in two.
static dgm_foreign file_kind(const char *path)
{
    unsigned char head[80] = {0};
    FILE *f = fopen(path, "rbe");
    if (!f) return DGM_FOREIGN_NONE;
    const size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    const bool zip = n > 4 && memcmp(head, "PK\3\4", 4) == 0;
    if (n > 10 && head[8] == '{' && !(head[5] | head[6] | head[7])) return DGM_FOREIGN_SAFETENSORS;
    if (zip && ends_in(path, ".npz")) return DGM_FOREIGN_MARIAN;
    if (zip) return DGM_FOREIGN_PICKLES;
    const size_t name = head[4] | (size_t)head[5] << 8;
    if (n == sizeof head && head[0] && !(head[1] | head[2] | head[3]) && name > 4 && name < 64 &&
        memmem(head + 6, name, "Spec", 4))
        return DGM_FOREIGN_CTRANSLATE2;
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

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// A missing file of a folder that is there is a mistyped path, not a name.
static bool parent_exists(const char *path)
{
    char parent[256];
    const size_t n = strcspn(path, "/");
    snprintf(parent, sizeof parent, "%.*s", (int)(n < sizeof parent ? n : sizeof parent - 1), path);
    return is_folder(parent);
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

static const char *explanation(dgm_foreign kind)
{
    switch (kind) {
    case DGM_FOREIGN_HUGGINGFACE:
        return "is the folder of a Hugging Face model: make a model file of it with 'dragoman import "
               "huggingface FOLDER -o NAME.gguf'";
    case DGM_FOREIGN_PICKLES:
        return "holds weights as PyTorch writes them, which are programs and never run here: save them as "
               "safetensors (save_pretrained of transformers does), then 'dragoman import huggingface "
               "FOLDER -o NAME.gguf'";
    case DGM_FOREIGN_CTRANSLATE2:
        return "is a model of CTranslate2, which cannot be read: take the Hugging Face folder that it was "
               "converted from, and 'dragoman import huggingface FOLDER -o NAME.gguf'";
    case DGM_FOREIGN_MARIAN:
        return "is a model of Marian, which cannot be read: take its Hugging Face version (for OPUS-MT: "
               "Helsinki-NLP/opus-mt-...), and 'dragoman import huggingface FOLDER -o NAME.gguf'";
    case DGM_FOREIGN_SAFETENSORS:
        return "is one file of a Hugging Face model: make a model file of the folder that it lies in, with "
               "config.json and the vocabulary: 'dragoman import huggingface FOLDER -o NAME.gguf'";
    case DGM_FOREIGN_MODELS:
        return "is a folder of model files: name one of them";
    case DGM_FOREIGN_NAME:
        return "is neither a file nor a folder here, and nothing is fetched from the Hugging Face hub: "
               "download the model, then 'dragoman import huggingface FOLDER -o NAME.gguf'";
    case DGM_FOREIGN_NONE:
        break;
    }
    return NULL;
}

bool dgm_foreign_explain(const char *path, dgm_error *err)
{
    const char *what = explanation(dgm_foreign_kind(path));
    if (!what) return false;
    dgm_fail(err, DGM_ERR_FORMAT, "'%.200s' %s", path, what);
    return true;
}

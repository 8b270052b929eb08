// SPDX-License-Identifier: MIT
// Fuzz target: importers on folders of models. The first byte chooses a folder of tests/data, the second one of its
// files of settings or words, and options; the rest takes that file's place. What is imported is a model file that
// opens.
// Parsers: src/import/huggingface.c src/import/m2m_languages.c src/import/fsmt.c src/import/bpe_codes.c
// Parsers: src/import/ct2_settings.c src/import/ct2_vocab.c src/import/ct2_languages.c src/import/ct2_tokenizer.c
// Parsers: src/import/ct2_vmap.c src/import/fairseq.c src/import/marian_files.c src/import/marian_vocab.c
// Parsers: src/import/marian_settings.c src/import/nematus.c src/import/token_vocab.c src/import/generation_config.c
// Parsers: src/import/spm_vocab.c src/import/shards.c src/import/release.c src/import/ct2_weights.c
// Parsers: src/import/ctranslate2.c src/import/named_file.c src/import/recurrent.c
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 8 };

// The files that are tried come first; the others are there as they are. "a<b": b of another folder or name, as a.
static const struct folder {
    const char *format, *path, *model; // model: the file that is imported; NULL: the folder
    int tried;
    const char *files[FILES];
} folders[] = {
    {"huggingface", "import/marian-fast", NULL, 4,
     {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}},
    {"huggingface", "import/marian-positions", NULL, 4,
     {"config.json", "vocab.json", "source.spm", "tokenizer_config.json", "target.spm", "generation_config.json",
      "pytorch_model.bin"}},
    {"huggingface", "import/fsmt", NULL, 5,
     {"config.json", "merges.txt", "vocab-src.json", "tokenizer_config.json", "vocab-tgt.json",
      "generation_config.json", "pytorch_model.bin"}},
    {"huggingface", "import/mbart-50", NULL, 5,
     {"config.json", "sentencepiece.bpe.model", "special_tokens_map.json", "tokenizer_config.json",
      "generation_config.json", "pytorch_model.bin"}},
    {"fairseq", "import/fairseq-old", NULL, 3, {"dict.en.txt", "dict.de.txt", "bpecodes", "model.pt"}},
    {"ctranslate2", "ctranslate2/m2m", NULL, 5,
     {"config.json", "shared_vocabulary.json", "vmap.txt", "bpe.model", "tokenizer.json", "model.bin"}},
    {"ctranslate2", "ctranslate2/opennmt-py", NULL, 4,
     {"config.json", "shared_vocabulary.json", "vmap.txt", "source_vocabulary.txt", "model.bin"}},
    {"nematus", "nematus", "tf.npz", 2, {"tf.npz.json", "tf.vocab.json", "tf.npz"}},
    {"nematus", "nematus", "theano.npz", 2, {"theano.npz.json", "theano.vocab.json", "theano.npz"}},
    {"marian", "marian", "bpe.npz", 4,
     {"bpe.npz.decoder.yml", "bpe.words.yml", "bpe.codes", "preprocess.sh", "bpe.npz"}},
    {"huggingface", "import/marian-fast", NULL, 4,
     {"config.json", "model.safetensors.index.json", "tokenizer.json", "pytorch_model.bin.index.json"}},
    {"ctranslate2", "ctranslate2/mbart50", NULL, 2, {"config.json", "shared_vocabulary.json", "model.bin"}},
    {"ctranslate2", "ctranslate2/t5-gated", NULL, 2, {"config.json", "shared_vocabulary.json", "model.bin"}},
    {"huggingface", "import/mbart", NULL, 5,
     {"config.json", "sentencepiece.bpe.model", "special_tokens_map.json", "tokenizer_config.json",
      "generation_config.json", "pytorch_model.bin"}},
    {"marian", "marian", NULL, 4,
     {"ssru.npz.decoder.yml", "vocab.txt", "vocab.yml", "README.md", "joint.spm", "ssru.npz"}},
    {"nematus", "nematus", "dl4mt.npz", 2, {"dl4mt.npz.json", "dl4mt.vocab.json", "dl4mt.npz"}},
    {"ctranslate2", "ctranslate2/opennmt-py", NULL, 3,
     {"shared_vocabulary.txt", "config.json", "bpe.codes", "model.bin"}},
    {"huggingface", "import/marian-fast", NULL, 2,
     {"model.safetensors.index.json", "config.json", "tokenizer.json", "one.safetensors<model.safetensors"}},
    {"huggingface", "import/marian-untied", NULL, 4,
     {"config.json", "vocab.json", "target_vocab.json<vocab.json", "source.spm", "target.spm", "model.safetensors"}},
    {"huggingface", "import/mbart", NULL, 2,
     {"tokenizer_config.json", "config.json", "sentencepiece.bpe.model", "pytorch_model.bin"}},
    {"ctranslate2", "ctranslate2/mbart50", NULL, 3,
     {"sentencepiece.bpe.model<../../import/mbart-50/sentencepiece.bpe.model", "shared_vocabulary.json", "config.json",
      "model.bin"}},
    {"fairseq", "import/fairseq-new", NULL, 3,
     {"dict.en.txt", "dict.de.txt", "sentencepiece.bpe.model", "checkpoint_best.pt"}},
    {"nematus", "nematus", "tf.npz", 3,
     {"codes.bpe<../marian/bpe.codes", "preprocess.sh", "tf.vocab.json", "tf.npz.json", "tf.npz"}},
    {"nematus", "nematus", "dl4mt.npz", 1, {"dl4mt.json<dl4mt.npz.json", "dl4mt.vocab.json", "dl4mt.npz"}},
    {"marian", "marian", NULL, 2, {"vocab.spm<joint.spm", "decoder.yml", "ssru.npz"}},
    {"marian", "marian", NULL, 3,
     {"preprocess.sh", "source.bpe<bpe.codes", "opus.vocab.yml<bpe.words.yml", "target.bpe<bpe.codes", "bpe.npz"}},
};

enum { FOLDERS = sizeof folders / sizeof *folders, PATH = 256 };

// Each of them is made once, of links; one file of it, at most, is another one's.
static struct made {
    bool there;
    const char *changed;
} made[FOLDERS];
static char scratch[64];

// Of a file, or, without a name, of the folder itself.
static void path_of(char path[PATH], const struct folder *f, const char *name)
{
    const char *file = name ? name : "";
    snprintf(path, PATH, "%s/%d%s%.*s", scratch, (int)(f - folders), name ? "/" : "", (int)strcspn(file, "<"), file);
}

static void link_file(const struct folder *f, const char *name)
{
    char from[2 * PATH], to[PATH], here[PATH];
    const char *other = strchr(name, '<');
    if (!getcwd(here, sizeof here)) abort();
    snprintf(from, sizeof from, "%s/tests/data/%s/%s", here, f->path, other ? other + 1 : name);
    path_of(to, f, name);
    unlink(to);
    if (access(from, R_OK) == 0 && symlink(from, to) != 0) abort();
}

static void make_folder(const struct folder *f)
{
    char path[PATH];
    path_of(path, f, NULL);
    if (mkdir(path, 0700) != 0) abort();
    for (int i = 0; i < FILES && f->files[i]; i++) link_file(f, f->files[i]);
}

static void put_file(const struct folder *f, const char *name, const uint8_t *data, size_t size)
{
    struct made *const m = &made[f - folders];
    char path[PATH];
    path_of(path, f, name);
    if (m->changed && m->changed != name) link_file(f, m->changed);
    if (m->changed != name) unlink(path); // a link
    m->changed = name;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0) abort();
}

static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    if (size < 3 || fuzz_below(r, 16) == 0) return LLVMFuzzerMutate(data, size, max);
    if (strchr("{[", data[2]) && data[2]) return 2 + fuzz_json(data + 2, size - 2, max - 2, r);
    return 2 + fuzz_fields(data + 2, size - 2, max - 2, "\n", r);
}
FUZZ_MUTATOR(mutate)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_error err = {""};
    char output[80], model[PATH];
    if (!scratch[0]) {
        snprintf(scratch, sizeof scratch, "%s/dragoman-fuzz-XXXXXX", fuzz_scratch());
        if (!mkdtemp(scratch)) abort();
    }
    if (size < 2) return 0;
    const struct folder *f = &folders[data[0] % FOLDERS];
    if (!made[f - folders].there) make_folder(f);
    made[f - folders].there = true;
    put_file(f, f->files[data[1] % f->tried], data + 2, size - 2);
    snprintf(output, sizeof output, "%s/model.gguf", scratch);
    path_of(model, f, f->model);
    const int options = data[1] / f->tried;
    dgm_import_options o;
    dgm_import_default(&o);
    if (options & 1) o.target_language = "de";
    if (options & 2) o.source_language = "en";
    if (options & 4) o.type = "i8";
    if (options & 8) o.source_prefix = ">>deu<<";
    if (options & 16) o.source_spm = o.target_spm = "tests/data/import/marian-odd/source.spm";
    if (options & 32) o.bpe = "tests/data/marian/bpe.codes";
    if (dgm_import_run(f->format, model, output, options ? &o : NULL, NULL, &err) == DGM_OK) {
        dgm_gguf *g = NULL;
        if (dgm_gguf_open(&g, output, &err) != DGM_OK) abort();
        dgm_gguf_close(&g);
        unlink(output);
    } else if (!err.text[0] || strchr(err.text, '\n')) {
        abort();
    }
    return 0;
}

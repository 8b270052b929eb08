// SPDX-License-Identifier: MIT
// Fuzz target: importers of PyTorch's checkpoints. The first byte chooses a small model of tests/data, the second how
// it is imported; the rest is the pickle of its checkpoint, data.pkl, which is packed as torch does with one storage of
// zeros. What is imported opens as a model.
//
// A pickle with all tensors of a model has 10 KB. The instruction EXT4, which no checkpoint has, stands for the model's
// own dictionary of tensors: its four bytes say which part of it, an entry that is left out, one that is changed, and
// how. Other instructions stay as they are, so that a pickle may also say it all by itself.
// Parsers: src/import/opennmt_py.c src/import/opennmt_py_settings.c src/import/fairseq.c
// Parsers: src/import/fairseq_settings.c src/import/torch_folder.c src/import/checkpoint.c src/import/bart.c
// Parsers: src/import/t5.c src/import/m2m.c src/import/pickle_values.c
#define _GNU_SOURCE
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "import/torch_file.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 6, PATH = 256, ENTRIES = 256, PARTS = 4 };

// A vocabulary of T5 that is no SentencePiece model.
static const char t5_tokenizer[] =
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":2,\"vocab\":[[\"<pad>\",0],[\"</s>\",0],[\"<unk>\",0],"
    "[\"\u2581\",-2],[\"a\",-3],[\"b\",-4]]},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
    "\"add_prefix_space\":true},\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
    "\"add_prefix_space\":true}}";

// Folders as they are made: links to files of tests/data, and the checkpoint that is the input.
static const struct kind {
    const char *format;
    const char *tensors;    // their names and shapes: a checkpoint, or "FILE.json:MODEL"
    const char *checkpoint; // the name that the input gets
    const char *files[FILES][2]; // from, to; from NULL: to is an empty file; from a brace on: what it holds
} kinds[] = {
    {"opennmt-py", "import/opennmt-3/model_step_10.pt", "model_step_10.pt", {{0}}},
    {"opennmt-py", "import/opennmt-1/model_step_10.pt", "model.pt", {{NULL, "a.pt"}, {NULL, "b.pt"}}},
    {"fairseq", "import/fairseq-new/checkpoint_best.pt", "checkpoint_last.pt",
     {{"import/fairseq-new/dict.en.txt", "dict.en.txt"},
      {"import/fairseq-new/dict.de.txt", "dict.de.txt"},
      {"import/fairseq-new/sentencepiece.bpe.model", "sentencepiece.bpe.model"}}},
    {"fairseq", "import/fairseq-old/model.pt", "old.pt",
     {{"import/fairseq-old/dict.en.txt", "dict.en.txt"},
      {"import/fairseq-old/dict.de.txt", "dict.de.txt"},
      {NULL, "other.pt"}}},
    {"huggingface", "import/marian-positions/pytorch_model.bin", "pytorch_model.bin",
     {{"import/marian-positions/config.json", "config.json"},
      {"import/marian-positions/vocab.json", "vocab.json"},
      {"import/marian-positions/source.spm", "source.spm"},
      {"import/marian-positions/target.spm", "target.spm"}}},
    {"huggingface", "import/mbart/pytorch_model.bin", "pytorch_model.bin",
     {{"import/mbart/config.json", "config.json"},
      {"import/mbart/sentencepiece.bpe.model", "sentencepiece.bpe.model"},
      {"import/mbart/tokenizer_config.json", "tokenizer_config.json"},
      {"import/mbart/special_tokens_map.json", "special_tokens_map.json"}}},
    {"huggingface", "format/t5.json:t5", "pytorch_model.bin", {{"format/t5.spm", "spiece.model"}}},
    {"huggingface", "format/t5.json:umt5", "pytorch_model.bin", {{"format/t5.spm", "spiece.model"}}},
    {"huggingface", "format/t5.json:madlad", "pytorch_model.bin", {{"format/madlad.spm", "spiece.model"}}},
    {"huggingface", "format/t5.json:mt5", "pytorch_model.bin", {{t5_tokenizer, "tokenizer.json"}}},
    {"huggingface", "format/t5.json:t5-1.1", "pytorch_model.bin",
     {{"{\"model\":{\"vocab\":[[\"<pad>\",0],1]}}", "tokenizer.json"}}},
    {"fairseq", "import/fairseq-old/model.pt", "checkpoint", {{0}}},
    {"huggingface", "format/m2m.json:m2m100", "pytorch_model.bin", {{0}}},
    {"huggingface", "format/m2m.json:nllb-legacy", "pytorch_model.bin", {{0}}},
    {"huggingface", "format/m2m.json:nllb-moe", "pytorch_model.bin", {{0}}},
    // Two shards: the input, and the second half of the tensors.
    {"huggingface", "import/marian-positions/pytorch_model.bin", "one.bin",
     {{"import/marian-positions/config.json", "config.json"},
      {"import/marian-positions/vocab.json", "vocab.json"},
      {"import/marian-positions/source.spm", "source.spm"},
      {"import/marian-positions/target.spm", "target.spm"}}},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct entry {
    char name[96];
    int dims, size[2];
} entry;

static struct model {
    bool there;
    entry list[2][ENTRIES]; // of "model", and of "generator"
    int count[2];
} models[KINDS];

static char scratch[64];

static void require(bool what)
{
    if (!what) abort();
}

// ---- pickles ---------------------------------------------------------------------------------------

typedef struct part {
    uint8_t which, left_out, changed, how;
} part;

enum { SHARD = 2 }; // a part: the second half

static void put_number(dgm_writer *w, int n)
{
    dgm_write_u8(w, 'J');
    dgm_write_u32(w, (uint32_t)n);
}

static void put_text(dgm_writer *w, const char *text)
{
    dgm_write_u8(w, 'X');
    dgm_write_u32(w, (uint32_t)strlen(text));
    dgm_write_text(w, text);
}

// A tensor all of whose rows are the first of the storage.
static void put_tensor(dgm_writer *w, const char *storage, int dims, const int *size)
{
    dgm_write_text(w, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_text(w, "storage");
    dgm_write_format(w, "ctorch\n%s\n", storage);
    put_text(w, "0");
    put_text(w, "cpu");
    put_number(w, 512);
    dgm_write_text(w, "tQ");
    put_number(w, 0);
    dgm_write_u8(w, '(');
    for (int i = 0; i < dims; i++) put_number(w, size[i]);
    dgm_write_text(w, "t(");
    for (int i = 0; i < dims; i++) put_number(w, i == dims - 1);
    dgm_write_text(w, "ttR");
}

static void put_entry(dgm_writer *w, const entry *e, int how)
{
    static const char *const storages[] = {"FloatStorage", "HalfStorage", "DoubleStorage", "LongStorage"};
    int dims = e->dims, size[4] = {e->size[0], e->size[1], 1, 1};
    const char *const storage = storages[how >> 3 & 3];
    switch (how & 7) {
    case 1: size[0]++; break;
    case 2: size[1] = e->size[0], size[0] = e->size[1]; break;
    case 3: dims++; break;
    case 4: dims = dims == 2 ? 1 : 2; break;
    case 5: size[0] = 0x7fffffff; break;
    case 6: size[dims - 1] = 0; break;
    default: break;
    }
    put_text(w, e->name);
    put_tensor(w, storage, dims, size);
}

static void put_part(dgm_writer *w, const struct model *m, part p)
{
    const int which = p.which % PARTS, list = which == 1;
    const int half = which < SHARD ? 0 : m->count[0] / 2;
    const int begin = which == SHARD ? half : 0, end = which == SHARD + 1 ? half : m->count[list];
    dgm_write_text(w, "}(");
    for (int i = begin; i < end; i++) {
        const bool all = p.changed == 254;
        if (i - begin != p.left_out) put_entry(w, &m->list[list][i], all || i - begin == p.changed ? p.how : 0);
    }
    dgm_write_u8(w, 'u');
}

// The pickle with dictionaries in place of EXT4.
static void expand(dgm_writer *w, const struct model *m, const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 18 };
    for (size_t i = 0; i < size && w->size < MOST;) {
        size_t n = fuzz_pickle_length(data + i, size - i);
        if (n > size - i) n = size - i;
        if (data[i] == 0x84 && n == 5)
            put_part(w, m, (part){data[i + 1], data[i + 2], data[i + 3], data[i + 4]});
        else
            dgm_write_bytes(w, data + i, n);
        i += n;
    }
}

// ---- files -----------------------------------------------------------------------------------------

static void path_of(char path[PATH], const struct kind *k, const char *name)
{
    snprintf(path, PATH, "%s/%d%s%s", scratch, (int)(k - kinds), name ? "/" : "", name ? name : "");
}

static void write_file(const struct kind *k, const char *name, const void *data, size_t size)
{
    char path[PATH];
    path_of(path, k, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size) && close(fd) == 0);
}

// As torch packs it: nothing is compressed.
static void write_checkpoint(const struct kind *k, const char *name, const dgm_writer *pickle)
{
    static const uint8_t zeros[4096];
    static uint8_t *file;
    static size_t room;
    const fuzz_member m[] = {
        {(const uint8_t *)"m/data.pkl", pickle->data, 10, pickle->size, (uint32_t)pickle->size, 0, 0},
        {(const uint8_t *)"m/data/0", zeros, 8, sizeof zeros, sizeof zeros, 0, 0}};
    const size_t need = pickle->size + sizeof zeros + 512;
    if (need > room) file = realloc(file, room = 2 * need);
    require(file != NULL);
    write_file(k, name, file, fuzz_zip_make(file, room, m, 2));
}

static void link_file(const struct kind *k, const char *from, const char *name)
{
    char path[PATH], source[2 * PATH], here[PATH];
    path_of(path, k, name);
    require(getcwd(here, sizeof here) != NULL);
    snprintf(source, sizeof source, "%s/tests/data/%s", here, from);
    require(access(source, R_OK) == 0 && symlink(source, path) == 0);
}

// ---- models ----------------------------------------------------------------------------------------

static void add_entry(struct model *m, int list, const char *name, int dims, const int *size)
{
    entry *e = &m->list[list][m->count[list]++];
    require(m->count[list] < ENTRIES && strlen(name) < sizeof e->name && dims >= 1 && dims <= 2);
    snprintf(e->name, sizeof e->name, "%s", name);
    e->dims = dims;
    e->size[0] = size[0];
    e->size[1] = dims == 2 ? size[1] : 1;
}

static void read_tensors(struct model *m, int list, dgm_torch *t, const dgm_py *dict)
{
    dgm_store *s = NULL;
    if (!dict) return;
    require(dgm_store_open(&s, (dgm_store_container){0}, NULL) == DGM_OK);
    require(dgm_torch_tensors(t, dict, "", s, NULL) == DGM_OK);
    for (size_t i = 0; i < dgm_store_count(s); i++) {
        const dgm_stored *e = dgm_store_get(s, i);
        const int size[2] = {e->n_dims == 1 ? e->cols : e->rows, e->cols};
        add_entry(m, list, e->name, e->n_dims == 1 ? 1 : 2, size);
    }
    dgm_store_close(&s);
}

static void read_checkpoint(struct model *m, const char *path)
{
    dgm_torch *t;
    char full[PATH];
    snprintf(full, sizeof full, "tests/data/%s", path);
    require(dgm_torch_open(&t, full, NULL) == DGM_OK);
    const dgm_py *root = dgm_torch_root(t), *model = dgm_py_get(root, "model");
    read_tensors(m, 0, t, model ? model : root);
    read_tensors(m, 1, t, dgm_py_get(root, "generator"));
    dgm_torch_close(&t);
}

static void write_json(const struct kind *k, const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    require(text != NULL);
    write_file(k, name, text, strlen(text));
    free(text);
}

// The pieces of a list as a SentencePiece model: {1: spelling, 2: score, 3: kind} of each.
static void write_pieces(const struct kind *k, const json_t *pieces)
{
    dgm_writer w = {0};
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const char *const text = json_string_value(json_array_get(pieces, i));
        const size_t n = strlen(text);
        const uint8_t head[] = {1 << 3 | 2, (uint8_t)(n + 9), 1 << 3 | 2, (uint8_t)n};
        dgm_write_bytes(&w, head, sizeof head);
        dgm_write_bytes(&w, text, n);
        dgm_write_u8(&w, 2 << 3 | 5);
        dgm_write_f32(&w, -(float)i);
        dgm_write_u8(&w, 3 << 3);
        dgm_write_u8(&w, i == 0 ? 2 : i < 3 ? 3 : 1);
    }
    write_file(k, "sentencepiece.bpe.model", w.data, w.size);
    dgm_writer_free(&w);
}

// What M2M100 and NLLB have beside their settings.
static void write_vocabulary(const struct kind *k, const json_t *root, const json_t *model, bool nllb)
{
    json_t *names = json_array(), *pair;
    size_t i;
    json_array_foreach(json_object_get(model, "languages"), i, pair) json_array_append(names, json_array_get(pair, 0));
    json_t *tokenizer =
        json_pack("{s:s,s:b}", "tokenizer_class", nllb ? "NllbTokenizer" : "M2M100Tokenizer", "legacy_behaviour",
                  json_is_true(json_object_get(model, "legacy")));
    if (nllb) json_object_set(tokenizer, "additional_special_tokens", names);
    else write_json(k, "vocab.json", json_object_get(root, "vocab"));
    write_json(k, "tokenizer_config.json", tokenizer);
    write_pieces(k, json_object_get(root, "pieces"));
    json_decref(tokenizer);
    json_decref(names);
}

// A model of a file that lists shapes and settings.
static void read_listed(const struct kind *k, struct model *m, const char *file, const char *name)
{
    char path[PATH];
    snprintf(path, sizeof path, "tests/data/%.*s", (int)(name - file), file);
    json_t *root = json_load_file(path, 0, NULL), *list = json_object_get(root, "models"), *model, *shape;
    const char *key;
    size_t i;
    json_array_foreach(list, i, model) {
        if (strcmp(json_string_value(json_object_get(model, "name")), name + 1) != 0) continue;
        write_json(k, "config.json", json_object_get(model, "config"));
        const json_t *generation = json_object_get(model, "generation");
        if (generation) write_json(k, "generation_config.json", generation);
        else write_vocabulary(k, root, model, name[1] == 'n');
        json_object_foreach(json_object_get(model, "tensors"), key, shape) {
            const int size[2] = {(int)json_integer_value(json_array_get(shape, 0)),
                                 (int)json_integer_value(json_array_get(shape, 1))};
            add_entry(m, 0, key, (int)json_array_size(shape), size);
        }
    }
    require(m->count[0] > 0);
    json_decref(root);
}

static void make_shards(const struct kind *k, const struct model *m)
{
    dgm_writer pickle = {0};
    json_t *index = json_object(), *map = json_object();
    for (int i = 0; i < m->count[0]; i++)
        json_object_set_new(map, m->list[0][i].name, json_string(i < m->count[0] / 2 ? k->checkpoint : "two.bin"));
    json_object_set_new(index, "weight_map", map);
    write_json(k, "pytorch_model.bin.index.json", index);
    json_decref(index);
    dgm_write_text(&pickle, "\x80\2");
    put_part(&pickle, m, (part){SHARD, 255, 255, 0});
    dgm_write_u8(&pickle, '.');
    write_checkpoint(k, "two.bin", &pickle);
    dgm_writer_free(&pickle);
}

static void make_model(const struct kind *k, struct model *m)
{
    char path[PATH];
    const char *model = strchr(k->tensors, ':');
    if (!scratch[0]) {
        snprintf(scratch, sizeof scratch, "%s/dragoman-fuzz-XXXXXX", fuzz_scratch());
        require(mkdtemp(scratch) != NULL);
    }
    path_of(path, k, NULL);
    require(mkdir(path, 0700) == 0);
    if (model) read_listed(k, m, k->tensors, model);
    else read_checkpoint(m, k->tensors);
    for (int i = 0; i < FILES && k->files[i][1]; i++) {
        const char *const from = k->files[i][0], *const name = k->files[i][1];
        if (from && from[0] != '{') link_file(k, from, name);
        else write_file(k, name, from ? from : "", from ? strlen(from) : 0);
    }
    if (strcmp(k->checkpoint, "one.bin") == 0) make_shards(k, m);
    m->there = true;
}

// ---- inputs ----------------------------------------------------------------------------------------

static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    if (size < 3 || fuzz_below(r, 16) == 0) return LLVMFuzzerMutate(data, size, max);
    return 2 + fuzz_pickle(data + 2, size - 2, max - 2, r);
}
FUZZ_MUTATOR(mutate)

static void check_model(const char *path)
{
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_error err = {""};
    dgm_settings_default(&s);
    s.workspace = 64 << 20;
    s.direction_later = 1;
    // Whether words are UTF-8, and sources longer than nothing, is asked when a model is opened.
    require(dgm_open(&t, path, &s, &err) == DGM_OK || strstr(err.text, "is not valid UTF-8") ||
            strstr(err.text, "maximum source length must be at least"));
    dgm_close(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_writer pickle = {0};
    dgm_error err = {""};
    char path[PATH], output[80];
    if (size < 2) return 0;
    const struct kind *k = &kinds[data[0] % KINDS];
    struct model *m = &models[k - kinds];
    if (!m->there) make_model(k, m);
    expand(&pickle, m, data + 2, size - 2);
    write_checkpoint(k, k->checkpoint, &pickle);
    dgm_writer_free(&pickle);
    dgm_import_options o;
    dgm_import_default(&o);
    const bool folder = data[1] & 1 || strcmp(k->format, "huggingface") == 0;
    path_of(path, k, folder ? NULL : k->checkpoint);
    snprintf(output, sizeof output, "%s/model.gguf", scratch);
    if (data[1] & 2) o.type = "i8";
    if (data[1] & 4) o.source_prefix = data[1] & 16 ? "a" : ">>deu<<";
    if (data[1] & 8) o.target_language = "de";
    if (dgm_import(k->format, path, output, &o, &err) == DGM_OK) {
        check_model(output);
        unlink(output);
    } else {
        require(err.text[0] && !strchr(err.text, '\n'));
    }
    return 0;
}

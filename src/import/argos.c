// SPDX-License-Identifier: MIT
// Imports packages of Argos Translate (LibreTranslate uses the same): a zip, ".argosmodel", or the folder that Argos
// unpacked it into.
//
//     NAME/metadata.json            "from_code", "to_code", "type", "target_prefix"
//     NAME/model/                   a CTranslate2 folder (ctranslate2.c)
//     NAME/sentencepiece.model, or NAME/bpe.model: codes of subword-nmt behind sacremoses
//     NAME/stanza/                  for splitting sentences; not needed here
//
// Members are looked up by name and unpacked into files without a name beside the output, so nothing of a package is
// ever written under a name that it chose. Argos decodes with a beam of 4 and a length penalty of 0.2.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "import/ct2.h"
#include "base/zip.h"

enum { PREFIX = 256, GROWTH_MAX = 100 };
#define SMALL ((uint64_t)16 << 20) // what a package may unpack to however small it is

typedef struct package {
    dgm_import_job *job;
    dgm_zip *zip; // NULL: a folder
    char prefix[PREFIX]; // of members: "translate-en_de-1_0/"
    uint64_t most, unpacked;
    json_t *metadata;
} package;

// ---- archives ------------------------------------------------------------------------------------

static bool bad_name(const char *name)
{
    return name[0] == '/' || strchr(name, '\\') || strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0 ||
           strstr(name, "/../") || (strlen(name) >= 3 && strcmp(name + strlen(name) - 3, "/..") == 0);
}

// Every name once, none that leads out of the package; and the folder that metadata.json lies in.
static dgm_status check_members(package *p, dgm_error *err)
{
    static const char wanted[] = "metadata.json";
    json_t *seen = json_object();
    dgm_status st = seen ? DGM_OK : dgm_no_memory(err);
    bool found = false;
    for (size_t i = 0; i < dgm_zip_count(p->zip) && st == DGM_OK; i++) {
        const char *name = dgm_zip_name(p->zip, i), *slash = strchr(name, '/');
        const char *rest = slash ? slash + 1 : name;
        if (bad_name(name))
            st = dgm_fail(err, DGM_ERR_FORMAT, "member '%.100s' leads out of the package", name);
        else if (json_object_get(seen, name))
            st = dgm_fail(err, DGM_ERR_FORMAT, "member '%.100s' is there twice", name);
        else if (json_object_set_new_nocheck(seen, name, json_true()) != 0)
            st = dgm_no_memory(err);
        if (st != DGM_OK || found || strcmp(rest, wanted) != 0) continue;
        found = (size_t)(rest - name) < PREFIX;
        if (found) snprintf(p->prefix, PREFIX, "%.*s", (int)(rest - name), name);
    }
    json_decref(seen);
    if (st == DGM_OK && !found) st = dgm_fail(err, DGM_ERR_FORMAT, "no metadata.json: not a package of Argos");
    return st;
}

static dgm_status open_member(package *p, const char *name, dgm_mapfile *out, dgm_error *err)
{
    const int at = dgm_zip_find(p->zip, name);
    if (at < 0) return DGM_OK;
    const uint64_t size = dgm_zip_size(p->zip, (size_t)at);
    DGM_FAIL_IF(size > p->most - p->unpacked, err, DGM_ERR_FORMAT,
                "'%s': member '%.100s' unpacks to %llu bytes; a package of that size may hold %llu", p->job->dir, name,
                (unsigned long long)size, (unsigned long long)p->most);
    p->unpacked += size;
    if (size == 0) return DGM_OK;
    uint8_t *data;
    DGM_TRY(dgm_mapfile_scratch(out, p->job->output, (size_t)size, &data, err));
    const dgm_status st = dgm_zip_read(p->zip, (size_t)at, 0, data, (size_t)size, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", p->job->dir);
    if (st != DGM_OK) dgm_mapfile_close(out);
    return st;
}

// ---- both ----------------------------------------------------------------------------------------

static dgm_status open_file(void *self, const char *name, bool beside, dgm_mapfile *out, dgm_error *err)
{
    package *p = self;
    char path[PREFIX + 128];
    struct stat st;
    memset(out, 0, sizeof *out);
    if (p->zip) {
        snprintf(path, sizeof path, "%s%s%s", p->prefix, beside ? "" : "model/", name);
        return open_member(p, path, out, err);
    }
    const size_t room = strlen(p->job->dir) + strlen(name) + 16;
    char *full = dgm_malloc(room);
    if (!full) return dgm_no_memory(err);
    snprintf(full, room, "%s/%s%s", p->job->dir, beside ? "" : "model/", name);
    const dgm_status opened = stat(full, &st) == 0 ? dgm_mapfile_open(out, full, err) : DGM_OK;
    dgm_free(full);
    return opened;
}

static dgm_status open_package(package *p, dgm_error *err)
{
    struct stat st;
    DGM_FAIL_IF(stat(p->job->dir, &st) != 0, err, DGM_ERR_IO, "cannot open '%s'", p->job->dir);
    if (S_ISDIR(st.st_mode)) return DGM_OK;
    p->most = (uint64_t)st.st_size * GROWTH_MAX + SMALL;
    DGM_TRY(dgm_zip_open(&p->zip, p->job->dir, err));
    const dgm_status found = check_members(p, err);
    if (found != DGM_OK) dgm_error_prefix(err, "'%s'", p->job->dir);
    return found;
}

static dgm_status read_metadata(package *p, dgm_ct2_about *about, dgm_error *err)
{
    dgm_mapfile f = {0};
    const char *type = "translate", *prefix = "";
    DGM_TRY(open_file(p, "metadata.json", true, &f, err));
    dgm_status st = f.data ? dgm_json_parse(&p->metadata, f.data, f.size, err)
                           : dgm_fail(err, DGM_ERR_IO, "not there, or empty");
    dgm_mapfile_close(&f);
    if (st == DGM_OK && !json_is_object(p->metadata)) st = dgm_fail(err, DGM_ERR_FORMAT, "not a JSON object");
    if (st == DGM_OK) st = dgm_json_string(p->metadata, "type", &type, err);
    if (st == DGM_OK) st = dgm_json_string(p->metadata, "from_code", &about->source, err);
    if (st == DGM_OK) st = dgm_json_string(p->metadata, "to_code", &about->target, err);
    if (st == DGM_OK) st = dgm_json_string(p->metadata, "target_prefix", &prefix, err);
    if (st == DGM_OK && strcmp(type, "translate") != 0)
        st = dgm_fail(err, DGM_ERR_UNSUPPORTED, "\"type\" '%.40s' is not supported (translate is)", type);
    if (st == DGM_OK && (!about->source || !about->target))
        st = dgm_fail(err, DGM_ERR_FORMAT, "no \"from_code\" or no \"to_code\"");
    if (st != DGM_OK) dgm_error_prefix(err, "'%s': metadata.json", p->job->dir);
    if (prefix[0]) about->target_prefix = prefix;
    return st;
}

dgm_status dgm_import_argos(dgm_import_job *job, dgm_error *err)
{
    package p = {.job = job};
    dgm_ct2_about about = {.beam = 4, .length_penalty = 0.2, .moses = true};
    const dgm_ct2_files files = {.self = &p, .label = job->dir, .open = open_file};
    dgm_json_init();
    dgm_status st = open_package(&p, err);
    if (st == DGM_OK) st = read_metadata(&p, &about, err);
    if (st == DGM_OK) st = dgm_ct2_import(job, &files, &about, err);
    json_decref(p.metadata);
    dgm_zip_close(&p.zip);
    return st;
}

// SPDX-License-Identifier: MIT
// Which files a command reads and writes; see files.h. Files are compared by device and number, so
// links do not hide one; two that are not there yet by their folder and their name in it.
#define _GNU_SOURCE
#include "io/files.h"

#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dragoman/tools.h"
#include "io/lineio.h"

static void add(file_list *f, const char *what, const char *path, bool written)
{
    struct stat s;
    if (!path || strcmp(path, "-") == 0 || f->count == FILE_LIST_MAX) return;
    const bool found = stat(path, &s) == 0;
    if (found ? !S_ISREG(s.st_mode) : !written) return;
    const int i = f->count++;
    f->items[i].what = what;
    f->items[i].path = path;
    f->items[i].written = written;
    f->items[i].there = found;
    f->items[i].device = found ? s.st_dev : 0;
    f->items[i].number = found ? s.st_ino : 0;
}

void files_read(file_list *f, const char *what, const char *path)
{
    add(f, what, path, false);
}

void files_write(file_list *f, const char *what, const char *path)
{
    add(f, what, path, true);
}

void files_read_list(file_list *f, const char *what, const option_list *list)
{
    for (int i = 0; i < list->count; i++) add(f, what, list->items[i], false);
}

void files_read_words(file_list *f, const words *rest, int from)
{
    for (int i = from; i < rest->count; i++) add(f, rest->items[i], rest->items[i], false);
}

void files_read_folder(file_list *f, const char *what, const char *folder, const char *but)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        const size_t room = strlen(folder) + strlen(e->d_name) + 2;
        const char *end = strrchr(e->d_name, '.');
        char *path = need(malloc(room));
        snprintf(path, room, "%s/%s", folder, e->d_name);
        const int before = f->count;
        if (!end || strcmp(end, but) != 0) add(f, what, path, false);
        if (f->count > before) f->items[before].path = NULL; // it goes here, the number stays
        free(path);
    }
    if (d) closedir(d);
}

void files_read_system(file_list *f, const char *what, const char *part, const char *path)
{
    dgm_phrasal_file *file = NULL;
    dgm_phrasal_options o;
    const int already = f->count;
    add(f, what, path, false);
    if (f->count == already) return; // a pipe is read once, by who opens the system
    if (dgm_phrasal_file_open(&file, path, NULL) != DGM_OK) return; // and what is wrong, said there
    dgm_phrasal_file_options(file, &o);
    const char *const parts[] = {o.table, o.reordering, o.lm, o.weights, o.subwords};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const int before = f->count;
        add(f, part, parts[i], false);
        if (f->count > before) f->items[before].path = NULL; // it goes with `file`
    }
    dgm_phrasal_file_close(&file);
}

// Two names of files that are not there yet.
static bool same_place(const char *a, const char *b)
{
    char *x = need(strdup(a)), *y = need(strdup(b)), *u = need(strdup(a)), *v = need(strdup(b));
    struct stat s, t;
    const bool same = strcmp(basename(x), basename(y)) == 0 && stat(dirname(u), &s) == 0 &&
                      stat(dirname(v), &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
    free(x), free(y), free(u), free(v);
    return same;
}

static bool same(const file_list *f, int i, int k)
{
    if (f->items[i].there != f->items[k].there) return false;
    if (!f->items[i].there) return same_place(f->items[i].path, f->items[k].path);
    return f->items[i].device == f->items[k].device && f->items[i].number == f->items[k].number;
}

void files_replace(file_list *f, const char *what, const char *path, const char *old_what,
                   const char *old)
{
    const int before = f->count;
    add(f, what, path, true);
    add(f, old_what, old, false);
    if (f->count == before + 2 && same(f, before, before + 1)) f->count--;
}

int files_check(const command *self, const file_list *f)
{
    for (int i = 0; i < f->count; i++)
        for (int k = 0; k < f->count; k++)
            if (f->items[i].written && (k < i || !f->items[k].written) && same(f, i, k)) {
                const char *what = f->items[k].what;
                const char *quote = what == f->items[k].path ? "'" : "";
                return fail_usage(self, "%s is the same file as %s%s%s", f->items[i].what, quote,
                                  what, quote);
            }
    return -1;
}

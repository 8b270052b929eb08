// SPDX-License-Identifier: MIT
// The files of a command, by what they are called: a command that would write over what it reads,
// or two things into one file, is refused before anything is opened.
#ifndef DGM_APPS_CLI_IO_FILES_H
#define DGM_APPS_CLI_IO_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "options.h"

enum { FILE_LIST_MAX = 2 * WORDS_MAX };

typedef struct file_list {
    struct {
        const char *what, *path; // path NULL: one of a folder, or of a system
        bool written, there;     // there: a regular file with this number
        dev_t device;
        ino_t number;
    } items[FILE_LIST_MAX];
    int count;
} file_list;

// what: how a message calls it, e.g. "--input"; it must live as long as the list, and so must the
// path of what is written. A path NULL is nothing, as are terminals, pipes and devices.
void files_read(file_list *f, const char *what, const char *path);
void files_write(file_list *f, const char *what, const char *path);
// What is written may be what is read: it is read first, and then replaced as a whole.
void files_replace(file_list *f, const char *what, const char *path, const char *old_what,
                   const char *old);
void files_read_list(file_list *f, const char *what, const option_list *list);
void files_read_words(file_list *f, const words *rest, int from); // called by their names
// All files of a folder but those whose names end so.
void files_read_folder(file_list *f, const char *what, const char *folder, const char *but);
// A file that describes a phrase-based system, and those that it names, which are called `part`.
void files_read_system(file_list *f, const char *what, const char *part, const char *path);
// Returns -1, or the exit code after a message.
int files_check(const command *self, const file_list *f);

#endif

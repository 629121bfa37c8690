/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this example share. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "atoll_backend.h"

enum { RECORD_MAX = 1 << 20, TAGS_MAX = 1024 };

/* The sandbox of this connection. The library hands it back to every function as `sandbox`. */
struct folder {
    char id[32], path[PATH_MAX / 4], workdir[PATH_MAX / 2];
    int root;                /* the folder ID/root; -1: none */
    char record[RECORD_MAX]; /* the content of ID/record: texts KEY=VALUE, each with its NUL */
    size_t record_len;
    struct command *commands;   /* that run, or have left processes behind */
    struct atoll_reply *ending; /* the answer to DESTROY, while it waits */
};

/* ---- supervisor.c ---- */

enum { END_ALL = 255, LINK_FD = 3 }; /* an order; where a supervisor has its link */

/* What a supervisor says: once when the command has started or has not, once when it has ended. */
struct report {
    pid_t pid;
    struct atoll_backend_exit how;
};

/* supervise() - be the supervisor: in a new process with descriptors 0, 1, 2 of the command */
_Noreturn void supervise(const struct atoll_backend_exec *x, char **env, const struct folder *f);

/* ---- command.c: the vtable's functions for commands ---- */

void folder_exec(struct atoll_server *server, void *sandbox, const struct atoll_backend_exec *x,
                 struct atoll_stream *stream);
size_t folder_input(struct atoll_server *server, struct atoll_stream *stream, const void *data,
                    size_t len, bool end);
void folder_signal(struct atoll_server *server, struct atoll_stream *stream, int signal);
void folder_stop(struct atoll_server *server, struct atoll_stream *stream);
void folder_room(struct atoll_server *server, struct atoll_stream *stream, int which);

/* commands_end() - end all commands of this connection; blocks until they are dead */
void commands_end(struct atoll_server *server, struct folder *f);

/* ---- files.c: the vtable's functions for files ---- */

void folder_read(struct atoll_server *server, void *sandbox, const char *path, uint64_t offset,
                 uint64_t length, uint64_t max_bytes, struct atoll_reply *reply);
void folder_write(struct atoll_server *server, void *sandbox, const char *path, uint32_t mode,
                  const void *data, size_t len, struct atoll_reply *reply);
void folder_list(struct atoll_server *server, void *sandbox, const char *path,
                 struct atoll_reply *reply);
void folder_stat(struct atoll_server *server, void *sandbox, const char *path, bool follow,
                 struct atoll_reply *reply);

/* ---- tags.c: the vtable's functions for tags, and the file behind them ---- */

struct tags {
    char bytes[RECORD_MAX];
    const char *items[TAGS_MAX + 1]; /* views, NULL-terminated */
};

/* tags_save(), tags_load() - all tags of a sandbox. 0 or a negative errno */
int tags_save(const struct folder *f, const char *const *tags);
int tags_load(const struct folder *f, struct tags *ret);

void folder_read_tags(struct atoll_server *server, void *sandbox, struct atoll_reply *reply);
void folder_write_tags(struct atoll_server *server, void *sandbox, const char *const *tags,
                       struct atoll_reply *reply);

/* localize() - a client's path as one relative to the root. Commands see the host's paths, so that
 * one that begins with the root's own is understood, too. 0 or a negative errno */
int localize(const struct folder *f, const char *path, char ret[PATH_MAX]);

/* make_folders() - like `mkdir -p`, inside; @path relative to the root. 0 or a negative errno */
int make_folders(const struct folder *f, const char *path);

static inline uint64_t clock_us(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

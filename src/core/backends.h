/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends: where sandboxes can be made. One is built in, some are known by what they can and
 * cannot enforce, and anybody can add one: a program atoll-backend-NAME on the PATH that speaks
 * the sandbox protocol on its standard input and output. Such a program wins over a name that is
 * only known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "core/capability.h"

enum backend_state {
    BACKEND_BUILT_IN,
    BACKEND_KNOWN,   /* its capabilities are known; nothing can run on it */
    BACKEND_PROGRAM, /* a third party's program */
    BACKEND_STATE__MAX,
};

/*
 * A row of a static table, or one that backend_find() has filled: then name and program are the
 * caller's struct backend_room, and capability is empty until the program has stated it.
 */
struct backend {
    const char *name;
    enum backend_state state;
    const char *summary; /* a phrase without a full stop */
    const char *program; /* absolute path, of BACKEND_PROGRAM alone */
    struct capability capability;
};

enum { BACKEND_NAME_MAX = 32, BACKEND_PATH_MAX = 1024 };

/* Room for a program that is found. */
struct backend_room {
    char name[BACKEND_NAME_MAX + 1];
    char program[BACKEND_PATH_MAX];
};

/** backend_known() - row @index of the table, counted from 0; NULL past its end */
const struct backend *backend_known(size_t index);

/** backend_state_name() - "built-in", "known" or "program"; static storage */
const char *backend_state_name(enum backend_state state);

/**
 * backend_find() - the backend called @name
 * @path: as the variable PATH; NULL: no programs. Parts that are not absolute are passed over.
 * @room: what @ret then points into
 * @ret:  capability is borrowed from the table, or empty for a program
 *
 * Looks at the file system, runs nothing. Return: 0; -EINVAL or -ENOENT with a usage error that
 * names the nearest backend and how to add one.
 */
int backend_find(const char *name, const char *path, struct backend_room *room, struct backend *ret,
                 struct error *err);

/**
 * backend_require() - whether sandboxes can be made on @b by this program
 *
 * Return: 0; -ENOSYS with a usage error that says what to use instead.
 */
int backend_require(const struct backend *b, struct error *err);

/**
 * backend_admit() - whether the spec's backend can make this sandbox, before anything is made
 * @path: as for backend_find()
 *
 * Return: 0; or a negative errno with a usage error: there is no such backend, nothing can run on
 * it, or it refuses fields, of which each is named. A program is asked only when it is started
 * (client/describe.h).
 */
int backend_admit(const struct spec *s, const char *path, struct error *err);

/**
 * backend_programs() - the names of all backend programs on @path, sorted, each once
 * @ret: owned by the caller
 *
 * Looks at the file system. Return: 0 or -ENOMEM.
 */
int backend_programs(const char *path, struct string_list *ret);

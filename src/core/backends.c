/* SPDX-License-Identifier: Apache-2.0 */
/* The table of backends, and the programs of third parties on the PATH. */
#include "core/backends.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/backend_tables.h"
#include "base/guards.h"

static const char program_prefix[] = "atoll-backend-";

static const struct backend *const table[] = {
    &backend_local,     &backend_modal, &backend_sbx,  &backend_opensandbox,
    &backend_openshell, &backend_boat,  &backend_islo, &backend_kubernetes,
};

static const char *const state_names[] = {"built-in", "known", "program"};
static_assert(ARRAY_SIZE(state_names) == BACKEND_STATE__MAX, "one name a state");

const struct backend *backend_known(size_t index)
{
    return index < ARRAY_SIZE(table) ? table[index] : NULL;
}

const char *backend_state_name(enum backend_state state)
{
    return state_names[state];
}

/* Small letters, digits and inner hyphens: a word of a file name, never a path. */
static bool is_name(const char *s)
{
    size_t n = strlen(s);
    bool good = n > 0 && n <= BACKEND_NAME_MAX && s[0] != '-' && s[n - 1] != '-';

    for (size_t i = 0; good && i < n; i++)
        good = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-';
    return good;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The next absolute folder of @path into @buf; NULL at the end, else where to go on. */
static const char *next_folder(const char *path, char *buf, size_t size)
{
    while (path && *path != '\0') {
        size_t n = strcspn(path, ":");
        const char *folder = path;

        path += n + (path[n] == ':');
        if (folder[0] == '/' && n < size) {
            memcpy(buf, folder, n);
            buf[n] = '\0';
            return path;
        }
    }
    return NULL;
}

static bool find_program(const char *name, const char *path, struct backend_room *room)
{
    char folder[BACKEND_PATH_MAX];

    while ((path = next_folder(path, folder, sizeof folder))) {
        int n =
            snprintf(room->program, sizeof room->program, "%s/%s%s", folder, program_prefix, name);

        if (n > 0 && (size_t)n < sizeof room->program && is_program(room->program)) {
            (void)snprintf(room->name, sizeof room->name, "%s", name);
            return true;
        }
    }
    return false;
}

static int unknown(const char *name, const char *path, struct error *err)
{
    struct string_list programs = {0};
    const char *names[ARRAY_SIZE(table)], *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        names[i] = table[i]->name;
    nearest = text_nearest(name, names, ARRAY_SIZE(names));
    if (!nearest && backend_programs(path, &programs) == 0 && programs.n > 0)
        nearest = text_nearest(name, (const char *const *)programs.items, programs.n);
    error_set(err, ERROR_USAGE, ENOENT, "there is no backend '%s'", name);
    if (nearest)
        error_remedy(err, "Did you mean '%s'? To add a backend, put a program %s%s on the PATH",
                     nearest, program_prefix, is_name(name) ? name : "NAME");
    else
        error_remedy(err, "'atoll backends' lists them; to add one, put a program %s%s on the PATH",
                     program_prefix, is_name(name) ? name : "NAME");
    string_list_done(&programs);
    return -ENOENT;
}

int backend_find(const char *name, const char *path, struct backend_room *room, struct backend *ret,
                 struct error *err)
{
    const struct backend *known = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (strcmp(table[i]->name, name) == 0)
            known = table[i];
    if ((!known || known->state != BACKEND_BUILT_IN) && is_name(name) &&
        find_program(name, path, room)) {
        *ret = (struct backend){.name = room->name,
                                .state = BACKEND_PROGRAM,
                                .summary = "a program of a third party",
                                .program = room->program};
        return 0;
    }
    if (!known)
        return unknown(name, path, err);
    *ret = *known;
    return 0;
}

int backend_require(const struct backend *b, struct error *err)
{
    if (b->state != BACKEND_KNOWN)
        return 0;
    error_set(err, ERROR_USAGE, ENOSYS, "the backend %s is not built into this program", b->name);
    return error_remedy(err, "Use the backend local, or put a program %s%s on the PATH",
                        program_prefix, b->name);
}

int backend_admit(const struct spec *s, const char *path, struct error *err)
{
    struct capability_results results;
    struct problems problems = {0};
    struct backend_room room;
    struct backend b;
    int r = backend_find(s->backend, path, &room, &b, err);

    if (r == 0)
        r = backend_require(&b, err);
    if (r < 0 || b.state == BACKEND_PROGRAM || capability_check(&b.capability, s, &results))
        return r;
    capability_problems(&results, b.name, &problems);
    r = problems_error(&problems, NULL, err);
    problems_done(&problems);
    return r;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the names of the programs in one folder; one that cannot be read has none. */
static int add_folder(const char *folder, struct string_list *names)
{
    _cleanup_(dir_closep) DIR *dir = opendir(folder);
    const size_t prefix = sizeof program_prefix - 1;
    const struct dirent *entry;
    int r = 0;

    while (r == 0 && dir && (entry = readdir(dir))) {
        char path[BACKEND_PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);

        if (strncmp(entry->d_name, program_prefix, prefix) == 0 &&
            is_name(entry->d_name + prefix) && n > 0 && (size_t)n < sizeof path && is_program(path))
            r = string_list_add(names, entry->d_name + prefix);
    }
    return r;
}

int backend_programs(const char *path, struct string_list *ret)
{
    struct string_list names = {0};
    char folder[BACKEND_PATH_MAX];
    size_t kept = 0;
    int r = 0;

    while (r == 0 && (path = next_folder(path, folder, sizeof folder)))
        r = add_folder(folder, &names);
    if (r < 0) {
        string_list_done(&names);
        return r;
    }
    if (names.n > 0)
        qsort(names.items, names.n, sizeof *names.items, by_name);
    for (size_t i = 0; i < names.n; i++) {
        if (kept > 0 && strcmp(names.items[kept - 1], names.items[i]) == 0)
            free(names.items[i]);
        else
            names.items[kept++] = names.items[i];
    }
    if (names.items)
        names.items[kept] = NULL;
    names.n = kept;
    *ret = names;
    return 0;
}

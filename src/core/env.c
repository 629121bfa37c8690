/* SPDX-License-Identifier: Apache-2.0 */
/* The environment: names and values as bytes, and what a command gets of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "core/spec.h"
#include "wire/control.h"
#include "base/guards.h"

int string_list_add(struct string_list *l, const char *item)
{
    char **more = realloc(l->items, (l->n + 2) * sizeof *more);

    if (!more)
        return -ENOMEM;
    l->items = more;
    l->items[l->n] = strdup(item);
    if (!l->items[l->n])
        return -ENOMEM;
    l->items[++l->n] = NULL;
    return 0;
}

void string_list_done(struct string_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct string_list){0};
}

/* The entry of @l with the name of @entry, or NULL. */
static char **env_find(const struct string_list *l, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->items[i], entry, name) == 0)
            return &l->items[i];
    return NULL;
}

int env_set(struct string_list *l, const char *entry)
{
    char **old = env_find(l, entry);
    char *copy = old ? strdup(entry) : NULL;

    if (!old)
        return string_list_add(l, entry);
    if (!copy)
        return -ENOMEM;
    free(*old);
    *old = copy;
    return 0;
}

const char *env_get(char *const env[], const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
            return env[i] + n + 1;
    return NULL;
}

bool env_is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_';

        if (!letter && !(i > 0 && s[i] >= '0' && s[i] <= '9'))
            return false;
    }
    return n > 0;
}

int spec_add_env(struct spec *s, const char *text, char *const callers[], struct error *err)
{
    _cleanup_free_ char *entry = NULL;
    size_t name = strcspn(text, "=");

    if (!env_is_name(text, name)) {
        /* Only the name is shown: the rest may be a secret. */
        error_set(err, ERROR_USAGE, EINVAL, "env: '%.*s' is not a variable name",
                  (int)(name < 64 ? name : 64), text);
        return error_remedy(err, "Use letters, digits and underscores, not starting with a digit");
    }
    if (text[name] == '=') {
        entry = strdup(text);
    } else {
        const char *value = env_get(callers, text);

        if (!value) {
            error_set(err, ERROR_USAGE, ENOENT,
                      "env: %s is not set here, so it has no value to pass", text);
            return error_remedy(err, "Set it, or give the value as %s=VALUE", text);
        }
        entry = malloc(name + strlen(value) + 2);
        if (entry) {
            memcpy(entry, text, name);
            entry[name] = '=';
            memcpy(entry + name + 1, value, strlen(value) + 1);
        }
    }
    if (!entry)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (strlen(entry) > EXEC_STRING_BYTES_MAX) { /* execve(2), MAX_ARG_STRLEN */
        error_set(err, ERROR_USAGE, E2BIG,
                  "env: %.*s has %zu bytes, and the kernel passes at most %d in one variable",
                  (int)name, text, strlen(entry), EXEC_STRING_BYTES_MAX);
        return error_remedy(err, "Pass a file instead, or split the value");
    }
    if (s->env.n >= LIMIT_ENV_NAMES && !env_find(&s->env, entry))
        return error_set(err, ERROR_USAGE, E2BIG, "env: more than %d variables", LIMIT_ENV_NAMES);
    if (env_set(&s->env, entry) < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    return 0;
}

int env_build(const struct spec *s, const char *const calls[], size_t n_calls, bool tty,
              struct string_list *ret)
{
    const char *const built_in[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        s->uid == 0 ? "HOME=/root" : "HOME=/home/user",
        s->uid == 0 ? "USER=root" : "USER=user",
        s->uid == 0 ? "LOGNAME=root" : "LOGNAME=user",
        "SHELL=/bin/sh",
        "LANG=C.UTF-8",
    };
    struct string_list l = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(built_in); i++)
        r = env_set(&l, built_in[i]);
    if (r == 0 && tty)
        r = env_set(&l, "TERM=xterm-256color");
    for (size_t i = 0; r == 0 && i < s->env.n; i++)
        r = env_set(&l, s->env.items[i]);
    for (size_t i = 0; r == 0 && i < n_calls; i++)
        r = env_set(&l, calls[i]);
    if (r < 0) {
        string_list_done(&l);
        return r;
    }
    *ret = l;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: folders are listed inside, one level after the other. */
#include "export/pattern.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/limits.h"
#include "base/guards.h"

static const char wildcards[] = "*?[";

bool pattern_is(const char *path)
{
    return strpbrk(path, wildcards) != NULL;
}

int pattern_check(const char *path, struct error *err)
{
    if (!strstr(path, "**"))
        return 0;
    (void)error_set(err, ERROR_USAGE, EINVAL, "'%.120s' has a '**', which patterns do not know",
                    path);
    return error_remedy(err,
                        "Export the folder itself, or write one '*' for each level of folders");
}

static void free_matches(struct pattern_match *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(m[i].path);
    free(m);
}

static void fail(struct pattern *p, const struct error *err)
{
    file_op_cancel(&p->op);
    p->failed(p, err);
}

static void fail_text(struct pattern *p, enum error_class cls, int code, const char *why)
{
    struct error err = ERROR_INIT;
    char shown[256];

    (void)snprintf(shown, sizeof shown, "%s", p->shown);
    text_make_printable(shown);
    (void)error_set(&err, cls, code, "%s '%s'", why, shown);
    fail(p, &err);
}

static int add(struct pattern *p, const char *folder, const char *name, bool is_folder)
{
    size_t len = strlen(folder);
    const char *slash = len == 0 || folder[len - 1] == '/' ? "" : "/";
    char *path;

    if (p->n_next == LIMIT_EXPORT_FILES)
        return -EFBIG;
    /* Grows by doubling, at powers of two. */
    if ((p->n_next & (p->n_next - 1)) == 0) {
        struct pattern_match *more =
            realloc(p->next, (p->n_next ? p->n_next * 2 : 1) * sizeof *more);

        if (!more)
            return -ENOMEM;
        p->next = more;
    }
    if (asprintf(&path, "%s%s%s", folder, slash, name) < 0)
        return -ENOMEM;
    p->next[p->n_next++] =
        (struct pattern_match){.path = path, .rest = path + p->rest, .folder = is_folder};
    return 0;
}

static bool is_last(const struct pattern *p)
{
    return p->part + strlen(p->part) == p->end;
}

static int entries_came(struct file_op *op, struct reader message)
{
    struct pattern *p = op->owner;
    struct file_info x;
    int more, r;

    while ((more = file_entry_next(&message, &x)) > 0) {
        if ((x.kind != FILE_FOLDER && (x.kind != FILE_REGULAR || !is_last(p))) ||
            fnmatch(p->part, x.name, FNM_PERIOD | FNM_NOESCAPE) != 0)
            continue;
        r = add(p, p->found[p->at].path, x.name, x.kind == FILE_FOLDER);
        if (r < 0)
            return r;
    }
    return more;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct pattern_match *)a)->path, ((const struct pattern_match *)b)->path);
}

/* A level has been listed: what matched there is looked into next, or is the result. */
static void descend(struct pattern *p)
{
    bool over = is_last(p);

    free_matches(p->found, p->n_found);
    p->found = p->next;
    p->n_found = p->n_next;
    p->next = NULL;
    p->n_next = p->at = 0;
    if (!over)
        p->part += strlen(p->part) + 1;
}

static int list_next(struct pattern *p, struct error *err);

static void go_on(struct pattern *p)
{
    struct error err = ERROR_INIT;

    if (++p->at < p->n_found) {
        if (list_next(p, &err) < 0)
            fail(p, &err);
        return;
    }
    bool over = is_last(p);
    descend(p);
    if (p->n_found == 0) {
        fail_text(p, ERROR_RECOVERABLE, ENOENT, "no file or folder matches");
    } else if (over) {
        qsort(p->found, p->n_found, sizeof *p->found, by_path);
        p->done(p);
    } else if (list_next(p, &err) < 0) {
        fail(p, &err);
    }
}

static void listed(struct file_op *op, struct reader message)
{
    (void)message;
    go_on(op->owner);
}

static void list_failed(struct file_op *op, const struct error *err)
{
    struct pattern *p = op->owner;

    /* What matched may be gone by now; that the first folder is there was said by the pattern. */
    if (p->found[p->at].rest[0] != '\0' && (err->code == ENOENT || err->code == ENOTDIR))
        go_on(p);
    else
        fail(p, err);
}

static int list_next(struct pattern *p, struct error *err)
{
    static const struct file_op_events events = {
        .entries = entries_came, .done = listed, .failed = list_failed};
    const char *path = p->found[p->at].path ? p->found[p->at].path : "";
    const struct file_request x = {
        .path = path[0] != '\0' ? path : ".", .length = UINT64_MAX, .max_bytes = UINT64_MAX};

    p->op = (struct file_op){.events = &events, .owner = p, .pipe_fd = -EBADF};
    return file_op_start(p->files, &p->op, MSG_LIST, &x, -EBADF, err);
}

/* Takes the text apart: the folder in front of the first wildcard, and the parts behind it. */
static int take_apart(struct pattern *p, const char *path)
{
    const char *first = strpbrk(path, wildcards);
    size_t prefix = (size_t)(first - path);
    char *to;

    while (prefix > 0 && path[prefix - 1] != '/')
        prefix--;
    p->shown = strdup(path);
    p->text = to = calloc(1, strlen(path) + 1);
    p->next = calloc(1, sizeof *p->next);
    if (!p->shown || !p->text || !p->next)
        return -ENOMEM;
    p->rest = prefix;
    for (const char *from = path + prefix; *from;) { /* empty parts are left out */
        size_t n = strcspn(from, "/");

        if (n > 0 && to > p->text)
            to++;
        memcpy(to, from, n);
        to += n;
        from += n + (from[n] == '/');
    }
    p->part = p->text;
    p->end = to;
    p->found = p->next;
    p->next = NULL;
    p->found[0].path = strndup(path, prefix);
    if (!p->found[0].path)
        return -ENOMEM;
    p->found[0].rest = p->found[0].path + prefix;
    p->n_found = 1;
    return 0;
}

int pattern_start(struct pattern *p, const char *path, struct error *err)
{
    p->op.pipe_fd = -EBADF;
    if (take_apart(p, path) < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    return list_next(p, err);
}

void pattern_done(struct pattern *p)
{
    if (p->text)
        file_op_cancel(&p->op);
    free_matches(p->found, p->n_found);
    free_matches(p->next, p->n_next);
    free(p->text);
    free(p->shown);
    *p = (struct pattern){0};
}

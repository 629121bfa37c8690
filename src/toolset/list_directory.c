/* SPDX-License-Identifier: Apache-2.0 */
/* The tool list_directory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "toolset/truncate.h"
#include "base/guards.h"

enum { ARGUMENT_PATH };

static const char *path_of(const struct tool_call *c)
{
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];

    return path->given && path->len > 0 ? path->text : ".";
}

/* Of UTF-8 the order of bytes is that of code points. */
static int by_name(const void *a, const void *b)
{
    const struct atoll_file *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* The entries as lines, NULL-terminated; what there is of them is the caller's in any case. */
static int make_lines(const struct tool_call *c, const struct atoll_file **files, size_t n,
                      char **lines)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = files[i]->name;
        _cleanup_free_ char *masked = toolset_masked(c->t, name, strlen(name), NULL);
        _cleanup_free_ char *shown = NULL;

        if (!masked || shown_name(masked, &shown) < 0)
            return -ENOMEM;
        if (asprintf(&lines[i], "%s%s", shown,
                     files[i]->kind == ATOLL_FOLDER ? TEXT_DIRECTORY : "") < 0) {
            lines[i] = NULL;
            return -ENOMEM;
        }
    }
    return 0;
}

/* The first lines, and what tells of the rest. NULL without memory. */
static char *fit(const struct tool_call *c, char **lines, size_t n, size_t *ret_len,
                 size_t *ret_shown)
{
    const struct truncate_caps caps = call_caps(c);
    _cleanup_free_ char *kept = NULL;
    char *text = NULL;
    int r;

    if (truncate_list((const char *const *)lines, &caps, &kept, ret_len, ret_shown) < 0)
        return NULL;
    if (*ret_shown == n)
        return TAKE_PTR(kept);
    r = asprintf(&text, "%s%s" TEXT_MORE_ENTRIES, kept, *ret_shown > 0 ? "\n" : "", n - *ret_shown,
                 TEXT_ENTRIES(n - *ret_shown), c->t->tools[TOOL_RUN_COMMAND].name, *ret_shown + 1);
    if (r < 0)
        return NULL;
    *ret_len = (size_t)r;
    return text;
}

/*
 * A name as it is, so that the other tools take it, but where it is not UTF-8: then as it is
 * shown, which is how a command can name it.
 */
static json_t *name_fact(const struct tool_call *c, const char *name)
{
    _cleanup_free_ char *masked = toolset_masked(c->t, name, strlen(name), NULL), *shown = NULL;
    json_t *fact = masked ? json_string(masked) : NULL;

    if (!fact && masked && shown_name(masked, &shown) == 0)
        fact = json_string(shown);
    return fact;
}

static void add_entries(struct tool_call *c, const struct atoll_file **files, size_t n)
{
    json_t *entries = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *entry = json_pack("{s:o, s:b}", "name", name_fact(c, files[i]->name), "directory",
                                  files[i]->kind == ATOLL_FOLDER);

        if (json_array_append_new(entries, entry) < 0) {
            json_decref(entries);
            entries = NULL;
            break;
        }
    }
    call_fact(c, "entries", entries);
}

static char *make_text(struct tool_call *c, size_t *ret_len)
{
    size_t n = atoll_op_count(c->inner), shown = 0;
    const struct atoll_file **files = calloc(n + 1, sizeof(void *));
    char **lines = calloc(n + 1, sizeof *lines), *text = NULL;

    for (size_t i = 0; files && i < n; i++)
        files[i] = atoll_op_file(c->inner, i);
    if (files)
        qsort(files, n, sizeof(void *), by_name);
    if (files && lines && make_lines(c, files, n, lines) == 0)
        text = fit(c, lines, n, ret_len, &shown);
    if (text) {
        add_entries(c, files, shown);
        call_fact(c, "omitted", json_integer((json_int_t)(n - shown)));
    }
    for (size_t i = 0; lines && i < n; i++)
        free(lines[i]);
    free(lines);
    free(files);
    return text;
}

static void done(struct tool_call *c)
{
    size_t len = 0;
    char *text;

    if (atoll_op_error(c->inner)) {
        call_inner_failed(c);
        return;
    }
    text = make_text(c, &len);
    if (text && atoll_op_count(c->inner) == 0) {
        free(text);
        text = strdup(TEXT_EMPTY);
        len = strlen(TEXT_EMPTY);
    }
    call_answer(c, text, len, false);
}

static bool examine(struct tool_call *c)
{
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];

    return !path->given || path->len == 0 || call_path_fits(c);
}

static void begin(struct tool_call *c)
{
    call_await(c, atoll_list_folder(c->t->sb, path_of(c)), done);
}

const struct tool_action list_directory_action = {.examine = examine, .begin = begin};

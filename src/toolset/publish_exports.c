/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool publish_exports: what the run has promised, published before its end, all or none. Why
 * it could not be is for the model to mend or to tell, in the words of the export itself; the close
 * of the run publishes anew.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/buffer.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum { LINE_BYTES = 128 }; /* without names */

/* --- how it failed --- */

/*
 * The export shows the end of what is long, "...of/it": that may begin with the end of a secret,
 * which masking the sentence as a whole does not find.
 */
static char *mask_cut(const struct tool_call *c, const char *text)
{
    static const char dots[] = "...";
    struct buffer b = {0};
    char *ret = NULL;

    for (bool cut = false; *text; cut = true) {
        const char *next = strstr(text, dots);
        size_t len = next ? (size_t)(next - text) + strlen(dots) : strlen(text), n = 0;
        _cleanup_free_ char *masked = NULL;

        if (mask_text(c->t->mask, text, len, cut ? MASK_CUT_START : 0, &masked, &n) < 0)
            b.bad = true;
        else
            buffer_add(&b, masked, n);
        text += len;
    }
    return buffer_take(&b, &ret, NULL) == 0 ? ret : NULL;
}

static void refuse(struct tool_call *c)
{
    _cleanup_free_ char *why = NULL;
    struct error err;

    toolset_take_error(c->t, atoll_op_error(c->inner), ERROR_RECOVERABLE, &err);
    why = mask_cut(c, err.message);
    if (why)
        call_retry(c, TEXT_FAILED "%s%s%s", c->t->tools[c->tool].name, why,
                   err.remedy[0] ? ". " : "", err.remedy, ".");
    else
        call_answer(c, NULL, 0, true);
}

static void failed(struct tool_call *c, bool lost)
{
    if (lost)
        call_inner_failed(c);
    else
        refuse(c);
}

/* --- the answer --- */

/* NULL: no memory. */
static json_t *fact_of(const struct tool_call *c, const struct atoll_exported *x)
{
    size_t n_path = 0, n_url = 0;
    _cleanup_free_ char *path = toolset_masked(c->t, x->path, strlen(x->path), &n_path);
    _cleanup_free_ char *url = toolset_masked(c->t, x->url, strlen(x->url), &n_url);

    if (!path || !url)
        return NULL;
    return json_pack("{s:o, s:o, s:I, s:I, s:s*}", "path", call_string(path, n_path), "url",
                     call_string(url, n_url), "files", (json_int_t)x->files, "bytes",
                     (json_int_t)x->bytes, "sha256", x->sha256);
}

/* Without memory for one, the whole list is NULL. */
static json_t *facts_of(const struct tool_call *c)
{
    const struct atoll_exported *x;
    json_t *list = json_array();

    for (size_t i = 0; list && (x = atoll_op_exported(c->inner, i)); i++)
        if (json_array_append_new(list, fact_of(c, x)) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *warnings_of(const struct tool_call *c)
{
    json_t *list = json_array();
    const char *text;

    for (size_t i = 0; list && (text = atoll_op_warning(c->inner, i)); i++) {
        size_t n = 0;
        _cleanup_free_ char *masked = toolset_masked(c->t, text, strlen(text), &n);

        if (!masked || json_array_append_new(list, call_string(masked, n)) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static char *line_of(const struct tool_call *c, const struct atoll_exported *x)
{
    _cleanup_free_ char *path = call_path(c, x->path, strlen(x->path));
    _cleanup_free_ char *url = toolset_masked(c->t, x->url, strlen(x->url), NULL);
    _cleanup_free_ char *shown = NULL;
    char size[SHOWN_SIZE_BYTES], what[LINE_BYTES], *line = NULL;

    if (!path || !url || shown_name(url, &shown) < 0)
        return NULL;
    shown_size(x->bytes, size);
    if (x->sha256)
        (void)snprintf(what, sizeof what, "%s", size);
    else
        (void)snprintf(what, sizeof what, TEXT_PUBLISHED_FILES, size, x->files,
                       TEXT_FILES(x->files));
    return asprintf(&line, TEXT_PUBLISHED, path, what, shown) < 0 ? NULL : line;
}

/* The first lines, as many as an answer may have. NULL without memory. */
static char *fit(const struct tool_call *c, char **lines, size_t n, size_t *ret_len)
{
    const struct truncate_caps caps = call_caps(c);
    _cleanup_free_ char *kept = NULL;
    size_t shown = 0;
    char *text = NULL;

    if (truncate_list((const char *const *)lines, &caps, &kept, ret_len, &shown) < 0)
        return NULL;
    if (shown == n)
        return TAKE_PTR(kept);
    int r = asprintf(&text, "%s%s" TEXT_MORE_PUBLISHED, kept, shown > 0 ? "\n" : "", n - shown);
    if (r < 0)
        return NULL;
    *ret_len = (size_t)r;
    return text;
}

static char *text_of(const struct tool_call *c, size_t *ret_len)
{
    size_t n = atoll_op_count(c->inner), made = 0;
    char **lines = calloc(n + 1, sizeof *lines), *text = NULL;

    while (lines && made < n && (lines[made] = line_of(c, atoll_op_exported(c->inner, made))))
        made++;
    if (lines && made == n)
        text = fit(c, lines, n, ret_len);
    for (size_t i = 0; i < made; i++)
        free(lines[i]);
    free(lines);
    return text;
}

/* What was left behind on the way, below the rest. @text is taken; NULL without memory. */
static char *add_warnings(char *text, size_t *len, const json_t *warnings)
{
    struct buffer b = {0};
    char *ret = NULL;

    if (text)
        buffer_add(&b, text, *len);
    b.bad = b.bad || !text;
    free(text);
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        buffer_add_text(&b, "\n[");
        buffer_add_text(&b, json_string_value(json_array_get(warnings, i)));
        buffer_add_text(&b, "]");
    }
    return buffer_take(&b, &ret, len) == 0 ? ret : NULL;
}

static void answer(struct tool_call *c)
{
    json_t *warnings = warnings_of(c);
    size_t len = 0;
    char *text = add_warnings(text_of(c, &len), &len, warnings);

    call_fact(c, "exports", facts_of(c));
    if (!warnings || json_array_size(warnings) > 0)
        call_fact(c, "warnings", warnings);
    else
        json_decref(warnings);
    c->exported = TAKE_PTR(c->inner);
    call_answer(c, text, len, false);
}

static void done(struct tool_call *c)
{
    const struct atoll_error *e = atoll_op_error(c->inner);

    if (!e)
        answer(c);
    else if (e->cls == ATOLL_TERMINAL || e->code == EPIPE || e->code == ESHUTDOWN)
        call_check(c, failed);
    else
        refuse(c);
}

/* --- beginning --- */

static bool examine(struct tool_call *c)
{
    (void)c; /* it has no arguments, and the spec has exports: core/spec_rules.c */
    return true;
}

static void begin(struct tool_call *c)
{
    const struct toolset_spec *s = &c->t->spec.spec.toolset;
    const char **exports = calloc(s->exports.n + 1, sizeof *exports);

    for (size_t i = 0; exports && i < s->exports.n; i++)
        exports[i] = s->exports.items[i];
    call_await(c, exports ? atoll_export(c->t->sb, exports, s->max_export_bytes) : NULL, done);
    free(exports);
}

const struct tool_action publish_exports_action = {.examine = examine, .begin = begin};

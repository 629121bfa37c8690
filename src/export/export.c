/* SPDX-License-Identifier: Apache-2.0 */
/* Exports from start to end: entries, phases, warnings, what is left at the end. */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/limits.h"
#include "core/sandbox_id.h"
#include "export/entry.h"
#include "base/guards.h"

/* How long the sandbox's keeper may take to write down what it is told. */
#define TELL_US UINT64_C(2000000)

enum {
    SHOWN_PATH = 80, /* of an error, in which the cause needs most of the room */
    SHOWN_URL = 100,
    SHOWN_ID = 60,
    CAUSE_BYTES = 256,
    FAULT_BYTES = 768, /* of a whole sentence */
};

/* Entries */

static bool is_scheme_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
}

/* The '=' of PATH=URL: the first one that a URL follows, since a path may hold others. */
static const char *find_url(const char *entry)
{
    const char *first = strchr(entry, '=');

    for (const char *at = first; at; at = strchr(at + 1, '=')) {
        const char *p = at + 1;

        while (is_scheme_byte(*p))
            p++;
        if (p > at + 1 && strncmp(p, "://", 3) == 0)
            return at;
    }
    return first;
}

static int refuse_entry(const char *path, const char *why, const char *remedy, struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];

    source_show(path, shown);
    (void)error_set(err, ERROR_USAGE, EINVAL, "the export '%s' %s", shown, why);
    return error_remedy(err, "%s", remedy);
}

static int parse_path(struct export_entry *e, const char *entry, size_t n, struct error *err)
{
    e->path = strndup(entry, n);
    if (!e->path)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (n == 0)
        return refuse_entry(entry, "has no path", "Write PATH=URL, as out.csv=file:///srv/out.csv",
                            err);
    if (n > FILE_PATH_BYTES_MAX)
        return refuse_entry(e->path, "has a path that is too long", "Shorten it", err);
    e->is_pattern = e->is_folder = pattern_is(e->path);
    return e->is_pattern ? pattern_check(e->path, err) : 0;
}

static int parse_entry(struct export_entry *e, const char *entry,
                       const struct destination_values *values, struct error *err)
{
    const char *equals = find_url(entry);
    char shown[SOURCE_SHOWN_BYTES];
    int r;

    if (!equals) /* it may be a URL alone, with a password in it */
        return error_set(err, ERROR_USAGE, EINVAL, "an export has no '=' between a path and a URL");
    r = parse_path(e, entry, (size_t)(equals - entry), err);
    if (r < 0)
        return r;
    r = destination_fill(equals + 1, values, &e->url, err);
    if (r == 0)
        r = destination_parse(e->url, &e->to, err);
    source_show(e->path, shown);
    return r < 0 ? error_context(err, "the export of '%s'", shown) : 0;
}

static void entries_free(struct export_entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(e[i].path);
        free(e[i].url);
        destination_done(&e[i].to);
        pattern_done(&e[i].pattern);
        manifest_done(&e[i].manifest);
    }
    free(e);
}

static int parse_entries(const struct string_list *list, const struct destination_values *values,
                         struct export_entry *e, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < list->n; i++)
        e[i].place = (struct staging_place)STAGING_PLACE_INIT;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        r = parse_entry(&e[i], list->items[i], values, err);
        for (size_t j = 0; r == 0 && j < i; j++)
            if (destination_clash(&e[i].to, &e[j].to))
                r = refuse_entry(e[i].path,
                                 "goes to the same place as another one, or one lies within the "
                                 "other",
                                 "Give each export a place of its own", err);
    }
    return r;
}

/* Return: list->n entries, owned by the caller; NULL with an error. */
static struct export_entry *entries_new(const struct string_list *list,
                                        const struct destination_values *values, struct error *err)
{
    struct export_entry *e;

    if (list->n == 0 || list->n > LIMIT_LIST_ENTRIES) {
        (void)error_set(err, ERROR_USAGE, EINVAL,
                        list->n == 0 ? "nothing is named that is to be exported"
                                     : "there are more than %d exports",
                        LIMIT_LIST_ENTRIES);
        return NULL;
    }
    e = calloc(list->n, sizeof *e);
    if (!e) {
        (void)error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    } else if (parse_entries(list, values, e, err) < 0) {
        entries_free(e, list->n);
        e = NULL;
    }
    return e;
}

int export_check(const struct string_list *entries, struct error *err)
{
    struct export_entry *e = entries_new(entries, &destination_samples, err);

    if (!e)
        return -err->code;
    entries_free(e, entries->n);
    return 0;
}

/* Words */

/* What is too long loses its beginning, which says least. */
static void shorten(const char *text, size_t most, char *ret, size_t size)
{
    size_t n = strlen(text);

    (void)snprintf(ret, size, "%s%s", n > most ? "..." : "", n > most ? text + (n - most) : text);
    text_make_printable(ret);
}

void export_explain(const struct exporting *x, const struct export_entry *e,
                    const struct error *cause, const char *more, struct error *ret)
{
    char path[SHOWN_PATH + 4], url[SHOWN_URL + 4], id[SHOWN_ID + 4], why[CAUSE_BYTES];
    char text[FAULT_BYTES];

    shorten(e->path, SHOWN_PATH, path, sizeof path);
    shorten(e->url, SHOWN_URL, url, sizeof url);
    shorten(x->sandbox, SHOWN_ID, id, sizeof id);
    (void)snprintf(why, sizeof why, "%.50s%s%.200s", cause->context, cause->context[0] ? ": " : "",
                   cause->message);
    (void)snprintf(text, sizeof text,
                   "Could not export %s from sandbox %s on backend %s to %s: %s%s", path, id,
                   x->backend, url, why, more);
    *ret = (struct error)ERROR_INIT;
    (void)error_set(ret, cause->cls, cause->code, "%s", text);
    (void)snprintf(ret->remedy, sizeof ret->remedy, "%s", cause->remedy);
}

void export_warn(struct exporting *x, const struct error *err)
{
    char **more = realloc(x->warnings, (x->n_warnings + 1) * sizeof *more);
    char text[FAULT_BYTES];

    if (!more)
        return;
    x->warnings = more;
    error_format(err, text, sizeof text);
    x->warnings[x->n_warnings] = strdup(text);
    if (x->warnings[x->n_warnings])
        x->n_warnings++;
}

const char *export_warning(const struct exporting *x, size_t i)
{
    return i < x->n_warnings ? x->warnings[i] : NULL;
}

/* From turn to turn */

static int next_due(struct loop *l, struct loop_timer *t)
{
    struct exporting *x = t->owner;
    struct error err = ERROR_INIT;

    (void)l;
    if (x->work(x, &err) < 0)
        export_fail(x, &err);
    return 0;
}

void export_next(struct exporting *x, int (*work)(struct exporting *x, struct error *err))
{
    if (x->failed && !x->over)
        return;
    x->work = work;
    loop_at(x->loop, &x->next, clock_now_us());
}

/* The last turn: what the owner is told may end with export_free(). */
static int tell_owner(struct exporting *x, struct error *err)
{
    (void)err;
    session_forget(&x->telling); /* an answer that comes too late must not tell it twice */
    if (x->failed)
        x->events.failed(x, &x->error);
    else
        x->events.done(x);
    return 0;
}

static int tell(struct exporting *x, struct error *err)
{
    if (!export_tell(x))
        return tell_owner(x, err);
    x->work = tell_owner;
    loop_at(x->loop, &x->next, clock_after_us(TELL_US));
    return 0;
}

static int end_failed(struct exporting *x, struct error *err)
{
    x->over = true;
    export_clean_up(x);
    return tell(x, err);
}

void export_fail(struct exporting *x, const struct error *err)
{
    static const char form[] = "Could not export ";

    if (x->failed || x->over)
        return;
    if (strncmp(err->message, form, sizeof form - 1) == 0)
        x->error = *err;
    else
        export_explain(x, &x->entries[x->at < x->n ? x->at : x->n - 1], err, "", &x->error);
    x->failed = true;
    x->work = end_failed;
    loop_at(x->loop, &x->next, clock_now_us());
}

void export_succeed(struct exporting *x)
{
    x->over = true;
    x->results = calloc(x->n, sizeof *x->results);
    for (size_t i = 0; x->results && i < x->n; i++) {
        const struct export_entry *e = &x->entries[i];

        x->results[i] = (struct export_result){.path = e->path,
                                               .url = e->url,
                                               .folder = e->is_folder,
                                               .files = e->files,
                                               .bytes = e->bytes};
        copier_sum_text(e->sum, x->results[i].sum);
    }
    export_next(x, tell);
}

/* Beginning and end */

static void stop_work(struct exporting *x)
{
    export_file_stop(&x->file);
    export_folder_stop(&x->folder);
    export_walk_stop(&x->walk);
    file_op_cancel(&x->op);
    copier_stop(&x->copier);
    fd_closep(&x->fd);
    for (size_t i = 0; i < x->n; i++)
        pattern_done(&x->entries[i].pattern);
    source_close(&x->source);
}

void export_clean_up(struct exporting *x)
{
    bool left = false;

    if (!x->loop)
        return;
    stop_work(x);
    /* Backwards: a folder that was made for one may hold another's. */
    for (size_t i = x->n; i > 0; i--) {
        struct error err = ERROR_INIT;

        if (staging_drop(&x->entries[i - 1].place, &err) < 0) {
            export_warn(x, &err);
            left = true;
        }
    }
    if (x->has_journal && (left || x->n_warnings > 0)) {
        fd_closep(&x->journal.fd); /* it stays, and with it the way to what is left behind */
        fd_closep(&x->journal.folder_fd);
    } else if (x->has_journal) {
        journal_close(&x->journal);
    }
    x->has_journal = false;
}

static struct exporting *fill(const struct export_options *o, struct export_entry *entries,
                              const struct export_events *events, void *owner)
{
    struct exporting *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->entries = entries;
    x->n = o->entries->n;
    x->sandbox = strdup(o->sandbox);
    x->backend = strdup(o->backend);
    x->events = *events;
    x->owner = owner;
    x->source.max_bytes = o->max_bytes;
    x->journal = (struct journal)JOURNAL_INIT;
    x->fd = x->op.pipe_fd = -EBADF;
    x->next = (struct loop_timer){.name = "export", .owner = x, .due = next_due};
    if (x->sandbox && x->backend)
        return x;
    free(x->sandbox);
    free(x->backend);
    free(x);
    return NULL;
}

int export_new(const struct export_options *options, const struct export_events *events,
               void *owner, struct exporting **ret, struct error *err)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    struct destination_values values = {.id = sandbox_id_split(options->sandbox, backend)};

    destination_time(clock_epoch_us(), values.time); /* one for all entries */
    struct export_entry *entries = entries_new(options->entries, &values, err);

    if (!entries)
        return -err->code;
    *ret = fill(options, entries, events, owner);
    if (*ret)
        return 0;
    entries_free(entries, options->entries->n);
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

void export_start(struct exporting *x, struct session *s, struct loop *l)
{
    x->loop = l;
    x->session = s;
    source_open(&x->source, s, l, x->source.max_bytes);
    export_next(x, export_look);
}

void *export_owner(const struct exporting *x)
{
    return x->owner;
}

const struct export_result *export_results(const struct exporting *x, size_t *ret_n)
{
    *ret_n = x->results ? x->n : 0;
    return x->results;
}

uint64_t export_progress(const struct exporting *x)
{
    return x->source.bytes;
}

void export_free(struct exporting *x)
{
    struct loop *l;

    if (!x)
        return;
    l = x->loop;
    x->over = true;
    session_forget(&x->telling);
    if (l)
        loop_at(l, &x->next, CLOCK_NEVER);
    export_clean_up(x);
    entries_free(x->entries, x->n);
    for (size_t i = 0; i < x->n_warnings; i++)
        free(x->warnings[i]);
    free(x->warnings);
    free(x->results);
    free(x->sandbox);
    free(x->backend);
    if (l)
        loop_free_later(l, x);
    else
        free(x);
}

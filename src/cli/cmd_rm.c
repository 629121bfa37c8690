/* SPDX-License-Identifier: Apache-2.0 */
/* atoll rm: end sandboxes. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "core/limits.h"
#include "core/state.h"
#include "base/guards.h"

/* From DESTROY to the end of all of one, which only a keeper that hangs exceeds. Backend programs
 * may have to wait for other hosts. */
#define END_US UINT64_C(30000000)

struct rm_args {
    struct text_list tags;
    const char *owner;
    bool force, json;
};

#define FIELD(name) offsetof(struct rm_args, name)

static const struct option rm_options[] = {
    {.name = "tag",
     .arg = "KEY=VALUE",
     .kind = OPTION_LIST,
     .offset = FIELD(tags),
     .max = LIMIT_LIST_ENTRIES,
     .help = "all with this tag; with several, those that have all of them"},
    {.name = "owner",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(owner),
     .help = "whom those that are named were made for; without ids: all made for this owner"},
    {.name = "force",
     .letter = 'f',
     .kind = OPTION_FLAG,
     .offset = FIELD(force),
     .help = "one that is gone already is no error; one that is held, or made for somebody, goes "
             "all the same"},
    OPTION_JSON(FIELD(json)),
};

/* One that is to go. */
struct doomed {
    char *id;          /* whole, or as typed when it could not be found */
    const char *typed; /* borrowed; NULL: it was chosen by its tags or owner */
    struct atoll_op *open, *destroy;
    struct atoll_sandbox *sandbox;
    struct error error;
};

/* All of them, on one context: they end side by side. */
struct removal {
    struct handle h;
    struct doomed *list;
    size_t n, capacity;
};

static void removal_done(struct removal *x)
{
    for (size_t i = 0; i < x->n; i++) {
        struct doomed *d = &x->list[i];

        atoll_op_free(d->open);
        atoll_op_free(d->destroy);
        if (d->sandbox)
            atoll_sandbox_free(d->sandbox);
        free(d->id);
    }
    free(x->list);
    handle_done(&x->h);
}

/* @id is taken. Named twice, it goes once. */
static int add(struct removal *x, char *id, const char *typed, const struct error *why,
               struct error *err)
{
    for (size_t i = 0; i < x->n && id; i++)
        if (strcmp(x->list[i].id, id) == 0) {
            free(id);
            return 0;
        }
    if (id && x->n == x->capacity) {
        size_t capacity = x->capacity * 2 + 8;
        struct doomed *more = reallocarray(x->list, capacity, sizeof *more);

        x->list = more ? more : x->list;
        x->capacity = more ? capacity : x->capacity;
    }
    if (!id || x->n == x->capacity) {
        free(id);
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    }
    x->list[x->n++] = (struct doomed){.id = id, .typed = typed, .error = *why};
    return 0;
}

static int add_named(struct removal *x, const struct arguments *operands, struct error *err)
{
    int r = 0;

    for (int i = 0; i < operands->n && r == 0; i++) {
        struct error why = ERROR_INIT;
        char *id = NULL;

        if (handle_find(operands->v[i], &id, &why) < 0)
            id = strdup(operands->v[i]);
        r = add(x, id, operands->v[i], &why, err);
    }
    return r;
}

static int add_matching(struct removal *x, const struct rm_args *a, struct error *err)
{
    const struct sandbox_filter filter = {.tags = &a->tags, .owner = a->owner};
    const struct error none = ERROR_INIT;
    int r;

    /* With ids the owner says for whom they were made, and selects nothing. */
    if (a->tags.n == 0 && (x->list || !a->owner))
        return 0;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_list(x->h.context, "local");
    r = handle_wait(&x->h, op, err);
    for (size_t i = 0; r == 0 && i < atoll_op_count(op); i++)
        if (sandbox_matches(atoll_op_info(op, i), &filter))
            r = add(x, strdup(atoll_op_info(op, i)->id), NULL, &none, err);
    return r;
}

static bool is_local(const struct doomed *d)
{
    return handle_may_mean(d->id, strlen(d->id)); /* there is no "BACKEND:" in front */
}

/* Goes on with one; true when nothing more is to be waited for. */
static bool move_on(struct doomed *d, const struct rm_args *a)
{
    if (d->error.code != 0)
        return true;
    if (!d->destroy) {
        if (!atoll_op_done(d->open))
            return false;
        if (handle_result(d->open, &d->error) < 0)
            return true;
        d->sandbox = atoll_op_sandbox(d->open);
        d->destroy = atoll_destroy_as(d->sandbox, a->owner, a->force);
        if (d->destroy && is_local(d))
            atoll_op_set_timeout(d->destroy, END_US);
    }
    if (d->destroy && !atoll_op_done(d->destroy))
        return false;
    (void)handle_result(d->destroy, &d->error);
    return true;
}

static int remove_all(struct removal *x, const struct rm_args *a, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < x->n; i++)
        if (x->list[i].error.code == 0) {
            x->list[i].open = atoll_open(x->h.context, x->list[i].id);
            if (!x->list[i].open)
                return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
        }
    for (bool all = false; r == 0 && !all;) {
        all = true;
        for (size_t i = 0; i < x->n; i++)
            all = move_on(&x->list[i], a) && all;
        if (!all)
            r = handle_poll(&x->h, NULL, 0, CLOCK_NEVER, err);
    }
    return r;
}

/* It was gone before it could be asked, or went while it was; a backend program that is gone says
 * nothing about its sandbox. */
static bool is_gone(const struct doomed *d)
{
    const int code = d->error.code;

    return code == ENOENT || code == ESHUTDOWN || (code == EPIPE && is_local(d));
}

/* Whether that it did not go is a failure. */
static bool has_failed(const struct doomed *d, bool force)
{
    return d->error.code != 0 && !((force || !d->typed) && is_gone(d));
}

/* A keeper that hangs is not killed from here: whoever sees to it may want to know why. */
static void explain_hang(struct doomed *d)
{
    struct error ignored = ERROR_INIT;
    struct state_record *list = NULL;
    size_t n = 0;

    if (!is_local(d) || state_list(&list, &n, &ignored) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].id, d->id) == 0) {
            const int pid = (int)list[i].pid;

            d->error = (struct error)ERROR_INIT;
            (void)error_set(&d->error, ERROR_TERMINAL, ETIMEDOUT,
                            "its keeper, process %d, does not answer", pid);
            (void)error_remedy(&d->error,
                               "Look whether it is stopped; \"kill -9 %d\" ends it with its "
                               "sandbox, and \"atoll gc\" removes what it leaves",
                               pid);
        }
    state_records_free(list, n);
}

/* Says of each, by its name, why it did not go; the last one is told as the command's error. */
static int tell(struct cli *cli, struct removal *x, bool force, struct error *err)
{
    char text[sizeof err->context + sizeof err->message + sizeof err->remedy + 8];

    (void)fflush(cli->out); /* what went comes first, as with the last one */
    for (size_t i = 0; i < x->n; i++) {
        struct doomed *d = &x->list[i];

        if (!has_failed(d, force))
            continue;
        if (err->code != 0) {
            error_format(err, text, sizeof text);
            fprintf(cli->err, "atoll: %s\n", text);
        }
        const char *name = d->typed ? d->typed : d->id;

        *err = d->error;
        if (!strstr(err->message, name))
            (void)error_context(err, "%.80s", name);
    }
    return -err->code;
}

/* Ids may be what was typed, in any bytes. */
static json_t *printable(const char *text)
{
    char shown[256];

    (void)snprintf(shown, sizeof shown, "%s", text);
    text_make_printable(shown);
    return json_string(shown);
}

static int print_report(struct cli *cli, const struct removal *x, bool force, struct error *err)
{
    json_t *removed = json_array(), *failed = json_array();

    for (size_t i = 0; i < x->n; i++) {
        const struct doomed *d = &x->list[i];
        struct error why = d->error;
        char text[sizeof why.message + sizeof why.remedy + 8];

        why.context[0] = '\0';
        error_format(&why, text, sizeof text);
        if (d->error.code == 0)
            (void)json_array_append_new(removed, json_string(d->id));
        else if (has_failed(d, force))
            (void)json_array_append_new(
                failed, json_pack("{s:o, s:s}", "id", printable(d->id), "reason", text));
    }
    return print_json(cli->out, json_pack("{s:o, s:o}", "removed", removed, "failed", failed), err);
}

static int rm_checked(struct cli *cli, const struct rm_args *a, const struct arguments *operands,
                      struct error *err)
{
    const struct sandbox_filter filter = {.tags = &a->tags};
    _cleanup_(removal_done) struct removal x = {.h = HANDLE_INIT};
    int r = sandbox_filter_check(&filter, err);

    if (r == 0)
        r = handle_begin(&x.h, err);
    if (r == 0)
        r = add_named(&x, operands, err);
    if (r == 0)
        r = add_matching(&x, a, err);
    if (r == 0)
        r = remove_all(&x, a, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < x.n; i++)
        if (x.list[i].error.code == ETIMEDOUT || x.list[i].error.code == EAGAIN)
            explain_hang(&x.list[i]);
    if (a->json)
        (void)print_report(cli, &x, a->force, err);
    return tell(cli, &x, a->force, err);
}

static int rm_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct rm_args a;
    int r = command_parse(&cmd_rm, argc, argv, &a, &operands, err);

    if (r == 0 && operands.n == 0 && a.tags.n == 0 && !a.owner && !a.force) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "it was not said which sandboxes are to go");
        r = error_remedy(err, "Name them by their ids or names, or by --tag or --owner");
    }
    if (r == 0)
        r = rm_checked(cli, &a, &operands, err);
    options_done(rm_options, ARRAY_SIZE(rm_options), &a);
    return r;
}

static const struct command_example rm_examples[] = {
    {"atoll rm box", "end the sandbox called box"},
    {"atoll rm --tag job=42", "end all sandboxes of one job; there may be none"},
    {"atoll rm --owner etl/42 box", "end one that was made for etl/42"},
};

const struct command cmd_rm = {
    .name = "rm",
    .summary = "end sandboxes and all that is in them",
    .usage = "[OPTION]... [ID]...",
    .description =
        "Ends sandboxes and returns when nothing of them is left: no process, no mount, no file. "
        "All are tried, also when one fails; each that did not go is told, a line for each.\n\n"
        "With --tag, or with --owner and no ids, those that match go; that none does is no error, "
        "nor that one ends by itself meanwhile. One that was made for an owner goes only if that "
        "is given, one that was made for nobody only without, and none while it is held (atoll "
        "hold); --force asks for none of this.\n\n"
        "A keeper that does not answer is named after a while, and left alone.",
    .options = rm_options,
    .n_options = ARRAY_SIZE(rm_options),
    .examples = rm_examples,
    .n_examples = ARRAY_SIZE(rm_examples),
    .run = rm_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* atoll events: what happened to sandboxes. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/event_text.h"
#include "cli/event_watch.h"
#include "cli/handle.h"
#include "cli/sandbox_text.h"
#include "core/limits.h"
#include "core/sandbox_id.h"
#include "base/guards.h"

struct events_args {
    const char *kind;
    struct text_list tags;
    bool follow, json;
};

#define FIELD(name) offsetof(struct events_args, name)

static const char *const kinds[] = {"state", "command", "export", "egress", "policy",
                                    "lease", "limit",   "end",    "events", NULL};

static const struct option events_options[] = {
    {.name = "kind",
     .arg = "KIND",
     .kind = OPTION_CHOICE,
     .offset = FIELD(kind),
     .choices = kinds,
     .help = "only events of this kind, and the lines that say how many events are not there"},
    {.name = "tag",
     .arg = "KEY=VALUE",
     .kind = OPTION_LIST,
     .offset = FIELD(tags),
     .max = LIMIT_LIST_ENTRIES,
     .help = "without ID: only of sandboxes with this tag; with several, those that have all"},
    {.name = "follow",
     .letter = 'f',
     .kind = OPTION_FLAG,
     .offset = FIELD(follow),
     .help = "go on with what happens from now on: with ID until that sandbox is gone, else also "
             "in those that are made"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .offset = FIELD(json),
     .help = "print one JSON object a line instead of text"},
};

/* A line that waits for its place among those of other sandboxes. */
struct waiting {
    char time[32]; /* RFC 3339 in UTC, of one length: in the order of bytes */
    size_t number; /* lines of one time stay as they came */
    char *text;    /* owned */
};

struct view {
    struct cli *cli;
    const struct events_args *args;
    bool labelled; /* the sandbox's id is in front of each line */
    bool sorts;    /* lines are kept until view_flush() */
    int failed;    /* the errno of the first write that failed; 0: none did */
    struct waiting *waiting;
    size_t n, room;
};

/* Return: @r, the outcome of a call of stdio, as a negative errno. */
static int view_wrote(struct view *v, int r)
{
    if (r < 0 && v->failed == 0)
        v->failed = errno;
    return -v->failed;
}

static int view_print(struct view *v, const char *text)
{
    return view_wrote(v, fprintf(v->cli->out, "%s\n", text));
}

/* @text is taken. */
static int view_keep(struct view *v, const json_t *e, char *text)
{
    const char *time = json_string_value(json_object_get(e, "time"));

    if (v->n == v->room) {
        const size_t room = v->room > 0 ? 2 * v->room : 64;
        struct waiting *more = reallocarray(v->waiting, room, sizeof *more);

        if (!more) {
            free(text);
            return -ENOMEM;
        }
        v->waiting = more;
        v->room = room;
    }
    struct waiting *w = &v->waiting[v->n];
    *w = (struct waiting){.number = v->n++, .text = text};
    if (time)
        (void)snprintf(w->time, sizeof w->time, "%s", time);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;
    int r = strcmp(x->time, y->time);

    return r != 0 ? r : x->number < y->number ? -1 : 1;
}

static void view_done(struct view *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->waiting[i].text);
    free(v->waiting);
    v->waiting = NULL;
    v->n = v->room = 0;
}

/* What was kept, in the order of its times; from now on lines are printed as they come. */
static int view_flush(struct view *v)
{
    int r = 0;

    if (v->n > 1)
        qsort(v->waiting, v->n, sizeof *v->waiting, by_time);
    for (size_t i = 0; r == 0 && i < v->n; i++)
        r = view_print(v, v->waiting[i].text);
    view_done(v);
    v->sorts = false;
    return r < 0 ? r : view_wrote(v, fflush(v->cli->out));
}

/* Return: owned; NULL without memory. */
static char *shown(const struct view *v, const char *id, const char *line, const json_t *e)
{
    char *text;

    if (!v->args->json)
        return event_text(v->labelled ? id : NULL, e);
    if (!v->labelled || line[0] != '{')
        return strdup(line);
    return asprintf(&text, "{\"id\":\"%s\",%s", id, line + 1) < 0 ? NULL : text;
}

static int take_line(void *owner, const char *id, const char *line, const json_t *e)
{
    struct view *v = owner;
    const char *kind = json_string_value(json_object_get(e, "kind"));

    /* A gap may have had some of this kind. */
    if (v->args->kind &&
        (!kind || (strcmp(kind, v->args->kind) != 0 && strcmp(kind, "events") != 0)))
        return 0;
    char *text = shown(v, id, line, e);
    if (!text)
        return -ENOMEM;
    if (v->sorts)
        return view_keep(v, e, text);
    int r = view_print(v, text);
    free(text);
    return r;
}

static int pause_view(void *owner)
{
    struct view *v = owner;

    return view_wrote(v, fflush(v->cli->out));
}

/* Ends the program by the signal of a write to a pipe that nobody reads, unless the caller has said
 * that it wants the error instead, which is returned. */
static int nobody_reads(void)
{
    (void)raise(SIGPIPE);
    return EPIPE;
}

/* The events could be had; that they were for nothing is what counts. */
static int not_printed(int code, struct error *err)
{
    *err = (struct error)ERROR_INIT;
    return error_set(err, ERROR_TERMINAL, code, "cannot write to standard output: %s",
                     strerror(code));
}

/* @id: NULL: all */
static int show(struct cli *cli, const struct events_args *a, const char *id, struct error *err)
{
    struct view v = {.cli = cli, .args = a, .labelled = !id, .sorts = !id};
    struct event_watch w = {.tags = &a->tags,
                            .follow = a->follow,
                            .out_fd = fileno(cli->out),
                            .owner = &v,
                            .line = take_line,
                            .pause = pause_view};
    int r = event_watch_begin(&w, err);

    if (r == 0)
        r = id ? event_watch_one(&w, id, err) : event_watch_all(&w, err);
    if (r == 0)
        r = view_flush(&v);
    if (r == 0 && a->follow)
        r = event_watch_follow(&w, err);
    if (w.unread && v.failed == 0)
        v.failed = nobody_reads();
    event_watch_done(&w);
    view_done(&v);
    return v.failed ? not_printed(v.failed, err) : r;
}

static int show_named(struct cli *cli, const struct events_args *a, const char *text,
                      struct error *err)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    _cleanup_free_ char *id = NULL;
    int r = 0;

    if (a->tags.n > 0) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "--tag says which of all sandboxes are meant");
        return error_remedy(err, "Leave out --tag, or the ID");
    }
    r = handle_find(text, &id, err);
    if (r < 0)
        return r;
    (void)sandbox_id_split(id, backend);
    if (strcmp(backend, "local") == 0)
        return show(cli, a, id, err);
    (void)error_set(err, ERROR_USAGE, ENOSYS, "the backend '%s' keeps no events here", backend);
    return error_remedy(err, "Look at the records of that backend");
}

static int events_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct events_args a;
    const struct sandbox_filter filter = {.tags = &a.tags};
    int r = command_parse(&cmd_events, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_events, &operands, 0, 1, err);
    if (r == 0)
        r = sandbox_filter_check(&filter, err);
    if (r == 0)
        r = operands.n == 1 ? show_named(cli, &a, operands.v[0], err) : show(cli, &a, NULL, err);
    options_done(events_options, ARRAY_SIZE(events_options), &a);
    return r;
}

static const struct command_example events_examples[] = {
    {"atoll events box --kind egress", "see what tried to get out and was refused"},
    {"atoll events --follow --tag job=42", "watch all sandboxes of a job, and those still to come"},
    {"atoll events box --follow --json", "pass events on as they come"},
};

const struct command cmd_events = {
    .name = "events",
    .summary = "show what happened to sandboxes: commands, exports, refusals, limits, their end",
    .usage = "[ID] [OPTION]...",
    .description =
        "Prints the events of a sandbox that is held, or of all of them merged by time, the oldest "
        "first. Their kinds: state (it was created), command (started, exited), export (published "
        "or failed), egress (an attempt to get out that was refused, with the commands that ran "
        "then and the rule), policy (it was changed), lease (who holds it), limit (little is left "
        "of its lifetime, memory or money), end, and events (some are not there). The last is "
        "shown "
        "with every --kind, since those could be of any.\n\n"
        "Values of the spec's variables with 4 bytes or more are shown as ***, where arguments or "
        "names hold them. When there is no more room older events go, refusals first, and a line "
        "in "
        "their place says how many. All of them go with the sandbox; --audit of create and run "
        "keeps them in a file.",
    .options = events_options,
    .n_options = ARRAY_SIZE(events_options),
    .examples = events_examples,
    .n_examples = ARRAY_SIZE(events_examples),
    .run = events_run,
};

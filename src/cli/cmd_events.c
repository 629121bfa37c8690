/* SPDX-License-Identifier: Apache-2.0 */
/* atoll events: what happened to a sandbox: what its network policy refused, and its changes. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/event_lines.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "client/session.h"
#include "core/sandbox_id.h"
#include "core/state.h"
#include "base/guards.h"

struct events_args {
    const char *kind;
    bool follow, json;
};

#define FIELD(name) offsetof(struct events_args, name)

static const char *const kinds[] = {"egress", "policy", NULL};

static const struct option events_options[] = {
    {.name = "kind",
     .arg = "KIND",
     .kind = OPTION_CHOICE,
     .offset = FIELD(kind),
     .choices = kinds,
     .help = "only what the network policy refused, or only its changes"},
    {.name = "follow",
     .letter = 'f',
     .kind = OPTION_FLAG,
     .offset = FIELD(follow),
     .help = "go on with what happens from now on, until the sandbox is gone"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .offset = FIELD(json),
     .help = "print one JSON object a line instead of text"},
};

/* One sandbox whose events are printed. */
struct view {
    struct cli *cli;
    const struct events_args *args;
    const char *id; /* in front of its lines; NULL: there is only one */
    struct event_lines lines;
    struct loop loop;
    struct session session;
    struct loop_source changes;
    int r; /* how printing failed */
};

static const char *text_of(const json_t *value, const char *key)
{
    const char *s = json_string_value(json_object_get(value, key));

    return s ? s : "";
}

static long long number_of(const json_t *value, const char *key)
{
    return (long long)json_integer_value(json_object_get(value, key));
}

static void put_denied(FILE *f, const json_t *e)
{
    const char *name = text_of(e, "name"), *address = text_of(e, "address");
    const json_t *commands = json_object_get(e, "commands");
    const long long port = number_of(e, "port"), again = number_of(e, "repeated");
    const bool v6 = !name[0] && strchr(address, ':');

    fprintf(f, "refused %s %s%s%s", text_of(e, "protocol"), v6 ? "[" : "", name[0] ? name : address,
            v6 ? "]" : "");
    if (port > 0)
        fprintf(f, ":%lld", port);
    for (size_t i = 0; i < json_array_size(commands); i++)
        fprintf(f, "%s%lld", i == 0 ? " command " : ",",
                (long long)json_integer_value(json_array_get(commands, i)));
    fprintf(f, " (%s)", text_of(e, "reason"));
    if (again > 0)
        fprintf(f, " and %lld times more", again);
    if (number_of(e, "dropped") > 0)
        fprintf(f, "; %lld others before it were too many to tell", number_of(e, "dropped"));
}

static void put_list(FILE *f, const json_t *policy, const char *key, const char **before)
{
    const json_t *list = json_object_get(policy, key);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *entry = json_string_value(json_array_get(list, i));

        fprintf(f, "%s%s", *before, entry ? entry : "?");
        *before = ", ";
    }
}

static void put_policy(FILE *f, const json_t *e)
{
    const json_t *policy = json_object_get(e, "policy");
    const long long cut = number_of(e, "flows_cut");
    const char *before = "";

    fprintf(f, "policy %lld: ", number_of(e, "generation"));
    put_list(f, policy, "allow_egress_to", &before);
    put_list(f, policy, "allow_egress_to_cidrs", &before);
    if (!*before)
        fputs("nothing may be reached", f);
    if (cut > 0)
        fprintf(f, "; %lld %s cut", cut, cut == 1 ? "connection was" : "connections were");
}

/* Names are the guest's choice: nothing of them reaches the terminal as it is. */
static int print_text(const struct view *v, const json_t *e)
{
    const char *kind = text_of(e, "kind"), *time = text_of(e, "time");
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        return -ENOMEM;
    if (v->id)
        fprintf(f, "%s ", v->id);
    fprintf(f, "%.10s %.8s ", time, strlen(time) > 11 ? time + 11 : "");
    if (strcmp(kind, "egress") == 0)
        put_denied(f, e);
    else if (strcmp(kind, "policy") == 0)
        put_policy(f, e);
    else if (strcmp(kind, "events") == 0)
        fprintf(f, "%lld earlier events are kept no more", number_of(e, "lines"));
    else
        fprintf(f, "%s %s", kind, text_of(e, "event"));
    if (fclose(f) != 0)
        return -ENOMEM;
    text_make_printable(text);
    fprintf(v->cli->out, "%s\n", text);
    return 0;
}

static int print_with_id(const struct view *v, const json_t *e)
{
    json_t *o = json_pack("{s:s}", "id", v->id);
    int r = o ? json_object_update(o, (json_t *)(uintptr_t)e) : -1;
    _cleanup_free_ char *text = r == 0 ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

    json_decref(o);
    if (!text)
        return -ENOMEM;
    fprintf(v->cli->out, "%s\n", text);
    return 0;
}

static int print_line(void *owner, const char *line, const json_t *value)
{
    const struct view *v = owner;

    if (v->args->kind && strcmp(text_of(value, "kind"), v->args->kind) != 0)
        return 0;
    if (!v->args->json)
        return print_text(v, value);
    if (v->id)
        return print_with_id(v, value);
    fprintf(v->cli->out, "%s\n", line);
    return 0;
}

static int cannot_read(int r, struct error *err)
{
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "the sandbox's events cannot be read: %s",
                             strerror(-r))
                 : 0;
}

/* --- following --- */

static void look(struct view *v)
{
    if (v->r == 0)
        v->r = event_lines_read(&v->lines);
    if (v->r == 0 && fflush(v->cli->out) != 0)
        v->r = -errno;
    if (v->r < 0)
        v->loop.stop = true;
}

static int changed(struct loop *l, struct loop_source *s, uint32_t events)
{
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

    (void)l;
    (void)events;
    while (read(s->fd, buf, sizeof buf) > 0) /* whatever it was: the file is looked at */
        ;
    look(s->owner);
    return 0;
}

static void over(struct session *s)
{
    struct view *v = s->owner;

    look(v);
    v->loop.stop = true;
}

/* The folder is reached by its descriptor's name, however long its own path is. */
static int watch_folder(struct view *v, int *ret_fd)
{
    _cleanup_fd_ int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", v->lines.folder);
    if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_MOVED_TO | IN_CREATE) < 0)
        return -errno;
    v->changes = (struct loop_source){.name = "events", .fd = -EBADF, .owner = v, .ready = changed};
    int r = loop_watch(&v->loop, &v->changes, fd, EPOLLIN);
    if (r == 0)
        *ret_fd = TAKE_FD(fd);
    return r;
}

/* The connection to its keeper tells of the sandbox's end; it asks for nothing, so that the idle
 * timeout goes on. */
static int follow(struct view *v, const char *id, struct error *err)
{
    _cleanup_fd_ int fd = -EBADF;
    int r = loop_init(&v->loop);

    v->session = (struct session)SESSION_INIT;
    if (r == 0)
        r = watch_folder(v, &fd);
    if (r < 0)
        (void)error_set(err, ERROR_TERMINAL, -r, "the sandbox's folder cannot be watched: %s",
                        strerror(-r));
    if (r == 0)
        r = session_connect(&v->session, id, err);
    if (r == 0) {
        v->session.owner = v;
        v->session.over = over;
        r = session_watch(&v->session, &v->loop, err);
    }
    if (r == 0) {
        look(v);
        if (!v->loop.stop && (r = loop_run(&v->loop)) < 0)
            (void)error_set(err, ERROR_TERMINAL, -r, "cannot wait for events: %s", strerror(-r));
    }
    session_end(&v->session);
    loop_done(&v->loop);
    return r < 0 ? r : cannot_read(v->r, err);
}

/* --- which --- */

static int print_one(struct cli *cli, const struct events_args *a, const char *id, bool label,
                     struct error *err)
{
    struct view v = {.cli = cli, .args = a, .id = label ? id : NULL};
    _cleanup_fd_ int folder = state_sandbox_folder(id, err);

    if (folder < 0)
        return folder;
    v.lines.owner = &v;
    v.lines.line = print_line;
    event_lines_init(&v.lines, folder);
    int r = a->follow ? follow(&v, id, err) : cannot_read(event_lines_read(&v.lines), err);
    event_lines_done(&v.lines);
    return r;
}

static int print_all(struct cli *cli, const struct events_args *a, struct error *err)
{
    struct state_record *list = NULL;
    size_t n = 0;
    int r = state_list(&list, &n, err);

    for (size_t i = 0; r == 0 && i < n; i++) {
        r = print_one(cli, a, list[i].id, true, err);
        if (r == -ENOENT) { /* gone since the list was made */
            *err = (struct error)ERROR_INIT;
            r = 0;
        }
    }
    state_records_free(list, n);
    return r;
}

static int print_named(struct cli *cli, const struct events_args *a, const char *text,
                       struct error *err)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    _cleanup_free_ char *id = NULL;
    int r = handle_find(text, &id, err);

    if (r < 0)
        return r;
    (void)sandbox_id_split(id, backend);
    if (strcmp(backend, "local") == 0)
        return print_one(cli, a, id, false, err);
    (void)error_set(err, ERROR_USAGE, ENOSYS, "the backend '%s' keeps no events here", backend);
    return error_remedy(err, "Look at the records of that backend");
}

static int events_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct events_args a;
    int r = command_parse(&cmd_events, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_events, &operands, 0, 1, err);
    if (r == 0 && operands.n == 0 && a.follow) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "--follow needs the ID of one sandbox");
        r = error_remedy(err, "\"atoll list\" shows those that live");
    }
    if (r < 0)
        return r;
    return operands.n == 1 ? print_named(cli, &a, operands.v[0], err) : print_all(cli, &a, err);
}

static const struct command_example events_examples[] = {
    {"atoll events box --kind egress", "see what tried to get out and was refused"},
    {"atoll events box --follow --json", "pass events on as they come"},
};

const struct command cmd_events = {
    .name = "events",
    .summary = "show what a sandbox's network policy refused, and its changes",
    .usage = "[ID] [OPTION]...",
    .description =
        "Prints the events of a sandbox that is held, or of all of them, the oldest first: each "
        "attempt to get out that was refused, with the commands that ran then and the rule, and "
        "each change of the policy. Attempts that repeat themselves are counted. Of many events "
        "the older half goes when there is no more room for them, and the first line then says "
        "how many went.",
    .options = events_options,
    .n_options = ARRAY_SIZE(events_options),
    .examples = events_examples,
    .n_examples = ARRAY_SIZE(events_examples),
    .run = events_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* atoll create: a sandbox that is held: it stands until its lifetime ends or it is removed. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/attach.h"
#include "cli/copy.h"
#include "cli/fork_keeper.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "cli/spec_options.h"
#include "client/describe.h"
#include "core/backends.h"
#include "core/limits.h"
#include "core/state.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

struct create_args {
    struct spec_args spec;
    const char *name;
    bool verbose, json;
};

#define FIELD(name) offsetof(struct create_args, name)

static const struct option create_options[] = {
    SPEC_OPTIONS(struct create_args, spec),
    {.name = "name",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(name),
     .help = "a name that other commands take in the place of the id; no other sandbox that lives "
             "may have it"},
    {.name = "verbose",
     .letter = 'v',
     .kind = OPTION_FLAG,
     .offset = FIELD(verbose),
     .help = "name each set-up step and its time on standard error"},
    OPTION_JSON(FIELD(json)),
};

/* How long what was made for nothing may take to be gone. */
enum { UNDO_US = 20000000 };

/* A sandbox that is being made: on its keeper's connection until all is done. */
struct making {
    struct cli *cli;
    struct loop loop;
    struct session session;
    struct session_request request;
    struct description description; /* of a backend program, before anything is made there */
    struct handle handle;
    struct loop_source signals;
    struct loop_timer patience;
    bool local;
    const char *backend;
    char id[1024];                /* as it is printed; empty: not made */
    struct string_list published; /* ports that lead into it; owned */
    bool over;                    /* nothing of it is left */
    struct error error;           /* why it was not made */
};

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* Names */

/*
 * Held while a sandbox gets its name: two that are made at once could both find it free. Return: an
 * owned descriptor, or a negative errno with an error.
 */
static int lock_names(struct error *err)
{
    int fd = state_folder_open(err), r;

    if (fd < 0)
        return fd;
    do
        r = flock(fd, LOCK_EX);
    while (r < 0 && errno == EINTR);
    if (r == 0)
        return fd;
    r = error_set(err, ERROR_TERMINAL, errno, "the state folder cannot be locked: %s",
                  strerror(errno));
    fd_closep(&fd);
    return r;
}

static int check_unused(const char *name, struct error *err)
{
    struct state_record *list = NULL;
    size_t n = 0;
    int r = state_list(&list, &n, err);

    for (size_t i = 0; r == 0 && i < n; i++)
        if (list[i].name && strcmp(list[i].name, name) == 0) {
            (void)error_set(err, ERROR_USAGE, EEXIST, "the sandbox %s is called '%s' already",
                            list[i].id, name);
            r = error_remedy(err, "Choose another name, or remove that one: atoll rm %s", name);
        }
    if (list)
        state_records_free(list, n);
    return r;
}

static int check_name(const char *name, struct error *err)
{
    if (handle_is_name(name))
        return 0;
    (void)error_set(err, ERROR_USAGE, EINVAL, "'%.80s' cannot be the name of a sandbox", name);
    return error_remedy(err, "Use up to 63 letters, digits, '.', '_' and '-', a letter or digit "
                             "first; not the name of a backend, and not 'sb-' first");
}

/* Making */

static bool is_printable(const char *id)
{
    for (const char *p = id; *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return id[0] != '\0';
}

static void keep_published(struct making *k, struct reader fields)
{
    const char *entry;

    while ((entry = text_next(&fields, TAG_PUBLISHED)))
        if (string_list_add(&k->published, entry) < 0)
            return; /* "atoll inspect" tells them too */
}

static int told(struct session_request *q, struct message *m)
{
    struct making *k = q->owner;
    struct reader r = m->payload;
    struct step_report step;
    const char *id;
    int n;

    switch (m->type) {
    case MSG_STEP:
        if (step_report_decode(m->payload, &step) < 0)
            return -EPROTO;
        attach_log_step(k->cli, &step);
        return 0;
    case MSG_ERROR:
        if (session_error(m, &k->error) < 0)
            return -EPROTO;
        k->loop.stop = true;
        return 0;
    case MSG_CREATED:
        keep_published(k, m->payload);
        id = text_next(&r, TAG_SANDBOX_ID);
        n = snprintf(k->id, sizeof k->id, "%s%s%s", k->local ? "" : k->backend, k->local ? "" : ":",
                     id ? id : "");
        k->loop.stop = true;
        return !id || !is_printable(id) || (size_t)n >= sizeof k->id ? -EPROTO : 0;
    default:
        return -EPROTO;
    }
}

static void lost(struct session_request *q, const struct error *err)
{
    struct making *k = q->owner;

    if (k->error.code == 0)
        k->error = *err;
}

static void session_over(struct session *s)
{
    struct making *k = s->owner;

    if (k->error.code == 0)
        k->error = s->error;
    k->over = true;
    k->loop.stop = true;
}

static int signal_came(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct making *k = s->owner;
    struct signalfd_siginfo info;

    (void)events;
    if (read(s->fd, &info, sizeof info) == sizeof info) {
        k->handle.signal = (int)info.ssi_signo;
        l->stop = true;
    }
    return 0;
}

static int out_of_patience(struct loop *l, struct loop_timer *t)
{
    (void)t;
    l->stop = true;
    return 0;
}

/* Until something is to be looked at. */
static int wait_for_it(struct making *k, struct error *err)
{
    k->loop.stop = false;
    int r = loop_run(&k->loop);

    return r < 0
               ? error_set(err, ERROR_TERMINAL, -r, "cannot wait for the sandbox: %s", strerror(-r))
               : 0;
}

static int begin(struct making *k, struct error *err)
{
    int r = loop_init(&k->loop);

    k->session = (struct session)SESSION_INIT;
    k->request = (struct session_request){.owner = k, .told = told, .failed = lost};
    k->signals =
        (struct loop_source){.name = "signals", .fd = -EBADF, .owner = k, .ready = signal_came};
    k->patience = (struct loop_timer){.name = "undo", .owner = k, .due = out_of_patience};
    if (r == 0)
        r = loop_watch(&k->loop, &k->signals, k->handle.signal_fd, EPOLLIN);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot open an event loop: %s", strerror(-r));
    r = k->local ? fork_keeper(&k->session, err) : session_backend(&k->session, k->backend, err);
    if (r < 0)
        return r;
    k->session.owner = k;
    k->session.over = session_over;
    return session_watch(&k->session, &k->loop, err);
}

/* Until something is there, or it failed. */
static int wait_for_answer(struct making *k, struct error *err)
{
    int r = wait_for_it(k, err);

    if (r < 0)
        return r;
    if (k->handle.signal != 0)
        return error_set(err, ERROR_TERMINAL, EINTR, "it was interrupted");
    if (k->error.code != 0)
        *err = k->error;
    return -k->error.code;
}

static void described(struct description *d, const struct error *err)
{
    struct making *k = d->owner;

    if (err && k->error.code == 0)
        k->error = *err;
    k->loop.stop = true;
}

/* What a backend program cannot enforce is known only to itself. */
static int ask_backend(struct making *k, const struct spec *spec, struct error *err)
{
    k->description = (struct description){.owner = k, .told = described};
    int r = description_ask(&k->description, &k->session, err);

    if (r == 0)
        r = wait_for_answer(k, err);
    return r < 0 ? r : description_admits(&k->description, spec, err);
}

/* Return: 0 when it stands. */
static int make(struct making *k, const struct spec *spec, struct error *err)
{
    int r = begin(k, err);

    if (r == 0 && !k->local)
        r = ask_backend(k, spec, err);
    if (r == 0)
        r = session_create(&k->session, &k->request, spec, err);
    return r < 0 ? r : wait_for_answer(k, err);
}

/* Nobody knows of it, or it is not as it was asked for: it goes, and that is waited for. */
static void undo(struct making *k)
{
    struct error ignored = ERROR_INIT;

    if (k->over || k->request.id == 0 || k->session.state == SESSION_OFF ||
        session_destroy(&k->session) < 0)
        return;
    loop_at(&k->loop, &k->patience, clock_after_us(UNDO_US));
    loop_forget(&k->loop, &k->signals); /* the one that has come is answered already */
    k->loop.stop = false;
    while (!k->over && !k->loop.stop)
        if (wait_for_it(k, &ignored) < 0)
            break;
}

static void let_go(struct making *k)
{
    k->session.over = NULL;
    session_forget(&k->request);
    description_done(&k->description);
    if (k->local && !k->over) /* the keeper lives on, and is nobody's child */
        k->session.child = (struct child)CHILD_NONE;
    session_end(&k->session);
    loop_done(&k->loop);
}

/* Inputs, and what is printed */

static int stage(struct making *k, const struct spec *spec, struct error *err)
{
    struct copy c = {.cli = k->cli, .handle = &k->handle, .quiet = !isatty(fileno(k->cli->err))};
    int r = 0;

    for (size_t i = 0; r == 0 && i < spec->inputs.n; i++) {
        const char *entry = spec->inputs.items[i], *equals = strchr(entry, '=');
        _cleanup_free_ char *source = strndup(entry, equals ? (size_t)(equals - entry) : 0);

        if (!source || !equals)
            return no_memory(err);
        r = copy_in(&c, source, equals + 1, COPY_AS, err);
    }
    return r;
}

static int print_made(struct making *k, bool json, struct error *err)
{
    int r = 0;

    if (json) {
        _cleanup_(handle_op_freep) struct atoll_op *op = atoll_inspect(k->handle.sandbox);

        r = handle_wait(&k->handle, op, err);
        if (r == 0) {
            struct atoll_info i = *atoll_op_info(op, 0);

            i.id = k->id;
            json_t *o = sandbox_json(&i);
            if (o)
                (void)json_object_set_new(o, "published", sandbox_json_published(&i));
            r = print_json(k->cli->out, o, err);
        }
    } else {
        fprintf(k->cli->out, "%s\n", k->id);
        for (size_t i = 0; i < k->published.n; i++)
            attach_log_published(k->cli, k->published.items[i]);
    }
    /* Before it is let go: nobody could find one whose id was not written. */
    return r < 0 ? r : print_flush(k->cli->out, "standard output", err);
}

static int make_all(struct making *k, const struct create_args *a, const struct spec *spec,
                    struct error *err)
{
    _cleanup_fd_ int lock = -EBADF;
    int r = handle_catch_signals(&k->handle, err);

    if (r == 0 && a->name && k->local) {
        lock = lock_names(err);
        r = lock < 0 ? lock : check_unused(a->name, err);
    }
    if (r < 0)
        return r;
    r = make(k, spec, err);
    fd_closep(&lock);
    if (r == 0 && (spec->inputs.n > 0 || a->json))
        r = handle_open(&k->handle, k->id, err);
    if (r == 0)
        r = stage(k, spec, err);
    if (r == 0)
        r = print_made(k, a->json, err);
    if (r < 0)
        undo(k);
    let_go(k);
    return r;
}

static int fill_spec(const struct create_args *a, bool verbose, struct spec *s, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    int r = spec_init(s) < 0 ? no_memory(err) : 0;

    if (r < 0)
        return r;
    s->lifetime_us = LIMIT_LIFETIME_DEFAULT_US;
    s->report_steps = verbose;
    r = spec_args_apply(&a->spec, environ, s, &problems, err);
    if (r == 0 && a->name)
        r = check_name(a->name, err);
    if (r == 0 && a->name && !(s->name = strdup(a->name)))
        r = no_memory(err);
    return r < 0 ? r : backend_admit(s, getenv("PATH"), err);
}

static int create_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct making k = {.cli = cli, .handle = HANDLE_INIT};
    struct arguments operands;
    struct spec spec = {0};
    struct create_args a;
    int r = command_parse(&cmd_create, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_create, &operands, 0, 0, err);
    if (r == 0)
        r = fill_spec(&a, a.verbose || cli->verbose, &spec, err);
    if (r == 0) {
        attach_prepare();
        k.backend = spec.backend;
        k.local = strcmp(spec.backend, "local") == 0;
        r = make_all(&k, &a, &spec, err);
    }
    r = handle_status(&k.handle, r, err);
    handle_done(&k.handle);
    string_list_done(&k.published);
    spec_done(&spec);
    options_done(create_options, ARRAY_SIZE(create_options), &a);
    return r;
}

static const struct command_example create_examples[] = {
    {"id=$(atoll create)", "make a sandbox for several commands"},
    {"atoll create --name box --volume .:/workspace",
     "one that is called box and sees this folder"},
    {"atoll create --input data.csv=/workspace/ --lifetime 10m", "with a file, for ten minutes"},
};

const struct command cmd_create = {
    .name = "create",
    .summary = "make a sandbox that stands until it is removed",
    .usage = "[OPTION]...",
    .description =
        "Makes a sandbox and prints its id. It stands until 'atoll rm', until its lifetime ends, "
        "which is an hour unless --lifetime says otherwise, or until nobody has used it for the "
        "--idle-timeout. Whatever ends it, nothing of it is left.\n\n"
        "What the backend cannot enforce is refused before anything is made, as 'atoll check' "
        "shows.\n\n"
        "An --input is copied before the id is printed. PATH is what the copy is called: a folder "
        "is filled with what is in SOURCE, a file becomes PATH, or is put into PATH when that ends "
        "with '/'. If it cannot be copied, the sandbox is removed again.",
    .options = create_options,
    .n_options = ARRAY_SIZE(create_options),
    .examples = create_examples,
    .n_examples = ARRAY_SIZE(create_examples),
    .run = create_run,
};

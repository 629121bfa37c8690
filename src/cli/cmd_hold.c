/* SPDX-License-Identifier: Apache-2.0 */
/* atoll hold: a command of the host that has a sandbox to itself meanwhile. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/attach.h"
#include "cli/handle.h"
#include "cli/host_command.h"
#include "client/claim.h"
#include "core/limits.h"
#include "core/lease.h"
#include "core/sandbox_id.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum { RELEASE_US = 10000000 };

struct hold_args {
    const char *owner, *holder;
    uint64_t keep;
};

#define FIELD(name) offsetof(struct hold_args, name)

static const struct option hold_options[] = {
    {.name = "owner",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(owner),
     .help = "whom the sandbox was made for, as it was given to create"},
    {.name = "holder",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(holder),
     .help = "who uses it now, the same name in each retry; otherwise the owner"},
    {.name = "keep",
     .arg = "TIME",
     .kind = OPTION_DURATION,
     .offset = FIELD(keep),
     .min = 1000,
     .max = LIMIT_TIME_MAX_US,
     .help = "if atoll dies, keep the sandbox this long for the same holder; otherwise it is free "
             "at once; not with a backend program"},
};

/* Everything is a source or timer of one loop. */
struct hold {
    struct cli *cli;
    const struct hold_args *args;
    char *id;
    struct loop loop;
    struct session session;
    struct session_request open; /* with a backend program */
    struct session_request look; /* who has it, if that may be us */
    uint32_t lease;              /* the generation that our environment gives */
    bool within;                 /* that is of this sandbox */
    struct claim claim;
    struct loop_source signals;
    struct loop_timer patience;
    struct host_command command;
    int signal_fd;
    int signal; /* that came before there was a command, or 0 */
    bool lost;  /* the lease, or the sandbox, while the command ran */
    struct error error;
};

static void fail(struct hold *h, const struct error *err)
{
    if (h->error.code == 0)
        h->error = *err;
    h->loop.stop = true;
}

/* The command works on, and must not: what it does to the sandbox would be refused anyway. */
static void give_up_command(struct hold *h, const char *why)
{
    char text[sizeof h->error.message];

    if (h->lost || h->command.pid == 0 || h->command.ended)
        return;
    h->lost = true;
    (void)snprintf(text, sizeof text, "%s", why);
    text_make_printable(text);
    fprintf(h->cli->err, "atoll: %s: %s; the command is told to end\n", h->id, text);
    (void)fflush(h->cli->err);
    host_command_signal(&h->command, SIGTERM);
}

static void lease_lost(struct session *s)
{
    give_up_command(s->owner, "the lease is over, its holder has attached once more");
}

static void session_over(struct session *s)
{
    struct hold *h = s->owner;

    if (h->command.pid == 0)
        fail(h, &s->error);
    else
        give_up_command(h, s->error.message);
}

static int signal_came(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct hold *h = source->owner;
    struct signalfd_siginfo info;

    (void)events;
    if (read(source->fd, &info, sizeof info) != sizeof info)
        return 0;
    if (info.ssi_signo == SIGCHLD) {
        l->stop = host_command_look(&h->command) || l->stop;
    } else if (h->command.pid != 0) {
        host_command_pass(&h->command, &info);
    } else if (info.ssi_signo != SIGCONT) {
        h->signal = (int)info.ssi_signo;
        l->stop = true;
    }
    return 0;
}

/* What is passed on to the command. One that the caller ignores (nohup) stays ignored. */
static int catch_signals(struct hold *h, struct error *err)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
        struct sigaction now;

        if (sigaction(passed[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, passed[i]);
    }
    h->signal_fd = loop_open_signals(&set);
    h->signals =
        (struct loop_source){.name = "signals", .fd = -EBADF, .owner = h, .ready = signal_came};
    int r =
        h->signal_fd < 0 ? h->signal_fd : loop_watch(&h->loop, &h->signals, h->signal_fd, EPOLLIN);
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "signals cannot be waited for: %s",
                             strerror(-r))
                 : 0;
}

/* --- taking it --- */

static void claimed(struct claim *c)
{
    struct hold *h = c->owner;

    h->loop.stop = true;
}

static void refused(struct claim *c, const struct error *err)
{
    fail(c->owner, err);
}

static const char *holder_of(const struct hold_args *a)
{
    return a->holder ? a->holder : a->owner;
}

static int claim(struct hold *h, struct error *err)
{
    const struct attach_request x = {
        .owner = h->args->owner, .holder = holder_of(h->args), .keep_us = h->args->keep};

    h->claim = (struct claim){.owner = h, .done = claimed, .failed = refused};
    return claim_attach(&h->claim, &h->session, &x, err);
}

/*
 * Under "atoll hold" of this sandbox and as its holder, we would take the lease from the very
 * command that has started us, or from the later attempt that has taken it from that one.
 */
static int judge_within(const struct hold *h, const struct sandbox_info *x, struct error *err)
{
    if (x->lease_state != LEASE_HELD || !x->holder || strcmp(x->holder, holder_of(h->args)) != 0)
        return 0;
    if (x->lease_generation == h->lease) {
        (void)error_set(err, ERROR_USAGE, EALREADY,
                        "this command has the lease already, as '%.150s'", x->holder);
        return error_remedy(err, "Run COMMAND without atoll hold%s",
                            h->lease > 0 ? ""
                                         : "; unset " HANDLE_LEASE_VARIABLE
                                           " if the one that set it has died");
    }
    (void)error_set(err, ERROR_USAGE, EALREADY,
                    "the lease that this command was given is over, its holder '%.150s' has "
                    "attached once more",
                    x->holder);
    return error_remedy(err, "Let this attempt end; unset " HANDLE_LEASE_VARIABLE
                             " to take the sandbox from the later one");
}

static int looked(struct session_request *q, struct message *m)
{
    struct hold *h = q->owner;
    struct sandbox_info info = {0};
    struct error err = ERROR_INIT;

    if (m->type == MSG_ERROR ? session_error(m, &err) < 0
                             : m->type != MSG_SANDBOX || sandbox_info_decode(m->payload, &info) < 0)
        return -EPROTO;
    if (err.code == 0)
        (void)judge_within(h, &info, &err);
    session_forget(q);
    if (err.code != 0 || claim(h, &err) < 0)
        fail(h, &err);
    return 0;
}

static void not_looked(struct session_request *q, const struct error *err)
{
    fail(q->owner, err);
}

/* Nothing is changed before it is known that we may. */
static int look_and_claim(struct hold *h, struct error *err)
{
    if (!h->within)
        return claim(h, err);
    h->look = (struct session_request){.owner = h, .told = looked, .failed = not_looked};
    return session_ask(&h->session, &h->look, MSG_INSPECT, NULL, NULL, 0, err);
}

static int opened(struct session_request *q, struct message *m)
{
    struct hold *h = q->owner;
    struct error err = ERROR_INIT;

    if (m->type == MSG_ERROR ? session_error(m, &err) < 0 : m->type != MSG_CREATED)
        return -EPROTO;
    session_forget(q);
    if (err.code != 0 || look_and_claim(h, &err) < 0)
        fail(h, &err);
    return 0;
}

static void not_opened(struct session_request *q, const struct error *err)
{
    fail(q->owner, err);
}

static int reach(struct hold *h, struct error *err)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    const char *opaque = sandbox_id_split(h->id, backend);
    bool local = strcmp(backend, "local") == 0;
    int r = local ? session_connect(&h->session, opaque, err)
                  : session_backend(&h->session, backend, err);

    h->session.owner = h;
    h->session.over = session_over;
    h->session.lease_lost = lease_lost;
    if (r == 0)
        r = session_watch(&h->session, &h->loop, err);
    if (r < 0)
        return r;
    h->open = (struct session_request){.owner = h, .told = opened, .failed = not_opened};
    return local ? look_and_claim(h, err) : session_open(&h->session, &h->open, opaque, err);
}

static int run_loop(struct hold *h, struct error *err)
{
    int r;

    h->loop.stop = false;
    r = loop_run(&h->loop);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot wait for the sandbox: %s", strerror(-r));
    if (h->error.code == 0)
        return 0;
    *err = h->error;
    return -err->code;
}

/* --- having it --- */

static int set_environment(const struct hold *h)
{
    _cleanup_free_ char *lease = NULL;

    if (asprintf(&lease, "%s#%u", h->id, h->claim.report.generation) < 0) {
        lease = NULL;
        return -ENOMEM;
    }
    return setenv(HANDLE_LEASE_VARIABLE, lease, 1) < 0 || setenv("ATOLL_SANDBOX", h->id, 1) < 0
               ? -errno
               : 0;
}

static int run_command_under(struct hold *h, char *const argv[], struct error *err)
{
    int r = set_environment(h);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot set a variable: %s", strerror(-r));
    r = host_command_start(&h->command, argv, err);
    return r < 0 ? r : run_loop(h, err);
}

static int too_late(struct loop *l, struct loop_timer *t)
{
    struct hold *h = t->owner;
    struct error err = ERROR_INIT;

    (void)l;
    (void)error_set(&err, ERROR_TERMINAL, ETIMEDOUT, "there is no answer");
    fail(h, &err);
    return 0;
}

/* The command has ended: whether the lease is given back or lost now does not change its status. */
static void release(struct hold *h)
{
    char holder[LIMIT_TEXT_BYTES + 1], text[sizeof h->error.message + 400];
    struct error err = ERROR_INIT;

    if (h->lost || h->session.state != SESSION_OPEN)
        return;
    (void)snprintf(holder, sizeof holder, "%s", holder_of(h->args));
    claim_done(&h->claim);
    h->claim = (struct claim){.owner = h, .done = claimed, .failed = refused};
    h->patience = (struct loop_timer){.name = "release", .owner = h, .due = too_late};
    loop_at(&h->loop, &h->patience, clock_after_us(RELEASE_US));
    h->command = (struct host_command){0};
    int r = claim_release(&h->claim, &h->session, holder, &err);
    if (r == 0)
        r = run_loop(h, &err);
    loop_at(&h->loop, &h->patience, CLOCK_NEVER);
    if (r == 0)
        return;
    error_format(&err, text, sizeof text);
    fprintf(h->cli->err, "atoll: %s could not be released: %s\n", h->id, text);
}

/* The status of the command, or of what kept it from running. */
static int hold(struct hold *h, char *const argv[], struct error *err)
{
    int r = reach(h, err);

    if (r == 0)
        r = run_loop(h, err);
    if (r < 0)
        return r;
    if (h->signal != 0)
        return OUTCOME_SIGNAL_BASE + h->signal;
    if (h->claim.warning[0])
        fprintf(h->cli->err, "atoll: %s: %s\n", h->id, h->claim.warning);
    r = run_command_under(h, argv, err);
    int status = h->lost ? CLI_EXIT_FAILED : h->command.status;
    int not_begun = h->command.not_begun;
    release(h);
    if (not_begun == 0)
        return r < 0 ? r : status;
    /* It was found missing, or cannot be executed: as a shell says it. */
    char text[1024];
    error_format(err, text, sizeof text);
    fprintf(h->cli->err, "atoll: %s\n", text);
    *err = (struct error)ERROR_INIT;
    return not_begun == ENOENT ? 127 : 126;
}

static int hold_sandbox(struct cli *cli, const struct hold_args *a, const char *text,
                        char *const argv[], struct error *err)
{
    struct hold h = {.cli = cli, .args = a, .session = SESSION_INIT, .signal_fd = -EBADF};
    int r = loop_init(&h.loop);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot open an event loop: %s", strerror(-r));
    host_command_prepare(&h.command);
    attach_prepare();
    r = catch_signals(&h, err);
    if (r == 0)
        r = handle_find(text, &h.id, err);
    if (r == 0)
        r = handle_within(h.id, &h.within, &h.lease, err);
    if (r == 0)
        r = hold(&h, argv, err);
    claim_done(&h.claim);
    session_forget(&h.open);
    session_forget(&h.look);
    h.session.over = NULL;
    session_end(&h.session);
    loop_done(&h.loop);
    fd_closep(&h.signal_fd);
    free(h.id);
    return r;
}

static int check(const struct hold_args *a, const struct arguments *operands, struct error *err)
{
    if (!a->owner) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "it was not said whom the sandbox was made for");
        return error_remedy(err, "Give the owner that create was given: --owner NAME");
    }
    if (operands->n > 1)
        return 0;
    (void)error_set(err, ERROR_USAGE, EINVAL, "no command was given to hold");
    return error_remedy(err, "Write it after '--': atoll hold ID --owner NAME -- COMMAND");
}

static int hold_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct hold_args a;
    int r = command_parse(&cmd_hold, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_hold, &operands, 1, INT32_MAX, err);
    if (r == 0)
        r = check(&a, &operands, err);
    return r < 0 ? r : hold_sandbox(cli, &a, operands.v[0], operands.v + 1, err);
}

static const struct command_example hold_examples[] = {
    {"atoll hold box --owner etl/42 --holder etl/42/analyse -- ./analyse.sh",
     "let a script work in the sandbox called box, and nobody else meanwhile"},
    {"atoll hold box --owner etl/42 --keep 10m -- ./analyse.sh",
     "keep it for a retry of ten minutes if this host kills the first attempt"},
};

const struct command cmd_hold = {
    .name = "hold",
    .summary = "run a command of this host that has a sandbox to itself",
    .usage = "ID --owner NAME [OPTION]... [--] COMMAND [ARG]...",
    .description =
        "Takes the lease of a sandbox that was created with an owner, runs COMMAND on this host, "
        "not in the sandbox, and gives the lease back when it has ended. Meanwhile nobody else "
        "runs commands there, writes files or changes what it may reach; reading is open to "
        "all.\n\n"
        "COMMAND finds ATOLL_SANDBOX, the sandbox's id, and ATOLL_LEASE in its environment. By "
        "that the commands of atoll that it starts act for the holder, as far as they are about "
        "this sandbox.\n\n"
        "The lease ends with atoll, also by SIGKILL, at once or after --keep. The same holder gets "
        "in at any time: a retry finds its files, and what an earlier attempt still does is "
        "refused. If the lease is lost, or the sandbox ends, COMMAND gets SIGTERM. SIGINT, "
        "SIGTERM, "
        "SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to it. With a terminal COMMAND is of "
        "the same job as atoll, and keys reach both; without one it has a process group of its "
        "own, and all of that gets the signals. Within COMMAND, the same holder need not hold the "
        "sandbox once more, and is refused.\n\n"
        "A backend program has tags in the place of leases. There only hold, an agent's tools "
        "and rm look who has the sandbox: a plain exec, write or cp of others is not refused. This "
        "keeps honest callers apart and is not a lock. Who dies there leaves its name behind; the "
        "same holder gets in, and takes it out with \"atoll hold ID --owner NAME --holder NAME -- "
        "true\".",
    .options = hold_options,
    .n_options = ARRAY_SIZE(hold_options),
    .ends_at = 2,
    .exit_status = "the command's own; 125 the sandbox cannot be had, or was lost meanwhile, "
                   "or atoll itself could not do it; 126 "
                   "found but not executable; 127 not found; 128+N ended by signal N",
    .examples = hold_examples,
    .n_examples = ARRAY_SIZE(hold_examples),
    .run = hold_run,
};

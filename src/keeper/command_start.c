/* SPDX-License-Identifier: Apache-2.0 */
/* Starting commands, and the processes inside that serve files. */
#include "keeper/command.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/limits.h"
#include "keeper/ending.h"
#include "keeper/lease.h"
#include "keeper/usage.h"
#include "wire/fault.h"
#include "base/guards.h"

/* How long it waits for another request, where idle time is counted, at most. */
#define FILES_SILENCE_US UINT64_C(10000000)

static int pass_on(struct keeper *k, uint32_t number, const struct exec_request *x, const int *fds,
                   size_t n_fds)
{
    size_t size = exec_request_size(x);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    exec_request_encode(&w, x);
    return !buf    ? -ENOMEM
           : w.bad ? -E2BIG
                   : keeper_tell_init(k, MSG_EXEC, number, buf, writer_len(&w), fds, n_fds);
}

/* The request as init gets it: the environment complete, the working directory and user decided. */
static int forward(struct keeper *k, uint32_t number, const struct exec_request *asked,
                   const int *fds, size_t n_fds)
{
    struct exec_request x = *asked;
    struct string_list env = {0};
    int r = env_build(&k->spec, asked->envp, asked->n_envp, asked->flags & EXEC_TTY, &env);

    if (r < 0)
        return r;
    x.envp = (const char **)(uintptr_t)env.items;
    x.n_envp = env.n;
    if (!x.workdir)
        x.workdir = k->spec.workdir ? k->spec.workdir : SPEC_WORKDIR_DEFAULT;
    if (!(x.flags & EXEC_USER_SET)) {
        x.flags |= EXEC_USER_SET;
        x.uid = k->spec.uid;
        x.gid = k->spec.gid;
    }
    const struct keeper_command *c = command_by_number(k, number);
    if (c && c->told) /* its start is an event, whoever else asks for it */
        x.flags |= EXEC_REPORT_START;
    r = pass_on(k, number, &x, fds, n_fds);
    string_list_done(&env);
    return r;
}

/* How many descriptors come with a request: those of the streams that it does not have in-band. */
static size_t expected_fds(const struct exec_request *x)
{
    if (x->flags & (EXEC_IN_BAND | EXEC_TTY | EXEC_DETACH))
        return 0;
    return x->flags & EXEC_STDIN ? 3 : 2;
}

static int judge(const struct connection *c, const struct message *m, const struct exec_request *x,
                 struct error *err)
{
    const struct keeper *k = c->keeper;

    if (k->state != KEEPER_CREATING && k->state != KEEPER_RUNNING)
        return error_set(err, ERROR_USAGE, ENOENT, "there is no sandbox yet to run a command in");
    if (x->n_envp > LIMIT_ENV_NAMES)
        return error_set(err, ERROR_USAGE, E2BIG, "more than %d variables", LIMIT_ENV_NAMES);
    if (lease_admits(c, err) < 0)
        return -err->code;
    if (x->flags & (EXEC_FILES | EXEC_READ_ONLY))
        return error_set(err, ERROR_USAGE, EINVAL,
                         "the flags FILES and READ_ONLY are not for clients");
    if (x->flags & EXEC_LAST && x->flags & (EXEC_IN_BAND | EXEC_DETACH))
        return error_set(err, ERROR_USAGE, EINVAL,
                         "EXEC_LAST does not go with in-band streams or a detached command");
    if (x->flags & EXEC_LAST && !k->spec.owned)
        return error_set(err, ERROR_USAGE, EINVAL,
                         "EXEC_LAST is for a sandbox that ends with its creator, not for one that "
                         "others find");
    if (x->flags & EXEC_DETACH && x->flags & (EXEC_TTY | EXEC_STDIN | EXEC_IN_BAND))
        return error_set(err, ERROR_USAGE, EINVAL, "a detached command has no streams");
    if (command_by_id(c, m->id))
        return error_set(err, ERROR_USAGE, EEXIST, "a command with id %u is running", m->id);
    if (m->n_fds != expected_fds(x))
        return error_set(err, ERROR_USAGE, EINVAL, "%zu descriptors came instead of %zu", m->n_fds,
                         expected_fds(x));
    return 0;
}

static int start_checked(struct connection *connection, struct message *m,
                         const struct exec_request *x, struct error *err)
{
    bool pipes = x->flags & EXEC_IN_BAND && !(x->flags & EXEC_TTY);
    struct keeper *k = connection->keeper;
    int fds[3] = {-EBADF, -EBADF, -EBADF};
    int n = judge(connection, m, x, err);

    if (n < 0)
        return n;
    struct keeper_command *c = command_new(connection, m->id, x);
    if (!c)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (pipes) {
        n = streams_open_pipes(&c->streams, x->flags & EXEC_STDIN, fds);
        if (n < 0) {
            command_forget(c);
            return error_set(err, ERROR_TERMINAL, -n, "cannot make pipes: %s", strerror(-n));
        }
    }
    int r = pipes ? forward(k, c->number, x, fds, (size_t)n)
                  : forward(k, c->number, x, m->fds, m->n_fds);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fd_closep(&fds[i]);
    if (r < 0) {
        command_forget(c);
        return error_set(err, ERROR_TERMINAL, -r, "cannot pass the command on: %s", strerror(-r));
    }
    if (k->state == KEEPER_RUNNING)
        command_begin_timeout(c);
    return 0;
}

/* After so long without a request it goes, so that a connection which nobody uses does not keep the
 * sandbox. (Clients since 1.3 open another one when they need it.) */
static uint64_t files_silence_us(uint64_t idle_us)
{
    return idle_us / 2 < FILES_SILENCE_US ? idle_us / 2 : FILES_SILENCE_US;
}

/* The process inside starts while its client hears of the connection: what it asks waits there. */
static int start_files(struct connection *connection, struct message *m, struct error *err)
{
    struct keeper *k = connection->keeper;
    const char *argv[] = {"files", NULL}, *envp[] = {NULL};
    struct error refusal = ERROR_INIT; /* of what writes */
    struct exec_request x = {
        .argv = argv,
        .n_argv = 1,
        .envp = envp,
        .workdir = k->spec.workdir ? k->spec.workdir : SPEC_WORKDIR_DEFAULT,
        .uid = k->spec.uid,
        .gid = k->spec.gid,
        .flags = EXEC_FILES | EXEC_USER_SET,
    };
    _cleanup_fd_ int ours = -EBADF, theirs = -EBADF;
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);
    int pair[2];

    if (k->state != KEEPER_RUNNING)
        return error_set(err, ERROR_USAGE, ENOENT, "there is no sandbox yet with files");
    if (command_by_id(connection, m->id))
        return error_set(err, ERROR_USAGE, EEXIST, "a command with id %u is running", m->id);
    if (lease_admits(connection, &refusal) < 0) { /* the client has the words for what is refused */
        x.flags |= EXEC_READ_ONLY;
        fault_encode(&w, &refusal);
    }
    if (k->spec.idle_timeout_us > 0 && connection->minor >= 3)
        x.timeout_us = files_silence_us(k->spec.idle_timeout_us);
    int r = io_pair(pair);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    ours = pair[0];
    theirs = pair[1];
    struct keeper_command *c = command_new(connection, m->id, &x);
    if (!c)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    r = pass_on(k, c->number, &x, &theirs, 1);
    if (r < 0) {
        command_forget(c);
        return error_set(err, ERROR_TERMINAL, -r, "cannot ask for files: %s", strerror(-r));
    }
    connection_send(connection, MSG_FILES_OPENED, m->id, &w, ours);
    return 0;
}

void command_start_files(struct connection *c, struct message *m)
{
    struct error err = ERROR_INIT;

    if (start_files(c, m, &err) < 0)
        connection_refuse(c, m->id, &err);
}

void command_start(struct connection *c, struct message *m)
{
    /* Every string takes a field; two more are the NULLs that end the lists. */
    size_t max = reader_left(&m->payload) / (FIELD_HEADER_BYTES + 1) + 3;
    _cleanup_free_ const char **strings = malloc(max * sizeof *strings);
    struct error err = ERROR_INIT;
    struct exec_request x;
    int r;

    if (!strings)
        r = error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    else if ((r = exec_request_decode(m->payload, strings, max, &x)) < 0)
        r = error_set(&err, ERROR_USAGE, -r, "the command cannot be read: %s", strerror(-r));
    else
        r = start_checked(c, m, &x, &err);
    if (r < 0)
        connection_refuse(c, m->id, &err);
}

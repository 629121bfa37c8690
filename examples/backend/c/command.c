/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands, as this program sees them: the pipes of their streams, and the link to the supervisor
 * of each. Nothing here waits; the library calls when a descriptor is ready or a timer is due.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"

enum { SILENCE_US = 100000 };

struct command {
    struct command *next;
    struct folder *folder;
    struct atoll_stream *stream; /* NULL once its end is reported */
    pid_t supervisor;
    int link, in, out[2]; /* this side's ends; -1: closed */
    bool full[2];         /* the client takes no more of it at present */
    bool ended;           /* its first process has; its last output may still be in the pipes */
    struct atoll_backend_exit how;
};

/* A descriptor must not be watched any more when it is closed. */
static void let_go(struct atoll_server *server, int *fd)
{
    if (*fd >= 0) {
        atoll_backend_watch(server, *fd, 0, NULL, NULL);
        close(*fd);
    }
    *fd = -1;
}

static void silent(struct atoll_server *server, void *arg);

static void command_free(struct atoll_server *server, struct command *c)
{
    let_go(server, &c->in);
    let_go(server, &c->out[0]);
    let_go(server, &c->out[1]);
    let_go(server, &c->link); /* then the supervisor ends what is left, and itself */
    atoll_backend_timer(server, ATOLL_FOREVER, silent, c);
    waitpid(c->supervisor, NULL, 0);
    for (struct command **at = &c->folder->commands; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    free(c);
}

void commands_end(struct atoll_server *server, struct folder *f)
{
    while (f->commands)
        command_free(server, f->commands);
}

static void report_end(struct atoll_server *server, struct command *c)
{
    let_go(server, &c->in);
    let_go(server, &c->out[0]);
    let_go(server, &c->out[1]);
    atoll_stream_exited(c->stream, &c->how); /* the stream is gone now */
    c->stream = NULL;
}

/* After each event: is the command over, is it all over? May free @c. */
static void settle(struct atoll_server *server, struct command *c)
{
    if (c->ended && c->stream && c->out[0] < 0 && c->out[1] < 0)
        report_end(server, c);
    /* A client that is slow is not silence; so there is a timer only while nothing is full. */
    bool waits = c->ended && c->stream && !c->full[0] && !c->full[1];
    atoll_backend_timer(server, waits ? SILENCE_US : ATOLL_FOREVER, silent, c);
    if (!c->stream && c->link < 0)
        command_free(server, c);
}

/* The command has ended and nothing came for a while: whoever still holds its streams is a process
 * that it has left behind, for which nobody waits. */
static void silent(struct atoll_server *server, void *arg)
{
    struct command *c = arg;

    report_end(server, c);
    settle(server, c);
}

static void output_ready(struct atoll_server *server, int fd, short events, void *arg)
{
    struct command *c = arg;
    int i = fd == c->out[0] ? 0 : 1;
    char buf[32768];
    /* Never read more than the client takes. The pipe fills, and the command has to wait: that is
     * all there is to flow control here. */
    size_t room = atoll_stream_room(c->stream, i + 1);
    ssize_t n = 0;

    (void)events;
    c->full[i] = room == 0;
    if (c->full[i])
        atoll_backend_watch(server, fd, 0, NULL, NULL); /* until folder_room() */
    else
        n = read(fd, buf, room < sizeof buf ? room : sizeof buf);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0) {
        atoll_stream_output(c->stream, i + 1, buf, (size_t)n);
    } else if (!c->full[i]) {
        atoll_stream_output(c->stream, i + 1, NULL, 0); /* the end of this one */
        let_go(server, &c->out[i]);
    }
    settle(server, c);
}

void folder_room(struct atoll_server *server, struct atoll_stream *stream, int which)
{
    struct command *c = atoll_stream_data(stream);

    c->full[which - 1] = false;
    if (c->out[which - 1] >= 0)
        atoll_backend_watch(server, c->out[which - 1], POLLIN, output_ready, c);
    settle(server, c);
}

static void input_ready(struct atoll_server *server, int fd, short events, void *arg)
{
    struct command *c = arg;

    (void)events;
    atoll_backend_watch(server, fd, 0, NULL, NULL);
    if (c->stream)
        atoll_stream_want_input(c->stream); /* which calls folder_input() with what it has kept */
}

size_t folder_input(struct atoll_server *server, struct atoll_stream *stream, const void *data,
                    size_t len, bool end)
{
    struct command *c = atoll_stream_data(stream);
    ssize_t n = 0;

    if (c->in < 0)
        return len; /* nobody reads it any more: taken, and dropped */
    if (len > 0)
        n = write(c->in, data, len);
    if (n < 0 && errno == EAGAIN)
        n = 0;
    else if (n < 0 || (end && (size_t)n == len)) {
        let_go(server, &c->in);
        return len;
    }
    if ((size_t)n < len)
        atoll_backend_watch(server, c->in, POLLOUT, input_ready, c);
    return (size_t)n;
}

static void order(struct atoll_stream *stream, unsigned char what)
{
    struct command *c = atoll_stream_data(stream);

    if (!c->ended)
        send(c->link, &what, 1, MSG_NOSIGNAL);
}

void folder_signal(struct atoll_server *server, struct atoll_stream *stream, int signal)
{
    (void)server;
    order(stream, (unsigned char)signal);
}

void folder_stop(struct atoll_server *server, struct atoll_stream *stream)
{
    (void)server;
    order(stream, END_ALL);
}

static void link_ready(struct atoll_server *server, int fd, short events, void *arg)
{
    struct command *c = arg;
    struct report r = {.how = {.signal = SIGKILL, .reason = ATOLL_KILLED}};
    ssize_t n = recv(fd, &r, sizeof r, 0);

    (void)events;
    if (c->stream && !c->ended) { /* a report; or the supervisor was killed before it had one */
        c->ended = true;
        c->how = r.how;
    }
    if (n <= 0) /* nothing of the command is left */
        let_go(server, &c->link);
    settle(server, c);
}

/* Adds NAME=VALUE in place of an earlier one of that name. */
static void env_put(char **env, size_t *n, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1, i = 0;

    while (i < *n && strncmp(env[i], entry, name) != 0)
        i++;
    env[i] = (char *)(uintptr_t)entry;
    *n += i == *n;
}

/* The environment: what every command gets, then the spec's, then the call's. Nothing of ours. */
static char **environment(const struct folder *f, const struct atoll_backend_exec *x, char *home)
{
    const char *end = f->record + f->record_len;
    size_t n = 0, max = 4;
    char **env;

    for (const char *p = f->record; p < end; p += strlen(p) + 1)
        max++;
    while (x->env[n])
        n++;
    env = calloc(max + n, sizeof *env);
    if (!env)
        return NULL;
    n = 0;
    env_put(env, &n, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    env_put(env, &n, "LANG=C.UTF-8");
    env_put(env, &n, home);
    for (const char *p = f->record; p < end; p += strlen(p) + 1)
        if (strncmp(p, "env=", 4) == 0)
            env_put(env, &n, p + 4);
    for (size_t i = 0; x->env[i]; i++)
        env_put(env, &n, x->env[i]);
    return env;
}

/* Pipes: fds[0] of each is read from. Those of the command come to its side blocking. */
static int open_pipes(int in[2], int out[2], int err[2], int link[2])
{
    int *const all[] = {in, out, err};

    for (size_t i = 0; i < 3; i++)
        if (pipe2(all[i], O_CLOEXEC) < 0)
            return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0)
        return -errno;
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    return 0;
}

/* In the new process: only the command's ends and the link, at the numbers where they belong. */
static void lay_out(const int theirs[4])
{
    int high[4];

    for (int i = 0; i < 4; i++) /* out of the way first, or one would overwrite another */
        high[i] = fcntl(theirs[i], F_DUPFD, 16);
    for (int i = 0; i < 4; i++)
        dup2(high[i], i);
    fcntl(LINK_FD, F_SETFD, FD_CLOEXEC);
    syscall(SYS_close_range, LINK_FD + 1, ~0u, 0); /* other commands' pipes, the client's stream */
}

static pid_t start(const struct folder *f, const struct atoll_backend_exec *x, struct command *c)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, link[2] = {-1, -1};
    char home[PATH_MAX];
    char **env;
    pid_t pid = -1;

    snprintf(home, sizeof home, "HOME=%s/root", f->path);
    env = environment(f, x, home);
    if (env && open_pipes(in, out, err, link) == 0)
        pid = fork();
    if (pid == 0) {
        lay_out((int[]){in[0], out[1], err[1], link[1]});
        supervise(x, env, f);
    }
    free(env);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    close(link[1]);
    c->in = in[1];
    c->out[0] = out[0];
    c->out[1] = err[0];
    c->link = link[0];
    return pid;
}

void folder_exec(struct atoll_server *server, void *sandbox, const struct atoll_backend_exec *x,
                 struct atoll_stream *stream)
{
    struct folder *f = sandbox;
    struct command *c = calloc(1, sizeof *c);
    struct report r;

    if (x->user_set || !c) {
        atoll_stream_error(stream, ATOLL_USAGE, c ? EOPNOTSUPP : ENOMEM,
                           c ? "commands run as the user of this program" : "out of memory",
                           c ? "Leave the user out" : NULL);
        free(c);
        return;
    }
    c->folder = f;
    c->stream = stream;
    c->next = f->commands;
    f->commands = c;
    c->supervisor = start(f, x, c);
    atoll_stream_set_data(stream, c);
    /* The one wait: a millisecond, until the program is executed, or known not to be. */
    if (c->supervisor < 0 || recv(c->link, &r, sizeof r, 0) != sizeof r) {
        atoll_stream_error(stream, ATOLL_TERMINAL, EAGAIN, "cannot start a process", NULL);
        command_free(server, c);
        return;
    }
    if (r.how.start_errno) {
        c->how = r.how;
        report_end(server, c);
        command_free(server, c);
        return;
    }
    atoll_stream_started(stream, (uint32_t)r.pid);
    if (!x->wants_stdin)
        let_go(server, &c->in); /* it reads the end at once */
    atoll_backend_watch(server, c->out[0], POLLIN, output_ready, c);
    atoll_backend_watch(server, c->out[1], POLLIN, output_ready, c);
    atoll_backend_watch(server, c->link, POLLIN, link_ready, c);
}

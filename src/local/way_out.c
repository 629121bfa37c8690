/* SPDX-License-Identifier: Apache-2.0 */
/* Visitors: processes that enter a sandbox's network for one job. */
#include "local/way_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "local/inside_network.h"
#include "local/network.h"
#include "local/refusal.h"
#include "wire/control.h"
#include "wire/fault.h"
#include "base/guards.h"

enum {
    SOCKETS = 48, /* that one VISIT_SOCKETS brings */
    FAULT_BYTES = 2048,
};

#define SEND_PATIENCE_US UINT64_C(10000000)

/* What a visitor has to close, since the copies would keep others' sockets open. */
static void close_all_but(const int *keep, size_t n)
{
    unsigned first = 3;

    for (;;) {
        unsigned next = ~0u;

        for (size_t i = 0; i < n; i++)
            if (keep[i] >= (int)first && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next > first)
            (void)syscall(SYS_close_range, first, next == ~0u ? next : next - 1, 0);
        if (next == ~0u)
            return;
        first = next + 1;
    }
}

static int refused(const char *what, struct error *err)
{
    const struct step step = {.source = what};

    return refusal_explain(REFUSAL_CALL, &step, errno, err);
}

/* One message without a payload. */
static int send_sockets(int fd, uint16_t type, const int *fds, size_t n, struct error *err)
{
    const struct frame f = {.type = type};
    const uint64_t deadline_us = clock_after_us(SEND_PATIENCE_US);
    uint8_t head[FRAME_HEADER_BYTES];
    int r;

    frame_header(&f, head);
    while ((r = io_send_packet(fd, head, sizeof head, NULL, 0, fds, n)) == -EAGAIN) {
        r = io_wait(fd, POLLOUT, deadline_us);
        if (r < 0)
            break;
    }
    return r == 0 ? 0
                  : error_set(err, ERROR_TERMINAL, -r,
                              "the egress process does not take its sockets: %s", strerror(-r));
}

/* The death of the keeper ends the visitor, also after a change of credentials, which takes that
 * back (prctl(2), PR_SET_PDEATHSIG). */
static void end_with(pid_t keeper)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(1);
}

static int enter(const struct visit *v, pid_t keeper, struct error *err)
{
    bool make = v->job == VISIT_MAKE;

    if (setns(v->pid_fd, make ? CLONE_NEWUSER : CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return refused("entering the sandbox's namespaces (setns(2))", err);
    end_with(keeper);
    if (!make)
        return 0;
    if (unshare(CLONE_NEWNET) < 0) {
        const struct step net = {.source = "net"};

        return refusal_explain(REFUSAL_NAMESPACES, &net, errno, err);
    }
    int r = network_loopback_up();
    const struct step network = {.kind = STEP_NETWORK};
    return r < 0 ? refusal_explain(REFUSAL_STEP, &network, -r, err) : 0;
}

static int make_way_out(const struct visit *v, struct error *err)
{
    int fds[INSIDE__MAX];
    int r = inside_network_open(v->reach, fds, err);

    if (r < 0)
        return r;
    return send_sockets(v->egress_fd, MSG_INSIDE, fds, ARRAY_SIZE(fds), err);
}

static int bring_sockets(const struct visit *v, struct error *err)
{
    int fds[SOCKETS];
    int r = inside_network_sockets(fds, ARRAY_SIZE(fds), err);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fds); i += IO_FDS_MAX)
        r = send_sockets(v->egress_fd, MSG_SOCKETS, fds + i, IO_FDS_MAX, err);
    return r;
}
_Static_assert(SOCKETS % IO_FDS_MAX == 0, "the last packet of sockets would not be full");

static int hand_over(const struct visit *v, struct error *err)
{
    _cleanup_fd_ int net = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    if (net < 0)
        return refused("opening /proc/thread-self/ns/net", err);
    network_hand_over(v->setup_fd, net);
    return 0;
}

static int work(const struct visit *v, struct error *err)
{
    int r = -EINVAL;

    switch (v->job) {
    case VISIT_MAKE:
        r = make_way_out(v, err);
        return r < 0 ? r : hand_over(v, err);
    case VISIT_OPEN:
        return make_way_out(v, err);
    case VISIT_CHANGE:
        return inside_network_change(v->reach, err);
    case VISIT_SOCKETS:
        return bring_sockets(v, err);
    }
    return r;
}

/* A packet of one byte: it is done. A longer one is an error. */
static void report(int fd, const struct error *err)
{
    uint8_t buf[FAULT_BYTES] = {0};
    struct writer w = writer_over(buf, sizeof buf);

    if (err->code == 0)
        (void)writer_reserve(&w, 1);
    else
        fault_encode(&w, err);
    (void)io_send_packet(fd, buf, writer_len(&w), NULL, 0, NULL, 0);
}

__attribute__((noreturn)) static void visitor_main(const struct visit *v, int fd, pid_t keeper)
{
    const int keep[] = {fd, v->pid_fd, v->job == VISIT_CHANGE ? -EBADF : v->egress_fd,
                        v->job == VISIT_MAKE ? v->setup_fd : -EBADF};
    struct error err = ERROR_INIT;

    (void)prctl(PR_SET_NAME, "atoll-visitor");
    end_with(keeper);
    close_all_but(keep, ARRAY_SIZE(keep));
    int r = enter(v, keeper, &err);
    if (r == 0)
        r = work(v, &err);
    report(fd, &err);
    if (r < 0 && v->job == VISIT_MAKE) /* last: whoever hears of it there asks for the report */
        network_hand_over(v->setup_fd, r);
    _exit(0);
}

int visitor_start(const struct visit *v, struct visitor *ret, struct error *err)
{
    _cleanup_fd_ int ours = -EBADF, theirs = -EBADF;
    int pair[2], pid_fd = -EBADF;
    pid_t keeper = getpid();
    int r = io_pair(pair);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    ours = pair[0];
    theirs = pair[1];
    long pid = syscall(SYS_clone, (unsigned long)CLONE_PIDFD | SIGCHLD, NULL, &pid_fd, NULL, NULL);
    if (pid < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot start a process: %s", strerror(errno));
    if (pid == 0)
        visitor_main(v, theirs, keeper);
    *ret = (struct visitor){.pid = (pid_t)pid, .pid_fd = pid_fd, .fd = TAKE_FD(ours)};
    return 0;
}

/* Not its status, which is lost when ended children are ignored (sigaction(2), SA_NOCLDWAIT). */
static int read_report(int fd, struct error *err)
{
    int fds[IO_FDS_MAX];
    uint8_t buf[FAULT_BYTES];
    size_t n_fds = 0;
    ssize_t n = io_recv_packet(fd, buf, sizeof buf, fds, &n_fds);

    while (n_fds > 0)
        fd_closep(&fds[--n_fds]);
    if (n == 1)
        return 0;
    if (n > 1 && fault_decode(reader_over(buf, (size_t)n), err) == 0)
        return -err->code;
    return error_set(err, ERROR_TERMINAL, EIO,
                     "the process that changes the sandbox's network was killed");
}

int visitor_end(struct visitor *v, struct error *err)
{
    if (v->pid <= 0)
        return error_set(err, ERROR_TERMINAL, ECHILD, "no process is in the sandbox's network");
    (void)syscall(SYS_pidfd_send_signal, v->pid_fd, SIGKILL, NULL, 0);
    while (waitpid(v->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    int r = read_report(v->fd, err);
    fd_closep(&v->pid_fd);
    fd_closep(&v->fd);
    *v = (struct visitor)VISITOR_INIT;
    return r < 0 ? error_context(err, "way out") : 0;
}

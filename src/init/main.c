/* SPDX-License-Identifier: Apache-2.0 */
/* Init's loop: messages from the keeper, and children that end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "init/init.h"
#include "base/guards.h"

static void signal_command(struct init *i, uint32_t id, struct reader message)
{
    struct command *c = command_find(i, id);
    uint32_t signal, flags;

    if (c && number_decode(message, TAG_SIGNAL_FLAGS, &flags) == 0 && flags & SIGNAL_ENDS_ALL)
        c->ends_all = true;
    /* Every command leads a session and so a process group; it may have ended meanwhile. */
    if (c && number_decode(message, TAG_SIGNAL, &signal) == 0 && signal <= 64 &&
        kill(-c->pid, (int)signal) < 0)
        (void)kill(c->pid, (int)signal);
}

/* Of a command that has been reaped what it left behind: its client may not know of its end yet. */
static void kill_command(struct init *i, uint32_t id, struct reader message)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    uint64_t mark;
    uint32_t first;
    int r;

    if (id == 0) {
        r = number_decode(message, TAG_COMMAND_NUMBER, &first) < 0 ? -EPROTO : kill_left(i, first);
    } else {
        mark = command_find_mark(i, id);
        r = kill_marked(i, &mark, mark != 0);
    }
    field_put_u32(&w, TAG_ERROR_CODE, (uint32_t)-r);
    link_send(MSG_KILLED, id, &w, -1);
}

static void serve(struct init *i, const struct frame *f, struct reader message)
{
    switch (f->type) {
    case MSG_EXEC:
        command_exec(i, f->id, message);
        break;
    case MSG_SIGNAL:
        signal_command(i, f->id, message);
        break;
    case MSG_KILL:
        kill_command(i, f->id, message);
        break;
    default:
        break; /* a keeper never sends others */
    }
}

/* Opens what init needs; anything missing is the end, since nothing could be reported later. */
static int prepare(struct init *i)
{
    sigset_t set;

    /* The name is what `ps` shows; from exec it would be that of a memory file. */
    if (prctl(PR_SET_NAME, "atoll-init", 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        _exit(1);
    i->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (i->null_fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        _exit(1);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        _exit(1);
    return fd;
}

/* The set-up gives two arguments or none: oom_own and oom_commands of struct init. */
int main(int argc, char **argv)
{
    static struct init init; /* large and zero: pages that are never touched cost nothing */
    int signals = prepare(&init);
    bool announced = false;

    if (argc == 3 && fcntl(INIT_OOM_FD, F_SETFD, FD_CLOEXEC) == 0) {
        init.oom_own = argv[1];
        init.oom_commands = argv[2];
    } else if (argc == 3) {       /* otherwise the number is that of something else */
        (void)close(INIT_OOM_FD); /* rather none than one that commands inherit */
    }
    confine(&init);

    for (;;) {
        struct pollfd p[2] = {{.fd = INIT_CHANNEL_FD, .events = POLLIN},
                              {.fd = signals, .events = POLLIN}};
        struct signalfd_siginfo ignored;
        struct frame f;
        struct reader message;
        int r;

        (void)mark_prepare(&init); /* what fails now fails the next command */
        if (poll(p, 2, announced ? -1 : 0) < 0 && errno != EINTR)
            _exit(1);
        if (p[1].revents) { /* read first: a child that ends from here on is told of anew */
            (void)!read(signals, &ignored, sizeof ignored);
            reap_all(&init);
        }
        while ((r = link_receive(&init, &f, &message)) > 0)
            serve(&init, &f, message);
        if (r < 0)
            _exit(0); /* the keeper is gone */
        /* After a request that waited already: its command runs while the keeper hears of this. */
        if (!announced) {
            struct writer nothing = writer_over(init.message, 0);

            link_send(MSG_READY, 0, &nothing, -1);
            announced = true;
        }
    }
}

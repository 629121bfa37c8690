/* SPDX-License-Identifier: Apache-2.0 */
/* The process that serves file operations: how it comes to be, and its loop. */
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/guards.h"

enum { UMASK = 022 };

static void serve(struct files *f, const struct frame *frame, struct reader message)
{
    struct file_request x;

    f->id = frame->id;
    f->path[0] = '\0';
    if (frame->type < MSG_READ || frame->type > MSG_UNPACK) {
        files_fault(f, -ENOSYS);
        return;
    }
    if (file_request_decode(message, &x) < 0) {
        files_fault(f, -EPROTO);
        return;
    }
    memcpy(f->path, x.path, strlen(x.path) + 1);
    if (f->read_only && (frame->type == MSG_WRITE || frame->type == MSG_UNPACK)) {
        link_close_fds(f->link); /* so that whoever sends the content does not wait for ever */
        files_fault(f, -EROFS);
        return;
    }
    /* Each time anew: the folder may have been replaced meanwhile. */
    if (x.path[0] != '/' && chdir(f->workdir) < 0) {
        files_fault(f, -errno);
        return;
    }
    switch (frame->type) {
    case MSG_READ:
        files_read(f, &x);
        break;
    case MSG_STAT:
        files_stat(f, &x);
        break;
    case MSG_LIST:
        files_list(f, &x);
        break;
    case MSG_WRITE:
        files_write(f, &x);
        break;
    case MSG_PACK:
        files_pack(f, &x);
        break;
    case MSG_UNPACK:
        files_unpack(f, &x);
        break;
    default:
        files_fault(f, -ENOSYS);
        break;
    }
}

/*
 * Nobody has asked for anything for as long as this process may wait. What the client sends from
 * here on does not arrive, and it is told so (EPIPE); what came a moment before is handed back as
 * it is, and the client asks it of another process.
 */
__attribute__((noreturn)) static void leave(struct files *f)
{
    struct reader message;
    struct frame frame;

    (void)shutdown(INIT_CHANNEL_FD, SHUT_RD);
    while (link_receive(f->link, &frame, &message) > 0) {
        struct writer nothing = writer_over(f->reply, sizeof f->reply);

        if (frame.type >= MSG_READ && frame.type <= MSG_UNPACK && frame.type != MSG_COMMIT)
            link_send(MSG_ENDED, frame.id, &nothing, f->link->n_fds > 0 ? f->link->fds[0] : -1);
    }
    _exit(FILES_EXIT_SILENT);
}

__attribute__((noreturn)) static void files_main(struct files *f)
{
    for (;;) {
        struct pollfd p = {.fd = INIT_CHANNEL_FD, .events = POLLIN};
        struct reader message;
        struct frame frame;
        int r = poll(&p, 1, f->silence_ms);

        if (r < 0 && errno != EINTR)
            _exit(1);
        if (r == 0)
            leave(f);
        while ((r = link_receive(f->link, &frame, &message)) > 0)
            /* What comes between the parts of a write, or late: COMMIT and CANCEL of one that has
             * failed already. */
            if (frame.type != MSG_COMMIT && frame.type != MSG_CANCEL)
                serve(f, &frame, message);
        if (r < 0)
            _exit(0);
    }
}

/* In the child: like a command, but for the program. */
__attribute__((noreturn)) static void files_child(struct init *i, const struct exec_request *x,
                                                  int fd)
{
    static struct files f;
    sigset_t none;

    /* The request lies in the buffer that the first message will be read into. */
    f.link = i;
    if (!x->workdir || strlen(x->workdir) >= sizeof f.workdir)
        _exit(1);
    memcpy(f.workdir, x->workdir, strlen(x->workdir) + 1);
    f.read_only = x->flags & EXEC_READ_ONLY;
    f.silence_ms = x->timeout_us > 0 ? (int)(x->timeout_us / 1000 % INT32_MAX) + 1 : -1;
    (void)setsid();
    (void)prctl(PR_SET_NAME, "atoll-files", 0, 0, 0);
    if (dup2(i->null_fd, 0) < 0 || dup2(i->null_fd, 1) < 0 || dup2(i->null_fd, 2) < 0 ||
        dup2(fd, INIT_CHANNEL_FD) < 0 || syscall(SYS_close_range, INIT_CHANNEL_FD + 1, ~0u, 0) < 0)
        _exit(1);
    i->n_fds = 0;
    i->begun = false;
    (void)umask(UMASK);
    if (chdir("/") < 0 || child_identity(x) < 0)
        _exit(1);
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an answer, not an end */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    files_main(&f);
}

pid_t files_start(struct init *i, const struct exec_request *x, int fd, uint64_t *ret_mark)
{
    int r = mark_prepare(i);
    /* fork(2) in the raw: libc's would write into its own tables, and there are no threads. */
    pid_t pid = r < 0 ? -1 : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

    if (pid < 0)
        return r < 0 ? r : -errno;
    if (pid == 0)
        files_child(i, x, fd);
    *ret_mark = mark_take(i);
    return pid;
}

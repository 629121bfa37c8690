/* SPDX-License-Identifier: Apache-2.0 */
/* The process that serves file operations: how it comes to be, its loop, and what it answers. */
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/proc_path.h"
#include "base/guards.h"

enum { UMASK = 022 };

void files_fault(struct files *f, int code)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    const struct file_fault x = {.code = (uint32_t)-code, .path = f->path};

    file_fault_encode(&w, 0, &x);
    link_send(MSG_ERROR, f->id, &w, -1);
}

void files_fault_kind(struct files *f, uint32_t kind)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    const struct file_fault x = {
        .code = kind == FILE_FOLDER ? EISDIR : EINVAL, .path = f->path, .kind = kind};

    /* A device has no end: whatever the limit, it is over it. */
    file_fault_encode(&w, kind == FILE_DEVICE ? 1 : 0, &x);
    link_send(MSG_ERROR, f->id, &w, -1);
}

void files_fault_size(struct files *f, uint64_t size, uint64_t max)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    const struct file_fault x = {.code = EFBIG, .path = f->path, .size = size, .max = max};

    file_fault_encode(&w, 1, &x);
    link_send(MSG_ERROR, f->id, &w, -1);
}

void files_done(struct files *f, const struct writer *w)
{
    link_send(MSG_DONE, f->id, w, -1);
}

uint32_t files_kind(mode_t mode)
{
    if (S_ISREG(mode))
        return FILE_REGULAR;
    if (S_ISDIR(mode))
        return FILE_FOLDER;
    if (S_ISLNK(mode))
        return FILE_LINK;
    if (S_ISFIFO(mode))
        return FILE_FIFO;
    return S_ISSOCK(mode) ? FILE_SOCKET : FILE_DEVICE;
}

struct file_info files_info(const struct stat *st, const char *name, const char *target)
{
    int64_t s = st->st_mtim.tv_sec;

    return (struct file_info){
        .name = name,
        .kind = files_kind(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime_ns = s < 0 ? 0 : (uint64_t)s * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
        .link_target = target,
    };
}

int files_look(const char *path, int flags, struct stat *ret)
{
    int fd = open(path, O_PATH | O_CLOEXEC | flags);

    if (fd < 0)
        return -errno;
    if (fstat(fd, ret) < 0) {
        int r = -errno;

        (void)close(fd);
        return r;
    }
    return fd;
}

int files_reopen(int fd, int flags)
{
    char path[PROC_PATH_BYTES], name[16] = "fd/";
    size_t at = 3;
    unsigned scale = 1;

    while ((unsigned)fd / scale >= 10)
        scale *= 10;
    for (; scale > 0; scale /= 10)
        name[at++] = (char)('0' + (unsigned)fd / scale % 10);
    name[at] = '\0';
    proc_path(path, getpid(), name);
    int r = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return r < 0 ? -errno : r;
}

void files_temporary(char ret[static 24])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[8] = {0};

    (void)!getrandom(random, sizeof random, 0); /* O_EXCL decides, not this */
    memcpy(ret, ".atoll-", 7);
    for (size_t i = 0; i < sizeof random; i++) {
        ret[7 + 2 * i] = digits[random[i] >> 4];
        ret[8 + 2 * i] = digits[random[i] & 15];
    }
    ret[23] = '\0';
}

int files_write_all(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t files_read_some(int fd, void *buf, size_t len)
{
    ssize_t n;

    do
        n = read(fd, buf, len);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

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

__attribute__((noreturn)) static void files_main(struct files *f)
{
    for (;;) {
        struct pollfd p = {.fd = INIT_CHANNEL_FD, .events = POLLIN};
        struct reader message;
        struct frame frame;
        int r;

        if (poll(&p, 1, -1) < 0 && errno != EINTR)
            _exit(1);
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

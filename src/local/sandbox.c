/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and ending a local sandbox, seen from its keeper. */
#include "local/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "local/init_image.h"
#include "local/landlock.h"
#include "local/network.h"
#include "local/refusal.h"
#include "local/setup.h"
#include "wire/control.h"
#include "base/guards.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Init in a memory file that nothing can change any more: what runs inside
 * never gets hold of a file of the host's through /proc/1/exe. */
static int open_init_image(struct error *err)
{
    _cleanup_fd_ int fd = memfd_create("atoll-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    int r;

    if (fd < 0 && errno == EINVAL) /* before 6.3 there was no flag, and all were executable */
        fd = memfd_create("atoll-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return refusal_explain(REFUSAL_MEMFD, NULL, errno, err);
    r = io_write_full(fd, init_image_start, (size_t)(init_image_end - init_image_start),
                      CLOCK_NEVER);
    if (r == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        r = -errno;
    return r < 0 ? refusal_explain(REFUSAL_MEMFD, NULL, -r, err) : TAKE_FD(fd);
}

static int write_map(pid_t pid, const char *name, const struct plan *p)
{
    char path[64], line[64];
    int n = snprintf(line, sizeof line, "0 %u %u", p->range_start, p->range_count);

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, line, (size_t)n) < 0)
        return -errno;
    return 0;
}

static int send_go(int link_fd, uint32_t id, int fd)
{
    struct frame f = {.type = MSG_GO, .id = id};
    uint8_t head[FRAME_HEADER_BYTES];

    frame_header(&f, head);
    for (;;) {
        int r = io_send_packet(link_fd, head, sizeof head, NULL, 0, &fd, fd >= 0 ? 1 : 0);

        if (r != -EAGAIN)
            return r;
        r = io_wait(link_fd, POLLOUT, CLOCK_NEVER);
        if (r < 0)
            return r;
    }
}

static int set_up_is_gone(int r, struct error *err)
{
    return error_set(err, ERROR_TERMINAL, -r, "the set-up process is gone: %s", strerror(-r));
}

/* A detached copy of the host's @source on which owners are shifted into the
 * sandbox's range, so that the caller's files are root's inside and new ones
 * are the caller's outside. */
static int idmapped_mount(const char *source, bool read_only, int userns_fd)
{
    struct mount_attr set = {
        .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                    (read_only ? MOUNT_ATTR_RDONLY : 0u),
        .propagation = MS_PRIVATE,
        .userns_fd = (uint64_t)userns_fd,
    };
    _cleanup_fd_ int fd =
        open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (fd < 0)
        return -errno;
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Mounts that need the keeper's authority, since ids are shifted on them. */
static int hand_over_mounts(const struct sandbox *sb, struct error *err)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", sb->pid);
    _cleanup_fd_ int userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return refusal_explain(REFUSAL_MAPS, NULL, errno, err);
    for (size_t i = 0; i < sb->plan->n; i++) {
        const struct step *step = &sb->plan->steps[i];
        bool image = step->kind == STEP_OVERLAY;

        if (step->kind != STEP_VOLUME && !image)
            continue;
        _cleanup_fd_ int fd =
            idmapped_mount(step->source, image || (step->flags & STEP_RO), userns);
        if (fd < 0)
            return refusal_explain(REFUSAL_IDMAP, step, -fd, err);
        int r = send_go(sb->link_fd, (uint32_t)(image ? sb->plan->n_volumes : step->value), fd);
        if (r < 0)
            return set_up_is_gone(r, err);
    }
    return 0;
}

/* The keeper's part of the ids for a range: the maps, and what can be mounted
 * only with them. */
static int hand_over_range(const struct sandbox *sb, struct error *err)
{
    int r = write_map(sb->pid, "uid_map", sb->plan);

    if (r == 0)
        r = write_map(sb->pid, "gid_map", sb->plan);
    return r < 0 ? refusal_explain(REFUSAL_MAPS, NULL, -r, err) : hand_over_mounts(sb, err);
}

/* In the child: its own copy of the keeper's memory, and the plan that both
 * share. */
__attribute__((noreturn)) static void child(const struct sandbox *sb, int init_fd, int link_fd,
                                            int net_fd)
{
    struct setup s = {
        .plan = sb->plan,
        .link_fd = link_fd,
        .init_fd = init_fd,
        .root_fd = -EBADF,
        .net_fd = net_fd,
        .landlock_abi = sb->landlock_abi,
    };
    sigset_t none;

    /* What the caller ignores must not be ignored inside: it would survive every exec. */
    for (int signal = 1; signal < NSIG; signal++)
        (void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(s.volume_fds); i++)
        s.volume_fds[i] = -EBADF;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    setup_run(&s);
}

/* A socket pair; both ends owned by guards of the caller. */
static int open_pair(int *ret_ours, int *ret_theirs, struct error *err)
{
    int pair[2];
    int r = io_pair(pair);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    *ret_ours = pair[0];
    *ret_theirs = pair[1];
    return 0;
}

static int start_processes(struct sandbox *sb, struct error *err)
{
    const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                                CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_PIDFD;
    _cleanup_fd_ int init_fd = open_init_image(err);
    _cleanup_fd_ int link_fd = -EBADF, net_from = -EBADF, net_to = -EBADF;
    int pid_fd = -EBADF;

    int r = init_fd < 0 ? init_fd : open_pair(&sb->link_fd, &link_fd, err);
    if (r == 0)
        r = open_pair(&net_from, &net_to, err);
    if (r < 0)
        return r;
    /* clone(2), not clone3: container filters answer ENOSYS to that one (they cannot see flags).
     * All namespaces but the network in one call; the kernel makes the user namespace first. */
    long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, &pid_fd, NULL, NULL);
    if (pid < 0)
        return refusal_explain(REFUSAL_NAMESPACES, NULL, errno, err);
    if (pid == 0) {
        fd_closep(&net_to); /* so that the helper's death is seen */
        child(sb, init_fd, link_fd, net_from);
    }
    sb->pid = (pid_t)pid;
    sb->pid_fd = pid_fd;
    r = network_start(sb->pid_fd, net_to, &sb->network);
    return r < 0 ? refusal_explain(REFUSAL_NAMESPACES, NULL, -r, err) : 0;
}

static int make_plan(struct sandbox *sb, const struct spec *spec, struct error *err)
{
    _cleanup_free_ struct host *host = malloc(sizeof *host);
    uint64_t random[2];
    int r;

    if (!host)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_set(err, ERROR_TERMINAL, EIO, "the kernel gives no random bytes");
    r = host_read(host, err);
    return r < 0 ? r : plan_build(sb->plan, spec, host, random, err);
}

/* The processes come first, since they take a while to start: the plan is made
 * meanwhile. */
static int start(struct sandbox *sb, const struct spec *spec, struct error *err)
{
    void *shared =
        mmap(NULL, sizeof *sb->plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int r;

    if (shared == MAP_FAILED)
        return error_set(err, ERROR_TERMINAL, errno, "out of memory");
    sb->plan = shared;
    sb->landlock_abi = landlock_abi();
    r = start_processes(sb, err);
    if (r == 0)
        r = make_plan(sb, spec, err);
    if (r == 0 && sb->plan->range)
        r = hand_over_range(sb, err);
    if (r < 0)
        return r;
    r = send_go(sb->link_fd, GO_PLAN, -EBADF);
    return r < 0 ? set_up_is_gone(r, err) : 0;
}

int sandbox_start(const struct spec *spec, struct sandbox *ret, struct error *err)
{
    struct sandbox sb = SANDBOX_INIT;
    int r = start(&sb, spec, err);

    if (r < 0) {
        sandbox_end(&sb);
        return error_context(err, "set-up");
    }
    *ret = sb;
    return 0;
}

void sandbox_end(struct sandbox *sb)
{
    if (sb->pid > 0) {
        (void)syscall(SYS_pidfd_send_signal, sb->pid_fd, SIGKILL, NULL, 0);
        while (waitpid(sb->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    network_end(sb->network);
    fd_closep(&sb->pid_fd);
    fd_closep(&sb->link_fd);
    if (sb->plan)
        (void)munmap(sb->plan, sizeof *sb->plan);
    *sb = (struct sandbox)SANDBOX_INIT;
}

int sandbox_fault(const struct sandbox *sb, uint32_t step, int code, struct error *err)
{
    if (step >= sb->plan->n || code <= 0)
        return error_set(err, ERROR_TERMINAL, EPROTO, "the set-up sent a damaged report");
    (void)refusal_explain(REFUSAL_STEP, &sb->plan->steps[step], code, err);
    return error_context(err, "set-up step %u (%s)", step + 1,
                         step_name(sb->plan->steps[step].kind));
}

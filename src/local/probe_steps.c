/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes try: single steps of the set-up, and calls that the keeper and init make. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "core/limits.h"
#include "local/mount_api.h"
#include "local/network.h"
#include "local/probe.h"
#include "local/way_out.h"
#include "base/guards.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

int probe_nothing(struct setup *s)
{
    (void)s;
    return 0;
}

int probe_capabilities(struct setup *s)
{
    (void)s;
    return sethostname("sandbox", strlen("sandbox")) < 0 ? -errno : 0;
}

int probe_loopback(struct setup *s)
{
    (void)s;
    return network_loopback_up();
}

int probe_private(struct setup *s)
{
    (void)s;
    return setup_private();
}

int probe_mount_api(struct setup *s)
{
    const struct step root = {.kind = STEP_ROOT, .target = "/", .value = 1 * LIMIT_MIB};

    return setup_root(s, &root);
}

int probe_bind(struct setup *s)
{
    const uint64_t attr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    _cleanup_fd_ int fd = mount_clone(AT_FDCWD, "/usr", true, attr);

    (void)s;
    return fd < 0 ? fd : 0;
}

int probe_proc(struct setup *s)
{
    const struct step proc = {.kind = STEP_PROC, .target = "/proc"};
    int r = probe_mount_api(s);

    return r < 0 ? r : setup_proc(s, &proc);
}

int probe_namespace_limit(struct setup *s)
{
    const struct step limit = {
        .kind = STEP_SYSCTL, .target = "/proc/sys/user/max_user_namespaces", .source = "0"};
    int r = probe_proc(s);

    return r < 0 ? r : setup_sysctl(s, &limit);
}

int probe_terminals(struct setup *s)
{
    const struct step dev = {.kind = STEP_FOLDER, .target = "/dev", .value = 0755};
    const struct step terminals = {.kind = STEP_TERMINALS, .target = "/dev/pts"};
    int r = probe_mount_api(s);

    if (r == 0)
        r = setup_folder(s, &dev);
    return r < 0 ? r : setup_terminals(s, &terminals);
}

int probe_pivot(struct setup *s)
{
    int r = probe_mount_api(s);

    return r < 0 ? r : setup_pivot(s);
}

/* With an empty folder of the new root as the image, handed in as the keeper's mounts are. */
int probe_overlay(struct setup *s)
{
    const struct step overlay = {.kind = STEP_OVERLAY, .target = "/"};
    int r = probe_mount_api(s);

    if (r < 0)
        return r;
    if (mkdirat(s->root_fd, "image", 0755) < 0)
        return -errno;
    r = mount_clone(s->root_fd, "image", false, MOUNT_ATTR_RDONLY);
    if (r < 0)
        return r;
    s->volume_fds[s->plan->n_volumes] = r;
    return setup_overlay(s, &overlay);
}

int probe_no_new_privs(struct setup *s)
{
    (void)s;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int probe_seccomp(struct setup *s)
{
    struct sock_filter allow_all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = 1, .filter = &allow_all};
    int r = probe_no_new_privs(s);

    if (r < 0)
        return r;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

/* The kernel judges whether a file may be executed before it looks for a format in it. */
int probe_memfd(struct setup *s)
{
    static const char text[] = "no program\n";
    char *const argv[] = {(char *)(uintptr_t) "atoll-probe", NULL};
    char *const envp[] = {NULL};
    _cleanup_fd_ int fd = memfd_create("atoll-probe", MFD_CLOEXEC | MFD_EXEC);
    int r;

    (void)s;
    if (fd < 0 && errno == EINVAL) /* before 6.3 there was no flag, and all were executable */
        fd = memfd_create("atoll-probe", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = io_write_full(fd, text, sizeof text - 1, CLOCK_NEVER);
    if (r < 0)
        return r;
    (void)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
    return errno == ENOEXEC ? 0 : -errno;
}

int probe_pidfd(struct setup *s)
{
    _cleanup_fd_ int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    (void)s;
    if (fd < 0)
        return -errno;
    return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0 ? -errno : 0;
}

int probe_close_range(struct setup *s)
{
    (void)s;
    return syscall(SYS_close_range, ~0u - 1, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) < 0 ? -errno : 0;
}

int probe_openat2(struct setup *s)
{
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)s;
    if (root < 0)
        return -errno;
    _cleanup_fd_ int fd = path_open_in_root(root, ".", O_PATH | O_DIRECTORY, 0);
    return fd < 0 ? fd : 0;
}

/* A detached mount, which nobody sees and which goes with its descriptor. */
int probe_idmap_outside(pid_t child)
{
    struct mount_attr set = {.attr_set = MOUNT_ATTR_IDMAP, .propagation = MS_PRIVATE};
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", child);
    _cleanup_fd_ int userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return -errno;
    _cleanup_fd_ int fd = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd < 0)
        return -errno;
    set.userns_fd = (uint64_t)userns;
    return mount_setattr(fd, "", AT_EMPTY_PATH, &set, sizeof set) < 0 ? -errno : 0;
}

/* Whether a mount at @point hides something of /proc: the kernel leaves out folders that are there
 * to be mounted on (fs/namespace.c, mnt_already_visible()). */
static bool masks_proc(const char *point)
{
    static const char *const empty[] = {"/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd",
                                        "/proc/openprom"};

    if (strncmp(point, "/proc/", strlen("/proc/")) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(empty); i++)
        if (strcmp(point, empty[i]) == 0)
            return false;
    return true;
}

/* The fifth field of a line is the mount point (proc_pid_mountinfo(5)). */
static const char *mount_point_of(char *line)
{
    char *p = line;

    for (int i = 0; i < 4 && p; i++) {
        p = strchr(p, ' ');
        p = p ? p + 1 : NULL;
    }
    if (!p)
        return "";
    p[strcspn(p, " \n")] = '\0';
    return p;
}

bool probe_proc_is_masked(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    _cleanup_free_ char *line = NULL;
    bool masked = false;
    size_t size = 0;

    if (!f)
        return false;
    while (!masked && getline(&line, &size, f) > 0)
        masked = masks_proc(mount_point_of(line));
    (void)fclose(f);
    return masked;
}

/* A policy with something in every set: what its rules need of the kernel is what all need. */
static int visit(int pid_fd, int egress_fd, int setup_fd, struct error *err)
{
    struct policy_interval v4 = {{192, 0, 2, 0}, {192, 0, 2, 255}};
    struct policy_interval v6 = {{0x20, 1, 0x0D, 0xB8}, {0x20, 1, 0x0D, 0xB8, 255}};
    uint16_t port = 443;
    const struct policy_reach reach = {
        .pool = {.v4 = {.base = {.family = ADDRESS_V4, .bytes = {198, 18}}, .prefix = 16},
                 .v6 = {.base = {.family = ADDRESS_V6, .bytes = {0xFD}}, .prefix = 64}},
        .names = true,
        .v4 = &v4,
        .v6 = &v6,
        .n_v4 = 1,
        .n_v6 = 1,
        .ports = &port,
        .n_ports = 1,
    };
    const struct visit v = {.job = VISIT_MAKE,
                            .pid_fd = pid_fd,
                            .reach = &reach,
                            .egress_fd = egress_fd,
                            .setup_fd = setup_fd};
    struct visitor visitor = VISITOR_INIT;
    int r = visitor_start(&v, &visitor, err);

    if (r < 0)
        return r;
    (void)io_wait(visitor.pid_fd, POLLIN, clock_after_us(PROBE_PATIENCE_US));
    return visitor_end(&visitor, err);
}

/* With a process that only holds the user namespace in the place of a sandbox's. */
static int visit_holder(const int egress[2], const int waiting[2], struct error *err)
{
    int pid_fd = -EBADF;
    long pid = syscall(SYS_clone, (unsigned long)(CLONE_NEWUSER | CLONE_PIDFD) | SIGCHLD, NULL,
                       &pid_fd, NULL, NULL);

    if (pid < 0)
        return refusal_explain(REFUSAL_NAMESPACES, NULL, errno, err);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    int r = visit(pid_fd, egress[0], waiting[0], err);
    (void)kill((pid_t)pid, SIGKILL);
    while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        ;
    fd_closep(&pid_fd);
    return r;
}

int probe_way_out(struct error *err)
{
    int pairs[2][2] = {{-EBADF, -EBADF}, {-EBADF, -EBADF}};
    int r = io_pair(pairs[0]);

    if (r == 0)
        r = io_pair(pairs[1]);
    if (r < 0)
        (void)error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    else
        r = visit_holder(pairs[0], pairs[1], err); /* what it sends goes with the pairs */
    for (size_t i = 0; i < 4; i++)
        fd_closep(&pairs[i / 2][i % 2]);
    return r;
}

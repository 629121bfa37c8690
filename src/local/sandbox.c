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
#include "base/parse.h"
#include "base/raw_syscall.h"
#include "local/affinity.h"
#include "local/cgroup_file.h"
#include "local/idmap.h"
#include "local/init_image.h"
#include "local/landlock.h"
#include "local/name_servers.h"
#include "local/network.h"
#include "local/refusal.h"
#include "local/sealed_image.h"
#include "local/setup.h"
#include "wire/control.h"
#include "base/guards.h"

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

/* Mounts that need the keeper's authority, since owners are mapped on them. */
static int hand_over_mounts(const struct sandbox *sb, struct error *err)
{
    _cleanup_fd_ int image_ids = idmap_open(sb->pid);
    _cleanup_fd_ int volume_ids = idmap_open_for_volumes(sb->plan, sb->pid);

    if (image_ids < 0 || volume_ids < 0)
        return refusal_explain(REFUSAL_MAPS, NULL, image_ids < 0 ? -image_ids : -volume_ids, err);
    for (size_t i = 0; i < sb->plan->n; i++) {
        const struct step *step = &sb->plan->steps[i];
        bool image = step->kind == STEP_OVERLAY;

        if (step->kind != STEP_VOLUME && !image)
            continue;
        _cleanup_fd_ int fd = idmap_mount(step->source, image || (step->flags & STEP_RO),
                                          image ? image_ids : volume_ids);
        if (fd < 0)
            return refusal_explain(REFUSAL_IDMAP, step, -fd, err);
        int r = send_go(sb->link_fd, (uint32_t)(image ? sb->plan->n_volumes : step->value), fd);
        if (r < 0)
            return set_up_is_gone(r, err);
    }
    return 0;
}

/* The keeper's part of the ids for a range: the maps, and what can be mounted only with them. */
static int hand_over_range(const struct sandbox *sb, struct error *err)
{
    int r = idmap_write(sb->pid, sb->plan, 0, 0);

    if (r < 0)
        return refusal_explain(REFUSAL_MAPS, NULL, -r, err);
    return sb->plan->n_volumes > 0 || sb->plan->image_folder ? hand_over_mounts(sb, err) : 0;
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
        .oom_fd = -EBADF,
        .landlock_abi = sb->landlock_abi,
    };
    static const uint64_t default_action[4] = {0}; /* struct sigaction of the kernel: SIG_DFL */
    sigset_t none;

    /* What the caller ignores must not be ignored inside: it would survive every exec. */
    for (int signal = 1; signal < NSIG; signal++) /* the kernel's call: libc keeps two to itself */
        (void)raw_syscall(SYS_rt_sigaction, signal, (long)default_action, 0, sizeof(uint64_t), 0);
    for (size_t i = 0; i < ARRAY_SIZE(s.volume_fds); i++)
        s.volume_fds[i] = -EBADF;
    if (s.plan->commands_oom_score > 0) /* while it belongs to whom this process still is */
        s.oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
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

/* Whoever makes the network namespace: a visitor where there is a way out. */
static int start_network(struct sandbox *sb, const struct sandbox_way_out *out, int net_fd,
                         struct error *err)
{
    int r;

    if (out) {
        const struct visit v = {.job = VISIT_MAKE,
                                .pid_fd = sb->pid_fd,
                                .reach = out->reach,
                                .egress_fd = out->egress_fd,
                                .setup_fd = net_fd};

        return visitor_start(&v, out->visitor, err);
    }
    r = network_start(sb->pid_fd, net_fd, &sb->network);
    return r < 0 ? refusal_explain(REFUSAL_NAMESPACES, NULL, -r, err) : 0;
}

static int start_processes(struct sandbox *sb, const struct sandbox_way_out *out, struct error *err)
{
    const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                                CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_PIDFD;
    _cleanup_fd_ int init_fd =
        sealed_image_open("atoll-init", init_image_start, init_image_end, err);
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
        /* And the keeper's, which may be killed before this process asks for a signal at that. */
        fd_closep(&sb->link_fd);
        child(sb, init_fd, link_fd, net_from);
    }
    sb->pid = (pid_t)pid;
    sb->pid_fd = pid_fd;
    return start_network(sb, out, net_to, err);
}

/* The text of the host's file for name_servers_text(); empty if there is none. */
static void read_resolv_conf(char *buf, size_t size)
{
    _cleanup_fd_ int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

    buf[n > 0 ? n : 0] = '\0';
}

static int make_plan(struct sandbox *sb, const struct spec *spec, const struct policy_pool *pool,
                     const struct policy_reach *reach, struct error *err)
{
    _cleanup_free_ struct host *host = malloc(sizeof *host);
    char resolv_conf[NAME_SERVERS_TEXT_BYTES], hosts_own[4096] = "";
    uint64_t random[2];
    int r;

    if (!host)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_set(err, ERROR_TERMINAL, EIO, "the kernel gives no random bytes");
    r = host_read(host, err);
    if (r < 0)
        return r;
    if (name_servers_wants_host(reach, spec->resolver))
        read_resolv_conf(hosts_own, sizeof hosts_own);
    name_servers_text(pool, reach, spec->resolver, hosts_own, resolv_conf);
    return plan_build(sb->plan, spec, host, resolv_conf, random, err);
}

/* Process 1 may neither be one that the kernel never kills, as a caller may be, nor the one that it
 * kills first when memory runs out: commands go before it, so that there is somebody left to tell.
 */
static void plan_oom_order(struct plan *p)
{
    enum { COMMANDS_ABOVE = 100, SCORE_MAX = 1000 };
    uint64_t own = 0;
    char text[16];

    (void)cgroup_file_read(AT_FDCWD, "/proc/self/oom_score_adj", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    if (text[0] != '-')
        (void)parse_u64(text, 0, SCORE_MAX, &own);
    p->init_oom_score = (uint32_t)own;
    p->commands_oom_score =
        (uint32_t)(own + COMMANDS_ABOVE > SCORE_MAX ? SCORE_MAX : own + COMMANDS_ABOVE);
}

/* Process 1 waits for the plan: whatever it does from then on counts. */
static int enter_group(const struct sandbox *sb, const struct spec *spec, struct error *err)
{
    int r = cgroup_enter(&sb->group, sb->pid);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r,
                         "process 1 cannot enter the control group of its ceilings: %s",
                         strerror(-r));
    r = spec->cpu_milli > 0 ? affinity_limit(sb->pid, spec->cpu_milli) : 0;
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "backend.cpu: no CPUs can be chosen: %s",
                             strerror(-r))
                 : 0;
}

/* The processes come first, since they take a while to start: the plan is made
 * meanwhile. */
static int start(struct sandbox *sb, const struct spec *spec, const struct policy_pool *pool,
                 const struct sandbox_way_out *out, struct error *err)
{
    void *shared =
        mmap(NULL, sizeof *sb->plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int r;

    if (shared == MAP_FAILED)
        return error_set(err, ERROR_TERMINAL, errno, "out of memory");
    sb->plan = shared;
    sb->landlock_abi = landlock_abi();
    const struct cgroup_wants wants = cgroup_wants(spec);
    r = cgroup_wanted(&wants) ? cgroup_make(&wants, &sb->group, err) : 0;
    if (spec->memory_bytes > 0)
        plan_oom_order(sb->plan);
    if (r == 0)
        r = start_processes(sb, out, err);
    if (r == 0 && sb->group.n > 0)
        r = enter_group(sb, spec, err);
    if (r == 0)
        r = make_plan(sb, spec, pool, out ? out->reach : NULL, err);
    if (r == 0 && sb->plan->range)
        r = hand_over_range(sb, err);
    if (r < 0)
        return r;
    r = send_go(sb->link_fd, GO_PLAN, -EBADF);
    return r < 0 ? set_up_is_gone(r, err) : 0;
}

int sandbox_start(const struct spec *spec, const struct policy_pool *pool,
                  const struct sandbox_way_out *way_out, struct sandbox *ret, struct error *err)
{
    struct sandbox sb = SANDBOX_INIT;
    struct error ignored = ERROR_INIT;

    if (way_out)
        *way_out->visitor = (struct visitor)VISITOR_INIT;
    int r = start(&sb, spec, pool, way_out, err);
    if (r < 0) {
        sandbox_end(&sb);
        if (way_out)
            (void)visitor_end(way_out->visitor, &ignored);
        return error_context(err, "set-up");
    }
    *ret = sb;
    return 0;
}

void sandbox_settle(struct sandbox *sb)
{
    if (!sb->plan)
        return;
    network_end(sb->network);
    sb->network = NULL;
    (void)munmap(sb->plan, sizeof *sb->plan);
    sb->plan = NULL;
}

void sandbox_end(struct sandbox *sb)
{
    if (sb->pid > 0) {
        (void)syscall(SYS_pidfd_send_signal, sb->pid_fd, SIGKILL, NULL, 0);
        while (waitpid(sb->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    network_end(sb->network);
    cgroup_end(&sb->group);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of probes, and how each is tried in a child that ends at once. */
#include "local/probe.h"
#include "local/idmap.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "core/channel.h"
#include "local/sandbox.h"
#include "wire/control.h"
#include "base/guards.h"

/* In the order in which they are tried and shown. */
enum probe_id {
    ID_USER,
    ID_PID,
    ID_MOUNT,
    ID_NET,
    ID_IPC,
    ID_UTS,
    ID_CGROUP,
    ID_CAPABILITIES,
    ID_MAP,
    ID_LOOPBACK,
    ID_PRIVATE,
    ID_MOUNT_API,
    ID_BIND,
    ID_PROC,
    ID_NAMESPACE_LIMIT,
    ID_TERMINALS,
    ID_PIVOT,
    ID_SECCOMP,
    ID_NO_NEW_PRIVS,
    ID_MEMFD,
    ID_PIDFD,
    ID_CLOSE_RANGE,
    ID_OPENAT2,
    ID_SANDBOX,
    ID_FIRST_OPTIONAL,
    ID_OVERLAY = ID_FIRST_OPTIONAL,
    ID_EGRESS,
    ID_IDMAP,
    ID_LANDLOCK,
    ID_SUBORDINATE_IDS,
    ID_DELEGATED_CGROUP,
    ID_OPEN_FILES,
    ID_FILTER,
    ID_CONTAINER,
    ID_KERNEL,
    ID__MAX,
};

static_assert((int)ID__MAX <= (int)PROBE_RESULTS_MAX, "a report has no room for every probe");

#define BIT(id) (UINT64_C(1) << (id))

/* One of inside, whole and look is set. */
struct probe {
    const char *name;
    const char *good;         /* the sentence for one that was tried and is there */
    uint64_t needs;           /* BIT() of earlier ones; the user namespace where there are others */
    unsigned long namespaces; /* CLONE_NEW*: beside a new user namespace, which 0 does without */
    bool mapped;              /* the child's ids are mapped first */
    int (*inside)(struct setup *s);
    int (*whole)(const struct probe_context *c, struct error *err);
    int (*outside)(pid_t child); /* tried here, while the mapped child waits */
    bool (*is_hidden)(void);     /* known to be missing although it could not be tried */
    void (*look)(const struct probe_context *c, struct probe_result *r);
    enum refusal_place place; /* what a failure is explained as */
    struct step step;
};

enum {
    NEEDS_MAP = BIT(ID_MAP),
    NEEDS_MOUNT = BIT(ID_MAP) | BIT(ID_MOUNT),
    NEEDS_ROOT = BIT(ID_MOUNT_API),
};

static int start_sandbox(const struct probe_context *c, struct error *err);
static int make_way_out(const struct probe_context *c, struct error *err);

static const struct probe probes[] = {
    [ID_USER] = {.name = "user-namespace",
                 .good = "user namespaces can be made",
                 .namespaces = CLONE_NEWUSER,
                 .inside = probe_nothing,
                 .place = REFUSAL_NAMESPACES,
                 .step = {.source = "user"}},
    [ID_PID] = {.name = "pid-namespace",
                .good = "process namespaces can be made",
                .needs = BIT(ID_USER),
                .namespaces = CLONE_NEWPID,
                .inside = probe_nothing,
                .place = REFUSAL_NAMESPACES,
                .step = {.source = "pid"}},
    [ID_MOUNT] = {.name = "mount-namespace",
                  .good = "mount namespaces can be made",
                  .needs = BIT(ID_USER),
                  .namespaces = CLONE_NEWNS,
                  .inside = probe_nothing,
                  .place = REFUSAL_NAMESPACES,
                  .step = {.source = "mnt"}},
    [ID_NET] = {.name = "net-namespace",
                .good = "network namespaces can be made",
                .needs = BIT(ID_USER),
                .namespaces = CLONE_NEWNET,
                .inside = probe_nothing,
                .place = REFUSAL_NAMESPACES,
                .step = {.source = "net"}},
    [ID_IPC] = {.name = "ipc-namespace",
                .good = "IPC namespaces can be made",
                .needs = BIT(ID_USER),
                .namespaces = CLONE_NEWIPC,
                .inside = probe_nothing,
                .place = REFUSAL_NAMESPACES,
                .step = {.source = "ipc"}},
    [ID_UTS] = {.name = "uts-namespace",
                .good = "host name namespaces can be made",
                .needs = BIT(ID_USER),
                .namespaces = CLONE_NEWUTS,
                .inside = probe_nothing,
                .place = REFUSAL_NAMESPACES,
                .step = {.source = "uts"}},
    [ID_CGROUP] = {.name = "cgroup-namespace",
                   .good = "cgroup namespaces can be made",
                   .needs = BIT(ID_USER),
                   .namespaces = CLONE_NEWCGROUP,
                   .inside = probe_nothing,
                   .place = REFUSAL_NAMESPACES,
                   .step = {.source = "cgroup"}},
    [ID_CAPABILITIES] = {.name = "capabilities",
                         .good = "a process has power in the namespaces that it made",
                         .needs = BIT(ID_UTS),
                         .namespaces = CLONE_NEWUTS,
                         .inside = probe_capabilities,
                         .step = {.kind = STEP_HOSTNAME}},
    [ID_MAP] = {.name = "id-map",
                .good = "user ids can be mapped",
                .needs = BIT(ID_CAPABILITIES),
                .namespaces = CLONE_NEWUTS,
                .mapped = true,
                .inside = probe_nothing,
                .step = {.kind = STEP_IDS}},
    [ID_LOOPBACK] = {.name = "loopback",
                     .good = "a loopback interface can be brought up",
                     .needs = BIT(ID_CAPABILITIES) | BIT(ID_NET),
                     .namespaces = CLONE_NEWNET,
                     .inside = probe_loopback,
                     .step = {.kind = STEP_NETWORK}},
    [ID_PRIVATE] = {.name = "private-mounts",
                    .good = "mounts can be cut off from those of the host",
                    .needs = NEEDS_MOUNT,
                    .namespaces = CLONE_NEWNS,
                    .mapped = true,
                    .inside = probe_private,
                    .step = {.kind = STEP_PRIVATE}},
    [ID_MOUNT_API] = {.name = "mount-api",
                      .good = "file systems can be mounted by the new mount interface",
                      .needs = NEEDS_MOUNT,
                      .namespaces = CLONE_NEWNS,
                      .mapped = true,
                      .inside = probe_mount_api,
                      .step = {.kind = STEP_ROOT}},
    [ID_BIND] = {.name = "bind-mounts",
                 .good = "folders of the host can be shown, read-only with all below",
                 .needs = NEEDS_MOUNT,
                 .namespaces = CLONE_NEWNS,
                 .mapped = true,
                 .inside = probe_bind,
                 .step = {.kind = STEP_BIND, .source = "/usr", .target = "/usr", .flags = STEP_RO}},
    [ID_PROC] = {.name = "proc",
                 .good = "a fresh /proc can be mounted",
                 .needs = NEEDS_ROOT | BIT(ID_PID),
                 .namespaces = CLONE_NEWNS | CLONE_NEWPID,
                 .mapped = true,
                 .inside = probe_proc,
                 .is_hidden = probe_proc_is_masked,
                 .step = {.kind = STEP_PROC, .target = "/proc"}},
    [ID_NAMESPACE_LIMIT] = {.name = "namespace-limit",
                            .good = "further user namespaces can be switched off inside",
                            .needs = BIT(ID_PROC),
                            .namespaces = CLONE_NEWNS | CLONE_NEWPID,
                            .mapped = true,
                            .inside = probe_namespace_limit,
                            .step = {.kind = STEP_SYSCTL,
                                     .target = "/proc/sys/user/max_user_namespaces",
                                     .source = "0"}},
    [ID_TERMINALS] = {.name = "devpts",
                      .good = "terminals of its own can be mounted",
                      .needs = NEEDS_ROOT,
                      .namespaces = CLONE_NEWNS,
                      .mapped = true,
                      .inside = probe_terminals,
                      .step = {.kind = STEP_TERMINALS, .target = "/dev/pts"}},
    [ID_PIVOT] = {.name = "pivot-root",
                  .good = "the root can be changed and the host's dropped",
                  .needs = NEEDS_ROOT,
                  .namespaces = CLONE_NEWNS,
                  .mapped = true,
                  .inside = probe_pivot,
                  .step = {.kind = STEP_PIVOT}},
    [ID_SECCOMP] = {.name = "seccomp",
                    .good = "system call filters can be installed",
                    .inside = probe_seccomp,
                    .place = REFUSAL_CALL,
                    .step = {.source = "seccomp(2) with a filter"}},
    [ID_NO_NEW_PRIVS] = {.name = "no-new-privs",
                         .good = "privileges can be given up for good",
                         .inside = probe_no_new_privs,
                         .place = REFUSAL_CALL,
                         .step = {.source = "prctl(2) with PR_SET_NO_NEW_PRIVS"}},
    [ID_MEMFD] = {.name = "memfd",
                  .good = "a memory file can be executed",
                  .inside = probe_memfd,
                  .place = REFUSAL_MEMFD},
    [ID_PIDFD] = {.name = "pidfd",
                  .good = "processes can be held by descriptors",
                  .inside = probe_pidfd,
                  .place = REFUSAL_CALL,
                  .step = {.source = "pidfd_send_signal(2)"}},
    [ID_CLOSE_RANGE] = {.name = "close-range",
                        .good = "descriptors can be closed by range",
                        .inside = probe_close_range,
                        .place = REFUSAL_CALL,
                        .step = {.source = "close_range(2) with CLOSE_RANGE_CLOEXEC"}},
    [ID_OPENAT2] = {.name = "openat2",
                    .good = "paths can be opened without leaving a folder",
                    .inside = probe_openat2,
                    .place = REFUSAL_CALL,
                    .step = {.source = "openat2(2)"}},
    [ID_SANDBOX] = {.name = "sandbox",
                    .good = "a whole sandbox can be set up",
                    .needs = BIT(ID_SANDBOX) - 1,
                    .whole = start_sandbox},
    [ID_OVERLAY] = {.name = "overlay",
                    .good = "image folders can be used",
                    .needs = NEEDS_ROOT,
                    .namespaces = CLONE_NEWNS,
                    .mapped = true,
                    .inside = probe_overlay,
                    .step = {.kind = STEP_OVERLAY, .target = "/"}},
    [ID_EGRESS] = {.name = "egress",
                   .good = "what a spec lists can be let out, and nothing else",
                   .needs = BIT(ID_LOOPBACK),
                   .whole = make_way_out},
    [ID_IDMAP] = {.name = "idmapped-mounts",
                  .good = "files of volumes keep their owner (tried with the current folder)",
                  .needs = NEEDS_MAP,
                  .namespaces = CLONE_NEWUTS,
                  .mapped = true,
                  .inside = probe_nothing,
                  .outside = probe_idmap_outside,
                  .place = REFUSAL_IDMAP,
                  .step = {.source = "the current folder"}},
    [ID_LANDLOCK] = {.name = "landlock", .look = probe_landlock},
    [ID_SUBORDINATE_IDS] = {.name = "subordinate-ids", .look = probe_subordinate_ids},
    [ID_DELEGATED_CGROUP] = {.name = "cgroup", .look = probe_cgroup},
    [ID_OPEN_FILES] = {.name = "open-files", .look = probe_open_files},
    [ID_FILTER] = {.name = "outer-filter", .look = probe_filter},
    [ID_CONTAINER] = {.name = "container", .look = probe_container},
    [ID_KERNEL] = {.name = "kernel", .look = probe_kernel},
};

static_assert(ARRAY_SIZE(probes) == ID__MAX, "a probe has no row");

const char *probe_state_name(enum probe_state state)
{
    static const char *const names[] = {
        [PROBE_OK] = "ok", [PROBE_MISSING] = "missing", [PROBE_UNKNOWN] = "unknown"};
    static_assert(ARRAY_SIZE(names) == PROBE_STATE__MAX, "a state has no name");

    return names[state];
}

/* The part of a probe that is done here while its child waits for the maps. */
static int do_outside(const struct probe_context *c, const struct probe *p, pid_t child, int fd)
{
    const struct frame go = {.type = MSG_GO, .id = GO_PLAN};
    uint8_t head[FRAME_HEADER_BYTES];
    int r = idmap_write(child, &c->plan, 0, 0);

    if (r == 0 && p->outside)
        r = p->outside(child);
    frame_header(&go, head);
    return r < 0 ? r : io_send_packet(fd, head, sizeof head, NULL, 0, NULL, 0);
}

__attribute__((noreturn)) static void child_main(const struct probe_context *c,
                                                 const struct probe *p, int fd)
{
    struct setup s = {.plan = &c->plan, .link_fd = fd, .init_fd = -EBADF, .root_fd = -EBADF};
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(s.volume_fds); i++)
        s.volume_fds[i] = -EBADF;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    r = p->mapped && c->plan.range ? setup_wait_for_plan(&s) : 0;
    if (r == 0 && p->mapped)
        r = setup_ids(&s);
    if (r == 0)
        r = p->inside(&s);
    (void)io_send_packet(fd, &r, sizeof r, NULL, 0, NULL, 0);
    _exit(0);
}

/* What the child said; one that was killed by a filter said nothing. */
static int await_answer(int fd)
{
    int fds[IO_FDS_MAX], answer, r = io_wait(fd, POLLIN, clock_after_us(PROBE_PATIENCE_US));
    size_t n_fds = 0;

    if (r < 0)
        return r;
    ssize_t n = io_recv_packet(fd, &answer, sizeof answer, fds, &n_fds);
    for (size_t i = 0; i < n_fds; i++)
        fd_closep(&fds[i]);
    return n == sizeof answer && answer <= 0 ? answer : -EPERM;
}

/* @ret_place is changed if not even the child could be made. Return: 0 or a negative errno. */
static int try_probe(const struct probe_context *c, const struct probe *p,
                     enum refusal_place *ret_place)
{
    unsigned long flags = p->namespaces != 0 ? p->namespaces | CLONE_NEWUSER : 0;
    _cleanup_fd_ int ours = -EBADF, theirs = -EBADF;
    int pair[2], r = io_pair(pair);

    if (r < 0)
        return r;
    ours = pair[0];
    theirs = pair[1];
    long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0) {
        *ret_place = REFUSAL_NAMESPACES;
        return -errno;
    }
    if (pid == 0)
        child_main(c, p, theirs);
    fd_closep(&theirs);
    if (p->mapped && c->plan.range) {
        r = do_outside(c, p, (pid_t)pid, ours);
        if (r < 0 && !p->outside)
            *ret_place = REFUSAL_MAPS;
    }
    if (r == 0)
        r = await_answer(ours);
    (void)kill((pid_t)pid, SIGKILL);
    while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

static void set_good(const char *text, struct probe_result *r)
{
    r->state = PROBE_OK;
    (void)snprintf(r->message, sizeof r->message, "%s", text);
}

static void set_missing(const struct error *err, struct probe_result *r)
{
    r->state = PROBE_MISSING;
    r->code = err->code;
    (void)snprintf(r->message, sizeof r->message, "%s", err->message);
    (void)snprintf(r->remedy, sizeof r->remedy, "%s", err->remedy);
}

static int await_ready(const struct sandbox *sb, struct channel *link, struct error *err)
{
    uint64_t deadline_us = clock_after_us(PROBE_PATIENCE_US);
    struct step_report x = {0};
    struct message m;
    int r;

    while ((r = channel_receive(link, &m)) == 0)
        if (io_wait(link->fd, POLLIN, deadline_us) < 0)
            return error_set(err, ERROR_TERMINAL, ETIMEDOUT, "the set-up of a sandbox hangs");
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, EIO, "the set-up process ended without a word");
    if (m.type == MSG_FAULT)
        (void)step_report_decode(m.payload, &x);
    message_close_fds(&m);
    return m.type == MSG_READY ? 0 : sandbox_fault(sb, x.index, (int)x.error, err);
}

/* All steps of the default plan, and init, in what is a sandbox but for a command. */
static int start_sandbox(const struct probe_context *c, struct error *err)
{
    struct sandbox sb = SANDBOX_INIT;
    struct channel link;
    int r = sandbox_start(&c->spec, NULL, NULL, &sb, err);

    if (r < 0)
        return r;
    channel_init(&link, TAKE_FD(sb.link_fd));
    r = await_ready(&sb, &link, err);
    channel_done(&link);
    sandbox_end(&sb);
    return r;
}

static int make_way_out(const struct probe_context *c, struct error *err)
{
    (void)c;
    return probe_way_out(err);
}

/* The first of what @p stands on that is not there, or ID__MAX. */
static enum probe_id lacking(const struct probe_report *report, uint64_t needs)
{
    for (unsigned id = 0; id < ID__MAX; id++)
        if (needs & BIT(id) && report->results[id].state != PROBE_OK)
            return id;
    return ID__MAX;
}

/* The name of what is truly missing, below all that was not tried for it. */
static const char *lacking_name(const struct probe_report *report, enum probe_id id)
{
    while (report->results[id].state == PROBE_UNKNOWN)
        id = lacking(report, probes[id].needs);
    return report->results[id].name;
}

static void run_probe(const struct probe_context *c, const struct probe_report *report,
                      enum probe_id id, struct probe_result *r)
{
    const struct probe *p = &probes[id];
    enum refusal_place place = p->place;
    enum probe_id lack = lacking(report, p->needs);
    struct error err = ERROR_INIT;
    int code = 0;

    if (p->look) {
        p->look(c, r);
        return;
    }
    if (p->outside && !c->host.kernel_root) {
        set_good("not needed, since this user is not root", r);
        return;
    }
    if (lack != ID__MAX && !(p->is_hidden && p->is_hidden())) {
        r->state = PROBE_UNKNOWN;
        (void)snprintf(r->message, sizeof r->message, "not tried, because %s is missing",
                       lacking_name(report, lack));
        return;
    }
    if (lack != ID__MAX)
        code = -EPERM;
    else if (p->whole)
        code = p->whole(c, &err);
    else
        code = try_probe(c, p, &place);
    if (code < 0 && err.code == 0)
        (void)refusal_explain_with(&c->hints, place, place == p->place ? &p->step : NULL, -code,
                                   &err);
    if (code < 0)
        set_missing(&err, r);
    else
        set_good(p->good, r);
}

/* The host's root may be unable to give a sandbox ids, which its plan says without trying. */
static void judge_plan(struct probe_context *c, struct probe_result *map)
{
    struct error err = ERROR_INIT;

    if (plan_build(&c->plan, &c->spec, &c->host, "", (const uint64_t[2]){0, 0}, &err) < 0)
        set_missing(&err, map);
}

static void run_probes(struct probe_context *c, struct probe_report *report)
{
    struct probe_result *map = &report->results[ID_MAP];

    judge_plan(c, map);
    for (unsigned id = 0; id < ID__MAX; id++) {
        struct probe_result *r = &report->results[id];

        r->name = probes[id].name;
        r->required = id < ID_FIRST_OPTIONAL;
        if (r->state != PROBE_MISSING)
            run_probe(c, report, id, r);
        text_make_printable(r->message);
        text_make_printable(r->remedy);
        report->n_missing += r->required && r->state == PROBE_MISSING;
    }
    report->n = ID__MAX;
}

static int read_context(struct probe_context *c, struct error *err)
{
    if (spec_init(&c->spec) < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    (void)uname(&c->kernel);
    refusal_hints_read(&c->hints);
    return host_read(&c->host, err);
}

int probe_host(struct probe_report *ret, struct error *err)
{
    _cleanup_free_ struct probe_context *c = calloc(1, sizeof *c);

    if (!c)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    int r = read_context(c, err);
    if (r == 0) {
        *ret = (struct probe_report){.kernel = c->kernel};
        run_probes(c, ret);
    }
    spec_done(&c->spec);
    return r;
}

/* Anew for what this spec needs, which may be less than all. */
static void require_group(struct probe_report *report, const struct spec *spec)
{
    struct probe_result *group = &report->results[ID_DELEGATED_CGROUP];
    const struct cgroup_wants wants = cgroup_wants(spec);

    if (group->required || !cgroup_wanted(&wants))
        return;
    probe_ceilings(&wants, "the ceilings and prices of this spec can be kept", group);
    text_make_printable(group->message);
    text_make_printable(group->remedy);
    group->required = true;
    report->n_missing += group->state == PROBE_MISSING;
}

void probe_require(struct probe_report *report, const struct spec *spec)
{
    struct probe_result *egress = &report->results[ID_EGRESS];

    require_group(report, spec);
    if (egress->required || (spec->block_network && spec->allow_egress_to.n == 0 &&
                             spec->allow_egress_to_cidrs.n == 0 && spec->publish.n == 0))
        return;
    egress->required = true;
    report->n_missing += egress->state == PROBE_MISSING;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed set-up step means, and what to do about it. */
#include "local/refusal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

/* Kinds of namespaces: the word of their sysctl, and words for people. */
static const char *const kinds[][2] = {
    {"user", "user namespaces"},     {"pid", "process namespaces"}, {"mnt", "mount namespaces"},
    {"net", "network namespaces"},   {"ipc", "IPC namespaces"},     {"uts", "host name namespaces"},
    {"cgroup", "cgroup namespaces"},
};

/* The first bytes of a file as text; false, and empty, where it cannot be read. */
static bool read_text(const char *path, char *buf, size_t size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

    buf[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

/* Whether a sysctl has the one-digit value @value. */
static bool sysctl_is(const char *path, char value)
{
    char buf[8];

    (void)read_text(path, buf, sizeof buf);
    return buf[0] == value && (buf[1] == '\n' || buf[1] == '\0');
}

static const char *kind_without_namespaces(void)
{
    char path[64];

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        (void)snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i][0]);
        if (sysctl_is(path, '0'))
            return kinds[i][0];
    }
    return NULL;
}

static bool has_sys_admin(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    return syscall(SYS_capget, &head, data) == 0 && data[0].effective & (1u << CAP_SYS_ADMIN);
}

void refusal_hints_read(struct refusal_hints *ret)
{
    static const char initial_map[] = "         0          0 4294967295\n";
    char buf[8192];

    *ret = (struct refusal_hints){.no_namespaces = kind_without_namespaces(),
                                  .may_mount = has_sys_admin()};
    ret->nested = read_text("/proc/self/uid_map", buf, sizeof buf) && strcmp(buf, initial_map) != 0;
    if (ret->nested || !ret->may_mount) { /* the host's root is exempt from both */
        ret->root_only = sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0');
        ret->apparmor_restricts =
            sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1');
    }
    (void)read_text("/proc/self/status", buf, sizeof buf);
    ret->filtered = strstr(buf, "\nSeccomp:\t2") != NULL;
    (void)read_text("/proc/self/attr/apparmor/current", buf, sizeof buf);
    if (!strstr(buf, "unconfined")) {    /* nor "name (unconfined)", which denies nothing */
        buf[strcspn(buf, " \n")] = '\0'; /* "docker-default (enforce)" */
        (void)snprintf(ret->profile, sizeof ret->profile, "%.63s", buf);
        text_make_printable(ret->profile);
    }
}

static int remedy_apparmor(struct error *err)
{
    return error_remedy(err, "Give atoll an AppArmor profile with 'userns,', or sysctl -w "
                             "kernel.apparmor_restrict_unprivileged_userns=0");
}

static int remedy_filter(const struct refusal_hints *h, struct error *err)
{
    return error_remedy(err,
                        "Run that container without the filter (seccomp=unconfined%s), or run "
                        "atoll outside it",
                        h->profile[0] ? " and apparmor=unconfined" : "");
}

static int remedy_profile(struct error *err)
{
    return error_remedy(err, "Let the profile allow it, or run the container that atoll is in "
                             "without one (apparmor=unconfined)");
}

static const char *kind_word(const char *kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i][0], kind) == 0)
            return kinds[i][1];
    return "namespaces";
}

static int no_more_namespaces(const char *kind, int code, struct error *err)
{
    error_set(err, ERROR_TERMINAL, code, "this host allows no more %s (user.max_%s_namespaces)",
              kind_word(kind), kind);
    return error_remedy(err, "Raise it: sysctl -w user.max_%s_namespaces=15000", kind);
}

/* clone(2) said EPERM, EACCES or ENOSYS. */
static int namespaces_forbidden(const struct refusal_hints *h, int code, struct error *err)
{
    if (h->root_only) {
        error_set(err, ERROR_TERMINAL, code, "this host lets only root make user namespaces");
        return error_remedy(err, "Allow it: sysctl -w kernel.unprivileged_userns_clone=1");
    }
    if (h->filtered && code != EACCES) {
        error_set(err, ERROR_TERMINAL, code,
                  "making namespaces is forbidden here, most likely by the system call filter of "
                  "the container that atoll runs in");
        return remedy_filter(h, err);
    }
    if (h->apparmor_restricts) {
        error_set(err, ERROR_TERMINAL, code,
                  "AppArmor does not let this program make user namespaces "
                  "(kernel.apparmor_restrict_unprivileged_userns=1)");
        return remedy_apparmor(err);
    }
    if (h->profile[0]) {
        error_set(err, ERROR_TERMINAL, code,
                  "the AppArmor profile %s does not let this program make user namespaces",
                  h->profile);
        return remedy_profile(err);
    }
    error_set(err, ERROR_TERMINAL, code,
              "making namespaces is forbidden here (%s), most likely by a security module, or "
              "because atoll runs in a chroot",
              strerror(code));
    return error_remedy(err, "Run atoll outside the chroot, or look in the host's audit log for "
                             "what denied it");
}

static int explain_namespaces(const struct refusal_hints *h, const struct step *step, int code,
                              struct error *err)
{
    const char *kind = step ? step->source : NULL;

    switch (code) {
    case ENOSPC:
    case EUSERS:
        return no_more_namespaces(kind               ? kind
                                  : h->no_namespaces ? h->no_namespaces
                                                     : "user",
                                  code, err);
    case EPERM:
    case EACCES:
    case ENOSYS:
        return namespaces_forbidden(h, code, err);
    case EINVAL:
        error_set(err, ERROR_TERMINAL, code, "this kernel has no %s",
                  kind ? kind_word(kind) : "namespaces of some kind");
        return error_remedy(err, "Use a kernel from 5.14 on with user, pid, net, ipc, uts and "
                                 "cgroup namespaces");
    case EAGAIN:
    case ENOMEM:
        error_set(err, ERROR_TERMINAL, code, "no more processes or memory on this host: %s",
                  strerror(code));
        return error_remedy(err, "End some processes, or raise the limit on them (ulimit -u)");
    default:
        error_set(err, ERROR_TERMINAL, code, "cannot make namespaces: %s", strerror(code));
        return error_remedy(err, "See what 'atoll doctor' says");
    }
}

/* The kernel knows how to do it and somebody forbids it: in the namespaces, which could be made,
 * the process has all the power that the kernel itself asks for. */
static int explain_powerless(const struct refusal_hints *h, const char *what, int code,
                             struct error *err)
{
    const char *why = strerror(code);

    if (h->profile[0] && (code == EACCES || !h->filtered)) {
        error_set(err, ERROR_TERMINAL, code,
                  "%s is refused (%s), most likely by the AppArmor "
                  "profile %s",
                  what, why, h->profile);
        return remedy_profile(err);
    }
    if (h->filtered) {
        error_set(err, ERROR_TERMINAL, code,
                  "%s is refused (%s), most likely by the system call filter of the container that "
                  "atoll runs in",
                  what, why);
        return remedy_filter(h, err);
    }
    if (h->apparmor_restricts) {
        error_set(err, ERROR_TERMINAL, code,
                  "%s is refused: AppArmor takes the capabilities away in new user namespaces "
                  "(kernel.apparmor_restrict_unprivileged_userns=1)",
                  what);
        return remedy_apparmor(err);
    }
    error_set(err, ERROR_TERMINAL, code,
              "%s is refused (%s), most likely by a security module of this host", what, why);
    return error_remedy(err, "Look in the host's audit log for what denied it");
}

/* ENOSYS: an old kernel, unless a filter hides the call. */
static int explain_absent(const struct refusal_hints *h, const char *what, const char *call,
                          int code, struct error *err)
{
    if (h->filtered)
        return explain_powerless(h, what, code, err);
    error_set(err, ERROR_TERMINAL, code, "this kernel lacks %s", call);
    return error_remedy(err, "Use a kernel from 5.14 on");
}

/* @what failed, for a cause that has no sentence of its own; @call: what a kernel may lack. */
static int explain_any(const struct refusal_hints *h, const char *what, const char *call, int code,
                       struct error *err)
{
    if (code == EPERM || code == EACCES)
        return explain_powerless(h, what, code, err);
    if (code == ENOSYS)
        return explain_absent(h, what, call, code, err);
    error_set(err, ERROR_TERMINAL, code, "%s failed: %s", what, strerror(code));
    return error_remedy(err, "See what 'atoll doctor' says, and report this with its output if "
                             "that explains nothing");
}

static int explain_maps(const struct refusal_hints *h, bool range, int code, struct error *err)
{
    if (code == ENOENT) {
        error_set(err, ERROR_TERMINAL, code, "/proc is not mounted here");
        return error_remedy(err, "Mount it: mount -t proc proc /proc");
    }
    if (code == EROFS) {
        error_set(err, ERROR_TERMINAL, code,
                  "/proc is read-only here, so that user ids cannot be mapped");
        return error_remedy(err, "Make it writable: mount -o remount,rw /proc");
    }
    if (range && code == EPERM && h->nested) {
        error_set(err, ERROR_TERMINAL, code,
                  "user ids: this process is the host's root in a user namespace that has no other "
                  "ids to give, and a sandbox never runs as the host's root");
        return error_remedy(err, "Run atoll outside that user namespace, or as an ordinary user");
    }
    return explain_any(h, "mapping user ids", "user namespaces", code, err);
}

static int explain_proc(int code, struct error *err)
{
    error_set(
        err, ERROR_TERMINAL, code,
        "the container that atoll runs in masks parts of /proc, and then the kernel allows no "
        "fresh one");
    return error_remedy(err, "Run that container with unmasked paths (systempaths=unconfined, or "
                             "procMount: Unmasked)");
}

static int explain_image(const struct step *step, int code, struct error *err)
{
    if (code == ENODEV) {
        error_set(err, ERROR_TERMINAL, code, "this kernel has no overlay file system");
        return error_remedy(err, "Load it: modprobe overlay");
    }
    if (!step->source) {
        error_set(err, ERROR_TERMINAL, code, "an overlay for image folders cannot be mounted: %s",
                  strerror(code));
        return error_remedy(err, "Use a kernel from 5.14 on with the overlay file system");
    }
    error_set(err, ERROR_TERMINAL, code,
              "the image folder %s cannot be the lower layer of an overlay: %s", step->source,
              strerror(code));
    return error_remedy(err,
                        "Use a folder on an ordinary local file system that this user may read");
}

static int explain_volume(const struct step *step, int code, struct error *err)
{
    if (code == EROFS) {
        error_set(err, ERROR_USAGE, code,
                  "volume: %s does not exist and lies in a read-only folder", step->target);
        return error_remedy(err, "Choose a path below /workspace, or one that exists");
    }
    if (code == ELOOP) {
        error_set(err, ERROR_USAGE, code, "volume: %s leads through a symbolic link", step->target);
        return error_remedy(err, "Name the path that the link leads to");
    }
    error_set(err, ERROR_USAGE, code, "volume: %s cannot be mounted on %s: %s", step->source,
              step->target, strerror(code));
    return error_remedy(err, "Check that the path exists and that this user may enter its folders");
}

static int explain_idmap(const struct refusal_hints *h, const char *what, int code,
                         struct error *err)
{
    if (code == EPERM && !h->may_mount) {
        error_set(err, ERROR_TERMINAL, code,
                  "files of %s could not keep their owner, since this process is root without "
                  "CAP_SYS_ADMIN and may not make an idmapped mount",
                  what);
        return error_remedy(err, "Run atoll with CAP_SYS_ADMIN, or as the user who owns the files");
    }
    if (code == EPERM || code == EACCES || code == ENOSYS) {
        char doing[160];

        (void)snprintf(doing, sizeof doing, "an idmapped mount of %.120s", what);
        return explain_any(h, doing, "idmapped mounts", code, err);
    }
    error_set(err, ERROR_TERMINAL, code,
              "%s lies on a file system that cannot map owners (idmapped mount: %s)", what,
              strerror(code));
    return error_remedy(
        err,
        "Put it on ext4, xfs or btrfs, or on tmpfs from Linux 6.3 on, or run atoll as the user who "
        "owns it");
}

static int explain_workdir(const struct step *step, int code, struct error *err)
{
    if (code == EROFS)
        error_set(err, ERROR_USAGE, code,
                  "workdir: %s does not exist and cannot be made in a read-only folder",
                  step->target);
    else
        error_set(err, ERROR_USAGE, code, "workdir: %s cannot be used: %s", step->target,
                  strerror(code));
    return error_remedy(err, "Choose a folder below /workspace");
}

static int explain_memfd(int code, struct error *err)
{
    if (code == EACCES || code == EPERM) {
        error_set(err, ERROR_TERMINAL, code,
                  "a memory file may not be executed here (sysctl vm.memfd_noexec)");
        return error_remedy(err, "Allow it: sysctl -w vm.memfd_noexec=0");
    }
    error_set(err, ERROR_TERMINAL, code, "cannot make a memory file for init: %s", strerror(code));
    return error_remedy(err, "Check vm.memfd_noexec and free memory");
}

/* What the kernel answers where a part of it is missing that could be a module. */
static bool is_absence(int code)
{
    return code == ENOENT || code == EOPNOTSUPP || code == EPROTONOSUPPORT ||
           code == ESOCKTNOSUPPORT || code == EAFNOSUPPORT || code == ENOPROTOOPT;
}

static int explain_modules(const struct refusal_hints *h, const struct step *step, int code,
                           struct error *err)
{
    if (!is_absence(code))
        return explain_any(h, step->target, step->source, code, err);
    error_set(err, ERROR_TERMINAL, code,
              "%s needs of this kernel what it lacks or may not load (%s: %s)", step->target,
              step->source, strerror(code));
    return error_remedy(err,
                        "As root, load it: modprobe -a %s; where the kernel has no modules, use "
                        "one with these parts built in",
                        step->source);
}

/* What a step does, to stand in front of "is refused" and "failed". */
static void step_phrase(const struct step *step, char *buf, size_t size)
{
    static const char *const phrases[STEP__MAX] = {
        [STEP_PRIVATE] = "cutting mounts off from those of the host",
        [STEP_NETWORK] = "making a network with a loopback interface only",
        [STEP_HOSTNAME] = "setting the host name",
        [STEP_ROOT] = "mounting a memory file system",
        [STEP_PROC] = "mounting a fresh /proc",
        [STEP_DEV] = "mounting a memory file system on /dev",
        [STEP_TERMINALS] = "mounting terminals of its own (devpts)",
        [STEP_SHM] = "mounting a memory file system on /dev/shm",
        [STEP_READ_ONLY] = "making the root read-only",
        [STEP_PIVOT] = "changing the root",
        [STEP_LIMITS] = "setting limits",
        [STEP_LANDLOCK] = "restricting file access by Landlock",
        [STEP_PRIVILEGES] = "giving up privileges",
        [STEP_INIT] = "executing init",
    };
    char what[200];

    if (phrases[step->kind]) {
        (void)snprintf(buf, size, "%s", phrases[step->kind]);
        return;
    }
    step_describe(step, what, sizeof what);
    (void)snprintf(buf, size, "the set-up step '%s'", what);
}

static bool step_mounts(enum step_kind kind)
{
    return kind == STEP_PRIVATE || kind == STEP_ROOT || kind == STEP_BIND ||
           kind == STEP_WRITABLE || kind == STEP_PROC_LOCK || kind == STEP_PROC_MASK ||
           kind == STEP_READ_ONLY;
}

static int explain_step(const struct refusal_hints *h, const struct step *step, int code,
                        struct error *err)
{
    static const struct step network = {.source = "net"};
    static const struct step way_out = {
        .source = "nf_tables nft_log nfnetlink_log nft_reject_inet nft_tproxy",
        .target = "a network with a way out"};
    char what[256];

    if (step->kind == STEP_IDS)
        return explain_maps(h, false, code, err);
    if (step->kind == STEP_PROC && code == EPERM)
        return explain_proc(code, err);
    if (step->kind == STEP_OVERLAY)
        return explain_image(step, code, err);
    if (step->kind == STEP_VOLUME)
        return explain_volume(step, code, err);
    if (step->kind == STEP_WORKDIR)
        return explain_workdir(step, code, err);
    if (step->kind == STEP_NETWORK && (code == ENOSPC || code == EUSERS || code == EINVAL))
        return explain_namespaces(h, &network, code, err);
    if (step->kind == STEP_NETWORK && is_absence(code)) /* the sealed one needs no such part */
        return explain_modules(h, &way_out, code, err);
    if (step->kind == STEP_INIT && (code == EPERM || code == EACCES))
        return explain_memfd(code, err);
    if (step->kind == STEP_PIVOT && code == EINVAL) {
        error_set(err, ERROR_TERMINAL, code,
                  "the host's root is the initial memory file system, which cannot be left");
        return error_remedy(err, "Copy it to a tmpfs and switch_root there first");
    }
    if (step->kind == STEP_PIVOT && code == EXDEV)
        return error_set(err, ERROR_TERMINAL, code,
                         "a mount of the host's still lies over the sandbox's root");
    if (code == EOVERFLOW) { /* only an image brings files of others */
        error_set(err, ERROR_TERMINAL, code,
                  "the image folder holds files of an owner or group that does not exist inside");
        return error_remedy(err, "Unpack it as the user who runs atoll, in a group of that user's");
    }
    step_phrase(step, what, sizeof what);
    return explain_any(
        h, what, step_mounts(step->kind) ? "the new mount interface" : "a system call", code, err);
}

int refusal_explain_with(const struct refusal_hints *hints, enum refusal_place place,
                         const struct step *step, int code, struct error *err)
{
    switch (place) {
    case REFUSAL_STEP:
        assert(step);
        return explain_step(hints, step, code, err);
    case REFUSAL_NAMESPACES:
        return explain_namespaces(hints, step, code, err);
    case REFUSAL_MAPS:
        return explain_maps(hints, true, code, err);
    case REFUSAL_IDMAP:
        return explain_idmap(hints, step && step->source ? step->source : "a volume", code, err);
    case REFUSAL_MEMFD:
        return explain_memfd(code, err);
    case REFUSAL_MODULES:
        assert(step);
        return explain_modules(hints, step, code, err);
    case REFUSAL_CALL:
        return code == EINVAL ? explain_absent(hints, step->source, step->source, code, err)
                              : explain_any(hints, step->source, step->source, code, err);
    }
    return -code;
}

int refusal_explain(enum refusal_place place, const struct step *step, int code, struct error *err)
{
    struct refusal_hints hints;

    refusal_hints_read(&hints);
    return refusal_explain_with(&hints, place, step, code, err);
}

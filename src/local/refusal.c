/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed set-up step means, and what to do about it. */
#include "local/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

/* The first byte of a sysctl, or 0 where there is none. */
static char sysctl_char(const char *path)
{
    char c = 0;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, &c, 1) == 1 ? c : 0;
}

static bool apparmor_restricts(void)
{
    return sysctl_char("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == '1';
}

static int explain_namespaces(int code, struct error *err)
{
    if (code == ENOSPC || sysctl_char("/proc/sys/user/max_user_namespaces") == '0') {
        error_set(err, ERROR_TERMINAL, code,
                  "this host allows no more user namespaces (user.max_user_namespaces)");
        return error_remedy(err, "Raise it: sysctl -w user.max_user_namespaces=15000");
    }
    if (sysctl_char("/proc/sys/kernel/unprivileged_userns_clone") == '0') {
        error_set(err, ERROR_TERMINAL, code, "this host lets only root make user namespaces");
        return error_remedy(err, "Allow it: sysctl -w kernel.unprivileged_userns_clone=1");
    }
    if (apparmor_restricts()) {
        error_set(err, ERROR_TERMINAL, code,
                  "AppArmor does not let this program make user namespaces");
        return error_remedy(err, "Give atoll an AppArmor profile with 'userns,', or sysctl -w "
                                 "kernel.apparmor_restrict_unprivileged_userns=0");
    }
    if (code == EPERM || code == ENOSYS) {
        error_set(err, ERROR_TERMINAL, code,
                  "making namespaces is forbidden here, most likely by the system call filter of "
                  "the container that atoll runs in");
        return error_remedy(err,
                            "Run that container with a filter that allows clone and unshare "
                            "with namespace flags (seccomp=unconfined), or run atoll outside it");
    }
    if (code == EAGAIN || code == ENOMEM)
        return error_set(err, ERROR_TERMINAL, code, "no more processes or memory on this host: %s",
                         strerror(code));
    if (code == EINVAL) {
        error_set(err, ERROR_TERMINAL, code, "this kernel lacks a kind of namespace");
        return error_remedy(err, "Use a kernel from 5.14 on with user, pid, net, ipc, uts and "
                                 "cgroup namespaces");
    }
    return error_set(err, ERROR_TERMINAL, code, "cannot make namespaces: %s", strerror(code));
}

/* Namespaces could be made, and yet the process has no power in them. */
static int explain_powerless(const char *what, int code, struct error *err)
{
    if (apparmor_restricts()) {
        error_set(err, ERROR_TERMINAL, code,
                  "%s is refused: AppArmor takes the capabilities away in new user namespaces "
                  "(kernel.apparmor_restrict_unprivileged_userns=1)",
                  what);
        return error_remedy(err, "Give atoll an AppArmor profile with 'userns,', or sysctl -w "
                                 "kernel.apparmor_restrict_unprivileged_userns=0");
    }
    error_set(
        err, ERROR_TERMINAL, code,
        "%s is refused (%s), most likely by a security module or by the system call filter of "
        "the container that atoll runs in",
        what, strerror(code));
    return error_remedy(err, "Run that container with seccomp=unconfined and without a security "
                             "profile that forbids it, or run atoll outside it");
}

static int explain_proc(int code, struct error *err)
{
    if (code != EPERM)
        return explain_powerless("mounting a fresh /proc", code, err);
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
    error_set(err, ERROR_TERMINAL, code,
              "the image folder %s cannot be the lower layer of an "
              "overlay: %s",
              step->source, strerror(code));
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

static int explain_pivot(int code, struct error *err)
{
    if (code != EINVAL)
        return explain_powerless("changing the root", code, err);
    error_set(err, ERROR_TERMINAL, code,
              "the host's root is the initial memory file system, which cannot be left");
    return error_remedy(err, "Copy it to a tmpfs and switch_root there first");
}

static int explain_step(const struct step *step, int code, struct error *err)
{
    char what[256];

    switch (step->kind) {
    case STEP_PROC:
        return explain_proc(code, err);
    case STEP_OVERLAY:
        return explain_image(step, code, err);
    case STEP_VOLUME:
        return explain_volume(step, code, err);
    case STEP_WORKDIR:
        return explain_workdir(step, code, err);
    case STEP_PIVOT:
        return explain_pivot(code, err);
    case STEP_INIT:
        if (code == EACCES || code == EPERM) {
            error_set(err, ERROR_TERMINAL, code,
                      "a memory file may not be executed here (sysctl vm.memfd_noexec)");
            return error_remedy(err, "Allow it: sysctl -w vm.memfd_noexec=0");
        }
        break;
    case STEP_ROOT:
        if (code == ENOSYS || code == EINVAL) {
            error_set(err, ERROR_TERMINAL, code, "this kernel lacks the new mount interface");
            return error_remedy(err, "Use a kernel from 5.14 on");
        }
        break;
    case STEP_PRIVATE:
    case STEP_LOOPBACK:
    case STEP_HOSTNAME:
    case STEP_IDS:
    case STEP_FOLDER:
    case STEP_WRITABLE:
    case STEP_LINK:
    case STEP_FILE:
    case STEP_BIND:
    case STEP_SYSCTL:
    case STEP_PROC_LOCK:
    case STEP_PROC_MASK:
    case STEP_DEV:
    case STEP_TERMINALS:
    case STEP_SHM:
    case STEP_READ_ONLY:
    case STEP_LIMITS:
    case STEP_LANDLOCK:
    case STEP_PRIVILEGES:
    case STEP__MAX:
        break;
    }
    step_describe(step, what, sizeof what);
    if (code == EPERM || code == EACCES)
        return explain_powerless(what, code, err);
    return error_set(err, ERROR_TERMINAL, code, "%s failed: %s", what, strerror(code));
}

int refusal_explain(enum refusal_place place, const struct step *step, int code, struct error *err)
{
    switch (place) {
    case REFUSAL_STEP:
        return explain_step(step, code, err);
    case REFUSAL_NAMESPACES:
        return explain_namespaces(code, err);
    case REFUSAL_MAPS:
        return explain_powerless("mapping user ids", code, err);
    case REFUSAL_IDMAP:
        error_set(err, ERROR_TERMINAL, code,
                  "%s lies on a file system that cannot map owners (idmapped mount: %s)",
                  step ? step->source : "a volume", strerror(code));
        return error_remedy(err,
                            "Put it on ext4, xfs, btrfs or tmpfs, or run atoll as the user who "
                            "owns it");
    case REFUSAL_MEMFD:
        error_set(err, ERROR_TERMINAL, code, "cannot make a memory file for init: %s",
                  strerror(code));
        return error_remedy(err, "Check vm.memfd_noexec and free memory");
    }
    return -code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What it means that no control group can be made, and what to do about it. */
#include "local/cgroup_refusal.h"

#include <errno.h>
#include <string.h>

#include "base/guards.h"

static int forbidden(const struct cgroup_denial *x, const char *controller, struct error *err)
{
    if (!x->unified) {
        error_set(err, ERROR_TERMINAL, x->code,
                  "%s cannot be enforced: the controller %s belongs to cgroup v1 here, and this "
                  "user may make no group in %s (%s)",
                  x->field, controller, x->folder, strerror(x->code));
        return error_remedy(err,
                            "Run atoll as root, start the host with "
                            "systemd.unified_cgroup_hierarchy=1, or remove %s",
                            x->field);
    }
    error_set(err, ERROR_TERMINAL, x->code,
              "%s cannot be enforced: no control group with the controller %s is delegated to this "
              "user, who may make none in %s (%s)",
              x->field, controller, x->folder, strerror(x->code));
    return error_remedy(err,
                        "Start atoll by 'systemd-run --user --scope -p Delegate=yes atoll ...', or "
                        "remove %s",
                        x->field);
}

static int absent(const struct cgroup_denial *x, const char *controller, struct error *err)
{
    if (!x->folder && x->code != ENOENT) {
        error_set(
            err, ERROR_TERMINAL, x->code,
            "%s cannot be enforced: where the control groups with the controller %s are cannot "
            "be read from /proc/self/cgroup and mountinfo: %s",
            x->field, controller, strerror(x->code));
        return error_remedy(err, "See what 'atoll doctor' says, or remove %s", x->field);
    }
    if (!x->folder) {
        error_set(err, ERROR_TERMINAL, x->code,
                  "%s cannot be enforced: no hierarchy of control groups with the controller %s is "
                  "mounted here",
                  x->field, controller);
        return error_remedy(err, "Mount it: mount -t cgroup2 none /sys/fs/cgroup; or remove %s",
                            x->field);
    }
    if (x->why == CGROUP_WHY_KERNEL) {
        error_set(err, ERROR_TERMINAL, x->code,
                  "%s cannot be enforced: the kernel has the controller %s of control groups "
                  "switched off, as %s shows",
                  x->field, controller, x->folder);
        return error_remedy(err,
                            "Boot the host without cgroup_disable=%s (a Raspberry Pi with "
                            "cgroup_enable=%s), or remove %s",
                            controller, controller, x->field);
    }
    error_set(err, ERROR_TERMINAL, x->code,
              "%s cannot be enforced: the control group %s has no controller %s", x->field,
              x->folder, controller);
    if (x->why == CGROUP_WHY_OUTSIDE)
        return error_remedy(err,
                            "It is the highest one that can be seen here: on the host, give the "
                            "group of this container the controller %s, or remove %s",
                            controller, x->field);
    return error_remedy(err,
                        "Delegate it, as root: systemctl edit user@.service, with Delegate=cpu "
                        "memory pids in [Service]; or remove %s",
                        x->field);
}

static int uncounted(const struct cgroup_denial *x, const char *controller, struct error *err)
{
    error_set(
        err, ERROR_TERMINAL, x->code,
        "%s cannot be enforced: swap is on, and the controller %s in %s does not count it, so "
        "that what is over the ceiling would be moved to the disk",
        x->field, controller, x->folder);
    return error_remedy(err,
                        "Boot the host without swapaccount=0, turn swap off (swapoff -a), or "
                        "remove %s",
                        x->field);
}

int cgroup_refuse(const struct cgroup_denial *x, struct error *err)
{
    const char *controller = cgroup_controller_name(x->controller);

    if (x->why == CGROUP_WHY_SWAP)
        return uncounted(x, controller, err);
    if (!x->folder || x->code == ENODEV || x->code == ENOENT)
        return absent(x, controller, err);
    switch (x->code) {
    case EACCES:
    case EPERM:
        return forbidden(x, controller, err);
    case EROFS:
        error_set(err, ERROR_TERMINAL, x->code,
                  "%s cannot be enforced: the control groups in %s, with the controller %s, are "
                  "read-only here",
                  x->field, x->folder, controller);
        return error_remedy(err,
                            "In a container, mount them writable, in a cgroup namespace of its "
                            "own; or remove %s",
                            x->field);
    case EBUSY:
        error_set(err, ERROR_TERMINAL, x->code,
                  "%s cannot be enforced: processes are in the control group %s itself, and then "
                  "the kernel gives its controller %s to no group below",
                  x->field, x->folder, controller);
        return error_remedy(err,
                            "Move all its processes to a group below it and start atoll there, as "
                            "an init such as systemd does in a container; or remove %s",
                            x->field);
    default:
        error_set(err, ERROR_TERMINAL, x->code,
                  "%s cannot be enforced: no control group with the controller %s can be made in "
                  "%s: %s",
                  x->field, controller, x->folder, strerror(x->code));
        return error_remedy(err, "See what 'atoll doctor' says, or remove %s", x->field);
    }
}

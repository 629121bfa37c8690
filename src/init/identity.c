/* SPDX-License-Identifier: Apache-2.0 */
/* Making a child an ordinary process: no capabilities, and its user. Most of that is done once, by
 * init for itself, since all children inherit it. */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/filter.h"
#include "init/init.h"
#include "base/guards.h"

enum { CAPABILITY_LAST = 63 };

/* So that no program file could ever bring any back; init itself executes nothing. */
static int drop_bounding_set(void)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    for (unsigned long c = 0; c <= CAPABILITY_LAST; c++) {
        int has = prctl(PR_CAPBSET_READ, c, 0, 0, 0);

        if (has < 0 && errno == EINVAL)
            break; /* above the kernel's last one */
        if (has < 0)
            return -errno; /* not the end, after which all would seem to be dropped */
        if (has > 0 && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
            return -errno;
    }
    return 0;
}

void confine(struct init *i)
{
    i->confined_stage = START_IDENTITY;
    i->confined_error = -drop_bounding_set();
    if (i->confined_error != 0)
        return;
    i->confined_stage = START_FILTER;
    i->confined_error = -filter_install();
}

/* Nobody carried it any more, or it would not be a new one. */
static void take_from_others(struct init *i, uint64_t mark)
{
    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
        if (i->commands[k].mark == mark)
            i->commands[k].mark = 0;
}

int mark_prepare(struct init *i)
{
    struct stat st;

    if (i->mark != 0)
        return 0;
    /* Its own entry in /proc is the one that the kernel has at hand. */
    if (unshare(CLONE_NEWCGROUP) < 0 || stat("/proc/self/ns/cgroup", &st) < 0)
        return -errno;
    i->mark = st.st_ino;
    take_from_others(i, i->mark);
    return 0;
}

uint64_t mark_take(struct init *i)
{
    uint64_t mark = i->mark;

    i->mark = 0;
    return mark;
}

int child_identity(const struct exec_request *x)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    uint32_t gid = x->gid;

    if (x->flags & EXEC_USER_SET && (x->uid != geteuid() || gid != getegid())) {
        if (syscall(SYS_setgroups, 1, &gid) < 0 && errno != EPERM) /* EPERM: one id, no groups */
            return -errno;
        if (syscall(SYS_setresgid, gid, gid, gid) < 0 ||
            syscall(SYS_setresuid, x->uid, x->uid, x->uid) < 0)
            return -errno;
    }
    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The Landlock rules of a sandbox. */
#include "local/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/guards.h"

/* Rights and scopes newer than the kernel headers of the oldest distribution we
 * build on. */
enum {
    RIGHT_REFER = 1 << 13,     /* ABI 2 */
    RIGHT_TRUNCATE = 1 << 14,  /* ABI 3 */
    RIGHT_IOCTL_DEV = 1 << 15, /* ABI 5 */
    SCOPE_ALL = 3,             /* ABI 6: abstract sockets and signals stay within the domain */
};

/* struct landlock_ruleset_attr as of ABI 6. */
struct ruleset {
    uint64_t files, network, scopes;
};

enum {
    RIGHTS_LOOK =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    RIGHTS_ON_FILE = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                     LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHT_TRUNCATE | RIGHT_IOCTL_DEV,
    RIGHTS_ABI_1 = (1 << 13) - 1,
};

int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi > 0 ? (int)abi : 0;
}

static uint64_t all_rights(int abi)
{
    return RIGHTS_ABI_1 | (abi >= 2 ? RIGHT_REFER : 0u) | (abi >= 3 ? RIGHT_TRUNCATE : 0u) |
           (abi >= 5 ? RIGHT_IOCTL_DEV : 0u);
}

/* Allows @rights on @path and below; a path that is not there needs no rule. */
static int allow(int ruleset, const char *path, uint64_t rights, int abi)
{
    _cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = {.parent_fd = fd};
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    rule.allowed_access =
        rights & all_rights(abi) & (S_ISDIR(st.st_mode) ? ~UINT64_C(0) : (uint64_t)RIGHTS_ON_FILE);
    return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
               ? -errno
               : 0;
}

/* Whether commands may write to what a step of the plan has put there. */
static bool is_writable_target(const struct step *step)
{
    if (step->kind == STEP_VOLUME)
        return !(step->flags & STEP_RO);
    return step->kind == STEP_WORKDIR && strcmp(step->target, "/") != 0 &&
           !path_is_within(step->target, "/usr") && !path_is_within(step->target, "/etc");
}

int landlock_fence(const struct plan *p, int abi)
{
    static const char *const writable[] = {"/workspace", "/tmp", "/root", "/home",
                                           "/run",       "/var", "/dev",  "/proc"};
    const struct ruleset attr = {.files = all_rights(abi), .scopes = SCOPE_ALL};
    size_t size = abi >= 6 ? sizeof attr : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    _cleanup_fd_ int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    uint64_t all = all_rights(abi);
    int r = 0;

    if (ruleset < 0)
        return -errno;
    r = allow(ruleset, "/", p->image_folder ? all : (uint64_t)RIGHTS_LOOK, abi);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(writable); i++)
        r = allow(ruleset, writable[i], all, abi);
    for (size_t i = 0; r == 0 && i < p->n; i++)
        if (is_writable_target(&p->steps[i]))
            r = allow(ruleset, p->steps[i].target, all, abi);
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        r = -errno;
    return r;
}

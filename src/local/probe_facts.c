/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes only look at: optional things, and what explains a refusal of others. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "local/landlock.h"
#include "local/probe.h"
#include "base/guards.h"

enum { KERNEL_MAJOR = 5, KERNEL_MINOR = 14, FILES_ENOUGH = 1024 };

__attribute__((format(printf, 3, 4))) static void conclude(struct probe_result *r,
                                                           enum probe_state state, const char *fmt,
                                                           ...)
{
    va_list ap;

    r->state = state;
    va_start(ap, fmt);
    (void)vsnprintf(r->message, sizeof r->message, fmt, ap);
    va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void advise(struct probe_result *r, const char *fmt,
                                                         ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(r->remedy, sizeof r->remedy, fmt, ap);
    va_end(ap);
}

void probe_landlock(const struct probe_context *c, struct probe_result *r)
{
    int abi = landlock_abi();

    (void)c;
    if (abi >= LANDLOCK_ABI_MIN) {
        conclude(r, PROBE_OK, "Landlock is a second fence around files (ABI %d)", abi);
        return;
    }
    if (abi > 0)
        conclude(r, PROBE_MISSING, "the kernel's Landlock is too old to be used (ABI %d)", abi);
    else
        conclude(r, PROBE_MISSING, "there is no Landlock, the second fence around files");
    advise(r, "Use a kernel from 5.19 on, started with 'landlock' in its lsm= parameter");
}

/* The name of user @uid in /etc/passwd; empty if it is not there. */
static void account_name(uid_t uid, char *buf, size_t size)
{
    FILE *f = fopen("/etc/passwd", "re");
    const struct passwd *p;

    buf[0] = '\0';
    while (f && (p = fgetpwent(f)))
        if (p->pw_uid == uid) {
            (void)snprintf(buf, size, "%s", p->pw_name);
            break;
        }
    if (f)
        (void)fclose(f);
}

/* Whether @path has a line "NAME:START:COUNT" for the user, by name or by number (subuid(5)). */
static bool has_range(const char *path, const char *name, uid_t uid)
{
    FILE *f = fopen(path, "re");
    _cleanup_free_ char *line = NULL;
    char number[16];
    bool found = false;
    size_t size = 0;

    (void)snprintf(number, sizeof number, "%u", uid);
    while (f && !found && getline(&line, &size, f) > 0) {
        char *colon = strchr(line, ':');

        if (!colon)
            continue;
        *colon = '\0';
        found = (name[0] && strcmp(line, name) == 0) || strcmp(line, number) == 0;
    }
    if (f)
        (void)fclose(f);
    return found;
}

/* Whether @program is on the path and may become root: by its mode, or by capabilities. */
static bool has_helper(const char *program)
{
    const char *path = getenv("PATH");
    char full[4096];
    struct stat st;

    while (path && *path) {
        size_t n = strcspn(path, ":");

        if (n > 0 &&
            snprintf(full, sizeof full, "%.*s/%s", (int)n, path, program) < (int)sizeof full &&
            access(full, X_OK) == 0 && stat(full, &st) == 0)
            return st.st_mode & S_ISUID || getxattr(full, "security.capability", NULL, 0) > 0;
        path += n + (path[n] == ':');
    }
    return false;
}

void probe_subordinate_ids(const struct probe_context *c, struct probe_result *r)
{
    static const char *const lists[] = {"/etc/subuid", "/etc/subgid"};
    static const char *const helpers[] = {"newuidmap", "newgidmap"};
    static const char loss[] = "so files of an image can have one owner only";
    char name[64];

    if (c->host.kernel_root) {
        conclude(r, PROBE_OK, "not needed, since root gives ids of its own choice");
        return;
    }
    if (c->hints.nested) {
        conclude(r, PROBE_MISSING, "no other ids can be had in this user namespace, %s", loss);
        advise(r, "Run atoll outside that user namespace");
        return;
    }
    account_name(c->host.uid, name, sizeof name);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        if (!has_range(lists[i], name, c->host.uid)) {
            conclude(r, PROBE_MISSING, "%s has no ids for user %u, %s", lists[i], c->host.uid,
                     loss);
            advise(r,
                   "As root, give that user ids that nobody else has: usermod --add-subuids "
                   "FIRST-LAST --add-subgids FIRST-LAST %s",
                   name[0] ? name : "USER");
            return;
        }
    for (size_t i = 0; i < ARRAY_SIZE(helpers); i++)
        if (!has_helper(helpers[i])) {
            conclude(r, PROBE_MISSING, "there is no %s with the power to map ids, %s", helpers[i],
                     loss);
            advise(r, "Install the package 'uidmap' (or 'shadow-utils')");
            return;
        }
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
        conclude(r, PROBE_MISSING, "no_new_privs is set, which takes newuidmap its power, %s",
                 loss);
        advise(r, "Start atoll without no_new_privs");
        return;
    }
    conclude(r, PROBE_OK, "files of an image can have many owners");
}

void probe_ceilings(const struct cgroup_wants *wants, const char *good, struct probe_result *r)
{
    struct error err = ERROR_INIT;

    r->remedy[0] = '\0';
    r->code = 0;
    if (cgroup_judge(wants, &err) == 0) {
        conclude(r, PROBE_OK, "%s", good);
        return;
    }
    r->code = err.code;
    conclude(r, PROBE_MISSING, "%s", err.message);
    advise(r, "%s", err.remedy);
}

void probe_cgroup(const struct probe_context *c, struct probe_result *r)
{
    const struct cgroup_wants wants = {.memory_bytes = 1, .cpu_milli = 1};

    (void)c;
    probe_ceilings(&wants, "memory and CPU of a whole sandbox can be limited", r);
}

void probe_open_files(const struct probe_context *c, struct probe_result *r)
{
    unsigned long long limit = c->host.open_files_max;

    if (limit >= FILES_ENOUGH) {
        conclude(r, PROBE_OK, "a process inside may have %llu files open",
                 limit < LIMIT_OPEN_FILES ? limit : (unsigned long long)LIMIT_OPEN_FILES);
        return;
    }
    conclude(r, PROBE_MISSING, "a process inside may have only %llu files open", limit);
    advise(r, "Raise the hard limit (ulimit -Hn) before atoll is started");
}

void probe_filter(const struct probe_context *c, struct probe_result *r)
{
    conclude(r, PROBE_OK,
             c->hints.filtered
                 ? "a system call filter is in force already, and may refuse what atoll needs"
                 : "no system call filter is in force yet");
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

void probe_container(const struct probe_context *c, struct probe_result *r)
{
    /* Of the first pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
    const ino_t first_pid_namespace = 0xEFFFFFFC;
    const char *engine = is_there("/run/.containerenv")      ? "in a container of Podman"
                         : is_there("/.dockerenv")           ? "in a container of Docker"
                         : getenv("KUBERNETES_SERVICE_HOST") ? "in a pod of Kubernetes"
                                                             : NULL;
    const char *user = c->hints.nested ? ", in a user namespace of its own" : "";
    struct stat st;

    if (!engine && stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != first_pid_namespace)
        engine = "in a container or sandbox";
    if (engine || c->hints.nested)
        conclude(r, PROBE_OK, "atoll runs %s%s%s%s", engine ? engine : "in no container", user,
                 c->hints.profile[0] ? ", under the AppArmor profile " : "", c->hints.profile);
    else
        conclude(r, PROBE_OK, "atoll runs in no container");
}

/* The digits at @*p, which is moved behind them; saturating. */
static unsigned take_number(const char **p)
{
    unsigned n = 0;

    for (; **p >= '0' && **p <= '9'; (*p)++)
        n = n > 99999 ? n : n * 10 + (unsigned)(**p - '0');
    return n;
}

void probe_kernel(const struct probe_context *c, struct probe_result *r)
{
    const char *p = c->kernel.release;
    unsigned major = take_number(&p);
    unsigned minor = *p == '.' ? (p++, take_number(&p)) : 0;

    if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR)) {
        conclude(r, PROBE_OK, "%s %s is new enough", c->kernel.sysname, c->kernel.release);
        return;
    }
    conclude(r, PROBE_MISSING, "%s %s is older than %d.%d, the oldest that atoll is made for",
             c->kernel.sysname, c->kernel.release, KERNEL_MAJOR, KERNEL_MINOR);
    advise(r, "Use a kernel from %d.%d on", KERNEL_MAJOR, KERNEL_MINOR);
}

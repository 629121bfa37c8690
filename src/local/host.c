/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the host: identity, privilege, memory, and the visible part of its
 * file system. */
#include "local/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/limits.h"
#include "base/guards.h"

/* Kernel uid 0 may write what only root may, even without capabilities, so it
 * must not be used inside. Whether our uid 0 is that one shows the owner of a
 * file that always belongs to it. */
bool host_is_kernel_root(void)
{
    struct stat st;

    if (geteuid() != 0)
        return false;
    return stat("/proc/sys/kernel", &st) < 0 || st.st_uid == 0;
}

static bool has_capability(const struct __user_cap_data_struct data[2], unsigned cap)
{
    return data[cap / 32].effective & (1u << (cap % 32));
}

/* MemAvailable of /proc/meminfo (proc(5)): what could be used without swapping.
 */
static uint64_t available_memory(void)
{
    char buf[512];
    _cleanup_fd_ int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
    const char *p;
    uint64_t kib = 0;

    if (n <= 0)
        return 1 * LIMIT_GIB;
    buf[n] = '\0';
    p = strstr(buf, "MemAvailable:");
    if (!p)
        return 1 * LIMIT_GIB;
    for (p += strlen("MemAvailable:"); *p == ' '; p++)
        ;
    for (; *p >= '0' && *p <= '9' && kib < UINT64_MAX / 20; p++)
        kib = kib * 10 + (uint64_t)(*p - '0');
    return kib * LIMIT_KIB;
}

/* A link is shown as a link when it leads into what is shown anyway; else its
 * target is bound. */
static bool link_stays_visible(const char *path, const char *target)
{
    char full[PATH_MAX];

    /* The usual ones, without walking them: /bin to usr/bin, /etc/localtime to
     * /usr/share/… */
    if (!strstr(target, "..") && (strncmp(target, "/usr/", 5) == 0 ||
                                  (strncmp(target, "usr/", 4) == 0 && strrchr(path, '/') == path)))
        return true;
    return realpath(path, full) && (path_is_within(full, "/usr") || path_is_within(full, "/etc"));
}

static void add_entry(struct host *h, const char *path)
{
    struct host_entry *e = &h->entries[h->n_entries];
    struct stat st;
    ssize_t n;

    if (h->n_entries == HOST_ENTRIES_MAX || strlen(path) >= sizeof e->path)
        return;
    *e = (struct host_entry){0};
    memcpy(e->path, path, strlen(path) + 1);
    if (lstat(path, &st) < 0)
        return;
    if (S_ISLNK(st.st_mode)) {
        n = readlink(path, e->target, sizeof e->target - 1);
        if (n > 0 && link_stays_visible(path, e->target)) {
            e->kind = HOST_LINK;
            h->n_entries++;
            return;
        }
        if (stat(path, &st) < 0)
            return;
    }
    if (S_ISDIR(st.st_mode))
        e->kind = HOST_FOLDER;
    else if (S_ISREG(st.st_mode))
        e->kind = HOST_FILE;
    else
        return;
    h->n_entries++;
}

/* What of the real /etc is of use to programs and tells nothing about the
 * host's people. A name that ends in '*' stands for all that begin with it. */
static bool etc_name_is_visible(const char *name)
{
    static const char *const patterns[] = {
        "alternatives", "ld.so.cache", "ld.so.conf*", "ssl",      "ca-certificates",
        "pki",          "localtime",   "mime.types",  "services", "protocols",
        "python3*",     "java-*",      "perl",        "fonts",    "chromium.d",
    };

    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
        size_t n = strlen(patterns[i]);

        if (patterns[i][n - 1] == '*' ? strncmp(name, patterns[i], n - 1) == 0
                                      : strcmp(name, patterns[i]) == 0)
            return true;
    }
    return false;
}

/* Private keys lie within visible folders, and a group that the caller is in may read them. */
static void read_secret(struct host *h)
{
    static const char *const folders[] = {"/etc/ssl/private", "/etc/pki/tls/private",
                                          "/etc/pki/CA/private"};
    size_t before;

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        before = h->n_entries;
        add_entry(h, folders[i]);
        if (h->n_entries > before && h->entries[before].kind == HOST_FOLDER)
            h->entries[before].kind = HOST_SECRET;
        else
            h->n_entries = before;
    }
}

static void read_visible(struct host *h)
{
    static const char *const top[] = {"/usr", "/bin", "/lib", "/lib64", "/sbin"};
    _cleanup_(dir_closep) DIR *etc = opendir("/etc");
    char path[sizeof h->entries[0].path];
    const struct dirent *d;

    for (size_t i = 0; i < ARRAY_SIZE(top); i++)
        add_entry(h, top[i]);
    while (etc && (d = readdir(etc)))
        if (etc_name_is_visible(d->d_name) &&
            snprintf(path, sizeof path, "/etc/%s", d->d_name) < (int)sizeof path)
            add_entry(h, path);
    read_secret(h);
}

int host_read(struct host *ret, struct error *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    struct rlimit files;

    *ret = (struct host){.uid = geteuid(), .gid = getegid(), .kernel_root = host_is_kernel_root()};
    if (syscall(SYS_capget, &head, caps) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot read this process's own limits: %s",
                         strerror(errno));
    ret->may_map_range = has_capability(caps, CAP_SETUID) && has_capability(caps, CAP_SETGID);
    ret->may_mount = has_capability(caps, CAP_SYS_ADMIN);
    ret->open_files_max = files.rlim_max;
    ret->available_bytes = available_memory();
    read_visible(ret);
    return 0;
}

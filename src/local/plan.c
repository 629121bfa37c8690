/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: which steps make the sandbox that a spec asks for. */
#include "local/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/limits.h"
#include "base/guards.h"

/* Ids for a caller who is the host's root: above what systemd and distributions
 * give out, below the 2^31 that some file systems still stumble over. One block
 * of 2^16 in 2^12, by chance. */
enum { RANGE_FIRST = 0x70000000, RANGE_BLOCKS = 0xFF0, RANGE_COUNT = 0x10000 };

static void add(struct plan *p, struct step s)
{
    if (p->n == PLAN_STEPS_MAX)
        p->full = true;
    else
        p->steps[p->n++] = s;
}

/* A text of the plan's own, for a step to point to. */
__attribute__((format(printf, 2, 3))) static const char *text(struct plan *p, const char *fmt, ...)
{
    size_t left = sizeof p->text - p->text_used;
    char *at = p->text + p->text_used;
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(at, left, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= left) {
        p->full = true;
        return "";
    }
    p->text_used += (size_t)n + 1;
    return at;
}

/* A copy of @s, for a step to point to. */
static const char *keep(struct plan *p, const char *s)
{
    size_t n = strlen(s) + 1;

    if (n > sizeof p->text - p->text_used) {
        p->full = true;
        return "";
    }
    p->text_used += n;
    return memcpy(p->text + p->text_used - n, s, n);
}

static int plan_ids(struct plan *p, const struct spec *spec, const struct host *h, uint64_t random,
                    struct error *err)
{
    p->uid = spec->uid;
    p->gid = spec->gid;
    p->command_uid = spec->uid;
    p->command_gid = spec->gid;
    p->caller_uid = h->uid;
    p->caller_gid = h->gid;
    if (!h->kernel_root)
        return 0;
    if (!h->may_map_range) {
        error_set(err, ERROR_TERMINAL, EPERM,
                  "user ids: this process is the host's root but may not give the "
                  "sandbox other ids "
                  "(CAP_SETUID and CAP_SETGID are missing), and a sandbox never "
                  "runs as the host's "
                  "root");
        return error_remedy(err, "Run atoll as an ordinary user, or with these capabilities");
    }
    /* Process 1 is id 0 of the range; commands become spec.uid when they start.
     */
    p->range = true;
    p->uid = p->gid = 0;
    p->range_start = RANGE_FIRST + (uint32_t)(random % RANGE_BLOCKS) * RANGE_COUNT;
    p->range_count = RANGE_COUNT;
    return 0;
}

static void plan_host_root(struct plan *p, const struct host *h)
{
    for (size_t i = 0; i < h->n_entries; i++) {
        const struct host_entry *e = &h->entries[i];
        const char *path = keep(p, e->path);

        if (e->kind == HOST_SECRET)
            add(p, (struct step){.kind = STEP_HIDE, .target = path});
        else if (e->kind == HOST_LINK)
            add(p, (struct step){.kind = STEP_LINK, .source = keep(p, e->target), .target = path});
        else
            add(p, (struct step){.kind = STEP_BIND,
                                 .source = path,
                                 .target = path,
                                 .flags = STEP_RO | (e->kind == HOST_FILE ? STEP_IS_FILE : 0u) |
                                          (path_is_within(path, "/etc") ? STEP_LATER : 0u)});
    }
    /* One call for the attributes of a dozen mounts. */
    add(p, (struct step){.kind = STEP_READ_ONLY, .target = "/etc", .flags = STEP_DEEP});
}

static void plan_accounts(struct plan *p, const struct spec *spec)
{
    const char *user =
        spec->uid == 0 ? "" : text(p, "user:x:%u:%u::/home/user:/bin/sh\n", spec->uid, spec->gid);
    const char *group = spec->gid == 0 ? "" : text(p, "user:x:%u:\n", spec->gid);

    add(p, (struct step){.kind = STEP_FILE,
                         .target = "/etc/passwd",
                         .source = text(p,
                                        "root:x:0:0:root:/root:/bin/sh\n%s"
                                        "nobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
                                        user)});
    add(p, (struct step){.kind = STEP_FILE,
                         .target = "/etc/group",
                         .source = text(p, "root:x:0:\ntty:x:5:\n%snogroup:x:65534:\n", group)});
    add(p, (struct step){.kind = STEP_FILE,
                         .target = "/etc/nsswitch.conf",
                         .source = "passwd: files\ngroup: files\nhosts: files dns\n"
                                   "services: files\nprotocols: files\n"});
}

static void plan_etc(struct plan *p, const struct spec *spec, const char *resolv_conf,
                     const uint64_t random[static 2])
{
    const char *name = spec->hostname;

    add(p, (struct step){
               .kind = STEP_FILE,
               .target = "/etc/hosts",
               .source = text(p, "127.0.0.1 localhost %s\n::1 localhost ip6-localhost\n", name)});
    add(p, (struct step){
               .kind = STEP_FILE, .target = "/etc/hostname", .source = text(p, "%s\n", name)});
    add(p, (struct step){
               .kind = STEP_FILE, .target = "/etc/resolv.conf", .source = keep(p, resolv_conf)});
    add(p,
        (struct step){.kind = STEP_FILE,
                      .target = "/etc/machine-id",
                      .source = text(p, "%016" PRIx64 "%016" PRIx64 "\n", random[0], random[1])});
    if (!p->image_folder)
        plan_accounts(p, spec);
}

static void plan_writable(struct plan *p, const struct spec *spec)
{
    enum step_kind kind = p->image_folder ? STEP_FOLDER : STEP_WRITABLE;
    static const struct {
        const char *path;
        uint32_t mode;
    } folders[] = {
        {"/workspace", 0755}, {"/tmp", 01777}, {"/root", 0700},
        {"/home", 0755},      {"/run", 0755},  {"/var", 0755},
    };

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        add(p, (struct step){.kind = kind,
                             .target = folders[i].path,
                             .value = folders[i].mode,
                             .flags = i == 0 ? STEP_OWNED : 0});
    add(p, (struct step){.kind = STEP_FOLDER, .target = "/var/tmp", .value = 01777});
    if (spec->uid != 0)
        add(p,
            (struct step){
                .kind = STEP_FOLDER, .target = "/home/user", .value = 0700, .flags = STEP_OWNED});
}

/* What is written below /proc/sys before it is locked. */
static void plan_sysctls(struct plan *p)
{
    /* No user namespace inside: with one, a process could leave its command's
     * mark. */
    add(p, (struct step){
               .kind = STEP_SYSCTL, .target = "/proc/sys/user/max_user_namespaces", .source = "0"});
    /* Of the network namespace. Servers inside have no privilege and still expect
     * port 80 to work. */
    add(p, (struct step){.kind = STEP_NETWORK});
    add(p, (struct step){.kind = STEP_SYSCTL,
                         .target = "/proc/sys/net/ipv4/ip_unprivileged_port_start",
                         .source = "0"});
}

static void plan_proc_locks(struct plan *p)
{
    static const char *const locked[] = {"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq",
                                         "/proc/sysrq-trigger"};
    static const char *const masked[] = {"/proc/acpi",          "/proc/kcore", "/proc/keys",
                                         "/proc/latency_stats", "/proc/scsi",  "/proc/timer_list"};

    for (size_t i = 0; i < ARRAY_SIZE(masked); i++)
        add(p, (struct step){.kind = STEP_PROC_MASK, .target = masked[i]});
    plan_sysctls(p);
    for (size_t i = 0; i < ARRAY_SIZE(locked); i++)
        add(p, (struct step){.kind = STEP_PROC_LOCK, .target = locked[i]});
}

/* What the sandbox may use of the host's memory: a ceiling bounds its files too. */
static uint64_t memory_for(const struct spec *spec, const struct host *h)
{
    return spec->memory_bytes > 0 && spec->memory_bytes < h->available_bytes ? spec->memory_bytes
                                                                             : h->available_bytes;
}

static uint64_t shm_bytes(const struct spec *spec, const struct host *h)
{
    const uint64_t memory = memory_for(spec, h), part = memory / 4;
    const uint64_t least = spec->memory_bytes > 0 && memory / 2 < LIMIT_SHM_MIN_BYTES
                               ? memory / 2
                               : LIMIT_SHM_MIN_BYTES;

    return part > least ? part : least;
}

static void plan_dev(struct plan *p, const struct spec *spec, const struct host *h)
{
    static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                        "/dev/random", "/dev/urandom", "/dev/tty"};
    static const char *const links[][2] = {{"/dev/fd", "/proc/self/fd"},
                                           {"/dev/stdin", "/proc/self/fd/0"},
                                           {"/dev/stdout", "/proc/self/fd/1"},
                                           {"/dev/stderr", "/proc/self/fd/2"},
                                           {"/dev/ptmx", "pts/ptmx"}};

    /* In an image, /dev may hold anything: a tmpfs hides it. */
    add(p, (struct step){
               .kind = p->image_folder ? STEP_DEV : STEP_FOLDER, .target = "/dev", .value = 0755});
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        add(p, (struct step){.kind = STEP_BIND,
                             .source = nodes[i],
                             .target = nodes[i],
                             .flags = STEP_DEVICE | STEP_IS_FILE | STEP_LATER});
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        add(p, (struct step){.kind = STEP_LINK, .target = links[i][0], .source = links[i][1]});
    add(p, (struct step){.kind = STEP_TERMINALS, .target = "/dev/pts"});
    add(p, (struct step){.kind = STEP_SHM, .target = "/dev/shm", .value = shm_bytes(spec, h)});
}

/* The volume to mount after @done of them: outer folders first, or they would hide inner ones. */
static size_t next_volume(const struct spec *spec, const bool done[])
{
    size_t next = SIZE_MAX;

    for (size_t i = 0; i < spec->n_volumes; i++)
        if (!done[i] && (next == SIZE_MAX ||
                         strlen(spec->volumes[i].guest) < strlen(spec->volumes[next].guest)))
            next = i;
    return next;
}

static int plan_volumes(struct plan *p, const struct spec *spec, const struct host *h,
                        struct error *err)
{
    bool done[LIMIT_VOLUMES] = {false};

    if (p->range && !h->may_mount && spec->n_volumes > 0) {
        const struct volume *v = &spec->volumes[0];

        error_set(err, ERROR_TERMINAL, EPERM,
                  "volume %s: files could not keep their owner, since this process is root without "
                  "CAP_SYS_ADMIN and may not make an idmapped mount",
                  v->guest);
        return error_remedy(err, "Run atoll as the user who owns %s, or with CAP_SYS_ADMIN",
                            v->host);
    }
    if (spec->n_volumes > LIMIT_VOLUMES) { /* no spec that was checked has so many */
        p->full = true;
        return 0;
    }
    for (size_t n = 0; n < spec->n_volumes; n++) {
        size_t i = next_volume(spec, done);
        const struct volume *v = &spec->volumes[i];

        done[i] = true;
        add(p, (struct step){.kind = STEP_VOLUME,
                             .source = keep(p, v->host),
                             .target = keep(p, v->guest),
                             .value = i,
                             .flags = v->read_only ? STEP_RO : 0});
    }
    return 0;
}

/* What follows the view: the locks, in the order in which nothing later needs
 * what they take. */
static void plan_locks(struct plan *p, const struct spec *spec)
{
    if (spec->workdir)
        add(p, (struct step){
                   .kind = STEP_WORKDIR, .target = keep(p, spec->workdir), .flags = STEP_OWNED});
    if (!p->image_folder)
        add(p, (struct step){.kind = STEP_READ_ONLY, .target = "/"});
    add(p, (struct step){.kind = STEP_PIVOT});
    add(p, (struct step){.kind = STEP_LIMITS, .value = spec->pids});
    add(p, (struct step){.kind = STEP_LANDLOCK});
    add(p, (struct step){.kind = STEP_PRIVILEGES});
    add(p, (struct step){.kind = STEP_INIT});
}

int plan_build(struct plan *p, const struct spec *spec, const struct host *host,
               const char *resolv_conf, const uint64_t random[static 2], struct error *err)
{
    uint64_t disk = spec->disk_bytes ? spec->disk_bytes : memory_for(spec, host) / 2;
    int r;

    if (disk < LIMIT_DISK_MIN_BYTES) /* of a ceiling of memory that is as low */
        disk = LIMIT_DISK_MIN_BYTES;
    p->n = p->text_used = 0;
    p->n_volumes = spec->n_volumes;
    p->report_steps = spec->report_steps;
    p->range = p->full = false;
    p->image_folder = strncmp(spec->image, "dir:", 4) == 0;
    r = plan_ids(p, spec, host, random[0] ^ random[1], err);
    if (r < 0)
        return r;
    add(p, (struct step){.kind = STEP_HOSTNAME, .source = keep(p, spec->hostname)});
    add(p, (struct step){.kind = STEP_IDS});
    add(p, (struct step){.kind = STEP_PRIVATE});
    add(p, (struct step){.kind = STEP_ROOT, .target = "/", .value = disk});
    if (p->image_folder)
        add(p,
            (struct step){.kind = STEP_OVERLAY, .target = "/", .source = keep(p, spec->image + 4)});
    add(p, (struct step){.kind = p->image_folder ? STEP_FOLDER : STEP_WRITABLE,
                         .target = "/etc",
                         .value = 0755});
    plan_etc(p, spec, resolv_conf, random);
    if (!p->image_folder)
        plan_host_root(p, host);
    plan_writable(p, spec);
    add(p, (struct step){.kind = STEP_PROC, .target = "/proc"});
    plan_dev(p, spec, host);
    r = plan_volumes(p, spec, host, err);
    if (r < 0)
        return r;
    plan_proc_locks(p);
    plan_locks(p, spec);
    if (p->full)
        return error_set(err, ERROR_TERMINAL, E2BIG, "the set-up has too many steps");
    return 0;
}

const char *step_name(enum step_kind kind)
{
    static const char *const names[] = {
        [STEP_PRIVATE] = "private",
        [STEP_NETWORK] = "network",
        [STEP_HOSTNAME] = "hostname",
        [STEP_IDS] = "ids",
        [STEP_ROOT] = "root",
        [STEP_OVERLAY] = "overlay",
        [STEP_FOLDER] = "folder",
        [STEP_WRITABLE] = "writable",
        [STEP_LINK] = "link",
        [STEP_FILE] = "file",
        [STEP_BIND] = "bind",
        [STEP_HIDE] = "hide",
        [STEP_VOLUME] = "volume",
        [STEP_PROC] = "proc",
        [STEP_SYSCTL] = "sysctl",
        [STEP_PROC_LOCK] = "proc-lock",
        [STEP_PROC_MASK] = "proc-mask",
        [STEP_TERMINALS] = "terminals",
        [STEP_SHM] = "shm",
        [STEP_WORKDIR] = "workdir",
        [STEP_DEV] = "dev",
        [STEP_READ_ONLY] = "read-only",
        [STEP_PIVOT] = "pivot",
        [STEP_LIMITS] = "limits",
        [STEP_LANDLOCK] = "landlock",
        [STEP_PRIVILEGES] = "privileges",
        [STEP_INIT] = "init",
    };
    _Static_assert(ARRAY_SIZE(names) == STEP__MAX, "a step has no name");

    return kind < STEP__MAX ? names[kind] : "unknown";
}

void step_describe(const struct step *s, char *buf, size_t size)
{
    const char *name = step_name(s->kind);
    const char *ro = s->flags & STEP_RO ? ", read-only" : "";

    switch (s->kind) {
    case STEP_BIND:
    case STEP_VOLUME:
        (void)snprintf(buf, size, "%s %s on %s%s", name, s->source, s->target, ro);
        break;
    case STEP_LINK:
        (void)snprintf(buf, size, "link %s to %s", s->target, s->source);
        break;
    case STEP_ROOT:
    case STEP_SHM:
        (void)snprintf(buf, size, "%s: tmpfs of %" PRIu64 " MiB on %s", name, s->value / LIMIT_MIB,
                       s->target);
        break;
    case STEP_OVERLAY:
        (void)snprintf(buf, size, "overlay over %s on /", s->source);
        break;
    case STEP_SYSCTL:
        (void)snprintf(buf, size, "sysctl %s = %s", s->target, s->source);
        break;
    case STEP_LIMITS:
        (void)snprintf(buf, size, "limits: %" PRIu64 " processes", s->value);
        break;
    case STEP_HOSTNAME:
        (void)snprintf(buf, size, "hostname %s", s->source);
        break;
    case STEP_PRIVATE:
    case STEP_NETWORK:
    case STEP_IDS:
    case STEP_PIVOT:
    case STEP_LANDLOCK:
    case STEP_PRIVILEGES:
    case STEP_INIT:
        (void)snprintf(buf, size, "%s", name);
        break;
    case STEP_FOLDER:
    case STEP_WRITABLE:
    case STEP_FILE:
    case STEP_PROC:
    case STEP_HIDE:
    case STEP_PROC_LOCK:
    case STEP_PROC_MASK:
    case STEP_DEV:
    case STEP_TERMINALS:
    case STEP_WORKDIR:
    case STEP_READ_ONLY:
    case STEP__MAX:
        (void)snprintf(buf, size, "%s %s", name, s->target ? s->target : "");
        break;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atoll-backend-folder: a backend to learn from. It ISOLATES NOTHING. A "sandbox" is a folder, and
 * its commands are plain processes of whoever runs this program, with the whole host before them.
 * It is for learning how a backend is written, and for code that is trusted anyway.
 *
 * Since it cannot close the network, it refuses every spec that wants it closed, which is the
 * default: `spec.block_network` must be false. That is the first duty of a backend: a setting that
 * it cannot hold a sandbox to is refused, never quietly dropped.
 *
 * What lies on disk, below $ATOLL_FOLDER_DIR (or /tmp/atoll-folder-UID):
 *
 *     ID/record    what the sandbox is: texts KEY=VALUE, each with a NUL behind it
 *     ID/tags      its tags, in the same form; they may change
 *     ID/root      its files; "/" in a path that a client gives
 *
 * Read main() at the end first, then the table above it, then what you need. command.c runs the
 * commands, each below a process of supervisor.c; files.c reads and writes files, tags.c the tags.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"

enum { LOOK_AGAIN_US = 5000 };

/* What atoll_backend_serve() is given: the folder of all sandboxes. */
struct state {
    char path[PATH_MAX / 8];
};

/* ---- The record ---- */

static int record_add(struct folder *f, const char *key, const char *value)
{
    size_t room = sizeof f->record - f->record_len;
    int n = value ? snprintf(f->record + f->record_len, room, "%s=%s", key, value) : -1;

    if (n >= 0 && (size_t)n >= room)
        return -E2BIG;
    f->record_len += n >= 0 ? (size_t)n + 1 : 0;
    return 0;
}

static void record_add_all(struct folder *f, const char *key, const char *const *values, int *r)
{
    for (; *values && *r == 0; values++)
        *r = record_add(f, key, *values);
}

/* The value of @key, or NULL. */
static const char *record_get(const struct folder *f, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = f->record; p < f->record + f->record_len; p += strlen(p) + 1)
        if (strncmp(p, key, n) == 0 && p[n] == '=')
            return p + n + 1;
    return NULL;
}

static uint64_t record_number(const struct folder *f, const char *key)
{
    const char *text = record_get(f, key);

    return text ? strtoull(text, NULL, 10) : 0;
}

/* Written whole, then renamed: whoever finds a record finds all of it. It may hold secrets, as
 * values of variables, hence the mode. */
static int record_save(const struct folder *f)
{
    char part[PATH_MAX], name[PATH_MAX];
    int fd, r = 0;

    snprintf(part, sizeof part, "%s/record.part", f->path);
    snprintf(name, sizeof name, "%s/record", f->path);
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, f->record, f->record_len) != (ssize_t)f->record_len ||
        rename(part, name) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    return r;
}

static void folder_free(struct folder *f)
{
    if (f && f->root >= 0)
        close(f->root);
    free(f);
}

/* The sandbox @id as it lies on disk, or NULL with errno set. An id comes from a stranger. */
static struct folder *folder_load(const struct state *s, const char *id)
{
    struct folder *f = NULL;
    char name[PATH_MAX];
    ssize_t n = -1;
    int fd;

    if (strlen(id) >= sizeof f->id || strspn(id, "0123456789abcdef") != strlen(id)) {
        errno = ENOENT;
        return NULL;
    }
    f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    snprintf(f->id, sizeof f->id, "%s", id);
    snprintf(f->path, sizeof f->path, "%s/%s", s->path, id);
    snprintf(name, sizeof name, "%s/root", f->path);
    f->root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "%s/record", f->path);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, f->record, sizeof f->record);
        close(fd);
    }
    if (f->root < 0 || n <= 0 || f->record[n - 1] != '\0') {
        errno = ENOENT; /* half made, or half gone */
        folder_free(f);
        return NULL;
    }
    f->record_len = (size_t)n;
    snprintf(f->workdir, sizeof f->workdir, ".%s", record_get(f, "workdir"));
    return f;
}

/* ---- Ending a sandbox ---- */

static int open_up(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)where;
    return kind == FTW_D || kind == FTW_DNR ? (void)chmod(path, 0700), 0 : 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    (void)remove(path);
    return 0;
}

/* Asks what still runs in the sandbox to end. True: nothing does. Each supervisor, of whatever
 * connection, has a lock on the record, and the kernel tells whose it is. */
static bool all_ended(const struct folder *f)
{
    struct flock lock = {.l_type = F_WRLCK};
    char name[PATH_MAX];

    snprintf(name, sizeof name, "%s/record", f->path);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return true; /* somebody else has destroyed it */
    fcntl(fd, F_GETLK, &lock);
    close(fd);
    if (lock.l_type != F_UNLCK)
        kill(lock.l_pid, SIGTERM);
    return lock.l_type == F_UNLCK;
}

static void remove_folder(const struct folder *f)
{
    char name[PATH_MAX];

    snprintf(name, sizeof name, "%s/record", f->path);
    (void)unlink(name);                         /* first: without a record there is no sandbox */
    (void)nftw(f->path, open_up, 16, FTW_PHYS); /* an ordinary user cannot empty a locked folder */
    (void)nftw(f->path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

/* Looks again every few milliseconds, since nothing here may wait. */
static void destroy_on(struct atoll_server *server, void *arg)
{
    struct folder *f = arg;
    struct atoll_reply *reply = f->ending;

    if (!all_ended(f)) {
        atoll_backend_timer(server, LOOK_AGAIN_US, destroy_on, f);
        return;
    }
    remove_folder(f);
    atoll_reply_done(reply); /* the library reports the commands of this connection as killed */
    commands_end(server, f);
    folder_free(f);
}

static void lifetime_over(struct atoll_server *server, void *arg);

static void folder_destroy(struct atoll_server *server, void *sandbox, struct atoll_reply *reply)
{
    struct folder *f = sandbox;

    f->ending = reply;
    atoll_backend_timer(server, ATOLL_FOREVER, lifetime_over, f);
    destroy_on(server, f);
}

/* Ends it without a client to wait for. */
static void destroy_now(struct atoll_server *server, struct folder *f)
{
    commands_end(server, f);
    while (!all_ended(f))
        usleep(LOOK_AGAIN_US);
    remove_folder(f);
    folder_free(f);
}

static void lifetime_over(struct atoll_server *server, void *arg)
{
    atoll_backend_ended(server, ATOLL_LIFETIME); /* from here on the streams are gone */
    destroy_now(server, arg);
}

static bool has_expired(const struct folder *f)
{
    uint64_t at = record_number(f, "expires_at_us");

    return at > 0 && at <= clock_us(CLOCK_REALTIME);
}

static void folder_closed(struct atoll_server *server, void *sandbox)
{
    struct folder *f = sandbox;

    if (!f)
        return;
    if (record_number(f, "owned")) {
        destroy_now(server, f);
        return;
    }
    commands_end(server, f); /* a client takes its commands with it; the folder stays */
    folder_free(f);
}

/* ---- Making and finding sandboxes ---- */

static const struct atoll_rule rules[] = {
    /* 0 enforced, 1 accepted without being a ceiling, 2 refused. The first rule that fits decides.
     * A field without one is refused by the client: nobody vouches for it. */
    {"spec.block_network=true", 2,
     "commands are plain processes of this host and reach what it reaches",
     "Set spec.block_network to false, or use the backend local"},
    {"spec.block_network=false", 1, "nothing is in the way of the network", NULL},
    {"spec.env", 0, "given to each command; kept in a file that only this user can read", NULL},
    {"spec.owner", 1, "recorded with the sandbox", NULL},
    {"backend.tags", 1, "recorded with the sandbox", NULL},
    {"backend.image=host", 1, "commands see the files of this host, all of them", NULL},
    {"backend.image", 2, "commands see the files of this host", "Leave backend.image out"},
    {"backend.workdir", 0, "made if absent, where commands start", NULL},
    {"backend.sandbox_timeout", 1, "the folder goes when it is next looked for after that time",
     NULL},
    {"backend.memory", 2, "there is no ceiling on memory", "Remove backend.memory"},
    {"backend.volumes", 2, "commands see this host's folders anyway", "Remove backend.volumes"},
    {NULL, 0, NULL, NULL},
};

/* What a spec asks for and cannot have, as the name of the field; NULL: nothing. */
static const char *unkept(const struct atoll_backend_spec *spec)
{
    const struct {
        const char *field;
        bool asked;
    } fields[] = {
        {"spec.block_network", spec->block_network},
        {"backend.memory", spec->memory_bytes > 0},
        {"backend.volumes", spec->n_volumes > 0},
        {"backend.cpu", spec->cpu_milli > 0},
        {"backend.disk", spec->disk_bytes > 0},
        {"backend.idle_timeout", spec->idle_timeout_us > 0},
        {"backend.user", spec->user_set},
        {"backend.publish", spec->publish[0] != NULL},
        {"spec.allow_egress_to", spec->allow_egress_to[0] != NULL},
        {"spec.allow_egress_to_cidrs", spec->allow_egress_to_cidrs[0] != NULL},
        {"spec.private_cidrs", spec->private_cidrs[0] != NULL},
        {"backend.add_hosts", spec->add_hosts[0] != NULL},
        {"backend.resolver", spec->resolver != NULL},
        {"backend.proxy", spec->proxy != NULL},
        {"backend.max_cost", spec->max_cost_micro > 0},
        {"backend.image", strcmp(spec->image, "host") != 0},
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].asked)
            return fields[i].field;
    return NULL;
}

static void refuse(struct atoll_reply *reply, const char *field)
{
    const struct atoll_rule *rule = rules;
    char message[256];

    while (rule->field && (rule->verdict != 2 || strncmp(rule->field, field, strlen(field)) != 0))
        rule++;
    snprintf(message, sizeof message, "the backend folder cannot keep %s: %s", field,
             rule->how ? rule->how : "it isolates nothing");
    atoll_reply_error(reply, ATOLL_USAGE, EOPNOTSUPP, message,
                      rule->remedy ? rule->remedy : "Remove the field, or use the backend local");
}

static int record_fill(struct folder *f, const struct atoll_backend_spec *spec)
{
    uint64_t now = clock_us(CLOCK_REALTIME);
    char created[32], expires[32];
    int r = 0;

    snprintf(created, sizeof created, "%llu", (unsigned long long)now);
    snprintf(expires, sizeof expires, "%llu",
             (unsigned long long)(spec->lifetime_us ? now + spec->lifetime_us : 0));
    record_add(f, "workdir", spec->workdir);
    record_add(f, "name", spec->name);
    record_add(f, "owner", spec->owner);
    record_add(f, "owned", spec->owned ? "1" : "0");
    record_add(f, "created_at_us", created);
    record_add(f, "expires_at_us", expires);
    record_add_all(f, "env", spec->env, &r);
    return r;
}

static int folder_make(const struct state *s, const struct atoll_backend_spec *spec,
                       struct folder *f)
{
    unsigned char random[10];
    char name[PATH_MAX];
    int r = record_fill(f, spec);

    if (getrandom(random, sizeof random, 0) != sizeof random)
        return -EIO;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(f->id + 2 * i, 3, "%02x", random[i]);
    snprintf(f->path, sizeof f->path, "%s/%s", s->path, f->id);
    snprintf(f->workdir, sizeof f->workdir, ".%s", spec->workdir);
    snprintf(name, sizeof name, "%s/root", f->path);
    if (r == 0 && (mkdir(f->path, 0700) < 0 || mkdir(name, 0755) < 0))
        r = -errno;
    f->root = r == 0 ? open(name, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (r == 0 && f->root < 0)
        r = -errno;
    if (r == 0)
        r = make_folders(f, f->workdir);
    if (r == 0)
        r = tags_save(f, spec->tags);
    return r == 0 ? record_save(f) : r;
}

static void folder_create(struct atoll_server *server, const struct atoll_backend_spec *spec,
                          struct atoll_reply *reply)
{
    const char *field = unkept(spec);
    struct folder *f = field ? NULL : calloc(1, sizeof *f);
    int r;

    if (field) {
        refuse(reply, field);
        return;
    }
    r = f ? folder_make(atoll_server_state(server), spec, f) : -ENOMEM;
    if (r < 0) {
        if (f && f->path[0])
            remove_folder(f);
        folder_free(f);
        atoll_reply_error(reply, ATOLL_TERMINAL, -r, strerror(-r), NULL);
        return;
    }
    if (spec->lifetime_us)
        atoll_backend_timer(server, spec->lifetime_us, lifetime_over, f);
    atoll_reply_created(reply, f->id, f);
}

static void folder_open(struct atoll_server *server, const char *id, struct atoll_reply *reply)
{
    struct folder *f = folder_load(atoll_server_state(server), id);

    if (f && has_expired(f)) {
        destroy_now(server, f);
        f = NULL;
        errno = ENOENT;
    }
    if (!f) {
        atoll_reply_error(reply, ATOLL_TERMINAL, errno, "there is no such sandbox",
                          "List those that are there with: atoll list --backend folder");
        return;
    }
    if (record_number(f, "expires_at_us"))
        atoll_backend_timer(server, record_number(f, "expires_at_us") - clock_us(CLOCK_REALTIME),
                            lifetime_over, f);
    atoll_reply_created(reply, f->id, f);
}

static void tell(const struct folder *f, struct atoll_reply *reply)
{
    struct tags *tags = calloc(1, sizeof *tags);
    struct atoll_info info = {
        .id = f->id,
        .name = record_get(f, "name"),
        .owner = record_get(f, "owner"),
        .image = "host",
        .workdir = record_get(f, "workdir"),
        .state = "running",
        .created_at_us = record_number(f, "created_at_us"),
        .expires_at_us = record_number(f, "expires_at_us"),
        .uid = geteuid(),
        .gid = getegid(),
    };

    if (tags && tags_load(f, tags) == 0)
        info.tags = tags->items;
    atoll_reply_info(reply, &info);
    free(tags);
}

static void folder_inspect(struct atoll_server *server, void *sandbox, struct atoll_reply *reply)
{
    (void)server;
    tell(sandbox, reply);
}

static void folder_enumerate(struct atoll_server *server, struct atoll_reply *reply)
{
    const struct state *s = atoll_server_state(server);
    DIR *dir = opendir(s->path);
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        struct folder *f = folder_load(s, e->d_name);

        if (f && has_expired(f)) {
            destroy_now(server, f);
            continue;
        }
        if (f)
            tell(f, reply);
        folder_free(f);
    }
    if (dir)
        closedir(dir);
    atoll_reply_done(reply);
}

/* ---- The whole of it ---- */

/* What is NULL here, or not in the list, does not exist: the client is told so by the library. */
static const char *const features[] = {"timeout", "owner", NULL};

static const struct atoll_backend backend = {
    .name = "folder",
    .version = "1",
    .features = features,
    .rules = rules,
    .create = folder_create,
    .open = folder_open,
    .enumerate = folder_enumerate,
    .inspect = folder_inspect,
    .destroy = folder_destroy,
    .closed = folder_closed,
    .exec = folder_exec,
    .input = folder_input,
    .signal = folder_signal,
    .stop = folder_stop,
    .room = folder_room,
    .read = folder_read,
    .write = folder_write,
    .list = folder_list,
    .stat = folder_stat,
    .read_tags = folder_read_tags,
    .write_tags = folder_write_tags,
};

int main(void)
{
    const char *given = getenv("ATOLL_FOLDER_DIR");
    struct state state;
    struct stat st;

    if (given)
        snprintf(state.path, sizeof state.path, "%s", given);
    else
        snprintf(state.path, sizeof state.path, "/tmp/atoll-folder-%u", geteuid());
    umask(022);
    /* /tmp is everybody's: the folder must be ours, and closed to others. */
    if ((mkdir(state.path, 0700) < 0 && errno != EEXIST) || lstat(state.path, &st) < 0 ||
        !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) {
        fprintf(stderr, "atoll-backend-folder: %s is no folder of this user's own\n", state.path);
        return 1;
    }
    return atoll_backend_serve(&backend, &state);
}

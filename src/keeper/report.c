/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to INSPECT, PS and DESCRIBE. */
#include "keeper/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/backends.h"
#include "core/limits.h"
#include "core/spec_rules.h"
#include "keeper/command.h"
#include "keeper/lease.h"
#include "keeper/usage.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

static bool is_standing(struct connection *c, const struct message *m)
{
    struct error err = ERROR_INIT;

    if (c->keeper->state == KEEPER_RUNNING)
        return true;
    (void)error_set(&err, ERROR_USAGE, ENOENT, "there is no sandbox yet");
    connection_refuse(c, m->id, &err);
    return false;
}

/* The sandbox's root as its process 1 has it. Nothing below it is looked up by a path that the
 * inside could bend: its own root and /proc are mounts that no command can replace. */
static int open_root(const struct keeper *k)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/root", (int)k->sandbox.pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static uint32_t count_processes(int root)
{
    int fd = openat(root, "proc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_(dir_closep) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;
    uint32_t n = 0;

    if (!dir)
        fd_closep(&fd);
    while (dir && (e = readdir(dir)))
        n += e->d_name[0] >= '1' && e->d_name[0] <= '9';
    return n;
}

static void measure(const struct keeper *k, struct sandbox_info *x)
{
    _cleanup_fd_ int root = open_root(k);
    struct statfs fs;

    if (root < 0)
        return;
    x->processes = count_processes(root);
    if (fstatfs(root, &fs) < 0)
        return;
    x->disk_limit_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    x->disk_used_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    x->inodes_limit = fs.f_files;
    x->inodes_used = fs.f_files - fs.f_ffree;
}

char *report_network(const struct spec *s)
{
    _cleanup_(problems_done) struct problems problems = {0};
    struct policy policy = {0};
    char *stamp = NULL;

    if (spec_policy(s, &policy, &problems) < 0)
        return NULL;
    int r = policy_stamp_encode(&policy, &stamp);
    policy_done(&policy);
    return r < 0 ? NULL : stamp;
}

static void describe(const struct keeper *k, struct sandbox_info *x)
{
    const struct spec *s = &k->spec;

    *x = (struct sandbox_info){
        .id = k->id,
        .name = s->name,
        .owner = s->owner,
        .backend = "local",
        .image = s->image,
        .workdir = s->workdir ? s->workdir : SPEC_WORKDIR_DEFAULT,
        .hostname = s->hostname,
        .state = STATE_RUNNING,
        .uid = s->uid,
        .gid = s->gid,
        .created_at_us = k->created_at_us,
        .expires_at_us = k->expires_at_us,
        .idle_us = s->idle_timeout_us,
        .pids_limit = s->pids,
        .keeper_pid = (uint32_t)getpid(),
        .landlock_abi = (uint32_t)k->sandbox.landlock_abi,
        .policy_generation = k->policy_generation,
    };
    for (const struct keeper_command *c = k->commands; c; c = c->next)
        x->n_commands += !(c->flags & EXEC_FILES);
    for (size_t i = 0; i < s->tags.n && i < SANDBOX_LABELS_MAX; i++)
        x->labels[x->n_labels++] = s->tags.items[i];
    for (size_t i = 0; i < k->egress.ports.texts.n && i < SANDBOX_PUBLISHED_MAX; i++)
        x->published[x->n_published++] = k->egress.ports.texts.items[i];
    lease_describe(k, x);
    measure(k, x);
    usage_describe(k, x);
}

static void no_memory(struct connection *c, const struct message *m)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    connection_refuse(c, m->id, &err);
}

static uint32_t inspect_flags(struct reader message)
{
    struct field f;
    uint32_t flags = 0;

    while (field_next(&message, &f))
        if (f.tag == TAG_INSPECT_FLAGS && !field_u32(&f, &flags))
            return 0;
    return flags;
}

static size_t env_size(const struct string_list *env)
{
    size_t size = 0;

    for (size_t i = 0; i < env->n; i++)
        size += FIELD_HEADER_BYTES + strlen(env->items[i]) + 1;
    return size;
}

void report_sandbox(struct connection *c, struct message *m)
{
    const struct string_list *env = &c->keeper->spec.env;
    bool with_env = inspect_flags(m->payload) & INSPECT_ENV;
    struct sandbox_info x;

    if (!is_standing(c, m))
        return;
    describe(c->keeper, &x);
    _cleanup_free_ char *network = report_network(&c->keeper->spec);
    x.network = network;
    size_t size = sandbox_info_size(&x) + (with_env ? env_size(env) : 0);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    if (!buf) {
        no_memory(c, m);
        return;
    }
    sandbox_info_encode(&w, &x);
    for (size_t i = 0; with_env && i < env->n; i++)
        field_put_string(&w, TAG_ENV, env->items[i]);
    connection_send(c, MSG_SANDBOX, m->id, &w, -EBADF);
    explicit_bzero(buf, size);
}

static void put_command(struct writer *w, const struct keeper_command *c)
{
    struct command_info x = {
        .number = c->number,
        .pid = c->pid,
        .flags = (c->flags & EXEC_DETACH ? COMMAND_DETACHED : 0u) |
                 (c->flags & EXEC_TTY ? COMMAND_TTY : 0u),
        .started_at_us = c->started_at_us,
        .timeout_us = c->timeout_us,
    };
    const char *p = c->arguments;

    for (; p && x.n_argv < c->n_arguments; p += strlen(p) + 1)
        x.argv[x.n_argv++] = p;
    command_info_encode(w, &x);
}

/* The first command that was started after number @last; NULL: none. */
static const struct keeper_command *next_command(const struct keeper *k, uint32_t last)
{
    const struct keeper_command *next = NULL;

    for (const struct keeper_command *c = k->commands; c; c = c->next)
        if (c->number > last && !(c->flags & EXEC_FILES) && (!next || c->number < next->number))
            next = c;
    return next;
}

void report_commands(struct connection *c, struct message *m)
{
    const struct keeper *k = c->keeper;
    const struct keeper_command *x;
    size_t size =
        k->n_commands * (COMMAND_ARGS_BYTES_MAX + 64 + (COMMAND_ARGS_MAX + 8) * FIELD_HEADER_BYTES);

    if (!is_standing(c, m))
        return;
    if (size > MESSAGE_BYTES_MAX)
        size = MESSAGE_BYTES_MAX; /* hundreds of long ones: those that started first fit */
    _cleanup_free_ uint8_t *buf = malloc(size + 1);
    struct writer w = writer_over(buf, buf ? size : 0);
    if (!buf) {
        no_memory(c, m);
        return;
    }
    for (uint32_t last = 0; (x = next_command(k, last)); last = x->number) {
        struct writer before = w;

        put_command(&w, x);
        if (w.bad)
            w = before;
    }
    connection_send(c, MSG_COMMANDS, m->id, &w, -EBADF);
}

/* A rule as it can be told: of a field always, or of one value of it. Others are of ranges of
 * values, which only the check of a whole spec can judge. */
static void put_rule(struct writer *w, const struct capability_rule *rule)
{
    char field[SPEC_PATH_MAX], text[SPEC_PATH_MAX + 64];
    const char *value = rule->when == WHEN_OPEN      ? "=false"
                        : rule->when == WHEN_BLOCKED ? "=true"
                        : rule->when == WHEN_TEXT    ? rule->text
                                                     : "";

    if (value[0] == '\0' && rule->when != WHEN_ALWAYS)
        return;
    spec_field_path(rule->field, field);
    (void)snprintf(text, sizeof text, "%s%s%s", field, rule->when == WHEN_TEXT ? "=" : "", value);
    const struct rule_info x = {
        .field = text,
        .verdict = (uint32_t)rule->verdict,
        .how = rule->how,
        .remedy = rule->remedy,
    };
    rule_info_encode(w, &x);
}

void report_capabilities(struct connection *c, struct message *m)
{
    const struct capability *local = &backend_known(0)->capability;
    uint8_t buf[FRAME_PAYLOAD_MAX];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_string(&w, TAG_BACKEND, "local");
    for (int i = 0; i < FEATURE__MAX; i++)
        if (local->features >> i & 1)
            field_put_string(&w, TAG_FEATURE, capability_feature_name((enum capability_feature)i));
    for (size_t i = 0; i < local->n_rules; i++)
        put_rule(&w, &local->rules[i]);
    connection_send(c, MSG_DESCRIBED, m->id, &w, -EBADF);
}

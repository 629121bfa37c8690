/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of SANDBOX, COMMANDS and DESCRIBED. */
#include "wire/sandbox_info.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/control.h"
#include "base/guards.h"

const char *sandbox_state_name(uint32_t state)
{
    static const char *const names[] = {
        [STATE_CREATING] = "creating", [STATE_RUNNING] = "running", [STATE_PAUSED] = "paused",
        [STATE_ENDING] = "ending",     [STATE_GONE] = "gone",
    };

    return state < STATE__MAX ? names[state] : "?";
}

enum kind { TEXT, U32, U64 };

/* One row a field, so that size, encoder and decoder cannot disagree. */
static const struct row {
    uint16_t tag;
    enum kind kind;
    size_t offset;
} rows[] = {
    {TAG_SANDBOX_ID, TEXT, offsetof(struct sandbox_info, id)},
    {TAG_SANDBOX_NAME, TEXT, offsetof(struct sandbox_info, name)},
    {TAG_OWNER, TEXT, offsetof(struct sandbox_info, owner)},
    {TAG_BACKEND, TEXT, offsetof(struct sandbox_info, backend)},
    {TAG_IMAGE, TEXT, offsetof(struct sandbox_info, image)},
    {TAG_WORKDIR, TEXT, offsetof(struct sandbox_info, workdir)},
    {TAG_HOSTNAME, TEXT, offsetof(struct sandbox_info, hostname)},
    {TAG_NETWORK, TEXT, offsetof(struct sandbox_info, network)},
    {TAG_STATE, U32, offsetof(struct sandbox_info, state)},
    {TAG_UID, U32, offsetof(struct sandbox_info, uid)},
    {TAG_GID, U32, offsetof(struct sandbox_info, gid)},
    {TAG_CREATED_AT_US, U64, offsetof(struct sandbox_info, created_at_us)},
    {TAG_EXPIRES_AT_US, U64, offsetof(struct sandbox_info, expires_at_us)},
    {TAG_IDLE_US, U64, offsetof(struct sandbox_info, idle_us)},
    {TAG_DISK_USED_BYTES, U64, offsetof(struct sandbox_info, disk_used_bytes)},
    {TAG_DISK_LIMIT_BYTES, U64, offsetof(struct sandbox_info, disk_limit_bytes)},
    {TAG_INODES_USED, U64, offsetof(struct sandbox_info, inodes_used)},
    {TAG_INODES_LIMIT, U64, offsetof(struct sandbox_info, inodes_limit)},
    {TAG_PIDS, U64, offsetof(struct sandbox_info, pids_limit)},
    {TAG_PROCESSES, U32, offsetof(struct sandbox_info, processes)},
    {TAG_N_COMMANDS, U32, offsetof(struct sandbox_info, n_commands)},
    {TAG_KEEPER_PID, U32, offsetof(struct sandbox_info, keeper_pid)},
    {TAG_LANDLOCK_ABI, U32, offsetof(struct sandbox_info, landlock_abi)},
    {TAG_POLICY_GENERATION, U32, offsetof(struct sandbox_info, policy_generation)},
    {TAG_HOLDER, TEXT, offsetof(struct sandbox_info, holder)},
    {TAG_LEASE_STATE, U32, offsetof(struct sandbox_info, lease_state)},
    {TAG_LEASE_GENERATION, U32, offsetof(struct sandbox_info, lease_generation)},
    {TAG_LEASE_UNTIL_US, U64, offsetof(struct sandbox_info, lease_until_us)},
    {TAG_MEMORY_BYTES, U64, offsetof(struct sandbox_info, memory_limit_bytes)},
    {TAG_CPU_MILLI, U64, offsetof(struct sandbox_info, cpu_milli)},
    {TAG_CPU_US, U64, offsetof(struct sandbox_info, cpu_us)},
    {TAG_MEMORY_USED_BYTES, U64, offsetof(struct sandbox_info, memory_used_bytes)},
    {TAG_MEMORY_PEAK_BYTES, U64, offsetof(struct sandbox_info, memory_peak_bytes)},
    {TAG_EGRESS_SENT_BYTES, U64, offsetof(struct sandbox_info, egress_sent_bytes)},
    {TAG_EGRESS_RECEIVED_BYTES, U64, offsetof(struct sandbox_info, egress_received_bytes)},
    {TAG_COST_MICRO, U64, offsetof(struct sandbox_info, cost_micro)},
    {TAG_MAX_COST_MICRO, U64, offsetof(struct sandbox_info, max_cost_micro)},
    {TAG_OOM_KILLS, U32, offsetof(struct sandbox_info, oom_kills)},
};

static const char *text_at(const struct sandbox_info *x, size_t offset)
{
    const char *text;

    memcpy(&text, (const char *)x + offset, sizeof text);
    return text;
}

static void number_put(struct writer *w, const struct row *row, const struct sandbox_info *x)
{
    uint64_t v64;
    uint32_t v32;

    if (row->kind == U32) {
        memcpy(&v32, (const char *)x + row->offset, sizeof v32);
        field_put_u32(w, row->tag, v32);
    } else {
        memcpy(&v64, (const char *)x + row->offset, sizeof v64);
        field_put_u64(w, row->tag, v64);
    }
}

size_t sandbox_info_size(const struct sandbox_info *x)
{
    size_t size = 0;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *text = rows[i].kind == TEXT ? text_at(x, rows[i].offset) : NULL;

        size += FIELD_HEADER_BYTES + sizeof(uint64_t) + (text ? strlen(text) + 1 : 0);
    }
    for (size_t i = 0; i < x->n_labels; i++)
        size += FIELD_HEADER_BYTES + strlen(x->labels[i]) + 1;
    for (size_t i = 0; i < x->n_published; i++)
        size += FIELD_HEADER_BYTES + strlen(x->published[i]) + 1;
    return size;
}

void sandbox_info_encode(struct writer *w, const struct sandbox_info *x)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];

        if (row->kind != TEXT)
            number_put(w, row, x);
        else if (text_at(x, row->offset))
            field_put_string(w, row->tag, text_at(x, row->offset));
    }
    for (size_t i = 0; i < x->n_labels; i++)
        field_put_string(w, TAG_LABEL, x->labels[i]);
    for (size_t i = 0; i < x->n_published; i++)
        field_put_string(w, TAG_PUBLISHED, x->published[i]);
}

static bool row_take(const struct row *row, const struct field *f, struct sandbox_info *x)
{
    char *at = (char *)x + row->offset;
    const char *text;
    uint64_t v64;
    uint32_t v32;

    switch (row->kind) {
    case TEXT:
        text = field_string(f);
        memcpy(at, &text, sizeof text);
        return text != NULL;
    case U32:
        if (!field_u32(f, &v32))
            return false;
        memcpy(at, &v32, sizeof v32);
        return true;
    case U64:
        if (!field_u64(f, &v64))
            return false;
        memcpy(at, &v64, sizeof v64);
        return true;
    }
    return false;
}

/* One more of a list; those above its ceiling are passed over. */
static bool list_take(const struct field *f, const char **list, size_t *n, size_t max)
{
    const char *text = field_string(f);

    if (text && *n < max)
        list[(*n)++] = text;
    return text != NULL;
}

static bool info_take(const struct field *f, struct sandbox_info *x)
{
    if (f->tag == TAG_LABEL)
        return list_take(f, x->labels, &x->n_labels, SANDBOX_LABELS_MAX);
    if (f->tag == TAG_PUBLISHED)
        return list_take(f, x->published, &x->n_published, SANDBOX_PUBLISHED_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].tag == f->tag)
            return row_take(&rows[i], f, x);
    return true;
}

int sandbox_info_decode(struct reader message, struct sandbox_info *ret)
{
    struct sandbox_info x = {0};
    struct field f;

    while (field_next(&message, &f))
        if (!info_take(&f, &x))
            return -EPROTO;
    if (message.bad || !x.id || x.state >= STATE__MAX)
        return -EPROTO;
    *ret = x;
    return 0;
}

/* Starts a field whose length is known only when what it holds is written. */
static uint8_t *nested_begin(struct writer *w)
{
    return writer_reserve(w, FIELD_HEADER_BYTES);
}

static void nested_end(struct writer *w, uint8_t *head, uint16_t tag)
{
    if (!head || w->bad)
        return;
    struct writer h = writer_over(head, FIELD_HEADER_BYTES);
    writer_u16(&h, tag);
    writer_u16(&h, 0);
    writer_u32(&h, (uint32_t)(w->p - head) - FIELD_HEADER_BYTES);
}

/* The next field with @tag, as the message in it. */
static bool nested_next(struct reader *r, uint16_t tag, struct reader *ret)
{
    struct field f;

    while (field_next(r, &f))
        if (f.tag == tag) {
            *ret = f.value;
            return true;
        }
    return false;
}

void command_info_encode(struct writer *w, const struct command_info *x)
{
    uint8_t *head = nested_begin(w);

    field_put_u32(w, TAG_COMMAND_NUMBER, x->number);
    field_put_u32(w, TAG_PID, x->pid);
    field_put_u32(w, TAG_COMMAND_FLAGS, x->flags);
    field_put_u64(w, TAG_STARTED_AT_US, x->started_at_us);
    field_put_u64(w, TAG_TIMEOUT_US, x->timeout_us);
    for (size_t i = 0; i < x->n_argv; i++)
        field_put_string(w, TAG_ARG, x->argv[i]);
    nested_end(w, head, TAG_COMMAND);
}

static bool command_take(const struct field *f, struct command_info *x)
{
    switch (f->tag) {
    case TAG_COMMAND_NUMBER:
        return field_u32(f, &x->number);
    case TAG_PID:
        return field_u32(f, &x->pid);
    case TAG_COMMAND_FLAGS:
        return field_u32(f, &x->flags);
    case TAG_STARTED_AT_US:
        return field_u64(f, &x->started_at_us);
    case TAG_TIMEOUT_US:
        return field_u64(f, &x->timeout_us);
    case TAG_ARG: {
        const char *arg = field_string(f);

        if (arg && x->n_argv < COMMAND_ARGS_MAX)
            x->argv[x->n_argv++] = arg;
        return arg != NULL;
    }
    default:
        return true;
    }
}

int command_info_next(struct reader *r, struct command_info *ret)
{
    struct command_info x = {0};
    struct reader inner;
    struct field f;

    if (!nested_next(r, TAG_COMMAND, &inner))
        return r->bad ? -EPROTO : 0;
    while (field_next(&inner, &f))
        if (!command_take(&f, &x))
            return -EPROTO;
    if (inner.bad || x.number == 0)
        return -EPROTO;
    *ret = x;
    return 1;
}

void rule_info_encode(struct writer *w, const struct rule_info *x)
{
    uint8_t *head = nested_begin(w);

    field_put_string(w, TAG_FIELD, x->field);
    field_put_u32(w, TAG_VERDICT, x->verdict);
    if (x->how)
        field_put_string(w, TAG_HOW, x->how);
    if (x->remedy)
        field_put_string(w, TAG_ERROR_REMEDY, x->remedy);
    nested_end(w, head, TAG_RULE);
}

static bool rule_take(const struct field *f, struct rule_info *x)
{
    switch (f->tag) {
    case TAG_FIELD:
        return (x->field = field_string(f)) != NULL;
    case TAG_VERDICT:
        return field_u32(f, &x->verdict) && x->verdict < RULE_VERDICT__MAX;
    case TAG_HOW:
        return (x->how = field_string(f)) != NULL;
    case TAG_ERROR_REMEDY:
        return (x->remedy = field_string(f)) != NULL;
    default:
        return true;
    }
}

int rule_info_next(struct reader *r, struct rule_info *ret)
{
    struct rule_info x = {.verdict = RULE_VERDICT__MAX};
    struct reader inner;
    struct field f;

    if (!nested_next(r, TAG_RULE, &inner))
        return r->bad ? -EPROTO : 0;
    while (field_next(&inner, &f))
        if (!rule_take(&f, &x))
            return -EPROTO;
    if (inner.bad || !x.field || x.verdict == RULE_VERDICT__MAX)
        return -EPROTO;
    *ret = x;
    return 1;
}

const char *text_next(struct reader *r, uint16_t tag)
{
    struct field f;

    while (field_next(r, &f)) {
        if (f.tag != tag)
            continue;
        const char *text = field_string(&f);
        r->bad = !text;
        return text;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The spec on the wire: the fields of MSG_CREATE. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/limits.h"
#include "core/spec.h"
#include "wire/control.h"
#include "base/guards.h"

enum {
    CREATE_OWNED = 1 << 0,
    CREATE_REPORT_STEPS = 1 << 1,
    CREATE_USER_SET = 1 << 2,
    CREATE_OPEN_NETWORK = 1 << 3,
};
enum { VOLUME_READ_ONLY = 1 << 0 };

/* The fields that are one text or a list of texts, by where they stand in the spec. */
struct text_field {
    uint16_t tag;
    bool list; /* struct string_list, or char * */
    size_t offset;
};

static const struct text_field text_fields[] = {
    {TAG_IMAGE, false, offsetof(struct spec, image)},
    {TAG_HOSTNAME, false, offsetof(struct spec, hostname)},
    {TAG_WORKDIR, false, offsetof(struct spec, workdir)},
    {TAG_SANDBOX_NAME, false, offsetof(struct spec, name)},
    {TAG_OWNER, false, offsetof(struct spec, owner)},
    {TAG_EGRESS_ENFORCEMENT, false, offsetof(struct spec, egress_enforcement)},
    {TAG_RESOLVER, false, offsetof(struct spec, resolver)},
    {TAG_PROXY, false, offsetof(struct spec, proxy)},
    {TAG_PROXY_CREDENTIALS, false, offsetof(struct spec, proxy_credentials)},
    {TAG_AUDIT, false, offsetof(struct spec, audit)},
    {TAG_LABEL, true, offsetof(struct spec, tags)},
    {TAG_ALLOW_HOST, true, offsetof(struct spec, allow_egress_to)},
    {TAG_ALLOW_RANGE, true, offsetof(struct spec, allow_egress_to_cidrs)},
    {TAG_PRIVATE_RANGE, true, offsetof(struct spec, private_cidrs)},
    {TAG_PUBLISH, true, offsetof(struct spec, publish)},
    {TAG_ADD_HOST, true, offsetof(struct spec, add_hosts)},
    {TAG_PRICE, true, offsetof(struct spec, prices)},
    {TAG_ENV, true, offsetof(struct spec, env)},
};

static char **text_of(const struct spec *s, const struct text_field *f)
{
    return (char **)((uintptr_t)s + f->offset);
}

static struct string_list *list_of(const struct spec *s, const struct text_field *f)
{
    return (struct string_list *)((uintptr_t)s + f->offset);
}

static size_t text_size(const char *s)
{
    return s ? FIELD_HEADER_BYTES + strlen(s) + 1 : 0;
}

size_t spec_size(const struct spec *s)
{
    size_t size = 16 * (FIELD_HEADER_BYTES + sizeof(uint64_t));

    for (size_t i = 0; i < ARRAY_SIZE(text_fields); i++) {
        const struct text_field *f = &text_fields[i];

        if (!f->list)
            size += text_size(*text_of(s, f));
        for (size_t k = 0; f->list && k < list_of(s, f)->n; k++)
            size += text_size(list_of(s, f)->items[k]);
    }

    for (size_t i = 0; i < s->n_volumes; i++)
        size += 4 * FIELD_HEADER_BYTES + strlen(s->volumes[i].host) + strlen(s->volumes[i].guest) +
                2 + sizeof(uint32_t);
    return size;
}

static void volume_encode(struct writer *w, const struct volume *v)
{
    size_t len = 3 * FIELD_HEADER_BYTES + strlen(v->host) + strlen(v->guest) + 2 + sizeof(uint32_t);

    writer_u16(w, TAG_VOLUME);
    writer_u16(w, 0);
    writer_u32(w, (uint32_t)len);
    field_put_string(w, TAG_VOLUME_HOST, v->host);
    field_put_string(w, TAG_VOLUME_GUEST, v->guest);
    field_put_u32(w, TAG_VOLUME_FLAGS, v->read_only ? VOLUME_READ_ONLY : 0);
}

void spec_encode(struct writer *w, const struct spec *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(text_fields); i++) {
        const struct text_field *f = &text_fields[i];

        if (!f->list && *text_of(s, f))
            field_put_string(w, f->tag, *text_of(s, f));
        for (size_t k = 0; f->list && k < list_of(s, f)->n; k++)
            field_put_string(w, f->tag, list_of(s, f)->items[k]);
    }
    field_put_u32(w, TAG_UID, s->uid);
    field_put_u32(w, TAG_GID, s->gid);
    field_put_u64(w, TAG_DISK_BYTES, s->disk_bytes);
    field_put_u64(w, TAG_PIDS, s->pids);
    field_put_u64(w, TAG_LIFETIME_US, s->lifetime_us);
    field_put_u32(w, TAG_CREATE_FLAGS,
                  (s->owned ? CREATE_OWNED : 0u) | (s->report_steps ? CREATE_REPORT_STEPS : 0u) |
                      (s->user_set ? CREATE_USER_SET : 0u) |
                      (s->block_network ? 0u : CREATE_OPEN_NETWORK));
    if (s->cpu_milli > 0)
        field_put_u64(w, TAG_CPU_MILLI, s->cpu_milli);
    if (s->memory_bytes > 0)
        field_put_u64(w, TAG_MEMORY_BYTES, s->memory_bytes);
    if (s->idle_timeout_us > 0)
        field_put_u64(w, TAG_IDLE_US, s->idle_timeout_us);
    if (s->max_cost_micro > 0)
        field_put_u64(w, TAG_MAX_COST_MICRO, s->max_cost_micro);
    for (size_t i = 0; i < s->n_volumes; i++)
        volume_encode(w, &s->volumes[i]);
}

/* A text field as an owned copy; the old value is freed. */
static bool text_field(const struct field *f, char **ret)
{
    const char *s = field_string(f);
    char *copy = s ? strdup(s) : NULL;

    if (copy) {
        free(*ret);
        *ret = copy;
    }
    return copy != NULL;
}

static bool volume_field(struct reader r, struct spec *s)
{
    struct volume v = {0};
    struct field f;
    uint32_t flags = 0;
    bool good = s->n_volumes < LIMIT_VOLUMES;

    while (good && field_next(&r, &f)) {
        if (f.tag == TAG_VOLUME_HOST)
            good = text_field(&f, &v.host);
        else if (f.tag == TAG_VOLUME_GUEST)
            good = text_field(&f, &v.guest);
        else if (f.tag == TAG_VOLUME_FLAGS)
            good = field_u32(&f, &flags);
    }
    good =
        good && !r.bad && v.host && v.guest && v.host[0] == '/' && path_is_plain_absolute(v.guest);
    struct volume *more = good ? realloc(s->volumes, (s->n_volumes + 1) * sizeof *more) : NULL;
    if (!more) {
        free(v.host);
        free(v.guest);
        return false;
    }
    v.read_only = flags & VOLUME_READ_ONLY;
    s->volumes = more;
    s->volumes[s->n_volumes++] = v;
    return true;
}

static bool spec_flags(const struct field *f, struct spec *s)
{
    uint32_t flags;

    if (!field_u32(f, &flags))
        return false;
    s->owned = flags & CREATE_OWNED;
    s->report_steps = flags & CREATE_REPORT_STEPS;
    s->user_set = flags & CREATE_USER_SET;
    s->block_network = !(flags & CREATE_OPEN_NETWORK);
    return true;
}

static bool env_field(const struct field *f, struct spec *s)
{
    const char *entry = field_string(f);

    return entry && strchr(entry, '=') && s->env.n < LIMIT_ENV_NAMES &&
           env_set(&s->env, entry) == 0;
}

/* A field of the table. */
static bool any_text_field(const struct field *f, const struct text_field *row, struct spec *s)
{
    struct string_list *list = list_of(s, row);
    const char *text = field_string(f);

    if (!row->list)
        return text_field(f, text_of(s, row));
    return text && list->n < (row->tag == TAG_ALLOW_HOST ? LIMIT_HOSTS : LIMIT_LIST_ENTRIES) &&
           string_list_add(list, text) == 0;
}

static bool spec_field(const struct field *f, struct spec *s)
{
    switch (f->tag) {
    case TAG_ENV:
        return env_field(f, s);
    case TAG_UID:
        return field_u32(f, &s->uid) && s->uid <= 65534;
    case TAG_GID:
        return field_u32(f, &s->gid) && s->gid <= 65534;
    case TAG_DISK_BYTES:
        return field_u64(f, &s->disk_bytes) && s->disk_bytes <= LIMIT_DISK_MAX_BYTES;
    case TAG_PIDS:
        return field_u64(f, &s->pids) && s->pids >= LIMIT_PIDS_MIN && s->pids <= LIMIT_PIDS_MAX;
    case TAG_LIFETIME_US:
        return field_u64(f, &s->lifetime_us) && s->lifetime_us <= LIMIT_TIME_MAX_US;
    case TAG_CREATE_FLAGS:
        return spec_flags(f, s);
    case TAG_VOLUME:
        return volume_field(f->value, s);
    case TAG_CPU_MILLI:
        return field_u64(f, &s->cpu_milli);
    case TAG_MEMORY_BYTES:
        return field_u64(f, &s->memory_bytes);
    case TAG_IDLE_US:
        return field_u64(f, &s->idle_timeout_us) && s->idle_timeout_us <= LIMIT_TIME_MAX_US;
    case TAG_MAX_COST_MICRO:
        return field_u64(f, &s->max_cost_micro);
    default:
        for (size_t i = 0; i < ARRAY_SIZE(text_fields); i++)
            if (text_fields[i].tag == f->tag)
                return any_text_field(f, &text_fields[i], s);
        return true;
    }
}

int spec_decode(struct reader message, struct spec *ret)
{
    struct spec s;
    struct field f;
    bool good = spec_init(&s) == 0;

    s.lifetime_us = 0; /* none unless it is sent */
    while (good && field_next(&message, &f))
        good = spec_field(&f, &s);
    /* What an image may be is the backend's to say. */
    good = good && !message.bad && (!s.workdir || path_is_plain_absolute(s.workdir));
    if (!good) {
        spec_done(&s);
        return -EPROTO;
    }
    *ret = s;
    return 0;
}

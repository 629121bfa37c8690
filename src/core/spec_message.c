/* SPDX-License-Identifier: Apache-2.0 */
/* The spec on the wire: the fields of MSG_CREATE. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/limits.h"
#include "core/spec.h"
#include "wire/control.h"
#include "base/guards.h"

enum { CREATE_OWNED = 1 << 0, CREATE_REPORT_STEPS = 1 << 1, CREATE_USER_SET = 1 << 2 };
enum { VOLUME_READ_ONLY = 1 << 0 };

size_t spec_size(const struct spec *s)
{
    size_t size = 16 * (FIELD_HEADER_BYTES + sizeof(uint64_t)) + strlen(s->image) +
                  strlen(s->hostname) + (s->workdir ? strlen(s->workdir) : 0) + 3;

    for (size_t i = 0; i < s->n_volumes; i++)
        size += 4 * FIELD_HEADER_BYTES + strlen(s->volumes[i].host) + strlen(s->volumes[i].guest) +
                2 + sizeof(uint32_t);
    for (size_t i = 0; i < s->env.n; i++)
        size += FIELD_HEADER_BYTES + strlen(s->env.items[i]) + 1;
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
    field_put_string(w, TAG_IMAGE, s->image);
    field_put_string(w, TAG_HOSTNAME, s->hostname);
    if (s->workdir)
        field_put_string(w, TAG_WORKDIR, s->workdir);
    field_put_u32(w, TAG_UID, s->uid);
    field_put_u32(w, TAG_GID, s->gid);
    field_put_u64(w, TAG_DISK_BYTES, s->disk_bytes);
    field_put_u64(w, TAG_PIDS, s->pids);
    field_put_u64(w, TAG_LIFETIME_US, s->lifetime_us);
    field_put_u32(w, TAG_CREATE_FLAGS,
                  (s->owned ? CREATE_OWNED : 0u) | (s->report_steps ? CREATE_REPORT_STEPS : 0u) |
                      (s->user_set ? CREATE_USER_SET : 0u));
    for (size_t i = 0; i < s->n_volumes; i++)
        volume_encode(w, &s->volumes[i]);
    for (size_t i = 0; i < s->env.n; i++)
        field_put_string(w, TAG_ENV, s->env.items[i]);
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
    return true;
}

static bool spec_field(const struct field *f, struct spec *s)
{
    switch (f->tag) {
    case TAG_IMAGE:
        return text_field(f, &s->image);
    case TAG_HOSTNAME:
        return text_field(f, &s->hostname);
    case TAG_WORKDIR:
        return text_field(f, &s->workdir);
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
    case TAG_ENV: {
        const char *entry = field_string(f);
        return entry && strchr(entry, '=') && s->env.n < LIMIT_ENV_NAMES &&
               env_set(&s->env, entry) == 0;
    }
    default:
        return true;
    }
}

int spec_decode(struct reader message, struct spec *ret)
{
    struct spec s;
    struct field f;
    bool good = spec_init(&s) == 0;

    while (good && field_next(&message, &f))
        good = spec_field(&f, &s);
    good = good && !message.bad &&
           (strcmp(s.image, "host") == 0 || strncmp(s.image, "dir:/", 5) == 0) &&
           (!s.workdir || path_is_plain_absolute(s.workdir));
    if (!good) {
        spec_done(&s);
        return -EPROTO;
    }
    *ret = s;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading record.json. */
#include "core/state_record.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "base/guards.h"

void state_record_done(struct state_record *r)
{
    free(r->name);
    free(r->owner);
    free(r->image);
    free(r->program);
    string_list_done(&r->tags);
    *r = (struct state_record){0};
}

static void json_freep(json_t **j)
{
    json_decref(*j);
}

/* A path may be any bytes, and a client may send any: what JSON cannot hold is left out. */
static const char *if_text(const char *s)
{
    return s && text_is_utf8(s, strlen(s)) ? s : NULL;
}

static json_t *tags_json(const struct string_list *tags)
{
    json_t *o = json_object();

    for (size_t i = 0; o && i < tags->n; i++) {
        const char *equals = strchr(tags->items[i], '=');

        if (!equals || !if_text(tags->items[i]))
            continue;
        _cleanup_free_ char *key = strndup(tags->items[i], (size_t)(equals - tags->items[i]));

        if (!key || json_object_set_new(o, key, json_string(equals + 1)) < 0) {
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

static json_t *record_json(const struct state_record *r)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s?, s:s?, s:s?, s:s?, s:o}",
                     "version", STATE_RECORD_VERSION, "id", r->id, "host", r->place.host, "boot_id",
                     r->place.boot, "uid", (json_int_t)r->place.uid, "keeper_pid",
                     (json_int_t)r->pid, "created_at_us", (json_int_t)r->created_at_us,
                     "expires_at_us", (json_int_t)r->expires_at_us, "name", if_text(r->name),
                     "owner", if_text(r->owner), "image", if_text(r->image), "program",
                     if_text(r->program), "tags", tags_json(&r->tags));
}

int state_record_write(int folder, const struct state_record *r)
{
    json_t *o = record_json(r);
    _cleanup_free_ char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
    _cleanup_fd_ int fd = -EBADF;

    json_decref(o);
    if (!text)
        return -ENOMEM;
    fd = openat(folder, STATE_RECORD_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                0600);
    if (fd < 0 && errno == EEXIST && unlinkat(folder, STATE_RECORD_NEW, 0) == 0)
        fd = openat(folder, STATE_RECORD_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0600); /* of a keeper that was killed at this, or had no room */
    if (fd < 0)
        return -errno;
    int result = io_write_full(fd, text, strlen(text), CLOCK_NEVER);
    if (result == 0 && renameat(folder, STATE_RECORD_NEW, folder, "record.json") < 0)
        result = -errno;
    if (result < 0)
        (void)unlinkat(folder, STATE_RECORD_NEW, 0);
    return result;
}

static int read_text(int folder, char **ret)
{
    _cleanup_fd_ int fd =
        openat(folder, "record.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size > STATE_RECORD_BYTES_MAX)
        return -EPROTO;
    _cleanup_free_ char *text = calloc(1, (size_t)st.st_size + 1);
    if (!text)
        return -ENOMEM;
    int r = io_read_full(fd, text, (size_t)st.st_size, CLOCK_NEVER);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(text);
    return 0;
}

/* A copy of a text member; false when there is no memory. An absent one is NULL. */
static bool take_text(const json_t *o, const char *key, char **ret)
{
    const char *s = json_string_value(json_object_get(o, key));

    *ret = s ? strdup(s) : NULL;
    return !s || *ret;
}

/* Return: 0, -EPROTO or -ENOMEM. */
static int take_tags(const json_t *o, struct string_list *ret)
{
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(o, "tags"), key, value)
    {
        char *entry = NULL;

        if (!json_is_string(value) || strchr(key, '='))
            return -EPROTO;
        if (asprintf(&entry, "%s=%s", key, json_string_value(value)) < 0)
            return -ENOMEM;
        int r = string_list_add(ret, entry);
        free(entry);
        if (r < 0)
            return r;
    }
    return 0;
}

static int take_record(json_t *o, struct state_record *r)
{
    const char *id, *host, *boot;
    json_int_t version, uid, pid, created, expires;

    if (json_unpack(o, "{s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "version", &version, "id", &id,
                    "host", &host, "boot_id", &boot, "uid", &uid, "keeper_pid", &pid,
                    "created_at_us", &created, "expires_at_us", &expires) < 0 ||
        version != STATE_RECORD_VERSION || strlen(id) >= sizeof r->id ||
        strlen(host) >= sizeof r->place.host || strlen(boot) >= sizeof r->place.boot ||
        created < 0 || expires < 0 || uid < 0 || uid > UINT32_MAX || pid <= 0 || pid > INT32_MAX)
        return -EPROTO;
    memcpy(r->id, id, strlen(id) + 1);
    memcpy(r->place.host, host, strlen(host) + 1);
    memcpy(r->place.boot, boot, strlen(boot) + 1);
    r->place.uid = (uint32_t)uid;
    r->pid = pid;
    r->created_at_us = (uint64_t)created;
    r->expires_at_us = (uint64_t)expires;
    return take_text(o, "name", &r->name) && take_text(o, "owner", &r->owner) &&
                   take_text(o, "image", &r->image) && take_text(o, "program", &r->program)
               ? take_tags(o, &r->tags)
               : -ENOMEM;
}

int state_record_read(int folder, struct state_record *ret)
{
    _cleanup_free_ char *text = NULL;
    struct state_record r = {0};
    int result = read_text(folder, &text);

    if (result < 0)
        return result;
    _cleanup_(json_freep) json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    result = o ? take_record(o, &r) : -EPROTO;
    if (result < 0)
        state_record_done(&r);
    else
        *ret = r;
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait, and their answers. Answers longer than a message are kept and sent as the
 * client takes them, so that a slow client costs their size and no more.
 */
#include <atoll_backend.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/server.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

/*
 * The data of LIST and ENUMERATE is a row of messages, each behind its length. Entries are added
 * to the last one while they fit a frame.
 */
enum { LENGTH_BYTES = sizeof(uint32_t) };

struct atoll_reply *reply_new(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r = NULL;

    if (!server_id_free(s, m->id)) {
        server_refuse_text(s, m->id, ERROR_USAGE, EEXIST, "a request with this id is under way",
                           NULL);
        return NULL;
    }
    if (s->n_replies < REPLIES_MAX)
        r = calloc(1, sizeof *r);
    if (!r) {
        server_refuse_text(s, m->id, ERROR_RECOVERABLE, EAGAIN,
                           "too many requests wait for their answers",
                           "Wait for some of them first");
        return NULL;
    }
    *r = (struct atoll_reply){.server = s, .type = m->type, .id = m->id};
    r->next = s->replies;
    s->replies = r;
    s->n_replies++;
    return r;
}

struct atoll_reply *reply_find(const struct atoll_server *s, uint32_t id)
{
    for (struct atoll_reply *r = s->replies; r; r = r->next)
        if (r->id == id && !r->dropped)
            return r;
    return NULL;
}

void reply_free(struct atoll_reply *r)
{
    struct atoll_server *s = r->server;

    for (struct atoll_reply **at = &s->replies; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            s->n_replies--;
            break;
        }
    if (r->type == MSG_WRITE)
        s->collected -= r->size;
    free(r->path);
    free(r->data);
    free(r);
}

int reply_append(struct atoll_reply *r, const void *data, size_t len)
{
    if (len > r->capacity - r->size) {
        size_t capacity = r->capacity < 4096 ? 4096 : r->capacity * 2;

        if (capacity < r->size + len)
            capacity = r->size + len;
        uint8_t *more = realloc(r->data, capacity);
        if (!more)
            return -ENOMEM;
        r->data = more;
        r->capacity = capacity;
    }
    if (len > 0)
        memcpy(r->data + r->size, data, len);
    r->size += len;
    return 0;
}

/* An empty message that answers @r. */
static void say_done(struct atoll_reply *r)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    if (r->type == MSG_WRITE)
        field_put_u64(&w, TAG_SIZE, r->size);
    server_send(r->server, MSG_DONE, r->id, &w);
}

static void say_output(struct atoll_reply *r, const uint8_t *data, size_t len)
{
    uint8_t buf[CHUNK_BYTES + 64];
    struct writer w = writer_over(buf, sizeof buf);
    struct stream_data x = {.stream = STREAM_STDOUT, .data = data, .len = len};

    stream_data_encode(&w, &x);
    server_send(r->server, MSG_OUTPUT, r->id, &w);
}

/* Sends content as far as credit and queue go. True: that was all of it. */
static bool pump_content(struct atoll_reply *r)
{
    while (r->sent < r->size && r->credit > 0 && server_room(r->server) > 0) {
        size_t n = r->size - r->sent;

        n = n < r->credit ? n : r->credit;
        n = n < CHUNK_BYTES ? n : CHUNK_BYTES;
        say_output(r, r->data + r->sent, n);
        r->sent += n;
        r->credit -= (uint32_t)n;
    }
    if (r->sent < r->size)
        return false;
    say_output(r, (const uint8_t *)"", 0);
    return true;
}

static bool pump_messages(struct atoll_reply *r)
{
    while (r->sent < r->size && server_room(r->server) > 0) {
        struct writer w = {0};
        uint32_t len;

        memcpy(&len, r->data + r->sent, sizeof len);
        w.start = r->data + r->sent + sizeof len;
        w.p = w.end = w.start + len;
        server_send(r->server, r->type == MSG_LIST ? MSG_LISTED : MSG_SANDBOX, r->id, &w);
        r->sent += sizeof len + len;
    }
    if (r->sent < r->size)
        return false;
    say_done(r);
    return true;
}

/* Return: whether @r is gone. */
static bool pump(struct atoll_reply *r)
{
    bool all = r->type == MSG_READ ? pump_content(r) : pump_messages(r);

    if (all)
        reply_free(r);
    return all;
}

void replies_pump(struct atoll_server *s)
{
    struct atoll_reply *next;

    for (struct atoll_reply *r = s->replies; r && !s->gone; r = next) {
        next = r->next;
        if (r->answered)
            (void)pump(r);
    }
}

/* What every answer begins with. False: nobody waits for it, and @r is gone. */
static bool begin(struct atoll_reply *r)
{
    assert(r->asked && !r->answered); /* a request is answered once, after it was asked */
    if (r->dropped || r->server->gone) {
        reply_free(r);
        return false;
    }
    return true;
}

void atoll_reply_error(struct atoll_reply *r, int cls, int code, const char *message,
                       const char *remedy)
{
    struct atoll_server *s = r->server;
    uint16_t type = r->type;

    if (type == MSG_CREATE || type == MSG_OPEN)
        s->phase = PHASE_NEW;
    else if (type == MSG_DESTROY)
        s->phase = PHASE_RUNNING;
    if (begin(r)) {
        server_refuse_text(s, r->id, cls, code, message, remedy);
        reply_free(r);
    }
    if (type == MSG_CREATE) /* what was sent behind it will not be answered */
        sandbox_ended(s, REASON_ERROR, ENDED_ERROR);
    else if (type == MSG_OPEN || type == MSG_DESTROY)
        server_resume(s);
}

void atoll_reply_file_error(struct atoll_reply *r, int code, int kind, uint64_t size)
{
    bool too_large = code == EFBIG || (code == EINVAL && kind == ATOLL_DEVICE);
    struct file_fault x = {
        .code = code > 0 && code < 4096 ? (uint32_t)code : EIO,
        .path = r->path ? r->path : "",
        .kind = kind > 0 && kind < FILE_KIND__MAX ? (uint32_t)kind : 0,
        .size = size,
        .max = r->max_bytes,
    };
    uint8_t buf[FILE_PATH_BYTES_MAX + 256];
    struct writer w = writer_over(buf, sizeof buf);

    assert(r->path); /* of a file request */
    if (!begin(r))
        return;
    file_fault_encode(&w, too_large ? ERROR_TOO_LARGE : ERROR_RECOVERABLE, &x);
    server_send(r->server, MSG_ERROR, r->id, &w);
    reply_free(r);
}

void atoll_reply_created(struct atoll_reply *r, const char *id, void *sandbox)
{
    struct atoll_server *s = r->server;
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);

    assert(r->type == MSG_CREATE || r->type == MSG_OPEN);
    s->phase = PHASE_RUNNING;
    s->create_id = r->id;
    s->sandbox = sandbox;
    if (begin(r)) {
        field_put_string(&w, TAG_SANDBOX_ID, id);
        server_send(s, MSG_CREATED, r->id, &w);
        reply_free(r);
    }
    server_resume(s);
}

void atoll_reply_tags(struct atoll_reply *r, const char *const *tags)
{
    size_t size = 0;

    assert(r->type == MSG_TAGS);
    for (const char *const *tag = tags; *tag; tag++)
        size += FIELD_HEADER_BYTES + strlen(*tag) + 1;
    _cleanup_free_ uint8_t *buf = malloc(size + 1);
    struct writer w = writer_over(buf, buf ? size : 0);
    for (const char *const *tag = tags; *tag; tag++)
        field_put_string(&w, TAG_LABEL, *tag);
    if (w.bad || size > MESSAGE_BYTES_MAX) {
        atoll_reply_error(r, ERROR_TOO_LARGE, EOVERFLOW, "the tags are too long", NULL);
    } else if (begin(r)) {
        server_send(r->server, MSG_TAGS_READ, r->id, &w);
        reply_free(r);
    }
}

void atoll_reply_file(struct atoll_reply *r, const struct atoll_file *file)
{
    struct file_info x = {
        .kind = (uint32_t)file->kind,
        .mode = file->mode,
        .size = file->size,
        .mtime_ns = file->mtime_ns,
        .link_target = file->target,
    };
    uint8_t buf[2 * FILE_PATH_BYTES_MAX];
    struct writer w = writer_over(buf, sizeof buf);

    assert(r->type == MSG_STAT || r->type == MSG_READ);
    if (!begin(r))
        return;
    file_info_encode(&w, &x);
    server_send(r->server, MSG_FILE, r->id, &w);
    if (r->type == MSG_STAT)
        reply_free(r);
}

void atoll_reply_content(struct atoll_reply *r, const struct atoll_file *file, const void *data,
                         size_t len)
{
    assert(r->type == MSG_READ);
    if (r->dropped || r->server->gone) {
        reply_free(r);
    } else if (reply_append(r, data, len) < 0) {
        atoll_reply_error(r, ERROR_TOO_LARGE, ENOMEM, "out of memory",
                          "Ask for a part of the file");
    } else {
        atoll_reply_file(r, file);
        r->answered = true;
        (void)pump(r);
    }
}

/* Adds a message, or to the last one, room for @len bytes; NULL when it would be too much. */
static uint8_t *message_room(struct atoll_reply *r, size_t len, bool join)
{
    static const uint8_t none[LENGTH_BYTES];
    uint32_t had = 0;

    if (r->size + len > LISTING_MAX)
        return NULL;
    if (r->size > 0)
        memcpy(&had, r->data + r->last, sizeof had);
    if (r->size == 0 || !join || had + len > FRAME_PAYLOAD_MAX) {
        r->last = r->size;
        had = 0;
        if (reply_append(r, none, sizeof none) < 0)
            return NULL;
    }
    if (len > r->capacity - r->size) {
        _cleanup_free_ uint8_t *empty = calloc(1, len);

        if (!empty || reply_append(r, empty, len) < 0)
            return NULL;
    } else {
        r->size += len;
    }
    had += (uint32_t)len;
    memcpy(r->data + r->last, &had, sizeof had);
    return r->data + r->size - len;
}

/* The room was reckoned a little too large: gives the rest back. */
static void message_trim(struct atoll_reply *r, size_t rest)
{
    uint32_t len;

    memcpy(&len, r->data + r->last, sizeof len);
    len -= (uint32_t)rest;
    memcpy(r->data + r->last, &len, sizeof len);
    r->size -= rest;
}

void atoll_reply_entry(struct atoll_reply *r, const struct atoll_file *entry)
{
    struct file_info x = {
        .name = entry->name,
        .kind = (uint32_t)entry->kind,
        .mode = entry->mode,
        .size = entry->size,
        .mtime_ns = entry->mtime_ns,
        .link_target = entry->target,
        .target_kind = entry->kind == ATOLL_LINK ? (uint32_t)entry->target_kind : 0,
    };
    size_t size = file_entry_size(&x);

    assert(r->type == MSG_LIST && entry->name);
    if (r->dropped || r->overflow)
        return;
    uint8_t *room = message_room(r, size, true);
    struct writer w = writer_over(room, room ? size : 0);
    file_entry_encode(&w, &x);
    r->overflow = w.bad;
    if (!w.bad)
        message_trim(r, size - writer_len(&w));
}

static uint32_t state_number(const char *name)
{
    uint32_t state = STATE_CREATING;

    while (name && state < STATE__MAX && strcmp(name, sandbox_state_name(state)) != 0)
        state++;
    return name && state < STATE__MAX ? state : STATE_RUNNING;
}

static void info_convert(const struct atoll_server *s, const struct atoll_info *info,
                         struct sandbox_info *ret)
{
    *ret = (struct sandbox_info){
        .id = info->id,
        .name = info->name,
        .owner = info->owner,
        .backend = info->backend ? info->backend : s->backend->name,
        .image = info->image,
        .workdir = info->workdir,
        .hostname = info->hostname,
        .state = state_number(info->state),
        .uid = info->uid,
        .gid = info->gid,
        .created_at_us = info->created_at_us,
        .expires_at_us = info->expires_at_us,
        .idle_us = info->idle_us,
        .disk_used_bytes = info->disk_used,
        .disk_limit_bytes = info->disk_limit,
        .inodes_used = info->inodes_used,
        .inodes_limit = info->inodes_limit,
        .pids_limit = info->pids_limit,
        .processes = info->processes,
        .n_commands = info->commands,
        .keeper_pid = info->keeper_pid,
        .landlock_abi = info->landlock_abi,
    };
    for (const char *const *tag = info->tags; tag && *tag; tag++)
        if (ret->n_labels < SANDBOX_LABELS_MAX)
            ret->labels[ret->n_labels++] = *tag;
    if (tags_known(s->backend))
        tags_describe(ret);
}

void atoll_reply_info(struct atoll_reply *r, const struct atoll_info *info)
{
    struct atoll_server *s = r->server;
    bool inspect = r->type == MSG_INSPECT;
    struct sandbox_info x;

    assert((inspect || r->type == MSG_ENUMERATE) && info->id);
    if (r->dropped || r->overflow)
        return;
    info_convert(s, info, &x);
    if (inspect && x.n_commands == 0)
        x.n_commands = (uint32_t)s->n_streams;
    size_t size = sandbox_info_size(&x);
    uint8_t *room = message_room(r, size, false);
    struct writer w = writer_over(room, room ? size : 0);
    sandbox_info_encode(&w, &x);
    r->overflow = w.bad;
    if (!w.bad)
        message_trim(r, size - writer_len(&w));
    if (!inspect || !begin(r))
        return;
    server_send(s, MSG_SANDBOX, r->id, &w);
    reply_free(r);
}

void atoll_reply_done(struct atoll_reply *r)
{
    struct atoll_server *s = r->server;

    if (r->type == MSG_DESTROY) {
        if (begin(r))
            reply_free(r);
        sandbox_ended(s, REASON_KILLED, ENDED_DESTROYED);
        return;
    }
    if (r->overflow) {
        atoll_reply_error(r, ERROR_TOO_LARGE, EOVERFLOW, "the list is too long",
                          "List a folder with fewer entries");
        return;
    }
    if (!begin(r))
        return;
    if (r->type == MSG_WRITE || r->type == MSG_SET_TAGS) {
        say_done(r);
        reply_free(r);
        return;
    }
    assert(r->type == MSG_LIST || r->type == MSG_ENUMERATE);
    r->answered = true;
    (void)pump(r);
}

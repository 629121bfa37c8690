/* SPDX-License-Identifier: Apache-2.0 */
/* File operations in-band: content travels as INPUT and OUTPUT, under credit. */
#include <atoll_backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/server.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/guards.h"

/* A file request that was read; NULL when it was refused. */
static struct atoll_reply *begin_file(struct atoll_server *s, const struct message *m,
                                      struct file_request *ret)
{
    struct atoll_reply *r;

    if (file_request_decode(m->payload, ret) < 0) {
        server_refuse_text(s, m->id, ERROR_USAGE, EPROTO, "the request cannot be read", NULL);
        return NULL;
    }
    r = reply_new(s, m);
    if (!r)
        return NULL;
    r->path = strdup(ret->path);
    r->max_bytes = ret->max_bytes;
    if (!r->path) {
        server_refuse_text(s, m->id, ERROR_TERMINAL, ENOMEM, "out of memory", NULL);
        reply_free(r);
        return NULL;
    }
    return r;
}

/* What can only travel in-band here must be asked for so. */
static bool is_in_band(struct atoll_reply *r, const struct file_request *x)
{
    if (x->flags & (FILE_IN_BAND | FILE_INLINE))
        return true;
    server_refuse_text(r->server, r->id, ERROR_USAGE, EINVAL,
                       "no descriptors can be passed here: ask for in-band content", NULL);
    reply_free(r);
    return false;
}

void file_read(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r;
    struct file_request x;

    if (!s->backend->read) {
        server_lacks(s, m->id, "read files");
        return;
    }
    r = begin_file(s, m, &x);
    if (!r || !is_in_band(r, &x))
        return;
    if (r->max_bytes > ATOLL_BACKEND_READ_MAX)
        r->max_bytes = ATOLL_BACKEND_READ_MAX;
    r->credit = STREAM_WINDOW_BYTES;
    r->asked = true;
    s->backend->read(s, s->sandbox, r->path, x.offset, x.length, r->max_bytes, r);
}

static void write_whole(struct atoll_reply *r, const void *data, size_t len)
{
    struct atoll_server *s = r->server;

    r->asked = true;
    s->backend->write(s, s->sandbox, r->path, r->mode, data, len, r);
}

/* More content. 0 or a negative errno. */
static int collect(struct atoll_reply *r, const uint8_t *data, size_t len)
{
    struct atoll_server *s = r->server;

    if (len > ATOLL_BACKEND_WRITE_MAX - r->size)
        return -EFBIG;
    if (len > COLLECTED_MAX - s->collected)
        return -ENOBUFS;
    int result = reply_append(r, data, len);
    if (result == 0)
        s->collected += len;
    return result;
}

/* The content cannot be kept: the operation is over, and the old file stays. */
static void collect_failed(struct atoll_reply *r, int code, size_t len)
{
    if (code == EFBIG) {
        r->max_bytes = ATOLL_BACKEND_WRITE_MAX;
        r->asked = true;
        atoll_reply_file_error(r, EFBIG, 0, r->size + len);
        return;
    }
    server_refuse_text(r->server, r->id, ERROR_RECOVERABLE, code,
                       code == ENOBUFS ? "too many files are being written at once"
                                       : "out of memory",
                       "Write them one after the other");
    reply_free(r);
}

void file_write(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r;
    struct file_request x;

    if (!s->backend->write) {
        server_lacks(s, m->id, "write files");
        return;
    }
    r = begin_file(s, m, &x);
    if (!r || !is_in_band(r, &x))
        return;
    r->mode = x.flags & FILE_MODE_SET ? x.mode : ATOLL_KEEP_MODE;
    if (!(x.flags & FILE_INLINE))
        return; /* INPUT and COMMIT follow */
    int result = collect(r, x.data, x.len);
    if (result < 0)
        collect_failed(r, -result, x.len);
    else
        write_whole(r, r->size > 0 ? r->data : (const uint8_t *)"", r->size);
}

void file_input(struct atoll_reply *r, const struct stream_data *x)
{
    struct atoll_server *s = r->server;
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    if (r->type != MSG_WRITE || r->asked || r->input_ended || x->stream != STREAM_STDIN ||
        x->len > STREAM_WINDOW_BYTES) {
        server_refuse_text(s, r->id, ERROR_USAGE, r->input_ended || r->asked ? EPIPE : EPROTO,
                           "bytes came that were not agreed on", NULL);
        return;
    }
    if (x->len == 0) {
        r->input_ended = true;
        return;
    }
    int result = collect(r, x->data, x->len);
    if (result < 0) {
        collect_failed(r, -result, x->len);
        return;
    }
    /* All of it is kept, so that the client's window is open again. */
    stream_credit_encode(&w, STREAM_STDIN, (uint32_t)x->len);
    server_send(s, MSG_CREDIT, r->id, &w);
}

void file_commit(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r = reply_find(s, m->id);

    if (!r || r->type != MSG_WRITE || r->asked)
        return; /* late: the write has failed already, and the client was told */
    if (!r->input_ended)
        server_refuse_text(s, m->id, ERROR_USAGE, EPROTO,
                           "COMMIT came before the end of the content", NULL);
    else
        write_whole(r, r->size > 0 ? r->data : (const uint8_t *)"", r->size);
}

void file_credit(struct atoll_reply *r, const struct stream_data *x)
{
    if (r->type != MSG_READ)
        return;
    if (x->stream != STREAM_STDOUT || x->credit > STREAM_WINDOW_BYTES - r->credit) {
        server_refuse_text(r->server, r->id, ERROR_USAGE, EPROTO,
                           "credit came that was not agreed on", NULL);
        return;
    }
    r->credit += x->credit;
    replies_pump(r->server);
}

void file_list(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r;
    struct file_request x;

    if (!s->backend->list) {
        server_lacks(s, m->id, "list folders");
        return;
    }
    r = begin_file(s, m, &x);
    if (!r)
        return;
    r->asked = true;
    s->backend->list(s, s->sandbox, r->path, r);
}

void file_stat(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r;
    struct file_request x;

    if (!s->backend->stat) {
        server_lacks(s, m->id, "look at a file");
        return;
    }
    r = begin_file(s, m, &x);
    if (!r)
        return;
    r->asked = true;
    s->backend->stat(s, s->sandbox, r->path, !(x.flags & FILE_NO_FOLLOW), r);
}

void file_cancel(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r = reply_find(s, m->id);

    if (!r || !r->path)
        return; /* it is over, or of another sort */
    server_refuse_text(s, m->id, ERROR_RECOVERABLE, ECANCELED, "it was cancelled", NULL);
    if (r->asked && !r->answered)
        r->dropped = true; /* until the backend answers */
    else
        reply_free(r);
}

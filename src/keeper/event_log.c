/* SPDX-License-Identifier: Apache-2.0 */
/* Writing lines of events: whole ones, with bounds, and a count of those that are lost. */
#include "keeper/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/mask.h"
#include "core/state.h"
#include "base/guards.h"

enum { TIME_BYTES = 64, DIGITS = 15 };

int event_log_open(struct event_log *l, const char *id)
{
    int fd = state_events_begin(id);

    if (fd < 0)
        return fd;
    l->fd = fd;
    l->bytes = 0;
    return 0;
}

void event_log_close(struct event_log *l)
{
    fd_closep(&l->fd);
    fd_closep(&l->audit_fd);
    mask_freep(&l->mask);
}

static int audit_refused(const char *path, int code, const char *why, struct error *err)
{
    (void)error_set(err, ERROR_USAGE, code, "the audit file %s cannot be written to: %s", path,
                    why);
    return error_remedy(err, "Set backend.audit to a file in a folder that you may write to");
}

int event_log_audit(struct event_log *l, const char *path, struct error *err)
{
    /* Without O_NONBLOCK the open of a FIFO would wait for who reads it. */
    _cleanup_fd_ int fd = open(
        path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;

    if (fd < 0 && errno == ELOOP)
        return audit_refused(path, ELOOP, "it is a symbolic link", err);
    if (fd < 0 || fstat(fd, &st) < 0)
        return audit_refused(path, errno, strerror(errno), err);
    if (!S_ISREG(st.st_mode))
        return audit_refused(path, EINVAL, "it is no ordinary file", err);
    l->audit_fd = TAKE_FD(fd);
    return 0;
}

json_t *event_time_json(uint64_t epoch_us)
{
    const time_t seconds = (time_t)(epoch_us / 1000000);
    char day[TIME_BYTES / 2], text[TIME_BYTES];
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return NULL;
    (void)snprintf(text, sizeof text, "%s.%06uZ", day, (unsigned)(epoch_us % 1000000));
    return json_string(text);
}

/* Return: an owned line with its end, or NULL. @o is consumed. */
static char *line_of(json_t *o, size_t *ret_len)
{
    char *text =
        o ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS)) : NULL;

    json_decref(o);
    if (!text)
        return NULL;
    *ret_len = strlen(text);
    text[(*ret_len)++] = '\n'; /* in the place of its NUL */
    return text;
}

/* What stands in the place of @lines lines that are not there. */
static json_t *dropped_json(uint64_t lines)
{
    return json_pack("{s:o, s:s, s:s, s:I}", "time", event_time_json(clock_epoch_us()), "kind",
                     "events", "event", "dropped", "lines", (json_int_t)lines);
}

/* --- events.jsonl --- */

/* A whole line or nothing of it: a half would spoil the next one too. */
static int put(int fd, const char *bytes, size_t len, size_t *io_bytes)
{
    ssize_t n = write(fd, bytes, len);

    if (n == (ssize_t)len) {
        *io_bytes += len;
        return 0;
    }
    if (n > 0)
        (void)!ftruncate(fd, (off_t)*io_bytes);
    return n < 0 ? -errno : -ENOSPC;
}

/* The newer half of @bytes, of which the lines in front of it are counted. */
static const char *newer_half(const char *bytes, size_t len, uint64_t *io_gone)
{
    const char *p = bytes, *end = bytes + len, *half = bytes + len / 2;

    /* The line about those that went before is none of them, and is written anew. */
    if (*io_gone > 0 && (p = memchr(p, '\n', len)))
        p++;
    while (p && p < half) {
        p = memchr(p, '\n', (size_t)(end - p));
        *io_gone += p != NULL;
        if (p)
            p++;
    }
    return p ? p : end;
}

/* The older half goes. A reader that has the file open reads that one to its end. */
static int cut(struct event_log *l, const char *id)
{
    struct event_log fresh = {.fd = -EBADF, .gone = l->gone};
    _cleanup_free_ char *bytes = malloc(l->bytes);
    ssize_t n = bytes ? pread(l->fd, bytes, l->bytes, 0) : -1;
    size_t len = 0;

    if (n != (ssize_t)l->bytes)
        return -EIO;
    const char *rest = newer_half(bytes, l->bytes, &fresh.gone);
    _cleanup_free_ char *first = line_of(dropped_json(fresh.gone), &len);
    _cleanup_fd_ int fd = first ? state_events_create(id) : -ENOMEM;
    int r = fd < 0 ? fd : put(fd, first, len, &fresh.bytes);
    if (r == 0)
        r = put(fd, rest, (size_t)(bytes + l->bytes - rest), &fresh.bytes);
    if (r == 0)
        r = state_events_place(id);
    if (r < 0)
        return r;
    fd_closep(&l->fd);
    l->fd = TAKE_FD(fd);
    l->bytes = fresh.bytes;
    l->gone = fresh.gone;
    return 0;
}

static void keep_line(struct event_log *l, const char *id, const char *line, size_t len)
{
    if (l->fd < 0 && event_log_open(l, id) < 0)
        return;
    if (l->bytes + len > EVENTS_BYTES_MAX && cut(l, id) < 0)
        return;
    (void)put(l->fd, line, len, &l->bytes);
}

/* --- the audit file --- */

/*
 * A line in one write, which O_APPEND puts behind what all others have written (write(2)). Of a
 * part the file is rid, unless somebody's line has come behind it: then the part is a line of its
 * own, as soon as there is room for its end.
 */
static int append(struct event_log *l, const char *id, const char *line, size_t len)
{
    const size_t room = len + strlen(id) + 16;
    _cleanup_free_ char *text = malloc(room);
    struct stat st;

    if (!text)
        return -ENOMEM;
    int size = snprintf(text, room, "%s{\"id\":\"%s\",%.*s", l->audit_half ? "\n" : "", id,
                        (int)len - 1, line + 1);
    ssize_t n = write(l->audit_fd, text, (size_t)size);
    if (n == size) {
        l->audit_half = false;
        return 0;
    }
    if (n > 0) {
        const off_t end = lseek(l->audit_fd, 0, SEEK_CUR);

        l->audit_half =
            fstat(l->audit_fd, &st) < 0 || st.st_size != end || ftruncate(l->audit_fd, end - n) < 0;
    }
    return n < 0 ? -errno : -ENOSPC;
}

static void audit_line(struct event_log *l, const char *id, const char *line, size_t len)
{
    if (l->audit_lost > 0) {
        size_t n = 0;
        _cleanup_free_ char *lost = line_of(dropped_json(l->audit_lost), &n);

        if (lost && append(l, id, lost, n) == 0)
            l->audit_lost = 0;
    }
    if (l->audit_lost > 0 || append(l, id, line, len) < 0)
        l->audit_lost++;
}

void event_log_add(struct event_log *l, const char *id, bool kept, json_t *o)
{
    size_t len = 0;
    _cleanup_free_ char *line = line_of(o, &len);

    if (!line) {
        l->audit_lost++;
        return;
    }
    if (kept)
        keep_line(l, id, line, len);
    if (l->audit_fd >= 0)
        audit_line(l, id, line, len);
}

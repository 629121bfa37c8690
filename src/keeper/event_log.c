/* SPDX-License-Identifier: Apache-2.0 */
/* Writing lines of events: whole ones, with bounds, and a count of those that are lost. */
#include "keeper/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
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
    json_decref(l->denials.waiting);
    l->denials.waiting = NULL;
    fd_closep(&l->fd);
    fd_closep(&l->audit_fd);
    mask_freep(&l->mask);
}

/* --- the audit file, and where it may be --- */

const char *event_log_server_of(unsigned long type)
{
    /* The numbers are those that linux/magic.h lacks: of modules that come from elsewhere. */
    static const struct {
        unsigned long type;
        const char *name;
    } servers[] = {
        {NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"}, {CIFS_SUPER_MAGIC, "SMB"},
        {SMB2_SUPER_MAGIC, "SMB"},  {V9FS_MAGIC, "9p"},       {FUSE_SUPER_MAGIC, "FUSE"},
        {CEPH_SUPER_MAGIC, "Ceph"}, {AFS_SUPER_MAGIC, "AFS"}, {AFS_FS_MAGIC, "AFS"},
        {CODA_SUPER_MAGIC, "Coda"}, {0x0BD00BD0, "Lustre"},   {0x47504653, "GPFS"},
        {0x20030528, "OrangeFS"},   {0x19830326, "BeeGFS"},
    };

    /* f_type is signed on some architectures, and SMB's numbers have the highest of 32 bits. */
    for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
        if ((uint32_t)type == servers[i].type)
            return servers[i].name;
    return NULL;
}

static int audit_refused(const char *path, int code, const char *why, struct error *err)
{
    (void)error_set(err, ERROR_USAGE, code, "the audit file %s cannot be written to: %s", path,
                    why);
    return error_remedy(err, "Set backend.audit to a file in a folder that you may write to");
}

/* Whether writing to what lies at @fd, which is @path or its folder, needs the host alone. */
static int judge_disk(int fd, const char *path, struct error *err)
{
    struct statfs fs;
    const char *server =
        fstatfs(fd, &fs) == 0 ? event_log_server_of((unsigned long)fs.f_type) : NULL;

    if (!server)
        return 0;
    (void)error_set(err, ERROR_USAGE, EOPNOTSUPP,
                    "backend.audit: %.200s lies on a network file system (%s): while its server "
                    "does not answer, the sandbox could neither be used nor ended",
                    path, server);
    return error_remedy(err, "Name a file on a disk of this host");
}

/* Before a file is made there. A folder that cannot be opened is left to the open of the file. */
static int judge_folder(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    _cleanup_fd_ int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;

    return fd < 0 ? 0 : judge_disk(fd, path, err);
}

int event_log_audit(struct event_log *l, const char *path, struct error *err)
{
    struct stat st;
    int r = judge_folder(path, err);

    if (r < 0)
        return r;
    /* Without O_NONBLOCK the open of a FIFO would wait for who reads it. */
    _cleanup_fd_ int fd = open(
        path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ELOOP)
        return audit_refused(path, ELOOP, "it is a symbolic link", err);
    if (fd < 0 || fstat(fd, &st) < 0)
        return audit_refused(path, errno, strerror(errno), err);
    if (!S_ISREG(st.st_mode))
        return audit_refused(path, EINVAL, "it is no ordinary file", err);
    if ((r = judge_disk(fd, path, err)) < 0) /* it may be a mount of its own */
        return r;
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

/* What stands in the place of @lines lines that are not there; @time is consumed. */
static char *dropped_line(json_t *time, uint64_t lines, size_t *ret_len)
{
    return line_of(json_pack("{s:o, s:s, s:s, s:I}", "time", time, "kind", "events", "event",
                             "dropped", "lines", (json_int_t)lines),
                   ret_len);
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

/* In the order in which lines go. */
enum rank { RANK_REFUSAL, RANK_COMMAND, RANK_REST };

/* Lines that are left out of a file, until the next one that stays. */
struct gap {
    uint64_t lines;
    const char *last; /* the newest of them, of last_len bytes */
    size_t last_len;
};

/* What stands behind the first @key of a line, or NULL. */
static const char *behind(const char *line, size_t len, const char *key)
{
    const char *at = memmem(line, len, key, strlen(key));

    return at ? at + strlen(key) : NULL;
}

/* Whether the kind of a line, its second member, is @kind. */
static bool is_kind(const char *line, size_t len, const char *kind)
{
    const char *at = behind(line, len, "\",\"kind\":\"");
    const size_t n = strlen(kind);

    return at && n < (size_t)(line + len - at) && memcmp(at, kind, n) == 0 && at[n] == '"';
}

static enum rank rank_of(const char *line, size_t len)
{
    return is_kind(line, len, "egress")    ? RANK_REFUSAL
           : is_kind(line, len, "command") ? RANK_COMMAND
                                           : RANK_REST;
}

/* A line, or as many as the one that stands for them says. */
static uint64_t lines_of(const char *line, size_t len)
{
    const char *at = is_kind(line, len, "events") ? behind(line, len, "\"lines\":") : NULL;
    uint64_t n = 0;

    for (; at && at < line + len && *at >= '0' && *at <= '9'; at++)
        n = 10 * n + (uint64_t)(*at - '0');
    return n > 0 ? n : 1;
}

/* Of its newest line, whose first member it is. */
static json_t *time_of(const struct gap *gap)
{
    const char *at = behind(gap->last, gap->last_len, "\":\"");
    const char *end = at ? memchr(at, '"', (size_t)(gap->last + gap->last_len - at)) : NULL;

    return end ? json_stringn(at, (size_t)(end - at)) : NULL;
}

/* The gap ends here. */
static void close_gap(struct buffer *b, struct gap *gap)
{
    size_t len = 0;

    if (gap->lines == 0)
        return;
    _cleanup_free_ char *line = dropped_line(time_of(gap), gap->lines, &len);
    b->bad = b->bad || !line;
    buffer_add(b, line, len);
    gap->lines = 0;
}

/* What is left of the lines from @p to @end when those up to @rank go. */
static void sift(const char *p, const char *end, enum rank rank, struct buffer *ret)
{
    struct gap gap = {.lines = 0};

    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p)), *next = lf ? lf + 1 : end;
        const size_t len = (size_t)(next - p);

        if (is_kind(p, len, "events") || rank_of(p, len) <= rank) {
            gap.lines += lines_of(p, len);
            gap.last = p;
            gap.last_len = len;
        } else {
            close_gap(ret, &gap);
            buffer_add(ret, p, len);
        }
        p = next;
    }
    close_gap(ret, &gap);
}

/* What is to stand in the place of @text, which is @len bytes of whole lines. */
static void shorten(const char *text, size_t len, struct buffer *ret)
{
    const char *half = text + len / 2;

    while (half > text && half < text + len && half[-1] != '\n')
        half++;
    for (enum rank rank = RANK_REFUSAL; rank <= RANK_REST; rank++) {
        ret->len = 0;
        sift(text, half, rank, ret);
        if (ret->len <= EVENTS_BYTES_MAX / 4)
            break;
    }
    buffer_add(ret, half, (size_t)(text + len - half));
}

/* Much of the older half goes. A reader that has the file open reads that one to its end. */
static int cut(struct event_log *l, const char *id)
{
    _cleanup_free_ char *text = malloc(l->bytes), *rest = NULL;
    struct buffer b = {0};
    size_t len = 0, bytes = 0;

    if (!text || pread(l->fd, text, l->bytes, 0) != (ssize_t)l->bytes)
        return -EIO;
    shorten(text, l->bytes, &b);
    int r = buffer_take(&b, &rest, &len);
    if (r < 0) {
        buffer_done(&b);
        return r;
    }
    _cleanup_fd_ int fd = state_events_create(id);
    r = fd < 0 ? fd : put(fd, rest, len, &bytes);
    if (r == 0)
        r = state_events_place(id);
    if (r < 0)
        return r;
    fd_closep(&l->fd);
    l->fd = TAKE_FD(fd);
    l->bytes = bytes;
    return 0;
}

static int put_bounded(struct event_log *l, const char *id, const char *line, size_t len)
{
    int r = 0;

    if (l->bytes + len > EVENTS_BYTES_MAX && !l->withdrawn)
        r = cut(l, id);
    return r < 0 ? r : put(l->fd, line, len, &l->bytes);
}

/* In front of all that follows: lines keep their numbers. */
static int tell_lost(struct event_log *l, const char *id)
{
    size_t len = 0;
    _cleanup_free_ char *line =
        l->lost > 0 ? dropped_line(event_time_json(clock_epoch_us()), l->lost, &len) : NULL;
    int r = l->lost == 0 ? 0 : line ? put_bounded(l, id, line, len) : -ENOMEM;

    if (r == 0)
        l->lost = 0;
    return r;
}

static void keep_line(struct event_log *l, const char *id, const char *line, size_t len)
{
    const bool fits = len <= EVENT_LINE_BYTES_MAX;

    l->lost += !fits;
    if ((l->fd < 0 && event_log_open(l, id) < 0) || tell_lost(l, id) < 0)
        l->lost += fits;
    else if (fits && put_bounded(l, id, line, len) < 0)
        l->lost++;
}

/* --- lines of the audit file --- */

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
        _cleanup_free_ char *lost =
            dropped_line(event_time_json(clock_epoch_us()), l->audit_lost, &n);

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

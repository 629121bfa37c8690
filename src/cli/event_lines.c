/* SPDX-License-Identifier: Apache-2.0 */
/* Reading events. */
#include "cli/event_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/state.h"
#include "base/guards.h"

enum { PIECE_BYTES = 64 * 1024 };

void event_lines_init(struct event_lines *l, int folder)
{
    l->folder = folder;
    l->fd = -EBADF;
    l->bytes = NULL;
    l->len = l->capacity = 0;
    l->next = l->at = 0;
    l->too_long = false;
    l->time[0] = '\0';
}

void event_lines_done(struct event_lines *l)
{
    fd_closep(&l->fd);
    free(l->bytes);
    l->bytes = NULL;
}

/* How many lines this one stands for, if it says so; else 0. */
static uint64_t gone(const json_t *value)
{
    const char *kind = json_string_value(json_object_get(value, "kind"));
    json_int_t n = json_integer_value(json_object_get(value, "lines"));

    return kind && strcmp(kind, "events") == 0 && n > 0 ? (uint64_t)n : 0;
}

static int take_line(struct event_lines *l, const char *line)
{
    json_t *value = json_loads(line, 0, NULL);
    const uint64_t n = gone(value); /* such a line has no number of its own */
    int r = 0;

    l->at += n > 0 ? n : 1;
    if (l->at > l->next) { /* else all of it was told before */
        l->next = l->at;
        if (value) /* else not ours */
            r = l->line(l->owner, line, value);
    }
    json_decref(value);
    return r;
}

/* The end of a line that was passed over: it counts as one that is not there. */
static int take_gap(struct event_lines *l)
{
    char line[128];

    (void)snprintf(line, sizeof line,
                   "{\"time\":\"%s\",\"kind\":\"events\",\"event\":\"dropped\",\"lines\":1}",
                   l->time);
    l->too_long = false;
    return take_line(l, line);
}

/* Time is the first member of each line. */
static void pass_over(struct event_lines *l)
{
    static const char key[] = "{\"time\":\"";

    if (!l->too_long) { /* else this is more of the same */
        (void)snprintf(l->time, sizeof l->time, "%.*s", (int)sizeof l->time - 1,
                       l->bytes + strlen(key));
        l->time[strspn(l->time, "0123456789-:.TZ")] = '\0';
    }
    l->too_long = true;
    l->len = 0;
}

static int take_lines(struct event_lines *l)
{
    char *p = l->bytes, *end = l->bytes + l->len, *lf;
    int r = 0;

    while (r == 0 && (lf = memchr(p, '\n', (size_t)(end - p)))) {
        *lf = '\0';
        r = l->too_long ? take_gap(l) : take_line(l, p);
        p = lf + 1;
    }
    l->len = (size_t)(end - p);
    memmove(l->bytes, p, l->len);
    if (l->len > EVENT_LINES_BYTES_MAX)
        pass_over(l);
    return r;
}

/* Up to the end of the file that is open. */
static int read_on(struct event_lines *l)
{
    ssize_t n;

    for (;;) {
        if (l->capacity - l->len < PIECE_BYTES) {
            char *more = realloc(l->bytes, l->len + PIECE_BYTES);

            if (!more)
                return -ENOMEM;
            l->bytes = more;
            l->capacity = l->len + PIECE_BYTES;
        }
        n = read(l->fd, l->bytes + l->len, l->capacity - l->len);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        l->len += (size_t)n;
        int r = take_lines(l);
        if (r < 0)
            return r;
    }
}

/* Return: whether another file stands in the place of the one that is open. */
static bool replaced(const struct event_lines *l)
{
    struct stat now, open;

    return fstatat(l->folder, STATE_EVENTS, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           (l->fd < 0 || fstat(l->fd, &open) < 0 || now.st_ino != open.st_ino);
}

int event_lines_read(struct event_lines *l)
{
    int r = l->fd >= 0 ? read_on(l) : 0;

    while (r == 0 && replaced(l)) {
        int fd = openat(l->folder, STATE_EVENTS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
            return errno == ENOENT ? 0 : -errno;
        if (l->fd >= 0) /* what came between the last look and the change */
            r = read_on(l);
        fd_closep(&l->fd);
        l->fd = fd;
        l->len = 0;
        l->at = 0;
        l->too_long = false;
        if (r == 0)
            r = read_on(l);
    }
    return r;
}

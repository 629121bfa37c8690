/* SPDX-License-Identifier: Apache-2.0 */
/* The file of events, and who hears of a refusal. */
#include "keeper/events.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/state.h"
#include "keeper/command.h"
#include "keeper/keeper.h"
#include "wire/json_text.h"
#include "base/guards.h"

enum { TIME_BYTES = 64 };

int events_open(struct keeper *k)
{
    struct event_log *l = &k->events;

    if (k->listen_fd < 0) /* owned: it has no folder */
        return -ENOENT;
    _cleanup_fd_ int fd = state_events_create(k->id);
    if (fd < 0)
        return fd;
    int r = state_events_place(k->id);
    if (r < 0)
        return r;
    l->fd = TAKE_FD(fd);
    l->bytes = 0;
    return 0;
}

void events_close(struct keeper *k)
{
    fd_closep(&k->events.fd);
}

/* RFC 3339, in UTC, with microseconds. */
static json_t *time_json(uint64_t epoch_us)
{
    const time_t seconds = (time_t)(epoch_us / 1000000);
    char day[TIME_BYTES / 2], text[TIME_BYTES];
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return NULL;
    (void)snprintf(text, sizeof text, "%s.%06uZ", day, (unsigned)(epoch_us % 1000000));
    return json_string(text);
}

/* --- the file --- */

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

static char *line_of(json_t *o, size_t *ret_len)
{
    char *text = o ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

    json_decref(o);
    if (!text)
        return NULL;
    *ret_len = strlen(text);
    text[(*ret_len)++] = '\n'; /* in the place of its NUL */
    return text;
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
static int cut(struct keeper *k)
{
    struct event_log *l = &k->events, fresh = {.fd = -EBADF, .gone = l->gone};
    _cleanup_free_ char *bytes = malloc(l->bytes);
    ssize_t n = bytes ? pread(l->fd, bytes, l->bytes, 0) : -1;
    size_t len = 0;

    if (n != (ssize_t)l->bytes)
        return -EIO;
    const char *rest = newer_half(bytes, l->bytes, &fresh.gone);
    _cleanup_free_ char *first =
        line_of(json_pack("{s:o, s:s, s:s, s:I}", "time", time_json(clock_epoch_us()), "kind",
                          "events", "event", "dropped", "lines", (json_int_t)fresh.gone),
                &len);
    _cleanup_fd_ int fd = first ? state_events_create(k->id) : -ENOMEM;
    int r = fd < 0 ? fd : put(fd, first, len, &fresh.bytes);
    if (r == 0)
        r = put(fd, rest, (size_t)(bytes + l->bytes - rest), &fresh.bytes);
    if (r == 0)
        r = state_events_place(k->id);
    if (r < 0)
        return r;
    events_close(k);
    fresh.fd = TAKE_FD(fd);
    *l = fresh;
    return 0;
}

/* @o is consumed. What cannot be written is lost: the sandbox goes on. */
static void add_line(struct keeper *k, json_t *o)
{
    size_t len = 0;
    _cleanup_free_ char *line = line_of(o, &len);

    if (!line || (k->events.fd < 0 && events_open(k) < 0))
        return;
    if (k->events.bytes + len > EVENTS_BYTES_MAX && cut(k) < 0)
        return;
    (void)put(k->events.fd, line, len, &k->events.bytes);
}

/* --- what is told --- */

void events_denied(struct keeper *k, const struct denial *x)
{
    const bool kept = k->listen_fd >= 0;
    json_t *commands = kept ? json_array() : NULL;

    for (struct keeper_command *c = k->commands; c; c = c->next) {
        if (!command_may_have_tried(c))
            continue;
        (void)command_denials_note(&c->denials, x);
        if (commands)
            (void)json_array_insert_new(commands, 0, json_integer(c->number));
    }
    if (!kept)
        return;
    add_line(k, json_pack("{s:o, s:s, s:s, s:o, s:s, s:o, s:o, s:i, s:o, s:o, s:I, s:I, s:I}",
                          "time", time_json(x->at_us), "kind", "egress", "event", "denied",
                          "commands", commands, "protocol", denial_protocol_name(x->protocol),
                          "name", json_text(x->name), "address", json_text(x->address), "port",
                          (int)x->port, "rule", json_text(x->rule), "reason", json_text(x->reason),
                          "bytes", (json_int_t)x->bytes, "repeated", (json_int_t)x->repeated,
                          "dropped", (json_int_t)x->dropped));
}

void events_policy(struct keeper *k, uint32_t generation, const char *stamp, uint32_t cut_flows)
{
    if (k->listen_fd < 0)
        return;
    add_line(k,
             json_pack("{s:o, s:s, s:s, s:I, s:o, s:I}", "time", time_json(clock_epoch_us()),
                       "kind", "policy", "event", "changed", "generation", (json_int_t)generation,
                       "policy", json_loads(stamp, 0, NULL), "flows_cut", (json_int_t)cut_flows));
}

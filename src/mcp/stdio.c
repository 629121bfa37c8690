/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over two descriptors. */
#include "mcp/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

enum {
    READ_BYTES = 64 * 1024,
    READS_AT_ONCE = 8,        /* then other sources of the loop get their turn */
    KEEP_BYTES = 1024 * 1024, /* a larger line buffer is not kept */
};

/* --- in --- */

static void end_input(struct stdio *s)
{
    if (s->in_fd < 0)
        return;
    stdio_close_input(s);
    s->events->ended(s->owner);
}

static bool is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

static void give_line(struct stdio *s, const char *text, size_t len)
{
    if (s->dropping || len > STDIO_LINE_BYTES_MAX) {
        s->dropping = false;
        s->events->overlong(s->owner);
    } else if (!is_blank(text, len)) {
        s->events->line(s->owner, text, len);
    }
}

/* Hands out the lines that are whole. An event may close the input. */
static void give_lines(struct stdio *s)
{
    size_t from = 0;
    char *end;

    while (s->in_fd >= 0 && s->scanned < s->len &&
           (end = memchr(s->buf + s->scanned, '\n', s->len - s->scanned))) {
        size_t next = (size_t)(end - s->buf) + 1;

        give_line(s, s->buf + from, next - 1 - from);
        from = s->scanned = next;
    }
    if (s->in_fd < 0)
        return;
    memmove(s->buf, s->buf + from, s->len - from);
    s->len -= from;
    s->scanned = s->len;
    if (s->len > STDIO_LINE_BYTES_MAX) {
        s->dropping = true;
        s->len = s->scanned = 0;
    }
    if (s->dropping)
        s->len = s->scanned = 0;
    if (s->len == 0 && s->room > KEEP_BYTES) {
        free(TAKE_PTR(s->buf));
        s->room = 0;
    }
}

/* Room to read into; false without memory, when the line is dropped like one that is too long. */
static bool make_room(struct stdio *s)
{
    size_t room = s->room > 0 ? s->room : READ_BYTES;
    char *more;

    while (room - s->len < READ_BYTES)
        room *= 2;
    if (room == s->room)
        return true;
    more = realloc(s->buf, room);
    if (!more)
        return false;
    s->buf = more;
    s->room = room;
    return true;
}

/* Return: whether there may be more. */
static bool read_some(struct stdio *s)
{
    ssize_t n;

    if (!make_room(s)) {
        s->dropping = true;
        s->len = s->scanned = 0;
        if (s->room < READ_BYTES)
            return false;
    }
    n = read(s->in_fd, s->buf + s->len, s->room - s->len);
    if (n < 0)
        return errno != EAGAIN && errno != EINTR ? (end_input(s), false) : false;
    if (n == 0) {
        if (s->len > 0 || s->dropping) /* the last line may lack its end */
            give_line(s, s->buf, s->len);
        end_input(s);
        return false;
    }
    s->len += (size_t)n;
    give_lines(s);
    return s->in_fd >= 0;
}

static bool may_read(const struct stdio *s)
{
    return s->in_fd >= 0 && s->queued <= STDIO_QUEUE_BYTES_MAX;
}

/* Reads, or not, as the queue allows. */
static void look_again(struct stdio *s)
{
    bool paused = !may_read(s);

    if (s->in_fd < 0 || paused == s->paused)
        return;
    s->paused = paused;
    if (s->polled)
        (void)loop_change(s->loop, &s->in, paused ? 0 : EPOLLIN);
    else
        loop_at(s->loop, &s->again, paused ? CLOCK_NEVER : clock_now_us());
}

static int in_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct stdio *s = source->owner;

    (void)l;
    (void)events;
    /* Once an event: whether a second read would block is not known. */
    if (may_read(s))
        (void)read_some(s);
    look_again(s);
    return 0;
}

static int read_again(struct loop *l, struct loop_timer *t)
{
    struct stdio *s = t->owner;
    bool more = true;

    for (int i = 0; i < READS_AT_ONCE && more && may_read(s); i++)
        more = read_some(s);
    look_again(s);
    if (more && may_read(s))
        loop_at(l, &s->again, clock_now_us());
    return 0;
}

/* --- out --- */

static void drop_queue(struct stdio *s)
{
    while (s->queue) {
        struct stdio_message *m = s->queue;

        s->queue = m->next;
        free(m->text);
        free(m);
    }
    s->queue_end = &s->queue;
    s->queued = 0;
}

static void close_output(struct stdio *s)
{
    loop_forget(s->loop, &s->out);
    fd_closep(&s->out_fd);
    drop_queue(s);
}

static ssize_t write_piece(const struct stdio *s, const struct stdio_message *m)
{
    size_t n = m->len - m->at;

    if (s->out_socket)
        return send(s->out_fd, m->text + m->at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* pipe(7): with this much at most, what was said to be writable takes it without blocking */
    return write(s->out_fd, m->text + m->at, s->out_blocking && n > PIPE_BUF ? PIPE_BUF : n);
}

static int out_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct stdio *s = source->owner;
    struct stdio_message *m = s->queue;
    ssize_t n = m ? write_piece(s, m) : 0;

    (void)l;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        s->failed = true;
        close_output(s);
        look_again(s);
        s->events->broken(s->owner);
        return 0;
    }
    if (!m && events & (EPOLLERR | EPOLLHUP)) {
        close_output(s);
        s->events->broken(s->owner);
        return 0;
    }
    if (n > 0) {
        m->at += (size_t)n;
        s->queued -= (size_t)n;
    }
    if (m && m->at == m->len) {
        s->queue = m->next;
        if (!s->queue)
            s->queue_end = &s->queue;
        free(m->text);
        free(m);
    }
    look_again(s);
    if (!s->queue) {
        (void)loop_change(s->loop, &s->out, EPOLLERR);
        s->events->written(s->owner);
    }
    return 0;
}

/* A file or a device, which epoll(7) does not know: it takes everything at once. */
static void write_file(struct stdio *s)
{
    while (s->queue) {
        struct stdio_message *m = s->queue;
        ssize_t n = write(s->out_fd, m->text + m->at, m->len - m->at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            s->failed = true; /* a full disk */
            close_output(s);
            return;
        }
        m->at += (size_t)n;
        s->queued -= (size_t)n;
        if (m->at < m->len)
            continue;
        s->queue = m->next;
        free(m->text);
        free(m);
    }
    s->queue_end = &s->queue;
}

void stdio_send(struct stdio *s, char *text, size_t len)
{
    struct stdio_message *m = s->out_fd >= 0 ? calloc(1, sizeof *m) : NULL;
    char *line = m ? realloc(text, len + 1) : NULL;

    if (!line) {
        free(m);
        free(text);
        return;
    }
    line[len] = '\n';
    *m = (struct stdio_message){.text = line, .len = len + 1};
    *s->queue_end = m;
    s->queue_end = &m->next;
    s->queued += m->len;
    if (s->out.fd < 0)
        write_file(s);
    else
        (void)loop_change(s->loop, &s->out, EPOLLOUT);
}

uint64_t stdio_pending(const struct stdio *s)
{
    return s->queued;
}

bool stdio_failed(const struct stdio *s)
{
    return s->failed;
}

/* --- begin and end --- */

/*
 * A pipe of our own description, which alone can be made non-blocking; another process may write to
 * the same pipe through the descriptor that we were given.
 */
static int open_output(struct stdio *s, int fd)
{
    char path[32];
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    s->out_socket = S_ISSOCK(st.st_mode);
    if (S_ISFIFO(st.st_mode)) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        s->out_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (s->out_fd >= 0)
            return 0;
    }
    s->out_blocking = true;
    s->out_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return s->out_fd < 0 ? -errno : 0;
}

int stdio_start(struct stdio *s, struct loop *l, int in_fd, int out_fd,
                const struct stdio_events *events, void *owner)
{
    int r;

    *s = (struct stdio){.loop = l, .events = events, .owner = owner, .in_fd = in_fd};
    s->out_fd = -EBADF;
    s->queue_end = &s->queue;
    s->in = (struct loop_source){.name = "stdin", .fd = -EBADF, .owner = s, .ready = in_ready};
    s->out = (struct loop_source){.name = "stdout", .fd = -EBADF, .owner = s, .ready = out_ready};
    s->again = (struct loop_timer){.name = "stdin", .owner = s, .due = read_again};
    r = open_output(s, out_fd);
    if (r == 0)
        r = loop_watch(l, &s->out, s->out_fd, EPOLLERR); /* tells of a reader that goes */
    if (r == -EPERM)
        r = 0;
    if (r < 0)
        return r;
    r = loop_watch(l, &s->in, in_fd, EPOLLIN);
    s->polled = r == 0;
    if (r == -EPERM) {
        loop_at(l, &s->again, clock_now_us());
        r = 0;
    }
    return r;
}

void stdio_close_input(struct stdio *s)
{
    if (s->in_fd < 0)
        return;
    loop_forget(s->loop, &s->in);
    loop_at(s->loop, &s->again, CLOCK_NEVER);
    s->in_fd = -EBADF;
}

void stdio_stop(struct stdio *s)
{
    if (!s->loop)
        return;
    stdio_close_input(s);
    close_output(s);
    free(TAKE_PTR(s->buf));
    s->loop = NULL;
}

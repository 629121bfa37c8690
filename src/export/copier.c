/* SPDX-License-Identifier: Apache-2.0 */
/* Copying into a staged file: hashed here, written here or by a process of its own. */
#include "export/copier.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "client/launch.h"
#include "export/copier_child.h"
#include "export/digest.h"
#include "export/host_error.h"
#include "base/guards.h"

enum {
    BUFFER_BYTES = 256 * 1024, /* of a file without a process */
    SPARE_BYTES = 64 * 1024,   /* what is read back of it at once */
    END_PATIENCE_US = 30 * 1000 * 1000,
};

static_assert((int)COPIER_SUM_BYTES == (int)DIGEST_BYTES, "one kind of sum");
static_assert((int)COPIER_SUM_TEXT == (int)DIGEST_TEXT_BYTES, "one kind of sum");

struct copier_process {
    struct child child;
    int socket; /* owned */
    struct loop *loop;
    struct loop_source source;
    uint8_t *ring;
    struct copier *current; /* NULL: none */
    uint32_t file;          /* its number; answers for earlier ones are stale */
    unsigned next;          /* the slot that is filled, or will be */
    bool busy[COPIER_SLOTS];
    bool dead;
};

struct copier_state {
    struct digest digest;
    size_t used;   /* of the slot or the buffer */
    off_t written; /* without a process */
    bool waiting;  /* for a free slot */
    bool syncs;    /* copier_sync() */
    uint8_t *buffer, *spare;
    uint8_t memory[]; /* without a process */
};

void copier_sum_text(const uint8_t sum[static COPIER_SUM_BYTES], char ret[static COPIER_SUM_TEXT])
{
    digest_text(sum, ret);
}

/* Nothing is under way any more. */
static void over(struct copier *w)
{
    if (w->process && w->process->current == w)
        w->process->current = NULL;
    free(w->state);
    w->state = NULL;
}

static int process_is_gone(struct error *err)
{
    (void)error_set(err, ERROR_TERMINAL, EPIPE,
                    "the process that writes the file has ended unexpectedly");
    return error_remedy(err, "Export again; the host's log may say what ended it");
}

static int fail(const struct copier *w, int code, struct error *err)
{
    /* Of its socket, which no call on a file says. */
    if (w->process && (code == EPIPE || code == ECONNRESET))
        return process_is_gone(err);
    return host_error(err, code,
                      w->state && w->state->syncs ? "the disk cannot be synchronised"
                                                  : "the file cannot be written");
}

/* Tells of the failure in @err, after which @w may be gone. */
static void tell_failed(struct copier *w, const struct error *err)
{
    over(w);
    w->failed(w, err);
}

static void tell_done(struct copier *w)
{
    over(w);
    w->done(w);
}

/* The process */

static int order(struct copier_process *p, const struct copier_order *o, const int *fd)
{
    return io_send_packet(p->socket, o, sizeof *o, NULL, 0, fd, fd ? 1 : 0);
}

static void process_ended(struct copier_process *p)
{
    struct error err = ERROR_INIT;

    p->dead = true;
    loop_forget(p->loop, &p->source);
    if (!p->current)
        return;
    (void)process_is_gone(&err);
    tell_failed(p->current, &err);
}

/* Return: whether a callback was called, after which the process may be gone. */
static bool take_answer(struct copier_process *p, const struct copier_answer *a)
{
    struct copier *w = a->file == p->file ? p->current : NULL;
    struct error err = ERROR_INIT;

    switch ((enum copier_answer_kind)a->kind) {
    case COPIER_FREE:
        p->busy[a->slot] = false;
        w = p->current; /* whichever file it was for */
        if (!w || !w->state->waiting || p->busy[p->next])
            return false;
        w->state->waiting = false;
        w->more(w);
        return true;
    case COPIER_DONE:
        if (w)
            tell_done(w);
        return w;
    case COPIER_FAILED:
        if (!w)
            return false;
        (void)fail(w, a->code, &err);
        tell_failed(w, &err);
        return true;
    }
    return false;
}

static int answers_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct copier_process *p = s->owner;
    struct copier_answer a;
    int fds[IO_FDS_MAX];
    size_t n_fds;

    (void)l;
    (void)events;
    for (;;) {
        ssize_t n = io_recv_packet(p->socket, &a, sizeof a, fds, &n_fds);

        for (size_t i = 0; n > 0 && i < n_fds; i++)
            fd_closep(&fds[i]);
        if (n == -EAGAIN)
            return 0;
        if (n != (ssize_t)sizeof a || a.slot >= COPIER_SLOTS) {
            process_ended(p);
            return 0;
        }
        if (take_answer(p, &a))
            return 0;
    }
}

/* Forks with all signals blocked, so that no handler of the caller's runs in the child. */
static pid_t fork_child(int theirs, uint8_t *ring)
{
    sigset_t all, before;
    pid_t parent = getpid();

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = _Fork(); /* no handlers of pthread_atfork(3): they are for what allocates */
    int code = errno;
    if (pid == 0)
        copier_child_main(theirs, parent, ring);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return pid;
}

static int start_process(struct copier_process *p)
{
    int pair[2];
    int r = io_pair(pair);

    if (r < 0)
        return r;
    p->socket = pair[0];
    _cleanup_fd_ int theirs = pair[1];
    void *ring =
        mmap(NULL, COPIER_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        return -errno;
    p->ring = ring;
    (void)madvise(ring, COPIER_RING_BYTES, MADV_DONTDUMP);
    pid_t pid = fork_child(theirs, ring);
    if (pid < 0)
        return -errno;
    p->child.pid = pid;
    p->child.pid_fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (p->child.pid_fd < 0)
        p->child.pid_fd = -EBADF;
    p->source =
        (struct loop_source){.name = "copier", .fd = -EBADF, .owner = p, .ready = answers_ready};
    return loop_watch(p->loop, &p->source, p->socket, EPOLLIN);
}

int copier_process_new(struct loop *l, struct copier_process **ret, struct error *err)
{
    struct copier_process *p = calloc(1, sizeof *p);

    if (!p)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    *p = (struct copier_process){
        .child = CHILD_NONE, .socket = -EBADF, .loop = l, .source.fd = -EBADF};
    int r = start_process(p);
    if (r < 0) {
        copier_process_free(p);
        return error_set(err, ERROR_TERMINAL, -r,
                         "the process that writes files cannot be started: %s", strerror(-r));
    }
    *ret = p;
    return 0;
}

void copier_process_free(struct copier_process *p)
{
    if (!p)
        return;
    if (p->current)
        copier_stop(p->current);
    loop_forget(p->loop, &p->source);
    fd_closep(&p->socket);
    if (p->child.pid > 0) {
        child_kill(&p->child);
        /* It ends when the disk lets it; one that never does is left alone. */
        (void)child_reap(&p->child, clock_after_us(END_PATIENCE_US));
        fd_closep(&p->child.pid_fd);
    }
    if (p->ring)
        (void)munmap(p->ring, COPIER_RING_BYTES);
    loop_free_later(p->loop, p);
}

/* Hands the slot over that has been filled. Return: 0 or a negative errno. */
static int send_slot(struct copier *w)
{
    struct copier_process *p = w->process;
    struct copier_state *s = w->state;
    const struct copier_order o = {
        .kind = COPIER_SLOT, .file = p->file, .slot = p->next, .len = (uint32_t)s->used};

    if (s->used == 0)
        return 0;
    int r = order(p, &o, NULL);
    if (r < 0)
        return r;
    p->busy[p->next] = true;
    p->next = (p->next + 1) % COPIER_SLOTS;
    s->used = 0;
    return 0;
}

/* One file */

static int new_state(struct copier *w, struct error *err)
{
    size_t memory = w->process ? 0 : BUFFER_BYTES + SPARE_BYTES;
    struct copier_state *s = malloc(sizeof *s + memory);

    if (!s)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    *s = (struct copier_state){.used = 0};
    if (!w->process) {
        s->buffer = s->memory;
        s->spare = s->memory + BUFFER_BYTES;
    }
    digest_init(&s->digest);
    w->state = s;
    return 0;
}

/* Begins with file or file system @fd in the process. */
static int begin(struct copier *w, enum copier_order_kind kind, int fd, struct error *err)
{
    struct copier_process *p = w->process;

    if (p->dead || p->current) {
        free(w->state);
        w->state = NULL;
        return p->dead ? process_is_gone(err)
                       : error_set(err, ERROR_TERMINAL, EBUSY,
                                   "the process that writes files is busy with another one");
    }
    p->file++;
    p->current = w;
    int r = order(p, &(struct copier_order){.kind = kind, .file = p->file}, &fd);
    if (r < 0) {
        (void)fail(w, -r, err);
        over(w);
    }
    return r;
}

int copier_start(struct copier *w, struct error *err)
{
    int r = new_state(w, err);

    w->bytes = 0;
    return r < 0 || !w->process ? r : begin(w, COPIER_BEGIN, w->fd, err);
}

uint8_t *copier_room(struct copier *w, size_t *ret_room)
{
    const struct copier_process *p = w->process;
    struct copier_state *s = w->state;

    if (!p) {
        *ret_room = BUFFER_BYTES - s->used;
        return s->buffer + s->used;
    }
    if (p->busy[p->next]) {
        s->waiting = true;
        return NULL;
    }
    *ret_room = COPIER_SLOT_BYTES - s->used;
    return p->ring + (size_t)p->next * COPIER_SLOT_BYTES + s->used;
}

static int flush(struct copier *w)
{
    struct copier_state *s = w->state;
    int r = copier_write(w->fd, s->buffer, s->used, s->written, s->spare, SPARE_BYTES);

    s->written += (off_t)s->used;
    s->used = 0;
    return r;
}

int copier_took(struct copier *w, size_t n, struct error *err)
{
    const struct copier_process *p = w->process;
    struct copier_state *s = w->state;
    int r = 0;

    digest_add(&s->digest,
               (p ? p->ring + (size_t)p->next * COPIER_SLOT_BYTES : s->buffer) + s->used, n);
    s->used += n;
    w->bytes += n;
    if (s->used == (size_t)(p ? COPIER_SLOT_BYTES : BUFFER_BYTES))
        r = p ? send_slot(w) : flush(w);
    if (r < 0) {
        (void)fail(w, -r, err);
        copier_stop(w);
    }
    return r;
}

static int finish_here(struct copier *w, bool durable)
{
    int r = flush(w);

    if (r == 0 && durable && fsync(w->fd) < 0)
        r = -errno;
    return r < 0 ? r : copier_check_size(w->fd, w->bytes);
}

static int finish_there(struct copier *w, bool durable)
{
    const struct copier_order o = {
        .kind = COPIER_END, .file = w->process->file, .durable = durable};
    int r = send_slot(w);

    return r < 0 ? r : order(w->process, &o, NULL);
}

void copier_finish(struct copier *w, bool durable)
{
    struct error err = ERROR_INIT;

    digest_end(&w->state->digest, w->sum);
    int r = w->process ? finish_there(w, durable) : finish_here(w, durable);
    if (r < 0) {
        (void)fail(w, -r, &err);
        tell_failed(w, &err);
    } else if (!w->process) {
        tell_done(w);
    }
}

void copier_stop(struct copier *w)
{
    if (!w->state)
        return;
    if (w->process && !w->process->dead)
        (void)order(w->process, &(struct copier_order){.kind = COPIER_DROP}, NULL);
    over(w);
}

int copier_sync(struct copier *w, int fd, struct error *err)
{
    int r = new_state(w, err);

    if (r < 0)
        return r;
    w->state->syncs = true;
    if (w->process)
        return begin(w, COPIER_SYNC, fd, err);
    if (syncfs(fd) < 0) {
        r = fail(w, errno, err);
        over(w);
        return r;
    }
    tell_done(w);
    return 0;
}

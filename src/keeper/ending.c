/* SPDX-License-Identifier: Apache-2.0 */
/* Counting a sandbox's lifetime and its idle time. */
#include "keeper/ending.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/limits.h"
#include "core/spec_fields.h"
#include "keeper/command.h"
#include "keeper/events.h"
#include "keeper/lease.h"
#include "base/guards.h"

/* Less than this is little, or a tenth of the life if that is less. */
#define NEAR_US UINT64_C(300000000)

/* ---- the lifetime ---- */

uint64_t ending_left_us(const struct keeper *k)
{
    const struct ending *e = &k->ending;
    uint64_t now = clock_boot_us();

    if (e->at_us == 0) /* commands may be asked for before the sandbox stands */
        return k->state == KEEPER_CREATING && k->spec.lifetime_us > 0 ? k->spec.lifetime_us
                                                                      : UINT64_MAX;
    return e->at_us > now ? e->at_us - now : 0;
}

/* When little is left of it, CLOCK_BOOTTIME. */
static uint64_t near_at(const struct ending *e)
{
    uint64_t tenth = e->life_us / 10;

    return e->at_us - (tenth < NEAR_US ? tenth : NEAR_US);
}

/* One descriptor for both: the warning, and then the end. */
static int arm(const struct ending *e)
{
    uint64_t at = e->warned ? e->at_us : near_at(e);
    const struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(at / 1000000u), .tv_nsec = (long)(at % 1000000u) * 1000}};

    return timerfd_settime(e->fd, TFD_TIMER_ABSTIME, &t, NULL) < 0 ? -errno : 0;
}

static int lifetime_due(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;
    struct ending *e = &k->ending;
    uint64_t ignored, left = ending_left_us(k);

    (void)l;
    (void)events;
    (void)!read(e->fd, &ignored, sizeof ignored);
    if (left == 0) { /* also when both have passed while the host slept */
        keeper_end(k, ENDED_LIFETIME);
        return 0;
    }
    if (!e->warned && clock_boot_us() >= near_at(e)) {
        e->warned = true;
        events_limit(k, "lifetime_near", left);
    }
    if (arm(e) < 0) /* what cannot be counted would never end */
        keeper_end(k, ENDED_ERROR);
    return 0;
}

static int open_clock(struct keeper *k)
{
    struct ending *e = &k->ending;
    _cleanup_fd_ int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);

    if (fd < 0)
        return -errno;
    e->source =
        (struct loop_source){.name = "lifetime", .fd = -EBADF, .owner = k, .ready = lifetime_due};
    int r = loop_watch(&k->loop, &e->source, fd, EPOLLIN);
    if (r == 0)
        e->fd = TAKE_FD(fd);
    return r;
}

/* A life of @life_us from now on. */
static int begin_life(struct keeper *k, uint64_t life_us)
{
    struct ending *e = &k->ending;
    const uint64_t before = e->at_us;
    int r = before == 0 ? open_clock(k) : 0;

    if (r < 0)
        return r;
    e->at_us = clock_boot_us() + life_us;
    e->life_us = life_us;
    e->warned = false;
    return arm(e);
}

/* ---- idle time ---- */

static int idle_too_long(struct loop *l, struct loop_timer *t)
{
    (void)l;
    keeper_end(t->owner, ENDED_IDLE);
    return 0;
}

static bool is_busy(const struct keeper *k)
{
    return k->n_commands > 0 || k->ending.connections > 0 || lease_taken(k);
}

void ending_active_before(struct keeper *k, uint64_t us)
{
    struct ending *e = &k->ending;
    const uint64_t now = clock_now_us(), at = now > us ? now - us : 0;

    keeper_stirred(k);
    if (k->state != KEEPER_RUNNING || k->spec.idle_timeout_us == 0)
        return;
    if (at > e->active_us) /* something else may have been done since */
        e->active_us = at;
    loop_at(&k->loop, &e->idle, is_busy(k) ? CLOCK_NEVER : e->active_us + k->spec.idle_timeout_us);
}

void ending_active(struct keeper *k)
{
    ending_active_before(k, 0);
}

void ending_connections(struct keeper *k, uint32_t n)
{
    k->ending.connections = n;
    ending_active(k);
}

/* ---- life ---- */

int ending_begin(struct keeper *k)
{
    k->ending.idle = (struct loop_timer){.name = "idle", .owner = k, .due = idle_too_long};
    if (k->spec.lifetime_us == 0)
        return 0;
    k->expires_at_us = k->created_at_us + k->spec.lifetime_us;
    return begin_life(k, k->spec.lifetime_us);
}

void ending_done(struct keeper *k)
{
    struct ending *e = &k->ending;

    loop_at(&k->loop, &e->idle, CLOCK_NEVER);
    if (e->at_us == 0)
        return;
    loop_forget(&k->loop, &e->source);
    fd_closep(&e->fd);
    e->at_us = 0;
}

/* ---- EXTEND ---- */

struct extension {
    uint64_t life_us;
    const char *owner; /* NULL: none is presented */
};

static int decode(struct reader message, struct extension *ret)
{
    struct extension x = {0};
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_LIFETIME_US)
            good = field_u64(&f, &x.life_us);
        else if (f.tag == TAG_OWNER)
            good = (x.owner = field_string(&f)) != NULL;
    }
    if (!good || message.bad)
        return -EPROTO;
    *ret = x;
    return 0;
}

static int judge(const struct keeper *k, const struct extension *x, struct error *err)
{
    const struct spec_field *field = &spec_fields[SPEC_FIELD_SANDBOX_TIMEOUT];

    if (k->state != KEEPER_RUNNING)
        return error_set(err, ERROR_USAGE, ENOENT, "there is no sandbox yet");
    if (x->life_us < field->min || x->life_us > field->max) {
        (void)error_set(err, ERROR_USAGE, ERANGE, "a lifetime of %llu us is out of range",
                        (unsigned long long)x->life_us);
        return error_remedy(err, "Stay within %llu us to %llu s; \"atoll rm\" ends a sandbox now",
                            (unsigned long long)field->min,
                            (unsigned long long)(field->max / 1000000u));
    }
    return lease_owner_admits(k, x->owner, false, err);
}

/* The record first: what is written down may end earlier than it says, but not later. Where there
 * is no state folder any more, nobody reads it. */
static int extend(struct keeper *k, const struct extension *x, struct error *err)
{
    uint64_t expires_at_us = clock_epoch_us() + x->life_us;
    int r = keeper_record(k, expires_at_us);

    if (r < 0 && r != -ENOENT) {
        (void)error_set(err, ERROR_TERMINAL, -r, "the sandbox's record cannot be written: %s",
                        strerror(-r));
        return error_remedy(err, "Make room in the state folder; the lifetime is as it was");
    }
    r = begin_life(k, x->life_us);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "the lifetime cannot be counted: %s",
                         strerror(-r));
    k->expires_at_us = expires_at_us;
    return 0;
}

void ending_extend(struct connection *c, struct message *m)
{
    struct keeper *k = c->keeper;
    struct error err = ERROR_INIT;
    struct extension x = {0};
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    int r = decode(m->payload, &x);

    if (r < 0)
        r = error_set(&err, ERROR_USAGE, EPROTO, "EXTEND cannot be read");
    else if ((r = judge(k, &x, &err)) == 0)
        r = extend(k, &x, &err);
    if (r < 0) {
        connection_refuse(c, m->id, &err);
        return;
    }
    commands_extended(k);
    events_limit(k, "lifetime_extended", x.life_us);
    field_put_u64(&w, TAG_LEFT_US, ending_left_us(k));
    field_put_u64(&w, TAG_EXPIRES_AT_US, k->expires_at_us);
    connection_send(c, MSG_EXTENDED, m->id, &w, -EBADF);
}

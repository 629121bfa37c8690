/* SPDX-License-Identifier: Apache-2.0 */
/* Who acts by the lease of a sandbox, and what becomes of those that did. */
#include "keeper/lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/limits.h"
#include "core/spec.h"
#include "keeper/command.h"
#include "keeper/ending.h"
#include "keeper/events.h"
#include "keeper/report.h"
#include "base/guards.h"

static int kept_over(struct loop *l, struct loop_timer *t)
{
    struct keeper *k = t->owner;

    (void)l;
    events_lease(k, "expired", k->spec.owner, k->lease.holder, k->lease.generation);
    lease_expire(&k->lease);
    ending_active(k); /* it may be idle only from now on */
    return 0;
}

/* As with a command: what will not die ends with the sandbox. */
static int rests_overdue(struct loop *l, struct loop_timer *t)
{
    (void)l;
    keeper_end(t->owner, ENDED_ERROR);
    return 0;
}

void lease_begin(struct keeper *k)
{
    k->lease_timer = (struct loop_timer){.name = "lease", .owner = k, .due = kept_over};
    k->rests_timer = (struct loop_timer){.name = "rests", .owner = k, .due = rests_overdue};
    if (!k->spec.owned && k->spec.owner)
        lease_share(&k->lease);
}

void lease_done(struct keeper *k)
{
    lease_clear(&k->lease);
    k->lease_connection = NULL;
}

bool lease_taken(const struct keeper *k)
{
    return k->lease.state == LEASE_HELD || k->lease.state == LEASE_KEPT;
}

void lease_describe(const struct keeper *k, struct sandbox_info *x)
{
    x->lease_state = k->lease.state;
    x->lease_generation = k->lease.generation;
    x->lease_until_us = k->lease.until_us;
    x->holder = k->lease.holder;
}

/* --- who may do what --- */

/* Who has a lease after @which one, which is over. It may be the same holder, by a retry. */
static int refuse_over(const struct keeper *k, const char *which, struct error *err)
{
    if (k->lease.state == LEASE_HELD)
        return error_set(err, ERROR_TERMINAL, EACCES,
                         "%s is over; a later attach, of '%.200s', has it now", which,
                         k->lease.holder);
    if (k->lease.state == LEASE_KEPT)
        return error_set(err, ERROR_TERMINAL, EACCES,
                         "%s is over; the sandbox is kept for '%.200s', which may come back", which,
                         k->lease.holder);
    return error_set(err, ERROR_TERMINAL, EACCES, "%s is over", which);
}

static int lease_is_over(const struct keeper *k, struct error *err)
{
    (void)refuse_over(k, "the lease that this connection acted by", err);
    return error_remedy(err, "Attach anew, by another connection");
}

int lease_admits(const struct connection *c, struct error *err)
{
    const struct keeper *k = c->keeper;

    if (c->fenced)
        return lease_is_over(k, err);
    if (!lease_taken(k) || c->lease_generation > 0) /* which is the current one, else: fenced */
        return 0;
    return lease_refuse(&k->lease, err);
}

static bool admits(const struct connection *c)
{
    struct error ignored = ERROR_INIT;

    return lease_admits(c, &ignored) == 0;
}

int lease_owner_admits(const struct keeper *k, const char *owner, bool ends, struct error *err)
{
    return ends ? lease_judge_end(&k->lease, k->spec.owner, owner, err)
                : lease_judge_owner(k->spec.owner, owner, err);
}

/* --- those that may no more --- */

/* What init is told to end is dead before it starts whatever is asked for later. */
static void end_commands(const struct connection *c)
{
    struct keeper *k = c->keeper;
    struct keeper_command *next;

    for (struct keeper_command *x = k->commands; x && k->state != KEEPER_ENDING; x = next) {
        next = x->next;
        if (x->connection != c || x->flags & EXEC_DETACH)
            continue;
        x->stopped = true;
        command_kill(x);
    }
}

/* All that acted by the lease, but for @spared: they are told, and what they run ends. */
static void fence(struct keeper *k, const struct connection *spared)
{
    uint8_t buf[16];

    for (struct connection *c = k->connections; c && k->state != KEEPER_ENDING; c = c->next) {
        struct writer nothing = writer_over(buf, sizeof buf);

        if (c == spared || c->lease_generation == 0)
            continue;
        c->lease_generation = 0;
        c->fenced = true;
        connection_send(c, MSG_LEASE_LOST, 0, &nothing, -EBADF);
        end_commands(c);
    }
}

/* What the commands of the lease have left behind. While it is taken nobody else starts any, so
 * that they are all from its first one on. */
static void end_rests(struct keeper *k)
{
    uint8_t buf[16];
    struct writer w = writer_over(buf, sizeof buf);

    if (k->state == KEEPER_ENDING || k->last_number < k->lease_first)
        return;
    k->lease_rests++;
    loop_at(&k->loop, &k->rests_timer, clock_after_us(LIMIT_KILL_US));
    field_put_u32(&w, TAG_COMMAND_NUMBER, k->lease_first);
    if (keeper_tell_init(k, MSG_KILL, 0, buf, writer_len(&w), NULL, 0) < 0)
        keeper_end(k, ENDED_ERROR);
}

int lease_rest_killed(struct keeper *k, struct message *m)
{
    uint32_t error;

    if (k->lease_rests == 0 || number_decode(m->payload, TAG_ERROR_CODE, &error) < 0)
        return -EPROTO;
    if (error != 0) {
        keeper_end(k, ENDED_ERROR);
        return 0;
    }
    if (--k->lease_rests == 0)
        loop_at(&k->loop, &k->rests_timer, CLOCK_NEVER);
    lease_settle(k);
    return 0;
}

/* What could go on changing things for somebody without the right: commands, and whoever serves
 * files and could write. Those of clients that have gone are among them: what they still tidy up is
 * no more than that. */
static void end_others(struct keeper *k)
{
    struct keeper_command *next;

    for (struct keeper_command *x = k->commands; x && k->state != KEEPER_ENDING; x = next) {
        next = x->next;
        if (x->flags & (EXEC_DETACH | EXEC_READ_ONLY) || (x->connection && admits(x->connection)))
            continue;
        x->stopped = true;
        command_kill(x);
    }
}

/* --- ATTACH --- */

static void tell_attached(struct keeper *k)
{
    _cleanup_free_ char *network = report_network(&k->spec);
    const struct attach_report x = {
        .generation = k->lease.generation,
        .left_us = ending_left_us(k),
        .network = network,
        .workdir = k->spec.workdir ? k->spec.workdir : SPEC_WORKDIR_DEFAULT,
    };
    size_t size = attach_report_size(&x);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    attach_report_encode(&w, &x); /* without memory its client is dropped */
    connection_send(k->lease_connection, MSG_ATTACHED, k->lease_attach_id, &w, -EBADF);
}

void lease_settle(struct keeper *k)
{
    if (!k->lease_settling || k->state != KEEPER_RUNNING)
        return;
    if (k->policy_change || k->lease_rests > 0)
        return;
    for (const struct keeper_command *x = k->commands; x; x = x->next)
        if (x->killing && !x->killed && x->connection != k->lease_connection)
            return;
    k->lease_settling = false;
    tell_attached(k);
}

/* An ATTACH that waits is overtaken by another, or its lease given back. */
static void give_up_attach(struct keeper *k)
{
    struct error err = ERROR_INIT;

    if (!k->lease_settling)
        return;
    k->lease_settling = false;
    (void)lease_is_over(k, &err);
    connection_refuse(k->lease_connection, k->lease_attach_id, &err);
}

static int attach_for(struct connection *c, uint32_t id, const struct attach_request *x,
                      struct error *err)
{
    struct keeper *k = c->keeper;
    const uint32_t before = k->lease.state == LEASE_HELD ? k->lease.generation : 0;
    const bool again = c == k->lease_connection; /* whose commands go on */

    if (lease_take(&k->lease, x) < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (before > 0)
        events_lease(k, "lost", k->spec.owner, k->lease.holder, before);
    events_lease(k, "attached", k->spec.owner, k->lease.holder, k->lease.generation);
    loop_at(&k->loop, &k->lease_timer, CLOCK_NEVER);
    give_up_attach(k);
    k->lease_connection = c;
    c->lease_generation = k->lease.generation;
    fence(k, c);
    end_others(k);
    if (before > 0 && !again)
        end_rests(k);
    if (!again)
        k->lease_first = k->last_number + 1;
    ending_active(k); /* and is not idle any more */
    k->lease_settling = true;
    k->lease_attach_id = id;
    lease_settle(k);
    return 0;
}

static int attach(struct connection *c, struct message *m, struct error *err)
{
    struct keeper *k = c->keeper;
    struct attach_request x;
    int r;

    if (k->state != KEEPER_RUNNING)
        return error_set(err, ERROR_USAGE, ENOENT, "there is no sandbox yet to attach to");
    if (attach_request_decode(m->payload, &x) < 0)
        return error_set(err, ERROR_USAGE, EPROTO, "ATTACH has no owner and holder");
    r = c->fenced ? lease_is_over(k, err) : lease_judge(&k->lease, k->spec.owner, &x, err);
    if (r < 0)
        events_lease(k, "refused", x.owner, x.holder, k->lease.generation);
    return r < 0 ? r : attach_for(c, m->id, &x, err);
}

void lease_attach(struct connection *c, struct message *m)
{
    struct error err = ERROR_INIT;

    if (attach(c, m, &err) < 0)
        connection_refuse(c, m->id, &err);
}

/* --- PRESENT --- */

static int present(struct connection *c, struct message *m, struct error *err)
{
    const struct keeper *k = c->keeper;
    uint32_t generation;
    char which[64];

    if (number_decode(m->payload, TAG_LEASE_GENERATION, &generation) < 0)
        return error_set(err, ERROR_USAGE, EPROTO, "PRESENT has no generation of a lease");
    if (c->fenced)
        return lease_is_over(k, err);
    if (k->lease.state == LEASE_HELD && generation == k->lease.generation) {
        c->lease_generation = generation;
        return 0;
    }
    /* It acts for somebody whose time is over, also where others may do as they like. */
    c->fenced = c->lease_generation == 0;
    (void)snprintf(which, sizeof which, "the lease of generation %u", generation);
    (void)refuse_over(k, which, err);
    return error_remedy(err, "Attach anew; ATOLL_LEASE of an \"atoll hold\" that has ended is of "
                             "no use any more");
}

static void answer_done(struct connection *c, uint32_t id)
{
    uint8_t buf[16];
    struct writer nothing = writer_over(buf, sizeof buf);

    connection_send(c, MSG_DONE, id, &nothing, -EBADF);
}

void lease_present(struct connection *c, struct message *m)
{
    struct error err = ERROR_INIT;

    if (present(c, m, &err) < 0)
        connection_refuse(c, m->id, &err);
    else
        answer_done(c, m->id);
}

/* --- its end --- */

void lease_release(struct connection *c, struct message *m)
{
    struct keeper *k = c->keeper;

    if (c == k->lease_connection) {
        events_lease(k, "released", k->spec.owner, k->lease.holder, k->lease.generation);
        lease_return(&k->lease);
        give_up_attach(k);
        k->lease_connection = NULL;
        fence(k, c);
        c->lease_generation = 0;
        end_commands(c);
        ending_active(k);
    }
    answer_done(c, m->id); /* of no effect when it was another's, or is over */
}

void lease_connection_gone(struct connection *c)
{
    struct keeper *k = c->keeper;

    if (c != k->lease_connection)
        return;
    k->lease_connection = NULL;
    k->lease_settling = false;
    if (k->state != KEEPER_RUNNING)
        return;
    events_lease(k, "lost", k->spec.owner, k->lease.holder, k->lease.generation);
    uint64_t keep = lease_leave(&k->lease, ending_left_us(k), clock_epoch_us());
    if (keep > 0)
        loop_at(&k->loop, &k->lease_timer, clock_after_us(keep));
    fence(k, c);
    end_rests(k);
    ending_active(k);
}

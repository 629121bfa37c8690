/* SPDX-License-Identifier: Apache-2.0 */
/* The legal steps of a lease, who may have it, and what others are told. */
#include "core/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/limits.h"
#include "base/guards.h"

/* --- the table --- */

#define NO LEASE__MAX /* not legal */

/* docs/design/lifecycle.md has it as a picture. */
static const enum lease_state steps[LEASE__MAX][LEASE_EVENT__MAX] = {
    [LEASE_NONE] = {[LEASE_SHARED] = LEASE_FREE,
                    [LEASE_ATTACH_SAME] = NO,
                    [LEASE_ATTACH_OTHER] = NO,
                    [LEASE_RELEASE] = NO,
                    [LEASE_LEFT] = NO,
                    [LEASE_LEFT_AWHILE] = NO,
                    [LEASE_EXPIRED] = NO},
    [LEASE_FREE] = {[LEASE_SHARED] = NO,
                    [LEASE_ATTACH_SAME] = NO, /* it has no holder */
                    [LEASE_ATTACH_OTHER] = LEASE_HELD,
                    [LEASE_RELEASE] = NO,
                    [LEASE_LEFT] = NO,
                    [LEASE_LEFT_AWHILE] = NO,
                    [LEASE_EXPIRED] = NO},
    [LEASE_HELD] = {[LEASE_SHARED] = NO,
                    [LEASE_ATTACH_SAME] = LEASE_HELD,
                    [LEASE_ATTACH_OTHER] = NO,
                    [LEASE_RELEASE] = LEASE_FREE,
                    [LEASE_LEFT] = LEASE_FREE,
                    [LEASE_LEFT_AWHILE] = LEASE_KEPT,
                    [LEASE_EXPIRED] = NO},
    [LEASE_KEPT] = {[LEASE_SHARED] = NO,
                    [LEASE_ATTACH_SAME] = LEASE_HELD,
                    [LEASE_ATTACH_OTHER] = NO,
                    [LEASE_RELEASE] = NO,
                    [LEASE_LEFT] = NO,
                    [LEASE_LEFT_AWHILE] = NO,
                    [LEASE_EXPIRED] = LEASE_FREE},
};

const char *lease_event_name(enum lease_event event)
{
    static const char *const names[] = {
        [LEASE_SHARED] = "shared",
        [LEASE_ATTACH_SAME] = "attach_same",
        [LEASE_ATTACH_OTHER] = "attach_other",
        [LEASE_RELEASE] = "release",
        [LEASE_LEFT] = "left",
        [LEASE_LEFT_AWHILE] = "left_awhile",
        [LEASE_EXPIRED] = "expired",
    };
    _Static_assert(ARRAY_SIZE(names) == LEASE_EVENT__MAX, "an event has no name");

    return event < LEASE_EVENT__MAX ? names[event] : "?";
}

bool lease_next(enum lease_state state, enum lease_event event, enum lease_state *ret)
{
    enum lease_state next =
        state < LEASE__MAX && event < LEASE_EVENT__MAX ? steps[state][event] : NO;

    if (next == NO)
        return false;
    *ret = next;
    return true;
}

/* Whoever has no more to do with it is forgotten on the way. Return: whether it was legal. */
static bool step(struct lease *l, enum lease_event event)
{
    if (!lease_next(l->state, event, &l->state))
        return false;
    if (l->state != LEASE_KEPT)
        l->until_us = 0;
    if (l->state == LEASE_FREE) {
        free(l->holder);
        l->holder = NULL;
        l->keep_us = 0;
    }
    return true;
}

/* --- who may have it --- */

static enum lease_event attach_event(const struct lease *l, const char *holder)
{
    return l->holder && strcmp(l->holder, holder) == 0 ? LEASE_ATTACH_SAME : LEASE_ATTACH_OTHER;
}

int lease_judge_owner(const char *owner, const char *given, struct error *err)
{
    bool none = !given || given[0] == '\0';

    if (owner ? given && strcmp(owner, given) == 0 : none)
        return 0;
    if (!owner) { /* whoever presents one has another sandbox in mind */
        (void)error_set(err, ERROR_TERMINAL, EACCES,
                        "the sandbox carries no owner, and '%.150s' was given", given);
        return error_remedy(err, "Leave --owner out, or look for the right sandbox");
    }
    if (none)
        (void)error_set(err, ERROR_TERMINAL, EACCES,
                        "the sandbox was made for '%.150s', and no owner was given", owner);
    else
        (void)error_set(err, ERROR_TERMINAL, EACCES,
                        "the sandbox was made for '%.150s', and not for '%.150s'", owner, given);
    return error_remedy(err, "Give the owner that it was created with");
}

/* Others are shown it, as they are the owner (core/spec.h). */
static int judge_holder(const char *holder, struct error *err)
{
    size_t n = strlen(holder);
    bool good = n <= LIMIT_TEXT_BYTES && text_is_utf8(holder, n);

    if (n == 0) {
        (void)error_set(err, ERROR_TERMINAL, EACCES, "the holder is empty");
        return error_remedy(err, "Give a name for who uses the sandbox, the same in each retry");
    }
    for (size_t i = 0; good && i < n; i++)
        good = (unsigned char)holder[i] >= ' ' && holder[i] != 0x7f;
    if (good)
        return 0;
    (void)error_set(err, ERROR_TERMINAL, EACCES,
                    "the holder is not printable text of at most %d bytes", LIMIT_TEXT_BYTES);
    return error_remedy(err, "Give a shorter or plainer name for who uses the sandbox");
}

int lease_judge(const struct lease *l, const char *owner, const struct attach_request *x,
                struct error *err)
{
    enum lease_state next;
    int r;

    if (l->state == LEASE_NONE) {
        (void)error_set(err, ERROR_TERMINAL, EACCES,
                        owner ? "the sandbox belongs to whoever made it, and is not shared"
                              : "the sandbox carries no owner, so that nobody can attach to it");
        return error_remedy(err, "Create one with \"atoll create --owner OWNER\"");
    }
    r = lease_judge_owner(owner ? owner : "", x->owner, err);
    if (r == 0)
        r = judge_holder(x->holder, err);
    if (r < 0)
        return r;
    if (!lease_next(l->state, attach_event(l, x->holder), &next)) {
        (void)error_set(err, ERROR_TERMINAL, EBUSY,
                        l->state == LEASE_KEPT
                            ? "the sandbox is kept for '%.150s', which may come back, and "
                              "'%.150s' asked for it"
                            : "the sandbox is held by '%.150s', and '%.150s' asked for it",
                        l->holder, x->holder);
        return error_remedy(err, "Use a sandbox for each task, or let one follow the other");
    }
    if (l->generation == UINT32_MAX)
        return error_set(err, ERROR_TERMINAL, EOVERFLOW, "the sandbox was attached to too often");
    return 0;
}

int lease_judge_end(const struct lease *l, const char *owner, const char *given, struct error *err)
{
    int r = lease_judge_owner(owner, given, err);

    if (r < 0 && owner)
        return error_remedy(err, "Give --owner NAME as at create, or --force");
    if (r < 0 || (l->state != LEASE_HELD && l->state != LEASE_KEPT))
        return r;
    (void)error_set(err, ERROR_TERMINAL, EBUSY,
                    l->state == LEASE_HELD
                        ? "the sandbox is held by '%.200s'"
                        : "the sandbox is kept for '%.200s', which may come back",
                    l->holder);
    return error_remedy(err, "Wait until it is free, or end it all the same with --force");
}

int lease_refuse(const struct lease *l, struct error *err)
{
    (void)error_set(err, ERROR_TERMINAL, EBUSY,
                    l->state == LEASE_KEPT
                        ? "the sandbox is kept for '%.200s', which may come back; reading is open "
                          "to all, all else needs its lease"
                        : "the sandbox is held by '%.200s'; reading is open to all, all else needs "
                          "its lease",
                    l->holder);
    return error_remedy(err, "Wait until it is free, or work under the \"atoll hold\" that has it");
}

/* --- steps --- */

void lease_share(struct lease *l)
{
    (void)step(l, LEASE_SHARED);
}

int lease_take(struct lease *l, const struct attach_request *x)
{
    enum lease_event event = attach_event(l, x->holder);
    char *holder = strdup(x->holder);

    if (!holder)
        return -ENOMEM;
    if (!step(l, event)) {
        free(holder);
        return -EBUSY;
    }
    free(l->holder);
    l->holder = holder;
    l->generation++;
    l->keep_us = x->keep_us < LIMIT_TIME_MAX_US ? x->keep_us : LIMIT_TIME_MAX_US;
    return 0;
}

void lease_return(struct lease *l)
{
    (void)step(l, LEASE_RELEASE);
}

uint64_t lease_leave(struct lease *l, uint64_t left_us, uint64_t now_us)
{
    uint64_t keep = l->keep_us < left_us ? l->keep_us : left_us;

    if (!step(l, keep > 0 ? LEASE_LEFT_AWHILE : LEASE_LEFT) || keep == 0)
        return 0;
    l->until_us = now_us + keep;
    return keep;
}

void lease_expire(struct lease *l)
{
    (void)step(l, LEASE_EXPIRED);
}

void lease_clear(struct lease *l)
{
    free(l->holder);
    *l = (struct lease){.state = LEASE_NONE};
}

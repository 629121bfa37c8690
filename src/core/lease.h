/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease of a sandbox that several share: the legal steps of it, who may have it, and in which
 * words others are refused. Pure; keeper/lease.h has those who ask.
 *
 *                       ATTACH                 left, and nothing is to be kept
 *     none --shared--> free -----> held ------------------------------------> free
 *                                   |  \--- ATTACH of the same holder: held, a new generation
 *                                   |------ RELEASE: free
 *                                   '------ left for a while: kept --- the time is over: free
 *                                                                \---- ATTACH of the same: held
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "wire/control.h"

enum lease_event {
    LEASE_SHARED,       /* a sandbox stands that others may find, and it has an owner */
    LEASE_ATTACH_SAME,  /* ATTACH with its owner, for the holder that it has */
    LEASE_ATTACH_OTHER, /* the same for another holder, or there is none */
    LEASE_RELEASE,      /* the connection that attached gives it back */
    LEASE_LEFT,         /* that connection is gone, and the lease is not to be kept */
    LEASE_LEFT_AWHILE,  /* that connection is gone, and the lease is to be kept */
    LEASE_EXPIRED,      /* it was kept, and nobody has come back in time */
    LEASE_EVENT__MAX,
};

struct lease {
    enum lease_state state;
    char *holder;        /* LEASE_HELD, LEASE_KEPT; owned; else NULL */
    uint32_t generation; /* of the last ATTACH; 0: there was none */
    uint64_t keep_us;    /* as that has asked for it */
    uint64_t until_us;   /* LEASE_KEPT: since the epoch */
};

/** lease_event_name() - "shared", "attach_same" … */
const char *lease_event_name(enum lease_event event);

/** lease_next() - whether @event is legal in @state, and the state after it, from one table */
bool lease_next(enum lease_state state, enum lease_event event, enum lease_state *ret);

/**
 * lease_judge() - whether an ATTACH is to have it
 * @owner: of the sandbox; NULL: it has none
 *
 * Changes nothing. Return: 0, or a negative errno with a terminal error: -EACCES for an owner or a
 * holder that cannot be, -EBUSY when another has it, both with both names.
 */
int lease_judge(const struct lease *l, const char *owner, const struct attach_request *x,
                struct error *err);

/**
 * lease_judge_owner() - whether who presents @given is let near a sandbox of @owner
 * @owner: of the sandbox; NULL: it has none, and then none may be presented
 * @given: NULL or empty: none is presented
 *
 * Return: as above.
 */
int lease_judge_owner(const char *owner, const char *given, struct error *err);

/**
 * lease_judge_end() - whether a sandbox may be ended by who presents @given
 * @owner: of the sandbox; NULL: it has none
 *
 * As above; -EBUSY while it is held or kept.
 */
int lease_judge_end(const struct lease *l, const char *owner, const char *given, struct error *err);

/** lease_refuse() - -EBUSY with an error for who needs a lease that another has */
int lease_refuse(const struct lease *l, struct error *err);

/** lease_share() - it can be had from now on */
void lease_share(struct lease *l);

/**
 * lease_take() - an ATTACH that lease_judge() has let through
 *
 * Return: 0, and the generation is a new one; -ENOMEM, and nothing has changed.
 */
int lease_take(struct lease *l, const struct attach_request *x);

/** lease_return() - its connection gives it back */
void lease_return(struct lease *l);

/**
 * lease_leave() - its connection is gone
 * @left_us: of the sandbox's lifetime, longer than which nothing is kept; UINT64_MAX: no end
 * @now_us:  since the epoch
 *
 * Return: for how long it is kept now, in microseconds; 0: it is free.
 */
uint64_t lease_leave(struct lease *l, uint64_t left_us, uint64_t now_us);

/** lease_expire() - the time for which it was kept is over */
void lease_expire(struct lease *l);

/** lease_clear() - free what it owns; then it is LEASE_NONE */
void lease_clear(struct lease *l);

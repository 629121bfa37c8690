/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease of a sandbox that several share, from the caller's end: taking it, giving it back,
 * acting for who has it. The keeper decides (keeper/lease.h).
 *
 * A backend program has tags in the place of a lease. There the steps are done here: the tags are
 * read, owner and holder compared, all of them written with the holder, and read back. Two who do
 * that at the same time may both have written before they read, so that one of them is refused
 * only if it reads last: it keeps honest callers apart, and is not a lock. Its generation is 0. An
 * attach that fails after it has written takes its holder out again.
 */
#pragma once

#include "client/session.h"

enum claim_step {
    CLAIM_NONE,
    CLAIM_ASKED,     /* the keeper, who does it all */
    CLAIM_READ,      /* to attach, by tags */
    CLAIM_WRITE,     /* the holder is being written */
    CLAIM_READ_BACK, /* and read */
    CLAIM_LEAVE,     /* to release, by tags, or to take back what was written: they are read */
    CLAIM_ERASE,     /* and written without the holder */
    CLAIM_END,       /* whether the sandbox may be ended, by tags: they are being read */
};

enum { CLAIM_WARNING_BYTES = 384 };

/* One request, zeroed but for the first three. It must stay where it is until claim_done(). */
struct claim {
    void *owner;
    void (*done)(struct claim *c);                            /* it went well; no further event */
    void (*failed)(struct claim *c, const struct error *err); /* no further event */

    struct attach_report report;       /* of an attach that went well; views until claim_done() */
    char warning[CLAIM_WARNING_BYTES]; /* what of it could not be understood; empty: nothing */

    struct session *session; /* borrowed */
    struct session_request request;
    enum claim_step step;
    uint8_t *answer;           /* owned: what report is a view of */
    char *owner_name, *holder; /* owned, of tags */
    bool written; /* of an attach by tags that failed or was given up: its holder may stand there */
    struct error why; /* it failed, while what it wrote is taken back; code 0: it did not */
};

/**
 * claim_attach() - take the lease, for this connection
 * @s: with a backend program: of a sandbox that it has opened
 * @x: copied
 *
 * It ends with the connection; by tags only with claim_release(), so that a time to keep it for is
 * refused there: -EOPNOTSUPP. Return: 0, or a negative errno
 * with an error, and then no event comes.
 */
int claim_attach(struct claim *c, struct session *s, const struct attach_request *x,
                 struct error *err);

/**
 * claim_release() - give it back; done also when it was another's
 * @holder: whose it is, by tags; else not looked at
 *
 * Return: as claim_attach().
 */
int claim_release(struct claim *c, struct session *s, const char *holder, struct error *err);

/**
 * claim_present() - let this connection act for the holder of lease @generation
 *
 * With a backend program there is nothing to present, and it is an error. As claim_attach().
 */
int claim_present(struct claim *c, struct session *s, uint32_t generation, struct error *err);

/**
 * claim_end() - whether the sandbox may be ended by who presents @owner, by its tags
 * @s: with a backend program, which does not judge that by itself; one without tags has no owners
 * @owner: NULL: none
 *
 * As claim_attach(); -ENOSYS: it is of a version that had no owners, so that any is a mistake.
 */
int claim_end(struct claim *c, struct session *s, const char *owner, struct error *err);

/** claim_done() - take no further interest, free; harmless on a zeroed one */
void claim_done(struct claim *c);

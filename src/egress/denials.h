/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was refused, told to the keeper as MSG_DENIED: by the kernel's rules (packets that
 * nfnetlink_log hands over), by the resolver, by the judgement of a connection. A program that
 * tries a thousand times makes few lines: the same attempt again within DENIALS_SAME_US is only
 * counted, and of different ones DENIALS_PER_SECOND are told. What was counted is told within two
 * more such times, or by denials_drain(): a line stands for itself, for `repeated` others like it,
 * and for `dropped` others of any kind. So the sum over all lines is the number of attempts, also
 * of those that the kernel logged faster than they are read here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/policy.h"
#include "wire/denial.h"

struct egress;
struct name;

#define DENIALS_SAME_US UINT64_C(1000000)
enum { DENIALS_PER_SECOND = 100, DENIALS_KNOWN = 64 };

/* An attempt that was told. The same are those with its protocol, name, address and port. */
struct denial_known {
    struct denial what; /* its texts are in `texts` */
    char *texts;        /* owned; NULL: the place is free */
    uint64_t hash;
    uint64_t at_us;    /* when it was told; CLOCK_MONOTONIC */
    uint64_t last_us;  /* when it was tried last; since the epoch */
    uint64_t repeated; /* counted and not told yet */
};

struct denials {
    struct egress *egress;
    struct loop_source log_source; /* INSIDE_LOG */
    struct denial_known known[DENIALS_KNOWN];
    struct denial_known kept; /* one of the dropped, so that there is a line to tell of them with */
    uint64_t dropped;         /* not told yet; counts the kept one too */
    uint64_t second_us;
    unsigned told_this_second;
    struct loop_timer flush;
    struct loop_timer log_again; /* the log is silent until then */
    uint64_t log_since_us;       /* of the count below */
    unsigned log_read;
    uint32_t log_sequence; /* of the last packet */
    uint64_t log_gaps;     /* packets whose numbers never came */
    uint64_t log_drops;    /* that the kernel says it dropped: those at the end of a flood too */
    uint64_t log_lost;     /* of both, which are mostly the same ones: how many were counted */
};

void denials_init(struct denials *d, struct egress *e);
void denials_end(struct denials *d);

/** denials_listen() - read what the kernel logs, from @fd; borrowed; 0 or -errno */
int denials_listen(struct denials *d, int fd);

/** denials_drain() - tell all that the kernel has logged until now, and all that was counted */
void denials_drain(struct denials *d);

/** denials_tell() - one refusal; texts are copied; at_us, repeated and dropped are filled in here
 */
void denials_tell(struct denials *d, const struct denial *x);

/**
 * denials_decided() - one refusal by a decision of the policy
 * @name:    NULL or whom the synthetic address stands for, or what was asked for
 * @address: NULL or where the connection was to
 * @reason:  NULL: the decision's explanation
 */
void denials_decided(struct denials *d, enum denial_protocol protocol, const char *name,
                     const struct address *address, uint16_t port,
                     const struct policy_decision *decision, const char *reason, uint64_t bytes);

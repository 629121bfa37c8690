/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement of a question to the resolver inside: which names there are, and what is said. */
#pragma once

#include "egress/names.h"
#include "wire/dns.h"

struct egress;

/* An answer with room for its addresses. */
struct dns_verdict {
    struct dns_answer answer;
    struct dns_address addresses[RESOLVE_ADDRESSES_MAX];
};

/** judge_dns_say() - an answer without addresses */
void judge_dns_say(struct dns_verdict *v, enum dns_rcode rcode);

/**
 * judge_dns() - set the answer to @q, and tell what is refused
 *
 * Return: NULL; or the name that must be looked up first, after which the policy is to be asked
 * again, since it may be another one by then.
 */
struct name *judge_dns(struct egress *e, const struct dns_question *q, struct dns_verdict *v);

/** judge_dns_looked_up() - set the answer by what a look-up has said of @x */
void judge_dns_looked_up(struct egress *e, const struct dns_question *q, const struct name *x,
                         struct dns_verdict *v);

/** judge_dns_odd() - tell of a question whose name has a byte that no host's name has */
void judge_dns_odd(struct egress *e, const struct dns_question *q);

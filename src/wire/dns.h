/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages (RFC 1035, section 4; EDNS: RFC 6891), strictly: the question that a program inside
 * asks and the answer it gets, and for the process that resolves, the question to a name server and
 * its answer.
 *
 * A name is handed on as text only if it has one reading: lower case, labels parted by dots, no dot
 * at its end, no zero byte, no dot and nothing beyond printable ASCII within a label. Everything
 * else is a fault, so that what a policy compares is what anybody else would read.
 *
 * Pure code: no call blocks, allocates or keeps anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DNS_HEADER_BYTES = 12,
    DNS_NAME_TEXT_MAX = 253, /* RFC 1035, 2.3.4, as text */
    DNS_UDP_BYTES = 512,     /* without EDNS */
    DNS_MESSAGE_BYTES_MAX = 4096,
    DNS_ADDRESSES_MAX = 32, /* of one name that are looked at */
};

/* RFC 1035, 3.2.2 and 3.2.3; RFC 3596; RFC 2782; RFC 9460. */
enum dns_type {
    DNS_A = 1,
    DNS_CNAME = 5,
    DNS_AAAA = 28,
    DNS_SRV = 33,
    DNS_OPT = 41,
    DNS_SVCB = 64,
    DNS_HTTPS = 65,
};

enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16, /* RFC 6891, 9: of EDNS; goes partly into the OPT record */
};

/* One question. */
struct dns_question {
    char name[DNS_NAME_TEXT_MAX + 1]; /* lower case; empty for the root */
    bool
        odd; /* a fault: the name has more than one reading; '?' in it for each odd byte, to show */
    uint16_t id;
    uint16_t flags;        /* of the header */
    uint16_t type, class_; /* class_ 1 is IN */
    bool edns;             /* it came with an OPT record */
    uint16_t udp_bytes;    /* what the asker takes by UDP: DNS_UDP_BYTES without EDNS */
    size_t question_bytes; /* header and question, to be echoed exactly as they came */
};

/* An address as it stands in a record; network order; of IPv4 the first four bytes. */
struct dns_address {
    bool v6;
    uint8_t bytes[16];
};

/**
 * dns_question_parse() - a message as a question
 *
 * One question, standard query, no answer and authority records, at most one OPT record and nothing
 * else after it, no byte left over. Return: DNS_NOERROR with @ret set; DNS_FORMERR, DNS_NOTIMP,
 * DNS_REFUSED (a class other than IN) or DNS_BADVERS for what is to be answered by that (then all
 * of @ret is set as far as it could be read, question_bytes to 0 if the question could not);
 * -EPROTO for what is no query at all and gets no answer.
 */
int dns_question_parse(const uint8_t *msg, size_t len, struct dns_question *ret);

/* What a question is answered by. */
struct dns_answer {
    enum dns_rcode rcode;
    const struct dns_address *addresses; /* of the question's type; others are left out */
    size_t n_addresses;
    uint32_t ttl; /* seconds */
};

/**
 * dns_answer_encode() - the answer to @q
 * @msg:  the message that @q was parsed from
 * @size: room in @buf; an answer that does not fit it is cut to none, with the bit TC (RFC 2181, 9)
 *
 * The question is echoed byte for byte (programs mix the case of letters to tell answers apart).
 * RA and, as asked, RD and CD are set; an OPT record answers one, unless it alone does not fit.
 * With an rcode other than DNS_NOERROR there are no addresses. Return: the bytes of the answer, at
 * least DNS_HEADER_BYTES, or 0 if @size is below what header and question take.
 */
size_t dns_answer_encode(const uint8_t *msg, const struct dns_question *q,
                         const struct dns_answer *answer, uint8_t *buf, size_t size);

/**
 * dns_query_encode() - a question for a name server, recursion desired, with EDNS
 * @name: as text, with or without a dot at its end; not the root
 *
 * Return: its bytes, or 0 for a name that is none or a @size too small.
 */
size_t dns_query_encode(const char *name, uint16_t type, uint16_t id, uint8_t *buf, size_t size);

/* What a name server answered. */
struct dns_result {
    enum dns_rcode rcode; /* also of those that have no name here */
    bool truncated;       /* ask again by TCP; there are no addresses */
    struct dns_address addresses[DNS_ADDRESSES_MAX];
    size_t n_addresses;
    uint32_t ttl; /* the least of the records used, seconds; 0 without any */
};

/**
 * dns_result_parse() - the answer to a question that dns_query_encode() wrote
 *
 * Its id, question and type must be those that were asked; what follows its records is not looked
 * at. CNAME records are followed within the
 * message, at most 16 of them; addresses of other owners are left out; of more than
 * DNS_ADDRESSES_MAX the first are kept. A compressed name points backwards only, so that no loop
 * exists. Return: 0 with @ret set, or -EPROTO for what is not the answer.
 */
int dns_result_parse(const uint8_t *msg, size_t len, const char *name, uint16_t type, uint16_t id,
                     struct dns_result *ret);

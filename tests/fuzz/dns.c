/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DNS message, as a question of a program inside and as the answer of a name server. A name that
 * is handed on is the one that stands in the message, byte for byte but for the case of letters,
 * and has no other reading; an answer is read back by a small reader of its own; addresses of a
 * result stand in the message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/dns.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static unsigned at16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* The name at the start of the question, label by label. */
static void check_name(const uint8_t *msg, const struct dns_question *q)
{
    const uint8_t *p = msg + DNS_HEADER_BYTES;
    const char *text = q->name;

    check(strlen(text) <= DNS_NAME_TEXT_MAX);
    for (; *p > 0; p += 1 + *p) {
        check(*p <= 63);
        if (text > q->name)
            check(*text++ == '.');
        for (size_t i = 1; i <= *p; i++, text++) {
            check(p[i] > ' ' && p[i] < 0x7F && p[i] != '.');
            check(*text == (p[i] >= 'A' && p[i] <= 'Z' ? p[i] + ('a' - 'A') : p[i]));
        }
    }
    check(*text == '\0' && (size_t)(p + 5 - msg) == q->question_bytes);
    check(at16(p + 1) == q->type && at16(p + 3) == 1);
}

/* Written as a query, the name is the same one. */
static void check_query(const struct dns_question *q)
{
    uint8_t buf[DNS_UDP_BYTES];
    struct dns_question again;
    size_t n = dns_query_encode(q->name, q->type, q->id, buf, sizeof buf);

    check((n == 0) == (q->name[0] == '\0'));
    if (n == 0)
        return;
    check(n == q->question_bytes + 11);
    check(dns_question_parse(buf, n, &again) == DNS_NOERROR);
    check(strcmp(again.name, q->name) == 0 && again.type == q->type && again.id == q->id);
}

/* Whether the @n bytes are @q's answer with so many records. */
static void check_answer(const uint8_t *msg, const struct dns_question *q,
                         const struct dns_answer *answer, const uint8_t *buf, size_t n)
{
    const uint8_t *p = buf + q->question_bytes;
    size_t wanted = 0;
    bool cut = buf[2] & 2, opt = at16(buf + 10) == 1;

    for (size_t i = 0; i < answer->n_addresses; i++)
        wanted += q->type == (answer->addresses[i].v6 ? 28 : 1);
    check(at16(buf) == q->id && (buf[2] & 0xFC) == 0x80 && (buf[2] & 1) == (msg[2] & 1));
    check((buf[3] & 0x8F) == 0x80 && (buf[3] & 0x60) == 0);
    check(at16(buf + 4) == 1 && at16(buf + 6) == (cut ? 0 : wanted) && at16(buf + 8) == 0);
    check(memcmp(buf + 12, msg + 12, q->question_bytes - 12) == 0);
    for (size_t i = 0; i < answer->n_addresses && !cut; i++) {
        const struct dns_address *a = &answer->addresses[i];

        if (q->type != (a->v6 ? 28 : 1))
            continue;
        check(at16(p) == 0xC00C && at16(p + 2) == q->type && at16(p + 4) == 1);
        check(at16(p + 6) == 0 && at16(p + 8) == answer->ttl);
        check(at16(p + 10) == (a->v6 ? 16 : 4));
        check(memcmp(p + 12, a->bytes, a->v6 ? 16 : 4) == 0);
        p += 12 + (a->v6 ? 16 : 4);
    }
    check(!opt || (q->edns && p[0] == 0 && at16(p + 1) == 41 && at16(p + 9) == 0));
    check(n == (size_t)(p - buf) + (opt ? 11 : 0));
}

static void check_question(const uint8_t *msg, const struct dns_question *q)
{
    struct dns_address addresses[2 * DNS_ADDRESSES_MAX];
    struct dns_answer answer = {DNS_NOERROR, addresses, q->id % 64, 7};
    struct dns_result result;
    size_t room = q->question_bytes + (q->flags & 0x7F) * 16;
    _cleanup_free_ uint8_t *buf = malloc(room);

    for (size_t i = 0; i < answer.n_addresses; i++) {
        addresses[i].v6 = i % 2 > 0;
        memset(addresses[i].bytes, (int)i + 1, 16);
    }
    check(buf && !q->odd && q->class_ == 1 && q->udp_bytes >= DNS_UDP_BYTES);
    check(q->edns || q->udp_bytes == DNS_UDP_BYTES);
    check_name(msg, q);
    check_query(q);
    check(dns_answer_encode(msg, q, &answer, buf, q->question_bytes - 1) == 0);
    size_t n = dns_answer_encode(msg, q, &answer, buf, room);
    check(n >= q->question_bytes && n <= room);
    check_answer(msg, q, &answer, buf, n);
    if (q->name[0] == '\0')
        return;
    check(dns_result_parse(buf, n, q->name, q->type, q->id, &result) == 0);
    check(result.truncated == ((buf[2] & 2) > 0));
    check(result.truncated || result.n_addresses == at16(buf + 6));
}

/* What cannot be handed on is answered all the same. */
static void check_refused(const uint8_t *msg, const struct dns_question *q, int rcode)
{
    const struct dns_answer answer = {(enum dns_rcode)rcode, NULL, 0, 0};
    uint8_t buf[DNS_UDP_BYTES];
    size_t n = dns_answer_encode(msg, q, &answer, buf, sizeof buf);

    check(rcode == DNS_FORMERR || rcode == DNS_NOTIMP || rcode == DNS_REFUSED ||
          rcode == DNS_BADVERS);
    check(n == (q->question_bytes > 0 ? q->question_bytes : 12) + (q->edns ? 11 : 0));
    check(at16(buf) == at16(msg) && buf[2] & 0x80 && (buf[3] & 15) == (rcode & 15));
    check(strlen(q->name) <= DNS_NAME_TEXT_MAX);
}

static void check_result(const uint8_t *msg, size_t size, const struct dns_result *x)
{
    check(x->n_addresses <= DNS_ADDRESSES_MAX);
    check(x->n_addresses == 0 || (x->rcode == DNS_NOERROR && !x->truncated));
    check(x->ttl <= INT32_MAX);
    for (size_t i = 0; i < x->n_addresses; i++)
        check(memmem(msg, size, x->addresses[i].bytes, x->addresses[i].v6 ? 16 : 4));
}

/* As the answer to whatever its own question is, so that the rest is looked at. */
static void try_result(const uint8_t *msg, size_t size)
{
    _cleanup_free_ uint8_t *head = malloc(size > 0 ? size : 1);
    struct dns_question q;
    struct dns_result x;

    check(head != NULL);
    if (size < 12)
        return;
    memcpy(head, msg, size);
    head[2] = 0;
    memset(head + 6, 0, 6);
    if (dns_question_parse(head, size, &q) < 0 || q.question_bytes == 0)
        return;
    for (unsigned type = 1; type <= 28; type += 27)
        if (dns_result_parse(msg, size, q.name, (uint16_t)type, q.id, &x) == 0) {
            check(q.type == type && !q.odd);
            check_result(msg, size, &x);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dns_question q;
    int r = dns_question_parse(data, size, &q);

    check(r >= 0 || (r == -EPROTO && (size < 12 || data[2] & 0x80)));
    if (r == DNS_NOERROR)
        check_question(data, &q);
    else if (r > 0)
        check_refused(data, &q, r);
    try_result(data, size);
    return 0;
}

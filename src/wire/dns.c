/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages: questions and answers of both sides. Numbers are big endian. */
#include "wire/dns.h"

#include <errno.h>
#include <string.h>

#include "wire/reader.h"
#include "base/guards.h"

enum {
    LABEL_MAX = 63,
    WIRE_NAME_MAX = 255, /* RFC 1035, 2.3.4: length bytes and the root's included */
    OPT_BYTES = 11,      /* without options */
    CNAMES_MAX = 16,
    CLASS_IN = 1,
    /* What is asked of a name server: fits one packet of IPv6 (dnsflagday.net/2020). */
    QUERY_UDP_BYTES = 1232,
};

/* RFC 1035, 4.1.1; CD: RFC 4035, 3.1.6. */
enum {
    FLAG_QR = 0x8000,
    FLAG_OPCODE = 0x7800,
    FLAG_TC = 0x0200,
    FLAG_RD = 0x0100,
    FLAG_RA = 0x0080,
    FLAG_CD = 0x0010,
    FLAG_RCODE = 0x000F,
};

static uint16_t take16(struct reader *r)
{
    const uint8_t *q = reader_take(r, 2);

    return q ? (uint16_t)(q[0] << 8 | q[1]) : 0;
}

static uint32_t take32(struct reader *r)
{
    uint32_t high = take16(r);

    return high << 16 | take16(r);
}

static void put16(struct writer *w, unsigned v)
{
    uint8_t b[2] = {(uint8_t)(v >> 8), (uint8_t)v};

    writer_bytes(w, b, sizeof b);
}

static void put32(struct writer *w, uint32_t v)
{
    put16(w, v >> 16);
    put16(w, v & 0xFFFF);
}

struct header {
    uint16_t id, flags, questions, answers, authorities, additionals;
};

static struct header take_header(struct reader *r)
{
    struct header h;

    h.id = take16(r);
    h.flags = take16(r);
    h.questions = take16(r);
    h.answers = take16(r);
    h.authorities = take16(r);
    h.additionals = take16(r);
    return h;
}

static void put_header(struct writer *w, struct header h)
{
    put16(w, h.id);
    put16(w, h.flags);
    put16(w, h.questions);
    put16(w, h.answers);
    put16(w, h.authorities);
    put16(w, h.additionals);
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* Whether a byte of a label reads as itself in text: not a blank, nor the dot between labels. */
static bool is_plain(uint8_t c)
{
    return c > ' ' && c < 0x7F && c != '.';
}

/* The question's side */

/*
 * The name of a question. Nothing stands before it that a pointer could lead to, so one is a fault,
 * as are the label types of RFC 2671. Return: whether it is well formed.
 */
static bool take_question_name(struct reader *r, struct dns_question *q)
{
    const uint8_t *len;
    size_t n = 0;

    while ((len = reader_take(r, 1)) && *len > 0) {
        const uint8_t *label = *len <= LABEL_MAX ? reader_take(r, *len) : NULL;

        if (!label || n + (n > 0) + *len > DNS_NAME_TEXT_MAX) {
            q->name[n] = '\0';
            return false;
        }
        if (n > 0)
            q->name[n++] = '.';
        for (size_t i = 0; i < *len; i++) {
            bool plain = is_plain(label[i]);

            q->name[n++] = plain ? (char)lower(label[i]) : '?';
            q->odd = q->odd || !plain;
        }
    }
    q->name[n] = '\0';
    return !r->bad;
}

/* RFC 6891, 6.1.2: each option has a code and a length. */
static bool are_options(const uint8_t *data, size_t len)
{
    struct reader r = reader_over(data, len);

    while (reader_left(&r) > 0) {
        (void)take16(&r);
        (void)reader_take(&r, take16(&r));
    }
    return !r.bad;
}

/* The one record that may follow a question. Return: what the question is answered by. */
static enum dns_rcode take_opt(struct reader *r, struct dns_question *q)
{
    const uint8_t *root = reader_take(r, 1);
    uint16_t type = take16(r), udp_bytes = take16(r);
    uint32_t extended = take32(r); /* rcode:8 version:8 flags:16 */
    uint16_t len = take16(r);
    const uint8_t *options = reader_take(r, len);

    if (!options || *root != 0 || type != DNS_OPT || !are_options(options, len))
        return DNS_FORMERR;
    q->edns = true;
    q->udp_bytes = udp_bytes > DNS_UDP_BYTES ? udp_bytes : DNS_UDP_BYTES;
    return (extended >> 16 & 0xFF) != 0 ? DNS_BADVERS : DNS_NOERROR;
}

static enum dns_rcode take_question(const uint8_t *msg, struct reader *r, const struct header *h,
                                    struct dns_question *q)
{
    enum dns_rcode rcode = DNS_NOERROR;

    if (!take_question_name(r, q))
        return DNS_FORMERR;
    q->type = take16(r);
    q->class_ = take16(r);
    if (r->bad)
        return DNS_FORMERR;
    q->question_bytes = (size_t)(r->p - msg);
    if (h->answers > 0 || h->authorities > 0 || h->additionals > 1)
        return DNS_FORMERR;
    if (h->additionals > 0)
        rcode = take_opt(r, q);
    if (rcode != DNS_NOERROR)
        return rcode;
    if (r->bad || reader_left(r) > 0 || q->odd || q->type == DNS_OPT)
        return DNS_FORMERR;
    return q->class_ == CLASS_IN ? DNS_NOERROR : DNS_REFUSED;
}

int dns_question_parse(const uint8_t *msg, size_t len, struct dns_question *ret)
{
    struct reader r = reader_over(msg, len);
    struct header h = take_header(&r);

    if (r.bad || h.flags & FLAG_QR)
        return -EPROTO; /* an answer to an answer could go round for ever */
    ret->id = h.id;
    ret->flags = h.flags;
    ret->type = ret->class_ = 0;
    ret->edns = ret->odd = false;
    ret->udp_bytes = DNS_UDP_BYTES;
    ret->question_bytes = 0;
    ret->name[0] = '\0';
    if (h.flags & FLAG_OPCODE)
        return DNS_NOTIMP;
    if (h.questions != 1 || h.flags & FLAG_TC || len > DNS_MESSAGE_BYTES_MAX)
        return DNS_FORMERR;
    return (int)take_question(msg, &r, &h, ret);
}

/* The answer */

static size_t address_bytes(const struct dns_address *a)
{
    return a->v6 ? 16 : 4;
}

static bool is_answer(const struct dns_question *q, const struct dns_address *a)
{
    return q->type == (a->v6 ? DNS_AAAA : DNS_A);
}

static void put_opt(struct writer *w, unsigned udp_bytes, unsigned rcode)
{
    static const uint8_t root;

    writer_bytes(w, &root, 1);
    put16(w, DNS_OPT);
    put16(w, udp_bytes);
    put32(w, (uint32_t)(rcode >> 4) << 24); /* the upper bits of an rcode; version 0 */
    put16(w, 0);
}

/* Return: how many. */
static unsigned put_addresses(struct writer *w, const struct dns_question *q,
                              const struct dns_answer *answer)
{
    unsigned n = 0;

    for (size_t i = 0; i < answer->n_addresses; i++) {
        const struct dns_address *a = &answer->addresses[i];

        if (!is_answer(q, a))
            continue;
        put16(w, 0xC000 | DNS_HEADER_BYTES); /* the question's name */
        put16(w, q->type);
        put16(w, CLASS_IN);
        put32(w, answer->ttl);
        put16(w, (unsigned)address_bytes(a));
        writer_bytes(w, a->bytes, address_bytes(a));
        n++;
    }
    return n;
}

size_t dns_answer_encode(const uint8_t *msg, const struct dns_question *q,
                         const struct dns_answer *answer, uint8_t *buf, size_t size)
{
    struct writer w = writer_over(buf, size);
    struct header h = {.id = q->id, .questions = q->question_bytes > 0};
    unsigned rcode = (unsigned)answer->rcode;
    size_t opt = q->edns ? OPT_BYTES : 0;

    h.flags = (uint16_t)(FLAG_QR | FLAG_RA | (rcode & FLAG_RCODE) |
                         (q->flags & (FLAG_OPCODE | FLAG_RD | FLAG_CD)));
    if (q->question_bytes > 0)
        (void)writer_reserve(&w, q->question_bytes);
    else
        (void)writer_reserve(&w, DNS_HEADER_BYTES);
    if (w.bad)
        return 0;
    struct writer cut = w;
    if (answer->rcode == DNS_NOERROR && q->question_bytes > 0)
        h.answers = (uint16_t)put_addresses(&w, q, answer);
    if (w.bad || (size_t)(w.end - w.p) < opt) {
        h.answers = 0;
        h.flags |= FLAG_TC;
        w = cut;
    }
    if (q->edns && (size_t)(w.end - w.p) >= opt) {
        put_opt(&w, DNS_MESSAGE_BYTES_MAX, rcode);
        h.additionals = 1;
    }
    struct writer head = writer_over(buf, DNS_HEADER_BYTES);
    put_header(&head, h);
    if (q->question_bytes > 0)
        memcpy(buf + DNS_HEADER_BYTES, msg + DNS_HEADER_BYTES,
               q->question_bytes - DNS_HEADER_BYTES);
    return writer_len(&w);
}

/* The side of a name server */

/* A name as it stands in a message, without pointers, in lower case: has no second reading. */
struct wire_name {
    uint8_t bytes[WIRE_NAME_MAX];
    size_t len;
};

static bool name_equal(const struct wire_name *a, const struct wire_name *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* A name other than the root's. */
static bool name_of_text(const char *text, struct wire_name *ret)
{
    size_t n = strlen(text), at = 0;

    if (n > 0 && text[n - 1] == '.')
        n--;
    if (n == 0 || n > DNS_NAME_TEXT_MAX)
        return false;
    for (size_t i = 0; i <= n; i++) {
        uint8_t c = i < n ? (uint8_t)text[i] : '.';

        if (c == '.') { /* the byte for its length is before the label */
            if (i == at || i - at > LABEL_MAX)
                return false;
            ret->bytes[at] = (uint8_t)(i - at);
            at = i + 1;
        } else if (is_plain(c)) {
            ret->bytes[i + 1] = lower(c);
        } else {
            return false;
        }
    }
    ret->bytes[n + 1] = 0;
    ret->len = n + 2;
    return true;
}

size_t dns_query_encode(const char *name, uint16_t type, uint16_t id, uint8_t *buf, size_t size)
{
    struct writer w = writer_over(buf, size);
    struct wire_name wire;

    if (!name_of_text(name, &wire))
        return 0;
    put_header(&w, (struct header){.id = id, .flags = FLAG_RD, .questions = 1, .additionals = 1});
    writer_bytes(&w, wire.bytes, wire.len);
    put16(&w, type);
    put16(&w, CLASS_IN);
    put_opt(&w, QUERY_UDP_BYTES, DNS_NOERROR);
    return w.bad ? 0 : writer_len(&w);
}

/*
 * A name that may end in a pointer (RFC 1035, 4.1.4). Each pointer leads to before the part that it
 * ends, so the parts come to an end. @r goes on after the name, or is bad.
 */
static void take_name(const uint8_t *msg, struct reader *r, struct wire_name *ret)
{
    struct reader part = *r;
    size_t start = (size_t)(r->p - msg);
    bool jumped = false;

    ret->len = 0;
    for (;;) {
        const uint8_t *len = reader_take(&part, 1);

        if (len && (*len & 0xC0) == 0xC0) {
            const uint8_t *low = reader_take(&part, 1);
            size_t to = low ? (size_t)(*len & 0x3F) << 8 | *low : start;

            if (!jumped)
                *r = part;
            jumped = true;
            if (to >= start || to < DNS_HEADER_BYTES)
                break;
            part = reader_over(msg, start); /* no part overlaps the one that led to it */
            (void)reader_take(&part, to);
            start = to;
            continue;
        }
        if (!len || *len > LABEL_MAX || ret->len + 1 + *len > WIRE_NAME_MAX - (*len > 0))
            break;
        const uint8_t *label = reader_take(&part, *len);
        if (!label)
            break;
        ret->bytes[ret->len++] = *len;
        for (size_t i = 0; i < *len; i++)
            ret->bytes[ret->len++] = lower(label[i]);
        if (*len > 0)
            continue;
        if (!jumped)
            *r = part;
        return;
    }
    r->bad = true;
}

struct record {
    struct wire_name owner;
    uint16_t type, class_, len;
    uint32_t ttl;
    const uint8_t *data;
};

static bool take_record(const uint8_t *msg, struct reader *r, struct record *ret)
{
    take_name(msg, r, &ret->owner);
    ret->type = take16(r);
    ret->class_ = take16(r);
    ret->ttl = take32(r);
    ret->len = take16(r);
    ret->data = reader_take(r, ret->len);
    return !r->bad;
}

/* The records of the answer, known to be well formed. */
struct section {
    const uint8_t *msg;
    struct reader start;
    unsigned n;
};

/* Steps over @n records. Return: whether they are well formed. @extended: of the rcode, if OPT says
 */
static bool skip_records(const uint8_t *msg, struct reader *r, unsigned n, unsigned *extended)
{
    struct record x;

    for (unsigned i = 0; i < n; i++) {
        if (!take_record(msg, r, &x))
            return false;
        if (x.type == DNS_OPT)
            *extended = x.ttl >> 24;
    }
    return true;
}

/* RFC 2181, 8: a lifetime with its top bit set is none. */
static void lessen_ttl(struct dns_result *x, uint32_t ttl, bool first)
{
    if (ttl > INT32_MAX)
        ttl = 0;
    if (first || ttl < x->ttl)
        x->ttl = ttl;
}

/* Replaces @name by that of which it is an alias. Return: 1 if it is one, 0, or -EPROTO. */
static int follow(const struct section *answers, struct wire_name *name, uint32_t *ttl)
{
    struct reader r = answers->start;
    struct record x;

    for (unsigned i = 0; i < answers->n && take_record(answers->msg, &r, &x); i++) {
        if (x.type != DNS_CNAME || x.class_ != CLASS_IN || !name_equal(&x.owner, name))
            continue;
        struct reader data =
            reader_over(answers->msg, (size_t)(x.data - answers->msg) + (size_t)x.len);

        (void)reader_take(&data, (size_t)(x.data - answers->msg));
        take_name(answers->msg, &data, name);
        *ttl = x.ttl;
        return data.bad || reader_left(&data) > 0 ? -EPROTO : 1;
    }
    return 0;
}

/* The addresses of @name. Return: 0 or -EPROTO. */
static int collect(const struct section *answers, const struct wire_name *name, uint16_t type,
                   bool alias, struct dns_result *ret)
{
    struct reader r = answers->start;
    struct record x;

    for (unsigned i = 0; i < answers->n && take_record(answers->msg, &r, &x); i++) {
        struct dns_address a = {.v6 = type == DNS_AAAA};

        if (x.type != type || x.class_ != CLASS_IN || !name_equal(&x.owner, name))
            continue;
        if (x.len != address_bytes(&a))
            return -EPROTO;
        if (ret->n_addresses == DNS_ADDRESSES_MAX)
            break;
        lessen_ttl(ret, x.ttl, !alias && ret->n_addresses == 0);
        memcpy(a.bytes, x.data, x.len);
        ret->addresses[ret->n_addresses++] = a;
    }
    return 0;
}

static int read_answers(const struct section *answers, struct wire_name *name, uint16_t type,
                        struct dns_result *ret)
{
    unsigned aliases = 0;
    uint32_t ttl = 0;
    int r;

    while ((r = follow(answers, name, &ttl)) > 0) {
        lessen_ttl(ret, ttl, aliases == 0);
        if (++aliases > CNAMES_MAX)
            return -EPROTO; /* a ring of them, most likely */
    }
    if (r < 0 || (type != DNS_A && type != DNS_AAAA))
        return r;
    return collect(answers, name, type, aliases > 0, ret);
}

int dns_result_parse(const uint8_t *msg, size_t len, const char *name, uint16_t type, uint16_t id,
                     struct dns_result *ret)
{
    struct reader r = reader_over(msg, len);
    struct header h = take_header(&r);
    struct wire_name asked, echoed;
    struct dns_result x = {0};
    unsigned extended = 0;

    if (r.bad || h.id != id || !(h.flags & FLAG_QR) || h.flags & FLAG_OPCODE || h.questions != 1 ||
        !name_of_text(name, &asked))
        return -EPROTO;
    take_name(msg, &r, &echoed);
    if (take16(&r) != type || take16(&r) != CLASS_IN || r.bad || !name_equal(&asked, &echoed))
        return -EPROTO;
    x.truncated = h.flags & FLAG_TC;
    x.rcode = h.flags & FLAG_RCODE;
    if (!x.truncated) { /* a cut one may end in the middle of a record */
        const struct section answers = {msg, r, h.answers};
        unsigned n = (unsigned)h.answers + h.authorities + h.additionals;

        if (!skip_records(msg, &r, n, &extended))
            return -EPROTO;
        x.rcode = (enum dns_rcode)(extended << 4 | (unsigned)x.rcode);
        if (x.rcode == DNS_NOERROR && read_answers(&answers, &asked, type, &x) < 0)
            return -EPROTO;
    }
    *ret = x;
    return 0;
}

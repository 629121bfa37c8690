/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages: strict questions, answers, and what name servers say. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/dns.h"
#include "base/guards.h"

/* A message under construction, by hand: nothing here is shared with the code under test. */
struct message {
    uint8_t bytes[8192];
    size_t len;
};

static void add(struct message *m, const void *data, size_t n)
{
    assert_true(n <= sizeof m->bytes - m->len);
    if (n > 0)
        memcpy(m->bytes + m->len, data, n);
    m->len += n;
}

static void add16(struct message *m, unsigned v)
{
    add(m, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void add_name(struct message *m, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, ".");
        uint8_t len = (uint8_t)n;

        add(m, &len, 1);
        add(m, text, n);
        text += n + (text[n] == '.');
    }
    add(m, "", 1);
}

static void add_header(struct message *m, unsigned flags, unsigned questions, unsigned answers,
                       unsigned authorities, unsigned additionals)
{
    add16(m, 0x1234);
    add16(m, flags);
    add16(m, questions);
    add16(m, answers);
    add16(m, authorities);
    add16(m, additionals);
}

static void add_opt(struct message *m, unsigned udp_bytes, unsigned version, const void *options,
                    size_t n)
{
    add(m, "", 1);
    add16(m, 41);
    add16(m, udp_bytes);
    add16(m, version); /* below the byte of the rcode */
    add16(m, 0x8000);  /* DO, which is the asker's to set */
    add16(m, (unsigned)n);
    add(m, options, n);
}

static struct message question_of(const char *name, unsigned type)
{
    struct message m = {.len = 0};

    add_header(&m, 0x0100, 1, 0, 0, 0);
    add_name(&m, name);
    add16(&m, type);
    add16(&m, 1);
    return m;
}

static struct message question_with_opt(const char *name, unsigned type, unsigned udp_bytes)
{
    struct message m = question_of(name, type);

    m.bytes[11] = 1;
    add_opt(&m, udp_bytes, 0, NULL, 0);
    return m;
}

/* One question whose name is these bytes of the wire. */
static struct message question_of_wire(const void *name, size_t n)
{
    struct message m = {.len = 0};

    add_header(&m, 0, 1, 0, 0, 0);
    add(&m, name, n);
    add16(&m, 1);
    add16(&m, 1);
    return m;
}

/* Parses a copy of exactly its size, so that a sanitizer sees one byte too far. */
static int parse(const struct message *m, struct dns_question *ret)
{
    _cleanup_free_ uint8_t *exact = malloc(m->len > 0 ? m->len : 1);

    assert_non_null(exact);
    memcpy(exact, m->bytes, m->len);
    memset(ret, 0xA5, sizeof *ret);
    return dns_question_parse(exact, m->len, ret);
}

static void assert_answered_by(const struct message *m, int rcode, size_t question_bytes)
{
    struct dns_question q;

    assert_int_equal(parse(m, &q), rcode);
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.question_bytes, question_bytes);
    assert_true(strlen(q.name) <= DNS_NAME_TEXT_MAX);
}

static void a_question_is_read(void **state)
{
    struct message m = question_of("WWW.Example.ORG", 28);
    struct dns_question q;

    (void)state;
    assert_int_equal(parse(&m, &q), DNS_NOERROR);
    assert_string_equal(q.name, "www.example.org");
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.flags, 0x0100);
    assert_int_equal(q.type, DNS_AAAA);
    assert_int_equal(q.class_, 1);
    assert_int_equal(q.udp_bytes, 512);
    assert_int_equal(q.question_bytes, m.len);
    assert_false(q.edns);
    assert_false(q.odd);
}

static void the_root_is_a_name_without_text(void **state)
{
    struct message m = question_of("", 2);
    struct dns_question q;

    (void)state;
    assert_int_equal(parse(&m, &q), DNS_NOERROR);
    assert_string_equal(q.name, "");
    assert_int_equal(q.question_bytes, 12 + 1 + 4);
}

static void every_type_can_be_asked_for_but_that_of_edns(void **state)
{
    static const unsigned types[] = {0, 1, 2, 5, 10, 16, 28, 33, 64, 65, 252, 255, 65535};
    struct message m = question_of("a.b", 41);
    struct dns_question q;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct message x = question_of("a.b", types[i]);

        assert_int_equal(parse(&x, &q), DNS_NOERROR);
        assert_int_equal(q.type, types[i]);
    }
    assert_answered_by(&m, DNS_FORMERR, m.len);
}

static void edns_says_how_much_the_asker_takes(void **state)
{
    static const struct {
        unsigned said, taken;
    } sizes[] = {{0, 512},   {1, 512},     {511, 512},    {512, 512},
                 {513, 513}, {4096, 4096}, {65535, 65535}};
    struct dns_question q;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct message m = question_with_opt("a.b", 1, sizes[i].said);

        assert_int_equal(parse(&m, &q), DNS_NOERROR);
        assert_true(q.edns);
        assert_int_equal(q.udp_bytes, sizes[i].taken);
        assert_int_equal(q.question_bytes, 12 + 5 + 4);
    }
}

static void options_of_edns_are_stepped_over(void **state)
{
    static const uint8_t cookie[] = {0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 12, 0, 0};
    struct dns_question q;

    (void)state;
    for (size_t n = 0; n <= sizeof cookie; n++) {
        struct message m = question_of("a.b", 1);
        bool whole = n == 0 || n == 12 || n == sizeof cookie;

        m.bytes[11] = 1;
        add_opt(&m, 1232, 0, cookie, n);
        assert_int_equal(parse(&m, &q), whole ? DNS_NOERROR : DNS_FORMERR);
    }
}

static void a_later_version_of_edns_is_answered_by_badvers(void **state)
{
    struct message m = question_of("a.b", 1);
    const struct dns_answer answer = {.rcode = DNS_BADVERS};
    struct dns_question q;
    uint8_t buf[512];

    (void)state;
    m.bytes[11] = 1;
    add_opt(&m, 1232, 1, NULL, 0);
    assert_int_equal(parse(&m, &q), DNS_BADVERS);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), 12 + 9 + 11);
    assert_int_equal(buf[3] & 0x0F, 0);   /* the lower four bits of 16 */
    assert_int_equal(buf[12 + 9 + 5], 1); /* the upper ones, first in the lifetime of OPT */
    assert_int_equal(buf[12 + 9 + 6], 0); /* version */
}

static void names_with_two_readings_are_faults(void **state)
{
    static const char *const bytes[] = {".",    " ",    "\t",   "\n",  "\x01",
                                        "\x7f", "\x80", "\xff", "\xc3"};
    static const uint8_t nul[] = {5, 'a', 0, '.', 'o', 'k', 4, 't', 'e', 's', 't', 0};
    struct message m = question_of_wire(nul, sizeof nul);
    struct dns_question q;

    (void)state;
    assert_int_equal(parse(&m, &q), DNS_FORMERR);
    assert_true(q.odd);
    assert_string_equal(q.name, "a??ok.test");
    assert_int_equal(q.question_bytes, m.len);
    for (size_t i = 0; i < ARRAY_SIZE(bytes); i++) {
        uint8_t wire[] = {3, 'a', (uint8_t)bytes[i][0], 'b', 4, 't', 'e', 's', 't', 0};

        m = question_of_wire(wire, sizeof wire);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
        assert_true(q.odd);
        assert_string_equal(q.name, "a?b.test");
    }
}

static void every_printable_byte_but_the_dot_reads_as_itself(void **state)
{
    struct dns_question q;

    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        uint8_t wire[] = {1, (uint8_t)c, 0};
        struct message m = question_of_wire(wire, sizeof wire);
        bool plain = c >= '!' && c <= '~' && c != '.';

        assert_int_equal(parse(&m, &q), plain ? DNS_NOERROR : DNS_FORMERR);
        assert_int_equal(q.odd, !plain);
        assert_int_equal(q.name[0], !plain ? '?' : c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
}

static void a_pointer_in_a_question_is_a_fault(void **state)
{
    static const uint8_t itself[] = {0xC0, 12}, header[] = {1, 'a', 0xC0, 0}, ahead[] = {0xC0, 20};
    static const uint8_t extended[] = {0x41, 0}, reserved[] = {0x80, 0};
    const struct message m[] = {
        question_of_wire(itself, sizeof itself),     question_of_wire(header, sizeof header),
        question_of_wire(ahead, sizeof ahead),       question_of_wire(extended, sizeof extended),
        question_of_wire(reserved, sizeof reserved),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(m); i++)
        assert_answered_by(&m[i], DNS_FORMERR, 0);
}

/* A name of labels of 63 bytes, its text of @len bytes in all. */
static void long_name(size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++)
        ret[i] = i % 64 == 63 ? '.' : 'a';
    ret[len] = '\0';
}

static void a_name_has_253_bytes_at_most_and_a_label_63(void **state)
{
    char name[300];
    struct dns_question q;
    struct message m;

    (void)state;
    long_name(253, name);
    m = question_of(name, 1);
    assert_int_equal(parse(&m, &q), DNS_NOERROR);
    assert_string_equal(q.name, name);
    assert_int_equal(q.question_bytes, 12 + 255 + 4);
    long_name(254, name);
    m = question_of(name, 1);
    assert_answered_by(&m, DNS_FORMERR, 0);
    long_name(299, name);
    m = question_of(name, 1);
    assert_answered_by(&m, DNS_FORMERR, 0);
    memset(name, 'a', 64);
    name[64] = '\0';
    m = question_of(name, 1); /* 64 is no length of a label, but another label type */
    assert_answered_by(&m, DNS_FORMERR, 0);
    m = question_of(name + 1, 1);
    assert_int_equal(parse(&m, &q), DNS_NOERROR);
}

static void a_cut_question_is_a_fault_or_none(void **state)
{
    const struct message whole = question_with_opt("a.bc", 1, 1232);
    struct dns_question q;

    (void)state;
    for (size_t len = 0; len < whole.len; len++) {
        struct message m = whole;
        bool with_question = len >= 12 + 6 + 4;

        m.len = len;
        if (len < 12)
            assert_int_equal(parse(&m, &q), -EPROTO);
        else
            assert_answered_by(&m, DNS_FORMERR, with_question ? 12 + 6 + 4 : 0);
    }
    assert_int_equal(parse(&whole, &q), DNS_NOERROR);
}

static void an_answer_is_no_question(void **state)
{
    struct message m = question_of("a.b", 1);
    struct dns_question q;

    (void)state;
    m.bytes[2] |= 0x80;
    assert_int_equal(parse(&m, &q), -EPROTO);
}

static void other_operations_are_not_implemented(void **state)
{
    (void)state;
    for (unsigned opcode = 1; opcode < 16; opcode++) {
        struct message m = question_of("a.b", 1);

        m.bytes[2] = (uint8_t)(opcode << 3);
        assert_answered_by(&m, DNS_NOTIMP, 0);
    }
}

static void a_cut_query_is_a_fault(void **state)
{
    struct message m = question_of("a.b", 1);

    (void)state;
    m.bytes[2] |= 0x02;
    assert_answered_by(&m, DNS_FORMERR, 0);
}

static void another_class_is_refused(void **state)
{
    static const uint8_t classes[] = {0, 3, 4, 254, 255};

    (void)state;
    for (size_t i = 0; i < sizeof classes; i++) {
        struct message m = question_of("version.bind", 16);

        m.bytes[m.len - 1] = classes[i];
        assert_answered_by(&m, DNS_REFUSED, m.len);
    }
}

static void there_is_exactly_one_question_and_nothing_else(void **state)
{
    struct message none = {.len = 0}, two = question_of("a.b", 1), more = question_of("a.b", 1);

    (void)state;
    add_header(&none, 0, 0, 0, 0, 0);
    assert_answered_by(&none, DNS_FORMERR, 0);
    two.bytes[5] = 2;
    add_name(&two, "c.d");
    add16(&two, 1);
    add16(&two, 1);
    assert_answered_by(&two, DNS_FORMERR, 0);
    add(&more, "", 1);
    assert_answered_by(&more, DNS_FORMERR, more.len - 1);
    for (size_t count = 7; count <= 11; count += 2) { /* records that are not there */
        struct message m = question_of("a.b", 1);

        m.bytes[count] = 1;
        assert_answered_by(&m, DNS_FORMERR, m.len);
    }
}

static void one_opt_is_allowed_and_no_other_record(void **state)
{
    struct message two = question_with_opt("a.b", 1, 1232),
                   tsig = question_with_opt("a.b", 1, 1232), named = question_of("a.b", 1),
                   after = question_with_opt("a.b", 1, 1232),
                   not_root = question_with_opt("a.b", 1, 1232);
    size_t question_bytes = named.len;

    (void)state;
    two.bytes[11] = 2;
    add_opt(&two, 1232, 0, NULL, 0);
    assert_answered_by(&two, DNS_FORMERR, question_bytes);
    tsig.bytes[question_bytes + 2] = 250;
    assert_answered_by(&tsig, DNS_FORMERR, question_bytes);
    named.bytes[11] = 1;
    add_name(&named, "x");
    named.len--; /* the label of OPT's owner, whose end add_opt() writes */
    add_opt(&named, 1232, 0, NULL, 0);
    assert_answered_by(&named, DNS_FORMERR, question_bytes);
    not_root.bytes[question_bytes] = 1;
    assert_answered_by(&not_root, DNS_FORMERR, question_bytes);
    add(&after, "", 1);
    assert_answered_by(&after, DNS_FORMERR, question_bytes);
}

static void a_message_has_4096_bytes_at_most(void **state)
{
    static uint8_t padding[8192] = {0, 12};
    struct dns_question q;

    (void)state;
    for (size_t over = 0; over < 2; over++) {
        struct message m = question_of("a.b", 1);
        size_t n = DNS_MESSAGE_BYTES_MAX + over - m.len - 11;

        m.bytes[11] = 1;
        padding[2] = (uint8_t)((n - 4) >> 8);
        padding[3] = (uint8_t)(n - 4);
        add_opt(&m, 1232, 0, padding, n);
        assert_int_equal(parse(&m, &q), over ? DNS_FORMERR : DNS_NOERROR);
    }
}

/* Answers */

static unsigned at16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static void an_answer_has_the_addresses_of_the_type(void **state)
{
    static const struct dns_address addresses[] = {
        {.bytes = {198, 18, 0, 2}},
        {.v6 = true, .bytes = {0xfd, 0, [15] = 2}},
        {.bytes = {198, 18, 0, 3}},
    };
    static const uint8_t expected[] = {0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 10, 0, 4, 198, 18, 0, 2};
    const struct dns_answer answer = {.addresses = addresses, .n_addresses = 3, .ttl = 10};
    struct message m = question_of("a.b", 1);
    struct dns_question q;
    uint8_t buf[512];

    (void)state;
    assert_int_equal(parse(&m, &q), 0);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), m.len + 32);
    assert_int_equal(at16(buf), 0x1234);
    assert_int_equal(at16(buf + 2), 0x8180); /* QR, RD, RA */
    assert_int_equal(at16(buf + 4), 1);
    assert_int_equal(at16(buf + 6), 2);
    assert_int_equal(at16(buf + 8), 0);
    assert_int_equal(at16(buf + 10), 0);
    assert_memory_equal(buf + m.len, expected, sizeof expected);
    m = question_of("a.b", 28);
    assert_int_equal(parse(&m, &q), 0);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), m.len + 28);
    assert_int_equal(at16(buf + 6), 1);
    assert_memory_equal(buf + m.len + 12, addresses[1].bytes, 16);
    m = question_of("a.b", 255);
    assert_int_equal(parse(&m, &q), 0);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), m.len);
}

static void the_question_is_echoed_with_the_case_of_its_letters(void **state)
{
    const struct dns_answer answer = {.rcode = DNS_NXDOMAIN};
    struct message m = question_of("wWw.eXaMpLe.OrG", 1);
    struct dns_question q;
    uint8_t buf[512];

    (void)state;
    assert_int_equal(parse(&m, &q), 0);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), m.len);
    assert_memory_equal(buf + 12, m.bytes + 12, m.len - 12);
    assert_int_equal(at16(buf + 2), 0x8183);
}

static void only_the_flags_that_are_the_askers_come_back(void **state)
{
    const struct dns_answer answer = {.rcode = DNS_NOERROR};
    struct message m = question_of("a.b", 1);
    struct dns_question q;
    uint8_t buf[512];

    (void)state;
    m.bytes[2] = 0x04; /* AA, no RD */
    m.bytes[3] = 0xFF; /* RA, Z, AD, CD, and an rcode */
    assert_int_equal(parse(&m, &q), 0);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), m.len);
    assert_int_equal(at16(buf + 2), 0x8090); /* QR, RA, CD */
}

static void an_opt_record_answers_one(void **state)
{
    static const uint8_t expected[] = {0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0};
    const struct dns_answer answer = {.rcode = DNS_NOERROR};
    struct message m = question_with_opt("a.b", 1, 1232);
    struct dns_question q;
    uint8_t buf[512];

    (void)state;
    assert_int_equal(parse(&m, &q), 0);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), m.len);
    assert_int_equal(at16(buf + 10), 1);
    assert_memory_equal(buf + q.question_bytes, expected, sizeof expected);
}

static void a_fault_is_answered_without_addresses(void **state)
{
    static const struct dns_address address = {.bytes = {1, 2, 3, 4}};
    const struct dns_answer answer = {DNS_SERVFAIL, &address, 1, 10};
    struct message m = question_of("a.b", 1), other = {.len = 0};
    struct dns_question q;
    uint8_t buf[512];

    (void)state;
    assert_int_equal(parse(&m, &q), 0);
    assert_int_equal(dns_answer_encode(m.bytes, &q, &answer, buf, sizeof buf), m.len);
    assert_int_equal(at16(buf + 6), 0);
    add_header(&other, 0x2900, 7, 7, 7, 7); /* UPDATE, of which nothing is echoed */
    assert_int_equal(parse(&other, &q), DNS_NOTIMP);
    assert_int_equal(dns_answer_encode(other.bytes, &q,
                                       &(struct dns_answer){DNS_NOTIMP, NULL, 0, 0}, buf,
                                       sizeof buf),
                     12);
    assert_int_equal(at16(buf + 2), 0xA984);
    for (size_t i = 4; i < 12; i++)
        assert_int_equal(buf[i], 0);
}

static void what_does_not_fit_is_cut_to_none(void **state)
{
    static struct dns_address addresses[40];
    const struct dns_answer answer = {DNS_NOERROR, addresses, ARRAY_SIZE(addresses), 10};
    const struct message m = question_with_opt("a.b", 1, 1232);
    struct dns_question q;
    size_t question, whole;

    (void)state;
    assert_int_equal(parse(&m, &q), 0);
    question = q.question_bytes;
    whole = question + ARRAY_SIZE(addresses) * 16 + 11;
    for (size_t size = 0; size < whole + 2; size++) {
        _cleanup_free_ uint8_t *buf = malloc(size > 0 ? size : 1);
        size_t n = dns_answer_encode(m.bytes, &q, &answer, buf, size);
        bool cut = size < whole, opt = size >= question + 11;

        if (size < question) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(n, !cut ? whole : question + (opt ? 11 : 0));
        assert_int_equal(at16(buf + 2), cut ? 0x8380 : 0x8180);
        assert_int_equal(at16(buf + 6), cut ? 0 : ARRAY_SIZE(addresses));
        assert_int_equal(at16(buf + 10), opt);
    }
}

/* The side of a name server */

static void a_query_is_written(void **state)
{
    static const uint8_t expected[] = {0x12, 0x34, 1,   0, 0,    1,   0, 0, 0, 0, 0,
                                       1,    1,    'a', 2, 'b',  'c', 0, 0, 1, 0, 1,
                                       0,    0,    41,  4, 0xD0, 0,   0, 0, 0, 0, 0};
    uint8_t buf[512];

    (void)state;
    assert_int_equal(dns_query_encode("A.bc", 1, 0x1234, buf, sizeof buf), sizeof expected);
    assert_memory_equal(buf, expected, sizeof expected);
    assert_int_equal(dns_query_encode("a.bc.", 1, 0x1234, buf, sizeof buf), sizeof expected);
    assert_memory_equal(buf, expected, sizeof expected);
    for (size_t size = 0; size < sizeof expected; size++)
        assert_int_equal(dns_query_encode("a.bc", 1, 0x1234, buf, size), 0);
}

static void what_is_no_name_is_not_asked_for(void **state)
{
    static const char *const names[] = {"",    ".",   "..",  ".a",     "a..b",
                                        "a..", "a b", "a\n", "a\x80z", "a\x01.b"};
    char name[300];
    uint8_t buf[512];
    struct dns_question q;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_int_equal(dns_query_encode(names[i], 1, 1, buf, sizeof buf), 0);
    long_name(253, name);
    assert_int_equal(dns_query_encode(name, 1, 1, buf, sizeof buf), 12 + 255 + 4 + 11);
    assert_int_equal(dns_question_parse(buf, 12 + 255 + 4 + 11, &q), 0);
    assert_string_equal(q.name, name);
    name[253] = '.';
    name[254] = '\0';
    assert_int_equal(dns_query_encode(name, 1, 1, buf, sizeof buf), 12 + 255 + 4 + 11);
    name[253] = 'a';
    assert_int_equal(dns_query_encode(name, 1, 1, buf, sizeof buf), 0);
    memset(name, 'a', 64);
    name[64] = '\0';
    assert_int_equal(dns_query_encode(name, 1, 1, buf, sizeof buf), 0);
}

static struct message result_of(const char *name, unsigned type, unsigned answers)
{
    struct message m = {.len = 0};

    add_header(&m, 0x8180, 1, answers, 0, 0);
    add_name(&m, name);
    add16(&m, type);
    add16(&m, 1);
    return m;
}

/* Everything of a record but its owner. */
static void add_data(struct message *m, unsigned type, uint32_t ttl, const void *data, size_t n)
{
    add16(m, type);
    add16(m, 1);
    add16(m, ttl >> 16);
    add16(m, ttl & 0xFFFF);
    add16(m, (unsigned)n);
    add(m, data, n);
}

static void add_a(struct message *m, const char *owner, uint32_t ttl, uint8_t last)
{
    const uint8_t a[] = {192, 0, 2, last};

    add_name(m, owner);
    add_data(m, 1, ttl, a, sizeof a);
}

static void add_cname(struct message *m, const char *owner, uint32_t ttl, const char *target)
{
    struct message data = {.len = 0};

    add_name(&data, target);
    add_name(m, owner);
    add_data(m, 5, ttl, data.bytes, data.len);
}

static int result(const struct message *m, const char *name, uint16_t type, struct dns_result *ret)
{
    _cleanup_free_ uint8_t *exact = malloc(m->len > 0 ? m->len : 1);

    assert_non_null(exact);
    memcpy(exact, m->bytes, m->len);
    return dns_result_parse(exact, m->len, name, type, 0x1234, ret);
}

static void a_result_has_the_addresses_of_the_name(void **state)
{
    static const uint8_t six[16] = {0x20, 1, 0xd, 0xb8, [15] = 7};
    struct message m = result_of("A.test", 1, 4);
    struct dns_result x;

    (void)state;
    add_a(&m, "other.test", 5, 9);
    add_a(&m, "a.TEST", 300, 1);
    add(&m, "\xC0\x0C", 2);
    add_data(&m, 1, 200, "\xC0\x00\x02\x02", 4);
    add(&m, "\xC0\x0C", 2);
    add_data(&m, 28, 1, six, 16); /* not asked for */
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.rcode, DNS_NOERROR);
    assert_int_equal(x.n_addresses, 2);
    assert_memory_equal(x.addresses[0].bytes, "\xC0\x00\x02\x01", 4);
    assert_memory_equal(x.addresses[1].bytes, "\xC0\x00\x02\x02", 4);
    assert_int_equal(x.ttl, 200);
    m = result_of("a.test", 28, 1);
    add(&m, "\xC0\x0C", 2);
    add_data(&m, 28, 0x80000001, six, 16);
    assert_int_equal(result(&m, "a.test.", 28, &x), 0);
    assert_int_equal(x.n_addresses, 1);
    assert_true(x.addresses[0].v6);
    assert_memory_equal(x.addresses[0].bytes, six, 16);
    assert_int_equal(x.ttl, 0); /* RFC 2181, section 8 */
}

static void aliases_are_followed_in_any_order(void **state)
{
    struct message m = result_of("a.test", 1, 4);
    struct dns_result x;

    (void)state;
    add_a(&m, "c.test", 100, 3);
    add_cname(&m, "b.test", 20, "c.test");
    add_cname(&m, "a.test", 60, "B.test");
    add_a(&m, "b.test", 1, 2); /* beside an alias: not of the name at its end */
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.n_addresses, 1);
    assert_int_equal(x.addresses[0].bytes[3], 3);
    assert_int_equal(x.ttl, 20);
}

static struct message chain_of(unsigned n)
{
    struct message m = result_of("n0.test", 1, n + 1);
    char from[32], to[32];

    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(from, sizeof from, "n%u.test", i);
        (void)snprintf(to, sizeof to, "n%u.test", i + 1);
        add_cname(&m, from, 60, to);
    }
    (void)snprintf(to, sizeof to, "n%u.test", n);
    add_a(&m, to, 60, 1);
    return m;
}

static void sixteen_aliases_are_followed_and_no_ring_of_them(void **state)
{
    struct message m = chain_of(16);
    struct dns_result x;

    (void)state;
    assert_int_equal(result(&m, "n0.test", 1, &x), 0);
    assert_int_equal(x.n_addresses, 1);
    m = chain_of(17);
    assert_int_equal(result(&m, "n0.test", 1, &x), -EPROTO);
    m = result_of("a.test", 1, 2);
    add_cname(&m, "a.test", 60, "b.test");
    add_cname(&m, "b.test", 60, "a.test");
    assert_int_equal(result(&m, "a.test", 1, &x), -EPROTO);
}

static void a_dot_within_a_label_is_not_the_dot_between_two(void **state)
{
    static const uint8_t owner[] = {6, 'a', '.', 't', 'e', 's', 't', 0};
    struct message m = result_of("a.test", 1, 1);
    struct dns_result x;

    (void)state;
    add(&m, owner, sizeof owner);
    add_data(&m, 1, 60, "\xC0\x00\x02\x01", 4);
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.n_addresses, 0);
}

static void pointers_lead_backwards_only(void **state)
{
    struct dns_result x;
    const struct message start = result_of("a.test", 1, 1);
    const size_t here = start.len;
    const struct {
        uint8_t bytes[6];
        size_t n;
        bool good;
    } owners[] = {
        {{0xC0, 12}, 2, true},
        {{1, 'a', 0xC0, 14}, 4, true},
        {{0xC0, (uint8_t)here}, 2, false},               /* to itself */
        {{1, 'a', 0xC0, (uint8_t)here}, 4, false},       /* to its own start */
        {{1, 'a', 0xC0, (uint8_t)(here + 2)}, 4, false}, /* to itself, after a label */
        {{0xC0, (uint8_t)(here + 2)}, 2, false},         /* forwards */
        {{0xFF, 0xFF}, 2, false},                        /* out of the message */
        {{0xC0, 0}, 2, false},                           /* into the header */
        {{0xC0, 11}, 2, false},
        {{0x40, 12}, 2, false}, /* other label types */
        {{0x80, 12}, 2, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
        struct message m = start;

        add(&m, owners[i].bytes, owners[i].n);
        add_data(&m, 1, 60, "\xC0\x00\x02\x01", 4);
        assert_int_equal(result(&m, "a.test", 1, &x), owners[i].good ? 0 : -EPROTO);
        if (owners[i].good)
            assert_int_equal(x.n_addresses, 1);
    }
}

static void a_name_longer_than_a_name_by_its_pointers_is_refused(void **state)
{
    char name[254];
    struct message m;
    struct dns_result x;

    (void)state;
    long_name(253, name);
    m = result_of(name, 1, 1);
    add(&m, "\x01x\xC0\x0C", 4);
    add_data(&m, 1, 60, "\xC0\x00\x02\x01", 4);
    assert_int_equal(result(&m, name, 1, &x), -EPROTO);
    m = result_of(name, 1, 1);
    add(&m, "\xC0\x0C", 2);
    add_data(&m, 1, 60, "\xC0\x00\x02\x01", 4);
    assert_int_equal(result(&m, name, 1, &x), 0);
    assert_int_equal(x.n_addresses, 1);
}

static void what_was_not_asked_for_is_no_answer(void **state)
{
    struct message m = result_of("a.test", 1, 1);
    struct dns_result x;

    (void)state;
    add_a(&m, "a.test", 60, 1);
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(result(&m, "b.test", 1, &x), -EPROTO);
    assert_int_equal(result(&m, "a.test", 28, &x), -EPROTO);
    assert_int_equal(dns_result_parse(m.bytes, m.len, "a.test", 1, 0x1235, &x), -EPROTO);
    for (size_t bit = 0; bit < 6; bit++) { /* QR, the four of the opcode, and the count */
        struct message other = m;

        if (bit < 5)
            other.bytes[2] ^= (uint8_t)(0x80 >> bit);
        else
            other.bytes[5] = 0;
        assert_int_equal(result(&other, "a.test", 1, &x), -EPROTO);
    }
    m.bytes[12 + 8 + 3] = 3; /* the question's class */
    assert_int_equal(result(&m, "a.test", 1, &x), -EPROTO);
}

static void records_of_another_class_are_left_out(void **state)
{
    struct message m = result_of("a.test", 1, 1);
    struct dns_result x;

    (void)state;
    add_a(&m, "a.test", 60, 1);
    m.bytes[m.len - 11] = 3;
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.n_addresses, 0);
    assert_int_equal(x.ttl, 0);
}

static void data_of_the_wrong_length_is_no_answer(void **state)
{
    struct dns_result x;

    (void)state;
    for (size_t n = 0; n < 8; n++) {
        struct message m = result_of("a.test", 1, 1);

        add(&m, "\xC0\x0C", 2);
        add_data(&m, 1, 60, "\1\2\3\4\5\6\7", n);
        assert_int_equal(result(&m, "a.test", 1, &x), n == 4 ? 0 : -EPROTO);
    }
    for (size_t n = 0; n < 5; n++) {
        struct message m = result_of("a.test", 1, 1);

        add(&m, "\xC0\x0C", 2);
        add_data(&m, 5, 60, "\1b\0\0", n);
        assert_int_equal(result(&m, "a.test", 1, &x), n == 3 ? 0 : -EPROTO);
    }
}

static void a_cut_result_says_so_and_one_cut_on_the_way_is_none(void **state)
{
    struct message m = result_of("a.test", 1, 2);
    struct dns_result x;

    (void)state;
    add_cname(&m, "a.test", 60, "b.test");
    add_a(&m, "b.test", 60, 1);
    for (size_t len = 0; len < m.len; len++) {
        struct message cut = m;

        cut.len = len;
        assert_int_equal(result(&cut, "a.test", 1, &x), -EPROTO);
        cut.bytes[2] |= 0x02;
        assert_int_equal(result(&cut, "a.test", 1, &x), len < 12 + 8 + 4 ? -EPROTO : 0);
        if (len >= 12 + 8 + 4)
            assert_true(x.truncated && x.n_addresses == 0);
    }
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_false(x.truncated);
}

static void an_rcode_is_told_with_its_upper_bits(void **state)
{
    struct message m = result_of("a.test", 1, 1);
    struct dns_result x;

    (void)state;
    m.bytes[3] |= 3;
    add_a(&m, "a.test", 60, 1);
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.rcode, DNS_NXDOMAIN);
    assert_int_equal(x.n_addresses, 0);
    m = result_of("a.test", 1, 0);
    m.bytes[11] = 1;
    add_opt(&m, 1232, 0x0100, NULL, 0); /* the upper bits, then version 0 */
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.rcode, DNS_BADVERS);
}

static void of_many_addresses_the_first_are_kept(void **state)
{
    struct message m = result_of("a.test", 1, DNS_ADDRESSES_MAX + 3);
    struct dns_result x;

    (void)state;
    for (unsigned i = 0; i < DNS_ADDRESSES_MAX + 3; i++)
        add_a(&m, "a.test", 600 - i, (uint8_t)i);
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.n_addresses, DNS_ADDRESSES_MAX);
    assert_int_equal(x.addresses[DNS_ADDRESSES_MAX - 1].bytes[3], DNS_ADDRESSES_MAX - 1);
    assert_int_equal(x.ttl, 600 - DNS_ADDRESSES_MAX + 1);
}

static void what_follows_the_records_is_not_looked_at(void **state)
{
    struct message m = result_of("a.test", 1, 1);
    struct dns_result x;

    (void)state;
    add_a(&m, "a.test", 60, 1);
    add(&m, "\xFF\xFF", 2);
    assert_int_equal(result(&m, "a.test", 1, &x), 0);
    assert_int_equal(x.n_addresses, 1);
}

static void a_query_is_what_a_question_parses_to(void **state)
{
    struct dns_question q;
    uint8_t buf[512];
    size_t n = dns_query_encode("_x.Example.org.", 28, 7, buf, sizeof buf);

    (void)state;
    assert_int_equal(dns_question_parse(buf, n, &q), DNS_NOERROR);
    assert_string_equal(q.name, "_x.example.org");
    assert_int_equal(q.type, 28);
    assert_int_equal(q.id, 7);
    assert_int_equal(q.flags, 0x0100);
    assert_int_equal(q.udp_bytes, 1232);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_read),
        cmocka_unit_test(the_root_is_a_name_without_text),
        cmocka_unit_test(every_type_can_be_asked_for_but_that_of_edns),
        cmocka_unit_test(edns_says_how_much_the_asker_takes),
        cmocka_unit_test(options_of_edns_are_stepped_over),
        cmocka_unit_test(a_later_version_of_edns_is_answered_by_badvers),
        cmocka_unit_test(names_with_two_readings_are_faults),
        cmocka_unit_test(every_printable_byte_but_the_dot_reads_as_itself),
        cmocka_unit_test(a_pointer_in_a_question_is_a_fault),
        cmocka_unit_test(a_name_has_253_bytes_at_most_and_a_label_63),
        cmocka_unit_test(a_cut_question_is_a_fault_or_none),
        cmocka_unit_test(an_answer_is_no_question),
        cmocka_unit_test(other_operations_are_not_implemented),
        cmocka_unit_test(a_cut_query_is_a_fault),
        cmocka_unit_test(another_class_is_refused),
        cmocka_unit_test(there_is_exactly_one_question_and_nothing_else),
        cmocka_unit_test(one_opt_is_allowed_and_no_other_record),
        cmocka_unit_test(a_message_has_4096_bytes_at_most),
        cmocka_unit_test(an_answer_has_the_addresses_of_the_type),
        cmocka_unit_test(the_question_is_echoed_with_the_case_of_its_letters),
        cmocka_unit_test(only_the_flags_that_are_the_askers_come_back),
        cmocka_unit_test(an_opt_record_answers_one),
        cmocka_unit_test(a_fault_is_answered_without_addresses),
        cmocka_unit_test(what_does_not_fit_is_cut_to_none),
        cmocka_unit_test(a_query_is_written),
        cmocka_unit_test(what_is_no_name_is_not_asked_for),
        cmocka_unit_test(a_result_has_the_addresses_of_the_name),
        cmocka_unit_test(aliases_are_followed_in_any_order),
        cmocka_unit_test(sixteen_aliases_are_followed_and_no_ring_of_them),
        cmocka_unit_test(a_dot_within_a_label_is_not_the_dot_between_two),
        cmocka_unit_test(pointers_lead_backwards_only),
        cmocka_unit_test(a_name_longer_than_a_name_by_its_pointers_is_refused),
        cmocka_unit_test(what_was_not_asked_for_is_no_answer),
        cmocka_unit_test(records_of_another_class_are_left_out),
        cmocka_unit_test(data_of_the_wrong_length_is_no_answer),
        cmocka_unit_test(a_cut_result_says_so_and_one_cut_on_the_way_is_none),
        cmocka_unit_test(an_rcode_is_told_with_its_upper_bits),
        cmocka_unit_test(of_many_addresses_the_first_are_kept),
        cmocka_unit_test(what_follows_the_records_is_not_looked_at),
        cmocka_unit_test(a_query_is_what_a_question_parses_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* ClientHellos: those of real clients, those that a hostile one would send, and every shorter form.
 */
#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/tls_hello.h"
#include "base/guards.h"

enum { SERVER_NAME = 0, EARLY_DATA = 42, ENCRYPTED_CLIENT_HELLO = 0xfe0d, PADDING = 21 };

/* Bytes that grow. */
struct bytes {
    uint8_t at[80 * 1024];
    size_t n;
};

static void put(struct bytes *b, const void *data, size_t n)
{
    assert_true(n <= sizeof b->at - b->n);
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

static void put_number(struct bytes *b, size_t number, unsigned bytes)
{
    while (bytes-- > 0)
        put(b, &(uint8_t){(uint8_t)(number >> 8 * bytes)}, 1);
}

static void put_zeros(struct bytes *b, size_t n)
{
    while (n-- > 0)
        put_number(b, 0, 1);
}

static void put_extension(struct bytes *b, unsigned kind, const void *data, size_t n)
{
    put_number(b, kind, 2);
    put_number(b, n, 2);
    put(b, data, n);
}

/* The extension server_name with one name of @n bytes. */
static void put_name(struct bytes *b, unsigned kind, const void *name, size_t n)
{
    put_number(b, SERVER_NAME, 2);
    put_number(b, n + 5, 2);
    put_number(b, n + 3, 2);
    put_number(b, kind, 1);
    put_number(b, n, 2);
    put(b, name, n);
}

/* A ClientHello's message with these extensions; NULL: without the list of them. */
static void make_message(struct bytes *b, const struct bytes *extensions)
{
    size_t body = 2 + 32 + 1 + 2 + 2 + 1 + 1 + (extensions ? 2 + extensions->n : 0);

    assert(b);
    b->n = 0;
    put_number(b, 1, 1);
    put_number(b, body, 3);
    put_number(b, 0x0303, 2);
    put_zeros(b, 32 + 1);
    put_number(b, 2, 2);
    put_number(b, 0x1301, 2);
    put_number(b, 0x0100, 2);
    if (extensions) {
        put_number(b, extensions->n, 2);
        put(b, extensions->at, extensions->n);
    }
}

/* The message in records of @piece bytes. */
static void put_records(struct bytes *b, const struct bytes *message, size_t piece)
{
    for (size_t at = 0; at < message->n; at += piece) {
        size_t n = message->n - at < piece ? message->n - at : piece;

        put_number(b, TLS_RECORD_HANDSHAKE, 1);
        put_number(b, 0x0301, 2);
        put_number(b, n, 2);
        put(b, message->at + at, n);
    }
}

/* All that a test needs, too large for its stack. */
struct fixture {
    struct bytes extensions, message, data;
    struct tls_hello hello;
};

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

/* In memory of its own, so that a sanitizer sees one byte too far. */
static enum tls_hello_state parse_exact(const uint8_t *data, size_t len, struct tls_hello *ret)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    enum tls_hello_state state;

    memcpy(exact, data, len);
    state = tls_hello_parse(exact, len, ret);
    free(exact);
    return state;
}

static enum tls_hello_state parse(struct fixture *f)
{
    return parse_exact(f->data.at, f->data.n, &f->hello);
}

/* What f->extensions make, as one record if that is possible. */
static enum tls_hello_state parse_extensions(struct fixture *f)
{
    make_message(&f->message, &f->extensions);
    f->data.n = 0;
    put_records(&f->data, &f->message, 1 << 14);
    return parse(f);
}

/* Every shorter form asks for more than there is, and for no more than there will be. */
static void every_prefix_asks_for_more(struct fixture *f)
{
    struct tls_hello hello;

    for (size_t len = 0; len < f->data.n; len++) {
        assert_int_equal(parse_exact(f->data.at, len, &hello), TLS_HELLO_MORE);
        assert_true(hello.need > len && hello.need <= f->data.n);
        assert_false(hello.named);
    }
}

static void read_corpus(const char *name, struct bytes *ret)
{
    char path[512];
    const char *source = getenv("ATOLL_SOURCE");

    (void)snprintf(path, sizeof path, "%s/tests/fuzz/corpus/tls_hello/%s", source ? source : ".",
                   name);
    FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("%s cannot be read", path);
    ret->n = fread(ret->at, 1, sizeof ret->at, file);
    (void)fclose(file);
}

static void the_name_that_a_real_client_sends_is_found(void **state)
{
    static const struct {
        const char *file, *name; /* NULL: none */
    } rows[] = {
        {"real-openssl", "example.org"},      {"real-openssl-no-name", NULL},
        {"real-curl", "example.org"},         {"real-curl-address", NULL},
        {"real-python", "example.org"},       {"real-openssl-tls12", "example.org"},
        {"real-node", "example.org"},         {"real-openssl-upper-case", "EXAMPLE.org"},
        {"real-go", "example.org"},           {"real-java", "example.org"},
        {"real-git", "example.org"},          {"real-node-many-alpn", "example.org"},
        {"real-go-ech", "outer.example.org"}, {"real-openssl-early-data", "example.org"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        read_corpus(rows[i].file, &f->data);
        assert_int_equal(parse(f), TLS_HELLO_DONE);
        assert_int_equal(f->hello.named, rows[i].name != NULL);
        assert_string_equal(f->hello.name, rows[i].name ? rows[i].name : "");
        assert_true(f->hello.bytes <= f->data.n);
        assert_int_equal(f->hello.encrypted, strstr(rows[i].file, "ech") != NULL);
        assert_int_equal(f->hello.early_data, strstr(rows[i].file, "early") != NULL);
        f->data.n = f->hello.bytes;
        every_prefix_asks_for_more(f);
    }
}

static void a_message_may_be_spread_over_records_of_any_size(void **state)
{
    struct fixture *f = *state;

    put_name(&f->extensions, 0, "example.org", 11);
    make_message(&f->message, &f->extensions);
    for (size_t piece = 1; piece <= f->message.n; piece++) {
        f->data.n = 0;
        put_records(&f->data, &f->message, piece);
        assert_int_equal(parse(f), TLS_HELLO_DONE);
        assert_string_equal(f->hello.name, "example.org");
        assert_int_equal(f->hello.bytes, f->data.n);
        every_prefix_asks_for_more(f);
    }
}

static void a_message_larger_than_a_record_is_read_whole(void **state)
{
    struct fixture *f = *state;
    uint8_t *filler = calloc(1, 20000);

    put_extension(&f->extensions, PADDING, filler, 20000);
    put_name(&f->extensions, 0, "last.example.org", 16);
    free(filler);
    assert_int_equal(parse_extensions(f), TLS_HELLO_DONE);
    assert_string_equal(f->hello.name, "last.example.org");
    assert_true(f->data.n > 20000 && f->hello.bytes == f->data.n);
}

static void a_hello_may_be_as_large_as_the_limit_and_no_larger(void **state)
{
    struct fixture *f = *state;
    size_t headers = 4 * 5, fixed = 4 + 41 + 2 + 4;
    uint8_t *filler = calloc(1, TLS_HELLO_BYTES_MAX);

    for (size_t more = 0; more < 2; more++) {
        f->extensions.n = 0;
        put_extension(&f->extensions, PADDING, filler,
                      TLS_HELLO_BYTES_MAX - headers - fixed + more);
        assert_int_equal(parse_extensions(f), more ? TLS_HELLO_BAD : TLS_HELLO_DONE);
        assert_int_equal(f->data.n, TLS_HELLO_BYTES_MAX + more);
        /* known from the first record's start, not waited for */
        assert_int_equal(tls_hello_parse(f->data.at, 9, &f->hello), TLS_HELLO_MORE);
    }
    free(filler);
    memcpy(f->data.at, "\x16\x03\x01\x00\x64\x01\x01\x00\x00", 9);
    assert_int_equal(tls_hello_parse(f->data.at, 9, &f->hello), TLS_HELLO_BAD);
}

static void records_of_one_byte_do_not_go_round_the_limit(void **state)
{
    struct fixture *f = *state;
    uint8_t *filler = calloc(1, 20000);

    put_extension(&f->extensions, PADDING, filler, 12000);
    free(filler);
    make_message(&f->message, &f->extensions);
    put_records(&f->data, &f->message, 1);
    assert_true(f->data.n > TLS_HELLO_BYTES_MAX);
    assert_int_equal(parse(f), TLS_HELLO_BAD);
    for (size_t len = 0; len < f->data.n; len += 97)
        if (tls_hello_parse(f->data.at, len, &f->hello) == TLS_HELLO_MORE)
            assert_true(f->hello.need > len && f->hello.need <= TLS_HELLO_BYTES_MAX);
}

static void what_is_not_tls_is_known_by_its_first_bytes(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"GET / HTTP/1.1\r\n", 16},          {"SSH-2.0-x\r\n", 11},
        {"\x80\x2e\x01\x03\x01", 5},         /* SSLv2 */
        {"\x15\x03\x01\x00\x02\x02\x28", 7}, /* an alert */
        {"\x17\x03\x03\x00\x01x", 6},        /* data */
        {"\x16\xfe\xff\x00\x00", 5},         /* DTLS 1.0 */
        {"\x16\x02\x00\x00\x2d", 5},         {"\0", 1},
    };
    struct tls_hello hello;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const uint8_t *data = (const uint8_t *)rows[i].bytes;
        size_t first = data[0] == TLS_RECORD_HANDSHAKE ? 2 : 1;

        for (size_t len = first; len <= rows[i].len; len++)
            assert_int_equal(parse_exact(data, len, &hello), TLS_HELLO_NOT_TLS);
    }
    assert_int_equal(tls_hello_parse((const uint8_t *)"", 0, &hello), TLS_HELLO_MORE);
    assert_int_equal(hello.need, 5);
}

static void damaged_records_are_refused_from_their_headers(void **state)
{
    static const char *const rows[] = {
        "\x16\x03\x01\x00\x00",             /* empty */
        "\x16\x03\x01\x40\x01",             /* above 2^14 */
        "\x16\x03\x01\x00\x40\x02\0\0",     /* a ServerHello */
        "\x16\x03\x01\x00\x40\x01\0\0\x28", /* shorter than any */
        "\x16\x03\x01\x00\x40\x01\0\0\x30", /* more in its record than the message has */
    };
    static const size_t lengths[] = {5, 5, 6, 9, 9};
    struct tls_hello hello;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const uint8_t *data = (const uint8_t *)rows[i];

        assert_int_equal(parse_exact(data, lengths[i], &hello), TLS_HELLO_BAD);
        assert_int_equal(parse_exact(data, lengths[i] - 1, &hello), TLS_HELLO_MORE);
    }
}

static void every_record_of_the_message_is_of_the_same_kind(void **state)
{
    static const uint8_t alert[] = {21, 3, 1, 0, 2, 1, 0};
    struct fixture *f = *state;
    size_t at;

    put_name(&f->extensions, 0, "example.org", 11);
    make_message(&f->message, &f->extensions);
    put_records(&f->data, &f->message, 40);
    at = 45;
    memmove(f->data.at + at + sizeof alert, f->data.at + at, f->data.n - at);
    memcpy(f->data.at + at, alert, sizeof alert);
    f->data.n += sizeof alert;
    assert_int_equal(parse(f), TLS_HELLO_BAD);
    f->data.at[at] = TLS_RECORD_HANDSHAKE;
    f->data.at[at + 1] = 2;
    assert_int_equal(parse(f), TLS_HELLO_BAD);
}

static void nothing_may_follow_within_the_record(void **state)
{
    struct fixture *f = *state;

    put_name(&f->extensions, 0, "example.org", 11);
    make_message(&f->message, &f->extensions);
    put_number(&f->message, 14, 1);
    put_records(&f->data, &f->message, 1 << 14);
    assert_int_equal(parse(f), TLS_HELLO_BAD);
}

static void what_follows_the_records_is_left_alone(void **state)
{
    struct fixture *f = *state;
    size_t whole;

    put_name(&f->extensions, 0, "example.org", 11);
    put_extension(&f->extensions, EARLY_DATA, "", 0);
    assert_int_equal(parse_extensions(f), TLS_HELLO_DONE);
    whole = f->data.n;
    put(&f->data, "\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x02xy", 13);
    assert_int_equal(parse(f), TLS_HELLO_DONE);
    assert_int_equal(f->hello.bytes, whole);
    assert_true(f->hello.early_data);
    assert_false(f->hello.encrypted);
}

static void an_encrypted_hello_is_seen_beside_the_outer_name(void **state)
{
    struct fixture *f = *state;

    put_extension(&f->extensions, 0x1a1a, "", 0); /* GREASE (RFC 8701) */
    put_extension(&f->extensions, ENCRYPTED_CLIENT_HELLO, "\0\0\1", 3);
    put_name(&f->extensions, 0, "outer.example.org", 17);
    put_extension(&f->extensions, 0x2a2a, "\0", 1);
    assert_int_equal(parse_extensions(f), TLS_HELLO_DONE);
    assert_true(f->hello.encrypted && f->hello.named && !f->hello.early_data);
    assert_string_equal(f->hello.name, "outer.example.org");
}

static void a_hello_without_a_name_is_whole(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(parse_extensions(f), TLS_HELLO_DONE);
    assert_false(f->hello.named);
    make_message(&f->message, NULL);
    f->data.n = 0;
    put_records(&f->data, &f->message, 1 << 14);
    assert_int_equal(parse(f), TLS_HELLO_DONE);
    assert_false(f->hello.named);
    assert_string_equal(f->hello.name, "");
}

static void a_name_is_taken_as_it_stands_there(void **state)
{
    static const char *const names[] = {"192.0.2.1", "example.org.", "a b", "x\x01\xff", "EXAMPLE"};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        f->extensions.n = 0;
        put_name(&f->extensions, 0, names[i], strlen(names[i]));
        assert_int_equal(parse_extensions(f), TLS_HELLO_DONE);
        assert_string_equal(f->hello.name, names[i]);
    }
}

static void a_name_that_is_empty_too_long_or_has_a_zero_byte_is_damage(void **state)
{
    struct fixture *f = *state;
    char name[TLS_SERVER_NAME_MAX + 1];

    memset(name, 'a', sizeof name);
    put_name(&f->extensions, 0, name, TLS_SERVER_NAME_MAX);
    assert_int_equal(parse_extensions(f), TLS_HELLO_DONE);
    assert_int_equal(strlen(f->hello.name), TLS_SERVER_NAME_MAX);
    f->extensions.n = 0;
    put_name(&f->extensions, 0, name, TLS_SERVER_NAME_MAX + 1);
    assert_int_equal(parse_extensions(f), TLS_HELLO_BAD);
    f->extensions.n = 0;
    put_name(&f->extensions, 0, "", 0);
    assert_int_equal(parse_extensions(f), TLS_HELLO_BAD);
    f->extensions.n = 0;
    put_name(&f->extensions, 0, "example.org\0.evil.test", 22);
    assert_int_equal(parse_extensions(f), TLS_HELLO_BAD);
    assert_false(f->hello.named);
    assert_string_equal(f->hello.name, "");
}

static void two_names_or_two_lists_of_them_are_damage(void **state)
{
    static const uint8_t two[] = {0, 8, 0, 0, 1, 'a', 0, 0, 1, 'b'};
    static const uint8_t other_kind[] = {0, 8, 7, 0, 1, 'a', 0, 0, 1, 'b'};
    static const uint8_t other_kind_twice[] = {0, 8, 7, 0, 1, 'a', 7, 0, 1, 'b'};
    struct fixture *f = *state;

    put_extension(&f->extensions, SERVER_NAME, two, sizeof two);
    assert_int_equal(parse_extensions(f), TLS_HELLO_BAD);
    f->extensions.n = 0;
    put_extension(&f->extensions, SERVER_NAME, other_kind_twice, sizeof other_kind_twice);
    assert_int_equal(parse_extensions(f), TLS_HELLO_BAD);
    f->extensions.n = 0;
    put_extension(&f->extensions, SERVER_NAME, other_kind, sizeof other_kind);
    assert_int_equal(parse_extensions(f), TLS_HELLO_DONE);
    assert_string_equal(f->hello.name, "b");
    f->extensions.n = 0;
    put_name(&f->extensions, 0, "a", 1);
    put_name(&f->extensions, 0, "a", 1);
    assert_int_equal(parse_extensions(f), TLS_HELLO_BAD);
    f->extensions.n = 0;
    put_extension(&f->extensions, 0x4a4a, "", 0);
    put_extension(&f->extensions, 0x4a4a, "", 0);
    assert_int_equal(parse_extensions(f), TLS_HELLO_BAD);
}

static void a_length_that_does_not_add_up_is_damage_wherever_it_stands(void **state)
{
    static const struct {
        size_t at; /* in the message */
        int change;
    } rows[] = {
        {38, 1}, {38, 33}, /* session id */
        {40, 1}, {40, -2}, /* cipher suites */
        {43, 1}, {43, -1}, /* compression methods */
        {46, 1}, {46, -1}, /* extensions */
        {50, 1}, {50, -1}, /* the extension */
        {52, 1}, {52, -1}, /* the list of names */
        {55, 1}, {55, -1}, /* the name */
    };
    struct fixture *f = *state;

    put_name(&f->extensions, 0, "example.org", 11);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        make_message(&f->message, &f->extensions);
        f->message.at[rows[i].at] = (uint8_t)(f->message.at[rows[i].at] + rows[i].change);
        f->data.n = 0;
        put_records(&f->data, &f->message, 1 << 14);
        assert_int_equal(parse(f), TLS_HELLO_BAD);
    }
}

static void an_older_version_than_ssl_3_is_no_client_hello(void **state)
{
    struct fixture *f = *state;

    make_message(&f->message, &f->extensions);
    f->message.at[4] = 2;
    put_records(&f->data, &f->message, 1 << 14);
    assert_int_equal(parse(f), TLS_HELLO_BAD);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_name_that_a_real_client_sends_is_found),
        CASE(a_message_may_be_spread_over_records_of_any_size),
        CASE(a_message_larger_than_a_record_is_read_whole),
        CASE(a_hello_may_be_as_large_as_the_limit_and_no_larger),
        CASE(records_of_one_byte_do_not_go_round_the_limit),
        CASE(what_is_not_tls_is_known_by_its_first_bytes),
        CASE(damaged_records_are_refused_from_their_headers),
        CASE(every_record_of_the_message_is_of_the_same_kind),
        CASE(nothing_may_follow_within_the_record),
        CASE(what_follows_the_records_is_left_alone),
        CASE(an_encrypted_hello_is_seen_beside_the_outer_name),
        CASE(a_hello_without_a_name_is_whole),
        CASE(a_name_is_taken_as_it_stands_there),
        CASE(a_name_that_is_empty_too_long_or_has_a_zero_byte_is_damage),
        CASE(two_names_or_two_lists_of_them_are_damage),
        CASE(a_length_that_does_not_add_up_is_damage_wherever_it_stands),
        CASE(an_older_version_than_ssl_3_is_no_client_hello),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a command is told of refused attempts: each once, few in words, all counted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "keeper/command_denials.h"
#include "keeper/events.h"
#include "wire/control.h"
#include "base/guards.h"

static struct denial attempt(const char *name, uint32_t port)
{
    return (struct denial){.protocol = DENIAL_TCP,
                           .name = name,
                           .address = "198.18.0.9",
                           .port = port,
                           .rule = "no rule",
                           .reason = "nothing lists it"};
}

/* Encoded into an exact buffer, which the caller frees. */
static struct reader encoded(const struct command_denials *d, uint8_t **ret)
{
    size_t size = command_denials_size(d);
    struct writer w;

    *ret = malloc(size + 1);
    assert_non_null(*ret);
    w = writer_over(*ret, size);
    command_denials_encode(&w, d);
    assert_false(w.bad);
    return reader_over(*ret, writer_len(&w));
}

static void nothing_takes_no_memory_and_no_bytes(void **state)
{
    uint8_t buf[16];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    assert_int_equal(command_denials_size(NULL), 0);
    command_denials_encode(&w, NULL);
    assert_int_equal(writer_len(&w), 0);
    command_denials_free(NULL);
}

static void the_same_attempt_is_told_once(void **state)
{
    struct command_denials *d = NULL;
    _cleanup_free_ uint8_t *buf = NULL;
    struct denial x = attempt("a.test", 443), y = attempt("a.test", 80), z;

    (void)state;
    x.bytes = 10;
    assert_int_equal(command_denials_note(&d, &x), 0);
    x.repeated = 4; /* and four that were not told one by one */
    assert_int_equal(command_denials_note(&d, &x), 0);
    assert_int_equal(command_denials_note(&d, &y), 0);
    y.protocol = DENIAL_HTTP;
    assert_int_equal(command_denials_note(&d, &y), 0);
    struct reader r = encoded(d, &buf);
    assert_int_equal(exit_denial_next(&r, &z), 1);
    assert_int_equal(z.port, 443);
    assert_true(z.repeated == 5 && z.bytes == 20);
    assert_int_equal(exit_denial_next(&r, &z), 1);
    assert_int_equal(z.port, 80);
    assert_int_equal(exit_denial_next(&r, &z), 1);
    assert_int_equal(z.protocol, DENIAL_HTTP);
    assert_int_equal(exit_denial_next(&r, &z), 0);
    command_denials_free(d);
}

static void what_is_too_much_is_counted_once_each(void **state)
{
    struct command_denials *d = NULL;
    _cleanup_free_ uint8_t *buf = NULL;
    char name[32];
    struct denial x, z;
    int n = 0;

    (void)state;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < DENIALS_OF_COMMAND + 50; i++) {
            (void)snprintf(name, sizeof name, "n%d.test", i);
            x = attempt(name, 443);
            assert_int_equal(command_denials_note(&d, &x), 0);
        }
    x.dropped = 1000; /* that egress could not tell */
    assert_int_equal(command_denials_note(&d, &x), 0);
    struct reader r = encoded(d, &buf), all = r;
    while (exit_denial_next(&r, &z) > 0)
        n++;
    assert_int_equal(n, DENIALS_OF_COMMAND);
    assert_true(exit_denials_more(all) == 1050);
    command_denials_free(d);
}

static void long_texts_fit(void **state)
{
    struct command_denials *d = NULL;
    _cleanup_free_ uint8_t *buf = NULL;
    char text[DENIAL_TEXT_MAX];
    struct denial z;
    int n = 0;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (uint32_t i = 0; i < 40; i++) {
        const struct denial x = {.protocol = DENIAL_UDP,
                                 .name = text,
                                 .address = text,
                                 .port = i,
                                 .rule = text,
                                 .reason = text};

        assert_int_equal(command_denials_note(&d, &x), 0);
    }
    struct reader r = encoded(d, &buf);
    assert_true(reader_left(&r) < MESSAGE_BYTES_MAX / 8);
    while (exit_denial_next(&r, &z) > 0)
        n++;
    assert_int_equal(n, DENIALS_OF_COMMAND);
    command_denials_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_takes_no_memory_and_no_bytes),
        cmocka_unit_test(the_same_attempt_is_told_once),
        cmocka_unit_test(what_is_too_much_is_counted_once_each),
        cmocka_unit_test(long_texts_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the protocol: round trips, damage, every shorter form, and its document. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/control.h"
#include "wire/denial.h"
#include "truncated.h"
#include "base/guards.h"

enum { STRINGS = 32 };

static struct reader message(const struct writer *w)
{
    return reader_over(w->start, writer_len(w));
}

/* A message of one number field. */
static struct writer one_number(uint8_t *buf, size_t size, uint16_t tag, uint32_t v)
{
    struct writer w = writer_over(buf, size);

    field_put_u32(&w, tag, v);
    return w;
}

static struct writer full_request(uint8_t *buf, size_t size)
{
    const char *argv[] = {"sh", "-c", "echo \"a b\"", ""}, *envp[] = {"A=1", "B="};
    const struct exec_request x = {
        .argv = argv,
        .envp = envp,
        .n_argv = ARRAY_SIZE(argv),
        .n_envp = ARRAY_SIZE(envp),
        .workdir = "/workspace",
        .uid = 1000,
        .gid = 100,
        .flags = EXEC_STDIN | EXEC_TTY | EXEC_IN_BAND | EXEC_USER_SET,
        .timeout_us = UINT64_C(1) << 40,
        .rows = 24,
        .columns = 80,
    };
    struct writer w = writer_over(buf, size);

    exec_request_encode(&w, &x);
    assert_false(w.bad);
    assert_true(writer_len(&w) <= exec_request_size(&x));
    return w;
}

static void a_request_comes_back_as_it_was_written(void **state)
{
    const char *strings[STRINGS];
    uint8_t buf[512];
    struct writer w = full_request(buf, sizeof buf);
    struct exec_request x;

    (void)state;
    assert_int_equal(exec_request_decode(message(&w), strings, STRINGS, &x), 0);
    assert_int_equal(x.n_argv, 4);
    assert_string_equal(x.argv[2], "echo \"a b\"");
    assert_string_equal(x.argv[3], "");
    assert_null(x.argv[4]);
    assert_int_equal(x.n_envp, 2);
    assert_string_equal(x.envp[1], "B=");
    assert_null(x.envp[2]);
    assert_string_equal(x.workdir, "/workspace");
    assert_int_equal(x.uid, 1000);
    assert_int_equal(x.gid, 100);
    assert_int_equal(x.flags, EXEC_STDIN | EXEC_TTY | EXEC_IN_BAND | EXEC_USER_SET);
    assert_true(x.timeout_us == UINT64_C(1) << 40);
    assert_int_equal(x.rows, 24);
    assert_int_equal(x.columns, 80);
}

static void a_small_request_has_defaults(void **state)
{
    const char *strings[STRINGS], *argv[] = {"true"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);
    struct exec_request x = {.argv = argv, .n_argv = 1};

    (void)state;
    exec_request_encode(&w, &x);
    assert_int_equal(exec_request_decode(message(&w), strings, STRINGS, &x), 0);
    assert_int_equal(x.n_argv, 1);
    assert_int_equal(x.n_envp, 0);
    assert_null(x.envp[0]);
    assert_null(x.workdir);
    assert_int_equal(x.flags, 0);
    assert_int_equal(x.timeout_us, 0);
}

static void a_request_needs_room_for_its_strings(void **state)
{
    const char *strings[STRINGS];
    uint8_t buf[512];
    struct writer w = full_request(buf, sizeof buf);
    struct exec_request x;

    (void)state;
    for (size_t max = 0; max < 4 + 1 + 2 + 1; max++) {
        memset(strings, 0x5A, sizeof strings);
        assert_int_equal(exec_request_decode(message(&w), strings, max, &x), -E2BIG);
        for (size_t i = max; i < STRINGS; i++) /* nothing behind the room was written */
            assert_int_equal((uintptr_t)strings[i], UINT64_C(0x5A5A5A5A5A5A5A5A));
    }
    assert_int_equal(exec_request_decode(message(&w), strings, 4 + 1 + 2 + 1, &x), 0);
}

static int decode_request(struct reader m)
{
    const char *strings[STRINGS];
    struct exec_request x;

    return exec_request_decode(m, strings, STRINGS, &x);
}

static void a_damaged_request_is_refused(void **state)
{
    uint8_t buf[512];
    struct writer w = full_request(buf, sizeof buf);

    (void)state;
    decode_truncated(&w, decode_request);

    w = writer_over(buf, sizeof buf); /* no argument at all */
    field_put_string(&w, TAG_ENV, "A=1");
    assert_int_equal(decode_request(message(&w)), -EPROTO);

    w = writer_over(buf, sizeof buf); /* a NUL inside an argument */
    field_put_bytes(&w, TAG_ARG, "a\0b", 4);
    assert_int_equal(decode_request(message(&w)), -EPROTO);

    static const uint16_t numbers[] = {TAG_UID,        TAG_GID,  TAG_EXEC_FLAGS,
                                       TAG_TIMEOUT_US, TAG_ROWS, TAG_COLUMNS};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) { /* a number of the wrong size */
        w = writer_over(buf, sizeof buf);
        field_put_string(&w, TAG_ARG, "true");
        field_put_bytes(&w, numbers[i], "123", 3);
        assert_int_equal(decode_request(message(&w)), -EPROTO);
    }

    w = writer_over(buf, sizeof buf); /* more rows than a terminal has */
    field_put_string(&w, TAG_ARG, "true");
    field_put_u32(&w, TAG_ROWS, 65536);
    assert_int_equal(decode_request(message(&w)), -EPROTO);
}

static void unknown_fields_are_skipped(void **state)
{
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct exit_report report;
    struct hello hello;

    (void)state;
    field_put_bytes(&w, 60000, "new", 3);
    field_put_string(&w, TAG_ARG, "true");
    field_put_u64(&w, 60001, 7);
    assert_int_equal(decode_request(message(&w)), 0);
    field_put_u32(&w, TAG_EXIT_CODE, 3);
    field_put_u32(&w, TAG_VERSION_MAJOR, 1);
    assert_int_equal(exit_report_decode(message(&w), &report), 0);
    assert_int_equal(report.exit_code, 3);
    assert_int_equal(hello_decode(message(&w), &hello), 0);
}

static int decode_report(struct reader m)
{
    struct exit_report x;

    return exit_report_decode(m, &x);
}

static void a_report_comes_back_as_it_was_written(void **state)
{
    const struct exit_report ran = {.signal = 9,
                                    .reason = REASON_TIMEOUT,
                                    .wall_us = 1,
                                    .user_us = 2,
                                    .system_us = 3,
                                    .peak_rss_bytes = UINT64_MAX,
                                    .timeout_us = 5,
                                    .left_empty = 1};
    const struct exit_report failed = {.exit_code = 126,
                                       .start_stage = START_EXEC,
                                       .start_errno = 2,
                                       .interpreter = "/bin/absent"};
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct exit_report x;

    (void)state;
    exit_report_encode(&w, &ran);
    assert_int_equal(exit_report_decode(message(&w), &x), 0);
    assert_memory_equal(&x, &ran, sizeof x);
    decode_truncated(&w, decode_report);
    w = writer_over(buf, sizeof buf);
    exit_report_encode(&w, &failed);
    assert_int_equal(exit_report_decode(message(&w), &x), 0);
    assert_int_equal(x.exit_code, 126);
    assert_int_equal(x.start_stage, START_EXEC);
    assert_int_equal(x.start_errno, 2);
    assert_string_equal(x.interpreter, "/bin/absent");
    decode_truncated(&w, decode_report);
}

static void a_report_out_of_range_is_refused(void **state)
{
    static const struct {
        uint16_t tag;
        uint32_t last_good;
    } rows[] = {{TAG_EXIT_CODE, 255},
                {TAG_SIGNAL, 64},
                {TAG_REASON, REASON__MAX - 1},
                {TAG_START_STAGE, START__MAX - 1},
                {TAG_START_ERRNO, 4095}};
    char name[INTERPRETER_BYTES_MAX + 2];
    uint8_t buf[512];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct writer w = one_number(buf, sizeof buf, rows[i].tag, rows[i].last_good);
        assert_int_equal(decode_report(message(&w)), 0);
        w = one_number(buf, sizeof buf, rows[i].tag, rows[i].last_good + 1);
        assert_int_equal(decode_report(message(&w)), -EPROTO);
        w = one_number(buf, sizeof buf, rows[i].tag, UINT32_MAX);
        assert_int_equal(decode_report(message(&w)), -EPROTO);
    }
    memset(name, 'i', sizeof name);
    for (size_t extra = 0; extra < 2; extra++) {
        struct writer w = writer_over(buf, sizeof buf);

        name[INTERPRETER_BYTES_MAX + extra] = '\0';
        field_put_string(&w, TAG_INTERPRETER, name);
        name[INTERPRETER_BYTES_MAX + extra] = 'i';
        assert_int_equal(decode_report(message(&w)), extra == 0 ? 0 : -EPROTO);
    }
}

static int decode_hello(struct reader m)
{
    struct hello x;

    return hello_decode(m, &x);
}

static void a_greeting_needs_a_major_version(void **state)
{
    const struct hello hello = {7, 9, "a program"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);
    struct hello x;

    (void)state;
    hello_encode(&w, &hello);
    assert_int_equal(hello_decode(message(&w), &x), 0);
    assert_int_equal(x.major, 7);
    assert_int_equal(x.minor, 9);
    assert_string_equal(x.program, "a program");
    decode_truncated(&w, decode_hello);
    w = one_number(buf, sizeof buf, TAG_VERSION_MINOR, 1);
    assert_int_equal(decode_hello(message(&w)), -EPROTO);
    assert_int_equal(decode_hello(reader_over(buf, 0)), -EPROTO);
}

static int decode_stream(struct reader m)
{
    struct stream_data x;

    return stream_data_decode(m, &x);
}

static void stream_bytes_and_credit_come_back(void **state)
{
    const struct stream_data data = {
        .stream = STREAM_STDERR, .data = (const uint8_t *)"by\0tes", .len = 6};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);
    struct stream_data x;

    (void)state;
    stream_data_encode(&w, &data);
    assert_int_equal(stream_data_decode(message(&w), &x), 0);
    assert_int_equal(x.stream, STREAM_STDERR);
    assert_int_equal(x.len, 6);
    assert_memory_equal(x.data, "by\0tes", 6);
    assert_true(x.data >= buf && x.data + x.len <= buf + writer_len(&w));
    decode_truncated(&w, decode_stream);
    w = writer_over(buf, sizeof buf);
    stream_credit_encode(&w, STREAM_STDOUT, 4096);
    assert_int_equal(stream_data_decode(message(&w), &x), 0);
    assert_int_equal(x.stream, STREAM_STDOUT);
    assert_int_equal(x.credit, 4096);
    assert_int_equal(x.len, 0);
    decode_truncated(&w, decode_stream);
    w = one_number(buf, sizeof buf, TAG_STREAM, STREAM__MAX);
    assert_int_equal(decode_stream(message(&w)), -EPROTO);
    w = one_number(buf, sizeof buf, TAG_CREDIT, 1); /* of which stream? */
    assert_int_equal(decode_stream(message(&w)), -EPROTO);
}

static int decode_step(struct reader m)
{
    struct step_report x;

    return step_report_decode(m, &x);
}

static void a_step_comes_back_as_it_was_written(void **state)
{
    const struct step_report step = {.index = 3, .error = 13, .us = 99, .text = "proc /proc"};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct step_report x;

    (void)state;
    step_report_encode(&w, &step);
    assert_int_equal(step_report_decode(message(&w), &x), 0);
    assert_int_equal(x.index, 3);
    assert_int_equal(x.error, 13);
    assert_int_equal(x.us, 99);
    assert_string_equal(x.text, "proc /proc");
    decode_truncated(&w, decode_step);
    w = one_number(buf, sizeof buf, TAG_ERROR_CODE, 4096);
    assert_int_equal(decode_step(message(&w)), -EPROTO);
    assert_int_equal(step_report_decode(reader_over(buf, 0), &x), 0);
    assert_string_equal(x.text, "");
}

static int decode_number(struct reader m)
{
    uint32_t v;

    return number_decode(m, TAG_PID, &v);
}

static int decode_size(struct reader m)
{
    uint16_t rows, columns;

    return size_decode(m, &rows, &columns);
}

static void single_numbers_and_sizes_are_read(void **state)
{
    uint8_t buf[128];
    struct writer w = one_number(buf, sizeof buf, TAG_PID, 77);
    uint16_t rows, columns;
    uint32_t v;

    (void)state;
    assert_int_equal(number_decode(message(&w), TAG_PID, &v), 0);
    assert_int_equal(v, 77);
    decode_truncated(&w, decode_number);
    assert_int_equal(number_decode(message(&w), TAG_SIGNAL, &v), -EPROTO);
    assert_int_equal(number_decode(reader_over(buf, 0), TAG_PID, &v), -EPROTO);
    w = writer_over(buf, sizeof buf);
    field_put_bytes(&w, TAG_PID, "12345678", 8);
    assert_int_equal(number_decode(message(&w), TAG_PID, &v), -EPROTO);
    w = writer_over(buf, sizeof buf);
    field_put_u32(&w, TAG_ROWS, 65535);
    field_put_u32(&w, TAG_COLUMNS, 1);
    assert_int_equal(size_decode(message(&w), &rows, &columns), 0);
    assert_int_equal(rows, 65535);
    assert_int_equal(columns, 1);
    decode_truncated(&w, decode_size);
    w = one_number(buf, sizeof buf, TAG_ROWS, 1);
    assert_int_equal(decode_size(message(&w)), -EPROTO);
    field_put_u32(&w, TAG_COLUMNS, 65536);
    assert_int_equal(decode_size(message(&w)), -EPROTO);
}

static void reasons_and_ends_have_words(void **state)
{
    (void)state;
    assert_string_equal(exit_reason_name(REASON_EXITED), "exited");
    assert_string_equal(exit_reason_name(REASON_TIMEOUT), "timeout");
    assert_string_equal(exit_reason_name(REASON_OOM), "oom");
    assert_string_equal(exit_reason_name(REASON_KILLED), "killed");
    assert_string_equal(exit_reason_name(REASON_LIFETIME), "lifetime");
    assert_string_equal(exit_reason_name(REASON_ERROR), "error");
    assert_string_equal(exit_reason_name(REASON_COST), "cost");
    assert_string_equal(exit_reason_name(UINT32_MAX), "error");
    assert_string_equal(ended_by_name(ENDED_DESTROYED), "destroyed");
    assert_string_equal(ended_by_name(ENDED_LIFETIME), "lifetime");
    assert_string_equal(ended_by_name(ENDED_IDLE), "idle");
    assert_string_equal(ended_by_name(ENDED_OOM), "oom");
    assert_string_equal(ended_by_name(ENDED_KILLED), "killed");
    assert_string_equal(ended_by_name(ENDED_CALLER_DIED), "caller_died");
    assert_string_equal(ended_by_name(ENDED_ERROR), "error");
    assert_string_equal(ended_by_name(ENDED_COST), "cost");
    assert_string_equal(ended_by_name(ENDED__MAX), "error");
}

static void an_earlier_peer_is_told_what_it_knows(void **state)
{
    (void)state;
    for (uint32_t minor = 0; minor <= 4; minor++) {
        for (uint32_t r = 0; r < REASON__MAX; r++)
            assert_int_equal(exit_reason_for(r, minor),
                             r == REASON_COST && minor < 3 ? REASON_KILLED : r);
        for (uint32_t by = 0; by < ENDED__MAX; by++)
            assert_int_equal(ended_by_for(by, minor),
                             by == ENDED_COST && minor < 3 ? ENDED_KILLED : by);
    }
}

static const struct denial denied = {
    .protocol = DENIAL_TLS,
    .name = "x.test",
    .address = "198.18.0.7",
    .port = 443,
    .rule = "no rule",
    .reason = "its name is another one",
    .bytes = 517,
    .at_us = UINT64_C(1) << 50,
    .repeated = 3,
    .dropped = 1,
};

static int decode_denials(struct reader m)
{
    struct denial x;
    int r;

    do
        r = exit_denial_next(&m, &x);
    while (r > 0);
    return r;
}

static void a_report_may_tell_of_what_was_refused(void **state)
{
    const struct denial dns = {
        .protocol = DENIAL_DNS, .name = "a", .address = "", .rule = "no rule", .reason = "r"};
    const struct exit_report report = {.exit_code = 7};
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);
    struct exit_report y;
    struct denial x;

    (void)state;
    exit_report_encode(&w, &report);
    const size_t before = writer_len(&w);
    exit_denial_encode(&w, &denied);
    assert_true(writer_len(&w) - before <= exit_denial_size(&denied));
    exit_denial_encode(&w, &dns);
    field_put_u64(&w, TAG_DENIAL_DROPPED, 9);
    assert_false(w.bad);
    struct reader r = message(&w);
    assert_int_equal(exit_denial_next(&r, &x), 1);
    assert_int_equal(x.protocol, DENIAL_TLS);
    assert_string_equal(x.name, "x.test");
    assert_string_equal(x.address, "198.18.0.7");
    assert_int_equal(x.port, 443);
    assert_true(x.repeated == 3);
    assert_int_equal(exit_denial_next(&r, &x), 1);
    assert_string_equal(x.name, "a");
    assert_int_equal(exit_denial_next(&r, &x), 0);
    /* The number of the others is not that of one of them. */
    assert_true(exit_denials_more(message(&w)) == 9);
    /* Who does not know of it reads the rest. */
    assert_int_equal(exit_report_decode(message(&w), &y), 0);
    assert_int_equal(y.exit_code, 7);
}

static void a_damaged_refusal_is_no_refusal(void **state)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);
    struct denial x;

    (void)state;
    exit_denial_encode(&w, &denied);
    decode_truncated(&w, decode_denials);
    w = writer_over(buf, sizeof buf);
    field_put_string(&w, TAG_DENIAL, "no fields");
    struct reader r = message(&w);
    assert_int_equal(exit_denial_next(&r, &x), -EPROTO);
    for (size_t room = 0; room < exit_denial_size(&denied) - 64; room++) {
        w = writer_over(buf, room);
        exit_denial_encode(&w, &denied);
        assert_true(w.bad || writer_len(&w) <= room);
    }
}

static int decode_policy(struct reader m)
{
    struct policy_report x;

    return policy_report_decode(m, &x);
}

static void a_policy_comes_back_with_its_generation(void **state)
{
    const struct policy_report x = {.network = "{}", .generation = 2, .flows_cut = UINT32_MAX};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);
    struct policy_report y;

    (void)state;
    policy_report_encode(&w, &x);
    assert_int_equal(policy_report_decode(message(&w), &y), 0);
    assert_string_equal(y.network, "{}");
    assert_int_equal(y.generation, 2);
    assert_int_equal(y.flows_cut, UINT32_MAX);
    decode_truncated(&w, decode_policy);
    w = writer_over(buf, sizeof buf);
    field_put_string(&w, TAG_NETWORK, "{}");
    assert_int_equal(decode_policy(message(&w)), -EPROTO); /* of no generation */
    field_put_u32(&w, TAG_POLICY_GENERATION, 0);
    assert_int_equal(decode_policy(message(&w)), -EPROTO);
}

static void every_request_says_which_version_brought_it(void **state)
{
    (void)state;
    assert_int_equal(message_since(MSG_CREATE), 0);
    assert_int_equal(message_since(MSG_OPEN), 1);
    assert_int_equal(message_since(MSG_CANCEL), 1);
    assert_int_equal(message_since(MSG_LISTED), 1);
    assert_int_equal(message_since(MSG_POLICY), 2);
    assert_int_equal(message_since(MSG_POLICY_SET), 2);
    assert_string_equal(message_name(MSG_POLICY), "policy");
    assert_null(message_name(MSG_DENIED));
}

/* The document. A new number without a row here does not compile (-Wswitch-enum). */

#define ROW(prefix, name)                                                                          \
    case prefix##_##name:                                                                          \
        return #name;

static const char *type_name(enum message_type t)
{
    switch (t) {
        ROW(MSG, HELLO)
        ROW(MSG, CREATE)
        ROW(MSG, EXEC)
        ROW(MSG, SIGNAL)
        ROW(MSG, RESIZE)
        ROW(MSG, INPUT)
        ROW(MSG, CREDIT)
        ROW(MSG, DESTROY)
        ROW(MSG, OPEN)
        ROW(MSG, DESCRIBE)
        ROW(MSG, INSPECT)
        ROW(MSG, ENUMERATE)
        ROW(MSG, PS)
        ROW(MSG, STOP)
        ROW(MSG, FILES)
        ROW(MSG, READ)
        ROW(MSG, WRITE)
        ROW(MSG, COMMIT)
        ROW(MSG, LIST)
        ROW(MSG, STAT)
        ROW(MSG, PACK)
        ROW(MSG, UNPACK)
        ROW(MSG, CANCEL)
        ROW(MSG, POLICY)
        ROW(MSG, CREATED)
        ROW(MSG, STARTED)
        ROW(MSG, OUTPUT)
        ROW(MSG, EXITED)
        ROW(MSG, ENDED)
        ROW(MSG, ERROR)
        ROW(MSG, STEP)
        ROW(MSG, DONE)
        ROW(MSG, DESCRIBED)
        ROW(MSG, SANDBOX)
        ROW(MSG, COMMANDS)
        ROW(MSG, FILES_OPENED)
        ROW(MSG, FILE)
        ROW(MSG, LISTED)
        ROW(MSG, POLICY_SET)
        ROW(MSG, ATTACH)
        ROW(MSG, RELEASE)
        ROW(MSG, PRESENT)
        ROW(MSG, EXTEND)
        ROW(MSG, TAGS)
        ROW(MSG, SET_TAGS)
        ROW(MSG, EXPORTED)
        ROW(MSG, ATTACHED)
        ROW(MSG, EXTENDED)
        ROW(MSG, LEASE_LOST)
        ROW(MSG, TAGS_READ)
        ROW(MSG, BUSY)
        ROW(MSG, READY)
        ROW(MSG, FAULT)
        ROW(MSG, KILL)
        ROW(MSG, KILLED)
        ROW(MSG, GO)
        ROW(MSG, INSIDE)
        ROW(MSG, SOCKETS)
        ROW(MSG, DENIED)
        ROW(MSG, SYNC)
        ROW(MSG, SYNCED)
        ROW(MSG, GENERATION)
        ROW(MSG, APPLIED)
        ROW(MSG, EGRESS_FAULT)
        ROW(MSG, FINISH)
    }
    return NULL;
}

static const char *tag_name(enum field_tag t)
{
    switch (t) {
        ROW(TAG, VERSION_MAJOR)
        ROW(TAG, VERSION_MINOR)
        ROW(TAG, PROGRAM)
        ROW(TAG, ARG)
        ROW(TAG, ENV)
        ROW(TAG, WORKDIR)
        ROW(TAG, UID)
        ROW(TAG, GID)
        ROW(TAG, EXEC_FLAGS)
        ROW(TAG, TIMEOUT_US)
        ROW(TAG, ROWS)
        ROW(TAG, COLUMNS)
        ROW(TAG, SIGNAL)
        ROW(TAG, STREAM)
        ROW(TAG, DATA)
        ROW(TAG, CREDIT)
        ROW(TAG, PID)
        ROW(TAG, SIGNAL_FLAGS)
        ROW(TAG, EXIT_CODE)
        ROW(TAG, REASON)
        ROW(TAG, WALL_US)
        ROW(TAG, USER_US)
        ROW(TAG, SYSTEM_US)
        ROW(TAG, PEAK_RSS_BYTES)
        ROW(TAG, START_ERRNO)
        ROW(TAG, START_STAGE)
        ROW(TAG, INTERPRETER)
        ROW(TAG, LEFT_EMPTY)
        ROW(TAG, ERROR_CLASS)
        ROW(TAG, ERROR_CODE)
        ROW(TAG, ERROR_CONTEXT)
        ROW(TAG, ERROR_MESSAGE)
        ROW(TAG, ERROR_REMEDY)
        ROW(TAG, STEP_INDEX)
        ROW(TAG, STEP_TEXT)
        ROW(TAG, STEP_US)
        ROW(TAG, ENDED_BY)
        ROW(TAG, LANDLOCK_ABI)
        ROW(TAG, IMAGE)
        ROW(TAG, HOSTNAME)
        ROW(TAG, DISK_BYTES)
        ROW(TAG, PIDS)
        ROW(TAG, LIFETIME_US)
        ROW(TAG, CREATE_FLAGS)
        ROW(TAG, VOLUME)
        ROW(TAG, VOLUME_HOST)
        ROW(TAG, VOLUME_GUEST)
        ROW(TAG, VOLUME_FLAGS)
        ROW(TAG, SANDBOX_NAME)
        ROW(TAG, OWNER)
        ROW(TAG, LABEL)
        ROW(TAG, ALLOW_HOST)
        ROW(TAG, ALLOW_RANGE)
        ROW(TAG, PRIVATE_RANGE)
        ROW(TAG, CPU_MILLI)
        ROW(TAG, MEMORY_BYTES)
        ROW(TAG, IDLE_US)
        ROW(TAG, PUBLISH)
        ROW(TAG, EGRESS_ENFORCEMENT)
        ROW(TAG, RESOLVER)
        ROW(TAG, PROXY)
        ROW(TAG, PRICE)
        ROW(TAG, MAX_COST_MICRO)
        ROW(TAG, SANDBOX_ID)
        ROW(TAG, STATE)
        ROW(TAG, CREATED_AT_US)
        ROW(TAG, EXPIRES_AT_US)
        ROW(TAG, DISK_USED_BYTES)
        ROW(TAG, DISK_LIMIT_BYTES)
        ROW(TAG, INODES_USED)
        ROW(TAG, INODES_LIMIT)
        ROW(TAG, PROCESSES)
        ROW(TAG, N_COMMANDS)
        ROW(TAG, KEEPER_PID)
        ROW(TAG, BACKEND)
        ROW(TAG, NETWORK)
        ROW(TAG, INSPECT_FLAGS)
        ROW(TAG, COMMAND)
        ROW(TAG, COMMAND_NUMBER)
        ROW(TAG, STARTED_AT_US)
        ROW(TAG, COMMAND_FLAGS)
        ROW(TAG, PATH)
        ROW(TAG, OFFSET)
        ROW(TAG, LENGTH)
        ROW(TAG, MAX_BYTES)
        ROW(TAG, FILE_FLAGS)
        ROW(TAG, ENTRY)
        ROW(TAG, NAME)
        ROW(TAG, KIND)
        ROW(TAG, MODE)
        ROW(TAG, SIZE)
        ROW(TAG, MTIME_NS)
        ROW(TAG, LINK_TARGET)
        ROW(TAG, SKIPPED)
        ROW(TAG, FEATURE)
        ROW(TAG, RULE)
        ROW(TAG, FIELD)
        ROW(TAG, VERDICT)
        ROW(TAG, HOW)
        ROW(TAG, DENIAL)
        ROW(TAG, DENIAL_PROTOCOL)
        ROW(TAG, DENIAL_NAME)
        ROW(TAG, DENIAL_ADDRESS)
        ROW(TAG, DENIAL_PORT)
        ROW(TAG, DENIAL_RULE)
        ROW(TAG, DENIAL_REASON)
        ROW(TAG, DENIAL_BYTES)
        ROW(TAG, DENIAL_AT_US)
        ROW(TAG, DENIAL_REPEATED)
        ROW(TAG, DENIAL_DROPPED)
        ROW(TAG, POLICY_GENERATION)
        ROW(TAG, REMOVE)
        ROW(TAG, FLOWS_CUT)
        ROW(TAG, ADD_HOST)
        ROW(TAG, PROXY_CREDENTIALS)
        ROW(TAG, HOLDER)
        ROW(TAG, LEASE_GENERATION)
        ROW(TAG, LEASE_STATE)
        ROW(TAG, LEASE_KEEP_US)
        ROW(TAG, LEASE_UNTIL_US)
        ROW(TAG, LEFT_US)
        ROW(TAG, DESTROY_FLAGS)
        ROW(TAG, CPU_US)
        ROW(TAG, MEMORY_USED_BYTES)
        ROW(TAG, MEMORY_PEAK_BYTES)
        ROW(TAG, EGRESS_SENT_BYTES)
        ROW(TAG, EGRESS_RECEIVED_BYTES)
        ROW(TAG, COST_MICRO)
        ROW(TAG, AUDIT)
        ROW(TAG, URL)
        ROW(TAG, DIGEST)
        ROW(TAG, CONNECTIONS)
        ROW(TAG, OOM_KILLS)
        ROW(TAG, PUBLISHED)
    }
    return NULL;
}

/* The part of the document below the heading @from, up to the next heading. */
static char *document_part(const char *from)
{
    const char *root = getenv("ATOLL_SOURCE");
    static char text[64 * 1024];
    char path[4096];

    assert_non_null(root);
    (void)snprintf(path, sizeof path, "%s/docs/design/protocol.md", root);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    char *part = strstr(text, from);
    assert_non_null(part);
    char *next = strstr(part + 1, "\n## ");
    if (next)
        *next = '\0';
    return part;
}

/* Numbers stand in the document's tables as "| 16 | `ARG` |". */
static void assert_documented(const char *part, uint32_t number, const char *name, size_t *count)
{
    char row[64], start[16];

    (void)snprintf(start, sizeof start, "\n| %u | ", number);
    (void)snprintf(row, sizeof row, "%s`%s` |", start, name ? name : "");
    if (name && !strstr(part, row))
        fail_msg("the document lacks the row%s", row);
    if (!name && strstr(part, start))
        fail_msg("the document has a row%s that no header knows", start);
    *count += name != NULL;
}

static void the_document_has_every_number_and_no_other(void **state)
{
    size_t types = 0, tags = 0;
    const char *part = document_part("\n## Messages\n");

    (void)state;
    for (uint32_t n = 0; n < 256; n++)
        assert_documented(part, n, type_name((enum message_type)n), &types);
    part = document_part("\n## Fields\n");
    for (uint32_t n = 0; n < 512; n++)
        assert_documented(part, n, tag_name((enum field_tag)n), &tags);
    assert_int_equal(types, 65);
    assert_int_equal(tags, 134);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_comes_back_as_it_was_written),
        cmocka_unit_test(a_small_request_has_defaults),
        cmocka_unit_test(a_request_needs_room_for_its_strings),
        cmocka_unit_test(a_damaged_request_is_refused),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(a_report_comes_back_as_it_was_written),
        cmocka_unit_test(a_report_out_of_range_is_refused),
        cmocka_unit_test(a_greeting_needs_a_major_version),
        cmocka_unit_test(stream_bytes_and_credit_come_back),
        cmocka_unit_test(a_step_comes_back_as_it_was_written),
        cmocka_unit_test(single_numbers_and_sizes_are_read),
        cmocka_unit_test(reasons_and_ends_have_words),
        cmocka_unit_test(an_earlier_peer_is_told_what_it_knows),
        cmocka_unit_test(a_report_may_tell_of_what_was_refused),
        cmocka_unit_test(a_damaged_refusal_is_no_refusal),
        cmocka_unit_test(a_policy_comes_back_with_its_generation),
        cmocka_unit_test(every_request_says_which_version_brought_it),
        cmocka_unit_test(the_document_has_every_number_and_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

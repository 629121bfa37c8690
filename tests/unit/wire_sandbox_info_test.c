/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend tells of sandboxes, commands and itself: round trips, ceilings, damage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/control.h"
#include "wire/sandbox_info.h"
#include "truncated.h"
#include "base/guards.h"

enum { UNKNOWN_TAG = 60000, COMMAND_EXTRA = 80, ARG_EXTRA = 8 };

static struct reader message(const struct writer *w)
{
    return reader_over(w->start, writer_len(w));
}

static int decode_info(struct reader m)
{
    struct sandbox_info x;

    return sandbox_info_decode(m, &x);
}

static int decode_commands(struct reader m)
{
    struct command_info x;
    int r;

    do
        r = command_info_next(&m, &x);
    while (r > 0);
    return r;
}

static int decode_rules(struct reader m)
{
    struct rule_info x;
    int r;

    do
        r = rule_info_next(&m, &x);
    while (r > 0);
    return r;
}

static const struct sandbox_info full = {
    .id = "sb-x",
    .name = "box",
    .owner = "me",
    .backend = "local",
    .image = "dir:/\xff",
    .workdir = "/w",
    .hostname = "h",
    .state = STATE_ENDING,
    .uid = 1,
    .gid = 2,
    .created_at_us = UINT64_MAX,
    .expires_at_us = 3,
    .idle_us = 4,
    .disk_used_bytes = 5,
    .disk_limit_bytes = 6,
    .inodes_used = 7,
    .inodes_limit = 8,
    .pids_limit = 9,
    .processes = 10,
    .n_commands = 11,
    .keeper_pid = 12,
    .landlock_abi = UINT32_MAX,
    .policy_generation = 13,
    .labels = {"a=1", "b="},
    .n_labels = 2,
    .published = {"127.0.0.1:8000:80"},
    .n_published = 1,
};

static void a_sandbox_comes_back_as_it_was_written(void **state)
{
    size_t size = sandbox_info_size(&full);
    uint8_t *exact = malloc(size);
    struct writer w = writer_over(exact, size);
    struct sandbox_info x;

    (void)state;
    assert_non_null(exact);
    sandbox_info_encode(&w, &full);
    assert_false(w.bad);
    assert_int_equal(sandbox_info_decode(message(&w), &x), 0);
    assert_string_equal(x.id, full.id);
    assert_string_equal(x.name, full.name);
    assert_string_equal(x.owner, full.owner);
    assert_string_equal(x.backend, full.backend);
    assert_string_equal(x.image, full.image);
    assert_string_equal(x.workdir, full.workdir);
    assert_string_equal(x.hostname, full.hostname);
    /* The numbers lie in one piece between the texts and the labels. */
    assert_memory_equal(&x.state, &full.state,
                        offsetof(struct sandbox_info, policy_generation) +
                            sizeof x.policy_generation - offsetof(struct sandbox_info, state));
    assert_int_equal(x.n_labels, 2);
    assert_string_equal(x.labels[0], "a=1");
    assert_string_equal(x.labels[1], "b=");
    assert_int_equal(x.n_published, 1);
    assert_string_equal(x.published[0], "127.0.0.1:8000:80");
    decode_truncated(&w, decode_info);
    free(exact);
}

static void a_sandbox_that_is_hardly_known_has_an_id(void **state)
{
    const struct sandbox_info small = {.id = "x"};
    size_t size = sandbox_info_size(&small);
    uint8_t *exact = malloc(size);
    struct writer w = writer_over(exact, size);
    struct sandbox_info x;

    (void)state;
    assert_non_null(exact);
    sandbox_info_encode(&w, &small);
    assert_false(w.bad);
    assert_int_equal(sandbox_info_decode(message(&w), &x), 0);
    assert_null(x.name);
    assert_null(x.workdir);
    assert_int_equal(x.n_labels, 0);
    assert_int_equal(x.created_at_us, 0);
    w = writer_over(exact, size);
    field_put_string(&w, TAG_SANDBOX_ID, "y");
    assert_int_equal(sandbox_info_decode(message(&w), &x), 0);
    assert_string_equal(x.id, "y");
    assert_int_equal(x.state, STATE_CREATING);
    assert_int_equal(decode_info(reader_over(exact, 0)), -EPROTO);
    free(exact);
}

static void a_sandbox_out_of_range_is_refused(void **state)
{
    static const uint16_t texts[] = {TAG_SANDBOX_ID, TAG_SANDBOX_NAME, TAG_OWNER,
                                     TAG_BACKEND,    TAG_IMAGE,        TAG_WORKDIR,
                                     TAG_HOSTNAME,   TAG_LABEL,        TAG_PUBLISHED};
    static const uint16_t small[] = {TAG_STATE,      TAG_UID,        TAG_GID,         TAG_PROCESSES,
                                     TAG_N_COMMANDS, TAG_KEEPER_PID, TAG_LANDLOCK_ABI};
    static const uint16_t large[] = {TAG_CREATED_AT_US,    TAG_EXPIRES_AT_US, TAG_IDLE_US,
                                     TAG_DISK_USED_BYTES,  TAG_INODES_USED,   TAG_INODES_LIMIT,
                                     TAG_DISK_LIMIT_BYTES, TAG_PIDS};
    uint8_t buf[128];
    struct writer w;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts) + ARRAY_SIZE(small) + ARRAY_SIZE(large); i++) {
        w = writer_over(buf, sizeof buf);
        field_put_string(&w, TAG_SANDBOX_ID, "x");
        if (i < ARRAY_SIZE(texts)) /* without its NUL */
            field_put_bytes(&w, texts[i], "text", 4);
        else if (i < ARRAY_SIZE(texts) + ARRAY_SIZE(small))
            field_put_u64(&w, small[i - ARRAY_SIZE(texts)], 0);
        else
            field_put_u32(&w, large[i - ARRAY_SIZE(texts) - ARRAY_SIZE(small)], 0);
        assert_int_equal(decode_info(message(&w)), -EPROTO);
    }
    w = writer_over(buf, sizeof buf);
    field_put_string(&w, TAG_SANDBOX_ID, "x");
    field_put_u32(&w, TAG_STATE, STATE__MAX);
    assert_int_equal(decode_info(message(&w)), -EPROTO);
}

static void labels_over_the_ceiling_are_left_out(void **state)
{
    static uint8_t buf[64 * 1024];
    struct writer w = writer_over(buf, sizeof buf);
    struct sandbox_info x;
    char label[16];

    (void)state;
    field_put_string(&w, TAG_SANDBOX_ID, "x");
    for (int i = 0; i < SANDBOX_LABELS_MAX + 5; i++) {
        (void)snprintf(label, sizeof label, "k=%d", i);
        field_put_string(&w, TAG_LABEL, label);
    }
    field_put_string(&w, TAG_OWNER, "last"); /* what follows them still counts */
    assert_int_equal(sandbox_info_decode(message(&w), &x), 0);
    assert_int_equal(x.n_labels, SANDBOX_LABELS_MAX);
    (void)snprintf(label, sizeof label, "k=%d", SANDBOX_LABELS_MAX - 1);
    assert_string_equal(x.labels[SANDBOX_LABELS_MAX - 1], label);
    assert_string_equal(x.owner, "last");
}

static void commands_come_back_one_after_another(void **state)
{
    const struct command_info one = {
        .number = 1,
        .pid = 2,
        .flags = COMMAND_DETACHED | COMMAND_TTY,
        .started_at_us = UINT64_MAX,
        .timeout_us = 3,
        .argv = {"sh", "-c", ""},
        .n_argv = 3,
    };
    const struct command_info two = {.number = UINT32_MAX};
    size_t size = 2 * COMMAND_EXTRA + 3 * ARG_EXTRA + sizeof "sh" + sizeof "-c" + sizeof "";
    uint8_t *exact = malloc(size);
    struct writer w = writer_over(exact, size);
    struct command_info x;

    (void)state;
    assert_non_null(exact);
    command_info_encode(&w, &one);
    command_info_encode(&w, &two);
    assert_false(w.bad);
    struct reader r = message(&w);
    assert_int_equal(command_info_next(&r, &x), 1);
    assert_int_equal(x.number, 1);
    assert_int_equal(x.pid, 2);
    assert_int_equal(x.flags, COMMAND_DETACHED | COMMAND_TTY);
    assert_true(x.started_at_us == UINT64_MAX);
    assert_int_equal(x.timeout_us, 3);
    assert_int_equal(x.n_argv, 3);
    assert_string_equal(x.argv[0], "sh");
    assert_string_equal(x.argv[2], "");
    assert_int_equal(command_info_next(&r, &x), 1);
    assert_true(x.number == UINT32_MAX);
    assert_int_equal(x.n_argv, 0); /* nothing of the one before */
    assert_int_equal(x.timeout_us, 0);
    assert_int_equal(command_info_next(&r, &x), 0);
    decode_truncated(&w, decode_commands);
    free(exact);
}

static void a_command_with_most_arguments_fits_the_room_it_is_promised(void **state)
{
    struct command_info most = {.number = 1, .n_argv = COMMAND_ARGS_MAX};
    size_t size = COMMAND_EXTRA + COMMAND_ARGS_MAX * (ARG_EXTRA + sizeof "argument");
    uint8_t *exact = malloc(size);
    struct writer w = writer_over(exact, size);

    (void)state;
    assert_non_null(exact);
    for (size_t i = 0; i < COMMAND_ARGS_MAX; i++)
        most.argv[i] = "argument";
    command_info_encode(&w, &most);
    assert_false(w.bad);
    for (size_t less = 0; less < size - 4; less += 7) {
        w = writer_over(exact, less);
        command_info_encode(&w, &most);
        assert_true(w.bad);
    }
    free(exact);
}

/* The one command whose fields are in @inner. */
static int next_command(const struct writer *inner, struct command_info *ret)
{
    static uint8_t buf[8192];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_bytes(&w, TAG_COMMAND, inner->start, writer_len(inner));
    struct reader r = message(&w);
    return command_info_next(&r, ret);
}

static void a_command_that_cannot_be_is_refused(void **state)
{
    static const uint16_t numbers[] = {TAG_COMMAND_NUMBER, TAG_PID, TAG_COMMAND_FLAGS,
                                       TAG_STARTED_AT_US, TAG_TIMEOUT_US};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);
    struct command_info x;

    (void)state;
    assert_int_equal(next_command(&w, &x), -EPROTO); /* nothing could name it */
    field_put_u32(&w, TAG_COMMAND_NUMBER, 0);
    assert_int_equal(next_command(&w, &x), -EPROTO);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        w = writer_over(buf, sizeof buf);
        field_put_u32(&w, TAG_COMMAND_NUMBER, 1);
        field_put_bytes(&w, numbers[i], "123", 3);
        assert_int_equal(next_command(&w, &x), -EPROTO);
    }
    w = writer_over(buf, sizeof buf);
    field_put_u32(&w, TAG_COMMAND_NUMBER, 1);
    field_put_bytes(&w, TAG_ARG, "a", 1);
    assert_int_equal(next_command(&w, &x), -EPROTO);
    w = writer_over(buf, sizeof buf);
    field_put_u32(&w, TAG_COMMAND_NUMBER, 1);
    field_put_string(&w, UNKNOWN_TAG, "new");
    assert_int_equal(next_command(&w, &x), 1);
    w.p--; /* damaged inside, while the field around it is sound */
    assert_int_equal(next_command(&w, &x), -EPROTO);
}

static void arguments_over_the_ceiling_are_left_out(void **state)
{
    static uint8_t buf[4096];
    struct writer w = writer_over(buf, sizeof buf);
    struct command_info x;

    (void)state;
    field_put_u32(&w, TAG_COMMAND_NUMBER, 1);
    for (int i = 0; i < COMMAND_ARGS_MAX + 3; i++)
        field_put_string(&w, TAG_ARG, "a");
    assert_int_equal(next_command(&w, &x), 1);
    assert_int_equal(x.n_argv, COMMAND_ARGS_MAX);
}

static void rules_come_back_one_after_another(void **state)
{
    const struct rule_info one = {"backend.memory", RULE_REFUSED, "it has no cgroup",
                                  "Leave it out"};
    const struct rule_info two = {"spec.env", RULE_ENFORCED, NULL, NULL};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct rule_info x;

    (void)state;
    rule_info_encode(&w, &one);
    field_put_string(&w, UNKNOWN_TAG, "between");
    rule_info_encode(&w, &two);
    struct reader r = message(&w);
    assert_int_equal(rule_info_next(&r, &x), 1);
    assert_string_equal(x.field, one.field);
    assert_int_equal(x.verdict, RULE_REFUSED);
    assert_string_equal(x.how, one.how);
    assert_string_equal(x.remedy, one.remedy);
    assert_int_equal(rule_info_next(&r, &x), 1);
    assert_string_equal(x.field, two.field);
    assert_int_equal(x.verdict, RULE_ENFORCED);
    assert_null(x.how);
    assert_null(x.remedy);
    assert_int_equal(rule_info_next(&r, &x), 0);
    decode_truncated(&w, decode_rules);
    for (size_t size = 0; size < 20; size++) {
        w = writer_over(buf, size);
        rule_info_encode(&w, &two);
        assert_true(w.bad);
    }
}

static void a_rule_needs_a_field_and_a_verdict(void **state)
{
    uint8_t buf[128], inner[64];

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct writer w = writer_over(buf, sizeof buf), n = writer_over(inner, sizeof inner);

        if (i > 0)
            field_put_string(&n, TAG_FIELD, "spec.env");
        if (i != 1)
            field_put_u32(&n, TAG_VERDICT, i == 2 ? RULE_VERDICT__MAX : RULE_ACCEPTED);
        field_put_bytes(&w, TAG_RULE, inner, writer_len(&n));
        assert_int_equal(decode_rules(message(&w)), i < 3 ? -EPROTO : 0);
    }
}

static void texts_of_one_tag_are_found_among_others(void **state)
{
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    field_put_string(&w, TAG_FEATURE, "exec");
    field_put_u32(&w, TAG_SIZE, 1);
    field_put_string(&w, TAG_FEATURE, "");
    struct reader r = message(&w);
    assert_string_equal(text_next(&r, TAG_FEATURE), "exec");
    assert_string_equal(text_next(&r, TAG_FEATURE), "");
    assert_null(text_next(&r, TAG_FEATURE));
    assert_false(r.bad);
    field_put_bytes(&w, TAG_FEATURE, "x", 1); /* without a NUL: damaged, which is not the end */
    field_put_string(&w, TAG_FEATURE, "behind");
    r = message(&w);
    assert_non_null(text_next(&r, TAG_FEATURE));
    assert_non_null(text_next(&r, TAG_FEATURE));
    assert_null(text_next(&r, TAG_FEATURE));
    assert_true(r.bad);
    assert_null(text_next(&r, TAG_FEATURE));
}

static void every_state_has_a_name(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < STATE__MAX; s++) {
        assert_string_not_equal(sandbox_state_name(s), "?");
        for (uint32_t other = 0; other < s; other++)
            assert_string_not_equal(sandbox_state_name(s), sandbox_state_name(other));
    }
    assert_string_equal(sandbox_state_name(STATE_RUNNING), "running");
    assert_string_equal(sandbox_state_name(STATE__MAX), "?");
    assert_string_equal(sandbox_state_name(UINT32_MAX), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sandbox_comes_back_as_it_was_written),
        cmocka_unit_test(a_sandbox_that_is_hardly_known_has_an_id),
        cmocka_unit_test(a_sandbox_out_of_range_is_refused),
        cmocka_unit_test(labels_over_the_ceiling_are_left_out),
        cmocka_unit_test(commands_come_back_one_after_another),
        cmocka_unit_test(a_command_with_most_arguments_fits_the_room_it_is_promised),
        cmocka_unit_test(a_command_that_cannot_be_is_refused),
        cmocka_unit_test(arguments_over_the_ceiling_are_left_out),
        cmocka_unit_test(rules_come_back_one_after_another),
        cmocka_unit_test(a_rule_needs_a_field_and_a_verdict),
        cmocka_unit_test(texts_of_one_tag_are_found_among_others),
        cmocka_unit_test(every_state_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

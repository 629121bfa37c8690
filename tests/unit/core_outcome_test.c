/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses as a shell says them, and the sentence for each end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/outcome.h"
#include "base/guards.h"

static void a_status_is_the_commands_own_or_says_who_ended_it(void **state)
{
    static const struct {
        struct exit_report report;
        int status;
    } rows[] = {
        {{.exit_code = 0}, 0},
        {{.exit_code = 255}, 255},
        {{.signal = 9}, 137},
        {{.signal = 15}, 143},
        {{.signal = 64}, 192},
        {{.reason = REASON_TIMEOUT, .signal = 9}, 124},
        {{.reason = REASON_TIMEOUT, .exit_code = 3}, 124},
        {{.reason = REASON_LIFETIME, .signal = 9}, 124},
        {{.reason = REASON_ERROR, .signal = 9}, 125},
        {{.reason = REASON_ERROR, .exit_code = 126, .start_stage = START_MARK}, 125},
        {{.reason = REASON_KILLED, .signal = 9}, 137},
        {{.reason = REASON_OOM, .signal = 9}, 137},
        {{.reason = REASON_COST, .signal = 9}, 137},
        {{.exit_code = 127, .start_stage = START_EXEC, .start_errno = ENOENT}, 127},
        {{.exit_code = 126, .start_stage = START_EXEC, .start_errno = EACCES}, 126},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(outcome_status(&rows[i].report), rows[i].status);
}

static void explain(const struct exit_report *x, const char *interpreter, const char *expected)
{
    char text[256];

    memset(text, 'Z', sizeof text);
    outcome_explain(x, "tool", interpreter, "/work", text, sizeof text);
    assert_string_equal(text, expected);
}

static void a_command_that_ran_needs_no_words(void **state)
{
    (void)state;
    explain(&(struct exit_report){.exit_code = 1}, NULL, "");
    explain(&(struct exit_report){.signal = 11}, NULL, "");
}

static void limits_are_named(void **state)
{
    (void)state;
    explain(&(struct exit_report){.reason = REASON_TIMEOUT, .timeout_us = 1500000}, NULL,
            "tool: timed out after 1.5 s");
    explain(&(struct exit_report){.reason = REASON_LIFETIME}, NULL,
            "tool: the sandbox's lifetime ended");
    explain(&(struct exit_report){.signal = 9, .reason = REASON_COST}, NULL,
            "tool: the sandbox has cost all that it may (backend.max_cost)");
    explain(&(struct exit_report){.signal = 9, .reason = REASON_KILLED}, NULL,
            "tool: ended from outside while it ran");
    explain(&(struct exit_report){.reason = REASON_ERROR}, NULL,
            "tool: the sandbox was lost while it ran");
}

static void long_timeouts_are_not_rounded(void **state)
{
    (void)state;
    explain(&(struct exit_report){.reason = REASON_TIMEOUT, .timeout_us = 3600000000u}, NULL,
            "tool: timed out after 3600 s");
}

static struct exit_report failed(uint32_t stage, int code)
{
    return (struct exit_report){.start_stage = stage, .start_errno = (uint32_t)code};
}

static void a_failed_start_says_what_is_missing(void **state)
{
    struct exit_report x = failed(START_EXEC, ENOENT);

    (void)state;
    explain(&x, NULL, "tool: not found in the sandbox");
    explain(&x, "/bin/absent", "tool: cannot run, since /bin/absent does not exist in the sandbox");
    x = failed(START_EXEC, EACCES);
    explain(&x, NULL, "tool: permission denied (is it executable?)");
    x = failed(START_EXEC, E2BIG);
    explain(&x, NULL, "tool: arguments and environment are larger than the kernel takes");
    x = failed(START_EXEC, ENOEXEC);
    explain(&x, NULL, "tool: cannot run: Exec format error");
    x = failed(START_WORKDIR, ENOENT);
    explain(&x, NULL, "tool: cannot enter its working directory /work: No such file or directory");
}

static void every_stage_has_a_sentence_that_names_the_program(void **state)
{
    char text[256];

    (void)state;
    for (uint32_t stage = START_OK + 1; stage < START__MAX; stage++) {
        struct exit_report x = failed(stage, EPERM);

        outcome_explain(&x, "tool", NULL, "/work", text, sizeof text);
        assert_int_equal(strncmp(text, "tool: ", 6), 0);
        assert_true(strlen(text) > 12);
    }
}

static void a_small_buffer_is_kept(void **state)
{
    struct exit_report x = failed(START_EXEC, ENOENT);
    char text[16];

    (void)state;
    for (size_t size = 1; size < sizeof text; size++) {
        memset(text, 'Z', sizeof text);
        outcome_explain(&x, "tool", NULL, "/work", text, size);
        assert_true(strlen(text) < size);
        assert_int_equal(text[size], 'Z');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_the_commands_own_or_says_who_ended_it),
        cmocka_unit_test(a_command_that_ran_needs_no_words),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(long_timeouts_are_not_rounded),
        cmocka_unit_test(a_failed_start_says_what_is_missing),
        cmocka_unit_test(every_stage_has_a_sentence_that_names_the_program),
        cmocka_unit_test(a_small_buffer_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

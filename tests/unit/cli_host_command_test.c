/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the host: what keeps one from running, and how one is told to end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/host_command.h"
#include "base/guards.h"

enum { WAIT_STEPS = 1000, STEP_US = 10000 };

static int begin(struct host_command *c, const char *program, struct error *err)
{
    char *const argv[] = {(char *)(uintptr_t)program, (char[]){"-c"},
                          (char[]){"kill -STOP $$; exit 3"}, NULL};

    host_command_prepare(c);
    return host_command_start(c, argv, err);
}

static void await(struct host_command *c, bool (*there)(struct host_command *c))
{
    for (int i = 0; i < WAIT_STEPS; i++) {
        if (there(c))
            return;
        (void)usleep(STEP_US);
    }
    fail();
}

static bool has_stopped(struct host_command *c)
{
    return !host_command_look(c) && c->stopped;
}

static void what_cannot_be_executed_is_told_from_what_fails_here(void **state)
{
    static const struct {
        const char *program;
        int code;
        const char *remedy;
    } rows[] = {
        {"/nonexistent/program", ENOENT, "PATH"},
        {"/", EACCES, "not a folder"},
        {"/dev/null", EACCES, "chmod +x"},
    };
    struct rlimit was, few;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        struct host_command c;

        assert_int_equal(begin(&c, rows[i].program, &err), -rows[i].code);
        assert_int_equal(c.not_begun, rows[i].code);
        assert_int_equal(c.pid, 0);
        assert_non_null(strstr(err.message, rows[i].program));
        assert_non_null(strstr(err.remedy, rows[i].remedy));
    }
    struct error err = ERROR_INIT;
    struct host_command c;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = (struct rlimit){.rlim_cur = 3, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int r = begin(&c, "sh", &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(r, -EMFILE);
    assert_int_equal(c.not_begun, 0);
    assert_int_equal(c.pid, 0);
}

/* As when there is no terminal, whatever this test runs on. */
static void in_a_session_of_its_own(void (*test)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)setsid();
        (void)signal(SIGINT, SIG_DFL); /* a shell's job in the background ignores both */
        (void)signal(SIGQUIT, SIG_DFL);
        test();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void tell_to_end(void)
{
    static const int ends[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        const struct signalfd_siginfo info = {.ssi_signo = (uint32_t)ends[i], .ssi_code = SI_USER};
        struct error err = ERROR_INIT;
        struct host_command c;

        assert_int_equal(begin(&c, "sh", &err), 0);
        assert_true(c.own_group);
        assert_int_equal(getpgid(c.pid), c.pid);
        await(&c, has_stopped);
        host_command_pass(&c, &info);
        await(&c, host_command_look);
        assert_int_equal(c.status, 128 + ends[i]);
    }
}

static void one_that_has_stopped_can_be_told_to_end(void **state)
{
    (void)state;
    in_a_session_of_its_own(tell_to_end);
}

static void go_on(void)
{
    const struct signalfd_siginfo user = {.ssi_signo = SIGUSR1, .ssi_code = SI_USER};
    const struct signalfd_siginfo on = {.ssi_signo = SIGCONT, .ssi_code = SI_USER};
    struct error err = ERROR_INIT;
    struct host_command c;

    assert_int_equal(begin(&c, "sh", &err), 0);
    await(&c, has_stopped);
    host_command_pass(&c, &on);
    await(&c, host_command_look);
    assert_int_equal(c.status, 3);
    assert_int_equal(begin(&c, "sh", &err), 0);
    await(&c, has_stopped);
    host_command_pass(&c, &user); /* pending: it is not one that ends */
    assert_false(host_command_look(&c));
    assert_true(c.stopped);
    host_command_pass(&c, &on);
    await(&c, host_command_look);
    assert_int_equal(c.status, 128 + SIGUSR1);
}

static void one_that_has_stopped_goes_on_when_we_do(void **state)
{
    (void)state;
    in_a_session_of_its_own(go_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_executed_is_told_from_what_fails_here),
        cmocka_unit_test(one_that_has_stopped_can_be_told_to_end),
        cmocka_unit_test(one_that_has_stopped_goes_on_when_we_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

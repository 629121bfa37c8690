/* SPDX-License-Identifier: Apache-2.0 */
/* What a keeper makes of an init that lies: each untruth is -EPROTO, with which the sandbox ends.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "keeper/command.h"
#include "keeper/keeper.h"
#include "base/guards.h"

enum { ID = 7 };

/* A keeper without a sandbox: the test is its caller and its init. */
struct scene {
    struct keeper keeper;
    struct channel caller, init;
};

static int start(void **state)
{
    static struct scene s;
    int client[2], link[2];

    memset(&s, 0, sizeof s);
    *state = &s;
    if (io_pair(client) < 0 || io_pair(link) < 0 || loop_init(&s.keeper.loop) < 0 ||
        spec_init(&s.keeper.spec) < 0)
        return -1;
    s.keeper.listen_fd = -EBADF;
    if (connection_new(&s.keeper, client[0]) < 0)
        return -1;
    channel_init(&s.caller, client[1]);
    channel_init(&s.keeper.init, link[0]);
    channel_init(&s.init, link[1]);
    s.keeper.init_source.fd = s.keeper.process_source.fd = -EBADF;
    s.keeper.sandbox = (struct sandbox)SANDBOX_INIT;
    s.keeper.egress = (struct keeper_egress)KEEPER_EGRESS_INIT;
    s.keeper.events = (struct event_log)EVENT_LOG_INIT;
    s.keeper.policy_generation = 1;
    s.keeper.state = KEEPER_RUNNING;
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;

    keeper_end(&s->keeper, ENDED_ERROR);
    assert_int_equal(s->keeper.n_commands, 0);
    connections_farewell(&s->keeper);
    stops_done(&s->keeper);
    channel_done(&s->caller);
    channel_done(&s->init);
    spec_done(&s->keeper.spec);
    loop_done(&s->keeper.loop);
    return 0;
}

/* A message as if it had been received. */
static struct message made(uint16_t type, uint32_t id, const struct writer *w)
{
    return (struct message){
        .type = type, .id = id, .payload = reader_over(w->start, writer_len(w))};
}

static void give_command(struct scene *s, uint32_t flags)
{
    const char *argv[] = {"true"};
    const struct exec_request x = {.argv = argv, .n_argv = 1, .flags = flags, .timeout_us = 1};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);

    exec_request_encode(&w, &x);
    struct message m = made(MSG_EXEC, ID, &w);
    if (!(flags & (EXEC_IN_BAND | EXEC_TTY)))
        while (m.n_fds < 2)
            m.fds[m.n_fds++] = open("/dev/null", O_RDWR | O_CLOEXEC);
    s->keeper.last_number = ID - 1; /* so that init knows the command by the client's number */
    command_start(s->keeper.connections, &m);
    message_close_fds(&m);
    assert_non_null(s->keeper.commands);
}

static int tell_started(struct scene *s, uint32_t id, size_t n_fds)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m;
    int r;

    field_put_u32(&w, TAG_PID, 5);
    m = made(MSG_STARTED, id, &w);
    while (m.n_fds < n_fds)
        m.fds[m.n_fds++] = open("/dev/null", O_RDWR | O_CLOEXEC);
    r = command_started(&s->keeper, &m);
    message_close_fds(&m);
    return r;
}

static int tell_exited(struct scene *s, uint32_t id, const struct exit_report *x)
{
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    exit_report_encode(&w, x);
    struct message m = made(MSG_EXITED, id, &w);
    return command_exited(&s->keeper, &m);
}

static int tell_killed(struct scene *s, uint32_t id, uint32_t error)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_ERROR_CODE, error);
    struct message m = made(MSG_KILLED, id, &w);
    return command_killed(&s->keeper, &m);
}

static const struct exit_report good = {.exit_code = 3};

static void a_command_that_nobody_gave_cannot_start_or_end(void **state)
{
    assert_int_equal(tell_started(*state, ID, 0), -EPROTO);
    assert_int_equal(tell_exited(*state, ID, &good), -EPROTO);
    give_command(*state, 0);
    assert_int_equal(tell_started(*state, ID + 1, 0), -EPROTO);
    assert_int_equal(tell_exited(*state, ID + 1, &good), -EPROTO);
}

static void a_start_brings_exactly_the_terminal(void **state)
{
    give_command(*state, 0);
    assert_int_equal(tell_started(*state, ID, 1), -EPROTO);
    assert_int_equal(tell_started(*state, ID, 0), 0);
    assert_int_equal(tell_exited(*state, ID, &good), 0);
    give_command(*state, EXEC_TTY);
    assert_int_equal(tell_started(*state, ID, 0), -EPROTO);
    assert_int_equal(tell_started(*state, ID, 2), -EPROTO);
    assert_int_equal(tell_started(*state, ID, 1), 0);
}

static void a_terminal_in_band_starts_once_only(void **state)
{
    struct scene *s = *state;
    uint8_t buf[64];

    give_command(s, EXEC_TTY | EXEC_IN_BAND);
    for (int i = 0; i < 2; i++) {
        struct writer w = writer_over(buf, sizeof buf);

        field_put_u32(&w, TAG_PID, 5);
        struct message m = made(MSG_STARTED, ID, &w);
        m.fds[m.n_fds++] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_int_equal(command_started(&s->keeper, &m), i == 0 ? 0 : -EPROTO);
        message_close_fds(&m);
    }
}

static void a_command_ends_once_only(void **state)
{
    give_command(*state, EXEC_IN_BAND);
    assert_int_equal(tell_exited(*state, ID, &good), 0);
    assert_int_equal(tell_exited(*state, ID, &good), -EPROTO);
    assert_int_equal(tell_started(*state, ID, 0), -EPROTO);
}

static void a_report_out_of_range_is_refused(void **state)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    struct scene *s = *state;

    give_command(s, 0);
    field_put_u32(&w, TAG_EXIT_CODE, 256);
    struct message m = made(MSG_EXITED, ID, &w);
    assert_int_equal(command_exited(&s->keeper, &m), -EPROTO);
    m = made(MSG_STARTED, ID, &(struct writer){.start = buf, .p = buf, .end = buf});
    assert_int_equal(command_started(&s->keeper, &m), -EPROTO);
    m.type = MSG_KILLED;
    assert_int_equal(command_killed(&s->keeper, &m), -EPROTO);
}

static void nothing_is_killed_that_was_not_asked_for(void **state)
{
    give_command(*state, 0);
    assert_int_equal(tell_killed(*state, ID, 0), -EPROTO);
}

static void a_sandbox_ends_only_with_a_command_that_may_end_it(void **state)
{
    const struct exit_report last = {.left_empty = 1};
    struct scene *s = *state;

    give_command(s, 0);
    assert_int_equal(tell_exited(s, ID, &last), -EPROTO);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
}

static void an_end_is_told_to_the_caller_as_it_was_reported(void **state)
{
    struct scene *s = *state;
    struct exit_report x;
    struct message m;

    give_command(s, 0);
    assert_int_equal(tell_exited(s, ID, &good), 0);
    assert_int_equal(channel_receive(&s->caller, &m), 1);
    assert_int_equal(m.type, MSG_EXITED);
    assert_int_equal(m.id, ID);
    assert_int_equal(exit_report_decode(m.payload, &x), 0);
    assert_int_equal(x.exit_code, 3);
    assert_int_equal(x.timeout_us, 1);
    assert_null(s->keeper.commands);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        SCENE(a_command_that_nobody_gave_cannot_start_or_end),
        SCENE(a_start_brings_exactly_the_terminal),
        SCENE(a_terminal_in_band_starts_once_only),
        SCENE(a_command_ends_once_only),
        SCENE(a_report_out_of_range_is_refused),
        SCENE(nothing_is_killed_that_was_not_asked_for),
        SCENE(a_sandbox_ends_only_with_a_command_that_may_end_it),
        SCENE(an_end_is_told_to_the_caller_as_it_was_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

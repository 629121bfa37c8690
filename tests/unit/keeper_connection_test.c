/* SPDX-License-Identifier: Apache-2.0 */
/* Several clients of one keeper: what each may see, stop and take along when it goes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/command.h"
#include "keeper/events.h"
#include "keeper/keeper.h"
#include "wire/fault.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum { CLIENTS = 3, CREATE_ID = 77, TURNS_MAX = 100000, UNKNOWN_TYPE = 999 };

/* A keeper without a sandbox: the test is its clients and its init. */
struct scene {
    struct keeper keeper;
    struct channel clients[CLIENTS], init;
    struct connection *connections[CLIENTS]; /* the keeper's ends */
};

static void turn(struct scene *s)
{
    assert_int_equal(loop_turn(&s->keeper.loop, 0), 0);
}

static int add_client(struct scene *s, int i)
{
    int pair[2];

    if (io_pair(pair) < 0 || connection_new(&s->keeper, pair[0]) < 0)
        return -1;
    s->connections[i] = s->keeper.connections;
    channel_init(&s->clients[i], pair[1]);
    return 0;
}

static int start_silent(void **state)
{
    static struct scene s;
    int link[2];

    memset(&s, 0, sizeof s);
    *state = &s;
    if (io_pair(link) < 0 || loop_init(&s.keeper.loop) < 0 || spec_init(&s.keeper.spec) < 0)
        return -1;
    s.keeper.listen_fd = -EBADF;
    for (int i = 0; i < CLIENTS; i++)
        if (add_client(&s, i) < 0)
            return -1;
    channel_init(&s.keeper.init, link[0]);
    channel_init(&s.init, link[1]);
    s.keeper.init_source.fd = s.keeper.process_source.fd = -EBADF;
    s.keeper.sandbox = (struct sandbox)SANDBOX_INIT;
    s.keeper.egress = (struct keeper_egress)KEEPER_EGRESS_INIT;
    s.keeper.events = (struct event_log)EVENT_LOG_INIT;
    s.keeper.policy_generation = 1;
    s.keeper.state = KEEPER_RUNNING;
    s.keeper.creator = s.connections[0];
    s.keeper.create_id = CREATE_ID;
    return 0;
}

static void send_to(struct channel *c, uint16_t type, uint32_t id, const struct writer *w)
{
    assert_int_equal(channel_send(c, type, id, w ? w->start : NULL, w ? writer_len(w) : 0, NULL, 0),
                     0);
}

static void expect(struct channel *c, uint16_t type, uint32_t id, struct message *m)
{
    assert_int_equal(channel_receive(c, m), 1);
    assert_int_equal(m->type, type);
    assert_int_equal(m->id, id);
}

static void expect_nothing(struct channel *c)
{
    struct message m;

    assert_int_equal(channel_receive(c, &m), 0);
}

static void expect_error(struct channel *c, uint32_t id, int code)
{
    struct error err = ERROR_INIT;
    struct message m;

    expect(c, MSG_ERROR, id, &m);
    assert_int_equal(fault_decode(m.payload, &err), 0);
    assert_int_equal(err.code, code);
    assert_true(err.message[0] != '\0');
}

static void expect_exited(struct channel *c, uint32_t id, uint32_t reason)
{
    struct exit_report x;
    struct message m;

    expect(c, MSG_EXITED, id, &m);
    assert_int_equal(exit_report_decode(m.payload, &x), 0);
    assert_int_equal(x.reason, reason);
}

static void send_hello_of(struct channel *c, uint32_t major, uint32_t minor)
{
    const struct hello hello = {major, minor, "a test"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);

    hello_encode(&w, &hello);
    send_to(c, MSG_HELLO, 0, &w);
}

static void send_hello(struct channel *c, uint32_t major)
{
    send_hello_of(c, major, WIRE_VERSION_MINOR);
}

static int start(void **state)
{
    if (start_silent(state) < 0)
        return -1;
    struct scene *s = *state;
    struct message m;

    for (int i = 0; i < CLIENTS; i++)
        send_hello(&s->clients[i], WIRE_VERSION_MAJOR);
    turn(s);
    for (int i = 0; i < CLIENTS; i++)
        expect(&s->clients[i], MSG_HELLO, 0, &m);
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;

    keeper_end(&s->keeper, ENDED_ERROR);
    assert_int_equal(s->keeper.n_commands, 0);
    connections_farewell(&s->keeper);
    stops_done(&s->keeper);
    events_close(&s->keeper);
    for (int i = 0; i < CLIENTS; i++)
        channel_done(&s->clients[i]);
    channel_done(&s->init);
    spec_done(&s->keeper.spec);
    loop_done(&s->keeper.loop);
    return 0;
}

/* Sends EXEC of "sleep 9" from client @i. */
static void send_exec(struct scene *s, int i, uint32_t id, uint32_t flags, uint64_t timeout_us)
{
    const char *argv[] = {"sleep", "9"};
    const struct exec_request x = {
        .argv = argv, .n_argv = 2, .flags = flags, .timeout_us = timeout_us};
    bool with_fds = !(flags & (EXEC_IN_BAND | EXEC_TTY | EXEC_DETACH | EXEC_FILES));
    _cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    exec_request_encode(&w, &x);
    assert_int_equal(channel_send(&s->clients[i], MSG_EXEC, id, buf, writer_len(&w),
                                  (int[]){null, null}, with_fds ? 2 : 0),
                     0);
    turn(s);
}

/* The number by which init was told of a command just now. */
static uint32_t number_at_init(struct scene *s)
{
    struct message m;

    assert_int_equal(channel_receive(&s->init, &m), 1);
    assert_int_equal(m.type, MSG_EXEC);
    message_close_fds(&m);
    return m.id;
}

/* A command of client @i that init knows by the number returned. */
static uint32_t give(struct scene *s, int i, uint32_t id, uint32_t flags)
{
    send_exec(s, i, id, flags, 0);
    return number_at_init(s);
}

/* What init says of a command; what init sends comes from the keeper's channel in reality. */
static void tell_started(struct scene *s, uint32_t number, uint32_t pid)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_STARTED, .id = number};

    field_put_u32(&w, TAG_PID, pid);
    m.payload = reader_over(buf, writer_len(&w));
    assert_int_equal(command_started(&s->keeper, &m), 0);
    turn(s);
}

static void tell_exited(struct scene *s, uint32_t number, uint32_t code)
{
    const struct exit_report x = {.exit_code = code};
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_EXITED, .id = number};

    exit_report_encode(&w, &x);
    m.payload = reader_over(buf, writer_len(&w));
    assert_int_equal(command_exited(&s->keeper, &m), 0);
    turn(s);
}

static void tell_killed(struct scene *s, uint32_t number)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_KILLED, .id = number};

    field_put_u32(&w, TAG_ERROR_CODE, 0);
    m.payload = reader_over(buf, writer_len(&w));
    assert_int_equal(command_killed(&s->keeper, &m), 0);
    turn(s);
}

static void send_number(struct scene *s, int i, uint16_t type, uint32_t id, uint16_t tag,
                        uint32_t value)
{
    uint8_t buf[16];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, tag, value);
    send_to(&s->clients[i], type, id, &w);
    turn(s);
}

static void send_stop(struct scene *s, int i, uint32_t id, uint32_t number)
{
    send_number(s, i, MSG_STOP, id, TAG_COMMAND_NUMBER, number);
}

static void hang_up(struct scene *s, int i)
{
    channel_done(&s->clients[i]);
    turn(s);
}

/* --- Greeting and requests of no kind --- */

static void a_client_that_does_not_greet_is_sent_away(void **state)
{
    struct scene *s = *state;
    struct message m;
    struct hello hello;

    send_to(&s->clients[0], MSG_PS, 5, NULL);
    send_hello(&s->clients[1], WIRE_VERSION_MAJOR + 1);
    send_hello(&s->clients[2], WIRE_VERSION_MAJOR);
    turn(s);
    for (int i = 0; i < 2; i++) {
        expect(&s->clients[i], MSG_HELLO, i == 0 ? 5 : 0, &m);
        assert_int_equal(hello_decode(m.payload, &hello), 0);
        assert_int_equal(hello.major, WIRE_VERSION_MAJOR);
        expect_error(&s->clients[i], i == 0 ? 5 : 0, EPROTO);
        assert_int_equal(channel_receive(&s->clients[i], &m), -EPIPE);
    }
    expect(&s->clients[2], MSG_HELLO, 0, &m);
    expect_nothing(&s->clients[2]);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
}

static void a_request_of_no_kind_is_refused_and_harmless(void **state)
{
    static const uint16_t types[] = {UNKNOWN_TYPE, MSG_OPEN,  MSG_READ,     MSG_EXITED,
                                     MSG_KILL,     MSG_HELLO, MSG_ENUMERATE};
    struct scene *s = *state;
    struct message m;

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        send_to(&s->clients[1], types[i], (uint32_t)i, NULL);
        turn(s);
        expect_error(&s->clients[1], (uint32_t)i, ENOSYS);
    }
    expect_nothing(&s->init);
    send_to(&s->clients[1], MSG_PS, 9, NULL);
    turn(s);
    expect(&s->clients[1], MSG_COMMANDS, 9, &m);
}

static void a_second_sandbox_is_refused(void **state)
{
    struct scene *s = *state;

    send_to(&s->clients[1], MSG_CREATE, 9, NULL);
    turn(s);
    expect_error(&s->clients[1], 9, EEXIST);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
    assert_ptr_equal(s->keeper.creator, s->connections[0]);
}

static void bytes_that_are_no_message_cost_a_client_its_connection(void **state)
{
    struct scene *s = *state;
    struct message m;

    assert_int_equal(send(s->clients[1].fd, "junk", 4, 0), 4);
    turn(s);
    assert_int_equal(channel_receive(&s->clients[1], &m), -EPIPE);
    send_to(&s->clients[2], MSG_PS, 9, NULL);
    turn(s);
    expect(&s->clients[2], MSG_COMMANDS, 9, &m);
}

/* --- Commands --- */

static void ids_of_two_clients_do_not_collide(void **state)
{
    struct scene *s = *state;
    uint32_t one = give(s, 0, 5, 0), two = give(s, 1, 5, 0);
    struct exit_report x;
    struct message m;

    assert_int_not_equal(one, two);
    tell_exited(s, two, 2);
    expect_nothing(&s->clients[0]);
    expect(&s->clients[1], MSG_EXITED, 5, &m);
    assert_int_equal(exit_report_decode(m.payload, &x), 0);
    assert_int_equal(x.exit_code, 2);
    tell_exited(s, one, 1);
    expect(&s->clients[0], MSG_EXITED, 5, &m);
    assert_int_equal(exit_report_decode(m.payload, &x), 0);
    assert_int_equal(x.exit_code, 1);
    assert_int_equal(x.reason, REASON_EXITED);
    expect_nothing(&s->clients[1]);
    uint32_t three = give(s, 0, 5, 0); /* free again, and the number is a new one */
    assert_true(three > one && three > two);
}

static void one_client_has_an_id_once(void **state)
{
    struct scene *s = *state;

    give(s, 0, 5, 0);
    send_exec(s, 0, 5, 0, 0);
    expect_error(&s->clients[0], 5, EEXIST);
    expect_nothing(&s->init);
}

static void a_signal_goes_to_the_clients_own_command(void **state)
{
    struct scene *s = *state;
    struct message m;
    uint32_t signal;

    give(s, 0, 5, 0);
    uint32_t two = give(s, 1, 5, 0);
    send_number(s, 1, MSG_SIGNAL, 5, TAG_SIGNAL, 15);
    expect(&s->init, MSG_SIGNAL, two, &m);
    assert_int_equal(number_decode(m.payload, TAG_SIGNAL, &signal), 0);
    assert_int_equal(signal, 15);
    send_number(s, 2, MSG_SIGNAL, 5, TAG_SIGNAL, 15); /* it has no such command */
    expect_nothing(&s->init);
    expect_nothing(&s->clients[2]);
    send_number(s, 1, MSG_SIGNAL, 5, TAG_SIGNAL, 65);
    expect_error(&s->clients[1], 5, EINVAL);
}

static void flags_that_do_not_go_together_are_refused(void **state)
{
    static const uint32_t flags[] = {EXEC_FILES,
                                     EXEC_FILES | EXEC_DETACH,
                                     EXEC_LAST | EXEC_IN_BAND,
                                     EXEC_LAST | EXEC_DETACH,
                                     EXEC_LAST, /* in a sandbox that others find */
                                     EXEC_DETACH | EXEC_TTY,
                                     EXEC_DETACH | EXEC_STDIN,
                                     EXEC_DETACH | EXEC_IN_BAND,
                                     EXEC_STDIN}; /* which needs a third descriptor */
    struct scene *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        send_exec(s, 0, (uint32_t)i, flags[i], 0);
        expect_error(&s->clients[0], (uint32_t)i, EINVAL);
    }
    expect_nothing(&s->init);
    assert_int_equal(s->keeper.n_commands, 0);
}

static void a_command_over_its_time_is_killed_and_says_so(void **state)
{
    struct scene *s = *state;
    struct message m;
    int r = 0;

    send_exec(s, 0, 5, 0, 1);
    uint32_t number = number_at_init(s);
    for (int i = 0; r == 0 && i < TURNS_MAX; i++) {
        turn(s);
        r = channel_receive(&s->init, &m);
    }
    assert_int_equal(r, 1);
    assert_int_equal(m.type, MSG_KILL);
    assert_int_equal(m.id, number);
    tell_exited(s, number, 0);
    expect_nothing(&s->clients[0]); /* not before all of it is dead */
    tell_killed(s, number);
    expect_exited(&s->clients[0], 5, REASON_TIMEOUT);
}

static void a_detached_command_answers_by_its_start_alone(void **state)
{
    struct scene *s = *state;
    uint32_t number = give(s, 0, 5, EXEC_DETACH), got;
    struct message m;

    tell_started(s, number, 42);
    expect(&s->clients[0], MSG_STARTED, 5, &m);
    assert_int_equal(number_decode(m.payload, TAG_PID, &got), 0);
    assert_int_equal(got, 42);
    assert_int_equal(number_decode(m.payload, TAG_COMMAND_NUMBER, &got), 0);
    assert_int_equal(got, number);
    assert_int_equal(m.n_fds, 0);
    give(s, 0, 5, 0); /* its id is free */
    tell_exited(s, number, 0);
    expect_nothing(&s->clients[0]);
    assert_int_equal(s->keeper.n_commands, 1);
}

static void a_detached_command_that_cannot_start_is_told(void **state)
{
    struct scene *s = *state;
    uint32_t number = give(s, 0, 5, EXEC_DETACH);

    tell_exited(s, number, 127);
    expect_exited(&s->clients[0], 5, REASON_EXITED);
}

/* --- Clients that go --- */

static void with_a_client_go_its_commands(void **state)
{
    struct scene *s = *state;
    uint32_t mine = give(s, 1, 5, 0), band = give(s, 1, 6, EXEC_IN_BAND | EXEC_STDIN);
    uint32_t other = give(s, 2, 5, 0);
    struct message m;
    uint32_t killed[2];

    hang_up(s, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(channel_receive(&s->init, &m), 1);
        assert_int_equal(m.type, MSG_KILL);
        killed[i] = m.id;
    }
    assert_true((killed[0] == mine && killed[1] == band) ||
                (killed[0] == band && killed[1] == mine));
    expect_nothing(&s->init);
    assert_int_equal(s->keeper.n_commands, 3); /* until init says that they are gone */
    for (int i = 0; i < 2; i++) {
        tell_exited(s, killed[i], 0);
        tell_killed(s, killed[i]);
    }
    assert_int_equal(s->keeper.n_commands, 1);
    expect_nothing(&s->clients[0]);
    expect_nothing(&s->clients[2]);
    tell_exited(s, other, 0);
    expect_exited(&s->clients[2], 5, REASON_EXITED);
}

static void detached_commands_stay(void **state)
{
    struct scene *s = *state;
    uint32_t started = give(s, 1, 5, EXEC_DETACH), starting = give(s, 1, 6, EXEC_DETACH);

    tell_started(s, started, 42);
    hang_up(s, 1);
    expect_nothing(&s->init);
    tell_started(s, starting, 43); /* nobody is there to be told */
    assert_int_equal(s->keeper.n_commands, 2);
    tell_exited(s, starting, 0);
    tell_exited(s, started, 0);
    assert_int_equal(s->keeper.n_commands, 0);
    expect_nothing(&s->clients[0]);
}

static void output_that_was_on_its_way_goes_with_the_client(void **state)
{
    struct scene *s = *state;
    uint32_t number;
    struct message m;

    send_exec(s, 1, 5, EXEC_IN_BAND, 0);
    assert_int_equal(channel_receive(&s->init, &m), 1);
    number = m.id;
    assert_int_equal(m.n_fds, 2); /* a process that was left behind holds the streams */
    tell_exited(s, number, 0);
    assert_int_equal(s->keeper.n_commands, 1);
    hang_up(s, 1);
    assert_int_equal(s->keeper.n_commands, 0);
    expect_nothing(&s->init);
    message_close_fds(&m);
}

static void a_killed_command_does_not_wait_for_a_client_that_has_gone(void **state)
{
    struct scene *s = *state;
    uint32_t number;
    struct message m;

    send_exec(s, 1, 5, EXEC_IN_BAND, 0);
    assert_int_equal(channel_receive(&s->init, &m), 1);
    number = m.id;
    assert_int_equal(m.n_fds, 2);
    assert_int_equal(write(m.fds[0], "x", 1), 1); /* its client has to give credit for it … */
    s->keeper.commands->streams.outputs[0].credit = 0;
    send_to(&s->clients[1], MSG_CANCEL, 5, NULL);
    turn(s);
    message_close_fds(&m);
    expect(&s->init, MSG_KILL, number, &m);
    send_stop(s, 2, 9, number);
    expect_nothing(&s->clients[2]);
    tell_exited(s, number, 0);
    tell_killed(s, number);
    expect(&s->clients[2], MSG_DONE, 9, &m); /* nothing of it runs any more */
    send_stop(s, 2, 10, number);
    expect_error(&s->clients[2], 10, ESRCH);
    assert_int_equal(s->keeper.n_commands, 1);
    hang_up(s, 1); /* … which does not come any more */
    assert_int_equal(s->keeper.n_commands, 0);
    expect_nothing(&s->init);
}

static void a_kill_takes_no_longer_or_shorter_when_its_client_goes(void **state)
{
    struct scene *s = *state;
    struct message m;

    send_to(&s->clients[1], MSG_FILES, 5, NULL);
    turn(s);
    uint32_t number = number_at_init(s);
    expect(&s->clients[1], MSG_FILES_OPENED, 5, &m);
    message_close_fds(&m);
    command_kill(s->keeper.commands);
    expect(&s->init, MSG_KILL, number, &m);
    uint64_t deadline = s->keeper.commands->timeout.deadline_us;
    hang_up(s, 1);
    assert_int_equal(s->keeper.n_commands, 1);
    assert_true(s->keeper.commands->timeout.deadline_us == deadline);
    expect_nothing(&s->init);
    tell_exited(s, number, 0);
    tell_killed(s, number);
    assert_int_equal(s->keeper.n_commands, 0);
}

static void an_owned_sandbox_ends_with_its_creator_only(void **state)
{
    struct scene *s = *state;
    struct message m;
    uint32_t by;

    s->keeper.spec.owned = true;
    hang_up(s, 1);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
    assert_ptr_equal(s->keeper.creator, s->connections[0]);
    hang_up(s, 0);
    assert_int_equal(s->keeper.state, KEEPER_ENDING);
    assert_true(s->keeper.loop.stop);
    expect(&s->clients[2], MSG_ENDED, 0, &m);
    assert_int_equal(number_decode(m.payload, TAG_ENDED_BY, &by), 0);
    assert_int_equal(by, ENDED_CALLER_DIED);
}

static void a_held_sandbox_outlives_all_its_clients(void **state)
{
    struct scene *s = *state;
    struct message m;

    for (int i = 0; i < CLIENTS; i++)
        hang_up(s, i);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
    assert_null(s->keeper.creator);
    assert_null(s->keeper.connections);
    assert_int_equal(add_client(s, 0), 0);
    send_hello(&s->clients[0], WIRE_VERSION_MAJOR);
    turn(s);
    expect(&s->clients[0], MSG_HELLO, 0, &m);
    give(s, 0, 5, 0);
}

static void a_client_that_reads_nothing_is_dropped_without_harm(void **state)
{
    static uint8_t big[FRAME_PAYLOAD_MAX];
    struct scene *s = *state;
    struct connection *slow = s->connections[1];
    struct writer w = {.start = big, .p = big + sizeof big, .end = big + sizeof big};
    uint32_t number = give(s, 1, 5, 0), other = give(s, 2, 5, 0);
    struct message m;
    int sent = 0;

    while (!slow->broken && sent++ < 100000)
        connection_send(slow, MSG_OUTPUT, 5, &w, -EBADF);
    assert_true(slow->broken);
    assert_false(slow->gone); /* not while whoever sends may be at work on it */
    tell_exited(s, other, 0);
    expect(&s->init, MSG_KILL, number, &m);
    expect_exited(&s->clients[2], 5, REASON_EXITED);
    for (const struct connection *c = s->keeper.connections; c; c = c->next)
        assert_ptr_not_equal(c, slow);
    int r;
    do { /* what it was sent before is still there to be read, and then the end */
        r = channel_receive(&s->clients[1], &m);
    } while (r == 1);
    assert_int_equal(r, -EPIPE);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
}

/* --- STOP --- */

static void a_stop_is_done_when_nothing_of_the_command_is_left(void **state)
{
    struct scene *s = *state;
    uint32_t number = give(s, 0, 5, 0);
    struct message m;

    give(s, 0, 6, 0);
    send_stop(s, 1, 9, number);
    expect(&s->init, MSG_KILL, number, &m);
    expect_nothing(&s->init);
    expect_nothing(&s->clients[1]);
    tell_exited(s, number, 0);
    expect_nothing(&s->clients[0]);
    expect_nothing(&s->clients[1]);
    tell_killed(s, number);
    expect_exited(&s->clients[0], 5, REASON_KILLED);
    expect(&s->clients[1], MSG_DONE, 9, &m);
    expect_nothing(&s->clients[0]);
}

static void a_stop_of_all_waits_for_all_that_ran(void **state)
{
    struct scene *s = *state;
    uint32_t numbers[] = {give(s, 0, 5, 0), give(s, 1, 5, EXEC_TTY), give(s, 1, 6, EXEC_DETACH)};
    struct message m;

    tell_started(s, numbers[2], 42);
    expect(&s->clients[1], MSG_STARTED, 6, &m);
    send_to(&s->clients[1], MSG_FILES, 8, NULL);
    turn(s);
    uint32_t files = number_at_init(s);
    expect(&s->clients[1], MSG_FILES_OPENED, 8, &m);
    message_close_fds(&m);
    send_stop(s, 2, 9, 0);
    uint32_t later = 0;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        assert_int_equal(channel_receive(&s->init, &m), 1);
        assert_int_equal(m.type, MSG_KILL);
        assert_int_not_equal(m.id, files); /* no command of anybody's */
    }
    expect_nothing(&s->init);
    later = give(s, 0, 7, 0); /* is not meant */
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        expect_nothing(&s->clients[2]);
        tell_exited(s, numbers[i], 0);
        tell_killed(s, numbers[i]);
    }
    expect(&s->clients[2], MSG_DONE, 9, &m);
    expect_exited(&s->clients[0], 5, REASON_KILLED);
    expect_exited(&s->clients[1], 5, REASON_KILLED);
    expect_nothing(&s->clients[1]);
    assert_int_equal(s->keeper.n_commands, 2);
    tell_exited(s, later, 0);
    expect_exited(&s->clients[0], 7, REASON_EXITED);
}

static void a_stop_of_nothing_is_answered_at_once(void **state)
{
    struct scene *s = *state;
    uint32_t number = give(s, 0, 5, 0);
    struct message m;

    send_stop(s, 1, 9, number + 1);
    expect_error(&s->clients[1], 9, ESRCH);
    send_to(&s->clients[1], MSG_STOP, 10, NULL);
    turn(s);
    expect_error(&s->clients[1], 10, EPROTO);
    tell_exited(s, number, 0);
    send_stop(s, 1, 11, number); /* it has ended */
    expect_error(&s->clients[1], 11, ESRCH);
    send_stop(s, 1, 12, 0);
    expect(&s->clients[1], MSG_DONE, 12, &m);
    expect_nothing(&s->init);
    send_to(&s->clients[1], MSG_FILES, 13, NULL);
    turn(s);
    uint32_t files = number_at_init(s);
    expect(&s->clients[1], MSG_FILES_OPENED, 13, &m);
    message_close_fds(&m);
    send_stop(s, 1, 14, files);
    expect_error(&s->clients[1], 14, ESRCH);
    expect_nothing(&s->init);
}

static void two_may_stop_the_same_command(void **state)
{
    struct scene *s = *state;
    uint32_t number = give(s, 0, 5, 0);
    struct message m;

    send_stop(s, 1, 9, number);
    send_stop(s, 2, 10, 0);
    send_stop(s, 2, 11, number);
    expect(&s->init, MSG_KILL, number, &m);
    expect_nothing(&s->init);
    tell_exited(s, number, 0);
    tell_killed(s, number);
    expect(&s->clients[1], MSG_DONE, 9, &m);
    assert_int_equal(channel_receive(&s->clients[2], &m), 1);
    assert_int_equal(m.type, MSG_DONE);
    assert_int_equal(channel_receive(&s->clients[2], &m), 1);
    assert_int_equal(m.type, MSG_DONE);
}

static void a_stop_is_forgotten_with_its_client(void **state)
{
    struct scene *s = *state;
    uint32_t number = give(s, 0, 5, 0);
    struct message m;

    send_stop(s, 1, 9, number);
    send_stop(s, 2, 9, number);
    hang_up(s, 1);
    expect(&s->init, MSG_KILL, number, &m);
    tell_exited(s, number, 0);
    tell_killed(s, number);
    expect(&s->clients[2], MSG_DONE, 9, &m);
    expect_exited(&s->clients[0], 5, REASON_KILLED);
}

/* --- Questions --- */

static void send_long_exec(struct scene *s, uint32_t id, const char **argv, size_t n)
{
    static uint8_t buf[300000];
    const struct exec_request x = {.argv = argv, .n_argv = n, .flags = EXEC_DETACH};
    struct writer w = writer_over(buf, sizeof buf);

    exec_request_encode(&w, &x);
    assert_false(w.bad);
    send_to(&s->clients[0], MSG_EXEC, id, &w);
    assert_int_equal(channel_flush(&s->clients[0]), 0);
    turn(s);
}

/* Asks for the commands and finds the one with @number. */
static void find_command(struct scene *s, uint32_t number, struct message *m,
                         struct command_info *ret)
{
    send_to(&s->clients[1], MSG_PS, 9, NULL);
    turn(s);
    expect(&s->clients[1], MSG_COMMANDS, 9, m);
    struct reader r = m->payload;
    while (command_info_next(&r, ret) == 1)
        if (ret->number == number)
            return;
    fail_msg("command %u is not listed", number);
}

static void a_list_has_the_commands_of_all_clients(void **state)
{
    struct scene *s = *state;
    uint64_t before = clock_epoch_us();
    uint32_t detached = give(s, 0, 5, EXEC_DETACH), terminal;
    struct command_info x;
    struct message m;
    size_t n = 0;

    send_exec(s, 2, 5, EXEC_TTY, UINT64_C(1) << 50);
    terminal = number_at_init(s);
    tell_started(s, detached, 42);
    send_to(&s->clients[2], MSG_FILES, 8, NULL);
    turn(s);
    number_at_init(s);
    find_command(s, detached, &m, &x);
    assert_int_equal(x.pid, 42);
    assert_int_equal(x.flags, COMMAND_DETACHED);
    assert_true(x.started_at_us >= before && x.started_at_us <= clock_epoch_us());
    assert_int_equal(x.timeout_us, 0);
    assert_int_equal(x.n_argv, 2);
    assert_string_equal(x.argv[0], "sleep");
    assert_string_equal(x.argv[1], "9");
    find_command(s, terminal, &m, &x);
    assert_int_equal(x.pid, 0); /* init has not said it yet */
    assert_int_equal(x.flags, COMMAND_TTY);
    assert_true(x.timeout_us == UINT64_C(1) << 50);
    struct reader r = m.payload;
    while (command_info_next(&r, &x) == 1)
        n++;
    assert_int_equal(n, 2); /* FILES is none */
}

static void long_arguments_are_cut_in_a_list(void **state)
{
    static char longest[COMMAND_ARGS_BYTES_MAX + 1];
    const char *many[COMMAND_ARGS_MAX + 10], *three[] = {"a", longest, "b"};
    struct scene *s = *state;
    struct command_info x;
    struct message m;

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = "x";
    send_long_exec(s, 5, many, ARRAY_SIZE(many));
    find_command(s, number_at_init(s), &m, &x);
    assert_int_equal(x.n_argv, COMMAND_ARGS_MAX);

    memset(longest, 'y', COMMAND_ARGS_BYTES_MAX);
    longest[COMMAND_ARGS_BYTES_MAX - sizeof "a" - 1] = '\0'; /* just fits behind the first */
    send_long_exec(s, 6, three, 3);
    find_command(s, number_at_init(s), &m, &x);
    assert_int_equal(x.n_argv, 2);
    assert_int_equal(strlen(x.argv[1]), COMMAND_ARGS_BYTES_MAX - sizeof "a" - 1);

    longest[strlen(longest)] = 'y'; /* now one byte more than fits even alone */
    assert_int_equal(strlen(longest), COMMAND_ARGS_BYTES_MAX);
    send_long_exec(s, 7, three, 3);
    find_command(s, number_at_init(s), &m, &x);
    assert_int_equal(x.n_argv, 1);
    send_long_exec(s, 8, three + 1, 2);
    find_command(s, number_at_init(s), &m, &x);
    assert_int_equal(x.n_argv, 0);
    longest[COMMAND_ARGS_BYTES_MAX - 1] = '\0';
    send_long_exec(s, 9, three + 1, 1);
    find_command(s, number_at_init(s), &m, &x);
    assert_int_equal(x.n_argv, 1);
}

static void a_sandbox_tells_what_it_is(void **state)
{
    struct scene *s = *state;
    struct sandbox_info x;
    struct message m;

    memcpy(s->keeper.id, "sb-test", sizeof "sb-test");
    s->keeper.created_at_us = 5;
    s->keeper.expires_at_us = 6;
    s->keeper.spec.name = strdup("box");
    assert_int_equal(string_list_add(&s->keeper.spec.tags, "a=1"), 0);
    give(s, 0, 5, 0);
    send_to(&s->clients[1], MSG_FILES, 8, NULL);
    turn(s);
    number_at_init(s);
    send_to(&s->clients[2], MSG_INSPECT, 9, NULL);
    turn(s);
    expect(&s->clients[2], MSG_SANDBOX, 9, &m);
    assert_int_equal(sandbox_info_decode(m.payload, &x), 0);
    assert_string_equal(x.id, "sb-test");
    assert_string_equal(x.name, "box");
    assert_null(x.owner);
    assert_string_equal(x.backend, "local");
    assert_string_equal(x.workdir, SPEC_WORKDIR_DEFAULT);
    assert_int_equal(x.state, STATE_RUNNING);
    assert_int_equal(x.created_at_us, 5);
    assert_int_equal(x.expires_at_us, 6);
    assert_int_equal(x.n_commands, 1);
    assert_int_equal(x.keeper_pid, getpid());
    assert_int_equal(x.n_labels, 1);
    assert_string_equal(x.labels[0], "a=1");
}

static void nothing_is_told_of_a_sandbox_that_does_not_stand(void **state)
{
    static const uint16_t types[] = {MSG_INSPECT, MSG_PS, MSG_FILES};
    struct scene *s = *state;

    s->keeper.state = KEEPER_CREATING;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        send_to(&s->clients[0], types[i], (uint32_t)i, NULL);
        turn(s);
        expect_error(&s->clients[0], (uint32_t)i, ENOENT);
    }
    give(s, 0, 5, 0); /* waits for it */
    s->keeper.state = KEEPER_NEW;
    send_exec(s, 0, 6, 0, 0);
    expect_error(&s->clients[0], 6, ENOENT);
    s->keeper.state = KEEPER_RUNNING;
}

/* --- Files --- */

static void files_connect_a_client_with_the_inside(void **state)
{
    const char *strings[32];
    struct scene *s = *state;
    struct exec_request x;
    struct message inside, outside, m;
    char byte = 0;

    s->keeper.spec.uid = 1000;
    s->keeper.spec.gid = 100;
    send_to(&s->clients[1], MSG_FILES, 8, NULL);
    turn(s);
    assert_int_equal(channel_receive(&s->init, &inside), 1);
    assert_int_equal(inside.type, MSG_EXEC);
    assert_int_equal(inside.n_fds, 1);
    assert_int_equal(exec_request_decode(inside.payload, strings, ARRAY_SIZE(strings), &x), 0);
    assert_int_equal(x.flags, EXEC_FILES | EXEC_USER_SET);
    assert_int_equal(x.uid, 1000);
    assert_int_equal(x.gid, 100);
    assert_int_equal(x.n_envp, 0);
    assert_string_equal(x.workdir, SPEC_WORKDIR_DEFAULT);
    expect(&s->clients[1], MSG_FILES_OPENED, 8, &outside);
    assert_int_equal(outside.n_fds, 1);
    assert_int_equal(send(outside.fds[0], "x", 1, 0), 1);
    assert_int_equal(recv(inside.fds[0], &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
    message_close_fds(&inside);
    assert_int_equal(recv(outside.fds[0], &byte, 1, 0), 0); /* the keeper holds no end of it */
    message_close_fds(&outside);
    tell_started(s, inside.id, 42);
    tell_exited(s, inside.id, 0);
    expect_nothing(&s->clients[1]);
    assert_int_equal(s->keeper.n_commands, 0);

    send_to(&s->clients[1], MSG_FILES, 9, NULL);
    turn(s);
    uint32_t second = number_at_init(s);
    hang_up(s, 1);
    expect_nothing(&s->init); /* it sees its client's end by itself, and tidies up */
    s->keeper.commands->timeout.due(&s->keeper.loop, &s->keeper.commands->timeout);
    expect(&s->init, MSG_KILL, second, &m);
}

/* --- The end --- */

static void everybody_hears_of_the_end(void **state)
{
    struct scene *s = *state;
    struct message m;

    give(s, 1, 5, 0);
    give(s, 1, 6, EXEC_DETACH); /* which has not started, so its client waits for an answer */
    send_to(&s->clients[2], MSG_DESTROY, 9, NULL);
    turn(s);
    assert_int_equal(s->keeper.state, KEEPER_ENDING);
    assert_true(s->keeper.loop.stop);
    for (int i = 0; i < CLIENTS; i++) {
        uint32_t by = ENDED__MAX;

        for (int k = 0; i == 1 && k < 2; k++) { /* its commands first */
            struct exit_report x;

            assert_int_equal(channel_receive(&s->clients[i], &m), 1);
            assert_int_equal(m.type, MSG_EXITED);
            assert_int_equal(exit_report_decode(m.payload, &x), 0);
            assert_int_equal(x.reason, REASON_KILLED);
        }
        expect(&s->clients[i], MSG_ENDED, i == 0 ? CREATE_ID : 0, &m);
        assert_int_equal(number_decode(m.payload, TAG_ENDED_BY, &by), 0);
        assert_int_equal(by, ENDED_DESTROYED);
        expect_nothing(&s->clients[i]);
    }
    connections_farewell(&s->keeper);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(channel_receive(&s->clients[i], &m), -EPIPE);
}

/* What came with 1.3 is told to earlier clients as what they know. */
static void an_end_is_told_in_the_words_of_each_version(void **state)
{
    struct scene *s = *state;
    struct message m;

    for (uint32_t i = 0; i < CLIENTS; i++)
        send_hello_of(&s->clients[i], WIRE_VERSION_MAJOR, i + 1);
    turn(s);
    for (int i = 0; i < CLIENTS; i++) {
        expect(&s->clients[i], MSG_HELLO, 0, &m);
        give(s, i, 5, 0);
    }
    keeper_end(&s->keeper, ENDED_COST);
    for (int i = 0; i < CLIENTS; i++) {
        bool later = i + 1 >= 3;
        uint32_t by = ENDED__MAX;

        expect_exited(&s->clients[i], 5, later ? REASON_COST : REASON_KILLED);
        expect(&s->clients[i], MSG_ENDED, i == 0 ? CREATE_ID : 0, &m);
        assert_int_equal(number_decode(m.payload, TAG_ENDED_BY, &by), 0);
        assert_int_equal(by, later ? ENDED_COST : ENDED_KILLED);
    }
}

static void whoever_stops_commands_hears_of_the_end_too(void **state)
{
    struct scene *s = *state;
    uint32_t number = give(s, 0, 5, 0);
    struct message m;

    send_stop(s, 1, 9, number);
    keeper_end(&s->keeper, ENDED_LIFETIME);
    expect_exited(&s->clients[0], 5, REASON_LIFETIME);
    expect(&s->clients[0], MSG_ENDED, CREATE_ID, &m);
    expect(&s->clients[1], MSG_DONE, 9, &m); /* nothing of the command is left */
    expect(&s->clients[1], MSG_ENDED, 0, &m);
}

static void clients_come_by_a_listening_socket(void **state)
{
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    struct scene *s = *state;
    struct channel more[3];
    struct message m;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    s->keeper.place.uid = geteuid();
    assert_int_equal(connections_listen(&s->keeper, fd), 0);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        channel_init(&more[i], socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        assert_int_equal(connect(more[i].fd, (const struct sockaddr *)&address, size), 0);
        send_hello(&more[i], WIRE_VERSION_MAJOR);
    }
    turn(s);
    turn(s);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        expect(&more[i], MSG_HELLO, 0, &m);
        channel_done(&more[i]);
    }
    turn(s);
    if (geteuid() != 0) { /* root may always come */
        s->keeper.place.uid = geteuid() + 1;
        channel_init(&more[0], socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        assert_int_equal(connect(more[0].fd, (const struct sockaddr *)&address, size), 0);
        turn(s);
        assert_int_equal(channel_receive(&more[0], &m), -EPIPE);
        channel_done(&more[0]);
    }
    loop_forget(&s->keeper.loop, &s->keeper.listen_source);
    fd_closep(&s->keeper.listen_fd);
}

/* One command of the client drains, another runs, and init has died: nothing is forgotten twice. */
static void a_client_may_go_when_init_is_gone(void **state)
{
    struct scene *s = *state;
    struct message m;

    send_exec(s, 1, 5, EXEC_IN_BAND, 0);
    assert_int_equal(channel_receive(&s->init, &m), 1);
    tell_exited(s, m.id, 0);
    assert_int_equal(s->keeper.n_commands, 1);
    give(s, 1, 6, 0);
    channel_done(&s->init);
    hang_up(s, 1);
    message_close_fds(&m);
    assert_int_equal(s->keeper.n_commands, 0);
}

static void commands_may_be_stopped_when_init_is_gone(void **state)
{
    struct scene *s = *state;

    give(s, 1, 5, 0);
    give(s, 1, 6, 0);
    channel_done(&s->init);
    send_stop(s, 2, 9, 0);
    assert_int_equal(s->keeper.state, KEEPER_ENDING);
}

/* Its processes are gone: whoever stops it need not wait until its client takes the last output. */
static void a_stop_does_not_wait_for_a_slow_reader(void **state)
{
    static const uint8_t big[60000];
    struct scene *s = *state;
    struct message m, done;

    send_exec(s, 1, 5, EXEC_IN_BAND, 0);
    assert_int_equal(channel_receive(&s->init, &m), 1);
    (void)fcntl(m.fds[0], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 100; i++) { /* more than the window, so that the rest stays in the pipe */
        (void)!write(m.fds[0], big, sizeof big);
        turn(s);
    }
    tell_exited(s, m.id, 0);
    message_close_fds(&m);
    send_stop(s, 2, 9, 0);
    turn(s);
    assert_int_equal(channel_receive(&s->clients[2], &done), 1);
    assert_int_equal(done.type, MSG_DONE);
}

/* --- What egress has refused --- */

/* An egress process that is the test; its end of the channel. */
static void give_egress(struct scene *s, struct channel *ret)
{
    int pair[2];

    assert_int_equal(io_pair(pair), 0);
    channel_init(&s->keeper.egress.channel, pair[0]);
    s->keeper.egress.running = true;
    channel_init(ret, pair[1]);
}

static uint32_t expect_sync(struct channel *egress)
{
    struct message m;

    assert_int_equal(channel_receive(egress, &m), 1);
    assert_int_equal(m.type, MSG_SYNC);
    return m.id;
}

static const struct denial refused = {.protocol = DENIAL_TCP,
                                      .name = "",
                                      .address = "192.0.2.9",
                                      .port = 80,
                                      .rule = "no rule",
                                      .reason = "nothing lists it"};

static size_t denials_of(const struct message *m)
{
    struct reader r = m->payload;
    struct denial x;
    size_t n = 0;

    while (exit_denial_next(&r, &x) > 0)
        n += strcmp(x.address, refused.address) == 0 && x.port == refused.port;
    return n;
}

static void an_end_is_told_when_egress_has_told_all(void **state)
{
    struct scene *s = *state;
    struct channel egress;
    struct message m;

    give_egress(s, &egress);
    uint32_t first = give(s, 0, 5, 0), other = give(s, 1, 6, 0);
    tell_exited(s, first, 1);
    uint32_t sync = expect_sync(&egress);
    expect_nothing(&s->clients[0]);
    events_denied(&s->keeper, &refused); /* it was on its way */
    commands_synced(&s->keeper, sync + 1);
    expect_nothing(&s->clients[0]);
    commands_synced(&s->keeper, sync);
    expect(&s->clients[0], MSG_EXITED, 5, &m);
    assert_int_equal(denials_of(&m), 1);
    tell_exited(s, other, 0); /* which ran at that time too */
    commands_synced(&s->keeper, expect_sync(&egress));
    expect(&s->clients[1], MSG_EXITED, 6, &m);
    assert_int_equal(denials_of(&m), 1);
    first = give(s, 0, 7, 0); /* and one that began later */
    tell_exited(s, first, 0);
    commands_synced(&s->keeper, expect_sync(&egress));
    expect(&s->clients[0], MSG_EXITED, 7, &m);
    assert_int_equal(denials_of(&m), 0);
    channel_done(&egress);
}

static int no_rest(struct loop *l, struct loop_timer *t)
{
    (void)l;
    (void)t;
    return 0;
}

static void an_end_that_egress_leaves_untold_is_told_all_the_same(void **state)
{
    struct scene *s = *state;
    const uint64_t begun = clock_now_us();
    struct channel egress;

    s->keeper.rest_timer.due = no_rest;
    give_egress(s, &egress);
    tell_exited(s, give(s, 0, 5, 0), 3);
    while (s->keeper.commands && clock_now_us() - begun < 20000000)
        assert_int_equal(loop_turn(&s->keeper.loop, clock_after_us(100000)), 0);
    expect_exited(&s->clients[0], 5, REASON_EXITED);
    channel_done(&egress);
}

static void the_last_command_ends_the_sandbox_when_all_is_told(void **state)
{
    const struct exit_report x = {.left_empty = 1};
    struct scene *s = *state;
    struct channel egress;
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_EXITED};

    s->keeper.spec.owned = true;
    give_egress(s, &egress);
    m.id = give(s, 0, 5, EXEC_LAST);
    exit_report_encode(&w, &x);
    m.payload = reader_over(buf, writer_len(&w));
    assert_int_equal(command_exited(&s->keeper, &m), 0);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
    assert_true(commands_end_soon(&s->keeper));
    events_denied(&s->keeper, &refused);
    commands_synced(&s->keeper, expect_sync(&egress));
    assert_int_equal(s->keeper.state, KEEPER_ENDING);
    assert_int_equal(s->keeper.ended_by, ENDED_DESTROYED);
    expect(&s->clients[0], MSG_EXITED, 5, &m);
    assert_int_equal(denials_of(&m), 1);
    expect(&s->clients[0], MSG_ENDED, CREATE_ID, &m);
    channel_done(&egress);
}

static void a_client_that_goes_does_not_wait_for_egress(void **state)
{
    struct scene *s = *state;
    struct channel egress;

    give_egress(s, &egress);
    tell_exited(s, give(s, 1, 5, 0), 0);
    hang_up(s, 1);
    assert_int_equal(s->keeper.n_commands, 0);
    commands_synced(&s->keeper, expect_sync(&egress));
    channel_done(&egress);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_client_that_does_not_greet_is_sent_away, start_silent,
                                        end),
        SCENE(a_request_of_no_kind_is_refused_and_harmless),
        SCENE(a_second_sandbox_is_refused),
        SCENE(bytes_that_are_no_message_cost_a_client_its_connection),
        SCENE(ids_of_two_clients_do_not_collide),
        SCENE(one_client_has_an_id_once),
        SCENE(a_signal_goes_to_the_clients_own_command),
        SCENE(flags_that_do_not_go_together_are_refused),
        SCENE(a_command_over_its_time_is_killed_and_says_so),
        SCENE(a_detached_command_answers_by_its_start_alone),
        SCENE(a_detached_command_that_cannot_start_is_told),
        SCENE(with_a_client_go_its_commands),
        SCENE(detached_commands_stay),
        SCENE(output_that_was_on_its_way_goes_with_the_client),
        SCENE(a_killed_command_does_not_wait_for_a_client_that_has_gone),
        SCENE(a_kill_takes_no_longer_or_shorter_when_its_client_goes),
        SCENE(an_owned_sandbox_ends_with_its_creator_only),
        SCENE(a_held_sandbox_outlives_all_its_clients),
        SCENE(a_client_that_reads_nothing_is_dropped_without_harm),
        SCENE(a_stop_is_done_when_nothing_of_the_command_is_left),
        SCENE(a_stop_of_all_waits_for_all_that_ran),
        SCENE(a_stop_of_nothing_is_answered_at_once),
        SCENE(two_may_stop_the_same_command),
        SCENE(a_stop_is_forgotten_with_its_client),
        SCENE(a_list_has_the_commands_of_all_clients),
        SCENE(long_arguments_are_cut_in_a_list),
        SCENE(a_sandbox_tells_what_it_is),
        SCENE(nothing_is_told_of_a_sandbox_that_does_not_stand),
        SCENE(files_connect_a_client_with_the_inside),
        SCENE(everybody_hears_of_the_end),
        SCENE(whoever_stops_commands_hears_of_the_end_too),
        cmocka_unit_test_setup_teardown(an_end_is_told_in_the_words_of_each_version, start_silent,
                                        end),
        SCENE(clients_come_by_a_listening_socket),
        SCENE(a_client_may_go_when_init_is_gone),
        SCENE(commands_may_be_stopped_when_init_is_gone),
        SCENE(a_stop_does_not_wait_for_a_slow_reader),
        SCENE(an_end_is_told_when_egress_has_told_all),
        SCENE(an_end_that_egress_leaves_untold_is_told_all_the_same),
        SCENE(the_last_command_ends_the_sandbox_when_all_is_told),
        SCENE(a_client_that_goes_does_not_wait_for_egress),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

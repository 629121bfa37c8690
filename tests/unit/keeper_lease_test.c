/* SPDX-License-Identifier: Apache-2.0 */
/* Several clients of one sandbox with an owner: who may change it, and what becomes of the others.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/command.h"
#include "keeper/lease.h"
#include "wire/fault.h"
#include "base/guards.h"

enum { CLIENTS = 4, ATTACH_ID = 50, TURNS_MAX = 100000, KEEP_US = 3600 * 1000000u };

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

/* An error for request @id whose message has @words. */
static void expect_error(struct scene *s, int i, uint32_t id, int code, const char *words)
{
    struct error err = ERROR_INIT;
    struct message m;

    expect(&s->clients[i], MSG_ERROR, id, &m);
    assert_int_equal(fault_decode(m.payload, &err), 0);
    if (err.code != code || !strstr(err.message, words))
        fail_msg("%d: %s", err.code, err.message);
}

static void ask(struct scene *s, int i, uint16_t type, uint32_t id, const struct writer *w)
{
    assert_int_equal(
        channel_send(&s->clients[i], type, id, w ? w->start : NULL, w ? writer_len(w) : 0, NULL, 0),
        0);
    turn(s);
}

static void greet(struct scene *s, int i)
{
    const struct hello hello = {WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR, "a test"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m;

    hello_encode(&w, &hello);
    ask(s, i, MSG_HELLO, 0, &w);
    expect(&s->clients[i], MSG_HELLO, 0, &m);
}

static int start_with(void **state, const char *owner, bool owned)
{
    static struct scene s;
    int link[2], pair[2];

    memset(&s, 0, sizeof s);
    *state = &s;
    if (io_pair(link) < 0 || loop_init(&s.keeper.loop) < 0 || spec_init(&s.keeper.spec) < 0)
        return -1;
    s.keeper.listen_fd = -EBADF;
    s.keeper.init_source.fd = s.keeper.process_source.fd = -EBADF;
    s.keeper.sandbox = (struct sandbox)SANDBOX_INIT;
    s.keeper.egress = (struct keeper_egress)KEEPER_EGRESS_INIT;
    s.keeper.events = (struct event_log)EVENT_LOG_INIT;
    s.keeper.policy_generation = 1;
    s.keeper.spec.owner = owner ? strdup(owner) : NULL;
    s.keeper.spec.owned = owned;
    channel_init(&s.keeper.init, link[0]);
    channel_init(&s.init, link[1]);
    for (int i = 0; i < CLIENTS; i++) {
        if (io_pair(pair) < 0 || connection_new(&s.keeper, pair[0]) < 0)
            return -1;
        s.connections[i] = s.keeper.connections;
        channel_init(&s.clients[i], pair[1]);
    }
    s.keeper.state = KEEPER_RUNNING;
    s.keeper.creator = s.connections[0];
    lease_begin(&s.keeper);
    for (int i = 0; i < CLIENTS; i++)
        greet(&s, i);
    return 0;
}

static int start(void **state)
{
    return start_with(state, "a/b", false);
}

static int start_without_owner(void **state)
{
    return start_with(state, NULL, false);
}

static int start_owned(void **state)
{
    return start_with(state, "a/b", true);
}

static int end(void **state)
{
    struct scene *s = *state;

    keeper_end(&s->keeper, ENDED_ERROR);
    assert_int_equal(s->keeper.n_commands, 0);
    connections_farewell(&s->keeper);
    stops_done(&s->keeper);
    events_close(&s->keeper);
    lease_done(&s->keeper);
    for (int i = 0; i < CLIENTS; i++)
        channel_done(&s->clients[i]);
    channel_done(&s->init);
    spec_done(&s->keeper.spec);
    loop_done(&s->keeper.loop);
    return 0;
}

/* --- what clients ask --- */

static void ask_attach(struct scene *s, int i, uint32_t id, const struct attach_request *x)
{
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);

    attach_request_encode(&w, x);
    ask(s, i, MSG_ATTACH, id, &w);
}

/* Client @i asks to attach, and is answered at once or after those that have to end. */
static void begin_attach(struct scene *s, int i, const char *holder, uint64_t keep_us)
{
    const struct attach_request x = {.owner = "a/b", .holder = holder, .keep_us = keep_us};

    ask_attach(s, i, ATTACH_ID, &x);
}

static uint32_t end_attach(struct scene *s, int i)
{
    struct attach_report report;
    struct message m;

    expect(&s->clients[i], MSG_ATTACHED, ATTACH_ID, &m);
    assert_int_equal(attach_report_decode(m.payload, &report), 0);
    assert_non_null(report.network);
    assert_true(report.left_us == UINT64_MAX); /* this one has no end */
    assert_string_equal(report.workdir, "/workspace");
    return report.generation;
}

/* Client @i attaches, which must go well and wait for nobody. Return: the generation. */
static uint32_t attach(struct scene *s, int i, const char *holder, uint64_t keep_us)
{
    begin_attach(s, i, holder, keep_us);
    return end_attach(s, i);
}

static void present(struct scene *s, int i, uint32_t generation)
{
    uint8_t buf[16];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_LEASE_GENERATION, generation);
    ask(s, i, MSG_PRESENT, 51, &w);
}

static void must_present(struct scene *s, int i, uint32_t generation)
{
    struct message m;

    present(s, i, generation);
    expect(&s->clients[i], MSG_DONE, 51, &m);
}

static void release(struct scene *s, int i)
{
    struct message m;

    ask(s, i, MSG_RELEASE, 52, NULL);
    expect(&s->clients[i], MSG_DONE, 52, &m);
}

static void ask_exec(struct scene *s, int i, uint32_t id, uint32_t flags)
{
    const char *argv[] = {"sleep", "9"};
    const struct exec_request x = {.argv = argv, .n_argv = 2, .flags = flags};
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    exec_request_encode(&w, &x);
    ask(s, i, MSG_EXEC, id, &w);
}

/* A command of client @i that init knows by the number returned. */
static uint32_t give(struct scene *s, int i, uint32_t id, uint32_t flags)
{
    struct message m;

    ask_exec(s, i, id, flags);
    assert_int_equal(channel_receive(&s->init, &m), 1);
    assert_int_equal(m.type, MSG_EXEC);
    message_close_fds(&m);
    return m.id;
}

/* A connection for files; whether it is only for reading. */
static bool open_files(struct scene *s, int i, uint32_t id, uint32_t *ret_number)
{
    const char *strings[8];
    struct error why = ERROR_INIT;
    struct exec_request x;
    struct message m;

    ask(s, i, MSG_FILES, id, NULL);
    assert_int_equal(channel_receive(&s->init, &m), 1);
    assert_int_equal(m.type, MSG_EXEC);
    assert_int_equal(exec_request_decode(m.payload, strings, ARRAY_SIZE(strings), &x), 0);
    assert_true(x.flags & EXEC_FILES);
    *ret_number = m.id;
    message_close_fds(&m);
    expect(&s->clients[i], MSG_FILES_OPENED, id, &m);
    assert_int_equal(m.n_fds, 1);
    bool read_only = x.flags & EXEC_READ_ONLY;
    assert_int_equal(fault_decode(m.payload, &why) == 0, read_only);
    assert_int_equal(why.code != 0, read_only);
    message_close_fds(&m);
    return read_only;
}

static void expect_killed(struct scene *s, uint32_t number)
{
    struct message m;

    expect(&s->init, MSG_KILL, number, &m);
}

/* Init is to end what commands from number @first on have left behind. */
static void expect_rests(struct scene *s, uint32_t first)
{
    struct message m;
    uint32_t got;

    expect(&s->init, MSG_KILL, 0, &m);
    assert_int_equal(number_decode(m.payload, TAG_COMMAND_NUMBER, &got), 0);
    assert_int_equal(got, first);
}

static int tell_rests(struct scene *s, uint32_t error)
{
    uint8_t buf[16];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_KILLED};

    field_put_u32(&w, TAG_ERROR_CODE, error);
    m.payload = reader_over(buf, writer_len(&w));
    int r = command_killed(&s->keeper, &m);
    if (s->keeper.state == KEEPER_RUNNING)
        turn(s);
    return r;
}

/* A command of client @i has ended by itself, and that is told. */
static void end_command(struct scene *s, int i, uint32_t number)
{
    const struct exit_report x = {.exit_code = 0};
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_EXITED, .id = number};

    exit_report_encode(&w, &x);
    m.payload = reader_over(buf, writer_len(&w));
    assert_int_equal(command_exited(&s->keeper, &m), 0);
    turn(s);
    assert_int_equal(channel_receive(&s->clients[i], &m), 1);
    assert_int_equal(m.type, MSG_EXITED);
}

/* Init has killed all of a command. */
static void tell_dead(struct scene *s, uint32_t number)
{
    const struct exit_report x = {.signal = SIGKILL};
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_EXITED, .id = number};

    exit_report_encode(&w, &x);
    m.payload = reader_over(buf, writer_len(&w));
    assert_int_equal(command_exited(&s->keeper, &m), 0);
    w = writer_over(buf, sizeof buf);
    field_put_u32(&w, TAG_ERROR_CODE, 0);
    m = (struct message){.type = MSG_KILLED, .id = number};
    m.payload = reader_over(buf, writer_len(&w));
    assert_int_equal(command_killed(&s->keeper, &m), 0);
    turn(s);
}

static void expect_lost(struct scene *s, int i)
{
    struct message m;

    expect(&s->clients[i], MSG_LEASE_LOST, 0, &m);
}

static void expect_exited(struct scene *s, int i, uint32_t id)
{
    struct exit_report x;
    struct message m;

    expect(&s->clients[i], MSG_EXITED, id, &m);
    assert_int_equal(exit_report_decode(m.payload, &x), 0);
    assert_int_equal(x.reason, REASON_KILLED);
}

static void expect_may(struct scene *s, int i, uint32_t id)
{
    (void)give(s, i, id, EXEC_TTY);
    expect_nothing(&s->clients[i]);
}

static void expect_may_not(struct scene *s, int i, uint32_t id, int code, const char *words)
{
    ask_exec(s, i, id, EXEC_TTY);
    expect_error(s, i, id, code, words);
    expect_nothing(&s->init);
}

static void hang_up(struct scene *s, int i)
{
    channel_done(&s->clients[i]);
    turn(s);
}

static uint32_t told_state(struct scene *s, struct sandbox_info *ret)
{
    memset(ret, 0, sizeof *ret);
    lease_describe(&s->keeper, ret);
    return ret->lease_state;
}

/* --- attaching --- */

static void a_sandbox_without_an_owner_is_not_attached_to(void **state)
{
    const struct attach_request x = {.owner = "a/b", .holder = "one"};
    struct sandbox_info info;

    ask_attach(*state, 1, 9, &x);
    expect_error(*state, 1, 9, EACCES, "no owner");
    assert_int_equal(told_state(*state, &info), LEASE_NONE);
    expect_may(*state, 1, 5);
    present(*state, 2, 0);
    expect_error(*state, 2, 51, EACCES, "over");
}

static void an_owned_sandbox_is_not_attached_to(void **state)
{
    const struct attach_request x = {.owner = "a/b", .holder = "one"};

    ask_attach(*state, 0, 9, &x);
    expect_error(*state, 0, 9, EACCES, "not shared");
    assert_false(lease_taken(&((struct scene *)*state)->keeper));
}

static void nothing_is_attached_to_before_it_stands(void **state)
{
    const struct attach_request x = {.owner = "a/b", .holder = "one"};
    struct scene *s = *state;

    s->keeper.state = KEEPER_CREATING;
    ask_attach(s, 1, 9, &x);
    expect_error(s, 1, 9, ENOENT, "no sandbox yet");
    s->keeper.state = KEEPER_RUNNING;
    ask(s, 1, MSG_ATTACH, 10, NULL);
    expect_error(s, 1, 10, EPROTO, "owner");
    ask(s, 1, MSG_PRESENT, 11, NULL);
    expect_error(s, 1, 11, EPROTO, "generation");
    assert_false(lease_taken(&s->keeper));
}

static void a_refused_attach_changes_nothing(void **state)
{
    static const struct {
        struct attach_request x;
        int code;
        const char *words;
    } cases[] = {
        {{.owner = "c", .holder = "two"}, EACCES, "'c'"},
        {{.owner = "", .holder = "two"}, EACCES, "'a/b'"},
        {{.owner = "a/b", .holder = ""}, EACCES, "holder is empty"},
        {{.owner = "a/b", .holder = "two"}, EBUSY, "held by 'one'"},
    };
    struct scene *s = *state;
    struct sandbox_info info;

    assert_int_equal(attach(s, 1, "one", 0), 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ask_attach(s, 2, (uint32_t)i, &cases[i].x);
        expect_error(s, 2, (uint32_t)i, cases[i].code, cases[i].words);
    }
    assert_int_equal(told_state(s, &info), LEASE_HELD);
    assert_string_equal(info.holder, "one");
    assert_int_equal(info.lease_generation, 1);
    expect_nothing(&s->clients[1]);
    expect_may(s, 1, 5);
}

static void of_two_at_the_same_time_one_has_it(void **state)
{
    const struct attach_request one = {.owner = "a/b", .holder = "one"},
                                two = {.owner = "a/b", .holder = "two"};
    struct scene *s = *state;
    struct message m;
    uint8_t buf[256];
    int won = 0;

    for (int i = 1; i < 3; i++) {
        struct writer w = writer_over(buf, sizeof buf);

        attach_request_encode(&w, i == 1 ? &one : &two);
        assert_int_equal(channel_send(&s->clients[i], MSG_ATTACH, 9, buf, writer_len(&w), NULL, 0),
                         0);
    }
    turn(s);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(channel_receive(&s->clients[i], &m), 1);
        won += m.type == MSG_ATTACHED;
    }
    assert_int_equal(won, 1);
}

/* --- what needs the right --- */

static void others_change_nothing_while_it_is_held(void **state)
{
    static const uint16_t types[] = {MSG_POLICY, MSG_STOP};
    struct scene *s = *state;
    struct message m;
    uint32_t number;

    (void)attach(s, 1, "one", 0);
    for (int i = 0; i < CLIENTS; i += 2) { /* whoever created it, too */
        expect_may_not(s, i, 5, EBUSY, "held by 'one'; reading is open to all");
        for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
            ask(s, i, types[t], 6, NULL);
            expect_error(s, i, 6, EBUSY, "held by 'one'");
        }
        assert_true(open_files(s, i, 7, &number));
        ask(s, i, MSG_PS, 8, NULL);
        expect(&s->clients[i], MSG_COMMANDS, 8, &m);
        ask(s, i, MSG_INSPECT, 9, NULL);
        expect(&s->clients[i], MSG_SANDBOX, 9, &m);
    }
    expect_may(s, 1, 5);
    assert_false(open_files(s, 1, 7, &number));
    release(s, 1);
    expect_killed(s, number);
    assert_int_equal(channel_receive(&s->init, &m), 1); /* its command, too */
    assert_int_equal(m.type, MSG_KILL);
    expect_may(s, 2, 5);
}

static void a_connection_that_presents_the_generation_acts_for_the_holder(void **state)
{
    struct scene *s = *state;
    uint32_t number, generation = attach(s, 1, "one", 0);

    must_present(s, 2, generation);
    expect_may(s, 2, 5);
    assert_false(open_files(s, 2, 7, &number));
    expect_may_not(s, 3, 5, EBUSY, "held by 'one'");
}

static void another_generation_is_refused_and_shuts_out_whoever_presents_it(void **state)
{
    static const uint32_t wrong[] = {0, 3, UINT32_MAX};
    struct scene *s = *state;

    (void)attach(s, 1, "one", 0);
    assert_int_equal(attach(s, 1, "one", 0), 2);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        s->connections[2]->fenced = false;
        present(s, 2, wrong[i]);
        expect_error(s, 2, 51, EACCES, "over");
        expect_may_not(s, 2, 5, EACCES, "over");
    }
    present(s, 2, 2); /* it had its chance */
    expect_error(s, 2, 51, EACCES, "over");
    release(s, 1);
    expect_may_not(s, 2, 5, EACCES, "over");
    present(s, 3, 2);
    expect_error(s, 3, 51, EACCES, "generation 2 is over");
    expect_may_not(s, 3, 5, EACCES, "over"); /* though others may */
    expect_may(s, 0, 5);
}

static void who_attached_keeps_it_whatever_else_it_presents(void **state)
{
    struct scene *s = *state;

    assert_int_equal(attach(s, 1, "one", 0), 1);
    present(s, 1, 7);
    expect_error(s, 1, 51, EACCES, "generation 7 is over");
    expect_may(s, 1, 5);
}

static void those_that_could_write_files_are_ended_when_it_is_taken(void **state)
{
    struct scene *s = *state;
    uint32_t others, own, reader;

    assert_false(open_files(s, 2, 7, &others));
    assert_false(open_files(s, 1, 7, &own));
    begin_attach(s, 1, "one", 0);
    expect_killed(s, others);
    expect_nothing(&s->init);       /* its own goes on */
    expect_nothing(&s->clients[1]); /* until it is dead, it could still write */
    tell_dead(s, others);
    (void)end_attach(s, 1);
    assert_true(open_files(s, 2, 8, &reader));
    release(s, 1);
    expect_killed(s, own);
    begin_attach(s, 3, "three", 0);
    expect_nothing(&s->clients[3]);
    tell_dead(s, own);
    (void)end_attach(s, 3);
    expect_nothing(&s->init); /* a reader is left alone */
}

static void what_a_client_that_is_gone_still_writes_ends_when_it_is_taken(void **state)
{
    struct scene *s = *state;
    uint32_t number;

    assert_false(open_files(s, 2, 7, &number));
    hang_up(s, 2);
    expect_nothing(&s->init); /* it may tidy up */
    begin_attach(s, 1, "one", 0);
    expect_killed(s, number);
    expect_nothing(&s->clients[1]);
    tell_dead(s, number);
    (void)end_attach(s, 1);
}

static void an_attach_that_waits_is_overtaken_by_the_next(void **state)
{
    struct scene *s = *state;
    uint32_t number;

    assert_false(open_files(s, 0, 7, &number));
    begin_attach(s, 1, "one", 0);
    expect_killed(s, number);
    begin_attach(s, 2, "one", 0);
    expect_error(s, 1, ATTACH_ID, EACCES, "over");
    expect_lost(s, 1);
    expect_nothing(&s->clients[2]);
    tell_dead(s, number);
    assert_int_equal(end_attach(s, 2), 2);
    expect_nothing(&s->clients[1]);
    expect_may_not(s, 1, 5, EACCES, "over");
}

static void an_attach_that_waits_can_be_given_up(void **state)
{
    struct scene *s = *state;
    struct message m;
    uint32_t number;

    assert_false(open_files(s, 0, 7, &number));
    begin_attach(s, 1, "one", 0);
    expect_killed(s, number);
    ask(s, 1, MSG_RELEASE, 9, NULL);
    expect_error(s, 1, ATTACH_ID, EACCES, "over");
    expect(&s->clients[1], MSG_DONE, 9, &m);
    begin_attach(s, 2, "two", 0);
    hang_up(s, 2);
    assert_false(lease_taken(&s->keeper));
    tell_dead(s, number); /* nobody waits for it any more */
    expect_nothing(&s->clients[1]);
    assert_int_equal(attach(s, 3, "three", 0), 3);
}

/* --- taking over --- */

static void the_same_holder_takes_over_and_fences_its_earlier_connection(void **state)
{
    struct scene *s = *state;
    struct message m;
    uint32_t files, command, presented;

    assert_int_equal(attach(s, 1, "one", 0), 1);
    must_present(s, 3, 1);
    command = give(s, 1, 5, EXEC_TTY);
    uint32_t detached = give(s, 1, 6, EXEC_DETACH);
    assert_false(open_files(s, 1, 7, &files));
    presented = give(s, 3, 5, EXEC_TTY);
    begin_attach(s, 2, "one", 0);
    bool killed[3] = {false};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(channel_receive(&s->init, &m), 1);
        assert_int_equal(m.type, MSG_KILL);
        assert_int_not_equal(m.id, detached);
        killed[0] |= m.id == command;
        killed[1] |= m.id == files;
        killed[2] |= m.id == presented;
    }
    assert_true(killed[0] && killed[1] && killed[2]);
    expect_rests(s, command);
    expect_nothing(&s->init);
    expect_lost(s, 1);
    expect_lost(s, 3);
    tell_dead(s, files);
    tell_dead(s, presented);
    expect_nothing(&s->clients[2]); /* one is left */
    tell_dead(s, command);
    expect_nothing(&s->clients[2]); /* and what others may have left */
    assert_int_equal(tell_rests(s, 0), 0);
    assert_int_equal(end_attach(s, 2), 2);
    expect_exited(s, 1, 5);
    expect_exited(s, 3, 5);
    expect_may_not(s, 1, 8, EACCES, "over; a later attach, of 'one', has it now");
    expect_may_not(s, 3, 8, EACCES, "over; a later attach, of 'one', has it now");
    expect_may(s, 2, 5);
}

static void what_a_fenced_connection_still_sends_has_no_effect(void **state)
{
    const struct attach_request again = {.owner = "a/b", .holder = "one"};
    struct scene *s = *state;
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    uint32_t number;

    (void)attach(s, 1, "one", 0);
    number = give(s, 1, 5, EXEC_TTY | EXEC_IN_BAND | EXEC_STDIN);
    begin_attach(s, 2, "one", 0);
    expect_killed(s, number);
    expect_rests(s, number);
    expect_lost(s, 1);
    field_put_u32(&w, TAG_SIGNAL, 15);
    ask(s, 1, MSG_SIGNAL, 5, &w);
    w = writer_over(buf, sizeof buf);
    stream_data_encode(
        &w, &(struct stream_data){.stream = STREAM_STDIN, .data = (const uint8_t *)"x", .len = 1});
    ask(s, 1, MSG_INPUT, 5, &w);
    ask(s, 1, MSG_CANCEL, 5, NULL);
    expect_nothing(&s->init);
    expect_nothing(&s->clients[1]);
    ask_attach(s, 1, 9, &again); /* it cannot take it back */
    expect_error(s, 1, 9, EACCES, "over");
    ask(s, 1, MSG_STOP, 10, NULL);
    expect_error(s, 1, 10, EACCES, "over");
    release(s, 1);
    assert_true(lease_taken(&s->keeper));
    tell_dead(s, number);
    assert_int_equal(tell_rests(s, 0), 0);
    (void)end_attach(s, 2);
    expect_exited(s, 1, 5);
    release(s, 2);
    expect_may_not(s, 1, 11, EACCES, "over"); /* also when it is free */
    assert_true(open_files(s, 1, 12, &number));
}

static void the_same_connection_may_attach_again_and_loses_nothing(void **state)
{
    struct scene *s = *state;

    assert_int_equal(attach(s, 1, "one", 0), 1);
    must_present(s, 2, 1);
    (void)give(s, 1, 5, EXEC_TTY);
    assert_int_equal(attach(s, 1, "one", 0), 2);
    expect_nothing(&s->init);
    expect_nothing(&s->clients[1]);
    expect_lost(s, 2);
    expect_may(s, 1, 6);
}

/* --- the end of it --- */

static void only_who_attached_gives_it_back(void **state)
{
    struct scene *s = *state;
    struct sandbox_info info;
    uint32_t number;

    must_present(s, 2, attach(s, 1, "one", KEEP_US));
    release(s, 0);
    release(s, 2);
    assert_int_equal(told_state(s, &info), LEASE_HELD);
    number = give(s, 2, 5, EXEC_TTY);
    release(s, 1);
    assert_int_equal(told_state(s, &info), LEASE_FREE); /* a promise to keep it is void then */
    assert_null(info.holder);
    release(s, 1);
    expect_killed(s, number);
    tell_dead(s, number);
    assert_int_equal(attach(s, 0, "two", 0), 2);
}

static void a_release_ends_what_ran_under_the_lease(void **state)
{
    struct scene *s = *state;
    uint32_t own, presented;
    struct message m;

    must_present(s, 2, attach(s, 1, "one", 0));
    own = give(s, 1, 5, EXEC_TTY);
    presented = give(s, 2, 5, EXEC_TTY);
    (void)give(s, 1, 6, EXEC_DETACH);
    (void)give(s, 2, 6, EXEC_DETACH);
    ask(s, 1, MSG_RELEASE, 9, NULL);
    expect(&s->clients[1], MSG_DONE, 9, &m);
    expect_killed(s, presented);
    expect_killed(s, own);
    expect_nothing(&s->init);
    expect_lost(s, 2);
    expect_nothing(&s->clients[1]);
    expect_may_not(s, 2, 7, EACCES, "over");
    expect_may(s, 1, 7); /* it has given it back by itself, and is like others now */
}

static void the_holders_end_frees_it_at_once(void **state)
{
    struct scene *s = *state;
    struct sandbox_info info;
    uint32_t own, presented;

    must_present(s, 2, attach(s, 1, "one", 0));
    own = give(s, 1, 5, EXEC_TTY);
    presented = give(s, 2, 5, EXEC_TTY);
    hang_up(s, 1);
    expect_killed(s, own);
    expect_killed(s, presented);
    expect_rests(s, own);
    expect_lost(s, 2);
    assert_int_equal(told_state(s, &info), LEASE_FREE);
    expect_may_not(s, 2, 7, EACCES, "over");
    begin_attach(s, 3, "other", 0);
    expect_nothing(&s->clients[3]); /* it has it, and is told when nothing is left of the other */
    tell_dead(s, presented);
    tell_dead(s, own);
    expect_nothing(&s->clients[3]);
    assert_int_equal(tell_rests(s, 0), 0);
    assert_int_equal(end_attach(s, 3), 2);
}

static void what_a_given_up_attempt_left_behind_is_dead_before_the_next(void **state)
{
    struct scene *s = *state;
    uint32_t number;

    end_command(s, 0, give(s, 0, 4, EXEC_TTY)); /* of nobody's lease */
    (void)attach(s, 1, "one", KEEP_US);
    number = give(s, 1, 5, EXEC_TTY);
    end_command(s, 1, number); /* its first process; who knows what it started */
    begin_attach(s, 2, "one", KEEP_US);
    expect_rests(s, number);
    expect_nothing(&s->init);
    expect_nothing(&s->clients[2]);
    assert_int_equal(tell_rests(s, 0), 0);
    assert_int_equal(end_attach(s, 2), 2);
    number = give(s, 2, 5, EXEC_TTY);
    end_command(s, 2, number);
    hang_up(s, 2);
    expect_rests(s, number);
    begin_attach(s, 3, "one", 0);
    expect_nothing(&s->init); /* once is enough */
    expect_nothing(&s->clients[3]);
    assert_int_equal(tell_rests(s, 0), 0);
    assert_int_equal(end_attach(s, 3), 3);
    assert_false(s->keeper.rests_timer.set);
}

static void what_is_left_at_a_release_stays(void **state)
{
    struct scene *s = *state;
    uint32_t number;

    (void)attach(s, 1, "one", 0);
    end_command(s, 1, give(s, 1, 5, EXEC_TTY));
    release(s, 1);
    (void)attach(s, 2, "two", 0);
    number = give(s, 2, 5, EXEC_TTY);
    end_command(s, 2, number);
    assert_int_equal(attach(s, 2, "two", 0), 2 + 1); /* the same connection, which goes on */
    expect_nothing(&s->init);
    hang_up(s, 2);
    expect_rests(s, number); /* and nothing of before */
}

static void an_init_that_cannot_end_what_is_left_ends_the_sandbox(void **state)
{
    struct scene *s = *state;

    assert_int_equal(tell_rests(s, 0), -EPROTO); /* nobody asked */
    (void)attach(s, 1, "one", 0);
    end_command(s, 1, give(s, 1, 5, EXEC_TTY));
    hang_up(s, 1);
    assert_true(s->keeper.rests_timer.set);
    assert_int_equal(tell_rests(s, ETIMEDOUT), 0);
    assert_int_equal(s->keeper.state, KEEPER_ENDING);
    assert_int_equal(s->keeper.ended_by, ENDED_ERROR);
}

static void what_others_run_ends_when_it_is_taken(void **state)
{
    struct scene *s = *state;
    uint32_t others, number = give(s, 1, 5, EXEC_TTY);

    others = give(s, 2, 5, EXEC_TTY | EXEC_STDIN);
    (void)give(s, 2, 6, EXEC_DETACH);
    begin_attach(s, 1, "one", 0);
    expect_killed(s, others);
    expect_nothing(&s->init); /* not its own, and none that is nobody's */
    expect_nothing(&s->clients[1]);
    tell_dead(s, others);
    expect_exited(s, 2, 5);
    (void)end_attach(s, 1);
    expect_nothing(&s->clients[2]);
    end_command(s, 1, number);
}

static void a_change_of_the_policy_is_over_before_it_is_told(void **state)
{
    struct scene *s = *state;

    (void)attach(s, 1, "one", 0);
    s->keeper.policy_change = (struct policy_change *)s; /* under way; nobody looks at it */
    begin_attach(s, 2, "one", 0);
    expect_nothing(&s->clients[2]);
    s->keeper.policy_change = NULL;
    lease_settle(&s->keeper);
    assert_int_equal(end_attach(s, 2), 2);
}

static void the_end_of_a_presenter_changes_nothing(void **state)
{
    struct scene *s = *state;

    must_present(s, 2, attach(s, 1, "one", 0));
    hang_up(s, 2);
    assert_true(lease_taken(&s->keeper));
    expect_may(s, 1, 5);
}

static void it_is_kept_for_its_holder_alone(void **state)
{
    const struct attach_request other = {.owner = "a/b", .holder = "two"};
    struct scene *s = *state;
    struct sandbox_info info;
    uint32_t number;
    uint64_t before = clock_epoch_us();

    assert_int_equal(attach(s, 1, "one", KEEP_US), 1);
    hang_up(s, 1);
    assert_int_equal(told_state(s, &info), LEASE_KEPT);
    assert_string_equal(info.holder, "one");
    assert_in_range(info.lease_until_us, before + KEEP_US, clock_epoch_us() + KEEP_US);
    assert_true(lease_taken(&s->keeper));
    ask_attach(s, 2, 9, &other);
    expect_error(s, 2, 9, EBUSY, "kept for 'one'");
    expect_may_not(s, 2, 5, EBUSY, "kept for 'one'");
    assert_true(open_files(s, 2, 7, &number));
    present(s, 0, 1);
    expect_error(s, 0, 51, EACCES, "over; the sandbox is kept for 'one'");
    expect_may_not(s, 0, 5, EACCES, "over; the sandbox is kept for 'one'");
    assert_int_equal(attach(s, 3, "one", 0), 2);
    assert_false(s->keeper.lease_timer.set);
    assert_int_equal(told_state(s, &info), LEASE_HELD);
    assert_int_equal(info.lease_until_us, 0);
}

static void it_is_free_when_nobody_comes_back(void **state)
{
    struct scene *s = *state;
    struct sandbox_info info;

    (void)attach(s, 1, "one", 1000);
    hang_up(s, 1);
    for (int i = 0; i < TURNS_MAX && told_state(s, &info) != LEASE_FREE; i++)
        turn(s);
    assert_int_equal(told_state(s, &info), LEASE_FREE);
    assert_null(info.holder);
    assert_int_equal(attach(s, 2, "two", 0), 2);
}

/* --- destroying --- */

static void ask_destroy(struct scene *s, int i, const char *owner, uint32_t flags)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    if (owner)
        field_put_string(&w, TAG_OWNER, owner);
    if (flags)
        field_put_u32(&w, TAG_DESTROY_FLAGS, flags);
    ask(s, i, MSG_DESTROY, 60, &w);
}

static void expect_ended(struct scene *s)
{
    struct message m;

    assert_true(s->keeper.state >= KEEPER_ENDING);
    assert_int_equal(s->keeper.ended_by, ENDED_DESTROYED);
    expect(&s->clients[3], MSG_ENDED, 0, &m);
}

static void who_ends_it_has_to_be_its_owner(void **state)
{
    struct scene *s = *state;

    ask_destroy(s, 1, NULL, 0);
    expect_error(s, 1, 60, EACCES, "'a/b'");
    ask_destroy(s, 1, "c", 0);
    expect_error(s, 1, 60, EACCES, "'c'");
    ask_destroy(s, 1, "", 0);
    expect_error(s, 1, 60, EACCES, "'a/b'");
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
    ask_destroy(s, 1, "a/b", 0);
    expect_ended(s);
}

static void what_is_held_ends_by_force_alone(void **state)
{
    struct scene *s = *state;

    (void)attach(s, 1, "one", 0);
    ask_destroy(s, 2, "a/b", 0);
    expect_error(s, 2, 60, EBUSY, "held by 'one'");
    ask_destroy(s, 2, "c", 0);
    expect_error(s, 2, 60, EACCES, "'c'");
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
    ask_destroy(s, 2, NULL, DESTROY_FORCE);
    expect_ended(s);
}

static void what_is_kept_ends_by_force_alone(void **state)
{
    struct scene *s = *state;

    (void)attach(s, 1, "one", KEEP_US);
    hang_up(s, 1);
    ask_destroy(s, 2, "a/b", 0);
    expect_error(s, 2, 60, EBUSY, "kept for 'one'");
    ask_destroy(s, 2, "a/b", DESTROY_FORCE);
    expect_ended(s);
}

static void who_made_it_may_always_end_it(void **state)
{
    struct scene *s = *state;

    (void)attach(s, 1, "one", 0);
    ask_destroy(s, 0, NULL, 0);
    expect_ended(s);
}

static void whoever_comes_ends_one_without_an_owner(void **state)
{
    ask_destroy(*state, 2, NULL, 0);
    expect_ended(*state);
}

static void a_damaged_destroy_ends_nothing(void **state)
{
    struct scene *s = *state;
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u64(&w, TAG_DESTROY_FLAGS, DESTROY_FORCE);
    ask(s, 1, MSG_DESTROY, 60, &w);
    expect_error(s, 1, 60, EPROTO, "DESTROY");
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sandbox_without_an_owner_is_not_attached_to,
                                        start_without_owner, end),
        cmocka_unit_test_setup_teardown(an_owned_sandbox_is_not_attached_to, start_owned, end),
        SCENE(nothing_is_attached_to_before_it_stands),
        SCENE(a_refused_attach_changes_nothing),
        SCENE(of_two_at_the_same_time_one_has_it),
        SCENE(others_change_nothing_while_it_is_held),
        SCENE(a_connection_that_presents_the_generation_acts_for_the_holder),
        SCENE(another_generation_is_refused_and_shuts_out_whoever_presents_it),
        SCENE(who_attached_keeps_it_whatever_else_it_presents),
        SCENE(those_that_could_write_files_are_ended_when_it_is_taken),
        SCENE(what_a_client_that_is_gone_still_writes_ends_when_it_is_taken),
        SCENE(an_attach_that_waits_is_overtaken_by_the_next),
        SCENE(an_attach_that_waits_can_be_given_up),
        SCENE(the_same_holder_takes_over_and_fences_its_earlier_connection),
        SCENE(what_a_fenced_connection_still_sends_has_no_effect),
        SCENE(the_same_connection_may_attach_again_and_loses_nothing),
        SCENE(only_who_attached_gives_it_back),
        SCENE(a_release_ends_what_ran_under_the_lease),
        SCENE(the_holders_end_frees_it_at_once),
        SCENE(what_a_given_up_attempt_left_behind_is_dead_before_the_next),
        SCENE(what_is_left_at_a_release_stays),
        SCENE(an_init_that_cannot_end_what_is_left_ends_the_sandbox),
        SCENE(what_others_run_ends_when_it_is_taken),
        SCENE(a_change_of_the_policy_is_over_before_it_is_told),
        SCENE(the_end_of_a_presenter_changes_nothing),
        SCENE(it_is_kept_for_its_holder_alone),
        SCENE(it_is_free_when_nobody_comes_back),
        SCENE(who_ends_it_has_to_be_its_owner),
        SCENE(what_is_held_ends_by_force_alone),
        SCENE(what_is_kept_ends_by_force_alone),
        SCENE(who_made_it_may_always_end_it),
        cmocka_unit_test_setup_teardown(whoever_comes_ends_one_without_an_owner,
                                        start_without_owner, end),
        SCENE(a_damaged_destroy_ends_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

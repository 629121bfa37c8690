/* SPDX-License-Identifier: Apache-2.0 */
/* When a sandbox ends by itself, and what puts that off. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/limits.h"
#include "keeper/command.h"
#include "keeper/ending.h"
#include "wire/exported.h"
#include "wire/fault.h"
#include "base/guards.h"

#define SECOND_US UINT64_C(1000000)
#define LIMIT_US  (20 * SECOND_US)

enum { ASK_ID = 5 };

/* A keeper without a sandbox, and one client. */
struct scene {
    struct keeper keeper;
    struct channel client, init;
    struct connection *connection;
};

static void turn(struct scene *s)
{
    assert_int_equal(loop_turn(&s->keeper.loop, 0), 0);
}

/* Until the sandbox is ending, or @us have passed. */
static void run_for(struct scene *s, uint64_t us)
{
    uint64_t until = clock_after_us(us);

    while (s->keeper.state == KEEPER_RUNNING && clock_now_us() < until)
        assert_int_equal(loop_turn(&s->keeper.loop, until), 0);
}

static int start(void **state)
{
    static struct scene s;
    int link[2], pair[2];

    memset(&s, 0, sizeof s);
    *state = &s;
    if (io_pair(link) < 0 || io_pair(pair) < 0 || loop_init(&s.keeper.loop) < 0 ||
        spec_init(&s.keeper.spec) < 0)
        return -1;
    s.keeper.listen_fd = -EBADF;
    channel_init(&s.keeper.init, link[0]);
    channel_init(&s.init, link[1]);
    s.keeper.init_source.fd = s.keeper.process_source.fd = -EBADF;
    s.keeper.sandbox = (struct sandbox)SANDBOX_INIT;
    s.keeper.egress = (struct keeper_egress)KEEPER_EGRESS_INIT;
    s.keeper.events = (struct event_log)EVENT_LOG_INIT;
    s.keeper.state = KEEPER_RUNNING;
    s.keeper.created_at_us = clock_epoch_us();
    s.keeper.spec.lifetime_us = s.keeper.spec.idle_timeout_us = 0;
    if (connection_new(&s.keeper, pair[0]) < 0)
        return -1;
    s.connection = s.keeper.connections;
    s.connection->greeted = true;
    s.connection->minor = WIRE_VERSION_MINOR;
    channel_init(&s.client, pair[1]);
    return 0;
}

static int stop(void **state)
{
    struct scene *s = *state;

    if (s->keeper.state != KEEPER_ENDING)
        keeper_end(&s->keeper, ENDED_DESTROYED);
    connections_farewell(&s->keeper);
    ending_done(&s->keeper);
    channel_done(&s->client);
    channel_done(&s->init);
    events_close(&s->keeper);
    spec_done(&s->keeper.spec);
    loop_done(&s->keeper.loop);
    return 0;
}

static void ask(struct scene *s, uint16_t type, const struct writer *w)
{
    assert_int_equal(
        channel_send(&s->client, type, ASK_ID, w ? w->start : NULL, w ? writer_len(w) : 0, NULL, 0),
        0);
    turn(s);
}

static void ask_extend(struct scene *s, uint64_t life_us)
{
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u64(&w, TAG_LIFETIME_US, life_us);
    ask(s, MSG_EXTEND, &w);
}

static void expect(struct scene *s, uint16_t type, struct message *m)
{
    assert_int_equal(channel_receive(&s->client, m), 1);
    assert_int_equal(m->type, type);
}

static void expect_refusal(struct scene *s, int code)
{
    struct error err = ERROR_INIT;
    struct message m;

    expect(s, MSG_ERROR, &m);
    assert_int_equal(fault_decode(m.payload, &err), 0);
    assert_int_equal(err.code, code);
}

static void a_sandbox_without_a_lifetime_has_no_end(void **state)
{
    struct scene *s = *state;

    assert_int_equal(ending_begin(&s->keeper), 0);
    ending_active(&s->keeper);
    assert_int_equal(ending_left_us(&s->keeper), UINT64_MAX);
    assert_int_equal(s->keeper.expires_at_us, 0);
    assert_false(s->keeper.ending.idle.set);
}

static void the_lifetime_ends_it(void **state)
{
    struct scene *s = *state;

    s->keeper.spec.lifetime_us = 30000;
    assert_int_equal(ending_begin(&s->keeper), 0);
    assert_true(ending_left_us(&s->keeper) <= 30000);
    assert_int_equal(s->keeper.expires_at_us, s->keeper.created_at_us + 30000);
    run_for(s, LIMIT_US);
    assert_int_equal(s->keeper.state, KEEPER_ENDING);
    assert_int_equal(s->keeper.ended_by, ENDED_LIFETIME);
    assert_int_equal(ending_left_us(&s->keeper), 0);
}

static void a_warning_comes_when_little_is_left(void **state)
{
    struct scene *s = *state;
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1}};

    s->keeper.spec.lifetime_us = 3600 * SECOND_US;
    assert_int_equal(ending_begin(&s->keeper), 0);
    assert_false(s->keeper.ending.warned);
    s->keeper.ending.at_us = clock_boot_us() + 200 * SECOND_US;
    assert_int_equal(timerfd_settime(s->keeper.ending.fd, 0, &soon, NULL), 0);
    for (int turn = 0; turn < 100 && !s->keeper.ending.warned; turn++)
        assert_int_equal(loop_turn(&s->keeper.loop, clock_after_us(10000)), 0);
    assert_true(s->keeper.ending.warned);
    assert_int_equal(s->keeper.state, KEEPER_RUNNING);
}

/* As after a sleep of the host that was longer than all of it: the clock has gone on, and the
 * warning was never due. */
static void a_lifetime_that_passed_unseen_ends_it_at_once(void **state)
{
    struct scene *s = *state;
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1}};

    s->keeper.spec.lifetime_us = 3600 * SECOND_US;
    assert_int_equal(ending_begin(&s->keeper), 0);
    s->keeper.ending.at_us = clock_boot_us() - SECOND_US;
    assert_int_equal(timerfd_settime(s->keeper.ending.fd, 0, &soon, NULL), 0);
    run_for(s, LIMIT_US);
    assert_int_equal(s->keeper.ended_by, ENDED_LIFETIME);
    assert_false(s->keeper.ending.warned);
}

static void what_is_left_before_it_stands_is_all_of_it(void **state)
{
    struct scene *s = *state;

    s->keeper.state = KEEPER_CREATING;
    s->keeper.spec.lifetime_us = 7 * SECOND_US;
    assert_int_equal(ending_left_us(&s->keeper), 7 * SECOND_US);
    s->keeper.state = KEEPER_RUNNING;
}

static void an_extension_counts_from_now_and_may_be_shorter(void **state)
{
    static const uint64_t lives[] = {7200 * SECOND_US, 60 * SECOND_US};
    struct scene *s = *state;
    struct message m;

    s->keeper.spec.lifetime_us = 100 * SECOND_US;
    assert_int_equal(ending_begin(&s->keeper), 0);
    for (size_t i = 0; i < ARRAY_SIZE(lives); i++) {
        s->keeper.ending.warned = true;
        ask_extend(s, lives[i]);
        expect(s, MSG_EXTENDED, &m);
        uint64_t left = left_decode(m.payload), expires = 0;
        struct field f;
        while (field_next(&m.payload, &f))
            if (f.tag == TAG_EXPIRES_AT_US)
                assert_true(field_u64(&f, &expires));
        assert_true(left <= lives[i] && left > lives[i] - 30 * SECOND_US);
        assert_int_equal(expires, s->keeper.expires_at_us);
        assert_false(s->keeper.ending.warned); /* it is told again when little is left of this */
    }
    ask_extend(s, 20000);
    expect(s, MSG_EXTENDED, &m);
    run_for(s, LIMIT_US);
    assert_int_equal(s->keeper.ended_by, ENDED_LIFETIME);
}

static void one_without_a_lifetime_gets_one(void **state)
{
    struct scene *s = *state;
    struct message m;

    assert_int_equal(ending_begin(&s->keeper), 0);
    ask_extend(s, 20000);
    expect(s, MSG_EXTENDED, &m);
    run_for(s, LIMIT_US);
    assert_int_equal(s->keeper.ended_by, ENDED_LIFETIME);
}

static void extensions_out_of_range_change_nothing(void **state)
{
    static const uint64_t lives[] = {0, 1, LIMIT_TIME_MAX_US + 1, UINT64_MAX};
    struct scene *s = *state;

    s->keeper.spec.lifetime_us = 100 * SECOND_US;
    assert_int_equal(ending_begin(&s->keeper), 0);
    const uint64_t at = s->keeper.ending.at_us, expires = s->keeper.expires_at_us;
    for (size_t i = 0; i < ARRAY_SIZE(lives); i++) {
        ask_extend(s, lives[i]);
        expect_refusal(s, ERANGE);
    }
    ask(s, MSG_EXTEND, NULL);
    expect_refusal(s, ERANGE);
    assert_int_equal(s->keeper.ending.at_us, at);
    assert_int_equal(s->keeper.expires_at_us, expires);
}

static void before_it_stands_it_cannot_be_extended(void **state)
{
    struct scene *s = *state;

    s->keeper.state = KEEPER_CREATING;
    ask_extend(s, 100 * SECOND_US);
    expect_refusal(s, ENOENT);
    s->keeper.state = KEEPER_RUNNING;
}

static void silence_ends_it(void **state)
{
    struct scene *s = *state;

    s->keeper.spec.idle_timeout_us = 30000;
    assert_int_equal(ending_begin(&s->keeper), 0);
    ending_active(&s->keeper);
    run_for(s, LIMIT_US);
    assert_int_equal(s->keeper.ended_by, ENDED_IDLE);
}

static void commands_connections_and_leases_keep_it(void **state)
{
    struct scene *s = *state;
    struct keeper *k = &s->keeper;

    k->spec.idle_timeout_us = 3600 * SECOND_US;
    assert_int_equal(ending_begin(k), 0);
    ending_active(k);
    assert_true(k->ending.idle.set);
    k->n_commands = 1;
    ending_active(k);
    assert_false(k->ending.idle.set);
    k->n_commands = 0;
    ending_active(k);
    assert_true(k->ending.idle.set);
    ending_connections(k, 3);
    assert_false(k->ending.idle.set);
    ending_connections(k, 0);
    assert_true(k->ending.idle.set);
    k->lease.state = LEASE_HELD;
    ending_active(k);
    assert_false(k->ending.idle.set);
    k->lease.state = LEASE_KEPT;
    ending_active(k);
    assert_false(k->ending.idle.set);
    k->lease.state = LEASE_NONE;
    ending_active(k);
    assert_true(k->ending.idle.set);
}

static void what_was_done_earlier_counts_from_then(void **state)
{
    struct scene *s = *state;
    struct keeper *k = &s->keeper;

    k->spec.idle_timeout_us = 3600 * SECOND_US;
    assert_int_equal(ending_begin(k), 0);
    uint64_t now = clock_now_us();
    ending_active_before(k, 10 * SECOND_US);
    uint64_t first = k->ending.idle.deadline_us;
    assert_true(first >= now + 3590 * SECOND_US && first < now + 3600 * SECOND_US);
    ending_active(k);
    uint64_t second = k->ending.idle.deadline_us;
    assert_true(second >= now + 3600 * SECOND_US);
    ending_active_before(k, 10 * SECOND_US); /* and takes nothing from what came since */
    assert_int_equal(k->ending.idle.deadline_us, second);
}

/* Whether a request counts as use; how it is answered is of no interest. */
static bool counts(struct scene *s, uint16_t type, const struct writer *w)
{
    struct message m;

    s->keeper.ending.active_us = 0;
    ask(s, type, w);
    while (channel_receive(&s->client, &m) > 0)
        message_close_fds(&m);
    while (channel_receive(&s->init, &m) > 0)
        message_close_fds(&m);
    return s->keeper.ending.active_us > 0;
}

static void questions_and_what_is_refused_do_not_keep_it(void **state)
{
    /* Without what they need, or for what is not there. */
    static const uint16_t types[] = {MSG_INSPECT, MSG_PS,       MSG_DESCRIBE, MSG_EXTEND,
                                     MSG_RELEASE, MSG_STOP,     MSG_EXEC,     MSG_ATTACH,
                                     MSG_POLICY,  MSG_SIGNAL,   MSG_RESIZE,   MSG_INPUT,
                                     MSG_CANCEL,  MSG_EXPORTED, MSG_PRESENT};
    struct scene *s = *state;

    s->keeper.spec.idle_timeout_us = 3600 * SECOND_US;
    s->keeper.spec.block_network = false; /* which is not changed later */
    assert_int_equal(ending_begin(&s->keeper), 0);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (counts(s, types[i], NULL))
            fail_msg("%s counts", message_name(types[i]));
}

static void what_is_done_keeps_it(void **state)
{
    const struct exported_report exported = {
        .path = "out", .url = "file:///tmp/out", .bytes = 3, .digest = "sha256:00"};
    const char *argv[] = {"true"};
    const struct exec_request exec = {.argv = argv, .n_argv = 1, .flags = EXEC_DETACH};
    struct scene *s = *state;
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    s->keeper.spec.idle_timeout_us = 3600 * SECOND_US;
    s->keeper.spec.block_network = true;
    assert_int_equal(ending_begin(&s->keeper), 0);
    exported_report_encode(&w, &exported);
    assert_true(counts(s, MSG_EXPORTED, &w));
    assert_true(counts(s, MSG_POLICY, NULL)); /* it is what was asked for already */
    assert_true(counts(s, MSG_FILES, NULL));
    s->keeper.commands->id = ASK_ID + 1;
    w = writer_over(buf, sizeof buf);
    exec_request_encode(&w, &exec);
    assert_true(counts(s, MSG_EXEC, &w));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sandbox_without_a_lifetime_has_no_end),
        TEST(the_lifetime_ends_it),
        TEST(a_warning_comes_when_little_is_left),
        TEST(a_lifetime_that_passed_unseen_ends_it_at_once),
        TEST(what_is_left_before_it_stands_is_all_of_it),
        TEST(an_extension_counts_from_now_and_may_be_shorter),
        TEST(one_without_a_lifetime_gets_one),
        TEST(extensions_out_of_range_change_nothing),
        TEST(before_it_stands_it_cannot_be_extended),
        TEST(silence_ends_it),
        TEST(commands_connections_and_leases_keep_it),
        TEST(what_was_done_earlier_counts_from_then),
        TEST(questions_and_what_is_refused_do_not_keep_it),
        TEST(what_is_done_keeps_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Leases as a client takes, loses and gives them back; with a keeper, and by tags. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"
#include "client/claim.h"
#include "fake_peer.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum { LIMIT_US = 20000000, TAGS_MAX = 8 };

#define CLOSED "{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":true}"

/* The test is the other end, too. */
struct scene {
    struct loop loop;
    struct loop_timer limit;
    struct session session;
    struct channel peer;
    struct claim claim;
    unsigned done, failed, lost;
    struct error error;
};

static int out_of_time(struct loop *l, struct loop_timer *t)
{
    (void)l;
    (void)t;
    return -ETIMEDOUT;
}

static void on_done(struct claim *c)
{
    struct scene *s = c->owner;

    s->done++;
    s->loop.stop = true;
}

static void on_failed(struct claim *c, const struct error *err)
{
    struct scene *s = c->owner;

    s->failed++;
    s->error = *err;
    s->loop.stop = true;
}

static void on_event(struct session *session)
{
    struct scene *s = session->owner;

    s->loop.stop = true;
}

static void on_lost(struct session *session)
{
    struct scene *s = session->owner;

    s->lost++;
    s->loop.stop = true;
}

static void run_on(struct scene *s)
{
    s->loop.stop = false;
    loop_at(&s->loop, &s->limit, clock_after_us(LIMIT_US));
    assert_int_equal(loop_run(&s->loop), 0);
    loop_at(&s->loop, &s->limit, CLOCK_NEVER);
}

/* Waits for the client's next request; its id. */
static uint32_t expect(struct scene *s, uint16_t type, struct message *m)
{
    for (;;) {
        int r = channel_receive(&s->peer, m);

        if (r > 0)
            break;
        assert_int_equal(r, 0);
        assert_int_equal(loop_turn(&s->loop, clock_after_us(1000)), 0);
    }
    assert_int_equal(m->type, type);
    return m->id;
}

static void meet(struct scene *s, uint32_t minor, bool backend)
{
    struct error err = ERROR_INIT;
    struct message m;
    int pair[2];

    *s = (struct scene){.session = SESSION_INIT};
    s->limit = (struct loop_timer){.name = "limit", .due = out_of_time};
    assert_int_equal(loop_init(&s->loop), 0);
    assert_int_equal(io_pair(pair), 0);
    channel_init(&s->peer, pair[1]);
    assert_int_equal(session_adopt(&s->session, pair[0], 0, &err), 0);
    s->session.owner = s;
    s->session.over = s->session.greeted = on_event;
    s->session.lease_lost = on_lost;
    s->session.backend = backend;
    assert_int_equal(session_watch(&s->session, &s->loop, &err), 0);
    (void)expect(s, MSG_HELLO, &m);
    fake_hello(&s->peer, WIRE_VERSION_MAJOR, minor);
    run_on(s);
    s->claim = (struct claim){.owner = s, .done = on_done, .failed = on_failed};
}

static void part(struct scene *s)
{
    claim_done(&s->claim);
    session_end(&s->session);
    channel_done(&s->peer);
    loop_done(&s->loop);
}

static void attach(struct scene *s, const char *owner, const char *holder)
{
    const struct attach_request x = {
        .owner = owner, .holder = holder, .keep_us = s->session.backend ? 0 : 5000000};
    struct error err = ERROR_INIT;

    assert_int_equal(claim_attach(&s->claim, &s->session, &x, &err), 0);
}

/* --- with a keeper --- */

static void a_keeper_is_asked_and_its_answer_told(void **state)
{
    const struct attach_report told = {
        .generation = 7, .left_us = 60000000, .network = CLOSED, .workdir = "/data"};
    struct attach_request asked;
    struct scene s;
    struct message m;
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, false);
    attach(&s, "a/b", "t");
    uint32_t id = expect(&s, MSG_ATTACH, &m);
    assert_int_equal(attach_request_decode(m.payload, &asked), 0);
    assert_string_equal(asked.owner, "a/b");
    assert_string_equal(asked.holder, "t");
    assert_true(asked.keep_us == 5000000);
    attach_report_encode(&w, &told);
    fake_send(&s.peer, MSG_ATTACHED, id, &w);
    run_on(&s);
    memset(buf, 'x', sizeof buf);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.claim.report.generation, 7);
    assert_true(s.claim.report.left_us == 60000000);
    assert_string_equal(s.claim.report.network, CLOSED);
    assert_string_equal(s.claim.report.workdir, "/data");
    fake_send(&s.peer, MSG_LEASE_LOST, 0, NULL);
    run_on(&s);
    assert_int_equal(s.lost, 1);
    assert_int_equal(s.session.state, SESSION_OPEN); /* reading goes on */
    part(&s);
}

static void a_refusal_is_passed_on_word_for_word(void **state)
{
    struct scene s;
    struct message m;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, false);
    attach(&s, "a/b", "t");
    fake_error(&s.peer, expect(&s, MSG_ATTACH, &m), EBUSY, "the sandbox is held by 'other'");
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.error.code, EBUSY);
    assert_string_equal(s.error.message, "the sandbox is held by 'other'");
    part(&s);
}

static void presenting_and_releasing_are_done_when_the_keeper_says_so(void **state)
{
    struct error err = ERROR_INIT;
    uint32_t generation = 0;
    struct scene s;
    struct message m;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, false);
    assert_int_equal(claim_present(&s.claim, &s.session, 9, &err), 0);
    uint32_t id = expect(&s, MSG_PRESENT, &m);
    assert_int_equal(number_decode(m.payload, TAG_LEASE_GENERATION, &generation), 0);
    assert_int_equal(generation, 9);
    fake_send(&s.peer, MSG_DONE, id, NULL);
    run_on(&s);
    assert_int_equal(s.done, 1);
    assert_int_equal(claim_release(&s.claim, &s.session, NULL, &err), 0);
    fake_send(&s.peer, MSG_DONE, expect(&s, MSG_RELEASE, &m), NULL);
    run_on(&s);
    assert_int_equal(s.done, 2);
    part(&s);
}

static void an_older_keeper_has_no_lease(void **state)
{
    const struct attach_request x = {.owner = "a", .holder = "b"};
    struct error err = ERROR_INIT;
    struct scene s;

    (void)state;
    meet(&s, 2, false);
    assert_int_equal(claim_attach(&s.claim, &s.session, &x, &err), -ENOSYS);
    assert_non_null(strstr(err.message, "version 1.2 and has no lease"));
    part(&s);
}

static void an_answer_of_another_kind_loses_the_session(void **state)
{
    struct scene s;
    struct message m;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, false);
    attach(&s, "a", "t");
    fake_send(&s.peer, MSG_DONE, expect(&s, MSG_ATTACH, &m), NULL);
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.error.code, EPROTO);
    part(&s);
}

/* --- by tags --- */

static void tell_tags(struct scene *s, const char *const tags[TAGS_MAX])
{
    struct message m;
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);
    uint32_t id = expect(s, MSG_TAGS, &m);

    for (size_t i = 0; i < TAGS_MAX && tags[i]; i++)
        field_put_string(&w, TAG_LABEL, tags[i]);
    fake_send(&s->peer, MSG_TAGS_READ, id, &w);
}

/* What the client writes has to be these, in order. */
static void take_tags(struct scene *s, const char *const tags[TAGS_MAX])
{
    struct message m;
    uint32_t id = expect(s, MSG_SET_TAGS, &m);
    struct reader r = m.payload;
    const char *tag;
    size_t n = 0;

    while ((tag = text_next(&r, TAG_LABEL))) {
        assert_true(n < TAGS_MAX && tags[n]);
        assert_string_equal(tag, tags[n++]);
    }
    assert_false(r.bad);
    assert_null(tags[n]);
    fake_send(&s->peer, MSG_DONE, id, NULL);
}

static void assert_silent(struct scene *s)
{
    struct message m;

    assert_int_equal(channel_receive(&s->peer, &m), 0);
}

static const char *const free_tags[TAGS_MAX] = {"team=x", "airflow_owner=a/b",
                                                "airflow_expires_at=1", "z=1"};
static const char *const held_tags[TAGS_MAX] = {"team=x", "airflow_owner=a/b",
                                                "airflow_expires_at=1", "z=1", "airflow_holder=t"};
static const char *const others_tags[TAGS_MAX] = {"airflow_owner=a/b", "airflow_holder=winner"};

static void a_free_one_is_written_with_all_its_tags_and_read_back(void **state)
{
    struct scene s;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    attach(&s, "a/b", "t");
    tell_tags(&s, free_tags);
    take_tags(&s, held_tags);
    tell_tags(&s, held_tags);
    run_on(&s);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.claim.report.generation, 0);
    assert_true(s.claim.report.left_us == 0); /* its second is long over */
    part(&s);
}

static void the_same_holder_writes_nothing(void **state)
{
    struct scene s;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    attach(&s, "a/b", "t");
    tell_tags(&s, held_tags);
    run_on(&s);
    assert_int_equal(s.done, 1);
    assert_silent(&s);
    part(&s);
}

static void a_refused_attach_writes_nothing(void **state)
{
    static const struct {
        const char *owner;
        const char *const *tags;
        const char *word;
    } rows[] = {{"a/c", free_tags, "'a/b'"}, {"a/b", others_tags, "'winner'"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene s;

        meet(&s, WIRE_VERSION_MINOR, true);
        attach(&s, rows[i].owner, "t");
        tell_tags(&s, rows[i].tags);
        run_on(&s);
        assert_int_equal(s.failed, 1);
        assert_int_equal(s.error.cls, ERROR_TERMINAL);
        assert_non_null(strstr(s.error.message, rows[i].word));
        assert_silent(&s);
        part(&s);
    }
}

static void who_reads_another_back_has_lost_and_is_told_to_whom(void **state)
{
    struct scene s;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    attach(&s, "a/b", "t");
    tell_tags(&s, free_tags);
    take_tags(&s, held_tags);
    tell_tags(&s, others_tags);
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.error.code, EBUSY);
    assert_non_null(strstr(s.error.message, "'winner'"));
    part(&s);
}

/* An attach whose holder is written, and then the answer to the reading back fails. */
static void attach_half(struct scene *s)
{
    struct message m;

    meet(s, WIRE_VERSION_MINOR, true);
    attach(s, "a/b", "t");
    tell_tags(s, free_tags);
    take_tags(s, held_tags);
    fake_error(&s->peer, expect(s, MSG_TAGS, &m), EIO, "the vendor is away");
}

static void what_was_written_is_taken_back_by_an_attach_that_fails(void **state)
{
    struct scene s;

    (void)state;
    attach_half(&s);
    tell_tags(&s, held_tags);
    take_tags(&s, free_tags);
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_string_equal(s.error.message, "the vendor is away");
    assert_string_equal(s.error.remedy, "");
    assert_false(s.claim.written);
    assert_silent(&s);
    part(&s);
}

static void and_not_from_one_who_has_won_meanwhile(void **state)
{
    struct scene s;

    (void)state;
    attach_half(&s);
    tell_tags(&s, others_tags);
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_string_equal(s.error.message, "the vendor is away");
    assert_false(s.claim.written);
    assert_silent(&s);
    part(&s);
}

static void what_cannot_be_taken_back_is_told(void **state)
{
    struct scene s;
    struct message m;

    (void)state;
    attach_half(&s);
    fake_error(&s.peer, expect(&s, MSG_TAGS, &m), EIO, "still away");
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_string_equal(s.error.message, "the vendor is away");
    assert_non_null(strstr(s.error.remedy, "'t' may be left as that of its holder"));
    assert_true(s.claim.written);
    part(&s);

    meet(&s, WIRE_VERSION_MINOR, true); /* and by a program that has gone */
    attach(&s, "a/b", "t");
    tell_tags(&s, free_tags);
    (void)expect(&s, MSG_SET_TAGS, &m);
    channel_done(&s.peer);
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.error.code, EPIPE);
    assert_non_null(strstr(s.error.remedy, "'t' may be left"));
    assert_true(s.claim.written);
    part(&s);
}

static void a_holder_that_is_not_kept_is_no_success(void **state)
{
    struct scene s;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    attach(&s, "a/b", "t");
    tell_tags(&s, free_tags);
    take_tags(&s, held_tags);
    tell_tags(&s, free_tags);
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.error.code, EBUSY);
    assert_silent(&s);
    part(&s);
}

static void release_takes_the_holder_out_if_it_is_the_same(void **state)
{
    struct error err = ERROR_INIT;
    struct scene s;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    assert_int_equal(claim_release(&s.claim, &s.session, "t", &err), 0);
    tell_tags(&s, held_tags);
    take_tags(&s, free_tags);
    run_on(&s);
    assert_int_equal(s.done, 1);
    claim_done(&s.claim);
    assert_int_equal(claim_release(&s.claim, &s.session, "t", &err), 0); /* and once more */
    tell_tags(&s, free_tags);
    run_on(&s);
    assert_int_equal(s.done, 2);
    claim_done(&s.claim);
    assert_int_equal(claim_release(&s.claim, &s.session, "t", &err), 0);
    tell_tags(&s, others_tags);
    run_on(&s);
    assert_int_equal(s.done, 3);
    assert_silent(&s);
    part(&s);
}

static void a_sandbox_that_is_not_there_is_an_error_either_way(void **state)
{
    struct error err = ERROR_INIT;
    struct scene s;
    struct message m;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    attach(&s, "a/b", "t");
    fake_error(&s.peer, expect(&s, MSG_TAGS, &m), ENOENT, "the sandbox has ended");
    run_on(&s);
    claim_done(&s.claim);
    assert_int_equal(claim_release(&s.claim, &s.session, "t", &err), 0);
    fake_error(&s.peer, expect(&s, MSG_TAGS, &m), ENOENT, "the sandbox has ended");
    run_on(&s);
    assert_int_equal(s.failed, 2);
    assert_int_equal(s.error.code, ENOENT);
    part(&s);
}

static void tags_that_are_damaged_lose_the_session(void **state)
{
    static const uint8_t damaged[] = {103, 0, 0, 0, 200, 0, 0, 0, 'a'};
    struct scene s;
    struct message m;
    struct writer w = {.start = (uint8_t *)(uintptr_t)damaged,
                       .p = (uint8_t *)(uintptr_t)damaged + sizeof damaged,
                       .end = (uint8_t *)(uintptr_t)damaged + sizeof damaged};

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    attach(&s, "a/b", "t");
    fake_send(&s.peer, MSG_TAGS_READ, expect(&s, MSG_TAGS, &m), &w);
    run_on(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.error.code, EPROTO);
    part(&s);
}

static void tags_cannot_be_kept_for_a_time(void **state)
{
    const struct attach_request x = {.owner = "a/b", .holder = "t", .keep_us = 1};
    struct error err = ERROR_INIT;
    struct scene s;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    assert_int_equal(claim_attach(&s.claim, &s.session, &x, &err), -EOPNOTSUPP);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_non_null(strstr(err.message, "tags and no lease"));
    assert_non_null(strstr(err.remedy, "--keep"));
    assert_silent(&s);
    part(&s);
}

static void there_is_nothing_to_present_where_there_are_only_tags(void **state)
{
    struct error err = ERROR_INIT;
    struct scene s;

    (void)state;
    meet(&s, WIRE_VERSION_MINOR, true);
    assert_int_equal(claim_present(&s.claim, &s.session, 1, &err), -EOPNOTSUPP);
    assert_silent(&s);
    part(&s);
}

/* A program without tags can have made nothing for anybody. */
static void where_there_are_no_tags_no_owner_is_right(void **state)
{
    struct scene s;
    struct message m;

    (void)state;
    for (int given = 0; given < 2; given++) {
        struct error err = ERROR_INIT;

        meet(&s, WIRE_VERSION_MINOR, true);
        assert_int_equal(claim_end(&s.claim, &s.session, given ? "a/b" : NULL, &err), 0);
        fake_error(&s.peer, expect(&s, MSG_TAGS, &m), ENOSYS, "this backend has no tags");
        run_on(&s);
        assert_int_equal(s.done, !given);
        assert_int_equal(s.failed, given);
        if (given) {
            assert_int_equal(s.error.code, EACCES);
            assert_non_null(strstr(s.error.message, "no owner, and 'a/b' was given"));
        }
        part(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keeper_is_asked_and_its_answer_told),
        cmocka_unit_test(a_refusal_is_passed_on_word_for_word),
        cmocka_unit_test(presenting_and_releasing_are_done_when_the_keeper_says_so),
        cmocka_unit_test(an_older_keeper_has_no_lease),
        cmocka_unit_test(an_answer_of_another_kind_loses_the_session),
        cmocka_unit_test(a_free_one_is_written_with_all_its_tags_and_read_back),
        cmocka_unit_test(the_same_holder_writes_nothing),
        cmocka_unit_test(a_refused_attach_writes_nothing),
        cmocka_unit_test(who_reads_another_back_has_lost_and_is_told_to_whom),
        cmocka_unit_test(what_was_written_is_taken_back_by_an_attach_that_fails),
        cmocka_unit_test(and_not_from_one_who_has_won_meanwhile),
        cmocka_unit_test(what_cannot_be_taken_back_is_told),
        cmocka_unit_test(a_holder_that_is_not_kept_is_no_success),
        cmocka_unit_test(release_takes_the_holder_out_if_it_is_the_same),
        cmocka_unit_test(a_sandbox_that_is_not_there_is_an_error_either_way),
        cmocka_unit_test(tags_that_are_damaged_lose_the_session),
        cmocka_unit_test(tags_cannot_be_kept_for_a_time),
        cmocka_unit_test(there_is_nothing_to_present_where_there_are_only_tags),
        cmocka_unit_test(where_there_are_no_tags_no_owner_is_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with peers that keep to the protocol, and with those that do not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"
#include "client/session.h"
#include "fake_peer.h"
#include "base/guards.h"

enum { LIMIT_US = 20000000, SOON_US = 30000 };

static struct loop loop;
static struct loop_timer limit;
static struct session session;
static struct channel peer; /* the other end, of a session over a socket pair */
static char folder[] = "/tmp/session-test-XXXXXX";

/* What a request has been told. */
struct asked {
    struct session_request request;
    unsigned told, failed;
    uint16_t type;
    int answer; /* what told() returns */
    struct error error;
};

static int out_of_time(struct loop *l, struct loop_timer *t)
{
    (void)l;
    (void)t;
    return -ETIMEDOUT;
}

static int on_told(struct session_request *q, struct message *m)
{
    struct asked *a = q->owner;

    a->told++;
    a->type = m->type;
    if (m->type == MSG_ERROR && session_error(m, &a->error) < 0)
        return -EPROTO;
    if (m->type == MSG_ERROR)
        session_forget(q); /* nothing more is said about it */
    loop.stop = true;
    return a->answer;
}

static void on_failed(struct session_request *q, const struct error *err)
{
    struct asked *a = q->owner;

    assert_null(q->session);
    a->failed++;
    a->error = *err;
    loop.stop = true;
}

static void on_event(struct session *s)
{
    (void)s;
    loop.stop = true;
}

static void run_on(void)
{
    loop.stop = false;
    loop_at(&loop, &limit, clock_after_us(LIMIT_US));
    assert_int_equal(loop_run(&loop), 0);
    loop_at(&loop, &limit, CLOCK_NEVER);
}

static void ask(struct asked *a, uint16_t type)
{
    struct error err = ERROR_INIT;

    *a = (struct asked){.request = {.told = on_told, .failed = on_failed}};
    a->request.owner = a;
    assert_int_equal(session_ask(&session, &a->request, type, NULL, NULL, 0, &err), 0);
}

static void watch(void)
{
    struct error err = ERROR_INIT;

    session.over = session.greeted = on_event;
    assert_int_equal(session_watch(&session, &loop, &err), 0);
}

static int start(void **state)
{
    (void)state;
    limit = (struct loop_timer){.name = "limit", .due = out_of_time};
    session = (struct session)SESSION_INIT;
    channel_init(&peer, -EBADF);
    return loop_init(&loop);
}

static int end(void **state)
{
    (void)state;
    session_end(&session);
    channel_done(&peer);
    loop_done(&loop);
    return 0;
}

/* A session with the test itself as the keeper. */
static void meet(void)
{
    struct error err = ERROR_INIT;
    struct message m;
    int pair[2];

    assert_int_equal(io_pair(pair), 0);
    channel_init(&peer, pair[1]);
    assert_int_equal(session_adopt(&session, pair[0], 0, &err), 0);
    watch();
    assert_true(fake_receive(&peer, &m));
    assert_int_equal(m.type, MSG_HELLO);
}

static void meet_version(uint32_t major, uint32_t minor)
{
    meet();
    fake_hello(&peer, major, minor);
    run_on();
}

/* --- with a keeper --- */

static void answers_come_to_whoever_asked(void **state)
{
    struct asked a, b;

    (void)state;
    meet_version(1, 1);
    assert_int_equal(session.state, SESSION_OPEN);
    assert_int_equal(session.minor, 1);
    ask(&a, MSG_INSPECT);
    ask(&b, MSG_PS);
    fake_send(&peer, MSG_COMMANDS, b.request.id, NULL);
    run_on();
    assert_int_equal(b.told, 1);
    assert_int_equal(b.type, MSG_COMMANDS);
    assert_int_equal(a.told, 0);
    fake_error(&peer, a.request.id, ENOENT, "it is not there");
    run_on();
    assert_int_equal(a.error.code, ENOENT);
    assert_string_equal(a.error.message, "it is not there");
    session_forget(&a.request);
    session_forget(&b.request);
    session_forget(&b.request);
}

static void what_nobody_waits_for_is_dropped(void **state)
{
    struct asked a, b;

    (void)state;
    meet_version(1, 1);
    ask(&a, MSG_INSPECT);
    ask(&b, MSG_INSPECT);
    session_forget(&a.request);
    fake_send(&peer, MSG_SANDBOX, a.request.id, NULL);
    fake_send(&peer, MSG_SANDBOX, 4711, NULL);
    fake_send(&peer, MSG_SANDBOX, b.request.id, NULL);
    run_on();
    assert_int_equal(a.told, 0);
    assert_int_equal(b.told, 1);
    session_forget(&b.request);
}

static void another_major_version_is_named(void **state)
{
    (void)state;
    meet_version(2, 7);
    assert_int_equal(session.state, SESSION_OVER);
    assert_string_equal(session.error.message,
                        "the sandbox's keeper speaks version 2.7 of the sandbox protocol, and this "
                        "program version 1.3");
    assert_int_equal(session.error.cls, ERROR_TERMINAL);
}

static void an_older_peer_is_not_asked_for_what_it_lacks(void **state)
{
    struct error err = ERROR_INIT;
    struct asked a = {.request = {.told = on_told, .failed = on_failed, .owner = &a}};

    (void)state;
    meet_version(1, 0);
    assert_int_equal(session_ask(&session, &a.request, MSG_FILES, NULL, NULL, 0, &err), -ENOSYS);
    assert_string_equal(err.message,
                        "the sandbox's keeper is of version 1.0 and has no file operations");
    assert_non_null(strstr(err.remedy, "anew"));
    err = (struct error)ERROR_INIT;
    assert_int_equal(session_ask(&session, &a.request, MSG_EXEC, NULL, NULL, 0, &err), 0);
    session_forget(&a.request);
    a.request.later = true;
    assert_int_equal(session_ask(&session, &a.request, MSG_EXEC, NULL, NULL, 0, &err), -ENOSYS);
    assert_non_null(strstr(err.message, "detached"));
}

static void what_was_asked_before_the_greeting_fails_by_it(void **state)
{
    struct asked a, b;

    (void)state;
    meet();
    ask(&a, MSG_PS);
    ask(&b, MSG_EXEC);
    fake_hello(&peer, 1, 0);
    run_on();
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, ENOSYS);
    assert_int_equal(b.failed, 0);
    session_forget(&b.request);
}

static void the_end_of_a_sandbox_fails_what_is_under_way(void **state)
{
    struct asked a;

    (void)state;
    meet_version(1, 1);
    ask(&a, MSG_PS);
    fake_number(&peer, MSG_ENDED, 1, TAG_ENDED_BY, ENDED_LIFETIME);
    run_on();
    assert_true(session.ended);
    assert_int_equal(session.ended_by, ENDED_LIFETIME);
    assert_int_equal(a.failed, 1);
    assert_string_equal(a.error.message, "the sandbox has ended (lifetime)");
}

static void the_end_may_come_in_place_of_the_greeting(void **state)
{
    struct asked a;

    (void)state;
    meet();
    ask(&a, MSG_DESTROY);
    fake_number(&peer, MSG_ENDED, 0, TAG_ENDED_BY, ENDED_DESTROYED);
    channel_done(&peer);
    run_on();
    assert_int_equal(session.state, SESSION_OVER);
    assert_true(session.ended);
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, ESHUTDOWN);
    assert_string_equal(a.error.message, "the sandbox has ended (destroyed)");
    assert_string_equal(a.error.remedy, "Create another one");
}

static void a_keeper_that_goes_without_a_greeting_leaves_a_remedy(void **state)
{
    struct asked a;

    (void)state;
    meet();
    ask(&a, MSG_PS);
    channel_done(&peer);
    run_on();
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, EPIPE);
    assert_string_equal(a.error.message, "the sandbox's keeper is gone");
    assert_string_equal(a.error.remedy, "Create another one");
}

static void a_keeper_that_is_gone_is_told_of_after_its_last_words(void **state)
{
    struct asked a, b;

    (void)state;
    meet_version(1, 1);
    ask(&a, MSG_PS);
    ask(&b, MSG_PS);
    fake_send(&peer, MSG_COMMANDS, a.request.id, NULL);
    channel_done(&peer);
    run_on();
    assert_int_equal(a.told, 1);
    session_forget(&a.request);
    if (session.state != SESSION_OVER)
        run_on();
    assert_int_equal(b.failed, 1);
    assert_string_equal(b.error.message, "the sandbox's keeper is gone");
    struct error err = ERROR_INIT;
    assert_int_equal(session_ask(&session, &a.request, MSG_PS, NULL, NULL, 0, &err), -EPIPE);
    assert_string_equal(err.message, "the sandbox's keeper is gone");
}

static void what_a_peer_said_before_it_went_counts_when_more_is_asked(void **state)
{
    struct asked a, b;
    struct error said = {.cls = ERROR_USAGE, .code = ENOSPC, .message = "there is no room"};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    meet_version(1, 1);
    ask(&a, MSG_CREATE);
    fault_encode(&w, &said);
    fake_send(&peer, MSG_ERROR, a.request.id, &w);
    channel_done(&peer); /* CREATE is unread: what is asked next meets ECONNRESET or EPIPE */
    ask(&b, MSG_EXEC);
    run_on();
    assert_int_equal(a.told, 1);
    assert_string_equal(a.error.message, "there is no room");
    if (session.state != SESSION_OVER)
        run_on();
    assert_int_equal(b.failed, 1);
    assert_string_equal(b.error.message, "the sandbox's keeper is gone");
}

static void what_a_request_cannot_understand_ends_the_session(void **state)
{
    struct asked a, b;

    (void)state;
    meet_version(1, 1);
    ask(&a, MSG_PS);
    a.answer = -EPROTO;
    ask(&b, MSG_PS);
    fake_send(&peer, MSG_COMMANDS, a.request.id, NULL);
    run_on();
    assert_int_equal(session.state, SESSION_OVER);
    assert_int_equal(b.failed, 1);
    assert_non_null(strstr(b.error.message, "no message of the sandbox protocol"));
}

static void closing_fails_what_is_under_way(void **state)
{
    struct asked a;

    (void)state;
    meet_version(1, 1);
    ask(&a, MSG_PS);
    session_close(&session);
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, ECANCELED);
    session_close(&session);
}

/* --- with backend programs, each of which is this program under another name --- */

static void write_raw(const struct frame *f, size_t payload)
{
    uint8_t bytes[FRAME_HEADER_BYTES + 64] = {0};

    frame_header(f, bytes);
    if (io_write_full(STDOUT_FILENO, bytes, FRAME_HEADER_BYTES + payload, CLOCK_NEVER) < 0)
        _exit(4);
}

static int serve(struct channel *c)
{
    struct message m;

    while (fake_receive(c, &m))
        if (m.type == MSG_PS)
            fake_send(c, MSG_COMMANDS, m.id, NULL);
    return 0;
}

static int fake_backend(const char *mode)
{
    const struct frame odd = {.length = FRAME_PAYLOAD_MAX + 1, .type = MSG_HELLO};
    const struct frame plain = {.length = 32, .type = MSG_COMMANDS, .id = 7};
    struct channel c;

    (void)signal(SIGPIPE, SIG_IGN);
    if (strcmp(mode, "silent") == 0)
        return pause();
    if (strcmp(mode, "quitter") == 0)
        return 1;
    if (strcmp(mode, "liar") == 0) {
        write_raw(&odd, 16);
        return pause();
    }
    if (channel_init_stream(&c, STDIN_FILENO, STDOUT_FILENO) < 0)
        return 2;
    if (strcmp(mode, "babbler") == 0) {
        fake_send(&c, MSG_COMMANDS, 1, NULL);
        return pause();
    }
    if (strcmp(mode, "hasty") == 0) {
        fake_number(&c, MSG_ENDED, 1, TAG_ENDED_BY, ENDED_DESTROYED);
        return pause();
    }
    fake_hello(&c, strcmp(mode, "stranger") == 0 ? 9 : 1, 1);
    if (strcmp(mode, "halfway") == 0) {
        write_raw(&plain, 16);
        return 0;
    }
    if (strcmp(mode, "flood") == 0)
        for (;;)
            write_raw(&(struct frame){.type = MSG_COMMANDS, .id = 4711}, 0);
    return serve(&c);
}

static void meet_backend(const char *name)
{
    struct error err = ERROR_INIT;

    if (session_backend(&session, name, &err) < 0)
        fail_msg("%s", err.message);
    session.hello_us = strcmp(name, "silent") == 0 ? SOON_US : session.hello_us;
    watch();
    run_on();
}

static void a_backend_program_is_spoken_with_in_band(void **state)
{
    struct asked a;

    (void)state;
    meet_backend("sound");
    assert_int_equal(session.state, SESSION_OPEN);
    assert_true(session.in_band);
    ask(&a, MSG_PS);
    run_on();
    assert_int_equal(a.type, MSG_COMMANDS);
    session_forget(&a.request);
}

static void check_loss(const char *name, const char *message)
{
    meet_backend(name);
    if (session.state != SESSION_OVER)
        run_on();
    assert_int_equal(session.state, SESSION_OVER);
    assert_string_equal(session.error.message, message);
    assert_int_equal(session.error.cls, ERROR_TERMINAL);
    assert_true(session.error.remedy[0] != '\0');
}

static void a_silent_one_is_given_up(void **state)
{
    (void)state;
    check_loss("silent", "the backend program 'atoll-backend-silent' did not answer within 0 s");
    child_kill(&session.child);
}

static void one_that_ends_at_once_is_named(void **state)
{
    (void)state;
    check_loss("quitter", "the backend program 'atoll-backend-quitter' is gone");
}

static void one_that_lies_about_lengths_is_named(void **state)
{
    (void)state;
    check_loss("liar", "the backend program 'atoll-backend-liar' sent what is no message of the "
                       "sandbox protocol");
    child_kill(&session.child);
}

static void one_that_does_not_greet_is_named(void **state)
{
    (void)state;
    check_loss("babbler",
               "the backend program 'atoll-backend-babbler' does not speak the sandbox protocol");
    child_kill(&session.child);
}

/* Unlike a keeper it is there for this client alone. */
static void one_that_ends_before_it_greets_is_named(void **state)
{
    (void)state;
    check_loss("hasty",
               "the backend program 'atoll-backend-hasty' does not speak the sandbox protocol");
    child_kill(&session.child);
}

static void one_of_another_version_is_named(void **state)
{
    (void)state;
    check_loss("stranger", "the backend program 'atoll-backend-stranger' speaks version 9.1 of the "
                           "sandbox protocol, and this program version 1.3");
}

static void one_that_ends_halfway_is_named(void **state)
{
    (void)state;
    check_loss("halfway",
               "the backend program 'atoll-backend-halfway' ended in the middle of a message");
}

static int stop_loop(struct loop *l, struct loop_timer *t)
{
    (void)t;
    l->stop = true;
    return 0;
}

static void a_flood_leaves_others_their_turn(void **state)
{
    struct loop_timer moment = {.name = "moment", .due = stop_loop};

    (void)state;
    meet_backend("flood");
    loop_at(&loop, &moment, clock_after_us(SOON_US));
    run_on(); /* would not return if the flood was read to its end */
    assert_int_equal(session.state, SESSION_OPEN);
}

static void a_backend_that_does_not_exist_is_a_usage_error(void **state)
{
    struct error err = ERROR_INIT;

    (void)state;
    assert_true(session_backend(&session, "nonesuch", &err) < 0);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_non_null(strstr(err.message, "nonesuch"));
}

static const char *const backends[] = {"sound",    "silent",  "quitter", "liar", "babbler",
                                       "stranger", "halfway", "flood",   "hasty"};

static int make_backends(void **state)
{
    char self[512], path[128];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    if (n < 0 || !mkdtemp(folder) || setenv("PATH", folder, 1) < 0)
        return -1;
    self[n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        (void)snprintf(path, sizeof path, "%s/atoll-backend-%s", folder, backends[i]);
        if (symlink(self, path) < 0)
            return -1;
    }
    return 0;
}

static int remove_backends(void **state)
{
    char path[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        (void)snprintf(path, sizeof path, "%s/atoll-backend-%s", folder, backends[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const char *dash = argc > 0 ? strstr(argv[0], "atoll-backend-") : NULL;

    if (dash)
        _exit(fake_backend(dash + strlen("atoll-backend-")));
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        SESSION_TEST(answers_come_to_whoever_asked),
        SESSION_TEST(what_nobody_waits_for_is_dropped),
        SESSION_TEST(another_major_version_is_named),
        SESSION_TEST(an_older_peer_is_not_asked_for_what_it_lacks),
        SESSION_TEST(what_was_asked_before_the_greeting_fails_by_it),
        SESSION_TEST(the_end_of_a_sandbox_fails_what_is_under_way),
        SESSION_TEST(the_end_may_come_in_place_of_the_greeting),
        SESSION_TEST(a_keeper_that_goes_without_a_greeting_leaves_a_remedy),
        SESSION_TEST(a_keeper_that_is_gone_is_told_of_after_its_last_words),
        SESSION_TEST(what_a_peer_said_before_it_went_counts_when_more_is_asked),
        SESSION_TEST(what_a_request_cannot_understand_ends_the_session),
        SESSION_TEST(closing_fails_what_is_under_way),
        SESSION_TEST(a_backend_program_is_spoken_with_in_band),
        SESSION_TEST(a_silent_one_is_given_up),
        SESSION_TEST(one_that_ends_at_once_is_named),
        SESSION_TEST(one_that_lies_about_lengths_is_named),
        SESSION_TEST(one_that_does_not_greet_is_named),
        SESSION_TEST(one_that_ends_before_it_greets_is_named),
        SESSION_TEST(one_of_another_version_is_named),
        SESSION_TEST(one_that_ends_halfway_is_named),
        SESSION_TEST(a_flood_leaves_others_their_turn),
        SESSION_TEST(a_backend_that_does_not_exist_is_a_usage_error),
    };

    return cmocka_run_group_tests(tests, make_backends, remove_backends);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups: one question for all who wait, answers that come late, never or damaged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "egress/egress.h"
#include "base/guards.h"

enum { WAITERS = 4 };

struct fixture {
    struct egress *e;
    int resolve; /* the other end, where `resolve` would be */
    struct lookup_waiter waiters[WAITERS];
    struct name *told[WAITERS + 1]; /* in the order in which they were */
    size_t n_told;
    struct lookup_waiter *forgets; /* by the first who is told */
};

static void done(struct lookup_waiter *w, struct name *x)
{
    struct fixture *f = w->owner;

    assert_true(x->looked_up);
    assert_true(x->users > 0);
    assert_null(w->lookup);
    f->told[f->n_told++] = x;
    if (f->forgets)
        lookup_forget(TAKE_PTR(f->forgets));
}

static int start(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct policy nothing = {.open = false};
    struct error err = ERROR_INIT;
    int pair[2];

    if (!f || !(f->e = calloc(1, sizeof *f->e)) || io_pair(pair) < 0)
        return -1;
    f->resolve = pair[1];
    for (size_t i = 0; i < WAITERS; i++)
        f->waiters[i] = (struct lookup_waiter){.owner = f, .done = done};
    if (policy_pool_choose(&nothing, &f->e->pool, &err) < 0 || loop_init(&f->e->loop) < 0 ||
        names_init(&f->e->names, &f->e->pool) < 0 ||
        lookups_init(&f->e->lookups, f->e, pair[0]) < 0)
        return -1;
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    lookups_done(&f->e->lookups);
    for (const struct name *x = f->e->names.oldest; x; x = x->newer)
        if (x->users != 0)
            return -1;
    names_done(&f->e->names);
    loop_done(&f->e->loop);
    fd_closep(&f->resolve);
    free(f->e);
    free(f);
    return 0;
}

static struct name *add(struct fixture *f, const char *text)
{
    struct host_name name;
    int error = 0;

    assert_int_equal(host_name_read(text, strlen(text), &name), 0);
    struct name *x = names_add(&f->e->names, &name, false, &error);
    assert_non_null(x);
    return x;
}

/* What `resolve` is asked next; its id. */
static uint32_t asked(struct fixture *f, const char *name)
{
    uint8_t buf[RESOLVE_PACKET_MAX];
    char text[RESOLVE_NAME_MAX + 1];
    ssize_t n = recv(f->resolve, buf, sizeof buf, MSG_DONTWAIT);
    uint32_t id;

    assert_true(n > 0);
    assert_int_equal(resolve_question_parse(buf, (size_t)n, &id, text), 0);
    assert_string_equal(text, name);
    return id;
}

static void assert_nothing_asked(struct fixture *f)
{
    uint8_t buf[RESOLVE_PACKET_MAX];

    assert_true(recv(f->resolve, buf, sizeof buf, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static void answer(struct fixture *f, uint32_t id, enum resolve_status status)
{
    struct resolve_answer x = {.id = id, .status = status, .n = status == RESOLVE_FOUND};
    uint8_t buf[RESOLVE_PACKET_MAX];

    x.addresses[0] = (struct resolve_address){.family = 4, .bytes = {192, 0, 2, 7}};
    size_t n = resolve_answer_encode(&x, buf, sizeof buf);
    assert_true(n > 0);
    assert_int_equal(send(f->resolve, buf, n, 0), (ssize_t)n);
}

static void turn(struct fixture *f)
{
    assert_int_equal(loop_turn(&f->e->loop, 0), 0);
}

static void however_many_wait_one_question_is_asked(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org"), *y = add(f, "example.net");

    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[0]));
    assert_false(lookup_need(&f->e->lookups, y, &f->waiters[1]));
    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[2]));
    uint32_t of_x = asked(f, "example.org"), of_y = asked(f, "example.net");
    assert_nothing_asked(f);
    assert_int_equal(x->users, 1);
    answer(f, of_y, RESOLVE_FOUND); /* in whatever order */
    answer(f, of_x, RESOLVE_FOUND);
    turn(f);
    assert_int_equal(f->n_told, 3);
    assert_ptr_equal(f->told[0], y);
    assert_ptr_equal(f->told[1], x);
    assert_ptr_equal(f->told[2], x);
    assert_int_equal(x->n_addresses, 1);
    assert_int_equal(x->addresses[0].bytes[3], 7);
    assert_int_equal(f->e->lookups.n, 0);
}

static void what_was_found_is_used_again_while_it_is_fresh(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org");

    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[0]));
    answer(f, asked(f, "example.org"), RESOLVE_FOUND);
    turn(f);
    assert_true(x->fresh_until_us > clock_now_us() + LOOKUP_AGAIN_US);
    assert_true(lookup_need(&f->e->lookups, x, &f->waiters[1]));
    assert_nothing_asked(f);
    x->fresh_until_us = clock_now_us();
    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[1]));
    (void)asked(f, "example.org");
}

static void that_there_is_no_such_name_is_believed_for_a_short_time(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org");

    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[0]));
    answer(f, asked(f, "example.org"), RESOLVE_NOT_FOUND);
    turn(f);
    assert_int_equal(x->status, RESOLVE_NOT_FOUND);
    assert_true(x->fresh_until_us <= clock_now_us() + LOOKUP_AGAIN_US);
    assert_true(lookup_need(&f->e->lookups, x, &f->waiters[1]));
}

static void answers_to_nothing_and_damaged_ones_are_nobodys(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org");

    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[0]));
    uint32_t id = asked(f, "example.org");
    answer(f, id + 1, RESOLVE_FOUND);
    answer(f, 0, RESOLVE_NOT_FOUND);
    assert_int_equal(send(f->resolve, "x", 1, 0), 1);
    assert_int_equal(send(f->resolve, (uint8_t[2000]){0}, 2000, 0), 2000);
    turn(f);
    assert_int_equal(f->n_told, 0);
    answer(f, id, RESOLVE_FOUND);
    answer(f, id, RESOLVE_NOT_FOUND); /* twice: the second is late */
    turn(f);
    assert_int_equal(f->n_told, 1);
    assert_int_equal(x->status, RESOLVE_FOUND);
}

static void who_forgets_is_not_told(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org");

    for (size_t i = 0; i < WAITERS; i++)
        assert_false(lookup_need(&f->e->lookups, x, &f->waiters[i]));
    lookup_forget(&f->waiters[0]);
    lookup_forget(&f->waiters[0]); /* harmless */
    f->forgets = &f->waiters[2];   /* when the one before is told */
    answer(f, asked(f, "example.org"), RESOLVE_FOUND);
    turn(f);
    assert_int_equal(f->n_told, 2);
    assert_null(f->waiters[2].lookup);
}

static void nobody_waits_longer_than_the_limit(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org"), *y = add(f, "example.net");

    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[0]));
    assert_false(lookup_need(&f->e->lookups, y, &f->waiters[1]));
    assert_true(f->e->lookups.timer.set);
    assert_true(f->e->lookups.timer.deadline_us <= clock_after_us(LOOKUP_TIMEOUT_US));
    f->e->lookups.first->deadline_us = 1;
    loop_at(&f->e->loop, &f->e->lookups.timer, 1);
    turn(f);
    assert_int_equal(f->n_told, 1);
    assert_ptr_equal(f->told[0], x);
    assert_int_equal(x->status, RESOLVE_FAILED);
    assert_true(f->e->lookups.timer.set); /* for the other */
    assert_true(f->e->lookups.timer.deadline_us > clock_now_us());
}

static void when_too_many_are_under_way_the_next_fails_at_once(void **state)
{
    struct fixture *f = *state;
    static struct lookup_waiter waiters[LOOKUPS_MAX + 1];
    uint8_t buf[RESOLVE_PACKET_MAX];
    char text[32];

    for (unsigned i = 0; i <= LOOKUPS_MAX; i++) {
        waiters[i] = (struct lookup_waiter){.owner = f, .done = done};
        (void)snprintf(text, sizeof text, "n%u.example", i);
        struct name *x = add(f, text);

        assert_int_equal(lookup_need(&f->e->lookups, x, &waiters[i]), i == LOOKUPS_MAX);
        if (i == LOOKUPS_MAX)
            assert_int_equal(x->status, RESOLVE_FAILED);
        else
            assert_true(recv(f->resolve, buf, sizeof buf, MSG_DONTWAIT) > 0);
    }
    for (unsigned i = 0; i < LOOKUPS_MAX; i++)
        lookup_forget(&waiters[i]);
    assert_nothing_asked(f);
    answer(f, f->e->lookups.first->id, RESOLVE_FOUND); /* one is over, and the next is asked */
    turn(f);
    assert_false(lookup_need(&f->e->lookups, add(f, text), &f->waiters[0]));
    (void)asked(f, text);
}

static void when_resolve_is_gone_all_look_ups_fail(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org"), *y = add(f, "example.net");

    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[0]));
    fd_closep(&f->resolve);
    turn(f);
    assert_int_equal(f->n_told, 1);
    assert_int_equal(x->status, RESOLVE_FAILED);
    assert_true(lookup_need(&f->e->lookups, y, &f->waiters[1]));
    assert_int_equal(y->status, RESOLVE_FAILED);
    assert_null(f->waiters[1].lookup);
}

static void without_resolve_nothing_is_looked_up_until_it_comes(void **state)
{
    struct fixture *f = *state;
    struct name *x = add(f, "example.org");
    int pair[2];

    lookups_done(&f->e->lookups);
    assert_int_equal(lookups_init(&f->e->lookups, f->e, -EBADF), 0);
    assert_true(lookup_need(&f->e->lookups, x, &f->waiters[0]));
    assert_int_equal(x->status, RESOLVE_FAILED);
    assert_int_equal(io_pair(pair), 0);
    assert_int_equal(lookups_init(&f->e->lookups, f->e, pair[0]), 0);
    fd_closep(&f->resolve);
    f->resolve = pair[1];
    assert_false(lookup_need(&f->e->lookups, x, &f->waiters[0])); /* asked again at once */
    (void)asked(f, "example.org");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(however_many_wait_one_question_is_asked, start, end),
        cmocka_unit_test_setup_teardown(what_was_found_is_used_again_while_it_is_fresh, start, end),
        cmocka_unit_test_setup_teardown(that_there_is_no_such_name_is_believed_for_a_short_time,
                                        start, end),
        cmocka_unit_test_setup_teardown(answers_to_nothing_and_damaged_ones_are_nobodys, start,
                                        end),
        cmocka_unit_test_setup_teardown(who_forgets_is_not_told, start, end),
        cmocka_unit_test_setup_teardown(nobody_waits_longer_than_the_limit, start, end),
        cmocka_unit_test_setup_teardown(when_too_many_are_under_way_the_next_fails_at_once, start,
                                        end),
        cmocka_unit_test_setup_teardown(when_resolve_is_gone_all_look_ups_fail, start, end),
        cmocka_unit_test_setup_teardown(without_resolve_nothing_is_looked_up_until_it_comes, start,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

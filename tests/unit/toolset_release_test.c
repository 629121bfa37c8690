/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease is given back, as often as it takes: against backend programs that have tags in its
 * place, each of which is this program under another name.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "atoll_toolset.h"
#include "base/clock.h"
#include "fake_peer.h"
#include "toolset/release.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

#define PAUSE_US UINT64_C(20000)
#define LIMIT_US UINT64_C(20000000)

/* --- the backends --- */

enum { TAGS_MAX = 8, TAG_BYTES = 64, ATTACH_READS = 2 };

struct fake {
    struct channel channel;
    char tags[TAGS_MAX][TAG_BYTES];
    size_t n_tags;
    unsigned reads; /* of the tags: the first two are those of the attach */
    const char *mode;
};

static void send_tags(struct fake *f, uint32_t id)
{
    uint8_t buf[TAGS_MAX * (TAG_BYTES + 16)];
    struct writer w = writer_over(buf, sizeof buf);

    for (size_t i = 0; i < f->n_tags; i++)
        field_put_string(&w, TAG_LABEL, f->tags[i]);
    fake_send(&f->channel, MSG_TAGS_READ, id, &w);
}

static void send_terminal(struct fake *f, uint32_t id, int code, const char *message)
{
    struct error err = ERROR_INIT;
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);

    (void)error_set(&err, ERROR_TERMINAL, code, "%s", message);
    fault_encode(&w, &err);
    fake_send(&f->channel, MSG_ERROR, id, &w);
}

static void read_tags(struct fake *f, uint32_t id)
{
    unsigned attempt = ++f->reads > ATTACH_READS ? f->reads - ATTACH_READS : 0;

    bool third = strcmp(f->mode, "third") == 0 && attempt < 3;

    if (attempt > 0 && (third || strcmp(f->mode, "never") == 0))
        fake_error(&f->channel, id, EIO, "the vendor is away");
    else if (attempt > 0 && strcmp(f->mode, "vanishes") == 0)
        _exit(0);
    else if (attempt > 0 && strcmp(f->mode, "gone") == 0)
        send_terminal(f, id, ENOENT, "there is no such sandbox");
    else if (attempt > 0 && strcmp(f->mode, "refuses") == 0)
        send_terminal(f, id, EACCES, "the credentials were rejected");
    else
        send_tags(f, id);
}

static void write_tags(struct fake *f, const struct message *m)
{
    struct reader at = m->payload;
    const char *tag;

    f->n_tags = 0;
    while ((tag = text_next(&at, TAG_LABEL)) && f->n_tags < TAGS_MAX)
        (void)snprintf(f->tags[f->n_tags++], TAG_BYTES, "%s", tag);
    fake_send(&f->channel, MSG_DONE, m->id, NULL);
}

static void send_id(struct fake *f, uint32_t id)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_string(&w, TAG_SANDBOX_ID, "one");
    fake_send(&f->channel, MSG_CREATED, id, &w);
}

static int fake_backend(const char *mode)
{
    struct fake f = {.tags = {"airflow_owner=me", "kept=yes"}, .n_tags = 3, .mode = mode};
    struct message m;

    (void)snprintf(f.tags[2], TAG_BYTES, "airflow_workdir=%s",
                   strcmp(mode, "once") == 0 ? "/srv/work" : "");
    if (channel_init_stream(&f.channel, STDIN_FILENO, STDOUT_FILENO) < 0)
        return 4;
    while (fake_receive(&f.channel, &m)) {
        if (m.type == MSG_HELLO)
            fake_hello(&f.channel, 1, 3);
        else if (m.type == MSG_OPEN)
            send_id(&f, m.id);
        else if (m.type == MSG_TAGS)
            read_tags(&f, m.id);
        else if (m.type == MSG_SET_TAGS)
            write_tags(&f, &m);
        else
            fake_error(&f.channel, m.id, ENOSYS, "this is not done here");
        (void)channel_flush(&f.channel);
    }
    return 0;
}

/* --- a run that holds one --- */

struct run {
    struct atoll *a;
    struct atoll_toolset *t;
    struct releasing r;
    bool done;
};

static void finished(struct releasing *r)
{
    ((struct run *)r->owner)->done = true;
}

static void begin(struct run *x, const char *mode)
{
    struct atoll_toolset_options options = {.holder = "dag/run/task"};
    struct atoll_spec *s = atoll_spec_new();
    struct atoll_error e = {0};
    char id[64];

    *x = (struct run){0};
    (void)snprintf(id, sizeof id, "%s:one", mode);
    assert_int_equal(atoll_new(&x->a, NULL), 0);
    assert_int_equal(atoll_spec_set(s, "toolset.attach_to", id, NULL), 0);
    assert_int_equal(atoll_spec_set(s, "toolset.owner", "me", NULL), 0);
    assert_int_equal(atoll_toolset_new(x->a, s, &options, &x->t, &e), 0);
    atoll_spec_free(s);

    struct atoll_op *op = atoll_toolset_open(x->t);
    assert_int_equal(atoll_wait(op, LIMIT_US), 0);
    atoll_op_free(op);
    assert_true(x->t->attached);
}

static void run_release(struct run *x)
{
    uint64_t until = clock_after_us(LIMIT_US);

    x->r = (struct releasing){.t = x->t, .done = finished, .owner = x, .pause_us = PAUSE_US};
    releasing_start(&x->r);
    assert_false(x->done);
    while (!x->done && clock_now_us() < until)
        assert_int_equal(loop_turn(&x->a->loop, until), 0);
    assert_true(x->done);
}

static void end(struct run *x)
{
    releasing_stop(&x->r);
    x->t->attached = false; /* it was seen to */
    atoll_toolset_free(x->t);
    atoll_free(x->a);
}

static void a_lease_that_can_be_given_back_is_not_spoken_of(void **state)
{
    struct run x;

    (void)state;
    begin(&x, "once");
    assert_string_equal(x.t->sb->holder, "dag/run/task");
    assert_string_equal(x.t->sb->workdir, "/srv/work");
    run_release(&x);
    assert_int_equal(x.r.attempts, 1);
    assert_null(x.r.warning);
    assert_null(x.r.note);
    assert_null(x.t->sb->holder);
    end(&x);
}

static void what_fails_is_tried_three_times_in_all(void **state)
{
    uint64_t began = clock_now_us();
    struct run x;

    (void)state;
    begin(&x, "third");
    assert_null(x.t->sb->workdir); /* nobody chose one */
    run_release(&x);
    assert_int_equal(x.r.attempts, 3);
    assert_null(x.r.warning);
    assert_null(x.t->sb->holder);
    assert_true(clock_now_us() - began >= 2 * PAUSE_US);
    end(&x);
}

static void after_the_third_failure_it_is_one_warning(void **state)
{
    static const char *const words[] = {"'never:one'", "'never'", "3 attempts", "'dag/run/task'",
                                        "the vendor is away"};
    struct run x;

    (void)state;
    begin(&x, "never");
    run_release(&x);
    assert_int_equal(x.r.attempts, 3);
    assert_null(x.r.note);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        assert_non_null(strstr(x.r.warning, words[i]));
    end(&x);
}

static void a_sandbox_that_is_gone_needs_no_letting_go(void **state)
{
    struct run x;

    (void)state;
    begin(&x, "gone");
    run_release(&x);
    assert_int_equal(x.r.attempts, 1);
    assert_null(x.r.warning);
    assert_non_null(strstr(x.r.note, "'gone:one' on backend 'gone' has ended"));
    end(&x);
}

static void what_fails_for_good_is_not_tried_again(void **state)
{
    struct run x;

    (void)state;
    begin(&x, "refuses");
    run_release(&x);
    assert_int_equal(x.r.attempts, 1);
    assert_non_null(strstr(x.r.warning, "1 attempt, "));
    assert_non_null(strstr(x.r.warning, "credentials were rejected"));
    end(&x);
}

static void a_program_that_is_gone_is_started_again(void **state)
{
    struct run x;

    (void)state;
    begin(&x, "vanishes");
    run_release(&x);
    assert_int_equal(x.t->sb->session.state, SESSION_OVER);
    assert_int_equal(x.r.attempts, 2);
    assert_non_null(x.r.again);
    assert_null(x.r.again->holder);
    assert_null(x.r.warning);
    assert_null(x.r.note);
    end(&x);
}

static void a_run_that_has_lost_its_handle_asks_by_the_id(void **state)
{
    struct run x;

    (void)state;
    begin(&x, "once");
    x.t->stays_held = true;
    provision_drop(x.t);
    assert_null(x.t->sb);
    assert_true(release_due(x.t));
    run_release(&x);
    assert_int_equal(x.r.attempts, 1);
    assert_string_equal(atoll_sandbox_id(x.r.again), "once:one");
    assert_null(x.r.warning);
    assert_null(x.r.note);
    end(&x);
}

static void it_can_be_given_up_at_any_moment(void **state)
{
    struct run x;

    (void)state;
    begin(&x, "never");
    x.r = (struct releasing){.t = x.t, .done = finished, .owner = &x, .pause_us = PAUSE_US};
    releasing_start(&x.r);
    releasing_stop(&x.r);
    releasing_stop(&x.r);
    assert_false(x.done);
    end(&x);
}

/* --- the programs --- */

static char folder[] = "/tmp/atoll-release-XXXXXX";
static const char *const modes[] = {"once", "third", "never", "gone", "refuses", "vanishes"};

static void path_of(const char *mode, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s/atoll-backend-%s", folder, mode);
}

static int make_backends(void **state)
{
    char self[PATH_MAX], path[sizeof folder + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    if (n < 0 || !mkdtemp(folder))
        return -1;
    self[n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        path_of(modes[i], path, sizeof path);
        if (symlink(self, path) < 0)
            return -1;
    }
    return setenv("PATH", folder, 1);
}

static int remove_backends(void **state)
{
    char path[sizeof folder + 64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        path_of(modes[i], path, sizeof path);
        (void)unlink(path);
    }
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const char *dash = argc > 0 ? strstr(argv[0], "atoll-backend-") : NULL;

    if (dash)
        _exit(fake_backend(dash + strlen("atoll-backend-")));

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_that_can_be_given_back_is_not_spoken_of),
        cmocka_unit_test(what_fails_is_tried_three_times_in_all),
        cmocka_unit_test(after_the_third_failure_it_is_one_warning),
        cmocka_unit_test(a_sandbox_that_is_gone_needs_no_letting_go),
        cmocka_unit_test(what_fails_for_good_is_not_tried_again),
        cmocka_unit_test(a_program_that_is_gone_is_started_again),
        cmocka_unit_test(a_run_that_has_lost_its_handle_asks_by_the_id),
        cmocka_unit_test(it_can_be_given_up_at_any_moment),
    };

    return cmocka_run_group_tests(tests, make_backends, remove_backends);
}

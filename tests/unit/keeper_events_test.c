/* SPDX-License-Identifier: Apache-2.0 */
/* The file of events: its lines, its bound, its place; and reading it while it is cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/event_lines.h"
#include "core/state.h"
#include "keeper/command.h"
#include "keeper/events.h"
#include "keeper/keeper.h"
#include "base/guards.h"

/* A keeper with a folder and nothing else, and a reader of that. */
struct scene {
    char root[64];
    struct keeper keeper;
    int folder;
    struct event_lines lines;
    uint64_t n_read, expected; /* the port of the next denial */
    uint64_t gone;
    int gaps;
};

static int count_line(void *owner, const char *line, const json_t *value)
{
    struct scene *s = owner;
    const char *kind = json_string_value(json_object_get(value, "kind"));

    assert_true(strlen(line) > 2 && kind);
    if (strcmp(kind, "events") == 0) {
        s->gone = (uint64_t)json_integer_value(json_object_get(value, "lines"));
        s->gaps++;
        s->expected = s->gone;
        return 0;
    }
    assert_true((uint64_t)json_integer_value(json_object_get(value, "bytes")) == s->expected);
    s->expected++;
    s->n_read++;
    return 0;
}

static int start(void **state)
{
    static struct scene s;
    struct state_record record = {.pid = getpid(), .created_at_us = 1};
    const uint64_t random[2] = {1, 2};
    struct error err = ERROR_INIT;
    char folder[80];

    memset(&s, 0, sizeof s);
    *state = &s;
    (void)snprintf(s.root, sizeof s.root, "/tmp/atoll-test-XXXXXX");
    if (!mkdtemp(s.root))
        return -1;
    (void)snprintf(folder, sizeof folder, "%s/state", s.root);
    if (setenv("ATOLL_STATE_DIR", folder, 1) < 0 || place_read(&record.place) < 0)
        return -1;
    sandbox_id_make(&record.place, random, record.id);
    memcpy(s.keeper.id, record.id, sizeof record.id);
    s.keeper.listen_fd = state_publish(&record, &err);
    s.keeper.events = (struct event_log)EVENT_LOG_INIT;
    s.folder = state_sandbox_folder(record.id, &err);
    s.lines.owner = &s;
    s.lines.line = count_line;
    event_lines_init(&s.lines, s.folder);
    return s.keeper.listen_fd < 0 || s.folder < 0 ? -1 : 0;
}

static int end(void **state)
{
    struct scene *s = *state;
    char folder[80];

    event_lines_done(&s->lines);
    events_close(&s->keeper);
    fd_closep(&s->keeper.listen_fd);
    fd_closep(&s->folder);
    state_withdraw(s->keeper.id);
    (void)snprintf(folder, sizeof folder, "%s/state", s->root);
    assert_int_equal(rmdir(folder), 0); /* nothing of it is left */
    return rmdir(s->root);
}

static void deny(struct scene *s, const char *name, uint64_t bytes)
{
    const struct denial x = {.protocol = DENIAL_TLS,
                             .name = name,
                             .address = "198.18.0.7",
                             .port = 443,
                             .rule = "no rule",
                             .reason = "nothing lists \"it\"",
                             .bytes = bytes,
                             .at_us = UINT64_C(1796032800123456)};

    events_denied(&s->keeper, &x);
}

/* The whole file; owned. */
static char *file(const struct scene *s, struct stat *ret)
{
    _cleanup_fd_ int fd = openat(s->folder, STATE_EVENTS, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, ret), 0);
    char *text = malloc((size_t)ret->st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)ret->st_size), ret->st_size);
    text[ret->st_size] = '\0';
    return text;
}

static void a_refusal_is_a_line_with_the_commands_that_ran(void **state)
{
    struct scene *s = *state;
    struct keeper_command late = {.number = 5}, first = {.next = &late, .number = 3},
                          over = {.next = &first, .number = 2, .exited = true},
                          files = {.next = &over, .number = 9, .flags = EXEC_FILES};
    struct stat st;

    late.exited = true;
    late.sync = 1; /* its last words are awaited */
    s->keeper.commands = &files;
    deny(s, "x.test", 0);
    s->keeper.commands = NULL;
    _cleanup_free_ char *text = file(s, &st);
    assert_string_equal(
        text,
        "{\"time\":\"2026-11-30T10:00:00.123456Z\",\"kind\":\"egress\",\"event\":\"denied\","
        "\"commands\":[5,3],\"protocol\":\"tls\",\"name\":\"x.test\","
        "\"address\":\"198.18.0.7\",\"port\":443,\"rule\":\"no rule\","
        "\"reason\":\"nothing lists \\\"it\\\"\",\"bytes\":0,\"repeated\":0,\"dropped\":0}\n");
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_non_null(first.denials);
    assert_non_null(late.denials);
    assert_null(over.denials);
    assert_null(files.denials);
    command_denials_free(first.denials);
    command_denials_free(late.denials);
}

static void a_change_of_the_policy_is_a_line(void **state)
{
    struct scene *s = *state;
    struct stat st;

    events_policy(&s->keeper, 2, "{\"allow_egress_to\":[\"a\"],\"block_network\":true}", 3);
    _cleanup_free_ char *text = file(s, &st);
    json_t *line = json_loads(text, 0, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "kind")), "policy");
    assert_string_equal(json_string_value(json_object_get(line, "event")), "changed");
    assert_int_equal(json_integer_value(json_object_get(line, "generation")), 2);
    assert_int_equal(json_integer_value(json_object_get(line, "flows_cut")), 3);
    assert_true(json_is_array(json_object_get(json_object_get(line, "policy"), "allow_egress_to")));
    json_decref(line);
}

static void what_is_no_text_still_makes_a_line(void **state)
{
    struct scene *s = *state;
    struct stat st;

    deny(s, "a\n\x1b[2J\xff\xc3\xa9", 0);
    deny(s, "b", 1);
    _cleanup_free_ char *text = file(s, &st);
    assert_non_null(strstr(text, "\"name\":\"a??[2J?\\u00E9\""));
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->n_read, 2);
}

static void an_owned_sandbox_has_no_file(void **state)
{
    struct scene *s = *state;
    struct keeper owned = {.listen_fd = -EBADF, .events = EVENT_LOG_INIT};
    struct keeper_command c = {.number = 1};
    struct stat st;

    owned.commands = &c;
    memcpy(owned.id, s->keeper.id, sizeof owned.id);
    const struct denial x = {.name = "a", .address = "", .rule = "", .reason = ""};
    events_denied(&owned, &x);
    events_policy(&owned, 2, "{}", 0);
    assert_non_null(c.denials); /* but its commands hear of it */
    command_denials_free(c.denials);
    assert_int_equal(owned.events.fd, -EBADF);
    assert_int_equal(fstatat(s->folder, STATE_EVENTS, &st, 0), -1);
}

static void the_file_is_bounded_and_says_what_went(void **state)
{
    struct scene *s = *state;
    struct stat st;
    uint64_t n;

    for (n = 0; n < 12000; n++) {
        deny(s, "some.rather.long.name.of.a.host.example.org", n);
        assert_true(s->keeper.events.bytes <= EVENTS_BYTES_MAX);
    }
    assert_int_equal(fstatat(s->folder, STATE_EVENTS, &st, 0), 0);
    assert_true((size_t)st.st_size == s->keeper.events.bytes);
    assert_true(st.st_size > EVENTS_BYTES_MAX / 3);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->gaps, 1);
    assert_true(s->gone > 0 && s->gone + s->n_read == n);
    assert_true(s->gone == s->keeper.events.gone);
    assert_true(s->expected == n);
}

/* count_line() asserts that no line is missed or comes twice. */
static void a_reader_that_keeps_up_misses_nothing(void **state)
{
    struct scene *s = *state;

    for (uint64_t n = 0; n < 12000; n++) {
        deny(s, "some.rather.long.name.of.a.host.example.org", n);
        if (n % 700 == 0)
            assert_int_equal(event_lines_read(&s->lines), 0);
    }
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_true(s->keeper.events.gone > 0);
    assert_int_equal(s->gaps, 0);
    assert_int_equal(s->n_read, 12000);
}

static void a_slow_reader_is_told_of_the_gap(void **state)
{
    struct scene *s = *state;

    deny(s, "a", 0);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->n_read, 1);
    for (uint64_t n = 1; n < 20000; n++)
        deny(s, "some.rather.long.name.of.a.host.example.org", n);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->gaps, 1);
    assert_true(s->expected == 20000);
}

static void half_a_line_waits_for_its_end(void **state)
{
    static const char half[] = "{\"kind\":\"egress\",\"by", rest[] = "tes\":0}\n";
    struct scene *s = *state;

    assert_int_equal(events_open(&s->keeper), 0);
    assert_int_equal(write(s->keeper.events.fd, half, strlen(half)), (int)strlen(half));
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->n_read, 0);
    assert_int_equal(write(s->keeper.events.fd, rest, strlen(rest)), (int)strlen(rest));
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->n_read, 1);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, start, end)
    const struct CMUnitTest tests[] = {
        TEST(a_refusal_is_a_line_with_the_commands_that_ran),
        TEST(a_change_of_the_policy_is_a_line),
        TEST(what_is_no_text_still_makes_a_line),
        TEST(an_owned_sandbox_has_no_file),
        TEST(the_file_is_bounded_and_says_what_went),
        TEST(a_reader_that_keeps_up_misses_nothing),
        TEST(a_slow_reader_is_told_of_the_gap),
        TEST(half_a_line_waits_for_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

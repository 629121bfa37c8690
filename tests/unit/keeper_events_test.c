/* SPDX-License-Identifier: Apache-2.0 */
/* The file of events: its lines, its bound, its place; and reading it while it is cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/event_lines.h"
#include "core/limits.h"
#include "core/state.h"
#include "keeper/command.h"
#include "keeper/events.h"
#include "keeper/keeper.h"
#include "wire/exported.h"
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
    if (loop_init(&s.keeper.loop) < 0)
        return -1;
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
    loop_done(&s->keeper.loop);
    string_list_done(&s->keeper.spec.env);
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

/* A line as of a refusal, which is not held back. */
static void refuse(struct scene *s, uint64_t bytes)
{
    event_log_add(&s->keeper.events, s->keeper.id, true,
                  json_pack("{s:o, s:s, s:s, s:I}", "time", event_time_json(1), "kind", "egress",
                            "name",
                            "some.rather.long.name.of.a.host.in.a.domain.of.some.people.with.many."
                            "hosts.in.the.part.of.the.network.that.they.have.for.examples.org",
                            "bytes", (json_int_t)bytes));
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
        refuse(s, n);
        assert_true(s->keeper.events.bytes <= EVENTS_BYTES_MAX);
    }
    assert_int_equal(fstatat(s->folder, STATE_EVENTS, &st, 0), 0);
    assert_true((size_t)st.st_size == s->keeper.events.bytes);
    assert_true(st.st_size > EVENTS_BYTES_MAX / 3);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->gaps, 1);
    assert_true(s->gone > 0 && s->gone + s->n_read == n);
    assert_true(s->expected == n);
}

/* count_line() asserts that no line is missed or comes twice. */
static void a_reader_that_keeps_up_misses_nothing(void **state)
{
    struct scene *s = *state;
    struct stat st;

    for (uint64_t n = 0; n < 12000; n++) {
        refuse(s, n);
        if (n % 700 == 0)
            assert_int_equal(event_lines_read(&s->lines), 0);
    }
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->gaps, 0);
    assert_int_equal(s->n_read, 12000);
    _cleanup_free_ char *text = file(s, &st);
    assert_non_null(strstr(text, "\"dropped\"")); /* it was cut */
}

static void a_slow_reader_is_told_of_the_gap(void **state)
{
    struct scene *s = *state;

    refuse(s, 0);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->n_read, 1);
    for (uint64_t n = 1; n < 20000; n++)
        refuse(s, n);
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

static void a_line_that_is_too_long_is_counted_in_its_place(void **state)
{
    struct scene *s = *state;
    struct stat st;
    char *text = calloc(1, EVENT_LINE_BYTES_MAX + 1);

    assert_non_null(text);
    memset(text, 'x', EVENT_LINE_BYTES_MAX);
    refuse(s, 0);
    event_log_add(&s->keeper.events, s->keeper.id, true,
                  json_pack("{s:s, s:s, s:s}", "time", "t", "kind", "policy", "x", text));
    refuse(s, 1);
    free(text);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(s->gaps, 1);
    assert_int_equal(s->n_read, 2);
    _cleanup_free_ char *all = file(s, &st);
    assert_true(st.st_size < 1024);
    assert_non_null(strstr(all, "\"lines\":1}\n"));
}

struct seen {
    uint64_t lines, gone, others;
    char time[32];
    bool ended;
};

static int count_seen(void *owner, const char *line, const json_t *value)
{
    struct seen *x = owner;
    const char *kind = json_string_value(json_object_get(value, "kind"));

    assert_true(line && kind);
    if (strcmp(kind, "events") == 0) {
        x->gone += (uint64_t)json_integer_value(json_object_get(value, "lines"));
        (void)snprintf(x->time, sizeof x->time, "%s",
                       json_string_value(json_object_get(value, "time")));
        return 0;
    }
    x->lines++;
    x->others += strcmp(kind, "egress") != 0;
    x->ended = x->ended || strcmp(kind, "end") == 0;
    return 0;
}

/* Whoever wrote it. The rest of the line may come later than its beginning. */
static void a_reader_passes_over_what_is_too_long(void **state)
{
    static const char head[] =
        "{\"time\":\"2026-11-30T10:00:00.123456Z\",\"kind\":\"egress\",\"x\":\"";
    struct scene *s = *state;
    struct seen seen = {0};
    const size_t n = 2 * EVENT_LINES_BYTES_MAX;
    char *text = malloc(n);

    s->lines.owner = &seen;
    s->lines.line = count_seen;
    assert_non_null(text);
    memset(text, 'x', n);
    refuse(s, 0);
    assert_int_equal(write(s->keeper.events.fd, head, strlen(head)), (int)strlen(head));
    assert_int_equal(write(s->keeper.events.fd, text, n), (int)n);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_true(s->lines.capacity < n);
    assert_int_equal(write(s->keeper.events.fd, text, n), (int)n);
    free(text);
    assert_int_equal(write(s->keeper.events.fd, "\"}\n", 3), 3);
    refuse(s, 2);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(seen.lines, 2);
    assert_int_equal(seen.gone, 1);
    assert_string_equal(seen.time, "2026-11-30T10:00:00.123456Z");
    refuse(s, 3);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(seen.lines, 3);
}

/* A command that is over, whose line is long. */
static void exit_of(struct scene *s, uint64_t number)
{
    struct keeper_command c = {.keeper = &s->keeper, .number = (uint32_t)number, .exited = true};

    events_command(&s->keeper, "exited", &c);
}

static void refusals_go_before_all_else_and_commands_next(void **state)
{
    struct scene *s = *state;
    struct seen seen = {0};
    struct stat st;

    s->lines.owner = &seen;
    s->lines.line = count_seen;
    events_lease(&s->keeper, "attached", "team", "job-7", 1);
    exit_of(s, 1);
    for (uint64_t n = 0; n < 12000; n++)
        refuse(s, n);
    events_limit(&s->keeper, "lifetime_near", 1500000);
    for (uint64_t n = 0; n < 12000; n++)
        refuse(s, n);
    char *text = file(s, &st);
    assert_non_null(strstr(text, "job-7"));
    assert_non_null(strstr(text, "\"command\":1,"));
    assert_non_null(strstr(text, "lifetime_near"));
    assert_true(strstr(text, "job-7") < strstr(text, "dropped"));
    free(text);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(seen.lines + seen.gone, 24003); /* each has its number still */
    assert_int_equal(seen.others, 3);
    for (uint64_t n = 0; n < 12000; n++)
        exit_of(s, 2);
    text = file(s, &st);
    assert_non_null(strstr(text, "job-7"));
    assert_null(strstr(text, "\"command\":1,"));
    assert_non_null(strstr(text, "lifetime_near"));
    free(text);
    for (uint64_t n = 0; n < 12000; n++)
        events_lease(&s->keeper, "refused", "team", "job-8", 1);
    text = file(s, &st);
    assert_null(strstr(text, "job-7"));
    free(text);
    assert_true(st.st_size <= EVENTS_BYTES_MAX);
    assert_true((size_t)st.st_size == s->keeper.events.bytes);
}

/* A reader that is on the spot hears all, whatever goes and however often the file is cut. */
static void a_reader_that_keeps_up_misses_nothing_of_any_kind(void **state)
{
    struct scene *s = *state;
    struct seen seen = {0};

    s->lines.owner = &seen;
    s->lines.line = count_seen;
    for (uint64_t n = 0; n < 9000; n++) {
        refuse(s, n);
        exit_of(s, n + 1);
        events_lease(&s->keeper, "refused", "team", "job-8", 1);
        if (n % 300 == 0)
            assert_int_equal(event_lines_read(&s->lines), 0);
    }
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(seen.lines, 27000);
    assert_int_equal(seen.gone, 0);
}

static void the_last_lines_find_room_when_the_folder_is_gone(void **state)
{
    struct scene *s = *state;
    struct seen seen = {0};

    s->lines.owner = &seen;
    s->lines.line = count_seen;
    events_state(&s->keeper, "created", NULL);
    for (uint64_t n = 0; s->keeper.events.bytes < EVENTS_BYTES_MAX - 600; n++)
        refuse(s, n);
    assert_int_equal(event_lines_read(&s->lines), 0);
    events_ending(&s->keeper);
    state_withdraw(s->keeper.id);
    const uint64_t before = seen.lines;
    for (uint64_t n = 1; n <= 10; n++)
        exit_of(s, n);
    events_state(&s->keeper, "ended", "destroyed");
    assert_true(s->keeper.events.bytes > EVENTS_BYTES_MAX);
    assert_int_equal(event_lines_read(&s->lines), 0);
    assert_int_equal(seen.lines, before + 11);
    assert_true(seen.ended);
    assert_int_equal(seen.gone, 0);
}

/* --- floods of refusals --- */

/* How many attempts the lines of a file tell of, and in how many lines. */
static uint64_t attempts(const struct scene *s, size_t *ret_lines)
{
    struct stat st;
    _cleanup_free_ char *text = file(s, &st);
    uint64_t sum = 0;

    *ret_lines = 0;
    for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        json_t *e = json_loads(p, JSON_DISABLE_EOF_CHECK, NULL);

        assert_non_null(e);
        if (strcmp(json_string_value(json_object_get(e, "kind")), "egress") == 0) {
            sum += 1 + (uint64_t)(json_integer_value(json_object_get(e, "repeated")) +
                                  json_integer_value(json_object_get(e, "dropped")));
            (*ret_lines)++;
        }
        json_decref(e);
    }
    return sum;
}

static void assert_same(const struct command_denials *a, const struct command_denials *b)
{
    static uint8_t bytes[2][64 * 1024];
    struct writer w[2] = {writer_over(bytes[0], sizeof bytes[0]),
                          writer_over(bytes[1], sizeof bytes[1])};

    command_denials_encode(&w[0], a);
    command_denials_encode(&w[1], b);
    assert_false(w[0].bad || w[1].bad);
    assert_true(writer_len(&w[0]) > 0);
    assert_int_equal(writer_len(&w[0]), writer_len(&w[1]));
    assert_memory_equal(bytes[0], bytes[1], writer_len(&w[0]));
}

static void a_flood_of_refusals_is_counted(void **state)
{
    struct scene *s = *state;
    struct keeper_command c = {.number = 3};
    struct command_denials *all = NULL;
    struct denial_lines *d = &s->keeper.events.denials;
    struct denial x = {.name = "a", .address = "", .rule = "", .reason = "", .repeated = 2};
    size_t lines;

    events_state(&s->keeper, "created", NULL);
    s->keeper.commands = &c;
    for (x.port = 1; x.port <= 5000; x.port++)
        events_denied(&s->keeper, &x);
    (void)attempts(s, &lines);
    assert_in_range(lines, EVENT_DENIALS_AT_ONCE, EVENT_DENIALS_AT_ONCE + 100);
    d->paid_us = 0; /* much later */
    assert_true(d->due.set);
    assert_int_equal(d->due.due(&s->keeper.loop, &d->due), 0);
    assert_int_equal(attempts(s, &lines), 3 * 5000);
    for (x.port = 1; x.port <= 5000; x.port++)
        events_denied(&s->keeper, &x);
    s->keeper.commands = NULL;
    events_ending(&s->keeper);
    events_state(&s->keeper, "ended", "destroyed"); /* the end waits for no share */
    assert_int_equal(attempts(s, &lines), 3 * 10000);
    assert_in_range(lines, 2 * EVENT_DENIALS_AT_ONCE, 2 * EVENT_DENIALS_AT_ONCE + 200);
    assert_false(d->due.set);
    for (int i = 0; i < 2; i++)
        for (x.port = 1; x.port <= 5000; x.port++)
            assert_int_equal(command_denials_note(&all, &x), 0);
    assert_same(c.denials, all); /* a command hears of all */
    command_denials_free(c.denials);
    command_denials_free(all);
}

/* Nobody needs to try again for that. */
static void a_refusal_that_waits_is_told_in_its_turn(void **state)
{
    struct scene *s = *state;
    size_t before, after;

    for (int i = 0; i < EVENT_DENIALS_AT_ONCE + 50; i++)
        deny(s, "a", 0);
    (void)attempts(s, &before);
    s->keeper.events.denials.paid_us -= UINT64_C(1000000) / EVENT_DENIALS_PER_SECOND;
    while (s->keeper.events.denials.waiting)
        assert_int_equal(loop_turn(&s->keeper.loop, clock_after_us(5000000)), 0);
    assert_int_equal(attempts(s, &after), EVENT_DENIALS_AT_ONCE + 50);
    assert_true(after == before + 1);
}

/* --- the other kinds --- */

/* Line @n of the file, from 0, or NULL; a new reference. */
static json_t *line_of_file(const struct scene *s, size_t n)
{
    struct stat st;
    _cleanup_free_ char *text = file(s, &st);
    const char *p = text;

    for (; p && n > 0; n--) {
        p = strchr(p, '\n');
        p = p ? p + 1 : NULL;
    }
    return p && *p ? json_loads(p, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

static const char *text_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void secret(struct scene *s, const char *entry)
{
    assert_int_equal(string_list_add(&s->keeper.spec.env, entry), 0);
}

/* The event of a command with these arguments that starts; a new reference. */
static json_t *started(struct scene *s, const char **argv, size_t n)
{
    const struct exec_request x = {.argv = argv, .n_argv = n, .flags = EXEC_DETACH};
    struct keeper_command c = {.keeper = &s->keeper, .number = 7};

    c.told = events_arguments(&s->keeper, &x);
    assert_non_null(c.told);
    events_command(&s->keeper, "started", &c);
    free(c.told);
    return line_of_file(s, 0);
}

static void a_command_is_told_with_its_masked_arguments(void **state)
{
    struct scene *s = *state;
    const char *argv[] = {"curl", "-H", "Authorization: hunter22", "abc", NULL};

    secret(s, "TOKEN=hunter22");
    secret(s, "SHORT=abc");
    json_t *e = started(s, argv, 4);
    json_t *list = json_object_get(e, "argv");
    assert_int_equal(json_array_size(list), 4);
    assert_string_equal(json_string_value(json_array_get(list, 2)), "Authorization: ***");
    assert_string_equal(json_string_value(json_array_get(list, 3)), "abc"); /* too short */
    assert_true(json_is_false(json_object_get(e, "argv_cut")));
    assert_true(json_is_true(json_object_get(e, "detached")));
    assert_string_equal(text_at(e, "workdir"), "/workspace");
    assert_int_equal(json_integer_value(json_object_get(e, "command")), 7);
    json_decref(e);
}

/* At whatever place of a secret the arguments are cut, no part of it is there. */
static void a_secret_is_masked_before_arguments_are_cut(void **state)
{
    struct scene *s = *state;
    static char text[EVENTS_ARGUMENTS_MAX + 64];

    secret(s, "TOKEN=QRSTUVWXYZ");
    for (size_t before = 0; before < 12; before++) {
        const char *argv[] = {text, "more", NULL};
        const size_t n = EVENTS_ARGUMENTS_MAX - before;
        const struct exec_request x = {.argv = argv, .n_argv = 2};

        memset(text, 'a', n);
        memcpy(text + n, "QRSTUVWXYZ!", 12);
        _cleanup_free_ char *told = events_arguments(&s->keeper, &x);
        assert_non_null(told);
        assert_null(strpbrk(told, "QRSTUVWXYZ"));
        json_t *o = json_loads(told, 0, NULL);
        if (before < 8) /* else all of it fits, once it is masked */
            assert_true(json_is_true(json_object_get(o, "argv_cut")));
        assert_true(json_string_length(json_array_get(json_object_get(o, "argv"), 0)) <=
                    EVENTS_ARGUMENTS_MAX);
        json_decref(o);
    }
}

static void many_arguments_are_cut(void **state)
{
    struct scene *s = *state;
    static const char *argv[3000];

    for (size_t i = 0; i < 2999; i++)
        argv[i] = "x";
    json_t *e = started(s, argv, 2999);
    assert_true(json_is_true(json_object_get(e, "argv_cut")));
    assert_in_range(json_array_size(json_object_get(e, "argv")), 500, 1100);
    json_decref(e);
}

static void the_end_of_a_command_is_told(void **state)
{
    struct scene *s = *state;
    struct keeper_command c = {.keeper = &s->keeper, .number = 3, .exited = true, .started = true};

    c.report = (struct exit_report){
        .exit_code = 3, .wall_us = 1500000, .user_us = 250000, .timeout_us = 60000000};
    events_command(&s->keeper, "exited", &c);
    c.report = (struct exit_report){.signal = 9, .reason = REASON_TIMEOUT};
    events_command(&s->keeper, "exited", &c);
    c.flags = EXEC_FILES; /* is none of a client */
    events_command(&s->keeper, "exited", &c);
    json_t *first = line_of_file(s, 0), *second = line_of_file(s, 1);
    assert_null(line_of_file(s, 2));
    assert_string_equal(text_at(first, "reason"), "exited");
    assert_int_equal(json_integer_value(json_object_get(first, "exit_code")), 3);
    assert_true(json_real_value(json_object_get(first, "duration")) == 1.5);
    assert_true(json_real_value(json_object_get(first, "applied_timeout")) == 60);
    assert_null(json_object_get(first, "argv"));
    assert_string_equal(text_at(second, "reason"), "timeout");
    assert_int_equal(json_integer_value(json_object_get(second, "status")), 124);
    assert_int_equal(json_integer_value(json_object_get(second, "signal")), 9);
    json_decref(first);
    json_decref(second);
}

static void what_comes_from_inside_is_masked_in_every_kind(void **state)
{
    struct scene *s = *state;
    struct stat st;

    secret(s, "TOKEN=hunter22");
    deny(s, "hunter22.evil.test", 0);
    _cleanup_free_ char *text = file(s, &st);
    assert_null(strstr(text, "hunter22"));
    assert_non_null(strstr(text, "\"name\":\"***.evil.test\""));
}

/* EXPORTED as a client sends it, to a keeper whose client is gone. */
static void exported(struct scene *s, const struct exported_report *x)
{
    static uint8_t buf[16384];
    struct connection c = {.keeper = &s->keeper, .gone = true};
    struct writer w = writer_over(buf, sizeof buf);
    struct message m = {.type = MSG_EXPORTED, .id = 1};

    exported_report_encode(&w, x);
    assert_false(w.bad);
    m.payload = reader_over(buf, writer_len(&w));
    events_exported(&c, &m);
}

static void exports_are_told_without_passwords(void **state)
{
    struct scene *s = *state;

    secret(s, "TOKEN=hunter22");
    exported(s, &(struct exported_report){.path = "out/hunter22.csv",
                                          .url = "s3://me:pw@bucket/x?X-Signature=abc",
                                          .bytes = 12,
                                          .digest = "sha256:00"});
    exported(s, &(struct exported_report){.path = "out",
                                          .url = "file:///srv/x",
                                          .message = "to s3://me:pw@bucket/x: no hunter22"});
    json_t *first = line_of_file(s, 0), *second = line_of_file(s, 1);
    assert_string_equal(text_at(first, "event"), "published");
    assert_string_equal(text_at(first, "path"), "out/***.csv");
    assert_string_equal(text_at(first, "url"), "s3://bucket/x?***");
    assert_string_equal(text_at(first, "digest"), "sha256:00");
    assert_string_equal(text_at(second, "event"), "failed");
    assert_string_equal(text_at(second, "message"), "to s3://bucket/x: no ***");
    json_decref(first);
    json_decref(second);
}

/* Sentences of clients show the end of a long path alone. */
static void a_secret_that_a_client_has_cut_is_masked(void **state)
{
    struct scene *s = *state;
    static char url[EXPORTED_TEXT_MAX + 8];

    secret(s, "TOKEN=QRSTUVWXYZ");
    memset(url, 'a', sizeof url - 1);
    memcpy(url + EXPORTED_TEXT_MAX - 6, "QRSTUVWXYZ", 10); /* the first 5 bytes are sent */
    exported(s, &(struct exported_report){
                    .path = "p", .url = url, .message = "no ...VWXYZ/out, nor ...T/VWXYZ"});
    json_t *e = line_of_file(s, 0);
    assert_string_equal(text_at(e, "message"), "no ...***/out, nor ...T/VWXYZ");
    assert_null(strpbrk(text_at(e, "url"), "QRSTU"));
    json_decref(e);
}

static void states_leases_and_limits_are_told(void **state)
{
    struct scene *s = *state;

    events_state(&s->keeper, "ended", "killed"); /* there was none yet */
    events_state(&s->keeper, "created", NULL);
    events_lease(&s->keeper, "attached", "team", "job-7", 2);
    events_limit(&s->keeper, "lifetime_near", 1500000);
    events_limit(&s->keeper, "oom", 4096);
    events_limit(&s->keeper, "cost_near", 250000);
    events_ending(&s->keeper);
    events_state(&s->keeper, "ended", "lifetime");
    static const char *const kinds[] = {"state", "lease", "limit", "limit", "limit", "end"};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        json_t *e = line_of_file(s, i);

        assert_string_equal(text_at(e, "kind"), kinds[i]);
        if (i == 1)
            assert_string_equal(text_at(e, "holder"), "job-7");
        if (i == 2)
            assert_true(json_real_value(json_object_get(e, "left")) == 1.5);
        if (i == 3)
            assert_int_equal(json_integer_value(json_object_get(e, "memory_bytes")), 4096);
        if (i == 4)
            assert_true(json_real_value(json_object_get(e, "cost")) == 0.25);
        if (i == 5)
            assert_string_equal(text_at(e, "by"), "lifetime");
        json_decref(e);
    }
    assert_null(line_of_file(s, ARRAY_SIZE(kinds)));
}

/* No character in part, and no more than an owner and a holder may have. */
static void names_that_were_refused_are_cut(void **state)
{
    struct scene *s = *state;
    const size_t n = 2 * 1024 * 1024;
    struct stat st;
    char *text = malloc(n + 1);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        text[i] = i == 0 ? 'a' : i % 2 == 1 ? '\xc3' : '\xa9';
    text[n] = '\0';
    events_lease(&s->keeper, "refused", text, text + 1, 0);
    free(text);
    json_t *e = line_of_file(s, 0);
    assert_int_equal(json_string_length(json_object_get(e, "owner")), LIMIT_TEXT_BYTES - 1);
    assert_int_equal(json_string_length(json_object_get(e, "holder")), LIMIT_TEXT_BYTES);
    assert_null(strchr(text_at(e, "owner"), '?'));
    assert_null(strchr(text_at(e, "holder"), '?'));
    json_decref(e);
    free(file(s, &st));
    assert_true(st.st_size < 16 * 1024);
}

/* --- the audit file --- */

static void where_a_server_has_to_answer_is_no_audit_file(void **state)
{
    (void)state;
    static const struct {
        unsigned long type;
        const char *name;
    } cases[] = {
        {0x6969, "NFS"},
        {0xFF534D42, "SMB"},
        {0xFE534D42, "SMB"},
        {0x517B, "SMB"},
        {0x01021997, "9p"},
        {0x65735546, "FUSE"},
        {0x00C36400, "Ceph"},
        {0x5346414F, "AFS"},
        {0x6B414653, "AFS"},
        {0x73757245, "Coda"},
        {0xEF53, NULL},
        {0x9123683E, NULL},
        {0x58465342, NULL},
        {0x01021994, NULL},
        {0x794C7630, NULL},
        {0x2FC12FC1, NULL},
        {0xFFFFFFFFFF534D42, "SMB"}, /* a negative number, where f_type has a sign */
        {0, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *name = event_log_server_of(cases[i].type);

        assert_true((name == NULL) == (cases[i].name == NULL));
        if (name)
            assert_string_equal(name, cases[i].name);
    }
}

static void audit_path(const struct scene *s, char ret[96])
{
    (void)snprintf(ret, 96, "%s/state/audit", s->root);
}

/* All of a file whose lines are JSON objects; owned. */
static char *audited(const char *path)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st = {0};

    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
    for (const char *p = text; p && *p;) {
        json_t *e = json_loads(p, JSON_DISABLE_EOF_CHECK, NULL);

        assert_non_null(e);
        assert_non_null(text_at(e, "id"));
        json_decref(e);
        p = strchr(p, '\n');
        assert_non_null(p);
        p = p ? p + 1 : NULL; /* for analyzers, which do not know assertions */
    }
    return text;
}

static void an_owned_sandbox_is_audited(void **state)
{
    struct scene *s = *state;
    struct keeper owned = {.listen_fd = -EBADF, .events = EVENT_LOG_INIT};
    struct error err = ERROR_INIT;
    char path[96], start[64];
    struct stat st;

    audit_path(s, path);
    owned.spec.audit = path;
    memcpy(owned.id, s->keeper.id, sizeof owned.id);
    assert_int_equal(events_audit(&owned, &err), 0);
    events_state(&owned, "created", NULL);
    s->keeper.spec.audit = path;
    assert_int_equal(events_audit(&s->keeper, &err), 0); /* many may share it */
    events_lease(&s->keeper, "attached", "a", "b", 1);
    events_state(&owned, "ended", "destroyed");
    s->keeper.spec.audit = NULL;
    _cleanup_free_ char *text = audited(path);
    (void)snprintf(start, sizeof start, "{\"id\":\"%s\",\"time\":", owned.id);
    assert_memory_equal(text, start, strlen(start));
    assert_true(strstr(text, "created") < strstr(text, "attached") &&
                strstr(text, "attached") < strstr(text, "ended"));
    assert_true(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    events_close(&owned);
    assert_int_equal(unlink(path), 0);
}

static void what_is_no_file_is_no_audit_file(void **state)
{
    struct scene *s = *state;
    struct error err = ERROR_INIT;
    char path[96], folder[96];

    audit_path(s, path);
    (void)snprintf(folder, sizeof folder, "%s/state", s->root);
    s->keeper.spec.audit = path;
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_true(events_audit(&s->keeper, &err) < 0);
    assert_non_null(strstr(err.message, "symbolic link"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody reads it: nothing may hang */
    err = (struct error)ERROR_INIT;
    assert_true(events_audit(&s->keeper, &err) < 0);
    assert_true(err.remedy[0] != '\0');
    assert_int_equal(unlink(path), 0);
    s->keeper.spec.audit = folder;
    err = (struct error)ERROR_INIT;
    assert_true(events_audit(&s->keeper, &err) < 0);
    s->keeper.spec.audit = NULL;
    assert_int_equal(s->keeper.events.audit_fd, -EBADF);
}

static void limit_files(off_t bytes)
{
    struct rlimit x;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &x), 0);
    x.rlim_cur = bytes < 0 ? x.rlim_max : (rlim_t)bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &x), 0);
}

/* A ceiling on the size of files stands in for a full disk: the write is cut short likewise. */
static void a_full_disk_loses_lines_and_counts_them(void **state)
{
    struct scene *s = *state;
    struct keeper owned = {.listen_fd = -EBADF, .events = EVENT_LOG_INIT};
    struct error err = ERROR_INIT;
    char path[96];
    struct stat st;

    audit_path(s, path);
    owned.spec.audit = path;
    memcpy(owned.id, s->keeper.id, sizeof owned.id);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(events_audit(&owned, &err), 0);
    events_lease(&owned, "attached", "a", "b", 1);
    assert_int_equal(stat(path, &st), 0);
    limit_files(st.st_size + 10);
    events_lease(&owned, "released", "a", "b", 1);
    events_lease(&owned, "attached", "a", "c", 2);
    assert_int_equal(owned.events.audit_lost, 2);
    limit_files(-1);
    events_lease(&owned, "attached", "a", "d", 3);
    _cleanup_free_ char *text = audited(path);
    assert_null(strstr(text, "released"));
    assert_non_null(strstr(text, "\"event\":\"dropped\",\"lines\":2}\n"));
    assert_true(strstr(text, "dropped") < strstr(text, "\"d\""));
    assert_int_equal(owned.events.audit_lost, 0);
    events_close(&owned);
    assert_int_equal(unlink(path), 0);
}

/* Somebody's line came behind a part that could not be taken back. */
static void a_part_of_a_line_does_not_spoil_the_next(void **state)
{
    struct scene *s = *state;
    char path[96];
    struct error err = ERROR_INIT;

    audit_path(s, path);
    s->keeper.spec.audit = path;
    assert_int_equal(events_audit(&s->keeper, &err), 0);
    assert_int_equal(write(s->keeper.events.audit_fd, "{\"id\":", 6), 6);
    s->keeper.events.audit_half = true;
    events_lease(&s->keeper, "attached", "a", "b", 1);
    events_lease(&s->keeper, "released", "a", "b", 1);
    s->keeper.spec.audit = NULL;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[1024] = "";
    assert_true(read(fd, text, sizeof text - 1) > 0);
    assert_memory_equal(text, "{\"id\":", 6);
    char *second = strchr(text, '\n') + 1, *third = strchr(second, '\n') + 1;
    json_t *a = json_loads(second, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *b = json_loads(third, JSON_DISABLE_EOF_CHECK, NULL);
    assert_string_equal(text_at(a, "event"), "attached");
    assert_string_equal(text_at(b, "event"), "released");
    json_decref(a);
    json_decref(b);
    assert_int_equal(unlink(path), 0);
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
        TEST(a_line_that_is_too_long_is_counted_in_its_place),
        TEST(a_reader_passes_over_what_is_too_long),
        TEST(refusals_go_before_all_else_and_commands_next),
        TEST(a_reader_that_keeps_up_misses_nothing_of_any_kind),
        TEST(the_last_lines_find_room_when_the_folder_is_gone),
        TEST(a_flood_of_refusals_is_counted),
        TEST(a_refusal_that_waits_is_told_in_its_turn),
        TEST(names_that_were_refused_are_cut),
        TEST(where_a_server_has_to_answer_is_no_audit_file),
        TEST(a_command_is_told_with_its_masked_arguments),
        TEST(a_secret_is_masked_before_arguments_are_cut),
        TEST(many_arguments_are_cut),
        TEST(the_end_of_a_command_is_told),
        TEST(what_comes_from_inside_is_masked_in_every_kind),
        TEST(exports_are_told_without_passwords),
        TEST(a_secret_that_a_client_has_cut_is_masked),
        TEST(states_leases_and_limits_are_told),
        TEST(an_owned_sandbox_is_audited),
        TEST(what_is_no_file_is_no_audit_file),
        TEST(a_full_disk_loses_lines_and_counts_them),
        TEST(a_part_of_a_line_does_not_spoil_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

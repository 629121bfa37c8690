/* SPDX-License-Identifier: Apache-2.0 */
/* The plan, built without any privilege for hosts that are made up: which steps, in which order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "local/plan.h"
#include "base/guards.h"

/* What one test works on; too large for a stack. */
struct bench {
    struct spec spec;
    struct host host;
    struct plan plan;
};

static const uint64_t chance[2] = {0x0123456789ABCDEF, 0x00000000FFFFFFFF};
static const char resolv_conf[] = "nameserver 192.0.2.53\n";

static void add_entry(struct host *h, enum host_kind kind, const char *path, const char *target)
{
    struct host_entry *e = &h->entries[h->n_entries++];

    e->kind = kind;
    (void)snprintf(e->path, sizeof e->path, "%s", path);
    (void)snprintf(e->target, sizeof e->target, "%s", target);
}

/* An ordinary user on a host with merged /usr. */
static int start(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    *state = b;
    if (!b || spec_init(&b->spec) < 0)
        return -1;
    b->host = (struct host){
        .uid = 1000,
        .gid = 1001,
        .available_bytes = 8 * LIMIT_GIB,
        .open_files_max = 1024,
    };
    add_entry(&b->host, HOST_FOLDER, "/usr", "");
    add_entry(&b->host, HOST_LINK, "/bin", "usr/bin");
    add_entry(&b->host, HOST_FOLDER, "/etc/ssl", "");
    add_entry(&b->host, HOST_FILE, "/etc/ld.so.cache", "");
    memset(&b->plan, 0x5A, sizeof b->plan); /* it need not be initialised */
    return 0;
}

static int end(void **state)
{
    struct bench *b = *state;

    spec_done(&b->spec);
    free(b);
    return 0;
}

/* The host's root with all capabilities. */
static void be_root(struct bench *b)
{
    b->host.uid = b->host.gid = 0;
    b->host.kernel_root = b->host.may_map_range = b->host.may_mount = true;
}

static void build(struct bench *b)
{
    struct error err = ERROR_INIT;

    if (plan_build(&b->plan, &b->spec, &b->host, resolv_conf, chance, &err) < 0)
        fail_msg("%s", err.message);
}

static void refuse(struct bench *b, int code, const char *words)
{
    struct error err = ERROR_INIT;

    assert_int_equal(plan_build(&b->plan, &b->spec, &b->host, resolv_conf, chance, &err), -code);
    assert_int_equal(err.cls, ERROR_TERMINAL);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static size_t count(const struct plan *p, enum step_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->steps[i].kind == kind;
    return n;
}

/* The place of the first or last step of a kind, which there must be. */
static size_t place(const struct plan *p, enum step_kind kind, bool last)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < p->n; i++)
        if (p->steps[i].kind == kind && (last || found == SIZE_MAX))
            found = i;
    if (found == SIZE_MAX)
        fail_msg("there is no step %s", step_name(kind));
    return found;
}

/* All steps of one kind come before all of another. */
static void assert_before(const struct plan *p, enum step_kind earlier, enum step_kind later)
{
    if (place(p, earlier, true) >= place(p, later, false))
        fail_msg("%s does not come before %s", step_name(earlier), step_name(later));
}

static const struct step *find(const struct plan *p, enum step_kind kind, const char *target)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->steps[i].kind == kind && p->steps[i].target &&
            strcmp(p->steps[i].target, target) == 0)
            return &p->steps[i];
    return NULL;
}

static size_t place_of(const struct plan *p, enum step_kind kind, const char *target)
{
    const struct step *s = find(p, kind, target);

    if (!s)
        fail_msg("there is no step %s %s", step_name(kind), target);
    return (size_t)(s - p->steps);
}

static void assert_order(const struct plan *p)
{
    assert_before(p, STEP_IDS, STEP_ROOT);
    assert_before(p, STEP_PRIVATE, STEP_ROOT);
    assert_before(p, STEP_ROOT, STEP_PROC);
    assert_before(p, STEP_PROC, STEP_SYSCTL);
    assert_before(p, STEP_SYSCTL, STEP_PROC_LOCK);
    assert_before(p, STEP_PROC, STEP_PROC_MASK);
    assert_before(p, STEP_TERMINALS, STEP_PIVOT);
    assert_before(p, STEP_PROC_MASK, STEP_PIVOT);
    /* the rest in this order, at the very end */
    static const enum step_kind last[] = {STEP_PIVOT, STEP_LIMITS, STEP_LANDLOCK, STEP_PRIVILEGES,
                                          STEP_INIT};
    for (size_t i = 0; i < ARRAY_SIZE(last); i++)
        assert_int_equal(p->steps[p->n - ARRAY_SIZE(last) + i].kind, last[i]);
}

static void the_steps_stand_in_the_order_that_locks_need(void **state)
{
    struct bench *b = *state;

    build(b);
    assert_order(&b->plan);
    /* nothing is made in the root behind its lock, which comes right before it is entered */
    size_t lock = place_of(&b->plan, STEP_READ_ONLY, "/");
    assert_int_equal(lock + 1, place(&b->plan, STEP_PIVOT, false));
    assert_before(&b->plan, STEP_WRITABLE, STEP_PIVOT);
    be_root(b);
    build(b);
    assert_order(&b->plan);
}

static void folders_are_there_before_what_lies_in_them(void **state)
{
    struct bench *b = *state;
    struct plan *p = &b->plan;

    build(b);
    assert_true(place_of(p, STEP_WRITABLE, "/etc") < place_of(p, STEP_FILE, "/etc/hosts"));
    assert_true(place_of(p, STEP_WRITABLE, "/etc") < place_of(p, STEP_BIND, "/etc/ssl"));
    assert_true(place_of(p, STEP_FOLDER, "/dev") < place_of(p, STEP_BIND, "/dev/null"));
    assert_true(place_of(p, STEP_FOLDER, "/dev") < place_of(p, STEP_TERMINALS, "/dev/pts"));
    assert_true(place_of(p, STEP_WRITABLE, "/var") < place_of(p, STEP_FOLDER, "/var/tmp"));
}

static void what_waits_for_its_lock_gets_it(void **state)
{
    struct bench *b = *state;
    struct plan *p = &b->plan;

    build(b);
    for (size_t i = 0; i < p->n; i++) {
        const struct step *s = &p->steps[i];
        bool locked = false;

        if (!(s->flags & STEP_LATER) || !(s->flags & STEP_RO))
            continue;
        for (size_t k = i + 1; k < p->n; k++)
            locked =
                locked || (p->steps[k].kind == STEP_READ_ONLY &&
                           strncmp(s->target, p->steps[k].target, strlen(p->steps[k].target)) == 0);
        if (!locked)
            fail_msg("nothing makes %s read-only", s->target);
    }
}

static void an_ordinary_user_keeps_the_one_id(void **state)
{
    struct bench *b = *state;

    b->spec.uid = 500;
    b->spec.gid = 600;
    build(b);
    assert_false(b->plan.range);
    assert_int_equal(b->plan.uid, 500);
    assert_int_equal(b->plan.gid, 600);
    assert_int_equal(b->plan.command_uid, 500);
    assert_int_equal(b->plan.caller_uid, 1000);
    assert_int_equal(b->plan.caller_gid, 1001);
}

static void the_hosts_root_becomes_a_range_that_nobody_has(void **state)
{
    struct bench *b = *state;

    be_root(b);
    b->spec.uid = 500;
    build(b);
    assert_true(b->plan.range);
    assert_int_equal(b->plan.uid, 0);
    assert_int_equal(b->plan.command_uid, 500);
    assert_int_equal(b->plan.range_count, 65536);
    for (uint64_t n = 0; n < 5000; n++) {
        const uint64_t random[2] = {n * UINT64_C(0x9E3779B97F4A7C15), n};
        struct error err = ERROR_INIT;

        assert_int_equal(plan_build(&b->plan, &b->spec, &b->host, resolv_conf, random, &err), 0);
        assert_true(b->plan.range_start >= 0x70000000);
        assert_true((uint64_t)b->plan.range_start + b->plan.range_count <= 0x80000000);
        assert_int_equal(b->plan.range_start % 65536, 0);
    }
}

static void the_hosts_root_without_other_ids_is_refused(void **state)
{
    struct bench *b = *state;

    be_root(b);
    b->host.may_map_range = false;
    refuse(b, EPERM, "CAP_SETUID");
}

static void volumes_of_a_range_need_idmapped_mounts(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;

    be_root(b);
    b->host.may_mount = false;
    build(b); /* without volumes it is no matter */
    assert_int_equal(spec_add_volume(&b->spec, "/usr:/data", &err), 0);
    refuse(b, EPERM, "/data");
    b->host.kernel_root = false; /* nor for a single id */
    build(b);
}

static void volumes_come_after_the_view_and_before_the_locks(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    const struct step *s;

    assert_int_equal(spec_add_volume(&b->spec, "/usr:/data", &err), 0);
    assert_int_equal(spec_add_volume(&b->spec, "/tmp:/tmp/in:ro", &err), 0);
    assert_int_equal(spec_set_workdir(&b->spec, "/data/sub", &err), 0);
    build(b);
    assert_int_equal(count(&b->plan, STEP_VOLUME), 2);
    s = find(&b->plan, STEP_VOLUME, "/data");
    assert_non_null(s);
    assert_string_equal(s->source, "/usr");
    assert_int_equal(s->value, 0);
    assert_int_equal(s->flags & STEP_RO, 0);
    s = find(&b->plan, STEP_VOLUME, "/tmp/in");
    assert_non_null(s);
    assert_int_equal(s->value, 1);
    assert_int_equal(s->flags & STEP_RO, STEP_RO);
    assert_before(&b->plan, STEP_BIND, STEP_VOLUME);
    assert_before(&b->plan, STEP_WRITABLE, STEP_VOLUME);
    assert_before(&b->plan, STEP_VOLUME, STEP_WORKDIR); /* it may lie in a volume */
    assert_true(place(&b->plan, STEP_WORKDIR, true) < place_of(&b->plan, STEP_READ_ONLY, "/"));
    assert_order(&b->plan);
}

static void only_what_the_host_has_is_bound_and_read_only(void **state)
{
    struct bench *b = *state;
    size_t devices = 0, entries = 0;

    build(b);
    for (size_t i = 0; i < b->plan.n; i++) {
        const struct step *s = &b->plan.steps[i];

        if (s->kind != STEP_BIND)
            continue;
        assert_string_equal(s->source, s->target);
        if (s->flags & STEP_DEVICE) {
            assert_int_equal(strncmp(s->target, "/dev/", 5), 0);
            devices++;
        } else {
            assert_true(s->flags & STEP_RO);
            entries++;
        }
    }
    assert_int_equal(entries, 3);
    assert_int_equal(devices, 6);
    assert_non_null(find(&b->plan, STEP_LINK, "/bin"));
    assert_null(find(&b->plan, STEP_LINK, "/lib64"));
    assert_null(find(&b->plan, STEP_BIND, "/opt"));
}

static void a_host_with_nothing_to_see_still_gives_a_plan(void **state)
{
    struct bench *b = *state;

    b->host.n_entries = 0;
    b->host.available_bytes = 0;
    build(b);
    assert_order(&b->plan);
    assert_int_equal(place(&b->plan, STEP_ROOT, false), place(&b->plan, STEP_ROOT, true));
    assert_true(b->plan.steps[place(&b->plan, STEP_SHM, false)].value >= LIMIT_SHM_MIN_BYTES);
}

static void an_image_folder_replaces_the_hosts_view(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;

    assert_int_equal(spec_set_image(&b->spec, "dir:/usr", &err), 0);
    build(b);
    assert_true(b->plan.image_folder);
    assert_order(&b->plan);
    assert_before(&b->plan, STEP_ROOT, STEP_OVERLAY);
    assert_string_equal(b->plan.steps[place(&b->plan, STEP_OVERLAY, false)].source, "/usr");
    assert_null(find(&b->plan, STEP_BIND, "/usr"));
    assert_null(find(&b->plan, STEP_READ_ONLY, "/"));      /* the image takes writes, into memory */
    assert_null(find(&b->plan, STEP_FILE, "/etc/passwd")); /* its accounts are its own */
    assert_non_null(find(&b->plan, STEP_FILE, "/etc/hosts"));
    assert_int_equal(count(&b->plan, STEP_WRITABLE), 0);
    assert_int_equal(count(&b->plan, STEP_DEV), 1);
    assert_before(&b->plan, STEP_DEV, STEP_TERMINALS);
}

static void sizes_follow_the_spec_or_the_free_memory(void **state)
{
    struct bench *b = *state;

    build(b);
    assert_true(b->plan.steps[place(&b->plan, STEP_ROOT, false)].value == 4 * LIMIT_GIB);
    assert_true(b->plan.steps[place(&b->plan, STEP_SHM, false)].value == 2 * LIMIT_GIB);
    b->spec.disk_bytes = 5 * LIMIT_MIB;
    b->spec.pids = 77;
    build(b);
    assert_true(b->plan.steps[place(&b->plan, STEP_ROOT, false)].value == 5 * LIMIT_MIB);
    assert_int_equal(b->plan.steps[place(&b->plan, STEP_LIMITS, false)].value, 77);
}

static void files_fit_into_a_ceiling_of_memory(void **state)
{
    struct bench *b = *state;

    b->spec.memory_bytes = 64 * LIMIT_MIB;
    build(b);
    assert_true(b->plan.steps[place(&b->plan, STEP_ROOT, false)].value == 32 * LIMIT_MIB);
    assert_true(b->plan.steps[place(&b->plan, STEP_SHM, false)].value == 32 * LIMIT_MIB);
    b->spec.memory_bytes = 4 * LIMIT_GIB;
    build(b);
    assert_true(b->plan.steps[place(&b->plan, STEP_ROOT, false)].value == 2 * LIMIT_GIB);
    assert_true(b->plan.steps[place(&b->plan, STEP_SHM, false)].value == LIMIT_GIB);
    b->spec.memory_bytes = 1024 * LIMIT_GIB; /* more than there is */
    build(b);
    assert_true(b->plan.steps[place(&b->plan, STEP_ROOT, false)].value == 4 * LIMIT_GIB);
    b->spec.memory_bytes = LIMIT_MIB;
    build(b);
    assert_true(b->plan.steps[place(&b->plan, STEP_ROOT, false)].value == LIMIT_DISK_MIN_BYTES);
}

static void another_user_has_an_account_and_a_home(void **state)
{
    struct bench *b = *state;
    const struct step *s;

    build(b);
    s = find(&b->plan, STEP_FILE, "/etc/passwd");
    assert_non_null(s);
    assert_null(strstr(s->source, "user:x"));
    assert_null(find(&b->plan, STEP_FOLDER, "/home/user"));
    b->spec.uid = 1234;
    b->spec.gid = 5678;
    build(b);
    s = find(&b->plan, STEP_FILE, "/etc/passwd");
    assert_non_null(s);
    assert_non_null(strstr(s->source, "\nuser:x:1234:5678::/home/user:/bin/sh\n"));
    s = find(&b->plan, STEP_FILE, "/etc/group");
    assert_non_null(s);
    assert_non_null(strstr(s->source, "\nuser:x:5678:\n"));
    s = find(&b->plan, STEP_FOLDER, "/home/user");
    assert_non_null(s);
    assert_int_equal(s->value, 0700);
    assert_true(s->flags & STEP_OWNED);
}

static void files_hold_the_name_and_the_machine_id(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    const struct step *s;

    assert_int_equal(spec_set_hostname(&b->spec, "box", &err), 0);
    build(b);
    s = find(&b->plan, STEP_FILE, "/etc/resolv.conf");
    assert_string_equal(s->source, resolv_conf);
    assert_ptr_not_equal(s->source, resolv_conf); /* in memory that both processes see */
    s = find(&b->plan, STEP_FILE, "/etc/hostname");
    assert_non_null(s);
    assert_string_equal(s->source, "box\n");
    s = find(&b->plan, STEP_FILE, "/etc/machine-id");
    assert_non_null(s);
    assert_string_equal(s->source, "0123456789abcdef00000000ffffffff\n");
}

static void the_plan_outlives_spec_and_host(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    const char *first = (const char *)&b->spec;

    assert_int_equal(spec_add_volume(&b->spec, "/usr:/data", &err), 0);
    assert_int_equal(spec_set_workdir(&b->spec, "/work", &err), 0);
    build(b);
    for (size_t i = 0; i < b->plan.n; i++) {
        const char *const texts[] = {b->plan.steps[i].source, b->plan.steps[i].target};

        for (size_t k = 0; k < 2; k++) {
            assert_false(texts[k] >= first && texts[k] < (const char *)&b->plan);
            assert_ptr_not_equal(texts[k], b->spec.hostname);
            assert_ptr_not_equal(texts[k], b->spec.workdir);
            assert_ptr_not_equal(texts[k], b->spec.volumes[0].guest);
        }
    }
}

static void texts_that_do_not_fit_are_refused(void **state)
{
    struct bench *b = *state;
    size_t size = PLAN_TEXT_BYTES + 1;

    free(b->spec.workdir);
    b->spec.workdir = malloc(size);
    assert_non_null(b->spec.workdir);
    memset(b->spec.workdir, '/', size - 1);
    b->spec.workdir[size - 1] = '\0';
    refuse(b, E2BIG, "too many steps");
}

static void more_steps_than_there_is_room_for_are_refused(void **state)
{
    struct bench *b = *state;

    /* more volumes than any caller may ask for */
    b->spec.volumes = calloc(PLAN_STEPS_MAX, sizeof *b->spec.volumes);
    assert_non_null(b->spec.volumes);
    b->spec.n_volumes = PLAN_STEPS_MAX;
    for (size_t i = 0; i < PLAN_STEPS_MAX; i++) {
        b->spec.volumes[i].host = strdup("/usr");
        b->spec.volumes[i].guest = strdup("/x");
    }
    refuse(b, E2BIG, "too many steps");
    assert_true(b->plan.n <= PLAN_STEPS_MAX);
}

static void the_largest_spec_on_the_largest_host_fits(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    char text[300];

    while (b->host.n_entries < HOST_ENTRIES_MAX)
        add_entry(&b->host, HOST_FOLDER, "/etc/entry", "");
    for (int i = 0; i < LIMIT_VOLUMES; i++) {
        (void)snprintf(text, sizeof text, "/usr:/v%0200d", i);
        assert_int_equal(spec_add_volume(&b->spec, text, &err), 0);
    }
    assert_int_equal(spec_set_workdir(&b->spec, "/work", &err), 0);
    b->spec.uid = 1000;
    build(b);
}

static void every_step_prints_as_a_line(void **state)
{
    struct bench *b = *state;
    char line[512];

    be_root(b);
    build(b);
    for (size_t i = 0; i < b->plan.n; i++) {
        step_describe(&b->plan.steps[i], line, sizeof line);
        if (line[0] == '\0' || strstr(line, "(null)") || strchr(line, '\n') ||
            line[strlen(line) - 1] == ' ')
            fail_msg("step %zu prints as '%s'", i, line);
    }
}

static void every_kind_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int kind = 0; kind < STEP__MAX; kind++) {
        assert_non_null(step_name((enum step_kind)kind));
        for (int other = 0; other < kind; other++)
            assert_string_not_equal(step_name((enum step_kind)kind),
                                    step_name((enum step_kind)other));
    }
    assert_string_equal(step_name(STEP__MAX), "unknown");
}

static void the_printed_lines_say_what_is_done(void **state)
{
    static const struct {
        struct step step;
        const char *line;
    } rows[] = {
        {{.kind = STEP_BIND, .source = "/usr", .target = "/usr", .flags = STEP_RO},
         "bind /usr on /usr, read-only"},
        {{.kind = STEP_VOLUME, .source = "/a", .target = "/b"}, "volume /a on /b"},
        {{.kind = STEP_LINK, .source = "usr/bin", .target = "/bin"}, "link /bin to usr/bin"},
        {{.kind = STEP_ROOT, .target = "/", .value = 3 * LIMIT_MIB}, "root: tmpfs of 3 MiB on /"},
        {{.kind = STEP_OVERLAY, .source = "/image", .target = "/"}, "overlay over /image on /"},
        {{.kind = STEP_SYSCTL, .source = "0", .target = "/proc/sys/x"}, "sysctl /proc/sys/x = 0"},
        {{.kind = STEP_LIMITS, .value = 12}, "limits: 12 processes"},
        {{.kind = STEP_HOSTNAME, .source = "box"}, "hostname box"},
        {{.kind = STEP_PROC_MASK, .target = "/proc/kcore"}, "proc-mask /proc/kcore"},
        {{.kind = STEP_PIVOT}, "pivot"},
    };
    char line[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        step_describe(&rows[i].step, line, sizeof line);
        assert_string_equal(line, rows[i].line);
    }
}

static void private_keys_within_a_visible_folder_are_hidden(void **state)
{
    struct bench *b = *state;
    const struct step *hidden;

    add_entry(&b->host, HOST_SECRET, "/etc/ssl/private", "");
    build(b);
    hidden = find(&b->plan, STEP_HIDE, "/etc/ssl/private");
    assert_non_null(hidden);
    assert_true(place_of(&b->plan, STEP_BIND, "/etc/ssl") <
                place_of(&b->plan, STEP_HIDE, "/etc/ssl/private"));
    assert_null(find(&b->plan, STEP_BIND, "/etc/ssl/private"));
}

int main(void)
{
#define PLAN_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        PLAN_TEST(the_steps_stand_in_the_order_that_locks_need),
        PLAN_TEST(folders_are_there_before_what_lies_in_them),
        PLAN_TEST(what_waits_for_its_lock_gets_it),
        PLAN_TEST(private_keys_within_a_visible_folder_are_hidden),
        PLAN_TEST(an_ordinary_user_keeps_the_one_id),
        PLAN_TEST(the_hosts_root_becomes_a_range_that_nobody_has),
        PLAN_TEST(the_hosts_root_without_other_ids_is_refused),
        PLAN_TEST(volumes_of_a_range_need_idmapped_mounts),
        PLAN_TEST(volumes_come_after_the_view_and_before_the_locks),
        PLAN_TEST(only_what_the_host_has_is_bound_and_read_only),
        PLAN_TEST(a_host_with_nothing_to_see_still_gives_a_plan),
        PLAN_TEST(an_image_folder_replaces_the_hosts_view),
        PLAN_TEST(sizes_follow_the_spec_or_the_free_memory),
        PLAN_TEST(files_fit_into_a_ceiling_of_memory),
        PLAN_TEST(another_user_has_an_account_and_a_home),
        PLAN_TEST(files_hold_the_name_and_the_machine_id),
        PLAN_TEST(the_plan_outlives_spec_and_host),
        PLAN_TEST(texts_that_do_not_fit_are_refused),
        PLAN_TEST(more_steps_than_there_is_room_for_are_refused),
        PLAN_TEST(the_largest_spec_on_the_largest_host_fits),
        PLAN_TEST(every_step_prints_as_a_line),
        PLAN_TEST(every_kind_has_a_name_of_its_own),
        PLAN_TEST(the_printed_lines_say_what_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

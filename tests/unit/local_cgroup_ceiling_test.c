/* SPDX-License-Identifier: Apache-2.0 */
/* local/cgroup_ceiling.c, and what cgroup_read() makes of the files: in a folder of ordinary ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "local/cgroup.h"
#include "local/cgroup_ceiling.h"
#include "local/cgroup_file.h"
#include "base/guards.h"

struct group {
    char folder[64];
    int fd;
};

static void put(const struct group *g, const char *name, const char *text)
{
    _cleanup_fd_ int fd = openat(g->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void expect(const struct group *g, const char *name, const char *text)
{
    char found[64];

    assert_int_equal(cgroup_file_read(g->fd, name, found, sizeof found), 0);
    assert_string_equal(found, text);
}

static int plant(void **state)
{
    struct group *g = calloc(1, sizeof *g);

    assert_non_null(g);
    (void)snprintf(g->folder, sizeof g->folder, "/tmp/ceiling-test-XXXXXX");
    assert_non_null(mkdtemp(g->folder));
    g->fd = open(g->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(g->fd >= 0);
    *state = g;
    return 0;
}

static int fell(void **state)
{
    struct group *g = *state;
    int again = openat(g->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(again);

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        (void)unlinkat(g->fd, e->d_name, 0);
    (void)closedir(dir);
    (void)close(g->fd);
    assert_int_equal(rmdir(g->folder), 0);
    free(g);
    return 0;
}

static void memory_and_swap_are_bounded_together(void **state)
{
    const struct group *g = *state;

    put(g, "memory.max", "");
    put(g, "memory.swap.max", "");
    put(g, "memory.oom.group", "");
    assert_int_equal(cgroup_ceiling_memory(g->fd, true, true, 1048576), 0);
    expect(g, "memory.max", "1048576");
    expect(g, "memory.swap.max", "0");
    expect(g, "memory.oom.group", "0");
    put(g, "memory.limit_in_bytes", "");
    put(g, "memory.memsw.limit_in_bytes", "");
    assert_int_equal(cgroup_ceiling_memory(g->fd, false, true, 2097152), 0);
    expect(g, "memory.limit_in_bytes", "2097152");
    expect(g, "memory.memsw.limit_in_bytes", "2097152");
}

static void memory_alone_is_bounded_where_there_is_no_swap(void **state)
{
    const struct group *g = *state;

    assert_int_equal(cgroup_ceiling_memory(g->fd, true, false, 1048576), -ENOENT);
    put(g, "memory.max", "");
    assert_int_equal(cgroup_ceiling_memory(g->fd, true, false, 1048576), 0);
    expect(g, "memory.max", "1048576");
    put(g, "memory.limit_in_bytes", "");
    put(g, "memory.swappiness", "");
    assert_int_equal(cgroup_ceiling_memory(g->fd, false, false, 1048576), 0);
    expect(g, "memory.swappiness", "0");
}

static void memory_is_not_bounded_where_swap_is_on_and_not_counted(void **state)
{
    const struct group *g = *state;

    put(g, "memory.max", "max");
    assert_int_equal(cgroup_ceiling_memory(g->fd, true, true, 1048576), -EOPNOTSUPP);
    expect(g, "memory.max", "max");
    put(g, "memory.limit_in_bytes", "-1");
    put(g, "memory.swappiness", "60");
    assert_int_equal(cgroup_ceiling_memory(g->fd, false, true, 1048576), -EOPNOTSUPP);
    expect(g, "memory.limit_in_bytes", "-1");
}

static void a_quota_of_cpu_has_a_period(void **state)
{
    const struct group *g = *state;

    put(g, "cpu.max", "");
    assert_int_equal(cgroup_ceiling_cpu(g->fd, true, 1500), 0);
    expect(g, "cpu.max", "150000 100000");
    put(g, "cpu.cfs_period_us", "");
    put(g, "cpu.cfs_quota_us", "");
    assert_int_equal(cgroup_ceiling_cpu(g->fd, false, 1), 0);
    expect(g, "cpu.cfs_period_us", "1000000");
    expect(g, "cpu.cfs_quota_us", "1000");
}

static void a_group_shows_whether_it_counts_swap(void **state)
{
    const struct group *g = *state;

    assert_false(cgroup_swap_is_uncounted(g->fd, true)); /* the root group: it does not tell */
    assert_false(cgroup_swap_is_uncounted(g->fd, false));
    put(g, "memory.max", "max\n");
    put(g, "memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(cgroup_swap_is_uncounted(g->fd, true));
    assert_true(cgroup_swap_is_uncounted(g->fd, false));
    put(g, "memory.swap.max", "max\n");
    assert_false(cgroup_swap_is_uncounted(g->fd, true));
    assert_true(cgroup_swap_is_uncounted(g->fd, false));
    put(g, "memory.memsw.limit_in_bytes", "9223372036854771712\n");
    assert_false(cgroup_swap_is_uncounted(g->fd, false));
}

/* The kernel's own list has a line of headings, and one for each area. */
static void swap_is_on_where_the_kernel_lists_some(void **state)
{
    _cleanup_fd_ int fd = open("/proc/swaps", O_RDONLY | O_CLOEXEC);
    char text[4096];

    (void)state;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n <= 0) {
        print_message("/proc/swaps cannot be read here\n");
        skip();
    }
    text[n] = '\0';
    const char *areas = strchr(text, '\n');
    assert_int_equal(cgroup_swap_is_on(), areas && areas[1] != '\0');
}

static struct cgroup_use use_of(const struct group *g)
{
    const struct cgroup c = {
        .parts = {{.fd = g->fd, .controllers = CGROUP_BIT(CGROUP_MEMORY), .unified = true}},
        .n = 1};
    struct cgroup_use use;

    cgroup_read(&c, &use);
    return use;
}

static void a_peak_that_is_not_told_was_the_ceiling_once_that_was_reached(void **state)
{
    const struct group *g = *state;

    put(g, "memory.current", "4096\n");
    put(g, "memory.max", "67108864\n");
    put(g, "memory.events", "max 3\noom 0\noom_kill 1\n"); /* by the ceiling of another group */
    assert_int_equal(use_of(g).oom_kills, 1);
    assert_int_equal(use_of(g).peak_bytes, 0);
    put(g, "memory.events", "max 3\noom 1\noom_kill 1\n");
    assert_int_equal(use_of(g).peak_bytes, 67108864);
    put(g, "memory.current", "67112960\n"); /* the kernel goes over it for a moment */
    assert_int_equal(use_of(g).peak_bytes, 67112960);
    put(g, "memory.max", "max\n");
    assert_int_equal(use_of(g).peak_bytes, 67112960);
    put(g, "memory.peak", "8192\n"); /* from Linux 5.19 on */
    assert_int_equal(use_of(g).peak_bytes, 8192);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_GROUP(name) cmocka_unit_test_setup_teardown(name, plant, fell)
        IN_GROUP(memory_and_swap_are_bounded_together),
        IN_GROUP(memory_alone_is_bounded_where_there_is_no_swap),
        IN_GROUP(memory_is_not_bounded_where_swap_is_on_and_not_counted),
        IN_GROUP(a_quota_of_cpu_has_a_period),
        IN_GROUP(a_group_shows_whether_it_counts_swap),
        cmocka_unit_test(swap_is_on_where_the_kernel_lists_some),
        IN_GROUP(a_peak_that_is_not_told_was_the_ceiling_once_that_was_reached),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* local/cgroup_find.c and cgroup_refusal.c: the kernel's texts about control groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "local/cgroup_find.h"
#include "local/cgroup_refusal.h"
#include "base/guards.h"

static const char unified_mounts[] =
    "22 27 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate\n";

static const char hybrid_groups[] = "9:name=systemd:/\n4:memory:/jobs/one\n"
                                    "2:cpuacct,cpu:/\n0::/user.slice/a b\n";
static const char hybrid_mounts[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static void a_host_with_one_hierarchy_has_all_in_it(void **state)
{
    struct cgroup_place p;

    (void)state;
    for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLER__MAX; i++) {
        assert_int_equal(cgroup_find(i, "0::/user.slice/user-7.slice\n", unified_mounts, &p), 0);
        assert_true(p.unified);
        assert_string_equal(p.mount, "/sys/fs/cgroup");
        assert_string_equal(p.own, "user.slice/user-7.slice");
    }
    assert_int_equal(cgroup_find(CGROUP_CPU, "0::/\n", unified_mounts, &p), 0);
    assert_string_equal(p.own, "");
}

static void a_controller_of_the_first_version_is_found_there(void **state)
{
    struct cgroup_place p;

    (void)state;
    assert_int_equal(cgroup_find(CGROUP_MEMORY, hybrid_groups, hybrid_mounts, &p), 0);
    assert_false(p.unified);
    assert_string_equal(p.mount, "/sys/fs/cgroup/memory");
    assert_string_equal(p.own, "jobs/one");
    assert_int_equal(cgroup_find(CGROUP_CPU, hybrid_groups, hybrid_mounts, &p), 0);
    assert_string_equal(p.mount, "/sys/fs/cgroup/cpu,cpuacct");
    assert_string_equal(p.own, "");
    assert_int_equal(cgroup_find(CGROUP_ACCOUNT, hybrid_groups, hybrid_mounts, &p), 0);
    assert_string_equal(p.mount, "/sys/fs/cgroup/cpu,cpuacct");
    /* One that none of the old hierarchies has is in the new one, wherever that is mounted. */
    assert_int_equal(cgroup_find(CGROUP_MEMORY, "2:cpu:/\n0::/a b\n", hybrid_mounts, &p), 0);
    assert_true(p.unified);
    assert_string_equal(p.mount, "/sys/fs/cgroup/unified");
    assert_string_equal(p.own, "a b");
}

static void one_that_is_not_mounted_is_not_looked_for_elsewhere(void **state)
{
    static const char *const rows[][2] = {
        {"4:memory:/\n0::/\n", unified_mounts}, /* of version 1, and not mounted */
        {"0::/\n", "22 27 0:20 / /sys rw - sysfs sysfs rw\n"},
        {"", unified_mounts},
        {"0::/a\n", ""},
        {"0:/a\n", unified_mounts},
        {"0::a\n", unified_mounts},
        {"0::/../other\n", unified_mounts}, /* outside of this cgroup namespace */
        {"0::/a/../..\n", unified_mounts},
        {"0::/a\n", "30 22 0:26 /b /sys/fs/cgroup rw - cgroup2 none rw\n"},
        {"0::/bc\n", "30 22 0:26 /b /sys/fs/cgroup rw - cgroup2 none rw\n"},
        {"0::/\n", "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 none"},
        {"0::/\n", "30 22 0:26 / cgroup rw - cgroup2 none rw\n"},
    };
    struct cgroup_place p;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(cgroup_find(CGROUP_MEMORY, rows[i][0], rows[i][1], &p), -ENOENT);
}

static void a_mount_of_a_part_begins_there(void **state)
{
    static const char mounts[] =
        "30 22 0:26 /other /mnt rw - cgroup2 none rw\n"
        "31 22 0:26 /box/a\\040b /my\\040groups\\134x rw - cgroup2 none rw\n";
    struct cgroup_place p;

    (void)state;
    assert_int_equal(cgroup_find(CGROUP_CPU, "0::/box/a b/in\n", mounts, &p), 0);
    assert_string_equal(p.mount, "/my groups\\x");
    assert_string_equal(p.own, "in");
    assert_int_equal(cgroup_find(CGROUP_CPU, "0::/box/a b\n", mounts, &p), 0);
    assert_string_equal(p.own, "");
}

static void numbers_follow_their_whole_key(void **state)
{
    static const char text[] = "low 1\noom_kill_disable 7\noom 2\noom_kill 3\noom_group_kill 4\n";
    uint64_t n = 99;

    (void)state;
    assert_int_equal(cgroup_key(text, "oom_kill", &n), 0);
    assert_int_equal(n, 3);
    assert_int_equal(cgroup_key(text, "oom_group_kill", &n), 0);
    assert_int_equal(n, 4);
    assert_int_equal(cgroup_key(text, "high", &n), -ENOENT);
    assert_int_equal(cgroup_key("oom_kill x\n", "oom_kill", &n), -ENOENT);
    assert_int_equal(cgroup_key("oom_kill\n", "oom_kill", &n), -ENOENT);
    assert_int_equal(cgroup_key("oom_kill 99999999999999999999999\n", "oom_kill", &n), -ENOENT);
    assert_int_equal(n, 4);
}

static void words_are_whole(void **state)
{
    (void)state;
    assert_true(cgroup_has_word("cpuset cpu memory\n", "cpu"));
    assert_true(cgroup_has_word("memory\n", "memory"));
    assert_true(cgroup_has_word("rw,cpu", "cpu"));
    assert_false(cgroup_has_word("cpuset cpuacct\n", "cpu"));
    assert_false(cgroup_has_word("", "cpu"));
}

static void a_refusal_names_field_controller_folder_and_remedy(void **state)
{
    static const struct {
        struct cgroup_denial x;
        const char *message, *remedy;
    } rows[] = {
        {{CGROUP_MEMORY, "backend.memory", "/c/a", true, EACCES, CGROUP_WHY_CODE},
         "delegated",
         "Delegate=yes"},
        {{CGROUP_CPU, "backend.cpu", "/c/a", false, EACCES, CGROUP_WHY_CODE},
         "cgroup v1",
         "as root"},
        {{CGROUP_CPU, "backend.cpu", "/c/a", true, ENODEV, CGROUP_WHY_CODE},
         "/c/a has no controller cpu",
         "Delegate=cpu"},
        {{CGROUP_MEMORY, "backend.memory", "/c", true, ENODEV, CGROUP_WHY_KERNEL},
         "switched off",
         "cgroup_disable=memory"},
        {{CGROUP_CPU, "backend.cpu", "/c", true, ENODEV, CGROUP_WHY_OUTSIDE},
         "/c has no controller cpu",
         "on the host"},
        {{CGROUP_MEMORY, "backend.memory", "/c/a", true, EOPNOTSUPP, CGROUP_WHY_SWAP},
         "swap is on",
         "without swapaccount=0"},
        {{CGROUP_MEMORY, "backend.prices", NULL, true, ENOENT, CGROUP_WHY_CODE},
         "is mounted here",
         "mount -t"},
        {{CGROUP_MEMORY, "backend.memory", NULL, false, EMFILE, CGROUP_WHY_CODE},
         "Too many open files",
         "doctor"},
        {{CGROUP_MEMORY, "backend.memory", "/c/a", true, EBUSY, CGROUP_WHY_CODE},
         "processes are in",
         "Move"},
        {{CGROUP_MEMORY, "backend.memory", "/c/a", true, EROFS, CGROUP_WHY_CODE},
         "read-only",
         "writable"},
        {{CGROUP_ACCOUNT, "backend.max_cost", "/c/a", false, ENOSPC, CGROUP_WHY_CODE},
         "No space left",
         "doctor"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct cgroup_denial *x = &rows[i].x;
        struct error err = ERROR_INIT;
        char end[64];

        assert_int_equal(cgroup_refuse(x, &err), -x->code);
        assert_memory_equal(err.message, x->field, strlen(x->field));
        assert_non_null(strstr(err.message, cgroup_controller_name(x->controller)));
        assert_non_null(strstr(err.message, rows[i].message));
        assert_true(!x->folder || strstr(err.message, x->folder));
        assert_non_null(strstr(err.remedy, rows[i].remedy));
        (void)snprintf(end, sizeof end, "or remove %s", x->field);
        assert_non_null(strstr(err.remedy, end)); /* it is whole */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_with_one_hierarchy_has_all_in_it),
        cmocka_unit_test(a_controller_of_the_first_version_is_found_there),
        cmocka_unit_test(one_that_is_not_mounted_is_not_looked_for_elsewhere),
        cmocka_unit_test(a_mount_of_a_part_begins_there),
        cmocka_unit_test(numbers_follow_their_whole_key),
        cmocka_unit_test(words_are_whole),
        cmocka_unit_test(a_refusal_names_field_controller_folder_and_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

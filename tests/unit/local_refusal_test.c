/* SPDX-License-Identifier: Apache-2.0 */
/* From a failed step and its errno to the cause, in one sentence, and a remedy. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "local/refusal.h"
#include "base/guards.h"

static const struct refusal_hints plain = {.may_mount = true};
static const struct refusal_hints filtered = {.filtered = true};
static const struct refusal_hints restricted = {.apparmor_restricts = true};
static const struct refusal_hints confined = {.profile = "docker-default"};
static const struct refusal_hints container = {.filtered = true, .profile = "docker-default"};

static const struct step none;

static struct error explain(const struct refusal_hints *h, enum refusal_place place,
                            const struct step *step, int code)
{
    struct error err = ERROR_INIT;

    assert_int_equal(refusal_explain_with(h, place, step, code, &err), -code);
    assert_int_equal(err.code, code);
    return err;
}

static struct error explain_kind(const struct refusal_hints *h, enum step_kind kind, int code)
{
    const struct step step = {.kind = kind, .source = "/from", .target = "/to"};

    return explain(h, REFUSAL_STEP, &step, code);
}

static void assert_says(const struct error *err, const char *message, const char *remedy)
{
    if (!strstr(err->message, message))
        fail_msg("\"%s\" does not say \"%s\"", err->message, message);
    if (!strstr(err->remedy, remedy))
        fail_msg("\"%s\" does not advise \"%s\"", err->remedy, remedy);
}

static void assert_plain(const struct error *err)
{
    const char *const texts[] = {err->message, err->remedy};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        size_t n = strlen(texts[i]);

        assert_in_range(n, 10, 330);
        assert_int_not_equal(texts[i][n - 1], '.');
        assert_null(strstr(texts[i], ". "));
        assert_null(strstr(texts[i], "(null)"));
        assert_null(strchr(texts[i], '\n'));
    }
    assert_true(err->cls == ERROR_TERMINAL || err->cls == ERROR_USAGE);
}

static void every_failure_has_one_sentence_and_a_remedy(void **state)
{
    static const int codes[] = {EPERM,  EACCES, ENOSYS,     EINVAL,          ENOSPC, ENOMEM,
                                EROFS,  ENOENT, ENODEV,     EBUSY,           EMFILE, EAGAIN,
                                EUSERS, ELOOP,  EOPNOTSUPP, EPROTONOSUPPORT, EEXIST};
    const struct refusal_hints *const hosts[] = {&plain, &filtered, &restricted, &confined,
                                                 &container};
    static const enum refusal_place places[] = {REFUSAL_NAMESPACES, REFUSAL_MAPS, REFUSAL_IDMAP,
                                                REFUSAL_MEMFD,      REFUSAL_CALL, REFUSAL_MODULES};
    const struct step named = {.source = "net", .target = "loading rules"};

    (void)state;
    for (size_t c = 0; c < ARRAY_SIZE(codes); c++)
        for (size_t h = 0; h < ARRAY_SIZE(hosts); h++) {
            for (int kind = 0; kind < STEP__MAX; kind++) {
                struct error err = explain_kind(hosts[h], (enum step_kind)kind, codes[c]);

                assert_plain(&err);
            }
            for (size_t p = 0; p < ARRAY_SIZE(places); p++) {
                struct error err = explain(hosts[h], places[p], &named, codes[c]);

                assert_plain(&err);
            }
        }
}

static void an_exhausted_limit_is_named_by_its_sysctl(void **state)
{
    static const struct refusal_hints no_ipc = {.no_namespaces = "ipc"};
    const struct step net = {.source = "net"};
    struct error err = explain(&plain, REFUSAL_NAMESPACES, &none, ENOSPC);

    (void)state;
    assert_says(&err, "no more user namespaces (user.max_user_namespaces)",
                "sysctl -w user.max_user_namespaces=15000");
    err = explain(&no_ipc, REFUSAL_NAMESPACES, &none, ENOSPC);
    assert_says(&err, "no more IPC namespaces (user.max_ipc_namespaces)",
                "sysctl -w user.max_ipc_namespaces=15000");
    err = explain(&plain, REFUSAL_NAMESPACES, &net, ENOSPC);
    assert_says(&err, "no more network namespaces (user.max_net_namespaces)",
                "sysctl -w user.max_net_namespaces=15000");
}

static void namespaces_for_root_only_are_told_by_the_sysctl(void **state)
{
    static const struct refusal_hints host = {.root_only = true};
    struct error err = explain(&host, REFUSAL_NAMESPACES, &none, EPERM);

    (void)state;
    assert_says(&err, "only root", "sysctl -w kernel.unprivileged_userns_clone=1");
}

static void a_filter_is_blamed_when_one_is_in_force(void **state)
{
    struct error err = explain(&filtered, REFUSAL_NAMESPACES, &none, EPERM);

    (void)state;
    assert_says(&err, "system call filter of the container", "seccomp=unconfined");
    err = explain(&filtered, REFUSAL_NAMESPACES, &none, ENOSYS);
    assert_says(&err, "system call filter of the container", "seccomp=unconfined");
    err = explain_kind(&filtered, STEP_HOSTNAME, EPERM);
    assert_says(&err, "setting the host name is refused (Operation not permitted)",
                "seccomp=unconfined");
    err = explain_kind(&filtered, STEP_ROOT, ENOSYS);
    assert_says(&err, "mounting a memory file system is refused (Function not implemented)",
                "seccomp=unconfined");
}

static void a_kernel_is_blamed_for_absent_calls_when_no_filter_is_in_force(void **state)
{
    const struct step call = {.source = "openat2(2)"};
    struct error err = explain_kind(&plain, STEP_ROOT, ENOSYS);

    (void)state;
    assert_says(&err, "this kernel lacks the new mount interface", "5.14");
    err = explain(&plain, REFUSAL_CALL, &call, ENOSYS);
    assert_says(&err, "this kernel lacks openat2(2)", "5.14");
    err = explain(&plain, REFUSAL_CALL, &call, EINVAL);
    assert_says(&err, "this kernel lacks openat2(2)", "5.14");
    err = explain(&plain, REFUSAL_NAMESPACES, &none, EINVAL);
    assert_says(&err, "this kernel has no namespaces of some kind", "5.14");
    err = explain_kind(&plain, STEP_OVERLAY, ENODEV);
    assert_says(&err, "no overlay file system", "modprobe overlay");
}

static void a_missing_module_is_named_with_the_command_that_loads_it(void **state)
{
    static const int codes[] = {ENOENT, EOPNOTSUPP, EPROTONOSUPPORT, EAFNOSUPPORT, ENOPROTOOPT};
    const struct step rules = {.source = "nft_log nfnetlink_log", .target = "loading rules"};
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        err = explain(&plain, REFUSAL_MODULES, &rules, codes[i]);
        assert_says(&err, "loading rules needs of this kernel what it lacks or may not load",
                    "modprobe -a nft_log nfnetlink_log");
        err = explain_kind(&plain, STEP_NETWORK, codes[i]);
        assert_says(&err, "a network with a way out needs", "modprobe -a nf_tables");
    }
    err = explain(&filtered, REFUSAL_MODULES, &rules, EPERM);
    assert_says(&err, "loading rules is refused", "seccomp=unconfined");
    err = explain(&plain, REFUSAL_MODULES, &rules, EMSGSIZE);
    assert_says(&err, "loading rules failed: Message too long", "atoll doctor");
}

static void apparmor_s_powerless_user_namespaces_are_told_with_the_exact_fix(void **state)
{
    static const enum step_kind kinds[] = {STEP_HOSTNAME, STEP_IDS, STEP_PRIVATE, STEP_ROOT};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct error err = explain_kind(&restricted, kinds[i], EPERM);

        assert_says(&err,
                    "AppArmor takes the capabilities away in new user namespaces "
                    "(kernel.apparmor_restrict_unprivileged_userns=1)",
                    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
    }
}

static void apparmor_s_denial_of_user_namespaces_is_told_with_the_exact_fix(void **state)
{
    static const int codes[] = {EPERM, EACCES};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        struct error err = explain(&restricted, REFUSAL_NAMESPACES, &none, codes[i]);

        assert_says(&err, "AppArmor does not let this program make user namespaces",
                    "profile with 'userns,'");
    }
}

static void an_apparmor_profile_is_named(void **state)
{
    struct error err = explain_kind(&confined, STEP_ROOT, EACCES);

    (void)state;
    assert_says(&err, "by the AppArmor profile docker-default", "apparmor=unconfined");
    err = explain(&confined, REFUSAL_NAMESPACES, &none, EACCES);
    assert_says(&err, "the AppArmor profile docker-default", "apparmor=unconfined");
    err = explain_kind(&container, STEP_ROOT, EACCES);
    assert_says(&err, "by the AppArmor profile docker-default", "apparmor=unconfined");
    err = explain_kind(&container, STEP_ROOT, EPERM);
    assert_says(&err, "system call filter", "seccomp=unconfined and apparmor=unconfined");
}

static void without_any_hint_a_security_module_is_the_likely_cause(void **state)
{
    struct error err = explain_kind(&plain, STEP_HOSTNAME, EPERM);

    (void)state;
    assert_says(&err, "setting the host name is refused", "audit log");
    assert_null(strstr(err.message, "filter"));
    err = explain(&plain, REFUSAL_NAMESPACES, &none, EPERM);
    assert_says(&err, "chroot", "audit log");
    assert_null(strstr(err.message, "filter"));
}

static void a_masked_proc_is_told_from_a_denied_mount(void **state)
{
    struct error err = explain_kind(&plain, STEP_PROC, EPERM);

    (void)state;
    assert_says(&err, "masks parts of /proc", "systempaths=unconfined");
    err = explain_kind(&confined, STEP_PROC, EACCES);
    assert_says(&err, "mounting a fresh /proc is refused", "apparmor=unconfined");
}

static void ids_fail_for_the_host_s_root_alone_in_a_user_namespace(void **state)
{
    static const struct refusal_hints nested = {.nested = true, .may_mount = true};
    struct error err = explain(&nested, REFUSAL_MAPS, &none, EPERM);

    (void)state;
    assert_says(&err, "the host's root in a user namespace that has no other ids",
                "outside that user namespace");
    err = explain(&plain, REFUSAL_MAPS, &none, EPERM);
    assert_says(&err, "mapping user ids is refused", "audit log");
}

static void an_absent_or_read_only_proc_is_why_ids_cannot_be_mapped(void **state)
{
    struct error err = explain_kind(&plain, STEP_IDS, ENOENT);

    (void)state;
    assert_says(&err, "/proc is not mounted", "mount -t proc");
    err = explain(&plain, REFUSAL_MAPS, &none, ENOENT);
    assert_says(&err, "/proc is not mounted", "mount -t proc");
    err = explain_kind(&plain, STEP_IDS, EROFS);
    assert_says(&err, "/proc is read-only", "remount,rw");
}

static void memory_files_that_may_not_be_executed_are_told_by_the_sysctl(void **state)
{
    struct error err = explain(&plain, REFUSAL_MEMFD, &none, EACCES);

    (void)state;
    assert_says(&err, "vm.memfd_noexec", "sysctl -w vm.memfd_noexec=0");
    err = explain_kind(&plain, STEP_INIT, EACCES);
    assert_says(&err, "vm.memfd_noexec", "sysctl -w vm.memfd_noexec=0");
    err = explain_kind(&plain, STEP_INIT, ENOMEM);
    assert_says(&err, "executing init failed: Cannot allocate memory", "atoll doctor");
}

static void owners_that_cannot_be_mapped_are_the_file_system_s_fault_or_the_caller_s(void **state)
{
    const struct step volume = {.source = "/srv/data"};
    struct error err = explain(&plain, REFUSAL_IDMAP, &volume, EINVAL);

    (void)state;
    assert_says(&err, "/srv/data lies on a file system that cannot map owners", "ext4");
    err = explain(&confined, REFUSAL_IDMAP, &volume, EPERM);
    assert_says(&err, "root without CAP_SYS_ADMIN", "as the user who owns the files");
    err = explain(&plain, REFUSAL_IDMAP, &volume, EPERM);
    assert_says(&err, "an idmapped mount of /srv/data is refused", "audit log");
}

static void the_initial_memory_file_system_cannot_be_left(void **state)
{
    struct error err = explain_kind(&plain, STEP_PIVOT, EINVAL);

    (void)state;
    assert_says(&err, "initial memory file system", "switch_root");
    err = explain_kind(&confined, STEP_PIVOT, EACCES);
    assert_says(&err, "changing the root is refused", "apparmor=unconfined");
}

static void what_the_spec_asked_for_is_a_usage_error(void **state)
{
    static const enum step_kind kinds[] = {STEP_VOLUME, STEP_WORKDIR};
    static const int codes[] = {EROFS, ELOOP, EACCES};

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
        for (size_t c = 0; c < ARRAY_SIZE(codes); c++) {
            struct error err = explain_kind(&plain, kinds[k], codes[c]);

            assert_int_equal(err.cls, ERROR_USAGE);
            assert_non_null(strstr(err.message, "/to"));
        }
}

static void hints_of_this_host_can_be_read_by_any_user(void **state)
{
    struct refusal_hints hints;
    struct error err = ERROR_INIT;

    (void)state;
    memset(&hints, 0xff, sizeof hints);
    refusal_hints_read(&hints);
    assert_true(strlen(hints.profile) < sizeof hints.profile);
    assert_int_equal(refusal_explain(REFUSAL_MEMFD, &none, ENOMEM, &err), -ENOMEM);
    assert_plain(&err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failure_has_one_sentence_and_a_remedy),
        cmocka_unit_test(an_exhausted_limit_is_named_by_its_sysctl),
        cmocka_unit_test(namespaces_for_root_only_are_told_by_the_sysctl),
        cmocka_unit_test(a_filter_is_blamed_when_one_is_in_force),
        cmocka_unit_test(a_kernel_is_blamed_for_absent_calls_when_no_filter_is_in_force),
        cmocka_unit_test(a_missing_module_is_named_with_the_command_that_loads_it),
        cmocka_unit_test(apparmor_s_powerless_user_namespaces_are_told_with_the_exact_fix),
        cmocka_unit_test(apparmor_s_denial_of_user_namespaces_is_told_with_the_exact_fix),
        cmocka_unit_test(an_apparmor_profile_is_named),
        cmocka_unit_test(without_any_hint_a_security_module_is_the_likely_cause),
        cmocka_unit_test(a_masked_proc_is_told_from_a_denied_mount),
        cmocka_unit_test(ids_fail_for_the_host_s_root_alone_in_a_user_namespace),
        cmocka_unit_test(an_absent_or_read_only_proc_is_why_ids_cannot_be_mapped),
        cmocka_unit_test(memory_files_that_may_not_be_executed_are_told_by_the_sysctl),
        cmocka_unit_test(owners_that_cannot_be_mapped_are_the_file_system_s_fault_or_the_caller_s),
        cmocka_unit_test(the_initial_memory_file_system_cannot_be_left),
        cmocka_unit_test(what_the_spec_asked_for_is_a_usage_error),
        cmocka_unit_test(hints_of_this_host_can_be_read_by_any_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

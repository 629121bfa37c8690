/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of file operations: each has its words, its class, and a path that is safe to print. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/file_error.h"
#include "base/guards.h"

static struct error fault(int code, const char *path)
{
    const struct file_fault f = {.code = (uint32_t)code, .path = path};
    struct error err = ERROR_INIT;

    assert_int_equal(file_error(&f, &err), -code);
    assert_int_equal(err.code, code);
    return err;
}

static void a_folder_is_to_be_listed(void **state)
{
    struct error err = fault(EISDIR, "/workspace/d");

    (void)state;
    assert_string_equal(err.message, "'/workspace/d' is a folder; list it instead");
    assert_int_equal(err.cls, ERROR_RECOVERABLE);
}

static void a_full_disk_names_its_quota(void **state)
{
    struct error err = fault(ENOSPC, "x");

    (void)state;
    assert_non_null(strstr(err.remedy, "'disk'"));
    assert_int_equal(err.cls, ERROR_RECOVERABLE);
}

static void what_is_too_large_says_path_size_and_ceiling(void **state)
{
    const struct file_fault f = {.code = EFBIG, .path = "log", .size = 6000, .max = 5000};
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(file_error(&f, &err), -EFBIG);
    assert_int_equal(err.cls, ERROR_TOO_LARGE);
    assert_string_equal(err.message, "'log' has 6000 bytes, and at most 5000 may be read");
    assert_non_null(strstr(err.remedy, "part"));
    err = fault(EFBIG, "log"); /* of a write */
    assert_int_equal(err.cls, ERROR_TOO_LARGE);
    assert_null(strstr(err.message, " 0 bytes"));
}

static void the_kind_of_what_is_no_file_is_named(void **state)
{
    static const struct {
        uint32_t kind;
        const char *word;
        enum error_class cls;
    } kinds[] = {
        {FILE_FIFO, "FIFO", ERROR_RECOVERABLE},
        {FILE_SOCKET, "socket", ERROR_RECOVERABLE},
        {FILE_DEVICE, "device", ERROR_TOO_LARGE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct file_fault f = {.code = EINVAL, .path = "p", .kind = kinds[i].kind};
        struct error err = ERROR_INIT;

        assert_int_equal(file_error(&f, &err), -EINVAL);
        assert_non_null(strstr(err.message, kinds[i].word));
        assert_int_equal(err.cls, kinds[i].cls);
    }
    struct error err = fault(EINVAL, "p");
    assert_null(strstr(err.message, "FIFO"));
}

static void every_known_errno_has_words_of_its_own(void **state)
{
    static const int codes[] = {ENOENT, EISDIR, ENOTDIR, EACCES, EPERM,     EROFS,        ENOSPC,
                                EDQUOT, ELOOP,  ETXTBSY, EIO,    ECANCELED, ENAMETOOLONG, EMFILE,
                                ENFILE, ENOMEM, EINVAL,  EBUSY,  EEXIST,    EBADMSG};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        struct error err = fault(codes[i], "some/path");

        assert_non_null(strstr(err.message, "'some/path' "));
        assert_null(strstr(err.message, strerror(codes[i])));
        assert_int_not_equal(err.message[strlen(err.message) - 1], '.');
        assert_int_equal(err.cls, ERROR_RECOVERABLE);
    }
}

static void one_without_words_has_the_kernels(void **state)
{
    struct error err = fault(EXFULL, "p");

    (void)state;
    assert_non_null(strstr(err.message, strerror(EXFULL)));
}

static void a_path_cannot_drive_a_terminal_or_hide_the_rest(void **state)
{
    char path[5000];
    struct error err = fault(ENOENT, "a\033[31mb\nc\xff");

    (void)state;
    assert_string_equal(err.message, "'a?[31mb?c?' does not exist");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    err = fault(ENOENT, path);
    assert_non_null(strstr(err.message, "xxx...' does not exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_to_be_listed),
        cmocka_unit_test(a_full_disk_names_its_quota),
        cmocka_unit_test(what_is_too_large_says_path_size_and_ceiling),
        cmocka_unit_test(the_kind_of_what_is_no_file_is_named),
        cmocka_unit_test(every_known_errno_has_words_of_its_own),
        cmocka_unit_test(one_without_words_has_the_kernels),
        cmocka_unit_test(a_path_cannot_drive_a_terminal_or_hide_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy: its URL, its address, its credentials, and what it is asked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "egress/proxy.h"
#include "wire/resolve.h"
#include "base/guards.h"

static void assert_address(const struct address *a, const char *expected)
{
    char text[ADDRESS_TEXT_BYTES];

    address_format(a, text);
    assert_string_equal(text, expected);
}

static void without_a_url_there_is_no_proxy(void **state)
{
    struct proxy p = {.set = true};
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(proxy_init(&p, NULL, NULL, -EBADF, &err), 0);
    assert_false(p.set);
    assert_true(proxy_init(&p, NULL, "/file", -EBADF, &err) < 0);
    assert_int_equal(err.cls, ERROR_USAGE);
    proxy_done(&p);
}

static void an_address_needs_no_look_up(void **state)
{
    static const struct {
        const char *url, *address;
        uint16_t port;
    } cases[] = {
        {"http://127.0.0.1:3128", "127.0.0.1", 3128},
        {"http://192.0.2.1", "192.0.2.1", 80},
        {"http://[2001:db8::1]:8080/", "2001:db8::1", 8080},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_INIT;
        struct proxy p;

        assert_int_equal(proxy_init(&p, cases[i].url, NULL, -EBADF, &err), 0);
        assert_true(p.set);
        assert_int_equal(p.n_addresses, 1);
        assert_address(&p.addresses[0], cases[i].address);
        assert_int_equal(p.port, cases[i].port);
        assert_null(p.authorization);
        proxy_done(&p);
    }
}

static void other_urls_are_refused_with_a_remedy(void **state)
{
    static const char *const urls[] = {"https://proxy.example:3128",
                                       "socks5://192.0.2.1:1080",
                                       "http://192.0.2.1:3128/path",
                                       "http://me:secret@192.0.2.1:1",
                                       "http://",
                                       "192.0.2.1:3128",
                                       "http://192.0.2.1:0",
                                       "http://192.0.2.1:3128?x",
                                       "http://2001:db8::1:80"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct error err = ERROR_INIT;
        struct proxy p = {.set = false};

        assert_true(proxy_init(&p, urls[i], NULL, -EBADF, &err) < 0);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_true(err.remedy[0] != '\0');
        assert_null(strstr(err.message, "secret"));
        assert_false(p.set);
    }
}

/* A socket where the answer of `resolve` to the question of id 0 waits. */
static int resolve_that_says(const struct resolve_answer *x, int *ret_theirs)
{
    uint8_t buf[RESOLVE_PACKET_MAX];
    int pair[2];

    assert_int_equal(io_pair(pair), 0);
    size_t n = resolve_answer_encode(x, buf, sizeof buf);
    assert_int_equal(send(pair[1], buf, n, 0), (ssize_t)n);
    *ret_theirs = pair[1];
    return pair[0];
}

static void a_name_is_looked_up_once(void **state)
{
    struct resolve_answer x = {.status = RESOLVE_FOUND, .n = 10};
    struct error err = ERROR_INIT;
    uint8_t buf[RESOLVE_PACKET_MAX];
    char name[RESOLVE_NAME_MAX + 1];
    _cleanup_fd_ int theirs = -EBADF;
    uint32_t id;
    struct proxy p;

    (void)state;
    for (size_t i = 0; i < x.n; i++)
        x.addresses[i] = (struct resolve_address){.family = 4, .bytes = {10, 0, 0, (uint8_t)i}};
    x.addresses[1] =
        (struct resolve_address){.family = 6, .bytes = {[10] = 0xff, 0xff, 10, 0, 0, 9}};
    _cleanup_fd_ int ours = resolve_that_says(&x, &theirs);
    assert_int_equal(proxy_init(&p, "http://Proxy.example:3128", NULL, ours, &err), 0);
    assert_int_equal(p.n_addresses, PROXY_ADDRESSES_MAX);
    assert_address(&p.addresses[0], "10.0.0.0");
    assert_address(&p.addresses[1], "10.0.0.9"); /* IPv4-mapped */
    assert_int_equal(p.port, 3128);
    ssize_t n = recv(theirs, buf, sizeof buf, MSG_DONTWAIT);
    assert_int_equal(resolve_question_parse(buf, (size_t)n, &id, name), 0);
    assert_string_equal(name, "proxy.example");
    assert_true(recv(theirs, buf, sizeof buf, MSG_DONTWAIT) < 0);
    proxy_done(&p);
}

static void a_name_that_is_not_found_is_a_terminal_error(void **state)
{
    static const enum resolve_status statuses[] = {RESOLVE_NOT_FOUND, RESOLVE_FAILED};
    struct proxy p;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        const struct resolve_answer x = {.status = statuses[i]};
        struct error err = ERROR_INIT;
        _cleanup_fd_ int theirs = -EBADF, ours = resolve_that_says(&x, &theirs);

        assert_true(proxy_init(&p, "http://proxy.example", NULL, ours, &err) < 0);
        assert_int_equal(err.cls, ERROR_TERMINAL);
        assert_non_null(strstr(err.message, "proxy.example"));
    }
    struct error err = ERROR_INIT;
    assert_true(proxy_init(&p, "http://proxy.example", NULL, -EBADF, &err) < 0);
}

static void a_name_cannot_be_looked_up_when_resolve_is_gone(void **state)
{
    struct error err = ERROR_INIT;
    struct proxy p;
    int pair[2];

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    _cleanup_fd_ int ours = pair[0];
    (void)close(pair[1]);
    assert_true(proxy_init(&p, "http://proxy.example", NULL, ours, &err) < 0);
    assert_int_equal(err.cls, ERROR_TERMINAL);
}

/* Writes a file of credentials and reads it by proxy_init(). */
static int with_file(const void *text, size_t len, mode_t mode, struct proxy *p, struct error *err)
{
    char path[] = "/tmp/atoll-tests-proxy-XXXXXX";
    _cleanup_fd_ int fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    assert_int_equal(fchmod(fd, mode), 0);
    int r = proxy_init(p, "http://192.0.2.1:3128", path, -EBADF, err);
    (void)unlink(path);
    return r;
}

static void credentials_become_basic_ones(void **state)
{
    static const struct {
        const char *text, *authorization;
    } cases[] = {
        /* RFC 7617, section 2 */
        {"Aladdin:open sesame\n", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
        {"Aladdin:open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
        {"Aladdin:open sesame\r\nsecond line\n", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
        {"test:123\xc2\xa3\n", "Basic dGVzdDoxMjPCow=="},
        {"a:b:c\n", "Basic YTpiOmM="},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_INIT;
        struct proxy p;

        assert_int_equal(with_file(cases[i].text, strlen(cases[i].text), 0600, &p, &err), 0);
        assert_string_equal(p.authorization, cases[i].authorization);
        proxy_done(&p);
    }
}

static void odd_credentials_are_refused_and_not_shown(void **state)
{
    static char long_line[1100];
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {{"", 0},           {"\n", 1},         {"secret\n", 7},   {"a:se\tcret", 9},
                 {"a:se\0cret", 9}, {"\na:secret", 9}, {"a:secret\r", 9}, {long_line, 1100}};

    (void)state;
    memset(long_line, 'x', sizeof long_line);
    long_line[1] = ':';
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_INIT;
        struct proxy p = {.set = false};

        assert_int_equal(with_file(cases[i].text, cases[i].len, 0600, &p, &err), -EINVAL);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_true(err.remedy[0] != '\0');
        assert_null(strstr(err.message, "cret"));
        assert_false(p.set);
    }
}

static void a_file_that_others_may_read_is_refused(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0601, 0644};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct error err = ERROR_INIT;
        struct proxy p = {.set = false};

        assert_int_equal(with_file("a:b\n", 4, modes[i], &p, &err), -EACCES);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_non_null(strstr(err.remedy, "chmod 600"));
    }
}

static void what_is_no_file_is_refused(void **state)
{
    static const char *const paths[] = {"/nonexistent/file", "/tmp", "/dev/null", "relative", ""};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct error err = ERROR_INIT;
        struct proxy p = {.set = false};

        assert_true(proxy_init(&p, "http://192.0.2.1:3128", paths[i], -EBADF, &err) < 0);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_false(p.set);
    }
}

static void the_request_names_the_host_twice(void **state)
{
    char authorization[] = "Basic YTpi";
    const struct proxy plain = {.set = true}, known = {.set = true, .authorization = authorization};
    char buf[256];

    (void)state;
    size_t n = proxy_request(&plain, "example.org", false, 443, buf, sizeof buf);
    assert_string_equal(buf, "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n");
    assert_int_equal(n, strlen(buf));
    assert_int_equal(proxy_request(&plain, "example.org", false, 443, buf, n), 0);
    assert_int_equal(proxy_request(&plain, "example.org", false, 443, buf, n + 1), n);
    (void)proxy_request(&known, "2001:db8::1", true, 22, buf, sizeof buf);
    assert_string_equal(buf, "CONNECT [2001:db8::1]:22 HTTP/1.1\r\nHost: [2001:db8::1]:22\r\n"
                             "Proxy-Authorization: Basic YTpi\r\n\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_url_there_is_no_proxy),
        cmocka_unit_test(an_address_needs_no_look_up),
        cmocka_unit_test(other_urls_are_refused_with_a_remedy),
        cmocka_unit_test(a_name_is_looked_up_once),
        cmocka_unit_test(a_name_that_is_not_found_is_a_terminal_error),
        cmocka_unit_test(a_name_cannot_be_looked_up_when_resolve_is_gone),
        cmocka_unit_test(credentials_become_basic_ones),
        cmocka_unit_test(odd_credentials_are_refused_and_not_shown),
        cmocka_unit_test(a_file_that_others_may_read_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(the_request_names_the_host_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

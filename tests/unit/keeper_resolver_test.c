/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded program `resolve`: that it runs, with what, and that it ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/spec.h"
#include "keeper/resolver.h"
#include "wire/resolve.h"
#include "base/guards.h"

#define LIMIT_US UINT64_C(20000000)

struct running {
    pid_t pid;
    int pid_fd, fd;
};

static struct running start(char *server)
{
    const struct spec spec = {.resolver = server};
    struct error err = ERROR_INIT;
    struct running x;

    assert_int_equal(resolver_start(&spec, &x.pid, &x.pid_fd, &x.fd, &err), 0);
    assert_int_equal(fcntl(x.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(x.fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(fcntl(x.pid_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    return x;
}

/* Closes the socket and waits for the end that follows. */
static void end(struct running *x)
{
    int status = -1;

    fd_closep(&x->fd);
    assert_int_equal(io_wait(x->pid_fd, POLLIN, clock_after_us(LIMIT_US)), 0);
    assert_int_equal(waitpid(x->pid, &status, 0), x->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    fd_closep(&x->pid_fd);
}

static void ask(const struct running *x, const char *name, struct resolve_answer *ret)
{
    uint8_t buf[RESOLVE_PACKET_MAX];
    size_t n = resolve_question_encode(77, name, buf, sizeof buf);

    assert_int_equal(send(x->fd, buf, n, 0), (ssize_t)n);
    assert_int_equal(io_wait(x->fd, POLLIN, clock_after_us(LIMIT_US)), 0);
    ssize_t got = recv(x->fd, buf, sizeof buf, 0);
    assert_true(got > 0);
    assert_int_equal(resolve_answer_parse(buf, (size_t)got, ret), 0);
    assert_int_equal(ret->id, 77);
}

static void it_looks_names_up(void **state)
{
    struct running x = start(NULL);
    struct resolve_answer answer;
    bool loopback = false;

    (void)state;
    ask(&x, "localhost", &answer); /* of /etc/hosts, or of a service that knows it */
    assert_int_equal(answer.status, RESOLVE_FOUND);
    for (size_t i = 0; i < answer.n; i++)
        loopback |= (answer.addresses[i].family == 4 && answer.addresses[i].bytes[0] == 127) ||
                    (answer.addresses[i].family == 6 && answer.addresses[i].bytes[15] == 1);
    assert_true(loopback);
    end(&x);
}

static void it_asks_the_name_server_of_the_spec(void **state)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    _cleanup_fd_ int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint8_t buf[RESOLVE_PACKET_MAX];
    char text[32];

    (void)state;
    assert_int_equal(bind(server, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&here, &len), 0);
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(here.sin_port));
    struct running x = start(text);
    size_t n = resolve_question_encode(1, "example.org", buf, sizeof buf);
    assert_int_equal(send(x.fd, buf, n, 0), (ssize_t)n);
    assert_int_equal(io_wait(server, POLLIN, clock_after_us(LIMIT_US)), 0);
    assert_true(recv(server, buf, sizeof buf, 0) > 12);
    assert_memory_equal(buf + 12, "\7example\3org", 12);
    end(&x); /* although it waits for the server */
}

/* A line of /proc/PID/status, once the program has got as far as locking itself in. */
static void read_status(pid_t pid, const char *key, char *ret, size_t size)
{
    const uint64_t deadline_us = clock_after_us(LIMIT_US);
    char path[64], text[8192];
    const char *at = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    do {
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, text, sizeof text - 1);

        assert_true(n > 0);
        text[n] = '\0';
        at = strstr(text, key);
    } while ((!at || strncmp(text, "Name:\tatoll-resolve\n", 20) != 0) &&
             clock_now_us() < deadline_us);
    assert_non_null(at);
    at += strlen(key);
    (void)snprintf(ret, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static void it_runs_without_privilege(void **state)
{
    struct running x = start(NULL);
    struct resolve_answer answer;
    struct stat st;
    char line[128], expected[128];
    unsigned uid = geteuid();

    (void)state;
    ask(&x, "localhost", &answer); /* so it is locked in */
    if (uid == 0 && stat("/proc/sys/kernel", &st) == 0 && st.st_uid == 0)
        uid = 65534;
    (void)snprintf(expected, sizeof expected, "\t%u\t%u\t%u\t%u", uid, uid, uid, uid);
    read_status(x.pid, "\nUid:", line, sizeof line);
    assert_string_equal(line, expected);
    read_status(x.pid, "\nNoNewPrivs:", line, sizeof line);
    assert_string_equal(line, "\t1");
    if (uid == 65534) {
        read_status(x.pid, "\nGroups:", line, sizeof line);
        assert_string_equal(line, "\t ");
        read_status(x.pid, "\nCapEff:", line, sizeof line);
        assert_string_equal(line, "\t0000000000000000");
    }
    end(&x);
}

static void it_has_four_descriptors_and_no_environment(void **state)
{
    _cleanup_fd_ int stays = fcntl(0, F_DUPFD, 20); /* check-calls: on purpose not close-on-exec */
    struct running x = start(NULL);
    struct resolve_answer answer;
    char path[64], byte;
    unsigned n = 0;

    (void)state;
    assert_true(stays >= 0);
    ask(&x, "localhost", &answer);
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)x.pid);
    _cleanup_(dir_closep) DIR *dir = opendir(path);
    if (!dir) { /* it is not dumpable, so nobody but root may look */
        assert_int_not_equal(geteuid(), 0);
        assert_int_equal(errno, EACCES);
        end(&x);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    assert_int_equal(n, 4);
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)x.pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &byte, 1), 0);
    end(&x);
}

static void it_ends_when_its_keeper_is_killed(void **state)
{
    _cleanup_fd_ int pid_fd = -EBADF;
    int pair[2], fds[IO_FDS_MAX];
    size_t n_fds = 0;
    char byte;

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    pid_t keeper = fork();
    if (keeper == 0) {
        struct running x = start(NULL);
        const int both[] = {x.pid_fd, x.fd};

        (void)io_send_packet(pair[1], "x", 1, NULL, 0, both, 2); /* the socket's end stays open */
        for (;;)
            (void)pause();
    }
    assert_int_equal(io_wait(pair[0], POLLIN, clock_after_us(LIMIT_US)), 0);
    assert_int_equal(io_recv_packet(pair[0], &byte, 1, fds, &n_fds), 1);
    assert_int_equal(n_fds, 2);
    pid_fd = fds[0];
    struct running x = {.fd = fds[1]};
    struct resolve_answer answer;
    ask(&x, "localhost", &answer);
    assert_int_equal(kill(keeper, SIGKILL), 0);
    assert_int_equal(waitpid(keeper, NULL, 0), keeper);
    assert_int_equal(io_wait(pid_fd, POLLIN, clock_after_us(LIMIT_US)), 0);
    fd_closep(&x.fd);
    fd_closep(&pair[0]);
    fd_closep(&pair[1]);
}

static void its_end_is_explained(void **state)
{
    static const struct {
        int status;
        const char *words;
    } cases[] = {{127 << 8, "C library"}, {3 << 8, "status 3"}, {SIGSEGV, "signal 11"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_INIT;

        assert_true(resolver_explain(cases[i].status, &err) < 0);
        assert_non_null(strstr(err.message, cases[i].words));
        assert_int_equal(err.cls, ERROR_TERMINAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_names_up),
        cmocka_unit_test(it_asks_the_name_server_of_the_spec),
        cmocka_unit_test(it_runs_without_privilege),
        cmocka_unit_test(it_has_four_descriptors_and_no_environment),
        cmocka_unit_test(it_ends_when_its_keeper_is_killed),
        cmocka_unit_test(its_end_is_explained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

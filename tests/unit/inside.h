/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in namespaces that go again: a user and a network namespace of a child's own, as the test's
 * caller, and also as an ordinary user if that is root. What the child finds comes back in memory
 * that both share.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDINARY_USER = 4711 };

static inline bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        (void)close(fd);
    return good;
}

/** become_ordinary() - no root any more, in any way; true if it is so */
static inline bool become_ordinary(void)
{
    return setresgid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) == 0 &&
           setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) == 0 &&
           prctl(PR_SET_DUMPABLE, 1) == 0; /* its files in /proc are its own again */
}

/** own_namespaces() - in a user namespace where it is root, and in a new network */
static inline bool own_namespaces(void)
{
    char map[64];

    (void)snprintf(map, sizeof map, "0 %u 1\n", geteuid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_file("/proc/self/uid_map", map);
}

/**
 * in_child() - do @work in a child; fails the test unless that returns 0
 * @shared: memory from shared_memory(), or NULL
 */
static inline void in_child(int (*work)(void *shared), void *shared, bool ordinary)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int r = ordinary && !become_ordinary() ? -EPERM : work(shared);

        if (r != 0)
            (void)fprintf(stderr, "in a child: %s\n", strerror(r < 0 ? -r : r));
        _exit(r == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void *shared_memory(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: the process between this program and one command. It is a "subreaper" (prctl(2)):
 * processes that lose their parent become its children, however they detach themselves. So "all of
 * the command" is "everything below the supervisor", and a timeout can end exactly that.
 *
 * Its link to this program is a socket. Orders come as one byte each: a signal to pass on, or
 * END_ALL. The end of the link says that this program has died, and then all is ended, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"

/* Whether @pid is a descendant of this process, by the parents that /proc tells. */
static bool is_below_me(pid_t pid)
{
    for (int depth = 0; pid > 1 && depth < 4096; depth++) {
        char name[64], text[512], *end;
        snprintf(name, sizeof name, "/proc/%d/stat", pid);
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        if (n <= 0)
            return false;
        text[n] = '\0';
        end = strrchr(text, ')'); /* "PID (NAME) STATE PARENT …", and NAME may hold anything */
        if (!end || sscanf(end + 1, " %*c %d", &pid) != 1)
            return false;
        if (pid == getpid())
            return true;
    }
    return false;
}

/* Reaps what is dead. Takes down how @pid ended. Return: whether any child is left. */
static bool reap(pid_t pid, struct report *r, bool *ended)
{
    struct rusage use;
    int status;
    pid_t dead;

    while ((dead = wait4(-1, &status, WNOHANG, &use)) > 0)
        if (dead == pid) {
            *ended = true;
            r->how.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
            r->how.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
            r->how.user_us =
                (uint64_t)use.ru_utime.tv_sec * 1000000 + (uint64_t)use.ru_utime.tv_usec;
            r->how.system_us =
                (uint64_t)use.ru_stime.tv_sec * 1000000 + (uint64_t)use.ru_stime.tv_usec;
            r->how.peak_rss_bytes = (uint64_t)use.ru_maxrss * 1024;
        }
    return dead == 0;
}

/* Kills until nothing is left: while one pass looks, a process may have forked. */
static void end_all(pid_t pid, struct report *r, bool *ended)
{
    while (reap(pid, r, ended)) {
        DIR *proc = opendir("/proc");
        struct dirent *e;
        while (proc && (e = readdir(proc)))
            if (atoi(e->d_name) > 1 && is_below_me(atoi(e->d_name)))
                kill(atoi(e->d_name), SIGKILL);
        if (proc)
            closedir(proc);
        usleep(1000);
    }
}

/* The child that becomes the command. What keeps it from that goes into @failed. */
static void become(const struct atoll_backend_exec *x, char **env, const char *dir, int failed)
{
    sigset_t none;
    int what[2] = {0, 0};

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* What a parent ignores, a shell's background job for one, would be ignored by the command too.
     */
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    setsid(); /* a session and process group of its own: SIGNAL goes to the group */
    if (chdir(dir) < 0) {
        what[1] = 1;
    } else {
        environ = env; /* execvp() looks the program up by the PATH in here */
        execvp(x->argv[0], (char *const *)(uintptr_t)x->argv);
    }
    what[0] = errno;
    (void)!write(failed, what, sizeof what);
    _exit(127);
}

void supervise(const struct atoll_backend_exec *x, char **env, const struct folder *f)
{
    struct flock lock = {.l_type = F_RDLCK};
    struct report r = {0};
    int failed[2], what[2] = {0, 0};
    bool ended = false, told = false;
    sigset_t set;
    char name[PATH_MAX], dir[PATH_MAX];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_SETMASK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

    /* The lock on the record says "something of this sandbox runs" to whoever destroys it, from
     * whatever connection, and the kernel takes it back when this process ends, however it ends. */
    snprintf(name, sizeof name, "%s/record", f->path);
    int record = open(name, O_RDONLY | O_CLOEXEC);
    fcntl(record, F_SETLK, &lock);

    (void)!pipe2(failed, O_CLOEXEC);
    if (!x->workdir || localize(f, x->workdir, dir) < 0)
        snprintf(dir, sizeof dir, "%s", f->workdir);
    snprintf(name, sizeof name, "%s/root", f->path);
    if (chdir(name) == 0 && (r.pid = fork()) == 0)
        become(x, env, dir, failed[1]);
    close(failed[1]);
    for (int fd = 0; fd < 3; fd++) /* the command has them; held here, they would never end */
        dup2(null, fd);
    if (r.pid <= 0 || read(failed[0], what, sizeof what) > 0) {
        r.how.start_errno = r.pid <= 0 ? EAGAIN : what[0];
        r.how.workdir_failed = what[1];
    }
    send(LINK_FD, &r, sizeof r, MSG_NOSIGNAL);
    if (r.how.start_errno)
        _exit(0);

    uint64_t deadline = x->timeout_us ? clock_us(CLOCK_MONOTONIC) + x->timeout_us : UINT64_MAX;
    for (;;) {
        struct pollfd fds[2] = {{.fd = LINK_FD, .events = POLLIN},
                                {.fd = signals, .events = POLLIN}};
        struct signalfd_siginfo info;
        unsigned char order = 0;
        uint64_t now = clock_us(CLOCK_MONOTONIC), left = deadline > now ? deadline - now : 0;

        if (!reap(r.pid, &r, &ended) && told)
            _exit(0); /* nothing runs any more, and the end is reported */
        if (!told && !ended && left == 0) {
            end_all(r.pid, &r, &ended);
            r.how.reason = ATOLL_TIMEOUT;
        }
        if (ended && !told) {
            told = true;
            send(LINK_FD, &r, sizeof r, MSG_NOSIGNAL);
            continue;
        }
        poll(fds, 2, told || left > 3600000000 ? 3600000 : (int)((left + 999) / 1000));
        bool quit = false; /* SIGTERM: the sandbox is being destroyed */
        while (read(signals, &info, sizeof info) == sizeof info)
            quit = quit || info.ssi_signo == SIGTERM;
        if (fds[0].revents && read(LINK_FD, &order, 1) <= 0)
            quit = true; /* the backend has gone */
        if (quit || order == END_ALL) {
            end_all(r.pid, &r, &ended);
            r.how.reason = ATOLL_KILLED;
        } else if (order > 0 && !ended) {
            kill(-r.pid, order);
        }
        if (quit)
            _exit(0);
    }
}

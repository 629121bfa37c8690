/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a command: a child that shares memory until it execs, marked, without any privilege. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/init.h"
#include "base/guards.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

enum { CHILD_STACK_BYTES = 64 * 1024 };

/* What parent and child share while the parent stands still (CLONE_VFORK). */
struct start {
    const struct exec_request *request;
    int fds[3];
    int terminal; /* the command's end of its terminal, or -1 */
    uint64_t mark;
    uint32_t stage; /* enum start_stage; START_OK once exec has worked */
    int error;
    char interpreter[INTERPRETER_BYTES_MAX];
};

struct command *command_find(struct init *i, uint32_t id)
{
    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
        if (i->commands[k].pid > 0 && i->commands[k].id == id)
            return &i->commands[k];
    return NULL;
}

uint64_t command_find_mark(const struct init *i, uint32_t id)
{
    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
        if (i->commands[k].mark != 0 && i->commands[k].id == id)
            return i->commands[k].mark;
    return 0;
}

static struct command *free_row(struct init *i)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
            if (i->commands[k].pid == 0 && i->commands[k].mark == 0)
                return &i->commands[k];
        marks_sweep(i);
    }
    return NULL;
}

static void report_failure(uint32_t id, uint32_t stage, int error, const char *interpreter)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);
    struct exit_report x = {
        .exit_code = stage == START_EXEC && error == ENOENT && !interpreter
                         ? 127
                         : 126, /* as a shell says it */
        .reason = stage == START_EXEC || stage == START_WORKDIR ? REASON_EXITED : REASON_ERROR,
        .start_stage = stage,
        .start_errno = (uint32_t)error,
        .interpreter = interpreter,
    };

    exit_report_encode(&w, &x);
    link_send(MSG_EXITED, id, &w, -1);
}

static int child_streams(struct start *s)
{
    (void)setsid();
    if (s->terminal >= 0) {
        if (ioctl(s->terminal, TIOCSCTTY, 0) < 0)
            return -errno;
        s->fds[0] = s->fds[1] = s->fds[2] = s->terminal;
    }
    for (int k = 0; k < 3; k++)
        if (dup2(s->fds[k], k) < 0)
            return -errno;
    /* Close-on-exec rather than close: should exec fail, nothing of init's is lost. */
    return syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) < 0 ? -errno : 0;
}

/* What the first line of @path names, when it is a script. Only read after its exec failed. */
static void read_interpreter(const char *path, char buf[INTERPRETER_BYTES_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, buf, INTERPRETER_BYTES_MAX - 1) : -1;

    if (fd >= 0)
        (void)close(fd);
    if (n < 3 || buf[0] != '#' || buf[1] != '!') {
        buf[0] = '\0';
        return;
    }
    buf[n] = '\0';
    char *p = buf + 2;
    p += strspn(p, " \t");
    p[strcspn(p, " \t\n")] = '\0';
    memmove(buf, p, strlen(p) + 1);
}

/* execve() of one candidate. What is there but cannot run is remembered over what is not there. */
static void try_exec(struct start *s, const char *path)
{
    const struct exec_request *x = s->request;
    int before = s->error;

    s->error = 0; /* what the parent must find when this one works */
    (void)execve(path, (char *const *)(uintptr_t)x->argv, (char *const *)(uintptr_t)x->envp);
    int error = errno;
    if (error ==
        ENOEXEC) { /* a script without a first line that says so: as execvp(3) and shells */
        const char **script = (const char **)(uintptr_t)x->argv;

        if (x->n_argv + 2 < EXEC_STRINGS_MAX - x->n_envp) {
            static const char *shell_argv[EXEC_STRINGS_MAX];

            shell_argv[0] = "/bin/sh";
            shell_argv[1] = path;
            memcpy(shell_argv + 2, script + 1, x->n_argv * sizeof *script);
            (void)execve("/bin/sh", (char *const *)(uintptr_t)shell_argv,
                         (char *const *)(uintptr_t)x->envp);
        }
    }
    s->error = before == 0 || before == ENOENT || before == ENOTDIR ? error : before;
}

/* A candidate that is there, and whose exec said that something is not: what that is. */
static void examine(struct start *s, const char *path)
{
    static const char loader[] = "the program's loader";

    if (s->interpreter[0] != '\0' || access(path, F_OK) < 0)
        return;
    read_interpreter(path, s->interpreter);
    if (s->interpreter[0] == '\0')
        memcpy(s->interpreter, loader, sizeof loader);
}

/* Each place where the command may be: along its own PATH, as execvp(3) does with the caller's. */
static void for_candidates(struct start *s, void (*visit)(struct start *s, const char *path))
{
    const char *name = s->request->argv[0];
    const char *path = "/usr/bin:/bin";
    char candidate[4096];

    if (strchr(name, '/')) {
        visit(s, name);
        return;
    }
    for (size_t k = 0; k < s->request->n_envp; k++)
        if (strncmp(s->request->envp[k], "PATH=", 5) == 0)
            path = s->request->envp[k] + 5;
    for (;;) {
        size_t n = strcspn(path, ":"); /* an empty part means the working directory */
        size_t length = strlen(name);

        if (n + length + 2 <= sizeof candidate) {
            memcpy(candidate, path, n);
            candidate[n] = '/';
            memcpy(candidate + n + 1, name, length + 1);
            visit(s, n > 0 ? candidate : name);
        }
        if (path[n] == '\0')
            break;
        path += n + 1;
    }
}

static void child_exec(struct start *s)
{
    const char *name = s->request->argv[0];

    s->error = ENOENT;
    if (name[0] == '\0')
        return;
    s->error = 0;
    for_candidates(s, try_exec);
    if (!strchr(name, '/') &&
        (s->error == ENOTDIR || s->error == 0)) /* a part of PATH is no folder */
        s->error = ENOENT;
    if (s->error == ENOENT)
        for_candidates(s, examine);
}

static int child_main(void *arg)
{
    struct start *s = arg;
    const struct exec_request *x = s->request;
    sigset_t none;
    int r;

    s->stage = START_FDS;
    r = child_streams(s);
    if (r == 0) {
        s->stage = START_IDENTITY;
        r = child_identity(x);
    }
    if (r == 0) {
        s->stage = START_WORKDIR; /* with the command's own rights */
        r = x->workdir && chdir(x->workdir) < 0 ? -errno : 0;
    }
    if (r == 0) {
        s->stage = START_EXEC;
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        child_exec(s);
        r = -s->error;
    }
    s->error = -r;
    _exit(127);
}

/* What init's next child inherits: when memory runs out the kernel is to kill a command, not init.
 * /proc/self of a child that shares init's memory belongs to nobody inside, so that it cannot do
 * this itself. */
static void set_oom_score(const char *score)
{
    if (score)
        (void)!pwrite(INIT_OOM_FD, score, strlen(score), 0);
}

/* Runs child_main() on a stack of its own, and stands still until it execs or ends. */
static pid_t start_child(struct init *i, struct start *s)
{
    static uint8_t stack[CHILD_STACK_BYTES] __attribute__((aligned(16)));

    s->stage = START_MARK;
    s->error = -mark_prepare(i);
    if (s->error != 0)
        return -1;
    s->stage = START_OK;
    set_oom_score(i->oom_commands);
    pid_t pid = clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
    set_oom_score(i->oom_own);

    if (pid < 0) {
        s->stage = START_LIMIT;
        s->error = errno;
        return -1;
    }
    s->mark = mark_take(i);
    if (s->error == 0)
        return pid;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return -1;
}

/* Opens a terminal: @ret_master for the caller, @ret_slave for the command. */
static int open_terminal(const struct exec_request *x, int *ret_master, int *ret_slave)
{
    struct winsize size = {.ws_row = x->rows, .ws_col = x->columns};
    int unlock = 0;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (master < 0)
        return -errno;
    int slave = ioctl(master, TIOCSPTLCK, &unlock) < 0
                    ? -1
                    : ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    /* The command owns its terminal, as after a login. */
    if (slave < 0 || ioctl(master, TIOCSWINSZ, &size) < 0 ||
        (x->flags & EXEC_USER_SET && fchown(slave, x->uid, x->gid) < 0)) {
        int r = -errno;

        if (slave >= 0)
            (void)close(slave);
        (void)close(master);
        return r;
    }
    *ret_master = master;
    *ret_slave = slave;
    return 0;
}

/* Chooses what becomes 0, 1 and 2. Return: 0, or an errno for a request that came without them. */
static int plan_streams(const struct init *i, const struct exec_request *x, struct start *s)
{
    size_t from = x->flags & EXEC_STDIN ? 1 : 0;

    if (s->terminal >= 0)
        return 0;
    if (x->flags & EXEC_DETACH) {
        s->fds[0] = s->fds[1] = s->fds[2] = i->null_fd;
        return 0;
    }
    if (i->n_fds != from + 2)
        return EBADF;
    s->fds[0] = from ? i->fds[0] : i->null_fd;
    s->fds[1] = i->fds[from];
    s->fds[2] = i->fds[from + 1];
    return 0;
}

static void report_start(uint32_t id, pid_t pid, int master)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_PID, (uint32_t)pid);
    link_send(MSG_STARTED, id, &w, master);
}

static void start_files(struct init *i, uint32_t id, const struct exec_request *x,
                        struct command *row)
{
    uint64_t mark = 0;
    pid_t pid = i->n_fds == 1 ? files_start(i, x, i->fds[0], &mark) : -EBADF;

    if (pid > 0)
        *row = (struct command){
            .id = id, .pid = pid, .mark = mark, .since_us = clock_now_us(), .files = true};
    else
        report_failure(id, START_LIMIT, (int)-pid, NULL);
}

void command_exec(struct init *i, uint32_t id, struct reader message)
{
    struct start s = {.fds = {-1, -1, -1}, .terminal = -1, .stage = START_FDS};
    struct exec_request x;
    struct command *row = free_row(i);
    uint64_t since = clock_now_us();
    int master = -1;
    pid_t pid = -1;

    s.error = -exec_request_decode(message, i->strings, EXEC_STRINGS_MAX, &x);
    s.request = &x;
    if (s.error == 0 && i->confined_error != 0) {
        s.stage = i->confined_stage;
        s.error = i->confined_error;
    }
    if (s.error == 0 && !row) {
        s.stage = START_LIMIT;
        s.error = EAGAIN;
    }
    if (s.error == 0 && x.flags & EXEC_FILES) {
        start_files(i, id, &x, row);
        return;
    }
    if (s.error == 0 && x.flags & EXEC_TTY)
        s.error = -open_terminal(&x, &master, &s.terminal);
    if (s.error == 0)
        s.error = plan_streams(i, &x, &s);
    if (s.error == 0)
        pid = start_child(i, &s);
    if (pid > 0) {
        *row = (struct command){.id = id,
                                .pid = pid,
                                .mark = s.mark,
                                .since_us = since,
                                .last = x.flags & EXEC_LAST,
                                .detached = x.flags & EXEC_DETACH};
        if (master >= 0 || x.flags & (EXEC_REPORT_START | EXEC_DETACH))
            report_start(id, pid, master);
    } else {
        report_failure(id, s.stage, s.error, s.interpreter[0] ? s.interpreter : NULL);
    }
    if (s.terminal >= 0)
        (void)close(s.terminal);
    if (master >= 0)
        (void)close(master);
}

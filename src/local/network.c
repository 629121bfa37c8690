/* SPDX-License-Identifier: Apache-2.0 */
/* Making the sandbox's network namespace beside the rest of the set-up. */
#include "local/network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/raw_syscall.h"
#include "base/guards.h"

/* What keeper and helper share on purpose, and the helper's stack. */
struct network_helper {
    pid_t pid;
    int pid_fd, fd;
    uint8_t stack[16 * 1024] __attribute__((aligned(16)));
};

_shared_memory_ int network_loopback_up(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    long fd = raw_syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0);

    if (fd < 0)
        return (int)fd;
    long r = raw_syscall(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&lo, 0, 0);
    (void)raw_syscall(SYS_close, fd, 0, 0, 0, 0);
    return (int)r;
}

/* In the helper: a descriptor of the new namespace, or a negative errno. */
_shared_memory_ static long make_network(int pid_fd)
{
    long r = raw_syscall(SYS_setns, pid_fd, CLONE_NEWUSER, 0, 0, 0);

    if (r == 0)
        r = raw_syscall(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0);
    if (r == 0)
        r = network_loopback_up();
    return r < 0 ? r
                 : raw_syscall(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/ns/net",
                               O_RDONLY | O_CLOEXEC, 0, 0);
}

_shared_memory_ void network_hand_over(int fd, long net)
{
    int error = net < 0 ? (int)-net : 0, passed = (int)net;
    struct iovec iov = {.iov_base = &error, .iov_len = sizeof error};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (net >= 0) {
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &passed, sizeof passed);
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof control.bytes;
    }
    (void)raw_syscall(SYS_sendmsg, fd, (long)&msg, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
}

_shared_memory_ static int helper_main(void *arg)
{
    const struct network_helper *h = arg;

    (void)raw_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    network_hand_over(h->fd, make_network(h->pid_fd));
    (void)raw_syscall(SYS_exit_group, 0, 0, 0, 0, 0);
    return 0;
}

int network_start(int pid_fd, int fd, struct network_helper **ret)
{
    struct network_helper *h =
        mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (h == MAP_FAILED)
        return -errno;
    h->pid_fd = pid_fd;
    h->fd = fd;
    h->pid = clone(helper_main, h->stack + sizeof h->stack, CLONE_VM | SIGCHLD, h);
    if (h->pid < 0) {
        int r = -errno;
        (void)munmap(h, sizeof *h);
        return r;
    }
    *ret = h;
    return 0;
}

void network_end(struct network_helper *h)
{
    if (!h)
        return;
    (void)kill(h->pid, SIGKILL); /* not reaped yet, so the number is still its own */
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)munmap(h, sizeof *h);
}

int network_await(int fd)
{
    int fds[IO_FDS_MAX], error;
    size_t n_fds = 0;
    int r = io_wait(fd, POLLIN, CLOCK_NEVER);

    if (r < 0)
        return r;
    ssize_t n = io_recv_packet(fd, &error, sizeof error, fds, &n_fds);
    if (n == sizeof error && error == 0 && n_fds == 1)
        return fds[0];
    while (n_fds > 0)
        fd_closep(&fds[--n_fds]);
    return n == sizeof error && error > 0 ? -error : -EIO;
}

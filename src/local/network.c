/* SPDX-License-Identifier: Apache-2.0 */
/* Making the sandbox's network namespace beside the rest of the set-up. */
#include "local/network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/guards.h"

int network_loopback_up(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    return ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ? -errno : 0;
}

/* In the helper: a descriptor of the new namespace, or a negative errno. */
static int make_network(int pid_fd)
{
    int r;

    if (setns(pid_fd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNET) < 0)
        return -errno;
    r = network_loopback_up();
    if (r < 0)
        return r;
    r = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return r < 0 ? -errno : r;
}

/* One packet: the errno, and the namespace if that is 0. */
static void hand_over(int fd, int net)
{
    int error = net < 0 ? -net : 0;

    (void)io_send_packet(fd, &error, sizeof error, NULL, 0, &net, net >= 0 ? 1 : 0);
}

pid_t network_start(int pid_fd, int fd)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid < 0 ? -errno : pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    hand_over(fd, make_network(pid_fd));
    _exit(0);
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

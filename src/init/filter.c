/* SPDX-License-Identifier: Apache-2.0 */
/* Installs the system call filter that was generated when atoll was built. */
#include "init/filter.h"

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter_table.h"

#include "base/guards.h"

int filter_install(void)
{
    /* struct sock_fprog with the const that it lacks; the kernel only reads the program. */
    const struct {
        unsigned short len;
        const struct sock_filter *filter;
    } program = {.len = filter_program_len, .filter = filter_program};

    static_assert(sizeof program == sizeof(struct sock_fprog) &&
                      offsetof(__typeof__(program), filter) == offsetof(struct sock_fprog, filter),
                  "the kernel reads this as a struct sock_fprog");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return -EACCES;
    /*
     * No flags, on purpose. TSYNC: the child of a vfork has one thread. LOG: a command could fill
     * the host's log by asking for what it is refused. SPEC_ALLOW: would take back, for untrusted
     * code of all things, the mitigation of speculative stores that a host may have tied to
     * seccomp; kernels from 5.16 on do not do so unless told to, so there is nothing to win.
     */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        return -errno;
    return 0;
}

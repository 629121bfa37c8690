/* SPDX-License-Identifier: Apache-2.0 */
/* Memory files with the seals that keep them as they are (memfd_create(2)). */
#include "local/sealed_image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "local/refusal.h"
#include "base/guards.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

int sealed_image_open(const char *name, const uint8_t *start, const uint8_t *end, struct error *err)
{
    _cleanup_fd_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    int r;

    if (fd < 0 && errno == EINVAL) /* before 6.3 there was no flag, and all were executable */
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return refusal_explain(REFUSAL_MEMFD, NULL, errno, err);
    r = io_write_full(fd, start, (size_t)(end - start), CLOCK_NEVER);
    if (r == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        r = -errno;
    return r < 0 ? refusal_explain(REFUSAL_MEMFD, NULL, -r, err) : TAKE_FD(fd);
}

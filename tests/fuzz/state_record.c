/* SPDX-License-Identifier: Apache-2.0 */
/* A record of a held sandbox with any content: refused, or what is read survives being written. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/state_record.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_good(int folder, const struct state_record *x)
{
    struct state_record y;

    check(strlen(x->id) < sizeof x->id && strlen(x->place.host) < sizeof x->place.host);
    check(x->pid > 0 && x->created_at_us <= INT64_MAX && x->expires_at_us <= INT64_MAX);
    check(state_record_write(folder, x) == 0);
    check(state_record_read(folder, &y) == 0);
    check(same_text(x->id, y.id) && same_text(x->place.host, y.place.host));
    check(same_text(x->place.boot, y.place.boot) && x->place.uid == y.place.uid);
    check(x->pid == y.pid && x->created_at_us == y.created_at_us);
    check(x->expires_at_us == y.expires_at_us);
    check(same_text(x->name, y.name) && same_text(x->owner, y.owner));
    check(same_text(x->image, y.image) && same_text(x->program, y.program));
    check(x->tags.n == y.tags.n);
    for (size_t i = 0; i < x->tags.n; i++) {
        check(strchr(x->tags.items[i], '=') != NULL);
        check(strcmp(x->tags.items[i], y.tags.items[i]) == 0);
    }
    state_record_done(&y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/dev/shm/atoll-fuzz-XXXXXX"; /* in memory: this is done often */
    struct state_record x;

    check(mkdtemp(path) != NULL);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(folder, "record.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    check(fd >= 0 && io_write_full(fd, data, size, CLOCK_NEVER) == 0);
    fd_closep(&fd);
    if (state_record_read(folder, &x) == 0) {
        check_good(folder, &x);
        state_record_done(&x);
    }
    check(unlinkat(folder, "record.json", 0) == 0);
    fd_closep(&folder);
    check(rmdir(path) == 0);
    return 0;
}

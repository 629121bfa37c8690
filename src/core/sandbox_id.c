/* SPDX-License-Identifier: Apache-2.0 */
/* Making and judging ids. */
#include "core/sandbox_id.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum { PART_CHARACTERS = 4, RANDOM_CHARACTERS = 14, BITS_OF_CHARACTER = 5 };

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

/* The first line of a small file. */
static int read_line(const char *path, char *buf, size_t size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

    if (n < 0)
        return -errno;
    buf[n] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    return buf[0] ? 0 : -ENODATA;
}

int place_read(struct place *ret)
{
    struct place p = {.uid = (uint32_t)geteuid()};
    int r = read_line("/proc/sys/kernel/random/boot_id", p.boot, sizeof p.boot);

    if (r < 0)
        return r;
    r = read_line("/etc/machine-id", p.host, sizeof p.host);
    /* Only for lack of one: after a passing failure the same host would seem to be another. */
    if (r == -ENOENT || r == -EACCES || r == -ENODATA)
        r = gethostname(p.host, sizeof p.host - 1) < 0 ? -errno : 0;
    if (r == 0)
        *ret = p;
    return r;
}

/* FNV-1a, 64 bits, folded: tells places apart, hides nothing. */
static uint64_t hash(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h ^ h >> 32;
}

static char *put(char *at, uint64_t value, int characters)
{
    for (int i = characters - 1; i >= 0; i--, value >>= BITS_OF_CHARACTER)
        at[i] = alphabet[value & 31];
    return at + characters;
}

/* The three parts that tell the place. */
static char *put_place(char *at, const struct place *here)
{
    at = put(at, hash(here->host, strlen(here->host)), PART_CHARACTERS);
    at = put(at, hash(here->boot, strlen(here->boot)), PART_CHARACTERS);
    return put(at, hash(&here->uid, sizeof here->uid), PART_CHARACTERS);
}

void sandbox_id_make(const struct place *here, const uint64_t random[static 2],
                     char ret[static SANDBOX_ID_BYTES])
{
    char *at = ret;

    memcpy(at, "sb-", 3);
    at = put_place(at + 3, here);
    at = put(at, random[0], RANDOM_CHARACTERS / 2);
    at = put(at, random[1], RANDOM_CHARACTERS / 2);
    *at = '\0';
}

static bool has_the_form(const char *id)
{
    return strlen(id) == SANDBOX_ID_BYTES - 1 && strncmp(id, "sb-", 3) == 0 &&
           strspn(id + 3, alphabet) == SANDBOX_ID_BYTES - 4;
}

int sandbox_id_check(const char *id, const struct place *here, struct error *err)
{
    char mine[3 * PART_CHARACTERS + 1];

    if (!has_the_form(id)) {
        error_set(err, ERROR_USAGE, EINVAL, "'%.80s' is not the id of a sandbox", id);
        return error_remedy(err, "\"atoll list\" shows the ids of those that live");
    }
    *put_place(mine, here) = '\0';
    const char *place = id + 3;
    if (memcmp(place, mine, PART_CHARACTERS) != 0) {
        error_set(err, ERROR_USAGE, EINVAL, "sandbox %s was made on another host", id);
        return error_remedy(err, "Use it there; a local sandbox cannot be reached from elsewhere");
    }
    if (memcmp(place + PART_CHARACTERS, mine + PART_CHARACTERS, PART_CHARACTERS) != 0) {
        error_set(err, ERROR_USAGE, EINVAL, "sandbox %s was made before this host was last started",
                  id);
        return error_remedy(err, "It ended with that; create another one");
    }
    if (memcmp(place + 2 * PART_CHARACTERS, mine + 2 * PART_CHARACTERS, PART_CHARACTERS) != 0) {
        error_set(err, ERROR_USAGE, EINVAL, "sandbox %s was made by another user", id);
        return error_remedy(err, "Use it as the user who created it");
    }
    return 0;
}

bool sandbox_id_is_earlier(const char *id, const struct place *here)
{
    char mine[3 * PART_CHARACTERS + 1];

    *put_place(mine, here) = '\0';
    return has_the_form(id) && memcmp(id + 3, mine, PART_CHARACTERS) == 0 &&
           memcmp(id + 3 + PART_CHARACTERS, mine + PART_CHARACTERS, PART_CHARACTERS) != 0 &&
           memcmp(id + 3 + 2 * PART_CHARACTERS, mine + 2 * PART_CHARACTERS, PART_CHARACTERS) == 0;
}

bool backend_is_name(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n <= BACKEND_NAME_BYTES_MAX && s[0] >= 'a' && s[0] <= 'z' && s[n - 1] != '-' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

const char *sandbox_id_split(const char *id, char ret_backend[static BACKEND_NAME_BYTES_MAX + 1])
{
    const char *colon = strchr(id, ':');
    size_t n = colon ? (size_t)(colon - id) : 0;

    if (!colon) {
        memcpy(ret_backend, "local", sizeof "local");
        return id;
    }
    if (n > BACKEND_NAME_BYTES_MAX)
        return NULL;
    memcpy(ret_backend, id, n);
    ret_backend[n] = '\0';
    return backend_is_name(ret_backend) ? colon + 1 : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of sandboxes: `[backend:]opaque`. A local one is "sb-" and 26 characters of base32 (RFC 4648,
 * section 6, lower case) that say where it was made, so that a handle which travelled is refused
 * for the right reason without asking anybody:
 *
 *     sb- hhhh bbbb uuuu rrrrrrrrrrrrrr
 *         |    |    |    70 random bits
 *         |    |    user  \
 *         |    boot        > 20 bits of a hash each
 *         host            /
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
    SANDBOX_ID_BYTES = 3 + 26 + 1, /* of a local one, with its NUL */
    BACKEND_NAME_BYTES_MAX = 32,
};

/* Where this process is, as ids tell it. */
struct place {
    char host[65]; /* /etc/machine-id, or the host's name where there is none */
    char boot[65]; /* /proc/sys/kernel/random/boot_id */
    uint32_t uid;
};

/** place_read() - this host, its current boot, the effective user; 0 or a negative errno */
int place_read(struct place *ret);

/** sandbox_id_make() - a new local id for @here, from @random (70 of its bits are used); pure */
void sandbox_id_make(const struct place *here, const uint64_t random[static 2],
                     char ret[static SANDBOX_ID_BYTES]);

/**
 * sandbox_id_check() - whether @id can name a local sandbox here
 *
 * Return: 0, or -EINVAL with a usage error that says what is wrong: no id at all, made on another
 * host, before this host's last start, or by another user.
 */
int sandbox_id_check(const char *id, const struct place *here, struct error *err);

/** sandbox_id_is_earlier() - made on this host by this user, before the host was last started */
bool sandbox_id_is_earlier(const char *id, const struct place *here);

/**
 * sandbox_id_split() - the backend's name in front of a colon
 * @ret_backend: "local" when there is none
 *
 * Return: the rest of @id, a view; NULL when the name is no name.
 */
const char *sandbox_id_split(const char *id, char ret_backend[static BACKEND_NAME_BYTES_MAX + 1]);

/** backend_is_name() - 1 to 32 lower-case letters, digits and inner hyphens, a letter first */
bool backend_is_name(const char *s);

/* SPDX-License-Identifier: Apache-2.0 */
/* The spec from a peer: what is taken keeps the limits and is the same after another trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "core/limits.h"
#include "core/spec.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static uint8_t *encode(const struct spec *s, size_t *ret_len)
{
    size_t room = spec_size(s);
    uint8_t *buf = malloc(room);
    struct writer w = writer_over(buf, room);

    check(buf != NULL);
    spec_encode(&w, s);
    check(!w.bad);
    *ret_len = writer_len(&w);
    return buf;
}

static void check_limits(const struct spec *s)
{
    check(s->uid <= 65534 && s->gid <= 65534);
    check(s->pids >= LIMIT_PIDS_MIN && s->pids <= LIMIT_PIDS_MAX);
    check(s->disk_bytes <= LIMIT_DISK_MAX_BYTES && s->lifetime_us <= LIMIT_TIME_MAX_US);
    check(s->n_volumes <= LIMIT_VOLUMES && s->env.n <= LIMIT_ENV_NAMES);
    for (size_t i = 0; i < s->n_volumes; i++)
        check(s->volumes[i].host[0] == '/' && path_is_plain_absolute(s->volumes[i].guest));
    for (size_t i = 0; i < s->env.n; i++)
        check(strchr(s->env.items[i], '=') != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t nothing = 0;
    struct spec s, again;
    size_t len, len_again;

    if (spec_decode(reader_over(data ? data : &nothing, size), &s) < 0)
        return 0;
    check_limits(&s);
    uint8_t *first = encode(&s, &len);
    check(spec_decode(reader_over(first, len), &again) == 0);
    uint8_t *second = encode(&again, &len_again);
    check(len == len_again && memcmp(first, second, len) == 0);
    free(first);
    free(second);
    spec_done(&s);
    spec_done(&again);
    return 0;
}

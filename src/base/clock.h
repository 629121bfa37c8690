/* SPDX-License-Identifier: Apache-2.0 */
/* One time type: microseconds of CLOCK_MONOTONIC unless it is said otherwise, and deadlines that
 * cannot wrap. */
#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER UINT64_MAX /* a deadline that does not come */

/** clock_now_us() - microseconds of CLOCK_MONOTONIC: stands still while the host is suspended */
static inline uint64_t clock_now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

/** clock_epoch_us() - microseconds since 1970 (CLOCK_REALTIME), for people and records */
static inline uint64_t clock_epoch_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

/** clock_boot_us() - microseconds of CLOCK_BOOTTIME: goes on while the host is suspended */
static inline uint64_t clock_boot_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

/** clock_after_us() - the deadline @us microseconds from now, saturating at CLOCK_NEVER */
static inline uint64_t clock_after_us(uint64_t us)
{
    uint64_t now = clock_now_us();

    return us > CLOCK_NEVER - now ? CLOCK_NEVER : now + us;
}

/** clock_poll_ms() - a poll(2) timeout for @deadline_us: rounded up, -1 for CLOCK_NEVER */
static inline int clock_poll_ms(uint64_t deadline_us)
{
    uint64_t now = clock_now_us();

    if (deadline_us == CLOCK_NEVER)
        return -1;
    if (deadline_us <= now)
        return 0;
    uint64_t ms = (deadline_us - now + 999u) / 1000u;
    return ms > 3600000u ? 3600000 : (int)ms;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The legal steps in the life of a sandbox. */
#include "core/lifecycle.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/guards.h"

/* One more than the state that follows; 0: it cannot happen. */
#define TO(state) ((uint8_t)((state) + 1))

static const uint8_t steps[LIFECYCLE_STATES][LIFE__MAX] = {
    [LIFECYCLE_NOTHING] = {[LIFE_ASKED] = TO(STATE_CREATING), [LIFE_ENDS] = TO(STATE_ENDING)},
    [STATE_CREATING] = {[LIFE_STANDS] = TO(STATE_RUNNING), [LIFE_ENDS] = TO(STATE_ENDING)},
    [STATE_RUNNING] = {[LIFE_ENDS] = TO(STATE_ENDING)},
    [STATE_PAUSED] = {0},
    [STATE_ENDING] = {[LIFE_EMPTY] = TO(STATE_GONE)},
    [STATE_GONE] = {0},
};
_Static_assert(LIFECYCLE_STATES == 6 && LIFE__MAX == 4, "a state or an event has no steps");

int lifecycle_next(uint32_t state, enum lifecycle_event event, uint32_t *ret)
{
    if (state >= LIFECYCLE_STATES || (uint32_t)event >= LIFE__MAX || steps[state][event] == 0)
        return -EPROTO;
    *ret = steps[state][event] - 1u;
    return 0;
}

const char *lifecycle_state_name(uint32_t state)
{
    return state == LIFECYCLE_NOTHING ? "nothing" : sandbox_state_name(state);
}

const char *lifecycle_event_name(enum lifecycle_event event)
{
    static const char *const names[] = {
        [LIFE_ASKED] = "asked",
        [LIFE_STANDS] = "stands",
        [LIFE_ENDS] = "ends",
        [LIFE_EMPTY] = "empty",
    };
    _Static_assert(ARRAY_SIZE(names) == LIFE__MAX, "an event has no name");

    return (uint32_t)event < LIFE__MAX ? names[event] : "?";
}

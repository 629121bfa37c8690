/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of state and event: the steps that docs/design/lifecycle.md draws, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "core/lifecycle.h"

static const struct step {
    uint32_t from;
    enum lifecycle_event event;
    uint32_t to;
} legal[] = {
    {LIFECYCLE_NOTHING, LIFE_ASKED, STATE_CREATING}, {LIFECYCLE_NOTHING, LIFE_ENDS, STATE_ENDING},
    {STATE_CREATING, LIFE_STANDS, STATE_RUNNING},    {STATE_CREATING, LIFE_ENDS, STATE_ENDING},
    {STATE_RUNNING, LIFE_ENDS, STATE_ENDING},        {STATE_ENDING, LIFE_EMPTY, STATE_GONE},
};

static const struct step *find(uint32_t state, enum lifecycle_event event)
{
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
        if (legal[i].from == state && legal[i].event == event)
            return &legal[i];
    return NULL;
}

static void steps_of_the_picture_lead_on_and_all_others_are_refused(void **unused)
{
    (void)unused;
    for (uint32_t state = 0; state < LIFECYCLE_STATES + 2; state++)
        for (int event = 0; event < LIFE__MAX + 2; event++) {
            const struct step *s = find(state, (enum lifecycle_event)event);
            uint32_t next = 77;
            int r = lifecycle_next(state, (enum lifecycle_event)event, &next);

            assert_int_equal(r, s ? 0 : -EPROTO);
            assert_int_equal(next, s ? s->to : 77);
        }
}

static void no_step_leads_back(void **unused)
{
    static const int order[LIFECYCLE_STATES] = {
        [LIFECYCLE_NOTHING] = 0, [STATE_CREATING] = 1, [STATE_RUNNING] = 2,
        [STATE_PAUSED] = 3,      [STATE_ENDING] = 4,   [STATE_GONE] = 5,
    };

    (void)unused;
    for (uint32_t state = 0; state < LIFECYCLE_STATES; state++)
        for (int event = 0; event < LIFE__MAX; event++) {
            uint32_t next;

            if (lifecycle_next(state, (enum lifecycle_event)event, &next) == 0)
                assert_true(order[next] > order[state]);
        }
}

static void every_end_can_come_in_every_state_before_it(void **unused)
{
    static const uint32_t before[] = {LIFECYCLE_NOTHING, STATE_CREATING, STATE_RUNNING};
    uint32_t next = 0;

    (void)unused;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        assert_int_equal(lifecycle_next(before[i], LIFE_ENDS, &next), 0);
        assert_int_equal(next, STATE_ENDING);
    }
    assert_int_equal(lifecycle_next(STATE_ENDING, LIFE_ENDS, &next), -EPROTO);
}

static void states_and_events_have_names_of_their_own(void **unused)
{
    (void)unused;
    assert_string_equal(lifecycle_state_name(LIFECYCLE_NOTHING), "nothing");
    assert_string_equal(lifecycle_state_name(STATE_RUNNING), "running");
    assert_string_equal(lifecycle_state_name(LIFECYCLE_STATES), "?");
    for (int a = 0; a < LIFE__MAX; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(lifecycle_event_name((enum lifecycle_event)a),
                                    lifecycle_event_name((enum lifecycle_event)b));
    assert_string_equal(lifecycle_event_name(LIFE__MAX), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_the_picture_lead_on_and_all_others_are_refused),
        cmocka_unit_test(no_step_leads_back),
        cmocka_unit_test(every_end_can_come_in_every_state_before_it),
        cmocka_unit_test(states_and_events_have_names_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

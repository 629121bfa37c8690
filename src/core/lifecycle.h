/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a sandbox: its states (enum sandbox_state of wire/sandbox_info.h, and one before
 * there is any), what happens to it, and which of its states lets that happen. One table, which
 * docs/design/lifecycle.md draws:
 *
 *     nothing  --asked--> creating --stands--> running --ends--> ending --empty--> gone
 *        |                   |                                     ^
 *        '-------ends--------'-------------------ends--------------'
 *
 * Everything else is a mistake in the program. STATE_PAUSED is a word for other backends: no step
 * leads to it.
 */
#pragma once

#include <stdint.h>

#include "wire/sandbox_info.h"

enum {
    LIFECYCLE_NOTHING = STATE__MAX, /* nobody has asked for a sandbox yet */
    LIFECYCLE_STATES,
};

enum lifecycle_event {
    LIFE_ASKED,  /* CREATE came */
    LIFE_STANDS, /* the set-up is done: process 1 answers */
    LIFE_ENDS,   /* whatever ends it: enum ended_by */
    LIFE_EMPTY,  /* nothing is left of it, and that was told */
    LIFE__MAX,
};

/**
 * lifecycle_next() - the state that @event leads to; pure
 *
 * Return: 0, or -EPROTO: in @state that cannot happen.
 */
int lifecycle_next(uint32_t state, enum lifecycle_event event, uint32_t *ret);

/** lifecycle_state_name() - as sandbox_state_name(), and "nothing" */
const char *lifecycle_state_name(uint32_t state);

/** lifecycle_event_name() - "asked", "stands", "ends", "empty" */
const char *lifecycle_event_name(enum lifecycle_event event);

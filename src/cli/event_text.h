/* SPDX-License-Identifier: Apache-2.0 */
/* One event in words (docs/reference/json/events.schema.json). */
#pragma once

#include <jansson.h>

/**
 * event_text() - "2026-05-01 12:00:05 command 3 exited with 0 after 0.2 s"
 * @id: put in front; NULL: nothing
 * @e:  one of a kind that is not known is told by its kind and event
 *
 * Names and arguments are the guest's choice: nothing of them can drive a terminal. Return: owned
 * by the caller, without a line end; NULL without memory.
 */
char *event_text(const char *id, const json_t *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command is told of the attempts that the network policy refused while it ran: a few
 * different ones, and how many more there were. Nothing is kept, nor any memory taken, before the
 * first.
 */
#pragma once

#include "wire/denial.h"

struct command_denials; /* NULL: none */

/**
 * command_denials_note() - one more
 * @ret: NULL at first; made here
 * @x:   copied
 *
 * The same protocol, name, address and port again count as one. Return: 0 or -ENOMEM, and then it
 * is not told.
 */
int command_denials_note(struct command_denials **ret, const struct denial *x);

/** command_denials_size() - bytes that command_denials_encode() needs */
size_t command_denials_size(const struct command_denials *d);

/** command_denials_encode() - the fields of EXITED: DENIAL for each, DENIAL_DROPPED */
void command_denials_encode(struct writer *w, const struct command_denials *d);

/** command_denials_free() - harmless on NULL */
void command_denials_free(struct command_denials *d);

/* SPDX-License-Identifier: Apache-2.0 */
/* What EXITED tells of the attempts that the network policy refused while a command ran. */
#pragma once

#include "wire/denial.h"

struct denials {
    uint8_t *message;     /* whose views the items are; owned */
    struct denial *items; /* owned */
    size_t n;
    uint64_t more; /* different ones that are not told */
};

/**
 * denials_take() - of an EXITED message
 * @ret: zeroed or of denials_done(); owned by the caller
 *
 * Takes no memory when there are none. Return: 0, -EPROTO or -ENOMEM, and then @ret is empty.
 */
int denials_take(struct denials *ret, struct reader message);

/** denials_done() - harmless on a zeroed one, or twice */
void denials_done(struct denials *d);

enum { DENIAL_PLACE_BYTES = 320 };

/**
 * denial_place() - where it went, for people: "example.net:443", "[2001:db8::1]:53", "foo.test"
 *
 * The name if there is one, else the address; without a port if that is not known. Cut when long;
 * characters are as the guest chose them.
 */
void denial_place(const struct denial *x, char buf[static DENIAL_PLACE_BYTES]);

/**
 * denials_first_of_place() - whether no item before @i went to the same place
 *
 * A name that was asked for and then connected to has two.
 */
bool denials_first_of_place(const struct denial *items, size_t i);

/* SPDX-License-Identifier: Apache-2.0 */
/* An entry of backend.publish: [ADDR:]HOSTPORT:PORT, a port of the host that leads inside. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "core/address.h"

struct published {
    struct address address; /* of the host; 127.0.0.1 unless given */
    uint16_t host_port;     /* 0: one that is free is picked */
    uint16_t port;          /* inside, on its loopback */
};

/* "[V6]:65535:65535" with its terminator. */
#define PUBLISHED_TEXT_BYTES (ADDRESS_TEXT_BYTES + 14)

/**
 * published_parse() - read one entry
 *
 * An IPv6 address is in brackets; an address that nothing can listen on (multicast, broadcast) is
 * refused; 0.0.0.0 and [::] are every address of the host. Return: 0, or -EINVAL with a usage error
 * that quotes the entry.
 */
int published_parse(const char *text, struct published *ret, struct error *err);

/** published_format() - "127.0.0.1:8080:80", always with the address */
void published_format(const struct published *p, char buf[static PUBLISHED_TEXT_BYTES]);

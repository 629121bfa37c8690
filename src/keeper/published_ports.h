/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners of the host's ports that lead into a sandbox, from backend.publish. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/spec.h"

struct published_ports {
    int *listeners;           /* owned; NULL once egress has them */
    uint16_t *inside;         /* the port inside, of each */
    size_t n;                 /* listeners */
    struct string_list texts; /* ADDR:PORT:PORT, with the ports that were picked */
};

/**
 * published_ports_open() - bind and listen on all of them
 * @list: entries as core/published.h reads them
 *
 * Return: 0, or a negative errno with an error that names the entry, such as for a port in use.
 * Then none is left open.
 */
int published_ports_open(const struct string_list *list, struct published_ports *ret,
                         struct error *err);

/** published_ports_close() - close the listeners here: egress has its own copies */
void published_ports_close(struct published_ports *p);

/** published_ports_done() - free everything; harmless on a zeroed one */
void published_ports_done(struct published_ports *p);

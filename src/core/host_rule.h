/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of allow_egress_to: HOST or HOST:PORT, where HOST is a full name, or one leading "*."
 * label and a full name. HOST alone is TLS on port 443; port 80 is HTTP; another port is TCP.
 *
 * A rule is matched with names that programs inside made up, so both are read by one strict reader,
 * and a name that is odd in any way (a zero byte, a '%', a '#', a blank, letters beyond ASCII) is
 * refused before it is compared with anything: nobody after the comparison can read it differently.
 *
 * Pure code: no call here blocks or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    HOST_NAME_BYTES_MAX = 253, /* RFC 1035, section 2.3.4, as text without the last dot */
    HOST_LABEL_BYTES_MAX = 63,
    HOST_RULE_BYTES_MAX = HOST_NAME_BYTES_MAX + 6, /* ":65535" */
    HOST_RULE_PORT_DEFAULT = 443,
    /*
     * Of what stands in a wildcard's star's place. Every name below a wildcard is a message to the
     * name server of its domain: this bounds one of them, and names of hosts are shorter.
     */
    HOST_WILDCARD_LABELS_MAX = 5,
    HOST_WILDCARD_BYTES_MAX = 100, /* with the dots between its labels */
};

/* A name in its one form: lower case, no dot at its end. Made by host_name_read() only. */
struct host_name {
    char text[HOST_NAME_BYTES_MAX + 1];
};

struct host_rule {
    char text[HOST_RULE_BYTES_MAX + 1]; /* as written */
    struct host_name name;              /* without the wildcard */
    bool wildcard; /* names below, as far as host_wildcard_holds(), and not itself */
    uint16_t port; /* as written, or HOST_RULE_PORT_DEFAULT */
};

/**
 * host_name_read() - @n bytes as a name that someone asked for
 *
 * Labels of 1 to 63 letters, digits, hyphens within, and underscores (which host names have not,
 * RFC 952, but which live below wildcards); one dot at the end is dropped. What programs may take
 * for an address, since its last label is a number (WHATWG URL, "ends in a number"), is no name.
 * Return: 0, or -EINVAL.
 */
int host_name_read(const char *s, size_t n, struct host_name *ret);

/** host_name_is_localhost() - localhost and what is below it (RFC 6761, section 6.3) */
bool host_name_is_localhost(const struct host_name *name);

/**
 * host_name_of_service() - whose service a name like "_http._tcp.HOST" tells of (RFC 2782)
 *
 * Return: HOST, a view of @name; or NULL, it is no such name.
 */
const char *host_name_of_service(const struct host_name *name);

/**
 * host_rule_parse() - read one entry
 *
 * Return: 0, or -EINVAL with a usage error that quotes the entry, says what is wrong with it, and
 * as remedy what to write instead.
 */
int host_rule_parse(const char *text, struct host_rule *ret, struct error *err);

/** host_wildcard_holds() - whether @n bytes, labels of a name, may stand in a star's place */
bool host_wildcard_holds(const char *s, size_t n);

/** host_rule_matches() - whether the rule lists @name, on its port */
bool host_rule_matches(const struct host_rule *rule, const struct host_name *name);

/** host_rule_equal() - whether two rules allow the same */
bool host_rule_equal(const struct host_rule *a, const struct host_rule *b);

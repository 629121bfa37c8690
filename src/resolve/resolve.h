/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `resolve`: it looks names up for one sandbox's egress (wire/resolve.h), outside, and
 * does nothing else. Descriptor 3 is the socket that questions come from; without an argument the
 * host's own way is used, with ADDR[:PORT] the name server there.
 *
 *   main.c        the threads, each with one question at a time
 *   host_way.c    getaddrinfo(3) and what nsswitch.conf(5) says
 *   name_server.c questions to one name server, by UDP and TCP
 *
 * It is a program of its own with the host's C library, since the host's way is made of shared
 * libraries. What it reads of the network is foreign: it runs without privilege, can open no more
 * privileges, and what it says is judged again by egress.
 */
#pragma once

#include <netinet/in.h>

#include "wire/resolve.h"

/**
 * host_way_resolve() - as the host's own programs would look @name up, but absolute
 *
 * Blocks for as long as the host's libraries do.
 */
void host_way_resolve(const char *name, struct resolve_answer *ret);

/* Where a name server is. */
struct name_server {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t len;
};

/** name_server_parse() - ADDR, ADDR:PORT, [V6] or [V6]:PORT; 0 or -EINVAL */
int name_server_parse(const char *text, struct name_server *ret);

/**
 * name_server_resolve() - ask it for both families at once
 *
 * Blocks: three tries of 3 seconds, and 3 more for each answer that has to be fetched by TCP.
 */
void name_server_resolve(const struct name_server *s, const char *name, struct resolve_answer *ret);

/** answer_add() - one more address, unless it is there already or the answer is full */
void answer_add(struct resolve_answer *x, uint8_t family, const void *bytes);

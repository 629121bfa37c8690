/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of a connection to port 80 of a name: each has to be for that name, and none goes on
 * before that is known. They go through a buffer here; the answers are spliced. After an answer of
 * 101 to a request that asked for it, both ways are spliced and nothing is read any more.
 */
#pragma once

#include <stdbool.h>

struct flow;
struct relay;

enum { HTTP_BUFFER_FIRST = 16 * 1024 }; /* grows only while a head is longer */

/** http_flow_new() - begin with @f; 0 or -ENOMEM */
int http_flow_new(struct flow *f);
void http_flow_free(struct flow *f);

/** http_read() - read and judge before there is a connection outside; the flow may be over */
void http_read(struct flow *f);

/** http_relay() - set up what the relay has to leave to this part; before relay_start() */
void http_relay(struct flow *f);

/** http_bytes() - that came of the program */
unsigned long long http_bytes(const struct flow *f);

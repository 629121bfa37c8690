/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a backend program says of itself (DESCRIBE), as the data that a spec is checked against
 * before anything is made.
 */
#pragma once

#include "client/session.h"
#include "core/capability.h"

struct description {
    struct session_request request;
    struct capability capability; /* owned; description_done() */
    char name[64];                /* as the program calls itself; empty: not told */
    void *owner;
    /* The answer is here, or @err says why not. No further call. */
    void (*told)(struct description *d, const struct error *err);
};

/**
 * description_ask() - ask for it
 * @d: zeroed but for owner and told; it must stay where it is until then or description_done()
 *
 * Return: 0, or a negative errno with an error, and then no call comes.
 */
int description_ask(struct description *d, struct session *s, struct error *err);

/** description_admits() - whether the backend can keep @spec; 0, or -EINVAL naming each refusal */
int description_admits(const struct description *d, const struct spec *spec, struct error *err);

/** description_done() - free it, and ask no further; harmless on a zeroed one */
void description_done(struct description *d);

/**
 * description_fetch_wait() - start the program of backend @name, ask, and end it
 * @d: zeroed; filled on success
 *
 * Blocks, as long as a program may take to greet and to answer. For `check` and `backends`.
 * Return: 0, or a negative errno with an error.
 */
int description_fetch_wait(struct description *d, const char *name, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that stands, as the commands that work on one have it: found by what was typed, opened
 * through libatoll, and waited for together with a command's own descriptors.
 *
 * Wherever ID stands on the command line it is one of: a whole id ("sb-…", or "BACKEND:…" of a
 * backend program); the name that was given with `create --name`; the beginning of an id, with at
 * least 6 characters after "sb-", if no other sandbox that lives begins so.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "atoll.h"
#include "base/error.h"

struct handle {
    struct atoll *context;
    struct atoll_sandbox *sandbox; /* NULL until handle_open() */
    char *id;                      /* whole; owned */
    int signal_fd;                 /* -EBADF unless handle_catch_signals() was called */
    int signal;                    /* the one that has come, or 0 */
};

#define HANDLE_INIT                                                                                \
    {                                                                                              \
        .signal_fd = -EBADF                                                                        \
    }

/** handle_begin() - a context without a sandbox; SIGPIPE is ignored from now on */
int handle_begin(struct handle *h, struct error *err);

/**
 * handle_open() - open the sandbox that @text names; begins if that was not done
 *
 * Return: 0, or a negative errno with an error: -ENOENT when it is gone or was never there.
 */
int handle_open(struct handle *h, const char *text, struct error *err);

/**
 * handle_open_to_change() - the same, to do more there than to read
 *
 * Under "atoll hold" of this sandbox it acts for the holder: handle_lease().
 */
int handle_open_to_change(struct handle *h, const char *text, struct error *err);

/* Set by "atoll hold" for its command: ID#GENERATION. */
#define HANDLE_LEASE_VARIABLE "ATOLL_LEASE"

/**
 * handle_lease() - the lease that the environment gives for sandbox @id
 * @id: whole
 *
 * Return: 0 with its generation, 0 for none: the variable is not set, or of another sandbox, or
 * that has tags and no lease; -EINVAL with a usage error when it is not to be understood.
 */
int handle_lease(const char *id, uint32_t *ret, struct error *err);

/**
 * handle_within() - the same, and whether that is of sandbox @id at all
 *
 * Of one that has tags and no lease, the generation is 0.
 */
int handle_within(const char *id, bool *ret, uint32_t *generation_ret, struct error *err);

/** handle_done() - let go of it; the sandbox lives on. Harmless on HANDLE_INIT */
void handle_done(struct handle *h);

/**
 * handle_find() - the whole id of the sandbox that @text names
 *
 * Asks no sandbox; an id that is whole is not looked for. Return: 0 with @ret owned by the caller,
 * or a negative errno with an error.
 */
int handle_find(const char *text, char **ret, struct error *err);

/** handle_is_name() - whether a sandbox may be called @s: a letter or digit, then up to 62 letters,
 * digits, '.', '_' and '-'; no id, and no name of a backend */
bool handle_is_name(const char *s);

/** handle_may_mean() - whether @n bytes could be an id, the beginning of one, or a name */
bool handle_may_mean(const char *s, size_t n);

/**
 * handle_catch_signals() - from now on SIGINT, SIGTERM, SIGHUP and SIGQUIT end a wait
 *
 * For commands that have to clean up; handle_status() then says what to return.
 */
int handle_catch_signals(struct handle *h, struct error *err);

enum { HANDLE_POLL_MAX = 4 };

/**
 * handle_poll() - wait until one of @fds is ready or the context has moved on
 * @fds: as for poll(2); revents are set
 * @n:   up to HANDLE_POLL_MAX
 * @until_us: CLOCK_MONOTONIC; CLOCK_NEVER
 *
 * Return: 0, also when the time is over; -EINTR with an error when a signal came; a negative errno.
 */
int handle_poll(struct handle *h, struct pollfd *fds, size_t n, uint64_t until_us,
                struct error *err);

/** handle_wait() - wait until @op is done; 0, or its negative errno with an error */
int handle_wait(struct handle *h, struct atoll_op *op, struct error *err);

/** handle_result() - how a done operation went: 0, or its negative errno with an error */
int handle_result(const struct atoll_op *op, struct error *err);

/**
 * handle_status() - the exit status of a command that has returned @r
 *
 * 128 + N after a signal, when @err is emptied; else @r.
 */
int handle_status(const struct handle *h, int r, struct error *err);

/* For _cleanup_() on a struct atoll_op *. */
static inline void handle_op_freep(struct atoll_op **op)
{
    atoll_op_free(*op);
}

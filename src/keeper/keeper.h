/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the process that owns one local sandbox. It speaks the sandbox protocol with the
 * caller on one socket and with init on another, holds the timers, and ends the sandbox when its
 * caller is gone. It stands in a session of its own, so that a terminal's signals do not reach it.
 *
 * What init sends is treated as hostile: it is bounded, decoded in src/wire, checked against what
 * was asked, and anything else ends the sandbox.
 *
 *   creating -> running -> ending        (ENDED is the last message; then the process exits)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/channel.h"
#include "core/spec.h"
#include "local/sandbox.h"
#include "wire/control.h"

enum keeper_state { KEEPER_NEW, KEEPER_CREATING, KEEPER_RUNNING, KEEPER_ENDING };

struct keeper_command;

struct keeper {
    struct loop loop;
    enum keeper_state state;
    struct channel client, init;
    struct loop_source client_source, init_source, signal_source, process_source;
    struct loop_timer create_timer, lifetime_timer;
    struct spec spec;
    struct sandbox sandbox;
    uint32_t create_id;
    bool greeted; /* HELLO came */
    bool ready;   /* READY came */
    enum ended_by ended_by;
    struct keeper_command *commands;
    size_t n_commands;
};

/**
 * keeper_main() - keep one sandbox for the caller at the other end of @client_fd
 * @client_fd: a SOCK_SEQPACKET socket, taken
 *
 * To be called in a process of its own, which becomes the keeper: it leaves the session, closes
 * every other descriptor and points 0, 1 and 2 at /dev/null. Returns the process's exit status when
 * the sandbox is over and nothing of it is left.
 */
int keeper_main(int client_fd);

/** keeper_send() - a message to the caller; when it is gone, the sandbox ends */
void keeper_send(struct keeper *k, uint16_t type, uint32_t id, const struct writer *w, int fd);

/**
 * keeper_tell_init() - a message to init, or into the queue for it
 * @fds: borrowed
 *
 * Return: 0, or a negative errno when init is gone or takes nothing any more.
 */
int keeper_tell_init(struct keeper *k, uint16_t type, uint32_t id, const void *payload, size_t len,
                     const int *fds, size_t n_fds);

/** keeper_refuse() - MSG_ERROR for request @id */
void keeper_refuse(struct keeper *k, uint32_t id, const struct error *err);

/** keeper_end() - end the sandbox now, tell the caller, and stop the loop */
void keeper_end(struct keeper *k, enum ended_by by);

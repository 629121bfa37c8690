/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the process that owns one local sandbox. It speaks the sandbox protocol with its
 * clients and with init, holds the timers, and ends the sandbox when its time has come. It stands
 * in a session of its own, so that a terminal's signals do not reach it.
 *
 * An owned sandbox has one client, and ends with it. One that is held has a socket in the state
 * folder (core/state.h), which clients come to and leave.
 *
 * What init sends is treated as hostile: it is bounded, decoded in src/wire, checked against what
 * was asked, and anything else ends the sandbox.
 *
 * Its states and the steps between them are those of core/lifecycle.h. ENDED is the last message;
 * then the process exits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/channel.h"
#include "core/cost.h"
#include "core/lease.h"
#include "core/lifecycle.h"
#include "core/sandbox_id.h"
#include "core/spec.h"
#include "keeper/egress.h"
#include "keeper/events.h"
#include "local/sandbox.h"
#include "wire/control.h"

/* States of core/lifecycle.h, as they are called here. Only keeper.c leads from one to the next. */
enum keeper_state {
    KEEPER_NEW = LIFECYCLE_NOTHING,
    KEEPER_CREATING = STATE_CREATING,
    KEEPER_RUNNING = STATE_RUNNING,
    KEEPER_ENDING = STATE_ENDING,
    KEEPER_GONE = STATE_GONE,
};

struct connection;
struct keeper_command;
struct stop;
struct policy_change;

/* What ends a sandbox by itself: keeper/ending.h. Zeroed: nothing is counted. */
struct ending {
    int fd; /* a timerfd of CLOCK_BOOTTIME, owned, once at_us is set */
    struct loop_source source;
    uint64_t at_us;   /* CLOCK_BOOTTIME; 0: the lifetime has no end, or has not begun */
    uint64_t life_us; /* how long it was when it began, or was extended */
    bool warned;      /* that little is left */
    struct loop_timer idle;
    uint64_t active_us;   /* CLOCK_MONOTONIC: when something was done last, but for what runs */
    uint32_t connections; /* to published ports: BUSY of egress */
};

/* What it has used and cost: keeper/usage.h. Zeroed: nothing is counted. */
struct usage {
    struct prices prices;
    struct loop_timer timer;                         /* when to look next */
    uint64_t looked_us, memory_bytes, memory_kib_ms; /* at the last look, and up to it */
    bool warned;                                     /* that little of max_cost is left */
    uint64_t oom_noted, oom_told; /* kills that were told as events, and as a command's end */
};

struct keeper {
    struct loop loop;
    uint32_t state;                 /* enum keeper_state */
    struct connection *connections; /* all clients */
    struct connection *creator;     /* the one that sent CREATE, while it is there */
    struct channel init;
    int listen_fd; /* of a held sandbox, owned; else -EBADF */
    struct loop_source listen_source, init_source, signal_source, process_source;
    struct loop_timer create_timer, listen_timer, rest_timer;
    struct ending ending;
    struct usage usage;
    struct spec spec;
    struct sandbox sandbox;
    struct keeper_egress egress;
    struct place place;
    char id[SANDBOX_ID_BYTES];
    uint64_t created_at_us, expires_at_us; /* since the epoch; 0: never */
    uint32_t create_id;
    bool ready; /* READY came */
    enum ended_by ended_by;
    struct keeper_command *commands;
    size_t n_commands;
    uint32_t last_number; /* of a command */
    uint32_t last_files;  /* of a process that serves files */
    struct stop *stops;   /* requests that wait for commands to end */
    struct event_log events;
    uint32_t policy_generation;          /* 1 at the start, one more with each change */
    struct policy_change *policy_change; /* that somebody waits for; NULL: none */
    struct lease lease;
    struct connection *lease_connection; /* that attached; NULL unless it is LEASE_HELD */
    bool lease_settling; /* its ATTACH, of this id, is answered when others have come to rest */
    uint32_t lease_attach_id;
    struct loop_timer lease_timer; /* LEASE_KEPT: when that is over */
    uint32_t lease_first;          /* number of the first command that may be of this lease */
    uint32_t lease_rests;          /* init was asked so often to end what leases have left behind */
    struct loop_timer rests_timer; /* when it must have */
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

/** keeper_create() - CREATE of @c: start a sandbox, or refuse */
void keeper_create(struct keeper *k, struct connection *c, struct message *m);

/**
 * keeper_tell_init() - a message to init, or into the queue for it
 * @fds: borrowed
 *
 * Return: 0, or a negative errno when init is gone or takes nothing any more.
 */
int keeper_tell_init(struct keeper *k, uint16_t type, uint32_t id, const void *payload, size_t len,
                     const int *fds, size_t n_fds);

/** keeper_stirred() - something was asked or has ended: the time until it rests starts again */
void keeper_stirred(struct keeper *k);

/** keeper_record() - write record.json anew, with @expires_at_us; 0 or a negative errno */
int keeper_record(const struct keeper *k, uint64_t expires_at_us);

/**
 * keeper_admit() - whether this backend can keep a spec: 0, or -EINVAL naming each refusal
 *
 * Whoever asks, and however: what cannot be enforced is refused, not left out.
 */
int keeper_admit(const struct spec *s, struct error *err);

/** keeper_fail() - end it for @err, which whoever waits for its creation is told */
void keeper_fail(struct keeper *k, const struct error *err);

/** keeper_end() - end the sandbox now, tell the clients, and stop the loop */
void keeper_end(struct keeper *k, enum ended_by by);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to a sandbox, one JSON object a line, in events.jsonl of its folder in the state
 * folder and in the file of backend.audit (keeper/event_log.h); and what a command is told of the
 * attempts that were refused while it ran. events.jsonl is bounded: at EVENTS_BYTES_MAX lines of
 * the older half go, refusals first, and a line in their place says how many. Whoever reads it has
 * either the file before that or the one after it, whole lines in both
 * (docs/reference/json/events.schema.json).
 *
 * Texts from inside and from callers, such as arguments, paths and names that were looked up, are
 * shown without the values of the spec's variables that have 4 bytes or more: those are masked
 * before anything is cut. Who a sandbox and a lease belong to, and the policy, are shown as they
 * are.
 */
#pragma once

#include "keeper/event_log.h"
#include "wire/denial.h"

struct connection;
struct exec_request;
struct keeper;
struct keeper_command;
struct message;

enum {
    DENIALS_OF_COMMAND = 16,         /* different ones that EXITED tells; the rest is counted */
    EVENTS_ARGUMENTS_MAX = 4 * 1024, /* bytes of a command's arguments that its line shows */
    EVENT_DENIALS_AT_ONCE = 200,     /* lines about refusals, of a sandbox that was quiet */
    EVENT_DENIALS_PER_SECOND = 2,    /* and from then on */
};

/**
 * events_open() - make the file of a held sandbox; 0 or -errno. An owned one has none.
 *
 * If that fails it is tried again with the next event.
 */
int events_open(struct keeper *k);
void events_close(struct keeper *k);

/** events_audit() - open the file of backend.audit, if there is to be one; 0 or -errno */
int events_audit(struct keeper *k, struct error *err);

/**
 * events_denied() - a refusal: a line, and a note for each command that runs
 *
 * Beyond EVENT_DENIALS_PER_SECOND one line waits for its turn, or for the end, and those that come
 * meanwhile are counted in its "dropped". The commands hear of all.
 */
void events_denied(struct keeper *k, const struct denial *x);

/** events_state() - "created", or "ended" with @by as ended_by_name() and what it has used */
void events_state(struct keeper *k, const char *what, const char *by);

/**
 * events_ending() - its folder goes now, and all of it
 *
 * What it has used is known now, and will not be when nothing of it is left. What follows is added
 * to events.jsonl without a bound, for who still reads it.
 */
void events_ending(struct keeper *k);

/**
 * events_arguments() - what the line of a command that starts will show of @x
 *
 * Return: owned by the caller, for keeper_command.told; NULL: nobody asks for it, or no memory.
 */
char *events_arguments(struct keeper *k, const struct exec_request *x);

/** events_command() - "started", "exited": a command of a client, its masked arguments, its end */
void events_command(struct keeper *k, const char *what, const struct keeper_command *c);

/** events_lease() - "attached", "released", "lost", "expired", "refused" and whose: of names the
 * first LIMIT_TEXT_BYTES */
void events_lease(struct keeper *k, const char *what, const char *owner, const char *holder,
                  uint32_t generation);

/** events_limit() - "lifetime_near", "lifetime_extended", "oom", "cost_near", "cost":
 * @value is microseconds, bytes or millionths, as @what has it */
void events_limit(struct keeper *k, const char *what, uint64_t value);

/** events_exported() - EXPORTED of a client: what has left, or why not */
void events_exported(struct connection *c, struct message *m);

/** events_policy() - the policy was changed, to what @stamp says */
void events_policy(struct keeper *k, uint32_t generation, const char *stamp, uint32_t cut);

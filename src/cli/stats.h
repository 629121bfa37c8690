/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes use, as a table and as JSON (docs/reference/json/stats.schema.json). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "atoll.h"
#include "base/error.h"

struct handle;

enum stats_answer {
    STATS_WAITED, /* it is to be asked, or its answer is waited for */
    STATS_KNOWN,
    STATS_GONE,   /* it was there, and is no more */
    STATS_SILENT, /* it stands, and gave no answer in time, or none that could be used */
};

/* One sandbox. What is 0 was not measured, or is not there. */
struct stats_row {
    char *id, *name, *owner; /* owned; name and owner may be NULL */
    enum stats_answer answer;
    struct atoll_info info; /* STATS_KNOWN: the numbers of it alone */

    /* Its own. */
    bool found; /* id is a whole one */
    struct atoll_op *open, *inspect;
    struct atoll_sandbox *sandbox;
    uint64_t until_us; /* CLOCK_MONOTONIC: how long it is waited for; of a silent one that is not
                          being asked: when it is asked again */
};

/* All of them, asked in turns: stats_turn(), then stats_step() until that returns 1. */
struct stats {
    struct handle *h;   /* borrowed: what they are asked on */
    char *const *names; /* borrowed; NULL: all local ones that live */
    bool strict;
    struct stats_row *rows;
    size_t n;
};

/* How long an answer is waited for: of a keeper, which is on this host, and of a program that may
 * have to ask others. */
#define STATS_KEEPER_US  UINT64_C(2000000)
#define STATS_BACKEND_US UINT64_C(30000000)

/**
 * stats_turn() - begin to ask all of them
 * @s:      with h, which was begun, and names set; else zeroed before the first turn
 * @strict: one of the names that is not there, or fails, is an error; otherwise it is a row that
 *          says so. Without names neither is an error, and one that is gone is no row
 *
 * Return: 0, or a negative errno with an error.
 */
int stats_turn(struct stats *s, bool strict, struct error *err);

/**
 * stats_step() - go on with it as far as that can be done without waiting
 * @ret_until: when to call again, if nothing happens on the handle before (handle_poll())
 *
 * They are asked side by side. One that was silent in the turn before is not waited for: its answer
 * is there in the turn after it has come. Return: 1 when no more is to be waited for; 0; or a
 * negative errno with an error.
 */
int stats_step(struct stats *s, uint64_t *ret_until, struct error *err);

/** stats_read() - a whole turn; blocks. 0, or a negative errno with an error */
int stats_read(struct stats *s, bool strict, struct error *err);

/** stats_done() - let go of all; the handle must still be there. Harmless on a zeroed one */
void stats_done(struct stats *s);

/**
 * stats_print() - a line for each
 * @width: of a terminal, which no line is to be wider than; 0: there is none
 * @end:   of each line
 */
void stats_print(FILE *f, const struct stats *s, unsigned width, unsigned rows, const char *end);

/** stats_json() - a new reference; NULL without memory */
json_t *stats_json(const struct stats *s);

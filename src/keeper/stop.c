/* SPDX-License-Identifier: Apache-2.0 */
/* STOP: ending commands by number, and telling when nothing of them is left. */
#include <errno.h>
#include <stdlib.h>

#include "keeper/command.h"
#include "keeper/lease.h"
#include "base/guards.h"

struct stop {
    struct stop *next;
    struct connection *connection;
    uint32_t id;
    uint32_t first, last; /* numbers of the commands that are to end */
};

/* One whose processes are gone is over, though its client may be slow to take its last output. */
static bool has_processes(const struct keeper_command *c)
{
    return !c->exited || (c->killing && !c->killed);
}

static bool is_meant(const struct stop *s, const struct keeper_command *c)
{
    return c->number >= s->first && c->number <= s->last && !(c->flags & EXEC_FILES) &&
           has_processes(c);
}

static bool is_over(const struct keeper *k, const struct stop *s)
{
    for (const struct keeper_command *c = k->commands; c; c = c->next)
        if (is_meant(s, c))
            return false;
    return true;
}

void stops_check(struct keeper *k)
{
    uint8_t buf[16];

    for (struct stop **p = &k->stops; *p;) {
        struct stop *s = *p;

        if (!is_over(k, s)) {
            p = &s->next;
            continue;
        }
        struct writer nothing = writer_over(buf, sizeof buf);
        *p = s->next;
        connection_send(s->connection, MSG_DONE, s->id, &nothing, -EBADF);
        free(s);
    }
}

void stops_forget(struct keeper *k, const struct connection *gone)
{
    for (struct stop **p = &k->stops; *p;) {
        struct stop *s = *p;

        if (s->connection == gone) {
            *p = s->next;
            free(s);
        } else {
            p = &s->next;
        }
    }
}

void stops_done(struct keeper *k)
{
    while (k->stops) {
        struct stop *s = k->stops;

        k->stops = s->next;
        free(s);
    }
}

static bool exists(const struct keeper *k, uint32_t number)
{
    for (const struct keeper_command *c = k->commands; c; c = c->next)
        if (c->number == number && !(c->flags & EXEC_FILES) && has_processes(c))
            return true;
    return false;
}

static int stop_checked(struct connection *c, struct message *m, struct error *err)
{
    struct keeper *k = c->keeper;
    uint32_t number;

    if (lease_admits(c, err) < 0)
        return -err->code;
    if (number_decode(m->payload, TAG_COMMAND_NUMBER, &number) < 0)
        return error_set(err, ERROR_USAGE, EPROTO, "STOP has no command number");
    if (number != 0 && !exists(k, number)) {
        error_set(err, ERROR_RECOVERABLE, ESRCH, "no command %u is running", number);
        return error_remedy(err, "\"atoll ps\" shows those that do");
    }
    const struct stop asked = {
        .next = k->stops,
        .connection = c,
        .id = m->id,
        .first = number ? number : 1,
        .last = number ? number : k->last_number,
    };
    struct stop *s = malloc(sizeof *s);
    if (!s)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    *s = asked;
    k->stops = s;
    for (struct keeper_command *x = k->commands; x; x = x->next) {
        if (!is_meant(&asked, x))
            continue;
        x->stopped = true;
        command_kill(x);
        if (k->state == KEEPER_ENDING) /* init is gone, and with the sandbox all commands */
            return 0;
    }
    stops_check(k);
    return 0;
}

void commands_stop(struct connection *c, struct message *m)
{
    struct error err = ERROR_INIT;

    if (stop_checked(c, m, &err) < 0)
        connection_refuse(c, m->id, &err);
}

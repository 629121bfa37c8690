/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of sandboxes: asked for, and shown. */
#include "cli/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/handle.h"
#include "cli/sandbox_text.h"
#include "core/sandbox_id.h"
#include "wire/json_text.h"
#include "base/guards.h"

enum {
    CELL_BYTES = 24,
    NAME_BYTES = 128,
    NAME_MIN = 13, /* the shortest beginning of an id that is shown */
    LINE_BYTES = 512,
};

/* --- asking --- */

enum { AT_ONCE = 64 }; /* each has a descriptor, of which a process may have no more than 1024 */

/* When a silent one is asked again. Each try leaves a connection in the queue of a keeper that does
 * not answer, and once that is full, connecting blocks for seconds (core/state.c). */
#define AGAIN_US      UINT64_C(30000000)
#define AGAIN_FULL_US UINT64_C(300000000)

#define BLOCKED_US UINT64_C(100000) /* so long no connecting takes that does not wait */

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static void let_go(struct stats_row *row)
{
    atoll_op_free(row->open);
    atoll_op_free(row->inspect);
    if (row->sandbox)
        atoll_sandbox_free(row->sandbox);
    row->open = row->inspect = NULL;
    row->sandbox = NULL;
}

static void row_done(struct stats_row *row)
{
    let_go(row);
    free(row->id);
    free(row->name);
    free(row->owner);
}

void stats_done(struct stats *s)
{
    for (size_t i = 0; i < s->n; i++)
        row_done(&s->rows[i]);
    free(s->rows);
    s->rows = NULL;
    s->n = 0;
}

/* Return: whether there was memory. */
static bool replace(char **io, const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        return false;
    free(*io);
    *io = copy;
    return true;
}

static int take(struct stats_row *row, const struct atoll_info *i, struct error *err)
{
    if (!replace(&row->name, i->name) || !replace(&row->owner, i->owner))
        return no_memory(err);
    row->info = *i;
    return 0;
}

static uint64_t patience(const char *id)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];

    return sandbox_id_split(id, backend) && strcmp(backend, "local") != 0 ? STATS_BACKEND_US
                                                                          : STATS_KEEPER_US;
}

/* @name: as typed; NULL: the id is known. */
static int begin(struct stats_row *row, struct handle *h, const char *name, struct error *err)
{
    if (!row->found) {
        char *id = NULL;
        int r = handle_find(name, &id, err);

        if (r < 0)
            return r;
        free(row->id);
        row->id = id;
        row->found = true;
    }
    row->open = atoll_open(h->context, row->id);
    row->until_us = clock_after_us(patience(row->id));
    return row->open ? 0 : no_memory(err);
}

/* Return: 1 while its answer is not there, 0 when it was taken, or a negative errno with an error.
 */
static int go_on(struct stats_row *row, struct error *err)
{
    int r;

    if (!row->sandbox) {
        if (!atoll_op_done(row->open))
            return 1;
        r = handle_result(row->open, err);
        if (r < 0)
            return r;
        row->sandbox = atoll_op_sandbox(row->open);
        row->inspect = atoll_inspect(row->sandbox);
    }
    if (row->inspect && !atoll_op_done(row->inspect))
        return 1;
    r = handle_result(row->inspect, err);
    return r < 0 ? r : take(row, atoll_op_info(row->inspect, 0), err);
}

static bool means_gone(int r)
{
    return r == -ENOENT || r == -EPIPE || r == -ESHUTDOWN;
}

/* It stands, and nobody lets us in or greets us. */
static bool means_silent(int r)
{
    return r == -EAGAIN || r == -ETIMEDOUT;
}

/* @r is how asking it went. Return: 0, or @r if that is to end the turn. */
static int settle(const struct stats *s, struct stats_row *row, int r, struct error *err)
{
    let_go(row);
    if (r == 0) {
        row->answer = STATS_KNOWN;
        return 0;
    }
    if (s->strict && !means_silent(r))
        return r;
    row->answer = means_gone(r) ? STATS_GONE : STATS_SILENT;
    row->until_us = clock_after_us(r == -EAGAIN ? AGAIN_FULL_US : AGAIN_US);
    if (row->answer == STATS_GONE && s->names) /* another one may have its name next time */
        row->found = false;
    *err = (struct error)ERROR_INIT;
    return 0;
}

/* Goes on with one that is being asked. Return: 0, or a negative errno that ends the turn. */
static int advance(const struct stats *s, struct stats_row *row, struct error *err)
{
    int r = go_on(row, err);

    if (r <= 0)
        return settle(s, row, r, err);
    if (row->answer == STATS_WAITED && clock_now_us() >= row->until_us)
        row->answer = STATS_SILENT; /* what it says later is taken then */
    return 0;
}

/* Those that are over since the list was made. */
static void forget_gone(struct stats *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].answer == STATS_GONE)
            row_done(&s->rows[i]);
        else
            s->rows[n++] = s->rows[i];
    s->n = n;
}

static bool is_due(const struct stats_row *row)
{
    return !row->open && (row->answer == STATS_WAITED ||
                          (row->answer == STATS_SILENT && clock_now_us() >= row->until_us));
}

/* What answers came while connecting to another one blocked is not read yet. */
static void postpone(struct stats *s, uint64_t us)
{
    for (size_t i = 0; us >= BLOCKED_US && i < s->n; i++)
        if (s->rows[i].open)
            s->rows[i].until_us += us;
}

static int begin_one(struct stats *s, size_t i, struct error *err)
{
    struct stats_row *row = &s->rows[i];
    const uint64_t before = clock_now_us();
    int r = begin(row, s->h, s->names ? s->names[i] : NULL, err);

    postpone(s, clock_now_us() - before);
    return r < 0 ? settle(s, row, r, err) : advance(s, row, err);
}

static bool is_waited_for(const struct stats_row *row)
{
    return row->open && row->answer == STATS_WAITED;
}

/* Those that were not asked yet, as far as there is room; and one of those that were silent, so
 * that it does not block for long. */
static int begin_some(struct stats *s, struct error *err)
{
    size_t under_way = 0;
    bool again = false;
    int r = 0;

    for (size_t i = 0; i < s->n; i++)
        under_way += is_waited_for(&s->rows[i]);
    for (size_t i = 0; r == 0 && i < s->n; i++) {
        const bool was_silent = s->rows[i].answer == STATS_SILENT;

        if (!is_due(&s->rows[i]) || (was_silent ? again : under_way >= AT_ONCE))
            continue;
        again = again || was_silent;
        r = begin_one(s, i, err);
        under_way += is_waited_for(&s->rows[i]);
    }
    return r;
}

int stats_step(struct stats *s, uint64_t *ret_until, struct error *err)
{
    size_t left = 0;
    int r = 0;

    *ret_until = CLOCK_NEVER;
    for (size_t i = 0; r == 0 && i < s->n; i++)
        if (s->rows[i].open)
            r = advance(s, &s->rows[i], err);
    if (r == 0)
        r = begin_some(s, err);
    for (size_t i = 0; i < s->n; i++) {
        left += s->rows[i].answer == STATS_WAITED;
        if (is_waited_for(&s->rows[i]) && s->rows[i].until_us < *ret_until)
            *ret_until = s->rows[i].until_us;
    }
    if (left > 0 && *ret_until == CLOCK_NEVER) /* there is room now for those that had none */
        *ret_until = 0;
    if (r < 0 || left > 0)
        return r;
    if (!s->names)
        forget_gone(s);
    return 1;
}

/* The one of an earlier turn that is not answered yet, if there is one. */
static struct stats_row *silent(const struct stats *s, const char *id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].answer == STATS_SILENT && s->rows[i].id && strcmp(s->rows[i].id, id) == 0)
            return &s->rows[i];
    return NULL;
}

static int list_all(struct stats *s, struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_list(s->h->context, "local");
    struct stats more = {.h = s->h};
    int r = handle_wait(s->h, op, err);

    if (r < 0)
        return r;
    more.rows = calloc(atoll_op_count(op) + 1, sizeof *more.rows);
    if (!more.rows)
        return no_memory(err);
    for (size_t i = 0; r == 0 && i < atoll_op_count(op); i++) {
        const struct atoll_info *info = atoll_op_info(op, i);
        struct stats_row *row = &more.rows[more.n++], *before = silent(s, info->id);

        if (before) {
            *row = *before;
            *before = (struct stats_row){.answer = STATS_GONE};
        } else if (!replace(&row->id, info->id) || !replace(&row->name, info->name) ||
                   !replace(&row->owner, info->owner)) {
            r = no_memory(err);
        }
        row->found = true;
    }
    stats_done(s);
    s->rows = more.rows;
    s->n = more.n;
    return r;
}

static int list_named(struct stats *s, struct error *err)
{
    size_t n = 0;

    while (s->names[n])
        n++;
    s->rows = calloc(n + 1, sizeof *s->rows);
    if (!s->rows)
        return no_memory(err);
    for (s->n = 0; s->n < n; s->n++)
        if (!replace(&s->rows[s->n].id, s->names[s->n]))
            return no_memory(err);
    return 0;
}

int stats_turn(struct stats *s, bool strict, struct error *err)
{
    int r = !s->names ? list_all(s, err) : s->rows ? 0 : list_named(s, err);

    s->strict = strict && s->names;
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].answer != STATS_SILENT)
            s->rows[i].answer = STATS_WAITED;
    return r;
}

int stats_read(struct stats *s, bool strict, struct error *err)
{
    uint64_t until;
    int r = stats_turn(s, strict, err);

    while (r == 0 && (r = stats_step(s, &until, err)) == 0)
        r = handle_poll(s->h, NULL, 0, until, err);
    return r < 0 ? r : 0;
}

/* --- as a table --- */

static uint64_t left_us(const struct atoll_info *i)
{
    const uint64_t now = clock_epoch_us();

    return i->expires_at_us > now ? i->expires_at_us - now : 0;
}

static void cell_none(char buf[CELL_BYTES])
{
    (void)snprintf(buf, CELL_BYTES, "-");
}

/* "512", "1.5K", "20M": at most five characters. */
static void cell_bytes(char buf[CELL_BYTES], uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double v = (double)bytes;
    size_t unit = 0;

    if (bytes == 0) {
        cell_none(buf);
        return;
    }
    for (; v >= 999.5 && units[unit + 1]; unit++)
        v /= 1024;
    (void)snprintf(buf, CELL_BYTES, v < 9.95 && unit > 0 ? "%.1f%c" : "%.0f%c", v, units[unit]);
}

static void cell_millionths(char buf[CELL_BYTES], uint64_t n, int digits)
{
    if (n == 0)
        cell_none(buf);
    else
        (void)snprintf(buf, CELL_BYTES, "%.*f", digits, (double)n / 1e6);
}

static void cell_span(char buf[CELL_BYTES], const struct atoll_info *i)
{
    char words[SANDBOX_WORDS];

    sandbox_span_text(words, left_us(i));
    (void)snprintf(buf, CELL_BYTES, "%.*s", CELL_BYTES - 1, i->expires_at_us > 0 ? words : "-");
}

static const struct {
    const char *title;
    int width;
} columns[] = {
    {"CPU S", 8}, {"MEMORY", 6}, {"PEAK", 6},     {"LIMIT", 6}, {"DISK", 6},
    {"PROCS", 5}, {"SENT", 6},   {"RECEIVED", 8}, {"COST", 8},  {"LEFT", 8},
};

enum { N_COLUMNS = sizeof columns / sizeof *columns };

static void cells(char cell[N_COLUMNS][CELL_BYTES], const struct atoll_info *i)
{
    cell_millionths(cell[0], i->cpu_us, 2);
    cell_bytes(cell[1], i->memory_used);
    cell_bytes(cell[2], i->memory_peak);
    cell_bytes(cell[3], i->memory_limit);
    cell_bytes(cell[4], i->disk_used);
    (void)snprintf(cell[5], CELL_BYTES, "%u", i->processes);
    if (i->processes == 0)
        cell_none(cell[5]);
    cell_bytes(cell[6], i->egress_sent);
    cell_bytes(cell[7], i->egress_received);
    cell_millionths(cell[8], i->cost_micro, 4);
    cell_span(cell[9], i);
}

static const char *name_of(const struct stats_row *r)
{
    return r->name ? r->name : r->id;
}

static int name_width(const struct stats *s, unsigned width)
{
    int most = 7, rest = 0; /* SANDBOX */

    for (size_t i = 0; i < s->n; i++)
        if ((int)strlen(name_of(&s->rows[i])) > most)
            most = (int)strlen(name_of(&s->rows[i]));
    for (size_t c = 0; c < N_COLUMNS; c++)
        rest += columns[c].width + 1;
    if (width > 0 && most > (int)width - rest)
        most = (int)width - rest > NAME_MIN ? (int)width - rest : NAME_MIN;
    return most < NAME_BYTES ? most : NAME_BYTES - 1;
}

static void put_line(FILE *f, const char *line, unsigned width, const char *end)
{
    fprintf(f, "%.*s%s", width > 0 ? (int)width : LINE_BYTES, line, end);
}

static void line_of(char line[LINE_BYTES], const struct stats_row *r, int width)
{
    char name[NAME_BYTES], cell[N_COLUMNS][CELL_BYTES];

    (void)snprintf(name, sizeof name, "%.*s", width, name_of(r));
    text_make_printable(name);
    int at = snprintf(line, LINE_BYTES, "%-*s", width, name);
    if (r->answer != STATS_KNOWN) {
        (void)snprintf(line + at, LINE_BYTES - (size_t)at, " %s",
                       r->answer == STATS_GONE ? "gone" : "no answer");
        return;
    }
    cells(cell, &r->info);
    for (size_t c = 0; c < N_COLUMNS; c++)
        at += snprintf(line + at, LINE_BYTES - (size_t)at, " %*s", columns[c].width, cell[c]);
}

void stats_print(FILE *f, const struct stats *s, unsigned width, unsigned rows, const char *end)
{
    const int name = name_width(s, width);
    const size_t shown = rows > 1 && s->n > rows - 1 ? rows - 2 : s->n;
    char line[LINE_BYTES];
    int at = snprintf(line, sizeof line, "%-*s", name, "SANDBOX");

    for (size_t c = 0; c < N_COLUMNS; c++)
        at += snprintf(line + at, sizeof line - (size_t)at, " %*s", columns[c].width,
                       columns[c].title);
    put_line(f, line, width, end);
    for (size_t i = 0; i < shown; i++) {
        line_of(line, &s->rows[i], name);
        put_line(f, line, width, end);
    }
    if (shown < s->n) {
        (void)snprintf(line, sizeof line, "and %zu more", s->n - shown);
        put_line(f, line, width, end);
    }
}

/* --- as JSON --- */

static json_t *number(uint64_t n)
{
    return n > 0 ? json_integer((json_int_t)n) : json_null();
}

static json_t *text(const char *s)
{
    return s ? json_text(s) : json_null();
}

static json_t *row_json(const struct stats_row *r)
{
    const struct atoll_info none = {0}, *i = r->answer == STATS_KNOWN ? &r->info : &none;
    json_t *measured = sandbox_json_measured(i);
    json_t *o = json_pack("{s:o, s:o, s:o, s:b, s:{s:o, s:o}, s:{s:o, s:o}, s:o}", "id",
                          text(r->id), "name", text(r->name), "owner", text(r->owner), "answered",
                          r->answer == STATS_KNOWN, "disk_bytes", "used", number(i->disk_used),
                          "limit", number(i->disk_limit), "processes", "used", number(i->processes),
                          "limit", number(i->pids_limit), "left",
                          i->expires_at_us > 0 ? json_real((double)left_us(i) / 1e6) : json_null());

    if (!o || !measured || json_object_update(o, measured) < 0 ||
        (r->answer != STATS_KNOWN && json_object_set_new(o, "oom_kills", json_null()) < 0)) {
        json_decref(o);
        o = NULL;
    }
    json_decref(measured);
    return o;
}

json_t *stats_json(const struct stats *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n; i++)
        if (json_array_append_new(list, row_json(&s->rows[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:o}", "sandboxes", list);
}

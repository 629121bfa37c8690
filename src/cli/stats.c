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
#include "wire/json_text.h"
#include "base/guards.h"

enum {
    CELL_BYTES = 24,
    NAME_BYTES = 128,
    NAME_MIN = 13, /* the shortest beginning of an id that is shown */
    LINE_BYTES = 512,
};

void stats_done(struct stats *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->rows[i].id);
        free(s->rows[i].name);
        free(s->rows[i].owner);
    }
    free(s->rows);
    *s = (struct stats){0};
}

/* --- asking --- */

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* @ret has no strings yet. */
static int fill(struct stats_row *ret, const char *id, const struct atoll_info *i,
                struct error *err)
{
    ret->id = strdup(id);
    ret->name = i && i->name ? strdup(i->name) : NULL;
    ret->owner = i && i->owner ? strdup(i->owner) : NULL;
    ret->gone = !i;
    if (i)
        ret->info = *i;
    return ret->id && (!i || ((!i->name || ret->name) && (!i->owner || ret->owner)))
               ? 0
               : no_memory(err);
}

static int ask(const char *text, struct stats_row *ret, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    int r = handle_open(&h, text, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_inspect(h.sandbox);
    r = handle_wait(&h, op, err);
    return r < 0 ? r : fill(ret, h.id, atoll_op_info(op, 0), err);
}

static bool means_gone(int r)
{
    return r == -ENOENT || r == -EPIPE || r == -ESHUTDOWN;
}

/* The next row of @s, which has room for it. */
static int add(struct stats *s, const char *text, bool all, bool gone, struct error *err)
{
    struct stats_row *row = &s->rows[s->n];
    int r = ask(text, row, err);

    if (r == 0) {
        s->n++;
        return 0;
    }
    if (!means_gone(r) || (!all && !gone))
        return r;
    *err = (struct error)ERROR_INIT;
    if (all) /* gone since the list was made */
        return 0;
    s->n++;
    return fill(row, text, NULL, err);
}

static int read_all(struct stats *s, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    int r = handle_begin(&h, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_list(h.context, "local");
    r = handle_wait(&h, op, err);
    if (r < 0)
        return r;
    s->rows = calloc(atoll_op_count(op) + 1, sizeof *s->rows);
    if (!s->rows)
        return no_memory(err);
    for (size_t i = 0; r == 0 && i < atoll_op_count(op); i++)
        r = add(s, atoll_op_info(op, i)->id, true, true, err);
    return r;
}

static int read_named(struct stats *s, char *const *names, bool gone, struct error *err)
{
    size_t n = 0;
    int r = 0;

    while (names[n])
        n++;
    s->rows = calloc(n + 1, sizeof *s->rows);
    if (!s->rows)
        return no_memory(err);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add(s, names[i], false, gone, err);
    return r;
}

int stats_read(char *const *names, bool gone, struct stats *ret, struct error *err)
{
    struct stats s = {0};
    int r = names ? read_named(&s, names, gone, err) : read_all(&s, err);

    if (r == 0)
        *ret = s;
    else
        stats_done(&s);
    return r;
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
    if (r->gone) {
        (void)snprintf(line + at, LINE_BYTES - (size_t)at, " gone");
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

static json_t *millionths(uint64_t n)
{
    return n > 0 ? json_real((double)n / 1e6) : json_null();
}

static json_t *text(const char *s)
{
    return s ? json_text(s) : json_null();
}

static json_t *row_json(const struct stats_row *r)
{
    const struct atoll_info *i = &r->info;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}, "
        "s:o, s:o, s:i, s:o}",
        "id", text(r->id), "name", text(r->name), "owner", text(r->owner), "cpu_time",
        millionths(i->cpu_us), "cpu_limit",
        i->cpu_milli > 0 ? json_real((double)i->cpu_milli / 1e3) : json_null(), "memory_bytes",
        "used", number(i->memory_used), "peak", number(i->memory_peak), "limit",
        number(i->memory_limit), "disk_bytes", "used", number(i->disk_used), "limit",
        number(i->disk_limit), "processes", "used", number(i->processes), "limit",
        number(i->pids_limit), "egress_bytes", "sent", number(i->egress_sent), "received",
        number(i->egress_received), "cost", millionths(i->cost_micro), "max_cost",
        millionths(i->max_cost_micro), "oom_kills", (int)i->oom_kills, "left",
        i->expires_at_us > 0 ? json_real((double)left_us(i) / 1e6) : json_null());
}

json_t *stats_json(const struct stats *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n; i++)
        (void)json_array_append_new(list, row_json(&s->rows[i]));
    return json_pack("{s:o}", "sandboxes", list);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a run as JSON. */
#include "cli/result.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/parse.h"
#include "core/outcome.h"
#include "wire/json_text.h"
#include "base/guards.h"

enum { DESCRIPTOR_MAX = 1 << 20 };

int result_open(struct result_file *f, const char *where, struct error *err)
{
    uint64_t number;

    if (parse_u64(where, 0, DESCRIPTOR_MAX, &number) == 0) {
        int flags = fcntl((int)number, F_GETFL);

        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
            error_set(err, ERROR_USAGE, EBADF, "result: descriptor %d is not open for writing",
                      (int)number);
            return error_remedy(err,
                                "Name a file, or open the descriptor first: --result 3 3>FILE");
        }
        f->fd = (int)number;
        f->borrowed = true;
        return 0;
    }
    f->fd = open(where, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (f->fd < 0) {
        error_set(err, ERROR_USAGE, errno, "result: %s cannot be written: %s", where,
                  strerror(errno));
        return error_remedy(err, "Name a file in a folder that you may write to");
    }
    return 0;
}

static int write_json(const struct result_file *f, json_t *value)
{
    _cleanup_free_ char *text =
        value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(16)) : NULL;
    int r;

    json_decref(value);
    if (!text)
        return -ENOMEM;
    r = io_write_full(f->fd, text, strlen(text), CLOCK_NEVER);
    return r < 0 ? r : io_write_full(f->fd, "\n", 1, CLOCK_NEVER);
}

/* Microseconds as seconds with six digits, as JSON numbers are read. */
static json_t *seconds(uint64_t us)
{
    return json_real((double)us / 1e6);
}

static json_t *error_json(const struct error *why)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "class", error_class_name(why->cls), "context",
                     why->context, "message", why->message, "remedy", why->remedy);
}

static json_t *denied_json(const struct denials *d)
{
    json_t *list = json_array();

    for (size_t i = 0; i < d->n; i++) {
        const struct denial *x = &d->items[i];

        (void)json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:i, s:o, s:o, s:o, s:I}", "protocol",
                            denial_protocol_name(x->protocol), "name", json_text(x->name),
                            "address", json_text(x->address), "port", (int)x->port, "rule",
                            json_text(x->rule), "reason", json_text(x->reason), "time",
                            seconds(x->at_us), "repeated", (json_int_t)x->repeated));
    }
    return list;
}

int result_write(const struct result_file *f, const struct run_result *result, struct error *err)
{
    const struct exit_report *x = &result->exit;
    bool ran = result->hung_up_by == 0;
    json_t *o;
    int r;

    if (f->fd < 0)
        return 0;
    o = json_pack("{s:s, s:i, s:o, s:o, s:o, s:{s:o, s:o, s:I}}", "reason",
                  ran ? exit_reason_name(x->reason) : "killed", "status",
                  ran ? outcome_status(x) : OUTCOME_SIGNAL_BASE + result->hung_up_by, "started_at",
                  seconds(result->started_us), "ended_at", seconds(result->ended_us), "duration",
                  seconds(x->wall_us), "usage", "user_time", seconds(x->user_us), "system_time",
                  seconds(x->system_us), "peak_memory_bytes", (json_int_t)x->peak_rss_bytes);
    if (o && x->signal > 0)
        (void)json_object_set_new(o, "signal", json_integer(x->signal));
    else if (o && ran)
        (void)json_object_set_new(o, "exit_code", json_integer(x->exit_code));
    if (o)
        (void)json_object_set_new(o, "applied_timeout",
                                  x->timeout_us > 0 ? seconds(x->timeout_us) : json_null());
    if (o && (result->denials.n > 0 || result->denials.more > 0)) {
        (void)json_object_set_new(o, "denied", denied_json(&result->denials));
        (void)json_object_set_new(o, "denied_more", json_integer((json_int_t)result->denials.more));
    }
    if (o && f->exports)
        (void)json_object_set(o, "exports", f->exports);
    r = write_json(f, o);
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "result: cannot be written: %s", strerror(-r))
                 : 0;
}

int result_write_error(const struct result_file *f, const struct error *why)
{
    if (f->fd < 0)
        return 0;
    return write_json(f, json_pack("{s:s, s:i, s:o}", "reason", "error", "status", OUTCOME_FAILED,
                                   "error", error_json(why)));
}

void result_close(struct result_file *f)
{
    json_decref(f->exports);
    f->exports = NULL;
    if (!f->borrowed)
        fd_closep(&f->fd);
    f->fd = -EBADF;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of events: what each kind tells; and who hears of a refusal. */
#include "keeper/events.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/limits.h"
#include "core/mask.h"
#include "core/outcome.h"
#include "keeper/command.h"
#include "keeper/ending.h"
#include "keeper/keeper.h"
#include "keeper/usage.h"
#include "wire/exported.h"
#include "wire/json_text.h"
#include "base/guards.h"

enum {
    ARGUMENT_EXTRA = 3,
    USER_BYTES = 32,
    TEXT_MAX = EXPORTED_TEXT_MAX / 2, /* texts of clients that long may have been cut */
    CAUSE_MAX = 200,
};

/* How long the share of one line about a refusal lasts. */
static const uint64_t DENIAL_US = UINT64_C(1000000) / EVENT_DENIALS_PER_SECOND;

/* Whether anybody asks for events. */
static bool is_told(const struct keeper *k)
{
    return k->listen_fd >= 0 || k->events.audit_fd >= 0;
}

int events_open(struct keeper *k)
{
    return k->listen_fd < 0 ? -ENOENT : event_log_open(&k->events, k->id);
}

void events_close(struct keeper *k)
{
    loop_at(&k->loop, &k->events.denials.due, CLOCK_NEVER);
    event_log_close(&k->events);
}

int events_audit(struct keeper *k, struct error *err)
{
    return k->spec.audit ? event_log_audit(&k->events, k->spec.audit, err) : 0;
}

static void add(struct keeper *k, json_t *o)
{
    event_log_add(&k->events, k->id, k->listen_fd >= 0, o);
}

/* An event of now; NULL without memory. */
static json_t *event_of(const char *kind, const char *event)
{
    return json_pack("{s:o, s:s, s:s}", "time", event_time_json(clock_epoch_us()), "kind", kind,
                     "event", event);
}

/* @more is consumed, NULL too, which makes the event incomplete. */
static json_t *with(json_t *event, json_t *more)
{
    int r = event && more ? json_object_update(event, more) : -1;

    json_decref(more);
    if (r == 0)
        return event;
    json_decref(event);
    return NULL;
}

/* Microseconds as seconds; a cost in its currency. */
static json_t *millionths(uint64_t n)
{
    return json_real((double)n / 1e6);
}

/* 0 stands for what was not measured, or is not there. */
static json_t *number_or_null(uint64_t n)
{
    return n > 0 ? json_integer((json_int_t)n) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text ? json_text(text) : json_null();
}

/* --- masking --- */

/* As it is, and as texts show it that take out what could drive a terminal. */
static int add_secret(struct mask *m, const char *secret)
{
    const size_t len = strlen(secret);

    if (len < MASK_SECRET_MIN)
        return 0;
    _cleanup_free_ char *shown = strdup(secret);
    if (!shown)
        return -ENOMEM;
    text_make_printable(shown);
    int r = mask_add(m, secret, len);
    return r == 0 && strcmp(shown, secret) != 0 ? mask_add(m, shown, strlen(shown)) : r;
}

/* Made when the first text is to be shown: most of a thousand sandboxes show none. */
static const struct mask *mask_of(struct keeper *k)
{
    const struct string_list *env = &k->spec.env;
    struct mask *m = k->events.mask ? k->events.mask : mask_new();
    int r = m ? 0 : -ENOMEM;

    if (k->events.mask)
        return m;
    for (size_t i = 0; r == 0 && i < env->n; i++) {
        const char *value = strchr(env->items[i], '=');

        r = value ? add_secret(m, value + 1) : 0;
    }
    if (r < 0)
        mask_freep(&m);
    k->events.mask = m;
    return m;
}

/*
 * The first @max bytes of @text once it is masked. *@io_cut is set if there are more.
 *
 * Return: a new reference; without memory for the mask nothing is shown of it, and without memory
 * for that, NULL.
 */
static json_t *masked_part(struct keeper *k, const char *text, size_t max, bool *io_cut)
{
    const struct mask *m = mask_of(k);
    const size_t seen = m ? max + mask_longest(m) : 0, len = strnlen(text, seen + 1);
    const bool more = len > seen;
    _cleanup_free_ char *shown = NULL;
    size_t n;

    if (!m || mask_text(m, text, more ? seen : len, more ? MASK_CUT_END : 0, &shown, &n) < 0)
        return json_string("***");
    *io_cut = *io_cut || more || n > max;
    if (n > max)
        for (n = max; n > 0 && ((unsigned char)shown[n] & 0xC0) == 0x80;) /* within a character */
            n--;
    shown[n] = '\0';
    return json_text(shown);
}

static json_t *masked(struct keeper *k, const char *text)
{
    bool cut = false;

    return masked_part(k, text, EVENTS_ARGUMENTS_MAX, &cut);
}

/*
 * A text that a client may have cut: at its end if it has @most bytes, and behind each "...". What
 * is left of a secret there is masked, too.
 */
static json_t *masked_rest(struct keeper *k, const char *text, size_t most)
{
    static const char gap[] = "...";
    const struct mask *m = mask_of(k);
    const unsigned at_end = strlen(text) >= most ? MASK_CUT_END : 0;
    struct buffer all = {0};
    _cleanup_free_ char *shown = NULL;
    unsigned at_start = 0;

    for (bool more = true; m && more; at_start = MASK_CUT_START) {
        const char *next = strstr(text, gap);
        _cleanup_free_ char *part = NULL;
        size_t n = 0;

        more = next != NULL;
        if (mask_text(m, text, more ? (size_t)(next - text) : strlen(text),
                      at_start | (more ? 0 : at_end), &part, &n) < 0)
            m = NULL;
        buffer_add(&all, part, n);
        if (more) {
            buffer_add_text(&all, gap);
            text = next + strlen(gap);
        }
    }
    if (!m || buffer_take(&all, &shown, NULL) < 0) {
        buffer_done(&all);
        return json_string("***");
    }
    return json_text(shown);
}

/* --- refusals that wait --- */

/* Whether a line may be told at @now: EVENT_DENIALS_AT_ONCE of them, and from then on one for each
 * DENIAL_US that has passed. */
static bool denial_share(struct denial_lines *d, uint64_t now)
{
    const uint64_t from = d->paid_us > now ? d->paid_us : now;

    if (from - now > (EVENT_DENIALS_AT_ONCE - 1) * DENIAL_US)
        return false;
    d->paid_us = from + DENIAL_US;
    return true;
}

static void tell_waiting(struct keeper *k)
{
    struct denial_lines *d = &k->events.denials;
    json_t *o = d->waiting;

    loop_at(&k->loop, &d->due, CLOCK_NEVER);
    if (!o)
        return;
    (void)json_object_set_new(
        o, "dropped",
        json_integer(json_integer_value(json_object_get(o, "dropped")) + (json_int_t)d->dropped));
    d->waiting = NULL;
    d->dropped = 0;
    add(k, o);
}

static int denial_due(struct loop *l, struct loop_timer *t)
{
    struct keeper *k = t->owner;

    if (denial_share(&k->events.denials, clock_now_us()))
        tell_waiting(k);
    else
        loop_at(l, t, clock_after_us(DENIAL_US));
    return 0;
}

/* --- state, end --- */

void events_ending(struct keeper *k)
{
    struct sandbox_info x = {.cpu_us = 0};

    k->events.withdrawn = true;
    if (!is_told(k) || !k->events.created)
        return;
    usage_describe(k, &x);
    k->events.used = (struct event_usage){
        .cpu_us = x.cpu_us,
        .memory_peak_bytes = x.memory_peak_bytes,
        .egress_sent_bytes = x.egress_sent_bytes,
        .egress_received_bytes = x.egress_received_bytes,
        .cost_micro = x.cost_micro,
    };
}

static json_t *created_json(const struct keeper *k)
{
    const struct spec *s = &k->spec;
    json_t *tags = json_array();

    for (size_t i = 0; i < s->tags.n; i++)
        (void)json_array_append_new(tags, json_text(s->tags.items[i]));
    return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "name", text_or_null(s->name), "owner",
                     text_or_null(s->owner), "tags", tags, "held", k->listen_fd >= 0, "lifetime",
                     s->lifetime_us > 0 ? millionths(s->lifetime_us) : json_null(), "idle_timeout",
                     s->idle_timeout_us > 0 ? millionths(s->idle_timeout_us) : json_null());
}

static json_t *usage_json(const struct keeper *k)
{
    const struct event_usage *u = &k->events.used;

    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "cpu_time",
                     u->cpu_us > 0 ? millionths(u->cpu_us) : json_null(), "memory_peak_bytes",
                     number_or_null(u->memory_peak_bytes), "egress_sent_bytes",
                     number_or_null(u->egress_sent_bytes), "egress_received_bytes",
                     number_or_null(u->egress_received_bytes), "cost",
                     k->spec.prices.n > 0 ? millionths(u->cost_micro) : json_null());
}

static json_t *ended_json(const struct keeper *k, const char *by)
{
    const uint64_t now = clock_epoch_us(), since = k->created_at_us;

    return json_pack("{s:s, s:o, s:o}", "by", by, "duration",
                     millionths(since > 0 && now > since ? now - since : 0), "usage",
                     usage_json(k));
}

void events_state(struct keeper *k, const char *what, const char *by)
{
    if (!is_told(k) || (by && !k->events.created)) /* what was never there has no end */
        return;
    k->events.created = true;
    if (!by) {
        add(k, with(event_of("state", what), created_json(k)));
        return;
    }
    tell_waiting(k);
    add(k, with(event_of("end", what), ended_json(k, by)));
}

/* --- commands --- */

static json_t *arguments_json(struct keeper *k, const struct exec_request *x, bool *io_cut)
{
    json_t *list = json_array();
    size_t room = EVENTS_ARGUMENTS_MAX;

    for (size_t i = 0; i < x->n_argv; i++) {
        if (room == 0) {
            *io_cut = true;
            break;
        }
        json_t *one = masked_part(k, x->argv[i], room, io_cut);
        const size_t used = json_string_length(one) + ARGUMENT_EXTRA;

        (void)json_array_append_new(list, one);
        room -= used < room ? used : room;
    }
    return list;
}

char *events_arguments(struct keeper *k, const struct exec_request *x)
{
    const bool set = x->flags & EXEC_USER_SET;
    const char *workdir = x->workdir ? x->workdir : k->spec.workdir;
    bool cut = false;
    char user[USER_BYTES];

    if (!is_told(k) && !(k->state == KEEPER_CREATING && !k->spec.owned))
        return NULL;
    (void)snprintf(user, sizeof user, "%u:%u", set ? x->uid : k->spec.uid,
                   set ? x->gid : k->spec.gid);
    json_t *argv = arguments_json(k, x, &cut);
    json_t *o =
        json_pack("{s:o, s:b, s:s, s:o, s:b, s:b}", "argv", argv, "argv_cut", cut, "user", user,
                  "workdir", masked(k, workdir ? workdir : SPEC_WORKDIR_DEFAULT), "detached",
                  (x->flags & EXEC_DETACH) != 0, "tty", (x->flags & EXEC_TTY) != 0);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

static json_t *exit_json(const struct keeper_command *c)
{
    const struct exit_report *x = &c->report;
    const uint64_t now = clock_epoch_us();
    /* Of one that ended with the sandbox, nobody has reported. */
    const uint64_t wall_us =
        c->exited || now < c->started_at_us ? x->wall_us : now - c->started_at_us;
    json_t *o =
        json_pack("{s:s, s:i, s:o, s:o, s:{s:o, s:o, s:I}}", "reason", exit_reason_name(x->reason),
                  "status", outcome_status(x), "applied_timeout",
                  x->timeout_us > 0 ? millionths(x->timeout_us) : json_null(), "duration",
                  millionths(wall_us), "usage", "user_time", millionths(x->user_us), "system_time",
                  millionths(x->system_us), "peak_memory_bytes", (json_int_t)x->peak_rss_bytes);

    if (x->signal > 0)
        return with(o, json_pack("{s:I}", "signal", (json_int_t)x->signal));
    return with(o, json_pack("{s:I}", "exit_code", (json_int_t)x->exit_code));
}

void events_command(struct keeper *k, const char *what, const struct keeper_command *c)
{
    const bool exited = strcmp(what, "exited") == 0;

    if (c->flags & EXEC_FILES || !is_told(k))
        return;
    json_t *o =
        with(event_of("command", what), json_pack("{s:I}", "command", (json_int_t)c->number));
    if (c->told) /* it starts now, or could not be started */
        o = with(o, json_loads(c->told, 0, NULL));
    add(k, exited ? with(o, exit_json(c)) : o);
}

/* --- leases, limits --- */

/* Who is refused may have said anything. No character is shown in part. */
static json_t *short_text(const char *text)
{
    size_t n = text ? strnlen(text, LIMIT_TEXT_BYTES + 1) : 0;

    if (n <= LIMIT_TEXT_BYTES)
        return text_or_null(text);
    for (n = LIMIT_TEXT_BYTES; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;)
        n--;
    _cleanup_free_ char *part = strndup(text, n);
    return json_text(part);
}

void events_lease(struct keeper *k, const char *what, const char *owner, const char *holder,
                  uint32_t generation)
{
    if (!is_told(k))
        return;
    add(k, with(event_of("lease", what),
                json_pack("{s:o, s:o, s:I}", "owner", short_text(owner), "holder",
                          short_text(holder), "generation", (json_int_t)generation)));
}

/* What the number of a limit's event is. */
static const struct {
    const char *what, *key;
    bool millionths; /* microseconds are shown as seconds, and a cost in its currency */
} limits[] = {
    {"lifetime_near", "left", true}, {"lifetime_extended", "left", true},
    {"oom", "memory_bytes", false},  {"cost_near", "cost", true},
    {"cost", "cost", true},
};

void events_limit(struct keeper *k, const char *what, uint64_t value)
{
    if (!is_told(k))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        if (strcmp(limits[i].what, what) == 0)
            add(k,
                with(event_of("limit", what),
                     json_pack("{s:o}", limits[i].key,
                               limits[i].millionths ? millionths(value) : number_or_null(value))));
}

/* --- exports --- */

static json_t *exported_json(struct keeper *k, const struct exported_report *x)
{
    _cleanup_free_ char *url = exported_url(x->url);
    json_t *o = url ? json_pack("{s:o, s:o}", "path", masked_rest(k, x->path, TEXT_MAX), "url",
                                masked_rest(k, url, TEXT_MAX))
                    : NULL;

    if (x->message) {
        _cleanup_free_ char *text = exported_text(x->message);

        return with(o,
                    text ? json_pack("{s:o}", "message", masked_rest(k, text, CAUSE_MAX)) : NULL);
    }
    return with(o, json_pack("{s:I, s:o}", "bytes", (json_int_t)x->bytes, "digest",
                             text_or_null(x->digest)));
}

void events_exported(struct connection *c, struct message *m)
{
    struct keeper *k = c->keeper;
    struct exported_report x;
    struct error err = ERROR_INIT;
    uint8_t buf[16];
    struct writer nothing = writer_over(buf, sizeof buf);

    if (exported_report_decode(m->payload, &x) < 0) {
        (void)error_set(&err, ERROR_USAGE, EPROTO, "what is told of an export cannot be read");
        connection_refuse(c, m->id, &err);
        return;
    }
    if (is_told(k))
        add(k, with(event_of("export", x.message ? "failed" : "published"), exported_json(k, &x)));
    ending_active(k);
    connection_send(c, MSG_DONE, m->id, &nothing, -EBADF);
}

/* --- the network --- */

static json_t *denied_json(struct keeper *k, const struct denial *x, json_t *commands)
{
    return json_pack("{s:o, s:s, s:s, s:o, s:s, s:o, s:o, s:i, s:o, s:o, s:I, s:I, s:I}", "time",
                     event_time_json(x->at_us), "kind", "egress", "event", "denied", "commands",
                     commands, "protocol", denial_protocol_name(x->protocol), "name",
                     masked(k, x->name), "address", masked(k, x->address), "port", (int)x->port,
                     "rule", masked(k, x->rule), "reason", masked(k, x->reason), "bytes",
                     (json_int_t)x->bytes, "repeated", (json_int_t)x->repeated, "dropped",
                     (json_int_t)x->dropped);
}

/* Now, or when there is a share for it. @o is consumed. */
static void tell_denied(struct keeper *k, json_t *o)
{
    struct denial_lines *d = &k->events.denials;

    if (!o || denial_share(d, clock_now_us())) {
        add(k, o);
        return;
    }
    d->waiting = o;
    d->due = (struct loop_timer){.name = "denial", .owner = k, .due = denial_due};
    loop_at(&k->loop, &d->due, clock_after_us(DENIAL_US));
}

void events_denied(struct keeper *k, const struct denial *x)
{
    const bool told = is_told(k), counted = told && k->events.denials.waiting;
    json_t *commands = told && !counted ? json_array() : NULL;

    for (struct keeper_command *c = k->commands; c; c = c->next) {
        if (!command_may_have_tried(c))
            continue;
        (void)command_denials_note(&c->denials, x);
        if (commands)
            (void)json_array_insert_new(commands, 0, json_integer(c->number));
    }
    if (counted) /* a program inside can try without end: it must not fill the host's disk */
        k->events.denials.dropped += 1 + x->repeated + x->dropped;
    else if (told)
        tell_denied(k, denied_json(k, x, commands));
}

void events_policy(struct keeper *k, uint32_t generation, const char *stamp, uint32_t cut)
{
    if (is_told(k))
        add(k, with(event_of("policy", "changed"),
                    json_pack("{s:I, s:o, s:I}", "generation", (json_int_t)generation, "policy",
                              json_loads(stamp, 0, NULL), "flows_cut", (json_int_t)cut)));
}

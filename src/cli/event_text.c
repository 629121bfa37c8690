/* SPDX-License-Identifier: Apache-2.0 */
/* Events for people: one function for each kind. */
#include "cli/event_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/name_text.h"
#include "cli/sandbox_text.h"
#include "base/guards.h"

static const char *text_of(const json_t *value, const char *key)
{
    const char *s = json_string_value(json_object_get(value, key));

    return s ? s : "";
}

static long long number_of(const json_t *value, const char *key)
{
    return (long long)json_integer_value(json_object_get(value, key));
}

static uint64_t size_of(const json_t *value, const char *key)
{
    const json_int_t n = json_integer_value(json_object_get(value, key));

    return n > 0 ? (uint64_t)n : 0;
}

/* Seconds as microseconds; 0: there are none. */
static uint64_t span_of(const json_t *value, const char *key)
{
    const double s = json_number_value(json_object_get(value, key));

    return s > 0 && s < 1e12 ? (uint64_t)(s * 1e6) : 0;
}

/* "0.25 s", "12 s", "3 h": with a fraction where that is most of it. */
static void put_span(FILE *f, uint64_t us)
{
    char words[SANDBOX_WORDS];

    if (us < 10 * UINT64_C(1000000)) {
        fprintf(f, "%.3g s", (double)us / 1e6);
        return;
    }
    sandbox_span_text(words, us);
    fputs(words, f);
}

static void put_bytes(FILE *f, uint64_t bytes)
{
    char words[SANDBOX_WORDS];

    sandbox_bytes_text(words, bytes);
    fputs(words, f);
}

static void put_state(FILE *f, const json_t *e)
{
    const json_t *tags = json_object_get(e, "tags");
    const uint64_t life = span_of(e, "lifetime");

    fputs(text_of(e, "event"), f);
    if (text_of(e, "name")[0])
        fprintf(f, " as %s", text_of(e, "name"));
    if (text_of(e, "owner")[0])
        fprintf(f, " for %s", text_of(e, "owner"));
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));

        fprintf(f, "%s%s", i == 0 ? " with " : ", ", tag ? tag : "?");
    }
    if (life > 0) {
        fputs("; it lives ", f);
        put_span(f, life);
    }
}

/* What it has used, as far as it was measured. */
static void put_usage(FILE *f, const json_t *usage)
{
    const uint64_t cpu = span_of(usage, "cpu_time"), peak = size_of(usage, "memory_peak_bytes"),
                   sent = size_of(usage, "egress_sent_bytes"),
                   received = size_of(usage, "egress_received_bytes");
    const json_t *cost = json_object_get(usage, "cost");

    if (cpu > 0) {
        fputs("; CPU ", f);
        put_span(f, cpu);
    }
    if (peak > 0) {
        fputs("; peak memory ", f);
        put_bytes(f, peak);
    }
    if (sent > 0 || received > 0) {
        fputs("; sent ", f);
        put_bytes(f, sent);
        fputs(", received ", f);
        put_bytes(f, received);
    }
    if (json_is_number(cost))
        fprintf(f, "; cost %.6g", json_number_value(cost));
}

static void put_end(FILE *f, const json_t *e)
{
    fprintf(f, "ended (%s)", text_of(e, "by"));
    if (span_of(e, "duration") > 0) {
        fputs(" after ", f);
        put_span(f, span_of(e, "duration"));
    }
    put_usage(f, json_object_get(e, "usage"));
}

static void put_arguments(FILE *f, const json_t *e)
{
    const json_t *argv = json_object_get(e, "argv");

    fputc(':', f);
    for (size_t i = 0; i < json_array_size(argv); i++) {
        const char *one = json_string_value(json_array_get(argv, i));

        fputc(' ', f);
        name_print_quoted(f, one ? one : "?");
    }
    if (json_is_true(json_object_get(e, "argv_cut")))
        fputs(" ...", f);
}

static void put_exit(FILE *f, const json_t *e)
{
    const char *reason = text_of(e, "reason");

    if (json_object_get(e, "argv")) /* it never started, which had told of them */
        fputs(" could not be started", f);
    else if (strcmp(reason, "exited") == 0 && json_object_get(e, "signal"))
        fprintf(f, " ended by signal %lld", number_of(e, "signal"));
    else if (strcmp(reason, "exited") == 0)
        fprintf(f, " exited with %lld", number_of(e, "exit_code"));
    else if (strcmp(reason, "timeout") == 0)
        fputs(" timed out", f);
    else
        fprintf(f, " ended (%s)", reason);
    if (span_of(e, "duration") > 0) {
        fputs(" after ", f);
        put_span(f, span_of(e, "duration"));
    }
}

static void put_command(FILE *f, const json_t *e)
{
    fprintf(f, "command %lld", number_of(e, "command"));
    if (strcmp(text_of(e, "event"), "exited") == 0)
        put_exit(f, e);
    else
        fprintf(f, " %s%s", text_of(e, "event"),
                json_is_true(json_object_get(e, "detached")) ? ", detached" : "");
    if (json_object_get(e, "argv"))
        put_arguments(f, e);
}

static void put_export(FILE *f, const json_t *e)
{
    const bool failed = strcmp(text_of(e, "event"), "failed") == 0;

    fputs(failed ? "not published: " : "published ", f);
    if (failed) {
        fputs(text_of(e, "message"), f);
        return;
    }
    name_print_quoted(f, text_of(e, "path"));
    fprintf(f, " to %s (", text_of(e, "url"));
    put_bytes(f, size_of(e, "bytes"));
    fputc(')', f);
}

static void put_denied(FILE *f, const json_t *e)
{
    const char *name = text_of(e, "name"), *address = text_of(e, "address");
    const json_t *commands = json_object_get(e, "commands");
    const long long port = number_of(e, "port"), again = number_of(e, "repeated");
    const bool v6 = !name[0] && strchr(address, ':');

    fprintf(f, "refused %s %s%s%s", text_of(e, "protocol"), v6 ? "[" : "", name[0] ? name : address,
            v6 ? "]" : "");
    if (port > 0)
        fprintf(f, ":%lld", port);
    for (size_t i = 0; i < json_array_size(commands); i++)
        fprintf(f, "%s%lld", i == 0 ? " command " : ",",
                (long long)json_integer_value(json_array_get(commands, i)));
    fprintf(f, " (%s)", text_of(e, "reason"));
    if (again > 0)
        fprintf(f, " and %lld times more", again);
    if (number_of(e, "dropped") > 0)
        fprintf(f, "; %lld others before it were too many to tell", number_of(e, "dropped"));
}

static void put_list(FILE *f, const json_t *policy, const char *key, const char **before)
{
    const json_t *list = json_object_get(policy, key);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *entry = json_string_value(json_array_get(list, i));

        fprintf(f, "%s%s", *before, entry ? entry : "?");
        *before = ", ";
    }
}

static void put_policy(FILE *f, const json_t *e)
{
    const json_t *policy = json_object_get(e, "policy");
    const long long cut = number_of(e, "flows_cut");
    const char *before = "";

    fprintf(f, "policy %lld: ", number_of(e, "generation"));
    put_list(f, policy, "allow_egress_to", &before);
    put_list(f, policy, "allow_egress_to_cidrs", &before);
    if (!*before)
        fputs("nothing may be reached", f);
    if (cut > 0)
        fprintf(f, "; %lld %s cut", cut, cut == 1 ? "connection was" : "connections were");
}

static void put_lease(FILE *f, const json_t *e)
{
    fprintf(f, "lease %s", text_of(e, "event"));
    if (text_of(e, "holder")[0])
        fprintf(f, ": %s", text_of(e, "holder"));
    if (text_of(e, "owner")[0])
        fprintf(f, " for %s", text_of(e, "owner"));
    if (number_of(e, "generation") > 0)
        fprintf(f, " (generation %lld)", number_of(e, "generation"));
}

static void put_limit(FILE *f, const json_t *e)
{
    const char *event = text_of(e, "event");

    if (strcmp(event, "oom") == 0) {
        fputs("out of memory: a process was killed", f);
        if (size_of(e, "memory_bytes") > 0) {
            fputs(" at ", f);
            put_bytes(f, size_of(e, "memory_bytes"));
        }
        return;
    }
    if (strcmp(event, "cost_near") == 0 || strcmp(event, "cost") == 0) {
        fprintf(f, "it has cost %.6g, %s", json_number_value(json_object_get(e, "cost")),
                strcmp(event, "cost") == 0 ? "all that it may, and ends"
                                           : "nearly all that it may");
        return;
    }
    fputs(strcmp(event, "lifetime_extended") == 0 ? "extended: it lives another "
          : strcmp(event, "lifetime_near") == 0   ? "little is left of its lifetime: "
                                                  : event,
          f);
    put_span(f, span_of(e, "left"));
}

static void put_gap(FILE *f, const json_t *e)
{
    const long long n = number_of(e, "lines");

    fprintf(f, "there was no room for %lld event%s", n, n == 1 ? "" : "s");
}

static const struct {
    const char *kind;
    void (*put)(FILE *f, const json_t *e);
} kinds[] = {
    {"state", put_state},   {"command", put_command}, {"export", put_export},
    {"egress", put_denied}, {"policy", put_policy},   {"lease", put_lease},
    {"limit", put_limit},   {"end", put_end},         {"events", put_gap},
};

char *event_text(const char *id, const json_t *e)
{
    const char *kind = text_of(e, "kind"), *time = text_of(e, "time");
    char *text = NULL;
    size_t len = 0, i = 0;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        return NULL;
    if (id)
        fprintf(f, "%s ", id);
    fprintf(f, "%.10s %.8s ", time, strlen(time) > 11 ? time + 11 : "");
    while (i < ARRAY_SIZE(kinds) && strcmp(kinds[i].kind, kind) != 0)
        i++;
    if (i < ARRAY_SIZE(kinds))
        kinds[i].put(f, e);
    else
        fprintf(f, "%s %s", kind, text_of(e, "event"));
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    text_make_printable(text);
    return text;
}

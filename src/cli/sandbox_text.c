/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes in words and as JSON. */
#include "cli/sandbox_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "wire/json_text.h"
#include "base/guards.h"

json_t *sandbox_seconds(uint64_t us)
{
    return us > 0 ? json_real((double)us / 1e6) : json_null();
}

/* K=V each, as an object. */
static json_t *tags_json(const char *const *tags)
{
    json_t *o = json_object();

    for (; tags && *tags; tags++) {
        const char *value = strchr(*tags, '=');
        char key[1025];

        if (!value || (size_t)(value - *tags) >= sizeof key)
            continue;
        memcpy(key, *tags, (size_t)(value - *tags));
        key[value - *tags] = '\0';
        (void)json_object_set_new(o, key, json_text(value + 1));
    }
    return o;
}

/* A text, or null where there is none. */
static json_t *text_or_null(const char *s)
{
    return s ? json_text(s) : json_null();
}

json_t *sandbox_json(const struct atoll_info *i)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", text_or_null(i->id),
                     "name", text_or_null(i->name), "backend", text_or_null(i->backend), "state",
                     text_or_null(i->state), "created_at", sandbox_seconds(i->created_at_us),
                     "expires_at", sandbox_seconds(i->expires_at_us), "owner",
                     text_or_null(i->owner), "image", text_or_null(i->image), "tags",
                     tags_json(i->tags));
}

/* What is used of a limit; a limit of 0 is not known or none. */
static json_t *use_json(uint64_t used, uint64_t limit)
{
    return json_pack("{s:I, s:o}", "used", (json_int_t)used, "limit",
                     limit > 0 ? json_integer((json_int_t)limit) : json_null());
}

json_t *sandbox_json_published(const struct atoll_info *i)
{
    json_t *list = json_array();

    for (const char *const *p = i->published; p && *p; p++)
        (void)json_array_append_new(list, json_text(*p));
    return list;
}

json_t *sandbox_json_lease(const struct atoll_info *i)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "state", i->lease ? i->lease : "none", "holder",
                     text_or_null(i->holder), "generation",
                     i->lease_generation > 0 ? json_integer(i->lease_generation) : json_null(),
                     "until", sandbox_seconds(i->lease_until_us));
}

static json_t *number_or_null(uint64_t n)
{
    return n > 0 ? json_integer((json_int_t)n) : json_null();
}

json_t *sandbox_json_measured(const struct atoll_info *i)
{
    return json_pack(
        "{s:o, s:o, s:{s:o, s:o, s:o}, s:{s:o, s:o}, s:o, s:o, s:I}", "cpu_time",
        sandbox_seconds(i->cpu_us), "cpu_limit",
        i->cpu_milli > 0 ? json_real((double)i->cpu_milli / 1e3) : json_null(), "memory_bytes",
        "used", number_or_null(i->memory_used), "peak", number_or_null(i->memory_peak), "limit",
        number_or_null(i->memory_limit), "egress_bytes", "sent", number_or_null(i->egress_sent),
        "received", number_or_null(i->egress_received), "cost",
        i->cost_micro > 0 ? json_real((double)i->cost_micro / 1e6) : json_null(), "max_cost",
        i->max_cost_micro > 0 ? json_real((double)i->max_cost_micro / 1e6) : json_null(),
        "oom_kills", (json_int_t)i->oom_kills);
}

int sandbox_json_usage(json_t *o, const struct atoll_info *i)
{
    json_t *measured = sandbox_json_measured(i);
    json_t *more = json_pack(
        "{s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "network",
        i->network ? json_loads(i->network, 0, NULL) : json_null(), "workdir",
        text_or_null(i->workdir), "hostname", text_or_null(i->hostname), "uid", (int)i->uid, "gid",
        (int)i->gid, "idle_timeout", sandbox_seconds(i->idle_us), "disk_bytes",
        use_json(i->disk_used, i->disk_limit), "inodes", use_json(i->inodes_used, i->inodes_limit),
        "processes", use_json(i->processes, i->pids_limit), "commands", (json_int_t)i->commands,
        "landlock_abi", i->landlock_abi > 0 ? json_integer(i->landlock_abi) : json_null(),
        "keeper_pid", i->keeper_pid > 0 ? json_integer(i->keeper_pid) : json_null(), "published",
        sandbox_json_published(i), "lease", sandbox_json_lease(i));
    int r = o && more && measured ? json_object_update(o, more) : -1;

    if (r == 0)
        r = json_object_update(o, measured);
    json_decref(measured);
    json_decref(more);
    return r;
}

void sandbox_time_text(char buf[SANDBOX_WORDS], uint64_t epoch_us)
{
    const time_t seconds = (time_t)(epoch_us / 1000000);
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) || strftime(buf, SANDBOX_WORDS, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
        (void)snprintf(buf, SANDBOX_WORDS, "?");
}

void sandbox_lease_text(char buf[SANDBOX_LEASE_WORDS], const struct atoll_info *i)
{
    const char *state = i->lease ? i->lease : "none", *holder = i->holder ? i->holder : "?";
    char until[SANDBOX_WORDS];

    if (strcmp(state, "held") == 0) {
        (void)snprintf(buf, SANDBOX_LEASE_WORDS, "held by '%s'", holder);
    } else if (strcmp(state, "kept") == 0) {
        sandbox_time_text(until, i->lease_until_us);
        (void)snprintf(buf, SANDBOX_LEASE_WORDS, "kept for '%s' until %s", holder, until);
    } else {
        (void)snprintf(buf, SANDBOX_LEASE_WORDS, "%s", strcmp(state, "none") == 0 ? "-" : state);
    }
}

void sandbox_span_text(char buf[SANDBOX_WORDS], uint64_t us)
{
    const uint64_t s = us / 1000000;

    if (s < 120)
        (void)snprintf(buf, SANDBOX_WORDS, "%llu s", (unsigned long long)s);
    else if (s < UINT64_C(7200))
        (void)snprintf(buf, SANDBOX_WORDS, "%llu min", (unsigned long long)(s / 60));
    else if (s < UINT64_C(172800))
        (void)snprintf(buf, SANDBOX_WORDS, "%llu h", (unsigned long long)(s / 3600));
    else
        (void)snprintf(buf, SANDBOX_WORDS, "%llu d", (unsigned long long)(s / 86400));
}

void sandbox_bytes_text(char buf[SANDBOX_WORDS], uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        (void)snprintf(buf, SANDBOX_WORDS, "%llu B", (unsigned long long)bytes);
        return;
    }
    for (; v >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
        v /= 1024;
    (void)snprintf(buf, SANDBOX_WORDS, "%.1f %s", v, units[unit]);
}

static bool has_tag(const struct atoll_info *i, const char *tag)
{
    for (const char *const *t = i->tags; t && *t; t++)
        if (strcmp(*t, tag) == 0)
            return true;
    return false;
}

bool sandbox_matches(const struct atoll_info *i, const struct sandbox_filter *f)
{
    if (f->owner && (!i->owner || strcmp(i->owner, f->owner) != 0))
        return false;
    for (size_t n = 0; n < f->tags->n; n++)
        if (!has_tag(i, f->tags->items[n]))
            return false;
    return true;
}

int sandbox_filter_check(const struct sandbox_filter *f, struct error *err)
{
    for (size_t n = 0; n < f->tags->n; n++)
        if (!strchr(f->tags->items[n], '=') || f->tags->items[n][0] == '=') {
            (void)error_set(err, ERROR_USAGE, EINVAL, "'%.80s' is not a tag", f->tags->items[n]);
            return error_remedy(err, "Write it as KEY=VALUE, both as they were given to create");
        }
    return 0;
}

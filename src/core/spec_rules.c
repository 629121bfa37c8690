/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold between the fields of a spec. */
#include "core/spec_rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/destination.h"
#include "core/policy.h"
#include "base/guards.h"

__attribute__((format(printf, 4, 5))) static void refuse(const struct spec_filling *f,
                                                         enum spec_field_id id, const char *remedy,
                                                         const char *fmt, ...)
{
    char path[SPEC_PATH_MAX], message[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    spec_field_path(id, path);
    problems_add(f->problems, path, (struct position){0}, remedy, "%s", message);
}

/* The grammar of an image is its backend's, and `name` may come after it. */
static void check_image(struct spec_filling *f)
{
    struct spec *s = f->spec;
    struct error err = ERROR_INIT;

    if (strcmp(s->backend, "local") != 0)
        return;
    _cleanup_free_ char *image = strdup(s->image);
    if (!image || (spec_set_image(s, image, &err) < 0 && err.code == ENOMEM))
        f->problems->no_memory = true;
    else if (err.code != 0)
        refuse(f, SPEC_FIELD_IMAGE, err.remedy, "%s", err.message);
}

static struct policy_list list_of(const struct string_list *l)
{
    return (struct policy_list){.items = (const char *const *)l->items, .n = l->n};
}

int spec_policy(const struct spec *s, struct policy *ret, struct problems *problems)
{
    const struct policy_input in = {
        .block_network = s->block_network,
        .allow_egress_to = list_of(&s->allow_egress_to),
        .allow_egress_to_cidrs = list_of(&s->allow_egress_to_cidrs),
        .private_cidrs = list_of(&s->private_cidrs),
        .add_hosts = list_of(&s->add_hosts),
    };

    return policy_build(&in, ret, problems);
}

static void check_network(struct spec_filling *f)
{
    struct policy policy = {0};

    if (f->spec->proxy_credentials && !f->spec->proxy)
        refuse(f, SPEC_FIELD_PROXY_CREDENTIALS, "Add proxy, or leave it out",
               "there are credentials for a proxy, and no proxy");
    if (spec_policy(f->spec, &policy, f->problems) == 0)
        policy_done(&policy);
}

/* A time for a message: whole seconds as people write them. */
static void time_text(uint64_t us, char *buf, size_t size)
{
    if (us % 1000000 == 0)
        (void)snprintf(buf, size, "%llu s", (unsigned long long)(us / 1000000));
    else
        (void)snprintf(buf, size, "%g s", (double)us / 1e6);
}

static void check_times(const struct spec_filling *f)
{
    const struct spec *s = f->spec;
    const struct toolset_spec *t = &s->toolset;
    char low[40], high[40];

    if (s->lifetime_us > 0 && s->idle_timeout_us > s->lifetime_us) {
        time_text(s->idle_timeout_us, low, sizeof low);
        time_text(s->lifetime_us, high, sizeof high);
        refuse(
            f, SPEC_FIELD_IDLE_TIMEOUT, "Lower idle_timeout, or raise sandbox_timeout",
            "idle_timeout (%s) is longer than sandbox_timeout (%s), so it would never be reached",
            low, high);
    }
    if (t->default_command_timeout_us > t->max_command_timeout_us) {
        time_text(t->default_command_timeout_us, low, sizeof low);
        time_text(t->max_command_timeout_us, high, sizeof high);
        /* At the one that was given, if it was only one. */
        bool max_alone = !(f->given & spec_field_bit(SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT));
        refuse(f, max_alone ? SPEC_FIELD_MAX_COMMAND_TIMEOUT : SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT,
               "Lower default_command_timeout, or raise max_command_timeout",
               "default_command_timeout (%s) is longer than max_command_timeout (%s)", low, high);
    }
}

static void check_attaching(const struct spec_filling *f)
{
    const struct toolset_spec *t = &f->spec->toolset;

    if (t->attach_to && (f->given & spec_section_bits(SPEC_SECTION_SPEC)) != 0)
        refuse(f, SPEC_FIELD_ATTACH_TO, "Leave out the section spec, or attach_to",
               "attach_to and a spec exclude each other: the sandbox is there already, and what it "
               "is was settled when it was made");
    if (t->owner && !t->attach_to)
        refuse(f, SPEC_FIELD_TOOLSET_OWNER,
               "Add attach_to, or name whom a new sandbox is made for as spec.owner",
               "owner is whom an attaching run says it belongs to, and there is no attach_to");
    if (f->spec->owned && f->spec->owner)
        refuse(f, SPEC_FIELD_OWNER, "Leave it out, or make the sandbox with 'atoll create'",
               "this sandbox is removed at the end of its run, so nobody can attach to it later");
    if (t->export_credentials && t->exports.n == 0)
        refuse(f, SPEC_FIELD_EXPORT_CREDENTIALS, "Add exports, or leave it out",
               "there are credentials for exports, and no exports");
}

static void refuse_export(const struct spec_filling *f, size_t i, const char *remedy,
                          const char *message)
{
    const char *entry = f->spec->toolset.exports.items[i];
    char path[SPEC_PATH_MAX], name[2 * SPEC_PATH_MAX];

    spec_field_path(SPEC_FIELD_EXPORTS, path);
    (void)snprintf(name, sizeof name, "%s.%.*s", path, (int)strcspn(entry, "="), entry);
    problems_add(f->problems, name, (struct position){0}, remedy, "%s", message);
}

/*
 * Where an entry would go; placeholders are filled with samples. Other schemes are a question to
 * the backend (core/backend_common.c).
 */
static bool parse_local(const char *entry, struct destination *ret, struct error *err)
{
    const char *equals = strchr(entry, '=');
    _cleanup_free_ char *url = NULL;

    return equals && destination_fill(equals + 1, &destination_samples, &url, err) == 0 &&
           strncmp(url, "file://", 7) == 0 && destination_parse(url, ret, err) == 0;
}

static void check_exports(const struct spec_filling *f)
{
    const struct string_list *exports = &f->spec->toolset.exports;
    struct destination *places = calloc(exports->n + 1, sizeof *places);

    if (!places) {
        f->problems->no_memory = true;
        return;
    }
    for (size_t i = 0; i < exports->n; i++) {
        struct error err = ERROR_INIT;

        if (!parse_local(exports->items[i], &places[i], &err) && err.code != 0)
            refuse_export(f, i, err.remedy, err.message);
        for (size_t j = 0; places[i].path && j < i; j++)
            if (places[j].path && destination_clash(&places[i], &places[j])) {
                refuse_export(f, i, "Give each export a place of its own",
                              "another export goes to the same place, or one lies within the "
                              "other");
                break;
            }
    }
    for (size_t i = 0; i < exports->n; i++)
        destination_done(&places[i]);
    free(places);
}

static void check_tools(const struct spec_filling *f)
{
    const struct toolset_spec *t = &f->spec->toolset;

    for (size_t i = 0; i < t->tools.n && t->exports.n == 0; i++)
        if (strcmp(t->tools.items[i], "publish_exports") == 0)
            refuse(f, SPEC_FIELD_TOOLS, "Add exports, or leave publish_exports out of tools",
                   "tools names publish_exports, and exports promises nothing to publish");
}

/* Both are without symbolic links by now. */
static void check_audit(const struct spec_filling *f)
{
    const struct spec *s = f->spec;

    for (size_t i = 0; s->audit && i < s->n_volumes; i++)
        if (!s->volumes[i].read_only && path_is_within(s->audit, s->volumes[i].host))
            refuse(f, SPEC_FIELD_AUDIT, "Name a file elsewhere, or add the volume read-only",
                   "'%.200s' lies in the volume %.200s, so that programs inside could change it",
                   s->audit, s->volumes[i].host);
}

void spec_finish(struct spec_filling *f)
{
    check_image(f);
    check_network(f);
    check_times(f);
    check_attaching(f);
    check_exports(f);
    check_audit(f);
    check_tools(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tags in the place of a lease. */
#include "core/share_tags.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "core/lease.h"
#include "core/policy.h"
#include "core/spec_rules.h"
#include "base/guards.h"

enum {
    SECOND_US = 1000000,
    PLAIN_BYTES = 150, /* of a name that stands in a remedy */
};

static const char *const reserved[] = {
    SHARE_TAG_OWNER, SHARE_TAG_HOLDER, SHARE_TAG_EXPIRES, SHARE_TAG_NETWORK, SHARE_TAG_WORKDIR,
};

static bool has_key(const char *tag, const char *key)
{
    size_t n = strlen(key);

    return strncmp(tag, key, n) == 0 && tag[n] == '=';
}

const char *share_tags_find(const struct share_tags *t, const char *key)
{
    for (size_t i = 0; i < t->n; i++)
        if (has_key(t->items[i], key)) {
            const char *value = t->items[i] + strlen(key) + 1;

            return value[0] ? value : NULL;
        }
    return NULL;
}

bool share_tag_reserved(const char *tag)
{
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (has_key(tag, reserved[i]))
            return true;
    return false;
}

/* As a lease would be; its holder is only looked at. */
static struct lease lease_of(const struct share_tags *t)
{
    const char *held_by = share_tags_find(t, SHARE_TAG_HOLDER);

    return (struct lease){
        .state = !share_tags_find(t, SHARE_TAG_OWNER) ? LEASE_NONE
                 : held_by                            ? LEASE_HELD
                                                      : LEASE_FREE,
        .holder = (char *)(uintptr_t)held_by,
    };
}

/* Nothing takes the name of a holder that died out of the tags, but that holder. */
static int say_way_out(const char *holder, struct error *err)
{
    bool plain = strlen(holder) <= PLAIN_BYTES && !strchr(holder, '\'');

    return error_remedy(err,
                        "Use a sandbox for each task, or let one follow the other; if the holder "
                        "has died, \"atoll hold ID --owner OWNER --holder %s%s%s -- true\" takes "
                        "its name out",
                        plain ? "'" : "", plain ? holder : "HOLDER", plain ? "'" : "");
}

int share_tags_admit(const struct share_tags *t, const char *owner, const char *holder,
                     struct error *err)
{
    const struct attach_request asked = {.owner = owner, .holder = holder};
    const struct lease found = lease_of(t);
    int r = lease_judge(&found, share_tags_find(t, SHARE_TAG_OWNER), &asked, err);

    return r == -EBUSY && found.holder ? say_way_out(found.holder, err)
           : r < 0                     ? r
                                       : found.holder != NULL;
}

int share_tags_judge_end(const struct share_tags *t, const char *owner, struct error *err)
{
    const struct lease found = lease_of(t);

    return lease_judge_end(&found, share_tags_find(t, SHARE_TAG_OWNER), owner, err);
}

/* What is left until the second that is written there; UINT64_MAX when that is no number. */
static uint64_t left_until(const char *text, uint64_t epoch_us)
{
    uint64_t at;

    if (!text || parse_u64(text, 0, UINT64_MAX / SECOND_US, &at) < 0)
        return UINT64_MAX;
    at *= SECOND_US;
    return at > epoch_us ? at - epoch_us : 0;
}

void share_tags_report(const struct share_tags *t, uint64_t epoch_us, struct attach_report *ret,
                       char *warning, size_t size)
{
    const char *stamp = share_tags_find(t, SHARE_TAG_NETWORK);
    struct error ignored = ERROR_INIT;
    struct policy policy = {0};

    *ret = (struct attach_report){
        .left_us = left_until(share_tags_find(t, SHARE_TAG_EXPIRES), epoch_us),
        .workdir = share_tags_find(t, SHARE_TAG_WORKDIR),
    };
    warning[0] = '\0';
    if (!stamp)
        return;
    if (policy_stamp_decode(stamp, strlen(stamp), &policy, &ignored) < 0) {
        (void)snprintf(warning, size,
                       "what the sandbox may reach is recorded in a way that cannot be read: "
                       "'%.200s'",
                       stamp);
        return;
    }
    policy_done(&policy);
    ret->network = stamp;
}

static int add(struct string_list *l, const char *key, const char *value)
{
    _cleanup_free_ char *tag = NULL;

    if (asprintf(&tag, "%s=%s", key, value) < 0) {
        tag = NULL;
        return -ENOMEM;
    }
    return string_list_add(l, tag);
}

static int add_network(struct string_list *l, const struct spec *s)
{
    _cleanup_(problems_done) struct problems problems = {0};
    _cleanup_free_ char *stamp = NULL;
    struct policy policy = {0};

    if (spec_policy(s, &policy, &problems) < 0)
        return 0; /* a policy that the backend is about to refuse */
    int r = policy_stamp_encode(&policy, &stamp);
    policy_done(&policy);
    return r < 0 ? r : add(l, SHARE_TAG_NETWORK, stamp);
}

int share_tags_stamp(const struct spec *s, uint64_t epoch_us, struct string_list *ret)
{
    char at[24];
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->tags.n; i++)
        if (!share_tag_reserved(s->tags.items[i]))
            r = string_list_add(ret, s->tags.items[i]);
    if (r < 0 || !s->owner)
        return r;
    r = add(ret, SHARE_TAG_OWNER, s->owner);
    if (r == 0 && s->lifetime_us > 0) {
        (void)snprintf(at, sizeof at, "%llu",
                       (unsigned long long)((epoch_us + s->lifetime_us) / SECOND_US));
        r = add(ret, SHARE_TAG_EXPIRES, at);
    }
    if (r == 0)
        r = add_network(ret, s);
    if (r == 0 && s->workdir)
        r = add(ret, SHARE_TAG_WORKDIR, s->workdir);
    return r;
}

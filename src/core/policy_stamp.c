/* SPDX-License-Identifier: Apache-2.0 */
/* The policy as recorded on a sandbox, so that who attaches to it can compare it with what he
 * wants. */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "core/policy.h"
#include "base/guards.h"

/* The hosts at their ceiling, each with quotes and a comma, and the longest ranges fit. */
enum { STAMP_BYTES_MAX = 2 << 20 };
_Static_assert(POLICY_HOSTS_BYTES_MAX + 3 * POLICY_HOSTS_MAX +
                       POLICY_RANGES_MAX * (ADDRESS_RANGE_TEXT_BYTES + 2) + 128 <
                   STAMP_BYTES_MAX,
               "a stamp that is written can be read");

static const char key_hosts[] = "allow_egress_to";
static const char key_ranges[] = "allow_egress_to_cidrs";
static const char key_block[] = "block_network";

static void json_decref_guard(json_t **j)
{
    json_decref(*j);
}

static void problems_guard(struct problems *p)
{
    problems_done(p);
}

static json_t *hosts_json(const struct policy *p)
{
    json_t *list = json_array();
    int r = list ? 0 : -1;

    for (size_t i = 0; r == 0 && i < p->n_hosts; i++)
        r = json_array_append_new(list, json_string(p->hosts[i].rule.text));
    if (r == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *ranges_json(const struct policy *p)
{
    json_t *list = json_array();
    int r = list ? 0 : -1;

    for (size_t i = 0; r == 0 && i < p->n_ranges; i++) {
        char text[ADDRESS_RANGE_TEXT_BYTES];

        address_range_format(&p->ranges[i].range, text);
        r = json_array_append_new(list, json_string(text));
    }
    if (r == 0)
        return list;
    json_decref(list);
    return NULL;
}

int policy_stamp_encode(const struct policy *p, char **ret)
{
    _cleanup_(json_decref_guard) json_t *stamp = json_object();
    char *text;

    if (!stamp || json_object_set_new(stamp, key_hosts, hosts_json(p)) < 0 ||
        json_object_set_new(stamp, key_ranges, ranges_json(p)) < 0 ||
        json_object_set_new(stamp, key_block, json_boolean(!p->open)) < 0)
        return -ENOMEM;
    text = json_dumps(stamp, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
    if (!text)
        return -ENOMEM;
    *ret = text;
    return 0;
}

static int no_stamp(struct error *err, const char *why)
{
    return error_set(err, ERROR_USAGE, EINVAL, "the text is no stamp of a network policy: %s", why);
}

static int check_keys(json_t *stamp, struct error *err)
{
    static const char *const keys[] = {key_hosts, key_ranges, key_block};

    if (!json_is_object(stamp))
        return no_stamp(err, "it is not a JSON object");
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (!json_object_get(stamp, keys[i]))
            return error_set(err, ERROR_USAGE, EINVAL,
                             "the text is no stamp of a network policy: it has no key '%s'",
                             keys[i]);
    if (json_object_size(stamp) != ARRAY_SIZE(keys))
        return no_stamp(err, "it has more keys than this version knows");
    if (!json_is_boolean(json_object_get(stamp, key_block)))
        return no_stamp(err, "'block_network' is neither true nor false");
    return 0;
}

/* Views of the strings of @array; the list itself is the caller's to free. */
static int read_list(const json_t *stamp, const char *key, const char ***ret_items, size_t *ret_n,
                     struct error *err)
{
    const json_t *array = json_object_get(stamp, key);
    _cleanup_free_ const char **items = NULL;
    size_t n = json_array_size(array);

    if (!json_is_array(array))
        return error_set(err, ERROR_USAGE, EINVAL,
                         "the text is no stamp of a network policy: '%s' is not a list", key);
    items = calloc(n + 1, sizeof *items);
    if (!items)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        items[i] = json_string_value(json_array_get(array, i));
        if (!items[i])
            return error_set(
                err, ERROR_USAGE, EINVAL,
                "the text is no stamp of a network policy: '%s' holds something that is "
                "not a string",
                key);
    }
    *ret_items = TAKE_PTR(items);
    *ret_n = n;
    return 0;
}

int policy_stamp_decode(const char *text, size_t n, struct policy *ret, struct error *err)
{
    _cleanup_(json_decref_guard) json_t *stamp = NULL;
    _cleanup_(problems_guard) struct problems problems = {0};
    _cleanup_free_ const char **hosts = NULL, **ranges = NULL;
    struct policy_input in = {.block_network = true};
    json_error_t ignored;
    int r;

    if (n == 0)
        return no_stamp(err, "it is empty");
    if (n > STAMP_BYTES_MAX)
        return no_stamp(err, "it is longer than 2 MiB");
    stamp = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &ignored);
    if (!stamp)
        return no_stamp(err, "it is not JSON");
    r = check_keys(stamp, err);
    if (r == 0)
        r = read_list(stamp, key_hosts, &hosts, &in.allow_egress_to.n, err);
    if (r == 0)
        r = read_list(stamp, key_ranges, &ranges, &in.allow_egress_to_cidrs.n, err);
    if (r < 0)
        return r;
    in.block_network = json_is_true(json_object_get(stamp, key_block));
    in.allow_egress_to.items = hosts;
    in.allow_egress_to_cidrs.items = ranges;
    if (policy_build(&in, ret, &problems) < 0) {
        (void)problems_error(&problems, NULL, err);
        return error_context(err, "stamp of a network policy");
    }
    return 0;
}

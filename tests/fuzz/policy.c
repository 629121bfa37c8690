/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a network policy: a destination, an entry of each list, a stamp. Whatever is taken
 * is the same after another trip, and a name that is taken can be read in one way only.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/policy.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_name(const struct host_name *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t n = strlen(name->text);
    struct host_name again;

    check(n > 0 && n <= HOST_NAME_BYTES_MAX && strspn(name->text, allowed) == n);
    check(name->text[0] != '.' && name->text[n - 1] != '.' && !strstr(name->text, ".."));
    check(host_name_read(name->text, n, &again) == 0 && strcmp(again.text, name->text) == 0);
}

static void build(struct policy_input in, struct policy *ret)
{
    struct problems problems = {0};

    check(policy_build(&in, ret, &problems) == 0);
}

/* Decides under a closed and an open policy. */
static void check_decisions(const struct policy_destination *to)
{
    const char *const hosts[] = {"ok.test", "*.wild.test:80"};
    const char *const ranges[] = {"10.0.0.0/8", "64:ff9b::/97", "fd00::/8"};
    const char *const privates[] = {"10.0.0.0/8", "fd00::/8"};
    struct policy policies[2];
    struct policy_decision d;

    build(
        (struct policy_input){.block_network = true,
                              .allow_egress_to = {.items = hosts, .n = ARRAY_SIZE(hosts)},
                              .allow_egress_to_cidrs = {.items = ranges, .n = ARRAY_SIZE(ranges)}},
        &policies[0]);
    build((struct policy_input){.private_cidrs = {.items = privates, .n = ARRAY_SIZE(privates)}},
          &policies[1]);
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        policy_decide(&policies[i], to, &d);
        check(d.explanation[0] != '\0' && (!d.allowed || d.remedy[0] == '\0'));
        if (d.allowed && !to->by_name)
            check(policy_may_dial(&policies[i], &to->address));
        policy_done(&policies[i]);
    }
}

static void try_destination(const char *text, size_t n)
{
    char again_text[HOST_NAME_BYTES_MAX + 16], address[ADDRESS_TEXT_BYTES];
    struct policy_destination to, again;
    struct error err = ERROR_INIT;

    if (policy_destination_parse(text, n, &to, &err) < 0) {
        check(err.code != 0 && err.message[0] != '\0' && err.remedy[0] != '\0');
        return;
    }
    check(to.port > 0);
    if (to.by_name) {
        check_name(&to.name);
        (void)snprintf(again_text, sizeof again_text, "%s:%u", to.name.text, to.port);
    } else {
        address_format(&to.address, address);
        (void)snprintf(again_text, sizeof again_text,
                       to.address.family == ADDRESS_V6 ? "[%s]:%u" : "%s:%u", address, to.port);
    }
    check(policy_destination_parse(again_text, strlen(again_text), &again, &err) == 0);
    check(again.by_name == to.by_name && again.port == to.port);
    check(to.by_name ? strcmp(again.name.text, to.name.text) == 0
                     : address_equal(&again.address, &to.address));
    check_decisions(&to);
}

static void try_entries(const char *text)
{
    struct error err = ERROR_INIT, other = ERROR_INIT;
    struct host_rule rule, rule_again;
    struct address_range range, range_again;
    char canonical[ADDRESS_RANGE_TEXT_BYTES];

    if (host_rule_parse(text, &rule, &err) == 0) {
        check(strcmp(rule.text, text) == 0 && rule.port > 0);
        check_name(&rule.name);
        check(host_rule_matches(&rule, &rule.name) == !rule.wildcard);
        check(host_rule_parse(rule.text, &rule_again, &err) == 0);
        check(host_rule_equal(&rule, &rule_again));
    } else {
        check(err.message[0] != '\0' && err.remedy[0] != '\0');
    }
    if (address_range_parse(text, &range, &other) == 0) {
        address_range_format(&range, canonical);
        check(address_range_parse(canonical, &range_again, &other) == 0);
        check(address_equal(&range.base, &range_again.base) && range.prefix == range_again.prefix);
        check(address_range_contains(&range, &range.base));
    } else {
        check(other.message[0] != '\0' && other.remedy[0] != '\0');
    }
}

static void try_stamp(const char *text, size_t n)
{
    struct error err = ERROR_INIT;
    struct policy p, again;
    char *first, *second, *words;

    if (policy_stamp_decode(text, n, &p, &err) < 0) {
        check(err.code != 0 && err.message[0] != '\0');
        return;
    }
    check(policy_stamp_encode(&p, &first) == 0);
    check(policy_stamp_decode(first, strlen(first), &again, &err) == 0);
    check(policy_stamp_encode(&again, &second) == 0);
    check(strcmp(first, second) == 0);
    check(policy_describe(&p, &words) == 0 && words[0] != '\0');
    free(first);
    free(second);
    free(words);
    policy_done(&p);
    policy_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *exact = malloc(size > 0 ? size : 1); /* so that a sanitizer sees one byte too far */
    struct host_name name;

    check(text && exact);
    if (size > 0) {
        memcpy(text, data, size);
        memcpy(exact, data, size);
    }
    text[size] = '\0';
    if (host_name_read(exact, size, &name) == 0)
        check_name(&name);
    try_destination(exact, size);
    try_stamp(exact, size);
    try_entries(text);
    free(text);
    free(exact);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup ENTRIES ROUNDS: what a name costs in a policy of many, for scripts/bench.
 *
 * Nine of ten entries are names, one is a wildcard. A round asks for a thousand names in no order:
 * listed ones, ones below a wildcard, and ones that no entry lists. "ask" is what the resolver
 * inside wants to know of a name, "decide" what a connection needs. Each line of output is "NAME
 * NANOSECONDS", of one look-up on average in that round.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/policy.h"

enum { PER_ROUND = 1000, NAME_BYTES = 64, ROUNDS_MAX = 100000 };

enum kind { LISTED, WILDCARD, UNLISTED, KIND__MAX };

__attribute__((noreturn)) static void fail(const char *why)
{
    (void)fprintf(stderr, "lookup: %s\n", why);
    exit(1);
}

static size_t number(const char *text, long max)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || n < 10 || n > max)
        fail("a number is wrong");
    return (size_t)n;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void write_entry(char *buf, size_t i)
{
    if (i % 10 == 0)
        (void)snprintf(buf, NAME_BYTES, "*.w%zu.zone%zu.example.net", i, i % 97);
    else
        (void)snprintf(buf, NAME_BYTES, "h%zu.zone%zu.example.org:443", i, i % 97);
}

/* A name that the @i-th entry lists, or that looks so. */
static void write_name(char *buf, enum kind kind, size_t i)
{
    size_t wildcard = i - i % 10, name = i % 10 == 0 ? i + 1 : i;

    if (kind == WILDCARD)
        (void)snprintf(buf, NAME_BYTES, "a.b.w%zu.zone%zu.example.net", wildcard, wildcard % 97);
    else
        (void)snprintf(buf, NAME_BYTES, "%s%zu.zone%zu.example.org", kind == LISTED ? "h" : "x",
                       name, name % 97);
}

static void build(struct policy *p, size_t entries)
{
    struct problems problems = {0};
    struct policy_input in = {.block_network = true};
    const char **items = calloc(entries, sizeof *items);
    char *texts = calloc(entries, NAME_BYTES);

    if (!items || !texts)
        fail("out of memory");
    for (size_t i = 0; i < entries; i++) {
        write_entry(texts + i * NAME_BYTES, i);
        items[i] = texts + i * NAME_BYTES;
    }
    in.allow_egress_to = (struct policy_list){.items = items, .n = entries};
    if (policy_build(&in, p, &problems) < 0)
        fail("the policy is refused");
    free(items);
    free(texts);
}

static void ask(const struct policy *p, const char *text, bool expected)
{
    struct host_name name;
    bool listed;

    if (host_name_read(text, strlen(text), &name) < 0)
        fail("a name is wrong");
    listed = policy_name_kind(p, &name) == POLICY_NAME_LISTED;
    if (listed != expected || (policy_find_host(p, &name, 443) != NULL) != expected)
        fail("a name is not judged as it should be");
}

static void decide(const struct policy *p, const char *text, bool expected)
{
    struct policy_destination to = {.by_name = true, .port = 443};
    struct policy_decision decision;

    if (host_name_read(text, strlen(text), &to.name) < 0)
        fail("a name is wrong");
    policy_decide(p, &to, &decision);
    if (decision.allowed != expected)
        fail("a connection is not judged as it should be");
}

static void time_round(const struct policy *p, size_t entries, enum kind kind, size_t seed)
{
    static const char *const kinds[] = {"listed", "wildcard", "unlisted"};
    static char names[PER_ROUND][NAME_BYTES];
    uint64_t began, asked;

    for (size_t i = 0; i < PER_ROUND; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        write_name(names[i], kind, (seed >> 33) % (entries - 1));
    }
    began = now_ns();
    for (size_t i = 0; i < PER_ROUND; i++)
        ask(p, names[i], kind != UNLISTED);
    asked = now_ns();
    for (size_t i = 0; i < PER_ROUND; i++)
        decide(p, names[i], kind != UNLISTED);
    (void)printf("ask-%s %llu\n", kinds[kind], (unsigned long long)(asked - began) / PER_ROUND);
    (void)printf("decide-%s %llu\n", kinds[kind],
                 (unsigned long long)(now_ns() - asked) / PER_ROUND);
}

int main(int argc, char **argv)
{
    struct policy p;

    if (argc != 3) {
        (void)fputs("usage: lookup ENTRIES ROUNDS\n", stderr);
        return 2;
    }
    size_t entries = number(argv[1], POLICY_HOSTS_MAX), rounds = number(argv[2], ROUNDS_MAX);
    build(&p, entries);
    for (size_t round = 0; round < rounds; round++)
        for (int kind = 0; kind < KIND__MAX; kind++)
            time_round(&p, entries, (enum kind)kind, round * KIND__MAX + (size_t)kind);
    policy_done(&p);
    return 0;
}

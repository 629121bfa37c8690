/* SPDX-License-Identifier: Apache-2.0 */
/* What each backend keeps, the rules themselves, and finding a backend. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "core/backend_tables.h"
#include "core/backends.h"
#include "core/limits.h"
#include "base/guards.h"

static struct spec default_spec(void)
{
    struct spec s;

    assert_int_equal(spec_init(&s), 0);
    return s;
}

static void add(struct string_list *l, const char *item)
{
    assert_int_equal(string_list_add(l, item), 0);
}

static void set(char **field, const char *text)
{
    free(*field);
    *field = strdup(text);
    assert_non_null(*field);
}

static struct backend find(const char *name)
{
    struct backend_room room;
    struct error err = ERROR_INIT;
    struct backend b;

    assert_int_equal(backend_find(name, NULL, &room, &b, &err), 0);
    return b;
}

static struct capability_result result_of(const struct backend *b, const struct spec *s,
                                          enum spec_field_id field)
{
    struct capability_results results;
    const bool good = capability_check(&b->capability, s, &results);
    size_t counted = 0;

    for (size_t i = 0; i < CAPABILITY_VERDICT__MAX; i++)
        counted += results.n_of[i];
    assert_int_equal(counted, results.n);
    assert_int_equal(good, results.n_of[CAPABILITY_REFUSED] == 0);
    for (size_t i = 0; i < results.n; i++)
        if (results.items[i].field == field)
            return results.items[i];
    fail_msg("%s: no result for %s", b->name, spec_fields[field].name);
    return (struct capability_result){0};
}

static enum capability_verdict verdict_of(const struct backend *b, const struct spec *s,
                                          enum spec_field_id field)
{
    return result_of(b, s, field).verdict;
}

/* Six requests for the network, as their fields are combined. */
enum request { NONE, HOSTS, RANGES, BOTH, OPEN, OPEN_AND_LIST, N_REQUESTS };

static struct spec spec_for(enum request request)
{
    struct spec s = default_spec();

    s.block_network = request != OPEN && request != OPEN_AND_LIST;
    if (request == HOSTS || request == BOTH || request == OPEN_AND_LIST)
        add(&s.allow_egress_to, "*.pypi.org");
    if (request == RANGES || request == BOTH)
        add(&s.allow_egress_to_cidrs, "8.8.8.0/24");
    return s;
}

/* Whether the network fields of the request are all kept. */
static bool network_is_kept(const struct backend *b, enum request request)
{
    static const enum spec_field_id fields[] = {
        SPEC_FIELD_BLOCK_NETWORK, SPEC_FIELD_ALLOW_EGRESS_TO, SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS};
    struct spec s = spec_for(request);
    bool kept = true;

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (i == 0 || capability_field_stated(&s, fields[i]))
            kept = kept && verdict_of(b, &s, fields[i]) != CAPABILITY_REFUSED;
    spec_done(&s);
    return kept;
}

static void every_backend_keeps_just_the_networks_it_can(void **state)
{
    static const struct {
        const char *name;
        uint32_t facts;
        bool kept[N_REQUESTS];
    } rows[] = {
        {"local",
         0,
         {[NONE] = true, [HOSTS] = true, [RANGES] = true, [BOTH] = true, [OPEN] = true}},
        {"modal", 0, {[NONE] = true, [RANGES] = true, [OPEN] = true}},
        {"modal",
         FACT_BIT(FACT_NAMES_SUFFICE),
         {[NONE] = true, [HOSTS] = true, [RANGES] = true, [BOTH] = true, [OPEN] = true}},
        {"sbx", 0, {[OPEN] = true}},
        {"sbx", FACT_BIT(FACT_HOST_DENIES_ALL), {[NONE] = true, [HOSTS] = true, [OPEN] = true}},
        {"opensandbox", 0, {[NONE] = true, [HOSTS] = true, [OPEN] = true}},
        {"openshell", 0, {[NONE] = true, [HOSTS] = true}},
        {"boat", 0, {[OPEN] = true}},
        {"islo", 0, {[NONE] = true, [OPEN] = true}},
        {"kubernetes", 0, {[OPEN] = true}},
        {"kubernetes",
         FACT_BIT(FACT_NETWORK_POLICY),
         {[NONE] = true, [RANGES] = true, [OPEN] = true}},
        {"kubernetes",
         FACT_BIT(FACT_NETWORK_POLICY) | FACT_BIT(FACT_NAME_POLICY),
         {[NONE] = true, [HOSTS] = true, [RANGES] = true, [BOTH] = true, [OPEN] = true}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct backend b = find(rows[i].name);

        b.capability.facts = rows[i].facts;
        for (enum request request = 0; request < N_REQUESTS; request++)
            if (network_is_kept(&b, request) != rows[i].kept[request])
                fail_msg("%s (facts %#x), request %d: not %d", b.name, rows[i].facts, request,
                         rows[i].kept[request]);
    }
}

static void every_backend_has_a_rule_for_every_field(void **state)
{
    (void)state;
    for (size_t k = 0; backend_known(k); k++)
        for (enum spec_field_id field = 0; field < SPEC_FIELD__MAX; field++) {
            const struct capability *c = &backend_known(k)->capability;
            bool last_holds_always = field == SPEC_FIELD_NAME;

            for (size_t i = 0; i < backend_common_n_rules; i++)
                if (backend_common_rules[i].field == field)
                    last_holds_always |= backend_common_rules[i].when == WHEN_ALWAYS;
            for (size_t i = 0; i < c->n_rules; i++)
                if (c->rules[i].field == field)
                    last_holds_always |= c->rules[i].when == WHEN_ALWAYS;
            if (!last_holds_always)
                fail_msg("%s says nothing about %s", backend_known(k)->name,
                         spec_fields[field].name);
        }
}

static void check_rule(const char *backend, const struct capability_rule *rule)
{
    const char *name = spec_fields[rule->field].name;

    if (rule->field == SPEC_FIELD_NAME || !rule->how || rule->how[0] == '\0') {
        fail_msg("%s: a rule of %s is not whole", backend, name);
        return; /* analyzers do not know that it does not */
    }
    if (rule->verdict == CAPABILITY_REFUSED ? !rule->remedy || rule->by : !rule->by)
        fail_msg("%s: a rule of %s lacks its remedy, or who keeps it", backend, name);
    if (rule->how[strlen(rule->how) - 1] == '.' ||
        (rule->remedy && rule->remedy[strlen(rule->remedy) - 1] == '.'))
        fail_msg("%s: a phrase of %s has a full stop", backend, name);
    if ((rule->when == WHEN_NOT_WHOLE && rule->number == 0) ||
        (rule->when == WHEN_LACKS && rule->number >= FEATURE__MAX) ||
        (rule->when == WHEN_UNDECLARED && rule->number >= FACT__MAX) ||
        ((rule->when == WHEN_TEXT || rule->when == WHEN_PREFIX || rule->when == WHEN_NAMES ||
          rule->when == WHEN_OTHER_NAMES || rule->when == WHEN_NO_MACHINE) &&
         !rule->text))
        fail_msg("%s: a condition of %s lacks what it compares with", backend, name);
}

static void every_rule_is_whole_and_every_refusal_has_a_remedy(void **state)
{
    (void)state;
    for (size_t i = 0; i < backend_common_n_rules; i++)
        check_rule("common", &backend_common_rules[i]);
    for (size_t k = 0; backend_known(k); k++)
        for (size_t i = 0; i < backend_known(k)->capability.n_rules; i++)
            check_rule(backend_known(k)->name, &backend_known(k)->capability.rules[i]);
}

static void no_rule_stands_behind_one_that_always_holds(void **state)
{
    (void)state;
    for (size_t k = 0; backend_known(k); k++) {
        const struct capability *c = &backend_known(k)->capability;

        for (size_t i = 0; i < c->n_rules; i++)
            for (size_t j = 0; j < i; j++)
                if (c->rules[j].field == c->rules[i].field && c->rules[j].when == WHEN_ALWAYS)
                    fail_msg("%s: rule %zu of %s is never reached", backend_known(k)->name, i,
                             spec_fields[c->rules[i].field].name);
    }
}

static void the_defaults_state_nothing(void **state)
{
    struct spec s = default_spec();

    (void)state;
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        if (capability_field_stated(&s, i))
            fail_msg("%s counts as stated", spec_fields[i].name);
    spec_done(&s);
}

static void the_local_backend_keeps_the_default_spec(void **state)
{
    const struct backend b = find("local");
    struct spec s = default_spec();
    struct capability_results results;
    struct problems problems = {0};

    (void)state;
    assert_true(capability_check(&b.capability, &s, &results));
    assert_int_equal(results.n, 4);
    assert_int_equal(results.n_of[CAPABILITY_ENFORCED], 4);
    capability_problems(&results, b.name, &problems);
    assert_false(problems_any(&problems));
    spec_done(&s);
}

static void only_what_is_measured_has_a_price(void **state)
{
    const struct backend b = find("local");
    struct spec s = default_spec();
    struct capability_results results;

    (void)state;
    add(&s.prices, "cpu_hour=1");
    add(&s.prices, "gib_hour=1");
    s.max_cost_micro = 1;
    assert_true(capability_check(&b.capability, &s, &results));
    add(&s.prices, "cpu_hours=1");
    assert_false(capability_check(&b.capability, &s, &results));
    assert_int_equal(results.n_of[CAPABILITY_REFUSED], 1);
    spec_done(&s);
}

static void what_the_local_backend_cannot_keep_becomes_a_problem_each(void **state)
{
    const struct backend b = find("local");
    struct spec s = default_spec();
    struct capability_results results;
    struct problems problems = {0};

    (void)state;
    s.memory_bytes = LIMIT_GIB;
    s.pids = 100;
    s.max_cost_micro = 1;
    set(&s.egress_enforcement, "inspect");
    assert_false(capability_check(&b.capability, &s, &results));
    capability_problems(&results, b.name, &problems);
    assert_int_equal(problems.n, 2);
    assert_string_equal(problems.items[0].field, "backend.egress_enforcement");
    assert_string_equal(problems.items[1].field, "backend.max_cost");
    assert_non_null(strstr(problems.items[1].message, "the backend local refuses it: "));
    assert_non_null(problems.items[1].remedy);
    problems_done(&problems);
    spec_done(&s);
}

static void the_local_backend_says_who_keeps_which_network(void **state)
{
    const struct backend b = find("local");
    struct spec s = default_spec();

    (void)state;
    assert_non_null(strstr(result_of(&b, &s, SPEC_FIELD_BLOCK_NETWORK).how, "but loopback, name"));
    add(&s.allow_egress_to, "host.example");
    assert_non_null(strstr(result_of(&b, &s, SPEC_FIELD_BLOCK_NETWORK).how, "not listed"));
    assert_string_equal(result_of(&b, &s, SPEC_FIELD_ALLOW_EGRESS_TO).by, "atoll's egress process");
    spec_done(&s);
    s = default_spec();
    s.block_network = false;
    add(&s.private_cidrs, "10.0.0.0/8");
    assert_non_null(strstr(result_of(&b, &s, SPEC_FIELD_BLOCK_NETWORK).how, "public addresses"));
    assert_string_equal(result_of(&b, &s, SPEC_FIELD_PRIVATE_CIDRS).by, "the kernel");
    spec_done(&s);
}

static void proxies_are_spoken_to_by_http_alone(void **state)
{
    static const struct {
        const char *proxy;
        enum capability_verdict verdict;
    } rows[] = {
        {"http://proxy.example:3128", CAPABILITY_ENFORCED},
        {"https://proxy.example:3128", CAPABILITY_REFUSED},
        {"socks5://proxy.example:1080", CAPABILITY_REFUSED},
    };
    const struct backend local = find("local"), modal = find("modal");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct spec s = default_spec();

        set(&s.proxy, rows[i].proxy);
        set(&s.proxy_credentials, "/etc/hosts");
        add(&s.add_hosts, "host.example=10.0.0.1");
        assert_int_equal(verdict_of(&local, &s, SPEC_FIELD_PROXY), rows[i].verdict);
        assert_int_equal(verdict_of(&local, &s, SPEC_FIELD_ADD_HOSTS), CAPABILITY_ENFORCED);
        assert_int_equal(verdict_of(&local, &s, SPEC_FIELD_PROXY_CREDENTIALS), CAPABILITY_ENFORCED);
        assert_int_equal(verdict_of(&modal, &s, SPEC_FIELD_PROXY), CAPABILITY_REFUSED);
        assert_int_equal(verdict_of(&modal, &s, SPEC_FIELD_ADD_HOSTS), CAPABILITY_REFUSED);
        assert_int_equal(verdict_of(&modal, &s, SPEC_FIELD_PROXY_CREDENTIALS), CAPABILITY_REFUSED);
        spec_done(&s);
    }
}

static void a_lifetime_must_be_in_the_range_of_the_service(void **state)
{
    static const struct {
        const char *name;
        uint64_t lifetime_us;
        enum capability_verdict verdict;
    } rows[] = {
        {"local", 0, CAPABILITY_ACCEPTED},
        {"local", 1000, CAPABILITY_ENFORCED},
        {"modal", 0, CAPABILITY_REFUSED},
        {"modal", SECONDS(119), CAPABILITY_REFUSED},
        {"modal", SECONDS(120), CAPABILITY_ENFORCED},
        {"modal", SECONDS(86400), CAPABILITY_ENFORCED},
        {"modal", SECONDS(86401), CAPABILITY_REFUSED},
        {"boat", 0, CAPABILITY_REFUSED},
        {"boat", SECONDS(1) / 2, CAPABILITY_REFUSED},
        {"boat", SECONDS(2592000), CAPABILITY_ENFORCED},
        {"boat", SECONDS(2592001), CAPABILITY_REFUSED},
        {"opensandbox", SECONDS(59), CAPABILITY_REFUSED},
        {"opensandbox", SECONDS(60), CAPABILITY_ENFORCED},
        {"sbx", LIMIT_LIFETIME_DEFAULT_US, CAPABILITY_ACCEPTED},
        {"sbx", SECONDS(60), CAPABILITY_REFUSED},
        {"openshell", 0, CAPABILITY_ACCEPTED},
        {"openshell", SECONDS(60), CAPABILITY_REFUSED},
        {"islo", 0, CAPABILITY_ACCEPTED},
        {"kubernetes", SECONDS(60), CAPABILITY_ENFORCED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct backend b = find(rows[i].name);
        struct spec s = default_spec();

        s.lifetime_us = rows[i].lifetime_us;
        if (verdict_of(&b, &s, SPEC_FIELD_SANDBOX_TIMEOUT) != rows[i].verdict)
            fail_msg("row %zu: %s", i, rows[i].name);
        spec_done(&s);
    }
}

static void modal_takes_names_without_ports_and_public_ranges_of_ipv4(void **state)
{
    static const struct {
        const char *host, *range;
        bool kept;
    } rows[] = {
        {"pypi.org", NULL, true},        {"pypi.org:8443", NULL, false},
        {NULL, "203.0.113.0/24", true},  {NULL, "2001:db8::/32", false},
        {NULL, "10.0.0.0/8", false},     {NULL, "169.254.169.254/32", false},
        {NULL, "192.168.1.0/24", false},
    };
    struct backend b = find("modal");

    (void)state;
    b.capability.facts = FACT_BIT(FACT_NAMES_SUFFICE);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct spec s = default_spec();

        add(rows[i].host ? &s.allow_egress_to : &s.allow_egress_to_cidrs,
            rows[i].host ? rows[i].host : rows[i].range);
        if ((verdict_of(&b, &s,
                        rows[i].host ? SPEC_FIELD_ALLOW_EGRESS_TO
                                     : SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS) != CAPABILITY_REFUSED) !=
            rows[i].kept)
            fail_msg("row %zu", i);
        spec_done(&s);
    }
}

static void an_owner_and_an_idle_timeout_exclude_each_other_on_modal(void **state)
{
    const struct backend modal = find("modal"), boat = find("boat"), local = find("local");
    struct spec s = default_spec();

    (void)state;
    s.owner = strdup("dag/run");
    assert_non_null(s.owner);
    assert_int_equal(verdict_of(&modal, &s, SPEC_FIELD_OWNER), CAPABILITY_ACCEPTED);
    assert_int_equal(verdict_of(&boat, &s, SPEC_FIELD_OWNER), CAPABILITY_REFUSED);
    s.idle_timeout_us = SECONDS(60);
    assert_int_equal(verdict_of(&modal, &s, SPEC_FIELD_OWNER), CAPABILITY_REFUSED);
    assert_int_equal(verdict_of(&modal, &s, SPEC_FIELD_IDLE_TIMEOUT), CAPABILITY_ENFORCED);
    assert_int_equal(verdict_of(&local, &s, SPEC_FIELD_OWNER), CAPABILITY_ACCEPTED);
    s.idle_timeout_us = s.lifetime_us + 1;
    assert_int_equal(verdict_of(&modal, &s, SPEC_FIELD_IDLE_TIMEOUT), CAPABILITY_REFUSED);
    spec_done(&s);
}

static void reserved_names_of_variables_are_refused(void **state)
{
    static const struct {
        const char *backend, *entry;
        bool kept;
    } rows[] = {
        {"islo", "PATH=/bin", false},          {"islo", "PATHS=/bin", true},
        {"openshell", "OPENSHELL_X=1", false}, {"openshell", "https_proxy=x", false},
        {"openshell", "OPENSHELL=1", true},    {"opensandbox", "OPENSANDBOX_A=1", false},
        {"opensandbox", "EXECD=1", false},     {"opensandbox", "EXECDOR=1", true},
        {"boat", "BOAT_ID=1", false},          {"local", "PATH=/bin", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct backend b = find(rows[i].backend);
        struct spec s = default_spec();

        add(&s.env, "GOOD=1");
        assert_int_equal(verdict_of(&b, &s, SPEC_FIELD_ENV), CAPABILITY_ENFORCED);
        add(&s.env, rows[i].entry);
        if ((verdict_of(&b, &s, SPEC_FIELD_ENV) == CAPABILITY_ENFORCED) != rows[i].kept)
            fail_msg("%s: %s", rows[i].backend, rows[i].entry);
        spec_done(&s);
    }
}

static void sizes_must_be_those_of_a_machine(void **state)
{
    static const struct {
        uint64_t cpu_milli, memory_bytes, disk_bytes;
        bool kept;
    } rows[] = {
        {2000, 0, 0, true},
        {4000, 8 * LIMIT_GIB, 50 * LIMIT_GIB, true},
        {8000, 16 * LIMIT_GIB, 0, true},
        {3000, 0, 0, false},
        {2000, 8 * LIMIT_GIB, 0, false},
    };
    const struct backend boat = find("boat"), sbx = find("sbx");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct spec s = default_spec();

        s.cpu_milli = rows[i].cpu_milli;
        s.memory_bytes = rows[i].memory_bytes;
        s.disk_bytes = rows[i].disk_bytes;
        if ((verdict_of(&boat, &s, SPEC_FIELD_CPU) == CAPABILITY_ENFORCED) != rows[i].kept)
            fail_msg("row %zu", i);
        assert_int_equal(verdict_of(&sbx, &s, SPEC_FIELD_CPU), CAPABILITY_ENFORCED);
        s.cpu_milli = 1500;
        assert_int_equal(verdict_of(&sbx, &s, SPEC_FIELD_CPU), CAPABILITY_REFUSED);
        spec_done(&s);
    }
}

static void tags_must_have_the_form_that_a_backend_can_keep(void **state)
{
    const struct backend local = find("local"), openshell = find("openshell");
    static const char *const bad[] = {"team=a b", "=x", "a=-x", "a/b=c"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct spec s = default_spec();

        add(&s.tags, "team=data");
        add(&s.tags, "empty=");
        assert_int_equal(verdict_of(&openshell, &s, SPEC_FIELD_TAGS), CAPABILITY_ACCEPTED);
        add(&s.tags, bad[i]);
        assert_int_equal(verdict_of(&openshell, &s, SPEC_FIELD_TAGS), CAPABILITY_REFUSED);
        assert_int_equal(verdict_of(&local, &s, SPEC_FIELD_TAGS), CAPABILITY_ACCEPTED);
        spec_done(&s);
    }
}

static void an_image_of_this_host_is_refused_elsewhere(void **state)
{
    (void)state;
    for (size_t k = 0; backend_known(k); k++) {
        const struct backend *b = backend_known(k);
        const bool local = b->state == BACKEND_BUILT_IN;
        struct spec s = default_spec();

        set(&s.image, "dir:/srv/root");
        assert_int_equal(verdict_of(b, &s, SPEC_FIELD_IMAGE),
                         local ? CAPABILITY_ENFORCED : CAPABILITY_REFUSED);
        set(&s.image, "python:3.12-slim");
        assert_int_equal(verdict_of(b, &s, SPEC_FIELD_IMAGE) == CAPABILITY_REFUSED,
                         local || strcmp(b->name, "boat") == 0);
        spec_done(&s);
    }
}

static void contradictions_are_refused_on_every_backend(void **state)
{
    (void)state;
    for (size_t k = 0; backend_known(k); k++) {
        struct spec s = spec_for(OPEN_AND_LIST);
        struct capability_result r = result_of(backend_known(k), &s, SPEC_FIELD_BLOCK_NETWORK);

        assert_int_equal(r.verdict, CAPABILITY_REFUSED);
        assert_non_null(strstr(r.remedy, "block_network"));
        spec_done(&s);
        s = default_spec();
        add(&s.private_cidrs, "10.0.0.0/8");
        assert_int_equal(verdict_of(backend_known(k), &s, SPEC_FIELD_PRIVATE_CIDRS),
                         CAPABILITY_REFUSED);
        spec_done(&s);
    }
}

static void what_needs_an_operation_is_refused_without_it(void **state)
{
    struct backend b = find("modal");
    struct spec s = default_spec();

    (void)state;
    s.toolset.attach_to = strdup("sb-1");
    assert_non_null(s.toolset.attach_to);
    add(&s.inputs, "/a=/b");
    assert_int_equal(verdict_of(&b, &s, SPEC_FIELD_ATTACH_TO), CAPABILITY_ACCEPTED);
    assert_int_equal(verdict_of(&b, &s, SPEC_FIELD_INPUTS), CAPABILITY_ENFORCED);
    b.capability.features = 0;
    assert_int_equal(verdict_of(&b, &s, SPEC_FIELD_ATTACH_TO), CAPABILITY_REFUSED);
    assert_int_equal(verdict_of(&b, &s, SPEC_FIELD_INPUTS), CAPABILITY_REFUSED);
    spec_done(&s);
}

static void what_a_backend_is_silent_about_is_refused(void **state)
{
    const struct backend silent = {.name = "silent", .state = BACKEND_PROGRAM};
    struct spec s = default_spec();
    struct capability_results results;

    (void)state;
    assert_false(capability_check(&silent.capability, &s, &results));
    assert_int_equal(results.n_of[CAPABILITY_REFUSED], results.n);
    for (size_t i = 0; i < results.n; i++)
        assert_non_null(results.items[i].remedy);
    spec_done(&s);
}

static void rules_can_be_stated_at_run_time(void **state)
{
    char how[] = "a door", by[] = "a guard";
    struct capability c = {0};
    struct spec s = default_spec();
    struct capability_results results;

    (void)state;
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        assert_int_equal(
            capability_add(&c,
                           &(struct capability_rule){
                               .field = i, .verdict = CAPABILITY_ENFORCED, .how = how, .by = by}),
            0);
    memset(how, 'x', sizeof how - 1); /* it was copied */
    memset(by, 'x', sizeof by - 1);
    assert_true(capability_check(&c, &s, &results));
    assert_string_equal(results.items[0].how, "a door");
    assert_string_equal(results.items[0].by, "a guard");
    capability_done(&c);
    assert_null(c.rules);
    spec_done(&s);
}

static void words_are_found_by_their_names(void **state)
{
    enum capability_feature feature;

    (void)state;
    for (int i = 0; i < FEATURE__MAX; i++) {
        assert_int_equal(
            capability_feature_find(capability_feature_name((enum capability_feature)i), &feature),
            0);
        assert_int_equal(feature, i);
    }
    assert_int_equal(capability_feature_find("fly", &feature), -EINVAL);
}

/* A folder with an executable in it, both removed at the end. */
struct program {
    char folder[32], path[80];
};

static struct program program_make(const char *name, mode_t mode)
{
    struct program p = {.folder = "/tmp/atoll-test-XXXXXX"};

    assert_non_null(mkdtemp(p.folder));
    (void)snprintf(p.path, sizeof p.path, "%s/atoll-backend-%s", p.folder, name);
    FILE *f = fopen(p.path, "we");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(p.path, mode), 0);
    return p;
}

static void program_remove(const struct program *p)
{
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(rmdir(p->folder), 0);
}

static void a_program_on_the_path_is_a_backend(void **state)
{
    struct program p = program_make("modal", 0755), unready = program_make("other", 0644);
    struct backend_room room;
    struct error err = ERROR_INIT;
    struct string_list names;
    struct backend b;
    char path[160];

    (void)state;
    (void)snprintf(path, sizeof path, "relative::%s:%s:%s", unready.folder, p.folder, p.folder);
    assert_int_equal(backend_find("modal", path, &room, &b, &err), 0);
    assert_int_equal(b.state, BACKEND_PROGRAM);
    assert_string_equal(b.name, "modal");
    assert_string_equal(b.program, p.path);
    assert_int_equal(b.capability.n_rules, 0);
    assert_int_equal(backend_find("local", path, &room, &b, &err), 0);
    assert_int_equal(b.state, BACKEND_BUILT_IN);
    assert_int_equal(backend_find("other", path, &room, &b, &err), -ENOENT);
    assert_int_equal(backend_programs(path, &names), 0);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.items[0], "modal");
    string_list_done(&names);
    program_remove(&p);
    program_remove(&unready);
}

static void an_unknown_name_is_refused_with_the_nearest(void **state)
{
    static const char *const bad[] = {"../local", "local/..", "", "LOCAL", "-x"};
    struct backend_room room;
    struct error err = ERROR_INIT;
    struct backend b;

    (void)state;
    assert_int_equal(backend_find("modl", NULL, &room, &b, &err), -ENOENT);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_non_null(strstr(err.remedy, "'modal'"));
    assert_non_null(strstr(err.remedy, "atoll-backend-modl"));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        err = (struct error)ERROR_INIT;
        assert_int_equal(backend_find(bad[i], "/tmp", &room, &b, &err), -ENOENT);
        assert_non_null(strstr(err.remedy, "atoll-backend-NAME"));
    }
}

static void only_what_is_built_in_can_make_sandboxes(void **state)
{
    (void)state;
    for (size_t k = 0; backend_known(k); k++) {
        const struct backend *b = backend_known(k);
        struct error err = ERROR_INIT;
        int r = backend_require(b, &err);

        assert_int_equal(r, b->state == BACKEND_BUILT_IN ? 0 : -ENOSYS);
        assert_true(r == 0 || strstr(err.remedy, "local"));
    }
}

static void a_spec_is_admitted_or_refused_by_its_own_backend(void **state)
{
    struct spec s = default_spec();
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(backend_admit(&s, NULL, &err), 0);
    s.max_cost_micro = 1;
    add(&s.prices, "run=1");
    assert_int_equal(backend_admit(&s, NULL, &err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_non_null(strstr(err.message, "backend.prices"));
    err = (struct error)ERROR_INIT;
    set(&s.backend, "modal");
    assert_int_equal(backend_admit(&s, NULL, &err), -ENOSYS);
    err = (struct error)ERROR_INIT;
    set(&s.backend, "nowhere");
    assert_int_equal(backend_admit(&s, NULL, &err), -ENOENT);
    spec_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_backend_keeps_just_the_networks_it_can),
        cmocka_unit_test(every_backend_has_a_rule_for_every_field),
        cmocka_unit_test(every_rule_is_whole_and_every_refusal_has_a_remedy),
        cmocka_unit_test(no_rule_stands_behind_one_that_always_holds),
        cmocka_unit_test(the_defaults_state_nothing),
        cmocka_unit_test(the_local_backend_keeps_the_default_spec),
        cmocka_unit_test(only_what_is_measured_has_a_price),
        cmocka_unit_test(what_the_local_backend_cannot_keep_becomes_a_problem_each),
        cmocka_unit_test(the_local_backend_says_who_keeps_which_network),
        cmocka_unit_test(proxies_are_spoken_to_by_http_alone),
        cmocka_unit_test(a_lifetime_must_be_in_the_range_of_the_service),
        cmocka_unit_test(modal_takes_names_without_ports_and_public_ranges_of_ipv4),
        cmocka_unit_test(an_owner_and_an_idle_timeout_exclude_each_other_on_modal),
        cmocka_unit_test(reserved_names_of_variables_are_refused),
        cmocka_unit_test(sizes_must_be_those_of_a_machine),
        cmocka_unit_test(tags_must_have_the_form_that_a_backend_can_keep),
        cmocka_unit_test(an_image_of_this_host_is_refused_elsewhere),
        cmocka_unit_test(contradictions_are_refused_on_every_backend),
        cmocka_unit_test(what_needs_an_operation_is_refused_without_it),
        cmocka_unit_test(what_a_backend_is_silent_about_is_refused),
        cmocka_unit_test(rules_can_be_stated_at_run_time),
        cmocka_unit_test(words_are_found_by_their_names),
        cmocka_unit_test(a_program_on_the_path_is_a_backend),
        cmocka_unit_test(an_unknown_name_is_refused_with_the_nearest),
        cmocka_unit_test(only_what_is_built_in_can_make_sandboxes),
        cmocka_unit_test(a_spec_is_admitted_or_refused_by_its_own_backend),
    };

    return cmocka_run_group_tests_name("core/capability", tests, NULL, NULL);
}

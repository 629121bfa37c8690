/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields, setting each from a text, and what must hold between them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "core/spec_fields.h"
#include "core/spec_rules.h"
#include "core/spec_set.h"
#include "base/guards.h"

#define LONG_32   "0123456789abcdef0123456789abcdef"
#define LONG_1024 LONG_256 LONG_256 LONG_256 LONG_256
#define LONG_256  LONG_32 LONG_32 LONG_32 LONG_32 LONG_32 LONG_32 LONG_32 LONG_32

/* A spec that is being filled, with its problems. */
struct desk {
    struct spec spec;
    struct problems problems;
    struct spec_filling f;
};

static int start(void **state)
{
    static struct desk d;

    d = (struct desk){0};
    d.f = (struct spec_filling){.spec = &d.spec, .problems = &d.problems};
    *state = &d;
    return spec_init(&d.spec);
}

static int end(void **state)
{
    struct desk *d = *state;

    spec_done(&d->spec);
    problems_done(&d->problems);
    return 0;
}

static void take(struct desk *d, enum spec_field_id id, const char *text)
{
    if (!spec_set(&d->f, id, NULL, text))
        fail_msg("%s '%s': %s", spec_fields[id].name, text, d->problems.items[0].message);
}

/* The one problem there is, which is about @field and has @words in its text; it is removed. */
static void assert_problem(struct desk *d, const char *field, const char *words)
{
    char text[1024] = "";

    if (d->problems.n > 0)
        problem_format(&d->problems.items[0], NULL, text, sizeof text);
    if (d->problems.n != 1 || strcmp(d->problems.items[0].field, field) != 0 ||
        !strstr(text, words))
        fail_msg("%zu problems, '%s', instead of one about %s with '%s'", d->problems.n, text,
                 field, words);
    const char *remedy = d->problems.items[0].remedy;
    if (remedy)
        assert_true(remedy[0] >= 'A' && remedy[0] <= 'Z' && remedy[strlen(remedy) - 1] != '.');
    assert_true(text[strlen(text) - 1] == '.');
    problems_done(&d->problems);
}

static void every_row_of_the_table_is_complete(void **state)
{
    (void)state;
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++) {
        const struct spec_field *f = &spec_fields[i];
        char path[SPEC_PATH_MAX];
        const char *rest;

        assert_non_null(f->name);
        assert_non_null(f->help);
        assert_non_null(f->about);
        assert_true(f->help[strlen(f->help) - 1] != '.');
        assert_true(f->about[strlen(f->about) - 1] == '.');
        assert_true(f->min <= f->max);
        assert_int_equal(f->choices != NULL, f->kind == SPEC_CHOICE);
        assert_int_equal(f->scale > 0, f->kind == SPEC_DECIMAL);
        assert_int_equal(spec_field_find(f->section, f->name), i);
        for (enum spec_field_id k = 0; f->option && k < i; k++)
            assert_true(!spec_fields[k].option || strcmp(spec_fields[k].option, f->option) != 0);
        spec_field_path(i, path);
        assert_int_equal(spec_field_at(path, &rest), i);
        assert_string_equal(rest, "");
    }
}

static void a_path_names_its_field_and_what_is_in_it(void **state)
{
    const char *rest;

    (void)state;
    assert_int_equal(spec_field_at("spec.env.A.B", &rest), SPEC_FIELD_ENV);
    assert_string_equal(rest, ".A.B");
    assert_int_equal(spec_field_at("spec.allow_egress_to[2]", &rest), SPEC_FIELD_ALLOW_EGRESS_TO);
    assert_string_equal(rest, "[2]");
    assert_int_equal(spec_field_at("spec.allow_egress_to_cidrs[2]", &rest),
                     SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS);
    assert_int_equal(spec_field_at("spec.envy", &rest), SPEC_FIELD__MAX);
    assert_int_equal(spec_field_at("spec", &rest), SPEC_FIELD__MAX);
    assert_int_equal(spec_field_at("--memory", &rest), SPEC_FIELD__MAX);
    assert_int_equal(spec_field_at("", &rest), SPEC_FIELD__MAX);
}

static void a_key_is_found_by_its_name_elsewhere_or_as_an_option(void **state)
{
    (void)state;
    assert_int_equal(spec_field_elsewhere("memory"), SPEC_FIELD_MEMORY);
    assert_int_equal(spec_field_elsewhere("lifetime"), SPEC_FIELD_SANDBOX_TIMEOUT);
    assert_int_equal(spec_field_elsewhere("allow_cidr"), SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS);
    assert_int_equal(spec_field_elsewhere("allow-cidr"), SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS);
    assert_int_equal(spec_field_elsewhere("allow_cidrs"), SPEC_FIELD__MAX);
    assert_int_equal(spec_field_elsewhere(""), SPEC_FIELD__MAX);
}

static void a_fresh_spec_has_every_default(void **state)
{
    const struct desk *d = *state;
    const struct spec *s = &d->spec;
    const struct toolset_spec *t = &s->toolset;

    assert_true(s->block_network);
    assert_int_equal(s->env.n + s->allow_egress_to.n + s->allow_egress_to_cidrs.n, 0);
    assert_int_equal(s->private_cidrs.n, 0);
    assert_null(s->owner);

    assert_string_equal(s->backend, "local");
    assert_string_equal(s->image, "host");
    assert_null(s->workdir);
    assert_false(s->user_set);
    assert_string_equal(s->hostname, "sandbox");
    assert_int_equal(s->n_volumes + s->inputs.n + s->publish.n + s->tags.n + s->prices.n, 0);
    assert_int_equal(s->cpu_milli + s->memory_bytes + s->disk_bytes + s->max_cost_micro, 0);
    assert_int_equal(s->pids, 4096);
    assert_int_equal(s->lifetime_us, UINT64_C(3600000000));
    assert_int_equal(s->idle_timeout_us, 0);
    assert_string_equal(s->egress_enforcement, "pinned");
    assert_null(s->resolver);
    assert_null(s->proxy);
    assert_null(s->proxy_credentials);
    assert_int_equal(s->add_hosts.n, 0);

    assert_null(t->tool_prefix);
    assert_int_equal(t->default_command_timeout_us, 60000000);
    assert_int_equal(t->max_command_timeout_us, 300000000);
    assert_int_equal(t->max_output_lines, 2000);
    assert_int_equal(t->max_output_bytes, 51200);
    assert_int_equal(t->max_run_output_bytes, 0);
    assert_int_equal(t->max_read_bytes, 5242880);
    assert_int_equal(t->exports.n + t->mask.n, 0);
    assert_int_equal(t->max_export_bytes, 1073741824);
    assert_null(t->export_credentials);
    assert_null(t->attach_to);
    assert_null(t->owner);
}

/* Whether a field of two specs is the same. */
static bool is_equal(struct spec *a, struct spec *b, enum spec_field_id id)
{
    const char *x, *y;

    switch (spec_fields[id].kind) {
    case SPEC_BOOL:
        return *spec_field_bool_of(a, id) == *spec_field_bool_of(b, id);
    case SPEC_TEXT:
    case SPEC_CHOICE:
        x = *spec_field_text_of(a, id);
        y = *spec_field_text_of(b, id);
        return x && y ? strcmp(x, y) == 0 : x == y;
    case SPEC_TEXTS:
    case SPEC_MAP:
        return spec_field_list_of(a, id)->n == spec_field_list_of(b, id)->n;
    case SPEC_VOLUMES:
        return a->n_volumes == b->n_volumes;
    case SPEC_USER:
        return a->user_set == b->user_set && a->uid == b->uid && a->gid == b->gid;
    case SPEC_SIZE:
    case SPEC_DURATION:
    case SPEC_COUNT:
    case SPEC_DECIMAL:
        return *spec_field_number_of(a, id) == *spec_field_number_of(b, id);
    case SPEC_KIND__MAX:
        break;
    }
    return false;
}

/* A value of each field that is not its default. */
static const char *const others[SPEC_FIELD__MAX] = {
    [SPEC_FIELD_ENV] = "A=1",
    [SPEC_FIELD_BLOCK_NETWORK] = "false",
    [SPEC_FIELD_ALLOW_EGRESS_TO] = "host.example",
    [SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS] = "203.0.113.0/24",
    [SPEC_FIELD_PRIVATE_CIDRS] = "10.0.0.0/8",
    [SPEC_FIELD_OWNER] = "dag/run",
    [SPEC_FIELD_NAME] = "kubernetes",
    [SPEC_FIELD_IMAGE] = "dir:/usr",
    [SPEC_FIELD_WORKDIR] = "/work",
    [SPEC_FIELD_USER] = "1000:100",
    [SPEC_FIELD_HOSTNAME] = "box",
    [SPEC_FIELD_VOLUMES] = "/usr:/data:ro",
    [SPEC_FIELD_INPUTS] = "/etc/passwd=data/passwd",
    [SPEC_FIELD_PUBLISH] = "[::1]:8080:80",
    [SPEC_FIELD_TAGS] = "team=data=science",
    [SPEC_FIELD_CPU] = "0.5",
    [SPEC_FIELD_MEMORY] = "512M",
    [SPEC_FIELD_PIDS] = "100",
    [SPEC_FIELD_DISK] = "2GiB",
    [SPEC_FIELD_SANDBOX_TIMEOUT] = "90",
    [SPEC_FIELD_IDLE_TIMEOUT] = "5m",
    [SPEC_FIELD_EGRESS_ENFORCEMENT] = "inspect",
    [SPEC_FIELD_RESOLVER] = "9.9.9.9:53",
    [SPEC_FIELD_ADD_HOSTS] = "host.example=10.0.0.1",
    [SPEC_FIELD_PROXY] = "http://proxy.example:3128",
    [SPEC_FIELD_PROXY_CREDENTIALS] = "/etc/passwd",
    [SPEC_FIELD_PRICES] = "cpu_hour=0.05",
    [SPEC_FIELD_MAX_COST] = "1.25",
    [SPEC_FIELD_AUDIT] = "/tmp/not-there-yet.jsonl",
    [SPEC_FIELD_TOOL_PREFIX] = "box_1",
    [SPEC_FIELD_PURPOSE] = "Builds the service.",
    [SPEC_FIELD_TOOLS] = "edit_file",
    [SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT] = "1.5s",
    [SPEC_FIELD_MAX_COMMAND_TIMEOUT] = "1h",
    [SPEC_FIELD_MAX_OUTPUT_LINES] = "1",
    [SPEC_FIELD_MAX_OUTPUT_BYTES] = "64",
    [SPEC_FIELD_MAX_RUN_OUTPUT_BYTES] = "1M",
    [SPEC_FIELD_MAX_READ_BYTES] = "1K",
    [SPEC_FIELD_EXPORTS] = "out/report.csv=s3://bucket/report.csv?a=b",
    [SPEC_FIELD_MAX_EXPORT_BYTES] = "10M",
    [SPEC_FIELD_EXPORT_CREDENTIALS] = "profile:data",
    [SPEC_FIELD_ATTACH_TO] = "sb-abc",
    [SPEC_FIELD_TOOLSET_OWNER] = "dag/run",
    [SPEC_FIELD_MASK] = "1234",
};

static void a_value_is_stored_and_a_reset_brings_the_default_back(void **state)
{
    struct desk *d = *state;
    struct spec fresh;

    assert_int_equal(spec_init(&fresh), 0);
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++) {
        take(d, i, others[i]);
        assert_true(d->f.given & spec_field_bit(i));
        if (is_equal(&d->spec, &fresh, i))
            fail_msg("%s is the default still", spec_fields[i].name);
        assert_true(spec_reset(&d->f, i));
        assert_false(d->f.given & spec_field_bit(i));
        if (!is_equal(&d->spec, &fresh, i))
            fail_msg("%s is not the default again", spec_fields[i].name);
    }
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++) {
        if (!spec_fields[i].preset)
            continue;
        take(d, i, others[i]);
        take(d, i, spec_fields[i].preset);
        if (!is_equal(&d->spec, &fresh, i))
            fail_msg("%s: '%s' is not the default", spec_fields[i].name, spec_fields[i].preset);
    }
    spec_done(&fresh);
}

static void values_are_kept_in_their_unit(void **state)
{
    struct desk *d = *state;

    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        take(d, i, others[i]);
    assert_int_equal(d->spec.cpu_milli, 500);
    assert_int_equal(d->spec.memory_bytes, 512 << 20);
    assert_int_equal(d->spec.disk_bytes, UINT64_C(2) << 30);
    assert_int_equal(d->spec.lifetime_us, 90000000);
    assert_int_equal(d->spec.idle_timeout_us, 300000000);
    assert_int_equal(d->spec.max_cost_micro, 1250000);
    assert_int_equal(d->spec.gid, 100);
    assert_int_equal(d->spec.toolset.default_command_timeout_us, 1500000);
    assert_int_equal(d->spec.toolset.max_output_bytes, 64);
    assert_int_equal(d->spec.toolset.max_run_output_bytes, 1 << 20);
    assert_string_equal(d->spec.inputs.items[0], "/etc/passwd=data/passwd");
    assert_string_equal(d->spec.tags.items[0], "team=data=science");
    assert_string_equal(d->spec.toolset.exports.items[0],
                        "out/report.csv=s3://bucket/report.csv?a=b");
}

struct wrong {
    enum spec_field_id id;
    const char *text, *words;
};

static const struct wrong wrong_numbers[] = {
    {SPEC_FIELD_MEMORY, "512", "'512' needs a unit, such as 512M"},
    {SPEC_FIELD_MEMORY, "lots", "'lots' is not a size. Write a whole number and a unit"},
    {SPEC_FIELD_MEMORY, "1.5G", "not a size"},
    {SPEC_FIELD_MEMORY, "-1M", "not a size"},
    {SPEC_FIELD_MEMORY, "1K", "'1K' is out of range. Stay within 1M to 16T"},
    {SPEC_FIELD_MEMORY, "99999999999999999999T", "out of range"},
    {SPEC_FIELD_DISK, "0", "needs a unit"},
    {SPEC_FIELD_DISK, "0B", "out of range. Stay within 1M to 1T"},
    {SPEC_FIELD_PIDS, "1", "'1' is out of range. Stay within 2 to 4194304"},
    {SPEC_FIELD_PIDS, "0", "out of range"},
    {SPEC_FIELD_PIDS, "-5", "'-5' is not a whole number above 0. Write it in decimal digits"},
    {SPEC_FIELD_PIDS, "1.5", "not a whole number"},
    {SPEC_FIELD_PIDS, "nan", "not a whole number"},
    {SPEC_FIELD_PIDS, "inf", "not a whole number"},
    {SPEC_FIELD_PIDS, "0x10", "not a whole number"},
    {SPEC_FIELD_SANDBOX_TIMEOUT, "0", "out of range. Stay within 1ms to 366d"},
    {SPEC_FIELD_SANDBOX_TIMEOUT, "-1", "'-1' is not a duration. Write a positive number"},
    {SPEC_FIELD_SANDBOX_TIMEOUT, "1y", "not a duration"},
    {SPEC_FIELD_SANDBOX_TIMEOUT, ".inf", "not a duration"},
    {SPEC_FIELD_SANDBOX_TIMEOUT, "NaN", "not a duration"},
    {SPEC_FIELD_SANDBOX_TIMEOUT, "367d", "out of range"},
    {SPEC_FIELD_CPU, "0", "'0' is out of range. Stay within 0.001 to 1024"},
    {SPEC_FIELD_CPU, "0.0005", "not a number"},
    {SPEC_FIELD_CPU, "1025", "out of range"},
    {SPEC_FIELD_CPU, "99999999999999999999", "out of range"},
    {SPEC_FIELD_CPU, "9999999999999999999999999999", "out of range"},
    {SPEC_FIELD_CPU, ".5", "'.5' is not a number. Write a positive number, such as 0.5 or 2"},
    {SPEC_FIELD_CPU, "1.", "not a number"},
    {SPEC_FIELD_CPU, "1,5", "not a number"},
    {SPEC_FIELD_CPU, "500m", "not a number"},
    {SPEC_FIELD_CPU, "nan", "not a number"},
    {SPEC_FIELD_MAX_COST, "0", "Stay within 1e-06 to 1000000000"},
    {SPEC_FIELD_MAX_COST, "0.0000001", "not a number"},
    {SPEC_FIELD_MAX_OUTPUT_BYTES, "0", "out of range"},
    {SPEC_FIELD_MAX_OUTPUT_BYTES, "some", "Write a number of bytes, or one with a unit"},
    {SPEC_FIELD_MAX_OUTPUT_LINES, "0", "out of range"},
    {SPEC_FIELD_MAX_OUTPUT_LINES, "4294967296", "out of range"},
    {SPEC_FIELD_BLOCK_NETWORK, "yes", "'yes' is not true or false. Write true or false"},
    {SPEC_FIELD_BLOCK_NETWORK, "True", "not true or false"},
    {SPEC_FIELD_BLOCK_NETWORK, "1", "not true or false"},
    {SPEC_FIELD_EGRESS_ENFORCEMENT, "inspekt", "none of pinned, inspect. The nearest one is inspe"},
    {SPEC_FIELD_EGRESS_ENFORCEMENT, "sni", "'sni' is none of pinned, inspect"},
};

static const struct wrong wrong_texts[] = {
    {SPEC_FIELD_NAME, "", "it is empty"},
    {SPEC_FIELD_NAME, "Local", "'Local' is not the name of a backend"},
    {SPEC_FIELD_NAME, "../x", "not the name of a backend"},
    {SPEC_FIELD_NAME, "x-", "not the name of a backend"},
    {SPEC_FIELD_NAME, LONG_32 "x", "not the name of a backend"},
    {SPEC_FIELD_IMAGE, "", "it is empty"},
    {SPEC_FIELD_WORKDIR, "here", "'here' is not a plain absolute path. Give a path such as"},
    {SPEC_FIELD_WORKDIR, "/a/../b", "not a plain absolute path"},
    {SPEC_FIELD_USER, "me", "'me' is not UID or UID:GID. Use numbers from 0 to 65534"},
    {SPEC_FIELD_HOSTNAME, "a.b", "'a.b' is not a host name"},
    {SPEC_FIELD_VOLUMES, "/usr", "'/usr': there is no colon"},
    {SPEC_FIELD_VOLUMES, "/no/such:/x", "'/no/such:/x': HOST does not exist. Write it as HOST:"},
    {SPEC_FIELD_OWNER, "", "it is empty. Give a value, or leave the field out"},
    {SPEC_FIELD_OWNER, "a\nb", "cannot be printed. Use printable text"},
    {SPEC_FIELD_OWNER, "caf\xE9", "cannot be printed"},
    {SPEC_FIELD_OWNER, "\xC2\x9B", "cannot be printed"},
    {SPEC_FIELD_OWNER, LONG_1024 "x", "it has 1025 bytes, more than 1024"},
    {SPEC_FIELD_TOOL_PREFIX, "not-an-identifier", "'not-an-identifier' is not an identifier"},
    {SPEC_FIELD_TOOL_PREFIX, "9lives", "not an identifier. Use letters, digits and underscores"},
    {SPEC_FIELD_TOOL_PREFIX, "has space", "not an identifier"},
    {SPEC_FIELD_TOOL_PREFIX, "a-b", "not an identifier"},
    {SPEC_FIELD_TOOL_PREFIX, LONG_32 LONG_32, "more than 48"},
    {SPEC_FIELD_TOOLS, "editfile",
     "'editfile' is no tool that can be added. The nearest one is edit_file"},
    {SPEC_FIELD_TOOLS, "run_command", "no tool that can be added. Name edit_file, search_files"},
    {SPEC_FIELD_PURPOSE, "", "it is empty"},
    {SPEC_FIELD_ATTACH_TO, "", "it is empty"},
    {SPEC_FIELD_ATTACH_TO, "None", "'None' is no sandbox"},
    {SPEC_FIELD_RESOLVER, "dns.example", "'dns.example' is not the address of a name server"},
    {SPEC_FIELD_RESOLVER, "9.9.9.9:0", "not the address"},
    {SPEC_FIELD_RESOLVER, "9.9.9.9:", "not the address"},
    {SPEC_FIELD_RESOLVER, "[9.9.9.9]:53", "not the address"},
    {SPEC_FIELD_RESOLVER, "[::1", "not the address"},
    {SPEC_FIELD_RESOLVER, "010.0.0.1", "not the address"},
    {SPEC_FIELD_PROXY, "proxy.example", "it is not a URL with http, https or socks5"},
    {SPEC_FIELD_PROXY, "ftp://x", "it is not a URL"},
    {SPEC_FIELD_PROXY, "http://", "it does not name a host"},
    {SPEC_FIELD_PROXY, "http://p:0", "it does not name a host, or a host and a port"},
    {SPEC_FIELD_PROXY, "http://me:pw@proxy.example", "name the file as backend.proxy_credentials"},
    {SPEC_FIELD_PROXY_CREDENTIALS, "", "it is empty"},
    {SPEC_FIELD_PROXY_CREDENTIALS, "/no/such", "'/no/such' is not there"},
    {SPEC_FIELD_PROXY_CREDENTIALS, "/usr", "'/usr' is not a regular file. Name a file"},
    {SPEC_FIELD_AUDIT, "", "it is empty"},
    {SPEC_FIELD_AUDIT, "/no/such/file", "the folder of '/no/such/file' is not there"},
    {SPEC_FIELD_AUDIT, "/usr", "'/usr' is not a regular file"},
    {SPEC_FIELD_AUDIT, "/dev/null", "'/dev/null' is not a regular file"},
    {SPEC_FIELD_AUDIT, "/usr/", "'/usr/' is a folder. Name a file"},
    {SPEC_FIELD_AUDIT, "/usr/..", "'/usr/..' is a folder"},
    {SPEC_FIELD_PUBLISH, "80", "'80' does not say which port"},
    {SPEC_FIELD_PUBLISH, "80:", "Write [ADDR:]HOSTPORT:PORT"},
    {SPEC_FIELD_PUBLISH, ":80", "does not say"},
    {SPEC_FIELD_PUBLISH, "80:0", "does not say"},
    {SPEC_FIELD_PUBLISH, "80:65536", "does not say"},
    {SPEC_FIELD_PUBLISH, "80:80/udp", "does not say"},
    {SPEC_FIELD_PUBLISH, "localhost:80:80", "does not say"},
    {SPEC_FIELD_PUBLISH, "::1:80:80", "does not say"},
    {SPEC_FIELD_PUBLISH, "1.2.3:80:80", "does not say"},
    {SPEC_FIELD_TAGS, "team", "there is no '=' in it. Write it as KEY=VALUE"},
    {SPEC_FIELD_TAGS, "=x", "empty key"},
    {SPEC_FIELD_TAGS, "airflow_owner=x", "the key 'airflow_owner' is kept for atoll itself"},
    {SPEC_FIELD_TAGS, "airflow_holder=x", "kept for atoll"},
    {SPEC_FIELD_TAGS, "airflow_expires_at=x", "kept for atoll"},
    {SPEC_FIELD_TAGS, "airflow_network=x", "kept for atoll"},
    {SPEC_FIELD_TAGS, "airflow_workdir=x", "kept for atoll"},
    {SPEC_FIELD_TAGS, "airflow_=x", "kept for atoll"},
    {SPEC_FIELD_TAGS, "a=\x1B[31m", "the value has bytes that cannot be printed"},
    {SPEC_FIELD_TAGS, "a\t=b", "the key has bytes that cannot be printed"},
    {SPEC_FIELD_TAGS, "a=" LONG_1024, "more than 1024 bytes together"},
    {SPEC_FIELD_INPUTS, "=x", "the source is empty"},
    {SPEC_FIELD_INPUTS, "/usr=", "the path inside is empty"},
    {SPEC_FIELD_INPUTS, "/no/such=x", "'/no/such' is not there"},
    {SPEC_FIELD_EXPORTS, "=s3://b/x", "the path is empty"},
    {SPEC_FIELD_EXPORTS, "out.csv=", "the destination is empty"},
    {SPEC_FIELD_EXPORTS, "out.csv=/srv/x", "the destination is not a URL. Write a URL such as"},
    {SPEC_FIELD_EXPORTS, "out.csv=s3:/b", "not a URL"},
    {SPEC_FIELD_EXPORTS, "out.csv=://b", "not a URL"},
    {SPEC_FIELD_EXPORTS, "out.csv=s3://", "not a URL"},
    {SPEC_FIELD_PRICES, "cpu hour=1", "'cpu hour' is not the name of a unit"},
    {SPEC_FIELD_PRICES, "cpu=-1", "'-1' is not a price"},
    {SPEC_FIELD_PRICES, "cpu=", "not a price"},
    {SPEC_FIELD_ENV, "9A=x", "'9A' is not a variable name. Use letters, digits"},
    {SPEC_FIELD_ENV, "A", "A is not set here"},
    {SPEC_FIELD_MASK, "abc", "it has 3 bytes, and at least 4 can be masked"},
};

static void assert_wrong(struct desk *d, const struct wrong *rows, size_t n)
{
    struct spec fresh;

    assert_int_equal(spec_init(&fresh), 0);
    for (size_t i = 0; i < n; i++) {
        char path[SPEC_PATH_MAX];

        spec_field_path(rows[i].id, path);
        if (spec_set(&d->f, rows[i].id, NULL, rows[i].text))
            fail_msg("%s: '%s' was taken", path, rows[i].text);
        assert_problem(d, path, rows[i].words);
        assert_true(is_equal(&d->spec, &fresh, rows[i].id));
    }
    assert_int_equal(d->f.given, 0);
    spec_done(&fresh);
}

static void a_wrong_number_or_choice_is_refused_with_its_own_words(void **state)
{
    assert_wrong(*state, wrong_numbers, ARRAY_SIZE(wrong_numbers));
}

static void a_wrong_text_is_refused_with_its_own_words(void **state)
{
    assert_wrong(*state, wrong_texts, ARRAY_SIZE(wrong_texts));
}

static void what_may_be_a_secret_is_in_no_message(void **state)
{
    static const struct wrong rows[] = {
        {SPEC_FIELD_ENV, "A-B=hunter2", ""},
        {SPEC_FIELD_MASK, "hun", ""},
        {SPEC_FIELD_PROXY, "ftp://me:hunter2@proxy.example", ""},
        {SPEC_FIELD_PROXY, "http://me:hunter2@proxy.example", ""},
        {SPEC_FIELD_EXPORTS, "a=hunter2", ""},
    };
    struct desk *d = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[1024];

        assert_false(spec_set(&d->f, rows[i].id, NULL, rows[i].text));
        problem_format(&d->problems.items[0], NULL, text, sizeof text);
        assert_null(strstr(text, "hun"));
        problems_done(&d->problems);
    }
}

static void good_texts_are_taken(void **state)
{
    static const struct wrong rows[] = {
        {SPEC_FIELD_OWNER, "dag/run__2026-01-01T00:00:00+00:00 \xC3\xBC", ""},
        {SPEC_FIELD_OWNER, LONG_1024, ""},
        {SPEC_FIELD_TOOL_PREFIX, "", ""},
        {SPEC_FIELD_TOOL_PREFIX, "_", ""},
        {SPEC_FIELD_IMAGE, "registry.example/img:tag@sha256:x", ""},
        {SPEC_FIELD_NAME, "a-0123456789-0123456789-01234567", ""},
        {SPEC_FIELD_RESOLVER, "2620:fe::fe", ""},
        {SPEC_FIELD_RESOLVER, "[2620:fe::fe]:53", ""},
        {SPEC_FIELD_RESOLVER, "[2620:fe::fe]", ""},
        {SPEC_FIELD_PUBLISH, "1:65535", ""},
        {SPEC_FIELD_PUBLISH, "0:80", ""},
        {SPEC_FIELD_PUBLISH, "0.0.0.0:8080:80", ""},
        {SPEC_FIELD_PUBLISH, "[::]:8080:80", ""},
        {SPEC_FIELD_TAGS, "empty=", ""},
        {SPEC_FIELD_TAGS, "airflow=yes", ""},
        {SPEC_FIELD_PRICES, "run=0", ""},
        {SPEC_FIELD_EXPORTS, "/a/b=file:///srv/x", ""},
        {SPEC_FIELD_CPU, "2.50", ""},
        {SPEC_FIELD_CPU, "0.001", ""},
        {SPEC_FIELD_CPU, "1.0000", ""},
        {SPEC_FIELD_SANDBOX_TIMEOUT, "0.5", ""},
        {SPEC_FIELD_MEMORY, "1048576B", ""},
        {SPEC_FIELD_USER, "root", ""},
    };
    struct desk *d = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        take(d, rows[i].id, rows[i].text);
}

static void a_map_has_each_key_once(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_TAGS, "a=1");
    take(d, SPEC_FIELD_TAGS, "ab=2");
    take(d, SPEC_FIELD_TAGS, "a=3");
    assert_int_equal(d->spec.tags.n, 2);
    assert_string_equal(d->spec.tags.items[0], "a=3");
    assert_false(spec_set_pair(&d->f, SPEC_FIELD_TAGS, "backend.tags.a=b", "a=b", "c"));
    assert_problem(d, "backend.tags.a=b", "the key 'a=b' has a '=' in it");
    assert_false(spec_set_pair(&d->f, SPEC_FIELD_EXPORTS, NULL, "a=b", "s3://b/x"));
    assert_problem(d, "toolset.exports", "has a '=' in it");
    assert_false(spec_set_pair(&d->f, SPEC_FIELD_INPUTS, NULL, "/a=b", "x"));
    assert_problem(d, "backend.inputs", "has a '=' in it");
    assert_false(spec_set_pair(&d->f, SPEC_FIELD_ENV, "spec.env.A=B", "A=B", "x"));
    assert_problem(d, "spec.env.A=B", "'A=B' is not a variable name");
}

static void a_list_has_a_ceiling(void **state)
{
    struct desk *d = *state;
    char text[32];

    for (int i = 0; i < LIMIT_LIST_ENTRIES; i++) {
        (void)snprintf(text, sizeof text, "k%d=v", i);
        take(d, SPEC_FIELD_TAGS, text);
        take(d, SPEC_FIELD_MASK, "secret");
    }
    take(d, SPEC_FIELD_TAGS, "k0=other");
    assert_false(spec_set(&d->f, SPEC_FIELD_TAGS, NULL, "more=v"));
    assert_problem(d, "backend.tags", "there are more than 1024 entries");
    assert_false(spec_set(&d->f, SPEC_FIELD_MASK, NULL, "secret"));
    assert_problem(d, "toolset.mask", "there are more than 1024 entries");
    assert_int_equal(d->spec.tags.n, LIMIT_LIST_ENTRIES);
    assert_null(d->spec.tags.items[LIMIT_LIST_ENTRIES]);
}

static void two_inputs_have_two_places(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_INPUTS, "/etc/passwd=x");
    take(d, SPEC_FIELD_INPUTS, "/etc/passwd=x");
    take(d, SPEC_FIELD_INPUTS, "/etc/group=y");
    assert_false(spec_set(&d->f, SPEC_FIELD_INPUTS, NULL, "/usr=x"));
    assert_problem(d, "backend.inputs", "another input has the same place 'x'");
    assert_int_equal(d->spec.inputs.n, 2);
}

static void relative_paths_start_at_the_folder(void **state)
{
    struct desk *d = *state;

    d->f.folder = "/etc";
    take(d, SPEC_FIELD_VOLUMES, "passwd:/a");
    take(d, SPEC_FIELD_VOLUMES, "/usr:/b");
    take(d, SPEC_FIELD_INPUTS, "passwd=x");
    take(d, SPEC_FIELD_INPUTS, "/usr=y");
    take(d, SPEC_FIELD_IMAGE, "dir:sub/root");
    assert_string_equal(d->spec.volumes[0].host, "/etc/passwd");
    assert_string_equal(d->spec.volumes[1].host, "/usr");
    assert_string_equal(d->spec.inputs.items[0], "/etc/passwd=x");
    assert_string_equal(d->spec.inputs.items[1], "/usr=y");
    assert_string_equal(d->spec.image, "dir:/etc/sub/root");
    assert_false(spec_set(&d->f, SPEC_FIELD_VOLUMES, NULL, ":/c"));
    assert_problem(d, "backend.volumes", "there is no colon between two paths");
}

static void a_name_alone_takes_the_callers_value(void **state)
{
    char *const callers[] = {(char[]){"A=x=y"}, NULL};
    struct desk *d = *state;

    assert_true(spec_set_env(&d->f, "--env", "A", callers));
    assert_string_equal(d->spec.env.items[0], "A=x=y");
    assert_false(spec_set_env(&d->f, "--env", "B", callers));
    assert_problem(d, "--env", "B is not set here");
}

static void finish(struct desk *d)
{
    spec_finish(&d->f);
}

static void a_spec_of_defaults_is_whole(void **state)
{
    struct desk *d = *state;

    finish(d);
    assert_int_equal(d->problems.n, 0);
}

static void a_command_timeout_is_at_most_the_ceiling(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_MAX_COMMAND_TIMEOUT, "10");
    finish(d);
    assert_problem(d, "toolset.max_command_timeout",
                   "default_command_timeout (60 s) is longer than max_command_timeout (10 s)");
    take(d, SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT, "100");
    finish(d);
    assert_problem(d, "toolset.default_command_timeout", "(100 s) is longer than");
    take(d, SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT, "10");
    finish(d);
    assert_int_equal(d->problems.n, 0);
}

static void an_idle_time_is_at_most_the_lifetime(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_IDLE_TIMEOUT, "2h");
    finish(d);
    assert_problem(d, "backend.idle_timeout",
                   "idle_timeout (7200 s) is longer than sandbox_timeout (3600 s)");
    take(d, SPEC_FIELD_SANDBOX_TIMEOUT, "2h");
    take(d, SPEC_FIELD_OWNER, "dag/run"); /* an owner beside it is fine */
    finish(d);
    assert_int_equal(d->problems.n, 0);
    d->spec.lifetime_us = 0; /* none */
    finish(d);
    assert_int_equal(d->problems.n, 0);
}

static void attaching_excludes_a_spec_and_is_what_an_owner_is_for(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_TOOLSET_OWNER, "dag/run");
    finish(d);
    assert_problem(d, "toolset.owner", "there is no attach_to. Add attach_to, or name whom");
    take(d, SPEC_FIELD_ATTACH_TO, "sb-abc");
    take(d, SPEC_FIELD_EXPORTS, "a=s3://b/a"); /* allowed beside it */
    finish(d);
    assert_int_equal(d->problems.n, 0);
    take(d, SPEC_FIELD_BLOCK_NETWORK, "true"); /* the default, but asked for */
    finish(d);
    assert_problem(d, "toolset.attach_to", "attach_to and a spec exclude each other");
}

static void credentials_are_for_exports(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_EXPORT_CREDENTIALS, "profile");
    finish(d);
    assert_problem(d, "toolset.export_credentials", "and no exports");
}

static void publishing_is_for_exports(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_TOOLS, "publish_exports");
    finish(d);
    assert_problem(d, "toolset.tools",
                   "tools names publish_exports, and exports promises nothing to publish");
    take(d, SPEC_FIELD_EXPORTS, "a=file:///srv/{id}/{time}");
    finish(d);
    assert_int_equal(d->problems.n, 0);
}

static void placeholders_of_exports_are_judged(void **state)
{
    static const struct {
        const char *field, *words;
    } rows[] = {
        {"toolset.exports.b", "neither {id} nor {time}"},
        {"toolset.exports.c", "another export goes to the same place"},
        {"toolset.exports.d", "a '{' without a '}'"},
    };
    struct desk *d = *state;

    take(d, SPEC_FIELD_EXPORTS, "a=file:///srv/{id}");
    take(d, SPEC_FIELD_EXPORTS, "b=file:///srv/{run}");
    take(d, SPEC_FIELD_EXPORTS, "c=file:///srv/{id}/c");
    take(d, SPEC_FIELD_EXPORTS, "d=s3://bucket/{id");
    finish(d);
    assert_int_equal(d->problems.n, 3);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_string_equal(d->problems.items[i].field, rows[i].field);
        assert_non_null(strstr(d->problems.items[i].message, rows[i].words));
    }
    problems_done(&d->problems);
}

static void a_sandbox_that_ends_with_its_run_has_no_owner(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_OWNER, "dag/run");
    d->spec.owned = true;
    finish(d);
    assert_problem(d, "spec.owner", "removed at the end of its run");
}

static void the_network_fields_are_judged_together(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_PRIVATE_CIDRS, "10.0.0.0/8");
    finish(d);
    assert_problem(d, "spec.private_cidrs", "block_network");
    take(d, SPEC_FIELD_BLOCK_NETWORK, "false");
    finish(d);
    assert_int_equal(d->problems.n, 0);
    assert_true(spec_reset(&d->f, SPEC_FIELD_PRIVATE_CIDRS));
    take(d, SPEC_FIELD_BLOCK_NETWORK, "true");
    take(d, SPEC_FIELD_ALLOW_EGRESS_TO, "host.example");
    take(d, SPEC_FIELD_ALLOW_EGRESS_TO, "https://host.example");
    finish(d);
    assert_problem(d, "spec.allow_egress_to[1]", "https://host.example");
}

static void the_grammar_of_an_image_is_its_backends(void **state)
{
    struct desk *d = *state;

    take(d, SPEC_FIELD_IMAGE, "debian:12");
    finish(d);
    assert_problem(d, "backend.image", "neither 'host' nor 'dir:PATH'");
    take(d, SPEC_FIELD_IMAGE, "dir:/no/such");
    finish(d);
    assert_problem(d, "backend.image", "'/no/such' cannot be opened");
    take(d, SPEC_FIELD_NAME, "modal");
    take(d, SPEC_FIELD_IMAGE, "debian:12");
    finish(d);
    assert_int_equal(d->problems.n, 0);
    assert_string_equal(d->spec.image, "debian:12");
    take(d, SPEC_FIELD_NAME, "local");
    take(d, SPEC_FIELD_IMAGE, "dir:/usr/../usr/");
    finish(d);
    assert_int_equal(d->problems.n, 0);
    assert_string_equal(d->spec.image, "dir:/usr");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(every_row_of_the_table_is_complete),
        TEST(a_path_names_its_field_and_what_is_in_it),
        TEST(a_key_is_found_by_its_name_elsewhere_or_as_an_option),
        TEST(a_fresh_spec_has_every_default),
        TEST(a_value_is_stored_and_a_reset_brings_the_default_back),
        TEST(values_are_kept_in_their_unit),
        TEST(a_wrong_number_or_choice_is_refused_with_its_own_words),
        TEST(a_wrong_text_is_refused_with_its_own_words),
        TEST(what_may_be_a_secret_is_in_no_message),
        TEST(good_texts_are_taken),
        TEST(a_map_has_each_key_once),
        TEST(a_list_has_a_ceiling),
        TEST(two_inputs_have_two_places),
        TEST(relative_paths_start_at_the_folder),
        TEST(a_name_alone_takes_the_callers_value),
        TEST(a_spec_of_defaults_is_whole),
        TEST(a_command_timeout_is_at_most_the_ceiling),
        TEST(an_idle_time_is_at_most_the_lifetime),
        TEST(attaching_excludes_a_spec_and_is_what_an_owner_is_for),
        TEST(credentials_are_for_exports),
        TEST(publishing_is_for_exports),
        TEST(placeholders_of_exports_are_judged),
        TEST(a_sandbox_that_ends_with_its_run_has_no_owner),
        TEST(the_network_fields_are_judged_together),
        TEST(the_grammar_of_an_image_is_its_backends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Spec files: every mistake with its place and its words, and what right ones come to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/spec_file.h"
#include "base/guards.h"

struct read_text {
    struct spec spec;
    struct problems problems;
    struct error err;
    int r;
};

static struct read_text read_form(const char *text, enum document_form form, const char *folder)
{
    struct read_text t = {.err = ERROR_INIT};

    t.r =
        spec_text_read(text, strlen(text), form, "job.yaml", folder, &t.spec, &t.problems, &t.err);
    return t;
}

static void done(struct read_text *t)
{
    spec_done(&t->spec);
    problems_done(&t->problems);
}

/* A text with one mistake: where, in which field, with which words. */
struct wrong {
    const char *text;
    unsigned line, column;
    const char *field, *words;
};

/* Returns the text of problem @i of @t for people. */
static const char *problem_text(const struct read_text *t, size_t i, char *buf, size_t size)
{
    buf[0] = '\0';
    if (i < t->problems.n)
        problem_format(&t->problems.items[i], "job.yaml", buf, size);
    return buf;
}

static void assert_wrong(const struct wrong *w, enum document_form form)
{
    struct read_text t = read_form(w->text, form, NULL);
    char text[1400];

    problem_text(&t, 0, text, sizeof text);
    if (t.r != -EINVAL || t.err.cls != ERROR_USAGE || t.problems.n != 1)
        fail_msg("%s\ngave %d, %zu problems: %s; %s", w->text, t.r, t.problems.n, text,
                 t.err.message);
    const struct problem *x = &t.problems.items[0];
    if (x->at.line != w->line || x->at.column != w->column || strcmp(x->field, w->field) != 0 ||
        !strstr(text, w->words))
        fail_msg("%s\ngave: %s\ninstead of %u:%u: %s: …%s…", w->text, text, w->line, w->column,
                 w->field, w->words);
    assert_null(t.spec.backend); /* nothing was written */
    done(&t);
}

#define V "version: 1\n"

static const struct wrong wrong_keys[] = {
    {"~\n", 1, 1, "",
     "a spec is a map with version, spec, backend and toolset, not nothing. Begin"},
    {"- a\n", 1, 1, "", "not a list"},
    {"text\n", 1, 1, "", "not a string"},
    {"spec: {}\n", 1, 1, "version", "it is missing"},
    {"version: 2\n", 1, 10, "version", "2 is not a version that this atoll reads; it reads 1"},
    {"version: 99999999999999999999\n", 1, 10, "version", "is not a version"},
    {"version: '1'\n", 1, 10, "version", "it is to be the number 1, not a string"},
    {"version: 1.0\n", 1, 10, "version", "it is to be the number 1, not a number with a fraction"},
    {"version:\n", 1, 9, "version", "it has no value"},
    {V "sepc: {}\n", 2, 1, "sepc", "'sepc' is not a section of a spec. The nearest one is spec."},
    {V "Spec: {}\n", 2, 1, "Spec", "The nearest one is spec"},
    {V "network: {}\n", 2, 1, "network", "The sections are spec, backend and toolset"},
    {V "memory: 1G\n", 2, 1, "memory", "Write it in its section, as backend.memory"},
    {V "lifetime: 1h\n", 2, 1, "lifetime", "as backend.sandbox_timeout"},
    {V "memori: 1G\n", 2, 1, "memori", "The nearest one is backend.memory"},
    {V "spec:\n", 2, 6, "spec", "it has no value"},
    {V "backend: local\n", 2, 10, "backend", "it is to be a map of fields, not a string"},
    {V "toolset: [mask]\n", 2, 10, "toolset", "it is to be a map of fields, not a list"},
    {V "spec:\n  memory: 1G\n", 3, 3, "spec.memory",
     "'memory' is not a field of spec, but backend.memory is. Write it as backend.memory."},
    {V "toolset: {env: {}}\n", 2, 11, "toolset.env", "Write it as spec.env"},
    {V "backend: {allow: []}\n", 2, 11, "backend.allow", "Write it as spec.allow_egress_to"},
    {V "backend: {volume: []}\n", 2, 11, "backend.volume", "Write it as backend.volumes"},
    {V "backend:\n  memry: 1G\n", 3, 3, "backend.memry",
     "'memry' is not a field of backend. The nearest one is memory."},
    {V "spec: {block_netwrok: true}\n", 2, 8, "spec.block_netwrok", "one is block_network"},
    {V "spec: {hostnam: x}\n", 2, 8, "spec.hostnam", "The nearest one is backend.hostname"},
    {V "spec: {zebra: x}\n", 2, 8, "spec.zebra", "It has env, block_network, allow_egress_to,"},
    {V "spec: {'': x}\n", 2, 8, "spec.", "'' is not a field of spec. It has"},
};

static const struct wrong wrong_kinds[] = {
    {V "spec: {block_network: 'true'}\n", 2, 23, "spec.block_network",
     "it is to be true or false, not a string. Write true or false, without quotes."},
    {V "spec: {block_network: no}\n", 2, 23, "spec.block_network", "true or false, not a string"},
    {V "spec: {block_network: 0}\n", 2, 23, "spec.block_network", "not an integer"},
    {V "spec: {block_network: }\n", 2, 23, "spec.block_network",
     "it has no value. Give a value, or leave the key out."},
    {V "spec: {block_network: [true]}\n", 2, 23, "spec.block_network", "not a list"},
    {V "spec: {allow_egress_to: host.example}\n", 2, 25, "spec.allow_egress_to",
     "it is to be a list, not one string. Write a list"},
    {V "spec: {allow_egress_to_cidrs: 10.0.0.0/8}\n", 2, 31, "spec.allow_egress_to_cidrs",
     "not one string"},
    {V "spec: {private_cidrs: ''}\n", 2, 23, "spec.private_cidrs", "not one string"},
    {V "backend: {volumes: '/usr:/x'}\n", 2, 20, "backend.volumes", "not one string"},
    {V "backend: {publish: 8080}\n", 2, 20, "backend.publish",
     "it is to be a list of texts, not an integer"},
    {V "spec: {allow_egress_to: {a: b}}\n", 2, 25, "spec.allow_egress_to", "not a map"},
    {V "spec: {allow_egress_to: null}\n", 2, 25, "spec.allow_egress_to", "it has no value"},
    {V "spec:\n  allow_egress_to:\n  - a.example\n  - 443\n", 5, 5, "spec.allow_egress_to[1]",
     "it is to be a text, not an integer. Put it in quotes."},
    {V "spec: {allow_egress_to: [a.example, ~]}\n", 2, 37, "spec.allow_egress_to[1]",
     "it has no value"},
    {V "toolset: {mask: [[a]]}\n", 2, 18, "toolset.mask[0]", "it is to be a text, not a list"},
    {V "spec: {env: [A=1]}\n", 2, 13, "spec.env", "it is to be a map of texts, not a list"},
    {V "spec: {env: A=1}\n", 2, 13, "spec.env", "not a string. Write a map"},
    {V "spec: {env: }\n", 2, 13, "spec.env", "it has no value"},
    {V "spec: {owner: 5}\n", 2, 15, "spec.owner", "it is to be a text, not an integer"},
    {V "spec: {owner: {a: b}}\n", 2, 15, "spec.owner", "not a map. Give one value."},
    {V "backend: {hostname: true}\n", 2, 21, "backend.hostname", "Put it in quotes"},
    {V "backend: {user: 1.5}\n", 2, 17, "backend.user",
     "it is to be a user, not a number with a fraction"},
    {V "backend: {memory: true}\n", 2, 19, "backend.memory",
     "it is to be a size, not true or false"},
    {V "backend: {pids: '100'}\n", 2, 17, "backend.pids",
     "it is to be a whole number above 0, not a string. Write it in decimal digits alone."},
    {V "backend: {pids: true}\n", 2, 17, "backend.pids", "not true or false"},
    {V "backend: {cpu: half}\n", 2, 16, "backend.cpu", "it is to be a number, not a string"},
    {V "backend: {sandbox_timeout: [1]}\n", 2, 28, "backend.sandbox_timeout",
     "it is to be a duration, not a list. Give one value."},
    {V "backend: {egress_enforcement: 1}\n", 2, 31, "backend.egress_enforcement", "a text"},
    {V "backend: {prices: {cpu: '1'}}\n", 2, 25, "backend.prices.cpu",
     "it is to be a number, not a string"},
    {V "backend: {tags: {a: 1}}\n", 2, 21, "backend.tags.a",
     "it is to be a text, not an integer. Put the value in quotes."},
    {V "toolset: {max_output_lines: true}\n", 2, 29, "toolset.max_output_lines",
     "not true or false"},
};

static const struct wrong wrong_values[] = {
    {V "backend: {memory: 512}\n", 2, 19, "backend.memory", "'512' needs a unit, such as 512M"},
    {V "backend: {memory: 1.5}\n", 2, 19, "backend.memory", "'1.5' is not a size"},
    {V "backend: {disk: 1K}\n", 2, 17, "backend.disk", "'1K' is out of range"},
    {V "backend: {sandbox_timeout: 0}\n", 2, 28, "backend.sandbox_timeout", "out of range"},
    {V "backend: {sandbox_timeout: -1}\n", 2, 28, "backend.sandbox_timeout", "not a duration"},
    {V "backend: {sandbox_timeout: .inf}\n", 2, 28, "backend.sandbox_timeout", "not a duration"},
    {V "backend: {idle_timeout: .nan}\n", 2, 25, "backend.idle_timeout", "not a duration"},
    {V "backend: {pids: .inf}\n", 2, 17, "backend.pids", "'.inf' is not a whole number above 0"},
    {V "backend: {pids: .nan}\n", 2, 17, "backend.pids", "not a whole number"},
    {V "backend: {pids: 0}\n", 2, 17, "backend.pids", "'0' is out of range"},
    {V "backend: {pids: -3}\n", 2, 17, "backend.pids", "'-3' is not a whole number"},
    {V "backend: {pids: 1.5}\n", 2, 17, "backend.pids", "'1.5' is not a whole number"},
    {V "backend: {pids: 0x10}\n", 2, 17, "backend.pids", "decimal digits"},
    {V "backend: {cpu: -0.5}\n", 2, 16, "backend.cpu", "'-0.5' is not a number"},
    {V "backend: {cpu: .nan}\n", 2, 16, "backend.cpu", "not a number"},
    {V "backend: {egress_enforcement: sni}\n", 2, 31, "backend.egress_enforcement",
     "'sni' is none of pinned, inspect"},
    {V "backend: {image: debian}\n", 2, 18, "backend.image", "neither 'host' nor 'dir:PATH'"},
    {V "backend: {image: 'dir:/no/such'}\n", 2, 18, "backend.image", "cannot be opened"},
    {V "backend: {name: Local}\n", 2, 17, "backend.name", "not the name of a backend"},
    {V "backend: {user: 65535}\n", 2, 17, "backend.user", "'65535' is not UID or UID:GID"},
    {V "backend: {workdir: a/b}\n", 2, 20, "backend.workdir", "not a plain absolute path"},
    {V "backend: {hostname: a_b}\n", 2, 21, "backend.hostname", "'a_b' is not a host name"},
    {V "backend:\n  volumes:\n  - /usr:/a\n  - /usr:/a\n", 5, 5, "backend.volumes[1]",
     "another volume has the same path inside"},
    {V "backend: {inputs: {/no/such: x}}\n", 2, 20, "backend.inputs./no/such", "is not there"},
    {V "backend: {publish: ['80']}\n", 2, 21, "backend.publish[0]", "which port"},
    {V "backend: {tags: {airflow_owner: x}}\n", 2, 18, "backend.tags.airflow_owner", "kept for"},
    {V "spec: {owner: ''}\n", 2, 15, "spec.owner", "it is empty"},
    {V "spec: {allow_egress_to: [a.example, 'https://b.example']}\n", 2, 37,
     "spec.allow_egress_to[1]", "https://b.example"},
    {V "spec: {allow_egress_to_cidrs: [10.0.0.1/8]}\n", 2, 32, "spec.allow_egress_to_cidrs[0]",
     "10.0.0.1/8"},
    {V "spec: {allow_egress_to_cidrs: [0.0.0.0/0]}\n", 2, 32, "spec.allow_egress_to_cidrs[0]",
     "block_network: false"},
    {V "spec:\n  private_cidrs:\n  - 10.0.0.0/8\n", 3, 3, "spec.private_cidrs", "block_network"},
    {V "toolset: {tool_prefix: a-b}\n", 2, 24, "toolset.tool_prefix", "not an identifier"},
    {V "toolset: {default_command_timeout: 301}\n", 2, 36, "toolset.default_command_timeout",
     "longer than max_command_timeout (300 s)"},
    {V "toolset: {max_command_timeout: 59}\n", 2, 32, "toolset.max_command_timeout",
     "default_command_timeout (60 s) is longer"},
    {V "backend: {idle_timeout: 3601}\n", 2, 25, "backend.idle_timeout",
     "idle_timeout (3601 s) is longer than sandbox_timeout (3600 s)"},
    {V "toolset: {exports: {'': 's3://b/x'}}\n", 2, 21, "toolset.exports.", "the path is empty"},
    {V "toolset: {exports: {a: ''}}\n", 2, 21, "toolset.exports.a", "the destination is empty"},
    {V "toolset: {exports: {a: None}}\n", 2, 21, "toolset.exports.a", "not a URL"},
    {V "backend: {add_hosts: [a.example=10.0.0.1]}\n", 2, 23, "backend.add_hosts[0]",
     "no entry of spec.allow_egress_to lists 'a.example'"},
    {V "backend: {add_hosts: {a.example: 10.0.0.1}}\n", 2, 22, "backend.add_hosts", "a list of"},
    {V "backend: {proxy_credentials: /etc/passwd}\n", 2, 30, "backend.proxy_credentials",
     "no proxy"},
    {V "toolset: {export_credentials: x}\n", 2, 31, "toolset.export_credentials", "no exports"},
    {V "toolset: {attach_to: ''}\n", 2, 22, "toolset.attach_to", "it is empty"},
    {V "toolset: {attach_to: None}\n", 2, 22, "toolset.attach_to", "is no sandbox"},
    {V "toolset: {attach_to: sb-a}\nspec: {env: {}}\n", 2, 22, "toolset.attach_to", "exclude"},
    {V "toolset: {owner: me}\n", 2, 18, "toolset.owner", "there is no attach_to"},
    {V "toolset: {mask: [long, abc]}\n", 2, 24, "toolset.mask[1]", "it has 3 bytes"},
    {V "toolset: {max_read_bytes: 0}\n", 2, 27, "toolset.max_read_bytes", "out of range"},
    {V "toolset: {max_output_lines: 2.5}\n", 2, 29, "toolset.max_output_lines", "not a whole"},
};

/* Scenarios of the environment: a value that is no text, names that are none. */
static const struct wrong wrong_env[] = {
    {V "spec: {env: {PORT: 8080}}\n", 2, 20, "spec.env.PORT",
     "it is to be a text, not an integer. Put the value in quotes."},
    {V "spec: {env: {DEBUG: true}}\n", 2, 21, "spec.env.DEBUG", "not true or false. Put the value"},
    {V "spec: {env: {NONE: null}}\n", 2, 20, "spec.env.NONE", "it has no value"},
    {V "spec: {env: {NONE: }}\n", 2, 20, "spec.env.NONE", "it has no value"},
    {V "spec: {env: {RATE: 1.5}}\n", 2, 20, "spec.env.RATE", "not a number with a fraction"},
    {V "spec: {env: {LIST: [a]}}\n", 2, 20, "spec.env.LIST", "not a list"},
    {V "spec: {env: {5: 'a'}}\n", 2, 14, "spec.env.5", "'5' is not a variable name"},
    {V "spec: {env: {A-B: 'a'}}\n", 2, 14, "spec.env.A-B", "Use letters, digits and underscores"},
    {V "spec: {env: {'A=B': 'a'}}\n", 2, 14, "spec.env.A=B", "'A=B' is not a variable name"},
    {V "spec: {env: {'': 'a'}}\n", 2, 14, "spec.env.", "'' is not a variable name"},
};

static void a_wrong_key_is_named_with_what_is_meant(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong_keys); i++)
        assert_wrong(&wrong_keys[i], DOCUMENT_YAML);
}

static void a_value_of_the_wrong_kind_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong_kinds); i++)
        assert_wrong(&wrong_kinds[i], DOCUMENT_YAML);
}

static void a_wrong_value_is_refused_at_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong_values); i++)
        assert_wrong(&wrong_values[i], DOCUMENT_YAML);
}

static void a_variable_that_is_no_text_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong_env); i++)
        assert_wrong(&wrong_env[i], DOCUMENT_YAML);
}

static void json_is_judged_alike(void **state)
{
    static const struct wrong rows[] = {
        {"{\"version\": 1, \"spec\": {\"env\": {\"PORT\": 8080}}}", 1, 41, "spec.env.PORT",
         "it is to be a text, not an integer"},
        {"{\"version\": 1,\n \"backend\": {\"memory\": 512}}", 2, 24, "backend.memory",
         "needs a unit"},
        {"{\"version\": 1,\n \"backend\": {\"memry\": \"1G\"}}", 2, 14, "backend.memry",
         "The nearest one is memory"},
        {"{\"version\": true}", 1, 13, "version", "the number 1, not true or false"},
        {"[]", 1, 1, "", "not a list"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_wrong(&rows[i], DOCUMENT_JSON);
}

/* The fields of the problems, in their order, joined by blanks. */
static void assert_fields(const struct read_text *t, const char *want)
{
    char got[512] = "";

    for (size_t i = 0; i < t->problems.n; i++) {
        size_t at = strlen(got);

        (void)snprintf(got + at, sizeof got - at, "%s%s", i > 0 ? " " : "",
                       t->problems.items[i].field);
    }
    assert_string_equal(got, want);
}

static void all_mistakes_are_found_at_once_in_the_order_of_the_file(void **state)
{
    struct read_text t = read_form("toolset:\n"
                                   "  mask: secret\n"
                                   "spec:\n"
                                   "  env:\n"
                                   "    Z: 1\n"
                                   "    9: x\n"
                                   "    A: true\n"
                                   "  allow_egress_to: [localhost, ok.example, 'a b']\n"
                                   "backend:\n"
                                   "  memory: 5\n"
                                   "  image: nonsense\n"
                                   "  colour: red\n",
                                   DOCUMENT_YAML, NULL);
    char text[600];

    (void)state;
    assert_int_equal(t.r, -EINVAL);
    assert_fields(&t,
                  "version toolset.mask spec.env.Z spec.env.9 spec.env.A spec.allow_egress_to[0]"
                  " spec.allow_egress_to[2] backend.memory backend.image backend.colour");
    assert_null(t.spec.backend);
    error_format(&t.err, text, sizeof text);
    assert_non_null(strstr(text, "job.yaml:2:9: toolset.mask: it is to be a list"));
    assert_non_null(strstr(text, " more"));
    done(&t);
}

static void no_value_of_the_environment_is_shown(void **state)
{
    struct read_text t = read_form(V "spec:\n"
                                     "  env: {A-B: hunter2, B: 77777, 'x y': hunter2}\n"
                                     "toolset: {mask: [hun], attach_to: x, owner: ''}\n",
                                   DOCUMENT_YAML, NULL);

    (void)state;
    assert_int_equal(t.problems.n, 6);
    for (size_t i = 0; i < t.problems.n; i++) {
        char text[1400];

        problem_text(&t, i, text, sizeof text);
        assert_null(strstr(text, "hun"));
        assert_null(strstr(text, "77777"));
    }
    done(&t);
}

static void a_hostile_number_of_mistakes_is_cut(void **state)
{
    enum { KEYS = 5000 };
    char *text = malloc(KEYS * 16 + 64);
    size_t at = (size_t)snprintf(text, 64, V "backend:\n");

    (void)state;
    for (int i = 0; i < KEYS; i++)
        at += (size_t)snprintf(text + at, 16, "  k%d: 1\n", i);
    struct read_text t = read_form(text, DOCUMENT_YAML, NULL);
    assert_int_equal(t.r, -EINVAL);
    assert_in_range(t.problems.n, 100, 300);
    done(&t);
    free(text);
}

static void a_text_that_is_neither_form_has_an_error_and_no_problem(void **state)
{
    struct read_text t = read_form(V "spec: [\n", DOCUMENT_YAML, NULL);

    (void)state;
    assert_int_equal(t.r, -EINVAL);
    assert_int_equal(t.problems.n, 0);
    assert_non_null(strstr(t.err.context, "job.yaml:"));
    done(&t);
    t = read_form("# nothing\n", DOCUMENT_YAML, NULL);
    assert_int_equal(t.r, -EINVAL);
    assert_non_null(strstr(t.err.message, "nothing in the text"));
    done(&t);
    t = read_form(V "spec: {owner: a, owner: b}\n", DOCUMENT_YAML, NULL);
    assert_int_equal(t.r, -EINVAL);
    assert_non_null(strstr(t.err.message, "owner"));
    done(&t);
    t = read_form(V "spec: {env: {A: \"x\\0y\"}}\n", DOCUMENT_YAML, NULL); /* a NUL in a value */
    assert_int_equal(t.r, -EINVAL);
    done(&t);
}

static struct read_text read_good(const char *text, enum document_form form, const char *folder)
{
    struct read_text t = read_form(text, form, folder);

    if (t.r != 0)
        fail_msg("%s\nwas refused: %s", text, t.err.message);
    assert_int_equal(t.problems.n, 0);
    return t;
}

static void a_file_without_sections_is_the_default(void **state)
{
    static const char *const texts[] = {V, "--- {version: 1}\n", V "spec: {}\n",
                                        V "backend: {}\ntoolset: {}\n",
                                        V "spec: {env: {}, allow_egress_to: []}\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct read_text t = read_good(texts[i], DOCUMENT_YAML, NULL);
        const struct spec *s = &t.spec;

        assert_true(s->block_network);
        assert_int_equal(s->env.n + s->allow_egress_to.n + s->n_volumes, 0);
        assert_string_equal(s->backend, "local");
        assert_string_equal(s->image, "host");
        assert_string_equal(s->hostname, "sandbox");
        assert_int_equal(s->pids, 4096);
        assert_int_equal(s->lifetime_us, UINT64_C(3600000000));
        assert_int_equal(s->toolset.max_command_timeout_us, 300000000);
        done(&t);
    }
}

static const char everything[] =
    V "spec:\n"
      "  env: {A: '1', PORT: \"8080\", EMPTY: '', TEXT: \"two\\nlines\", YES: yes}\n"
      "  block_network: true\n"
      "  allow_egress_to: [pypi.org, '*.cdn.example', 'host.example:8443']\n"
      "  allow_egress_to_cidrs: [203.0.113.0/24, '2001:db8::/32']\n"
      "  owner: dag/run\n"
      "backend:\n"
      "  image: dir:usr\n"
      "  name: local\n"
      "  workdir: /work\n"
      "  user: 1000:100\n"
      "  hostname: box\n"
      "  volumes: ['etc/passwd:/data/passwd:ro', /usr:/mine]\n"
      "  inputs: {etc/group: in/group}\n"
      "  publish: [8080:80, '127.0.0.1:9:10']\n"
      "  tags: {team: data, empty: ''}\n"
      "  cpu: 1.5\n"
      "  memory: 512M\n"
      "  pids: 100\n"
      "  disk: 2GiB\n"
      "  sandbox_timeout: 2h\n"
      "  idle_timeout: 90\n"
      "  egress_enforcement: inspect\n"
      "  resolver: 9.9.9.9\n"
      "  add_hosts: [pypi.org=10.0.0.1, 'pypi.org=fd00::1']\n"
      "  proxy: socks5://127.0.0.1:1080\n"
      "  proxy_credentials: etc/passwd\n"
      "  prices: {cpu_hour: 0.05, run: 1}\n"
      "  max_cost: 2\n"
      "toolset:\n"
      "  tool_prefix: box\n"
      "  default_command_timeout: 0.5\n"
      "  max_command_timeout: 5m\n"
      "  max_output_lines: 10\n"
      "  max_output_bytes: 51200\n"
      "  max_read_bytes: 1M\n"
      "  exports: {out/a.csv: 's3://bucket/a.csv'}\n"
      "  max_export_bytes: 1G\n"
      "  export_credentials: profile\n"
      "  mask: [hunter2]\n";

static void every_field_can_be_given(void **state)
{
    struct read_text t = read_good(everything, DOCUMENT_YAML, "/");
    const struct spec *s = &t.spec;

    (void)state;
    assert_int_equal(s->env.n, 5);
    assert_string_equal(s->env.items[0], "A=1");
    assert_string_equal(s->env.items[1], "PORT=8080");
    assert_string_equal(s->env.items[2], "EMPTY=");
    assert_string_equal(s->env.items[3], "TEXT=two\nlines");
    assert_string_equal(s->env.items[4], "YES=yes");
    assert_true(s->block_network);
    assert_int_equal(s->allow_egress_to.n, 3);
    assert_string_equal(s->allow_egress_to.items[2], "host.example:8443");
    assert_int_equal(s->allow_egress_to_cidrs.n, 2);
    assert_string_equal(s->owner, "dag/run");

    assert_string_equal(s->image, "dir:/usr");
    assert_string_equal(s->workdir, "/work");
    assert_true(s->user_set);
    assert_int_equal(s->uid, 1000);
    assert_int_equal(s->gid, 100);
    assert_string_equal(s->hostname, "box");
    assert_int_equal(s->n_volumes, 2);
    assert_string_equal(s->volumes[0].host, "/etc/passwd");
    assert_true(s->volumes[0].read_only);
    assert_string_equal(s->inputs.items[0], "//etc/group=in/group");
    assert_string_equal(s->publish.items[0], "8080:80");
    assert_string_equal(s->tags.items[1], "empty=");
    assert_int_equal(s->cpu_milli, 1500);
    assert_int_equal(s->memory_bytes, 512 << 20);
    assert_int_equal(s->pids, 100);
    assert_int_equal(s->disk_bytes, UINT64_C(2) << 30);
    assert_int_equal(s->lifetime_us, UINT64_C(7200000000));
    assert_int_equal(s->idle_timeout_us, 90000000);
    assert_string_equal(s->egress_enforcement, "inspect");
    assert_string_equal(s->resolver, "9.9.9.9");
    assert_int_equal(s->add_hosts.n, 2);
    assert_string_equal(s->add_hosts.items[1], "pypi.org=fd00::1");
    assert_string_equal(s->proxy, "socks5://127.0.0.1:1080");
    assert_string_equal(s->proxy_credentials, "/etc/passwd");
    assert_string_equal(s->prices.items[0], "cpu_hour=0.05");
    assert_int_equal(s->max_cost_micro, 2000000);

    assert_string_equal(s->toolset.tool_prefix, "box");
    assert_int_equal(s->toolset.default_command_timeout_us, 500000);
    assert_int_equal(s->toolset.max_command_timeout_us, 300000000);
    assert_int_equal(s->toolset.max_output_lines, 10);
    assert_int_equal(s->toolset.max_output_bytes, 51200);
    assert_int_equal(s->toolset.max_read_bytes, 1 << 20);
    assert_string_equal(s->toolset.exports.items[0], "out/a.csv=s3://bucket/a.csv");
    assert_string_equal(s->toolset.export_credentials, "profile");
    assert_string_equal(s->toolset.mask.items[0], "hunter2");
    done(&t);
}

/* Every shorter form, in memory of its own, is refused with a reason or is a spec. */
static void a_text_that_is_cut_anywhere_is_judged_as_it_is(void **state)
{
    unsigned taken = 0, refused = 0;

    (void)state;
    for (size_t len = 0; len < strlen(everything); len++) {
        struct read_text t = {.err = ERROR_INIT};
        char *exact = malloc(len > 0 ? len : 1);

        assert_non_null(exact);
        memcpy(exact, everything, len);
        t.r = spec_text_read(exact, len, DOCUMENT_YAML, NULL, "/", &t.spec, &t.problems, &t.err);
        free(exact);
        taken += t.r == 0;
        refused += t.r < 0;
        assert_int_equal(t.err.code, -t.r);
        assert_true(t.r == 0 || (!t.spec.backend && t.err.message[0]));
        assert_true(t.r < 0 || t.problems.n == 0);
        done(&t);
    }
    assert_true(taken > 40 && refused > 400);
}

static void other_right_files_are_taken(void **state)
{
    struct read_text t = read_good("{\"version\": 1, \"spec\": {\"block_network\": false,"
                                   " \"private_cidrs\": [\"10.0.0.0/8\"]},"
                                   " \"backend\": {\"user\": 7, \"sandbox_timeout\": 1.5}}",
                                   DOCUMENT_JSON, NULL);

    (void)state;
    assert_false(t.spec.block_network);
    assert_string_equal(t.spec.private_cidrs.items[0], "10.0.0.0/8");
    assert_int_equal(t.spec.uid, 7);
    assert_int_equal(t.spec.lifetime_us, 1500000);
    done(&t);
    t = read_good(V "toolset: {attach_to: sb-abc, owner: dag/run, exports: {a: 'file:///x'}}\n",
                  DOCUMENT_YAML, NULL);
    assert_string_equal(t.spec.toolset.attach_to, "sb-abc");
    done(&t);
    t = read_good(V "backend: {image: 'debian:12', name: modal}\n", DOCUMENT_YAML, NULL);
    assert_string_equal(t.spec.image, "debian:12");
    done(&t);
    t = read_good(V "toolset: {tool_prefix: ''}\n", DOCUMENT_YAML, NULL);
    done(&t);
}

/* A folder of its own for files, with its path. */
struct folder {
    char path[64];
};

static int make_folder(void **state)
{
    static struct folder f;

    f = (struct folder){"/tmp/spec-file-test-XXXXXX"};
    *state = &f;
    return mkdtemp(f.path) ? 0 : -1;
}

static void file_in(const struct folder *f, const char *name, const char *text, char buf[128])
{
    (void)snprintf(buf, 128, "%s/%s", f->path, name);
    if (!text)
        return;
    FILE *file = fopen(buf, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"a.yaml", "a.json", "plain", "pipe", "large.yaml", "data"};
    const struct folder *f = *state;
    char path[128];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        file_in(f, names[i], NULL, path);
        (void)unlink(path);
    }
    return rmdir(f->path);
}

static int read_file(const char *path, struct spec *s, struct error *err)
{
    struct problems problems = {0};
    int r;

    *err = (struct error)ERROR_INIT;
    r = spec_file_read(path, s, &problems, err);
    problems_done(&problems);
    return r;
}

static void the_form_follows_the_name_or_the_first_byte(void **state)
{
    char path[128];
    struct spec s;
    struct error err;

    file_in(*state, "a.json", "{\"version\": 1}", path);
    assert_int_equal(read_file(path, &s, &err), 0);
    spec_done(&s);
    file_in(*state, "a.json", V, path);
    assert_int_equal(read_file(path, &s, &err), -EINVAL);
    file_in(*state, "a.yaml", "{version: 1}", path); /* as YAML may */
    assert_int_equal(read_file(path, &s, &err), 0);
    spec_done(&s);
    file_in(*state, "plain", " {\"version\": 1, \"spec\": {\"owner\": \"\\ud83d\\ude00\"}}", path);
    assert_int_equal(read_file(path, &s, &err), 0);
    assert_string_equal(s.owner, "\xF0\x9F\x98\x80");
    spec_done(&s);
    file_in(*state, "plain", V, path);
    assert_int_equal(read_file(path, &s, &err), 0);
    spec_done(&s);
}

static void paths_start_at_the_files_folder(void **state)
{
    const struct folder *f = *state;
    char path[128], data[128], want[160];
    struct spec s;
    struct error err;

    file_in(f, "data", "", data);
    file_in(f, "a.yaml",
            V "backend: {volumes: ['data:/v', './data:/w'], inputs: {data: d}, image: 'dir:.'}\n",
            path);
    if (read_file(path, &s, &err) != 0)
        fail_msg("%s", err.message);
    assert_string_equal(s.volumes[0].host, data);
    assert_string_equal(s.volumes[1].host, data);
    (void)snprintf(want, sizeof want, "%s=d", data);
    assert_string_equal(s.inputs.items[0], want);
    (void)snprintf(want, sizeof want, "dir:%s", f->path);
    assert_string_equal(s.image, want);
    spec_done(&s);
}

static void an_error_names_the_file(void **state)
{
    char path[128];
    struct spec s;
    struct error err;

    file_in(*state, "absent.yaml", NULL, path);
    assert_int_equal(read_file(path, &s, &err), -ENOENT);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(read_file(((struct folder *)*state)->path, &s, &err), -EISDIR);
    assert_int_equal(read_file("/dev/null", &s, &err), -EINVAL);
    assert_non_null(strstr(err.message, "'/dev/null' is neither a file nor a pipe"));
    file_in(*state, "a.yaml", "version: 2\n", path);
    assert_int_equal(read_file(path, &s, &err), -EINVAL);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, ":1:10: version: 2 is not a version"));
    assert_non_null(strstr(err.remedy, "Begin the file"));
}

static void a_file_has_a_ceiling(void **state)
{
    char path[128];
    struct spec s;
    struct error err;
    char *text = malloc(SPEC_FILE_MAX_BYTES + 2);

    assert_non_null(text);
    memset(text, '#', SPEC_FILE_MAX_BYTES + 1);
    memcpy(text, V, strlen(V));
    text[SPEC_FILE_MAX_BYTES] = '\0';
    file_in(*state, "large.yaml", text, path);
    assert_int_equal(read_file(path, &s, &err), 0);
    spec_done(&s);
    text[SPEC_FILE_MAX_BYTES] = '#';
    text[SPEC_FILE_MAX_BYTES + 1] = '\0';
    file_in(*state, "large.yaml", text, path);
    assert_int_equal(read_file(path, &s, &err), -E2BIG);
    assert_non_null(strstr(err.message, "more than 1048576 bytes"));
    free(text);
}

static void a_pipe_is_read_to_its_end(void **state)
{
    static const char first[] = "version", rest[] = ": 1\nbackend: {pids: 7}\n";
    char path[32];
    struct spec s;
    struct error err;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], first, strlen(first)), strlen(first));
    assert_int_equal(write(ends[1], rest, strlen(rest)), strlen(rest));
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(read_file(path, &s, &err), 0);
    assert_int_equal(s.pids, 7);
    spec_done(&s);
    assert_int_equal(close(ends[0]), 0);
}

static void a_dash_is_standard_input(void **state)
{
    char path[128];
    struct spec s;
    struct error err;
    int keep = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10), fd;

    file_in(*state, "plain", "version: 1\nspec: {owner: }\n", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(read_file("-", &s, &err), -EINVAL);
    assert_non_null(strstr(err.message, "standard input:2:15: spec.owner: it has no value"));
    assert_int_equal(close(fd), 0);
    if (keep >= 0) {
        (void)dup2(keep, STDIN_FILENO);
        (void)close(keep);
    }
}

int main(void)
{
#define WITH_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_key_is_named_with_what_is_meant),
        cmocka_unit_test(a_value_of_the_wrong_kind_is_refused),
        cmocka_unit_test(a_wrong_value_is_refused_at_its_place),
        cmocka_unit_test(a_variable_that_is_no_text_is_refused_by_name),
        cmocka_unit_test(json_is_judged_alike),
        cmocka_unit_test(all_mistakes_are_found_at_once_in_the_order_of_the_file),
        cmocka_unit_test(no_value_of_the_environment_is_shown),
        cmocka_unit_test(a_hostile_number_of_mistakes_is_cut),
        cmocka_unit_test(a_text_that_is_neither_form_has_an_error_and_no_problem),
        cmocka_unit_test(a_file_without_sections_is_the_default),
        cmocka_unit_test(every_field_can_be_given),
        cmocka_unit_test(a_text_that_is_cut_anywhere_is_judged_as_it_is),
        cmocka_unit_test(other_right_files_are_taken),
        WITH_FOLDER(the_form_follows_the_name_or_the_first_byte),
        WITH_FOLDER(paths_start_at_the_files_folder),
        WITH_FOLDER(an_error_names_the_file),
        WITH_FOLDER(a_file_has_a_ceiling),
        WITH_FOLDER(a_pipe_is_read_to_its_end),
        WITH_FOLDER(a_dash_is_standard_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

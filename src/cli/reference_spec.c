/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of the spec: core/spec_fields.h as a page, with an example of each field. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/reference.h"
#include "core/spec_fields.h"
#include "base/guards.h"

/* Each is a whole section of a spec file, below "version: 1". */
static const char add_hosts[] =
    "spec:\n  allow_egress_to:\n    - db.example.com:5432\nbackend:\n  add_hosts:\n"
    "    - db.example.com=10.20.0.7\n";
static const char proxy_credentials[] =
    "backend:\n  proxy: http://proxy.example.com:3128\n  proxy_credentials: ./proxy-credentials\n";

static const char *const examples[] = {
    [SPEC_FIELD_ENV] = "spec:\n  env:\n    LANG: C.UTF-8\n    PORT: \"8080\"\n",
    [SPEC_FIELD_BLOCK_NETWORK] = "spec:\n  block_network: true\n",
    [SPEC_FIELD_ALLOW_EGRESS_TO] =
        "spec:\n  allow_egress_to:\n    - api.example.com\n    - \"*.example.org:8443\"\n",
    [SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS] =
        "spec:\n  allow_egress_to_cidrs:\n    - 203.0.113.0/24\n    - 2001:db8::/32\n",
    [SPEC_FIELD_PRIVATE_CIDRS] =
        "spec:\n  block_network: false\n  private_cidrs:\n    - 10.20.0.0/16\n",
    [SPEC_FIELD_OWNER] = "spec:\n  owner: nightly-report\n",

    [SPEC_FIELD_NAME] = "backend:\n  name: local\n",
    [SPEC_FIELD_IMAGE] = "backend:\n  image: host\n",
    [SPEC_FIELD_WORKDIR] = "backend:\n  workdir: /workspace/src\n",
    [SPEC_FIELD_USER] = "backend:\n  user: 1000:1000\n",
    [SPEC_FIELD_HOSTNAME] = "backend:\n  hostname: builder\n",
    [SPEC_FIELD_VOLUMES] = "backend:\n  volumes:\n    - ./data:/data:ro\n",
    [SPEC_FIELD_INPUTS] = "backend:\n  inputs:\n    ./data: /workspace/data\n",
    [SPEC_FIELD_PUBLISH] = "backend:\n  publish:\n    - 8080:80\n",
    [SPEC_FIELD_TAGS] = "backend:\n  tags:\n    team: data\n    purpose: nightly report\n",
    [SPEC_FIELD_CPU] = "backend:\n  cpu: 1.5\n",
    [SPEC_FIELD_MEMORY] = "backend:\n  memory: 512M\n",
    [SPEC_FIELD_PIDS] = "backend:\n  pids: 256\n",
    [SPEC_FIELD_DISK] = "backend:\n  disk: 2G\n",
    [SPEC_FIELD_SANDBOX_TIMEOUT] = "backend:\n  sandbox_timeout: 30m\n",
    [SPEC_FIELD_IDLE_TIMEOUT] = "backend:\n  idle_timeout: 10m\n",
    [SPEC_FIELD_EGRESS_ENFORCEMENT] = "backend:\n  egress_enforcement: pinned\n",
    [SPEC_FIELD_RESOLVER] = "backend:\n  resolver: 192.0.2.53\n",
    [SPEC_FIELD_ADD_HOSTS] = add_hosts,
    [SPEC_FIELD_PROXY] = "backend:\n  proxy: http://proxy.example.com:3128\n",
    [SPEC_FIELD_PROXY_CREDENTIALS] = proxy_credentials,
    [SPEC_FIELD_PRICES] = "backend:\n  prices:\n    cpu_hour: 0.12\n",
    [SPEC_FIELD_MAX_COST] = "backend:\n  prices:\n    cpu_hour: 0.12\n  max_cost: 2.5\n",
    [SPEC_FIELD_AUDIT] = "backend:\n  audit: ./audit.jsonl\n",

    [SPEC_FIELD_TOOL_PREFIX] = "toolset:\n  tool_prefix: build\n",
    [SPEC_FIELD_PURPOSE] = "toolset:\n  purpose: Builds and tests the service.\n",
    [SPEC_FIELD_TOOLS] = "toolset:\n  tools:\n    - edit_file\n    - search_files\n",
    [SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT] = "toolset:\n  default_command_timeout: 30s\n",
    [SPEC_FIELD_MAX_COMMAND_TIMEOUT] = "toolset:\n  max_command_timeout: 20m\n",
    [SPEC_FIELD_MAX_OUTPUT_LINES] = "toolset:\n  max_output_lines: 500\n",
    [SPEC_FIELD_MAX_OUTPUT_BYTES] = "toolset:\n  max_output_bytes: 20K\n",
    [SPEC_FIELD_MAX_RUN_OUTPUT_BYTES] = "toolset:\n  max_run_output_bytes: 2M\n",
    [SPEC_FIELD_MAX_READ_BYTES] = "toolset:\n  max_read_bytes: 1M\n",
    [SPEC_FIELD_EXPORTS] =
        "toolset:\n  exports:\n    out/report.csv: file:///srv/reports/report.csv\n",
    [SPEC_FIELD_MAX_EXPORT_BYTES] = "toolset:\n  max_export_bytes: 4G\n",
    [SPEC_FIELD_EXPORT_CREDENTIALS] =
        "toolset:\n  exports:\n    out/r.csv: s3://bucket/r.csv\n  export_credentials: reports\n",
    [SPEC_FIELD_ATTACH_TO] = "toolset:\n  attach_to: sb-aaaabbbbccccddddeeeeffffgg\n",
    [SPEC_FIELD_TOOLSET_OWNER] =
        "toolset:\n  attach_to: sb-aaaabbbbccccddddeeeeffffgg\n  owner: nightly-report\n",
    [SPEC_FIELD_MASK] = "toolset:\n  mask:\n    - a-secret-word\n",
};
_Static_assert(ARRAY_SIZE(examples) == SPEC_FIELD__MAX, "one example a field");

static const char *const section_texts[] = {
    [SPEC_SECTION_SPEC] = "What any sandbox is to be, whoever makes it.",
    [SPEC_SECTION_BACKEND] = "Who makes the sandbox, and its size, contents and lifetime. Which "
                             "backend enforces which field is in [backends.md](backends.md).",
    [SPEC_SECTION_TOOLSET] =
        "What an agent's tools do with the sandbox, the same on every backend: of `atoll mcp`, of "
        "`atoll tool`, and of programs with libatoll.",
};
_Static_assert(ARRAY_SIZE(section_texts) == SPEC_SECTION__MAX, "one text a section");

/* "1M to 16T", in the field's own unit. */
static void write_range(FILE *f, const struct spec_field *x)
{
    char low[PRINT_UNIT_MAX], high[PRINT_UNIT_MAX];

    if (x->kind == SPEC_SIZE) {
        print_size_text(low, x->min);
        print_size_text(high, x->max);
    } else if (x->kind == SPEC_DURATION) {
        print_duration_text(low, x->min);
        print_duration_text(high, x->max);
    } else {
        double scale = x->kind == SPEC_DECIMAL ? (double)x->scale : 1;

        (void)snprintf(low, sizeof low, "%.12g", (double)x->min / scale);
        (void)snprintf(high, sizeof high, "%.12g", (double)x->max / scale);
    }
    fprintf(f, ", %s to %s", low, high);
}

static void write_choices(FILE *f, const char *const *choices)
{
    for (size_t i = 0; choices[i]; i++)
        fprintf(f, "%s`%s`", i == 0 ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
}

static void write_kind(FILE *f, const struct spec_field *x)
{
    static const char *const words[] = {
        [SPEC_BOOL] = "`true` or `false`",
        [SPEC_TEXT] = "a text",
        [SPEC_CHOICE] = "",
        [SPEC_TEXTS] = "a list of texts",
        [SPEC_MAP] = "a map of texts",
        [SPEC_VOLUMES] = "a list of `HOST:GUEST` or `HOST:GUEST:ro`",
        [SPEC_USER] = "`UID` or `UID:GID`",
        [SPEC_SIZE] = "a size with its unit",
        [SPEC_DURATION] = "seconds, or a time with its unit",
        [SPEC_COUNT] = "a whole number",
        [SPEC_DECIMAL] = "a decimal number",
    };
    _Static_assert(ARRAY_SIZE(words) == SPEC_KIND__MAX, "one word a kind");
    enum spec_field_id id = (enum spec_field_id)(x - spec_fields);

    fputs(x->bare                   ? "a number of bytes, or a size with its unit"
          : id == SPEC_FIELD_PRICES ? "a map of numbers"
                                    : words[x->kind],
          f);
    if (x->kind == SPEC_CHOICE)
        write_choices(f, x->choices);
    else if (spec_field_is_list(id))
        fprintf(f, ", at most %llu", (unsigned long long)x->max);
    else if (x->max > 0)
        write_range(f, x);
}

static void write_default(FILE *f, const struct spec_field *x)
{
    enum spec_field_id id = (enum spec_field_id)(x - spec_fields);

    if (x->preset)
        fprintf(f, "`%s`", x->preset);
    else
        fputs(spec_field_is_list(id) ? "empty" : "unset", f);
}

/* "`-m, --memory SIZE` of run, create": of commands that take a spec; nothing where none has it. */
static void write_option(FILE *f, const struct spec_field *x, const struct command *const *table)
{
    bool first = true;

    for (const struct command *const *c = table; x->option && *c; c++) {
        const struct option *o =
            reference_option(*c, "spec") ? reference_option(*c, x->option) : NULL;
        char spelling[OPTION_TEXT_MAX];

        if (!o)
            continue;
        option_spelling(o, spelling, sizeof spelling);
        if (first)
            fprintf(f, "\n- option: `%s` of ", spelling + strspn(spelling, " "));
        fprintf(f, "%s`%s`", first ? "" : ", ", (*c)->name);
        first = false;
    }
}

static void write_field(FILE *f, enum spec_field_id id, const struct command *const *table)
{
    const struct spec_field *x = &spec_fields[id];
    char path[SPEC_PATH_MAX];

    spec_field_path(id, path);
    fprintf(f, "\n### %s\n\n", path);
    reference_sentence(f, x->help);
    if (x->about[0]) {
        putc(' ', f);
        reference_text(f, x->about);
    }
    fputs("\n\n- takes: ", f);
    write_kind(f, x);
    fputs("\n- default: ", f);
    write_default(f, x);
    write_option(f, x, table);
    if (x->secret)
        fputs("\n- secret: its value is shown in no message", f);
    fprintf(f, "\n\n```yaml\nversion: 1\n%s```\n", examples[id]);
}

static void write_overview(FILE *f, enum spec_section section)
{
    fputs("\n| field | what it is | default |\n|---|---|---|\n", f);
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++) {
        const struct spec_field *x = &spec_fields[i];

        if (x->section != section)
            continue;
        fprintf(f, "| [`%s`](#%s%s) | ", x->name, spec_section_name(section), x->name);
        reference_text(f, x->help);
        fputs(" | ", f);
        write_default(f, x);
        fputs(" |\n", f);
    }
}

/* No spec, so it is not marked as the examples of fields are. */
static void write_mcp_file(FILE *f)
{
    fputs(
        "\n## The file of atoll mcp\n\n"
        "`atoll mcp --config FILE` gives an agent several sandboxes. The file has `version: 1` and "
        "`toolsets`, a list whose entries each have the three sections of a spec, and up to two "
        "keys beside them: `prefix` stands for `toolset.tool_prefix`, `purpose` for "
        "`toolset.purpose`. No two may have a tool of the same name.\n\n"
        "    version: 1\n"
        "    toolsets:\n"
        "      - purpose: Analyses the data in /data.\n"
        "        backend:\n"
        "          volumes: [\"./data:/data:ro\"]\n"
        "      - prefix: scratch\n"
        "        purpose: Tries things out. It has none of the data.\n"
        "        backend:\n"
        "          pids: 256\n"
        "        toolset:\n"
        "          tools: [edit_file, search_files]\n",
        f);
}

void reference_spec(FILE *f, const struct command *const *table)
{
    fputs(
        "# The spec of a sandbox\n\nWritten by `atoll reference spec`.\n\n"
        "A spec is a file, YAML (core schema) or JSON, that says what a sandbox is to be: "
        "`version: 1` and up to three sections, of which each may be left out. `--spec FILE` names "
        "it; options beside it change single values and add to lists and maps, `--no-NAME` empties "
        "one. `atoll check` says whether a backend, on this host, can keep it, before anything is "
        "made.\n\n"
        "- A key that does not exist, a key given twice, and a value that is out of range are "
        "refused by name and place.\n"
        "- Sizes have a unit: `512M`; `B`, `K`, `M`, `G` and `T` are powers of 1024. A bare number "
        "is refused, unless the field's name says bytes.\n"
        "- Times are seconds, or have a unit: `500ms`, `90s`, `5m`, `1h`, `7d`.\n"
        "- In `env` every value is a text: `8080`, `true` and `null` have to be quoted.\n"
        "- Relative paths of the host start at the folder that the file is in.\n",
        f);
    for (enum spec_section s = 0; s < SPEC_SECTION__MAX; s++) {
        fprintf(f, "\n## %s\n\n%s\n", spec_section_name(s), section_texts[s]);
        write_overview(f, s);
        for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
            if (spec_fields[i].section == s)
                write_field(f, i, table);
    }
    write_mcp_file(f);
}

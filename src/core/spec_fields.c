/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a spec file's fields, and what follows from it alone. */
#include "core/spec_fields.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "base/guards.h"

const char *const spec_optional_tools[] = {"edit_file",
                                           "search_files",
                                           "start_process",
                                           "process_output",
                                           "stop_process",
                                           "publish_exports",
                                           NULL};

const char *const spec_egress_modes[] = {"pinned", "inspect", NULL};

#define AT(member) offsetof(struct spec, member)

const struct spec_field spec_fields[SPEC_FIELD__MAX] = {
    [SPEC_FIELD_ENV] = {.name = "env",
                        .kind = SPEC_MAP,
                        .secret = true,
                        .offset = AT(env),
                        .max = LIMIT_ENV_NAMES,
                        .option = "env",
                        .help = "variables of every command",
                        .about = "Nothing of the caller's environment is passed on by itself. "
                                 "Values are texts: quote 8080, true and the like. They are masked "
                                 "in what a model is shown."},
    [SPEC_FIELD_BLOCK_NETWORK] =
        {.name = "block_network",
         .kind = SPEC_BOOL,
         .offset = AT(block_network),
         .preset = "true",
         .option = "open-network",
         .help = "let nothing out but what the lists allow; false opens the network",
         .about =
             "With true and no list, not even names are resolved. With false, neither list may "
             "be given; private and link-local addresses stay closed but for private_cidrs."},
    [SPEC_FIELD_ALLOW_EGRESS_TO] =
        {.name = "allow_egress_to",
         .kind = SPEC_TEXTS,
         .offset = AT(allow_egress_to),
         .max = LIMIT_HOSTS,
         .option = "allow",
         .help = "hosts that may be reached: HOST (TLS on port 443) or HOST:PORT",
         .about = "One leading '*.' label stands for one to five labels, never for the name "
                  "itself."},
    [SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS] =
        {.name = "allow_egress_to_cidrs",
         .kind = SPEC_TEXTS,
         .offset = AT(allow_egress_to_cidrs),
         .max = LIMIT_LIST_ENTRIES,
         .option = "allow-cidr",
         .help = "address ranges that may be reached, on any port",
         .about = "IPv4 and IPv6, TCP and UDP. An address alone is a range of one."},
    [SPEC_FIELD_PRIVATE_CIDRS] =
        {.name = "private_cidrs",
         .kind = SPEC_TEXTS,
         .offset = AT(private_cidrs),
         .max = LIMIT_LIST_ENTRIES,
         .option = "allow-private",
         .help = "private ranges that an open network may reach too",
         .about = "Only with block_network: false. An open network otherwise leaves out private, "
                  "link-local and metadata addresses."},
    [SPEC_FIELD_OWNER] =
        {.name = "owner",
         .kind = SPEC_TEXT,
         .offset = AT(owner),
         .option = "owner",
         .help = "whom the sandbox is made for",
         .about = "Who attaches to the sandbox later has to present the same owner. Only for a "
                  "sandbox that outlives the run that makes it."},

    [SPEC_FIELD_NAME] = {.section = SPEC_SECTION_BACKEND,
                         .name = "name",
                         .kind = SPEC_TEXT,
                         .offset = AT(backend),
                         .preset = "local",
                         .option = "backend",
                         .help = "who makes the sandbox",
                         .about = "'local' makes it of this host's kernel, without a service."},
    [SPEC_FIELD_IMAGE] = {.section = SPEC_SECTION_BACKEND,
                          .name = "image",
                          .kind = SPEC_TEXT,
                          .offset = AT(image),
                          .preset = "host",
                          .option = "image",
                          .help = "what the sandbox sees as its root",
                          .about =
                              "For local 'host' (the host's /usr, read-only) or 'dir:PATH' (an "
                              "unpacked root file system; writes to it are discarded). A "
                              "relative PATH starts at the spec file's folder."},
    [SPEC_FIELD_WORKDIR] = {.section = SPEC_SECTION_BACKEND,
                            .name = "workdir",
                            .kind = SPEC_TEXT,
                            .offset = AT(workdir),
                            .option = "workdir",
                            .help = "where commands start; /workspace unless given",
                            .about = "Made if absent. It is where commands start, not a jail."},
    [SPEC_FIELD_USER] = {.section = SPEC_SECTION_BACKEND,
                         .name = "user",
                         .kind = SPEC_USER,
                         .option = "user",
                         .help = "UID or UID:GID of commands inside; root unless given",
                         .about = "Root inside has no power over the host."},
    [SPEC_FIELD_HOSTNAME] = {.section = SPEC_SECTION_BACKEND,
                             .name = "hostname",
                             .kind = SPEC_TEXT,
                             .offset = AT(hostname),
                             .preset = "sandbox",
                             .option = "hostname",
                             .help = "name of the host inside",
                             .about = "1 to 63 letters, digits and inner hyphens."},
    [SPEC_FIELD_VOLUMES] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "volumes",
         .kind = SPEC_VOLUMES,
         .max = LIMIT_VOLUMES,
         .option = "volume",
         .help = "files and folders of the host to show inside: HOST:GUEST or HOST:GUEST:ro",
         .about = "Writable unless ':ro'. A relative HOST starts at the spec file's folder."},
    [SPEC_FIELD_INPUTS] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "inputs",
         .kind = SPEC_MAP,
         .offset = AT(inputs),
         .max = LIMIT_LIST_ENTRIES,
         .option = "input",
         .help =
             "files and folders of the host to copy in before the first command: SOURCE to PATH",
         .about =
             "A relative SOURCE starts at the spec file's folder, a relative PATH at workdir."},
    [SPEC_FIELD_PUBLISH] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "publish",
         .kind = SPEC_TEXTS,
         .offset = AT(publish),
         .max = LIMIT_LIST_ENTRIES,
         .option = "publish",
         .help = "ports of the host that lead inside: [ADDR:]HOSTPORT:PORT",
         .about = "HOSTPORT 0 picks one that is free. Without ADDR it is on 127.0.0.1 alone; "
                  "[::1]:8080:80 has an IPv6 address. It leads to the sandbox's loopback, also "
                  "with a blocked network."},
    [SPEC_FIELD_TAGS] = {.section = SPEC_SECTION_BACKEND,
                         .name = "tags",
                         .kind = SPEC_MAP,
                         .offset = AT(tags),
                         .max = LIMIT_LIST_ENTRIES,
                         .option = "tag",
                         .help = "texts to find the sandbox by",
                         .about = "Keys that begin with 'airflow_' are kept for atoll itself."},
    [SPEC_FIELD_CPU] = {.section = SPEC_SECTION_BACKEND,
                        .name = "cpu",
                        .kind = SPEC_DECIMAL,
                        .offset = AT(cpu_milli),
                        .min = SPEC_CPU_MIN_MILLI,
                        .max = SPEC_CPU_MAX_MILLI,
                        .scale = 1000,
                        .option = "cpu",
                        .help =
                            "CPUs that the sandbox may use, such as 0.5; no ceiling unless given",
                        .about = "Counted over all its processes together."},
    [SPEC_FIELD_MEMORY] = {.section = SPEC_SECTION_BACKEND,
                           .name = "memory",
                           .kind = SPEC_SIZE,
                           .offset = AT(memory_bytes),
                           .min = SPEC_MEMORY_MIN_BYTES,
                           .max = SPEC_MEMORY_MAX_BYTES,
                           .option = "memory",
                           .help = "memory that the sandbox may use; no ceiling unless given",
                           .about = "A size with its unit, such as 512M."},
    [SPEC_FIELD_PIDS] = {.section = SPEC_SECTION_BACKEND,
                         .name = "pids",
                         .kind = SPEC_COUNT,
                         .offset = AT(pids),
                         .min = LIMIT_PIDS_MIN,
                         .max = LIMIT_PIDS_MAX,
                         .preset = "4096",
                         .option = "pids",
                         .help = "processes and threads at once",
                         .about = "What would be one too many is not started."},
    [SPEC_FIELD_DISK] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "disk",
         .kind = SPEC_SIZE,
         .offset = AT(disk_bytes),
         .min = LIMIT_DISK_MIN_BYTES,
         .max = LIMIT_DISK_MAX_BYTES,
         .option = "disk",
         .help = "room for everything the sandbox writes; half of the free memory unless given",
         .about = "For local it is held in memory. A size with its unit, such as 2G."},
    [SPEC_FIELD_SANDBOX_TIMEOUT] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "sandbox_timeout",
         .kind = SPEC_DURATION,
         .offset = AT(lifetime_us),
         .min = SPEC_TIME_MIN_US,
         .max = LIMIT_TIME_MAX_US,
         .preset = "3600",
         .option = "lifetime",
         .help = "how long the sandbox lives",
         .about = "Seconds, or a number with its unit: 90s, 5m, 1h. At its end everything inside "
                  "is gone. 'atoll run' has none unless it is given."},
    [SPEC_FIELD_IDLE_TIMEOUT] = {.section = SPEC_SECTION_BACKEND,
                                 .name = "idle_timeout",
                                 .kind = SPEC_DURATION,
                                 .offset = AT(idle_timeout_us),
                                 .min = SPEC_TIME_MIN_US,
                                 .max = LIMIT_TIME_MAX_US,
                                 .option = "idle-timeout",
                                 .help = "end the sandbox when nobody has used it for this time",
                                 .about = "At most sandbox_timeout."},
    [SPEC_FIELD_EGRESS_ENFORCEMENT] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "egress_enforcement",
         .kind = SPEC_CHOICE,
         .offset = AT(egress_enforcement),
         .choices = spec_egress_modes,
         .preset = "pinned",
         .option = "egress-enforcement",
         .help = "how allowed hosts are told apart: pinned or inspect",
         .about = "pinned: the address is chosen outside and the TLS server name must be the "
                  "host's. inspect: TLS ends outside, and the host of every request is checked."},
    [SPEC_FIELD_RESOLVER] = {.section = SPEC_SECTION_BACKEND,
                             .name = "resolver",
                             .kind = SPEC_TEXT,
                             .offset = AT(resolver),
                             .option = "resolver",
                             .help = "name server, ADDR or ADDR:PORT; the host's way unless given",
                             .about = "Asked from outside the sandbox, for listed names only."},
    [SPEC_FIELD_ADD_HOSTS] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "add_hosts",
         .kind = SPEC_TEXTS,
         .offset = AT(add_hosts),
         .max = LIMIT_LIST_ENTRIES,
         .option = "add-host",
         .help = "addresses of names, instead of looking them up: NAME=ADDR",
         .about = "Each name has to be listed by allow_egress_to, or the network be open. A name "
                  "may have several addresses, an entry each, private ones among them: with the "
                  "name on its ports they may be reached, by themselves they may not."},
    [SPEC_FIELD_PROXY] = {.section = SPEC_SECTION_BACKEND,
                          .name = "proxy",
                          .kind = SPEC_TEXT,
                          .secret = true, /* what was written there by mistake is one */
                          .offset = AT(proxy),
                          .option = "proxy",
                          .help = "URL of a proxy through which the host itself gets out",
                          .about = "http://, https:// or socks5://, a host, and a port. Programs "
                                   "inside need not know of it."},
    [SPEC_FIELD_PROXY_CREDENTIALS] =
        {.section = SPEC_SECTION_BACKEND,
         .name = "proxy_credentials",
         .kind = SPEC_TEXT,
         .offset = AT(proxy_credentials),
         .option = "proxy-credentials",
         .help = "file of the host with USER:PASSWORD for the proxy",
         .about = "Its first line counts. A relative path starts at the spec file's folder. The "
                  "file is read outside, and nothing of it enters the sandbox."},
    [SPEC_FIELD_PRICES] = {.section = SPEC_SECTION_BACKEND,
                           .name = "prices",
                           .kind = SPEC_MAP,
                           .offset = AT(prices),
                           .max = LIMIT_LIST_ENTRIES,
                           .help = "what a unit of use costs, to reckon by",
                           .about = "Numbers with up to six decimals, in any currency."},
    [SPEC_FIELD_MAX_COST] = {.section = SPEC_SECTION_BACKEND,
                             .name = "max_cost",
                             .kind = SPEC_DECIMAL,
                             .offset = AT(max_cost_micro),
                             .min = 1,
                             .max = UINT64_C(1000000000000000),
                             .scale = 1000000,
                             .option = "max-cost",
                             .help = "end the sandbox when it has cost this much",
                             .about = "In the currency of prices."},
    [SPEC_FIELD_AUDIT] = {.section = SPEC_SECTION_BACKEND,
                          .name = "audit",
                          .kind = SPEC_TEXT,
                          .offset = AT(audit),
                          .option = "audit",
                          .help = "file of the host that keeps what happens to the sandbox",
                          .about = "Each event is added as a line of JSON. It is made with mode "
                                   "0600 if absent, outlives sandboxes, and may serve many. A "
                                   "relative path starts at the spec file's folder."},

    [SPEC_FIELD_TOOL_PREFIX] = {.section = SPEC_SECTION_TOOLSET,
                                .name = "tool_prefix",
                                .kind = SPEC_TEXT,
                                .offset = AT(toolset.tool_prefix),
                                .option = "tool-prefix",
                                .help = "put PREFIX_ before the names of the tools",
                                .about = "Needed when one agent has two toolsets."},
    [SPEC_FIELD_PURPOSE] = {.section = SPEC_SECTION_TOOLSET,
                            .name = "purpose",
                            .kind = SPEC_TEXT,
                            .offset = AT(toolset.purpose),
                            .option = "purpose",
                            .help = "tell the model what this sandbox is for",
                            .about = "A sentence, put in front of what run_command is described "
                                     "by. Of two toolsets it tells a model which one to use."},
    [SPEC_FIELD_TOOLS] = {.section = SPEC_SECTION_TOOLSET,
                          .name = "tools",
                          .kind = SPEC_TEXTS,
                          .offset = AT(toolset.tools),
                          .max = LIMIT_LIST_ENTRIES,
                          .option = "tool",
                          .help = "tools that the model gets beside the four",
                          .about = "edit_file, search_files, start_process, process_output, "
                                   "stop_process and publish_exports, each by its name."},
    [SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT] = {.section = SPEC_SECTION_TOOLSET,
                                            .name = "default_command_timeout",
                                            .kind = SPEC_DURATION,
                                            .offset = AT(toolset.default_command_timeout_us),
                                            .min = SPEC_TIME_MIN_US,
                                            .max = LIMIT_TIME_MAX_US,
                                            .preset = "60",
                                            .option = "default-command-timeout",
                                            .help =
                                                "time for a command of an agent that asks for none",
                                            .about = "At most max_command_timeout."},
    [SPEC_FIELD_MAX_COMMAND_TIMEOUT] = {.section = SPEC_SECTION_TOOLSET,
                                        .name = "max_command_timeout",
                                        .kind = SPEC_DURATION,
                                        .offset = AT(toolset.max_command_timeout_us),
                                        .min = SPEC_TIME_MIN_US,
                                        .max = LIMIT_TIME_MAX_US,
                                        .preset = "300",
                                        .option = "max-command-timeout",
                                        .help = "most time that an agent may ask for",
                                        .about = "What asks for more gets this much."},
    [SPEC_FIELD_MAX_OUTPUT_LINES] = {.section = SPEC_SECTION_TOOLSET,
                                     .name = "max_output_lines",
                                     .kind = SPEC_COUNT,
                                     .offset = AT(toolset.max_output_lines),
                                     .min = 1,
                                     .max = UINT32_MAX,
                                     .preset = "2000",
                                     .option = "max-output-lines",
                                     .help = "lines of one output that an agent is shown",
                                     .about = "The rest is left out, and the agent is told so."},
    [SPEC_FIELD_MAX_OUTPUT_BYTES] = {.section = SPEC_SECTION_TOOLSET,
                                     .name = "max_output_bytes",
                                     .kind = SPEC_SIZE,
                                     .bare = true,
                                     .offset = AT(toolset.max_output_bytes),
                                     .min = 1,
                                     .max = LIMIT_DISK_MAX_BYTES,
                                     .preset = "50K",
                                     .option = "max-output-bytes",
                                     .help = "bytes of one output that an agent is shown",
                                     .about = "A number alone is bytes."},
    [SPEC_FIELD_MAX_RUN_OUTPUT_BYTES] =
        {.section = SPEC_SECTION_TOOLSET,
         .name = "max_run_output_bytes",
         .kind = SPEC_SIZE,
         .bare = true,
         .offset = AT(toolset.max_run_output_bytes),
         .min = 1,
         .max = LIMIT_DISK_MAX_BYTES,
         .option = "max-run-output-bytes",
         .help = "bytes that an agent is shown of the output of all commands of a run",
         .about = "From then on it is told how each ended, and that its output was left out. "
                  "A number alone is bytes."},
    [SPEC_FIELD_MAX_READ_BYTES] = {.section = SPEC_SECTION_TOOLSET,
                                   .name = "max_read_bytes",
                                   .kind = SPEC_SIZE,
                                   .bare = true,
                                   .offset = AT(toolset.max_read_bytes),
                                   .min = 1,
                                   .max = LIMIT_DISK_MAX_BYTES,
                                   .preset = "5M",
                                   .option = "max-read-bytes",
                                   .help = "bytes of one file that the tools read",
                                   .about = "A number alone is bytes."},
    [SPEC_FIELD_EXPORTS] = {.section = SPEC_SECTION_TOOLSET,
                            .name = "exports",
                            .kind = SPEC_MAP,
                            .offset = AT(toolset.exports),
                            .max = LIMIT_LIST_ENTRIES,
                            .option = "export",
                            .help = "files to publish when the run ends well: PATH to URL",
                            .about =
                                "All of them are copied and verified first, and then published "
                                "together. The agent sees neither the copies nor the URLs, unless "
                                "tools names publish_exports. In a URL {id} stands for the "
                                "sandbox's id and {time} for the time of publication in UTC "
                                "(20261130T065347Z); write %7B and %7D for braces themselves."},
    [SPEC_FIELD_MAX_EXPORT_BYTES] = {.section = SPEC_SECTION_TOOLSET,
                                     .name = "max_export_bytes",
                                     .kind = SPEC_SIZE,
                                     .bare = true,
                                     .offset = AT(toolset.max_export_bytes),
                                     .min = 1,
                                     .max = LIMIT_DISK_MAX_BYTES,
                                     .preset = "1G",
                                     .option = "max-export-bytes",
                                     .help = "size that one exported file may have",
                                     .about = "A number alone is bytes."},
    [SPEC_FIELD_EXPORT_CREDENTIALS] =
        {.section = SPEC_SECTION_TOOLSET,
         .name = "export_credentials",
         .kind = SPEC_TEXT,
         .secret = true,
         .offset = AT(toolset.export_credentials),
         .option = "export-credentials",
         .help = "where the credentials for exports are; the environment unless given",
         .about = "Only with exports. They never enter the sandbox."},
    [SPEC_FIELD_ATTACH_TO] =
        {.section = SPEC_SECTION_TOOLSET,
         .name = "attach_to",
         .kind = SPEC_TEXT,
         .offset = AT(toolset.attach_to),
         .option = "attach-to",
         .help = "use this sandbox, which somebody else made and will remove",
         .about = "Not with a spec section: what that sandbox is was settled when it was made."},
    [SPEC_FIELD_TOOLSET_OWNER] =
        {.section = SPEC_SECTION_TOOLSET,
         .name = "owner",
         .kind = SPEC_TEXT,
         .offset = AT(toolset.owner),
         .help = "whom an attaching run says it belongs to",
         .about = "Only with attach_to. It has to be the owner that the sandbox was made for."},
    [SPEC_FIELD_MASK] = {.section = SPEC_SECTION_TOOLSET,
                         .name = "mask",
                         .kind = SPEC_TEXTS,
                         .secret = true,
                         .offset = AT(toolset.mask),
                         .max = LIMIT_LIST_ENTRIES,
                         .option = "mask",
                         .help = "texts that an agent must not see",
                         .about = "Each of 4 bytes or more is replaced by '***' before anything is "
                                  "cut. The values of env are masked without being listed."},
};

_Static_assert(SPEC_FIELD__MAX <= 64, "a set of fields is one uint64_t");

const char *spec_section_name(enum spec_section section)
{
    static const char *const names[] = {
        [SPEC_SECTION_SPEC] = "spec",
        [SPEC_SECTION_BACKEND] = "backend",
        [SPEC_SECTION_TOOLSET] = "toolset",
    };
    _Static_assert(ARRAY_SIZE(names) == SPEC_SECTION__MAX, "a section has no name");

    return names[section];
}

enum spec_field_id spec_field_find(enum spec_section section, const char *name)
{
    enum spec_field_id i = 0;

    while (i < SPEC_FIELD__MAX &&
           (spec_fields[i].section != section || strcmp(spec_fields[i].name, name) != 0))
        i++;
    return i;
}

/* Whether @name is @option, with the file's underscores for the option's hyphens. */
static bool is_option(const char *option, const char *name)
{
    size_t i = 0;

    if (!option)
        return false;
    while (option[i] && (option[i] == name[i] || (option[i] == '-' && name[i] == '_')))
        i++;
    return option[i] == '\0' && name[i] == '\0';
}

enum spec_field_id spec_field_elsewhere(const char *name)
{
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        if (strcmp(spec_fields[i].name, name) == 0)
            return i;
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        if (is_option(spec_fields[i].option, name))
            return i;
    return SPEC_FIELD__MAX;
}

enum spec_field_id spec_field_at(const char *path, const char **ret_rest)
{
    char own[SPEC_PATH_MAX];

    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++) {
        spec_field_path(i, own);
        size_t len = strlen(own);

        if (strncmp(path, own, len) == 0 && strchr(".[", path[len])) {
            *ret_rest = path + len;
            return i;
        }
    }
    return SPEC_FIELD__MAX;
}

void spec_field_path(enum spec_field_id id, char buf[SPEC_PATH_MAX])
{
    (void)snprintf(buf, SPEC_PATH_MAX, "%s.%s", spec_section_name(spec_fields[id].section),
                   spec_fields[id].name);
}

bool spec_field_is_list(enum spec_field_id id)
{
    enum spec_kind kind = spec_fields[id].kind;

    return kind == SPEC_TEXTS || kind == SPEC_MAP || kind == SPEC_VOLUMES;
}

uint64_t spec_section_bits(enum spec_section section)
{
    uint64_t bits = 0;

    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        if (spec_fields[i].section == section)
            bits |= spec_field_bit(i);
    return bits;
}

static void *member(struct spec *s, enum spec_field_id id)
{
    return (char *)s + spec_fields[id].offset;
}

bool *spec_field_bool_of(struct spec *s, enum spec_field_id id)
{
    assert(spec_fields[id].kind == SPEC_BOOL);
    return member(s, id);
}

char **spec_field_text_of(struct spec *s, enum spec_field_id id)
{
    assert(spec_fields[id].kind == SPEC_TEXT || spec_fields[id].kind == SPEC_CHOICE);
    return member(s, id);
}

uint64_t *spec_field_number_of(struct spec *s, enum spec_field_id id)
{
    enum spec_kind kind = spec_fields[id].kind;

    assert(kind == SPEC_SIZE || kind == SPEC_DURATION || kind == SPEC_COUNT ||
           kind == SPEC_DECIMAL);
    return member(s, id);
}

struct string_list *spec_field_list_of(struct spec *s, enum spec_field_id id)
{
    assert(spec_fields[id].kind == SPEC_TEXTS || spec_fields[id].kind == SPEC_MAP);
    return member(s, id);
}

/* Exchanges one member of two specs. */
static void swap(void *a, void *b, size_t size)
{
    char keep[sizeof(struct string_list)];

    assert(size <= sizeof keep);
    memcpy(keep, a, size);
    memcpy(a, b, size);
    memcpy(b, keep, size);
}

int spec_field_reset(struct spec *s, enum spec_field_id id)
{
    struct spec fresh;
    int r = spec_init(&fresh);

    if (r == 0)
        switch (spec_fields[id].kind) {
        case SPEC_BOOL:
            swap(member(s, id), member(&fresh, id), sizeof(bool));
            break;
        case SPEC_TEXT:
        case SPEC_CHOICE:
            swap(member(s, id), member(&fresh, id), sizeof(char *));
            break;
        case SPEC_TEXTS:
        case SPEC_MAP:
            swap(member(s, id), member(&fresh, id), sizeof(struct string_list));
            break;
        case SPEC_VOLUMES:
            swap(&s->volumes, &fresh.volumes, sizeof(struct volume *));
            swap(&s->n_volumes, &fresh.n_volumes, sizeof(size_t));
            break;
        case SPEC_USER:
            s->user_set = fresh.user_set;
            s->uid = fresh.uid;
            s->gid = fresh.gid;
            break;
        case SPEC_SIZE:
        case SPEC_DURATION:
        case SPEC_COUNT:
        case SPEC_DECIMAL:
            swap(member(s, id), member(&fresh, id), sizeof(uint64_t));
            break;
        case SPEC_KIND__MAX:
            break;
        }
    spec_done(&fresh);
    return r;
}

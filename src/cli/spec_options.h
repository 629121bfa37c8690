/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that say what a sandbox is to be, shared by every command that makes or judges one,
 * and those that say how an agent's tools work. Each but --spec and --env-file is a field of
 * core/spec_fields.h and takes what that field takes; --mask alone takes where its texts are, since
 * others see a command line.
 *
 * A command has `struct spec_args` in its args struct and all rows in its table by one line:
 *
 *     struct run_args { struct spec_args spec; … };
 *     static const struct option run_options[] = {SPEC_OPTIONS(struct run_args, spec), …};
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options.h"
#include "core/limits.h"
#include "core/problems.h"
#include "core/spec.h"
#include "core/spec_fields.h"

struct spec_args {
    const char *file, *backend, *image, *workdir, *user, *hostname, *owner, *cpu;
    const char *egress_enforcement, *resolver, *proxy, *proxy_credentials, *max_cost;
    const char *audit;
    struct text_list volumes, env, env_files, inputs, publish, tags;
    struct text_list allow, allow_cidr, allow_private, add_hosts;
    uint64_t memory, disk, pids, lifetime, idle_timeout;
    bool open_network;
    enum option_state state[SPEC_FIELD__MAX]; /* of those with a single value */
};

/* The place of a row's value in @T, and for a single value of what became of it. */
#define SPEC_OPTION_AT(T, m, member)   (offsetof(T, m) + offsetof(struct spec_args, member))
#define SPEC_OPTION_LIST(T, m, member) .kind = OPTION_LIST, .offset = SPEC_OPTION_AT(T, m, member)
#define SPEC_OPTION_ONE(T, m, k, member, id)                                                       \
    .kind = (k), .offset = SPEC_OPTION_AT(T, m, member), .state = SPEC_OPTION_AT(T, m, state[id])

/* SPEC_OPTIONS() - the rows, for a table of @T, whose member @m is a struct spec_args */
/* clang-format off */
#define SPEC_OPTIONS(T, m)                                                                         \
    {.name = "spec", .arg = "FILE", .kind = OPTION_TEXT, .offset = SPEC_OPTION_AT(T, m, file),      \
     .help = "read what the sandbox is to be from a YAML or JSON file, '-' for standard input; "   \
             "options beside it change single values and add to lists, --no-NAME empties one"},    \
    {.name = "backend", .arg = "NAME",                                                             \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, backend, SPEC_FIELD_NAME),                                 \
     .help = "who makes the sandbox; 'local' unless given"},                                       \
    {.name = "image", .arg = "REF",                                                                \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, image, SPEC_FIELD_IMAGE),                                  \
     .help = "what the sandbox sees as its root: 'host' (the host's /usr, read-only) or "          \
             "'dir:PATH' (an unpacked root file system; writes to it are discarded)"},             \
    {.name = "volume", .arg = "HOST:GUEST[:ro]", SPEC_OPTION_LIST(T, m, volumes),                  \
     .max = LIMIT_VOLUMES,                                                                         \
     .help = "show a file or folder of the host inside; writable unless :ro"},                     \
    {.name = "input", .arg = "SOURCE=PATH", SPEC_OPTION_LIST(T, m, inputs),                        \
     .max = LIMIT_LIST_ENTRIES,                                                                    \
     .help = "copy a file or folder of the host to PATH inside before the first command"},         \
    {.name = "workdir", .letter = 'w', .arg = "DIR",                                               \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, workdir, SPEC_FIELD_WORKDIR),                              \
     .help = "start in this folder, made if absent; /workspace unless given"},                     \
    {.name = "user", .arg = "UID[:GID]",                                                           \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, user, SPEC_FIELD_USER),                                    \
     .help = "run as this user inside; root (without power over the host) unless given"},          \
    {.name = "hostname", .arg = "NAME",                                                            \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, hostname, SPEC_FIELD_HOSTNAME),                            \
     .help = "name of the sandbox inside; 'sandbox' unless given"},                                \
    {.name = "env", .letter = 'e', .arg = "NAME[=VALUE]", SPEC_OPTION_LIST(T, m, env),             \
     .max = LIMIT_ENV_NAMES,                                                                       \
     .help = "set a variable; a NAME alone passes the caller's value on"},                         \
    {.name = "env-file", .arg = "FILE", SPEC_OPTION_LIST(T, m, env_files),                         \
     .max = LIMIT_LIST_ENTRIES,                                                                    \
     .help = "set a variable for each line NAME=VALUE of a file, taken as it stands; empty "       \
             "lines and those that begin with # do not count"},                                    \
    {.name = "allow", .arg = "HOST[:PORT]", SPEC_OPTION_LIST(T, m, allow),                         \
     .max = LIMIT_HOSTS,                                                                           \
     .help = "let programs reach this host, by TLS on port 443 unless PORT is given; one "         \
             "leading '*.' stands for any names below"},                                           \
    {.name = "allow-cidr", .arg = "CIDR", SPEC_OPTION_LIST(T, m, allow_cidr),                      \
     .max = LIMIT_LIST_ENTRIES,                                                                    \
     .help = "let programs reach these addresses, on any port"},                                   \
    {.name = "open-network",                                                                       \
     SPEC_OPTION_ONE(T, m, OPTION_FLAG, open_network, SPEC_FIELD_BLOCK_NETWORK),                   \
     .help = "let programs reach every public address"},                                           \
    {.name = "allow-private", .arg = "CIDR", SPEC_OPTION_LIST(T, m, allow_private),                \
     .max = LIMIT_LIST_ENTRIES,                                                                    \
     .help = "with --open-network: these private addresses too"},                                  \
    {.name = "publish", .letter = 'p', .arg = "[ADDR:]HOSTPORT:PORT",                              \
     SPEC_OPTION_LIST(T, m, publish), .max = LIMIT_LIST_ENTRIES,                                   \
     .help = "lead a port of the host to one inside; on the host's loopback unless ADDR is "       \
             "given; HOSTPORT 0 picks one that is free"},                                          \
    {.name = "memory", .letter = 'm', .arg = "SIZE",                                               \
     SPEC_OPTION_ONE(T, m, OPTION_SIZE, memory, SPEC_FIELD_MEMORY),                                \
     .min = SPEC_MEMORY_MIN_BYTES, .max = SPEC_MEMORY_MAX_BYTES,                                   \
     .help = "memory that the sandbox may use"},                                                   \
    {.name = "cpu", .arg = "N",                                                                    \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, cpu, SPEC_FIELD_CPU),                                      \
     .help = "CPUs that the sandbox may use, such as 0.5"},                                        \
    {.name = "disk", .arg = "SIZE",                                                                \
     SPEC_OPTION_ONE(T, m, OPTION_SIZE, disk, SPEC_FIELD_DISK),                                    \
     .min = LIMIT_DISK_MIN_BYTES, .max = LIMIT_DISK_MAX_BYTES,                                     \
     .help = "room for everything the sandbox writes, held in memory; half of the free memory "    \
             "unless given"},                                                                      \
    {.name = "pids", .arg = "N",                                                                   \
     SPEC_OPTION_ONE(T, m, OPTION_NUMBER, pids, SPEC_FIELD_PIDS),                                  \
     .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX, .preset = "4096",                               \
     .help = "processes and threads at once"},                                                     \
    {.name = "lifetime", .arg = "TIME",                                                            \
     SPEC_OPTION_ONE(T, m, OPTION_DURATION, lifetime, SPEC_FIELD_SANDBOX_TIMEOUT),                 \
     .min = SPEC_TIME_MIN_US, .max = LIMIT_TIME_MAX_US,                                            \
     .help = "end the sandbox after this time"},                                                   \
    {.name = "idle-timeout", .arg = "TIME",                                                        \
     SPEC_OPTION_ONE(T, m, OPTION_DURATION, idle_timeout, SPEC_FIELD_IDLE_TIMEOUT),                \
     .min = SPEC_TIME_MIN_US, .max = LIMIT_TIME_MAX_US,                                            \
     .help = "end the sandbox when nobody has used it for this time"},                             \
    {.name = "owner", .arg = "NAME",                                                               \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, owner, SPEC_FIELD_OWNER),                                  \
     .help = "whom the sandbox is made for, and who may attach to it later"},                      \
    {.name = "tag", .arg = "KEY=VALUE", SPEC_OPTION_LIST(T, m, tags),                              \
     .max = LIMIT_LIST_ENTRIES,                                                                    \
     .help = "a text to find the sandbox by"},                                                     \
    {.name = "egress-enforcement", .arg = "MODE",                                                  \
     SPEC_OPTION_ONE(T, m, OPTION_CHOICE, egress_enforcement, SPEC_FIELD_EGRESS_ENFORCEMENT),      \
     .choices = spec_egress_modes, .preset = "pinned",                                             \
     .help = "how hosts are told apart: by TLS server name, or by every request's own host"},      \
    {.name = "resolver", .arg = "ADDR[:PORT]",                                                     \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, resolver, SPEC_FIELD_RESOLVER),                            \
     .help = "name server to ask about listed hosts; the host's own way unless given"},            \
    {.name = "add-host", .arg = "NAME=ADDR", SPEC_OPTION_LIST(T, m, add_hosts),                    \
     .max = LIMIT_LIST_ENTRIES,                                                                    \
     .help = "reach a listed host at this address, instead of looking its name up"},               \
    {.name = "proxy", .arg = "URL",                                                                \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, proxy, SPEC_FIELD_PROXY),                                  \
     .help = "proxy through which this host itself gets out"},                                     \
    {.name = "proxy-credentials", .arg = "FILE",                                                   \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, proxy_credentials, SPEC_FIELD_PROXY_CREDENTIALS),          \
     .help = "file with USER:PASSWORD for the proxy"},                                             \
    {.name = "audit", .arg = "FILE",                                                               \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, audit, SPEC_FIELD_AUDIT),                                  \
     .help = "file of this host to add what happens to, a line of JSON each"},                     \
    {.name = "max-cost", .arg = "AMOUNT",                                                          \
     SPEC_OPTION_ONE(T, m, OPTION_TEXT, max_cost, SPEC_FIELD_MAX_COST),                            \
     .help = "end the sandbox when it has cost this much, by the prices of the spec file"}
/* clang-format on */

/* Section `toolset`, for commands that answer as an agent's tools do. */
struct toolset_args {
    const char *tool_prefix, *purpose, *max_output_bytes, *max_run_output_bytes, *max_read_bytes;
    uint64_t default_command_timeout, max_command_timeout, max_output_lines;
    struct text_list tools, mask;
    enum option_state state[SPEC_FIELD__MAX]; /* of those with a single value */
};

#define TOOLSET_OPTION_AT(T, m, member) (offsetof(T, m) + offsetof(struct toolset_args, member))
#define TOOLSET_OPTION_ONE(T, m, k, member, id)                                                    \
    .kind = (k), .offset = TOOLSET_OPTION_AT(T, m, member),                                        \
    .state = TOOLSET_OPTION_AT(T, m, state[id])

/* TOOLSET_OPTIONS() - the rows, for a table of @T, whose member @m is a struct toolset_args */
/* clang-format off */
#define TOOLSET_OPTIONS(T, m)                                                                      \
    {.name = "tool-prefix", .arg = "PREFIX",                                                       \
     TOOLSET_OPTION_ONE(T, m, OPTION_TEXT, tool_prefix, SPEC_FIELD_TOOL_PREFIX),                   \
     .help = "put PREFIX_ before the names of the tools"},                                         \
    {.name = "purpose", .arg = "TEXT",                                                             \
     TOOLSET_OPTION_ONE(T, m, OPTION_TEXT, purpose, SPEC_FIELD_PURPOSE),                           \
     .help = "tell the model in a sentence what this sandbox is for"},                             \
    {.name = "tool", .arg = "NAME",                                                                \
     .kind = OPTION_LIST, .offset = TOOLSET_OPTION_AT(T, m, tools), .max = LIMIT_LIST_ENTRIES,     \
     .help = "give the model this tool beside the four: edit_file, search_files, start_process, "  \
             "process_output, stop_process or publish_exports"},                                   \
    {.name = "default-command-timeout", .arg = "TIME",                                             \
     TOOLSET_OPTION_ONE(T, m, OPTION_DURATION, default_command_timeout,                            \
                        SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT),                                       \
     .min = SPEC_TIME_MIN_US, .max = LIMIT_TIME_MAX_US, .preset = "60",                            \
     .help = "time for a command that asks for none"},                                             \
    {.name = "max-command-timeout", .arg = "TIME",                                                 \
     TOOLSET_OPTION_ONE(T, m, OPTION_DURATION, max_command_timeout,                                \
                        SPEC_FIELD_MAX_COMMAND_TIMEOUT),                                           \
     .min = SPEC_TIME_MIN_US, .max = LIMIT_TIME_MAX_US, .preset = "300",                           \
     .help = "most time that a command gets"},                                                     \
    {.name = "max-output-lines", .arg = "N",                                                       \
     TOOLSET_OPTION_ONE(T, m, OPTION_NUMBER, max_output_lines, SPEC_FIELD_MAX_OUTPUT_LINES),       \
     .min = 1, .max = UINT32_MAX, .preset = "2000",                                                \
     .help = "lines that are shown of one output, file or folder"},                                \
    {.name = "max-output-bytes", .arg = "SIZE",                                                    \
     TOOLSET_OPTION_ONE(T, m, OPTION_TEXT, max_output_bytes, SPEC_FIELD_MAX_OUTPUT_BYTES),         \
     .help = "bytes that are shown of one output, file or folder; 50K unless given"},              \
    {.name = "max-run-output-bytes", .arg = "SIZE",                                                \
     TOOLSET_OPTION_ONE(T, m, OPTION_TEXT, max_run_output_bytes,                                   \
                        SPEC_FIELD_MAX_RUN_OUTPUT_BYTES),                                          \
     .help = "bytes that are shown of the output of all commands of a run; no ceiling unless "     \
             "given"},                                                                             \
    {.name = "max-read-bytes", .arg = "SIZE",                                                      \
     TOOLSET_OPTION_ONE(T, m, OPTION_TEXT, max_read_bytes, SPEC_FIELD_MAX_READ_BYTES),             \
     .help = "bytes of one file that the tools read; 5M unless given"},                            \
    {.name = "mask", .arg = "NAME|@FILE",                                                          \
     .kind = OPTION_LIST, .offset = TOOLSET_OPTION_AT(T, m, mask), .max = LIMIT_LIST_ENTRIES,      \
     .help = "show '***' in the place of the value of this variable, as the sandbox or else the "  \
             "caller has it, or of each line of a file; of at least 4 bytes each"}
/* clang-format on */

/* What is to be published when a run ends well. */
struct export_args {
    struct text_list exports;
    uint64_t max_export_bytes;
    enum option_state state[SPEC_FIELD__MAX];
};

#define EXPORT_OPTION_AT(T, m, member) (offsetof(T, m) + offsetof(struct export_args, member))

/* EXPORT_OPTIONS() - the rows, for a table of @T, whose member @m is a struct export_args */
/* clang-format off */
#define EXPORT_OPTIONS(T, m)                                                                       \
    {.name = "export", .arg = "PATH=URL",                                                          \
     .kind = OPTION_LIST, .offset = EXPORT_OPTION_AT(T, m, exports), .max = LIMIT_LIST_ENTRIES,    \
     .help = "when the run has ended well, publish a file or folder of the sandbox at a URL such " \
             "as file:///srv/out.csv"},                                                            \
    {.name = "max-export-bytes", .arg = "SIZE", .kind = OPTION_SIZE,                               \
     .offset = EXPORT_OPTION_AT(T, m, max_export_bytes),                                           \
     .state = EXPORT_OPTION_AT(T, m, state[SPEC_FIELD_MAX_EXPORT_BYTES]),                          \
     .min = 1, .max = LIMIT_DISK_MAX_BYTES, .preset = "1G",                                        \
     .help = "size that one exported file may have"}
/* clang-format on */

/**
 * spec_args_apply() - fill a spec: the file of --spec first, then the options
 * @callers_env: borrowed; where a NAME alone of --env takes its value
 * @spec:        made by spec_init(), with the command's own defaults in it; still to be freed by
 *               the caller on failure, when what it holds means nothing
 * @problems:    gets all that is wrong, those of the file with their places; spec_finish() has
 * looked at the whole
 *
 * --no-NAME returns to the default: of lifetime to what @spec had. Blocks while files are read.
 * Return: 0; or a negative errno with @err set, which sums the problems up or says why a file could
 * not be read.
 */
int spec_args_apply(const struct spec_args *a, char *const callers_env[], struct spec *spec,
                    struct problems *problems, struct error *err);

/**
 * spec_args_apply_toolset() - the same with the options of TOOLSET_OPTIONS() and EXPORT_OPTIONS()
 * @exports:   NULL of a command without them
 * @ret_given: the fields that the file or an option sets, as spec_field_bit()
 *
 * --mask names variables of @callers_env too. No error shows a text that is to be masked.
 */
int spec_args_apply_toolset(const struct spec_args *a, const struct toolset_args *t,
                            const struct export_args *exports, char *const callers_env[],
                            struct spec *spec, uint64_t *ret_given, struct problems *problems,
                            struct error *err);

/** spec_args_apply_exports() - the same with the options of EXPORT_OPTIONS() */
int spec_args_apply_exports(const struct spec_args *a, const struct export_args *exports,
                            char *const callers_env[], struct spec *spec, struct problems *problems,
                            struct error *err);

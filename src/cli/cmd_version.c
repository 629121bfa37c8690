/* SPDX-License-Identifier: Apache-2.0 */
/* atoll version: what this program is, for people and for programs. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/print.h"
#include "toolset/texts.h"
#include "wire/control.h"
#include "base/guards.h"

#if defined(__x86_64__)
#define VERSION_ARCH "x86_64"
#elif defined(__aarch64__)
#define VERSION_ARCH "aarch64"
#elif defined(__riscv) && __riscv_xlen == 64
#define VERSION_ARCH "riscv64"
#else
#define VERSION_ARCH "unknown"
#endif

#if defined(__clang__)
#define VERSION_COMPILER __VERSION__ /* has the compiler's name in it */
#else
#define VERSION_COMPILER "gcc " __VERSION__
#endif

struct version_args {
    bool json;
};

static const struct option version_options[] = {
    OPTION_JSON(offsetof(struct version_args, json)),
};

static void version_text(FILE *f, const char *protocol)
{
    fprintf(f, "atoll %s\nprotocol %s\ntool texts %d\narch %s\ncompiler %s\n", program_version(),
            protocol, TEXTS_VERSION, VERSION_ARCH, VERSION_COMPILER);
}

static int version_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct version_args args;
    struct arguments operands;
    char protocol[32];
    int r;

    r = command_parse(&cmd_version, argc, argv, &args, &operands, err);
    if (r < 0)
        return r;
    r = command_operands(&cmd_version, &operands, 0, 0, err);
    if (r < 0)
        return r;
    (void)snprintf(protocol, sizeof protocol, "%d.%d", WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR);
    if (!args.json) {
        version_text(cli->out, protocol);
        return CLI_EXIT_OK;
    }
    return print_json(cli->out,
                      json_pack("{s:s, s:s, s:s, s:i, s:s}", "name", "atoll", "version",
                                program_version(), "protocol", protocol, "tool_texts",
                                TEXTS_VERSION, "arch", VERSION_ARCH),
                      err);
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the versions of the program, its protocol and its texts for models",
    .usage = "[--json]",
    .description =
        "Prints the version of atoll, of the protocol that it speaks with its sandboxes, "
        "and of the texts that its tools show to models, and for which architecture it "
        "was built.",
    .options = version_options,
    .n_options = ARRAY_SIZE(version_options),
    .run = version_run,
};

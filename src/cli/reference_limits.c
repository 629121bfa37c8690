/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of limits: core/limits.h as a table, with ceilings of the formats beside it. */
#include <stdint.h>

#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/reference.h"
#include "client/tree_pack.h"
#include "core/channel.h"
#include "core/host_rule.h"
#include "core/limits.h"
#include "wire/control.h"
#include "wire/document.h"
#include "wire/files.h"
#include "wire/frame.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum unit { BYTES, TIME, COUNT };

struct limit {
    const char *name; /* a phrase */
    uint64_t value;   /* bytes, microseconds, or a number */
    enum unit unit;
    const char *why; /* sentences */
};

static const struct limit sandbox_limits[] = {
    {"lifetime of a sandbox that is created to be held", LIMIT_LIFETIME_DEFAULT_US, TIME,
     "The default of `sandbox_timeout`: what nobody removes ends all the same. `atoll run` has "
     "none, since its sandbox ends with its command."},
    {"longest timeout or lifetime that may be asked for", LIMIT_TIME_MAX_US, TIME,
     "Beyond it a slip of the unit is likelier than a wish."},
    {"time that making a sandbox may take", LIMIT_CREATE_US, TIME,
     "It takes milliseconds. Past this time the keeper gives up and says so."},
    {"processes and threads at once", LIMIT_PIDS_DEFAULT, COUNT,
     "The default of `pids`: a build with many jobs fits, a fork bomb ends here."},
    {"least `pids`", LIMIT_PIDS_MIN, COUNT, "Process 1 of the sandbox and one command."},
    {"most `pids`", LIMIT_PIDS_MAX, COUNT, "The kernel counts no further."},
    {"least `disk`", LIMIT_DISK_MIN_BYTES, BYTES,
     "What a sandbox itself puts into its file system has to fit."},
    {"most `disk`", LIMIT_DISK_MAX_BYTES, BYTES,
     "It is held in memory. The default is half of the memory that is free when the sandbox is "
     "made, or half of `memory` if that is less."},
    {"bytes of `disk` for each file", LIMIT_DISK_BYTES_PER_INODE, BYTES,
     "So many files fit as `disk` has parts of this size: a file costs about 1 KiB of kernel "
     "memory beside its content."},
    {"files at least, however small `disk` is", LIMIT_DISK_INODES_MIN, COUNT,
     "Unpacking a source tree into a small sandbox works."},
    {"shared memory (`/dev/shm`) at least", LIMIT_SHM_MIN_BYTES, BYTES,
     "Browsers and worker pools need more than the 64 MiB that containers usually get."},
    {"open files of one process", LIMIT_OPEN_FILES, COUNT,
     "Fewer where the caller's own hard limit is lower."},
};

static const struct limit command_limits[] = {
    {"arguments and variables of a command together", EXEC_STRINGS_MAX, COUNT,
     "More than any program is started with."},
    {"bytes of one argument or variable", EXEC_STRING_BYTES_MAX, BYTES,
     "The kernel takes no longer one."},
    {"variables of a spec or a command", LIMIT_ENV_NAMES, COUNT,
     "Far more than programs are given."},
    {"time for ending all that a command started", LIMIT_KILL_US, TIME,
     "After a timeout. Processes that can be ended are gone in milliseconds; when they are not, "
     "the whole sandbox is ended."},
    {"silence after which output that others hold open is given up", LIMIT_DRAIN_IDLE_US, TIME,
     "A command has ended, and what it left in the background keeps its output open."},
    {"noise after which it is given up", LIMIT_DRAIN_US, TIME,
     "Likewise, for what keeps writing. What the command itself wrote is delivered however long "
     "that takes."},
    {"bytes of a stream on their way without being taken", STREAM_WINDOW_BYTES, BYTES,
     "Of backends that pass streams through the protocol. A writer waits beyond it, nothing is "
     "lost."},
    {"arguments of a command that `atoll ps` shows", COMMAND_ARGS_MAX, COUNT,
     "The rest is left out."},
};

static const struct limit file_limits[] = {
    {"bytes of a path inside", FILE_PATH_BYTES_MAX, BYTES, "The kernel takes no longer one."},
    {"folders in each other that are copied", TREE_DEPTH_MAX, COUNT,
     "A tree that is deeper was made to hurt."},
};

static const struct limit spec_limits[] = {
    {"bytes of a spec file", DOCUMENT_TEXT_MAX_BYTES, BYTES,
     "What a person writes is far smaller. This and the next two bound what a hostile file costs."},
    {"lists and maps in each other", DOCUMENT_DEPTH_MAX, COUNT, "As above."},
    {"values of all kinds in a spec file", DOCUMENT_NODES_MAX, COUNT, "As above."},
    {"bytes of a name, owner, tag or other short text", LIMIT_TEXT_BYTES, BYTES,
     "It goes into lists that people read."},
    {"entries of a list or map", LIMIT_LIST_ENTRIES, COUNT,
     "Ranges, tags, inputs, ports, exports and masks. A list that is longer was generated, and "
     "ranges say it shorter."},
    {"hosts of `allow_egress_to`", LIMIT_HOSTS, COUNT,
     "They are found by their names, so that the time of a look-up does not grow with the list."},
    {"bytes of all these hosts together", LIMIT_HOSTS_BYTES, BYTES,
     "A spec has to fit into one message."},
    {"labels that the star of a wildcard stands for", HOST_WILDCARD_LABELS_MAX, COUNT,
     "Each name below a wildcard is a message to the name server of its domain, and names of hosts "
     "are short."},
    {"bytes of these labels", HOST_WILDCARD_BYTES_MAX, BYTES, "As above."},
    {"volumes", LIMIT_VOLUMES, COUNT, "Each is a mount to be made for every sandbox."},
};

static const struct limit toolset_limits[] = {
    {"time for a command that asks for none", LIMIT_TOOL_TIMEOUT_DEFAULT_US, TIME,
     "The default of `default_command_timeout`."},
    {"most time that an agent may ask for", LIMIT_TOOL_TIMEOUT_CEILING_US, TIME,
     "The default of `max_command_timeout`: who waits for an agent learns of a command that "
     "hangs."},
    {"lines of one output that an agent is shown", LIMIT_TOOL_OUTPUT_LINES, COUNT,
     "The default of `max_output_lines`: an agent's context is small and costs money."},
    {"bytes of one output that an agent is shown", LIMIT_TOOL_OUTPUT_BYTES, BYTES,
     "The default of `max_output_bytes`, for the same reason."},
    {"bytes of one file that the tools read", LIMIT_TOOL_READ_BYTES, BYTES,
     "The default of `max_read_bytes`. Commands inside read files of any size."},
    {"size of one exported file", LIMIT_EXPORT_BYTES, BYTES,
     "The default of `max_export_bytes`: what nobody expected to be large is not published."},
    {"files, folders and links of one export", LIMIT_EXPORT_FILES, COUNT,
     "Each costs an inode of the host's, however small it is."},
    {"toolsets of one `atoll mcp`", LIMIT_MCP_TOOLSETS, COUNT,
     "Each has four tools or more, and a model chooses badly among many."},
    {"time that an exported file may take", LIMIT_EXPORT_US, TIME,
     "Or a second for each MiB of it, if that is more. A folder may take so much longer as has "
     "come of it."},
};

static const struct limit protocol_limits[] = {
    {"bytes of a frame's payload", FRAME_PAYLOAD_MAX, BYTES,
     "A packet of it fits the default buffer of a socket."},
    {"bytes of a message", MESSAGE_BYTES_MAX, BYTES,
     "Above what the kernel takes as arguments of a program."},
    {"bytes that may wait for a peer that does not read", CHANNEL_QUEUE_MAX, BYTES,
     "Beyond it the peer counts as gone."},
};

static const struct {
    const char *title, *text;
    const struct limit *limits;
    size_t n;
} sections[] = {
    {"A sandbox", "", sandbox_limits, ARRAY_SIZE(sandbox_limits)},
    {"A command", "How many may run at once is [the protocol's](../design/protocol.md#limits).",
     command_limits, ARRAY_SIZE(command_limits)},
    {"Files",
     "Sizes have no ceiling but `disk`: files of any size are read in parts, written and copied.",
     file_limits, ARRAY_SIZE(file_limits)},
    {"A spec", "", spec_limits, ARRAY_SIZE(spec_limits)},
    {"The tools of an agent",
     "Defaults of the section `toolset`, for `atoll mcp`, `atoll tool` and programs with libatoll.",
     toolset_limits, ARRAY_SIZE(toolset_limits)},
    {"The protocol",
     "[docs/design/protocol.md](../design/protocol.md#limits) has the rest of these.",
     protocol_limits, ARRAY_SIZE(protocol_limits)},
};

static void write_value(FILE *f, const struct limit *l)
{
    char text[PRINT_UNIT_MAX];

    switch (l->unit) {
    case BYTES:
        print_size_text(text, l->value);
        break;
    case TIME:
        print_duration_text(text, l->value);
        break;
    case COUNT:
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)l->value);
        break;
    }
    fputs(text, f);
}

void reference_limits(FILE *f, const struct command *const *table)
{
    (void)table;
    fputs(
        "# Limits\n\nWritten by `atoll reference limits`.\n\n"
        "Every default and ceiling that a user can reach, and why it is there. Sizes are powers of "
        "1024: `B`, `K`, `M`, `G`, `T`. What a field of a spec sets, and within which bounds, is "
        "in "
        "[spec.md](spec.md). Past a limit something is refused in words that name it, unless its "
        "row says "
        "otherwise.\n",
        f);
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        fprintf(f, "\n## %s\n\n", sections[i].title);
        if (sections[i].text[0])
            fprintf(f, "%s\n\n", sections[i].text);
        fputs("| what | limit | why |\n|---|---|---|\n", f);
        for (size_t k = 0; k < sections[i].n; k++) {
            fprintf(f, "| %s | ", sections[i].limits[k].name);
            write_value(f, &sections[i].limits[k]);
            fprintf(f, " | %s |\n", sections[i].limits[k].why);
        }
    }
}

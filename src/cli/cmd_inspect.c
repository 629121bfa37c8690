/* SPDX-License-Identifier: Apache-2.0 */
/* atoll inspect: what a sandbox is and uses. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/attach.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "base/guards.h"

struct inspect_args {
    bool json;
};

static const struct option inspect_options[] = {
    OPTION_JSON(offsetof(struct inspect_args, json)),
};

enum { LABEL_WIDTH = 14, ROW_BYTES = 4 * SANDBOX_WORDS };

static void row(struct cli *cli, const char *label, const char *value)
{
    char shown[1200];

    (void)snprintf(shown, sizeof shown, "%s", value && value[0] ? value : "-");
    text_make_printable(shown);
    fprintf(cli->out, "%-*s%s\n", LABEL_WIDTH, label, shown);
}

static void row_time(struct cli *cli, const char *label, uint64_t epoch_us, const char *none)
{
    char at[SANDBOX_WORDS], span[SANDBOX_WORDS], text[ROW_BYTES];
    const uint64_t now = clock_epoch_us();

    if (epoch_us == 0) {
        row(cli, label, none);
        return;
    }
    sandbox_time_text(at, epoch_us);
    sandbox_span_text(span, epoch_us > now ? epoch_us - now : now - epoch_us);
    (void)snprintf(text, sizeof text, "%s (%s%s%s)", at, epoch_us > now ? "in " : "", span,
                   epoch_us > now ? "" : " ago");
    row(cli, label, text);
}

/* "3 of 4096"; a limit of 0 is none. */
static void row_use(struct cli *cli, const char *label, uint64_t used, uint64_t limit)
{
    char text[ROW_BYTES];

    if (limit == 0 && used == 0) /* none of a sandbox that stands: it is not known */
        text[0] = '\0';
    else if (limit > 0)
        (void)snprintf(text, sizeof text, "%llu of %llu", (unsigned long long)used,
                       (unsigned long long)limit);
    else
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)used);
    row(cli, label, text);
}

static void row_disk(struct cli *cli, const struct atoll_info *i)
{
    char used[SANDBOX_WORDS], limit[SANDBOX_WORDS], text[ROW_BYTES];

    sandbox_bytes_text(used, i->disk_used);
    sandbox_bytes_text(limit, i->disk_limit);
    (void)snprintf(text, sizeof text, "%s of %s", used, limit);
    row(cli, "disk", i->disk_limit > 0 ? text : i->disk_used > 0 ? used : NULL);
}

static void row_memory(struct cli *cli, const struct atoll_info *i)
{
    char used[SANDBOX_WORDS], limit[SANDBOX_WORDS], peak[SANDBOX_WORDS], text[ROW_BYTES];

    sandbox_bytes_text(used, i->memory_used);
    sandbox_bytes_text(limit, i->memory_limit);
    sandbox_bytes_text(peak, i->memory_peak);
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", used, i->memory_limit > 0 ? " of " : "",
                   i->memory_limit > 0 ? limit : "", i->memory_peak > 0 ? ", at its peak " : "",
                   i->memory_peak > 0 ? peak : "");
    row(cli, "memory", i->memory_used > 0 || i->memory_limit > 0 ? text : NULL);
}

static void row_cpu(struct cli *cli, const struct atoll_info *i)
{
    char text[ROW_BYTES], limit[SANDBOX_WORDS] = "";

    if (i->cpu_milli > 0)
        (void)snprintf(limit, sizeof limit, ", on at most %.6g CPUs", (double)i->cpu_milli / 1e3);
    (void)snprintf(text, sizeof text, "%.2f s%s", (double)i->cpu_us / 1e6, limit);
    row(cli, "CPU time", i->cpu_us > 0 || i->cpu_milli > 0 ? text : NULL);
}

static void row_traffic(struct cli *cli, const struct atoll_info *i)
{
    char sent[SANDBOX_WORDS], received[SANDBOX_WORDS], text[ROW_BYTES];

    sandbox_bytes_text(sent, i->egress_sent);
    sandbox_bytes_text(received, i->egress_received);
    (void)snprintf(text, sizeof text, "%s sent, %s received", sent, received);
    row(cli, "traffic", i->egress_sent > 0 || i->egress_received > 0 ? text : NULL);
}

static void row_cost(struct cli *cli, const struct atoll_info *i)
{
    char text[ROW_BYTES], limit[SANDBOX_WORDS] = "";

    if (i->max_cost_micro > 0)
        (void)snprintf(limit, sizeof limit, " of %.6g", (double)i->max_cost_micro / 1e6);
    (void)snprintf(text, sizeof text, "%.6g%s", (double)i->cost_micro / 1e6, limit);
    row(cli, "cost", i->cost_micro > 0 || i->max_cost_micro > 0 ? text : NULL);
}

static void row_published(struct cli *cli, const char *label, const char *entry)
{
    char text[ROW_BYTES];

    attach_published_text(entry, text, sizeof text);
    row(cli, label, text);
}

static void row_fences(struct cli *cli, const struct atoll_info *i)
{
    char text[ROW_BYTES] = "those of the backend";

    if (!i->backend || strcmp(i->backend, "local") == 0)
        (void)snprintf(text, sizeof text,
                       i->landlock_abi > 0
                           ? "namespaces, system call filter, Landlock (ABI %u)"
                           : "namespaces, system call filter; the kernel has no Landlock",
                       i->landlock_abi);
    row(cli, "fences", text);
}

static void print_info(struct cli *cli, const struct atoll_info *i)
{
    static const char closed[] =
        "{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":true}";
    char text[ROW_BYTES], lease[SANDBOX_LEASE_WORDS];

    row(cli, "id", i->id);
    row(cli, "name", i->name);
    row(cli, "state", i->state);
    row(cli, "backend", i->backend);
    row(cli, "image", i->image);
    row(cli, "workdir", i->workdir);
    row(cli, "hostname", i->hostname);
    (void)snprintf(text, sizeof text, "%u:%u", i->uid, i->gid);
    row(cli, "user", text);
    row(cli, "network", i->network && strcmp(i->network, closed) == 0 ? "closed" : i->network);
    for (const char *const *p = i->published; p && *p; p++)
        row_published(cli, p == i->published ? "published" : "", *p);
    row_time(cli, "created", i->created_at_us, "-");
    row_time(cli, "expires", i->expires_at_us, "never");
    if (i->idle_us > 0)
        sandbox_span_text(text, i->idle_us);
    row(cli, "idle timeout", i->idle_us > 0 ? text : "none");
    row_cpu(cli, i);
    row_memory(cli, i);
    row_disk(cli, i);
    row_use(cli, "inodes", i->inodes_used, i->inodes_limit);
    row_use(cli, "processes", i->processes, i->pids_limit);
    (void)snprintf(text, sizeof text, "%u", i->commands);
    row(cli, "commands", text);
    row_traffic(cli, i);
    row_cost(cli, i);
    row_fences(cli, i);
    row(cli, "owner", i->owner);
    sandbox_lease_text(lease, i);
    row(cli, "lease", lease);
    for (const char *const *t = i->tags; t && *t; t++)
        row(cli, t == i->tags ? "tags" : "", *t);
    if (!i->tags || !*i->tags)
        row(cli, "tags", NULL);
}

static int inspect(struct cli *cli, const char *id, bool json, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    int r = handle_open(&h, id, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_inspect(h.sandbox);
    r = handle_wait(&h, op, err);
    if (r < 0)
        return r;
    const struct atoll_info *i = atoll_op_info(op, 0);
    if (!json) {
        print_info(cli, i);
        return 0;
    }
    json_t *o = sandbox_json(i);
    if (sandbox_json_usage(o, i) == 0)
        return print_json(cli->out, o, err);
    json_decref(o);
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int inspect_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct inspect_args args;
    struct arguments operands;
    int r = command_parse(&cmd_inspect, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_inspect, &operands, 1, 1, err);
    return r < 0 ? r : inspect(cli, operands.v[0], args.json, err);
}

static const struct command_example inspect_examples[] = {
    {"atoll inspect box", "see how long it stands still, and how full its disk and memory are"},
};

const struct command cmd_inspect = {
    .name = "inspect",
    .summary = "show what a sandbox is and uses",
    .usage = "ID [--json]",
    .description =
        "Shows a sandbox's settings, how much it uses of what it may, and what fences it in: "
        "processor time, memory, disk, files, processes, bytes that went out and came in, and "
        "what it has cost by the prices of its spec. A \"-\" stands for what is not measured or "
        "has no limit. Values of variables are never shown.",
    .options = inspect_options,
    .n_options = ARRAY_SIZE(inspect_options),
    .examples = inspect_examples,
    .n_examples = ARRAY_SIZE(inspect_examples),
    .run = inspect_run,
};

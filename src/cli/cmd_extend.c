/* SPDX-License-Identifier: Apache-2.0 */
/* atoll extend: another lifetime for a sandbox. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "core/spec_set.h"
#include "base/guards.h"

struct extend_args {
    const char *owner;
    bool json;
};

#define FIELD(name) offsetof(struct extend_args, name)

static const struct option extend_options[] = {
    {.name = "owner",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(owner),
     .help = "for whom it was made; needed if it was made for somebody, and only then"},
    OPTION_JSON(FIELD(json)),
};

/* As the lifetime of `create` is written, and within the same bounds. */
static int parse_lifetime(const char *text, uint64_t *ret, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    _cleanup_(spec_done) struct spec spec = {0};
    struct spec_filling f = {.spec = &spec, .problems = &problems};

    if (spec_init(&spec) < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (!spec_set(&f, SPEC_FIELD_SANDBOX_TIMEOUT, "the lifetime", text))
        return problems_error(&problems, NULL, err);
    *ret = spec.lifetime_us;
    return 0;
}

static int report(struct cli *cli, const struct extend_args *a, const char *id, uint64_t left_us,
                  struct error *err)
{
    uint64_t expires_us = clock_epoch_us() + left_us;
    char end[SANDBOX_WORDS];

    if (a->json)
        return print_json(cli->out,
                          json_pack("{s:s, s:f, s:o}", "id", id, "remaining_lifetime",
                                    (double)left_us / 1e6, "expires_at",
                                    sandbox_seconds(expires_us)),
                          err);
    sandbox_time_text(end, expires_us);
    fprintf(cli->out, "%s\n", end);
    return 0;
}

static int extend(struct cli *cli, const struct extend_args *a, const char *text, uint64_t life_us,
                  struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    int r = handle_open(&h, text, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_extend(h.sandbox, a->owner, life_us);
    r = handle_wait(&h, op, err);
    if (r == -EACCES && !a->owner)
        return error_remedy(err, "Give --owner NAME as at create");
    return r < 0 ? r : report(cli, a, h.id, atoll_op_left_us(op), err);
}

static int extend_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct extend_args a;
    uint64_t life_us = 0;
    int r = command_parse(&cmd_extend, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_extend, &operands, 2, 2, err);
    if (r == 0)
        r = parse_lifetime(operands.v[1], &life_us, err);
    if (r == 0)
        r = extend(cli, &a, operands.v[0], life_us, err);
    options_done(extend_options, ARRAY_SIZE(extend_options), &a);
    return r;
}

static const struct command_example extend_examples[] = {
    {"atoll extend box 2h", "let the sandbox called box live for two hours from now on"},
    {"atoll extend box 30m --owner team/report", "the same for one that was made for an owner"},
};

const struct command cmd_extend = {
    .name = "extend",
    .summary = "give a sandbox another lifetime, from now on",
    .usage = "ID DURATION [OPTION]...",
    .description =
        "The sandbox ends DURATION after now, whatever its lifetime was before; a shorter one is "
        "taken as well. Prints when that is. Written as the lifetime of create: 90s, 5m, 1h.\n\n"
        "The idle timeout goes on as it did: this alone does not keep a sandbox that nobody uses. "
        "Only sandboxes of the backend local can be extended; create others with a longer "
        "--lifetime.",
    .options = extend_options,
    .n_options = ARRAY_SIZE(extend_options),
    .examples = extend_examples,
    .n_examples = ARRAY_SIZE(extend_examples),
    .run = extend_run,
};

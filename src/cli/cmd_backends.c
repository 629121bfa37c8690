/* SPDX-License-Identifier: Apache-2.0 */
/* atoll backends: where sandboxes can be made. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/print.h"
#include "core/backends.h"
#include "wire/json_text.h"
#include "base/guards.h"

struct backends_args {
    bool json;
};

static const struct option backends_options[] = {
    OPTION_JSON(offsetof(struct backends_args, json)),
};

/* Where what is listed goes. */
struct listing {
    struct cli *cli;
    json_t *json; /* an array; NULL: text is printed */
};

static json_t *features_json(const struct backend *b)
{
    json_t *features = json_array();

    for (int i = 0; i < FEATURE__MAX; i++)
        if (b->capability.features >> i & 1)
            (void)json_array_append_new(
                features, json_string(capability_feature_name((enum capability_feature)i)));
    return features;
}

static void list_one(const struct listing *l, const struct backend *b)
{
    enum { NAME_WIDTH = 12, STATE_WIDTH = 8, SUMMARY_COLUMN = NAME_WIDTH + 2 + STATE_WIDTH + 2 };
    const char *state = backend_state_name(b->state);

    if (l->json) {
        (void)json_array_append_new(l->json,
                                    json_pack("{s:s, s:s, s:s, s:o*, s:o}", "name", b->name,
                                              "state", state, "summary", b->summary, "program",
                                              json_text(b->program), "features", features_json(b)));
        return;
    }
    fprintf(l->cli->out, "%-*s  ", NAME_WIDTH, b->name);
    print_styled(l->cli->out, l->cli->colour, b->state == BACKEND_KNOWN ? PRINT_FAINT : PRINT_GOOD,
                 state);
    size_t at = strlen(b->name) > NAME_WIDTH ? strlen(b->name) + 2 : NAME_WIDTH + 2;
    print_wrapped(l->cli->out, at + strlen(state), SUMMARY_COLUMN,
                  b->program ? b->program : b->summary);
}

/* Programs that are in the table have been listed there. */
static bool is_in_table(const char *name)
{
    for (size_t i = 0; backend_known(i); i++)
        if (strcmp(backend_known(i)->name, name) == 0)
            return true;
    return false;
}

static int list_all(const struct listing *l, struct error *err)
{
    const char *path = getenv("PATH");
    struct string_list programs = {0};
    struct backend_room room;
    struct backend b;
    int r = 0;

    for (size_t i = 0; r == 0 && backend_known(i); i++) {
        r = backend_find(backend_known(i)->name, path, &room, &b, err);
        if (r == 0)
            list_one(l, &b);
    }
    if (r == 0 && backend_programs(path, &programs) < 0)
        r = error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < programs.n; i++) {
        struct error gone = ERROR_INIT; /* removed since it was seen */

        if (!is_in_table(programs.items[i]) &&
            backend_find(programs.items[i], path, &room, &b, &gone) == 0)
            list_one(l, &b);
    }
    string_list_done(&programs);
    return r;
}

static int backends_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct listing l = {.cli = cli};
    struct backends_args args;
    struct arguments operands;
    int r = command_parse(&cmd_backends, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_backends, &operands, 0, 0, err);
    if (r < 0)
        return r;
    l.json = args.json ? json_array() : NULL;
    r = list_all(&l, err);
    if (r < 0 || !args.json) {
        json_decref(l.json);
        return r;
    }
    return print_json(cli->out, json_pack("{s:o}", "backends", l.json), err);
}

static const struct command_example backends_examples[] = {
    {"atoll backends", "see where sandboxes can be made"},
    {"atoll check --backend modal --spec agent.yaml", "see what another backend would make of it"},
};

const struct command cmd_backends = {
    .name = "backends",
    .summary = "list where sandboxes can be made",
    .usage = "[--json]",
    .description =
        "Lists the backend that is built in, those of which it is known what they can enforce but "
        "on which nothing can run yet, and the programs of third parties.\n\n"
        "A backend is added by a program atoll-backend-NAME on the PATH that speaks the sandbox "
        "protocol on its standard input and output. It wins over a name that is only known.",
    .options = backends_options,
    .n_options = ARRAY_SIZE(backends_options),
    .examples = backends_examples,
    .n_examples = ARRAY_SIZE(backends_examples),
    .run = backends_run,
};

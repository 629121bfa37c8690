/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer shows of a command's output: so much of each, and of all of a run. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

struct truncate_caps call_caps(const struct tool_call *c)
{
    const struct toolset_spec *s = &c->t->spec.spec.toolset;

    return (struct truncate_caps){.max_lines = s->max_output_lines,
                                  .max_bytes = s->max_output_bytes};
}

/* What may still be shown of the output of all commands. */
static uint64_t output_left(const struct tool_call *c)
{
    const uint64_t most = c->t->spec.spec.toolset.max_run_output_bytes, shown = c->t->output_bytes;

    return most == 0 ? UINT64_MAX : most > shown ? most - shown : 0;
}

/* Whole lines are shown, so that the ceiling may cut and yet leave a few bytes unused. */
int call_show_output(struct tool_call *c, const char *text, size_t len, char **ret, size_t *ret_len,
                     size_t *ret_from, bool *ret_ceiling)
{
    const struct truncate_caps own = call_caps(c);
    const uint64_t left = output_left(c);
    size_t from, n;
    int r = truncate_output(text, len, &own, ret, &n, &from);

    if (r == 0 && n > left) {
        const struct truncate_caps caps = {.max_lines = own.max_lines, .max_bytes = left};

        free(TAKE_PTR(*ret));
        *ret_ceiling = true;
        r = truncate_output(text, len, &caps, ret, &n, &from);
    }
    if (r < 0)
        return r;
    c->t->output_bytes += n;
    *ret_len = n;
    *ret_from = from;
    return 0;
}

bool call_output_note(const struct tool_call *c, bool ceiling,
                      char ret[static CALL_OUTPUT_NOTE_BYTES])
{
    const uint64_t most = c->t->spec.spec.toolset.max_run_output_bytes;
    char size[SHOWN_SIZE_BYTES];

    if (!ceiling && output_left(c) > 0)
        return false;
    shown_size(most, size);
    (void)snprintf(ret, CALL_OUTPUT_NOTE_BYTES, TEXT_NOTE_RUN_OUTPUT, size);
    return true;
}

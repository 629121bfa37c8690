/* SPDX-License-Identifier: Apache-2.0 */
/* The tool write_file. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum { ARGUMENT_PATH, ARGUMENT_CONTENT };

static void done(struct tool_call *c)
{
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];
    const struct tool_argument *content = &c->arguments.items[ARGUMENT_CONTENT];
    _cleanup_free_ char *shown = NULL, *masked = NULL;
    char *text = NULL;
    size_t len = 0;
    int n = -1;

    if (atoll_op_error(c->inner)) {
        call_inner_failed(c);
        return;
    }
    shown = call_path(c, path->text, path->len);
    if (shown)
        n = asprintf(&text, TEXT_WROTE, (uint64_t)content->len, shown);
    masked = toolset_masked(c->t, path->text, path->len, &len);
    call_fact(c, "path", masked ? call_string(masked, len) : NULL);
    call_fact(c, "bytes", json_integer((json_int_t)content->len));
    call_answer(c, n < 0 ? NULL : text, n < 0 ? 0 : (size_t)n, false);
}

static bool examine(struct tool_call *c)
{
    return call_path_fits(c);
}

static void begin(struct tool_call *c)
{
    const struct tool_argument *content = &c->arguments.items[ARGUMENT_CONTENT];

    call_await(c,
               atoll_write_bytes(c->t->sb, c->arguments.items[ARGUMENT_PATH].text, content->text,
                                 content->len, ATOLL_KEEP_MODE),
               done);
}

const struct tool_action write_file_action = {.examine = examine, .begin = begin};

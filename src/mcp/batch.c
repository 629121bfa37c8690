/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that go out together: those to the requests of one array. */
#include <stdlib.h>
#include <string.h>

#include "mcp/server.h"
#include "base/guards.h"

static void batch_send(struct mcp_batch *b)
{
    char *text = b->text ? realloc(b->text, b->len + 1) : NULL;

    if (text) { /* notifications alone are answered by nothing */
        text[b->len++] = ']';
        b->text = NULL;
        b->peer->send(b->peer->owner, text, b->len);
    }
    free(b->text);
    free(b);
}

void mcp_batch_finish(struct mcp_batch *b)
{
    if (--b->waiting == 0)
        batch_send(b);
}

void mcp_batch_add(struct mcp_batch *b, char *text, size_t len)
{
    char *more = realloc(b->text, b->len + len + 1);

    if (more) {
        more[b->len] = b->len == 0 ? '[' : ',';
        memcpy(more + b->len + 1, text, len);
        b->text = more;
        b->len += len + 1;
    }
    free(text);
    mcp_batch_finish(b);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "toolset/truncate.h"

#include <string.h>

#include "base/buffer.h"
#include "base/guards.h"

/* What is kept of an output: its bytes from..to, which hold no line end at their end. */
struct kept {
    size_t from, to;
};

/* Bytes of the line end that lies in front of @at: LF, CRLF or CR; 0: none. */
static size_t line_end_before(const char *text, size_t at)
{
    if (at >= 2 && text[at - 2] == '\r' && text[at - 1] == '\n')
        return 2;
    return at >= 1 && (text[at - 1] == '\r' || text[at - 1] == '\n') ? 1 : 0;
}

/* The last @n bytes in front of @to, from a whole character on. */
static size_t last_bytes(const char *text, size_t to, uint64_t n)
{
    size_t from = to - (size_t)n;

    while (from < to && ((unsigned char)text[from] & 0xC0) == 0x80)
        from++;
    return from;
}

static struct kept keep_tail(const char *text, size_t len, const struct truncate_caps *caps)
{
    struct kept k = {.to = len - line_end_before(text, len)};
    size_t end = k.to; /* of the line looked at */
    uint64_t lines = 0, bytes = 0;

    k.from = k.to;
    for (;;) {
        size_t start = end;
        uint64_t cost;

        while (start > 0 && text[start - 1] != '\n' && text[start - 1] != '\r')
            start--;
        cost = end - start + (lines > 0 ? 1 : 0);
        if (lines == caps->max_lines || cost > caps->max_bytes - bytes) {
            if (lines == 0)
                k.from = last_bytes(text, k.to, caps->max_bytes);
            return k;
        }
        k.from = start;
        lines++;
        bytes += cost;
        if (start == 0)
            return k;
        end = start - line_end_before(text, start);
    }
}

/* Each line end becomes one LF. */
static void put_lines(struct buffer *b, const char *text, const struct kept *k)
{
    size_t at = k->from;

    while (at < k->to) {
        const char *cr = memchr(text + at, '\r', k->to - at);
        size_t end = cr ? (size_t)(cr - text) : k->to;

        buffer_add(b, text + at, end - at);
        if (cr && !(end + 1 < k->to && text[end + 1] == '\n'))
            buffer_add(b, "\n", 1);
        at = end + 1;
    }
}

int truncate_output(const char *text, size_t len, const struct truncate_caps *caps, char **ret,
                    size_t *ret_len, size_t *ret_from)
{
    struct buffer b = {0};
    struct kept k = keep_tail(text, len, caps);
    int r;

    put_lines(&b, text, &k);
    r = buffer_take(&b, ret, ret_len);
    if (r == 0)
        *ret_from = k.from;
    return r;
}

int truncate_list(const char *const *lines, const struct truncate_caps *caps, char **ret,
                  size_t *ret_len, size_t *ret_shown)
{
    struct buffer b = {0};
    size_t n = 0;
    int r;

    for (; n < caps->max_lines && lines[n]; n++) {
        size_t cost = strlen(lines[n]) + (n > 0 ? 1 : 0);

        if (cost > caps->max_bytes - b.len)
            break;
        buffer_add(&b, "\n", n > 0 ? 1 : 0);
        buffer_add_text(&b, lines[n]);
        if (b.bad)
            break;
    }
    r = buffer_take(&b, ret, ret_len);
    if (r == 0)
        *ret_shown = n;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the process `resolve` and its answers. */
#include "wire/resolve.h"

#include <errno.h>
#include <string.h>

#include "wire/reader.h"
#include "base/guards.h"

enum { QUESTION_NAME = 1, LABEL_MAX = 63, ADDRESS_BYTES = 16 };

/* Names in their one form, and no other: what getaddrinfo(3) would take for something else (blanks,
 * '%', bytes beyond ASCII) never comes to it. */
static bool is_name(const uint8_t *s, size_t len)
{
    size_t label = 0;

    for (size_t i = 0; i < len; i++) {
        bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-' ||
                      s[i] == '_';

        if (!letter && (s[i] != '.' || label == 0))
            return false;
        label = letter ? label + 1 : 0;
        if (label > LABEL_MAX)
            return false;
    }
    return label > 0 && len <= RESOLVE_NAME_MAX;
}

size_t resolve_question_encode(uint32_t id, const char *name, uint8_t *buf, size_t size)
{
    struct writer w = writer_over(buf, size);
    const uint8_t kind = QUESTION_NAME;
    size_t len = strlen(name);

    if (!is_name((const uint8_t *)name, len))
        return 0;
    writer_u32(&w, id);
    writer_bytes(&w, &kind, 1);
    writer_bytes(&w, name, len);
    return w.bad ? 0 : writer_len(&w);
}

int resolve_question_parse(const uint8_t *data, size_t len, uint32_t *ret_id,
                           char name[static RESOLVE_NAME_MAX + 1])
{
    struct reader r = reader_over(data, len);
    uint32_t id = reader_u32(&r);
    const uint8_t *kind = reader_take(&r, 1);
    size_t n = reader_left(&r);
    const uint8_t *text = reader_take(&r, n);

    if (!kind || *kind != QUESTION_NAME || !text || !is_name(text, n))
        return -EPROTO;
    memcpy(name, text, n);
    name[n] = '\0';
    *ret_id = id;
    return 0;
}

/* Found with an address or more, anything else with none. */
static bool is_whole(enum resolve_status status, size_t n)
{
    return n <= RESOLVE_ADDRESSES_MAX && (status == RESOLVE_FOUND) == (n > 0);
}

/* Of IPv4 the first four bytes, and the rest zero: one form for each address. */
static bool is_address(uint8_t family, const uint8_t *bytes)
{
    static const uint8_t zero[ADDRESS_BYTES];

    return family == 6 || (family == 4 && memcmp(bytes + 4, zero, ADDRESS_BYTES - 4) == 0);
}

size_t resolve_answer_encode(const struct resolve_answer *x, uint8_t *buf, size_t size)
{
    struct writer w = writer_over(buf, size);
    const uint8_t head[2] = {(uint8_t)x->status, (uint8_t)x->n};

    if ((unsigned)x->status >= RESOLVE_STATUS__MAX || !is_whole(x->status, x->n))
        return 0;
    writer_u32(&w, x->id);
    writer_bytes(&w, head, sizeof head);
    writer_u16(&w, 0);
    for (size_t i = 0; i < x->n; i++) {
        const struct resolve_address *a = &x->addresses[i];

        if (!is_address(a->family, a->bytes))
            return 0;
        writer_bytes(&w, &a->family, 1);
        writer_bytes(&w, a->bytes, sizeof a->bytes);
    }
    return w.bad ? 0 : writer_len(&w);
}

int resolve_answer_parse(const uint8_t *data, size_t len, struct resolve_answer *ret)
{
    struct reader r = reader_over(data, len);
    struct resolve_answer x = {.id = reader_u32(&r)};
    const uint8_t *head = reader_take(&r, 2);

    if (reader_u16(&r) != 0 || !head || head[0] >= RESOLVE_STATUS__MAX ||
        !is_whole((enum resolve_status)head[0], head[1]))
        return -EPROTO;
    x.status = (enum resolve_status)head[0];
    for (; x.n < head[1]; x.n++) {
        const uint8_t *a = reader_take(&r, 1 + ADDRESS_BYTES);

        if (!a || !is_address(a[0], a + 1))
            return -EPROTO;
        x.addresses[x.n].family = a[0];
        memcpy(x.addresses[x.n].bytes, a + 1, ADDRESS_BYTES);
    }
    if (r.bad || reader_left(&r) > 0)
        return -EPROTO;
    *ret = x;
    return 0;
}

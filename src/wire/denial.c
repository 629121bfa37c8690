/* SPDX-License-Identifier: Apache-2.0 */
/* One refused attempt, to and from the fields of a message. */
#include "wire/denial.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/control.h"
#include "base/guards.h"

enum { TEXTS = 4, NUMBERS = 6 };

static void put_text(struct writer *w, uint16_t tag, const char *s)
{
    char cut[DENIAL_TEXT_MAX];

    (void)snprintf(cut, sizeof cut, "%s", s ? s : "");
    field_put_string(w, tag, cut);
}

void denial_encode(struct writer *w, const struct denial *x)
{
    field_put_u32(w, TAG_DENIAL_PROTOCOL, x->protocol);
    put_text(w, TAG_DENIAL_NAME, x->name);
    put_text(w, TAG_DENIAL_ADDRESS, x->address);
    field_put_u32(w, TAG_DENIAL_PORT, x->port);
    put_text(w, TAG_DENIAL_RULE, x->rule);
    put_text(w, TAG_DENIAL_REASON, x->reason);
    field_put_u64(w, TAG_DENIAL_BYTES, x->bytes);
    field_put_u64(w, TAG_DENIAL_AT_US, x->at_us);
    field_put_u64(w, TAG_DENIAL_REPEATED, x->repeated);
    field_put_u64(w, TAG_DENIAL_DROPPED, x->dropped);
}

size_t denial_size(const struct denial *x)
{
    const char *const texts[TEXTS] = {x->name, x->address, x->rule, x->reason};
    size_t size = (TEXTS + NUMBERS) * FIELD_HEADER_BYTES + NUMBERS * sizeof(uint64_t);

    for (size_t i = 0; i < TEXTS; i++)
        size += (texts[i] ? strnlen(texts[i], DENIAL_TEXT_MAX - 1) : 0) + 1;
    return size;
}

static bool take_text(const struct field *f, const char **ret)
{
    const char *s = field_string(f);

    if (!s || strlen(s) >= DENIAL_TEXT_MAX)
        return false;
    *ret = s;
    return true;
}

static bool take_field(const struct field *f, struct denial *x)
{
    switch (f->tag) {
    case TAG_DENIAL_PROTOCOL:
        return field_u32(f, &x->protocol) && x->protocol < DENIAL_PROTOCOL__MAX;
    case TAG_DENIAL_NAME:
        return take_text(f, &x->name);
    case TAG_DENIAL_ADDRESS:
        return take_text(f, &x->address);
    case TAG_DENIAL_PORT:
        return field_u32(f, &x->port) && x->port <= UINT16_MAX;
    case TAG_DENIAL_RULE:
        return take_text(f, &x->rule);
    case TAG_DENIAL_REASON:
        return take_text(f, &x->reason);
    case TAG_DENIAL_BYTES:
        return field_u64(f, &x->bytes);
    case TAG_DENIAL_AT_US:
        return field_u64(f, &x->at_us);
    case TAG_DENIAL_REPEATED:
        return field_u64(f, &x->repeated);
    case TAG_DENIAL_DROPPED:
        return field_u64(f, &x->dropped);
    default:
        return true;
    }
}

int denial_decode(struct reader message, struct denial *ret)
{
    struct denial x = {
        .protocol = DENIAL_PROTOCOL__MAX, .name = "", .address = "", .rule = "", .reason = ""};
    struct field f;

    while (field_next(&message, &f))
        if (!take_field(&f, &x))
            return -EPROTO;
    if (message.bad || x.protocol == DENIAL_PROTOCOL__MAX)
        return -EPROTO;
    *ret = x;
    return 0;
}

const char *denial_protocol_name(uint32_t protocol)
{
    static const char *const names[] = {
        [DENIAL_DNS] = "dns", [DENIAL_TCP] = "tcp",   [DENIAL_UDP] = "udp",
        [DENIAL_TLS] = "tls", [DENIAL_HTTP] = "http", [DENIAL_OTHER] = "other",
    };
    static_assert(ARRAY_SIZE(names) == DENIAL_PROTOCOL__MAX, "a protocol has no name");

    return protocol < DENIAL_PROTOCOL__MAX ? names[protocol] : "other";
}

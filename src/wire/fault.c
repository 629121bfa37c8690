/* SPDX-License-Identifier: Apache-2.0 */
/* The error object on the wire. */
#include "wire/fault.h"

#include <errno.h>
#include <string.h>

#include "wire/control.h"
#include "base/guards.h"

void fault_encode(struct writer *w, const struct error *err)
{
    field_put_u32(w, TAG_ERROR_CLASS, err->cls);
    field_put_u32(w, TAG_ERROR_CODE, (uint32_t)err->code);
    field_put_string(w, TAG_ERROR_CONTEXT, err->context);
    field_put_string(w, TAG_ERROR_MESSAGE, err->message);
    field_put_string(w, TAG_ERROR_REMEDY, err->remedy);
}

static bool text_field(const struct field *f, char *buf, size_t size)
{
    const char *s = field_string(f);

    if (s)
        (void)snprintf(buf, size, "%s", s);
    return s != NULL;
}

static bool fault_field(const struct field *f, struct error *e)
{
    uint32_t v;

    switch (f->tag) {
    case TAG_ERROR_CLASS:
        if (!field_u32(f, &v))
            return false;
        e->cls = v < ERROR_CLASS__MAX ? (enum error_class)v : ERROR_TERMINAL;
        return true;
    case TAG_ERROR_CODE:
        if (!field_u32(f, &v) || v == 0 || v > 4095)
            return false;
        e->code = (int)v;
        return true;
    case TAG_ERROR_CONTEXT:
        return text_field(f, e->context, sizeof e->context);
    case TAG_ERROR_MESSAGE:
        return text_field(f, e->message, sizeof e->message);
    case TAG_ERROR_REMEDY:
        return text_field(f, e->remedy, sizeof e->remedy);
    default:
        return true;
    }
}

int fault_decode(struct reader message, struct error *ret)
{
    struct error e = {.cls = ERROR_TERMINAL};
    struct field f;

    while (field_next(&message, &f))
        if (!fault_field(&f, &e))
            return -EPROTO;
    if (message.bad || e.code == 0)
        return -EPROTO;
    *ret = e;
    return 0;
}

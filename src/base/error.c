/* SPDX-License-Identifier: Apache-2.0 */
/* The error object: recording, wrapping and printing a failure. */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

int error_set(struct error *err, enum error_class cls, int code, const char *fmt, ...)
{
    va_list ap;

    assert(code > 0 && err->code == 0);
    memset(err, 0, sizeof *err);
    err->code = code;
    err->cls = cls;
    va_start(ap, fmt);
    (void)vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    return -code;
}

int error_remedy(struct error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(err->remedy, sizeof err->remedy, fmt, ap);
    va_end(ap);
    return -err->code;
}

int error_context(struct error *err, const char *fmt, ...)
{
    char outer[sizeof err->context];
    char inner[sizeof err->context];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(outer, sizeof outer, fmt, ap);
    va_end(ap);
    memcpy(inner, err->context, sizeof inner);
    if (inner[0] == '\0')
        (void)snprintf(err->context, sizeof err->context, "%s", outer);
    else
        (void)snprintf(err->context, sizeof err->context, "%.70s: %.80s", outer, inner);
    return -err->code;
}

const char *error_class_name(enum error_class cls)
{
    static const char *const names[] = {
        [ERROR_RECOVERABLE] = "recoverable",
        [ERROR_TOO_LARGE] = "too_large",
        [ERROR_TERMINAL] = "terminal",
        [ERROR_USAGE] = "usage",
    };
    _Static_assert(ARRAY_SIZE(names) == ERROR_CLASS__MAX, "a class has no name");

    return cls < ERROR_CLASS__MAX ? names[cls] : "terminal";
}

void error_format(const struct error *err, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s%s%s%s%s%s", err->context, err->context[0] ? ": " : "",
                   err->message, err->remedy[0] ? ". " : "", err->remedy,
                   err->remedy[0] ? "." : "");
    text_make_printable(buf);
}

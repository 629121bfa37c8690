/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a tool call: strings are UTF-8 and terminated, integers whole, refusals readable. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/tool_arguments.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tool_schema schema = {
    .properties = {{.name = "path", .type = TOOL_STRING, .required = true},
                   {.name = "offset", .type = TOOL_INTEGER, .nullable = true},
                   {.name = "timeout_seconds", .type = TOOL_NUMBER, .nullable = true},
                   {.name = "content", .type = TOOL_STRING}},
    .n = 4,
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_argument(const struct tool_property *p, const struct tool_argument *a)
{
    check(a->given || (!a->text && !p->required));
    if (a->given && p->type == TOOL_STRING)
        check(a->text && a->text[a->len] == '\0' && text_is_utf8(a->text, a->len));
    else
        check(!a->text && a->len == 0);
    if (a->given && p->type == TOOL_INTEGER)
        check(isfinite(a->number) &&
              (fabs(a->number) >= 0x1p53 || (double)(int64_t)a->number == a->number));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tool_arguments a = {0};
    struct error err = ERROR_INIT;
    int r = tool_arguments_parse((const char *)data, size, &schema, &a, &err);

    if (r == 0) {
        check(err.code == 0);
        for (size_t i = 0; i < schema.n; i++)
            check_argument(&schema.properties[i], &a.items[i]);
    } else {
        check((r == -EINVAL && err.cls == ERROR_RECOVERABLE) ||
              (r == -E2BIG && err.cls == ERROR_TOO_LARGE));
        check(err.code == -r && err.message[0] != '\0' &&
              text_is_utf8(err.message, strlen(err.message)));
        for (size_t i = 0; i < TOOL_ARGUMENTS_MAX; i++)
            check(!a.items[i].text);
    }
    tool_arguments_done(&a);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A spec file of any content: it is refused with words and a reason, or what it sets keeps the
 * limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/limits.h"
#include "core/spec_file.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_entries(struct spec *s, enum spec_field_id id)
{
    const struct string_list *list = spec_field_list_of(s, id);

    check(list->n <= spec_fields[id].max);
    for (size_t i = 0; i < list->n; i++)
        check(spec_fields[id].kind != SPEC_MAP || strchr(list->items[i], '=') != NULL);
}

static void check_field(struct spec *s, enum spec_field_id id)
{
    const struct spec_field *field = &spec_fields[id];
    uint64_t number;

    switch (field->kind) {
    case SPEC_TEXTS:
    case SPEC_MAP:
        check_entries(s, id);
        break;
    case SPEC_SIZE:
    case SPEC_DURATION:
    case SPEC_COUNT:
    case SPEC_DECIMAL:
        number = *spec_field_number_of(s, id);
        check((number == 0 && !field->preset) || (number >= field->min && number <= field->max));
        break;
    case SPEC_TEXT:
        if (*spec_field_text_of(s, id) && id != SPEC_FIELD_IMAGE)
            check(strlen(*spec_field_text_of(s, id)) <= 4096);
        break;
    case SPEC_BOOL:
    case SPEC_CHOICE:
    case SPEC_VOLUMES:
    case SPEC_USER:
    case SPEC_KIND__MAX:
        break;
    }
}

static void check_good(struct spec *s)
{
    struct error err = ERROR_INIT;

    for (enum spec_field_id id = 0; id < SPEC_FIELD__MAX; id++)
        check_field(s, id);
    if (strcmp(s->backend, "local") == 0)
        check(spec_check(s, &err) == 0);
}

static void check_refused(const struct problems *problems, const struct error *err)
{
    char line[2048], printable[2048];

    check(err->code > 0 && err->message[0] != '\0');
    for (size_t i = 0; i < problems->n; i++) {
        const struct problem *x = &problems->items[i];

        check(x->message[0] != '\0');
        check(i == 0 || x->at.line == 0 || problems->items[i - 1].at.line <= x->at.line);
        problem_format(x, "fuzz.yaml", line, sizeof line);
        memcpy(printable, line, sizeof line);
        text_make_printable(printable);
        check(strcmp(line, printable) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum document_form forms[] = {DOCUMENT_YAML, DOCUMENT_JSON};

    for (size_t i = 0; i < 2; i++) {
        struct problems problems = {0};
        struct error err = ERROR_INIT;
        struct spec s;

        if (spec_text_read(data ? (const char *)data : "", size, forms[i], "fuzz.yaml",
                           "/no/such/folder", &s, &problems, &err) == 0) {
            check(!problems_any(&problems) && err.code == 0);
            check_good(&s);
            spec_done(&s);
        } else {
            check_refused(&problems, &err);
        }
        problems_done(&problems);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of specs: each field, its value and not its memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/spec_copy.h"
#include "base/guards.h"

/* A value for every field, told apart by the field's number; no grammar is asked. */
static void fill(struct spec *s)
{
    char text[32];

    assert_int_equal(spec_init(s), 0);
    for (enum spec_field_id id = 0; id < SPEC_FIELD__MAX; id++) {
        (void)snprintf(text, sizeof text, "value=%d", (int)id);
        switch (spec_fields[id].kind) {
        case SPEC_BOOL:
            *spec_field_bool_of(s, id) = !*spec_field_bool_of(s, id);
            break;
        case SPEC_TEXT:
        case SPEC_CHOICE:
            free(*spec_field_text_of(s, id));
            *spec_field_text_of(s, id) = strdup(text);
            break;
        case SPEC_TEXTS:
        case SPEC_MAP:
            assert_int_equal(string_list_add(spec_field_list_of(s, id), text), 0);
            assert_int_equal(string_list_add(spec_field_list_of(s, id), "second="), 0);
            break;
        case SPEC_VOLUMES:
            s->volumes = calloc(1, sizeof *s->volumes);
            assert_non_null(s->volumes);
            s->volumes[s->n_volumes++] =
                (struct volume){.host = strdup("/h"), .guest = strdup("/g"), .read_only = true};
            break;
        case SPEC_USER:
            s->user_set = true;
            s->uid = 7;
            s->gid = 8;
            break;
        case SPEC_SIZE:
        case SPEC_DURATION:
        case SPEC_COUNT:
        case SPEC_DECIMAL:
            *spec_field_number_of(s, id) = 1000 + (uint64_t)id;
            break;
        case SPEC_KIND__MAX:
            fail();
        }
    }
    s->name = strdup("box");
    s->owned = s->report_steps = true;
}

static bool same_list(const struct string_list *a, const struct string_list *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = a->items[i] != b->items[i] && strcmp(a->items[i], b->items[i]) == 0;
    return same;
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && a != b && strcmp(a, b) == 0);
}

/* Equal, and nowhere the same memory. */
static bool same_field(struct spec *a, struct spec *b, enum spec_field_id id)
{
    switch (spec_fields[id].kind) {
    case SPEC_BOOL:
        return *spec_field_bool_of(a, id) == *spec_field_bool_of(b, id);
    case SPEC_TEXT:
    case SPEC_CHOICE:
        return same_text(*spec_field_text_of(a, id), *spec_field_text_of(b, id));
    case SPEC_TEXTS:
    case SPEC_MAP:
        return same_list(spec_field_list_of(a, id), spec_field_list_of(b, id));
    case SPEC_VOLUMES:
        return a->n_volumes == b->n_volumes &&
               (a->n_volumes == 0 || (same_text(a->volumes[0].host, b->volumes[0].host) &&
                                      same_text(a->volumes[0].guest, b->volumes[0].guest) &&
                                      a->volumes[0].read_only == b->volumes[0].read_only));
    case SPEC_USER:
        return a->user_set == b->user_set && a->uid == b->uid && a->gid == b->gid;
    case SPEC_SIZE:
    case SPEC_DURATION:
    case SPEC_COUNT:
    case SPEC_DECIMAL:
        return *spec_field_number_of(a, id) == *spec_field_number_of(b, id);
    case SPEC_KIND__MAX:
        break;
    }
    return false;
}

static void a_copy_has_every_field_and_shares_no_memory(void **state)
{
    struct spec s, copy;

    (void)state;
    fill(&s);
    assert_int_equal(spec_copy(&s, UINT64_MAX, &copy), 0);
    for (enum spec_field_id id = 0; id < SPEC_FIELD__MAX; id++)
        if (!same_field(&s, &copy, id))
            fail_msg("%s differs", spec_fields[id].name);
    assert_true(same_text(s.name, copy.name));
    assert_true(copy.owned && copy.report_steps);
    spec_done(&s);
    spec_done(&copy);
}

static void a_part_leaves_the_defaults_of_the_rest(void **state)
{
    const uint64_t part = spec_section_bits(SPEC_SECTION_TOOLSET);
    struct spec s, copy, defaults;

    (void)state;
    fill(&s);
    assert_int_equal(spec_init(&defaults), 0);
    assert_int_equal(spec_copy(&s, part, &copy), 0);
    for (enum spec_field_id id = 0; id < SPEC_FIELD__MAX; id++)
        if (!same_field(part & spec_field_bit(id) ? &s : &defaults, &copy, id))
            fail_msg("%s differs", spec_fields[id].name);
    assert_null(copy.name);
    assert_false(copy.owned);
    spec_done(&s);
    spec_done(&copy);
    spec_done(&defaults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_has_every_field_and_shares_no_memory),
        cmocka_unit_test(a_part_leaves_the_defaults_of_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

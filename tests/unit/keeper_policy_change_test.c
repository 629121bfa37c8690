/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of a policy: what goes, what is added, what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/spec_fields.h"
#include "keeper/policy_change.h"
#include "base/guards.h"

static struct spec listed(void)
{
    struct spec s;

    assert_int_equal(spec_init(&s), 0);
    assert_int_equal(string_list_add(&s.allow_egress_to, "Example.org"), 0);
    assert_int_equal(string_list_add(&s.allow_egress_to, "*.cdn.test:8443"), 0);
    assert_int_equal(string_list_add(&s.allow_egress_to_cidrs, "10.0.0.0/8"), 0);
    assert_int_equal(string_list_add(&s.allow_egress_to_cidrs, "2001:db8::/32"), 0);
    return s;
}

struct edit {
    uint16_t tag;
    const char *text;
};

/* Ends with a tag of 0. */
static int edit(struct spec *s, const struct edit *edits, struct error *err)
{
    uint8_t buf[4096];
    struct writer w = writer_over(buf, sizeof buf);

    *err = (struct error)ERROR_INIT;
    for (; edits->tag != 0; edits++)
        field_put_string(&w, edits->tag, edits->text);
    assert_false(w.bad);
    return policy_edit(s, reader_over(buf, writer_len(&w)), err);
}

static void entries_are_added_once(void **state)
{
    static const struct edit edits[] = {{TAG_ALLOW_HOST, "new.test:22"},
                                        {TAG_ALLOW_HOST, "new.test:22"},
                                        {TAG_ALLOW_HOST, "EXAMPLE.org:443"},
                                        {TAG_ALLOW_RANGE, "192.0.2.1"},
                                        {TAG_ALLOW_RANGE, "192.0.2.1/32"},
                                        {TAG_ALLOW_RANGE, "2001:DB8:0::/32"},
                                        {0, NULL}};
    struct spec s = listed();
    struct error err;

    (void)state;
    assert_int_equal(edit(&s, edits, &err), 0);
    assert_int_equal(s.allow_egress_to.n, 3);
    assert_string_equal(s.allow_egress_to.items[2], "new.test:22");
    assert_null(s.allow_egress_to.items[3]);
    assert_int_equal(s.allow_egress_to_cidrs.n, 3);
    assert_string_equal(s.allow_egress_to_cidrs.items[2], "192.0.2.1");
    spec_done(&s);
}

static void entries_go_as_written_or_equal(void **state)
{
    static const struct edit edits[] = {
        {TAG_REMOVE, "example.org:443"}, {TAG_REMOVE, "10.0.0.0/8"}, {0, NULL}};
    static const struct edit rest[] = {
        {TAG_REMOVE, "2001:db8:0:0::/32"}, {TAG_REMOVE, "*.cdn.test:8443"}, {0, NULL}};
    struct spec s = listed();
    struct error err;

    (void)state;
    assert_int_equal(edit(&s, edits, &err), 0);
    assert_int_equal(s.allow_egress_to.n, 1);
    assert_string_equal(s.allow_egress_to.items[0], "*.cdn.test:8443");
    assert_int_equal(s.allow_egress_to_cidrs.n, 1);
    assert_int_equal(edit(&s, rest, &err), 0);
    assert_int_equal(s.allow_egress_to.n + s.allow_egress_to_cidrs.n, 0);
    spec_done(&s);
}

static void entries_go_before_others_come(void **state)
{
    static const struct edit edits[] = {
        {TAG_ALLOW_HOST, "example.org"}, {TAG_REMOVE, "example.org"}, {0, NULL}};
    struct spec s = listed();
    struct error err;

    (void)state;
    assert_int_equal(edit(&s, edits, &err), 0);
    assert_int_equal(s.allow_egress_to.n, 2);
    assert_string_equal(s.allow_egress_to.items[1], "example.org");
    spec_done(&s);
}

static void what_is_not_there_cannot_go(void **state)
{
    static const struct edit other_port[] = {{TAG_REMOVE, "example.org:80"}, {0, NULL}};
    static const struct edit part[] = {{TAG_REMOVE, "10.1.0.0/16"}, {0, NULL}};
    struct spec s = listed(), sealed;
    struct error err;

    (void)state;
    assert_int_equal(edit(&s, other_port, &err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_non_null(strstr(err.message, "example.org:80"));
    assert_non_null(strstr(err.remedy, "Example.org, *.cdn.test:8443, 10.0.0.0/8, 2001:db8::/32"));
    assert_int_equal(edit(&s, part, &err), -EINVAL);
    assert_int_equal(spec_init(&sealed), 0);
    assert_int_equal(edit(&sealed, part, &err), -EINVAL);
    assert_non_null(strstr(err.remedy, "none at all"));
    spec_done(&s);
    spec_done(&sealed);
}

static void many_entries_are_not_all_named(void **state)
{
    static const struct edit edits[] = {{TAG_REMOVE, "absent.test"}, {0, NULL}};
    struct spec s = listed();
    struct error err;
    char name[64];

    (void)state;
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "host-number-%d.example.org", i);
        assert_int_equal(string_list_add(&s.allow_egress_to, name), 0);
    }
    assert_int_equal(edit(&s, edits, &err), -EINVAL);
    assert_non_null(strstr(err.remedy, " more; "));
    spec_done(&s);
}

static void what_is_no_entry_is_refused(void **state)
{
    static const struct edit bad[][2] = {
        {{TAG_ALLOW_HOST, "https://example.org/"}, {0, NULL}},
        {{TAG_ALLOW_HOST, ""}, {0, NULL}},
        {{TAG_ALLOW_HOST, "192.0.2.1"}, {0, NULL}},
        {{TAG_ALLOW_RANGE, "example.org"}, {0, NULL}},
        {{TAG_ALLOW_RANGE, "10.0.0.0/33"}, {0, NULL}},
        {{TAG_REMOVE, ""}, {0, NULL}},
    };
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct spec s = listed();

        assert_int_equal(edit(&s, bad[i], &err), -EINVAL);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_true(err.remedy[0] != '\0');
        spec_done(&s);
    }
}

static void damaged_edits_are_no_edits(void **state)
{
    static const uint16_t tags[] = {TAG_REMOVE, TAG_ALLOW_HOST, TAG_ALLOW_RANGE};
    uint8_t buf[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
        struct spec s = listed();
        struct error err = ERROR_INIT;
        struct writer w = writer_over(buf, sizeof buf);

        field_put_bytes(&w, tags[i], "no end", 6);
        assert_int_equal(policy_edit(&s, reader_over(buf, writer_len(&w)), &err), -EPROTO);
        assert_true(err.message[0] != '\0');
        assert_int_equal(s.allow_egress_to.n, 2);
        spec_done(&s);
    }
}

static void addresses_of_names_go_with_them(void **state)
{
    static const struct edit edits[] = {{TAG_REMOVE, "example.org"}, {0, NULL}};
    struct spec s = listed();
    struct string_list *pins = spec_field_list_of(&s, SPEC_FIELD_ADD_HOSTS);
    struct error err;

    (void)state;
    assert_int_equal(string_list_add(pins, "example.org=192.0.2.1"), 0);
    assert_int_equal(string_list_add(pins, "a.cdn.test=192.0.2.2"), 0);
    assert_int_equal(edit(&s, edits, &err), 0);
    assert_int_equal(pins->n, 1);
    assert_string_equal(pins->items[0], "a.cdn.test=192.0.2.2");
    assert_null(pins->items[1]);
    spec_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_added_once),
        cmocka_unit_test(entries_go_as_written_or_equal),
        cmocka_unit_test(entries_go_before_others_come),
        cmocka_unit_test(what_is_not_there_cannot_go),
        cmocka_unit_test(many_entries_are_not_all_named),
        cmocka_unit_test(what_is_no_entry_is_refused),
        cmocka_unit_test(damaged_edits_are_no_edits),
        cmocka_unit_test(addresses_of_names_go_with_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

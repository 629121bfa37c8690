/* SPDX-License-Identifier: Apache-2.0 */
/* The spec on the wire: round trip, damage, ceilings. */
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
#include "core/limits.h"
#include "core/spec.h"
#include "wire/control.h"
#include "truncated.h"
#include "base/guards.h"

static struct reader message(const struct writer *w)
{
    return reader_over(w->start, writer_len(w));
}

static int decode(struct reader m)
{
    struct spec s;
    int r = spec_decode(m, &s);

    if (r == 0)
        spec_done(&s);
    return r;
}

static void make_full(struct spec *s)
{
    struct error err = ERROR_INIT;

    assert_int_equal(spec_init(s), 0);
    assert_int_equal(spec_set_image(s, "dir:/usr", &err), 0);
    assert_int_equal(spec_set_workdir(s, "/work dir", &err), 0);
    assert_int_equal(spec_set_hostname(s, "box", &err), 0);
    assert_int_equal(spec_set_user(s, "1000:100", &err), 0);
    assert_int_equal(spec_add_volume(s, "/usr:/a:ro", &err), 0);
    assert_int_equal(spec_add_volume(s, "/tmp:/b", &err), 0);
    assert_int_equal(spec_add_env(s, "A=1", NULL, &err), 0);
    assert_int_equal(spec_add_env(s, "B=\xFF=", NULL, &err), 0);
    assert_int_equal(string_list_add(&s->add_hosts, "a.example=10.0.0.1"), 0);
    assert_int_equal(string_list_add(&s->add_hosts, "a.example=fd00::1"), 0);
    s->proxy_credentials = strdup("/etc/proxy");
    assert_non_null(s->proxy_credentials);
    s->audit = strdup("/var/log/audit");
    assert_non_null(s->audit);
    s->disk_bytes = 5 * LIMIT_GIB;
    s->pids = 100;
    s->lifetime_us = 7;
    s->owned = s->report_steps = true;
}

static void a_spec_comes_back_as_it_was_sent(void **state)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);
    struct spec s, got;

    (void)state;
    make_full(&s);
    spec_encode(&w, &s);
    assert_false(w.bad);
    assert_true(writer_len(&w) <= spec_size(&s));
    assert_int_equal(spec_decode(message(&w), &got), 0);
    assert_string_equal(got.image, "dir:/usr");
    assert_string_equal(got.workdir, "/work dir");
    assert_string_equal(got.hostname, "box");
    assert_true(got.user_set && got.owned && got.report_steps);
    assert_int_equal(got.uid, 1000);
    assert_int_equal(got.gid, 100);
    assert_int_equal(got.n_volumes, 2);
    assert_string_equal(got.volumes[0].host, "/usr");
    assert_string_equal(got.volumes[0].guest, "/a");
    assert_true(got.volumes[0].read_only);
    assert_false(got.volumes[1].read_only);
    assert_int_equal(got.env.n, 2);
    assert_string_equal(got.env.items[1], "B=\xFF=");
    assert_int_equal(got.add_hosts.n, 2);
    assert_string_equal(got.add_hosts.items[1], "a.example=fd00::1");
    assert_string_equal(got.proxy_credentials, "/etc/proxy");
    assert_string_equal(got.audit, "/var/log/audit");
    assert_true(got.disk_bytes == 5 * LIMIT_GIB);
    assert_int_equal(got.pids, 100);
    assert_int_equal(got.lifetime_us, 7);
    spec_done(&s);
    spec_done(&got);
}

static void an_empty_message_is_the_default_spec(void **state)
{
    struct spec s;

    (void)state;
    assert_int_equal(spec_decode(reader_over("", 0), &s), 0);
    assert_string_equal(s.image, "host");
    assert_string_equal(s.hostname, "sandbox");
    assert_int_equal(s.pids, LIMIT_PIDS_DEFAULT);
    spec_done(&s);
}

static void every_shorter_message_is_refused_or_lacks_fields(void **state)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);
    struct spec s;

    (void)state;
    make_full(&s);
    spec_encode(&w, &s);
    decode_truncated(&w, decode);
    spec_done(&s);
}

static void every_flipped_bit_is_survived(void **state)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);
    struct spec s;

    (void)state;
    make_full(&s);
    spec_encode(&w, &s);
    for (size_t bit = 0; bit < 8 * writer_len(&w); bit++) {
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
        (void)decode(message(&w));
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(decode(message(&w)), 0);
    spec_done(&s);
}

static void texts_outside_their_grammar_are_refused(void **state)
{
    static const struct {
        uint16_t tag;
        const char *text;
    } rows[] = {
        {TAG_WORKDIR, "relative"}, {TAG_WORKDIR, "/a/.."}, {TAG_ENV, "no value"}, {TAG_ENV, ""}};
    uint8_t buf[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct writer w = writer_over(buf, sizeof buf);

        field_put_string(&w, rows[i].tag, rows[i].text);
        if (decode(message(&w)) != -EPROTO)
            fail_msg("field %u took '%s'", rows[i].tag, rows[i].text);
    }
}

static void numbers_outside_their_range_are_refused(void **state)
{
    static const struct {
        uint16_t tag;
        uint64_t good, bad;
    } rows[] = {{TAG_DISK_BYTES, LIMIT_DISK_MAX_BYTES, LIMIT_DISK_MAX_BYTES + 1},
                {TAG_PIDS, LIMIT_PIDS_MIN, LIMIT_PIDS_MIN - 1},
                {TAG_PIDS, LIMIT_PIDS_MAX, LIMIT_PIDS_MAX + 1},
                {TAG_LIFETIME_US, LIMIT_TIME_MAX_US, LIMIT_TIME_MAX_US + 1}};
    uint8_t buf[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct writer w = writer_over(buf, sizeof buf);
        field_put_u64(&w, rows[i].tag, rows[i].good);
        assert_int_equal(decode(message(&w)), 0);
        w = writer_over(buf, sizeof buf);
        field_put_u64(&w, rows[i].tag, rows[i].bad);
        assert_int_equal(decode(message(&w)), -EPROTO);
    }
    for (uint32_t id = 65534; id <= 65535; id++) {
        struct writer w = writer_over(buf, sizeof buf);

        field_put_u32(&w, TAG_UID, id);
        assert_int_equal(decode(message(&w)), id == 65534 ? 0 : -EPROTO);
    }
}

static struct writer one_volume(uint8_t *buf, size_t size, const char *host, const char *guest)
{
    uint8_t inner[128];
    struct writer v = writer_over(inner, sizeof inner), w = writer_over(buf, size);

    if (host)
        field_put_string(&v, TAG_VOLUME_HOST, host);
    if (guest)
        field_put_string(&v, TAG_VOLUME_GUEST, guest);
    field_put_bytes(&w, TAG_VOLUME, inner, writer_len(&v));
    return w;
}

static void a_volume_needs_two_absolute_paths(void **state)
{
    static const struct {
        const char *host, *guest;
        int result;
    } rows[] = {{"/usr", "/a", 0},          {NULL, "/a", -EPROTO},  {"/usr", NULL, -EPROTO},
                {NULL, NULL, -EPROTO},      {"usr", "/a", -EPROTO}, {"/usr", "a", -EPROTO},
                {"/usr", "/../a", -EPROTO}, {"", "/a", -EPROTO},    {"/usr", "", -EPROTO}};
    uint8_t buf[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct writer w = one_volume(buf, sizeof buf, rows[i].host, rows[i].guest);

        assert_int_equal(decode(message(&w)), rows[i].result);
    }
}

static void lists_have_a_ceiling(void **state)
{
    static uint8_t buf[256 * 1024];
    struct writer w = writer_over(buf, sizeof buf);
    uint8_t volume[128];
    char entry[32];

    (void)state;
    for (int i = 0; i <= LIMIT_VOLUMES; i++) {
        (void)snprintf(entry, sizeof entry, "/v%d", i);
        struct writer v = one_volume(volume, sizeof volume, "/usr", entry);
        writer_bytes(&w, volume, writer_len(&v));
        assert_int_equal(decode(message(&w)), i < LIMIT_VOLUMES ? 0 : -EPROTO);
    }
    w = writer_over(buf, sizeof buf);
    for (int i = 0; i <= LIMIT_ENV_NAMES; i++) {
        (void)snprintf(entry, sizeof entry, "V%d=1", i);
        field_put_string(&w, TAG_ENV, entry);
    }
    assert_false(w.bad);
    assert_int_equal(decode(message(&w)), -EPROTO);
}

/* Hosts at both of their ceilings, and every other list at its own. */
static void the_longest_network_fits_into_a_message(void **state)
{
    static const uint16_t others[] = {TAG_ALLOW_RANGE, TAG_PRIVATE_RANGE, TAG_ADD_HOST,
                                      TAG_PUBLISH};
    static uint8_t buf[MESSAGE_BYTES_MAX];
    struct writer w = writer_over(buf, sizeof buf);
    char host[LIMIT_HOSTS_BYTES / LIMIT_HOSTS + 1];
    struct spec s;

    (void)state;
    memset(host, 'a', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    for (int i = 0; i < LIMIT_HOSTS; i++)
        field_put_string(&w, TAG_ALLOW_HOST, host);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        for (int k = 0; k < LIMIT_LIST_ENTRIES; k++)
            field_put_string(&w, others[i], host);
    assert_false(w.bad);
    assert_int_equal(spec_decode(message(&w), &s), 0);
    assert_int_equal(s.allow_egress_to.n, LIMIT_HOSTS);
    assert_int_equal(s.add_hosts.n, LIMIT_LIST_ENTRIES);
    assert_true(spec_size(&s) < MESSAGE_BYTES_MAX);
    spec_done(&s);
    field_put_string(&w, TAG_ALLOW_HOST, "one.more");
    assert_int_equal(decode(message(&w)), -EPROTO);
}

static void repeated_fields_keep_the_last(void **state)
{
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct spec s;

    (void)state;
    field_put_string(&w, TAG_HOSTNAME, "one");
    field_put_string(&w, TAG_HOSTNAME, "two");
    field_put_string(&w, TAG_ENV, "A=1");
    field_put_string(&w, TAG_ENV, "A=2");
    field_put_u32(&w, 60000, 1); /* of a newer version */
    assert_int_equal(spec_decode(message(&w), &s), 0);
    assert_string_equal(s.hostname, "two");
    assert_int_equal(s.env.n, 1);
    assert_string_equal(s.env.items[0], "A=2");
    spec_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_comes_back_as_it_was_sent),
        cmocka_unit_test(an_empty_message_is_the_default_spec),
        cmocka_unit_test(every_shorter_message_is_refused_or_lacks_fields),
        cmocka_unit_test(every_flipped_bit_is_survived),
        cmocka_unit_test(texts_outside_their_grammar_are_refused),
        cmocka_unit_test(numbers_outside_their_range_are_refused),
        cmocka_unit_test(a_volume_needs_two_absolute_paths),
        cmocka_unit_test(lists_have_a_ceiling),
        cmocka_unit_test(the_longest_network_fits_into_a_message),
        cmocka_unit_test(repeated_fields_keep_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

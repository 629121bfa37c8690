/* SPDX-License-Identifier: Apache-2.0 */
/* Tar streams: round trips, foreign headers made by hand, damage, every shorter form, and paths. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/tar.h"
#include "base/guards.h"

enum { ARCHIVE_MAX = 64 * 1024, LISTING_MAX = 64 * 1024 };

/* An archive that grows. */
struct archive {
    uint8_t *bytes;
    size_t len;
};

static int make_archive(void **state)
{
    static struct archive a;

    a = (struct archive){.bytes = malloc(ARCHIVE_MAX)};
    *state = &a;
    return a.bytes ? 0 : -1;
}

static int free_archive(void **state)
{
    struct archive *a = *state;

    free(a->bytes);
    return 0;
}

static void add(struct archive *a, const void *data, size_t len)
{
    assert_true(a->len + len <= ARCHIVE_MAX);
    if (len > 0)
        memcpy(a->bytes + a->len, data, len);
    a->len += len;
}

static void add_data(struct archive *a, const void *data, size_t len)
{
    add(a, data, len);
    add(a, tar_zeros, tar_padding(len));
}

static void add_entry(struct archive *a, const struct tar_entry *e, const void *data)
{
    size_t n = tar_header(e, a->bytes + a->len, ARCHIVE_MAX - a->len);

    assert_true(n > 0 && n <= TAR_HEADER_MAX && n % TAR_BLOCK_BYTES == 0);
    a->len += n;
    if (data)
        add_data(a, data, (size_t)e->size);
}

static void add_end(struct archive *a)
{
    add(a, tar_zeros, TAR_END_BYTES);
}

static void set_sum(uint8_t *block, bool as_signed)
{
    char text[8];
    int sum = 0;

    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += as_signed ? (int8_t)block[i] : block[i];
    (void)snprintf(text, sizeof text, "%06o", (unsigned)sum);
    memcpy(block + 148, text, 7);
}

static void put(uint8_t *block, size_t at, const char *bytes, size_t len)
{
    memcpy(block + at, bytes, len);
}

/* A v7 header by hand; what else it shall have is set before set_sum(). */
static uint8_t *add_raw(struct archive *a, const char *name, char type, const char *size)
{
    uint8_t *block = a->bytes + a->len;

    assert_true(a->len + TAR_BLOCK_BYTES <= ARCHIVE_MAX);
    memset(block, 0, TAR_BLOCK_BYTES);
    put(block, 0, name, strlen(name));
    put(block, 100, "0000644", 8);
    put(block, 124, size, strlen(size));
    put(block, 136, "00000000012", 12);
    block[156] = (uint8_t)type;
    set_sum(block, false);
    a->len += TAR_BLOCK_BYTES;
    return block;
}

static void add_pax_bytes(struct archive *a, char type, const void *body, size_t len)
{
    char size[12];

    (void)snprintf(size, sizeof size, "%011o", (unsigned)len);
    (void)add_raw(a, "pax", type, size);
    add_data(a, body, len);
}

static void add_pax(struct archive *a, char type, const char *body)
{
    add_pax_bytes(a, type, body, strlen(body));
}

/* What a reader made of an archive. */
struct listing {
    char text[LISTING_MAX];
    size_t len, entries;
    enum tar_fault fault;
    bool ended;
};

__attribute__((format(printf, 2, 3))) static void say(struct listing *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(l->text + l->len, sizeof l->text - l->len, fmt, ap);
    va_end(ap);
    assert_true(n >= 0 && (size_t)n < sizeof l->text - l->len);
    l->len += (size_t)n;
}

static void say_entry(struct listing *l, const struct tar_entry *e)
{
    static const char kinds[] = "-dlhpcb";

    say(l, "%c%04o %lld.%09u %llu %s%s%s", kinds[e->kind], e->mode, (long long)e->mtime,
        e->mtime_ns, (unsigned long long)e->size, e->path, e->link[0] ? " -> " : "", e->link);
    l->entries++;
}

/* Reads an archive in pieces of @piece bytes, each in memory of its own. */
static void list(const struct archive *a, size_t piece, struct listing *l)
{
    static struct tar_reader t;
    uint64_t got = 0;
    bool going = true;

    memset(l, 0, sizeof *l);
    tar_reader_init(&t);
    for (size_t at = 0; at < a->len && going; at += piece) {
        size_t n = a->len - at < piece ? a->len - at : piece;
        uint8_t *exact = malloc(n);
        enum tar_event event;

        assert_non_null(exact);
        memcpy(exact, a->bytes + at, n);
        struct reader in = reader_over(exact, n);
        while (going && (event = tar_next(&t, &in)) != TAR_MORE) {
            if (event == TAR_ENTRY) {
                say_entry(l, &t.entry);
                got = 0;
            } else if (event == TAR_DATA) {
                assert_true(t.data.p >= exact && t.data.end <= exact + n && t.data.p < t.data.end);
                if (got == 0)
                    say(l, " =");
                for (const uint8_t *p = t.data.p; p < t.data.end; p++)
                    say(l, "%c", *p);
                got += (uint64_t)(t.data.end - t.data.p);
            } else if (event == TAR_ENTRY_END) {
                assert_int_equal(got, t.entry.size);
                say(l, "\n");
            } else {
                going = false;
                l->ended = event == TAR_END;
                assert_int_equal(tar_next(&t, &in), event); /* and stays so */
            }
        }
        assert_true(!going || reader_left(&in) == 0);
        free(exact);
    }
    l->fault = tar_finish(&t);
    assert_true(!l->ended || l->fault == TAR_FAULT_NONE);
}

/* Reads it in pieces of several sizes, which must make no difference. */
static void list_anyhow(const struct archive *a, struct listing *l)
{
    static const size_t pieces[] = {1, 7, 511, 513, 10240};
    static struct listing other;

    list(a, a->len > 0 ? a->len : 1, l);
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        list(a, pieces[i], &other);
        assert_string_equal(other.text, l->text);
        assert_int_equal(other.fault, l->fault);
        assert_int_equal(other.ended, l->ended);
    }
}

static void assert_lists(const struct archive *a, const char *expected)
{
    static struct listing l;

    list_anyhow(a, &l);
    assert_int_equal(l.fault, TAR_FAULT_NONE);
    assert_string_equal(l.text, expected);
}

/* That it gives no entry, and why. */
static void assert_refused(const struct archive *a, enum tar_fault fault)
{
    static struct listing l;

    list_anyhow(a, &l);
    if (l.fault != fault)
        fail_msg("\"%s\" instead of \"%s\"", tar_fault_text(l.fault), tar_fault_text(fault));
    assert_int_equal(l.entries, 0);
}

static void entries_come_back_as_they_were_written(void **state)
{
    struct archive *a = *state;

    add_entry(a, &(struct tar_entry){"top", "", 0, 10, 0, 0755, TAR_FOLDER}, NULL);
    add_entry(a, &(struct tar_entry){"top/file", "", 5, 10, 0, 0640, TAR_FILE}, "hello");
    add_entry(a, &(struct tar_entry){"top/empty", "", 0, 0, 0, 0, TAR_FILE}, NULL);
    add_entry(a, &(struct tar_entry){"top/link", "../x", 0, 10, 0, 0777, TAR_SYMLINK}, NULL);
    add_entry(a, &(struct tar_entry){"top/hard", "top/file", 0, 10, 0, 0640, TAR_HARDLINK}, NULL);
    add_entry(a, &(struct tar_entry){"top/fifo", "", 0, 10, 0, 07777, TAR_FIFO}, NULL);
    assert_int_equal(a->len, 7 * TAR_BLOCK_BYTES); /* all of them plain */
    add_end(a);
    assert_lists(a, "d0755 10.000000000 0 top/\n"
                    "-0640 10.000000000 5 top/file =hello\n"
                    "-0000 0.000000000 0 top/empty\n"
                    "l0777 10.000000000 0 top/link -> ../x\n"
                    "h0640 10.000000000 0 top/hard -> top/file\n"
                    "p7777 10.000000000 0 top/fifo\n");
}

static void every_time_comes_back(void **state)
{
    static const int64_t seconds[] = {
        0, 1, -1, -2, 0777777777777, 01000000000000, INT64_MAX, INT64_MIN + 1};
    static const uint32_t fractions[] = {0, 1, 500000000, 999999999, 120000000};
    struct archive *a = *state;
    static struct listing l;
    char expected[128];

    for (size_t i = 0; i < ARRAY_SIZE(seconds); i++)
        for (size_t k = 0; k < ARRAY_SIZE(fractions); k++) {
            const struct tar_entry e = {"x", "", 0, seconds[i], fractions[k], 0644, TAR_FILE};

            a->len = 0;
            add_entry(a, &e, NULL);
            list_anyhow(a, &l);
            (void)snprintf(expected, sizeof expected, "-0644 %lld.%09u 0 x\n",
                           (long long)seconds[i], fractions[k]);
            assert_string_equal(l.text, expected);
        }
}

static void times_are_written_as_decimals_without_trailing_zeros(void **state)
{
    struct archive *a = *state;

    add_entry(a, &(struct tar_entry){"x", "", 0, -1, 500000000, 0, TAR_FILE}, NULL);
    assert_memory_equal(a->bytes + TAR_BLOCK_BYTES, "14 mtime=-0.5\n", 15);
    a->len = 0;
    add_entry(a, &(struct tar_entry){"x", "", 0, 12, 3000, 0, TAR_FILE}, NULL);
    assert_memory_equal(a->bytes + TAR_BLOCK_BYTES, "19 mtime=12.000003\n", 19);
}

static void sizes_beyond_8_gib_come_back(void **state)
{
    static const uint64_t sizes[] = {077777777777, 0100000000000, INT64_MAX};
    struct archive *a = *state;
    static struct tar_reader t;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        a->len = 0;
        add_entry(a, &(struct tar_entry){"x", "", sizes[i], 0, 0, 0644, TAR_FILE}, NULL);
        assert_int_equal(a->len, (i > 0 ? 3 : 1) * TAR_BLOCK_BYTES);
        struct reader in = reader_over(a->bytes, a->len);
        tar_reader_init(&t);
        assert_int_equal(tar_next(&t, &in), TAR_ENTRY);
        assert_int_equal(t.entry.size, sizes[i]);
        assert_int_equal(tar_next(&t, &in), TAR_MORE);
        assert_int_equal(tar_finish(&t), TAR_FAULT_TRUNCATED);
    }
}

/* @len bytes: names of 50 with slashes between them. */
static void make_path(char *buf, size_t len, char letter)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = i % 51 == 50 && i + 1 < len ? '/' : letter;
    buf[len] = '\0';
}

static void names_of_every_length_come_back(void **state)
{
    static char path[TAR_PATH_MAX + 1], link[TAR_PATH_MAX + 1], expected[3 * TAR_PATH_MAX];
    struct archive *a = *state;
    static struct listing l;

    for (size_t len = 1; len <= TAR_PATH_MAX; len += len < 300 || len > 4090 ? 1 : 97)
        for (enum tar_kind kind = TAR_FILE; kind <= TAR_SYMLINK; kind++) {
            const struct tar_entry e = {path, kind == TAR_SYMLINK ? link : "", 0, 1, 0, 0700, kind};

            make_path(path, len, 'p');
            make_path(link, TAR_PATH_MAX + 1 - len, 'l');
            a->len = 0;
            add_entry(a, &e, NULL);
            list(a, a->len, &l);
            (void)snprintf(expected, sizeof expected, "%c0700 1.000000000 0 %s%s%s\n", "-dl"[kind],
                           path, kind == TAR_FOLDER ? "/" : "", "");
            if (kind == TAR_SYMLINK)
                (void)snprintf(expected, sizeof expected, "l0700 1.000000000 0 %s -> %s\n", path,
                               link);
            if (len == TAR_PATH_MAX && kind == TAR_FOLDER) {
                assert_int_equal(l.fault, TAR_FAULT_PATH_LONG); /* no room for the slash */
                continue;
            }
            assert_string_equal(l.text, expected);
            if (len <= 99)
                assert_true(kind == TAR_SYMLINK || a->len == TAR_BLOCK_BYTES);
        }
}

static void a_path_that_ustar_can_split_needs_no_extension(void **state)
{
    struct archive *a = *state;
    char path[300];

    make_path(path, 250, 'p');
    add_entry(a, &(struct tar_entry){path, "", 0, 1, 0, 0700, TAR_FILE}, NULL);
    assert_int_equal(a->len, TAR_BLOCK_BYTES);
    memset(path, 'p', 101);
    path[101] = '\0';
    a->len = 0;
    add_entry(a, &(struct tar_entry){path, "", 0, 1, 0, 0700, TAR_FILE}, NULL);
    assert_int_equal(a->len, 3 * TAR_BLOCK_BYTES);
}

static void names_that_are_not_utf8_go_through_byte_for_byte(void **state)
{
    struct archive *a = *state;

    add_entry(a, &(struct tar_entry){"b\xff/\x01\n=", "\xc3", 0, 1, 0, 0777, TAR_SYMLINK}, NULL);
    assert_memory_equal(a->bytes + TAR_BLOCK_BYTES, "21 hdrcharset=BINARY\n", 21);
    add_entry(a, &(struct tar_entry){"\xc3\xa4", "", 0, 1, 0, 0777, TAR_FILE}, NULL);
    assert_memory_equal(a->bytes + 4 * TAR_BLOCK_BYTES, "11 path=\xc3\xa4\n", 11);
    assert_lists(a, "l0777 1.000000000 0 b\xff/\x01\n= -> \xc3\n"
                    "-0777 1.000000000 0 \xc3\xa4\n");
}

static void the_largest_header_is_as_large_as_stated(void **state)
{
    static char path[TAR_PATH_MAX + 2], link[TAR_PATH_MAX + 2];
    struct tar_entry e = {path, link, 0, INT64_MIN + 1, 1, 0777, TAR_SYMLINK};
    static uint8_t buf[TAR_HEADER_MAX];

    (void)state;
    memset(path, 0xff, TAR_PATH_MAX);
    memset(link, 0xff, TAR_PATH_MAX);
    assert_int_equal(tar_header(&e, buf, sizeof buf), TAR_HEADER_MAX);
    for (size_t size = 0; size < sizeof buf; size += 61) {
        uint8_t *exact = malloc(size > 0 ? size : 1);

        assert_int_equal(tar_header(&e, exact, size), 0);
        free(exact);
    }
    path[TAR_PATH_MAX] = 'x';
    assert_int_equal(tar_header(&e, buf, sizeof buf), 0);
}

static void what_cannot_be_written_is_refused(void **state)
{
    static const struct tar_entry bad[] = {
        {"", "", 0, 0, 0, 0, TAR_FILE},
        {"x", "", 0, 0, 0, 0, TAR_SYMLINK},
        {"x", "", 0, 0, 0, 0, TAR_CHAR_DEVICE},
        {"x", "", 0, 0, 0, 0, TAR_BLOCK_DEVICE},
        {"x", "", 1, 0, 0, 0, TAR_FOLDER},
        {"x", "", 0, 0, 1000000000, 0, TAR_FILE},
        {"x", "", (uint64_t)INT64_MAX + 1, 0, 0, 0, TAR_FILE},
    };
    static uint8_t buf[TAR_HEADER_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(tar_header(&bad[i], buf, sizeof buf), 0);
}

static void old_and_gnu_headers_are_read(void **state)
{
    struct archive *a = *state;
    uint8_t *b;

    (void)add_raw(a, "v7/", '\0', "0");
    b = add_raw(a, "v7/file", '\0', "          3 "); /* spaces in front and after */
    put(b, 257, "not magic", 9);                     /* what v7 leaves as it is */
    put(b, 345, "no prefix", 9);
    set_sum(b, false);
    add_data(a, "abc", 3);
    b = add_raw(a, "gnu", '0', "0");
    put(b, 257, "ustar  ", 8);
    put(b, 345, "12345670123", 11); /* its access time, no prefix */
    set_sum(b, false);
    b = add_raw(a, "name", '0', "0");
    put(b, 257, "ustar\00000", 8);
    put(b, 345, "prefix", 6);
    set_sum(b, true);
    (void)add_raw(a, "contiguous", '7', "1");
    add_data(a, "x", 1);
    (void)add_raw(a, "char", '3', "0");
    (void)add_raw(a, "block", '4', "0");
    b = add_raw(a, "old-times", '0', "0");
    put(b, 136, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 12);
    put(b, 124, "\x80\0\0\0\0\0\0\0\0\0\0\x02", 12);
    b[0] = 0xe4; /* a byte over 127, which a signed sum counts differently */
    set_sum(b, true);
    add_data(a, "yz", 2);
    assert_lists(a, "d0644 10.000000000 0 v7/\n"
                    "-0644 10.000000000 3 v7/file =abc\n"
                    "-0644 10.000000000 0 gnu\n"
                    "-0644 10.000000000 0 prefix/name\n"
                    "-0644 10.000000000 1 contiguous =x\n"
                    "c0644 10.000000000 0 char\n"
                    "b0644 10.000000000 0 block\n"
                    "-0644 -2.000000000 2 \xe4ld-times =yz\n");
}

static void gnu_long_names_are_read(void **state)
{
    static char path[TAR_PATH_MAX + 1], link[TAR_PATH_MAX + 1], expected[3 * TAR_PATH_MAX];
    struct archive *a = *state;

    make_path(path, TAR_PATH_MAX, 'p');
    make_path(link, 4000, 'l');
    add_pax_bytes(a, 'K', link, 4001);
    add_pax_bytes(a, 'L', path, TAR_PATH_MAX + 1);
    (void)add_raw(a, "short", '2', "0");
    (void)add_raw(a, "next", '0', "0"); /* for which they do not count any more */
    (void)snprintf(expected, sizeof expected,
                   "l0644 10.000000000 0 %s -> %s\n-0644 10.000000000 0 next\n", path, link);
    assert_lists(a, expected);
}

static void bad_gnu_long_names_are_refused(void **state)
{
    static char path[TAR_PATH_MAX + 2];
    struct archive *a = *state;

    make_path(path, TAR_PATH_MAX + 1, 'p');
    add_pax_bytes(a, 'L', path, TAR_PATH_MAX + 1); /* no NUL */
    assert_refused(a, TAR_FAULT_PATH_LONG);
    a->len = 0;
    add_pax_bytes(a, 'L', path, TAR_PATH_MAX + 2);
    assert_refused(a, TAR_FAULT_PATH_LONG);
    a->len = 0;
    add_pax_bytes(a, 'L', "a\0b", 4);
    assert_refused(a, TAR_FAULT_PATH_NUL);
    a->len = 0;
    add_pax_bytes(a, 'L', "abc", 4);
    add_end(a);
    assert_refused(a, TAR_FAULT_TRUNCATED);
}

static void pax_records_are_read(void **state)
{
    struct archive *a = *state;

    add_pax(a, 'g', "19 comment=a = b\nc\n13 mtime=1.5\n");
    add_pax(a, 'x',
            "20 SCHILY.xattr.u=\n\n"
            "14 path=other\n15 linkpath=to\n20 mtime=-1.2500000\n"
            "00013 size=3\n");
    (void)add_raw(a, "name", '0', "0");
    add_data(a, "abc", 3);
    add_pax(a, 'x', "15 linkpath=to\n");
    (void)add_raw(a, "link", '2', "0");
    add_pax(a, 'x', "");
    (void)add_raw(a, "last", '0', "0");
    assert_lists(a, "-0644 -2.750000000 3 other =abc\n"
                    "l0644 10.000000000 0 link -> to\n"
                    "-0644 10.000000000 0 last\n");
}

static void bad_pax_records_are_refused(void **state)
{
    static const struct {
        const char *body;
        enum tar_fault fault;
    } cases[] = {
        {"x", TAR_FAULT_PAX_RECORD},
        {" path=x\n", TAR_FAULT_PAX_RECORD},
        {"11 path=x\n", TAR_FAULT_PAX_RECORD}, /* one more than there is */
        {"8 path=x\n", TAR_FAULT_PAX_RECORD},
        {"10 path=x\n1", TAR_FAULT_PAX_RECORD},
        {"-8 path=x\n", TAR_FAULT_PAX_RECORD},
        {"4 =\n", TAR_FAULT_PAX_RECORD},
        {"5 =a\n", TAR_FAULT_PAX_RECORD},
        {"5 ab\n", TAR_FAULT_PAX_RECORD},
        {"0 \n", TAR_FAULT_PAX_RECORD},
        {"8 path=\n", TAR_FAULT_PAX_RECORD},
        {"8 size=\n", TAR_FAULT_PAX_RECORD},
        {"99999999 path=x\n", TAR_FAULT_PAX_RECORD},
        {"18446744073709551624 path=x\n", TAR_FAULT_PAX_RECORD},
        {"9 size=x\n", TAR_FAULT_NUMBER},
        {"11 size=-1\n", TAR_FAULT_NUMBER},
        {"28 size=9223372036854775808\n", TAR_FAULT_SIZE},
        {"29 size=99999999999999999999\n", TAR_FAULT_SIZE},
        {"30 size=999999999999999999999\n", TAR_FAULT_SIZE},
        {"29 mtime=9223372036854775808\n", TAR_FAULT_NUMBER},
        {"11 mtime=-\n", TAR_FAULT_NUMBER},
        {"14 mtime=1e-5\n", TAR_FAULT_NUMBER},
        {"22 GNU.sparse.major=1\n", TAR_FAULT_SPARSE},
        {"26 GNU.sparse.numblocks=1\n", TAR_FAULT_SPARSE},
        {"21 SCHILY.realsize=9\n", TAR_FAULT_SPARSE},
    };
    struct archive *a = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        a->len = 0;
        add_pax(a, 'x', cases[i].body);
        (void)add_raw(a, "x", '2', "0");
        assert_refused(a, cases[i].fault);
    }
}

static void nuls_long_paths_and_long_numbers_in_pax_are_refused(void **state)
{
    static char body[TAR_PATH_MAX + 64];
    struct archive *a = *state;

    add_pax_bytes(a, 'x', "12 path=a\0b\n", 12);
    assert_refused(a, TAR_FAULT_PATH_NUL);
    a->len = 0;
    add_pax_bytes(a, 'x', "16 linkpath=a\0b\n", 16);
    assert_refused(a, TAR_FAULT_PATH_NUL);
    a->len = 0;
    int head = snprintf(body, sizeof body, "4108 path=");
    memset(body + head, 'a', TAR_PATH_MAX + 1);
    body[4107] = '\n';
    add_pax_bytes(a, 'x', body, 4108);
    assert_refused(a, TAR_FAULT_PATH_LONG);
    a->len = 0;
    head = snprintf(body, sizeof body, "100 mtime=");
    memset(body + head, '1', 100);
    body[99] = '\n';
    add_pax_bytes(a, 'x', body, 100);
    assert_refused(a, TAR_FAULT_NUMBER);
}

static void global_headers_may_not_say_what_entries_are(void **state)
{
    static const struct {
        const char *body;
        enum tar_fault fault;
    } cases[] = {
        {"10 path=x\n", TAR_FAULT_GLOBAL},
        {"10 size=1\n", TAR_FAULT_GLOBAL},
        {"14 linkpath=x\n", TAR_FAULT_GLOBAL},
        {"22 GNU.sparse.major=1\n", TAR_FAULT_SPARSE},
    };
    struct archive *a = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        a->len = 0;
        add_pax(a, 'g', cases[i].body);
        assert_refused(a, cases[i].fault);
    }
}

static void what_is_not_taken_has_a_fault_of_its_own(void **state)
{
    static const struct {
        char type;
        const char *size;
        enum tar_fault fault;
    } cases[] = {
        {'S', "0", TAR_FAULT_SPARSE},
        {'V', "0", TAR_FAULT_VOLUME},
        {'M', "0", TAR_FAULT_VOLUME},
        {'D', "0", TAR_FAULT_KIND},
        {'8', "0", TAR_FAULT_KIND},
        {'\xff', "0", TAR_FAULT_KIND},
        {'0', "9", TAR_FAULT_NUMBER},
        {'0', "-1", TAR_FAULT_NUMBER},
        {'0', "1 2", TAR_FAULT_NUMBER},
        {'0', "\x81", TAR_FAULT_SIZE},
        {'0', "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", TAR_FAULT_SIZE},
        {'0', "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", TAR_FAULT_SIZE},
        {'x', "00010000001", TAR_FAULT_PAX_RECORD},
        {'x', "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", TAR_FAULT_SIZE},
        {'L', "77777777777", TAR_FAULT_PATH_LONG},
    };
    struct archive *a = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        a->len = 0;
        (void)add_raw(a, "x", cases[i].type, cases[i].size);
        assert_refused(a, cases[i].fault);
    }
    a->len = 0;
    uint8_t *b = add_raw(a, "x", '0', "");
    put(b, 124, "\x80\0\0\0\x80\0\0\0\0\0\0\0", 12); /* 8 EiB exactly */
    set_sum(b, false);
    assert_refused(a, TAR_FAULT_SIZE);
    a->len = 0;
    (void)add_raw(a, "folder/", '0', "1");
    assert_refused(a, TAR_FAULT_SIZE);
    a->len = 0;
    b = add_raw(a, "x", '0', "0");
    memset(b + 136, 0x81, 12);
    set_sum(b, false);
    assert_refused(a, TAR_FAULT_NUMBER);
}

static void a_changed_byte_in_a_header_is_found(void **state)
{
    struct archive *a = *state;

    for (size_t at = 0; at < TAR_BLOCK_BYTES; at++) {
        if (at == 154 || at == 155)
            continue; /* the end of the checksum's own field, where a NUL may be a space */
        a->len = 0;
        add_entry(a, &(struct tar_entry){"top/file", "", 0, 10, 0, 0640, TAR_FILE}, NULL);
        a->bytes[at] ^= 1;
        assert_refused(a, TAR_FAULT_CHECKSUM);
    }
}

static void one_block_of_zeros_ends_only_what_ends_there(void **state)
{
    struct archive *a = *state;
    static struct listing l;

    add_entry(a, &(struct tar_entry){"a", "", 0, 10, 0, 0640, TAR_FILE}, NULL);
    add(a, tar_zeros, TAR_BLOCK_BYTES);
    assert_lists(a, "-0640 10.000000000 0 a\n");
    add_entry(a, &(struct tar_entry){"b", "", 0, 10, 0, 0640, TAR_FILE}, NULL);
    list_anyhow(a, &l);
    assert_int_equal(l.fault, TAR_FAULT_LONE_ZEROS);
    assert_int_equal(l.entries, 1);
}

static void what_follows_the_end_is_ignored(void **state)
{
    struct archive *a = *state;

    add_entry(a, &(struct tar_entry){"a", "", 0, 10, 0, 0640, TAR_FILE}, NULL);
    add_end(a);
    add(a, "rubbish", 7);
    assert_lists(a, "-0640 10.000000000 0 a\n");
}

static void every_shorter_archive_is_truncated_or_ends_with_an_entry(void **state)
{
    struct archive *a = *state;
    static struct listing whole, l;
    size_t complete = 0;

    add_entry(a, &(struct tar_entry){"top", "", 0, 10, 5, 0755, TAR_FOLDER}, NULL);
    add_entry(a, &(struct tar_entry){"top/file", "", 5, 10, 0, 0640, TAR_FILE}, "hello");
    add_pax_bytes(a, 'L', "long", 5);
    (void)add_raw(a, "x", '0', "0");
    add_end(a);
    list(a, a->len, &whole);
    assert_true(whole.ended);
    struct archive cut = *a;
    for (cut.len = 0; cut.len < a->len; cut.len++) {
        list(&cut, 4096, &l);
        assert_false(l.ended);
        assert_memory_equal(l.text, whole.text, l.len);
        if (l.fault == TAR_FAULT_NONE) {
            assert_int_equal(cut.len % TAR_BLOCK_BYTES, 0);
            complete++;
        } else {
            assert_int_equal(l.fault, TAR_FAULT_TRUNCATED);
        }
    }
    assert_int_equal(complete, 4); /* after each of three entries, and after one block of zeros */
}

static void nothing_is_not_an_archive(void **state)
{
    static struct tar_reader t;
    struct reader in = reader_over("", 0);

    (void)state;
    tar_reader_init(&t);
    assert_int_equal(tar_next(&t, &in), TAR_MORE);
    assert_int_equal(tar_finish(&t), TAR_FAULT_TRUNCATED);
}

static void the_reader_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct tar_reader) <= 24 * 1024);
}

static void paths_are_judged(void **state)
{
    static const struct {
        const char *path, *clean;
        enum tar_path verdict;
    } cases[] = {
        {"a", "a", TAR_PATH_OK},
        {"./a/b/", "a/b", TAR_PATH_OK},
        {".//./a//./b/.", "a/b", TAR_PATH_OK},
        {".", ".", TAR_PATH_OK},
        {"./", ".", TAR_PATH_OK},
        {"..a/b../...", "..a/b../...", TAR_PATH_OK},
        {"\xff\n", "\xff\n", TAR_PATH_OK},
        {"", NULL, TAR_PATH_EMPTY},
        {"/", NULL, TAR_PATH_ABSOLUTE},
        {"/a", NULL, TAR_PATH_ABSOLUTE},
        {"..", NULL, TAR_PATH_UP},
        {"../a", NULL, TAR_PATH_UP},
        {"a/..", NULL, TAR_PATH_UP},
        {"a/../b", NULL, TAR_PATH_UP},
        {"./../b", NULL, TAR_PATH_UP},
    };
    char clean[TAR_PATH_MAX + 1], path[TAR_PATH_MAX + 2];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t len = strlen(cases[i].path);

        assert_int_equal(tar_path_check(cases[i].path, len, clean), cases[i].verdict);
        if (cases[i].clean)
            assert_string_equal(clean, cases[i].clean);
    }
    assert_int_equal(tar_path_check("a\0b", 3, clean), TAR_PATH_NUL);
    make_path(path, 4095, 'p');
    assert_int_equal(tar_path_check(path, 4095, clean), TAR_PATH_OK);
    assert_string_equal(clean, path);
    make_path(path, 4096, 'p');
    assert_int_equal(tar_path_check(path, 4096, clean), TAR_PATH_LONG);
    memset(path, 'x', 256);
    assert_int_equal(tar_path_check(path, 256, clean), TAR_PATH_LONG);
    assert_int_equal(tar_path_check(path, 255, clean), TAR_PATH_OK);
}

static void links_are_judged(void **state)
{
    static const struct {
        const char *clean, *target;
        size_t top;
        bool stays;
    } cases[] = {
        {"l", "a", 0, true},
        {"l", ".", 0, true},
        {"l", "a/b/./c//", 0, true},
        {"l", "..", 0, false},
        {"l", "../x", 0, false},
        {"l", "./../x", 0, false},
        {"l", "/x", 0, false},
        {"l", "", 0, false},
        {"a/b/l", "../../x", 0, true},
        {"a/b/l", "../..", 0, true},
        {"a/b/l", "../../..", 0, false},
        {"a/b/l", "x/../y", 0, false}, /* x may be a link to anywhere in the tree */
        {"a/b/l", "..x/y..", 0, true},
        {"l", "a", 1, false}, /* the top is the link, so all else is outside */
        {"a/l", "x", 1, true},
        {"a/l", "..", 1, false},
        {"a/b/l", "..", 1, true},
        {"a/b/l", "../..", 1, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (tar_link_stays(cases[i].clean, cases[i].target, cases[i].top) != cases[i].stays)
            fail_msg("%s -> %s", cases[i].clean, cases[i].target);
}

static void every_fault_and_verdict_has_a_text(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TAR_FAULT__MAX; i++)
        assert_true(strlen(tar_fault_text(i)) > 0);
    for (unsigned i = 0; i < TAR_PATH__MAX; i++)
        assert_true(strlen(tar_path_text(i)) > 0);
}

#define WITH_ARCHIVE(test) cmocka_unit_test_setup_teardown(test, make_archive, free_archive)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARCHIVE(entries_come_back_as_they_were_written),
        WITH_ARCHIVE(every_time_comes_back),
        WITH_ARCHIVE(times_are_written_as_decimals_without_trailing_zeros),
        WITH_ARCHIVE(sizes_beyond_8_gib_come_back),
        WITH_ARCHIVE(names_of_every_length_come_back),
        WITH_ARCHIVE(a_path_that_ustar_can_split_needs_no_extension),
        WITH_ARCHIVE(names_that_are_not_utf8_go_through_byte_for_byte),
        cmocka_unit_test(the_largest_header_is_as_large_as_stated),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        WITH_ARCHIVE(old_and_gnu_headers_are_read),
        WITH_ARCHIVE(gnu_long_names_are_read),
        WITH_ARCHIVE(bad_gnu_long_names_are_refused),
        WITH_ARCHIVE(pax_records_are_read),
        WITH_ARCHIVE(bad_pax_records_are_refused),
        WITH_ARCHIVE(nuls_long_paths_and_long_numbers_in_pax_are_refused),
        WITH_ARCHIVE(global_headers_may_not_say_what_entries_are),
        WITH_ARCHIVE(what_is_not_taken_has_a_fault_of_its_own),
        WITH_ARCHIVE(a_changed_byte_in_a_header_is_found),
        WITH_ARCHIVE(one_block_of_zeros_ends_only_what_ends_there),
        WITH_ARCHIVE(what_follows_the_end_is_ignored),
        WITH_ARCHIVE(every_shorter_archive_is_truncated_or_ends_with_an_entry),
        cmocka_unit_test(nothing_is_not_an_archive),
        cmocka_unit_test(the_reader_is_small),
        cmocka_unit_test(paths_are_judged),
        cmocka_unit_test(links_are_judged),
        cmocka_unit_test(every_fault_and_verdict_has_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

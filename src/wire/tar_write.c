/* SPDX-License-Identifier: Apache-2.0 */
/* Tar headers: plain ustar where that can express an entry, with a pax header in front otherwise.
 */
#include <string.h>

#include "base/text.h"
#include "wire/tar_format.h"
#include "base/guards.h"

enum { OCTAL_DIGITS = 11 }; /* that fit into a 12-byte field with its NUL */

static const uint64_t octal_max = (1ull << 3 * OCTAL_DIGITS) - 1;

const uint8_t tar_zeros[TAR_END_BYTES] = {0};

static size_t put_decimal(char *buf, uint64_t v)
{
    char digits[20];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    for (size_t i = 0; i < n; i++)
        buf[i] = digits[n - 1 - i];
    return n;
}

static void put_octal(uint8_t *block, struct tar_field f, uint64_t v)
{
    for (size_t i = f.len - 1; i-- > 0; v >>= 3)
        block[f.at + i] = (uint8_t)('0' + (v & 7));
}

/* Fills in what all headers have alike, and the sum over everything. */
static void finish_header(uint8_t *block, char type)
{
    int64_t other;

    memcpy(block + TAR_MAGIC.at, "ustar\00000", TAR_MAGIC.len);
    block[TAR_TYPE_AT] = (uint8_t)type;
    put_octal(block, TAR_UID, 0);
    put_octal(block, TAR_GID, 0);
    put_octal(block, TAR_MAJOR, 0);
    put_octal(block, TAR_MINOR, 0);
    uint64_t sum = (uint64_t)tar_header_sum(block, &other);
    put_octal(block, (struct tar_field){TAR_SUM.at, 7}, sum); /* six digits, NUL, space */
    block[TAR_SUM.at + 7] = ' ';
}

static bool is_ascii(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)s[i] >= 0x80)
            return false;
    return true;
}

/* A text to be written; a folder's path gets a slash if it has none. */
struct text {
    const char *p;
    size_t len;
    bool slash;
};

/* Copies what is in @s from @from on, as far as the field takes it. */
static void put_text(uint8_t *block, struct tar_field f, struct text s, size_t from)
{
    size_t len = tar_min(s.len - from, f.len);

    if (len > 0)
        memcpy(block + f.at, s.p + from, len);
    if (s.slash && len < f.len)
        block[f.at + len] = '/';
}

/*
 * Puts the path into its one or two fields. Return: false when it was cut, or is not ASCII, for
 * which ustar says no encoding.
 */
static bool put_path(uint8_t *block, struct text path)
{
    size_t total = path.len + path.slash;
    bool ascii = is_ascii(path.p, path.len);

    if (total <= TAR_NAME.len || !ascii) {
        put_text(block, TAR_NAME, path, 0);
        return ascii;
    }
    for (size_t cut = total - TAR_NAME.len - 1; cut <= TAR_PREFIX.len && cut < path.len; cut++)
        if (cut > 0 && path.p[cut] == '/' && cut + 1 < total) {
            put_text(block, TAR_PREFIX, (struct text){path.p, cut, false}, 0);
            put_text(block, TAR_NAME, path, cut + 1);
            return true;
        }
    put_text(block, TAR_NAME, path, 0);
    return false;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
static void pax_put(struct writer *w, const char *key, struct text value)
{
    size_t rest = 1 + strlen(key) + 1 + value.len + value.slash + 1;
    size_t total = rest + 1;
    char digits[20];

    while (put_decimal(digits, total) + rest != total)
        total++;
    writer_bytes(w, digits, total - rest);
    writer_bytes(w, " ", 1);
    writer_bytes(w, key, strlen(key));
    writer_bytes(w, "=", 1);
    writer_bytes(w, value.p, value.len);
    writer_bytes(w, "/", value.slash);
    writer_bytes(w, "\n", 1);
}

static void pax_put_size(struct writer *w, uint64_t size)
{
    char text[20];

    pax_put(w, "size", (struct text){text, put_decimal(text, size), false});
}

static void pax_put_mtime(struct writer *w, int64_t seconds, uint32_t ns)
{
    uint64_t whole = (uint64_t)seconds;
    char text[40];
    size_t n = 0;

    if (seconds < 0) { /* sign and magnitude, where the fraction counts downwards */
        text[n++] = '-';
        whole = -(whole + (ns > 0));
        ns = ns > 0 ? TAR_NS_PER_S - ns : 0;
    }
    n += put_decimal(text + n, whole);
    if (ns > 0) {
        text[n++] = '.';
        for (uint32_t unit = TAR_NS_PER_S / 10; ns > 0; ns %= unit, unit /= 10)
            text[n++] = (char)('0' + ns / unit);
    }
    pax_put(w, "mtime", (struct text){text, n, false});
}

static char type_of(enum tar_kind kind)
{
    static const char types[] = {
        [TAR_FILE] = '0', [TAR_FOLDER] = '5',       [TAR_SYMLINK] = '2',      [TAR_HARDLINK] = '1',
        [TAR_FIFO] = '6', [TAR_CHAR_DEVICE] = '\0', [TAR_BLOCK_DEVICE] = '\0'};
    _Static_assert(sizeof types == TAR_KIND__MAX, "every kind has a type");

    return types[kind];
}

static bool has_target(const struct tar_entry *e)
{
    return e->kind == TAR_SYMLINK || e->kind == TAR_HARDLINK;
}

static bool may_be_written(const struct tar_entry *e, struct text path, struct text link)
{
    return path.len > 0 && path.len <= TAR_PATH_MAX && link.len <= TAR_PATH_MAX &&
           has_target(e) == (link.len > 0) && type_of(e->kind) != '\0' && e->mtime > INT64_MIN &&
           e->mtime_ns < TAR_NS_PER_S && e->size <= (e->kind == TAR_FILE ? INT64_MAX : 0);
}

/* What the plain header cannot hold. */
struct beyond {
    bool path, link, size, mtime;
};

/* Writes the plain header, with every value in it as far as it fits. */
static struct beyond put_header(uint8_t *block, const struct tar_entry *e, struct text path,
                                struct text link)
{
    bool fits = e->mtime >= 0 && (uint64_t)e->mtime <= octal_max;
    struct beyond b = {
        .link = link.len > TAR_LINK.len || !is_ascii(link.p, link.len),
        .size = e->size > octal_max,
        .mtime = !fits || e->mtime_ns > 0,
    };

    b.path = !put_path(block, path);
    put_text(block, TAR_LINK, link, 0);
    put_octal(block, TAR_MODE, e->mode & 07777);
    put_octal(block, TAR_SIZE, b.size ? 0 : e->size);
    put_octal(block, TAR_MTIME, fits ? (uint64_t)e->mtime : 0);
    finish_header(block, type_of(e->kind));
    return b;
}

/* Writes the extended header: its own header, and the records. */
static void put_extension(struct writer *w, const struct tar_entry *e, struct text path,
                          struct text link, struct beyond b)
{
    const struct text title = {"././@PaxHeader", 14, false};
    uint8_t *head = writer_reserve(w, TAR_BLOCK_BYTES);
    const uint8_t *body = w->p;

    if (!text_is_utf8(path.p, path.len) || !text_is_utf8(link.p, link.len))
        pax_put(w, "hdrcharset", (struct text){"BINARY", 6, false});
    if (b.path)
        pax_put(w, "path", path);
    if (b.link)
        pax_put(w, "linkpath", link);
    if (b.size)
        pax_put_size(w, e->size);
    if (b.mtime)
        pax_put_mtime(w, e->mtime, e->mtime_ns);
    size_t len = (size_t)(w->p - body);
    writer_bytes(w, tar_zeros, tar_padding(len));
    if (!head)
        return;
    memset(head, 0, TAR_BLOCK_BYTES);
    put_text(head, TAR_NAME, title, 0);
    put_octal(head, TAR_MODE, 0644);
    put_octal(head, TAR_SIZE, len);
    put_octal(head, TAR_MTIME, 0);
    finish_header(head, 'x');
}

/*
 * At most: two headers, and between them 21 bytes of "hdrcharset", 4108 of "path", 4111 of
 * "linkpath" and 40 of "mtime": 8280, which is 17 blocks. Only files have a "size", and no target.
 */
size_t tar_header(const struct tar_entry *e, void *buf, size_t size)
{
    struct text path = {e->path, strlen(e->path), false};
    struct text link = {e->link, has_target(e) ? strlen(e->link) : 0, false};
    struct writer w = writer_over(buf, size);
    uint8_t block[TAR_BLOCK_BYTES] = {0};

    if (!may_be_written(e, path, link))
        return 0;
    path.slash = e->kind == TAR_FOLDER && path.p[path.len - 1] != '/';
    struct beyond b = put_header(block, e, path, link);
    if (b.path || b.link || b.size || b.mtime)
        put_extension(&w, e, path, link, b);
    writer_bytes(&w, block, sizeof block);
    return w.bad ? 0 : writer_len(&w);
}

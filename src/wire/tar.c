/* SPDX-License-Identifier: Apache-2.0 */
/* Tar streams, read as they come. */
#include "wire/tar.h"

#include <string.h>

#include "wire/tar_format.h"
#include "base/guards.h"

enum {
    PAX_BYTES_MAX = 1024 * 1024, /* of one extended header, which may hold foreign attributes */
    PAX_RECORD_MIN = 3,          /* after its length: "k=\n" */
    PAX_LENGTH_DIGITS = 7,
};

/* Bytes up to a NUL. */
static size_t text_len(const void *s, size_t max)
{
    const uint8_t *nul = memchr(s, '\0', max);

    return nul ? (size_t)(nul - (const uint8_t *)s) : max;
}

const char *tar_fault_text(enum tar_fault fault)
{
    static const char *const texts[] = {
        [TAR_FAULT_NONE] = "nothing is wrong",
        [TAR_FAULT_CHECKSUM] = "the checksum of a header is wrong",
        [TAR_FAULT_TRUNCATED] = "the archive ends in the middle of an entry",
        [TAR_FAULT_LONE_ZEROS] = "entries follow a block of zeros",
        [TAR_FAULT_SPARSE] = "the archive holds a sparse file",
        [TAR_FAULT_VOLUME] = "the archive has a volume label or is a part of several volumes",
        [TAR_FAULT_KIND] = "an entry's type is not known",
        [TAR_FAULT_NUMBER] = "a number in a header is malformed or out of range",
        [TAR_FAULT_SIZE] = "an entry's size is out of range",
        [TAR_FAULT_PATH_LONG] = "a path is longer than 4096 bytes",
        [TAR_FAULT_PATH_NUL] = "a path has a NUL byte inside",
        [TAR_FAULT_PAX_RECORD] = "an extended header is malformed or too large",
        [TAR_FAULT_GLOBAL] = "a global header sets the path or size of all entries",
    };
    _Static_assert(sizeof texts / sizeof texts[0] == TAR_FAULT__MAX, "every fault has a text");

    return texts[fault];
}

/* Numbers */

/* TAR_FAULT_SIZE: a number that is well formed and too large. */
static enum tar_fault binary_number(const uint8_t *f, size_t len, int64_t *ret)
{
    uint8_t sign = f[0] == 0xFF ? 0xFF : 0;
    uint64_t v = 0;

    if (f[0] != 0x80 && f[0] != 0xFF)
        return TAR_FAULT_SIZE;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = i == 0 ? sign : f[i];

        if (i + 8 < len && c != sign)
            return TAR_FAULT_SIZE;
        v = v << 8 | c;
    }
    if (v >> 63 != (sign & 1u))
        return TAR_FAULT_SIZE;
    *ret = (int64_t)v;
    return TAR_FAULT_NONE;
}

/* Octal digits with spaces in front and spaces or NULs after them, or binary; empty is 0. */
static enum tar_fault header_number(const uint8_t *block, struct tar_field place, int64_t *ret)
{
    const uint8_t *f = block + place.at;
    int64_t v = 0; /* 12 digits of 3 bits at most */
    size_t i = 0;

    if (f[0] & 0x80)
        return binary_number(f, place.len, ret);
    while (i < place.len && f[i] == ' ')
        i++;
    for (; i < place.len && f[i] >= '0' && f[i] <= '7'; i++)
        v = v << 3 | (f[i] - '0');
    for (; i < place.len; i++)
        if (f[i] != ' ' && f[i] != '\0')
            return TAR_FAULT_NUMBER;
    *ret = v;
    return TAR_FAULT_NONE;
}

static enum tar_fault header_size(const uint8_t *block, uint64_t *ret)
{
    int64_t v;
    enum tar_fault fault = header_number(block, TAR_SIZE, &v);

    if (fault == TAR_FAULT_NONE && v < 0)
        return TAR_FAULT_SIZE;
    if (fault == TAR_FAULT_NONE)
        *ret = (uint64_t)v;
    return fault;
}

/* The decimal number at *@s, which is moved behind it. Return: false without digits, or over @max.
 */
static bool decimal(const char **s, uint64_t max, uint64_t *ret)
{
    const char *p = *s;
    uint64_t v = 0;

    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        if (v > (max - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    if (p == *s)
        return false;
    *s = p;
    *ret = v;
    return true;
}

static enum tar_fault pax_size(struct tar_reader *t)
{
    const char *s = t->pax.text;
    uint64_t v;

    if (s[strspn(s, "0123456789")] != '\0' || s[0] == '\0')
        return TAR_FAULT_NUMBER;
    if (!decimal(&s, INT64_MAX, &v))
        return TAR_FAULT_SIZE;
    t->entry.size = v;
    t->has_size = true;
    return TAR_FAULT_NONE;
}

/* "-1.5" is half a second before -1. */
static enum tar_fault pax_mtime(struct tar_reader *t)
{
    const char *s = t->pax.text;
    bool negative = *s == '-';
    uint32_t ns = 0, unit = TAR_NS_PER_S / 10;
    uint64_t v;

    s += negative;
    if (!decimal(&s, INT64_MAX, &v))
        return TAR_FAULT_NUMBER;
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
            ns += (uint32_t)(*s - '0') * unit; /* digits after the ninth count nothing */
    if (*s != '\0')
        return TAR_FAULT_NUMBER;
    t->entry.mtime = negative ? -(int64_t)v - (ns > 0) : (int64_t)v;
    t->entry.mtime_ns = negative && ns > 0 ? TAR_NS_PER_S - ns : ns;
    t->has_mtime = true;
    return TAR_FAULT_NONE;
}

/* Extended headers */

/* What a record is about; called at the "=". */
static enum tar_fault pax_field(struct tar_reader *t)
{
    static const char *const sparse[] = {"GNU.sparse.", "SCHILY.realsize", "SUN.holesdata"};
    static const char *const names[] = {
        [PAX_PATH] = "path", [PAX_LINK] = "linkpath", [PAX_SIZE] = "size", [PAX_MTIME] = "mtime"};
    const char *key = t->pax.text;

    if (t->pax.n == 0)
        return TAR_FAULT_PAX_RECORD;
    for (size_t i = 0; i < sizeof sparse / sizeof sparse[0]; i++)
        if (strncmp(key, sparse[i], strlen(sparse[i])) == 0)
            return TAR_FAULT_SPARSE;
    t->pax.field = PAX_OTHER;
    for (unsigned i = PAX_PATH; i <= PAX_MTIME; i++)
        if (t->pax.n < sizeof t->pax.text && strcmp(key, names[i]) == 0)
            t->pax.field = i;
    if (t->extension == 'g' && t->pax.field == PAX_MTIME)
        t->pax.field = PAX_OTHER;
    else if (t->extension == 'g' && t->pax.field != PAX_OTHER)
        return TAR_FAULT_GLOBAL;
    return TAR_FAULT_NONE;
}

/* The buffer of the record's value, and its size; NULL if nobody wants it. */
static char *pax_buffer(struct tar_reader *t, size_t *ret_size)
{
    switch (t->pax.field) {
    case PAX_PATH:
        *ret_size = sizeof t->path;
        return t->path;
    case PAX_LINK:
        *ret_size = sizeof t->link;
        return t->link;
    case PAX_SIZE:
    case PAX_MTIME:
        *ret_size = sizeof t->pax.text;
        return t->pax.text;
    case PAX_OTHER:
        break;
    }
    return NULL;
}

/* One byte of a value; it is terminated as it grows. */
static enum tar_fault pax_value(struct tar_reader *t, char c)
{
    bool number = t->pax.field == PAX_SIZE || t->pax.field == PAX_MTIME;
    size_t size;
    char *buf = pax_buffer(t, &size);

    if (!buf)
        return TAR_FAULT_NONE;
    if (c == '\0')
        return number ? TAR_FAULT_NUMBER : TAR_FAULT_PATH_NUL;
    if (t->pax.n + 1 >= size)
        return number ? TAR_FAULT_NUMBER : TAR_FAULT_PATH_LONG;
    buf[t->pax.n++] = c;
    buf[t->pax.n] = '\0';
    return TAR_FAULT_NONE;
}

/* The line end of a record. */
static enum tar_fault pax_record(struct tar_reader *t)
{
    t->pax.part = PAX_LENGTH;
    t->pax.left = 0;
    t->pax.digits = 0;
    if (t->pax.field != PAX_OTHER && t->pax.n == 0)
        return TAR_FAULT_PAX_RECORD; /* would delete what no header has set */
    switch (t->pax.field) {
    case PAX_PATH:
        t->has_path = true;
        break;
    case PAX_LINK:
        t->has_link = true;
        break;
    case PAX_SIZE:
        return pax_size(t);
    case PAX_MTIME:
        return pax_mtime(t);
    case PAX_OTHER:
        break;
    }
    return TAR_FAULT_NONE;
}

/* @after: bytes of the extended header after this one */
static enum tar_fault pax_length(struct tar_reader *t, char c, uint64_t after)
{
    if (c >= '0' && c <= '9' && t->pax.digits < PAX_LENGTH_DIGITS) {
        t->pax.left = t->pax.left * 10 + (uint32_t)(c - '0');
        t->pax.digits++;
        return TAR_FAULT_NONE;
    }
    uint32_t used = t->pax.digits + 1;
    if (c != ' ' || t->pax.digits == 0 || t->pax.left < used + PAX_RECORD_MIN ||
        t->pax.left - used > after)
        return TAR_FAULT_PAX_RECORD;
    t->pax.left -= used;
    t->pax.part = PAX_KEY;
    t->pax.n = 0;
    t->pax.text[0] = '\0';
    return TAR_FAULT_NONE;
}

static enum tar_fault pax_key(struct tar_reader *t, char c)
{
    if (c == '=') {
        enum tar_fault fault = pax_field(t);

        t->pax.part = t->pax.left > 1 ? PAX_VALUE : PAX_LINE_END;
        t->pax.n = 0;
        return fault;
    }
    if (t->pax.left <= 1 || c == '\0')
        return TAR_FAULT_PAX_RECORD; /* no room for "=" */
    if (t->pax.n + 1 < sizeof t->pax.text) {
        t->pax.text[t->pax.n] = c;
        t->pax.text[t->pax.n + 1] = '\0';
        t->pax.n++;
    } else {
        t->pax.n = sizeof t->pax.text; /* no keyword that is known here is that long */
    }
    return TAR_FAULT_NONE;
}

static enum tar_fault pax_byte(struct tar_reader *t, char c, uint64_t after)
{
    enum tar_fault fault;

    if (t->pax.part == PAX_LENGTH)
        return pax_length(t, c, after);
    t->pax.left--;
    switch (t->pax.part) {
    case PAX_KEY:
        return pax_key(t, c);
    case PAX_VALUE:
        fault = pax_value(t, c);
        if (t->pax.left == 1)
            t->pax.part = PAX_LINE_END;
        return fault;
    case PAX_LINE_END:
        return c == '\n' ? pax_record(t) : TAR_FAULT_PAX_RECORD;
    case PAX_LENGTH:
        break;
    }
    return TAR_FAULT_PAX_RECORD;
}

static bool is_pax(const struct tar_reader *t)
{
    return t->extension == 'x' || t->extension == 'g';
}

static enum tar_fault extension_begin(struct tar_reader *t, char type)
{
    enum tar_fault fault = header_size(t->block, &t->left);

    if (fault != TAR_FAULT_NONE)
        return fault;
    t->extension = type;
    if (is_pax(t) ? t->left > PAX_BYTES_MAX : t->left > TAR_PATH_MAX + 1)
        return is_pax(t) ? TAR_FAULT_PAX_RECORD : TAR_FAULT_PATH_LONG;
    t->state = TAR_STATE_EXTENSION;
    t->padding = tar_padding(t->left);
    t->pending |= type != 'g';
    t->pax.part = PAX_LENGTH;
    t->pax.left = 0;
    t->pax.digits = 0;
    t->pax.n = 0;
    return TAR_FAULT_NONE;
}

static enum tar_fault extension_end(struct tar_reader *t)
{
    char *long_name = t->extension == 'L' ? t->path : t->link;

    t->state = TAR_STATE_HEADER;
    if (is_pax(t)) {
        bool whole = t->pax.part == PAX_LENGTH && t->pax.digits == 0;
        return whole ? TAR_FAULT_NONE : TAR_FAULT_PAX_RECORD;
    }
    size_t len = text_len(long_name, t->pax.n);
    for (size_t i = len; i < t->pax.n; i++)
        if (long_name[i] != '\0')
            return TAR_FAULT_PATH_NUL;
    if (len > TAR_PATH_MAX)
        return TAR_FAULT_PATH_LONG;
    long_name[len] = '\0';
    if (t->extension == 'L')
        t->has_path = true;
    else
        t->has_link = true;
    return TAR_FAULT_NONE;
}

/* Takes what @in has of the extension's body. */
static enum tar_fault extension_feed(struct tar_reader *t, struct reader *in)
{
    size_t n = tar_min(t->left, reader_left(in));
    const uint8_t *p = reader_take(in, n);

    if (is_pax(t)) {
        for (size_t i = 0; i < n; i++, t->offset++) {
            enum tar_fault fault = pax_byte(t, (char)p[i], --t->left);

            if (fault != TAR_FAULT_NONE)
                return fault;
        }
    } else if (n > 0) {
        memcpy((t->extension == 'L' ? t->path : t->link) + t->pax.n, p, n);
        t->pax.n += n;
        t->left -= n;
        t->offset += n;
    }
    return t->left == 0 ? extension_end(t) : TAR_FAULT_NONE;
}

/* Headers */

static bool checksum_holds(const uint8_t *block)
{
    int64_t said, with_sign, sum = tar_header_sum(block, &with_sign);

    return header_number(block, TAR_SUM, &said) == TAR_FAULT_NONE &&
           (said == sum || said == with_sign);
}

static void take_path(struct tar_reader *t)
{
    const uint8_t *b = t->block;
    bool ustar = memcmp(b + TAR_MAGIC.at, "ustar", 6) == 0; /* with its NUL: not GNU's */
    size_t prefix = ustar ? text_len(b + TAR_PREFIX.at, TAR_PREFIX.len) : 0;
    size_t name = text_len(b + TAR_NAME.at, TAR_NAME.len);

    if (prefix > 0) {
        memcpy(t->path, b + TAR_PREFIX.at, prefix);
        t->path[prefix++] = '/';
    }
    memcpy(t->path + prefix, b + TAR_NAME.at, name);
    t->path[prefix + name] = '\0';
}

static void take_link(struct tar_reader *t)
{
    size_t len = text_len(t->block + TAR_LINK.at, TAR_LINK.len);

    memcpy(t->link, t->block + TAR_LINK.at, len);
    t->link[len] = '\0';
}

static enum tar_fault take_kind(char type, enum tar_kind *ret)
{
    static const enum tar_kind kinds[] = {TAR_FILE,        TAR_HARDLINK,     TAR_SYMLINK,
                                          TAR_CHAR_DEVICE, TAR_BLOCK_DEVICE, TAR_FOLDER,
                                          TAR_FIFO,        TAR_FILE};

    if (type == '\0')
        type = '0'; /* v7 */
    if (type == 'S')
        return TAR_FAULT_SPARSE;
    if (type == 'V' || type == 'M')
        return TAR_FAULT_VOLUME;
    if (type < '0' || type > '7')
        return TAR_FAULT_KIND;
    *ret = kinds[type - '0'];
    return TAR_FAULT_NONE;
}

static enum tar_fault take_entry(struct tar_reader *t, char type)
{
    struct tar_entry *e = &t->entry;
    int64_t mode = 0;
    enum tar_fault fault = take_kind(type, &e->kind);

    if (fault == TAR_FAULT_NONE)
        fault = header_number(t->block, TAR_MODE, &mode);
    if (fault == TAR_FAULT_NONE && !t->has_mtime) {
        e->mtime_ns = 0;
        fault = header_number(t->block, TAR_MTIME, &e->mtime);
    }
    if (fault == TAR_FAULT_SIZE)
        fault = TAR_FAULT_NUMBER; /* no size: a time that is out of range */
    if (fault == TAR_FAULT_NONE && e->kind == TAR_FILE && !t->has_size)
        fault = header_size(t->block, &e->size);
    if (fault != TAR_FAULT_NONE)
        return fault;
    if (!t->has_path)
        take_path(t);
    if (!t->has_link)
        take_link(t);
    size_t len = strlen(t->path);
    if (e->kind == TAR_FILE && len > 0 && t->path[len - 1] == '/') {
        if (e->size > 0)
            return TAR_FAULT_SIZE;
        e->kind = TAR_FOLDER; /* as v7 marks them */
    }
    if (e->kind != TAR_FILE)
        e->size = 0; /* whatever is said: nothing follows */
    e->mode = (uint32_t)mode & 07777;
    e->path = t->path;
    e->link = e->kind == TAR_SYMLINK || e->kind == TAR_HARDLINK ? t->link : "";
    t->left = e->size;
    t->padding = tar_padding(e->size);
    t->state = t->left > 0 ? TAR_STATE_DATA : TAR_STATE_ENTRY_END;
    return TAR_FAULT_NONE;
}

static enum tar_fault take_header(struct tar_reader *t)
{
    char type = (char)t->block[TAR_TYPE_AT];

    t->n_block = 0;
    if (memcmp(t->block, tar_zeros, TAR_BLOCK_BYTES) == 0) {
        if (t->pending)
            return TAR_FAULT_TRUNCATED;
        if (t->zeros)
            t->state = TAR_STATE_END;
        t->zeros = true;
        return TAR_FAULT_NONE;
    }
    if (t->zeros)
        return TAR_FAULT_LONE_ZEROS;
    if (!checksum_holds(t->block))
        return TAR_FAULT_CHECKSUM;
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K')
        return extension_begin(t, type);
    return take_entry(t, type);
}

/* Skips padding, then fills the block. Return: whether it is full. */
static bool gather_header(struct tar_reader *t, struct reader *in)
{
    size_t skip = tar_min(t->padding, reader_left(in));

    (void)reader_take(in, skip);
    t->padding -= skip;
    size_t n = tar_min(TAR_BLOCK_BYTES - t->n_block, reader_left(in));
    if (n > 0)
        memcpy(t->block + t->n_block, reader_take(in, n), n);
    t->n_block += n;
    t->offset += skip + n;
    return t->n_block == TAR_BLOCK_BYTES;
}

static enum tar_event take_data(struct tar_reader *t, struct reader *in)
{
    size_t n = tar_min(t->left, reader_left(in));

    if (n == 0)
        return TAR_MORE;
    t->data = reader_over(reader_take(in, n), n);
    t->left -= n;
    t->offset += n;
    if (t->left == 0)
        t->state = TAR_STATE_ENTRY_END;
    return TAR_DATA;
}

/* What extensions said held for one entry; the entry itself can be read until the next call. */
static void end_entry(struct tar_reader *t)
{
    t->state = TAR_STATE_HEADER;
    t->pending = t->has_path = t->has_link = t->has_size = t->has_mtime = false;
}

void tar_reader_init(struct tar_reader *t)
{
    memset(t, 0, sizeof *t);
    t->entry = (struct tar_entry){.path = "", .link = ""};
}

enum tar_event tar_next(struct tar_reader *t, struct reader *in)
{
    enum tar_fault fault = TAR_FAULT_NONE;

    while (fault == TAR_FAULT_NONE) {
        switch (t->state) {
        case TAR_STATE_HEADER:
            if (!gather_header(t, in))
                return TAR_MORE;
            fault = take_header(t);
            if (fault == TAR_FAULT_NONE &&
                (t->state == TAR_STATE_DATA || t->state == TAR_STATE_ENTRY_END))
                return TAR_ENTRY;
            break;
        case TAR_STATE_EXTENSION:
            if (t->left > 0 && reader_left(in) == 0)
                return TAR_MORE;
            fault = extension_feed(t, in);
            break;
        case TAR_STATE_DATA:
            return take_data(t, in);
        case TAR_STATE_ENTRY_END:
            end_entry(t);
            return TAR_ENTRY_END;
        case TAR_STATE_END:
            (void)reader_take(in, reader_left(in));
            return TAR_END;
        case TAR_STATE_BAD:
            return TAR_BAD;
        }
    }
    t->state = TAR_STATE_BAD;
    t->fault = fault;
    return TAR_BAD;
}

enum tar_fault tar_finish(struct tar_reader *t)
{
    bool whole = t->state == TAR_STATE_END || (t->state == TAR_STATE_HEADER && t->n_block == 0 &&
                                               t->padding == 0 && !t->pending && t->offset > 0);

    if (t->state != TAR_STATE_BAD && !whole) {
        t->state = TAR_STATE_BAD;
        t->fault = TAR_FAULT_TRUNCATED;
    }
    return t->fault;
}

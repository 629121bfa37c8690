/* SPDX-License-Identifier: Apache-2.0 */
/* The ClientHello: its records first, then the message that lies in them. */
#include "wire/tls_hello.h"

#include <string.h>

#include "base/guards.h"

enum {
    RECORD_HEADER_BYTES = 5,
    RECORD_BYTES_MAX = 1 << 14,
    MESSAGE_HEADER_BYTES = 4,
    MESSAGE_CLIENT_HELLO = 1,
    VERSION_MAJOR = 3, /* of SSL 3.0 and of every TLS (RFC 8446, D) */
    RANDOM_BYTES = 32,
    SESSION_ID_MAX = 32,
    /* Version, random, an empty session id, one cipher suite, one compression method. */
    BODY_BYTES_MIN = 2 + RANDOM_BYTES + 1 + 2 + 2 + 1 + 1,

    EXTENSION_SERVER_NAME = 0,
    EXTENSION_EARLY_DATA = 42,
    EXTENSION_ENCRYPTED_CLIENT_HELLO = 0xfe0d, /* RFC 9849, 11.1 */
    NAME_HOST = 0,                             /* the only kind that there is (RFC 6066, 3) */
    NAME_KINDS = 256,
    EXTENSIONS = 65536,
};

/* What is known of the records while they are walked through. */
struct walk {
    size_t at;   /* of the record's header */
    size_t have; /* bytes of the message in the records before */
    size_t message_bytes;
    uint8_t head[MESSAGE_HEADER_BYTES]; /* may itself be spread over records */
    size_t n_head;
};

/* The header of a record, as far as it is there. */
static enum tls_hello_state read_record(const uint8_t *data, size_t len, size_t at,
                                        size_t *ret_bytes)
{
    const uint8_t *header = data + at;
    size_t there = len - at;
    enum tls_hello_state other = at == 0 ? TLS_HELLO_NOT_TLS : TLS_HELLO_BAD;

    if (there > 0 && header[0] != TLS_RECORD_HANDSHAKE)
        return other;
    if (there > 1 && header[1] != VERSION_MAJOR)
        return other;
    if (there < RECORD_HEADER_BYTES)
        return TLS_HELLO_MORE;
    size_t bytes = (size_t)header[3] << 8 | header[4];
    if (bytes == 0 || bytes > RECORD_BYTES_MAX)
        return TLS_HELLO_BAD;
    *ret_bytes = bytes;
    return TLS_HELLO_DONE;
}

/* The message's own header, as far as it is in @n more bytes. Return: false if it is no
 * ClientHello, or none that can be. */
static bool read_message_header(struct walk *w, const uint8_t *data, size_t n)
{
    while (n > 0 && w->n_head < MESSAGE_HEADER_BYTES) {
        w->head[w->n_head++] = *data++;
        n--;
    }
    if (w->n_head > 0 && w->head[0] != MESSAGE_CLIENT_HELLO)
        return false;
    if (w->n_head < MESSAGE_HEADER_BYTES)
        return true;
    size_t body = (size_t)w->head[1] << 16 | (size_t)w->head[2] << 8 | w->head[3];
    w->message_bytes = MESSAGE_HEADER_BYTES + body;
    return body >= BODY_BYTES_MIN && w->message_bytes <= TLS_HELLO_BYTES_MAX;
}

/* One record. Return: DONE when it is there whole, with @w behind it. */
static enum tls_hello_state walk_record(struct walk *w, const uint8_t *data, size_t len,
                                        size_t *ret_need)
{
    size_t bytes = 0;
    enum tls_hello_state state = read_record(data, len, w->at, &bytes);

    *ret_need = w->at + RECORD_HEADER_BYTES;
    if (state != TLS_HELLO_DONE)
        return state;
    size_t start = w->at + RECORD_HEADER_BYTES, there = len - start;
    if (start + bytes > TLS_HELLO_BYTES_MAX)
        return TLS_HELLO_BAD;
    if (!read_message_header(w, data + start, there < bytes ? there : bytes))
        return TLS_HELLO_BAD;
    /* Nothing may follow in the message's last record: the client has nothing else to say yet. */
    if (w->n_head == MESSAGE_HEADER_BYTES && w->have + bytes > w->message_bytes)
        return TLS_HELLO_BAD;
    *ret_need = start + bytes;
    if (there < bytes)
        return TLS_HELLO_MORE;
    w->have += bytes;
    w->at = start + bytes;
    return TLS_HELLO_DONE;
}

/* All records of the message. */
static enum tls_hello_state walk_records(struct walk *w, const uint8_t *data, size_t len,
                                         size_t *ret_need)
{
    do {
        /* The rest of the message with one header: known to be too much before it is there. */
        if (w->n_head == MESSAGE_HEADER_BYTES &&
            w->at + RECORD_HEADER_BYTES + (w->message_bytes - w->have) > TLS_HELLO_BYTES_MAX)
            return TLS_HELLO_BAD;
        if (w->at + RECORD_HEADER_BYTES >= TLS_HELLO_BYTES_MAX)
            return TLS_HELLO_BAD;
        enum tls_hello_state state = walk_record(w, data, len, ret_need);
        if (state != TLS_HELLO_DONE)
            return state;
    } while (w->n_head < MESSAGE_HEADER_BYTES || w->have < w->message_bytes);
    return TLS_HELLO_DONE;
}

/*
 * The message without the headers of its records, byte by byte. Sticky, as wire/reader.h is, but
 * that one has no gaps and another byte order. A part is a reader of its own that ends earlier.
 */
struct hello_reader {
    const uint8_t *p; /* the records were checked: there are @left bytes of the message */
    size_t in_record; /* bytes that the record at @p still has */
    size_t left;
    bool bad;
};

static uint8_t take_byte(struct hello_reader *r)
{
    if (r->bad || r->left == 0) {
        r->bad = true;
        return 0;
    }
    if (r->in_record == 0) {
        r->in_record = (size_t)r->p[3] << 8 | r->p[4];
        r->p += RECORD_HEADER_BYTES;
    }
    r->in_record--;
    r->left--;
    return *r->p++;
}

static size_t take_number(struct hello_reader *r, unsigned bytes)
{
    size_t n = 0;

    while (bytes-- > 0)
        n = n << 8 | take_byte(r);
    return n;
}

static void skip(struct hello_reader *r, size_t n)
{
    while (n > 0 && !r->bad) {
        (void)take_byte(r);
        n--;
    }
}

/* The next @n bytes as a reader; @r goes on behind them. */
static struct hello_reader take_part(struct hello_reader *r, size_t n)
{
    struct hello_reader part = *r;

    part.left = n;
    part.bad = r->bad || n > r->left;
    skip(r, n);
    return part;
}

static bool at_end(const struct hello_reader *r)
{
    return !r->bad && r->left == 0;
}

/* Marks @n in a set. Return: false if it was there already. */
static bool first_time(uint8_t *set, size_t n)
{
    uint8_t bit = (uint8_t)(1u << n % 8);
    bool first = !(set[n / 8] & bit);

    set[n / 8] |= bit;
    return first;
}

static bool read_host_name(struct hello_reader r, struct tls_hello *ret)
{
    size_t n = 0;

    if (r.left == 0 || r.left > TLS_SERVER_NAME_MAX)
        return false;
    while (r.left > 0 && !r.bad) {
        ret->name[n] = (char)take_byte(&r);
        if (ret->name[n++] == '\0')
            return false;
    }
    ret->name[n] = '\0';
    ret->named = true;
    return !r.bad;
}

static bool read_server_name(struct hello_reader r, struct tls_hello *ret)
{
    uint8_t seen[NAME_KINDS / 8] = {0};
    struct hello_reader list = take_part(&r, take_number(&r, 2));

    if (!at_end(&r) || at_end(&list))
        return false;
    while (!list.bad && list.left > 0) {
        size_t kind = take_byte(&list);
        /* Every other kind would begin with its length too (RFC 6066, 3). */
        struct hello_reader name = take_part(&list, take_number(&list, 2));

        if (list.bad || !first_time(seen, kind))
            return false;
        if (kind == NAME_HOST && !read_host_name(name, ret))
            return false;
    }
    return at_end(&list);
}

static bool read_extensions(struct hello_reader r, struct tls_hello *ret)
{
    uint8_t seen[EXTENSIONS / 8] = {0};

    while (!r.bad && r.left > 0) {
        size_t kind = take_number(&r, 2);
        struct hello_reader content = take_part(&r, take_number(&r, 2));

        if (r.bad || !first_time(seen, kind))
            return false;
        if (kind == EXTENSION_SERVER_NAME && !read_server_name(content, ret))
            return false;
        ret->encrypted |= kind == EXTENSION_ENCRYPTED_CLIENT_HELLO;
        ret->early_data |= kind == EXTENSION_EARLY_DATA;
    }
    return at_end(&r);
}

static bool read_hello(struct hello_reader r, struct tls_hello *ret)
{
    skip(&r, MESSAGE_HEADER_BYTES);
    if (take_byte(&r) != VERSION_MAJOR)
        return false;
    skip(&r, 1 + RANDOM_BYTES);
    size_t session_id = take_byte(&r);
    skip(&r, session_id);
    size_t suites = take_number(&r, 2);
    skip(&r, suites);
    size_t methods = take_byte(&r);
    skip(&r, methods);
    if (r.bad || session_id > SESSION_ID_MAX || suites == 0 || suites % 2 != 0 || methods == 0)
        return false;
    if (r.left == 0) /* there need be no extensions (RFC 5246, 7.4.1.2) */
        return true;
    struct hello_reader extensions = take_part(&r, take_number(&r, 2));
    return at_end(&r) && read_extensions(extensions, ret);
}

enum tls_hello_state tls_hello_parse(const uint8_t *data, size_t len, struct tls_hello *ret)
{
    struct walk w = {0};
    struct tls_hello hello = {0};
    size_t need = 0;
    enum tls_hello_state state = walk_records(&w, data, len, &need);

    *ret = (struct tls_hello){0};
    if (state == TLS_HELLO_MORE)
        ret->need = need;
    if (state != TLS_HELLO_DONE)
        return state;
    if (!read_hello((struct hello_reader){.p = data, .left = w.message_bytes}, &hello))
        return TLS_HELLO_BAD;
    hello.bytes = w.at;
    *ret = hello;
    return TLS_HELLO_DONE;
}

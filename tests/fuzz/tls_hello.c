/* SPDX-License-Identifier: Apache-2.0 */
/* ClientHellos: more bytes never undo an answer, and what is asked for is bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tls_hello.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* In memory of its own, so that a sanitizer sees one byte too far. */
static enum tls_hello_state parse_exact(const uint8_t *data, size_t len, struct tls_hello *ret)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    enum tls_hello_state state;

    check(exact);
    if (len > 0)
        memcpy(exact, data, len);
    state = tls_hello_parse(exact, len, ret);
    free(exact);
    return state;
}

static void check_one(enum tls_hello_state state, const struct tls_hello *h, size_t len)
{
    if (state == TLS_HELLO_MORE)
        check(h->need > len && h->need <= TLS_HELLO_BYTES_MAX);
    if (state == TLS_HELLO_DONE)
        check(h->bytes > 0 && h->bytes <= len && h->bytes <= TLS_HELLO_BYTES_MAX && h->need == 0);
    else
        check(!h->named && h->bytes == 0);
    check(h->named == (h->name[0] != '\0') && strlen(h->name) <= TLS_SERVER_NAME_MAX);
}

static bool same(const struct tls_hello *a, const struct tls_hello *b)
{
    return a->named == b->named && strcmp(a->name, b->name) == 0 && a->encrypted == b->encrypted &&
           a->early_data == b->early_data && a->bytes == b->bytes && a->need == b->need;
}

/* A name that was found stands in the input, but for headers of records between its bytes. */
static void check_name(const struct tls_hello *h, const uint8_t *data)
{
    size_t found = 0;

    for (size_t i = 0; i < h->bytes && h->name[found]; i++)
        found += data[i] == (uint8_t)h->name[found];
    check(h->name[found] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tls_hello whole, h;
    enum tls_hello_state last = parse_exact(data, size, &whole), state;
    size_t step = size > 4096 ? size / 512 : 1;

    check_one(last, &whole, size);
    for (size_t len = 0; len < size; len += step) {
        state = parse_exact(data, len, &h);
        check_one(state, &h, len);
        if (state != TLS_HELLO_MORE) {
            check(state == last && same(&h, &whole));
            break;
        }
        if (h.need <= size && len < h.need - 1 && step == 1 && size > 512)
            len = h.need - 2; /* then the byte that it lacks, and the one that makes it whole */
    }
    if (last != TLS_HELLO_DONE)
        return 0;
    check_name(&whole, data);
    /* the bytes that it takes are enough, and one less is not */
    check(parse_exact(data, whole.bytes, &h) == TLS_HELLO_DONE);
    check(same(&h, &whole));
    check(parse_exact(data, whole.bytes - 1, &h) == TLS_HELLO_MORE && h.need == whole.bytes);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in place: accepted and refused as another reader does, and walks that stay within the text.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "wire/json_scan.h"
#include "wire/rpc.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool is_within(struct json_span part, struct json_span whole)
{
    return part.kind != JSON_SPAN_NONE && part.len > 0 && part.at >= whole.at &&
           (size_t)(part.at - whole.at) <= whole.len &&
           part.len <= whole.len - (size_t)(part.at - whole.at);
}

/* What was found in a judged text is the same value when it is judged alone. */
static void check_part(struct json_span part, struct json_span whole)
{
    struct json_span again;

    check(is_within(part, whole));
    check(json_scan(part.at, part.len, &again) == 0);
    check(again.at == part.at && json_span_equal(again, part));
}

/* Return: whether each escaped surrogate in @v is half of a pair. */
static bool check_string(struct json_span v)
{
    char *text = NULL;
    size_t len = 0;
    int r = json_span_text(v, &text, &len);

    check(r == 0 || r == -EINVAL);
    if (r == 0) {
        check(len <= v.len - 2 && text[len] == '\0' && text_is_utf8(text, len));
        if (!memchr(v.at, '\\', v.len) && !memchr(v.at, '\0', v.len))
            check(len == v.len - 2 && json_span_is(v, text));
    }
    free(text);
    return r == 0;
}

static void check_number(struct json_span v)
{
    long long n;

    if (json_span_integer(v, &n) == 0)
        check(json_span_is_integer(v) && (v.at[0] == '-' ? n <= 0 : n >= 0));
    else if (json_span_is_integer(v))
        check(v.len >= sizeof "9223372036854775807" - 1);
}

/* All below one value, to a few levels: the walk of each level reads the whole of it again. */
static void check_value(struct json_span v, int levels)
{
    struct json_span part, name;
    const char *at = NULL;
    size_t n = 0;

    if (v.kind == JSON_SPAN_STRING)
        (void)check_string(v);
    check_number(v);
    for (; json_span_next(v, &at, &part); n++) {
        check(v.kind == JSON_SPAN_ARRAY && is_within(part, v));
        if (n < 100)
            check_part(part, v);
        if (levels > 0 && n < 100)
            check_value(part, levels - 1);
    }
    at = NULL;
    for (; json_span_next_member(v, &at, &name, &part); n++) {
        check(v.kind == JSON_SPAN_OBJECT && name.kind == JSON_SPAN_STRING && is_within(name, v) &&
              is_within(part, v) && name.at + name.len < part.at);
        if (n < 100)
            check_part(part, v);
        if (levels > 0 && n < 100)
            check_value(part, levels - 1);
    }
    if (v.kind == JSON_SPAN_OBJECT && n > JSON_MEMBERS_MAX)
        check(!json_span_unique(v));
}

/* Every member of the outermost object is found by its name, and two of one name are seen. */
static void check_members(struct json_span object)
{
    struct json_span name, value, first;
    const char *at = NULL;
    bool twice = false;
    size_t n = 0;

    while (n < 100 && json_span_next_member(object, &at, &name, &value)) {
        char *key = strndup(name.at + 1, name.len - 2); /* as it is written; no NUL is in there */

        check(key != NULL);
        first = json_span_member(object, key);
        check(first.kind != JSON_SPAN_NONE && first.at <= value.at);
        twice = twice || first.at != value.at;
        free(key);
        n++;
    }
    if (twice)
        check(!json_span_unique(object));
    else if (n < 100)
        check(json_span_unique(object));
}

static void check_message(struct json_span value)
{
    struct rpc_message m;
    const char *problem = NULL;
    int r = rpc_read(value, &m, &problem);

    check((r == 0) == (problem == NULL));
    check(r == 0 || r == RPC_INVALID_REQUEST || r == RPC_INVALID_PARAMS);
    if (m.id.kind != JSON_SPAN_NONE) {
        check_part(m.id, value);
        check(m.id.len <= RPC_ID_BYTES_MAX && value.kind == JSON_SPAN_OBJECT);
        check(m.id.kind == JSON_SPAN_STRING || json_span_is_integer(m.id));
    }
    if (r < 0)
        return;
    check((m.kind == RPC_REQUEST) == (m.id.kind != JSON_SPAN_NONE));
    check((m.kind == RPC_RESPONSE) == (m.method[0] == '\0'));
    check(memchr(m.method, '\0', sizeof m.method) && text_is_utf8(m.method, strlen(m.method)));
    check(m.params.kind == JSON_SPAN_NONE || m.params.kind == JSON_SPAN_OBJECT);
    if (m.params.kind == JSON_SPAN_OBJECT)
        check_part(m.params, value);
}

/* Another reader knows the same texts, but for what only one of the two looks at. */
static void check_other_reader(const char *text, size_t size, int r)
{
    json_error_t error;
    json_t *theirs = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

    if (theirs) /* it goes deeper, and may take a NUL as the end */
        check(r == 0 || r == -E2BIG || memchr(text, '\0', size));
    else if (r == 0 && json_error_code(&error) != json_error_numeric_overflow)
        check(memmem(text, size, "\\u", 2) != NULL); /* a surrogate, whose pair it wants */
    json_decref(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size > 0 ? (const char *)data : "";
    struct json_span whole = {.kind = JSON_SPAN_NONE, .at = text, .len = size};
    struct json_span v = {.kind = JSON_SPAN_NONE};
    int r = json_scan(text, size, &v);

    check_other_reader(text, size, r);
    if (r < 0) {
        check((r == -EINVAL || r == -E2BIG) && v.kind == JSON_SPAN_NONE);
        return 0;
    }
    check(text_is_utf8(text, size) && !memchr(text, '\0', size));
    check_part(v, whole);
    check_value(v, 3);
    check_members(v);
    check_message(v);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to `resolve` and its answers: what is read can be written again, as the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/resolve.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_question(const uint8_t *data, size_t size)
{
    char name[RESOLVE_NAME_MAX + 1];
    uint8_t buf[RESOLVE_PACKET_MAX];
    uint32_t id;

    if (resolve_question_parse(data, size, &id, name) < 0)
        return;
    check(strlen(name) == size - 5); /* no zero byte in it */
    for (const char *p = name; *p; p++)
        check(*p > ' ' && *p < 0x7f && !(*p >= 'A' && *p <= 'Z'));
    check(resolve_question_encode(id, name, buf, sizeof buf) == size);
    check(memcmp(buf, data, size) == 0);
}

static void check_answer(const uint8_t *data, size_t size)
{
    struct resolve_answer x;
    uint8_t buf[RESOLVE_PACKET_MAX];

    if (resolve_answer_parse(data, size, &x) < 0)
        return;
    check(x.n <= RESOLVE_ADDRESSES_MAX && (x.n > 0) == (x.status == RESOLVE_FOUND));
    for (size_t i = 0; i < x.n; i++)
        check(x.addresses[i].family == 4 || x.addresses[i].family == 6);
    check(resolve_answer_encode(&x, buf, sizeof buf) == size);
    check(memcmp(buf, data, size) == 0);
    if (size > 0) {
        check(resolve_answer_parse(data, size - 1, &x) < 0);
        check(resolve_answer_encode(&x, buf, size - 1) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_question(data, size);
    check_answer(data, size);
    return 0;
}

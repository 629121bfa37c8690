/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A destination as people write it: a URL, HOST:PORT, ADDR:PORT. Whatever is taken names one host
 * in one reading: nothing of it could be a user name or an escape, and the same destination written
 * in its plain form is the same; what is refused says how to write it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "core/policy.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* HOST:PORT, ADDR:PORT or [V6]:PORT. */
static void plain_form(const struct policy_destination *to, char *buf, size_t size)
{
    char text[ADDRESS_TEXT_BYTES];

    if (to->by_name) {
        (void)snprintf(buf, size, "%s:%u", to->name.text, to->port);
        return;
    }
    address_format(&to->address, text);
    (void)snprintf(buf, size, to->address.family == ADDRESS_V6 ? "[%s]:%u" : "%s:%u", text,
                   to->port);
}

static void check_taken(const char *text, size_t n, const struct policy_destination *to)
{
    char plain[HOST_NAME_BYTES_MAX + 64];
    struct policy_destination again;
    struct error err = ERROR_INIT;
    const char *scheme = memmem(text, n, "://", 3), *host = scheme ? scheme + 3 : text;
    size_t authority = strcspn(host, "/?#");

    check(strlen(text) == n && to->port != 0);
    check(!memchr(host, '@', authority) && !memchr(host, '%', authority) &&
          !memchr(host, '\\', authority));
    if (to->by_name)
        check(strncasecmp(host, to->name.text, strlen(to->name.text)) == 0);
    plain_form(to, plain, sizeof plain);
    check(policy_destination_parse(plain, strlen(plain), &again, &err) == 0);
    check(again.by_name == to->by_name && again.port == to->port);
    check(to->by_name ? strcmp(again.name.text, to->name.text) == 0
                      : address_equal(&again.address, &to->address));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = malloc(size + 1);
    struct policy_destination to;
    struct error err = ERROR_INIT;

    check(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0'; /* the parser is told the length, and must not need this */
    if (policy_destination_parse(text, size, &to, &err) == 0)
        check_taken(text, size, &to);
    else
        check(err.code != 0 && err.cls == ERROR_USAGE && err.message[0] && err.remedy[0]);
    return 0;
}

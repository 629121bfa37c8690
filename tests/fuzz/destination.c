/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of an export. Whatever is taken is a path that can be written as a URL again and is the
 * same then; whatever is refused is refused with a remedy and without the user part of the URL.
 */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/destination.h"
#include "base/guards.h"

enum { USER_BYTES_MIN = 40 }; /* more than an error may have in common with it by chance */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_taken(const struct destination *d)
{
    char url[sizeof "file://localhost" + 3 * PATH_MAX + 8];
    struct destination again = {0}, inner = {0};
    struct error err = ERROR_INIT;
    size_t n = (size_t)snprintf(url, sizeof url, "file://localhost");

    check(path_is_plain_absolute(d->path) && strcmp(d->path, "/") != 0);
    check(strcmp(strrchr(d->path, '/') + 1, d->name) == 0);
    check(strlen(d->name) + 21 <= NAME_MAX && strlen(d->path) + 21 < PATH_MAX);
    for (const char *p = d->path; *p; p++)
        n += (size_t)snprintf(url + n, sizeof url - n, "%%%02X", (unsigned char)*p);
    /* The first '/' is where the path begins; "%2F" there would be a host's name. */
    memmove(url + 17, url + 19, strlen(url + 19) + 1);
    url[16] = '/';
    check(destination_parse(url, &again, &err) == 0 && strcmp(again.path, d->path) == 0);
    check(destination_clash(d, &again) && destination_clash(&again, d));
    n = strlen(url);
    (void)snprintf(url + n, sizeof url - n, "/x");
    if (destination_parse(url, &inner, &err) == 0)
        check(destination_clash(d, &inner) && destination_clash(&inner, d));
    destination_done(&inner);
    destination_done(&again);
}

static void check_refused(const char *url, const struct error *err)
{
    const char *host = strstr(url, "//"), *at = host ? strchr(host, '@') : NULL;

    check(err->code != 0 && err->cls == ERROR_USAGE && err->message[0] && err->remedy[0]);
    if (!at || at - host - 2 < USER_BYTES_MIN || memchr(host + 2, '/', (size_t)(at - host - 2)))
        return;
    _cleanup_free_ char *user = strndup(host + 2, USER_BYTES_MIN);
    check(user && !strstr(err->message, user));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *url = malloc(size + 1);
    struct destination d = {0};
    struct error err = ERROR_INIT;

    check(url != NULL);
    if (size > 0)
        memcpy(url, data, size);
    url[size] = '\0';
    if (destination_parse(url, &d, &err) == 0)
        check_taken(&d);
    else
        check_refused(url, &err);
    destination_done(&d);
    return 0;
}

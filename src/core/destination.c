/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of an export: judged, and made a path. */
#include "core/destination.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"
#include "base/guards.h"

enum {
    STAGING_SUFFIX_BYTES = 21, /* ".<12 hexadecimal digits>.partial", export/staging.h */
    SHOWN_BYTES = 128,
};
static_assert(NAME_MAX - STAGING_SUFFIX_BYTES == 234, "what a sentence says");
static_assert(PATH_MAX - 1 - STAGING_SUFFIX_BYTES == 4074, "what a sentence says");

static const char remedy_path[] = "Write file:///FOLDER/NAME";

static int refuse(struct error *err, const char *what, const char *remedy)
{
    (void)error_set(err, ERROR_USAGE, EINVAL, "%s", what);
    return error_remedy(err, "%s", remedy);
}

/* Refuses @path, of which it shows the beginning. */
static int refuse_path(struct error *err, const char *path, const char *what, const char *remedy)
{
    char shown[SHOWN_BYTES];

    if (snprintf(shown, sizeof shown, "%s", path) >= (int)sizeof shown)
        memcpy(shown + sizeof shown - 4, "...", 4);
    text_make_printable(shown);
    (void)error_set(err, ERROR_USAGE, EINVAL, "the destination '%s' %s", shown, what);
    return error_remedy(err, "%s", remedy);
}

/* Length of the scheme at the beginning of @url (RFC 3986, section 3.1), or 0. */
static size_t scheme_length(const char *url)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strspn(url, letters);

    if (n > 0)
        n += strspn(url + n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return n > 0 && url[n] == ':' ? n : 0;
}

static int other_scheme(const char *url, size_t n, struct error *err)
{
    if (n == 0)
        return refuse(err, "the destination is no URL", remedy_path);
    (void)error_set(err, ERROR_USAGE, EINVAL,
                    "destinations with the scheme '%.*s' are not supported, only file",
                    (int)(n < 32 ? n : 32), url);
    return error_remedy(err, "Export to file:///FOLDER/NAME and copy it on from there");
}

/* Return: the path in @url as it is written; NULL with @err set. */
static const char *find_path(const char *url, struct error *err)
{
    static const char local[] = "localhost";
    size_t n = scheme_length(url);

    if (n != 4 || strncasecmp(url, "file", 4) != 0) {
        (void)other_scheme(url, n, err);
        return NULL;
    }
    const char *host = url + 5;
    if (strncmp(host, "//", 2) != 0) {
        (void)refuse(err, "the destination's path does not stand behind \"file://\"", remedy_path);
        return NULL;
    }
    host += 2;
    n = strcspn(host, "/?#");
    if (host[n] == '/' && (n == 0 || (n == strlen(local) && strncasecmp(host, local, n) == 0)))
        return host + n;
    if (n > 0 && host[n] == '/') /* it is not shown: it may hold a user's password */
        (void)refuse(err, "the destination's URL names another host", remedy_path);
    else
        (void)refuse(err, "the destination's URL has no absolute path", remedy_path);
    return NULL;
}

/* Writes what @text stands for to @ret, which has room for as much as @text takes; several '/' in
 * a row become one. */
static int decode(const char *text, char *ret, struct error *err)
{
    size_t n = 0;

    for (const char *p = text; *p; p++) {
        char c = *p;

        if (c == '?' || c == '#')
            return refuse_path(err, text, "has a '?' or '#', which no path of a URL contains",
                               "Write %3F for '?', and %23 for '#'");
        if (c == '%') {
            int high = parse_hex_digit(p[1]), low = high < 0 ? -1 : parse_hex_digit(p[2]);

            if (low < 0)
                return refuse_path(err, text, "has a '%' without two hexadecimal digits behind it",
                                   "Write %25 for '%'");
            c = (char)(high * 16 + low);
            p += 2;
        }
        if (c == '\0')
            return refuse_path(err, text, "has a NUL, which no path contains", "Leave out the %00");
        if (c != '/' || n == 0 || ret[n - 1] != '/')
            ret[n++] = c;
    }
    ret[n] = '\0';
    return 0;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static int judge(const char *path, struct error *err)
{
    const char *name = strrchr(path, '/') + 1;

    if (*name == '\0')
        return refuse_path(err, path, "ends with a '/': it names no file",
                           "Put the name of the file or folder that is to be made at its end");
    if (!path_is_plain_absolute(path))
        return refuse_path(err, path, "has a part that is \".\" or \"..\"",
                           "Write the path that it leads to");
    if (ends_with(name, ".partial"))
        return refuse_path(err, path, "ends in \".partial\", as what is not whole yet does",
                           "Use another name");
    if (strlen(name) + STAGING_SUFFIX_BYTES > NAME_MAX)
        return refuse_path(err, path, "has a last part of more than 234 bytes",
                           "Use a shorter name");
    if (strlen(path) + STAGING_SUFFIX_BYTES >= PATH_MAX)
        return refuse_path(err, path, "is longer than 4074 bytes", "Use a shorter path");
    return 0;
}

int destination_parse(const char *url, struct destination *ret, struct error *err)
{
    const char *text = find_path(url, err);

    if (!text)
        return -EINVAL;
    _cleanup_free_ char *path = malloc(strlen(text) + 1);
    if (!path)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    int r = decode(text, path, err);
    if (r == 0)
        r = judge(path, err);
    if (r < 0)
        return r;
    const char *name = strrchr(path, '/') + 1;
    memcpy(ret->name, name, strlen(name) + 1);
    ret->path = TAKE_PTR(path);
    return 0;
}

void destination_done(struct destination *d)
{
    free(d->path);
    *d = (struct destination){0};
}

/* Placeholders */

const struct destination_values destination_samples = {
    .id = "sb-00000000000000000000000000", /* base32 has no 0 */
    .time = "00000000T000000Z",
};

void destination_time(uint64_t epoch_us, char ret[static DESTINATION_TIME_BYTES])
{
    time_t seconds = (time_t)(epoch_us / 1000000);
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) ||
        strftime(ret, DESTINATION_TIME_BYTES, "%Y%m%dT%H%M%SZ", &tm) == 0)
        memcpy(ret, destination_samples.time, DESTINATION_TIME_BYTES);
}

/* The '%' of an encoded byte is to be one of the name, and so it is encoded too. */
static void put_id(FILE *f, const char *id)
{
    static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~.";

    for (const char *p = id; *p; p++)
        if (strchr(kept, *p) && !(*p == '.' && p == id))
            (void)putc(*p, f);
        else
            (void)fprintf(f, "%%25%02X", (unsigned)(unsigned char)*p);
}

/* Return: the bytes of the placeholder at @text, written to @f; or -errno with @err set. */
static int put_value(FILE *f, const char *text, const struct destination_values *values,
                     struct error *err)
{
    static const char id[] = "{id}", time[] = "{time}";
    static const char remedy[] = "Write {id} or {time}, or %7B and %7D for the braces themselves";

    if (strncmp(text, time, strlen(time)) == 0) {
        (void)fputs(values->time, f);
        return (int)strlen(time);
    }
    if (strncmp(text, id, strlen(id)) == 0) {
        if (!values->id || values->id[0] == '\0')
            return error_set(err, ERROR_TERMINAL, ENODATA,
                             "the destination has an {id} in it, and the sandbox's is not known");
        put_id(f, values->id);
        return (int)strlen(id);
    }
    if (*text == '}')
        return refuse(err, "the destination has a '}' that ends no placeholder", remedy);
    if (!strchr(text, '}'))
        return refuse(err, "the destination has a '{' without a '}' behind it", remedy);
    return refuse(err, "the destination has a placeholder that is neither {id} nor {time}", remedy);
}

int destination_fill(const char *url, const struct destination_values *values, char **ret,
                     struct error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    int r = 0;

    for (const char *p = url; f && *p; p += r) {
        r = (int)strcspn(p, "{}");
        if (r > 0)
            (void)fwrite(p, 1, (size_t)r, f);
        else
            r = put_value(f, p, values, err);
        if (r < 0)
            break;
    }
    if (!f || fclose(f) != 0)
        return r < 0 ? r : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (r < 0)
        return r;
    *ret = TAKE_PTR(text);
    return 0;
}

bool destination_clash(const struct destination *a, const struct destination *b)
{
    return path_is_within(a->path, b->path) || path_is_within(b->path, a->path);
}

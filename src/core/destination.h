/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an export goes: a URL, judged before a run costs anything. Of the schemes, file:// is the
 * one that is carried out here.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A local destination. Zeroed: none. */
struct destination {
    char *path;              /* absolute, without "." and "..", no "/" at its end; owned */
    char name[NAME_MAX + 1]; /* its last part */
};

/**
 * destination_parse() - a file:// URL (RFC 8089)
 * @url: file:///PATH or file://localhost/PATH; %XX stands for a byte (RFC 3986, section 2.1), and
 *       everything else for itself, so that a plain path may be written behind file://
 *
 * Refused (usage), each with its remedy: another scheme or host, a relative or empty path, a "/" at
 * its end, a part "." or "..", a NUL, a '%' without two hexadecimal digits, '?' and '#' (which a
 * URL gives another meaning; %3F and %23 name them), a name that ends in ".partial", and a name so
 * long that a staging name (export/staging.h) would not fit. Reads nothing of the host. Return: 0
 * with @ret owned by the caller (destination_done()); -EINVAL or -ENOMEM with @err set, which never
 * shows a user part of the URL.
 */
int destination_parse(const char *url, struct destination *ret, struct error *err);
void destination_done(struct destination *d);

/**
 * destination_clash() - whether two are the same, or one lies beneath the other
 *
 * By their paths alone; staging_clash() looks at what the host makes of them.
 */
bool destination_clash(const struct destination *a, const struct destination *b);

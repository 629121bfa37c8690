/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an export goes: a URL, judged before a run costs anything. Of the schemes, file:// is the
 * one that is carried out here.
 *
 * A URL may hold placeholders, for places that differ from run to run: {id} is the sandbox's id,
 * {time} when it is published. They are filled before anything else is made of a URL.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

enum { DESTINATION_TIME_BYTES = sizeof "20261130T065347Z" };

/* What stands in the place of placeholders. */
struct destination_values {
    const char *id; /* of the sandbox, without its backend; NULL: none is known */
    char time[DESTINATION_TIME_BYTES];
};

/* In the places of values that are not known yet: no sandbox is called so, and no time is this. */
extern const struct destination_values destination_samples;

/** destination_time() - @epoch_us as UTC in the basic form of ISO 8601: "20261130T065347Z" */
void destination_time(uint64_t epoch_us, char ret[static DESTINATION_TIME_BYTES]);

/**
 * destination_fill() - a URL without placeholders
 * @url: any scheme
 *
 * An id becomes a part of one name: what is no letter, digit, '-', '_', '~' or inner '.' in it is
 * percent-encoded in the name itself, so that no id leads to another folder. Refused (usage): a
 * brace that belongs to neither {id} nor {time}; %7B and %7D name braces. Return: 0 with *@ret
 * owned by the caller; -EINVAL or -ENOMEM with @err set, which shows nothing of the URL; -ENODATA
 * (terminal) when there is an {id} and no id.
 */
int destination_fill(const char *url, const struct destination_values *values, char **ret,
                     struct error *err);

/**
 * destination_clash() - whether two are the same, or one lies beneath the other
 *
 * By their paths alone; staging_clash() looks at what the host makes of them.
 */
bool destination_clash(const struct destination *a, const struct destination *b);

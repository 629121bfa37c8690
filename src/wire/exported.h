/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXPORTED: what a client tells the keeper of an entry that it has published, or could not. Encoder
 * and decoder as in wire/control.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

struct exported_report {
    const char *path, *url; /* never NULL */
    uint64_t bytes;
    const char *digest;  /* "sha256:HEX"; NULL: a folder, or it failed */
    const char *message; /* why it failed, one sentence; NULL: it was published */
};

enum { EXPORTED_TEXT_MAX = 4096 }; /* of each text, with its NUL */

/** exported_report_encode() - longer texts are cut */
void exported_report_encode(struct writer *w, const struct exported_report *x);

/** exported_report_size() - bytes that exported_report_encode() needs */
size_t exported_report_size(const struct exported_report *x);

/** exported_report_decode() - 0 with views, or -EPROTO: also when a text is longer */
int exported_report_decode(struct reader message, struct exported_report *ret);

/**
 * exported_url(), exported_text() - a URL, or a text with URLs, without what lets somebody in
 *
 * What stands in front of the last '@' of an authority goes with that (RFC 3986, 3.2.1); of a
 * query, which may be a signature, "?***" is left. A URL in a text ends at a space or a quote.
 * Return: owned by the caller, or NULL without memory.
 */
char *exported_url(const char *url);
char *exported_text(const char *text);

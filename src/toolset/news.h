/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command has written and nobody has been told yet: masked, of both streams in the order in
 * which it came, and only the last of it, so that memory is bounded whatever a command writes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/mask.h"

struct news;

/**
 * news_new() - nothing yet
 * @m:   borrowed until news_free()
 * @max: bytes that are kept
 *
 * Return: NULL without memory.
 */
struct news *news_new(const struct mask *m, size_t max);
void news_free(struct news *n);

/**
 * news_feed() - what came of a stream
 * @stream: 1 or 2; a secret is recognised within one stream, also across pieces
 *
 * What could be the beginning of a secret is held back until more comes. Return: 0 or -ENOMEM.
 */
int news_feed(struct news *n, int stream, const void *bytes, size_t len);

/** news_end() - nothing more will come: what was held back counts too. 0 or -ENOMEM */
int news_end(struct news *n);

/** news_waiting() - bytes that could be taken now */
size_t news_waiting(const struct news *n);

/**
 * news_take() - what there is, which is old from now on
 * @ret: UTF-8, NUL-terminated behind *@ret_len; owned by the caller; never NULL
 * @ret_dropped: bytes that came in front of it and were not kept
 *
 * A character of which only the beginning has come stays for the next time, unless the end was
 * told. Return: 0 or -ENOMEM.
 */
int news_take(struct news *n, char **ret, size_t *ret_len, uint64_t *ret_dropped);

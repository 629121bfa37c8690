/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines that HTTP/1.1 is made of (RFC 9112, 2.2 and 5), for http_head.c: where one ends, what
 * may be in it, and which of the few fields that change a request's meaning it is.
 *
 * Pure code: no call blocks or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the input; a view. */
struct http_text {
    const char *at;
    size_t n;
};

/* Fields by which others are judged. */
enum http_field {
    HTTP_FIELD_OTHER,
    HTTP_FIELD_HOST,
    HTTP_FIELD_CONTENT_LENGTH,
    HTTP_FIELD_TRANSFER_ENCODING,
    HTTP_FIELD_CONNECTION,
    HTTP_FIELD_UPGRADE,
    HTTP_FIELD__MAX,
};

/** http_line_bytes() - the bytes of the line at @data + @at with its LF, or 0: it is not there */
size_t http_line_bytes(const uint8_t *data, size_t len, size_t at);

/**
 * http_line_text() - the line of @bytes without its CR LF
 *
 * Return: false if there is no CR, or a byte of control other than a tab in it: so there is neither
 * a CR nor an LF alone, which some servers take for a line's end.
 */
bool http_line_text(const uint8_t *line, size_t bytes, struct http_text *ret);

/**
 * http_line_field() - NAME: VALUE
 * @ret_value: without blanks around it
 *
 * Return: false if it is no field; also if its name would be one of enum http_field with '-' in the
 * place of '_', as programs behind many servers read it (RFC 3875, 4.1.18).
 */
bool http_line_field(struct http_text line, enum http_field *ret, struct http_text *ret_value);

/** http_field_find() - which field a name is; false as above */
bool http_field_find(struct http_text name, enum http_field *ret);

/** http_char_is_token() - tchar of RFC 9110, 5.6.2 */
bool http_char_is_token(char c);

bool http_text_is_token(struct http_text t);

/** http_text_is() - whether it is @word, in whatever case */
bool http_text_is(struct http_text t, const char *word);

/** http_text_cut() - the part before the first @c, or all; @t is left with what is behind it */
struct http_text http_text_cut(struct http_text *t, char c);

struct http_text http_text_trimmed(struct http_text t);

/**
 * http_text_decimal() - plain digits, at most 18, in one spelling: leading zeros are octal to some
 *
 * Return: false if it is anything else.
 */
bool http_text_decimal(struct http_text t, uint64_t *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text (RFC 8259) that is judged as a whole and then looked at in place, without a tree being
 * made of it: a message of many megabytes costs no copy, and what is passed on or echoed (ids,
 * arguments) stays the bytes that came.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum json_kind {
    JSON_SPAN_NONE, /* absent */
    JSON_SPAN_OBJECT,
    JSON_SPAN_ARRAY,
    JSON_SPAN_STRING,
    JSON_SPAN_NUMBER,
    JSON_SPAN_TRUE,
    JSON_SPAN_FALSE,
    JSON_SPAN_NULL,
};

/* One value within a text; a view. Blanks around it do not belong to it. */
struct json_span {
    enum json_kind kind;
    const char *at;
    size_t len;
};

/* Levels of objects and arrays; members of an object that is looked through for two of one name. */
enum { JSON_DEPTH_MAX = 512, JSON_MEMBERS_MAX = 256 };

/**
 * json_scan() - whether @text is one JSON value
 * @ret: the value
 *
 * Strict: UTF-8 without a byte order mark, no control characters within strings, escapes and
 * numbers as the grammar has them, blanks alone around the value. Escaped surrogates need not be
 * pairs here. Two members of one name are judged by json_span_unique(). Takes no stack or memory by
 * depth. Return: 0; -EINVAL; -E2BIG when it is nested deeper than JSON_DEPTH_MAX, whatever stands
 * behind that.
 */
int json_scan(const char *text, size_t len, struct json_span *ret);

/**
 * json_span_member() - a member of an object
 * @object: of a text that json_scan() has judged
 * @key:    no character of it needs an escape; a key of @object that has escapes is another one
 *
 * Return: the first of that name; kind JSON_SPAN_NONE when there is none, or @object is none.
 */
struct json_span json_span_member(struct json_span object, const char *key);

/**
 * json_span_unique() - whether no two members of @object itself have the same bytes as name
 *
 * An object of more than JSON_MEMBERS_MAX members is not looked through: false, as if there were
 * two. What is no object has no members: true.
 */
bool json_span_unique(struct json_span object);

/**
 * json_span_next() - the elements of an array, one after another
 * @at: zeroed before the first
 *
 * Return: whether there was one, in @ret.
 */
bool json_span_next(struct json_span array, const char **at, struct json_span *ret);

/** json_span_next_member() - the same of an object: its members, each a string and a value */
bool json_span_next_member(struct json_span object, const char **at, struct json_span *ret_name,
                           struct json_span *ret);

/**
 * json_span_text() - a string without its escapes
 *
 * Return: 0 with *@ret owned by the caller, NUL-terminated behind *@ret_len; -EINVAL when it is no
 * string or an escaped surrogate has no pair; -ENOMEM.
 */
int json_span_text(struct json_span string, char **ret, size_t *ret_len);

/** json_span_is() - whether it is a string that says @text, which needs no escape */
bool json_span_is(struct json_span string, const char *text);

/** json_span_equal() - whether both are the same bytes; two that are absent are */
bool json_span_equal(struct json_span a, struct json_span b);

/** json_span_is_integer() - whether it is a number without fraction and exponent, of any size */
bool json_span_is_integer(struct json_span number);

/** json_span_integer() - a number without fraction and exponent that fits; 0 or -EINVAL */
int json_span_integer(struct json_span number, long long *ret);

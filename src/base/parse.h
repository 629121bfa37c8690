/* SPDX-License-Identifier: Apache-2.0 */
/* Strict scalars: the whole string, a range given by the caller, no sign and no blanks. */
#pragma once

#include <stdint.h>

/**
 * parse_u64() - decimal digits to a number
 *
 * Return: 0; -EINVAL if @s is not digits alone; -ERANGE if outside @min..@max.
 */
int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

/**
 * parse_size() - "512M" to bytes; K, M, G, T are powers of 1024, B is bytes, lower case and a
 *                trailing "iB" or "B" are accepted
 *
 * The unit is mandatory: the field disagrees on whether a bare number means bytes or MiB.
 * Return: 0; -EINVAL (also without a unit); -ERANGE if outside @min..@max.
 */
int parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_bytes);

/**
 * parse_duration() - "90", "90s", "1500ms", "5m", "1h" to microseconds; a bare number is seconds
 *
 * One decimal fraction is accepted ("0.5s"). Return: 0; -EINVAL; -ERANGE if outside @min..@max.
 */
int parse_duration(const char *s, uint64_t min_us, uint64_t max_us, uint64_t *ret_us);

/** parse_hex_digit() - the value of a hexadecimal digit, in either case; -1: it is none */
int parse_hex_digit(char c);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong with a file inside a sandbox, as a sentence: who works with files there gets an
 * errno and a path (wire/files.h), and whoever reads the outcome wants to know what to do.
 */
#pragma once

#include "base/error.h"
#include "wire/files.h"

/**
 * file_error() - a fault of a file operation as an error
 * @fault: its path may hold any bytes; what could drive a terminal is replaced
 * @ret:   must hold no error yet
 *
 * Another path or other arguments may help with nearly all of them (recoverable). What is larger
 * than was allowed for, and what has no end, is too large; terminal is only what no path of this
 * sandbox gets around. Return: -fault->code.
 */
int file_error(const struct file_fault *fault, struct error *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong with a person's file on the host, as a sentence with a remedy. */
#pragma once

#include "base/error.h"

/**
 * host_error() - a failed call on a file or folder of the host, as "WHAT: WHY"
 * @code: errno value, positive; EBADMSG: a comparison failed
 * @fmt:  WHAT, as "'/data/report.csv' cannot be written"; bytes that could drive a terminal are
 *        replaced
 *
 * Recoverable, since another place may do; terminal if no place would. Return: -@code.
 */
__attribute__((format(printf, 3, 4))) int host_error(struct error *err, int code, const char *fmt,
                                                     ...);

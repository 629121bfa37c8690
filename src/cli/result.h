/* SPDX-License-Identifier: Apache-2.0 */
/* `--result`: how a run ended, as one JSON object in a file or an open descriptor. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/run.h"

struct result_file {
    int fd;          /* owned unless borrowed; -EBADF: no result was asked for */
    bool borrowed;   /* a descriptor that the caller gave by its number */
    json_t *exports; /* what was published, for the member of that name; owned; NULL: none */
};

#define RESULT_FILE_INIT                                                                           \
    {                                                                                              \
        .fd = -EBADF                                                                               \
    }

/**
 * result_open() - open before anything runs, so that a wrong path costs nothing
 * @where: a path, or the number of an open descriptor
 */
int result_open(struct result_file *f, const char *where, struct error *err);

/** result_write() - the result of a run that took place; 0 or a negative errno with an error */
int result_write(const struct result_file *f, const struct run_result *result, struct error *err);

/** result_write_error() - why no run took place; 0 or a negative errno */
int result_write_error(const struct result_file *f, const struct error *why);

/** result_close() - harmless when none was opened */
void result_close(struct result_file *f);

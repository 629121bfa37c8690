/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines with an object and a sink. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

void log_to_stderr(void *arg, enum log_level level, const char *line)
{
    char out[1100];
    int n = snprintf(out, sizeof out, "atoll: %s\n", line);

    (void)arg;
    (void)level;
    if (n >= (int)sizeof out) {
        n = (int)sizeof out;
        out[n - 1] = '\n';
    }
    ssize_t written = write(STDERR_FILENO, out, (size_t)n);
    (void)written; /* nowhere left to say so */
}

int log_level_parse(const char *name, enum log_level *ret)
{
    static const char *const names[] = {
        [LOG_LEVEL_ERROR] = "error",
        [LOG_LEVEL_WARNING] = "warning",
        [LOG_LEVEL_INFO] = "info",
        [LOG_LEVEL_DEBUG] = "debug",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

void log_write(const struct log *log, enum log_level level, const char *object, const char *fmt,
               ...)
{
    char text[800], line[1000];
    int keep = errno;
    va_list ap;

    if (level > log->level || !log->sink)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)snprintf(line, sizeof line, "%.150s: %s", object, text);
    text_make_printable(line);
    log->sink(log->arg, level, line);
    errno = keep;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines that name the object they are about. A log is passed down; there is no global one. */
#pragma once

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log {
    enum log_level level; /* lines above it are dropped */
    void (*sink)(void *arg, enum log_level level, const char *line);
    void *arg;
};

/** log_to_stderr() - a sink: "atoll: LINE" on stderr, in one write */
void log_to_stderr(void *arg, enum log_level level, const char *line);

/** log_level_parse() - "error", "warning", "info" or "debug"; 0 or -EINVAL */
int log_level_parse(const char *name, enum log_level *ret);

/**
 * log_write() - one line about @object ("sandbox sb-…", "command 3")
 *
 * Control bytes in it become '?'. Keeps errno. Never fails: a log that is full or closed is no
 * reason to stop.
 */
__attribute__((format(printf, 4, 5))) void log_write(const struct log *log, enum log_level level,
                                                     const char *object, const char *fmt, ...);

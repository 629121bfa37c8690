/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a command, and what every command does with its arguments. */
#include "cli/command.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/guards.h"

enum { NAMES_MAX = 64 };

const struct option program_options[N_PROGRAM_OPTIONS] = {
    {.name = "version",
     .help = "print the version",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct program_args, version)},
};

const char *program_version(void)
{
    return ATOLL_VERSION;
}

int program_path(char buf[PATH_MAX], struct error *err)
{
    ssize_t n = readlink("/proc/self/exe", buf, PATH_MAX - 1);

    if (n < 0) {
        (void)error_set(err, ERROR_TERMINAL, errno, "cannot read where this program is: %s",
                        strerror(errno));
        return error_remedy(err, "Mount /proc");
    }
    buf[n] = '\0';
    return 0;
}

const char *command_second_word(const struct command *c)
{
    const char *space = strchr(c->name, ' ');

    return space ? space + 1 : NULL;
}

bool command_is_below(const struct command *c, const struct command *of)
{
    size_t n = strlen(of->name);

    return strncmp(c->name, of->name, n) == 0 && c->name[n] == ' ';
}

int command_parse(const struct command *c, int argc, char **argv, void *args, struct arguments *ret,
                  struct error *err)
{
    struct arguments io = {.v = argv + 1, .n = argc - 1, .ends_at = c->ends_at};
    int r;

    options_defaults(c->options, c->n_options, args);
    r = options_parse(c->options, c->n_options, args, &io, err);
    if (r == 0)
        *ret = io;
    return r;
}

int command_operands(const struct command *c, const struct arguments *operands, int min, int max,
                     struct error *err)
{
    if (operands->n >= min && operands->n <= max)
        return 0;
    if (operands->n < min)
        error_set(err, ERROR_USAGE, EINVAL, "\"atoll %s\" needs more arguments", c->name);
    else
        error_set(err, ERROR_USAGE, EINVAL, "unexpected argument \"%.80s\"", operands->v[max]);
    return error_remedy(err, "The usage is \"atoll %s%s%s\"", c->name, c->usage[0] ? " " : "",
                        c->usage);
}

int command_find(const struct command *const *table, const char *name, const struct command **ret,
                 struct error *err)
{
    const char *names[NAMES_MAX];
    const char *nearest;
    size_t n = 0;

    for (; *table; table++) {
        if (strcmp((*table)->name, name) == 0) {
            *ret = *table;
            return 0;
        }
        if (!(*table)->hidden && n < NAMES_MAX)
            names[n++] = (*table)->name;
    }
    error_set(err, ERROR_USAGE, EINVAL, "unknown command \"%.80s\"", name);
    nearest = text_nearest(name, names, n);
    if (nearest)
        return error_remedy(err, "The nearest one is \"%s\"", nearest);
    return error_remedy(err, "\"atoll help\" lists the commands");
}

int command_select(const struct command *const *table, int argc, char *const argv[],
                   const struct command **ret, int *ret_used, struct error *err)
{
    const struct command *c = NULL;
    int r = command_find(table, argv[0], &c, err);

    if (r < 0)
        return r;
    assert(c);
    *ret = c;
    *ret_used = 1;
    for (; argc > 1 && *table; table++)
        if (command_is_below(*table, c) && strcmp(command_second_word(*table), argv[1]) == 0) {
            *ret = *table;
            *ret_used = 2;
        }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* atoll exec: one command in a sandbox that stands. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/attach.h"
#include "cli/handle.h"
#include "core/limits.h"
#include "core/sandbox_id.h"
#include "core/spec.h"
#include "base/guards.h"

struct exec_args {
    struct text_list env;
    const char *workdir, *user, *result;
    uint64_t timeout;
    bool interactive, tty, detach;
};

#define FIELD(name) offsetof(struct exec_args, name)

static const struct option exec_options[] = {
    {.name = "timeout",
     .arg = "TIME",
     .kind = OPTION_DURATION,
     .offset = FIELD(timeout),
     .min = 1000,
     .max = LIMIT_TIME_MAX_US,
     .help = "end the command and every process it started after this time; status 124"},
    {.name = "interactive",
     .letter = 'i',
     .kind = OPTION_FLAG,
     .offset = FIELD(interactive),
     .help = "pass standard input on; otherwise it is empty"},
    {.name = "tty",
     .letter = 't',
     .kind = OPTION_FLAG,
     .offset = FIELD(tty),
     .help = "give the command a terminal"},
    {.name = "env",
     .letter = 'e',
     .arg = "NAME[=VALUE]",
     .kind = OPTION_LIST,
     .offset = FIELD(env),
     .max = LIMIT_ENV_NAMES,
     .help = "set a variable for this command; a NAME alone passes the caller's value on"},
    {.name = "workdir",
     .letter = 'w',
     .arg = "DIR",
     .kind = OPTION_TEXT,
     .offset = FIELD(workdir),
     .help = "start in this folder instead of the sandbox's working directory"},
    {.name = "user",
     .arg = "UID[:GID]",
     .kind = OPTION_TEXT,
     .offset = FIELD(user),
     .help = "run as this user inside instead of the sandbox's"},
    {.name = "detach",
     .kind = OPTION_FLAG,
     .offset = FIELD(detach),
     .help = "print the command's number and let it run on; its output is dropped"},
    {.name = "result",
     .arg = "FILE|FD",
     .kind = OPTION_TEXT,
     .offset = FIELD(result),
     .help = "write how it ended, as one JSON object, to a file or an open descriptor"},
};

/* What of a command is judged as a spec's fields are; env_set() and its kin are theirs. */
static int fill_settings(const struct exec_args *a, struct spec *s, struct error *err)
{
    int r = spec_init(s) < 0 ? error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory") : 0;

    for (size_t i = 0; r == 0 && i < a->env.n; i++)
        r = spec_add_env(s, a->env.items[i], environ, err);
    if (r == 0 && a->workdir)
        r = spec_set_workdir(s, a->workdir, err);
    if (r == 0 && a->user)
        r = spec_set_user(s, a->user, err);
    return r;
}

static int check_flags(const struct exec_args *a, struct error *err)
{
    if (!a->detach || !(a->interactive || a->tty || a->result))
        return 0;
    (void)error_set(err, ERROR_USAGE, EINVAL, "a command that is detached has no %s",
                    a->interactive ? "input"
                    : a->tty       ? "terminal"
                                   : "result");
    return error_remedy(err, "Leave --%s away, or --detach",
                        a->interactive ? "interactive"
                        : a->tty       ? "tty"
                                       : "result");
}

/* Begins @s with whoever keeps the sandbox. @ret_open: an id to be opened there, or NULL */
static int reach(struct session *s, const char *id, const char **ret_open, struct error *err)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    const char *opaque = sandbox_id_split(id, backend);

    *ret_open = NULL;
    if (strcmp(backend, "local") == 0)
        return session_connect(s, opaque, err);
    *ret_open = opaque;
    return session_backend(s, backend, err);
}

static int exec_in(struct cli *cli, const struct exec_args *a, const char *text,
                   const struct arguments *operands, const struct result_file *result,
                   struct error *err)
{
    struct session session = SESSION_INIT;
    _cleanup_(spec_done) struct spec settings = {0};
    _cleanup_free_ char *id = NULL;
    struct run_request request = {
        .exec = {.argv = (const char **)(uintptr_t)operands->v,
                 .n_argv = (size_t)operands->n,
                 .timeout_us = a->timeout},
        .interactive = a->interactive,
        .tty = a->tty,
        .detach = a->detach,
    };
    int r = fill_settings(a, &settings, err);

    if (r == 0)
        r = handle_find(text, &id, err);
    if (r == 0)
        r = handle_lease(id, &request.lease, err);
    if (r == 0)
        r = reach(&session, id, &request.open_id, err);
    if (r < 0) {
        session_end(&session);
        (void)result_write_error(result, err);
        return r;
    }
    request.exec.envp = (const char **)(uintptr_t)settings.env.items;
    request.exec.n_envp = settings.env.n;
    request.exec.workdir = settings.workdir;
    request.exec.flags = settings.user_set ? EXEC_USER_SET : 0;
    request.exec.uid = settings.uid;
    request.exec.gid = settings.gid;
    return attach_run(cli, &session, &request, result,
                      settings.workdir ? settings.workdir : "(that of the sandbox)", err);
}

static int exec_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct result_file result = RESULT_FILE_INIT;
    struct arguments operands;
    struct exec_args a;
    const char *id = NULL;
    int r = command_parse(&cmd_exec, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_exec, &operands, 1, INT32_MAX, err);
    if (r == 0) {
        id = operands.v[0];
        operands.v++;
        operands.n--;
        r = attach_check(&cmd_exec, &operands, err);
    }
    if (r == 0)
        r = check_flags(&a, err);
    if (r == 0 && a.result)
        r = result_open(&result, a.result, err);
    if (r == 0) {
        attach_prepare();
        r = exec_in(cli, &a, id, &operands, &result, err);
    }
    result_close(&result);
    options_done(exec_options, ARRAY_SIZE(exec_options), &a);
    return r;
}

static const struct command_example exec_examples[] = {
    {"atoll exec box -- python3 -m pytest -q", "run a command in the sandbox called box"},
    {"atoll exec -i box -- tee notes.txt < notes.txt", "feed a command's standard input"},
    {"atoll exec --detach box -- python3 -m http.server", "start a server that stays"},
};

const struct command cmd_exec = {
    .name = "exec",
    .summary = "run a command in a sandbox that stands",
    .usage = "ID [OPTION]... [--] COMMAND [ARG]...",
    .description =
        "Runs one command in a sandbox that was made by create. It sees the same files as other "
        "commands there, before and after.\n\n"
        "COMMAND is started as it stands: write 'sh -c' yourself where a shell is wanted. Its "
        "output is passed on byte for byte; messages of atoll itself begin with 'atoll: ' and go "
        "to standard error.\n\n"
        "SIGINT, SIGTERM and SIGQUIT are passed on to the command; the third one, or SIGHUP, ends "
        "it with every process that it started. When atoll itself dies, by SIGKILL too, so does "
        "the command, and the sandbox lives on. With --detach the command lives on too; 'atoll ps' "
        "and 'atoll kill' know it by the number that is printed.",
    .options = exec_options,
    .n_options = ARRAY_SIZE(exec_options),
    .ends_at = 2,
    .exit_status = "the command's own; 124 timed out; 125 atoll could not do it; 126 found but not "
                   "executable; 127 not found; 128+N ended by signal N",
    .examples = exec_examples,
    .n_examples = ARRAY_SIZE(exec_examples),
    .run = exec_run,
};

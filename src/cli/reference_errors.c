/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of errors: what a caller meets, in the program's own words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/cleanup.h"
#include "cli/reference.h"
#include "core/file_error.h"
#include "core/outcome.h"
#include "local/refusal.h"
#include "base/guards.h"

static const char *const class_texts[] = {
    [ERROR_RECOVERABLE] = "Whoever gave the command can mend it: another path, other arguments. An "
                          "agent's model is told, and goes on.",
    [ERROR_TOO_LARGE] = "A stated ceiling was reached. Ask for less, or for a part.",
    [ERROR_TERMINAL] = "The host or the sandbox cannot go on, so this run has to end. Trying the "
                       "same again helps only when the remedy says so.",
    [ERROR_USAGE] = "The caller's own mistake, found before anything was started. Correct it and "
                    "ask again; nothing has to be removed.",
};
_Static_assert(ARRAY_SIZE(class_texts) == ERROR_CLASS__MAX, "one text a class");

static const char *const reason_texts[] = {
    [REASON_EXITED] = "It ended by itself, with an exit code or by a signal.",
    [REASON_TIMEOUT] = "Its timeout was over; everything that it started is dead.",
    [REASON_OOM] = "The kernel ended it for want of memory, where a backend can tell that.",
    [REASON_KILLED] = "Somebody ended it (`atoll kill`), removed its sandbox or took its lease.",
    [REASON_LIFETIME] = "The lifetime of its sandbox was over.",
    [REASON_ERROR] = "It could not be started or followed to its end; there is a message.",
    [REASON_COST] = "Its sandbox has cost all that it may (`max_cost`).",
};
_Static_assert(ARRAY_SIZE(reason_texts) == REASON__MAX, "one text a reason");

static const char *const ended_texts[] = {
    [ENDED_DESTROYED] = "It was removed, by `atoll rm` or by the run that it was made for.",
    [ENDED_LIFETIME] = "Its lifetime was over (`sandbox_timeout`).",
    [ENDED_IDLE] = "Nobody had used it for its `idle_timeout`.",
    [ENDED_OOM] = "The kernel ended it for want of memory.",
    [ENDED_KILLED] = "Somebody ended it from outside, for local by SIGTERM to its keeper.",
    [ENDED_CALLER_DIED] = "Whoever it was made for is gone, also by SIGKILL.",
    [ENDED_ERROR] = "It could not be made, or was lost: its process 1 is gone.",
    [ENDED_COST] = "It has cost all that it may (`max_cost`).",
};
_Static_assert(ARRAY_SIZE(ended_texts) == ENDED__MAX, "one text an end");

/* Statuses come from outcome_status() itself, so that a row cannot say another one. */
static const struct {
    struct exit_report report;
    const char *label, *text; /* label: instead of the number */
} statuses[] = {
    {{.reason = REASON_EXITED}, NULL, "The command succeeded; of another command, atoll did."},
    {{.reason = REASON_EXITED, .exit_code = 1},
     "1 to 255",
     "The command's own status, of `run` and `exec`. Of `explain`, 1: it would not be let out. Of "
     "`tool`, 1: the answer says what the model has to mend."},
    {{.reason = REASON_TIMEOUT}, NULL, "The command's time, or its sandbox's lifetime, was over."},
    {{.reason = REASON_ERROR},
     NULL,
     "atoll itself could not do it. Standard error says why, in a line that starts with `atoll: "
     "`."},
    {{.exit_code = 126, .start_stage = START_EXEC, .start_errno = EACCES},
     NULL,
     "The command was found but could not be executed."},
    {{.exit_code = 127, .start_stage = START_EXEC, .start_errno = ENOENT},
     NULL,
     "The command was not found in the sandbox."},
    {{.reason = REASON_EXITED, .signal = 9}, "128+N", "The command was ended by signal N."},
};

/* Causes of a refusal by this host, each as local/refusal.h would meet it. */
static const struct refusal {
    enum refusal_place place;
    struct step step;
    int code;
    struct refusal_hints hints;
} refusals[] = {
    {REFUSAL_NAMESPACES, {0}, EPERM, {.root_only = true}},
    {REFUSAL_NAMESPACES, {0}, EPERM, {.filtered = true}},
    {REFUSAL_NAMESPACES, {0}, EACCES, {.apparmor_restricts = true}},
    {REFUSAL_NAMESPACES, {0}, EACCES, {.profile = "NAME"}},
    {REFUSAL_NAMESPACES, {0}, EPERM, {0}},
    {REFUSAL_NAMESPACES, {0}, ENOSPC, {.no_namespaces = "user"}},
    {REFUSAL_NAMESPACES, {.source = "net"}, ENOSPC, {0}},
    {REFUSAL_NAMESPACES, {.source = "cgroup"}, EINVAL, {0}},
    {REFUSAL_NAMESPACES, {0}, EAGAIN, {0}},
    {REFUSAL_MAPS, {0}, ENOENT, {0}},
    {REFUSAL_MAPS, {0}, EROFS, {0}},
    {REFUSAL_MAPS, {0}, EPERM, {.nested = true}},
    {REFUSAL_STEP, {.kind = STEP_PROC}, EPERM, {0}},
    {REFUSAL_STEP, {.kind = STEP_ROOT}, EPERM, {.filtered = true}},
    {REFUSAL_STEP, {.kind = STEP_ROOT}, EACCES, {.profile = "NAME"}},
    {REFUSAL_STEP, {.kind = STEP_ROOT}, ENOSYS, {0}},
    {REFUSAL_STEP, {.kind = STEP_PIVOT}, EINVAL, {0}},
    {REFUSAL_STEP, {.kind = STEP_OVERLAY}, ENODEV, {0}},
    {REFUSAL_STEP, {.kind = STEP_OVERLAY, .source = "/IMAGE"}, EINVAL, {0}},
    {REFUSAL_STEP, {.kind = STEP_FOLDER, .target = "/PATH"}, EOVERFLOW, {0}},
    {REFUSAL_STEP, {.kind = STEP_VOLUME, .source = "/HOST", .target = "/GUEST"}, EROFS, {0}},
    {REFUSAL_STEP, {.kind = STEP_VOLUME, .source = "/HOST", .target = "/GUEST"}, ELOOP, {0}},
    {REFUSAL_STEP, {.kind = STEP_VOLUME, .source = "/HOST", .target = "/GUEST"}, EACCES, {0}},
    {REFUSAL_STEP, {.kind = STEP_WORKDIR, .target = "/GUEST"}, EROFS, {0}},
    {REFUSAL_IDMAP, {.source = "/HOST"}, EPERM, {0}},
    {REFUSAL_IDMAP, {.source = "/HOST"}, EINVAL, {.may_mount = true}},
    {REFUSAL_MEMFD, {0}, EACCES, {0}},
    {REFUSAL_MODULES,
     {.source = "nft_log nfnetlink_log",
      .target = "loading the rules for what may leave the sandbox"},
     ENOENT,
     {0}},
    {REFUSAL_CALL, {.source = "openat2(2)"}, ENOSYS, {0}},
};

enum { ERRNO_LAST = 133 };

static void write_classes(FILE *f)
{
    fputs(
        "\n## Classes\n\n"
        "Every error has a class, which a program can act on without reading text; a message, one "
        "sentence; and mostly a remedy, another one. The words are those of every JSON form, and "
        "libatoll has them as `enum atoll_error_class`.\n\n"
        "| class | what the caller may do |\n|---|---|\n",
        f);
    for (enum error_class i = 0; i < ERROR_CLASS__MAX; i++)
        fprintf(f, "| `%s` | %s |\n", error_class_name(i), class_texts[i]);
}

static void write_statuses(FILE *f)
{
    fputs("\n## Exit statuses\n\n| status | meaning |\n|---|---|\n", f);
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        if (statuses[i].label)
            fprintf(f, "| `%s` | %s |\n", statuses[i].label, statuses[i].text);
        else
            fprintf(f, "| `%d` | %s |\n", outcome_status(&statuses[i].report), statuses[i].text);
    }
    fputs("\nA command may itself end with 124 to 127. `--result` tells such cases apart: its "
          "`reason` is `exited` then.\n",
          f);
}

static void write_words(FILE *f)
{
    fputs(
        "\n## How a command ended\n\n"
        "The word `reason` of `--result`, of `atoll_op_exit()`, and of the protocol's `EXITED`.\n\n"
        "| reason | meaning |\n|---|---|\n",
        f);
    for (uint32_t i = 0; i < REASON__MAX; i++)
        fprintf(f, "| `%s` | %s |\n", exit_reason_name(i), reason_texts[i]);
    fputs("\n## How a sandbox ended\n\n"
          "The word `ended_by` of the protocol's `ENDED`, and of what atoll logs.\n\n"
          "| ended_by | meaning |\n|---|---|\n",
          f);
    for (uint32_t i = 0; i < ENDED__MAX; i++)
        fprintf(f, "| `%s` | %s |\n", ended_by_name(i), ended_texts[i]);
}

static void write_error(FILE *f, const struct error *err)
{
    fprintf(f, "`%s` | ", error_class_name(err->cls));
    reference_sentence(f, err->message);
    fputs(" | ", f);
    reference_sentence(f, err->remedy);
    fputs(" |\n", f);
}

/* Codes that have a sentence of their own say more than the C library would. */
static void write_file_errors(FILE *f)
{
    fputs("\n## Files of a sandbox\n\n"
          "What `read`, `write`, `ls` and `cp` say of a path inside, and the same through "
          "libatoll.\n\n"
          "| error | class | message | remedy |\n|---|---|---|---|\n",
          f);
    for (int code = 1; code <= ERRNO_LAST; code++) {
        struct error err = ERROR_INIT;

        (void)file_error(&(struct file_fault){.code = (uint32_t)code, .path = "PATH"}, &err);
        if (strstr(err.message, strerror(code)))
            continue;
        fprintf(f, "| `%s` | ", strerrorname_np(code));
        write_error(f, &err);
    }
}

static void write_refusals(FILE *f)
{
    fputs(
        "\n## What a host may refuse\n\n"
        "Sandboxes of the backend `local` are made by this host's kernel. What it does not allow "
        "is "
        "an error, never a weaker sandbox, and `atoll doctor` finds it beforehand. The commonest "
        "causes; words in capitals stand for what differs. With `-v` `run` and `create` name each "
        "step with its time.\n\n"
        "| error | class | message | remedy |\n|---|---|---|---|\n",
        f);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        const struct refusal *r = &refusals[i];
        bool named = r->place == REFUSAL_STEP || r->step.source;
        struct error err = ERROR_INIT;

        (void)refusal_explain_with(&r->hints, r->place, named ? &r->step : NULL, r->code, &err);
        fprintf(f, "| `%s` | ", strerrorname_np(r->code));
        write_error(f, &err);
    }
    fputs("\nWhat a backend cannot enforce of a spec is refused likewise, by field and reason: "
          "[backends.md](backends.md).\n",
          f);
}

void reference_errors(FILE *f, const struct command *const *table)
{
    (void)table;
    fputs("# Errors and endings\n\nWritten by `atoll reference errors`.\n", f);
    write_classes(f);
    write_statuses(f);
    write_words(f);
    write_file_errors(f);
    write_refusals(f);
}

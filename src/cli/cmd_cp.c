/* SPDX-License-Identifier: Apache-2.0 */
/* atoll cp: files and folders between this host and a sandbox. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/copy.h"
#include "cli/print.h"
#include "core/backends.h"
#include "base/guards.h"

struct cp_args {
    bool json;
};

static const struct option cp_options[] = {
    OPTION_JSON(offsetof(struct cp_args, json)),
};

/* One operand. Views of it, but for the id. */
struct side {
    char *id; /* as typed, owned; NULL: this host */
    const char *path;
    bool stream; /* "-" */
};

enum { SIDES_MAX = 4096 };

static void sides_free(struct side *p, int n)
{
    for (int i = 0; i < n; i++)
        free(p[i].id);
    free(p);
}

/* Whether the @n bytes before a colon name a backend whose id goes on behind it. */
static bool is_backend_name(const char *s, size_t n)
{
    char name[BACKEND_NAME_MAX + 1];
    struct backend_room room;
    struct backend backend;
    struct error ignored = ERROR_INIT;

    if (n > BACKEND_NAME_MAX)
        return false;
    memcpy(name, s, n);
    name[n] = '\0';
    return backend_find(name, getenv("PATH"), &room, &backend, &ignored) == 0;
}

/*
 * ID:PATH, or a path of the host: what stands before the first colon is an id or name, unless it
 * has a slash or could be none. "./a:b" is a path of the host, whatever "a" may be.
 */
static int read_side(const char *text, struct side *ret, struct error *err)
{
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;

    *ret = (struct side){.path = text, .stream = strcmp(text, "-") == 0};
    if (!colon || !handle_may_mean(text, n))
        return 0;
    const char *second = strchr(colon + 1, ':');
    if (second && is_backend_name(text, n)) {
        colon = second;
        n = (size_t)(second - text);
    }
    ret->id = strndup(text, n);
    ret->path = colon + 1;
    return ret->id ? 0 : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int refuse(const char *what, const char *remedy, struct error *err)
{
    (void)error_set(err, ERROR_USAGE, EINVAL, "%s", what);
    return error_remedy(err, "%s", remedy);
}

/* What the operands mean together; the last one is the destination. */
static int check_sides(const struct side *p, int n, bool json, struct error *err)
{
    const struct side *to = &p[n - 1];

    for (int i = 0; i < n - 1; i++) {
        if (p[i].id && to->id)
            return refuse("both ends are in a sandbox",
                          "Copy through a pipe: atoll cp A:PATH - | atoll cp - B:FOLDER", err);
        if (!p[i].id && !to->id)
            return refuse("neither end is in a sandbox",
                          "Write ID:PATH for the one inside; \"atoll list\" shows the ids", err);
        if (p[i].id && strcmp(p[i].id, p[0].id) != 0)
            return refuse("the sources are in several sandboxes", "Copy from one at a time", err);
        if ((p[i].stream || to->stream) && n > 2)
            return refuse("a stream cannot be copied together with other paths",
                          "Copy one path to or from '-' at a time", err);
    }
    if (to->stream && json)
        return refuse("both the stream and the summary would go to standard output",
                      "Leave --json away", err);
    return 0;
}

static int copy_one(struct copy *c, const struct side *from, const struct side *to, bool several,
                    struct error *err)
{
    const enum copy_to how = several ? COPY_INTO_FOLDER : COPY_LIKE_CP;
    const char *inside = to->id ? to->path : from->path;

    if (inside[0] == '\0')
        inside = ".";
    if (from->stream)
        return copy_stream_in(c, STDIN_FILENO, inside, err);
    if (to->stream)
        return copy_stream_out(c, inside, STDOUT_FILENO, err);
    return to->id ? copy_in(c, from->path, inside, how, err)
                  : copy_out(c, inside, to->path, how, err);
}

static json_t *summary(const struct copy *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:O}", "files", (json_int_t)c->totals.files, "folders",
                     (json_int_t)c->totals.folders, "links", (json_int_t)c->totals.links, "bytes",
                     (json_int_t)c->totals.bytes, "skipped", c->skipped);
}

static int copy_all(struct cli *cli, const struct side *p, int n, bool json, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    struct copy c = {
        .cli = cli,
        .handle = &h,
        .skipped = json ? json_array() : NULL,
        .quiet = !isatty(fileno(cli->err)),
    };
    const char *id = p[n - 1].id ? p[n - 1].id : p[0].id;
    int r = handle_catch_signals(&h, err);

    if (r == 0)
        r = p[n - 1].id ? handle_open_to_change(&h, id, err) : handle_open(&h, id, err);
    if (r == -ENOENT && id && !strchr(id, ':') && strncmp(id, "sb-", 3) != 0)
        (void)error_remedy(err, "A path of this host with a colon in it is written ./%.40s:…", id);
    for (int i = 0; i < n - 1 && r == 0; i++)
        r = copy_one(&c, &p[i], &p[n - 1], n > 2, err);
    if (r == 0 && json)
        r = print_json(cli->out, summary(&c), err);
    json_decref(c.skipped);
    return handle_status(&h, r, err);
}

static int cp_checked(struct cli *cli, const struct arguments *operands, bool json,
                      struct error *err)
{
    const int n = operands->n;
    struct side *p = calloc((size_t)n, sizeof *p);
    int r = 0;

    assert(n >= 2); /* command_operands() */
    if (!p)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    for (int i = 0; r == 0 && i < n; i++)
        r = read_side(operands->v[i], &p[i], err);
    if (r == 0)
        r = check_sides(p, n, json, err);
    if (r == 0)
        r = copy_all(cli, p, n, json, err);
    sides_free(p, n);
    return r;
}

static int cp_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct cp_args args;
    int r = command_parse(&cmd_cp, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_cp, &operands, 2, SIDES_MAX, err);
    return r < 0 ? r : cp_checked(cli, &operands, args.json, err);
}

static const struct command_example cp_examples[] = {
    {"atoll cp src Makefile sb-kq3v7e:", "copy a folder and a file into the working directory"},
    {"atoll cp box:out/report.pdf .", "copy a result out of the sandbox called box"},
    {"atoll cp box:/workspace - | tar -tv", "look at a folder as a tar stream"},
};

const struct command cmd_cp = {
    .name = "cp",
    .summary = "copy files and folders into a sandbox or out of it",
    .usage = "SOURCE... ID:PATH | ID:PATH... DESTINATION",
    .description =
        "Copies as 'cp -r' does: a destination that is a folder takes the sources into it, "
        "otherwise it is what the one source is called there. A PATH inside is relative to the "
        "working directory, which ID: alone means. '-' in the place of a path on the host is a tar "
        "stream: from standard input it is unpacked into the folder PATH, to standard output the "
        "copy is packed.\n\n"
        "An operand is in a sandbox if what stands before its first colon could be an id or a "
        "name: "
        "letters, digits, '.', '_' and '-' alone. Write a path of this host with a colon in it as "
        "./a:b.\n\n"
        "Nothing that comes from inside can reach a file of this host beside the copy: no link is "
        "followed, links that lead out of the copied tree are left out, and so are FIFOs, sockets "
        "and devices. What was left out is named on standard error. A file that is there is "
        "replaced in one step; a folder that is there is added to.",
    .options = cp_options,
    .n_options = ARRAY_SIZE(cp_options),
    .exit_status = "0 all was copied but what is named as left out; 125 something was not copied",
    .examples = cp_examples,
    .n_examples = ARRAY_SIZE(cp_examples),
    .run = cp_run,
};

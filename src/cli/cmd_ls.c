/* SPDX-License-Identifier: Apache-2.0 */
/* atoll ls: what is in a folder inside. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/name_text.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "wire/files.h"
#include "base/guards.h"

struct ls_args {
    bool details, zero, json;
};

#define FIELD(name) offsetof(struct ls_args, name)

static const struct option ls_options[] = {
    {.name = "long",
     .letter = 'l',
     .kind = OPTION_FLAG,
     .offset = FIELD(details),
     .help = "with permissions, size, time of change and the targets of links"},
    {.name = "null",
     .letter = '0',
     .kind = OPTION_FLAG,
     .offset = FIELD(zero),
     .help = "end each entry with a NUL instead of a line end, and quote nothing"},
    OPTION_JSON(FIELD(json)),
};

static int by_name(const void *a, const void *b)
{
    const struct atoll_file *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Return: the entries by the bytes of their names, an owned array; NULL without memory. */
static struct atoll_file *sorted(const struct atoll_op *op, size_t n)
{
    struct atoll_file *list = calloc(n + 1, sizeof *list);

    for (size_t i = 0; list && i < n; i++)
        list[i] = *atoll_op_file(op, i);
    if (list && n > 1)
        qsort(list, n, sizeof *list, by_name);
    return list;
}

/* People */

static void print_name(const struct ls_args *a, FILE *f, bool terminal, const char *name)
{
    if (terminal && !a->zero)
        name_print_quoted(f, name);
    else
        fputs(name, f);
}

/* "drwxr-xr-x", as ls(1) has it. */
static void mode_text(const struct atoll_file *e, char buf[static 11])
{
    static const char kinds[] = {
        [ATOLL_FILE] = '-', [ATOLL_FOLDER] = 'd', [ATOLL_LINK] = 'l',
        [ATOLL_FIFO] = 'p', [ATOLL_SOCKET] = 's', [ATOLL_DEVICE] = 'c',
    };
    static const char letters[] = "rwxrwxrwx";
    const uint32_t m = e->mode;

    buf[0] = e->kind >= 0 && (size_t)e->kind < sizeof kinds ? kinds[e->kind] : '?';
    for (int i = 0; i < 9; i++)
        buf[1 + i] = m >> (8 - i) & 1 ? letters[i] : '-';
    if (m & 04000)
        buf[3] = m & 0100 ? 's' : 'S';
    if (m & 02000)
        buf[6] = m & 010 ? 's' : 'S';
    if (m & 01000)
        buf[9] = m & 01 ? 't' : 'T';
    buf[10] = '\0';
}

static void print_entry(const struct ls_args *a, FILE *f, bool terminal, const struct atoll_file *e)
{
    char mode[11], time[SANDBOX_WORDS];

    if (a->details) {
        mode_text(e, mode);
        sandbox_time_text(time, e->mtime_ns / 1000);
        fprintf(f, "%s %12llu  %s  ", mode, (unsigned long long)e->size, time);
    }
    print_name(a, f, terminal, e->name);
    if (e->kind == ATOLL_FOLDER)
        putc('/', f);
    if (a->details && e->target) {
        fputs(" -> ", f);
        print_name(a, f, terminal, e->target);
    }
    putc(a->zero ? '\0' : '\n', f);
}

/* Programs */

static json_t *entry_json(const struct atoll_file *e)
{
    char mode[8];

    (void)snprintf(mode, sizeof mode, "%04o", (unsigned)e->mode & 07777u);
    json_t *o = json_pack("{s:s, s:s, s:I, s:f}", "kind", file_kind_name((uint32_t)e->kind), "mode",
                          mode, "size", (json_int_t)e->size, "mtime", (double)e->mtime_ns / 1e9);
    bool good =
        o && name_set_json(o, "name", e->name) == 0 && name_set_json(o, "target", e->target) == 0;

    /* What a link leads to: another link only when it leads to nothing. */
    if (good && e->kind == ATOLL_LINK)
        good =
            json_object_set_new(o, "target_kind",
                                e->target_kind == ATOLL_LINK
                                    ? json_null()
                                    : json_string(file_kind_name((uint32_t)e->target_kind))) == 0;
    if (good)
        return o;
    json_decref(o);
    return NULL;
}

static int print_entries_json(struct cli *cli, const char *path, const struct atoll_file *list,
                              size_t n, struct error *err)
{
    json_t *entries = json_array(), *o;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = json_array_append_new(entries, entry_json(&list[i]));
    o = json_pack("{s:o}", "entries", entries);
    if (r == 0)
        r = name_set_json(o, "path", path);
    if (r == 0)
        return print_json(cli->out, o, err);
    json_decref(o);
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int list_folder(struct cli *cli, const struct ls_args *a, const char *id, const char *path,
                       struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    const bool terminal = isatty(fileno(cli->out)) == 1;
    int r = handle_open(&h, id, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_list_folder(h.sandbox, path);
    r = handle_wait(&h, op, err);
    if (r < 0)
        return r;
    const size_t n = atoll_op_count(op);
    struct atoll_file *list = sorted(op, n);
    if (!list)
        r = error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    else if (a->json)
        r = print_entries_json(cli, path, list, n, err);
    else
        for (size_t i = 0; i < n; i++)
            print_entry(a, cli->out, terminal, &list[i]);
    free(list);
    return r;
}

static int ls_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct ls_args a;
    int r = command_parse(&cmd_ls, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_ls, &operands, 1, 2, err);
    return r < 0 ? r
                 : list_folder(cli, &a, operands.v[0], operands.n > 1 ? operands.v[1] : ".", err);
}

static const struct command_example ls_examples[] = {
    {"atoll ls box", "list the working directory"},
    {"atoll ls -l box /etc", "with permissions, sizes and times"},
    {"atoll ls -0 box | xargs -0 -n 1 echo", "names of any bytes, for other programs"},
};

const struct command cmd_ls = {
    .name = "ls",
    .summary = "list a folder of a sandbox",
    .usage = "ID [PATH] [OPTION]...",
    .description =
        "Lists all that is in a folder, hidden files too, ordered by the bytes of the names; "
        "folders end with '/'. PATH is the working directory unless given; a link to a folder is "
        "followed.\n\n"
        "On a terminal names are quoted as a shell reads them. Elsewhere they are written as they "
        "are, and since a name may hold a line end, programs do better with -0 or --json.",
    .options = ls_options,
    .n_options = ARRAY_SIZE(ls_options),
    .examples = ls_examples,
    .n_examples = ARRAY_SIZE(ls_examples),
    .run = ls_run,
};

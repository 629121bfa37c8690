/* SPDX-License-Identifier: Apache-2.0 */
/* atoll read: bytes of a file inside. */
#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/stream.h"
#include "base/guards.h"

struct read_args {
    uint64_t offset, length, max_bytes;
    enum option_state length_state, max_state;
};

#define FIELD(name) offsetof(struct read_args, name)

static const struct option read_options[] = {
    {.name = "offset",
     .arg = "N",
     .kind = OPTION_NUMBER,
     .offset = FIELD(offset),
     .max = INT64_MAX,
     .help = "begin at this byte, counted from 0"},
    {.name = "length",
     .arg = "N",
     .kind = OPTION_NUMBER,
     .offset = FIELD(length),
     .state = FIELD(length_state),
     .max = INT64_MAX,
     .help = "so many bytes at most; to the end unless given"},
    {.name = "max-bytes",
     .arg = "N",
     .kind = OPTION_NUMBER,
     .offset = FIELD(max_bytes),
     .state = FIELD(max_state),
     .max = INT64_MAX,
     .help = "refuse, before a byte is written, what would be more than this"},
};

/* Of a regular file the range is cut here: it may have grown since it was looked at. */
static int send_file(const struct read_args *a, const struct atoll_op *op, int fd,
                     struct error *err)
{
    uint64_t size = atoll_op_file(op, 0)->size, length = a->length;

    if (size > 0)
        length = size <= a->offset ? 0 : length < size - a->offset ? length : size - a->offset;
    if (length > a->max_bytes)
        length = a->max_bytes;
    return stream_file(fd, a->offset, length, STDOUT_FILENO, err);
}

static int read_from(const struct read_args *a, const char *id, const char *path, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    uint64_t ignored = 0;
    struct stat st;
    int r = handle_open(&h, id, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op =
        atoll_read(h.sandbox, path, a->offset, a->length, a->max_bytes);
    r = handle_wait(&h, op, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = atoll_op_take_fd(op, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(err, ERROR_TERMINAL, EBADF, "the file did not come");
    if (S_ISREG(st.st_mode))
        return send_file(a, op, fd, err);
    r = stream_pass(&h, fd, STDOUT_FILENO, &ignored, err);
    return r < 0 ? r : handle_wait(&h, op, err); /* whether all of it came */
}

static int read_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct read_args a;
    int r = command_parse(&cmd_read, argc, argv, &a, &operands, err);

    (void)cli;
    if (r == 0)
        r = command_operands(&cmd_read, &operands, 2, 2, err);
    if (r < 0)
        return r;
    if (a.length_state != OPTION_GIVEN)
        a.length = UINT64_MAX;
    if (a.max_state != OPTION_GIVEN)
        a.max_bytes = UINT64_MAX;
    return read_from(&a, operands.v[0], operands.v[1], err);
}

static const struct command_example read_examples[] = {
    {"atoll read box out/report.pdf > report.pdf", "copy a file out, byte for byte"},
    {"atoll read box log.txt --offset 1048576 --length 4096", "read a part of a large file"},
};

const struct command cmd_read = {
    .name = "read",
    .summary = "write a file of a sandbox to standard output",
    .usage = "ID PATH [OPTION]...",
    .description =
        "Writes the bytes of a regular file as they are. PATH is looked up inside, links are "
        "followed there, and a relative one starts at the working directory. A folder, a FIFO, a "
        "socket or a device is refused and never waited for.\n\n"
        "A file that grows meanwhile is cut at the size that it had.",
    .options = read_options,
    .n_options = ARRAY_SIZE(read_options),
    .examples = read_examples,
    .n_examples = ARRAY_SIZE(read_examples),
    .run = read_run,
};

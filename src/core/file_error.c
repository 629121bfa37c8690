/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for faults of file operations. */
#include "core/file_error.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

enum { SHOWN_BYTES = 256 };

/* The sentence is "'PATH' WHAT", or "cannot …" where that says more. */
struct sentence {
    int code;
    enum error_class cls;
    const char *what;   /* follows the path */
    const char *remedy; /* NULL: none */
};

static const struct sentence sentences[] = {
    {ENOENT, ERROR_RECOVERABLE, "does not exist",
     "List the folder that it should be in to see what is there"},
    {EISDIR, ERROR_RECOVERABLE, "is a folder; list it instead", NULL},
    {ENOTDIR, ERROR_RECOVERABLE, "is not a folder, or a part of that path is none",
     "List the folder above it to see what is there"},
    {EACCES, ERROR_RECOVERABLE, "may not be accessed by the sandbox's user",
     "Change its permissions with a command inside, or use another path"},
    {EPERM, ERROR_RECOVERABLE, "is protected, or was made immutable",
     "Use another path; the sandbox's user cannot change this one"},
    {EROFS, ERROR_RECOVERABLE, "is on a read-only file system",
     "Write below the working directory or /tmp"},
    {ENOSPC, ERROR_RECOVERABLE, "cannot be written: the sandbox's disk is full",
     "Remove files inside, or create a sandbox with a larger 'disk'"},
    {EDQUOT, ERROR_RECOVERABLE, "cannot be written: a quota of the host is used up",
     "Remove files there, or write to another place"},
    {ELOOP, ERROR_RECOVERABLE, "leads through too many symbolic links, or in a circle",
     "Use the path that the links should lead to"},
    {ENAMETOOLONG, ERROR_RECOVERABLE, "is too long a path: 4095 bytes at most, 255 for a name",
     "Use a shorter one, or a path relative to the working directory"},
    {ETXTBSY, ERROR_RECOVERABLE, "is a program that is running",
     "End it first, or write to another path"},
    {EBUSY, ERROR_RECOVERABLE, "is in use and cannot be replaced", "Write to another path"},
    {EEXIST, ERROR_RECOVERABLE, "exists already", "Remove it first, or use another path"},
    {ENOTEMPTY, ERROR_RECOVERABLE, "is a folder with something in it",
     "Empty it first, or use another path"},
    {EXDEV, ERROR_RECOVERABLE, "leads out of its file system", "Use another path"},
    {EMLINK, ERROR_RECOVERABLE, "has too many links", "Use another path"},
    {ECANCELED, ERROR_RECOVERABLE, "was given up: the operation was cancelled", NULL},
    {EPIPE, ERROR_RECOVERABLE, "was given up: the other end of its stream was closed", "Try again"},
    {ETIMEDOUT, ERROR_RECOVERABLE, "did not answer in time", "Try again, or use another path"},
    {ESTALE, ERROR_RECOVERABLE, "changed or went away while it was used", "Try again"},
    {EMFILE, ERROR_RECOVERABLE, "cannot be opened: too many files are open", "Try again later"},
    {ENFILE, ERROR_RECOVERABLE, "cannot be opened: too many files are open on the host",
     "Try again later"},
    {ENOMEM, ERROR_RECOVERABLE, "cannot be worked on: there is not enough memory",
     "End what uses it inside, and try again"},
    {EAGAIN, ERROR_RECOVERABLE, "cannot be worked on now: the sandbox has too many processes",
     "End some of them, and try again"},
    {EIO, ERROR_RECOVERABLE, "could not be read or written by the device below it",
     "Use another path; the host's log may say more"},
    {EINVAL, ERROR_RECOVERABLE, "cannot be used for this", "Use another path"},
    {EOPNOTSUPP, ERROR_RECOVERABLE, "is on a file system that cannot do this", "Use another path"},
    {EBADMSG, ERROR_RECOVERABLE, "was to be filled from bytes that are no sound tar archive",
     "Look at what was sent"},
    {EPROTO, ERROR_RECOVERABLE, "was asked for in a way that is not understood",
     "Use a client and a sandbox of the same version"},
    {ENOSYS, ERROR_TERMINAL, "cannot be worked on: the host's kernel lacks what that needs",
     "\"atoll doctor\" says what is missing"},
};

/* A FIFO or socket has no content of its own; a device may have no end. */
static int no_regular_file(const struct file_fault *f, const char *path, struct error *ret)
{
    bool device = f->kind == FILE_DEVICE;

    (void)error_set(ret, device ? ERROR_TOO_LARGE : ERROR_RECOVERABLE, EINVAL,
                    device ? "'%s' is a device, which may have no end; only regular files are read "
                             "and written"
                    : f->kind == FILE_FIFO
                        ? "'%s' is a FIFO; only regular files are read and written"
                        : "'%s' is a socket; only regular files are read and written",
                    path);
    return error_remedy(ret, "Use a command inside that reads as much of it as is wanted");
}

static int too_large(const struct file_fault *f, const char *path, struct error *ret)
{
    if (f->size == 0 && f->max == 0) {
        (void)error_set(ret, ERROR_TOO_LARGE, EFBIG, "'%s' would be larger than a file may be",
                        path);
        return error_remedy(ret, "Write less, or several files");
    }
    (void)error_set(ret, ERROR_TOO_LARGE, EFBIG,
                    "'%s' has %llu bytes, and at most %llu may be read", path,
                    (unsigned long long)f->size, (unsigned long long)f->max);
    return error_remedy(ret, "Read a part of it, with an offset and a length");
}

int file_error(const struct file_fault *fault, struct error *ret)
{
    char path[SHOWN_BYTES];

    if (snprintf(path, sizeof path, "%s", fault->path) >= (int)sizeof path)
        memcpy(path + sizeof path - 4, "...", 4);
    text_make_printable(path);
    if (fault->code == EFBIG)
        return too_large(fault, path, ret);
    if (fault->code == EINVAL && fault->kind >= FILE_FIFO && fault->kind < FILE_KIND__MAX)
        return no_regular_file(fault, path, ret);
    for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
        const struct sentence *s = &sentences[i];

        if (s->code != (int)fault->code)
            continue;
        (void)error_set(ret, s->cls, s->code, "'%s' %s", path, s->what);
        return s->remedy ? error_remedy(ret, "%s", s->remedy) : -s->code;
    }
    return error_set(ret, ERROR_RECOVERABLE, (int)fault->code, "'%s' cannot be used: %s", path,
                     strerror((int)fault->code));
}

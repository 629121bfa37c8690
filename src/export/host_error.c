/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for failed calls on files of the host. */
#include "export/host_error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

enum { WHAT_BYTES = 448 };

static const struct {
    int code;
    const char *why, *remedy;
} known[] = {
    {ENOSPC, "the disk is full", "Free space on it, or export to another one"},
    {EDQUOT, "the disk quota is used up", "Free space, or export to another disk"},
    {EROFS, "it lies on a file system that is read-only", "Export to another folder"},
    {EACCES, "there is no permission", "Export to a folder in which you may write"},
    {EPERM, "that is not permitted", "Export to a folder in which you may write"},
    {EFBIG, "it is larger than a file may be there", "Export to another disk"},
    {EISDIR, "a folder stands in its place", "Remove the folder, or export under another name"},
    {EEXIST, "something else stands in its place", "Remove it, or export under another name"},
    {ENOTDIR, "a file stands in the place of a folder",
     "Remove the file, or export to another folder"},
    {ENOTEMPTY, "a folder that is not empty stands in its place",
     "Remove the folder, or export under another name"},
    {ELOOP, "its path leads through too many symbolic links", "Export to the path that they name"},
    {ENOLINK, "a symbolic link on its path leads nowhere",
     "Make the folder that it names, or export to another one"},
    {ENAMETOOLONG, "its path or name is too long there", "Export to a folder with a shorter path"},
    {ENOENT, "its folder was removed meanwhile", "Export again when nobody works in there"},
    {EBUSY, "it is in use, as a mount point for instance", "Export under another name"},
    {EMLINK, "it has too many links", "Export to another folder"},
    {EIO, "the device below it could not read or write",
     "Export to another disk; the host's log may say more"},
    {ETXTBSY, "it is a program that is running", "End it, or export under another name"},
    {EMFILE, "too many files are open", "Raise the limit of open files"},
    {ENFILE, "too many files are open on the host", "Try again later"},
    {EBADMSG, "what was read back differs from what was written",
     "Export to another disk, and look whether something else writes there"},
};

int host_error(struct error *err, int code, const char *fmt, ...)
{
    char what[WHAT_BYTES];
    va_list args;

    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) >= (int)sizeof what)
        memcpy(what + sizeof what - 4, "...", 4);
    va_end(args);
    text_make_printable(what);
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].code == code) {
            (void)error_set(err, ERROR_RECOVERABLE, code, "%s: %s", what, known[i].why);
            return error_remedy(err, "%s", known[i].remedy);
        }
    return error_set(err, code == ENOMEM ? ERROR_TERMINAL : ERROR_RECOVERABLE, code, "%s: %s", what,
                     code == ENOMEM ? "out of memory" : strerror(code));
}

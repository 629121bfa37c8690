/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file operations of the sandbox protocol: requests, what a file is, and the entries of a
 * folder. Encoders and decoders as in wire/control.h; views live as long as the message.
 *
 * Paths and names are bytes: anything but NUL, "/" included in paths. A relative path starts at the
 * sandbox's working directory.
 */
#pragma once

#include "wire/frame.h"

enum {
    FILE_PATH_BYTES_MAX = 4095, /* PATH_MAX of the kernel less its NUL */
    FILES_EXIT_SILENT = 3,      /* status of the process that serves them, when nobody asked it
                                   anything for the time that it was given */
};

enum file_flags {
    FILE_IN_BAND = 1 << 0,   /* content as INPUT and OUTPUT messages, with credit; otherwise through
                                a descriptor */
    FILE_INLINE = 1 << 1,    /* WRITE: DATA is the whole content; no COMMIT follows */
    FILE_NO_FOLLOW = 1 << 2, /* STAT: of a symbolic link itself */
    FILE_MODE_SET = 1 << 3,  /* WRITE: MODE is given; otherwise an existing file keeps its own and a
                                new one gets 0666 less the umask */
    FILE_STEADY = 1 << 4,    /* PACK: a file that is written to meanwhile is a fault (ESTALE), not
                                just one that shrinks; older peers do not look for that */
};

enum file_kind {
    FILE_REGULAR,
    FILE_FOLDER,
    FILE_LINK,
    FILE_FIFO,
    FILE_SOCKET,
    FILE_DEVICE,
    FILE_KIND__MAX,
};

/** file_kind_name() - "file", "folder", "link", "fifo", "socket", "device"; "?" for others */
const char *file_kind_name(uint32_t kind);

/* READ, WRITE, LIST, STAT, PACK, UNPACK. Which fields count depends on the message. */
struct file_request {
    const char *path;
    uint64_t offset, length; /* READ: the range; a length of UINT64_MAX means to the end */
    uint64_t max_bytes;      /* READ: a longer answer is refused; UINT64_MAX: no limit */
    uint32_t flags;          /* enum file_flags */
    uint32_t mode;           /* WRITE with FILE_MODE_SET: permission bits */
    const uint8_t *data;     /* WRITE with FILE_INLINE */
    size_t len;
};

/** file_request_encode() - @w needs the path, @x->len and 128 bytes more */
void file_request_encode(struct writer *w, const struct file_request *x);

/** file_request_decode() - defaults for what is absent: all of it, no limit. 0 or -EPROTO */
int file_request_decode(struct reader message, struct file_request *ret);

/* FILE, and one entry of LISTED. */
struct file_info {
    const char *name;        /* entries: its bytes */
    uint32_t kind;           /* enum file_kind */
    uint32_t mode;           /* permission bits, with set-id and sticky bits */
    uint64_t size;           /* bytes; of a regular file only */
    uint64_t mtime_ns;       /* since the epoch; earlier counts as 0 */
    const char *link_target; /* of a link; NULL otherwise */
    uint32_t target_kind;    /* of a link in LISTED: what it leads to; FILE_LINK when nothing */
};

void file_info_encode(struct writer *w, const struct file_info *x);
int file_info_decode(struct reader message, struct file_info *ret);

/** file_entry_encode() - one ENTRY of LISTED; file_entry_size() - bytes that takes at most */
void file_entry_encode(struct writer *w, const struct file_info *x);
size_t file_entry_size(const struct file_info *x);

/**
 * file_entry_next() - the next ENTRY of a LISTED message
 * @r: the message's payload; moved on
 *
 * A name that is empty, ".", ".." or holds a "/" is no name of an entry. Return: 1 with @ret set;
 * 0 at the end; -EPROTO.
 */
int file_entry_next(struct reader *r, struct file_info *ret);

/*
 * ERROR of a file operation carries, beside class and code, what its sentence needs: the path, and
 * the kind or sizes. One without MESSAGE is put into words by the client (core/file_error.h).
 */
struct file_fault {
    uint32_t code; /* errno: ENOENT, EISDIR, ENOTDIR, EACCES, EFBIG (over max_bytes) … */
    const char *path;
    uint32_t kind;      /* with EINVAL: not a regular file but this; FILE_REGULAR: not said */
    uint64_t size, max; /* with EFBIG */
};

void file_fault_encode(struct writer *w, uint32_t error_class, const struct file_fault *x);

/** file_fault_decode() - false when the message has no path: then it is an error of another sort */
bool file_fault_decode(struct reader message, struct file_fault *ret);

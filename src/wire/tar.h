/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar streams, by which trees are copied into and out of a sandbox. Both ends use this file: the
 * host's and the one inside, which has no allocation and no libc to speak of.
 *
 * Written are POSIX ustar headers, with a pax extended header in front of those that ustar cannot
 * express (IEEE Std 1003.1, pax, "pax Interchange Format"). Read is what the common programs write:
 * v7, ustar, pax, and GNU tar's long names and binary numbers. What would be taken differently by
 * different readers is refused. Nothing here allocates, waits, or makes a system call.
 */
#pragma once

#include "wire/reader.h"

enum {
    TAR_BLOCK_BYTES = 512,
    TAR_PATH_MAX = 4096,       /* bytes of a path or link target, without its NUL */
    TAR_HEADER_MAX = 19 * 512, /* what tar_header() writes at most */
    TAR_END_BYTES = 1024,      /* so many zeros end an archive */
};

enum tar_kind {
    TAR_FILE,
    TAR_FOLDER,
    TAR_SYMLINK,
    TAR_HARDLINK, /* @link is the path of an earlier entry */
    TAR_FIFO,
    TAR_CHAR_DEVICE, /* read only: never written */
    TAR_BLOCK_DEVICE,
    TAR_KIND__MAX,
};

struct tar_entry {
    const char *path; /* any bytes but NUL; a view. A folder's may end with "/" */
    const char *link; /* of a symlink or hard link, otherwise ""; a view */
    uint64_t size;    /* bytes of data that follow; 0 for all but files */
    int64_t mtime;    /* seconds since 1970; the fraction counts upwards, as in struct timespec */
    uint32_t mtime_ns;
    uint32_t mode; /* permissions, at most 07777 */
    enum tar_kind kind;
};

/* Zeros for padding and for the end of an archive. */
extern const uint8_t tar_zeros[TAR_END_BYTES];

/**
 * tar_header() - what stands in the archive before @e's data
 * @buf: TAR_HEADER_MAX bytes are always enough
 *
 * Names go through as they are, UTF-8 or not. Owner and group are 0. Return: the number of bytes, a
 * multiple of TAR_BLOCK_BYTES, or 0 when the entry cannot be written: its path (or a link's target)
 * is empty or longer than TAR_PATH_MAX, it is a device, or its time or size is out of range.
 */
size_t tar_header(const struct tar_entry *e, void *buf, size_t size);

/** tar_padding() - how many zeros must follow @size bytes of data */
static inline size_t tar_padding(uint64_t size)
{
    return (size_t)(-size % TAR_BLOCK_BYTES);
}

enum tar_event {
    TAR_MORE,      /* the input is used up */
    TAR_ENTRY,     /* @entry is there; its data follows as TAR_DATA, then TAR_ENTRY_END */
    TAR_DATA,      /* @data is the next piece of the file, never empty */
    TAR_ENTRY_END, /* also after entries without data */
    TAR_END,       /* the end blocks have been read; what follows them is ignored */
    TAR_BAD,       /* @fault says why; nothing more can be read */
};

enum tar_fault {
    TAR_FAULT_NONE,
    TAR_FAULT_CHECKSUM,
    TAR_FAULT_TRUNCATED,
    TAR_FAULT_LONE_ZEROS, /* one block of zeros, then more entries: readers disagree on these */
    TAR_FAULT_SPARSE,
    TAR_FAULT_VOLUME, /* a label, or a part of an archive in several volumes */
    TAR_FAULT_KIND,   /* a type that is not known */
    TAR_FAULT_NUMBER, /* not a number, or out of range */
    TAR_FAULT_SIZE,   /* a size of 8 EiB or more, or negative */
    TAR_FAULT_PATH_LONG,
    TAR_FAULT_PATH_NUL,
    TAR_FAULT_PAX_RECORD, /* the length or form of an extended header's record */
    TAR_FAULT_GLOBAL,     /* a path, link, size or sparse map for all entries that follow */
    TAR_FAULT__MAX,
};

/** tar_fault_text() - what is wrong, one sentence without a full stop; static storage */
const char *tar_fault_text(enum tar_fault fault);

/* Not to be moved while an entry is in use, which points into it. */
struct tar_reader {
    /* For the caller, to read. */
    struct tar_entry entry; /* valid from TAR_ENTRY until the call after TAR_ENTRY_END */
    struct reader data;     /* a view into the input */
    enum tar_fault fault;
    uint64_t offset; /* bytes taken so far */

    /* Private. */
    enum tar_state {
        TAR_STATE_HEADER,
        TAR_STATE_EXTENSION, /* the body of a header that describes the next entry */
        TAR_STATE_DATA,
        TAR_STATE_ENTRY_END,
        TAR_STATE_END,
        TAR_STATE_BAD,
    } state;
    uint64_t left;                                /* bytes of data, or of the extension's body */
    size_t padding;                               /* bytes to skip before the next header */
    bool zeros;                                   /* a block of zeros has been read */
    bool pending;                                 /* an extension waits for its entry */
    char extension;                               /* 'x', 'g', 'L' or 'K' */
    bool has_path, has_link, has_size, has_mtime; /* set by extensions */
    struct {
        enum { PAX_LENGTH, PAX_KEY, PAX_VALUE, PAX_LINE_END } part;
        enum { PAX_OTHER, PAX_PATH, PAX_LINK, PAX_SIZE, PAX_MTIME } field;
        unsigned digits;
        uint32_t left; /* bytes of the record */
        size_t n;      /* bytes of the part */
        char text[64]; /* the keyword, or a number */
    } pax;
    size_t n_block;
    uint8_t block[TAR_BLOCK_BYTES];
    char path[TAR_PATH_MAX + 1], link[TAR_PATH_MAX + 1];
};

/** tar_reader_init() - before the first byte of an archive */
void tar_reader_init(struct tar_reader *t);

/**
 * tar_next() - read on until something is there
 * @in: the next bytes of the archive, of any number; what is used is taken from its front
 *
 * To be called with the same @in until it returns TAR_MORE, which means that @in is empty, or one
 * of the ends.
 */
enum tar_event tar_next(struct tar_reader *t, struct reader *in);

/**
 * tar_finish() - no more bytes will come
 *
 * An archive may lack its end blocks, as long as it ends where an entry ends. No bytes at all are
 * not an archive. Return: TAR_FAULT_NONE when it is whole; otherwise what is wrong.
 */
enum tar_fault tar_finish(struct tar_reader *t);

enum tar_path {
    TAR_PATH_OK,
    TAR_PATH_EMPTY,
    TAR_PATH_ABSOLUTE,
    TAR_PATH_UP,   /* has a ".." */
    TAR_PATH_NUL,  /* has a NUL inside */
    TAR_PATH_LONG, /* for the kernel: 4096 bytes and more, or one name over 255 */
    TAR_PATH__MAX,
};

/**
 * tar_path_check() - whether an entry's @path may be used beneath a folder
 * @clean: becomes the path without ".", empty parts and a slash at its end, or "." for the folder
 *         itself; of no use unless the path is good
 *
 * A judgement of the text only: what is a symbolic link must be found while walking. A pure
 * function.
 */
enum tar_path tar_path_check(const char *path, size_t len, char clean[static TAR_PATH_MAX + 1]);

/** tar_path_text() - what is wrong, to stand after the path: "it is absolute"; static storage */
const char *tar_path_text(enum tar_path verdict);

/**
 * tar_link_stays() - whether a symbolic link cannot lead out of its tree
 * @clean:  where it stands, as tar_path_check() made it
 * @target: what it holds
 * @top:    how many parts of @clean name the tree's own top folder: 0 or 1
 *
 * ".." may only stand at the beginning of @target: after a name, which may be another link's, it
 * could lead anywhere. If all links of a tree are judged so, they cannot lead out together either.
 * A pure function.
 */
bool tar_link_stays(const char *clean, const char *target, size_t top);

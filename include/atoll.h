/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libatoll: disposable sandboxes for code that nobody has read.
 *
 *     struct atoll *a;
 *     struct atoll_error err;
 *     atoll_new(&a, &err);
 *     struct atoll_spec *spec = atoll_spec_new();
 *     atoll_spec_set(spec, "spec.env", "LANG=C.UTF-8", &err);
 *     struct atoll_op *op = atoll_create(a, spec, ATOLL_OWNED);
 *     if (atoll_wait(op, ATOLL_FOREVER) == 0)
 *         struct atoll_sandbox *sb = atoll_op_sandbox(op);
 *
 * The rules that hold for all of it:
 *
 * - A context (struct atoll) and everything made from it belong to one thread at a time. There are
 *   no globals, no threads, no signal handlers; two contexts never touch each other.
 * - Everything that takes time is an operation: it is started, then driven by atoll_step() whenever
 *   atoll_fd() is readable, until atoll_op_done(). No call blocks unless its name ends in _wait.
 *   Any number of operations may be under way at once.
 * - Starting an operation never fails by itself: an operation that could not be started is done at
 *   once, with its error. Only memory running out gives NULL.
 * - Paths are bytes and are looked up inside the sandbox, relative ones from its working directory.
 *   Sizes are bytes, times microseconds.
 * - Strings and buffers that are passed in are copied before the call returns, unless the text says
 *   borrowed. What is handed out lives as long as the object it was asked of.
 * - Every descriptor is close-on-exec. SIGPIPE is the caller's to ignore.
 *
 * The protocol behind it is docs/design/protocol.md; the fields of a spec are in
 * docs/reference/spec.md, the classes of errors in docs/reference/errors.md.
 */
#ifndef ATOLL_H
#define ATOLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The version of this header; atoll_version() is that of the library. */
#define ATOLL_VERSION_MAJOR 0
#define ATOLL_VERSION_MINOR 1

#define ATOLL_FOREVER UINT64_MAX

struct atoll;         /* a context */
struct atoll_spec;    /* what a sandbox is to be */
struct atoll_sandbox; /* a handle on a live sandbox */
struct atoll_op;      /* an operation under way */

/** atoll_version() - "0.1.0"; static storage */
const char *atoll_version(void);

/* --- errors --- */

enum atoll_error_class {
    ATOLL_RECOVERABLE = 0, /* another path or other arguments may work */
    ATOLL_TOO_LARGE = 1,   /* a stated ceiling was reached; ask for less or a part */
    ATOLL_TERMINAL = 2,    /* this sandbox, or this host, cannot go on */
    ATOLL_USAGE = 3,       /* a mistake of the caller's, found before anything was started */
};

struct atoll_error {
    int code;           /* errno value; 0: no error */
    int cls;            /* enum atoll_error_class */
    char message[1024]; /* what happened: one plain sentence, with its place in front */
    char remedy[384];   /* what to do about it, or empty */
};

/* --- context --- */

/**
 * atoll_new() - a context
 *
 * Return: 0 with @ret owned by the caller; a negative errno with @err set (may be NULL).
 */
int atoll_new(struct atoll **ret, struct atoll_error *err);

/**
 * atoll_free() - free a context with every operation and handle made from it
 *
 * Sandboxes that were created with ATOLL_OWNED end; others live on. Blocks until the keepers of
 * owned sandboxes have ended them, a few milliseconds each. NULL is harmless.
 */
void atoll_free(struct atoll *a);

/**
 * atoll_set_program() - which `atoll` program to start for local sandboxes
 * @path: absolute; NULL: the environment's ATOLL_PROGRAM, else the one this library was installed
 *        with, else the first on the PATH
 *
 * Return: 0 or -EINVAL, -ENOMEM.
 */
int atoll_set_program(struct atoll *a, const char *path);

/**
 * atoll_fd() - a descriptor that is readable whenever atoll_step() has something to do
 *
 * Deadlines count: no timeout of the caller's is needed. For poll(2), epoll(7) or an event loop.
 * Owned by the context; always the same. The first call makes it ready for that, and is to come
 * before the waiting. Return: a negative errno when there are no descriptors to spare.
 */
int atoll_fd(struct atoll *a);

/**
 * atoll_step() - do what can be done now
 *
 * Never blocks. Return: 0, or a negative errno when the context itself is broken.
 */
int atoll_step(struct atoll *a);

/* --- operations --- */

/** atoll_op_done() - whether it is over, well or badly */
bool atoll_op_done(const struct atoll_op *op);

/**
 * atoll_wait() - drive the context until @op is done
 * @timeout_us: from now; ATOLL_FOREVER
 *
 * The one call that blocks; other operations of the context move on meanwhile. Return: 0 when it
 * ended well; its negative errno when badly (see atoll_op_error()); -EINPROGRESS when it is not
 * done, and then it is still under way.
 */
int atoll_wait(struct atoll_op *op, uint64_t timeout_us);

/** atoll_op_error() - how a done operation failed, or NULL; lives as long as @op */
const struct atoll_error *atoll_op_error(const struct atoll_op *op);

/**
 * atoll_op_cancel() - give it up
 *
 * A command is killed with every process that it started, a sandbox that is being created is
 * removed, a write leaves the old file as it was. The operation becomes done, with ECANCELED unless
 * it came to its end first. Never blocks.
 */
void atoll_op_cancel(struct atoll_op *op);

/**
 * atoll_op_set_timeout() - cancel it by itself after @us from now, with ETIMEDOUT
 *
 * For a command this is the caller's patience; its own timeout, which the sandbox keeps, is
 * atoll_exec.timeout_us.
 */
void atoll_op_set_timeout(struct atoll_op *op, uint64_t us);

/** atoll_op_set_data(), atoll_op_data() - a pointer of the caller's */
void atoll_op_set_data(struct atoll_op *op, void *data);
void *atoll_op_data(const struct atoll_op *op);

/**
 * atoll_op_free() - free an operation with its results; one that is under way is cancelled
 *
 * Handles taken from it live on. NULL is harmless.
 */
void atoll_op_free(struct atoll_op *op);

/* --- spec --- */

/** atoll_spec_new() - the defaults: no network, nothing of the host's. NULL: out of memory */
struct atoll_spec *atoll_spec_new(void);
void atoll_spec_free(struct atoll_spec *s);

/**
 * atoll_spec_read() - take a spec from YAML or JSON text
 * @json:   whether it is JSON
 * @folder: against which relative paths of the host are taken; NULL: the current one
 *
 * What @s held before is replaced. Return: 0, or -EINVAL with every problem named in @err, as far
 * as it holds them; then @s is unchanged.
 */
int atoll_spec_read(struct atoll_spec *s, const char *text, size_t len, bool json,
                    const char *folder, struct atoll_error *err);

/**
 * atoll_spec_set() - one field, as a spec file names it: "backend.memory", "512M"
 *
 * For lists and maps it adds an entry ("spec.env", "NAME=VALUE"). "name" is what a person calls the
 * sandbox. Return: 0, or a negative errno
 * with @err set; then @s is unchanged.
 */
int atoll_spec_set(struct atoll_spec *s, const char *field, const char *value,
                   struct atoll_error *err);

/* --- sandboxes --- */

enum atoll_create_flags {
    ATOLL_OWNED = 1 << 0, /* ends with its handle or its creator, whichever goes first; without it
                             the sandbox lives until its lifetime ends or it is destroyed */
};

/**
 * atoll_create() - make a sandbox
 * @spec: borrowed during the call
 *
 * What the backend cannot hold the sandbox to is refused before there is one. Done when the sandbox
 * stands and its inputs are in it; then atoll_op_sandbox() is its handle.
 */
struct atoll_op *atoll_create(struct atoll *a, const struct atoll_spec *spec, unsigned flags);

/**
 * atoll_open() - a handle on a sandbox that stands, by its id
 *
 * Fails with a sentence of its own for an id that was made on another host, before this host's last
 * start, or by another user.
 */
struct atoll_op *atoll_open(struct atoll *a, const char *id);

/* For whom a shared sandbox is used. */
struct atoll_attach {
    const char *owner;  /* whom it was made for: backend and caller must agree */
    const char *holder; /* who uses it now; a retry is the same holder */
    uint64_t keep_us; /* how long it is kept for the holder when the holder dies; 0: free at once */
};

/**
 * atoll_attach() - a handle on a sandbox that stands, and its lease
 * @x: copied
 *
 * While the handle lives nobody else runs commands, writes files or changes the policy there;
 * reading stays open to all. Another live holder, another owner, or a sandbox without one is
 * refused, naming both. The same holder may attach again: the later handle wins, and the earlier
 * one is told that its lease is over. Freeing the handle, or the end of this process, gives the
 * lease back, at once or after keep_us; of a backend with tags only atoll_release() does, and a
 * keep_us is refused. Then atoll_op_sandbox() and atoll_op_attached().
 */
struct atoll_op *atoll_attach(struct atoll *a, const char *id, const struct atoll_attach *x);

struct atoll_attached {
    uint32_t generation; /* of the lease: what others present to act for the same holder; 0: tags,
                            not a lock, hold it */
    uint64_t left_us;    /* of the sandbox's lifetime; UINT64_MAX: no end, or not known */
    const char *network; /* as in struct atoll_info; NULL: not known */
    const char *workdir; /* NULL: not known */
    const char *warning; /* what could not be understood of it; NULL: nothing */
};

/** atoll_op_attached() - what an attach has found; else NULL */
const struct atoll_attached *atoll_op_attached(const struct atoll_op *op);

/** atoll_open_lease() - atoll_open() to act for the holder of lease @generation */
struct atoll_op *atoll_open_lease(struct atoll *a, const char *id, uint32_t generation);

/** atoll_lease() - the generation that a handle acts by; 0: none, or it is over */
uint32_t atoll_lease(const struct atoll_sandbox *sb);

/**
 * atoll_release() - give the lease of an attached handle back; the handle stays open without it
 *
 * Commands that run by the lease are ended, but for detached ones; by tags, none are. Good also
 * when it was over already. Never ends the sandbox.
 */
struct atoll_op *atoll_release(struct atoll_sandbox *sb);

/**
 * atoll_extend() - another lifetime for a sandbox, counted from now
 * @owner: as it was made for; NULL: it has none
 *
 * Then atoll_op_left_us(). Only sandboxes of the backend local have a lifetime that can be changed;
 * for others it fails with EOPNOTSUPP.
 */
struct atoll_op *atoll_extend(struct atoll_sandbox *sb, const char *owner, uint64_t lifetime_us);

/** atoll_op_left_us() - of an extend or a command that ended well: what is left of the lifetime;
 *  UINT64_MAX: no end, or not known */
uint64_t atoll_op_left_us(const struct atoll_op *op);

/** atoll_op_sandbox() - the handle of a create or open that ended well, owned by the caller */
struct atoll_sandbox *atoll_op_sandbox(struct atoll_op *op);

/** atoll_sandbox_id() - "sb-…", or "NAME:…" of another backend */
const char *atoll_sandbox_id(const struct atoll_sandbox *sb);

/**
 * atoll_sandbox_free() - let a handle go
 *
 * Operations on it that are under way are cancelled. An owned sandbox ends.
 */
void atoll_sandbox_free(struct atoll_sandbox *sb);

/** atoll_destroy() - end a sandbox; when done, nothing of it is left. Good if it is gone already */
struct atoll_op *atoll_destroy(struct atoll_sandbox *sb);

/**
 * atoll_destroy_as() - the same for one that was made for somebody
 * @owner: whom for; NULL: it has none
 * @force: whoever owns it, and also while it is held
 *
 * atoll_destroy() presents no owner, which is enough for a handle of atoll_create().
 */
struct atoll_op *atoll_destroy_as(struct atoll_sandbox *sb, const char *owner, bool force);

struct atoll_info {
    const char *id, *name, *owner, *backend, *image, *workdir, *hostname; /* NULL: none */
    /* What it may reach: {"allow_egress_to":[],"allow_egress_to_cidrs":[],"block_network":true}
     * with the entries of its spec; NULL: not known. */
    const char *network;
    const char *state;                     /* "creating", "running", "paused", "ending", "gone" */
    uint64_t created_at_us, expires_at_us; /* since the epoch; 0: never */
    uint64_t idle_us;                      /* idle timeout; 0: none */
    uint64_t disk_used, disk_limit, inodes_used, inodes_limit, pids_limit;
    uint32_t uid, gid, processes, commands, keeper_pid, landlock_abi;
    const char *const *tags;      /* K=V, NULL-terminated */
    uint32_t policy_generation;   /* 1 at first, one more with each change; 0: not known */
    const char *const *published; /* ADDR:PORT:PORT with the ports that were picked, likewise */
    const char *lease;            /* "none", "free", "held", "kept" */
    const char *holder;           /* NULL: it is not held */
    uint32_t lease_generation;    /* of the last attach; 0: there was none */
    uint64_t lease_until_us;      /* "kept": since the epoch */
    uint64_t memory_limit, cpu_milli, max_cost_micro; /* ceilings; 0: none */
    uint64_t cpu_us;                                  /* used by all that ran inside */
    uint64_t memory_used, memory_peak;                /* bytes; 0: not measured */
    uint64_t egress_sent, egress_received;            /* bytes */
    uint64_t cost_micro; /* millionths of the currency of the prices; 0: no prices */
    uint32_t oom_kills;
};

/** atoll_inspect() - what a sandbox is and uses; then atoll_op_info() */
struct atoll_op *atoll_inspect(struct atoll_sandbox *sb);

/* Edits of a network policy: lists that end with NULL; NULL: none. */
struct atoll_policy_edits {
    const char *const *allow_hosts;  /* HOST or HOST:PORT: added to allow_egress_to */
    const char *const *allow_ranges; /* added to allow_egress_to_cidrs */
    const char *const *remove;       /* entries of either list, as they are there or equal to it */
};

/**
 * atoll_change_policy() - change what a sandbox may reach while it stands
 * @e: copied
 *
 * Entries are removed first, then others added; one that is there already is not added again. The
 * result is judged as a whole, as that of a new sandbox would be, and takes effect as a whole: when
 * the operation is done, connections that it forbids are cut. When it fails, the policy before
 * holds. A sandbox with an open network cannot be changed. Then atoll_op_policy().
 */
struct atoll_op *atoll_change_policy(struct atoll_sandbox *sb, const struct atoll_policy_edits *e);

struct atoll_policy {
    const char *network; /* as in struct atoll_info */
    uint32_t generation; /* 1 at first, one more with each change */
    uint32_t flows_cut;  /* connections that this change has ended */
};

/** atoll_op_policy() - the policy in force after a change that went well; else NULL */
const struct atoll_policy *atoll_op_policy(const struct atoll_op *op);

/**
 * atoll_list() - all live sandboxes of the caller
 * @backend: "local", or a backend program's name
 *
 * Then atoll_op_info() with each index below atoll_op_count().
 */
struct atoll_op *atoll_list(struct atoll *a, const char *backend);

/** atoll_op_count() - how many results a list has */
size_t atoll_op_count(const struct atoll_op *op);
const struct atoll_info *atoll_op_info(const struct atoll_op *op, size_t i);

/* --- commands --- */

enum atoll_exec_flags {
    ATOLL_STDIN = 1 << 0,   /* atoll_op_take_fd(op, 0) is a pipe to its standard input; otherwise
                               that is empty, or exec.input */
    ATOLL_STREAMS = 1 << 1, /* atoll_op_take_fd(op, 1 and 2) are pipes from it; otherwise what it
                               writes is captured, see atoll_op_output(). The operation may have
                               to fill the pipes: keep it until it is done */
    ATOLL_DETACH = 1 << 2,  /* outlives the handle; output is dropped; done when it has started */
    ATOLL_USER = 1 << 3,    /* uid and gid are given */
};

struct atoll_exec {
    const char *const *argv; /* NULL-terminated; not read by a shell */
    const char *const *env;  /* NAME=VALUE, NULL-terminated, on top of the spec's; NULL: none */
    const char *workdir;     /* NULL: the sandbox's */
    uint32_t uid, gid;
    unsigned flags;
    uint64_t timeout_us; /* after which all it started is killed; 0: none */
    const void *input;   /* what it reads from standard input; NULL: nothing */
    size_t input_len;
    size_t capture_max; /* bytes kept of each stream, the last ones; 0: 1 MiB */
};

/**
 * atoll_exec() - run a command; done when it has ended and its output is here
 *
 * A process that it leaves in the background may hold its output open. That is waited for until
 * there is silence for 0.1 s, and 1 s at most for what the command has not written itself.
 */
struct atoll_op *atoll_exec(struct atoll_sandbox *sb, const struct atoll_exec *x);

/** atoll_op_signal() - send a signal to the process group of a running command; 0 or -errno */
int atoll_op_signal(struct atoll_op *op, int signal);

/**
 * atoll_op_take_fd() - a descriptor of an operation, owned by the caller from now on
 * @i: commands: 0, 1, 2 as above. Reads, packs: 0, where the bytes come from. Writes, unpacks: 0,
 *     where they go
 *
 * Available at once for commands, packs, unpacks and writes; for reads when done. Non-blocking,
 * unless it is a regular file. Return: -EBADF when there is none or it was taken.
 */
int atoll_op_take_fd(struct atoll_op *op, int i);

/* An attempt to get out that the network policy refused. */
struct atoll_denial {
    const char *protocol; /* "dns", "tcp", "udp", "tls", "http", "other" */
    const char *name; /* that was asked for or connected to; empty: none. As the guest wrote it */
    const char *address; /* empty: a name was only asked for */
    uint32_t port;       /* 0: none */
    const char *rule;    /* "allow_egress_to[2] 'example.org'", or "no rule" */
    const char *reason;  /* one sentence without a full stop */
    uint64_t bytes;      /* that came before it was refused */
    uint64_t at_us;      /* since the epoch; the first time */
    uint64_t repeated;   /* how often the same came again */
};

struct atoll_exit {
    int exit_code;       /* of exit(), when signal is 0 */
    int signal;          /* that ended it */
    const char *reason;  /* "exited", "timeout", "oom", "killed", "lifetime", "error", "cost" */
    const char *problem; /* why it did not start, as a sentence; NULL: it ran */
    int status;          /* as a shell says it: the code; 124 timeout; 125; 126; 127; 128+n */
    uint32_t command;    /* its number in the sandbox */
    uint64_t wall_us, user_us, system_us, peak_rss_bytes;
    uint64_t stdout_total, stderr_total; /* bytes written, those not captured included */
    /* What was refused while it ran, each different attempt once, by this command or another one
     * that ran at the same time; and how many more there were. */
    const struct atoll_denial *denials;
    size_t n_denials;
    uint64_t more_denials;
    uint64_t timeout_us; /* that was applied, which may be less than was asked for; 0: none */
};

/**
 * atoll_op_exit() - how a command ended; NULL before it is done, and when it never ran
 *
 * Of a command that was started with ATOLL_DETACH only its number is told.
 */
const struct atoll_exit *atoll_op_exit(const struct atoll_op *op);

/** atoll_op_output() - what was captured of a stream (1 or 2), NUL-terminated behind @ret_len */
const void *atoll_op_output(const struct atoll_op *op, int stream, size_t *ret_len);

struct atoll_command {
    uint32_t number, pid;
    bool detached, tty;
    uint64_t started_at_us, timeout_us;
    const char *const *argv; /* NULL-terminated; cut when long */
};

/** atoll_ps() - the running commands; then atoll_op_command() below atoll_op_count() */
struct atoll_op *atoll_ps(struct atoll_sandbox *sb);
const struct atoll_command *atoll_op_command(const struct atoll_op *op, size_t i);

/** atoll_kill() - kill command @number with every process it started; 0: all commands */
struct atoll_op *atoll_kill(struct atoll_sandbox *sb, uint32_t number);

/* --- files --- */

enum atoll_kind {
    ATOLL_FILE = 0,
    ATOLL_FOLDER = 1,
    ATOLL_LINK = 2,
    ATOLL_FIFO = 3,
    ATOLL_SOCKET = 4,
    ATOLL_DEVICE = 5,
};

struct atoll_file {
    const char *name; /* in a folder's list; NULL otherwise */
    int kind;         /* enum atoll_kind */
    uint32_t mode;    /* permission bits */
    uint64_t size;
    uint64_t mtime_ns;  /* since the epoch */
    const char *target; /* of a link */
    int target_kind;    /* of a link in a list: what it leads to; ATOLL_LINK: nothing */
};

/**
 * atoll_read() - bytes of a regular file, following links inside
 * @length:    UINT64_MAX: to the end
 * @max_bytes: a longer answer is refused with ATOLL_TOO_LARGE before any of it moves; UINT64_MAX
 *
 * When done, atoll_op_file() tells the file and atoll_op_take_fd(op, 0) is where its bytes are read
 * from: the open file, standing at @offset (stop after @length), or of other backends a pipe that
 * ends with the range. The operation feeds that pipe: keep it until the end, and look at
 * atoll_op_error() then, which tells of a connection lost halfway. A folder, FIFO, socket or device
 * is an error, never a wait.
 */
struct atoll_op *atoll_read(struct atoll_sandbox *sb, const char *path, uint64_t offset,
                            uint64_t length, uint64_t max_bytes);

/** atoll_read_bytes() - the same, into memory: atoll_op_output(op, 1, …) when done */
struct atoll_op *atoll_read_bytes(struct atoll_sandbox *sb, const char *path, uint64_t offset,
                                  uint64_t length, uint64_t max_bytes);

/**
 * atoll_write_bytes() - a whole file, atomically
 * @mode: permission bits; ATOLL_KEEP_MODE: the old file's, else 0666 less the umask
 *
 * Missing folders are made. An existing file keeps owner and extended attributes; a symbolic link
 * is followed and its target replaced. Until it is done, readers see the old file.
 */
#define ATOLL_KEEP_MODE UINT32_MAX
struct atoll_op *atoll_write_bytes(struct atoll_sandbox *sb, const char *path, const void *data,
                                   size_t len, uint32_t mode);

/**
 * atoll_write() - the same from a pipe: atoll_op_take_fd(op, 0), then atoll_write_commit()
 *
 * Closing the pipe ends the content; only the commit puts the file in place, so that a writer that
 * dies leaves the old one.
 */
struct atoll_op *atoll_write(struct atoll_sandbox *sb, const char *path, uint32_t mode);
void atoll_write_commit(struct atoll_op *op);

/** atoll_list_folder() - what is in a folder, links to folders followed; unsorted */
struct atoll_op *atoll_list_folder(struct atoll_sandbox *sb, const char *path);

/** atoll_stat() - one file; @follow: links are followed */
struct atoll_op *atoll_stat(struct atoll_sandbox *sb, const char *path, bool follow);

/** atoll_op_file() - result of read and stat (@i 0), or an entry of a list */
const struct atoll_file *atoll_op_file(const struct atoll_op *op, size_t i);

/**
 * atoll_pack() - a file or folder as a tar stream (pax) from atoll_op_take_fd(op, 0)
 *
 * The top entry has the path's last part as its name. Sockets, FIFOs and devices are left out:
 * atoll_op_skipped().
 */
struct atoll_op *atoll_pack(struct atoll_sandbox *sb, const char *path);

/** atoll_unpack() - a tar stream written to atoll_op_take_fd(op, 0) into a folder, made if absent
 */
struct atoll_op *atoll_unpack(struct atoll_sandbox *sb, const char *path);

/** atoll_op_skipped() - paths that a pack left out, or an unpack, below atoll_op_count() */
const char *atoll_op_skipped(const struct atoll_op *op, size_t i);

/* --- exports --- */

/**
 * atoll_export() - publish files and folders of a sandbox
 * @exports:   "PATH=URL", NULL-terminated; a PATH with *, ? or [ is a pattern, and its URL then a
 *             folder. URL is file:///PATH; {id} in it is the sandbox's id, {time} the time of this
 *             call in UTC, as 20261130T065347Z, and %7B and %7D are braces
 * @max_bytes: of one file; 0: 1 GiB
 *
 * Everything is copied next to its destination first, under another name, and compared with what
 * came out of the sandbox; then all of it is put in place by renaming. If anything fails, nothing
 * has changed anywhere and the error names the path, the destination and the cause. A file that
 * changes while it is read is such a failure, as is one that tools of the host would run later
 * (.git/hooks, .envrc and the like) and that was not asked for by its own name. Folders get a
 * manifest with sizes and SHA-256 sums. Then atoll_op_exported().
 */
struct atoll_op *atoll_export(struct atoll_sandbox *sb, const char *const *exports,
                              uint64_t max_bytes);

struct atoll_exported {
    const char *path;   /* as it was asked for */
    const char *url;    /* the same, with {id} and {time} filled */
    const char *sha256; /* of a single file, in hexadecimal; NULL: a folder, see its manifest */
    uint64_t files, bytes;
};

/** atoll_op_exported() - what was published, below atoll_op_count(), in the order asked for */
const struct atoll_exported *atoll_op_exported(const struct atoll_op *op, size_t i);

/**
 * atoll_op_progress() - how far an export has come
 *
 * Return: the bytes copied so far.
 */
uint64_t atoll_op_progress(const struct atoll_op *op);

/** atoll_op_warning() - what went wrong without failing @op, sentence @i; NULL after the last */
const char *atoll_op_warning(const struct atoll_op *op, size_t i);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif

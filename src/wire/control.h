/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of the sandbox protocol: what a caller asks of a keeper, what it answers, and
 * the few more that a keeper and its init share. docs/design/protocol.md shows the order of them.
 *
 * Encoders write fields into a writer, decoders read them from a message; both are pure. A decoder
 * returns 0 or -EPROTO (a field is missing, damaged, out of range). Views live as long as the
 * message.
 */
#pragma once

#include <errno.h>

#include "wire/frame.h"

/* A peer of another major version is refused; a newer minor version only adds fields or types.
 * (A build that speaks an earlier one is what newer clients are tested with.) */
#ifndef PROTOCOL_MINOR
#define PROTOCOL_MINOR 3
#endif
enum { WIRE_VERSION_MAJOR = 1, WIRE_VERSION_MINOR = PROTOCOL_MINOR };

enum message_type {
    /* asked by a caller */
    MSG_HELLO = 1,   /* first message both ways */
    MSG_CREATE = 2,  /* a spec (core/spec.h); answered by CREATED or ERROR */
    MSG_EXEC = 3,    /* start a command; its id names it from now on */
    MSG_SIGNAL = 4,  /* to a command's process group */
    MSG_RESIZE = 5,  /* a command's terminal, in-band form only */
    MSG_INPUT = 6,   /* bytes for stdin, in-band form; no bytes: end of input */
    MSG_CREDIT = 7,  /* the receiver of a stream may take that many bytes more */
    MSG_DESTROY = 8, /* answered by ENDED when nothing is left */

    /* since 1.1: a sandbox that is held, its commands and files */
    MSG_OPEN = 9,       /* a sandbox that stands, by its id; answered by CREATED */
    MSG_DESCRIBE = 10,  /* what this backend can do; answered by DESCRIBED */
    MSG_INSPECT = 11,   /* enum inspect_flags; answered by SANDBOX */
    MSG_ENUMERATE = 12, /* all sandboxes of this backend; SANDBOX each, then DONE */
    MSG_PS = 13,        /* answered by COMMANDS */
    MSG_STOP = 14,      /* end every process of one command, by number, or of all; DONE */
    MSG_FILES = 15,     /* a connection for the file operations below; answered by FILES_OPENED */
    MSG_READ = 16,      /* FILE with a descriptor; in-band: FILE, then OUTPUT */
    MSG_WRITE = 17,     /* a whole file, atomically; DONE */
    MSG_COMMIT = 18,    /* the content of WRITE is complete */
    MSG_LIST = 19,      /* LISTED as often as needed, then DONE */
    MSG_STAT = 20,      /* FILE */
    MSG_PACK = 21,      /* a file or folder as a tar stream; DONE */
    MSG_UNPACK = 22,    /* a tar stream into a folder; DONE */
    MSG_CANCEL = 23,    /* give up the operation with this id; it is answered by ERROR */

    /* since 1.2 */
    MSG_POLICY = 24, /* edits of the network policy; answered by POLICY_SET */

    /* since 1.3: a sandbox that several share */
    MSG_ATTACH = 25,   /* take the lease for a holder; answered by ATTACHED */
    MSG_RELEASE = 26,  /* give it back; DONE, also when it was another's */
    MSG_PRESENT = 27,  /* this connection acts for the holder of a lease; DONE */
    MSG_EXTEND = 28,   /* another lifetime, from now on; answered by EXTENDED */
    MSG_TAGS = 29,     /* of a backend that has tags in the place of leases; TAGS_READ */
    MSG_SET_TAGS = 30, /* all of them anew; DONE */
    MSG_EXPORTED = 31, /* for the events: a file has left, or could not; DONE */

    /* answered or told by a sandbox */
    MSG_CREATED = 32,
    MSG_STARTED = 33, /* with the terminal's descriptor, if there is one */
    MSG_OUTPUT = 34,  /* bytes of stdout or stderr, in-band form; no bytes: the stream ended */
    MSG_EXITED = 35,
    MSG_ENDED = 36,
    MSG_ERROR = 37, /* the request with this id failed */
    MSG_STEP = 38,  /* one set-up step is done, if CREATE asked for that */
    MSG_DONE = 39,  /* since 1.1 from here on */
    MSG_DESCRIBED = 40,
    MSG_SANDBOX = 41,
    MSG_COMMANDS = 42,
    MSG_FILES_OPENED = 43,
    MSG_FILE = 44,
    MSG_LISTED = 45,
    MSG_POLICY_SET = 46, /* since 1.2: the policy as it is now */
    MSG_ATTACHED = 47,   /* since 1.3 from here on */
    MSG_EXTENDED = 48,
    MSG_LEASE_LOST = 49, /* told, with id 0: the lease that this connection acted by is over */
    MSG_TAGS_READ = 50,

    /* between a keeper and what runs inside only */
    MSG_READY = 64,  /* init runs */
    MSG_FAULT = 65,  /* a set-up step failed */
    MSG_KILL = 66,   /* end every process of a command; with id 0 what commands that have ended left
                      * behind, of the number in it on, but for detached ones */
    MSG_KILLED = 67, /* it is done, or could not be */
    MSG_GO = 68,     /* ids are mapped; with descriptors of mounts that needed the keeper */

    /* between a keeper and its egress process only */
    MSG_INSIDE = 80,  /* to egress: sandbox-side sockets, in the order of enum inside_socket */
    MSG_SOCKETS = 81, /* from egress: it is short of sockets for published ports; to it: some */
    MSG_DENIED = 82,  /* from egress: one struct denial (wire/denial.h) */
    MSG_SYNC = 83,    /* to egress: tell what was refused so far; answered by SYNCED */
    MSG_SYNCED = 84,
    MSG_GENERATION = 85,   /* to egress: the fields of a new policy; answered by APPLIED */
    MSG_APPLIED = 86,      /* with the number of flows that were cut */
    MSG_EGRESS_FAULT = 87, /* from egress: why it cannot go on (wire/fault.h); it exits */
    MSG_FINISH = 88, /* to egress: nobody is inside any more; it passes on what they have sent,
                        and exits */
    MSG_BUSY = 89,   /* from egress: how many connections to published ports there are, when that
                        becomes none or is none no more */
};

/** message_name() - a request's word: "read", "pack"; NULL for what is none */
const char *message_name(uint16_t type);

/** message_since() - the minor version that brought a request */
uint32_t message_since(uint16_t type);

enum field_tag {
    TAG_VERSION_MAJOR = 1,
    TAG_VERSION_MINOR,
    TAG_PROGRAM,

    TAG_ARG = 16, /* repeated, in order */
    TAG_ENV,      /* repeated, NAME=VALUE */
    TAG_WORKDIR,
    TAG_UID,
    TAG_GID,
    TAG_EXEC_FLAGS,
    TAG_TIMEOUT_US,
    TAG_ROWS,
    TAG_COLUMNS,

    TAG_SIGNAL = 32,
    TAG_STREAM,
    TAG_DATA,
    TAG_CREDIT,
    TAG_PID,
    TAG_SIGNAL_FLAGS,

    TAG_EXIT_CODE = 48,
    TAG_REASON,
    TAG_WALL_US,
    TAG_USER_US,
    TAG_SYSTEM_US,
    TAG_PEAK_RSS_BYTES,
    TAG_START_ERRNO,
    TAG_START_STAGE,
    TAG_INTERPRETER,
    TAG_LEFT_EMPTY,

    TAG_ERROR_CLASS = 64,
    TAG_ERROR_CODE,
    TAG_ERROR_CONTEXT,
    TAG_ERROR_MESSAGE,
    TAG_ERROR_REMEDY,

    TAG_STEP_INDEX = 80,
    TAG_STEP_TEXT,
    TAG_STEP_US,
    TAG_ENDED_BY,
    TAG_LANDLOCK_ABI,

    TAG_IMAGE = 96,
    TAG_HOSTNAME,
    TAG_DISK_BYTES,
    TAG_PIDS,
    TAG_LIFETIME_US,
    TAG_CREATE_FLAGS,
    TAG_VOLUME, /* repeated; holds fields of its own */
    TAG_VOLUME_HOST,
    TAG_VOLUME_GUEST,
    TAG_VOLUME_FLAGS,
    TAG_SANDBOX_NAME, /* since 1.1 from here on */
    TAG_OWNER,
    TAG_LABEL,      /* repeated, K=V: a tag of the spec */
    TAG_ALLOW_HOST, /* repeated: allow_egress_to */
    TAG_ALLOW_RANGE,
    TAG_PRIVATE_RANGE,
    TAG_CPU_MILLI,
    TAG_MEMORY_BYTES,
    TAG_IDLE_US,
    TAG_PUBLISH,
    TAG_EGRESS_ENFORCEMENT,
    TAG_RESOLVER,
    TAG_PROXY,
    TAG_PRICE,
    TAG_MAX_COST_MICRO,

    TAG_SANDBOX_ID = 128,
    TAG_STATE,
    TAG_CREATED_AT_US, /* since the epoch */
    TAG_EXPIRES_AT_US,
    TAG_DISK_USED_BYTES,
    TAG_DISK_LIMIT_BYTES,
    TAG_INODES_USED,
    TAG_INODES_LIMIT,
    TAG_PROCESSES,
    TAG_N_COMMANDS,
    TAG_KEEPER_PID,
    TAG_BACKEND,
    TAG_NETWORK,
    TAG_INSPECT_FLAGS,

    TAG_COMMAND = 144, /* repeated; holds fields of its own */
    TAG_COMMAND_NUMBER,
    TAG_STARTED_AT_US,
    TAG_COMMAND_FLAGS,

    TAG_PATH = 160,
    TAG_OFFSET,
    TAG_LENGTH,
    TAG_MAX_BYTES,
    TAG_FILE_FLAGS,
    TAG_ENTRY, /* repeated; holds fields of its own */
    TAG_NAME,
    TAG_KIND,
    TAG_MODE,
    TAG_SIZE,
    TAG_MTIME_NS,
    TAG_LINK_TARGET,
    TAG_SKIPPED,

    TAG_FEATURE = 192, /* repeated */
    TAG_RULE,          /* repeated; holds fields of its own */
    TAG_FIELD,
    TAG_VERDICT,
    TAG_HOW,

    TAG_DENIAL = 208, /* repeated; holds fields of its own; since 1.2 from here on */
    TAG_DENIAL_PROTOCOL,
    TAG_DENIAL_NAME,
    TAG_DENIAL_ADDRESS,
    TAG_DENIAL_PORT,
    TAG_DENIAL_RULE,
    TAG_DENIAL_REASON,
    TAG_DENIAL_BYTES,
    TAG_DENIAL_AT_US,
    TAG_DENIAL_REPEATED,
    TAG_DENIAL_DROPPED,
    TAG_POLICY_GENERATION, /* counts from 1; higher after each change */
    TAG_REMOVE,            /* repeated: an entry of either list, as written */
    TAG_FLOWS_CUT,
    TAG_ADD_HOST,          /* repeated, NAME=ADDR: backend.add_hosts */
    TAG_PUBLISHED,         /* repeated, [ADDR:]PORT:PORT with the port that was picked */
    TAG_PROXY_CREDENTIALS, /* absolute path of a file of the host */

    TAG_HOLDER = 240,     /* since 1.3 from here on */
    TAG_LEASE_GENERATION, /* from 1, higher with each ATTACH; fences those before */
    TAG_LEASE_STATE,
    TAG_LEASE_KEEP_US,  /* how long it is kept for its holder once that is gone */
    TAG_LEASE_UNTIL_US, /* since the epoch: until then it is kept */
    TAG_LEFT_US,        /* of the lifetime */
    TAG_DESTROY_FLAGS,
    TAG_CPU_US, /* used by all that ran inside */
    TAG_MEMORY_USED_BYTES,
    TAG_MEMORY_PEAK_BYTES,
    TAG_EGRESS_SENT_BYTES,
    TAG_EGRESS_RECEIVED_BYTES,
    TAG_COST_MICRO,
    TAG_AUDIT,       /* absolute path of a file of the host */
    TAG_URL,         /* of EXPORTED */
    TAG_DIGEST,      /* likewise: sha256:HEX */
    TAG_CONNECTIONS, /* of BUSY */
    TAG_OOM_KILLS,
};

/* The sockets that egress holds inside the sandbox's network, in the order of INSIDE. */
enum inside_socket {
    INSIDE_TCP4, /* listens, IP_TRANSPARENT, at EGRESS_PORT of loopback */
    INSIDE_TCP6,
    INSIDE_UDP4, /* bound there, IP_TRANSPARENT, with IP_RECVORIGDSTADDR */
    INSIDE_UDP6,
    INSIDE_RAW4, /* sends whole IPv4 packets: how answers get their source address */
    INSIDE_RAW6,
    INSIDE_LOG, /* nfnetlink_log, bound to EGRESS_LOG_GROUP */
    INSIDE__MAX,
};

enum {
    EGRESS_PORT = 64999, /* of loopback inside: where every way out begins */
    EGRESS_LOG_GROUP = 7,
};

/* INSPECT. The values of variables are told only to who asks for them, to keep them out of texts.
 */
enum inspect_flags { INSPECT_ENV = 1 << 0 /* SANDBOX holds the spec's ENV too */ };

enum stream { STREAM_STDIN, STREAM_STDOUT, STREAM_STDERR, STREAM__MAX };

enum exec_flags {
    EXEC_STDIN = 1 << 0,        /* the caller feeds stdin; otherwise it is empty */
    EXEC_TTY = 1 << 1,          /* a terminal instead of three streams */
    EXEC_IN_BAND = 1 << 2,      /* streams as INPUT and OUTPUT messages; otherwise descriptors come
                                   with EXEC: stdin if EXEC_STDIN, stdout, stderr */
    EXEC_REPORT_START = 1 << 3, /* send STARTED also without a terminal */
    EXEC_USER_SET = 1 << 4,     /* uid and gid are given; otherwise the sandbox's own */
    EXEC_LAST = 1 << 5,         /* the sandbox ends with it, unless it leaves processes behind; not
                                   with EXEC_IN_BAND */
    EXEC_DETACH = 1 << 6,       /* since 1.1: outlives the connection; empty stdin, output is
                                   dropped, no descriptors; answered by STARTED, never by EXITED */
    EXEC_FILES = 1 << 7,        /* between a keeper and init only: serve file operations on the one
                                   descriptor that comes along */
    EXEC_READ_ONLY = 1 << 8,    /* with EXEC_FILES: what writes is refused with EROFS */
};

enum signal_flags {
    SIGNAL_ENDS_ALL = 1 << 0, /* when the command ends now, all that it started ends with it: EXITED
                                 comes when every process of it is dead */
};

enum {
    EXEC_STRINGS_MAX = 128 * 1024,    /* arguments and variables together */
    EXEC_STRING_BYTES_MAX = 131071,   /* MAX_ARG_STRLEN of execve(2) less its NUL */
    STREAM_WINDOW_BYTES = 256 * 1024, /* what may be on its way without further credit */
    INTERPRETER_BYTES_MAX = 256,
};

/* A command as it stands: nothing of it is read as shell text. */
struct exec_request {
    const char **argv; /* NULL-terminated, at least one */
    const char **envp; /* NULL-terminated */
    size_t n_argv, n_envp;
    const char *workdir; /* NULL: the sandbox's own */
    uint32_t uid, gid;   /* with EXEC_USER_SET */
    uint32_t flags;
    uint64_t timeout_us; /* 0: none */
    uint16_t rows, columns;
};

void exec_request_encode(struct writer *w, const struct exec_request *x);

/** exec_request_size() - bytes that exec_request_encode() needs */
size_t exec_request_size(const struct exec_request *x);

/**
 * exec_request_decode() - views of a request
 * @strings: room for @max pointers, used for argv and envp with their NULLs
 *
 * Return: 0; -EPROTO; -E2BIG when @max is too small.
 */
int exec_request_decode(struct reader message, const char **strings, size_t max,
                        struct exec_request *ret);

/* Why a command is over; the words are those of `run --result`. */
enum exit_reason {
    REASON_EXITED,
    REASON_TIMEOUT,
    REASON_OOM,
    REASON_KILLED,
    REASON_LIFETIME,
    REASON_ERROR,
    REASON_COST, /* since 1.3 */
    REASON__MAX,
};

/* Where a command's start failed; the errno says how. */
enum start_stage {
    START_OK,
    START_LIMIT,    /* too many commands at once */
    START_FDS,      /* its descriptors or terminal */
    START_MARK,     /* the mark that all its processes carry */
    START_WORKDIR,  /* entering its working directory */
    START_IDENTITY, /* user, group, capabilities */
    START_FILTER,   /* the system call filter */
    START_EXEC,     /* the program itself */
    START__MAX,
};

struct exit_report {
    uint32_t exit_code; /* of exit(), when signal is 0 */
    uint32_t signal;    /* that ended it, or 0 */
    uint32_t reason;    /* enum exit_reason */
    uint64_t wall_us, user_us, system_us, peak_rss_bytes;
    uint64_t timeout_us;     /* the timeout that was applied; 0: none */
    uint32_t start_stage;    /* enum start_stage; START_OK: it ran */
    uint32_t start_errno;    /* with another stage */
    uint32_t left_empty;     /* no process is left inside, and init is ending too (EXEC_LAST) */
    const char *interpreter; /* what the program's first line names, when that is what is missing */
};

void exit_report_encode(struct writer *w, const struct exit_report *x);
int exit_report_decode(struct reader message, struct exit_report *ret);

struct denial; /* wire/denial.h */

/**
 * exit_denial_encode() - one DENIAL of EXITED: an attempt to get out that was refused meanwhile
 * @w: needs exit_denial_size() bytes
 */
void exit_denial_encode(struct writer *w, const struct denial *x);
size_t exit_denial_size(const struct denial *x);

/** exit_denial_next() - the next DENIAL of EXITED; 1, 0 at the end, -EPROTO */
int exit_denial_next(struct reader *r, struct denial *ret);

/** exit_denials_more() - how many more there were; 0 when it is not said */
uint64_t exit_denials_more(struct reader message);

/** exit_reason_name() - "exited", "timeout", "oom", "killed", "lifetime", "error", "cost" */
const char *exit_reason_name(uint32_t reason);

/** exit_reason_for() - @reason as a peer of version 1.@minor knows it; "killed" for a later one */
uint32_t exit_reason_for(uint32_t reason, uint32_t minor);

struct hello {
    uint32_t major, minor;
    const char *program; /* for logs */
};

void hello_encode(struct writer *w, const struct hello *x);
int hello_decode(struct reader message, struct hello *ret);

/* INPUT, OUTPUT: bytes of a stream. CREDIT: a number for it. */
struct stream_data {
    uint32_t stream; /* enum stream */
    const uint8_t *data;
    size_t len;
    uint32_t credit;
};

void stream_data_encode(struct writer *w, const struct stream_data *x);
void stream_credit_encode(struct writer *w, uint32_t stream, uint32_t credit);
int stream_data_decode(struct reader message, struct stream_data *ret);

/* STEP and FAULT: the place in the plan, and how it went. */
struct step_report {
    uint32_t index;
    uint32_t error;   /* errno; 0: done */
    uint64_t us;      /* what it took */
    const char *text; /* the step as the plan prints it; may be empty */
};

void step_report_encode(struct writer *w, const struct step_report *x);
int step_report_decode(struct reader message, struct step_report *ret);

/* What has become of a sandbox's lease. The words of lease_state_name() are those of users. */
enum lease_state {
    LEASE_NONE, /* the sandbox has no owner, or is not shared: nobody can attach */
    LEASE_FREE,
    LEASE_HELD,
    LEASE_KEPT, /* its holder has gone, and may come back until a time */
    LEASE__MAX,
};

/** lease_state_name() - "none", "free", "held", "kept" */
const char *lease_state_name(uint32_t state);

/* ATTACH. */
struct attach_request {
    const char *owner, *holder; /* never NULL; empty ones are refused */
    uint64_t keep_us;           /* 0: free as soon as the connection is gone */
};

void attach_request_encode(struct writer *w, const struct attach_request *x);
size_t attach_request_size(const struct attach_request *x);
int attach_request_decode(struct reader message, struct attach_request *ret);

/* ATTACHED, and of it LEFT_US in EXTENDED and EXITED. */
struct attach_report {
    uint32_t generation; /* of the lease, from 1 */
    uint64_t left_us;    /* of the lifetime; UINT64_MAX: no end, or not known */
    const char *network; /* as JSON: policy_stamp_decode(); NULL: not known */
    const char *workdir; /* NULL: not known */
};

void attach_report_encode(struct writer *w, const struct attach_report *x);
size_t attach_report_size(const struct attach_report *x);
int attach_report_decode(struct reader message, struct attach_report *ret);

/** left_decode() - LEFT_US of a message; UINT64_MAX when it has none */
uint64_t left_decode(struct reader message);

/* DESTROY and EXTEND tell OWNER if the sandbox has one. */
enum destroy_flags {
    DESTROY_FORCE = 1 << 0, /* whoever owns or holds it */
};

/* POLICY_SET: what may be reached from now on. */
struct policy_report {
    const char *network; /* as JSON: policy_stamp_decode() */
    uint32_t generation; /* from 1, higher after each change */
    uint32_t flows_cut;  /* connections that the policy before had let through */
};

void policy_report_encode(struct writer *w, const struct policy_report *x);
int policy_report_decode(struct reader message, struct policy_report *ret);

enum ended_by {
    ENDED_DESTROYED,
    ENDED_LIFETIME,
    ENDED_IDLE,
    ENDED_OOM,
    ENDED_KILLED,
    ENDED_CALLER_DIED,
    ENDED_ERROR,
    ENDED_COST, /* since 1.3 */
    ENDED__MAX,
};

/**
 * ended_by_name() - "destroyed", "lifetime", "idle", "oom", "killed", "caller_died", "error",
 * "cost"
 */
const char *ended_by_name(uint32_t by);

/** ended_by_for() - @by as a peer of version 1.@minor knows it; "killed" for a later one */
uint32_t ended_by_for(uint32_t by, uint32_t minor);

/** number_decode() - the one number field @tag of a message; 0 or -EPROTO */
int number_decode(struct reader message, uint16_t tag, uint32_t *ret);

/** size_decode() - RESIZE: rows and columns; 0 or -EPROTO */
int size_decode(struct reader message, uint16_t *ret_rows, uint16_t *ret_columns);

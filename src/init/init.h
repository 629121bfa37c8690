/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Init: process 1 of a sandbox. A static program without allocation, started from a sealed memory
 * file by the set-up, that starts commands, reaps, and ends all processes of a command.
 *
 * It reads only from the keeper's socket. What runs inside cannot reach it: as process 1 of its
 * pid namespace it takes no signal from inside, it is not dumpable, and it holds capabilities that
 * commands lack, so they may not trace it (ptrace(2), "Ptrace access mode checking").
 *
 * A process that serves file operations (FILES of the protocol) is a copy of init that has become a
 * command: marked, without capabilities, behind the filter. Whatever path it is asked for, it can
 * reach what a command can reach, and when a file system hangs, only it hangs.
 *
 * Life: READY is sent when the first requests, which may wait already, are served; EXEC, SIGNAL and
 * KILL come in; STARTED, EXITED and KILLED go out. When the keeper's end of the socket closes, init
 * exits, and with it everything in the sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/io.h"
#include "wire/control.h"

enum {
    INIT_CHANNEL_FD = 3,      /* where the set-up leaves the socket */
    INIT_OOM_FD = 4,          /* and, with arguments, init's own oom_score_adj, open for writing */
    INIT_COMMANDS_MAX = 1024, /* running, or having left processes behind, at once */
};

/*
 * One command that runs, or that has left processes behind: they can still be found by its mark.
 * Neither pid nor mark: a free row.
 */
struct command {
    uint32_t id;
    pid_t pid;     /* of its first process; 0: that has been reaped, others may be left */
    uint64_t mark; /* inode of its cgroup namespace, which all its processes share; 0: no process
                    * but the first one can have it */
    uint64_t since_us;
    bool last;     /* init ends with it, unless processes are left (EXEC_LAST) */
    bool ends_all; /* what it leaves is killed (SIGNAL_ENDS_ALL) */
    bool detached; /* what it leaves is nobody's (EXEC_DETACH) */
    bool files;    /* serves files, and leaves nothing */
    bool seen;     /* while looked for: a process carries its mark */
};

struct init {
    int null_fd;
    uint32_t confined_stage; /* enum start_stage: where confining init failed … */
    int confined_error;      /* … and how: an errno, or 0 */
    uint64_t mark;           /* inode of the namespace that init is in; 0: it is a command's */
    const char *oom_own, *oom_commands; /* oom_score_adj; NULL: it is not to differ */
    struct command commands[INIT_COMMANDS_MAX];
    uint32_t n_reaped;                     /* commands, since the last marks_sweep() */
    const char *strings[EXEC_STRINGS_MAX]; /* of the EXEC being worked on */
    size_t length;                         /* bytes of the message coming in */
    struct frame first;
    bool begun;
    int fds[IO_FDS_MAX];
    size_t n_fds;
    uint8_t message[MESSAGE_BYTES_MAX + FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX];
};

/* --- link.c: the keeper's socket --- */

/**
 * link_receive() - the next whole message from the keeper
 *
 * Its descriptors are @i->fds, owned by init. Never blocks. Return: 1; 0: none is whole yet; a
 * negative errno: the keeper is gone or sends what is no message.
 */
int link_receive(struct init *i, struct frame *ret, struct reader *ret_payload);

/** link_send() - one message of one frame; exits when the keeper is gone */
void link_send(uint16_t type, uint32_t id, const struct writer *w, int fd);

/** link_close_fds() - close what came with the last message and was not used */
void link_close_fds(struct init *i);

/* --- command.c: starting --- */

/** command_exec() - MSG_EXEC: start it and report a failure or, if asked or a terminal, the start
 */
void command_exec(struct init *i, uint32_t id, struct reader message);

/** command_find() - the row of a running command, or NULL */
struct command *command_find(struct init *i, uint32_t id);

/** command_find_mark() - the mark of a command that runs or has left processes; 0: there is none */
uint64_t command_find_mark(const struct init *i, uint32_t id);

/* --- identity.c: what a child is made to be --- */

/**
 * confine() - put init itself behind the filter of system calls, and empty its bounding set
 *
 * Every child inherits both, so that no command waits for it. What fails is kept in @i, and then no
 * command is started.
 */
void confine(struct init *i);

/**
 * mark_prepare() - the mark of the next child: a fresh cgroup namespace, which it inherits from
 * init
 *
 * It changes nothing that a program sees, every process of the command has it, and without
 * CAP_SYS_ADMIN none can leave it (the filter lets unshare(2) through for init's sake; the kernel
 * refuses it to commands). Made when there is nothing else to do, so that no command waits for it;
 * harmless when there is one. The kernel gives out the inode of a namespace that is gone anew, so
 * whichever command had this one has no processes any more, and loses it. Return: 0 with @i->mark
 * set, or a negative errno.
 */
int mark_prepare(struct init *i);

/** mark_take() - the prepared mark, for a child that is started now; then there is none */
uint64_t mark_take(struct init *i);

/**
 * child_identity() - no capabilities for good, and the user that @x names
 *
 * For a child between its start and its program. Return: 0 or a negative errno.
 */
int child_identity(const struct exec_request *x);

/* --- files.c: file operations --- */

/**
 * files_start() - a process that serves file operations on the socket @fd
 *
 * Return: its pid, with @ret_mark set, or a negative errno.
 */
pid_t files_start(struct init *i, const struct exec_request *x, int fd, uint64_t *ret_mark);

/* --- reap.c: ends --- */

/** reap_all() - reap every child that has ended and report the commands among them; never blocks */
void reap_all(struct init *i);

/* --- kill.c: ending all of one command --- */

/**
 * kill_marked() - SIGKILL every process that carries one of @n @marks, until none is left
 *
 * A process whose mark cannot be read counts as one that has it, also if there are none. Blocks up
 * to a few seconds, while commands that end are still reaped and reported. Return: 0, or -ETIMEDOUT
 * when some would not die; then the caller must end the sandbox.
 */
int kill_marked(struct init *i, const uint64_t *marks, size_t n);

/**
 * kill_left() - the same for what commands of numbers from @first on have left behind
 *
 * But for detached ones, and those whose first process runs: these are to be killed one by one.
 */
int kill_left(struct init *i, uint32_t first);

/** marks_sweep() - free the rows of commands that have left nothing, or of which nothing is left */
void marks_sweep(struct init *i);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a backend tells of its sandboxes and of itself: SANDBOX, COMMANDS, DESCRIBED. Encoders and
 * decoders as in wire/control.h; views live as long as the message.
 */
#pragma once

#include "wire/frame.h"

enum sandbox_state {
    STATE_CREATING,
    STATE_RUNNING,
    STATE_PAUSED,
    STATE_ENDING,
    STATE_GONE,
    STATE__MAX
};

/** sandbox_state_name() - "creating", "running", "paused", "ending", "gone"; "?" for others */
const char *sandbox_state_name(uint32_t state);

enum { SANDBOX_LABELS_MAX = 1024, SANDBOX_PUBLISHED_MAX = 256 };

/* SANDBOX: one sandbox, without its variables' values. 0 or NULL: not known or none. */
struct sandbox_info {
    const char *id, *name, *owner, *backend;
    const char *image, *workdir, *hostname;
    const char *network; /* its policy as JSON: policy_stamp_decode() */
    uint32_t state;      /* enum sandbox_state */
    uint32_t uid, gid;
    uint64_t created_at_us, expires_at_us; /* since the epoch */
    uint64_t idle_us;                      /* its idle timeout */
    uint64_t disk_used_bytes, disk_limit_bytes, inodes_used, inodes_limit;
    uint64_t pids_limit;
    uint32_t processes, n_commands, keeper_pid, landlock_abi, policy_generation;
    const char *holder;                            /* with LEASE_HELD and LEASE_KEPT */
    uint32_t lease_state, lease_generation;        /* enum lease_state; 0: it was never taken */
    uint64_t lease_until_us;                       /* LEASE_KEPT: since the epoch */
    uint64_t memory_limit_bytes, cpu_milli;        /* ceilings; 0: none */
    uint64_t cpu_us;                               /* used by all that ran inside */
    uint64_t memory_used_bytes, memory_peak_bytes; /* 0: not measured */
    uint64_t egress_sent_bytes, egress_received_bytes;
    uint64_t cost_micro, max_cost_micro; /* millionths of the currency of the prices */
    uint32_t oom_kills;
    const char *labels[SANDBOX_LABELS_MAX]; /* K=V */
    size_t n_labels;
    const char
        *published[SANDBOX_PUBLISHED_MAX]; /* [ADDR:]PORT:PORT, with ports that were picked */
    size_t n_published;
};

/** sandbox_info_size() - bytes that sandbox_info_encode() needs */
size_t sandbox_info_size(const struct sandbox_info *x);
void sandbox_info_encode(struct writer *w, const struct sandbox_info *x);
int sandbox_info_decode(struct reader message, struct sandbox_info *ret);

enum command_flags { COMMAND_DETACHED = 1 << 0, COMMAND_TTY = 1 << 1 };

enum { COMMAND_ARGS_MAX = 64, COMMAND_ARGS_BYTES_MAX = 4096 };

/* One of COMMANDS: what `ps` shows. Long argument lists are cut. */
struct command_info {
    uint32_t number; /* names it in STOP; never used again in this sandbox */
    uint32_t pid;    /* of its first process, inside; 0: not known */
    uint32_t flags;  /* enum command_flags */
    uint64_t started_at_us;
    uint64_t timeout_us; /* 0: none */
    const char *argv[COMMAND_ARGS_MAX];
    size_t n_argv;
};

/**
 * command_info_encode() - one COMMAND
 * @w: needs the arguments with their NULs, 8 bytes for each of them, and 80 bytes
 */
void command_info_encode(struct writer *w, const struct command_info *x);

/** command_info_next() - the next COMMAND of the message; 1, 0 at the end, -EPROTO */
int command_info_next(struct reader *r, struct command_info *ret);

/* One RULE of DESCRIBED: what becomes of a field of the spec. */
enum rule_verdict { RULE_ENFORCED, RULE_ACCEPTED, RULE_REFUSED, RULE_VERDICT__MAX };

struct rule_info {
    const char *field;  /* "backend.memory" */
    uint32_t verdict;   /* enum rule_verdict */
    const char *how;    /* how and by whom, or why not */
    const char *remedy; /* with RULE_REFUSED: what to change */
};

void rule_info_encode(struct writer *w, const struct rule_info *x);

/** rule_info_next() - the next RULE of DESCRIBED; 1, 0 at the end, -EPROTO */
int rule_info_next(struct reader *r, struct rule_info *ret);

/**
 * text_next() - the next text field with @tag (FEATURE, SKIPPED)
 *
 * Return: NULL at the end, and then @r->bad tells a damaged message.
 */
const char *text_next(struct reader *r, uint16_t tag);

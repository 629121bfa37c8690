/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: a spec and a host turned into an ordered list of typed set-up
 * steps.
 *
 * It is a pure function, so that it can be printed (`atoll run -v`), named in
 * each error, and tested without any privilege. local/plan_run.h carries it
 * out, in the new process 1.
 *
 * How the root comes to be. A tmpfs of the size `disk` is mounted over "/" and
 * becomes the root; host folders, device nodes and volumes are bound into it;
 * the few writable folders are bound onto themselves; then the root mount is
 * made read-only, so that only those binds take writes, and pivot_root(2) drops
 * the host's tree. For an image folder the same tmpfs holds the upper layer of
 * an overlay over it, and the overlay is the root.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/spec.h"
#include "local/host.h"

enum step_kind {
    STEP_PRIVATE,    /* no mount of the host appears here from now on */
    STEP_NETWORK,    /* enter the network namespace, where lo is up and nothing else
                      */
    STEP_HOSTNAME,   /* source: the name */
    STEP_IDS,        /* become the first id inside */
    STEP_ROOT,       /* the tmpfs; value: bytes */
    STEP_OVERLAY,    /* source: the image folder */
    STEP_FOLDER,     /* target: made with mode value */
    STEP_WRITABLE,   /* target: folder with mode value, bound onto itself */
    STEP_LINK,       /* target: a symbolic link to source */
    STEP_FILE,       /* target: a file that holds source */
    STEP_BIND,       /* host path source on target */
    STEP_HIDE,       /* target: an empty folder in its place */
    STEP_VOLUME,     /* the same for volume number value, with what the user asked for
                      */
    STEP_PROC,       /* a fresh procfs */
    STEP_SYSCTL,     /* target: below /proc/sys, source: the text written */
    STEP_PROC_LOCK,  /* target: below /proc, made read-only */
    STEP_PROC_MASK,  /* target: below /proc, hidden */
    STEP_DEV,        /* a small tmpfs on /dev, over what an image has there */
    STEP_TERMINALS,  /* a devpts of its own */
    STEP_SHM,        /* /dev/shm; value: bytes */
    STEP_WORKDIR,    /* target: the working directory, made if absent */
    STEP_READ_ONLY,  /* the root mount */
    STEP_PIVOT,      /* enter the new root and drop the old */
    STEP_LIMITS,     /* value: processes */
    STEP_LANDLOCK,   /* the second fence, where the kernel has it */
    STEP_PRIVILEGES, /* no_new_privs; capabilities down to what init needs */
    STEP_INIT,       /* execute init from its sealed memory file */
    STEP__MAX,
};

enum step_flags {
    STEP_RO = 1 << 0,
    STEP_DEVICE = 1 << 1,  /* keep device nodes usable */
    STEP_OWNED = 1 << 2,   /* belongs to the user that commands run as */
    STEP_IS_FILE = 1 << 3, /* the source is no folder, and neither is what it is bound on */
    STEP_DEEP = 1 << 5,
    STEP_LATER = 1 << 4, /* a later STEP_READ_ONLY sets this mount's attributes */
};

struct step {
    enum step_kind kind;
    uint32_t flags;
    uint64_t value;
    const char *source; /* constants, or views of the plan's own texts */
    const char *target;
};

/* Texts: paths of volumes above all, two of PATH_MAX for each. Pages never
 * touched cost nothing. */
enum { PLAN_STEPS_MAX = 256, PLAN_TEXT_BYTES = 768 * 1024 };

struct plan {
    struct step steps[PLAN_STEPS_MAX];
    size_t n;
    bool range;        /* ids: a range that the keeper maps; otherwise the caller's one
                          id */
    bool image_folder; /* the root is an overlay over spec.image */
    uint32_t uid, gid; /* of process 1 inside */
    uint32_t command_uid, command_gid; /* of commands, inside */
    uint32_t caller_uid, caller_gid;   /* of the caller, outside */
    uint32_t range_start, range_count;
    size_t n_volumes;
    bool report_steps;                           /* the caller wants to hear of each */
    uint32_t init_oom_score, commands_oom_score; /* oom_score_adj; the second 0: as the caller's */
    char text[PLAN_TEXT_BYTES];
    size_t text_used;
    bool full; /* a step or text did not fit */
};

/**
 * plan_build() - the steps for @spec on @host
 * @p: need not be initialised. It holds all that its steps point to, so that it
 * can lie in memory that the keeper shares with the set-up process.
 * @resolv_conf: the text of that file inside (local/name_servers.h)
 * @random:      decides the id range, the machine id; tests give a fixed number
 *
 * Return: 0, or a negative errno with an error for what this host cannot do for
 * that spec.
 */
int plan_build(struct plan *p, const struct spec *spec, const struct host *host,
               const char *resolv_conf, const uint64_t random[static 2], struct error *err);

/** step_describe() - one step as a line for people: "bind /usr on /usr,
 * read-only" */
void step_describe(const struct step *s, char *buf, size_t size);

/** step_name() - the kind as one word: "proc", "pivot"; static storage */
const char *step_name(enum step_kind kind);

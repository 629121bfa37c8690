/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host can do for a sandbox, found out by doing it: each probe tries one thing in a
 * child that ends at once, so that nothing of the host changes and one lack does not hide the
 * others. The sentences are those of local/refusal.h, which a failing set-up uses too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/utsname.h>

#include "core/spec.h"
#include "local/cgroup.h"
#include "local/host.h"
#include "local/plan.h"
#include "local/refusal.h"
#include "local/setup.h"

enum probe_state {
    PROBE_OK,
    PROBE_MISSING,
    PROBE_UNKNOWN, /* what it stands on is missing, so it was not tried */
    PROBE_STATE__MAX,
};

struct probe_result {
    const char *name; /* one word; static storage */
    bool required;    /* without it no sandbox can be made */
    enum probe_state state;
    int code;          /* errno of what is missing, if a call said one; else 0 */
    char message[512]; /* one sentence without a full stop at its end */
    char remedy[384];  /* what to do if it is missing, likewise; or empty */
};

enum { PROBE_RESULTS_MAX = 40 };

struct probe_report {
    struct utsname kernel;
    struct probe_result
        results[PROBE_RESULTS_MAX]; /* the required ones first, but for probe_require() */
    size_t n;
    size_t n_missing; /* required ones; 0: this host can run sandboxes */
};

/**
 * probe_host() - run all probes
 *
 * Makes and waits for a few dozen children; leaves nothing behind. Blocks for some 20 ms, and for
 * PROBE_PATIENCE_US per probe at most. Return: 0, whatever is missing; or a negative errno with an
 * error when the probes themselves could not be run.
 */
int probe_host(struct probe_report *ret, struct error *err);

/**
 * probe_require() - what @spec needs beyond the default one counts as required from now on
 *
 * That is the way out, if it lets anything pass in or out, and the control group that its ceilings
 * and prices need.
 */
void probe_require(struct probe_report *report, const struct spec *spec);

#define PROBE_PATIENCE_US UINT64_C(5000000)

/** probe_state_name() - "ok", "missing" or "unknown"; static storage */
const char *probe_state_name(enum probe_state state);

/* What the probes look at and stand on. */
struct probe_context {
    struct spec spec; /* the default one */
    struct host host;
    struct plan plan; /* the default one, which says how ids are mapped */
    struct refusal_hints hints;
    struct utsname kernel;
};

/*
 * Tried inside, in a child that ends afterwards; @s is as the set-up of a sandbox has it before
 * its first step, with the ids already mapped where the probe asks for that.
 * Return: 0 or a negative errno.
 */
int probe_nothing(struct setup *s); /* that the child exists is the answer */
int probe_capabilities(struct setup *s);
int probe_loopback(struct setup *s);
int probe_private(struct setup *s);
int probe_mount_api(struct setup *s);
int probe_bind(struct setup *s);
int probe_proc(struct setup *s);
int probe_namespace_limit(struct setup *s);
int probe_terminals(struct setup *s);
int probe_pivot(struct setup *s);
int probe_overlay(struct setup *s);
int probe_seccomp(struct setup *s);
int probe_no_new_privs(struct setup *s);
int probe_memfd(struct setup *s);
int probe_pidfd(struct setup *s);
int probe_close_range(struct setup *s);
int probe_openat2(struct setup *s);

/** probe_idmap_outside() - an idmapped mount by way of the namespace of @child; 0 or -errno */
int probe_idmap_outside(pid_t child);

/** probe_way_out() - a whole way out, in a namespace that goes again; 0 or -errno with @err */
int probe_way_out(struct error *err);

/** probe_proc_is_masked() - whether something is mounted below /proc that forbids a fresh one */
bool probe_proc_is_masked(void);

/* Looked at only. Each sets state and message of @r, and the remedy of what is missing. */
void probe_landlock(const struct probe_context *c, struct probe_result *r);
void probe_subordinate_ids(const struct probe_context *c, struct probe_result *r);
void probe_cgroup(const struct probe_context *c, struct probe_result *r);
void probe_ceilings(const struct cgroup_wants *wants, const char *good, struct probe_result *r);
void probe_open_files(const struct probe_context *c, struct probe_result *r);
void probe_filter(const struct probe_context *c, struct probe_result *r);
void probe_container(const struct probe_context *c, struct probe_result *r);
void probe_kernel(const struct probe_context *c, struct probe_result *r);

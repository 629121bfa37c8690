/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a backend can hold a sandbox to, as data, and the check of a spec against it.
 *
 * A capability is a list of rules. Each says of one field of the spec: under this condition it is
 * enforced, or only kept, or refused; how, by whom, and what to do instead. The first rule of a
 * field whose condition holds decides. A field without such a rule is refused, since nobody
 * vouches for it. Before the backend's own rules come those that hold everywhere
 * (core/backend_common.c): contradictions, and what atoll does itself on every backend.
 *
 * Everything here is pure: no file, no environment, no clock. core/backends.h has the backends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/problems.h"
#include "core/spec_fields.h"

enum capability_verdict {
    CAPABILITY_ENFORCED,
    CAPABILITY_ACCEPTED, /* kept, recorded or passed on; nothing that holds the sandbox to it */
    CAPABILITY_REFUSED,
    CAPABILITY_VERDICT__MAX,
};

/* When a rule holds. "The field" is the rule's; @number and @text are the rule's too. */
enum capability_when {
    WHEN_ALWAYS,
    WHEN_DEFAULT,      /* the field has its default: nobody asked for anything */
    WHEN_ZERO,         /* a number that means "none" */
    WHEN_BELOW,        /* a number below @number, and not 0 */
    WHEN_ABOVE,        /* a number above @number */
    WHEN_NOT_WHOLE,    /* a number that is no multiple of @number */
    WHEN_TEXT,         /* a text that is @text */
    WHEN_PREFIX,       /* a text that begins with @text */
    WHEN_MORE,         /* a list of more than @number entries */
    WHEN_NAMES,        /* a list K=V with a key among the words of @text; "X*" is a prefix */
    WHEN_OTHER_NAMES,  /* a list K=V with a key that is none of the words of @text */
    WHEN_NOT_LABELS,   /* a list K=V in which one is not of Kubernetes' label syntax */
    WHEN_PORTS,        /* a list of hosts in which one has a port */
    WHEN_IPV6,         /* a list of ranges in which one is of IPv6 */
    WHEN_PRIVATE,      /* a list of ranges in which one is of a private network or of the host */
    WHEN_OPEN,         /* spec.block_network is false */
    WHEN_LISTED,       /* it is true, and hosts or ranges are listed */
    WHEN_BLOCKED,      /* it is true */
    WHEN_CONTRADICTED, /* the network fields contradict each other */
    WHEN_IDLE_SET,     /* backend.idle_timeout is set */
    WHEN_OUTLIVES,     /* a time above backend.sandbox_timeout, if there is one */
    WHEN_NOT_FILES,    /* a map in which one value is no file:// URL */
    WHEN_UNPRICED,     /* backend.prices is empty */
    WHEN_NO_MACHINE,   /* cpu, memory and disk fit none of @text: "2/4/12 4/8/50", CPUs/GiB/GiB */
    WHEN_LACKS,        /* the backend has not feature @number (enum capability_feature) */
    WHEN_UNDECLARED,   /* its operator has not declared @number (enum capability_fact) */
    WHEN__MAX,
};

struct capability_rule {
    enum spec_field_id field;
    enum capability_when when;
    enum capability_verdict verdict;
    uint64_t number;    /* as @when says; times in microseconds, sizes in bytes, CPUs in milli */
    const char *text;   /* as @when says; or NULL */
    const char *how;    /* by what means; of a refusal the reason: a phrase without a full stop */
    const char *by;     /* who holds the sandbox to it; NULL for a refusal */
    const char *remedy; /* what to change: a sentence without a full stop; for a refusal always */
    bool documented;    /* known from the backend's documentation alone */
};

/* What a backend can do besides making and ending sandboxes. */
enum capability_feature {
    FEATURE_EXEC,
    FEATURE_STDIN,
    FEATURE_TTY,
    FEATURE_SIGNAL,
    FEATURE_TIMEOUT,
    FEATURE_DETACH,
    FEATURE_FILES,
    FEATURE_RANGES, /* parts of a file */
    FEATURE_LIST,
    FEATURE_PACK,
    FEATURE_UNPACK,
    FEATURE_INSPECT,
    FEATURE_PS,
    FEATURE_REOPEN, /* a sandbox that another run made */
    FEATURE_OWNER,  /* for whom a sandbox was made is kept with it */
    FEATURE_LEASE,  /* attach: one decision of who keeps the sandbox; a lock */
    FEATURE_TAGS,   /* attach: by tags, read back; not a lock */
    FEATURE__MAX,
};

/* What only the operator of a backend knows, and states; unstated facts do not hold. */
enum capability_fact {
    FACT_NAMES_SUFFICE,   /* egress_enforcement=sni */
    FACT_HOST_DENIES_ALL, /* host_network_policy=deny-all */
    FACT_NETWORK_POLICY,  /* network_enforcement=networkpolicy, or cilium */
    FACT_NAME_POLICY,     /* network_enforcement=cilium */
    FACT__MAX,
};

/*
 * The rules are borrowed (tables of static storage) until capability_add() is used, which makes
 * the list and every string in it this struct's own, for a backend that states them at run time.
 */
struct capability {
    const struct capability_rule *rules;
    size_t n_rules;
    uint32_t features;             /* 1u << enum capability_feature */
    uint32_t facts;                /* 1u << enum capability_fact */
    struct capability_rule *owned; /* what capability_done() frees; NULL: nothing */
};

/**
 * capability_add() - append a copy of @rule
 * @c: zeroed, or made by this function alone; a borrowed table cannot be added to
 *
 * Return: 0 or -ENOMEM, with @c as before.
 */
int capability_add(struct capability *c, const struct capability_rule *rule);

/** capability_done() - free what is owned; harmless on a zeroed or borrowed one */
void capability_done(struct capability *c);

/* What became of one field. The strings are views of rules and tables. */
struct capability_result {
    enum spec_field_id field;
    enum capability_verdict verdict;
    const char *how, *by, *remedy; /* as in the rule that decided; by and remedy may be NULL */
    bool documented;
};

struct capability_results {
    struct capability_result items[SPEC_FIELD__MAX]; /* in the order of the fields */
    size_t n;
    size_t n_of[CAPABILITY_VERDICT__MAX]; /* how many have each verdict */
};

/**
 * capability_check() - one result for each field that the spec states, and for those that matter
 *                      always: network, environment, image, lifetime
 * @s: by its grammar already (spec_check()); a field counts as stated when it differs from its
 *     default
 *
 * Return: whether the spec can be kept; if not, ret->n_of[CAPABILITY_REFUSED] is above 0.
 */
bool capability_check(const struct capability *c, const struct spec *s,
                      struct capability_results *ret);

/**
 * capability_problems() - the refusals among the results of a check, for error messages
 * @backend: its name, for the sentences
 */
void capability_problems(const struct capability_results *results, const char *backend,
                         struct problems *p);

/** capability_verdict_name() - "enforced", "accepted" or "refused"; static storage */
const char *capability_verdict_name(enum capability_verdict verdict);

/** capability_feature_name() - "exec", "stdin", …; static storage */
const char *capability_feature_name(enum capability_feature feature);

/** capability_feature_find() - the feature of that name; 0 or -EINVAL */
int capability_feature_find(const char *name, enum capability_feature *ret);

/* What a rule is judged by: a field of a spec, and who has stated the rule. */
struct capability_subject {
    const struct capability *c;
    const struct spec *s;
    enum spec_field_id field;
};

/** capability_holds() - whether the condition of @rule holds (core/capability_when.c) */
bool capability_holds(const struct capability_rule *rule, const struct capability_subject *x);

/** capability_field_stated() - whether a field differs from its default */
bool capability_field_stated(const struct spec *s, enum spec_field_id field);

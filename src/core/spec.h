/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spec: what a sandbox is to be. Filled from a spec file (core/spec_file.h) and the command
 * line, checked here, sent to whoever makes the sandbox as the fields of MSG_CREATE. It owns all
 * its strings. core/spec_fields.h has the table of its fields, by the names that users write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/frame.h"

struct volume {
    char *host;  /* absolute path on the host */
    char *guest; /* plain absolute path inside */
    bool read_only;
};

struct string_list {
    char **items; /* NULL-terminated once it has any */
    size_t n;
};

/* Section `toolset`: what the tools of an agent take from the spec. */
struct toolset_spec {
    char *tool_prefix;        /* NULL: none */
    char *purpose;            /* NULL; what the sandbox is for, told to the model */
    struct string_list tools; /* of the optional ones, by their names without a prefix */
    uint64_t default_command_timeout_us, max_command_timeout_us;
    uint64_t max_output_lines, max_output_bytes, max_read_bytes, max_export_bytes;
    uint64_t max_run_output_bytes; /* 0: no ceiling */
    struct string_list exports;    /* PATH=URL */
    char *export_credentials;      /* NULL: the environment's */
    char *attach_to;               /* NULL: a sandbox of its own */
    char *owner;                   /* NULL; whom an attaching run says it is */
    struct string_list mask;
};

struct spec {
    /* section `spec` */
    struct string_list env; /* NAME=VALUE, each name once */
    bool block_network;     /* true: nothing leaves but what the lists allow */
    struct string_list allow_egress_to, allow_egress_to_cidrs;
    struct string_list private_cidrs; /* only with an open network */
    char *owner;                      /* NULL; whom the sandbox is made for */

    /* section `backend` */
    char *backend;  /* "local" */
    char *image;    /* "host" or "dir:PATH"; other backends have forms of their own */
    char *workdir;  /* NULL: /workspace */
    char *hostname; /* "sandbox" */
    bool user_set;
    uint32_t uid, gid; /* of the commands inside; 0 unless set */
    struct volume *volumes;
    size_t n_volumes;
    struct string_list inputs;  /* HOST=PATH inside; staged by the client, never sent */
    struct string_list publish; /* [ADDR:]HOSTPORT:PORT: core/published.h */
    struct string_list tags;    /* K=V, each key once */
    struct string_list prices;  /* UNIT=PRICE */
    uint64_t cpu_milli;         /* thousandths of a CPU; 0: no ceiling */
    uint64_t memory_bytes;      /* 0: no ceiling */
    uint64_t disk_bytes;        /* 0: half of the free memory */
    uint64_t pids;
    uint64_t lifetime_us;         /* sandbox_timeout; 0: none */
    uint64_t idle_timeout_us;     /* 0: none */
    uint64_t max_cost_micro;      /* millionths of the currency of `prices`; 0: no ceiling */
    char *egress_enforcement;     /* "pinned" or "inspect" */
    char *resolver, *proxy;       /* NULL: the host's; none: core/upstream.h */
    char *proxy_credentials;      /* NULL; absolute path of a file with USER:PASSWORD */
    char *audit;                  /* NULL; absolute path of a file that events are added to */
    struct string_list add_hosts; /* NAME=ADDR; a name may have several */

    struct toolset_spec toolset;

    /* not of the spec file */
    char *name;        /* NULL; what a person calls the sandbox */
    bool owned;        /* ends with the connection that made it */
    bool report_steps; /* tell of each set-up step */
};

#define SPEC_WORKDIR_DEFAULT "/workspace"

/** spec_init() - the defaults; 0 or -ENOMEM. spec_done() frees; harmless on a zeroed spec. */
int spec_init(struct spec *s);
void spec_done(struct spec *s);

/**
 * spec_set_image(), spec_set_workdir(), spec_set_hostname(), spec_set_user() - one field each
 *
 * The text is copied and judged by the field's grammar. Return: 0, or a negative errno with a usage
 * error that names the field, the value, the reason and the remedy.
 */
int spec_set_image(struct spec *s, const char *text, struct error *err);
int spec_set_workdir(struct spec *s, const char *text, struct error *err);
int spec_set_hostname(struct spec *s, const char *text, struct error *err);
int spec_set_user(struct spec *s, const char *text, struct error *err);

/**
 * spec_add_volume() - HOST:GUEST[:ro]
 *
 * HOST is made absolute against the current folder and must exist; GUEST is a plain absolute path
 * other than "/". Errors as above.
 */
int spec_add_volume(struct spec *s, const char *text, struct error *err);

/**
 * spec_add_env() - NAME=VALUE; NAME alone takes the value from @callers, as `env` prints it
 * @callers: borrowed, the caller's environment; NULL refuses a bare name
 *
 * A later value for a name replaces the earlier one. Errors as above, also for a value that
 * execve(2) could not carry; the error names the variable and never shows the value.
 */
int spec_add_env(struct spec *s, const char *text, char *const callers[], struct error *err);

/**
 * spec_check() - judge a whole spec by the grammar of each field
 *
 * For one that came from elsewhere; what the setters made passes. Reads nothing of the host.
 * Return: 0, or a negative errno with a usage error as from the setters.
 */
int spec_check(const struct spec *s, struct error *err);

/** string_list_add() - append a copy of @item; 0 or -ENOMEM */
int string_list_add(struct string_list *l, const char *item);
void string_list_done(struct string_list *l);

/** env_set() - add "NAME=VALUE" to @l, replacing the entry with the same name; 0 or -ENOMEM */
int env_set(struct string_list *l, const char *entry);

/**
 * env_is_name() - whether @n bytes are a variable's name: letters, digits and underscores, not
 *                 starting with a digit (POSIX.1-2017, 3.235)
 */
bool env_is_name(const char *s, size_t n);

/** env_get() - a view of the value of @name in a NULL-terminated environment, or NULL */
const char *env_get(char *const env[], const char *name);

/**
 * env_build() - the exact environment of a command
 * @calls: n_calls entries "NAME=VALUE" of one call, which win over the spec's
 * @tty:   TERM is set only with a terminal
 *
 * Built-in < spec < call. Return: 0 with @ret owned by the caller, or -ENOMEM.
 */
int env_build(const struct spec *s, const char *const calls[], size_t n_calls, bool tty,
              struct string_list *ret);

/** spec_size(), spec_encode(), spec_decode() - the fields of MSG_CREATE; decode: 0 or -EPROTO */
size_t spec_size(const struct spec *s);
void spec_encode(struct writer *w, const struct spec *s);
int spec_decode(struct reader message, struct spec *ret);

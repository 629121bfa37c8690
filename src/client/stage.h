/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging the inputs of a spec: files and folders of the caller's host are copied into a new
 * sandbox before anything runs in it.
 */
#pragma once

#include "client/files.h"
#include "client/tree_pack.h"
#include "core/spec.h"

struct staging {
    struct files files;
    struct file_op op; /* of the input that is being copied */
    struct tree_pack *pack;
    struct loop_source source; /* the pipe to the sandbox */
    int pipe_fd;               /* owned; -EBADF once all is written */
    struct loop *loop;
    const struct string_list *inputs;
    size_t next;        /* index of the next input */
    struct error error; /* of reading the host's side */
    bool running;
    void *owner;
    void (*done)(struct staging *g); /* all are there */
    void (*failed)(struct staging *g, const struct error *err);
};

/**
 * staging_start() - copy @inputs, one after another
 * @g:      done, failed and owner are set by the caller; it must stay where it is
 * @s:      watched on @l; the sandbox stands, or CREATED is on its way
 * @inputs: borrowed until the end, "HOST=PATH"; a PATH that ends with "/" keeps the host's name
 *
 * Ends with exactly one of its callbacks, which may come at once. What is left out of a tree
 * (FIFOs, sockets, devices) is left out in silence, as it holds nothing.
 */
void staging_start(struct staging *g, struct session *s, struct loop *l,
                   const struct string_list *inputs);

/** staging_stop() - give it up and free; no callback comes. Harmless on a zeroed one, or twice */
void staging_stop(struct staging *g);

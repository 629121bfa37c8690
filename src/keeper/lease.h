/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease of a held sandbox, as its clients take and lose it (core/lease.h has the rules). While
 * it is held or kept, only connections that act for its holder start commands, write files and
 * change the policy: the one that attached, and those that have presented its generation. A later
 * ATTACH of the same holder has a higher generation, so that whatever an earlier attempt still
 * sends is refused, and what it still runs ends.
 */
#pragma once

#include "keeper/connection.h"
#include "wire/sandbox_info.h"

/** lease_begin() - the sandbox stands: it can be attached to, if it has an owner and is held */
void lease_begin(struct keeper *k);

/** lease_attach(), lease_release(), lease_present() - ATTACH, RELEASE, PRESENT of a client */
void lease_attach(struct connection *c, struct message *m);
void lease_release(struct connection *c, struct message *m);
void lease_present(struct connection *c, struct message *m);

/**
 * lease_settle() - something that was to be killed is dead, or a change of the policy over
 *
 * ATTACHED comes when that holds for all that others have started or asked for, but for detached
 * commands and what ended ones left behind with leave (lease_rest_killed()): from then on nobody
 * else changes the sandbox.
 */
void lease_settle(struct keeper *k);

/**
 * lease_rest_killed() - KILLED of init, with id 0
 *
 * What the commands of a lease have left behind ends, when its holder dies or is overtaken. After a
 * RELEASE it stays: whoever lets go by itself knows what it leaves. Return: 0, or -EPROTO when
 * nobody asked for it.
 */
int lease_rest_killed(struct keeper *k, struct message *m);

/**
 * lease_admits() - whether @c may change the sandbox now: its commands, files, policy
 *
 * Return: 0, or a negative errno with a terminal error that names the holder, or says that the
 * lease of @c is over.
 */
int lease_admits(const struct connection *c, struct error *err);

/**
 * lease_owner_admits() - whether who presents @owner may extend or end the sandbox
 * @owner: NULL: it presents none
 * @ends:  it is to end, which a lease that is held or kept stands against
 *
 * Return: 0, or a negative errno with a terminal error that names both.
 */
int lease_owner_admits(const struct keeper *k, const char *owner, bool ends, struct error *err);

/** lease_connection_gone() - @c has left: if the lease was its, it is free or kept */
void lease_connection_gone(struct connection *c);

/** lease_taken() - whether it is held or kept: such a sandbox is not idle */
bool lease_taken(const struct keeper *k);

/** lease_describe() - what INSPECT tells of it */
void lease_describe(const struct keeper *k, struct sandbox_info *x);

/** lease_done() - free it */
void lease_done(struct keeper *k);

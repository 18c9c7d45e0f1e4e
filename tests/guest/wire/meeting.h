/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the nodes of hostile-wire and hostile-accept meet: by ordinary sockets, because the module of
 * a node is down meanwhile. Node 0 runs the test, and node 1 does what node 0 says. The other nodes
 * wait, because the next test must not begin before.
 */
#ifndef KDSM_TESTS_MEETING_H
#define KDSM_TESTS_MEETING_H

#include <stdint.h>
#include <stdio.h>
#include <json-c/json.h>

#include "attack.h"

/* Return kdsmctl status --json of this node; end the program if that fails. */
struct json_object *own_status(void);
int64_t member(struct json_object *object, const char *key);
/* Member of a peer in kdsmctl status --json of this node */
int64_t peer_member(unsigned int node, const char *key);

/*
 * Fill in *scene, for an attack of node "from" on node "to". Ends the program if the cluster has
 * one node, or programs cannot use verbs.
 */
void meeting_scene(struct scene *scene, unsigned int from, unsigned int to);
/*
 * Node 0: return a stream to node 1, which answers when all other nodes wait. Node 1: return the
 * stream to node 0. Other nodes: wait until node 1 ends, and end the program; meanwhile call
 * meeting_turn, if it is set, whenever node 1 says so.
 */
FILE *meeting_open(unsigned int node, unsigned int nodes);
extern void (*meeting_turn)(unsigned int node);
/* Node 1: let the other nodes call meeting_turn, one after another. */
void meeting_pass(void);
/* Run a command of the shell; end the program if it fails. */
void own_module(const char *command);
/*
 * Node 0: open regions and put to node 1 from each CPU until that works, for 20 s a CPU at most.
 * Then all connections are up.
 */
void recovers(void);

#endif /* KDSM_TESTS_MEETING_H */

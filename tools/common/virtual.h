/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual runs (<kdsm/virtual.h>) on the command line, and their times in the output */
#ifndef COMMON_VIRTUAL_H
#define COMMON_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>
#include <kdsm/virtual.h>

#include "common/cli.h"

/* Largest number of workers of a simulated node */
#define VIRTUAL_WORKERS	256

struct virtual_options {
	struct kdsm_virtual_attr attr;
	bool given;			/* by --virtual; other members are valid in any case */
	bool network;			/* --network is given */
	unsigned int workers;		/* of each node */
};

void virtual_init(struct virtual_options *v);

/*
 * Parsers of the values of --virtual and --network, as struct cli_option has them, but with a
 * struct virtual_options. --task-time stores attr.step, with VIRTUAL_TASK_TIME.
 */
int virtual_parse(struct virtual_options *v, const char *text, char reason[REASON_SIZE]);
int virtual_parse_network(struct virtual_options *v, const char *text, char reason[REASON_SIZE]);
#define VIRTUAL_TASK_TIME	{ 1, SECOND, 0 }

/* Texts of the options in --help */
#define VIRTUAL_VALUE		"NODESxWORKERS"
#define VIRTUAL_DOC \
	"Simulate a cluster of this many nodes, with this many workers on each, in one thread of this machine, and tell its virtual time"
#define VIRTUAL_NETWORK_VALUE	"NAME=VALUE[,NAME=VALUE...]"
#define VIRTUAL_NETWORK_DOC \
	"Network of --virtual (one-sided=2us,message=3us,handler=400ns,gap=100ns,bandwidth=12.5G,quantum=1us)"

/* Check the options together. Returns 0, or -1 with a reason. */
int virtual_check(const struct virtual_options *v, char reason[REASON_SIZE]);

/*
 * Return the reason why kdsm_virtual_run() failed with error, a negative errno, and the remedy: a
 * sentence without capital and full stop.
 */
const char *virtual_reason(int error);

/* Part of the workers' time, from 0 to 1 */
double virtual_part(const struct kdsm_virtual_times *times, enum kdsm_virtual_share share);
/* All remote operations, from 0 to 1 */
double virtual_remote(const struct kdsm_virtual_times *times);
/* Print a line for each share that is not 0; the first one begins with "shares". */
void virtual_print_shares(const struct kdsm_virtual_times *times);
/* Make an object of the run's options, and of its times. */
struct json_object *virtual_json(const struct virtual_options *v,
				 const struct kdsm_virtual_times *times);

#endif /* COMMON_VIRTUAL_H */

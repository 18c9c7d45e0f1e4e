/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of kdsmctl(8). Each parses its own command line, in which argv[0] is the program
 * and the words of the command, and returns an exit status.
 */
#ifndef KDSMCTL_COMMANDS_H
#define KDSMCTL_COMMANDS_H

#include <stdbool.h>

#include "common/cli.h"

/* up.c */
int command_up(int argc, char **argv);
int command_down(int argc, char **argv);
/* check.c */
int command_check(int argc, char **argv);
/* status.c */
int command_status(int argc, char **argv);
/* key.c */
int key_make(int argc, char **argv);
int key_load(int argc, char **argv);
int key_retire(int argc, char **argv);
/* node.c */
int node_add(int argc, char **argv);
int node_remove(int argc, char **argv);
/* stats.c */
int command_stats(int argc, char **argv);
/* top.c, monitor.c, metrics.c */
int command_top(int argc, char **argv);
int command_monitor(int argc, char **argv);
int command_metrics(int argc, char **argv);
/* region.c */
int region_list(int argc, char **argv);
int region_show(int argc, char **argv);
int region_set(int argc, char **argv);
int region_destroy(int argc, char **argv);
/* lock.c, lock_show.c, lock_set.c */
int lock_list(int argc, char **argv);
int lock_show(int argc, char **argv);
int lock_watch(int argc, char **argv);
int lock_set(int argc, char **argv);

#define MOST_SECONDS	(1000000 * SECOND)	/* longest time that an option takes, in ns */

/* Parse the command line of a command that takes only --json. Returns whether it was given. */
bool parse_json(const char *doc, int argc, char **argv);
/*
 * Parse the command line of a command that takes a name and --json. Returns the name, and stores
 * in *json whether --json was given.
 */
const char *parse_name_and_json(const char *doc, int argc, char **argv, bool *json);
/* Take the name of a region or a lock, for struct cli.argument. -1: it is empty. */
int take_name(const char **name, const char *text, char *reason);

#endif /* KDSMCTL_COMMANDS_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of kdsmctl(8), one file each. They get what follows the name of
 * the command (argv[0] is the name) and return an exit status.
 */
#ifndef KDSMCTL_COMMANDS_H
#define KDSMCTL_COMMANDS_H

#define EXIT_USAGE	2

int command_up(int argc, char **argv);
int command_down(int argc, char **argv);
int command_status(int argc, char **argv);
int command_stats(int argc, char **argv);
int command_region(int argc, char **argv);
int command_lock(int argc, char **argv);

/* One line on stderr that points to the help; returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For a command that takes only --json: 0, or EXIT_USAGE. */
int only_json(int argc, char **argv, int *json);
/* Seconds, fractions too; 0 or -1. */
int parse_seconds(const char *word, double *seconds);

#endif /* KDSMCTL_COMMANDS_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line of all tools and programs: options as tables over argp(3), commands as
 * tables, --help, --usage and --version. Wrong usage ends the process with EX_USAGE (64): one
 * line on stderr names the mistake, a hint at --help follows, and stdout stays empty. If the
 * process cannot write its output to stdout, an exit handler says so and ends the process with
 * EXIT_FAILURE, or with the status that struct cli has.
 */
#ifndef COMMON_CLI_H
#define COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "common/number.h"

/* The version of the program, which is that of the library and of the module, too */
extern const char cli_version[];

/* Largest number of option tables of one command line */
#define CLI_TABLES	8

enum cli_type {
	CLI_FLAG,	/* the option has no value; bool, becomes true */
	CLI_NUMBER,	/* uint64_t, by number_parse() */
	CLI_COUNT,	/* unsigned int, by number_parse() */
	CLI_SIZE,	/* uint64_t, by size_parse(): bytes */
	CLI_TIME,	/* uint64_t, by time_parse(): nanoseconds */
	CLI_TEXT,	/* const char *; "" is refused */
	CLI_WORD,	/* const char *: one of words */
	CLI_CHOICE,	/* unsigned int: the index in words */
	CLI_PARSED,	/* parse() stores the value */
};

/**
 * struct cli_option - one option, which stores its value in a member of a structure
 * @name: name of the long option; NULL ends a table
 * @key: letter of the short option; 0: there is none
 * @value: name of the value in --help; NULL for CLI_FLAG
 * @doc: one sentence in --help
 * @type: form of the value, and type of the member
 * @offset: offset of the member in the structure, in bytes
 * @range: values that CLI_NUMBER, CLI_COUNT, CLI_SIZE and CLI_TIME take
 * @words: values that CLI_WORD and CLI_CHOICE take; NULL ends the list
 * @parse: for CLI_PARSED: stores the value in values; returns 0, or -1 with a reason
 */
struct cli_option {
	const char *name;
	int key;
	const char *value, *doc;
	enum cli_type type;
	size_t offset;
	struct range range;
	const char *const *words;
	int (*parse)(void *values, const char *text, char reason[REASON_SIZE]);
};

/**
 * struct cli - a command line
 * @doc: what the program does, for --help; "\v" separates a part that follows the options
 * @args: names of the arguments, for --help; NULL: there are none
 * @least: fewest arguments
 * @most: most arguments
 * @options: tables of options; NULL ends the list unless it is full
 * @argument: stores the argument with this index, from 0; returns 0, or -1 with a reason
 * @check: checks all values in the end; returns 0, or -1 with a reason; may be NULL
 * @command: the arguments are another command line: what follows the first one is no option
 * @write_failure: exit status if the output cannot be written; 0 means EXIT_FAILURE
 */
struct cli {
	const char *doc, *args;
	unsigned int least, most;
	const struct cli_option *options[CLI_TABLES];
	int (*argument)(void *values, unsigned int index, const char *text,
			char reason[REASON_SIZE]);
	int (*check)(void *values, char reason[REASON_SIZE]);
	bool command;
	int write_failure;
};

/*
 * Parse the command line into *values, which holds the defaults before. Returns only if the
 * command line is right; --help, --version and wrong usage end the process.
 */
void cli_parse(const struct cli *cli, int argc, char **argv, void *values);

/**
 * struct cli_command - the first word of a command line, or of the rest of one
 * @name: the word; NULL ends a table
 * @doc: one sentence in --help
 * @run: runs the command; argv[0] is the program and all words so far; returns an exit status
 * @commands: instead of @run: the words that may follow; at most 24 in one table
 */
struct cli_command {
	const char *name, *doc;
	int (*run)(int argc, char **argv);
	const struct cli_command *commands;
};

/* Run the command that argv[1] names. Returns an exit status. */
int cli_run(const struct cli_command *commands, const char *doc, int argc, char **argv);

#endif /* COMMON_CLI_H */

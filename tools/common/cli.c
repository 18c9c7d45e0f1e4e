// SPDX-License-Identifier: GPL-2.0
/* Command lines, see cli.h. */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"

/* Size of the list of words in a message, in bytes; a longer list is cut */
#define WORDS_SIZE	160

/* Largest number of commands in one table */
#define COMMANDS	24

/* ---- what all command lines have ---- */

const char cli_version[] = KDSM_VERSION;

static void print_version(FILE *stream, struct argp_state *state)
{
	(void)state;
	fprintf(stream, "%s (kdsm) %s\n", program_invocation_short_name, cli_version);
}

/* Exit status if the output cannot be written */
static int write_failure = EXIT_FAILURE;

/* Exit handler: a full disk or a closed pipe must not look like success. */
static void close_stdout(void)
{
	bool pending = __fpending(stdout), failed = ferror(stdout);

	errno = 0;
	/* Without stdout, a program that prints nothing has not failed. */
	if (fclose(stdout) && (pending || errno != EBADF))
		failed = true;
	if (!failed)
		return;
	if (errno)
		warn("cannot write to standard output");
	else
		warnx("cannot write to standard output");
	_exit(write_failure);
}

static void begin(void)
{
	static bool begun;

	if (begun)
		return;
	begun = true;
	/* For the widths of characters in tables. Numbers keep their decimal point. */
	setlocale(LC_CTYPE, "");
	argp_program_version_hook = print_version;
	if (atexit(close_stdout))
		errx(EXIT_FAILURE, "out of memory");
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		errx(EXIT_FAILURE, "out of memory");
	return memory;
}

/* Store the words as "a, b or c" in buffer of WORDS_SIZE bytes. */
static void join(char *buffer, const char *const *words)
{
	size_t used = 0;
	unsigned int i;

	buffer[0] = '\0';
	for (i = 0; words[i] && used < WORDS_SIZE; i++)
		used += snprintf(buffer + used, WORDS_SIZE - used, "%s%s",
				 !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

/* ---- options ---- */

struct parse {
	const struct cli *cli;
	void *values;
};

/* argp's keys for options without a letter begin here. */
#define FIRST_KEY	256

/* The option that has this key in argp; NULL: it is not in the tables of cli. */
static const struct cli_option *option_of(const struct cli *cli, int key)
{
	const struct cli_option *option;
	int number = FIRST_KEY;
	unsigned int i;

	for (i = 0; i < CLI_TABLES && cli->options[i]; i++)
		for (option = cli->options[i]; option->name; option++, number++)
			if (key == (option->key ? option->key : number))
				return option;
	return NULL;
}

/* Make argp's table of the options. The caller frees it. */
static struct argp_option *argp_options(const struct cli *cli)
{
	const struct cli_option *option;
	struct argp_option *table;
	unsigned int i, count = 0;

	for (i = 0; i < CLI_TABLES && cli->options[i]; i++)
		for (option = cli->options[i]; option->name; option++)
			count++;
	table = allocate(count + 1, sizeof(*table));
	count = 0;
	for (i = 0; i < CLI_TABLES && cli->options[i]; i++)
		for (option = cli->options[i]; option->name; option++, count++)
			table[count] = (struct argp_option){
				.name = option->name,
				.key = option->key ? option->key : FIRST_KEY + (int)count,
				.arg = option->value,
				.doc = option->doc,
			};
	return table;
}

static int store_word(const struct cli_option *option, void *member, const char *text,
		      char *reason)
{
	char words[WORDS_SIZE];
	unsigned int i;

	for (i = 0; option->words[i]; i++) {
		if (strcmp(text, option->words[i]))
			continue;
		if (option->type == CLI_CHOICE)
			*(unsigned int *)member = i;
		else
			*(const char **)member = option->words[i];
		return 0;
	}
	join(words, option->words);
	snprintf(reason, REASON_SIZE, "'%.48s' is not %s", text, words);
	return -1;
}

static int store_count(const struct cli_option *option, void *member, const char *text,
		       char *reason)
{
	uint64_t value;

	if (number_parse(text, &option->range, &value, reason))
		return -1;
	*(unsigned int *)member = value;
	return 0;
}

static int store(const struct cli_option *option, void *values, const char *text, char *reason)
{
	void *member = (char *)values + option->offset;

	switch (option->type) {
	case CLI_FLAG:
		*(bool *)member = true;
		return 0;
	case CLI_NUMBER:
		return number_parse(text, &option->range, member, reason);
	case CLI_COUNT:
		return store_count(option, member, text, reason);
	case CLI_SIZE:
		return size_parse(text, &option->range, member, reason);
	case CLI_TIME:
		return time_parse(text, &option->range, member, reason);
	case CLI_TEXT:
		*(const char **)member = text;
		if (*text)
			return 0;
		snprintf(reason, REASON_SIZE, "%s must not be empty", option->value);
		return -1;
	case CLI_WORD:
	case CLI_CHOICE:
		return store_word(option, member, text, reason);
	default:
		return option->parse(values, text, reason);
	}
}

/* ---- arguments ---- */

static void take_arguments(struct argp_state *state, struct parse *parse)
{
	const struct cli *cli = parse->cli;
	unsigned int count = state->argc - state->next, i;
	char reason[REASON_SIZE];

	if (count < cli->least)
		argp_error(state, "expected: %s", cli->args);
	if (count > cli->most)
		argp_error(state, "unexpected argument '%s'", state->argv[state->next + cli->most]);
	for (i = 0; i < count; i++)
		if (cli->argument(parse->values, i, state->argv[state->next + i], reason))
			argp_error(state, "%s", reason);
}

static error_t on_key(int key, char *text, struct argp_state *state)
{
	struct parse *parse = state->input;
	const struct cli_option *option;
	char reason[REASON_SIZE];

	switch (key) {
	case ARGP_KEY_NO_ARGS:
	case ARGP_KEY_ARGS:
		take_arguments(state, parse);
		return 0;
	case ARGP_KEY_END:
		if (parse->cli->check && parse->cli->check(parse->values, reason))
			argp_error(state, "%s", reason);
		return 0;
	default:
		option = option_of(parse->cli, key);
		if (!option)
			return ARGP_ERR_UNKNOWN;
		if (store(option, parse->values, text, reason))
			argp_error(state, "--%s: %s", option->name, reason);
		return 0;
	}
}

void cli_parse(const struct cli *cli, int argc, char **argv, void *values)
{
	struct parse parse = { cli, values };
	struct argp_option *table = argp_options(cli);
	struct argp argp = {
		.options = table, .parser = on_key, .args_doc = cli->args, .doc = cli->doc,
	};

	begin();
	if (cli->write_failure)
		write_failure = cli->write_failure;
	/* Messages begin with argv[0]: remove the directory. Words of cli_run() have none. */
	if (argc && strrchr(argv[0], '/'))
		argv[0] = program_invocation_short_name;
	argp_parse(&argp, argc, argv, cli->command ? ARGP_IN_ORDER : 0, NULL, &parse);
	free(table);
}

/* ---- commands ---- */

struct choice {
	const struct cli_command *commands, *command;
	int at;			/* in argv */
};

static void choose(struct argp_state *state, struct choice *choice)
{
	const char *names[COMMANDS + 1], *name = state->argv[state->next];
	const struct cli_command *command;
	char words[WORDS_SIZE];
	unsigned int count = 0;

	for (command = choice->commands; command->name && count < COMMANDS; command++) {
		names[count++] = command->name;
		if (!name || strcmp(name, command->name))
			continue;
		choice->command = command;
		choice->at = state->next;
		return;
	}
	names[count] = NULL;
	join(words, names);
	if (name)
		argp_error(state, "there is no command '%s': use %s", name, words);
	else
		argp_error(state, "expected a command: %s", words);
}

static error_t on_command(int key, char *text, struct argp_state *state)
{
	(void)text;
	if (key != ARGP_KEY_NO_ARGS && key != ARGP_KEY_ARGS)
		return ARGP_ERR_UNKNOWN;
	choose(state, state->input);
	return 0;
}

static unsigned int count_leaves(const struct cli_command *commands)
{
	unsigned int count = 0;

	for (; commands->name; commands++)
		count += commands->commands ? count_leaves(commands->commands) : 1;
	return count;
}

/* Fill table with all commands for --help, each with the words before it. Returns its end. */
static struct argp_option *list_leaves(struct argp_option *table, const char *prefix,
				       const struct cli_command *commands)
{
	char *name;

	for (; commands->name; commands++) {
		if (asprintf(&name, "%s%s%s", prefix, *prefix ? " " : "", commands->name) < 0)
			errx(EXIT_FAILURE, "out of memory");
		if (commands->commands) {
			table = list_leaves(table, name, commands->commands);
			free(name);
			continue;
		}
		*table++ = (struct argp_option){
			.name = name,
			.flags = OPTION_DOC | OPTION_NO_USAGE,
			.doc = commands->doc,
		};
	}
	return table;
}

static void free_leaves(struct argp_option *table)
{
	struct argp_option *at;

	for (at = table; at->name; at++)
		free((char *)at->name);
	free(table);
}

static int run(const struct choice *choice, const char *doc, int argc, char **argv)
{
	const struct cli_command *command = choice->command;
	char *name, *old = argv[choice->at];
	int status;

	if (asprintf(&name, "%s %s", argv[0], command->name) < 0)
		errx(EXIT_FAILURE, "out of memory");
	argv[choice->at] = name;
	argc -= choice->at;
	argv += choice->at;
	if (command->commands)
		status = cli_run(command->commands, command->doc ? command->doc : doc, argc, argv);
	else
		status = command->run(argc, argv);
	argv[0] = old;
	free(name);
	return status;
}

int cli_run(const struct cli_command *commands, const char *doc, int argc, char **argv)
{
	struct argp_option *table = allocate(count_leaves(commands) + 1, sizeof(*table));
	struct choice choice = { .commands = commands };
	const struct argp argp = {
		.options = table, .parser = on_command, .args_doc = "COMMAND [OPTION...]",
		.doc = doc,
	};

	begin();
	if (argc && strrchr(argv[0], '/'))
		argv[0] = program_invocation_short_name;
	list_leaves(table, "", commands);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice);
	free_leaves(table);
	return run(&choice, doc, argc, argv);
}

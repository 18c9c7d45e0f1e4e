// SPDX-License-Identifier: GPL-2.0
/* The command line: options that all programs have, and those of this program */
#include <stdio.h>

#include "common/cli.h"
#include "internal.h"

#define SECOND		UINT64_C(1000000000)	/* in ns */

unsigned int sim_broken;

static int parse_nodes(void *values, const char *text, char reason[REASON_SIZE])
{
	unsigned int least = sim_program.nodes_least, most = KDSM_MAX_NODES;
	struct sim_options *options = values;
	unsigned int from, to;
	char end;
	int n;

	n = sscanf(text, "%u-%u%c", &from, &to, &end);
	if (n == 1)
		to = from;
	if (n < 1 || n > 2 || from < least || to > most || from > to) {
		snprintf(reason, REASON_SIZE, "'%.48s' is not N or N-M, from %u to %u", text,
			 least, most);
		return -1;
	}
	options->nodes_min = from;
	options->nodes_max = to;
	return 0;
}

static int parse_defect(void *values, const char *text, char reason[REASON_SIZE])
{
	unsigned int i;

	for (i = 1; sim_program.defects[i].name; i++)
		if (!strcmp(text, sim_program.defects[i].name)) {
			sim_broken = i;
			return 0;
		}
	snprintf(reason, REASON_SIZE, "there is no defect '%.48s'; --help lists them", text);
	return -1;
}

static int parse_replay(void *values, const char *text, char reason[REASON_SIZE])
{
	static const struct range range = { 0, UINT64_MAX - 1, 1 };
	struct sim_options *options = values;

	options->replays = true;
	return number_parse(text, &range, &options->replayed, reason);
}

#define AT(member)	.offset = offsetof(struct sim_options, member)

static const struct cli_option table[] = {
	{ "seed", 's', "SEED", "First seed (1)", CLI_NUMBER, AT(seed),
	  .range = { 0, UINT64_MAX - 1, 1 } },
	{ "seeds", 'n', "COUNT", "Number of seeds (1000; 1 with --verbose)", CLI_NUMBER,
	  AT(seeds), .range = { 1, UINT64_MAX - 1, 1 } },
	{ "nodes", 'N', "N[-M]", "Let each seed choose from N to M nodes", CLI_PARSED,
	  .parse = parse_nodes },
	{ "time", 't', "TIME", "Begin no seed after TIME, in s", CLI_TIME, AT(time),
	  .range = { SECOND, 86400 * SECOND, SECOND } },
	{ "jobs", 'j', "JOBS", "Processes that run seeds (1)", CLI_NUMBER, AT(jobs),
	  .range = { 1, 1024, 1 } },
	{ "plain", 'p', NULL, "Inject no faults", CLI_FLAG, AT(plain) },
	{ "lossy", 'l', NULL, "Lose messages and operations in every seed", CLI_FLAG,
	  AT(lossy) },
	{ "break", 'b', "DEFECT",
	  "Put a defect into the protocol; the exit status is 0 if a seed finds it, and fails "
	  "in the same way once more", CLI_PARSED, .parse = parse_defect },
	{ "stats", 'S', NULL, "Print counters", CLI_FLAG, AT(stats) },
	{ "verbose", 'v', NULL, "Print every event", CLI_FLAG, AT(verbose) },
	{ "replay", 0, "SEED", "Run only this seed, and print every event", CLI_PARSED,
	  .parse = parse_replay },
	{ 0 }
};

static int check(void *values, char reason[REASON_SIZE])
{
	struct sim_options *options = values;

	/* Seeds must find a defect without faults, unless it shows only if messages are lost. */
	if (sim_broken) {
		options->lossy |= sim_program.defects[sim_broken].lossy;
		options->plain = !options->lossy;
	}
	if (options->replays) {
		options->seed = options->replayed;
		options->seeds = 1;
		options->verbose = true;
	}
	return sim_program.check ? sim_program.check(reason) : 0;
}

/* Make the text of --help: the program's doc, and the part that follows the options. */
static char *make_doc(void)
{
	size_t size = 0;
	char *doc = NULL;
	FILE *file = open_memstream(&doc, &size);
	unsigned int i;

	fprintf(file, "%s\vA seed runs on %u to %u nodes, unless --nodes says otherwise. A seed that fails is run once more, must fail in the same way, and its last events are printed.\n\nDefects:\n",
		sim_program.doc, sim_program.options->nodes_min, sim_program.options->nodes_max);
	for (i = 1; sim_program.defects[i].name; i++)
		fprintf(file, "  %-8s %s\n", sim_program.defects[i].name,
			sim_program.defects[i].what);
	fclose(file);
	return doc;
}

int main(int argc, char **argv)
{
	struct cli cli = {
		.doc = make_doc(),
		.options = { table, sim_program.option_table },
		.check = check,
	};
	const char *path = argv[0];

	cli_parse(&cli, argc, argv, sim_program.options);
	free((char *)cli.doc);
	return sim_run_seeds(path, argv + 1);
}

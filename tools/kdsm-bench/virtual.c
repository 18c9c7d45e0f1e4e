// SPDX-License-Identifier: GPL-2.0
/* Virtual runs of kdsm-bench task and barrier. */
#include <errno.h>

#include "bench.h"
#include "work.h"

static int parse_virtual(void *values, const char *text, char *reason)
{
	return virtual_parse(&((struct options *)values)->virtual, text, reason);
}

static int parse_network(void *values, const char *text, char *reason)
{
	return virtual_parse_network(&((struct options *)values)->virtual, text, reason);
}

const struct cli_option virtual_options_table[] = {
	{ "virtual", 0, VIRTUAL_VALUE, VIRTUAL_DOC, CLI_PARSED, .parse = parse_virtual },
	{ "task-time", 0, "TIME",
	  "With --virtual: let each task take this time, and all other computing none (as long as they take here)",
	  CLI_TIME, AT(virtual.attr.step), .range = VIRTUAL_TASK_TIME },
	{ "network", 0, VIRTUAL_NETWORK_VALUE, VIRTUAL_NETWORK_DOC, CLI_PARSED,
	  .parse = parse_network },
	{ 0 }
};

static bool running;

bool in_virtual_run(void)
{
	return running;
}

struct argument {
	const struct options *options;
	int (*bench)(const struct options *options, struct kdsm *node, void *context);
	void *context;
	int status;		/* of the node that failed first, or 0 */
};

static int bench_node(struct kdsm *node, void *argument)
{
	struct argument *a = argument;
	int status = a->bench(a->options, node, a->context);

	if (!a->status)
		a->status = status;
	return 0;
}

int virtual_bench(const struct options *options,
		  int (*bench)(const struct options *options, struct kdsm *node, void *context),
		  void *context)
{
	struct argument a = { .options = options, .bench = bench, .context = context };
	int ret;

	if (!options->virtual.given)
		return bench(options, NULL, context);
	work_begin(options->virtual.attr.step);
	running = true;
	ret = kdsm_virtual_run(&options->virtual.attr, bench_node, &a);
	running = false;
	work_end();
	if (ret && !a.status)
		a.status = complain(options, "%s", virtual_reason(ret));
	return a.status;
}

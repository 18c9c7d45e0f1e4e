// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmrun(1): start the members of a job on the nodes of the cluster. The front, which is here,
 * chooses nodes, starts agents, passes on signals, and ends all when one fails.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <kdsm/job.h>

#include "common/cli.h"
#include "common/cluster.h"
#include "common/module.h"
#include "run.h"

#define MOST_WORDS	4096	/* of the command of the members */
#define MOST_VARIABLES	256

struct arguments {
	unsigned int size, nodes;
	bool local, label, count, print;
	const char *ssh, *job;
	char *variables[MOST_VARIABLES + 1];
	unsigned int variable_count;
	char *command[MOST_WORDS + 1];
};

struct node {
	unsigned int number;
	char address[INET6_ADDRSTRLEN];
	bool own;
	pid_t pid;		/* of the agent or of ssh; 0: ended */
	int control;		/* the pipe to the agent, or -1 */
};

static struct node nodes[KDSM_MAX_NODES];
static unsigned int node_count, down_count;

/* ---- command line ---- */

#define AT(member)	.offset = offsetof(struct arguments, member)

static void add_variable(struct arguments *arguments, char *variable)
{
	if (arguments->variable_count < MOST_VARIABLES)
		arguments->variables[arguments->variable_count++] = variable;
}

static int parse_variable(void *values, const char *text, char *reason)
{
	const char *value = getenv(text);
	char *both;

	if (strchr(text, '=')) {
		add_variable(values, (char *)text);
		return 0;
	}
	if (!value) {
		snprintf(reason, REASON_SIZE, "there is no variable '%s'", text);
		return -1;
	}
	if (asprintf(&both, "%s=%s", text, value) < 0)
		err(EXIT_FAILURE, "no memory");
	add_variable(values, both);
	return 0;
}

static int take_word(void *values, unsigned int index, const char *text, char *reason)
{
	struct arguments *arguments = values;

	(void)reason;
	arguments->command[index] = (char *)text;
	return 0;
}

static const struct cli_option options[] = {
	{ "members", 'n', "COUNT", "Members of the job (one on each node)", CLI_COUNT, AT(size),
	  .range = { 1, KDSM_JOB_MOST, 1 } },
	{ "nodes", 'N', "COUNT", "Nodes to use (all that are up, but not more than members)",
	  CLI_COUNT, AT(nodes), .range = { 1, KDSM_MAX_NODES, 1 } },
	{ "local", 0, NULL, "Use this machine alone, even if there is a cluster", CLI_FLAG,
	  AT(local) },
	{ "label", 'l', NULL, "Print each line behind the rank of the member", CLI_FLAG,
	  AT(label) },
	{ "count", 'c', NULL, "Print how many operations on other nodes each node made", CLI_FLAG,
	  AT(count) },
	{ "export", 'x', "NAME[=VALUE]", "Set a variable for the members, too (those whose names "
	  "begin with KDSM_ or OMP_)", CLI_PARSED, .parse = parse_variable },
	{ "job", 0, "NAME", "Name of the job (a new one)", CLI_TEXT, AT(job) },
	{ "ssh", 0, "COMMAND", "Reach other nodes by this command (ssh -o BatchMode=yes)", CLI_TEXT,
	  AT(ssh) },
	{ "print", 0, NULL, "Print the commands for the nodes, or for Slurm, and do not run them",
	  CLI_FLAG, AT(print) },
	{ 0 }
};

static int check_nodes(void *values, char *reason)
{
	const struct arguments *arguments = values;

	if (!arguments->local || (arguments->nodes <= 1 && !arguments->count))
		return 0;
	snprintf(reason, REASON_SIZE, "--local is for one node, which has no other nodes");
	return -1;
}

static const struct cli cli = {
	.doc = "Start PROGRAM as the members of a job, on the nodes of the cluster.",
	.args = "PROGRAM [ARGUMENT...]",
	.least = 1,
	.most = MOST_WORDS,
	.options = { options },
	.argument = take_word,
	.check = check_nodes,
	.command = true,
};

/* ---- Slurm ---- */

/* Print words, quoted for a shell. */
static void print_command(char **words)
{
	const char *at;

	for (; *words; words++, putchar(*words ? ' ' : '\n')) {
		at = *words;
		while (isalnum((unsigned char)*at) || (*at && strchr("+-_./=:,@%", *at)))
			at++;
		if (at > *words && !*at) {
			fputs(*words, stdout);
			continue;
		}
		putchar('\'');
		for (at = *words; *at; at++)
			if (*at == '\'')
				fputs("'\\''", stdout);
			else
				putchar(*at);
		putchar('\'');
	}
}

static void *check(void *memory)
{
	if (!memory)
		errx(EXIT_FAILURE, "no memory");
	return memory;
}

/* In an allocation, srun starts the members: it knows the nodes, and accounts for what they use. */
static int run_srun(struct arguments *arguments)
{
	char *words[MOST_WORDS + 8] = { (char *)"srun" }, members[24], count[24];
	unsigned int n = 1, i;

	words[n++] = (char *)"--kill-on-bad-exit=1";
	if (arguments->label)
		words[n++] = (char *)"--label";
	if (arguments->size) {
		snprintf(members, sizeof(members), "--ntasks=%u", arguments->size);
		words[n++] = members;
	}
	if (arguments->nodes) {
		snprintf(count, sizeof(count), "--nodes=%u", arguments->nodes);
		words[n++] = count;
	}
	for (i = 0; arguments->command[i]; i++)
		words[n++] = arguments->command[i];
	if (arguments->print) {
		print_command(words);
		return EXIT_SUCCESS;
	}
	for (i = 0; i < arguments->variable_count; i++)
		putenv(arguments->variables[i]);
	if (arguments->job)
		setenv("KDSM_JOB", arguments->job, 1);
	execvp(*words, words);
	err(EXIT_FAILURE, "cannot run srun");
}

/* ---- nodes ---- */

static void take_self(attrs at, void *data)
{
	*(unsigned int *)data = attr_u32(at, KDSM_A_NODE);
}

static void take_node(attrs at, void *data)
{
	uint32_t state = attr_u32(at, KDSM_A_PEER_STATE);
	unsigned int number = attr_u32(at, KDSM_A_NODE_ID);
	struct node *node = &nodes[node_count];
	char address[INET6_ADDRSTRLEN];

	down_count += state == KDSM_PEER_DOWN;
	/* A node that has not been used yet may be up. */
	if (state == KDSM_PEER_DOWN || state == KDSM_PEER_CONNECTING ||
	    node_count == KDSM_MAX_NODES)
		return;
	node_count++;
	node->number = number;
	node->own = number == *(unsigned int *)data;
	snprintf(node->address, sizeof(node->address), "%s",
		 attr_address(at, KDSM_A_NODE_ADDRESS, address));
}

/* Find the nodes that are up, and keep as many as the user wants. */
static void find_nodes(const struct arguments *arguments)
{
	struct module *module = module_open();
	unsigned int self = 0;
	int error;

	if (!module)
		exit(EXIT_FAILURE);
	module_begin(module, KDSM_CMD_STATUS);
	error = module_send(module, take_self, &self);
	if (!error)
		error = module_dump(module, KDSM_CMD_PEERS, take_node, &self);
	if (error) {
		module_complain(module, "find the nodes", error);
		exit(EXIT_FAILURE);
	}
	module_close(module);
	if (arguments->nodes > node_count)
		errx(EXIT_FAILURE, "%u nodes are up, and not %u: see kdsmctl status", node_count,
		     arguments->nodes);
	if (down_count && !arguments->nodes)
		warnx("nodes that are down, and get no members: %u; see kdsmctl status",
		      down_count);
	if (arguments->nodes)
		node_count = arguments->nodes;
	if (arguments->size && node_count > arguments->size)
		node_count = arguments->size;
}

/* ---- agents ---- */

/* Returns the words, quoted for the shell on the other side of ssh, as one word. */
static char *quote(char **words)
{
	size_t size = 1, i;
	char *text, *to;

	for (i = 0; words[i]; i++)
		size += 4 * strlen(words[i]) + 3;
	text = check(malloc(size));
	to = text;
	for (i = 0; words[i]; i++) {
		const char *from = words[i];

		if (i)
			*to++ = ' ';
		*to++ = '\'';
		for (; *from; from++)
			if (*from == '\'')
				to = stpcpy(to, "'\\''");
			else
				*to++ = *from;
		*to++ = '\'';
	}
	*to = '\0';
	return text;
}

/* Returns the command that starts an agent on another node. */
static char **ssh_command(const struct arguments *arguments, const struct node *node,
			  const struct agent *agent)
{
	char **words = check(calloc(64, sizeof(*words))), *text = check(strdup(arguments->ssh));
	char program[4096], *save, *word;
	unsigned int n = 0;
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (size < 0)
		err(EXIT_FAILURE, "/proc/self/exe");
	program[size] = '\0';
	for (word = strtok_r(text, " ", &save); word && n < 61; word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	words[n++] = (char *)node->address;
	words[n++] = quote(agent_pack(agent, program));
	return words;
}

/* Close the pipes to the agents, which then end their members. */
static void end_agents(void)
{
	unsigned int i;

	for (i = 0; i < node_count; i++)
		if (nodes[i].control >= 0) {
			close(nodes[i].control);
			nodes[i].control = -1;
		}
}

static void start_agent(const struct arguments *arguments, struct node *node,
			const struct agent *agent)
{
	char **ssh = node->own ? NULL : ssh_command(arguments, node, agent);
	int pipes[2];

	if (arguments->print) {
		print_command(ssh ? ssh : agent_pack(agent, program_invocation_short_name));
		return;
	}
	if (pipe2(pipes, O_CLOEXEC))
		err(EXIT_FAILURE, "pipe");
	node->pid = fork();
	if (node->pid < 0)
		err(EXIT_FAILURE, "cannot start the agent of node %u", node->number);
	if (!node->pid) {
		/* Signals of the terminal go to the front alone, which passes them on. */
		setpgid(0, 0);
		dup2(pipes[0], STDIN_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		if (!ssh) {
			/* Otherwise other agents would not notice that the front has ended. */
			end_agents();
			exit(agent_run(agent));
		}
		run_unblock();
		execvp(*ssh, ssh);
		err(255, "cannot run %s", *ssh);
	}
	close(pipes[0]);
	node->control = pipes[1];
}

static void start_agents(struct arguments *arguments, const char *job)
{
	char folder[4096];
	unsigned int i;

	if (!getcwd(folder, sizeof(folder)))
		err(EXIT_FAILURE, "the current directory");
	for (i = 0; i < node_count; i++)
		nodes[i].control = -1;
	for (i = 0; i < node_count; i++) {
		unsigned int first = kdsm_share(arguments->size, i, node_count);

		start_agent(arguments, &nodes[i], &(struct agent){
			.folder = folder, .job = job, .size = arguments->size, .nodes = node_count,
			.node = nodes[i].number, .first = first,
			.count = kdsm_share(arguments->size, i + 1, node_count) - first,
			.local = arguments->local, .label = arguments->label,
			.count_operations = arguments->count,
			.variables = arguments->variables, .command = arguments->command,
		});
	}
}

/* ---- watching ---- */

static void pass_on(int number)
{
	unsigned char byte = number;
	unsigned int i;

	for (i = 0; i < node_count; i++)
		if (nodes[i].control >= 0 && write(nodes[i].control, &byte, 1) != 1)
			warnx("node %u does not get signal %d", nodes[i].number, number);
}

/* Collect agents that have ended. Returns the first status that is not 0, or the former one. */
static int reap(unsigned int *running, int result)
{
	unsigned int i;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < node_count; i++) {
			if (nodes[i].pid != pid)
				continue;
			nodes[i].pid = 0;
			--*running;
			if (status && !nodes[i].own && run_status(status) == 255)
				warnx("cannot reach node %u at %s, or lost it", nodes[i].number,
				      nodes[i].address);
			if (!result)
				result = run_status(status);
		}
	return result;
}

static int attend(int signals)
{
	struct pollfd fd = { signals, POLLIN, 0 };
	struct signalfd_siginfo info;
	unsigned int running = node_count;
	int64_t end_at = 0, left;
	int result = 0;

	while (running) {
		left = end_at ? end_at - run_now() : -1;
		poll(&fd, 1, end_at && left < 0 ? 0 : left);
		while (read(signals, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo != SIGCHLD)
				pass_on(info.ssi_signo);
		result = reap(&running, result);
		/* The members elsewhere end by themselves first, if they notice, and say why. */
		if (result && !end_at)
			end_at = run_now() + RUN_GRACE;
		if (end_at && run_now() >= end_at) {
			end_agents();
			end_at = run_now() + 3600 * 1000;
		}
	}
	return result;
}

/* ---- all of it ---- */

int main(int argc, char **argv)
{
	struct arguments arguments = { .ssh = "ssh -o BatchMode=yes" };
	char job[64], **variable, *program;
	int signals;

	if (argc > 1 && !strcmp(argv[1], AGENT_MARK))
		return agent_main(argc, argv);
	for (variable = environ; *variable; variable++)
		if (!strncmp(*variable, "KDSM_", 5) || !strncmp(*variable, "OMP_", 4))
			add_variable(&arguments, *variable);
	cli_parse(&cli, argc, argv, &arguments);
	if (getenv("SLURM_JOB_ID") && !arguments.local)
		return run_srun(&arguments);
	if (arguments.local) {
		nodes[0] = (struct node){ .own = true };
		node_count = 1;
	} else {
		find_nodes(&arguments);
	}
	if (!arguments.size)
		arguments.size = node_count;
	program = strrchr(arguments.command[0], '/');
	snprintf(job, sizeof(job), "%.30s.%x.%x", program ? program + 1 : arguments.command[0],
		 (unsigned int)time(NULL), getpid());
	signals = run_signals();
	start_agents(&arguments, arguments.job ? arguments.job : job);
	return arguments.print ? EXIT_SUCCESS : attend(signals);
}

// SPDX-License-Identifier: GPL-2.0
/* The agent of a node, which starts the members there and watches them */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/counters.h"
#include "run.h"

struct member {
	pid_t pid;		/* 0: it has ended */
	FILE *outputs[2];	/* with labels: pipes of its stdout and stderr; NULL: at an end */
};

struct crew {
	const struct agent *agent;
	struct member *members;
	unsigned int running;
	int status;		/* of the first member that failed */
	int64_t kill_at;	/* when the next, harder, signal is due, in ms; 0: none is */
	int next;		/* that signal */
};

/* ---- signals and time, which the front uses, too ---- */

int run_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int64_t run_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static const int handled[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2 };

static sigset_t handled_set(void)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(handled) / sizeof(*handled); i++)
		sigaddset(&set, handled[i]);
	return set;
}

int run_signals(void)
{
	sigset_t set = handled_set();
	int fd;

	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		err(EXIT_FAILURE, "signalfd");
	return fd;
}

void run_unblock(void)
{
	sigset_t set = handled_set();

	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- starting ---- */

static void set_number(const char *name, unsigned int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	setenv(name, text, 1);
}

/* In a new process: become a member. */
static void become(const struct agent *agent, unsigned int rank, int out, int error)
{
	char **variable;
	int null = open("/dev/null", O_RDONLY);

	/* A group of its own, so that signals reach its children, and those of the agent do not. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	if (error >= 0)
		dup2(error, STDERR_FILENO);
	run_unblock();
	for (variable = agent->variables; *variable; variable++)
		putenv(*variable);
	setenv("KDSM_JOB", agent->job, 1);
	if (agent->local)
		setenv("KDSM_LOCAL", "1", 1);
	else
		unsetenv("KDSM_LOCAL");
	set_number("KDSM_SIZE", agent->size);
	set_number("KDSM_NODES", agent->nodes);
	set_number("KDSM_RANK", rank);
	execvp(*agent->command, agent->command);
	warn("cannot run %s", *agent->command);
	_exit(errno == ENOENT ? 127 : 126);
}

static void start(struct crew *crew, unsigned int i)
{
	struct member *member = &crew->members[i];
	int pipes[2][2] = { { -1, -1 }, { -1, -1 } };
	unsigned int k;

	for (k = 0; k < 2 && crew->agent->label; k++) {
		if (pipe2(pipes[k], O_CLOEXEC))
			err(EXIT_FAILURE, "pipe");
		fcntl(pipes[k][0], F_SETFL, O_NONBLOCK);
		member->outputs[k] = fdopen(pipes[k][0], "r");
	}
	member->pid = fork();
	if (member->pid < 0)
		err(EXIT_FAILURE, "cannot start rank %u", crew->agent->first + i);
	if (!member->pid)
		become(crew->agent, crew->agent->first + i, pipes[0][1], pipes[1][1]);
	for (k = 0; k < 2 && crew->agent->label; k++)
		close(pipes[k][1]);
	crew->running++;
}

/* ---- ending ---- */

static void signal_all(const struct crew *crew, int number)
{
	unsigned int i;

	for (i = 0; i < crew->agent->count; i++)
		if (crew->members[i].pid)
			kill(-crew->members[i].pid, number);
}

/* End all members after a time, unless that is due already. */
static void end_in(struct crew *crew, int64_t ms)
{
	if (crew->next && crew->kill_at <= run_now() + ms)
		return;
	crew->next = SIGTERM;
	crew->kill_at = run_now() + ms;
}

static void end_now(struct crew *crew)
{
	if (!crew->next || run_now() < crew->kill_at)
		return;
	signal_all(crew, crew->next);
	crew->next = SIGKILL;
	crew->kill_at = run_now() + RUN_KILL;
}

static void ended(struct crew *crew, unsigned int i, int status)
{
	unsigned int rank = crew->agent->first + i;

	/* Children of the member end with it. */
	kill(-crew->members[i].pid, SIGKILL);
	crew->members[i].pid = 0;
	crew->running--;
	if (!status || crew->status)
		return;
	crew->status = run_status(status);
	if (WIFSIGNALED(status))
		warnx("rank %u on node %u was killed: %s", rank, crew->agent->node,
		      strsignal(WTERMSIG(status)));
	else
		warnx("rank %u on node %u ended with status %d", rank, crew->agent->node,
		      crew->status);
	end_in(crew, RUN_GRACE);
}

static void reap(struct crew *crew)
{
	unsigned int i;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < crew->agent->count; i++)
			if (crew->members[i].pid == pid)
				ended(crew, i, status);
}

/* ---- the loop ---- */

/* Print lines of a member behind its rank, and add a missing newline at the end. */
static void print(const struct crew *crew, unsigned int i, unsigned int k)
{
	FILE **input = &crew->members[i].outputs[k], *to = k ? stderr : stdout;
	char line[4096];

	while (fgets(line, sizeof(line), *input)) {
		fprintf(to, "%u: %s", crew->agent->first + i, line);
		if (!strchr(line, '\n'))
			fputc('\n', to);
	}
	fflush(to);
	if (feof(*input) || errno != EAGAIN) {
		fclose(*input);
		*input = NULL;
		return;
	}
	clearerr(*input);
}

static void listen_to_front(struct crew *crew, bool *open)
{
	unsigned char numbers[16];
	ssize_t n = read(STDIN_FILENO, numbers, sizeof(numbers)), i;

	for (i = 0; i < n; i++)
		signal_all(crew, numbers[i]);
	if (n <= 0) {
		*open = false;
		end_in(crew, 0);
	}
}

static bool any_output(const struct crew *crew)
{
	unsigned int i;

	for (i = 0; i < crew->agent->count; i++)
		if (crew->members[i].outputs[0] || crew->members[i].outputs[1])
			return true;
	return false;
}

static void attend(struct crew *crew, int signals)
{
	unsigned int count = crew->agent->count, n, i, k;
	struct pollfd *fds = calloc(2 + 2 * count, sizeof(*fds));
	struct signalfd_siginfo info;
	bool open = true;
	int64_t left;

	if (!fds)
		err(EXIT_FAILURE, "cannot watch the members");
	while (crew->running || any_output(crew)) {
		fds[0] = (struct pollfd){ signals, POLLIN, 0 };
		fds[1] = (struct pollfd){ open ? STDIN_FILENO : -1, POLLIN, 0 };
		for (i = 0, n = 2; i < count; i++)
			for (k = 0; k < 2; k++, n++)
				fds[n] = (struct pollfd){
					crew->members[i].outputs[k] ?
					fileno(crew->members[i].outputs[k]) : -1, POLLIN, 0 };
		left = crew->next ? crew->kill_at - run_now() : 1000;
		poll(fds, n, left < 0 ? 0 : left > 1000 ? 1000 : left);
		while (read(signals, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo != SIGCHLD)
				signal_all(crew, info.ssi_signo);
		reap(crew);
		if (fds[1].revents)
			listen_to_front(crew, &open);
		for (i = 0, n = 2; i < count; i++)
			for (k = 0; k < 2; k++, n++)
				if (fds[n].revents)
					print(crew, i, k);
		end_now(crew);
	}
	free(fds);
}

/* Say how many operations on other nodes this node has made since the first reading. */
static void print_operations(const struct agent *agent, const struct counters *before)
{
	struct counters after, sum = { 0 };
	const uint64_t *n = sum.operations;

	if (counters_read(NULL, &after))
		return;
	counters_add(&sum, before, &after);
	fprintf(stderr, "node %u: %" PRIu64 " reads, %" PRIu64 " messages, %" PRIu64 " writes\n",
		agent->node, n[KDSM_STAT_GET],
		n[KDSM_STAT_AM] + n[KDSM_STAT_CAS] + n[KDSM_STAT_FAA],
		n[KDSM_STAT_PUT] + n[KDSM_STAT_PUT_NOTIFY]);
}

int agent_run(const struct agent *agent)
{
	struct crew crew = { .agent = agent };
	struct counters before;
	int signals = run_signals();
	unsigned int i;

	if (agent->count_operations && counters_read(NULL, &before))
		exit(EXIT_FAILURE);

	if (chdir(agent->folder))
		err(EXIT_FAILURE, "cannot enter %s on node %u", agent->folder, agent->node);
	crew.members = calloc(agent->count, sizeof(*crew.members));
	if (!crew.members)
		err(EXIT_FAILURE, "cannot start %u members", agent->count);
	for (i = 0; i < agent->count; i++)
		start(&crew, i);
	attend(&crew, signals);
	free(crew.members);
	if (agent->count_operations)
		print_operations(agent, &before);
	return crew.status;
}

/* ---- the agent as arguments ---- */

enum { MARK = 1, FOLDER, JOB, SIZE, NODES, NODE, FIRST, COUNT, FLAGS, VARIABLES, REST };

static unsigned int length(char **words)
{
	unsigned int n = 0;

	while (words[n])
		n++;
	return n;
}

static char *number(unsigned int value)
{
	char *text;

	if (asprintf(&text, "%u", value) < 0)
		err(EXIT_FAILURE, "no memory");
	return text;
}

char **agent_pack(const struct agent *agent, const char *program)
{
	unsigned int variables = length(agent->variables), words = length(agent->command);
	char **argv = calloc(REST + variables + words + 1, sizeof(*argv));

	if (!argv)
		err(EXIT_FAILURE, "no memory");
	argv[0] = (char *)program;
	argv[MARK] = (char *)AGENT_MARK;
	argv[FOLDER] = (char *)agent->folder;
	argv[JOB] = (char *)agent->job;
	argv[SIZE] = number(agent->size);
	argv[NODES] = number(agent->nodes);
	argv[NODE] = number(agent->node);
	argv[FIRST] = number(agent->first);
	argv[COUNT] = number(agent->count);
	argv[FLAGS] = number(agent->label + 2 * agent->count_operations);
	argv[VARIABLES] = number(variables);
	memcpy(argv + REST, agent->variables, variables * sizeof(*argv));
	memcpy(argv + REST + variables, agent->command, words * sizeof(*argv));
	return argv;
}

int agent_main(int argc, char **argv)
{
	unsigned int variables = argc > REST ? atoi(argv[VARIABLES]) : 0;
	char **set;

	if (argc < REST + 1 || variables >= (unsigned int)argc - REST)
		errx(EXIT_FAILURE, "%s is for kdsmrun itself", AGENT_MARK);
	set = calloc(variables + 1, sizeof(*set));
	if (!set)
		err(EXIT_FAILURE, "no memory");
	memcpy(set, argv + REST, variables * sizeof(*set));
	return agent_run(&(struct agent){
		.folder = argv[FOLDER], .job = argv[JOB], .size = atoi(argv[SIZE]),
		.nodes = atoi(argv[NODES]), .node = atoi(argv[NODE]), .first = atoi(argv[FIRST]),
		.count = atoi(argv[COUNT]), .label = atoi(argv[FLAGS]) & 1,
		.count_operations = atoi(argv[FLAGS]) & 2, .variables = set,
		.command = argv + REST + variables,
	});
}

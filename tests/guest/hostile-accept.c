// SPDX-License-Identifier: GPL-2.0
/*
 * A program on node 1 poses as node 1's module, which is down. While the program does not know the
 * cluster's key, node 0 must not take it for node 1. Then the program knows the key, as a faulty
 * kernel does, takes requests and never answers: node 0's operations on node 1 must end in bounded
 * time, programs that wait can be killed, and connections to other nodes stay.
 */
#include <signal.h>
#include <sys/wait.h>

#include "clock.h"
#include "hostile.h"
#include "wire/impostor.h"
#include "wire/meeting.h"

#define CHILDREN	40	/* more than there are credits on a connection */
#define LIMIT		60	/* for an operation on a node that never answers, in s */

static struct scene scene;
static int file;

static void tell(FILE *stream, enum impostor_mode mode)
{
	fputc(mode, stream);
	if (fgetc(stream) != '.')
		tap_bail("node 1 does not answer");
}

/* Compare-and-swap a word of nodes 1 to last, in one batch. Return the status of each. */
static void swap(unsigned int last, int *status)
{
	struct kdsm_op ops[8] = { 0 };
	struct kdsm_submit submit = { .argsz = sizeof(submit), .count = last,
		.flags = KDSM_SUBMIT_WAIT, .ops = (uintptr_t)ops };

	for (unsigned int i = 0; i < last; i++)
		ops[i] = (struct kdsm_op){ .opcode = KDSM_OP_CAS, .node = i + 1, .length = 8 };
	call(file, KDSM_IOC_SUBMIT, &submit);
	for (unsigned int i = 0; i < last; i++)
		status[i] = ops[i].status;
}

static int64_t wrong_proofs(void)
{
	struct json_object *status = own_status();
	int64_t count = member(json_object_object_get(status, "refused"), "proof");

	json_object_put(status);
	return count;
}

static void lied_to(void)
{
	int64_t before = wrong_proofs();
	int status = 0;

	for (int i = 0; i < 40 && wrong_proofs() == before; i++) {
		swap(1, &status);
		usleep(500000);
	}
	tap_ok(wrong_proofs() > before, "a peer that does not know the key is found out");
	tap_result(status, -EHOSTDOWN, "and not taken for node 1");
}

/* Swap in a child; the result is the number of seconds that it took, or 255 if it succeeded. */
static pid_t child(void)
{
	double from = now();
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		swap(1, &status);
		_exit(status ? (int)(now() - from) : 255);
	}
	return pid;
}

static bool dies(pid_t pid, double limit)
{
	double from = now();
	int status;

	kill(pid, SIGKILL);
	while (!waitpid(pid, &status, WNOHANG)) {
		if (now() - from > limit)
			return false;
		usleep(10000);
	}
	return true;
}

/* Swap words of nodes 1 and 2 in a child, and exit with 0 if only that of node 1 failed. */
static pid_t mixed_child(void)
{
	int status[2];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		swap(2, status);
		_exit(!status[0] ? 1 : status[1] ? 2 : 0);
	}
	return pid;
}

/* Node 1 takes requests and does not answer. */
static void ignored(unsigned int nodes)
{
	int64_t errors = nodes > 2 ? peer_member(2, "errors") : 0;
	pid_t children[CHILDREN], mixed = nodes > 2 ? mixed_child() : 0;
	int status = 0, result, longest = 0, wrong = 0;
	double from = now();

	for (int i = 0; i < CHILDREN; i++)
		children[i] = child();
	sleep(5);
	tap_ok(dies(children[0], 3), "a program that waits for the answer can be killed");
	tap_ok(dies(children[CHILDREN - 1], 3), "and one that waits to ask");
	swap(1, &status);
	tap_ok(status < 0 && now() - from < LIMIT + 10,
	       "an operation on node 1 ends after %.0f s: %s", now() - from, tap_error(status));
	if (mixed) {
		tap_ok(waitpid(mixed, &result, 0) == mixed && WIFEXITED(result) &&
		       !WEXITSTATUS(result), "one on node 2 in the same batch works: %d", result);
		tap_ok(peer_member(2, "errors") == errors, "the connection to node 2 stays");
	}
	for (int i = 1; i < CHILDREN - 1; i++) {
		if (waitpid(children[i], &result, 0) != children[i] || !WIFEXITED(result))
			tap_bail("a child died");
		result = WEXITSTATUS(result);
		wrong += result == 255;
		longest = result > longest ? result : longest;
	}
	tap_ok(!wrong && longest < 2 * LIMIT, "%d programs fail after %d s at most", CHILDREN - 2,
	       longest);
}

/* Let node 1's program be kind, and wait until node 0's module has connected to it. */
static void meet_kind(void)
{
	int status = -1;

	for (int i = 0; i < 40 && status; i++) {
		swap(1, &status);
		if (status)
			usleep(500000);
	}
	tap_result(status, 0, "a program that knows the key is taken for node 1");
}

int main(void)
{
	unsigned int node = strtoul(getenv("KDSM_NODE"), NULL, 10);
	struct kdsm_region_open open;
	FILE *stream;

	meeting_scene(&scene, 1, 0);
	stream = meeting_open(node, scene.hello.nodes);
	if (node == 1) {
		fgetc(stream);	/* node 0 has opened its region */
		own_module("kdsmctl down");
		fputc('.', stream);
		impostor_run(&scene, fileno(stream));
		own_module("kdsmctl up -f \"$KDSM_CONFIG\" -w 60");
		fputc('.', stream);
		fgetc(stream);
		return EXIT_SUCCESS;
	}
	file = device(O_RDWR);
	open = region(file, "accept");
	/* The region needs all nodes, and node 1 can leave only without programs. */
	must(call(file, KDSM_IOC_REGION_OPEN, &open), "open a region");
	tell(stream, IMPOSTOR_LIAR);
	lied_to();
	tell(stream, IMPOSTOR_KIND);
	meet_kind();
	tell(stream, IMPOSTOR_MUTE);
	ignored(scene.hello.nodes);
	tell(stream, IMPOSTOR_END);
	if (fgetc(stream) != '.')
		tap_bail("node 1 does not come up again");
	recovers();
	return tap_end();
}

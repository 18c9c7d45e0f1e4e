// SPDX-License-Identifier: GPL-2.0
/*
 * And-inverter graphs. Random graphs, written in both forms of AIGER, against an explicit
 * search that evaluates gate by gate. Also files that are truncated or wrong, for which the
 * reader must name the mistake.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <unistd.h>

#include "sim.h"
#include "jobs.h"
#include "reach/circuit.h"
#include "reach/internal.h"

#define MOST_LATCHES	7
#define MOST_INPUTS	3
#define MOST_GATES	40
#define MOST_BAD	3

/* ---- a graph, and an explicit search of it ---- */

struct graph {
	unsigned int inputs, latches, gates, bads, constraints;
	unsigned int next[MOST_LATCHES], reset[MOST_LATCHES];
	unsigned int left[MOST_GATES], right[MOST_GATES];
	unsigned int bad[MOST_BAD], constraint;
};

static unsigned int random_below(uint64_t *seed, unsigned int bound)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % bound;
}

static void make_graph(struct graph *g, uint64_t *seed)
{
	unsigned int first, i, literals;

	*g = (struct graph){
		.inputs = random_below(seed, MOST_INPUTS + 1),
		.latches = 1 + random_below(seed, MOST_LATCHES),
		.gates = random_below(seed, MOST_GATES + 1),
		.bads = random_below(seed, MOST_BAD + 1),
		.constraints = random_below(seed, 3) == 0,
	};
	first = g->inputs + g->latches + 1;
	for (i = 0; i < g->gates; i++) {
		g->left[i] = random_below(seed, 2 * (first + i));
		g->right[i] = random_below(seed, g->left[i] + 1);
	}
	literals = 2 * (first + g->gates);
	for (i = 0; i < g->latches; i++) {
		g->next[i] = random_below(seed, literals);
		g->reset[i] = random_below(seed, 3);
	}
	for (i = 0; i < g->bads; i++)
		g->bad[i] = random_below(seed, literals);
	g->constraint = random_below(seed, literals);
}

static bool value(const bool *values, unsigned int literal)
{
	return values[literal / 2] ^ (literal & 1);
}

/* One step of the graph. Returns false if these inputs violate the constraint. */
static bool step(const struct graph *g, unsigned int state, unsigned int inputs,
		 unsigned int *next, unsigned int *bad)
{
	bool values[1 + MOST_INPUTS + MOST_LATCHES + MOST_GATES] = { false };
	unsigned int i, v = 1;

	for (i = 0; i < g->inputs; i++)
		values[v++] = inputs >> i & 1;
	for (i = 0; i < g->latches; i++)
		values[v++] = state >> i & 1;
	for (i = 0; i < g->gates; i++)
		values[v++] = value(values, g->left[i]) && value(values, g->right[i]);
	for (*next = 0, i = 0; i < g->latches; i++)
		*next |= value(values, g->next[i]) << i;
	for (*bad = 0, i = 0; i < g->bads; i++)
		*bad |= value(values, g->bad[i]) << i;
	return !g->constraints || value(values, g->constraint);
}

struct truth {
	unsigned int states, levels, deadlocks;
	int violated[MOST_BAD], deadlock;	/* steps to the nearest, or -1 */
};

static void search(const struct graph *g, struct truth *t)
{
	int found[1 << MOST_LATCHES];	/* steps to the state, or -1 */
	unsigned int s, i, k, next, bad;
	bool more = true, stuck;
	int round;

	memset(t, 0, sizeof(*t));
	memset(t->violated, -1, sizeof(t->violated));
	t->deadlock = -1;
	for (s = 0; s < 1U << g->latches; s++) {
		found[s] = 0;
		for (i = 0; i < g->latches; i++)
			if (g->reset[i] != 2 && g->reset[i] != (s >> i & 1))
				found[s] = -1;
	}
	for (round = 0; more; round++) {
		more = false;
		for (s = 0; s < 1U << g->latches; s++) {
			if (found[s] != round)
				continue;
			t->states++;
			stuck = true;
			for (i = 0; i < 1U << g->inputs; i++) {
				if (!step(g, s, i, &next, &bad))
					continue;
				stuck = false;
				for (k = 0; k < g->bads; k++)
					if (bad >> k & 1 && t->violated[k] < 0)
						t->violated[k] = round;
				if (found[next] < 0) {
					found[next] = round + 1;
					more = true;
				}
			}
			if (stuck && t->deadlock < 0)
				t->deadlock = round;
			t->deadlocks += stuck;
		}
	}
	t->levels = round;
}

/* ---- files ---- */

static char path[64], witness[64];

static void write_file(const void *bytes, size_t size, const char *suffix)
{
	FILE *file;

	if (path[0])
		unlink(path);
	snprintf(path, sizeof(path), "/tmp/kdsm-aiger.%d.%s", (int)getpid(), suffix);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static size_t add_delta(unsigned char *bytes, unsigned int delta)
{
	size_t n = 0;

	for (; delta > 127; delta >>= 7)
		bytes[n++] = delta | 128;
	bytes[n++] = delta;
	return n;
}

/* The ASCII form lists the gates in reverse order, which the format allows. */
static size_t print(const struct graph *g, bool binary, unsigned char *bytes, size_t size)
{
	unsigned int first = g->inputs + g->latches + 1, i, k, literal;
	char *out = (char *)bytes;
	size_t n;

#define ADD(...) (n += snprintf(out + n, size - n, __VA_ARGS__))
	n = 0;
	ADD("%s %u %u %u %u %u %u %u\n", binary ? "aig" : "aag", first - 1 + g->gates,
	    g->inputs, g->latches, g->bads ? 0 : 1, g->gates, g->bads, g->constraints);
	for (i = 0; !binary && i < g->inputs; i++)
		ADD("%u\n", 2 * (i + 1));
	for (i = 0; i < g->latches; i++) {
		literal = 2 * (g->inputs + i + 1);
		if (!binary)
			ADD("%u ", literal);
		ADD("%u", g->next[i]);
		if (g->reset[i] == 1)
			ADD(" 1");
		else if (g->reset[i] == 2)
			ADD(" %u", literal);
		ADD("\n");
	}
	if (!g->bads)
		ADD("0\n");
	for (i = 0; i < g->bads; i++)
		ADD("%u\n", g->bad[i]);
	if (g->constraints)
		ADD("%u\n", g->constraint);
	for (k = 0; k < g->gates; k++) {
		i = binary ? k : g->gates - 1 - k;
		literal = 2 * (first + i);
		if (binary) {
			n += add_delta(bytes + n, literal - g->left[i]);
			n += add_delta(bytes + n, g->left[i] - g->right[i]);
		} else {
			ADD("%u %u %u\n", literal, g->left[i], g->right[i]);
		}
	}
	if (g->bads)
		ADD("b0 the \001first\n");
	ADD("c\nanything\n");
#undef ADD
	assert_true(n < size);
	return n;
}

static enum kdsm_reach_order order;
static bool saturation;
static unsigned int nodes = 1, workers = 1;

static int reach(struct kdsm_reach_result *result, struct kdsm_reach_message *message)
{
	const struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = path, .job = "aiger", .workers = workers, .timeout = 10000000000,
		.bdd = { .table_bytes = 1 << 20, .cache_bytes = 1 << 16 },
		.deadlocks = true, .trace = !saturation, .saturation = saturation,
		.order = order, .witness = saturation ? NULL : witness,
	};
	struct job job[3] = { 0 };
	unsigned int i;

	sim_start(nodes);
	for (i = 0; i < nodes; i++)
		job[i].options = options;
	start(job, nodes);
	finish(job, nodes);
	for (i = 1; i < nodes; i++) {
		assert_int_equal(job[i].status, job[0].status);
		kdsm_reach_result_free(&job[i].result);
	}
	*result = job[0].result;
	*message = job[0].message;
	sim_stop();
	return job[0].status;
}

static unsigned int state_of(const struct graph *g, const char *text)
{
	unsigned int state = 0, i;

	assert_int_equal(strlen(text), g->latches);
	for (i = 0; i < g->latches; i++)
		state |= (text[i] == '1') << i;
	return state;
}

/* The inputs of a step; -1 if there are none */
static int inputs_of(const struct graph *g, const char *text)
{
	int inputs = 0;
	unsigned int i;

	if (!text)
		return -1;
	assert_int_equal(strlen(text), g->inputs);
	for (i = 0; i < g->inputs; i++)
		inputs |= (text[i] == '1') << i;
	return inputs;
}

/*
 * The trace must begin in an initial state, take valid steps, and end where the property is
 * violated, or in a deadlock.
 */
static void check_trace(const struct graph *g, const struct kdsm_reach_trace *trace, int property)
{
	unsigned int at = state_of(g, trace->step[0].state), next, bad, i;
	int inputs;
	uint64_t k;

	assert_int_equal((int)trace->property, property);
	for (i = 0; i < g->latches; i++)
		assert_true(g->reset[i] == 2 || g->reset[i] == (at >> i & 1));
	for (k = 0; k < trace->steps; k++, at = next) {
		inputs = inputs_of(g, trace->step[k].inputs);
		assert_true(inputs >= 0 && step(g, at, inputs, &next, &bad));
		assert_int_equal(state_of(g, trace->step[k + 1].state), next);
	}
	inputs = inputs_of(g, trace->step[k].inputs);
	if (property >= 0) {
		assert_true(inputs >= 0 && step(g, at, inputs, &next, &bad));
		assert_true(bad >> property & 1);
		return;
	}
	assert_int_equal(inputs, -1);
	for (i = 0; i < 1U << g->inputs; i++)
		assert_false(step(g, at, i, &next, &bad));
}

static unsigned int get_bits(FILE *file, unsigned int count)
{
	unsigned int bits = 0, i;
	int c;

	for (i = 0; i < count; i++) {
		c = fgetc(file);
		assert_true(c == '0' || c == '1');
		bits |= (c == '1') << i;
	}
	assert_int_equal(fgetc(file), '\n');
	return bits;
}

/* Simulate the graph with the witnesses in the file: each violated property has one. */
static void check_witnesses(const struct graph *g, const struct truth *t)
{
	FILE *file = fopen(witness, "r");
	unsigned int property, state, next = 0, bad = 0, i;
	int k;

	assert_non_null(file);
	for (property = 0; property < g->bads; property++) {
		if (t->violated[property] < 0)
			continue;
		assert_int_equal(fscanf(file, "1 b%u", &i), 1);
		assert_int_equal(i, property);
		assert_int_equal(fgetc(file), '\n');
		state = get_bits(file, g->latches);
		for (i = 0; i < g->latches; i++)
			assert_true(g->reset[i] == 2 || g->reset[i] == (state >> i & 1));
		for (k = 0; k <= t->violated[property]; k++, state = next)
			assert_true(step(g, state, get_bits(file, g->inputs), &next, &bad));
		assert_true(bad >> property & 1);
		assert_int_equal(fgetc(file), '.');
		assert_int_equal(fgetc(file), '\n');
	}
	assert_int_equal(fgetc(file), EOF);
	fclose(file);
}

static void check_graph(const struct graph *g, bool binary)
{
	unsigned char bytes[8192];
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct kdsm_reach_message message;
	struct truth truth;
	unsigned int i, traces = 0;

	search(g, &truth);
	write_file(bytes, print(g, binary, bytes, sizeof(bytes)), binary ? "aig" : "aag");
	assert_int_equal(reach(&result, &message), 0);
	assert_int_equal(mpz_get_ui(result.states), truth.states);
	if (!saturation)
		assert_int_equal(result.levels, truth.levels);
	assert_int_equal(result.properties, g->bads ? g->bads : 1);
	for (i = 0; i < g->bads; i++) {
		assert_int_equal(result.verdict[i].violated, truth.violated[i] >= 0);
		if (!result.verdict[i].violated || saturation)
			continue;
		assert_int_equal(result.verdict[i].steps, truth.violated[i]);
		assert_true(traces < result.traces);
		assert_int_equal(result.trace[traces].steps, truth.violated[i]);
		check_trace(g, &result.trace[traces++], i);
	}
	assert_int_equal(mpz_get_ui(result.deadlocks), truth.deadlocks);
	if (truth.deadlocks && !saturation) {
		assert_true(traces < result.traces);
		assert_string_equal(result.trace[traces].what, "deadlock");
		assert_int_equal(result.trace[traces].steps, truth.deadlock);
		check_trace(g, &result.trace[traces++], -1);
	}
	assert_int_equal(traces, result.traces);
	if (!saturation)
		check_witnesses(g, &truth);
	assert_string_equal(result.verdict[0].name, g->bads ? "the ?first" : "o0");
	kdsm_reach_result_free(&result);
}

/* Graphs in few and in many clusters, in both orders, by both strategies, on up to 3 nodes */
static void random_graphs(void **state)
{
	static const uint64_t most[] = { 0, 20, 2500 };
	const uint64_t usual = kd_most_cluster;
	uint64_t seed = 1;
	struct graph graph;
	unsigned int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		make_graph(&graph, &seed);
		kd_most_cluster = most[i % 3];
		order = i % 5 ? KDSM_REACH_ORDER_AUTO : KDSM_REACH_ORDER_FILE;
		saturation = i % 7 == 0;
		nodes = 1 + i / 4 % 3;
		workers = 1 + i / 12 % 2;
		check_graph(&graph, i % 2);
	}
	kd_most_cluster = usual;
	order = KDSM_REACH_ORDER_AUTO;
	saturation = false;
	nodes = 1;
	workers = 1;
}

/* ---- mistakes in files ---- */

static int read_bytes(const void *bytes, size_t size, struct kdsm_reach_message *message)
{
	/* A copy of the exact size, so that a sanitizer detects reads beyond the end */
	unsigned char *copy = malloc(size + !size);
	struct kd_aiger *aiger = NULL;
	int ret;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	message->text[0] = 0;
	ret = kd_aiger_read("file", copy, size, &aiger, message);
	kd_aiger_free(aiger);
	free(copy);
	if (ret < 0)
		assert_non_null(strstr(message->text, "file:"));
	return ret;
}

static void says(const char *text, const char *part)
{
	struct kdsm_reach_message message;

	assert_int_equal(read_bytes(text, strlen(text), &message), -EINVAL);
	if (!strstr(message.text, part))
		fail_msg("%s: no word of %s", message.text, part);
}

static void mistakes(void **state)
{
	(void)state;
	says("", "begin with");
	says("aag", "begin with");
	says("aga 1 0 1 0 0\n2 2\n", "begin with");
	says("aag 1 0 1\n2 2\n", "another number");
	says("aag 1 0 1 x 0\n2 2\n", "a number");
	says("aag 1 0 1 0 99999999999\n2 2\n", "too large");
	says("aag 4000 0 1 0 0\n2 2\n", "than the file can hold");
	says("aag 5 0 1 0 900\n2 2\n", "than the file can hold");
	says("aig 2000000000 1999999999 1 0 0\n2\n", "than the file can hold");
	says("aag 1 1 1 0 0\n2\n2 2\n", "contradict");
	says("aig 3 1 1 0 0\n2\n", "contradict");
	says("aag 1 0 1 0 0\n2 4\n", "above what the first line");
	says("aag 1 0 1 0 0\n4 2\n", "above what the first line");
	says("aag 2 1 1 0 0\n2\n2 2\n", "defined already");
	says("aag 1 0 1 0 0\n3 2\n", "negated");
	says("aag 1 0 1 0 0\n0 2\n", "defined already");
	says("aag 1 0 1 0 0\n2 2 7\n", "begins with 0, 1, or itself");
	says("aag 1 0 1 0 0\n2 2 0 0\n", "line should end");
	says("aag 3 0 1 0 1\n2 6\n4 2 2\n", "literal 6 is used and not defined");
	says("aag 3 0 1 0 2\n2 2\n4 6 2\n6 5 2\n", "depends on itself");
	says("aag 2 0 1 0 1\n2 2\n4 2 4\n", "depends on itself");
	says("aag 1 0 1 0 0\n2 2\nq0 name\n", "a name of something");
	says("aag 1 0 1 0 0 0 0 1\n2 2\n1\n2\n", "has justice properties (1)");
	says("aag 1 0 1 0 0 1 0 0 2\n2 2\n2\n2\n3\n", "has fairness constraints (2)");
	says("aig 2 0 1 0 1\n2\n\005\001", "not below it");
	says("aig 2 0 1 0 1\n2\n\200\200\200\200\200\200\001", "too far away");
}

/* Truncate a file at every byte, and change bytes at random: the reader must not crash. */
static void damage(void **state)
{
	static const char likely[12] = { '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ' ',
					 '\n' };
	unsigned char bytes[8192], changed[8192];
	struct kdsm_reach_message message;
	uint64_t seed = 7;
	struct graph graph;
	unsigned int i;
	size_t size, n;

	(void)state;
	for (i = 0; i < 20; i++) {
		make_graph(&graph, &seed);
		size = print(&graph, i % 2, bytes, sizeof(bytes));
		assert_int_equal(read_bytes(bytes, size, &message), 0);
		for (n = 0; n < size; n++)
			read_bytes(bytes, n, &message);
		for (n = 0; n < 500; n++) {
			memcpy(changed, bytes, size);
			changed[random_below(&seed, size)] = random_below(&seed, 256);
			changed[random_below(&seed, size)] = likely[random_below(&seed, 12)];
			read_bytes(changed, size, &message);
		}
	}
}

/*
 * Without latches there is one state, and the inputs decide the properties: x and y may both be
 * true; x and not x never; x only if the constraint allows that.
 */
static void no_latches(void **state)
{
	static const char *const text[] = {
		"aag 4 2 0 0 2 3 0\n2\n4\n6\n8\n2\n6 2 4\n8 2 3\n",
		"aag 4 2 0 0 2 3 1\n2\n4\n6\n8\n2\n3\n6 2 4\n8 2 3\n",
		"aag 4 2 0 0 2 3 1\n2\n4\n6\n8\n5\n0\n6 2 4\n8 2 3\n",
	};
	static const bool violated[][3] = {
		{ true, false, true }, { false, false, false }, { false, false, false },
	};
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct kdsm_reach_message message;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < 3; i++) {
		write_file(text[i], strlen(text[i]), "aag");
		if (reach(&result, &message))
			fail_msg("%s", message.text);
		assert_int_equal(mpz_get_ui(result.states), 1);
		assert_int_equal(result.bits, 0);
		assert_int_equal(result.properties, 3);
		for (k = 0; k < 3; k++) {
			assert_int_equal(result.verdict[k].violated, violated[i][k]);
			assert_true(!violated[i][k] || !result.verdict[k].steps);
		}
		/* Without values of the inputs that meet the constraints there is no step. */
		assert_int_equal(mpz_get_ui(result.deadlocks), i == 2);
		kdsm_reach_result_free(&result);
	}
}

/* A chain of gates so deep that recursion over the gates would exhaust the stack */
static void deep(void **state)
{
	const unsigned int gates = 200000;
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct kdsm_reach_message message;
	const size_t size = 32 * gates + 100;
	char *text = malloc(size);
	unsigned int i;
	size_t n;

	(void)state;
	assert_non_null(text);
	n = snprintf(text, size, "aag %u 1 1 1 %u\n2\n4 %u\n4\n", gates + 2, gates,
		     2 * (gates + 2));
	for (i = gates; i--; )
		n += snprintf(text + n, size - n, "%u %u 2\n", 2 * (i + 3),
			      i ? 2 * (i + 2) : 5);
	write_file(text, n, "aag");
	free(text);
	assert_int_equal(reach(&result, &message), 0);
	assert_int_equal(mpz_get_ui(result.states), 2);
	assert_int_equal(result.verdict[0].violated, true);
	assert_int_equal(result.verdict[0].steps, 1);
	kdsm_reach_result_free(&result);
}

static int clean(void **state)
{
	(void)state;
	if (path[0])
		unlink(path);
	unlink(witness);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_graphs),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(damage),
		cmocka_unit_test(no_latches),
		cmocka_unit_test(deep),
	};

	snprintf(witness, sizeof(witness), "/tmp/kdsm-aiger.%d.witness", (int)getpid());
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("aiger", tests, NULL, clean);
}

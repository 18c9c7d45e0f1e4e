// SPDX-License-Identifier: GPL-2.0
/* Output of kdsm-reach: results as text or JSON. */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "print.h"

const char *order_word(enum kdsm_reach_order order)
{
	return order == KDSM_REACH_ORDER_GIVEN ? "given" :
	       order >= KDSM_REACH_ORDER_FURTHER ? "further" : order_words[order];
}

void print_trace(const struct kdsm_reach_trace *trace, const char *before, const char *after)
{
	uint64_t k;

	printf("\na shortest way to %s%s%s, %" PRIu64 " step%s:\n", before, trace->what, after,
	       trace->steps, trace->steps == 1 ? "" : "s");
	for (k = 0; k <= trace->steps; k++) {
		if (k)
			printf("%6" PRIu64 "  %s\n", k, trace->step[k].label);
		printf("        %s\n", trace->step[k].state);
	}
	if (trace->step[trace->steps].inputs && *trace->step[trace->steps].inputs)
		printf("        with inputs %s\n", trace->step[trace->steps].inputs);
}

/* The model and its size. */
static void print_model(const struct kdsm_reach_result *result)
{
	bool net = !strcmp(result->kind, "Petri net");

	printf("model          %s: %s, %u %s, %u %s%s\n", result->model, result->kind,
	       result->bits, net ? "places" : "bits", result->relations,
	       net ? "transition" : "relation", result->relations == 1 ? "" : "s");
}

/* Print the number of states; with more than 15 digits, also its order of magnitude. */
static void print_states(const struct kdsm_reach_result *result, bool failed)
{
	mpf_t about;

	gmp_printf("states         %s%Zd%s", result->ended_early || failed ? "at least " : "",
		   result->states, result->stopped ? " so far" : "");
	if (mpz_sizeinbase(result->states, 10) > 15) {
		mpf_init(about);
		mpf_set_z(about, result->states);
		gmp_printf(", about %.2Fe", about);
		mpf_clear(about);
	}
	printf("\n");
}

/* Transitions and tokens of a net */
static void print_numbers(const struct kdsm_reach_options *options,
			  const struct kdsm_reach_result *result)
{
	const char *so_far = result->complete ? "" : " so far";
	unsigned int i;

	if (options->counts) {
		gmp_printf("fired          %Zd%s\n", result->fired, so_far);
		printf("most tokens    %" PRIu64 " in a place, %" PRIu64 " in a marking%s\n",
		       result->place_tokens, result->marking_tokens, so_far);
	}
	for (i = 0; i < result->upper_bounds; i++)
		printf("upper bound    %s: %" PRIu64 "%s\n", result->upper_bound[i].places,
		       result->upper_bound[i].tokens, so_far);
}

/* Rounds of other strategies say nothing about steps. */
static bool steps_known(const struct kdsm_reach_options *options)
{
	return !options->chaining && !options->saturation;
}

static void print_verdicts(const struct kdsm_reach_options *options,
			   const struct kdsm_reach_result *result)
{
	const struct kdsm_reach_verdict *verdict;
	unsigned int i;

	for (i = 0; i < result->properties; i++) {
		verdict = &result->verdict[i];
		printf("property       %s: ", verdict->name);
		if (!verdict->violated)
			printf("holds%s\n", result->complete ? "" : " so far");
		else if (!steps_known(options))
			printf("violated\n");
		else
			printf("violated after %s%" PRIu64 " steps\n",
			       verdict->at_most ? "at most " : "", verdict->steps);
	}
}

/* Whether deadlocks were counted or, in a search that failed, whether there is one */
static bool deadlocks_known(const struct kdsm_reach_options *options,
			    const struct kdsm_reach_result *result, bool failed)
{
	return options->deadlocks && !result->stopped && (!failed || mpz_sgn(result->deadlocks));
}

static void print_deadlocks(const struct kdsm_reach_options *options,
			    const struct kdsm_reach_result *result, bool failed)
{
	if (deadlocks_known(options, result, failed))
		gmp_printf("deadlocks      %s%Zd%s\n", failed ? "at least " : "",
			   result->deadlocks, result->complete || failed ? "" : " so far");
}

/* Where the time of a virtual run went, and how much longer fewer workers take */
static void print_times(const struct kdsm_reach_result *result, const struct search_times *times)
{
	const struct search_base *base;
	unsigned int i;

	virtual_print_shares(&times->times);
	for (i = 0; i < times->bases; i++) {
		base = &times->base[i];
		printf("%-15s%.2f against 1x%u, which takes %.6f virtual seconds\n",
		       i ? "" : "speed-up",
		       result->seconds > 0 ? base->seconds / result->seconds : 0, base->workers,
		       base->seconds);
	}
}

static void print_search(const struct kdsm_reach_options *options,
			 const struct kdsm_reach_result *result, bool virtual)
{
	const char *seconds = virtual ? "virtual seconds" : "s";
	const int digits = virtual ? 6 : 3;

	printf("search         %s, %" PRIu64 " %s%s\n",
	       result->saturation ? "saturation" :
	       options->chaining ? "chaining" : "breadth first", result->levels,
	       result->saturation ? "rounds" : "levels",
	       result->complete ? "" :
	       result->stopped ? "; stopped by a signal, there may be more states" :
	       result->ended_early ? "; ended by --stop, there may be more states" :
	       "; ended by --levels, there may be more states");
	if (result->order == KDSM_REACH_ORDER_GIVEN)
		printf("order          %s\n", options->order_file);
	else if (result->order)
		printf("order          %s\n", order_word(result->order));
	if (result->orders > 1)
		printf("               the first of %u that ended\n", result->orders);
	if (result->from_level)
		printf("restarted      after level %" PRIu64 ", %.*f %s of work\n",
		       result->from_level, digits, result->before, seconds);
	if (result->clusters)
		printf("relations      %.*f %s, %u cluster%s\n", digits,
		       result->relation_seconds, seconds, result->clusters,
		       result->clusters == 1 ? "" : "s");
	printf("time           %.*f %s\n", digits, result->seconds, seconds);
	printf("workers        %u on %u node%s", result->workers, result->cluster_nodes,
	       result->cluster_nodes == 1 ? "" : "s");
	if (result->winner)
		printf(", node %u was first", result->winner);
	putchar('\n');
}

static void print_size(const char *before, uint64_t bytes)
{
	bool small = bytes % (1 << 20);

	printf("%s%" PRIu64 " %s", before, bytes >> (small ? 10 : 20), small ? "KiB" : "MiB");
}

static void print_costs(const struct kdsm_reach_options *options,
			const struct kdsm_reach_result *result, bool virtual)
{
	const struct kdsm_counts *c = &result->remote;
	uint64_t remote = c->get + c->put + c->cas + c->faa + c->find +
			  c->steal;

	printf("table          %" PRIu64 " of %" PRIu64 " BDD nodes (%.1f %%)", result->table_used,
	       result->table_size, 100.0 * result->table_used / result->table_size);
	print_size(options->bdd.first_table_bytes ? ", grows up to " : " in ",
		   options->bdd.table_bytes);
	print_size("; cache ", options->bdd.cache_bytes);
	putchar('\n');
	if (result->collections.count)
		printf("collections    %" PRIu64 " of %" PRIu64 " BDD nodes, %.*f %s\n",
		       result->collections.count, result->collections.nodes, virtual ? 6 : 3,
		       result->collections.seconds, virtual ? "virtual seconds" : "s");
	if (result->memory)
		printf("memory         %" PRIu64 " MiB%s\n", result->memory >> 20,
		       result->cluster_nodes == 1 ? "" : " at most on a node");
	printf("tasks          %" PRIu64, result->tasks);
	if (result->cluster_nodes > 1)
		printf(", from %" PRIu64 " to %" PRIu64 " on a node", result->tasks_least,
		       result->tasks_most);
	printf("\n");
	if (!remote)
		return;
	printf("remote         %" PRIu64 " get, %" PRIu64 " put, %" PRIu64 " cas, %" PRIu64
	       " faa, %" PRIu64 " find, %" PRIu64 " steal (%" PRIu64 " by message)\n", c->get,
	       c->put, c->cas, c->faa, c->find, c->steal, c->am);
	printf("               %.1f MB, %.3f operations a task\n", c->bytes / 1e6,
	       result->tasks ? (double)remote / result->tasks : 0);
}

void print_known(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		 bool failed)
{
	print_model(result);
	print_states(result, failed);
	printf("BDD nodes      %" PRIu64 "\n", result->nodes);
	print_verdicts(options, result);
	if (options->counts || options->upper_bounds || options->deadlocks || options->trace ||
	    options->save || options->formulas)
		fflush(stdout);
}

void print_text(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		const struct search_times *times, bool failed)
{
	unsigned int i;
	bool dead;

	if (result->counted)
		print_numbers(options, result);
	print_deadlocks(options, result, failed);
	print_formulas(result);
	if (!result->table_size)	/* the search failed before it had found all states */
		return;
	print_search(options, result, times);
	print_costs(options, result, times);
	if (times)
		print_times(result, times);
	/* the trace to a deadlock comes last, if there is one */
	for (i = 0; i < result->traces && !failed; i++) {
		dead = i == result->traces - 1 && mpz_sgn(result->deadlocks);
		print_trace(&result->trace[i], dead ? "a " : "where ",
			    dead ? "" : " does not hold");
	}
	print_formula_traces(result);
}

void json_mpz(struct json_object *object, const char *key, const mpz_t value)
{
	char *text = mpz_get_str(NULL, 10, value);

	json_text(object, key, text);
	free(text);
}

void json_line(struct json_object *object, FILE *file)
{
	fprintf(file, "%s\n", json_object_to_json_string_ext(object, JSON_C_TO_STRING_SPACED));
	json_object_put(object);
}

static struct json_object *verdicts(const struct kdsm_reach_options *options,
				    const struct kdsm_reach_result *result)
{
	struct json_object *array = json_object_new_array(), *object;
	const struct kdsm_reach_verdict *verdict;
	unsigned int i;

	for (i = 0; i < result->properties; i++) {
		verdict = &result->verdict[i];
		object = json_object_new_object();
		json_text(object, "name", verdict->name);
		json_object_object_add(object, "violated",
				       json_object_new_boolean(verdict->violated));
		if (verdict->violated && steps_known(options))
			json_number(object, verdict->at_most ? "steps_at_most" : "steps",
				    verdict->steps);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *upper_bounds(const struct kdsm_reach_result *result)
{
	struct json_object *array = json_object_new_array(), *object;
	unsigned int i;

	for (i = 0; i < result->upper_bounds; i++) {
		object = json_object_new_object();
		json_text(object, "places", result->upper_bound[i].places);
		json_number(object, "tokens", result->upper_bound[i].tokens);
		json_object_array_add(array, object);
	}
	return array;
}

/* The marked places of a net; or the bits, as a string of 0 and 1 */
static struct json_object *state(const struct kdsm_reach_step *step)
{
	struct json_object *array, *object;
	unsigned int i;

	if (!step->marking)
		return json_string(step->state);
	array = json_object_new_array();
	for (i = 0; i < step->marked; i++) {
		object = json_object_new_object();
		json_text(object, "place", step->marking[i].place);
		json_number(object, "tokens", step->marking[i].tokens);
		json_object_array_add(array, object);
	}
	return array;
}

struct json_object *json_steps(const struct kdsm_reach_trace *trace)
{
	struct json_object *array = json_object_new_array(), *object;
	const struct kdsm_reach_step *step;
	uint64_t k;

	for (k = 0; k <= trace->steps; k++) {
		step = &trace->step[k];
		object = json_object_new_object();
		if (step->label)
			json_text(object, "label", step->label);
		json_object_object_add(object, "state", state(step));
		if (step->inputs)
			json_text(object, "inputs", step->inputs);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *traces(const struct kdsm_reach_result *result)
{
	struct json_object *array = json_object_new_array(), *object;
	unsigned int i;

	for (i = 0; i < result->traces; i++) {
		object = json_object_new_object();
		json_text(object, "what", result->trace[i].what);
		json_object_object_add(object, "steps", json_steps(&result->trace[i]));
		json_object_array_add(array, object);
	}
	return array;
}

static void add_model(struct json_object *object, const struct kdsm_reach_options *options,
		      const struct kdsm_reach_result *result)
{
	json_text(object, "model", result->model);
	json_text(object, "kind", result->kind);
	json_number(object, "bits", result->bits);
	json_number(object, "relations", result->relations);
	json_mpz(object, "states", result->states);
	json_number(object, "nodes", result->nodes);
	json_number(object, "levels", result->levels);
	json_text(object, "strategy", result->saturation ? "saturation" :
				      options->chaining ? "chaining" : "bfs");
	if (result->order) {
		json_text(object, "order", order_word(result->order));
		json_number(object, "orders", result->orders);
	}
	json_number(object, "winner", result->winner);
	json_object_object_add(object, "complete", json_object_new_boolean(result->complete));
	if (result->stopped)
		json_object_object_add(object, "stopped", json_object_new_boolean(true));
	if (result->ended_early)
		json_object_object_add(object, "ended_early", json_object_new_boolean(true));
	if (result->from_level) {
		json_number(object, "from_level", result->from_level);
		json_seconds(object, "seconds_before", result->before);
	}
	json_seconds(object, "seconds", result->seconds);
	json_seconds(object, "relation_seconds", result->relation_seconds);
	if (result->clusters)
		json_number(object, "clusters", result->clusters);
}

static void add_costs(struct json_object *object, const struct kdsm_reach_result *result)
{
	struct json_object *remote = json_object_new_object();

	json_number(object, "workers", result->workers);
	json_number(object, "cluster_nodes", result->cluster_nodes);
	json_number(object, "table_used", result->table_used);
	json_number(object, "table_size", result->table_size);
	json_number(object, "collections", result->collections.count);
	json_number(object, "collected", result->collections.nodes);
	json_seconds(object, "collection_seconds", result->collections.seconds);
	if (result->memory)
		json_number(object, "memory", result->memory);
	json_number(object, "tasks", result->tasks);
	json_number(object, "tasks_least", result->tasks_least);
	json_number(object, "tasks_most", result->tasks_most);
	json_number(remote, "get", result->remote.get);
	json_number(remote, "put", result->remote.put);
	json_number(remote, "cas", result->remote.cas);
	json_number(remote, "faa", result->remote.faa);
	json_number(remote, "find", result->remote.find);
	json_number(remote, "steal", result->remote.steal);
	json_number(remote, "am", result->remote.am);
	json_number(remote, "bytes", result->remote.bytes);
	json_object_object_add(object, "remote", remote);
}

/* The virtual run, its times, and those of searches with one node */
static struct json_object *virtual_times(const struct kdsm_reach_result *result,
					 const struct search_times *times)
{
	struct json_object *object = virtual_json(times->options, &times->times);
	struct json_object *array, *other;
	const struct search_base *base;

	if (!times->bases)
		return object;
	array = json_object_new_array();
	for (base = times->base; base < times->base + times->bases; base++) {
		other = json_object_new_object();
		json_number(other, "nodes", 1);
		json_number(other, "workers", base->workers);
		json_seconds(other, "seconds", base->seconds);
		json_seconds(other, "speed_up",
			     result->seconds > 0 ? base->seconds / result->seconds : 0);
		json_object_array_add(array, other);
	}
	json_object_object_add(object, "speed_ups", array);
	return object;
}

void print_json(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		const struct search_times *times, const char *error)
{
	struct json_object *object = json_object_new_object();

	add_model(object, options, result);
	if (error)
		json_text(object, "error", error);
	if (result->table_size) {
		add_costs(object, result);
		if (times)
			json_object_object_add(object, "virtual", virtual_times(result, times));
	}
	if (options->counts && result->counted) {
		json_mpz(object, "fired", result->fired);
		json_number(object, "place_tokens", result->place_tokens);
		json_number(object, "marking_tokens", result->marking_tokens);
	}
	if (options->upper_bounds && result->counted)
		json_object_object_add(object, "upper_bounds", upper_bounds(result));
	if (result->properties)
		json_object_object_add(object, "properties", verdicts(options, result));
	if (options->formulas)
		json_object_object_add(object, "formulas", json_formulas(result));
	if (deadlocks_known(options, result, error))
		json_mpz(object, "deadlocks", result->deadlocks);
	if (options->trace && !result->stopped && !error)
		json_object_object_add(object, "traces", traces(result));
	json_line(object, stdout);
}

void print_counts(const struct kdsm_reach_result *result)
{
	const struct kdsm_bdd_counts *c = &result->counts;

	fprintf(stderr, "tasks %" PRIu64 " hits %" PRIu64 " home get %" PRIu64
		" hit %" PRIu64 " put %" PRIu64 "\n", c->tasks, c->hits, c->home_get,
		c->home_hit, c->home_put);
	fprintf(stderr, "found %" PRIu64 " put %" PRIu64 " index get %" PRIu64
		" node get %" PRIu64 " cas %" PRIu64 " other %" PRIu64 " torn %" PRIu64
		" false match %" PRIu64 "\n", c->table.found, c->table.put,
		c->table.index_get, c->table.node_get, c->table.cas, c->table.other,
		c->table.torn, c->table.false_match);
}

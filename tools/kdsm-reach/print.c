// SPDX-License-Identifier: GPL-2.0
/* What kdsm-reach prints: results as text or JSON, and progress. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#include "print.h"

static int flush(void)
{
	errno = 0;
	return fflush(stdout) || ferror(stdout) ? -(errno ? errno : EIO) : 0;
}

static void print_trace(const struct kd_trace *trace)
{
	uint64_t k;

	printf("\n%s after %" PRIu64 " steps\n", trace->what, trace->steps);
	for (k = 0; k <= trace->steps; k++) {
		if (k)
			printf("%6" PRIu64 "  %s\n", k, trace->step[k].label);
		printf("        %s\n", trace->step[k].state);
	}
}

int print_text(const struct kd_reach_options *options, const struct kd_reach_result *result)
{
	const struct kdsm_counts *c = &result->remote;
	unsigned int i;

	printf("model          %s\n", result->model);
	gmp_printf("states         %Zd\n", result->states);
	printf("BDD nodes      %" PRIu64 "\n", result->nodes);
	printf("levels         %" PRIu64 "\n", result->levels);
	printf("seconds        %.3f\n", result->seconds);
	printf("workers        %u\n", result->workers);
	printf("cluster nodes  %u\n", result->cluster_nodes);
	printf("table          %" PRIu64 " of %" PRIu64 " (%.1f %%)\n", result->table_used,
	       result->table_size, 100.0 * result->table_used / result->table_size);
	printf("tasks          %" PRIu64 "\n", result->tasks);
	printf("remote         get %" PRIu64 ", put %" PRIu64 ", cas %" PRIu64
	       ", faa %" PRIu64 ", by message %" PRIu64 ", bytes %" PRIu64 "\n",
	       c->get, c->put, c->cas, c->faa, c->am, c->bytes);
	for (i = 0; i < result->properties; i++) {
		if (result->verdict[i].violated)
			printf("property       %s: violated after %" PRIu64 " steps\n",
			       result->verdict[i].name, result->verdict[i].steps);
		else
			printf("property       %s: holds\n", result->verdict[i].name);
	}
	if (options->deadlocks)
		gmp_printf("deadlocks      %Zd\n", result->deadlocks);
	for (i = 0; i < result->traces; i++)
		print_trace(&result->trace[i]);
	return flush();
}

static void add_u64(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

static struct json_object *verdicts(const struct kd_reach_result *result)
{
	struct json_object *array = json_object_new_array(), *object;
	const struct kd_verdict *verdict;
	unsigned int i;

	for (i = 0; i < result->properties; i++) {
		verdict = &result->verdict[i];
		object = json_object_new_object();
		json_object_object_add(object, "name", json_object_new_string(verdict->name));
		json_object_object_add(object, "violated",
				       json_object_new_boolean(verdict->violated));
		if (verdict->violated)
			add_u64(object, "steps", verdict->steps);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *steps(const struct kd_trace *trace)
{
	struct json_object *array = json_object_new_array(), *object;
	const struct kd_step *step;
	uint64_t k;

	for (k = 0; k <= trace->steps; k++) {
		step = &trace->step[k];
		object = json_object_new_object();
		if (step->label)
			json_object_object_add(object, "label",
					       json_object_new_string(step->label));
		json_object_object_add(object, "state", json_object_new_string(step->state));
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *traces(const struct kd_reach_result *result)
{
	struct json_object *array = json_object_new_array(), *object;
	unsigned int i;

	for (i = 0; i < result->traces; i++) {
		object = json_object_new_object();
		json_object_object_add(object, "what",
				       json_object_new_string(result->trace[i].what));
		json_object_object_add(object, "steps", steps(&result->trace[i]));
		json_object_array_add(array, object);
	}
	return array;
}

int print_json(const struct kd_reach_options *options, const struct kd_reach_result *result)
{
	struct json_object *object = json_object_new_object();
	struct json_object *remote = json_object_new_object();
	char *states = mpz_get_str(NULL, 10, result->states);
	char seconds[64];

	json_object_object_add(object, "model", json_object_new_string(result->model));
	json_object_object_add(object, "states", json_object_new_string(states));
	add_u64(object, "nodes", result->nodes);
	add_u64(object, "levels", result->levels);
	snprintf(seconds, sizeof(seconds), "%.6f", result->seconds);
	json_object_object_add(object, "seconds",
			       json_object_new_double_s(result->seconds, seconds));
	add_u64(object, "workers", result->workers);
	add_u64(object, "cluster_nodes", result->cluster_nodes);
	add_u64(object, "table_used", result->table_used);
	add_u64(object, "table_size", result->table_size);
	add_u64(object, "tasks", result->tasks);
	add_u64(remote, "get", result->remote.get);
	add_u64(remote, "put", result->remote.put);
	add_u64(remote, "cas", result->remote.cas);
	add_u64(remote, "faa", result->remote.faa);
	add_u64(remote, "am", result->remote.am);
	add_u64(remote, "bytes", result->remote.bytes);
	json_object_object_add(object, "remote", remote);
	if (result->properties)
		json_object_object_add(object, "properties", verdicts(result));
	if (options->deadlocks) {
		free(states);
		states = mpz_get_str(NULL, 10, result->deadlocks);
		json_object_object_add(object, "deadlocks", json_object_new_string(states));
	}
	if (options->trace)
		json_object_object_add(object, "traces", traces(result));
	printf("%s\n", json_object_to_json_string_ext(object, JSON_C_TO_STRING_SPACED));
	json_object_put(object);
	free(states);
	return flush();
}

void print_progress(void *context, const struct kd_progress *progress)
{
	(void)context;
	gmp_fprintf(stderr, "\r\033[Klevel %u  states %Zd  table %.1f %%  remote %.0f/s",
		    progress->level, progress->states,
		    100.0 * progress->table_used / progress->table_size,
		    progress->remote / progress->seconds);
	fflush(stderr);
}

void print_progress_end(void)
{
	fprintf(stderr, "\r\033[K");
	fflush(stderr);
}

void print_counts(const struct kd_reach_result *result)
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

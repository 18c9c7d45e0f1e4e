// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The calls of <kdsm/reach.h>, from a file and options to the result. They set up region,
 * gang, store, model and threads, run the rounds of search.c, and explain errors in one
 * sentence.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "circuit.h"
#include "formula.h"
#include "internal.h"

struct kdsm_reach {
	struct kdsm_reach_options options;
	struct kd_search search;
	struct kdsm_reach_result *result;	/* of the only search; NULL before it */
	bool open;				/* opened: other nodes wait for the search */
	int (*step)(struct kdsm_reach *reach);	/* run by the thread; its result is in status */
	int status;
};

/* Stack of the thread that runs a step, in bytes: it recurses over 32768 bits of a state */
#define STACK	(UINT64_C(64) << 20)

/* Attempts to open the region, because an earlier job of the same name may still be closing */
#define OPEN_TRIES	25
#define OPEN_PAUSE	200000000	/* ns between attempts */

/* A field that a later version adds is stored only if argsz says that the result has it. */
static int check_result(const struct kdsm_reach_result *result)
{
	if (result->argsz >= sizeof(*result))
		return 0;
	return kd_because(-EINVAL,
			  "struct kdsm_reach_result: argsz is %zu; set it to sizeof(struct " "kdsm_reach_result)",
			  result->argsz);
}

int kdsm_reach_result_init(struct kdsm_reach_result *result)
{
	static const struct kdsm_reach_result none;
	int r = check_result(result);

	if (r == 0)
		r = KD_ARGUMENT_OUT(kdsm_reach_result, &none, result);
	if (r < 0)
		return r;
	result->remote.argsz = sizeof(result->remote);
	result->counts.argsz = sizeof(result->counts);
	result->counts.table.argsz = sizeof(result->counts.table);
	mpz_init(result->states);
	mpz_init(result->deadlocks);
	mpz_init(result->fired);
	return 0;
}

void kdsm_reach_result_free(struct kdsm_reach_result *result)
{
	unsigned int i;

	mpz_clear(result->states);
	mpz_clear(result->deadlocks);
	mpz_clear(result->fired);
	for (i = 0; i < result->upper_bounds; i++)
		free(result->upper_bound[i].places);
	free(result->upper_bound);
	for (i = 0; i < result->properties; i++)
		free(result->verdict[i].name);
	free(result->verdict);
	for (i = 0; i < result->traces; i++)
		kd_trace_destroy(&result->trace[i]);
	free(result->trace);
	kd_formula_answers_free(result);
	free(result->model);
}

#define LEAST_SIZE	4096	/* of a node's table and cache, in bytes */

/* The sizes of the options are those of all nodes together. */
static void share_sizes(struct kd_search *s)
{
	uint64_t *size[] = { &s->bdd.table_bytes, &s->bdd.cache_bytes }, share;
	uint64_t *first[] = { &s->bdd.first_table_bytes, &s->bdd.first_cache_bytes };
	unsigned int nodes = kdsm_nodes(s->kdsm), i;

	for (i = 0; nodes > 1 && i < 2; i++) {
		share = *size[i] / nodes;
		*size[i] = share < LEAST_SIZE ? LEAST_SIZE : share;
		if (*first[i] > *size[i])	/* a node begins as if it were alone */
			*first[i] = *size[i];
	}
}

/*
 * Bytes of a node's part of the cluster's region: the store of a node alone, or parcels. Memory
 * that nobody touches takes no room.
 */
static uint64_t part_bytes(const struct kd_search *s)
{
	unsigned int nodes = kdsm_nodes(s->kdsm);

	return nodes == 1 ? kd_search_region_bytes(&s->bdd) :
	       KD_STORE + kd_windows_outbox(&s->bdd, nodes);
}

static int open_region(struct kd_search *s)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = kdsm_nodes(s->kdsm) * part_bytes(s),
	};
	char name[KDSM_NAME_SIZE];
	unsigned int tries;
	int r, n;

	n = snprintf(name, sizeof(name), "kdsm-reach.%s", s->options->job);
	if (n >= (int)sizeof(name)) {
		kd_say(s->message, "job %s: the name is too long; at most %zu characters",
		       s->options->job, sizeof(name) - sizeof("kdsm-reach."));
		return -EINVAL;
	}
	for (n = 0; name[n]; n++) {
		if (name[n] >= '!' && name[n] <= '~')
			continue;
		kd_say(s->message,
		       "job '%s': the name has a character that is not printable ASCII, or a space",
		       s->options->job);
		return -EINVAL;
	}
	for (tries = 1; ; tries++) {
		r = kdsm_region_open(s->kdsm, name, &attr, &s->region);
		if (r == 0) {
			r = kd_gang_join(&s->cluster, s->region, 0, s->options->timeout);
			if (r == 0 && kd_gang_aborted(&s->cluster, NULL))
				r = -EBUSY;
			if (r == 0)
				return 0;
			kd_gang_leave(&s->cluster);
			kdsm_region_close(s->region);
			s->region = NULL;
		}
		if ((r != -EBUSY && r != -EINVAL) || tries == OPEN_TRIES)
			break;
		kd_sleep(OPEN_PAUSE);
	}
	if (r == -EBUSY)
		kd_say(s->message,
		       "job %s: is running on this node already, or was given up and not left yet; give --job another name",
		       s->options->job);
	else if (r == -EINVAL)
		kd_say(s->message,
		       "job %s: runs on another node with other sizes than %" PRIu64
		       " and %" PRIu64
		       " MiB; give the same --table and --cache on every node, whose memory decides without them, or --job another name",
		       s->options->job, s->options->bdd.table_bytes >> 20,
		       s->options->bdd.cache_bytes >> 20);
	else if (r == -ENOMEM || r == -EFBIG)	/* a limit of the size of files counts, too */
		kd_say(s->message,
		       "no node could give %" PRIu64 " MiB for table and cache; make --table and --cache smaller",
		       attr.size / kdsm_nodes(s->kdsm) >> 20);
	else
		kd_say(s->message, "%s", kdsm_error(r));
	return r == -EFBIG ? -ENOMEM : r;
}

/* Words on which all members must agree, and words that they combine */
enum { DIGEST, THREADS, PLAN };

static int agree(void *context, uint64_t *mine, const uint64_t *theirs)
{
	(void)context;
	mine[THREADS] += theirs[THREADS];
	return mine[DIGEST] == theirs[DIGEST] ? 0 : -EPROTO;
}

/* Check before the search that a file can be written. */
static int try_save(struct kd_search *s, const char *option, const char *path)
{
	int r = path ? kd_output_try(path) : 0;

	if (r < 0)
		kd_say(s->message, "%s %s: cannot be written: %s", option, path, strerror(-r));
	return r;
}

/*
 * Node 0 runs this when all members have opened the region. It removes the region's name,
 * so that the next job can use the name, and so that the region disappears if this job is
 * killed.
 */
static int begin(struct kd_search *s, struct kdsm_reach_result *result)
{
	char name[KDSM_NAME_SIZE];
	int r;

	snprintf(name, sizeof(name), "kdsm-reach.%s", s->options->job);
	r = kdsm_region_destroy(s->kdsm, name);
	if (r < 0) {
		kd_say(s->message, "region %s: cannot be removed: %s", name, strerror(-r));
		return r;
	}
	r = try_save(s, "--save", s->options->save);
	if (r == 0)
		r = try_save(s, "--save-order", s->options->save_order);
	return r < 0 ? r : kd_property_begin(s, result);
}

/*
 * Store the initial states, or those of a checkpoint, and the properties. *loaded tells whether
 * there is a checkpoint.
 */
static int store_states(struct kd_search *s, bool *loaded)
{
	int r = kd_property_publish(s);

	if (r == 0)
		r = kd_checkpoint_load(s);
	*loaded = r > 0;
	return r ? r : kd_search_first(s);
}

/*
 * Take a step. While the table is too small for the step, let it grow, or collect garbage, and
 * begin the step again. A step that returns 1 had no room for the rest, but got further, so that
 * another collection helps.
 */
static int with_room(struct kd_search *s, struct kdsm_reach_result *result,
		     int (*step)(struct kd_search *s, struct kdsm_reach_result *result))
{
	int r;

	while ((r = step(s, result)) == -ENOSPC || r > 0) {
		if (r > 0)
			s->room.all = false;
		r = kd_room_grow(s);
		if (r < 0)
			break;
	}
	return r;
}

static int look_back_step(struct kd_search *s, struct kdsm_reach_result *result)
{
	(void)result;
	return kd_property_look_back(s);
}

/*
 * On node 0: prepare the search. Look at the states of a checkpoint for properties that are new.
 * It may be of level 0, and have states nevertheless, if the search ended within the first round.
 */
static int set_out(struct kd_search *s)
{
	bool loaded;
	int r;

	while ((r = store_states(s, &loaded)) == -ENOSPC) {
		s->message->text[0] = 0;
		s->current = KDSM_BDD_FALSE;
		s->visited = KDSM_BDD_FALSE;
		r = kd_room_grow(s);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	s->from_level = s->levels;
	r = loaded ? kd_portfolio_resume(s, s->loaded_order) : 0;
	if (r == 0)
		r = kd_search_widen(s);
	if (r == 0 && loaded)
		r = kd_checkpoint_check(s);
	if (r == 0 && loaded)
		r = kd_portfolio_resumed(s);
	return r < 0 ? r : with_room(s, NULL, look_back_step);
}

static int meet(struct kd_search *s, struct kdsm_reach_result *result)
{
	const struct kdsm_bdd_attr *bdd = &s->options->bdd;
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r;

	s->digest = kd_search_digest(s);
	words[DIGEST] = kd_hash(s->digest,
				kd_hash(bdd->table_bytes + bdd->granularity,
					bdd->cache_bytes ^ kd_hash(s->options->levels,
								   kd_search_strategy(s))) ^
				kd_hash(bdd->first_table_bytes, bdd->first_cache_bytes) ^
				kd_hash(s->options->order, !!s->options->order_file) ^
				s->options->timeout ^
				((s->options->deadlocks || s->options->trace) |
				 (uint64_t)s->options->formulas << 1 |
				 (uint64_t)s->options->race << 60) ^
				(uint64_t)s->options->stop_at_violation << 63 ^
				(uint64_t)s->options->trace << 62);
	words[THREADS] = s->options->workers;
	r = kd_gang_gather(&s->cluster, words, agree, NULL);
	if (r == 0 && s->cluster.node == 0) {
		words[PLAN] = kd_race_plan(s);
		r = begin(s, result);
	}
	if (r == 0)
		r = kd_gang_scatter(&s->cluster, words);
	if (r == -ETIMEDOUT)
		kd_say(s->message,
		       "job %s: node %u did not come within %" PRIu64 " s; start kdsm-reach on every node of the cluster",
		       s->options->job, s->cluster.culprit,
		       (uint64_t)(s->options->timeout / 1000000000));
	else if (r == -EPROTO)
		kd_say(s->message,
		       "job %s: not all nodes have the same model and options; start kdsm-reach alike everywhere",
		       s->options->job);
	if (r < 0)
		return r;
	result->workers = words[THREADS];
	s->plan = words[PLAN];
	s->current = KDSM_BDD_FALSE;
	s->visited = KDSM_BDD_FALSE;
	return s->cluster.node ? 0 : set_out(s);
}

static int add_up(void *context, uint64_t *mine, const uint64_t *theirs)
{
	unsigned int i;

	(void)context;
	for (i = 0; i < KD_GANG_WORDS; i++)
		mine[i] += theirs[i];
	return 0;
}

/* Maximum memory of this node, in bytes */
static uint64_t memory(const struct kd_search *s)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	/* ru_maxrss does not count the module's memory that the process maps */
	return usage.ru_maxrss * UINT64_C(1024) +
	       (kdsm_is_local(s->kdsm) ? 0 : kdsm_region_part_size(s->region));
}

enum { MEMORY, LEAST, MOST, STEALS };

static int compare(void *context, uint64_t *mine, const uint64_t *theirs)
{
	(void)context;
	if (mine[MEMORY] < theirs[MEMORY])
		mine[MEMORY] = theirs[MEMORY];
	if (mine[LEAST] > theirs[LEAST])
		mine[LEAST] = theirs[LEAST];
	if (mine[MOST] < theirs[MOST])
		mine[MOST] = theirs[MOST];
	mine[STEALS] += theirs[STEALS];
	return 0;
}

/* Combine the counts of all nodes on node 0. */
static int add_nodes(struct kd_search *s, struct kdsm_reach_result *result)
{
	struct kdsm_counts c = { .argsz = sizeof(c) };
	uint64_t own;
	int r;

	kdsm_bdd_all_counts(s->store, &result->counts);
	own = result->counts.tasks;
	kdsm_counts(s->kdsm, &c);
	uint64_t sums[KD_GANG_WORDS] = { own, c.get, c.put, c.cas, c.faa, c.am, c.bytes };
	uint64_t extremes[KD_GANG_WORDS] = {
		[MEMORY] = memory(s), [LEAST] = own, [MOST] = own, [STEALS] = c.steal,
	};

	r = s->deserted ? 0 : kd_gang_gather(&s->cluster, sums, add_up, NULL);
	if (r == 0 && !s->deserted)
		r = kd_gang_scatter(&s->cluster, sums);
	if (r == 0 && !s->deserted)
		r = kd_gang_gather(&s->cluster, extremes, compare, NULL);
	r = kd_finish_without(s, r);
	result->tasks = sums[0];
	result->remote = (struct kdsm_counts){
		.argsz = sizeof(result->remote),
		.get = sums[1], .put = sums[2], .cas = sums[3],
		.faa = sums[4], .am = sums[5], .bytes = sums[6],
	};
	result->remote.steal = extremes[STEALS];
	/* messages that are neither steals nor, in domain sw, atomics */
	result->remote.find = sums[5] - extremes[STEALS] -
			      (kdsm_domain(s->kdsm) == KDSM_DOMAIN_SW ? sums[3] + sums[4] : 0);
	result->memory = extremes[MEMORY];
	result->tasks_least = extremes[LEAST];
	result->tasks_most = extremes[MOST];
	return r;
}

/* On node 0: what is known of the model and the search without a look at the states */
static int describe(struct kd_search *s, struct kdsm_reach_result *result)
{
	result->levels = s->levels;
	result->saturation = s->saturates;
	result->collections = s->room.sum;
	result->complete = kd_search_complete(s);
	result->from_level = s->from_level;
	result->before = s->before / 1e9;
	result->cluster_nodes = s->cluster.nodes;
	result->winner = s->winner;
	result->kind = s->model.kind;
	result->bits = s->model.net ? s->model.net->places : s->model.bits;
	result->relations = s->model.relations;
	result->clusters = s->model.circuit ? s->model.circuit->clusters->count : 0;
	result->relation_seconds = s->loading / 1e9;
	mpz_set_ui(result->deadlocks, s->early.deadlock);
	result->order = s->model.order;
	result->orders = kd_portfolio_tried(s);
	result->model = strdup(s->model.name);
	return result->model ? 0 : -ENOMEM;
}

/* On node 0: count the states, fired transitions and tokens. */
static int count(struct kd_search *s, struct kdsm_reach_result *result)
{
	int r;

	r = describe(s, result);
	if (r == 0)
		r = kdsm_table_usage(kdsm_bdd_table(s->store), &result->table_used,
				     &result->table_size);
	if (r == 0)
		r = kd_answers_count(s, result);
	if (r == 0 && s->options->known) {
		kd_mutex_lock(&s->progress.calls);
		s->options->known(s->options->context, result);
		kd_mutex_unlock(&s->progress.calls);
	}
	if (result->stopped)
		return r;
	if (r == 0)
		r = kd_answers_find(s, result);
	return r;
}

/* Find deadlocks and traces. The search kept no room in the table for them. */
static int trace(struct kd_search *s, struct kdsm_reach_result *result)
{
	if (!s->options->deadlocks && !s->options->trace)
		return 0;
	s->room.all = false;
	return with_room(s, result, kd_trace_find);
}

/* On node 0: write the files that the user asked for. */
static void write_files(struct kd_search *s, struct kdsm_reach_result *result)
{
	kd_states_save(s, result);
	kd_order_save(s, result);
	kd_witness_write(s, result);
}

/* On node 0, when the search has failed: tell what it had found. */
static void salvage(struct kd_search *s, int error, struct kdsm_reach_result *result)
{
	int r = -1;

	if (s->cluster.node || result->model || describe(s, result) < 0)
		return;
	result->complete = false;
	if (error == -ENOSPC) {
		if (s->saturation && s->found != KDSM_BDD_FALSE)
			s->visited = s->found;
		r = kd_answers_count(s, result);
	}
	if (r < 0) {
		kd_mutex_lock(&s->progress.lock);
		mpz_set(result->states, s->progress.states);
		result->nodes = s->progress.nodes;
		kd_mutex_unlock(&s->progress.lock);
	}
	kd_formulas_salvage(s, result);
}

/* On node 0: everything that the user asked for */
static int answer(struct kd_search *s, struct kdsm_reach_result *result)
{
	int r = count(s, result);

	if (r == 0 && !result->stopped)
		r = trace(s, result);
	if (r == 0 && !result->stopped)
		write_files(s, result);
	return r < 0 ? r : kd_formulas_check(s, result);
}

/* Words that node 0 tells all others at the end */
enum { STOPPED, ENDED_EARLY };

static int conclude(struct kd_search *s, struct kdsm_reach_result *result)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r;

	kdsm_table_flush(s->worker->table);
	r = add_nodes(s, result);
	if (r == 0 && s->cluster.node == 0)
		r = answer(s, result);
	if (r == 0 && !s->deserted) {
		words[STOPPED] = result->stopped;
		words[ENDED_EARLY] = result->ended_early;
		r = kd_finish_without(s, kd_gang_scatter(&s->cluster, words));
		result->stopped = words[STOPPED];
		result->ended_early = words[ENDED_EARLY];
	}
	return r;
}

/* Suggest an argument for --table: twice the current size, in MiB or with a K. */
static void explain_full(struct kd_search *s)
{
	uint64_t used, size, kib = s->options->bdd.table_bytes / 512;
	bool small = kib < 1024;

	if (kdsm_table_usage(kdsm_bdd_table(s->store), &used, &size) < 0)
		size = 0;
	kd_say(s->message,
	       "the table of %" PRIu64 " nodes is too small for level %" PRIu64
	       ", even without garbage; give --table %" PRIu64 "%s or more%s, the same on every node",
	       size, s->levels, small ? kib : (kib + 1023) / 1024, small ? "K" : "",
	       small ? "" : " (MiB)");
}

/*
 * The node that is gone: the one that a step of the cluster missed, or the first one that does not
 * answer. It is this node if none is known to be gone.
 */
static unsigned int gone(struct kd_search *s)
{
	unsigned int self = s->cluster.node, node = s->cluster.culprit, i;
	uint64_t word;

	for (i = 0; node == self && i < s->cluster.nodes; i++)
		if (i != self && kdsm_get(s->region, i, 0, &word, sizeof(word)) < 0)
			node = i;
	return node;
}

static void explain_gone(struct kd_search *s, int error)
{
	unsigned int node = gone(s);

	/* This node gets answers from all others: one of them has told that it gets none. */
	if (node == s->cluster.node)
		kd_say(s->message,
		       "this node and another one cannot reach each other (%s); see kdsmctl status, start the job again",
		       strerror(-error));
	else
		kd_say(s->message,
		       "node %u cannot be reached, or its kdsm-reach is gone (%s); see kdsmctl status, start the job again",
		       node, strerror(-error));
}

/* Explain an error, unless there is a message already. */
static void explain(struct kd_search *s, int error)
{
	int reason = error;

	if (error == -ECANCELED)
		reason = kd_gang_aborted(&s->cluster, &s->cluster.culprit);

	if (s->message->text[0])
		return;
	if (reason == -ENOSPC) {
		explain_full(s);
	} else if (error == -ECANCELED) {
		kd_say(s->message, "node %u gave up: %s; see what it says",
		       s->cluster.culprit, strerror(-reason));
	} else if (error == -ETIMEDOUT) {
		kd_say(s->message,
		       "node %u has given no sign of life for %" PRIu64 " s; its kdsm-reach or the machine is gone, start the job again",
		       s->cluster.culprit, (uint64_t)(s->options->timeout / 1000000000));
	} else if (error == -EAGAIN) {
		kd_say(s->message,
		       "%u threads cannot be started: %s; give fewer --workers, or raise the limits of threads or address space (ulimit -u, ulimit -v)",
		       s->options->workers, strerror(-error));
	} else if (error == -E2BIG) {
		kd_say(s->message,
		       "a property has too many sums of tokens; name fewer places in --bound");
	} else if (error == -EHOSTDOWN || error == -EIO) {
		explain_gone(s, error);
	} else {
		kd_say(s->message, "the search failed: %s", strerror(-error));
	}
}

static int load_model(struct kd_search *s)
{
	const struct kd_model_choice choice = {
		s->options->format, s->options->order, s->options->order_file,
	};
	struct kdsm_bdd_worker *w = s->worker;
	uint64_t began = kdsm_now();
	unsigned int i;
	int r;

	r = kd_output_check(s);
	if (r == 0)
		r = kd_model_load(w, s->options->path, &choice, &s->model, s->message);
	s->loading = kdsm_now() - began;
	if (r == 0)
		r = kd_witness_check(s);
	if (r == 0)
		r = kd_order_check(s);
	if (r == 0)
		s->model_digest = kd_search_digest(s);
	for (i = 0; r == 0 && i < s->options->invariants; i++)
		r = kd_invariant_file(w, s->options->invariant[i], &s->model, s->message);
	for (i = 0; r == 0 && i < s->options->bounds; i++)
		r = kd_invariant_bound(w, s->options->bound[i], &s->model, s->message);
	if (r == 0)
		r = kd_answers_begin(s);
	for (i = 0; r == 0 && i < s->model.properties; i++)
		r = kd_property_identify(w, &s->model.property[i]);
	if (r == 0)
		r = kd_formulas_begin(s);
	if (r == 0)
		r = kd_saturation_begin(s);
	if (r == 0)
		r = kd_portfolio_begin(s);
	kd_early_begin(s);
	return r;
}

/* Explain the error, and make the other nodes fail, too. */
static int give_up(struct kd_search *s, int error)
{
	explain(s, error);
	if (error != -ECANCELED && !s->helps)
		kd_gang_abort(&s->cluster, error);
	return error;
}

static int prepare(struct kdsm_reach *reach)
{
	struct kd_search *s = &reach->search;
	int r;

	s->bdd = s->options->bdd;
	s->bdd.argsz = sizeof(s->bdd);
	s->saturates = s->options->saturation;
	s->gang = &s->cluster;
	share_sizes(s);
	r = open_region(s);
	if (r < 0)
		return r;
	if (s->cluster.nodes > 1) {
		r = kd_own_open(s, kd_search_region_bytes(&s->bdd));
		if (r == 0)
			r = kd_windows_open(s);
	}
	if (r == 0)
		r = kdsm_bdd_open(s->gang->region, KD_STORE, &s->bdd, &s->store);
	if (r == 0)
		r = kd_search_prepare(s);
	if (r == 0)
		r = load_model(s);
	return r < 0 ? give_up(s, r) : 0;
}

static int search(struct kdsm_reach *reach)
{
	struct kdsm_reach_result *result = reach->result;
	struct kd_search *s = &reach->search;
	int r;

	r = meet(s, result);
	if (r == 0)
		r = kd_search_start(s);
	if (r == 0) {
		s->began = kdsm_now();
		__atomic_store_n(&s->written, s->began, __ATOMIC_RELAXED);
		r = s->windows ? kd_race_run(s) : kd_search_run(s);
		result->stopped = s->stopped && !kd_search_complete(s);
		result->ended_early = s->early.ends && !kd_search_complete(s);
		result->seconds = (kdsm_now() - s->began) / 1e9;
	}
	if (r == 0)
		r = conclude(s, result);
	if (r == 0)
		return 0;
	if (s->began)
		salvage(s, r, result);
	return give_up(s, r);
}

static void *run(void *data)
{
	struct kdsm_reach *reach = data;

	reach->status = reach->step(reach);
	return NULL;
}

/*
 * Block signals for threads that are made next, so that the caller's threads handle them. Signals
 * that an instruction causes stay as they are.
 */
static void block_signals(sigset_t *former)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF };
	sigset_t set;
	size_t i;

	sigfillset(&set);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&set, own[i]);
	pthread_sigmask(SIG_BLOCK, &set, former);
}

/*
 * Run a step in a thread with a large stack, because operations recurse once for each bit
 * of a state.
 */
static int run_step(struct kdsm_reach *reach, int (*step)(struct kdsm_reach *reach),
		    struct kdsm_reach_message *message)
{
	struct kd_thread thread;
	sigset_t mask;
	int r;

	message->text[0] = 0;
	reach->search.message = message;
	reach->step = step;
	kd_progress_look(&reach->search);
	block_signals(&mask);
	r = kd_thread_start(&thread, STACK, run, reach);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (r == 0) {
		kd_progress_join(&reach->search, &thread);
		r = reach->status;
	}
	if (r < 0 && !message->text[0])
		kd_say(message, "%s: %s", reach->options.path, strerror(-r));
	return r;
}

int kdsm_reach_open(struct kdsm *kdsm, const struct kdsm_reach_options *options,
		    struct kdsm_reach **reach, struct kdsm_reach_message *message)
{
	struct kdsm_reach *new;
	int r;

	*reach = NULL;
	new = calloc(1, sizeof(*new));
	if (!new) {
		kd_say(message, "%s: %s", options->path, strerror(ENOMEM));
		return -ENOMEM;
	}
	r = KD_ARGUMENT_IN(kdsm_reach_options, &new->options, options);
	if (r < 0) {
		kd_say(message, "%s", kdsm_error(r));
		free(new);
		return r;
	}
	kd_progress_init(&new->search.progress);
	new->search.options = &new->options;
	new->search.kdsm = kdsm;
	r = run_step(new, prepare, message);
	if (r < 0) {
		kdsm_reach_close(new);
		return r;
	}
	new->open = true;
	*reach = new;
	return 0;
}

int kdsm_reach_model(const struct kdsm_reach *reach, struct kdsm_reach_model *model)
{
	const struct kd_model *own = &reach->search.model;
	const struct kdsm_reach_model known = {
		.argsz = sizeof(known),
		.name = own->name, .kind = own->kind,
		.bits = own->net ? own->net->places : own->bits,
		.relations = own->relations, .properties = own->properties,
	};

	return KD_ARGUMENT_OUT(kdsm_reach_model, &known, model);
}

int kdsm_reach_search(struct kdsm_reach *reach, struct kdsm_reach_result *result,
		      struct kdsm_reach_message *message)
{
	int r;

	if (reach->result) {
		kd_say(message, "%s: was searched before; open it again", reach->options.path);
		return -EALREADY;
	}
	r = check_result(result);
	if (r < 0) {
		kd_say(message, "%s", kdsm_error(r));
		return r;
	}
	reach->result = result;
	return run_step(reach, search, message);
}

void kdsm_reach_stop(struct kdsm_reach *reach)
{
	__atomic_store_n(&reach->search.progress.stop, true, __ATOMIC_RELAXED);
}

void kdsm_reach_report(struct kdsm_reach *reach)
{
	__atomic_store_n(&reach->search.progress.report, true, __ATOMIC_RELAXED);
}

void kdsm_reach_close(struct kdsm_reach *reach)
{
	struct kd_search *s;

	if (!reach)
		return;
	s = &reach->search;
	if (reach->open && !reach->result)
		kd_gang_abort(&s->cluster, -ECANCELED);
	kd_search_stop(s);
	kd_formulas_end(s);
	kd_model_free(&s->model);
	kdsm_bdd_close(s->store);
	kd_windows_close(s);
	kd_own_close(s);
	kd_gang_leave(&s->cluster);
	kdsm_region_close(s->region);
	kd_progress_destroy(&s->progress);
	free(reach);
}

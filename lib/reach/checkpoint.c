// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checkpoints. Node 0 saves the search after a round to a file, from which a later run
 * resumes, on any number of nodes. The file is in the .bdd format with a checksum
 * (bdd/bdd.h). It has the visited states, the states that the last round found, and, for
 * traces, the states that each round found. Its note says to which search they belong. The
 * reader checks all values in the file, and refuses a damaged file and a file of another
 * search.
 *
 * A round of saturation may take hours. So it pauses for checkpoints: all tasks end with the states
 * that they have found until then, which are a right start for a later run. The round goes on from
 * where it began, and finds its results in the operation cache, because the states found are an
 * irregular start with large BDDs.
 *
 * In a portfolio (portfolio.c) the states belong to an attempt, whose order the note tells. An
 * attempt replaces the states of another one in the file only by more states. A later run makes
 * that order the first one of its portfolio and continues from the states there; its other attempts
 * begin from the initial states. So a checkpoint in a bad order does not bind later runs. Attempts
 * that compete write at the end of their slices, and only the last one of a contest pauses.
 *
 * A new checkpoint replaces the old one when it is complete (output.c). Node 0 writes between
 * two rounds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define VERSION	4

/* Bit of the word of a violation: the steps are only a bound */
#define AT_MOST	(UINT64_C(1) << 63)

/*
 * The words of the note; NOTE_MODEL is a digest in the first order of a portfolio. Then there are
 * one word for each place of a net: its bits; and two words for each property: its id; and 0, or
 * 1 + the steps to its violation, with AT_MOST.
 */
enum {
	NOTE_VERSION, NOTE_MODEL, NOTE_ORDER, NOTE_STRATEGY, NOTE_LEVELS, NOTE_TIME, NOTE_FRONTIERS,
	NOTE_WORDS,
};

/* Indices of the functions in the file; the frontiers follow from FUNCTIONS on */
enum { VISITED, CURRENT, FUNCTIONS };

static int refuse(struct kd_search *s, const char *why)
{
	kd_say(s->message, "%s: %s; give another file to --checkpoint, or remove this one",
	       s->options->checkpoint, why);
	return -EINVAL;
}

static unsigned int places(const struct kd_search *s)
{
	return s->model.marking ? s->model.marking->places : 0;
}

static bool widths_fit(const struct kd_search *s, const uint64_t *width)
{
	unsigned int i;

	for (i = 0; i < places(s); i++)
		if (width[i] < s->model.marking->width[i] || width[i] > s->model.marking->room)
			return false;
	return true;
}

/* The words of the properties, and their end */
static const uint64_t *properties(const struct kd_search *s, const struct kd_bdd_content *c,
				  const uint64_t **end)
{
	*end = c->note + c->words;
	return c->note + NOTE_WORDS + places(s);
}

/* For traces: each violation is in a round whose states there are. */
static bool steps_fit(const struct kd_search *s, const struct kd_bdd_content *c)
{
	uint64_t rounds = c->note[NOTE_LEVELS] + (c->function[CURRENT] != KDSM_BDD_FALSE);
	const uint64_t *p, *end;

	for (p = properties(s, c, &end); p < end; p += 2)
		if (!(p[1] & AT_MOST) && p[1] > rounds)
			return false;
	return true;
}

/* Bits that the file of a set of states may have; it has one at least. */
static uint32_t most_bits(const struct kd_model *model)
{
	uint32_t bits = model->marking ? kd_marking_file_bits(model->marking) : model->bits ?
			model->variables[model->bits - 1] / 2 + 1 : 0;

	return bits ? bits : 1;
}

/* ---- orders ---- */

static uint64_t order_digest(const struct kd_search *s)
{
	const struct kd_marking *m = s->model.marking;

	return m ? kd_marking_digest(m->order, m->places) : 0;
}

bool kd_checkpoint_fits(const struct kd_bdd_content *c, const struct kd_marking *m)
{
	return c->words < NOTE_WORDS || c->note[NOTE_VERSION] != VERSION ||
	       c->note[NOTE_ORDER] == kd_marking_digest(m->order, m->places);
}

/*
 * Set s->loaded_order to the index in net->best of the order with this digest. -EINVAL: the search
 * has not got this order.
 */
static int find_order(struct kd_search *s, uint64_t digest)
{
	const struct kd_model *model = &s->model;
	uint32_t *order;
	unsigned int i;
	int r = -EINVAL;

	s->loaded_order = 0;
	if (digest == order_digest(s))
		return 0;
	if (!model->net || s->options->invariants)	/* which are in one order */
		return -EINVAL;
	order = malloc((model->net->places + 1) * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (i = 1; i < model->shares && r == -EINVAL; i++) {
		r = kd_net_order(model->net, model->net->best[i], order);
		if (r == 0 && kd_marking_digest(order, model->net->places) != digest)
			r = -EINVAL;
		s->loaded_order = i;
	}
	free(order);
	return r;
}

/* ---- reading ---- */

/* Check that the file is complete and belongs to this search. */
static int check(struct kd_search *s, const struct kd_bdd_reader *r,
		 const struct kd_bdd_content *c)
{
	const uint64_t *note = c->note;
	int ret;

	if (!c->whole || c->words < NOTE_WORDS || note[NOTE_VERSION] != VERSION)
		return refuse(s, "is no checkpoint of this program, or is not whole");
	if (note[NOTE_MODEL] != s->model_digest)
		return refuse(s, "is a checkpoint of another model, or with another --order");
	if (c->words < NOTE_WORDS + places(s) || (c->words - NOTE_WORDS - places(s)) % 2 ||
	    !widths_fit(s, note + NOTE_WORDS) ||
	    c->count < FUNCTIONS || c->count - FUNCTIONS != note[NOTE_FRONTIERS] ||
	    (note[NOTE_FRONTIERS] && note[NOTE_FRONTIERS] != note[NOTE_LEVELS]) ||
	    r->bits > most_bits(&s->model) || r->actions)
		return refuse(s, "is no checkpoint of this program");
	if (note[NOTE_STRATEGY] != kd_search_strategy(s))
		return refuse(s, "is a checkpoint with another --strategy");
	ret = find_order(s, note[NOTE_ORDER]);
	if (ret == -EINVAL)
		return refuse(s, "is a checkpoint with another --order");
	if (ret < 0)
		return ret;
	if (s->options->trace && note[NOTE_FRONTIERS] != note[NOTE_LEVELS])
		return refuse(s, "was written without --trace, so no ways can be shown");
	if (s->options->trace && !steps_fit(s, c))
		return refuse(s, "is no checkpoint of this program");
	return 0;
}

/*
 * Take over the verdict on a property. For a trace the number of steps must be exact, but then
 * the states of each round are there to find it.
 */
static void take_verdict(struct kd_search *s, const struct kd_bdd_content *c, unsigned int i)
{
	struct kdsm_reach_verdict *verdict = &s->verdict[i];
	const uint64_t *p, *end;

	for (p = properties(s, c, &end); p < end; p += 2)
		if (p[0] == s->model.property[i].id && !(s->frontier && p[1] & AT_MOST))
			break;
	s->model.property[i].missed = p >= end;
	if (p >= end || !p[1])
		return;
	verdict->violated = true;
	verdict->at_most = p[1] & AT_MOST;
	verdict->steps = (p[1] & ~AT_MOST) - 1;
}

static int take_over(struct kd_search *s, const struct kd_bdd_content *c)
{
	const uint64_t *note = c->note;
	unsigned int i;

	if (s->options->trace && note[NOTE_FRONTIERS]) {
		s->frontier = malloc(note[NOTE_FRONTIERS] * sizeof(*s->frontier));
		if (!s->frontier)
			return -ENOMEM;
		memcpy(s->frontier, c->function + FUNCTIONS,
		       note[NOTE_FRONTIERS] * sizeof(*s->frontier));
	}
	s->visited = c->function[VISITED];
	s->current = c->function[CURRENT];
	s->levels = note[NOTE_LEVELS];
	s->before = note[NOTE_TIME];
	for (i = 0; i < s->model.properties; i++)
		take_verdict(s, c, i);
	s->widths = malloc(places(s) + 1);
	if (!s->widths)
		return -ENOMEM;
	for (i = 0; i < places(s); i++)
		s->widths[i] = note[NOTE_WORDS + i];
	return 1;
}

static int load(struct kd_search *s, FILE *file)
{
	struct kd_bdd_reader reader = { .worker = s->worker, .file = file };
	struct kd_bdd_content content;
	char why[256];
	int ret;

	kd_marking_from_file(s->model.marking, &reader.from_file);
	ret = kd_bdd_load(&reader, &content);
	if (ret == -EINVAL && reader.wrong) {
		snprintf(why, sizeof(why), "byte %" PRIu64 ": %s; it is no checkpoint, or damaged",
			 reader.wrong_at, reader.wrong);
		refuse(s, why);
	}
	if (ret == 0)
		ret = check(s, &reader, &content);
	if (ret == 0)
		ret = take_over(s, &content);
	kd_bdd_content_destroy(&content);
	kd_bdd_reader_destroy(&reader);
	return ret;
}

/* Check before the search that a checkpoint can be written. */
static int try_write(struct kd_search *s)
{
	int ret = kd_output_try(s->options->checkpoint);

	if (ret < 0)
		kd_say(s->message, "--checkpoint %s: cannot be written: %s",
		       s->options->checkpoint, strerror(-ret));
	return ret;
}

int kd_checkpoint_load(struct kd_search *s)
{
	const char *path = s->options->checkpoint;
	FILE *file;
	int ret;

	if (!path)
		return 0;
	ret = try_write(s);
	if (ret < 0)
		return ret;
	file = fopen(path, "re");
	if (!file && errno == ENOENT)
		return 0;
	if (!file) {
		ret = -errno;
		kd_say(s->message, "%s: cannot be read: %s", path, strerror(-ret));
		return ret;
	}
	ret = load(s, file);
	if (ret == -EIO)
		kd_say(s->message, "%s: cannot be read", path);
	fclose(file);
	return ret;
}

int kd_checkpoint_check(struct kd_search *s)
{
	int r = kd_states_check(s->worker, s->visited, &s->model);
	uint64_t i;

	if (r == 0)
		r = kd_states_check(s->worker, s->current, &s->model);
	for (i = 0; r == 0 && s->frontier && i < s->levels; i++)
		r = kd_states_check(s->worker, s->frontier[i], &s->model);
	return r == -EDOM ? refuse(s, "is no checkpoint of this program") : r;
}

static uint64_t violation(const struct kdsm_reach_verdict *verdict)
{
	if (!verdict->violated)
		return 0;
	return (verdict->steps + 1) | (verdict->at_most ? AT_MOST : 0);
}

static int write_content(struct kd_search *s, FILE *file)
{
	uint64_t frontiers = s->frontier ? s->levels : 0;
	struct kd_bdd_content content = {
		.count = FUNCTIONS + frontiers,
		.words = NOTE_WORDS + places(s) + 2 * (uint64_t)s->model.properties,
	};
	uint64_t *word;
	unsigned int i;
	int ret = -ENOMEM;

	content.function = malloc(content.count * sizeof(*content.function));
	content.note = malloc(content.words * sizeof(*content.note));
	if (content.function && content.note) {
		content.function[VISITED] = s->visited;
		content.function[CURRENT] = s->current;
		if (frontiers)
			memcpy(content.function + FUNCTIONS, s->frontier,
			       frontiers * sizeof(*s->frontier));
		content.note[NOTE_VERSION] = VERSION;
		content.note[NOTE_MODEL] = s->model_digest;
		content.note[NOTE_ORDER] = order_digest(s);
		content.note[NOTE_STRATEGY] = kd_search_strategy(s);
		content.note[NOTE_LEVELS] = s->levels;
		content.note[NOTE_TIME] = s->before + kdsm_now() - s->began;
		content.note[NOTE_FRONTIERS] = frontiers;
		word = content.note + NOTE_WORDS;
		for (i = 0; i < places(s); i++)
			*word++ = s->model.marking->width[i];
		for (i = 0; i < s->model.properties; i++) {
			*word++ = s->model.property[i].id;
			*word++ = violation(&s->verdict[i]);
		}
		kd_marking_to_file(s->model.marking, &content.to_file);
		ret = kd_bdd_save(s->worker, file, &content);
	}
	free(content.function);
	free(content.note);
	return ret;
}

/*
 * Whether the states of this attempt may replace those of another one in the file: only if they
 * are more. So the file never loses states, and the next run begins with the order in which the
 * search got farthest.
 */
static bool more(struct kd_search *s, struct kd_kept *mine)
{
	mine->share = s->model.share;
	if (kd_bdd_count_bits(s->worker, s->visited, s->model.bits, &mine->bits) < 0)
		return false;
	return mine->bits + (mine->share == s->kept.share) > s->kept.bits;
}

static int write_file(struct kd_search *s)
{
	struct kd_output output;
	int ret = kd_output_open(&output, s->options->checkpoint);

	if (ret == 0) {
		ret = write_content(s, output.file);
		ret = kd_output_close(&output, ret);
	}
	return ret;
}

/*
 * Write a checkpoint. A failure, such as a full disk, only warns: the search continues. The result
 * of a search that has ended replaces any checkpoint.
 */
static void write_checkpoint(struct kd_search *s, bool result)
{
	struct kd_kept mine = { 0 };
	int ret = 0;

	if (!s->portfolio || result || more(s, &mine)) {
		ret = write_file(s);
		if (ret == 0)
			s->kept = mine;
	}
	if (ret < 0)
		kd_search_warn(s, "checkpoint %s after level %" PRIu64
			       " cannot be written: %s; the search goes on",
			       s->options->checkpoint, s->levels, strerror(-ret));
	__atomic_store_n(&s->written, kdsm_now(), __ATOMIC_RELAXED);
}

void kd_checkpoint_write(struct kd_search *s, bool last)
{
	if (!s->options->checkpoint)
		return;
	if (last || kdsm_now() - s->written >= s->options->interval)
		write_checkpoint(s, last && !s->stopped);
}

/* ---- within a round of saturation ---- */

#define SHARE	20	/* a pause takes at most this part of the time, */
#define GROWTH	8	/* and comes after this part of the time of the round */

uint64_t kd_least_pause = 1000000000;

static bool interval_passed(const struct kd_search *s)
{
	uint64_t pause = __atomic_load_n(&s->pause, __ATOMIC_RELAXED);

	if (pause < s->options->interval)
		pause = s->options->interval;
	if (pause < kd_least_pause)
		pause = kd_least_pause;
	return kdsm_now() - __atomic_load_n(&s->written, __ATOMIC_RELAXED) >= pause;
}

void kd_checkpoint_look(struct kd_search *s)
{
	uint64_t slice = __atomic_load_n(&s->slice, __ATOMIC_RELAXED);

	if (!s->options->checkpoint || !s->saturates ||
	    !__atomic_load_n(&s->searching, __ATOMIC_RELAXED) || s->paused == slice ||
	    __atomic_load_n(&s->contest, __ATOMIC_RELAXED) || !interval_passed(s))
		return;
	s->paused = slice;
	kd_gang_pause(s->gang, slice);
}

bool kd_checkpoint_due(const struct kd_search *s)
{
	uint64_t slice = kd_gang_pausing(s->gang);

	return slice && slice == __atomic_load_n(&s->slice, __ATOMIC_RELAXED);
}

/*
 * A slice that found nothing new may need more time than it had: so the next one has more. Several
 * workers find different states each time, which is no progress. So slices also grow with the
 * round, in which the last one takes a ninth of the time at least.
 */
void kd_checkpoint_within(struct kd_search *s, kdsm_bdd found, bool grown)
{
	const kdsm_bdd visited = s->visited, current = s->current;
	uint64_t began = kdsm_now(), pause, least;

	if (!s->options->checkpoint)
		return;
	pause = began - s->written;
	if (grown) {
		/* a later run checks its properties on all of these states */
		s->visited = found;
		s->current = found;
		s->levels--;
		write_checkpoint(s, false);
		s->levels++;
		s->visited = visited;
		s->current = current;
	} else {
		__atomic_store_n(&s->written, began, __ATOMIC_RELAXED);
	}
	least = (began - s->progress.ended) / GROWTH;
	if (least < SHARE * (kdsm_now() - began))
		least = SHARE * (kdsm_now() - began);
	__atomic_store_n(&s->pause, !grown ? 2 * pause : least, __ATOMIC_RELAXED);
}

void kd_checkpoint_slice(struct kd_search *s, kdsm_bdd found)
{
	if (s->options->checkpoint && interval_passed(s))
		kd_checkpoint_within(s, found, true);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bounds of the places of a Petri net from its semiflows: weights of places, at least 0, such
 * that no transition increases the weighted sum of tokens. A place in a semiflow never has more
 * tokens than the sum in the initial marking divided by the place's weight.
 *
 * The algorithm of Farkas (J. Farkas, 1902; for nets: J. Martinez, M. Silva, "A Simple and
 * Fast Algorithm to Obtain All Invariants of a Generalized Petri Net", 1982) begins with a row
 * for each place. It removes one transition at a time: every row to which the transition adds
 * is combined with every row from which it takes, so that the change is 0. For each transition
 * there is a row that only it adds to, the slack, so that it may also take. A net may have
 * exponentially many semiflows. So rows are dropped where there would be too many; the rows
 * that are left at the end are semiflows all the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Limits, in numbers: of rows for each place, of entries that are computed in all */
#define MOST_ROWS	8
#define MOST_WORK	6000000
#define MOST_SCANS	UINT64_C(200000000)	/* rows and transitions looked at */
#define MOST_WEIGHT	(INT64_C(1) << 30)	/* of a place, and change by a transition */

struct entry {
	uint32_t at;			/* transition; from FIRST_PLACE on: place */
	int64_t value;
};

#define FIRST_PLACE	(UINT32_C(1) << 31)

/* A sum of places with weights, and its change by each transition; sorted by at */
struct row {
	struct entry *entry;
	uint32_t entries;
};

struct flows {
	const struct kd_net *net;
	struct row *row;
	uint32_t rows, capacity;
	uint64_t work, scans;
};

static int add_row(struct flows *f, struct entry *entry, uint32_t entries)
{
	if (f->rows == f->capacity) {
		uint32_t capacity = f->capacity ? 2 * f->capacity : 64;
		void *more = reallocarray(f->row, capacity, sizeof(*f->row));

		if (!more) {
			free(entry);
			return -ENOMEM;
		}
		f->row = more;
		f->capacity = capacity;
	}
	f->row[f->rows++] = (struct row){ entry, entries };
	return 0;
}

static void drop_row(struct flows *f, uint32_t at)
{
	free(f->row[at].entry);
	f->row[at] = f->row[--f->rows];
}

static int64_t change_by(const struct row *row, uint32_t transition)
{
	uint32_t low = 0, high = row->entries;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (row->entry[middle].at < transition)
			low = middle + 1;
		else
			high = middle;
	}
	return low < row->entries && row->entry[low].at == transition ? row->entry[low].value : 0;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/*
 * Append to f->row the combination of two rows that the transition does not change. Weights
 * that become too large are left out, with the row.
 */
static int combine(struct flows *f, uint32_t x, uint32_t y, uint32_t transition)
{
	const struct row a = f->row[x], b = f->row[y];
	int64_t ca = change_by(&a, transition), cb = change_by(&b, transition);
	uint64_t common = gcd(llabs(ca), llabs(cb)), divisor = 0;
	int64_t fa = llabs(cb) / common, fb = llabs(ca) / common, value;
	struct entry *entry = malloc((a.entries + b.entries) * sizeof(*entry));
	uint32_t i = 0, j = 0, n = 0, at;

	if (!entry)
		return -ENOMEM;
	f->work += a.entries + b.entries;
	while (i < a.entries || j < b.entries) {
		bool first = j == b.entries || (i < a.entries && a.entry[i].at <= b.entry[j].at);
		bool second = i == a.entries || (j < b.entries && b.entry[j].at <= a.entry[i].at);

		at = first ? a.entry[i].at : b.entry[j].at;
		value = (first ? fa * a.entry[i++].value : 0) +
			(second ? fb * b.entry[j++].value : 0);
		if (llabs(value) > MOST_WEIGHT) {
			free(entry);
			return 0;
		}
		if (value) {
			entry[n++] = (struct entry){ at, value };
			divisor = gcd(divisor, llabs(value));
		}
	}
	for (i = 0; i < n && divisor > 1; i++)
		entry[i].value /= (int64_t)divisor;
	return add_row(f, entry, n);
}

/* Whether all places of the row a are places of the row b */
static bool within(const struct row *a, const struct row *b)
{
	uint32_t i = a->entries, j = b->entries;

	while (i && a->entry[i - 1].at >= FIRST_PLACE) {
		while (j && b->entry[j - 1].at > a->entry[i - 1].at)
			j--;
		if (!j || b->entry[j - 1].at != a->entry[i - 1].at)
			return false;
		i--;
		j--;
	}
	return true;
}

/*
 * Of the rows from first on, which are new, drop those whose places include all places of
 * another row: they are sums of others.
 */
static void drop_sums(struct flows *f, uint32_t first)
{
	uint32_t i, k;

	for (i = f->rows; i-- > first && f->work < MOST_WORK; )
		for (k = 0; k < f->rows; k++) {
			f->work += 4;
			if (k == i || f->row[k].entries > f->row[i].entries ||
			    !within(&f->row[k], &f->row[i]))
				continue;
			drop_row(f, i);
			break;
		}
}

/*
 * Drop the rows that the transition changes. Return the index of the first new row; before, it
 * was first.
 */
static uint32_t drop_changed(struct flows *f, uint32_t transition, uint32_t first)
{
	uint32_t kept = 0, old = 0, i;

	for (i = 0; i < f->rows; i++) {
		if (change_by(&f->row[i], transition)) {
			free(f->row[i].entry);
			continue;
		}
		f->row[kept++] = f->row[i];
		old += i < first;
	}
	f->rows = kept;
	return old;
}

/* Remove a transition: afterwards it changes no row. */
static int remove_transition(struct flows *f, uint32_t transition)
{
	uint32_t most = MOST_ROWS * (f->net->places + f->net->transitions) + 64;
	uint32_t rows = f->rows, ups = 0, downs = 0, i, k;
	uint32_t *up = malloc((rows + 1) * sizeof(*up)), *down = malloc((rows + 1) * sizeof(*down));
	int r = up && down ? 0 : -ENOMEM;

	f->scans += 2 * rows + f->net->transitions;
	for (i = 0; i < rows && r == 0; i++) {
		int64_t change = change_by(&f->row[i], transition);

		if (change > 0)
			up[ups++] = i;
		else if (change < 0)
			down[downs++] = i;
	}
	for (i = 0; i < ups && r == 0; i++)
		for (k = 0; k < downs && r == 0 && f->rows < most && f->work < MOST_WORK; k++)
			r = combine(f, up[i], down[k], transition);
	if (r == 0)
		drop_sums(f, drop_changed(f, transition, rows));
	free(up);
	free(down);
	return r;
}

static bool too_large(const struct entry *entry, uint32_t entries)
{
	while (entries--)
		if (llabs(entry[entries].value) > MOST_WEIGHT)
			return true;
	return false;
}

static int add_slack(struct flows *f, uint32_t transition)
{
	struct entry *entry = malloc(2 * sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	entry[0] = (struct entry){ transition, 1 };
	entry[1] = (struct entry){ FIRST_PLACE + f->net->places + transition, 1 };
	return add_row(f, entry, 2);
}

static int first_rows(struct flows *f)
{
	const struct kd_net *net = f->net;
	uint32_t *count = calloc(net->places + 1, sizeof(*count)), p, t, i;
	struct entry **entry = calloc(net->places + 1, sizeof(*entry));
	int r = count && entry ? 0 : -ENOMEM;

	for (t = 0; r == 0 && t < net->transitions; t++) {
		for (i = 0; i < net->transition[t].ins; i++)
			count[net->transition[t].in[i].place]++;
		for (i = 0; i < net->transition[t].outs; i++)
			count[net->transition[t].out[i].place]++;
	}
	for (p = 0; r == 0 && p < net->places; p++) {
		entry[p] = malloc((count[p] + 1) * sizeof(**entry));
		count[p] = 0;
		if (!entry[p])
			r = -ENOMEM;
	}
	for (t = 0; r == 0 && t < net->transitions; t++) {
		const struct kd_transition *own = &net->transition[t];

		for (i = 0; i < own->ins; i++) {
			p = own->in[i].place;
			int64_t change = (int64_t)kd_net_weight(own->out, own->outs, p) -
					 own->in[i].weight;

			if (change)
				entry[p][count[p]++] = (struct entry){ t, change };
		}
		for (i = 0; i < own->outs; i++) {
			p = own->out[i].place;
			if (!kd_net_weight(own->in, own->ins, p))
				entry[p][count[p]++] = (struct entry){ t, own->out[i].weight };
		}
	}
	for (p = 0; r == 0 && p < net->places; p++) {
		if (too_large(entry[p], count[p]))
			continue;
		entry[p][count[p]++] = (struct entry){ FIRST_PLACE + p, 1 };
		r = add_row(f, entry[p], count[p]);
		entry[p] = NULL;
	}
	for (t = 0; r == 0 && t < net->transitions; t++)
		r = add_slack(f, t);
	for (p = 0; entry && p < net->places; p++)
		free(entry[p]);
	free(count);
	free(entry);
	return r;
}

/*
 * The transition whose removal makes the fewest rows, or UINT32_MAX if all are removed. up
 * and down have room for a number for each transition.
 */
static uint32_t next_transition(struct flows *f, uint32_t *up, uint32_t *down)
{
	uint32_t transitions = f->net->transitions, best = UINT32_MAX, i, k;
	uint64_t least = UINT64_MAX, made;

	memset(up, 0, transitions * sizeof(*up));
	memset(down, 0, transitions * sizeof(*down));
	for (i = 0; i < f->rows; i++) {
		for (k = 0; k < f->row[i].entries && f->row[i].entry[k].at < FIRST_PLACE; k++)
			(f->row[i].entry[k].value > 0 ? up : down)[f->row[i].entry[k].at]++;
		f->work += k;
	}
	for (i = 0; i < transitions; i++) {
		made = (uint64_t)up[i] * down[i];
		if (up[i] + down[i] && made < least) {
			least = made;
			best = i;
		}
	}
	return best;
}

/* The work is at its limit: drop the rows that some transition changes. */
static void drop_unfinished(struct flows *f)
{
	uint32_t i;

	for (i = f->rows; i--; )
		if (f->row[i].entries && f->row[i].entry[0].at < FIRST_PLACE)
			drop_row(f, i);
}

static void bound_places(const struct flows *f)
{
	uint32_t i, k;

	for (i = 0; i < f->rows; i++) {
		const struct row *row = &f->row[i];
		uint32_t entries = row->entries;	/* without the slacks */

		unsigned __int128 sum = 0, bound;

		while (entries && row->entry[entries - 1].at >= FIRST_PLACE + f->net->places)
			entries--;
		for (k = 0; k < entries; k++)
			sum += (unsigned __int128)row->entry[k].value *
			       f->net->place[row->entry[k].at - FIRST_PLACE].marking;
		for (k = 0; k < entries; k++) {
			struct kd_place *place = &f->net->place[row->entry[k].at - FIRST_PLACE];

			bound = sum / row->entry[k].value;
			if (bound < place->bound)
				place->bound = bound;
		}
	}
}

int kd_net_semiflows(struct kd_net *net)
{
	struct flows f = { .net = net };
	uint32_t *up = calloc(net->transitions + 1, sizeof(*up));
	uint32_t *down = calloc(net->transitions + 1, sizeof(*down));
	uint32_t t, i;
	int r = up && down ? 0 : -ENOMEM;

	if (r == 0)
		r = first_rows(&f);
	while (r == 0) {
		if (f.work >= MOST_WORK || f.scans >= MOST_SCANS)
			drop_unfinished(&f);
		t = next_transition(&f, up, down);
		if (t == UINT32_MAX) {
			bound_places(&f);
			break;
		}
		r = remove_transition(&f, t);
	}
	for (i = 0; i < f.rows; i++)
		free(f.row[i].entry);
	free(f.row);
	free(up);
	free(down);
	return r;
}

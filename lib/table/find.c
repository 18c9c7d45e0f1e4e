// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The unique table: find-or-put in the part of another cluster node by a message to its
 * kernel (KDSM_OP_FIND), and the choice between this way and the one-sided one of remote.c.
 *
 * The message takes one operation, whatever the load of the table. The one-sided way takes
 * about two operations to put a node and one or two to find it, but with RDMA hardware none
 * of these uses the CPU of the other cluster node. So the faster way depends on the device
 * and on the load. A worker measures both while it uses them: most calls take the way that
 * was faster lately, and 1 in TRY_OTHER takes the other.
 */
#include <errno.h>

#include "core/core.h"
#include "table/table.h"

/* One call in TRY_OTHER takes the slower way, so that its duration is measured again */
#define TRY_OTHER	64

/*
 * Send finds, from find->entry on, until the outcome is known. mine is the number that a put
 * publishes. A find may end at an entry with a matching fragment whose node is not in the
 * target's part: the target does not see this node, so compare it here.
 */
static int ask(struct kdsm_table_worker *w, unsigned int part, struct kdsm_find *find,
	       const struct kdsm_node *node, uint64_t mine)
{
	const struct kdsm_table *t = w->table;
	struct kdsm_op op;
	int r;

	do {
		find->number = mine;
		find->outcome = 0;
		op = kdsm_op_find(part, t->index_offset, find);
		w->counts.find++;
		r = kdsm_vector(t->region, &op, 1);
		if (r < 0)
			return r;
		switch (find->outcome) {
		case KDSM_FIND_PUT:
			return KD_PUT;
		case KDSM_FIND_FOUND:
			return KD_FOUND;
		case KDSM_FIND_FULL:
			return KD_OVERFLOW;
		}
		r = kd_table_same(w, find->number, node);
		if (r)
			return r < 0 ? r : KD_FOUND;
		find->entry = kdsm_walk_next(find->entry, find->entries, find->done, find->run);
	} while (find->probes);
	return KD_OVERFLOW;
}

static int find_by_message(struct kdsm_table_worker *w, unsigned int part,
			   const struct kdsm_node *node, uint64_t hash, uint64_t *number)
{
	const struct kdsm_table *t = w->table;
	struct kdsm_find find = {
		.entries = t->index_size,
		.nodes = t->slots,
		.data = t->data_offset,
		.first = part * t->slots,
		.node = { node->a, node->b },
		.ignore = KD_NODE_OLD,
		.entry = kd_reduce(hash, t->index_size),
		.probes = KD_PROBE_LIMIT,
		.run = t->run,
		.fragment = hash,
	};
	uint64_t mine;
	int r;

	r = kd_table_take(w, node, &mine);
	/* The table has no room for the node, but may contain it. */
	if (r == -ENOSPC)
		return kd_table_probe_remote(w, part, node, hash, number);
	if (r < 0)
		return r;
	r = ask(w, part, &find, node, mine);
	*number = find.number;
	/* After an error the caller cannot know whether the number is published: use it up. */
	if (r == KD_PUT || r < 0)
		w->next++;
	return r;
}

/* ---- choice of the way ---- */

/* Update an exponential mean of about the last 16 durations, in ns. */
static void note_time(uint64_t *mean, uint64_t took)
{
	*mean = *mean ? *mean - *mean / 16 + took / 16 : took;
}

int kd_table_probe_other(struct kdsm_table_worker *w, unsigned int part,
			 const struct kdsm_node *node, uint64_t hash, uint64_t *number)
{
	struct kdsm_table *t = w->table;
	bool by_message = t->find == KDSM_TABLE_MESSAGE;
	uint64_t began = 0;
	int r;

	if (t->find == KDSM_TABLE_AUTO) {
		by_message = w->time[true] < w->time[false];
		if (w->asked++ % TRY_OTHER == 0)
			by_message = !by_message;
		began = kdsm_now();
	}
	r = by_message ? find_by_message(w, part, node, hash, number) :
			 kd_table_probe_remote(w, part, node, hash, number);
	if (began && r >= 0)
		note_time(&w->time[by_message], kdsm_now() - began);
	return r;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Readers and writers of a lock: what a writer does, closing the counters and opening
 * them. See lock_rw.c.
 *
 * How far it is the words tell, and nothing else is relied on: each call looks at those
 * that are not drained or open yet, so it does not matter which answers were lost.
 */
#include <linux/err.h>
#include <linux/string.h>

#include "rw.h"

/* The next nodes from *node on with counters, of those not yet done: into the window. */
static unsigned int kdsm_rw_gather(struct kdsm_rw *rw, u32 *node)
{
	unsigned int count = 0;

	for (; *node < rw->nodes && count < KDSM_RW_WINDOW; *node += rw->span)
		if (!test_bit(*node, rw->done))
			kdsm_rw_faa(rw, &rw->window[count++], *node, 0);
	return count;
}

/* Of a counter: what a writer adds to it next; 0: it has to wait, or is done. */
static u64 kdsm_rw_claim(struct kdsm_rw *rw, u64 word)
{
	/* Of who opened it last; with WANT, of one that died. */
	u64 add = rw->node + 1 - (word & KDSM_RW_ID);
	u32 arrivals = kdsm_rw_arrivals(word);

	if (!(word & KDSM_RW_WANT)) {
		add += KDSM_RW_WANT;
		/* Those that come are counted from now on. */
		if (kdsm_rw_readers(word))
			return add - arrivals * KDSM_RW_ARRIVAL;
		return add + KDSM_RW_WRITE;
	}
	if (!(word & KDSM_RW_WRITE) && !kdsm_rw_readers(word)) {
		rw->stats.row = max_t(u64, rw->stats.row, min(arrivals, READ_ONCE(rw->t_r)));
		add += KDSM_RW_WRITE;
	}
	return add;
}

static void kdsm_rw_drained(struct kdsm_rw *rw, unsigned int node, u64 word)
{
	rw->words[node] = word;
	__set_bit(node, rw->known);
	__set_bit(node, rw->done);
}

/*
 * Go on with the counters that have been read into the window. -EBUSY: wait for readers.
 * -EAGAIN: there is more to do at once. Other errors: the network's.
 */
static int kdsm_rw_close_some(struct kdsm_rw *rw, unsigned int count)
{
	struct kdsm_operation *window = rw->window;
	bool busy = false, again = false;
	unsigned int i, n = 0;
	int err = 0;
	u64 word, add;

	for (i = 0; i < count; i++) {
		if (window[i].status) {
			err = window[i].status;
			continue;
		}
		word = window[i].result;
		add = kdsm_rw_claim(rw, word);
		if (add)
			kdsm_rw_faa(rw, &window[n++], window[i].node, add);
		else if (kdsm_rw_readers(word))
			busy = true;
		else
			kdsm_rw_drained(rw, window[i].node, word);
	}
	kdsm_rw_post(rw, window, n);
	for (i = 0; i < n; i++) {
		if (window[i].status) {
			/* The word tells. */
			err = window[i].status;
			continue;
		}
		word = window[i].result + window[i].operand;
		if (kdsm_rw_readers(word))
			busy = true;
		else if (word & KDSM_RW_WRITE)
			kdsm_rw_drained(rw, window[i].node, word);
		else
			again = true;
	}
	return err ?: again ? -EAGAIN : busy ? -EBUSY : 0;
}

/* What node 0's counter says of T_DC. -EAGAIN: that is news. */
static int kdsm_rw_learn(struct kdsm_rw *rw, const struct kdsm_operation *op)
{
	u32 span = kdsm_rw_holds(rw, op->result);

	if (op->status)
		return op->status;
	if (span > rw->nodes)
		return -EIO;
	if (span == rw->span)
		return 0;
	rw->span = span;
	WRITE_ONCE(rw->view, span);
	return -EAGAIN;
}

int kdsm_rw_close(struct kdsm_rw *rw)
{
	unsigned int count;
	bool busy;
	u32 node;
	int err;

	if (!rw->closing) {
		rw->closing = true;
		rw->stats.switches++;
		bitmap_zero(rw->done, KDSM_MAX_NODES);
		bitmap_zero(rw->known, KDSM_MAX_NODES);
		rw->span = READ_ONCE(rw->view);
	}
	/* Before the words are looked at: what is told after that may be news. */
	spin_lock_bh(&rw->lock);
	rw->told = false;
	spin_unlock_bh(&rw->lock);
again:
	busy = false;
	for (node = 0; node < rw->nodes; ) {
		count = kdsm_rw_gather(rw, &node);
		kdsm_rw_post(rw, rw->window, count);
		/* It is the first, so that all that are closed are of the right T_DC. */
		err = count && !rw->window[0].node ? kdsm_rw_learn(rw, &rw->window[0]) : 0;
		if (!err)
			err = kdsm_rw_close_some(rw, count);
		if (err == -EAGAIN)
			goto again;
		if (err && err != -EBUSY)
			return err;
		busy |= err == -EBUSY;
	}
	return busy ? -EBUSY : 0;
}

bool kdsm_rw_is_told(struct kdsm_rw *rw)
{
	return READ_ONCE(rw->told);
}

void kdsm_rw_pass(struct kdsm_rw *rw)
{
	rw->closing = false;
}

/* Nobody waits for the counter, as far as the word says. */
static bool kdsm_rw_is_quiet(u64 word)
{
	return word & KDSM_RW_WRITE && !(word & KDSM_RW_ASKED) && !kdsm_rw_readers(word);
}

/* Learn what the words are that were closed by another node. */
static void kdsm_rw_read(struct kdsm_rw *rw)
{
	struct kdsm_operation *window = rw->window;
	unsigned int n, i;
	u32 node = 0;

	while (node < rw->nodes) {
		for (n = 0; node < rw->nodes && n < KDSM_RW_WINDOW; node += rw->span)
			if (!test_bit(node, rw->known))
				kdsm_rw_faa(rw, &window[n++], node, 0);
		kdsm_rw_post(rw, window, n);
		for (i = 0; i < n; i++) {
			if (window[i].status)
				continue;
			rw->words[window[i].node] = window[i].result;
			__set_bit(window[i].node, rw->known);
		}
	}
}

/* Open those counters that nobody waits for, without their homes. */
static void kdsm_rw_swap(struct kdsm_rw *rw)
{
	const u64 mine = KDSM_RW_WANT | KDSM_RW_WRITE | KDSM_RW_FOUND;
	struct kdsm_operation *window = rw->window;
	unsigned int n, i;
	u32 node = 0;

	while (node < rw->nodes) {
		for (n = 0; node < rw->nodes && n < KDSM_RW_WINDOW; node += rw->span) {
			if (!test_bit(node, rw->known) || !kdsm_rw_is_quiet(rw->words[node]))
				continue;
			kdsm_rw_faa(rw, &window[n], node,
				    (rw->words[node] & ~mine) | rw->status | (rw->node + 1));
			window[n].opcode = KDSM_OP_CAS;
			window[n++].compare = rw->words[node];
		}
		kdsm_rw_post(rw, window, n);
		for (i = 0; i < n; i++)
			if (!window[i].status && window[i].result == window[i].compare)
				__set_bit(window[i].node, rw->done);
	}
}

/* Have a home open its counter, or have T_DC as it is wished. */
static int kdsm_rw_open_at(struct kdsm_rw *rw, unsigned int node)
{
	struct kdsm_wire_rw wire;
	int err;

	kdsm_rw_name(rw, &wire);
	wire.turn = cpu_to_le32(rw->opens);
	wire.found = kdsm_rw_found_write(rw->status | (rw->node + 1));
	if (rw->wish != rw->span)
		wire.what = cpu_to_le16(node % rw->wish ? KDSM_RW_RETIRED : rw->wish);
	err = kdsm_rw_send(rw, node, KDSM_MESSAGE_RW_OPEN, &wire, NULL);
	if (err == -ENOENT) {
		/* It does not know the lock yet. */
		err = rw->ops->join(rw, node);
		kdsm_rw_spend(rw, &rw->stats.messages, 1);
		err = err ?: kdsm_rw_send(rw, node, KDSM_MESSAGE_RW_OPEN, &wire, NULL);
	}
	return err;
}

int kdsm_rw_open(struct kdsm_rw *rw, bool closed)
{
	int err, ret;
	u32 node;

	if (!rw->opening) {
		if (!rw->closing) {
			rw->span = 0;
			bitmap_zero(rw->known, KDSM_MAX_NODES);
		}
		rw->opening = true;
		rw->tried = false;
		rw->opens++;
		rw->wish = 0;
		bitmap_zero(rw->done, KDSM_MAX_NODES);
	}
	if (!rw->span) {
		kdsm_rw_faa(rw, &rw->window[0], 0, 0);
		kdsm_rw_post(rw, rw->window, 1);
		err = kdsm_rw_learn(rw, &rw->window[0]);
		if (err && err != -EAGAIN)
			return err;
	}
	/*
	 * A writer may give up while nodes read. Later writers would not wait for those at
	 * counters that are retired then, so T_DC stays for now.
	 */
	if (!rw->wish)
		rw->wish = closed ? clamp_t(u32, READ_ONCE(rw->t_dc), 1, rw->nodes) : rw->span;
	if (!rw->tried && rw->wish == rw->span) {
		rw->tried = true;
		kdsm_rw_read(rw);
		kdsm_rw_swap(rw);
	}
	err = 0;
	for (node = 0; node < rw->nodes; node++) {
		if ((node % rw->span && node % rw->wish) || test_bit(node, rw->done))
			continue;
		ret = kdsm_rw_open_at(rw, node);
		if (ret)
			err = ret;
		else
			__set_bit(node, rw->done);
	}
	if (err)
		return err;
	rw->closing = false;
	rw->opening = false;
	rw->stats.switches++;
	WRITE_ONCE(rw->view, rw->wish);
	return 0;
}

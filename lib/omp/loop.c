// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Worksharing constructs: loops, sections, single, and ordered regions.
 *
 * All threads of a team meet the constructs in the same order, and count them. One word for the
 * whole team, share.taken, says how far they are:
 *
 *	bits 40 to 63	serial number of the newest construct from which a thread has taken
 *	bits 0 to 39	what is taken of it: chunks, or units of a guided loop
 *
 * A thread leaves a construct only when all of it is taken. So a thread that finds the number of a
 * later construct knows that nothing is left of its own, and no thread waits for the word.
 *
 * The word share.ordered has the number of a loop with ordered regions, and the first iteration
 * of the chunk whose turn it is, divided like the other word. The last chunk passes the turn to the
 * first chunk of the next such loop.
 */
#include "span.h"

#define LOW_BITS	40
#define LOW_MOST	((UINT64_C(1) << LOW_BITS) - 1)
#define SERIAL_MOST	((UINT32_C(1) << (64 - LOW_BITS)) - 1)

static uint64_t word_of(uint32_t serial, uint64_t low)
{
	return (uint64_t)(serial & SERIAL_MOST) << LOW_BITS | low;
}

/* Whether the construct of the word is older than serial; numbers wrap around. */
static bool is_older(uint64_t word, uint32_t serial)
{
	uint32_t distance = (serial - (uint32_t)(word >> LOW_BITS)) & SERIAL_MOST;

	return distance && distance <= SERIAL_MOST / 2;
}

uint64_t ko_iterations(int64_t start, int64_t end, int64_t step)
{
	if (step > 0)
		return start < end ? ((uint64_t)end - start - 1) / step + 1 : 0;
	return start > end ? ((uint64_t)start - end - 1) / -(uint64_t)step + 1 : 0;
}

/* ---- schedules ---- */

void ko_loop_preset(struct ko_loop *loop, uint32_t kind, uint64_t chunk, uint64_t count)
{
	*loop = (struct ko_loop){ .active = true, .count = count, .chunk = chunk, .kind = kind };
	if (kind == KO_AUTO || (kind != KO_DYNAMIC && kind != KO_GUIDED))
		loop->kind = KO_STATIC;
	else if (!chunk)
		loop->chunk = 1;
	/* A word has no room for more chunks. */
	while (loop->kind == KO_DYNAMIC && count / loop->chunk >= LOW_MOST)
		loop->chunk *= 2;
}

void ko_loop_begin(struct ko_thread *thread, uint32_t kind, uint64_t chunk, uint64_t count,
		   bool ordered)
{
	struct ko_loop *loop = &thread->loop;

	ko_loop_preset(loop, kind, chunk, count);
	loop->serial = ++thread->serial;
	loop->ordered = ordered && count;
	if (!loop->ordered)
		return;
	loop->turn = thread->turns++;
	if (count > LOW_MOST)
		ko_fatal("a loop with ordered regions has more than 2^%d iterations", LOW_BITS);
}

void ko_loop_share(const struct ko_thread *thread, uint64_t count, uint64_t *begin, uint64_t *end)
{
	uint64_t number = thread->number;
	uint64_t share = count / thread->team->size, rest = count % thread->team->size;

	*begin = share * number + (number < rest ? number : rest);
	*end = *begin + share + (number < rest);
}

/* Chunks go round the threads; without a chunk size each thread has one, of equal sizes. */
static bool next_static(const struct ko_thread *thread, struct ko_loop *loop)
{
	uint64_t threads = thread->team->size, number = thread->number;

	if (!loop->chunk) {
		if (loop->next++)
			return false;
		ko_loop_share(thread, loop->count, &loop->begin, &loop->end);
		return loop->begin < loop->end;
	}
	if (loop->next > UINT64_MAX / threads ||
	    loop->next * threads + number > (loop->count - 1) / loop->chunk || !loop->count)
		return false;
	loop->begin = (loop->next++ * threads + number) * loop->chunk;
	loop->end = loop->count - loop->begin > loop->chunk ? loop->begin + loop->chunk :
							      loop->count;
	return true;
}

/* Iterations of a unit in which a guided loop counts */
static uint64_t guided_unit(const struct ko_loop *loop)
{
	return loop->count / LOW_MOST + 1;
}

/* Find the chunk that begins behind what is taken. Returns what is taken afterwards. */
static uint64_t chunk_at(const struct ko_thread *thread, struct ko_loop *loop, uint64_t taken)
{
	uint64_t unit = loop->kind == KO_GUIDED ? guided_unit(loop) : loop->chunk;
	uint64_t units = 1, left;

	if (taken > (loop->count - 1) / unit)
		return 0;
	loop->begin = taken * unit;
	left = loop->count - loop->begin;
	if (loop->kind == KO_GUIDED) {
		/* Half of a fair share, so that threads that arrive late find work */
		units = left / (2 * thread->team->size);
		if (units < loop->chunk)
			units = loop->chunk;
		units = units / unit + (units % unit != 0);
	}
	loop->end = left / unit < units ? loop->count : loop->begin + units * unit;
	return taken + units;
}

/* Take from a loop whose progress the team shares. */
static bool next_taken(struct ko_thread *thread, struct ko_loop *loop)
{
	uint64_t *word = &thread->team->common->share.taken, seen, taken;

	if (!loop->count)
		return false;
	seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	do {
		if (is_older(seen, loop->serial))
			taken = 0;
		else if (seen >> LOW_BITS == (loop->serial & SERIAL_MOST))
			taken = seen & LOW_MOST;
		else
			return false;
		taken = chunk_at(thread, loop, taken);
		if (!taken)
			return false;
		if (taken > LOW_MOST)
			taken = LOW_MOST;
	} while (!__atomic_compare_exchange_n(word, &seen, word_of(loop->serial, taken), false,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return true;
}

/* ---- ordered regions ---- */

static void await_turn(struct ko_thread *thread)
{
	struct ko_loop *loop = &thread->loop;
	uint64_t *word = &thread->team->common->share.ordered;
	uint64_t mine = word_of(loop->turn, loop->begin);
	struct ko_pause pause = { 0 };
	uint32_t seen;

	for (;;) {
		seen = __atomic_load_n(&thread->team->barrier.event, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == mine)
			break;
		ko_pause(&pause, thread->team, seen);
	}
	if (thread->team->spans)
		ko_fence();
}

/* The current chunk, if any, is over. */
static void pass_turn(struct ko_thread *thread)
{
	struct ko_loop *loop = &thread->loop;
	uint64_t next = word_of(loop->turn, loop->end);

	if (!loop->ordered || loop->begin == loop->end)
		return;
	await_turn(thread);
	if (loop->end == loop->count)
		next = word_of(loop->turn + 1, 0);
	loop->begin = loop->end;
	if (thread->team->spans)
		ko_fence();
	__atomic_store_n(&thread->team->common->share.ordered, next, __ATOMIC_SEQ_CST);
	ko_wake(thread->team);
}

void ko_ordered_begin(struct ko_thread *thread)
{
	if (thread->loop.ordered && thread->loop.begin < thread->loop.end)
		await_turn(thread);
}

void ko_ordered_end(struct ko_thread *thread)
{
	/* The turn passes with the whole chunk: pass_turn(). */
	(void)thread;
}

/* ---- constructs ---- */

bool ko_loop_next(struct ko_thread *thread)
{
	struct ko_loop *loop = &thread->loop;
	bool any;

	pass_turn(thread);
	any = loop->kind == KO_STATIC ? next_static(thread, loop) : next_taken(thread, loop);
	/* Another thread may have taken the last chunk, which this one tried to take */
	if (!any)
		loop->end = loop->begin;
	return any;
}

void ko_loop_end(struct ko_thread *thread)
{
	pass_turn(thread);
	thread->loop.active = false;
}

bool ko_single(struct ko_thread *thread)
{
	uint64_t *word = &thread->team->common->share.taken, seen;
	uint32_t serial = ++thread->serial;

	seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	while (is_older(seen, serial))
		if (__atomic_compare_exchange_n(word, &seen, word_of(serial, 1), false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

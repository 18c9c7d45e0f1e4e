// SPDX-License-Identifier: GPL-2.0
/*
 * The words of a line, and the operations and sleeps of its threads, in place of lib/core. Each
 * change of the head is checked: posts are neither lost nor made, no thread is overtaken, and no
 * post lies while a thread waits for it.
 */
#include "sim.h"

/* Without deaths and stops a post or a thread that joins is noticed within this time, in us */
#define PROMPT	500000

static struct kdsm_line_area *parts;	/* of all nodes */
static struct kdsm_region regions[KDSM_MAX_NODES];
static struct kdsm cluster;
static struct sim_queue *queues;	/* sleepers of each node */
static u64 head_changes, front_since, changed_at;
static bool lock_taken;
static struct sim_queue lock_queue;

/* ---- scheduler of the library ---- */

static uint64_t scheduler_now(void)
{
	return sim_now() * 1000;
}

static void scheduler_sleep(uint64_t ns)
{
	sim_sleep(ns / 1000 + 1);
}

static const struct kd_scheduler scheduler = {
	.now = scheduler_now,
	.sleep = scheduler_sleep,
};

/* ---- start and stop ---- */

struct kdsm_region *region_of(unsigned int node)
{
	return &regions[node];
}

static struct kdsm_line_area *home_area(void)
{
	return &parts[config.home];
}

u64 line_head(void)
{
	return home_area()->head;
}

/* Dead threads of node 0 that had the tickets before the first one */
static void ghosts_start(void)
{
	struct kdsm_line_area *area = home_area();
	unsigned int i;
	u64 ticket;

	for (i = 0; i < config.ghosts; i++) {
		ticket = config.ticket - config.ghosts + i;
		area->ring[slot_of(ticket)] = make_entry(ticket, 0);
		if (!i)
			area->head = make_front(slot_of(ticket), 0);
	}
}

void words_start(void)
{
	unsigned int i;

	kd_scheduler = &scheduler;
	parts = aligned_alloc(64, sim.nodes * sizeof(*parts));
	memset(parts, 0, sim.nodes * sizeof(*parts));
	queues = calloc(sim.nodes, sizeof(*queues));
	cluster.nodes = sim.nodes;
	for (i = 0; i < sim.nodes; i++)
		regions[i] = (struct kdsm_region){
			.kdsm = &cluster,
			.part = (void *)&parts[i],
			.part_size = sizeof(*parts),
			.node = i,
			.writable = true,
		};
	ghosts_start();
	home_area()->tail = config.ticket - LINE_MOST;
	home_area()->head |= LINE_READY | config.posts * LINE_POST | config.changes * LINE_CHANGE;
	if (!front_of(home_area()->head))
		home_area()->head &= ~-LINE_CHANGE;
	head_changes = 0;
	front_since = 0;
	changed_at = 0;
	lock_taken = false;
	lock_queue = (struct sim_queue){ 0 };
}

void words_stop(void)
{
	free(queues);
	free(parts);
}

/* ---- checks ---- */

static unsigned int posts_held(void)
{
	unsigned int i, held = 0;
	struct thread *thread;

	for (i = 0; (thread = thread_at(i)); i++)
		held += thread->alive ? thread->held : 0;
	return held;
}

/* The front takes a post: no thread with a lower ticket was there when it became the front. */
static void check_order(const struct thread *taker)
{
	struct thread *thread;
	unsigned int i;

	for (i = 0; (thread = thread_at(i)); i++)
		if (thread->alive && thread->in_ring && thread->announced &&
		    thread->announced < front_since && thread->ticket < taker->ticket)
			sim_fail(SIM_NONE, "ticket %llx takes a post before %llx", taker->ticket,
				 thread->ticket);
}

static void head_changed(u64 before, u64 after)
{
	struct thread *thread = self();
	int gone = value_of(before) - value_of(after);

	head_changes++;
	changed_at = sim_now();
	sim_event(SIM_NONE, "head: value %u front %x changes %llu", value_of(after),
		  front_of(after), after / LINE_CHANGE);
	if (thread->in_ring && !thread->announced)
		thread->announced = head_changes;
	if (!config.cond) {
		thread->held += gone;
		if (thread->held > 1 ||
		    value_of(after) + posts_held() + posts_lost() != config.posts)
			sim_fail(SIM_NONE, "a thread has %d posts, the value is %u",
				 thread->held, value_of(after));
	}
	if (gone > 0 && front_of(before) && !config.die && !config.stop)
		check_order(thread);
	if (front_of(before) != front_of(after))
		front_since = head_changes;
}

/* Between any two steps */
void words_check(void)
{
	u64 head = line_head();
	struct thread *thread;
	unsigned int i;

	if (config.die || config.stop || config.ghosts || sim_now() - changed_at < PROMPT)
		return;
	if (front_of(head) && value_of(head))
		sim_fail(SIM_NONE, "a post lies, and the front does not take it");
	for (i = 0; (thread = thread_at(i)); i++) {
		if (!thread->in_ring || !thread->announced)
			continue;
		if (!front_of(head))
			sim_fail(SIM_NONE, "a thread waits, and there is no front");
		if (items)
			sim_fail(SIM_NONE, "a thread waits, and there are %llu items", items);
	}
}

/* ---- operations ---- */

static void travel(const struct kdsm_region *region, unsigned int node)
{
	thread_step();
	if (region->node == node)
		sim_yield();
	else
		sim_sleep(sim_latency(region->node, node));
}

/* The operation has been done. */
static void come_back(const struct kdsm_region *region, unsigned int node)
{
	self()->operations += region->node != node;
	travel(region, node);
}

static void word_changed(uint64_t *word, u64 before, u64 after)
{
	struct kdsm_line_area *area = home_area();
	struct thread *thread = self();

	if (word == &area->head && before != after) {
		head_changed(before, after);
	} else if (word == &area->tail) {
		thread->ticket = before + LINE_MOST;
		thread->announced = 0;
	} else if (word >= area->ring && word < area->ring + LINE_MOST && before != after &&
		   word == &area->ring[slot_of(thread->ticket)]) {
		thread->in_ring = after;
	}
}

int kdsm_faa(struct kdsm_region *region, unsigned int node, uint64_t offset, uint64_t add,
	     uint64_t *former)
{
	uint64_t *word, before;

	travel(region, node);
	word = kdsm_word(region_of(node), offset);
	before = *word;
	*word += add;
	if (add)
		word_changed(word, before, *word);
	if (add && word == &home_area()->head && self()->due)
		self()->due--;
	if (former)
		*former = before;
	come_back(region, node);
	return 0;
}

static bool is_equal(const uint64_t *word, u64 expected, u64 desired)
{
	struct kdsm_line_area *area = home_area();
	u64 mask = 0;

	if (word == &area->head) {
		if (sim_broken == BREAK_CHANGE)
			mask = -LINE_CHANGE;
		if (sim_broken == BREAK_TWICE && value_of(desired) < value_of(expected))
			mask = LINE_VALUE;
	} else if (sim_broken == BREAK_DEAD && !desired &&
		   expected != make_entry(self()->ticket, self()->node)) {
		return false;
	}
	return !((*word ^ expected) & ~mask);
}

int kdsm_cas(struct kdsm_region *region, unsigned int node, uint64_t offset, uint64_t expected,
	     uint64_t desired, uint64_t *former)
{
	uint64_t *word, before;

	travel(region, node);
	word = kdsm_word(region_of(node), offset);
	before = *word;
	if (sim_broken == BREAK_DROP && config.cond && word == &home_area()->head &&
	    value_of(desired) < value_of(expected))
		desired = make_head(desired, front_of(desired), 0);
	if (is_equal(word, expected, desired)) {
		*word = desired;
		word_changed(word, before, desired);
		before = expected;
	}
	*former = before;
	come_back(region, node);
	return 0;
}

/* Words of a get are read at different times. */
int kdsm_get(struct kdsm_region *region, unsigned int node, uint64_t offset, void *to,
	     size_t length)
{
	uint64_t *from = kdsm_word(region_of(node), offset), *copy = to;
	unsigned int i;

	travel(region, node);
	for (i = 0; i < length / sizeof(*copy); i++) {
		if (i % 128 == 0)
			sim_yield();
		copy[i] = from[i];
		if (sim_broken == BREAK_OLD)
			copy[i] = copy[i] & U32_MAX;
		if (sim_broken == BREAK_SHORT && i >= LINE_MOST / 2)
			copy[i] = 0;
	}
	come_back(region, node);
	return 0;
}

/* ---- sleeping and waking ---- */

int kd_put_word(struct kdsm_region *region, unsigned int node, uint64_t offset, uint64_t value)
{
	travel(region, node);
	if (sim_broken != BREAK_BELL || sim_below(8)) {
		*kdsm_word(region_of(node), offset) = value;
		sim_wake(&queues[node]);
	}
	come_back(region, node);
	return 0;
}

int kdsm_wait(struct kdsm_region *region, uint64_t offset, uint64_t value, uint64_t timeout)
{
	u64 end = timeout == KDSM_FOREVER ? U64_MAX : sim_now() + timeout / 1000 + 1;
	struct sim_queue *queue = &queues[region->node];

	thread_step();
	if (sim_chance(config.interrupt))
		return -EINTR;
	for (;;) {
		sim_prepare(queue);
		if (*kdsm_word(region, offset) != value) {
			sim_cancel(queue);
			return 0;
		}
		if (!sim_block(queue, end))
			return -ETIMEDOUT;
	}
}

/* ---- the lock of a condition variable ---- */

int kdsm_lock(struct kdsm_lock *lock)
{
	while (lock_taken) {
		sim_prepare(&lock_queue);
		sim_block(&lock_queue, U64_MAX);
	}
	lock_taken = true;
	self()->has_lock = true;
	return 0;
}

int kdsm_unlock(struct kdsm_lock *lock)
{
	lock_taken = false;
	self()->has_lock = false;
	sim_wake(&lock_queue);
	sim_yield();
	return 0;
}

int kdsm_lock_is_mine(struct kdsm_lock *lock)
{
	return self()->has_lock;
}

int kdsm_lock_consistent(struct kdsm_lock *lock)
{
	return 0;
}

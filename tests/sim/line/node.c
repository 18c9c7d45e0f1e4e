// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that wait and post. With a semaphore they hold posts and give them back; with a
 * condition variable half of them make items, and the others take items.
 */
#include <stdio.h>
#include "sim.h"

#define SECOND	1000000000ULL

static struct thread *threads;
static unsigned int count, deaths, lost;
u64 items;

struct thread *self(void)
{
	/* The name of a fiber is "thread" and its number. */
	return &threads[strtoul(sim_fiber_name() + strlen("thread "), NULL, 10)];
}

struct thread *thread_at(unsigned int i)
{
	return i < count ? &threads[i] : NULL;
}

unsigned int posts_lost(void)
{
	return lost;
}

/* A dead thread may take a post with it, as long as one is left. */
static bool may_die(const struct thread *thread)
{
	if (deaths >= config.deaths || thread->due)
		return false;
	return !thread->held || lost + thread->held < config.posts;
}

void thread_step(void)
{
	struct thread *thread = self();

	if (sim_chance(config.die) && may_die(thread)) {
		sim_event(SIM_NONE, "node %u %s dies with %u posts", thread->node,
			  sim_fiber_name(), thread->held);
		deaths++;
		counts.deaths++;
		lost += thread->held;
		thread->alive = false;
		/* The lock goes to the next thread, as one whose owner has died. */
		if (thread->has_lock)
			kdsm_unlock(NULL);
		sim_exit();
	}
	if (sim_chance(config.stop))
		sim_sleep(sim_below(5000000));
}

static void count_wait(struct thread *thread, int ret)
{
	if (ret) {
		counts.timeouts++;
		return;
	}
	counts.waits++;
	counts.wait_operations += thread->operations;
}

static void count_post(struct thread *thread)
{
	counts.posts++;
	counts.post_operations += thread->operations;
	if (counts.post_most < thread->operations)
		counts.post_most = thread->operations;
	if (thread->operations > 2)
		sim_fail(SIM_NONE, "a post took %llu operations", thread->operations);
}

/* ---- semaphores ---- */

static int wait_somehow(struct thread *thread)
{
	if (!sim_chance(config.give_up))
		return kdsm_sem_wait(&thread->sem);
	switch (sim_below(3)) {
	case 0:
		return kdsm_sem_try(&thread->sem);
	case 1:
		return kdsm_sem_timed(&thread->sem, sim_below(1000) * 1000);
	default:
		return kdsm_sem_timed(&thread->sem, sim_below(3) * SECOND);
	}
}

static void use_semaphore(struct thread *thread)
{
	int ret;

	thread->operations = 0;
	ret = wait_somehow(thread);
	count_wait(thread, ret);
	if (thread->held != !ret)
		sim_fail(SIM_NONE, "a wait returns %d with %u posts", ret, thread->held);
	if (ret && ret != -ETIMEDOUT && ret != -EAGAIN && ret != -EINTR)
		sim_fail(SIM_NONE, "a wait returns %d", ret);
	if (ret)
		return;
	sim_sleep(sim_below(config.hold) + 1);
	thread->operations = 0;
	ret = kdsm_sem_post(&thread->sem);
	if (ret || thread->held)
		sim_fail(SIM_NONE, "a post returns %d with %u posts", ret, thread->held);
	count_post(thread);
}

/* ---- condition variables ---- */

static void make_item(struct thread *thread)
{
	bool after = sim_chance(2);
	int ret;

	kdsm_lock(NULL);
	items++;
	if (after)
		kdsm_unlock(NULL);
	thread->operations = 0;
	ret = sim_chance(4) ? kdsm_cond_broadcast(&thread->cond) : kdsm_cond_signal(&thread->cond);
	if (ret)
		sim_fail(SIM_NONE, "a signal returns %d", ret);
	count_post(thread);
	if (!after)
		kdsm_unlock(NULL);
}

static void take_item(struct thread *thread)
{
	int ret;

	kdsm_lock(NULL);
	while (!items) {
		thread->operations = 0;
		ret = sim_chance(config.give_up) ?
		      kdsm_cond_timed(&thread->cond, NULL, sim_below(1000) * 1000) :
		      kdsm_cond_wait(&thread->cond, NULL);
		count_wait(thread, ret);
		if (ret && ret != -ETIMEDOUT)
			sim_fail(SIM_NONE, "a wait returns %d", ret);
	}
	items--;
	kdsm_unlock(NULL);
}

/* ---- threads ---- */

static void run(void *arg)
{
	struct thread *thread = arg;
	bool makes = config.cond && (thread - threads) % 2 == 0;
	unsigned int i;

	if (makes)
		thread->due = config.rounds;
	for (i = 0; i < config.rounds; i++) {
		if (!config.cond)
			use_semaphore(thread);
		else if (makes)
			make_item(thread);
		else
			take_item(thread);
		if (sim_chance(2))
			sim_sleep(sim_below(config.away) + 1);
	}
	thread->alive = false;
}

void threads_start(void)
{
	struct thread *thread;
	char name[24];
	unsigned int i;

	count = sim.nodes * config.threads;
	threads = calloc(count, sizeof(*threads));
	deaths = 0;
	lost = 0;
	items = 0;
	for (i = 0; i < count; i++) {
		thread = &threads[i];
		thread->node = i % sim.nodes;
		thread->alive = true;
		thread->sem = (struct kdsm_sem){
			.region = region_of(thread->node),
			.home = config.home,
		};
		thread->cond = (struct kdsm_cond){
			.region = region_of(thread->node),
			.home = config.home,
		};
		snprintf(name, sizeof(name), "thread %u", i);
		sim_spawn(thread->node, name, sim_below(config.away) + 1, run, thread);
	}
}

void threads_stop(void)
{
	u64 head = line_head();

	if (!config.cond && value_of(head) + lost != config.posts)
		sim_fail(SIM_NONE, "%u posts of %u are left", value_of(head), config.posts - lost);
	if (front_of(head) && !config.die && !config.stop && !config.ghosts)
		sim_fail(SIM_NONE, "there is a front, but no thread");
	free(threads);
	threads = NULL;
	count = 0;
}

void threads_tell(void)
{
	unsigned int i;

	printf("head: value %u front %x changes %llu\n", value_of(line_head()),
	       front_of(line_head()), line_head() / LINE_CHANGE);
	for (i = 0; i < count; i++)
		printf("thread %u of node %u: %s, ticket %llx%s%s, posts %u\n", i, threads[i].node,
		       threads[i].alive ? "alive" : "ended", threads[i].ticket,
		       threads[i].in_ring ? ", in the ring" : "",
		       threads[i].announced ? ", announced" : "", threads[i].held);
}

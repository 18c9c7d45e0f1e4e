// SPDX-License-Identifier: GPL-2.0
/*
 * Programs of one node that lock and read in mapped memory, one access at a time, and die between
 * any two; some scribble over the memory. The module lets them in and keeps them out in turn.
 */
#include "sim.h"
#include "lock/word.h"

/* Number of the lock, and of another one that the same threads use */
#define NUMBER	3U
#define OTHER	4U

static struct program {
	bool dead, reads, writes;	/* the thread is inside */
} *programs;

static struct {
	atomic64_t state;
	u64 bias;
	atomic64_t slots[KDSM_LOCK_SLOTS];
} memory;

static struct kdsm_word word;
static unsigned int alive, count;
static bool must_hear;			/* the next writer has to learn of a death */
static bool asked;			/* a thread that unlocked has called the module */

static bool lives(struct kdsm_word *unused, u32 thread)
{
	return thread && thread <= count && !programs[thread - 1].dead;
}

/* One more access follows. The thread may die before it. Returns true then. */
static bool die(struct program *program)
{
	sim_yield();
	if (!sim_chance(config.die))
		return false;
	counts.died++;
	program->dead = true;
	return true;
}

static void check(void)
{
	unsigned int i, reading = 0, writing = 0;

	for (i = 0; i < count; i++) {
		reading += programs[i].reads && !programs[i].dead;
		writing += programs[i].writes && !programs[i].dead;
	}
	if (writing > 1 || (writing && reading))
		sim_fail(SIM_NONE, "%u threads write and %u read", writing, reading);
}

/* Returns true if the thread died. */
static bool read_by_slot(struct program *program, u32 thread, u32 number)
{
	atomic64_t *slot = &memory.slots[KDSM_LOCK_SLOT_INDEX(thread)];
	bool barred;

	slot->counter = KDSM_LOCK_SLOT(thread, number);
	if (die(program))
		return true;
	barred = number == NUMBER && !memory.bias && sim_broken != BREAK_BIAS;
	if (die(program))
		return true;
	if (!barred) {
		program->reads = number == NUMBER;
		counts.reads += program->reads;
		check();
		sim_sleep(sim_below(20));
		if (die(program))
			return true;
		check();
		program->reads = false;
	}
	slot->counter = 0;
	return die(program);
}

static bool write_by_word(struct program *program, u32 thread)
{
	s64 old = KDSM_LOCK_AT_NODE;

	if (memory.state.counter != old)
		return false;
	memory.state.counter = KDSM_LOCK_AT_NODE | thread;
	program->writes = true;
	counts.locks++;
	if (must_hear)
		sim_fail(SIM_NONE, "thread %u does not learn of a death", thread);
	check();
	sim_sleep(sim_below(20));
	if (die(program)) {
		must_hear = true;
		return true;
	}
	check();
	program->writes = false;
	if (memory.state.counter == (s64)(KDSM_LOCK_AT_NODE | thread)) {
		memory.state.counter = KDSM_LOCK_AT_NODE;
	} else {
		/* The call: the module does the rest. */
		asked = true;
	}
	return die(program);
}

static void program_run(void *arg)
{
	struct program *program = arg;
	u32 thread = program - programs + 1;
	unsigned int i;
	bool died = false;

	for (i = 0; i < config.rounds && !died; i++) {
		sim_sleep(1 + sim_below(config.away));
		if (sim_chance(2))
			died = read_by_slot(program, thread, sim_chance(4) ? OTHER : NUMBER);
		else
			died = write_by_word(program, thread);
		/* Anything in a slot of another thread, dead or alive, or of none */
		if (!died && sim_chance(config.greedy))
			memory.slots[KDSM_LOCK_SLOT_INDEX(count + 1 + sim_below(4))].counter =
				KDSM_LOCK_SLOT(sim_below(2 * count) + count + 1, NUMBER);
	}
	program->dead = true;
	alive--;
}

/* Readers have had their time. */
static void end_reading(void)
{
	unsigned int died = 0;

	kdsm_word_bar(&word);
	while (sim_broken != BREAK_BIAS && !kdsm_word_drained(&word, count + 8, &died))
		sim_sleep(5);
}

static void end_writing(void)
{
	u32 owner;

	asked = false;
	owner = kdsm_word_freeze(&word);
	while (owner && !asked && !kdsm_word_is_dead(&word))
		sim_sleep(5);
	/* A thread may die after its call was served. */
	if (owner && !asked)
		must_hear = sim_broken == BREAK_LOCAL && must_hear;
	kdsm_word_set(&word, 0, 0);
}

static void module_run(void *arg)
{
	while (alive) {
		kdsm_word_admit(&word);
		sim_sleep(sim_below(200));
		end_reading();
		kdsm_word_set(&word, 0, KDSM_LOCK_AT_NODE);
		sim_sleep(sim_below(200));
		end_writing();
	}
}

void programs_start(void)
{
	unsigned int i;

	memset(&memory, 0, sizeof(memory));
	word = (struct kdsm_word) { &memory.state, &memory.bias, memory.slots, NUMBER, lives };
	count = sim_between(2, 6);
	alive = count;
	must_hear = false;
	programs = calloc(count, sizeof(*programs));
	for (i = 0; i < count; i++)
		sim_spawn(0, "program", 0, program_run, &programs[i]);
	sim_spawn(0, "module", 0, module_run, NULL);
}

void programs_stop(void)
{
	free(programs);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Litmus tests: the forms of tests/litmus. A seed runs some rounds of one form, in one policy and
 * with one synchronisation. The outcome of each round must be one that the policy allows, and all
 * nodes must agree on the final values. The seeds together must see the outcomes that the
 * table demands: the one that must be seen, and in policy release without synchronisation the
 * forbidden one, which is weak.
 */
#include <stdio.h>

#include "sim.h"
#include "../../litmus/litmus.h"

#define TESTS_MAX	256
/* A form of which fewer rounds ran may lack an outcome */
#define ROUNDS_ENOUGH	400

/* A form in a policy and with a synchronisation */
static struct test {
	const struct litmus_form *form;
	enum litmus_sync sync;
	u32 policy;
	const char *wanted;		/* the outcome that must be seen; NULL: none */
	char name[48];
	u64 rounds, seen;
} tests[TESTS_MAX];
static unsigned int test_count;

/* Of the seed */
static struct test *test;
static struct litmus litmus;
static struct litmus_set sc;
static u64 places[LITMUS_VARIABLES];
static struct {
	bool sent;
	struct kdsm_signature signature;
	struct sim_queue queue;
} signals[LITMUS_SIGNATURES];

/* Of the round */
static unsigned int round_number, first_slot, stride;
static unsigned int outcome;
static unsigned int clearer[LITMUS_VARIABLES];	/* thread that stores the old value */
static bool halves, wholes;		/* accesses have four bytes, or eight; neither: both */
static u64 salt, stagger;
static u64 finals[LITMUS_VARIABLES];
static bool known[LITMUS_VARIABLES];

/* ---- the tests ---- */

static bool prepare(const struct litmus_form *form, enum litmus_sync sync)
{
	const char *wrong = litmus_parse(form, sync, &litmus);

	if (wrong)
		sim_fail(SIM_NONE, "%s: what is %s", form->name, wrong);
	litmus_explore(&litmus, LITMUS_SC, &sc);
	return litmus_is_test(&litmus, &sc);
}

static void test_add(const struct litmus_form *form, enum litmus_sync sync, u32 policy)
{
	struct test *added = &tests[test_count++];
	const char *policy_name = policy == KDSM_POLICY_STRICT ? "strict" : "release";

	*added = (struct test) { .form = form, .sync = sync, .policy = policy };
	if (policy == KDSM_POLICY_RELEASE && sync == LITMUS_ALONE)
		added->wanted = form->weak == LITMUS_MUST ? form->forbidden : NULL;
	else if (sync == LITMUS_ALONE || sync == LITMUS_LOCKED)
		added->wanted = form->seen;
	snprintf(added->name, sizeof(added->name), "%s, %s, %s", policy_name, form->name,
		 litmus_sync_names[sync]);
}

void forms_list(bool release, bool strict)
{
	const struct litmus_form *form;
	unsigned int sync;

	for (form = litmus_forms; form->name; form++)
		for (sync = 0; sync < LITMUS_SYNCS; sync++) {
			if (!prepare(form, sync) || test_count + 2 > TESTS_MAX)
				continue;
			if (strict && sync == LITMUS_ALONE)
				test_add(form, sync, KDSM_POLICY_STRICT);
			if (release)
				test_add(form, sync, KDSM_POLICY_RELEASE);
		}
}

unsigned int forms_counters(struct sim_counter *counters, unsigned int room)
{
	unsigned int i, n = 0;

	for (i = 0; i < test_count && n + 2 <= room; i++) {
		counters[n++] = (struct sim_counter) { tests[i].name, &tests[i].rounds };
		counters[n++] = (struct sim_counter) { "... as wanted", &tests[i].seen };
	}
	return n;
}

bool forms_report(void)
{
	unsigned int i, few = 0, missing = 0, weak = 0;
	u64 rounds = 0;

	for (i = 0; i < test_count; i++) {
		struct test *each = &tests[i];

		rounds += each->rounds;
		few += each->rounds < ROUNDS_ENOUGH;
		weak += each->wanted == each->form->forbidden && each->seen;
		if (each->wanted && !each->seen && each->rounds >= ROUNDS_ENOUGH) {
			printf("%s: %s was never seen in %llu rounds\n", each->name,
			       each->wanted, each->rounds);
			missing++;
		}
	}
	printf("%u litmus tests, %llu rounds; %u had less than %u rounds; %u saw a weak outcome, %u lack one\n",
	       test_count, rounds, few, ROUNDS_ENOUGH, weak, missing);
	return !missing;
}

/* ---- steps ---- */

static unsigned int thread_of(unsigned int role)
{
	return (first_slot + role * stride) % thread_count;
}

static unsigned int role_of(const struct thread *thread)
{
	unsigned int role;

	for (role = 0; role < litmus.roles; role++)
		if (thread_of(role) == thread->number)
			return role;
	return LITMUS_ROLES;
}

static bool is_half(unsigned int role, const struct litmus_step *step)
{
	return halves || (!wholes && (salt >> (role * LITMUS_STEPS +
					       (step - litmus.step[role])) % 64 & 1));
}

/* Reduce a loaded value to two bits: that of this round, or STRANGE. */
static unsigned int decode(u64 value, bool half)
{
	u32 low = value;

	if (low >> 2 != round_number)
		return LITMUS_STRANGE;
	if (!half && wholes && value >> 32 != low &&
	    (config.policy == KDSM_POLICY_STRICT || !sc.racy))
		return LITMUS_STRANGE;
	return low & 3;
}

static u64 load(struct thread *thread, u64 place, unsigned int size)
{
	u64 value;

	thread_load(thread, place, size, &value);
	counts.loads++;
	return value;
}

static void touch(struct thread *thread, const struct litmus_step *step, bool half)
{
	u64 place = places[step->variable], block = block_of(place >> PAGE_SHIFT), old = 0;
	u64 value = round_number << 2 | step->value;
	unsigned int tries = 0, size = half ? 4 : 8;
	int err;

	value |= value << 32;
	if (step->kind == LITMUS_LOAD) {
		old = load(thread, place, size);
	} else if (step->kind == LITMUS_STORE) {
		thread_store(thread, place, size, value);
	} else {
		do {
			err = cpu_exchange(thread->node, thread->process, place, value, size,
					   &old);
		} while (try_again(err, &tries, block, block, "exchange"));
	}
	counts.stores += step->kind != LITMUS_LOAD;
	if (step->kind != LITMUS_STORE)
		outcome |= decode(old, half) << 2 * step->which;
	sim_event(block, "%u %s %c, which is %llx", thread->number,
		  step->kind == LITMUS_STORE ? "stores" : "loads", 'x' + step->variable,
		  step->kind == LITMUS_STORE ? value : old);
}

static void receive(struct thread *thread, unsigned int which)
{
	while (!signals[which].sent) {
		sim_prepare(&signals[which].queue);
		sim_block(&signals[which].queue, U64_MAX);
	}
	sync_acquire(thread, &signals[which].signature);
}

static void send(struct thread *thread, unsigned int which)
{
	struct kdsm_signature *signature = malloc(sizeof(*signature));

	sync_release(thread, signature);
	signals[which].signature = *signature;
	free(signature);
	signals[which].sent = true;
	sim_wake(&signals[which].queue);
}

static void step_do(struct thread *thread, unsigned int role, const struct litmus_step *step)
{
	switch (step->kind) {
	case LITMUS_BARRIER:
		barrier_pass(thread);
		break;
	case LITMUS_SEND:
		send(thread, step->which);
		break;
	case LITMUS_RECEIVE:
		receive(thread, step->which);
		break;
	case LITMUS_LOCK:
		lock_take(thread, step->which, true);
		break;
	case LITMUS_UNLOCK:
		lock_drop(thread, step->which, true);
		break;
	default:
		touch(thread, step, is_half(role, step));
	}
}

/* ---- rounds ---- */

/*
 * The thread that gives a variable its old value: mostly one that stores to it in the round. Other
 * nodes fetch from the last writer that they know, so they then see that store early.
 */
static unsigned int choose_clearer(unsigned int variable)
{
	unsigned int role, i;

	for (role = 0; role < litmus.roles && !sim_chance(3); role++)
		for (i = 0; i < litmus.steps[role]; i++)
			if (litmus.step[role][i].kind == LITMUS_STORE &&
			    litmus.step[role][i].variable == variable)
				return thread_of(role);
	return sim_below(thread_count);
}

static void round_begin(void)
{
	unsigned int i;

	round_number++;
	outcome = 0;
	first_slot = sim_below(thread_count);
	/* Roles on neighbouring nodes, or anywhere; a slot has at most one of them. */
	stride = config.processes * config.threads;
	if (stride * litmus.roles > thread_count || sim_chance(2))
		stride = 1;
	salt = sim_random();
	i = sim_below(3);
	halves = i == 0;
	wholes = i == 1;
	stagger = sim_chance(3) ? 20 * sim.delay : 0;
	for (i = 0; i < LITMUS_SIGNATURES; i++)
		signals[i].sent = false;
	memset(known, 0, sizeof(known));
	for (i = 0; i < LITMUS_VARIABLES; i++)
		clearer[i] = choose_clearer(i);
}

/*
 * Make copies that may be stale in the round: mostly of what the role loads last, because a weak
 * outcome is a last load that is too old.
 */
static void copies_make(struct thread *thread)
{
	unsigned int role = role_of(thread), i;

	if (role < LITMUS_ROLES && sim_chance(2)) {
		for (i = litmus.steps[role]; i && litmus.step[role][i - 1].kind != LITMUS_LOAD; i--)
			;
		if (i)
			load(thread, places[litmus.step[role][i - 1].variable], 4);
		return;
	}
	if (!sim_chance(config.processes * config.threads))
		return;
	for (i = sim_below(4); i; i--)
		load(thread, places[sim_below(LITMUS_VARIABLES)], 4);
}

/* Give each variable its old value. */
static void round_prepare(struct thread *thread)
{
	struct litmus_step step = { .kind = LITMUS_STORE, .value = LITMUS_OLD };
	unsigned int i;

	for (i = 0; i < LITMUS_VARIABLES; i++) {
		step.variable = i;
		if (clearer[i] == thread->number)
			touch(thread, &step, false);
	}
	barrier_pass(thread);
	copies_make(thread);
}

static void role_run(struct thread *thread, unsigned int role)
{
	unsigned int i;

	if (stagger)
		sim_sleep(1 + role * stagger);
	else if (sim_chance(2))
		sim_sleep(1 + sim_below(10 * sim.delay));
	for (i = 0; i < litmus.steps[role]; i++) {
		step_do(thread, role, &litmus.step[role][i]);
		if (sim_chance(3))
			sim_sleep(1 + sim_below(8 * sim.delay));
	}
}

static void idler_run(struct thread *thread)
{
	unsigned int i;

	for (i = 0; i < litmus.barriers; i++)
		barrier_pass(thread);
	if (sim_chance(4))
		load(thread, places[sim_below(LITMUS_VARIABLES)], 8);
}

/* All nodes see the same final values. */
static void finals_load(struct thread *thread)
{
	unsigned int i;
	u64 value;

	for (i = 0; i < LITMUS_VARIABLES; i++) {
		value = load(thread, places[i], 8);
		if (known[i] && value != finals[i])
			sim_fail(block_of(places[i] >> PAGE_SHIFT),
				 "%s: %c is %llx in the end, and %llx on node %u", test->name,
				 'x' + i, finals[i], value, thread->node);
		finals[i] = value;
		known[i] = true;
	}
}

static void judge(void)
{
	char text[64];
	unsigned int i;
	bool allowed;

	for (i = 0; i < LITMUS_VARIABLES; i++)
		outcome |= decode(finals[i], false) << 2 * (LITMUS_REGISTERS + i);
	allowed = config.policy == KDSM_POLICY_STRICT ? litmus_has(&sc, outcome) :
		  litmus_release_allows(&litmus, &sc, outcome);
	litmus_print(&litmus, outcome, text, sizeof(text));
	sim_event(SIM_NONE, "round %u:%s", round_number, text);
	if (!allowed)
		sim_fail(SIM_NONE, "%s:%s is forbidden", test->name, text);
	test->rounds++;
	test->seen += test->wanted && litmus_holds(test->wanted, outcome);
}

static void thread_run(void *arg)
{
	struct thread *thread = arg;
	unsigned int i, role;

	for (i = 0; i < config.rounds; i++) {
		threads_meet(thread);
		if (!thread->number)
			round_begin();
		threads_meet(thread);
		round_prepare(thread);
		threads_meet(thread);
		role = role_of(thread);
		if (role < LITMUS_ROLES)
			role_run(thread, role);
		else
			idler_run(thread);
		barrier_pass(thread);
		finals_load(thread);
		threads_meet(thread);
		if (!thread->number)
			judge();
	}
}

/* ---- seeds ---- */

void forms_choose(u64 seed)
{
	test = &tests[seed % test_count];
	config.policy = test->policy;
	config.locks = LITMUS_LOCKS;
	config.rounds = sim_between(10, 30);
	config.words = 0;
	/* Each role has a thread of its own. */
	while (sim.nodes * config.processes * config.threads < LITMUS_ROLES)
		if (config.processes < PROCESSES_MAX)
			config.processes++;
		else
			config.threads++;
}

void forms_start(void)
{
	bool apart = sim_chance(2);
	unsigned int i;

	prepare(test->form, test->sync);
	round_number = 0;
	memset(signals, 0, sizeof(signals));
	for (i = 0; i < LITMUS_VARIABLES; i++)
		places[i] = used_start(i % config.blocks) + (apart ? 64 : 8) * i;
	word_count = 0;
	sync_start();
	threads_start(thread_run);
}

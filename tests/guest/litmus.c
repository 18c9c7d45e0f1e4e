// SPDX-License-Identifier: GPL-2.0
/*
 * litmus [BATCHES]: litmus tests of both coherent policies, on every node at the same time,
 * in the language of litmus.h. KDSM_LITMUS_THREADS is the number of threads on a node (2),
 * KDSM_LITMUS_BATCHES the number of batches of each test (2).
 *
 * A block takes a millisecond to move. To run thousands of rounds nevertheless, a batch has
 * many instances of a test in the same blocks, each with its own variables. A thread does
 * the first step of a group of instances, then the second, and so on; within each instance
 * that is program order. The sizes of groups, the roles of threads, and the layout
 * (variables in blocks of their own, or side by side) differ from batch to batch, and there
 * are random pauses. Values contain the number of the batch, so nothing has to be cleared.
 */
#include <pthread.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "litmus.h"

#define INSTANCES	1024	/* of a batch, at most */
/* Offsets in the partitioned region */
#define BARRIER		0
#define PLACES		KDSM_TREE_BARRIER_SIZE
#define RESULTS		(PLACES + SIGNATURES * KDSM_SIGNATURE_PLACE)
#define SYNC_SIZE	(RESULTS + REGISTERS * INSTANCES)

static const struct litmus strict_tests[] = {
	{ "message passing", "x=1 y=1 | a=y b=x", "a=1 b=0" },
	{ "store buffering", "x=1 a=y | y=1 b=x", "a=0 b=0" },
	{ "load buffering", "a=x y=1 | b=y x=1", "a=1 b=1" },
	{ "IRIW", "x=1 | y=1 | a=x b=y | c=y d=x", "a=1 b=0 c=1 d=0" },
	{ "WRC", "x=1 | a=x y=1 | b=y c=x", "a=1 b=1 c=0" },
	{ "CoRR", "x=1 | a=x b=x", "a=1 b=0" },
	{ "CoWW", "x=1 x=2 | a=x b=x", "X!2 or a=2 b!2 or a=1 b=0" },
	{ "2+2W", "x=1 y=2 | y=1 x=2", "X=1 Y=1 or X=0 or Y=0" },
	{ "exchange", "a=x:1 | b=x:2", "a=0 b!1 or b=0 a!2 or a=0 X!2 or b=0 X!1 or a!0 b!0" },
};

static const struct litmus release_tests[] = {
	{ "message passing by a signature", "x=1 !0 | a=x ?0 b=x", "b!1" },
	{ "message passing by a barrier", "x=1 # | a=x # b=x", "b!1" },
	{ "store buffering", "x=1 a=y # | y=1 b=x # ", "X!1 or Y!1" },
	{ "store buffering with a barrier", "x=1 # a=y | y=1 # b=x", "a!1 or b!1" },
	{ "load buffering with a barrier", "a=x # y=1 | b=y # x=1", "a!0 or b!0 or X!1 or Y!1" },
	{ "WRC", "x=1 !0 | ?0 a=x y=1 !1 | ?1 b=y c=x", "a!1 or b!1 or c!1" },
	{ "IRIW, all ordered", "x=1 !0 !1 | y=1 !2 !3 | ?0 a=x ?2 b=y | ?3 c=y ?1 d=x",
	  "a!1 or b!1 or c!1 or d!1" },
	{ "IRIW, one half ordered", "x=1 !0 | y=1 !1 | ?0 a=x b=y | ?1 c=y d=x", "a!1 or c!1" },
	{ "CoRR", "x=1 !0 x=2 !1 | ?0 a=x b=x ?1 c=x d=x",
	  "a=0 or a=3 or b=0 or b=3 or c!2 or d!2" },
	{ "CoWW", "x=1 !0 | ?0 x=2 !1 | ?1 a=x b=x", "a!2 or b!2 or X!2" },
	{ "message passing by a lock", "(0 x=1 y=1 )0 | (0 a=y b=x )0", "a=1 b!1 or a=0 b!0" },
	{ "message passing by two locks", "(0 x=1 )0 (1 y=1 )1 | (1 a=y )1 (0 b=x )0", "a=1 b!1" },
	{ "store buffering with locks", "(0 x=1 )0 (1 a=y )1 | (1 y=1 )1 (0 b=x )0", "a=0 b=0" },
	{ "load buffering with locks", "(0 a=x )0 (1 y=1 )1 | (1 b=y )1 (0 x=1 )0", "a=1 b=1" },
	{ "WRC by locks", "(0 x=1 )0 | (0 a=x )0 (1 y=1 )1 | (1 b=y )1 (0 c=x )0", "a=1 b=1 c=0" },
	{ "WRC, seen at second hand", "(0 x=1 )0 | (0 a=x )0 (1 y=1 )1 | (1 b=y c=x )1",
	  "a=1 b=1 c=0" },
	{ "IRIW with locks", "(0 x=1 )0 | (1 y=1 )1 | (0 a=x )0 (1 b=y )1 | (1 c=y )1 (0 d=x )0",
	  "a=1 b=0 c=1 d=0" },
	{ "2+2W with a lock", "(0 x=1 y=2 )0 | (0 y=1 x=2 )0", "X=1 Y=1 or X=2 Y=2 or X=0 or Y=0" },
	{ "exchange with a lock", "(0 a=x x=1 )0 | (0 b=x x=2 )0 | (0 c=x )0",
	  "a=0 b!1 or b=0 a!2 or a=0 X!2 or b=0 X!1 or a!0 b!0" },
};

static struct kdsm_region *region, *sync_region;
static struct kdsm_tree_barrier barrier;
static struct kdsm_lock *locks[LOCKS];	/* only in policy release */
static uint64_t *words, variable_words;
static uint32_t block_size;
static bool strict;
static unsigned int threads, slots, batches, instances, batch;
static uint8_t results[REGISTERS][INSTANCES];	/* loaded by roles on this node */
static unsigned int outcomes[1 << 2 * (REGISTERS + VARIABLES)];
static bool mixed[sizeof(strict_tests) / sizeof(strict_tests[0])];

static void must(int error, const char *what)
{
	if (error)
		guest_die(what, error);
}

/* ---- roles ---- */

struct thread {
	unsigned int number;		/* on this node */
	uint64_t chance;
};

static uint64_t chance(struct thread *thread, unsigned int below)
{
	thread->chance = guest_mix(thread->chance);
	return thread->chance % below;
}

/*
 * The thread slot that has this role: roles go to slots in a random order of the batch,
 * which all nodes compute alike.
 */
static unsigned int slot_of(unsigned int role)
{
	unsigned int order[64], i, j, slot;

	for (i = 0; i < slots; i++)
		order[i] = i;
	for (i = slots - 1; i; i--) {
		j = guest_mix((uint64_t)batch << 32 | i) % (i + 1);
		slot = order[i];
		order[i] = order[j];
		order[j] = slot;
	}
	return order[role];
}

static unsigned int node_of(unsigned int role)
{
	return slot_of(role) % nodes;
}

static unsigned int role_of(const struct thread *thread)
{
	unsigned int role;

	for (role = 0; role < roles; role++)
		if (slot_of(role) == thread->number * nodes + node)
			return role;
	return ROLES;
}

static uint64_t *place_of(unsigned int variable, unsigned int instance)
{
	if (batch % 2)
		return words + VARIABLES * instance + variable;
	return words + variable * variable_words + instance;
}

/* Reduce a loaded value to two bits: that of this batch, OLD or STRANGE. */
static unsigned int decode(uint64_t value)
{
	if (value >> 2 == batch)
		return value & 3 ? value & 3 : STRANGE;
	return value >> 2 < batch ? OLD : STRANGE;
}

/* ---- running a test ---- */

static void meet_all(void)
{
	unsigned int culprit = 0;
	int err = kdsm_tree_barrier_wait(&barrier, 120 * SECOND, &culprit);

	if (err) {
		printf("# node %u is why\n", culprit);
		guest_die("kdsm_tree_barrier_wait", err);
	}
}

static void idle(struct thread *thread)
{
	unsigned int n = chance(thread, 2) ? chance(thread, 20000) : 0;

	while (n--)
		__asm__ volatile("pause" ::: "memory");
}

static void touch(const struct step *step, unsigned int instance)
{
	uint64_t *place = place_of(step->variable, instance);
	uint64_t value = (uint64_t)batch << 2 | step->value;

	switch (step->kind) {
	case STORE:
		__atomic_store_n(place, value, __ATOMIC_SEQ_CST);
		break;
	case LOAD:
		results[step->which][instance] = decode(__atomic_load_n(place, __ATOMIC_SEQ_CST));
		break;
	default:
		value = __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);
		results[step->which][instance] = decode(value);
	}
}

static void touch_group(struct thread *thread, const struct step *step, unsigned int count,
			unsigned int first, unsigned int group)
{
	unsigned int i, j;

	for (i = 0; i < count; i++) {
		for (j = first; j < first + group; j++)
			touch(&step[i], j);
		idle(thread);
	}
}

static void touch_all(struct thread *thread, const struct step *step, unsigned int count)
{
	/* 8 to 64 groups; the blocks may have to be fetched again for each. */
	unsigned int group = instances >> (3 + guest_mix(batch) % 4), first;

	for (first = 0; first < instances; first += group)
		touch_group(thread, step, count, first, group);
}

static uint64_t signature_place(unsigned int which)
{
	return PLACES + which * KDSM_SIGNATURE_PLACE;
}

static unsigned int receiver(unsigned int which)
{
	unsigned int role, i;

	for (role = 0; role < roles; role++)
		for (i = 0; i < steps[role]; i++)
			if (program[role][i].kind == RECEIVE && program[role][i].which == which)
				return node_of(role);
	bad_test("a signature for nobody");
}

static void synchronise(const struct step *step)
{
	struct kdsm_signature signature;

	switch (step->kind) {
	case SEND:
		must(kdsm_release(region, &signature), "kdsm_release");
		must(kdsm_signature_put(sync_region, receiver(step->which),
					signature_place(step->which), &signature, batch),
		     "kdsm_signature_put");
		break;
	case RECEIVE:
		must(kdsm_signature_wait(sync_region, signature_place(step->which), batch,
					 &signature, 120 * SECOND), "kdsm_signature_wait");
		must(kdsm_acquire(region, &signature), "kdsm_acquire");
		break;
	default:
		meet_all();
	}
}

/* Lock and unlock for each group. */
static void run_locked(struct thread *thread, unsigned int role)
{
	unsigned int groups = (block_size > 65536 ? 2U : 8U) << guest_mix(batch) % 3;
	unsigned int group = instances / groups, i, k;
	const struct step *step;

	for (i = 0; i < groups; i++) {
		for (k = 0; k < steps[role]; k++) {
			step = &program[role][k];
			if (step->kind == LOCK)
				must(kdsm_lock(locks[step->which]), "kdsm_lock");
			else if (step->kind == UNLOCK)
				must(kdsm_unlock(locks[step->which]), "kdsm_unlock");
			else
				touch_group(thread, step, 1, i * group, group);
		}
		idle(thread);
	}
}

static void run_role(struct thread *thread, unsigned int role)
{
	const struct step *step = program[role], *end = step + steps[role];
	unsigned int i;

	while (step < end) {
		if (step->kind >= BARRIER_ALL) {
			synchronise(step++);
			continue;
		}
		for (i = 1; step + i < end && step[i].kind < BARRIER_ALL; i++)
			;
		touch_all(thread, step, i);
		step += i;
	}
}

/* A thread without a role reads, which takes blocks away from the threads that have roles. */
static void run_none(struct thread *thread)
{
	unsigned int i;

	for (i = 0; i < barriers; i++)
		meet_all();
	for (i = 0; i < 16; i++) {
		__atomic_load_n(place_of(chance(thread, VARIABLES), chance(thread, instances)),
				__ATOMIC_SEQ_CST);
		idle(thread);
	}
}

/*
 * On node 0: count the outcomes, from the values that the roles of all nodes loaded and the
 * variables' final values.
 */
static void tally(void)
{
	static uint8_t got[REGISTERS][INSTANCES];
	unsigned int i, k, outcome;

	for (k = 0; k < REGISTERS; k++)
		if (loader[k] < ROLES)
			must(kdsm_get(sync_region, node_of(loader[k]), RESULTS + k * INSTANCES,
				      got[k], instances), "kdsm_get");
	for (i = 0; i < instances; i++) {
		for (k = 0, outcome = 0; k < REGISTERS; k++)
			outcome |= got[k][i] << 2 * k;
		for (k = 0; k < VARIABLES; k++)
			outcome |= decode(__atomic_load_n(place_of(k, i), __ATOMIC_SEQ_CST)) <<
				   2 * (REGISTERS + k);
		outcomes[outcome]++;
	}
}

static void *thread_run(void *arg)
{
	struct thread *thread = arg;
	unsigned int i, k, role, first = batch;

	for (i = 0; i < batches; i++) {
		meet_all();
		/* All threads of the node store the same value. */
		__atomic_store_n(&batch, first + i + 1, __ATOMIC_SEQ_CST);
		meet_all();
		role = role_of(thread);
		idle(thread);
		if (role < ROLES && has_locks)
			run_locked(thread, role);
		else if (role < ROLES)
			run_role(thread, role);
		else
			run_none(thread);
		for (k = 0; k < REGISTERS; k++)
			if (role < ROLES && loader[k] == role)
				must(kdsm_put(sync_region, node, RESULTS + k * INSTANCES,
					      results[k], instances), "kdsm_put");
		meet_all();
		if (node == 0 && !thread->number)
			tally();
	}
	meet_all();
	return NULL;
}

/* ---- results ---- */

static void print_outcome(unsigned int outcome)
{
	char name;

	for (name = 'a'; name < 'a' + REGISTERS; name++)
		if (loader[name - 'a'] < ROLES)
			printf(" %c=%u", name, value_of(outcome, name));
	for (name = 'X'; name < 'X' + VARIABLES; name++)
		if (strchr(test->forbidden, name))
			printf(" %c=%u", name, value_of(outcome, name));
}

/*
 * Clear the registers and variables that the test does not use, so that outcomes which
 * differ only there count as one.
 */
static unsigned int visible(unsigned int outcome)
{
	unsigned int mask = 0, k;

	for (k = 0; k < REGISTERS; k++)
		mask |= loader[k] < ROLES ? 3U << 2 * k : 0;
	for (k = 0; k < VARIABLES; k++)
		mask |= strchr(test->forbidden, 'X' + k) ? 3U << 2 * (REGISTERS + k) : 0;
	return outcome & mask;
}

static int report(double seconds)
{
	static unsigned int sums[sizeof(outcomes) / sizeof(outcomes[0])];
	const unsigned int count = sizeof(outcomes) / sizeof(outcomes[0]);
	unsigned int i, k, rounds = 0, kinds = 0, bad = 0;

	memset(sums, 0, sizeof(sums));
	for (i = 0; i < count; i++)
		sums[visible(i)] += outcomes[i];
	printf("#   %s:", test->programs);
	for (i = 0; i < count; i++) {
		bool strange = false;

		if (!sums[i])
			continue;
		rounds += sums[i];
		kinds++;
		for (k = 0; strict && k < REGISTERS + VARIABLES; k++)
			strange |= (i >> 2 * k & 3) == STRANGE;
		print_outcome(i);
		printf(": %u%s;", sums[i], strange || is_forbidden(i) ? " FORBIDDEN" : "");
		bad += strange || is_forbidden(i) ? sums[i] : 0;
	}
	printf("\n");
	if (strict)
		mixed[test - strict_tests] |= kinds > 1;
	printf("%sok litmus %s: %s, blocks of %u: %u rounds, %u outcomes # %.1f s\n",
	       bad ? "not " : "", strict ? "strict" : "release", test->name, block_size,
	       rounds, kinds, seconds);
	return bad != 0;
}

static int run_test(void)
{
	pthread_t ids[8];
	struct thread own[8];
	struct timespec begin, end;
	unsigned int i;

	parse();
	if (roles > slots) {
		if (node == 0)
			printf("ok litmus %s # SKIP it takes %u threads\n", test->name, roles);
		return 0;
	}
	memset(outcomes, 0, sizeof(outcomes));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (i = 0; i < threads; i++) {
		own[i] = (struct thread) { i, (uint64_t)batch << 16 | node << 8 | i };
		must(-pthread_create(&ids[i], NULL, thread_run, &own[i]), "pthread_create");
	}
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return node ? 0 : report(end.tv_sec - begin.tv_sec +
				 (end.tv_nsec - begin.tv_nsec) / 1e9);
}

/* ---- policies and block sizes ---- */

static int run_tests(const struct litmus *tests, unsigned int count)
{
	struct kdsm_region_attr attr = {
		.policy = strict ? KDSM_POLICY_STRICT : KDSM_POLICY_RELEASE,
		.block_size = block_size,
	};
	struct kdsm_lock_attr lock_attr = { .kind = KDSM_LOCK_DMCS };
	uint32_t participants[64];
	unsigned int i;
	char name[32];
	int status = 0;

	instances = block_size <= 4096 ? 256 : INSTANCES;
	variable_words = block_size / 8;
	attr.size = VARIABLES * (uint64_t)block_size;
	batch = 0;
	snprintf(name, sizeof(name), "litmus-%s-%u", strict ? "strict" : "release", block_size);
	must(kdsm_region_open_coherent(kdsm, name, &attr, SYNC_SIZE, &region, &sync_region),
	     "kdsm_region_open_coherent");
	words = kdsm_region_address(region);
	for (i = 0; i < LOCKS && !strict; i++)
		must(kdsm_lock_create(region, NULL, i, &lock_attr, &locks[i]), "kdsm_lock_create");
	for (i = 0; i < nodes; i++)
		participants[i] = threads;
	must(kdsm_tree_barrier_init(&barrier, region, sync_region, BARRIER, participants),
	     "kdsm_tree_barrier_init");
	for (i = 0; i < count; i++) {
		test = &tests[i];
		status |= run_test();
	}
	meet();
	for (i = 0; i < LOCKS && !strict; i++)
		kdsm_lock_close(locks[i]);
	kdsm_region_close(region);
	kdsm_region_close(sync_region);
	return status;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 4096, 65536, 2 << 20 };
	const char *wanted = getenv("KDSM_LITMUS_BATCHES"), *more = getenv("KDSM_LITMUS_THREADS");
	unsigned int i, all;
	int status = 0;

	guest_open("litmus-meeting");
	threads = more ? strtoul(more, NULL, 0) : 2;
	all = argc > 1 ? strtoul(argv[1], NULL, 0) : wanted ? strtoul(wanted, NULL, 0) : 2;
	slots = nodes * threads;
	if (!threads || threads > 8 || slots > 64 || !all)
		guest_die("numbers of threads or batches", -EINVAL);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block_size = sizes[i];
		batches = all;
		strict = true;
		status |= run_tests(strict_tests, sizeof(strict_tests) / sizeof(strict_tests[0]));
		strict = false;
		status |= run_tests(release_tests,
				    sizeof(release_tests) / sizeof(release_tests[0]));
	}
	/*
	 * If all rounds of a test end alike, its roles have probably not run concurrently.
	 * That may happen, so it is enough if more than half of the tests end in several ways.
	 */
	for (i = 0, all = 0; i < sizeof(mixed); i++)
		all += mixed[i];
	if (node == 0)
		printf("%sok litmus strict: %u of %zu tests ended in several ways\n",
		       2 * all > sizeof(mixed) ? "" : "not ", all, sizeof(mixed));
	status |= node == 0 && 2 * all <= sizeof(mixed);
	guest_close();
	return status;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * litmus [-b SIZE] [BATCHES]: the forms of tests/litmus in both coherent policies, on every node at
 * the same time, with blocks of all sizes, or of SIZE bytes only. KDSM_LITMUS_THREADS is the number
 * of threads on a node (2), KDSM_LITMUS_BATCHES the number of batches of each test (1).
 *
 * A block takes a millisecond to move. To run thousands of rounds nevertheless, a batch has
 * many instances of a test in the same blocks, each with its own variables. A thread does
 * the first step of a group of instances, then the second, and so on; within each instance
 * that is program order. The sizes of groups, the roles of threads, the layout
 * (variables in blocks of their own, or side by side) and the kind and size of accesses differ
 * from batch to batch, and there are random pauses. Values contain the number of the batch, so
 * nothing has to be cleared.
 *
 * Policy strict must be sequentially consistent if accesses are atomic, or have fences between
 * them. Plain accesses may pass each other in the buffers of stores of x86. In policy release a
 * program without data races must be sequentially consistent.
 *
 * A test goes on until the outcome that must be seen was seen. From the fourth batch on, each role
 * begins later than the role before, until at last one runs after the other.
 */
#include <pthread.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "guest.h"
#include "../litmus/litmus.h"

#define INSTANCES	1024	/* of a batch, at most */
#define BATCHES		24	/* of a test that waits for an outcome, at most */
#define SPREAD		2	/* sizes of blocks over which forms are spread, at most */
/* Offsets in the partitioned region */
#define BARRIER		0
#define PLACES		KDSM_TREE_BARRIER_SIZE
#define RESULTS		(PLACES + LITMUS_SIGNATURES * KDSM_SIGNATURE_PLACE)
#define MORE		(RESULTS + LITMUS_REGISTERS * INSTANCES)
#define SYNC_SIZE	(MORE + 8)

/* How a batch accesses variables, if the policy is strict */
enum access { ATOMIC, PLAIN, FENCED, ACCESSES };

/* Sizes of the accesses of a batch, in bytes */
enum width { EIGHT, FOUR, MIXED, WIDTHS };

/* The current test */
static const struct litmus_form *form;
static struct litmus test;
static struct litmus_set allowed_sc, allowed_tso;

static struct kdsm_region *region, *sync_region;
static struct kdsm_tree_barrier barrier;
static struct kdsm_lock *locks[LITMUS_LOCKS];
static uint64_t *words, variable_words;
static uint32_t block_size;
static bool strict;
static unsigned int threads, slots, batches, instances, batch;
static unsigned int done;		/* batches of this test that have begun */
static uint64_t more;			/* whether a further batch follows */
static uint8_t results[LITMUS_REGISTERS][INSTANCES];	/* loaded by roles on this node */
/* On node 0: */
static unsigned int outcomes[LITMUS_OUTCOMES], bad;
static bool seen;
static unsigned int tests, mixed;	/* of policy strict; those that ended in several ways */

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

	for (role = 0; role < test.roles; role++)
		if (slot_of(role) == thread->number * nodes + node)
			return role;
	return LITMUS_ROLES;
}

static uint64_t *place_of(unsigned int variable, unsigned int instance)
{
	if (batch % 2)
		return words + LITMUS_VARIABLES * instance + variable;
	return words + variable * variable_words + instance;
}

static enum access access_of_batch(void)
{
	return strict ? guest_mix(batch) / 8 % ACCESSES : PLAIN;
}

static enum width width_of_batch(void)
{
	return guest_mix(batch) / 64 % WIDTHS;
}

/* Whether step number i of the role accesses half of the variable */
static bool is_half(unsigned int role, const struct litmus_step *step)
{
	enum width width = width_of_batch();

	return width == FOUR ||
	       (width == MIXED && guest_mix((uint64_t)batch << 16 | role << 8 |
					    (step - test.step[role])) % 2);
}

/*
 * Reduce a loaded value to two bits: that of this batch, OLD or STRANGE. An access of eight bytes
 * stores the value in both halves.
 */
static unsigned int decode(uint64_t value, bool half)
{
	uint32_t low = value;

	if (low >> 2 != batch)
		return low >> 2 < batch ? LITMUS_OLD : LITMUS_STRANGE;
	if (!half && width_of_batch() == EIGHT && value >> 32 != low &&
	    (strict || !allowed_sc.racy))
		return LITMUS_STRANGE;
	return low & 3 ? low & 3 : LITMUS_STRANGE;
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

static void store(uint64_t *place, uint64_t value, bool half, int order)
{
	if (half)
		__atomic_store_n((uint32_t *)place, value, order);
	else
		__atomic_store_n(place, value << 32 | value, order);
}

static uint64_t load(uint64_t *place, bool half, int order)
{
	return half ? __atomic_load_n((uint32_t *)place, order) : __atomic_load_n(place, order);
}

static uint64_t exchange(uint64_t *place, uint64_t value, bool half)
{
	if (half)
		return __atomic_exchange_n((uint32_t *)place, value, __ATOMIC_SEQ_CST);
	return __atomic_exchange_n(place, value << 32 | value, __ATOMIC_SEQ_CST);
}

static void touch(const struct litmus_step *step, unsigned int instance, bool half, int order)
{
	uint64_t *place = place_of(step->variable, instance);
	uint64_t value = (uint64_t)batch << 2 | step->value;

	if (step->kind == LITMUS_STORE)
		store(place, value, half, order);
	else if (step->kind == LITMUS_LOAD)
		results[step->which][instance] = decode(load(place, half, order), half);
	else
		results[step->which][instance] = decode(exchange(place, value, half), half);
}

static void touch_group(struct thread *thread, unsigned int role,
			const struct litmus_step *step, unsigned int count,
			unsigned int first, unsigned int group)
{
	int order = access_of_batch() == ATOMIC ? __ATOMIC_SEQ_CST : __ATOMIC_RELAXED;
	unsigned int i, j;

	for (i = 0; i < count; i++) {
		bool half = is_half(role, &step[i]);

		for (j = first; j < first + group; j++)
			touch(&step[i], j, half, order);
		if (access_of_batch() == FENCED)
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
		idle(thread);
	}
}

static void touch_all(struct thread *thread, unsigned int role, const struct litmus_step *step,
		      unsigned int count)
{
	/* 8 to 64 groups; the blocks may have to be fetched again for each. */
	unsigned int group = instances >> (3 + guest_mix(batch) % 4), first;

	for (first = 0; first < instances; first += group)
		touch_group(thread, role, step, count, first, group);
}

static uint64_t signature_place(unsigned int which)
{
	return PLACES + which * KDSM_SIGNATURE_PLACE;
}

static unsigned int receiver(unsigned int which)
{
	unsigned int role, i;

	for (role = 0; role < test.roles; role++)
		for (i = 0; i < test.steps[role]; i++)
			if (test.step[role][i].kind == LITMUS_RECEIVE &&
			    test.step[role][i].which == which)
				return node_of(role);
	guest_die("a signature for nobody", -EINVAL);
	return 0;
}

static void synchronise(const struct litmus_step *step)
{
	struct kdsm_signature signature;

	switch (step->kind) {
	case LITMUS_SEND:
		must(kdsm_release(region, &signature), "kdsm_release");
		must(kdsm_signature_put(sync_region, receiver(step->which),
					signature_place(step->which), &signature, batch),
		     "kdsm_signature_put");
		break;
	case LITMUS_RECEIVE:
		must(kdsm_signature_wait(sync_region, signature_place(step->which), batch,
					 120 * SECOND, &signature), "kdsm_signature_wait");
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
	const struct litmus_step *step;

	for (i = 0; i < groups; i++) {
		for (k = 0; k < test.steps[role]; k++) {
			step = &test.step[role][k];
			if (step->kind == LITMUS_LOCK)
				must(kdsm_lock(locks[step->which]), "kdsm_lock");
			else if (step->kind == LITMUS_UNLOCK)
				must(kdsm_unlock(locks[step->which]), "kdsm_unlock");
			else
				touch_group(thread, role, step, 1, i * group, group);
		}
		idle(thread);
	}
}

static bool has_locks(void)
{
	return test.step[0][0].kind == LITMUS_LOCK;
}

static void run_role(struct thread *thread, unsigned int role)
{
	const struct litmus_step *step = test.step[role], *end = step + test.steps[role];
	unsigned int i;

	while (step < end) {
		if (!litmus_is_access(step)) {
			synchronise(step++);
			continue;
		}
		for (i = 1; step + i < end && litmus_is_access(&step[i]); i++)
			;
		touch_all(thread, role, step, i);
		step += i;
	}
}

/* A thread without a role reads, which takes blocks away from the threads that have roles. */
static void run_none(struct thread *thread)
{
	unsigned int i;

	for (i = 0; i < test.barriers; i++)
		meet_all();
	for (i = 0; i < 16; i++) {
		__atomic_load_n(place_of(chance(thread, LITMUS_VARIABLES),
					 chance(thread, instances)), __ATOMIC_SEQ_CST);
		idle(thread);
	}
}

/* Begin later in each further batch, and the later, the higher the number of the role is. */
static void wait_for_turn(unsigned int role)
{
	struct timespec pause = { .tv_nsec = done > 3 ? role * (done - 3) * 10 * MS : 0 };

	nanosleep(&pause, NULL);
}

static bool is_allowed(unsigned int outcome)
{
	if (!strict)
		return litmus_release_allows(&test, &allowed_sc, outcome);
	if (access_of_batch() == PLAIN && !test.has_own_sync)
		return litmus_has(&allowed_tso, outcome);
	return litmus_has(&allowed_sc, outcome);
}

static void note_outcome(unsigned int outcome)
{
	char text[64];

	if (!is_allowed(outcome) && bad++ < 10) {
		litmus_print(&test, outcome, text, sizeof(text));
		printf("# batch %u, access %u, sizes %u:%s is FORBIDDEN\n", batch,
		       access_of_batch(), width_of_batch(), text);
	}
	outcomes[outcome]++;
	seen |= form->seen && litmus_holds(form->seen, outcome);
}

/* Whether the outcome that must be seen is possible, and was not seen yet */
static bool is_missing(void)
{
	bool possible = form->seen && (strict || test.sync == LITMUS_LOCKED);

	return possible && !seen;
}

/*
 * On node 0: note the outcomes, from the values that the roles of all nodes loaded and the
 * variables' final values, and say whether a further batch follows.
 */
static void tally(void)
{
	static uint8_t got[LITMUS_REGISTERS][INSTANCES];
	unsigned int i, k, outcome;
	uint64_t next;

	for (k = 0; k < LITMUS_REGISTERS; k++)
		if (test.loader[k] < LITMUS_ROLES)
			must(kdsm_get(sync_region, node_of(test.loader[k]),
				      RESULTS + k * INSTANCES, got[k], instances), "kdsm_get");
	for (i = 0; i < instances; i++) {
		for (k = 0, outcome = 0; k < LITMUS_REGISTERS; k++)
			if (test.loader[k] < LITMUS_ROLES)
				outcome |= got[k][i] << 2 * k;
		for (k = 0; k < LITMUS_VARIABLES; k++)
			outcome |= decode(load(place_of(k, i), false, __ATOMIC_SEQ_CST), false) <<
				   2 * (LITMUS_REGISTERS + k);
		note_outcome(outcome);
	}
	next = done < batches || (is_missing() && done < BATCHES);
	must(kdsm_put(sync_region, 0, MORE, &next, sizeof(next)), "kdsm_put");
}

static void run_batch(struct thread *thread)
{
	unsigned int role = role_of(thread), k;

	idle(thread);
	if (role < LITMUS_ROLES)
		wait_for_turn(role);
	if (role < LITMUS_ROLES && has_locks())
		run_locked(thread, role);
	else if (role < LITMUS_ROLES)
		run_role(thread, role);
	else
		run_none(thread);
	for (k = 0; k < LITMUS_REGISTERS; k++)
		if (role < LITMUS_ROLES && test.loader[k] == role)
			must(kdsm_put(sync_region, node, RESULTS + k * INSTANCES,
				      results[k], instances), "kdsm_put");
	meet_all();
	if (node == 0 && !thread->number)
		tally();
}

static void *thread_run(void *arg)
{
	struct thread *thread = arg;

	for (;;) {
		meet_all();
		if (!thread->number) {
			if (done)
				must(kdsm_get(sync_region, 0, MORE, &more, sizeof(more)),
				     "kdsm_get");
			batch += more;
			done++;
		}
		meet_all();
		if (!more)
			return NULL;
		run_batch(thread);
	}
}

/* ---- results ---- */

static int report(double seconds)
{
	unsigned int i, rounds = 0, kinds = 0;
	char text[64];

	printf("#   %s:", form->programs);
	for (i = 0; i < LITMUS_OUTCOMES; i++) {
		if (!outcomes[i])
			continue;
		rounds += outcomes[i];
		kinds++;
		litmus_print(&test, i, text, sizeof(text));
		if (kinds <= 20)
			printf("%s: %u;", text, outcomes[i]);
	}
	printf("\n");
	if (is_missing())
		printf("#   %s was never seen\n", form->seen);
	tests += strict;
	mixed += strict && kinds > 1;
	printf("%sok litmus %s: %s, %s, blocks of %u: %u rounds, %u outcomes # %.1f s\n",
	       bad || is_missing() ? "not " : "", strict ? "strict" : "release", form->name,
	       litmus_sync_names[test.sync], block_size, rounds, kinds, seconds);
	return bad || is_missing();
}

static int run_test(void)
{
	pthread_t ids[8];
	struct thread own[8];
	struct timespec begin, end;
	unsigned int i;

	memset(outcomes, 0, sizeof(outcomes));
	bad = 0;
	seen = false;
	done = 0;
	more = 1;
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

/* Parse the form and find what is allowed. False: the test says nothing, or has no room. */
static bool prepare(enum litmus_sync sync)
{
	const char *wrong = litmus_parse(form, sync, &test);

	if (wrong) {
		printf("# %s: what is %s\n", form->name, wrong);
		guest_die("a form", -EINVAL);
	}
	if (test.roles > slots) {
		if (node == 0 && sync == LITMUS_ALONE)
			printf("ok litmus %s # SKIP it takes %u threads\n", form->name, test.roles);
		return false;
	}
	litmus_explore(&test, LITMUS_SC, &allowed_sc);
	if (strict && !test.has_own_sync)
		litmus_explore(&test, LITMUS_TSO, &allowed_tso);
	return litmus_is_test(&test, &allowed_sc);
}

/* ---- policies and block sizes ---- */

/*
 * Run the forms with blocks of size number "size". Forms with their own synchronisation run with
 * all sizes, each other form with one of the SPREAD smallest: larger blocks take too long to move.
 */
static int run_forms(unsigned int size, unsigned int sizes)
{
	unsigned int i, sync, spread = sizes < SPREAD ? sizes : SPREAD;
	int status = 0;

	for (i = 0; i < litmus_form_count; i++) {
		form = &litmus_forms[i];
		for (sync = 0; sync < LITMUS_SYNCS; sync++) {
			if (strict && sync != LITMUS_ALONE)
				continue;
			if (form->seen && (i + sync) % spread != size)
				continue;
			if (prepare(sync))
				status |= run_test();
		}
	}
	return status;
}

static int run_policy(unsigned int size, unsigned int sizes)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.policy = strict ? KDSM_POLICY_STRICT : KDSM_POLICY_RELEASE,
		.block_size = block_size,
	};
	struct kdsm_lock_attr lock_attr = { .argsz = sizeof(lock_attr), .kind = KDSM_LOCK_DMCS };
	uint32_t participants[64];
	unsigned int i;
	char name[32];
	int status;

	instances = block_size <= 4096 ? 128 : INSTANCES;
	variable_words = block_size / 8;
	attr.size = LITMUS_VARIABLES * (uint64_t)block_size;
	batch = 0;
	snprintf(name, sizeof(name), "litmus-%s-%u", strict ? "strict" : "release", block_size);
	must(kdsm_region_open_coherent(kdsm, name, &attr, SYNC_SIZE, &region, &sync_region),
	     "kdsm_region_open_coherent");
	words = kdsm_region_address(region);
	for (i = 0; i < LITMUS_LOCKS; i++)
		must(kdsm_lock_create(region, NULL, i, &lock_attr, &locks[i]), "kdsm_lock_create");
	for (i = 0; i < nodes; i++)
		participants[i] = threads;
	must(kdsm_tree_barrier_init(&barrier, region, sync_region, BARRIER, participants),
	     "kdsm_tree_barrier_init");
	status = run_forms(size, sizes);
	meet();
	for (i = 0; i < LITMUS_LOCKS; i++)
		kdsm_lock_close(locks[i]);
	kdsm_region_close(region);
	kdsm_region_close(sync_region);
	return status;
}

int main(int argc, char **argv)
{
	static const uint32_t all_sizes[] = { 4096, 65536, 2 << 20 };
	const uint32_t *sizes = all_sizes;
	unsigned int count = sizeof(all_sizes) / sizeof(all_sizes[0]);
	uint32_t only;
	const char *wanted = getenv("KDSM_LITMUS_BATCHES"), *many = getenv("KDSM_LITMUS_THREADS");
	unsigned int i;
	int option, status = 0;

	while ((option = getopt(argc, argv, "b:")) != -1) {
		if (option != 'b')
			return 2;
		only = strtoul(optarg, NULL, 0);
		sizes = &only;
		count = 1;
	}
	guest_open("litmus-meeting");
	threads = many ? strtoul(many, NULL, 0) : 2;
	wanted = optind < argc ? argv[optind] : wanted;
	batches = wanted ? strtoul(wanted, NULL, 0) : 1;
	slots = nodes * threads;
	if (!threads || threads > 8 || slots > 64 || !batches)
		guest_die("numbers of threads or batches", -EINVAL);
	for (i = 0; i < count; i++) {
		block_size = sizes[i];
		strict = true;
		status |= run_policy(i, count);
		strict = false;
		status |= run_policy(i, count);
	}
	/*
	 * If all rounds of a test end alike, its roles have probably not run concurrently.
	 * That may happen, so it is enough if more than half of the tests end in several ways.
	 */
	if (node == 0)
		printf("%sok litmus strict: %u of %u tests ended in several ways\n",
		       2 * mixed > tests ? "" : "not ", mixed, tests);
	status |= node == 0 && 2 * mixed <= tests;
	guest_close();
	return status;
}

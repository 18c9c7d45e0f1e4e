// SPDX-License-Identifier: GPL-2.0
/*
 * Searches in windows, where small parcels and small tables make them repeat their steps: the
 * results stay exact. And parcels that hold anything but a BDD.
 */
#include "unit.h"
#include "bdd.h"
#include "jobs.h"
#include "models.h"
#include "bdd/parcel.h"

#define MOST_DIGITS	8	/* of the number of states */
#define FEW_DIGITS	2	/* where a parcel holds only some */

static unsigned int of_models(struct expected *expected)
{
	unsigned int n = read_expected(expected, 20);

	assert_true(n >= 6);
	return n;
}

static void prepare_model(struct job *job, unsigned int nodes, unsigned int workers,
			  const struct expected *expected)
{
	static char path[8192];

	snprintf(path, sizeof(path), "%s/%s.pnml", models, expected->model);
	prepare(job, nodes, workers, path);
}

static void check(const struct job *job, const struct expected *expected)
{
	char *states = mpz_get_str(NULL, 10, job->result.states);

	assert_string_equal(states, expected->states);
	free(states);
	assert_true(job->result.complete);
	assert_int_equal(job->result.nodes, expected->nodes);
	assert_int_equal(job->result.levels, expected->levels);
}

/* A set of states that does not fit into a parcel takes several exchanges of the same round. */
static void small_parcels(void **state)
{
	struct expected expected[20];
	unsigned int n = of_models(expected), i, nodes;
	struct job job[3];

	(void)state;
	for (i = 0; i < n; i++) {
		if (strlen(expected[i].states) > FEW_DIGITS)
			continue;
		for (nodes = 2; nodes <= 3; nodes++) {
			kd_parcel_room = nodes == 2 ? 1 : 50;
			sim_start(nodes);
			prepare_model(job, nodes, 2, &expected[i]);
			run_well(job, nodes);
			check(&job[0], &expected[i]);
			drop(job, nodes);
			sim_stop();
		}
	}
	kd_parcel_room = 0;
}

/* Tables that are too small are refused; the first that suffices needs collections. */
static void small_tables(void **state)
{
	struct expected expected[20];
	unsigned int n = of_models(expected), i, nodes, workers, tries, k;
	uint64_t bytes, collections;
	struct job job[3];

	(void)state;
	for (i = 0; i < n; i++) {
		if (strlen(expected[i].states) > MOST_DIGITS - 1)
			continue;
		for (nodes = 2; nodes <= 3; nodes++) {
			workers = 1 + (i + nodes) % 2;
			bytes = nodes * 4096;
			for (tries = 0; ; tries++, bytes += bytes / 4) {
				sim_start(nodes);
				prepare_model(job, nodes, workers, &expected[i]);
				for (k = 0; k < nodes; k++) {
					job[k].options.bdd.table_bytes = bytes;
					job[k].options.bdd.cache_bytes = bytes / 2;
				}
				start(job, nodes);
				finish(job, nodes);
				if (job[0].status == 0)
					break;
				for (k = 0; k < nodes; k++)
					if (job[k].status != -ENOSPC && job[k].status != -ECANCELED)
						fail_msg("%s", job[k].message.text);
				drop(job, nodes);
				sim_stop();
				assert_true(bytes < 64 << 20);
			}
			check(&job[0], &expected[i]);
			collections = job[0].result.collections.count;
			printf("# %s, %u nodes, %u workers: %lu KiB after %u that were too small, %lu collections on node 0\n",
			       expected[i].model, nodes, workers, bytes >> 10, tries, collections);
			drop(job, nodes);
			sim_stop();
		}
	}
}

/* A search that ends after some levels has found what one node finds. */
static void some_levels(void **state)
{
	struct expected expected[20];
	unsigned int n = of_models(expected), i, k, nodes;
	struct job job[3];
	uint64_t level;
	mpz_t states;

	(void)state;
	mpz_init(states);
	for (i = 0; i < n; i++) {
		if (strlen(expected[i].states) > MOST_DIGITS)
			continue;
		for (level = 1; level <= expected[i].levels; level += 1 + level / 3)
			for (nodes = 1; nodes <= 3; nodes++) {
				sim_start(nodes);
				prepare_model(job, nodes, 1, &expected[i]);
				for (k = 0; k < nodes; k++)
					job[k].options.levels = level;
				run_well(job, nodes);
				assert_int_equal(job[0].result.levels, level);
				assert_int_equal(job[0].result.complete,
						 level == expected[i].levels);
				if (nodes == 1)
					mpz_set(states, job[0].result.states);
				assert_int_equal(mpz_cmp(states, job[0].result.states), 0);
				drop(job, nodes);
				sim_stop();
			}
	}
	mpz_clear(states);
}

/* ---- parcels ---- */

#define ROOM	200

static struct kdsm_node words[ROOM + 1];
static uint64_t made[ROOM + 1];

static kdsm_bdd pack(struct kdsm_bdd_worker *worker, struct kd_parcel *parcel, kdsm_bdd e)
{
	kdsm_bdd root;

	memset(words, 0, sizeof(words));
	parcel->stamp++;
	assert_int_equal(KD_RUN(worker, &root, kd_pack, e, (uintptr_t)parcel), 0);
	if (kd_valid(root))
		parcel->head->root = root;
	return root;
}

static kdsm_bdd unpack(struct kdsm_bdd_worker *worker, struct kd_parcel *parcel)
{
	kdsm_bdd e;

	memset(made, 0, sizeof(made));
	assert_int_equal(KD_RUN(worker, &e, kd_unpack, parcel->head->root, (uintptr_t)parcel, 0),
			 0);
	return e;
}

/* Functions go to another store of the same process and back. */
static void there_and_back(void **state)
{
	struct kd_parcel parcel = { .node = words, .made = made, .room = ROOM };
	struct fixture f, other;
	kdsm_bdd e, there;
	unsigned int i;

	(void)state;
	begin(&f, 1, 0);
	other = f;
	assert_int_equal(kdsm_bdd_worker_new(f.store[0], &other.worker[0]), 0);
	for (i = 0; i < 1000; i++) {
		e = from_table(f.worker[0], random64(), plain, 6, 0, 0);
		assert_true(kd_valid(pack(f.worker[0], &parcel, e)));
		assert_true(parcel.head->count <= 63);
		there = unpack(other.worker[0], &parcel);
		assert_int_equal(there, e);
	}
	parcel.room = 5;
	e = from_table(f.worker[0], UINT64_C(0x123456789abcdef), plain, 6, 0, 0);
	assert_int_equal(pack(f.worker[0], &parcel, e), kd_failure(-E2BIG));
	kdsm_bdd_worker_free(other.worker[0]);
	end(&f);
}

/* A parcel with variables that the receiver does not know is refused. */
static void unknown_variables(void **state)
{
	bool known[5] = { true, true, false, true, true };
	struct kd_parcel parcel = { .node = words, .made = made, .room = ROOM };
	kdsm_bdd x[6], e;
	struct fixture f;
	unsigned int i;

	(void)state;
	begin(&f, 1, 0);
	for (i = 0; i < 6; i++)
		x[i] = kdsm_bdd_make(f.worker[0], i, KDSM_BDD_TRUE, KDSM_BDD_FALSE);
	parcel.known = known;
	parcel.variables = 5;
	e = kdsm_bdd_and(f.worker[0], x[0], x[4]);
	assert_true(kd_valid(pack(f.worker[0], &parcel, e)));
	assert_int_equal(unpack(f.worker[0], &parcel), e);
	for (i = 2; i < 6; i += 3) {
		e = kdsm_bdd_and(f.worker[0], x[1], x[i]);
		assert_true(kd_valid(pack(f.worker[0], &parcel, e)));
		assert_int_equal(unpack(f.worker[0], &parcel), kd_failure(-EIO));
	}
	end(&f);
}

/* A parcel that a peer has damaged holds a BDD, or is refused. */
static void damaged(void **state)
{
	struct kd_parcel parcel = { .node = words, .made = made, .room = ROOM };
	unsigned int i, k, refused = 0;
	uint64_t *word, count;
	struct kd_top top;
	struct fixture f;
	kdsm_bdd e;

	(void)state;
	begin(&f, 1, 0);
	for (i = 0; i < 20000; i++) {
		e = from_table(f.worker[0], random64(), plain, 6, 0, 0);
		assert_true(kd_valid(pack(f.worker[0], &parcel, e)));
		count = parcel.head->count;
		for (k = 0; k <= i % 3; k++) {
			/* not the count, which the receiver compares with what it has room for */
			word = (uint64_t *)words + 1 + random64() % (2 * count + 1);
			*word = i % 2 ? random64() : *word ^ UINT64_C(1) << random64() % 64;
		}
		parcel.head->root &= KD_EDGE;
		e = unpack(f.worker[0], &parcel);
		if (!kd_valid(e)) {
			assert_int_equal(e, kd_failure(-EIO));
			refused++;
		} else if (!kd_terminal(e)) {
			assert_true(kd_top(f.worker[0], e, &top));
			/* every path goes down */
			assert_true(kdsm_bdd_and(f.worker[0], e, e ^ KDSM_BDD_COMPLEMENT) ==
				    KDSM_BDD_FALSE);
			assert_int_equal(kdsm_bdd_count_nodes(f.worker[0], e, &count), 0);
		}
	}
	printf("# %u of %u refused\n", refused, i);
	assert_true(refused > i / 4);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_parcels),
		cmocka_unit_test(small_tables),
		cmocka_unit_test(some_levels),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(unknown_variables),
		cmocka_unit_test(damaged),
	};

	if (!find_models())
		return 1;
	kd_operations_alone = 0;	/* small searches use all nodes, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}

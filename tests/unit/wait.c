// SPDX-License-Identifier: GPL-2.0
/* Waiting for words, waking, and the barrier, with threads and processes */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "unit.h"

#define MS 1000000ULL

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void bad(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;

	assert_int_equal(kdsm_wait(region, 4, 0, 0), -EINVAL);
	assert_int_equal(kdsm_wait(region, UNIT_PART, 0, 0), -ERANGE);
	assert_int_equal(kdsm_wait(region, -8ULL, 0, 0), -ERANGE);
	assert_int_equal(kdsm_put_notify(region, 0, 4, 1), -EINVAL);
	assert_int_equal(kdsm_put_notify(region, 0, UNIT_PART, 1), -ERANGE);
	assert_int_equal(kdsm_put_notify(region, 1, 0, 1), -EINVAL);
}

static void timeouts(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	uint64_t begin;

	assert_int_equal(kdsm_wait(region, 0, 1, KDSM_FOREVER), 0);
	assert_int_equal(kdsm_wait(region, 0, 0, 0), -ETIMEDOUT);
	begin = now();
	assert_int_equal(kdsm_wait(region, 0, 0, 30 * MS), -ETIMEDOUT);
	assert_true(now() - begin >= 30 * MS);
}

#define ROUNDS 2000

struct side {
	struct kdsm_region *region;
	uint64_t mine, other;
	int failures;
};

/* Each side waits until its word becomes i, and answers in the other side's word. */
static void *ping_pong(void *arg)
{
	struct side *side = arg;
	uint64_t i;

	for (i = 1; i <= ROUNDS; i++) {
		if (side->mine == 0)
			UNIT_CHECK(&side->failures,
				   !kdsm_put_notify(side->region, 0, side->other, i));
		UNIT_CHECK(&side->failures,
			   !kdsm_wait(side->region, side->mine, i - 1, 10000 * MS));
		if (side->mine != 0)
			UNIT_CHECK(&side->failures,
				   !kdsm_put_notify(side->region, 0, side->other, i));
	}
	return NULL;
}

static void between_threads(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	/* Offsets 64 words apart, so that both words share a bucket of sleepers */
	struct side a = { region, 0, 512, 0 }, b = { region, 512, 0, 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ping_pong, &b), 0);
	ping_pong(&a);
	pthread_join(thread, NULL);
	assert_int_equal(a.failures + b.failures, 0);
}

static void between_processes(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct side a = { region, 0, 8, 0 }, b = { region, 8, 0, 0 };
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		ping_pong(&b);
		_exit(!!b.failures);
	}
	ping_pong(&a);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(a.failures, 0);
}

static void *sleep_high(void *arg)
{
	struct side *side = arg;

	UNIT_CHECK(&side->failures, !kdsm_wait(side->region, 24, 0, 10000 * MS));
	return NULL;
}

/* Only the upper half of the word changes, long after the sleeper has stopped spinning. */
static void upper_half(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct side side = { .region = region };
	pthread_t threads[3];
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sleep_high, &side), 0);
	usleep(20000);
	assert_int_equal(kdsm_put_notify(region, 0, 24, 1ULL << 40), 0);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(side.failures, 0);
}

static void on_signal(int signal)
{
	(void)signal;
}

static void interrupted(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct sigaction action = { .sa_handler = on_signal };
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	/* Repeated, because a signal may arrive before the sleep. */
	struct itimerspec spec = { { 0, 5000000 }, { 0, 5000000 } };

	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &spec, NULL), 0);
	assert_int_equal(kdsm_wait(region, 0, 0, 10000 * MS), -EINTR);
	timer_delete(timer);
}

static void barrier(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	uint64_t *words = kdsm_region_part(region);
	struct kdsm_barrier barrier;
	int i;

	kdsm_barrier_init(&barrier, region, 128);
	for (i = 0; i < 100; i++)
		assert_int_equal(kdsm_barrier_wait(&barrier, 0), 0);
	assert_int_equal(barrier.generation, 100);

	/* Words of another barrier, and words that hold none */
	kdsm_barrier_init(&barrier, region, 128);
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), -EINVAL);
	words[32] = 7;
	kdsm_barrier_init(&barrier, region, 256);
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), -EINVAL);

	kdsm_barrier_init(&barrier, region, 4);
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), -EINVAL);
	kdsm_barrier_init(&barrier, region, UNIT_PART - KDSM_BARRIER_SIZE + 8);
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(bad),
		unit_case(timeouts),
		unit_case(between_threads),
		unit_case(between_processes),
		unit_case(upper_half),
		unit_case(interrupted),
		unit_case(barrier),
	};

	return UNIT_RUN(tests);
}

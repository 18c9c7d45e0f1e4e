// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waiting for other threads. A thread that waits looks at memory again and again: first at once,
 * then after it has offered its processor to others, then after a sleep. A thread of the same
 * member ends the sleep by ko_wake(). Nothing ends it if a thread of another member writes, so
 * the sleep of a team that spans members is short.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/thread.h"
#include "internal.h"

#define SPINS		100	/* looks before the first offer of the processor */
#define ACTIVE_SPINS	20000	/* the same with OMP_WAIT_POLICY=active */
#define YIELDS		20	/* offers before the first sleep */
#define SLEEP_NS	100000000	/* longest sleep, in ns */
#define SPAN_SLEEP_NS	200000		/* the same if other members matter, in ns */

void ko_futex_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
	struct timespec time = { nanoseconds / 1000000000, nanoseconds % 1000000000 };
	int error = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value,
		nanoseconds == UINT64_MAX ? NULL : &time, NULL, 0);
	errno = error;
}

void ko_futex_wake(uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void ko_pause(struct ko_pause *pause, struct ko_team *team, uint32_t seen)
{
	unsigned int spins = ko_settings.spin ? ACTIVE_SPINS : SPINS;
	struct ko_barrier *barrier = &team->barrier;

	if (pause->looks < spins + YIELDS)
		pause->looks++;
	if (pause->looks < spins) {
		kd_relax();
	} else if (pause->looks < spins + YIELDS || ko_settings.spin) {
		sched_yield();
	} else {
		/* Pairs with ko_wake(): either it sees the sleeper, or the event has changed. */
		__atomic_add_fetch(&barrier->sleepers, 1, __ATOMIC_SEQ_CST);
		ko_futex_wait(&barrier->event, seen, team->spans ? SPAN_SLEEP_NS : SLEEP_NS);
		__atomic_sub_fetch(&barrier->sleepers, 1, __ATOMIC_SEQ_CST);
	}
}

void ko_wake(struct ko_team *team)
{
	__atomic_add_fetch(&team->barrier.event, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&team->barrier.sleepers, __ATOMIC_SEQ_CST))
		ko_futex_wake(&team->barrier.event, INT_MAX);
}

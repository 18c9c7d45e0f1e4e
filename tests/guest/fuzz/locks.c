// SPDX-License-Identifier: GPL-2.0
/*
 * hostile-fuzz: random calls about locks, and random values of lock words. There are few
 * locks, so that processes meet.
 */
#include "fuzz.h"

#define LOCKS	4

static struct random *const rnd = &fuzz.random;

/* Prefer the lock that was opened through this file. */
static uint32_t some_number(const struct bound *bound)
{
	if (bound->thread && random_one_in(rnd, 2))
		return bound->lock;
	return random_one_in(rnd, 16) ? random_nasty(rnd) : random_below(rnd, LOCKS);
}

static struct kdsm_lock_settings some_settings(void)
{
	struct kdsm_lock_settings settings = {
		.mask = random_one_in(rnd, 8) ? random_64(rnd) : KDSM_LOCK_SET_KEEP,
		.t_dc = random_below(rnd, 4),
		.t_r = random_below(rnd, 100),
		.t_w = random_below(rnd, 100),
		.keep = random_one_in(rnd, 2) ? KDSM_LOCK_KEEP_FOREVER :
						random_below(rnd, 1000000),
	};

	for (int i = 0; i < KDSM_LOCK_LEVELS; i++)
		settings.t_l[i] = random_below(rnd, 20);
	return settings;
}

static int do_open(struct bound *bound)
{
	struct kdsm_lock_open arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.flags = random_one_in(rnd, 8) ? random_below(rnd, 8) : KDSM_LOCK_CREATE,
		.number = some_number(bound),
		.reserved = random_one_in(rnd, 8),
	};
	int error;

	/* Mostly the number determines the kind, so that several processes open the same lock. */
	arg.kind = random_one_in(rnd, 8) ? random_below(rnd, 5) : 1 + arg.number % 3;
	if (random_one_in(rnd, 4))
		snprintf(arg.name, sizeof(arg.name), "lock-%u", arg.number % LOCKS);
	if (random_one_in(rnd, 4))
		arg.settings = some_settings();
	if (random_one_in(rnd, 4))
		return fuzz_do(bound, "LOCK_OPEN mangled", KDSM_IOC_LOCK_OPEN, &arg,
			       sizeof(arg));
	fuzz_doing("LOCK_OPEN");
	error = call(bound->file, KDSM_IOC_LOCK_OPEN, &arg);
	if (!error)
		bound->lock = arg.number;
	return error;
}

static int do_thread(struct bound *bound)
{
	struct kdsm_lock_thread arg = { .argsz = fuzz_argsz(sizeof(arg)) };
	int error;

	if (random_one_in(rnd, 4))
		return fuzz_do(bound, "LOCK_THREAD mangled", KDSM_IOC_LOCK_THREAD, &arg,
			       sizeof(arg));
	fuzz_doing("LOCK_THREAD");
	arg.argsz = sizeof(arg);
	error = call(bound->file, KDSM_IOC_LOCK_THREAD, &arg);
	if (!error)
		bound->thread = arg.thread;
	return error;
}

static uint32_t some_thread(const struct bound *bound)
{
	return random_one_in(rnd, 16) ? random_below(rnd, 100) : bound->thread;
}

static int do_take(struct bound *bound)
{
	struct kdsm_lock_take arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.flags = random_one_in(rnd, 3) ? random_below(rnd, 4) : 0,
		.number = some_number(bound),
		.thread = some_thread(bound),
		/* A mangled timeout may be infinite; the alarm ends such a wait. */
		.timeout = random_below(rnd, 1000000),
	};

	return fuzz_do(bound, "LOCK", KDSM_IOC_LOCK, &arg, sizeof(arg));
}

static int do_give(struct bound *bound)
{
	struct kdsm_lock_give arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.flags = random_one_in(rnd, 4) ? random_below(rnd, 4) : 0,
		.number = some_number(bound),
		.thread = some_thread(bound),
	};

	if (random_one_in(rnd, 4))
		return fuzz_do(bound, "LOCK_CONSISTENT", KDSM_IOC_LOCK_CONSISTENT, &arg,
			       sizeof(arg));
	return fuzz_do(bound, "UNLOCK", KDSM_IOC_UNLOCK, &arg, sizeof(arg));
}

static int do_set(struct bound *bound)
{
	struct kdsm_lock_set arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.number = some_number(bound),
		.settings = some_settings(),
	};

	return fuzz_do(bound, "LOCK_SET", KDSM_IOC_LOCK_SET, &arg, sizeof(arg));
}

static int do_info(struct bound *bound)
{
	struct kdsm_lock_info arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.flags = random_one_in(rnd, 2) ? KDSM_LOCK_NEXT : 0,
		.number = some_number(bound),
	};

	return fuzz_do(bound, "LOCK_INFO", KDSM_IOC_LOCK_INFO, &arg, sizeof(arg));
}

static int do_words(struct bound *bound)
{
	uint64_t *word;
	void *at;

	fuzz_doing("lock words");
	if (!bound->words) {
		at = mmap(NULL, KDSM_LOCKS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  bound->file, KDSM_LOCKS_OFFSET);
		if (at == MAP_FAILED)
			return -errno;
		bound->words = at;
	}
	word = &bound->words[random_below(rnd, KDSM_LOCKS_SIZE / 8)];
	if (!random_one_in(rnd, 4))
		word = &bound->words[8 * random_below(rnd, LOCKS)];
	__atomic_store_n(word, random_one_in(rnd, 2) ? random_64(rnd) :
			 random_below(rnd, 256) << 32 | random_below(rnd, 16), __ATOMIC_RELAXED);
	return 0;
}

int fuzz_lock(struct bound *bound)
{
	static int (*const calls[])(struct bound *bound) = {
		do_open, do_open, do_take, do_take, do_take, do_give, do_give, do_set, do_info,
		do_words,
	};

	if (bound->part_size && !bound->thread && !random_one_in(rnd, 8))
		return do_thread(bound);
	return calls[random_below(rnd, sizeof(calls) / sizeof(calls[0]))](bound);
}

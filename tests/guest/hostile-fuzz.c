// SPDX-License-Identifier: GPL-2.0
/*
 * hostile-fuzz [-s SEED] [-n CALLS] [-p PROCESSES] [-t SECONDS]: random ioctls and netlink
 * messages, well-formed and mangled, from several processes at the same time, with
 * mappings, forks, signals and closes in between, and pages that vanish while the kernel
 * reads them. The calls may return anything, but the kernel must not complain, no call may
 * hang, and the cluster must be up and working at the end.
 *
 * The calls repeat with the seed; their interleaving does not.
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include "fuzz/fuzz.h"

#define MAX_PROCESSES	64

/* Unmaps and maps pages of the arena while the kernel accesses them. */
static void *vanish(void *arg)
{
	struct random own = { (uintptr_t)arg };

	for (;;) {
		char *at = fuzz.arena + (VANISHING + random_below(&own, 4)) * PAGE;

		if (random_one_in(&own, 2))
			munmap(at, PAGE);
		else
			mmap(at, PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		usleep(random_below(&own, 300));
	}
	return NULL;
}

/* Count calls and successes by kind, so that a fuzzer whose calls all fail early is noticed. */
static void count(struct progress *progress, const char *what, unsigned long calls,
		  unsigned long good)
{
	struct kind *kind = progress->kinds;

	while (kind < progress->kinds + KINDS - 1 && kind->what[0] &&
	       strncmp(kind->what, what, WHAT))
		kind++;
	memcpy(kind->what, what, WHAT);
	kind->calls += calls;
	kind->good += good;
}

static void worker(unsigned long calls, uint64_t seed)
{
	pthread_t thread;

	fuzz.random.state = seed;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fuzz.arena = mmap(NULL, (ARENA_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fuzz.data = mmap(NULL, DATA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fuzz.arena == MAP_FAILED || fuzz.data == MAP_FAILED)
		_exit(1);
	mprotect(fuzz.arena + READ_ONLY * PAGE, PAGE, PROT_READ);
	mprotect(fuzz.arena + NO_ACCESS * PAGE, 3 * PAGE, PROT_NONE);
	for (int i = 0; i < FILES; i++)
		fuzz.files[i].file = device(O_RDWR);
	fuzz.privileged = seed % 4;
	if (!fuzz.privileged &&
	    (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		_exit(1);
	genl_open(&fuzz.genl);
	if (pthread_create(&thread, NULL, vanish, (void *)(uintptr_t)random_64(&fuzz.random)))
		_exit(1);
	fuzz_signals();
	for (; fuzz.progress->calls < calls; fuzz.progress->calls++) {
		bool good = !fuzz_call(true);

		count(fuzz.progress, fuzz.progress->what, 1, good);
	}
	_exit(0);
}

/* Destroy the regions that outlived their files, so that the cluster can go down. */
static void clean_up(int file)
{
	for (int i = 0; i < NAMES; i++) {
		struct kdsm_region_destroy arg = { .argsz = sizeof(arg) };

		snprintf(arg.name, sizeof(arg.name), "fuzz-%d", i);
		call(file, KDSM_IOC_REGION_DESTROY, &arg);
	}
}

static void still_works(int file)
{
	struct kdsm_region_open open = region(file, "after-fuzz");
	uint64_t word = 0x6b64736d, back = 0;
	struct kdsm_op ops[2] = {
		{ .opcode = KDSM_OP_PUT, .node = fuzz.info.nodes - 1, .length = 8,
		  .addr = (uintptr_t)&word },
		{ .opcode = KDSM_OP_GET, .node = fuzz.info.nodes - 1, .length = 8,
		  .addr = (uintptr_t)&back },
	};
	struct kdsm_submit arg = {
		.argsz = sizeof(arg), .flags = KDSM_SUBMIT_WAIT, .count = 1,
	};

	tap_result(call(file, KDSM_IOC_REGION_OPEN, &open), 0, "a region can be opened");
	arg.ops = (uintptr_t)&ops[0];
	tap_result(call(file, KDSM_IOC_SUBMIT, &arg), 0, "and written");
	arg.ops = (uintptr_t)&ops[1];
	tap_result(call(file, KDSM_IOC_SUBMIT, &arg), 0, "and read");
	tap_ok(back == word, "it holds what was written");
}

static void show_stuck(const struct progress *progress, pid_t pid)
{
	char line[256], path[64];
	FILE *stack;

	printf("# process %d is at call %lu, %.*s:\n", pid, progress->calls, WHAT,
	       progress->what);
	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	stack = fopen(path, "re");
	while (stack && fgets(line, sizeof(line), stack))
		printf("#   %s", line);
	if (stack)
		fclose(stack);
}

static pid_t start(struct progress *progress, unsigned long calls, uint64_t seed)
{
	pid_t pid;

	fflush(stdout);
	fuzz.progress = progress;
	pid = fork();
	if (!pid)
		worker(calls, seed);
	return pid;
}

/*
 * A process has results of gets written to random addresses, some of them valid, so it may
 * overwrite its own memory and crash. Another process then continues its calls.
 */
static unsigned long watch(struct progress *all, pid_t *pids, unsigned long processes,
			   unsigned long calls, uint64_t seed, time_t end)
{
	unsigned long left = processes, fallen = 0;

	while (left && time(NULL) < end) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0) {
			usleep(100000);
			continue;
		}
		for (unsigned long i = 0; i < processes; i++) {
			if (pids[i] != pid)
				continue;
			if (status && ++fallen < 1000) {
				/* The call in which the process crashed counts as done. */
				all[i].calls++;
				pids[i] = start(&all[i], calls, seed + 1000 * fallen + i);
				continue;
			}
			pids[i] = 0;
			left--;
		}
	}
	if (fallen)
		printf("# %lu processes fell over themselves\n", fallen);
	return left;
}

static void run(struct progress *all, unsigned long processes, unsigned long calls,
		uint64_t seed, unsigned long seconds)
{
	unsigned long left, total = 0;
	static struct progress sum;
	pid_t pids[MAX_PROCESSES];

	for (unsigned long i = 0; i < processes; i++)
		pids[i] = start(&all[i], calls / processes, seed + i);
	left = watch(all, pids, processes, calls / processes, seed, time(NULL) + seconds);
	for (unsigned long i = 0; i < processes; i++) {
		total += all[i].calls;
		for (int k = 0; k < KINDS && all[i].kinds[k].what[0]; k++)
			count(&sum, all[i].kinds[k].what, all[i].kinds[k].calls,
			      all[i].kinds[k].good);
		if (!pids[i])
			continue;
		show_stuck(&all[i], pids[i]);
		kill(pids[i], SIGKILL);
	}
	for (int k = 0; k < KINDS && sum.kinds[k].what[0]; k++)
		printf("# %.*s: %lu, %lu successful\n", WHAT, sum.kinds[k].what,
		       sum.kinds[k].calls, sum.kinds[k].good);
	tap_ok(!left && total >= calls / processes * processes, "%lu random calls", total);
}

static unsigned long parse(const char *word, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(word, &end, 0);

	if (end == word || *end || !value || value > max) {
		fprintf(stderr, "hostile-fuzz: not a number from 1 to %lu: %s\n", max, word);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	unsigned long calls = 100000, processes = 4, seconds = 600;
	struct progress *all;
	struct timespec now;
	uint64_t seed;
	int c, file;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = (now.tv_sec * 1000000007UL + now.tv_nsec) & 0xffffffff;
	while ((c = getopt(argc, argv, "s:n:p:t:")) != -1) {
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			calls = parse(optarg, 1UL << 40);
			break;
		case 'p':
			processes = parse(optarg, MAX_PROCESSES);
			break;
		case 't':
			seconds = parse(optarg, 1000000);
			break;
		default:
			fprintf(stderr, "usage: hostile-fuzz [-s SEED] [-n CALLS] [-p PROCESSES] [-t SECONDS]\n");
			return 2;
		}
	}
	/* Some processes have no privileges, and this is no test of the device's mode. */
	if (chmod(KDSM_DEVICE, 0666))
		tap_bail("cannot change the mode of " KDSM_DEVICE);
	printf("# seed %lu\n", (unsigned long)seed);
	file = device(O_RDWR);
	fuzz.info = information(file);
	all = mmap(NULL, MAX_PROCESSES * sizeof(*all), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	run(all, processes, calls, seed, seconds);
	tap_ok(information(file).nodes == fuzz.info.nodes, "the cluster is up");
	still_works(file);
	clean_up(file);
	chmod(KDSM_DEVICE, 0660);
	close(file);
	return tap_end();
}

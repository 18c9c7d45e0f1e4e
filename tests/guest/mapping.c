// SPDX-License-Identifier: GPL-2.0
/*
 * A process changes its mapping of a coherent region, of either policy: earlier writes stay
 * visible to other nodes, or the call is refused.
 */
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "coherent.h"

#define PAGE		4096UL
#define BLOCK		4096UL
#define SIZE		(16UL << 20)
#define WORD(block)	((block) * BLOCK / 8)
#define PLACE(block)	((void *)((char *)words + (block) * BLOCK))

static uint32_t policy;

static void attach(const char *name)
{
	attach_region(name, policy, SIZE, BLOCK);
}

/* Check that after a release and an acquire every node reads value from the block's first word. */
static void see(size_t block, uint64_t value)
{
	exchange();
	CHECK_IS(words[WORD(block)], value);
	exchange();
}

/* Run in a child and return the signal that ends it, or 0. */
static int signal_of(void (*run)(void))
{
	const struct rlimit none = { 0, 0 };
	int status = 0;
	pid_t child = -1;

	fflush(stdout);
	child = fork();
	if (!child) {
		setrlimit(RLIMIT_CORE, &none);
		run();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void write_third(void)
{
	words[WORD(3)] = 99;
}

static void read_third(void)
{
	CHECK(words[WORD(3)] != 98);
}

/* ---- processes of one node ---- */

/*
 * A child inherits the mapping with its parent's page table entries, and both write to the
 * node's one frame. The parent's release includes the child's writes that do not fault.
 */
static void mapping_fork(void)
{
	int there[2], back[2], status;
	char c = 0;
	pid_t child = -1;

	attach("fork");
	if (node == 0) {
		words[WORD(1)] = 1;
		CHECK_IS(release(NULL), 0);
		words[WORD(1)] = 2;
		CHECK(!pipe(there) && !pipe(back));
		fflush(stdout);
		child = fork();
		if (!child) {
			if (read(there[0], &c, 1) != 1 || words[WORD(1)] != 3)
				_exit(1);
			words[WORD(1)] = 4;
			words[WORD(2)] = 5;
			/* The child keeps its mapping while the parent releases. */
			if (write(back[1], &c, 1) != 1 || read(there[0], &c, 1) != 1)
				_exit(2);
			_exit(0);
		}
		words[WORD(1)] = 3;
		CHECK(write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
		CHECK_IS(words[WORD(1)], 4);
	}
	see(1, 4);
	see(2, 5);
	if (node == 0) {
		CHECK(write(there[1], &c, 1) == 1);
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	detach();
}

/* Five processes read what another node wrote; the bytes cross the network once. */
static void mapping_one_copy(void)
{
	const unsigned int blocks = 64, processes = 5;
	long fetched;
	pid_t child = -1;
	int status;

	attach("copy");
	if (node == 0)
		for (unsigned int i = 0; i < blocks; i++)
			words[WORD(i)] = i + 1;
	exchange();
	fetched = counter("bytes");
	for (unsigned int p = 0; node != 0 && p < processes; p++) {
		fflush(stdout);
		child = fork();
		if (!child) {
			for (unsigned int i = 0; i < blocks; i++)
				if (words[WORD(i)] != i + 1)
					_exit(1);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	if (node != 0)
		CHECK_IS(counter("bytes") - fetched, blocks * BLOCK);
	detach();
}

/* ---- changes of a mapping ---- */

/* Unmap a hole in the middle. The content is unchanged when the hole is mapped again. */
static void mapping_partial_munmap(void)
{
	attach("munmap");
	if (node == 0) {
		for (size_t i = 0; i < 8; i++)
			words[WORD(i)] = 10 + i;
		CHECK_IS(release(NULL), 0);
		/* These writes do not fault. */
		for (size_t i = 0; i < 8; i++)
			words[WORD(i)] = 20 + i;
		CHECK(!munmap(PLACE(2), 3 * BLOCK));
		CHECK_IS(signal_of(read_third), SIGSEGV);
	}
	exchange();
	for (size_t i = 0; i < 8; i++)
		CHECK(node == 0 ? i / 2 == 1 || i == 4 || words[WORD(i)] == 20 + i :
				  words[WORD(i)] == 20 + i);
	exchange();
	if (node == 0) {
		CHECK(mmap(PLACE(2), 3 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			   file, 2 * BLOCK) == PLACE(2));
		CHECK_IS(words[WORD(3)], 23);
		words[WORD(3)] = 33;
	}
	see(3, 33);
	detach();
}

static int move(size_t old, size_t new, int flags, void *where)
{
	return mremap(PLACE(4), old, new, flags, where) == MAP_FAILED ? -errno : 0;
}

static void mapping_mremap(void)
{
	void *elsewhere = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	attach("mremap");
	if (node == 0) {
		words[WORD(4)] = 1;
		words[WORD(5)] = 1;
		CHECK_IS(release(NULL), 0);
		words[WORD(4)] = 2;
		CHECK_IS(move(PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere), -EINVAL);
		CHECK_IS(move(PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, PLACE(9)), -EINVAL);
#ifdef MREMAP_DONTUNMAP
		CHECK_IS(move(PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL), -EINVAL);
#endif
		CHECK_IS(move(PAGE, 2 * PAGE, MREMAP_MAYMOVE, NULL), -EFAULT);
		CHECK_IS(move(0, PAGE, MREMAP_MAYMOVE, NULL), -EFAULT);
		CHECK_IS(move(PAGE, PAGE, MREMAP_MAYMOVE, NULL), 0);
		CHECK_IS(words[WORD(4)], 2);
		words[WORD(5)] = 3;
	}
	see(4, 2);
	see(5, 3);
	munmap(elsewhere, 4 * PAGE);
	detach();
}

/* Write before, during and after changes of the protection, with a release after each. */
static void mapping_mprotect(void)
{
	static const int ways[] = { PROT_READ, PROT_NONE, PROT_WRITE };
	unsigned int i, round = 0;

	attach("mprotect");
	for (i = 0; i < 6; i++) {
		int way = ways[i % 3];

		if (node == 0)
			words[WORD(3)] = ++round;
		else
			round++;
		if (i < 3)
			see(3, round);		/* now the other nodes have copies */
		if (node == 0) {
			CHECK(!mprotect(PLACE(0), 8 * BLOCK, way));
			CHECK_IS(signal_of(write_third), way == PROT_WRITE ? 0 : SIGSEGV);
			if (way == PROT_NONE)
				CHECK_IS(signal_of(read_third), SIGSEGV);
			else if (way == PROT_WRITE)
				words[WORD(3)] = round;		/* undo write_third() */
			CHECK(!mprotect(PLACE(0), 8 * BLOCK, PROT_READ | PROT_WRITE));
			CHECK_IS(words[WORD(3)], round);
		}
		see(3, round);
		round++;
		if (node == 0)
			words[WORD(3)] = round;
		see(3, round);
	}
	if (node == 0) {
		CHECK(mprotect(PLACE(0), BLOCK, PROT_READ | PROT_EXEC) && errno == EACCES);
		words[WORD(3)] = 100;
		CHECK(!mprotect(PLACE(0), 8 * BLOCK, PROT_READ));
	}
	/* The release includes a write by a process that may not write there any more. */
	see(3, 100);
	detach();
}

static void mapping_madvise(void)
{
	static const struct {
		int advice, error;
	} calls[] = {
		{ MADV_DONTNEED, EINVAL }, { MADV_FREE, EINVAL }, { MADV_REMOVE, ENODEV },
		{ MADV_WILLNEED, 0 }, { MADV_SEQUENTIAL, 0 }, { MADV_MERGEABLE, 0 },
#ifdef MADV_PAGEOUT
		{ MADV_PAGEOUT, EINVAL }, { MADV_COLD, EINVAL },
#endif
	};

	attach("madvise");
	if (node == 0) {
		words[WORD(3)] = 1;
		CHECK_IS(release(NULL), 0);
		words[WORD(3)] = 2;
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			CHECK_IS(madvise(words, SIZE, calls[i].advice) ? errno : 0,
				 calls[i].error);
			CHECK_IS(words[WORD(3)], 2);
		}
		/* A child that does not inherit the mapping */
		CHECK(!madvise(words, SIZE, MADV_DONTFORK));
		CHECK_IS(signal_of(read_third), SIGSEGV);
		CHECK(!madvise(words, SIZE, MADV_DOFORK));
		CHECK_IS(signal_of(read_third), 0);
	}
	see(3, 2);
	detach();
}

/* ---- the kernel's own accesses ---- */

static void mapping_read_write(void)
{
	char buffer[64] = "";
	int ends[2];
	struct iovec iovec;

	attach("io");
	CHECK(!pipe(ends));
	if (node == 0) {
		/* Read into a page without a page table entry, then into one that has an entry. */
		CHECK(write(ends[1], "seven", 6) == 6 && read(ends[0], PLACE(3), 6) == 6);
		CHECK_IS(release(NULL), 0);
		CHECK(write(ends[1], "eleven", 7) == 7 && read(ends[0], PLACE(3), 7) == 7);
	}
	exchange();
	/* Write from a page whose content has to be fetched first. */
	CHECK(write(ends[1], PLACE(3), 7) == 7 && read(ends[0], buffer, 7) == 7);
	CHECK(!strcmp(buffer, "eleven"));
	/* Calls that pin pages, as direct I/O does, fail. */
	iovec = (struct iovec){ .iov_base = PLACE(3), .iov_len = PAGE };
	CHECK(vmsplice(ends[1], &iovec, 1, 0) == -1 && errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	exchange();
	detach();
}

static void mapping_ptrace(void)
{
	struct iovec here, there;
	uint64_t value = 0;
	char path[64];
	pid_t child = -1;
	int mem;

	attach("ptrace");
	if (node == nodes - 1)
		words[WORD(3)] = 7;
	exchange();
	if (node == 0) {
		fflush(stdout);
		child = fork();
		if (!child) {
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			raise(SIGSTOP);
			_exit(0);
		}
		CHECK(waitpid(child, NULL, 0) == child);
		CHECK_IS(ptrace(PTRACE_PEEKDATA, child, PLACE(3), NULL), 7);
		CHECK_IS(ptrace(PTRACE_POKEDATA, child, PLACE(3), (void *)8), 0);
		CHECK_IS(ptrace(PTRACE_PEEKDATA, child, PLACE(3), NULL), 8);
		/* process_vm_readv() pins pages, and the mapping has none. */
		here = (struct iovec){ .iov_base = &value, .iov_len = 8 };
		there = (struct iovec){ .iov_base = PLACE(3), .iov_len = 8 };
		CHECK(process_vm_readv(child, &here, 1, &there, 1, 0) == -1 && errno == EFAULT);
		snprintf(path, sizeof(path), "/proc/%d/mem", child);
		mem = open(path, O_RDWR);
		value = 9;
		CHECK(pwrite(mem, &value, 8, (uintptr_t)PLACE(4)) == 8);
		CHECK(pread(mem, &value, 8, (uintptr_t)PLACE(3)) == 8 && value == 8);
		close(mem);
		ptrace(PTRACE_KILL, child, NULL, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	see(3, 8);
	see(4, 9);
	detach();
}

static void tell(const char *path, const char *what)
{
	int out = open(path, O_WRONLY);

	CHECK(write(out, what, strlen(what)) == (ssize_t)strlen(what));
	close(out);
}

/* A core dump does not contain the region, even if its filter asks for shared mappings. */
static void mapping_core(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	static const char *const filters[] = { "0x33", "0x3b" };
	struct stat core;
	char old[256] = "";
	pid_t child = -1;
	int in, status;

	attach("core");
	memset(words, 7, SIZE / 8);
	in = open("/proc/sys/kernel/core_pattern", O_RDONLY);
	CHECK(read(in, old, sizeof(old) - 1) > 0);
	close(in);
	tell("/proc/sys/kernel/core_pattern", "/tmp/mapping-core");
	for (unsigned int i = 0; i < 2; i++) {
		unlink("/tmp/mapping-core");
		fflush(stdout);
		child = fork();
		if (!child) {
			tell("/proc/self/coredump_filter", filters[i]);
			setrlimit(RLIMIT_CORE, &all);
			words[WORD(1)] = 1;
			abort();
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && WCOREDUMP(status));
		CHECK(!stat("/tmp/mapping-core", &core));
		CHECK(core.st_size > (long)PAGE && core.st_blocks * 512 < (long)SIZE / 4);
		if (i == 0)
			CHECK(core.st_size < (long)SIZE / 2);
	}
	unlink("/tmp/mapping-core");
	tell("/proc/sys/kernel/core_pattern", old);
	detach();
}

/* ---- releases while a mapping ends ---- */

#define ROUNDS	10
#define AHEAD	(1UL << 30)	/* bytes from the start of the region to other memory */
#define AFTER	(32UL << 20)	/* bytes of that memory, whose unmapping takes a while */

static uint64_t free_memory(void)
{
	struct sysinfo info;

	CHECK(!sysinfo(&info));
	return (uint64_t)info.freeram * info.mem_unit;
}

/*
 * Runs in a child: write to a word without a fault; then exit, or unmap the region and the
 * memory behind it. step tells parent and child how far the other is.
 */
static void leave(bool exits, uint64_t value, volatile uint32_t *step)
{
	char *after = (char *)words + AHEAD;

	if (mmap(after, AFTER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) != after)
		_exit(1);
	/* Small pages are freed one by one. */
	madvise(after, AFTER, MADV_NOHUGEPAGE);
	memset(after, 1, AFTER);
	words[WORD(3)] = 1;
	*step = 1;
	while (*step == 1)
		sched_yield();
	words[WORD(3)] = value;
	if (!exits)
		munmap(words, AHEAD + AFTER);
	*step = 3;
	_exit(0);
}

/*
 * A process of node 0 exits or unmaps the region. Another process, which has seen the word,
 * releases meanwhile, when some of the memory behind the region is free again. The release
 * must include the word.
 */
static void leaving(bool exits)
{
	unsigned int round, rounds = policy == KDSM_POLICY_RELEASE ? ROUNDS : 2, during = 0;
	static struct kdsm_signature mine;
	volatile uint32_t *step;
	uint64_t value, before;
	siginfo_t dead;
	pid_t child = -1;
	size_t lost = 0;

	attach(exits ? "exit" : "leave");
	step = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (round = 0; round < rounds; round++) {
		value = 1000 + round;
		if (node == 0) {
			*step = 0;
			fflush(stdout);
			child = fork();
			if (!child)
				leave(exits, value, step);
			while (*step != 1)
				sched_yield();
		}
		/*
		 * After this, only the child's page table records that the block is written
		 * again.
		 */
		see(3, 1);
		if (node == 0) {
			before = free_memory();
			*step = 2;
			while (__atomic_load_n(&words[WORD(3)], __ATOMIC_RELAXED) != value)
				sched_yield();
			dead.si_pid = 0;
			while ((exits || *step == 2) && !dead.si_pid &&
			       free_memory() < before + AFTER / 16) {
				sched_yield();
				waitid(P_PID, child, &dead, WEXITED | WNOHANG | WNOWAIT);
			}
			CHECK_IS(release(&mine), 0);
			waitid(P_PID, child, &dead, WEXITED | WNOHANG | WNOWAIT);
			during += exits ? !dead.si_pid : *step == 2;
			CHECK_IS(kdsm_put(board, 0, 8192, &mine, sizeof(mine)), 0);
		}
		meet();
		acquire_put(0);
		lost += words[WORD(3)] != value;
		meet();
		if (node == 0)
			CHECK(waitpid(child, NULL, 0) == child);
	}
	CHECK_IS(lost, 0);
	if (node == 0)
		printf("# %u of %u releases during that\n", during, rounds);
	munmap((void *)step, PAGE);
	detach();
}

static void mapping_exit_while_released(void)
{
	leaving(true);
}

static void mapping_unmap_while_released(void)
{
	leaving(false);
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(mapping_fork),
	TEST(mapping_one_copy),
	TEST(mapping_partial_munmap),
	TEST(mapping_mremap),
	TEST(mapping_mprotect),
	TEST(mapping_madvise),
	TEST(mapping_read_write),
	TEST(mapping_ptrace),
	TEST(mapping_core),
	TEST(mapping_exit_while_released),
	TEST(mapping_unmap_while_released),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return run_policies("mapping", &policy, tests, argc > 1 ? argv[1] : NULL);
}

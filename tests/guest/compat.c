// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/kdsm as a 32-bit program on a 64-bit kernel sees it: every ioctl, with the same
 * structs, and of mappings only the lock words. An independent program runs on every node
 * at the same time. Each uses its own places in one region, so no node waits for another.
 *
 * The machines that run these tests have no 32-bit C library, so the program makes system
 * calls by int $0x80. No library adapts their arguments.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <kdsm/uapi.h>
#include <kdsm/uapi_task.h>
#include <linux/mman.h>

/*
 * 32-bit code aligns a u64 to 4 bytes, 64-bit code to 8. A struct that needs no padding has
 * the same layout in both; equal sizes show that it needs none.
 */
_Static_assert(sizeof(struct kdsm_info) == KDSM_INFO_SIZE_VER0, "kdsm_info");
_Static_assert(sizeof(struct kdsm_location) == KDSM_LOCATION_SIZE_VER0, "kdsm_location");
_Static_assert(sizeof(struct kdsm_settle) == KDSM_SETTLE_SIZE_VER0, "kdsm_settle");
_Static_assert(sizeof(struct kdsm_race) == 56, "kdsm_race");
_Static_assert(sizeof(struct kdsm_races) == KDSM_RACES_SIZE_VER0, "kdsm_races");
_Static_assert(sizeof(struct kdsm_lost) == KDSM_LOST_SIZE_VER0, "kdsm_lost");
_Static_assert(sizeof(struct kdsm_discard) == KDSM_DISCARD_SIZE_VER0, "kdsm_discard");
_Static_assert(sizeof(struct kdsm_region_segment) == 16, "kdsm_region_segment");
_Static_assert(sizeof(struct kdsm_region_open) == KDSM_REGION_OPEN_SIZE_VER1,
	       "kdsm_region_open");
_Static_assert(sizeof(struct kdsm_region_destroy) == KDSM_REGION_DESTROY_SIZE_VER0,
	       "kdsm_region_destroy");
_Static_assert(sizeof(struct kdsm_op) == 56, "kdsm_op");
_Static_assert(sizeof(struct kdsm_submit) == KDSM_SUBMIT_SIZE_VER0, "kdsm_submit");
_Static_assert(sizeof(struct kdsm_complete) == KDSM_COMPLETE_SIZE_VER0, "kdsm_complete");
_Static_assert(sizeof(struct kdsm_ring_setup) == KDSM_RING_SETUP_SIZE_VER0, "kdsm_ring_setup");
_Static_assert(sizeof(struct kdsm_ring_enter) == KDSM_RING_ENTER_SIZE_VER0, "kdsm_ring_enter");
_Static_assert(sizeof(struct kdsm_ring_head) == 128, "kdsm_ring_head");
_Static_assert(sizeof(struct kdsm_ring_entry) == 64, "kdsm_ring_entry");
_Static_assert(sizeof(struct kdsm_ring_completion) == 32, "kdsm_ring_completion");
_Static_assert(sizeof(struct kdsm_wait) == KDSM_WAIT_SIZE_VER0, "kdsm_wait");
_Static_assert(sizeof(struct kdsm_wake) == KDSM_WAKE_SIZE_VER0, "kdsm_wake");
_Static_assert(sizeof(struct kdsm_lock_open) == KDSM_LOCK_OPEN_SIZE_VER0, "kdsm_lock_open");
_Static_assert(sizeof(struct kdsm_lock_thread) == KDSM_LOCK_THREAD_SIZE_VER0,
	       "kdsm_lock_thread");
_Static_assert(sizeof(struct kdsm_lock_take) == KDSM_LOCK_TAKE_SIZE_VER0, "kdsm_lock_take");
_Static_assert(sizeof(struct kdsm_lock_give) == KDSM_LOCK_GIVE_SIZE_VER0, "kdsm_lock_give");
_Static_assert(sizeof(struct kdsm_lock_set) == KDSM_LOCK_SET_SIZE_VER0, "kdsm_lock_set");
_Static_assert(sizeof(struct kdsm_lock_info) == KDSM_LOCK_INFO_SIZE_VER0, "kdsm_lock_info");
_Static_assert(sizeof(struct kdsm_lock_word) == 64, "kdsm_lock_word");
_Static_assert(sizeof(struct kdsm_theft) == 56, "kdsm_theft");
_Static_assert(sizeof(struct kdsm_task) == 128, "kdsm_task");
_Static_assert(sizeof(struct kdsm_task_packed) == 96, "kdsm_task_packed");
_Static_assert(sizeof(void *) == 4, "this is for 32 bits");

/* Bytes of each node in every node's part, and offsets in them */
#define SLOT		256
#define PART		(KDSM_MAX_NODES * SLOT)
#define BYTES		128	/* from offset 0 */
#define WORD		128	/* for atomics */
#define WAITED		136	/* used only in a node's own part */

#define SECOND		1000000000ULL
#define ABOVE		0x100000000ULL	/* added to an address, gives one above 4 GiB */

static struct kdsm_op ops[KDSM_MAX_NODES], more[KDSM_MAX_NODES];
static uint64_t words[KDSM_MAX_NODES];
static uint8_t put[BYTES], got[BYTES];
static unsigned int node, nodes;
static int device, count, failures;

/* ---- in place of a C library ---- */

/* The sixth argument goes into ebp, which is not available as an operand. */
static long call6(long number, const long args[6])
{
	asm volatile("push %%ebp; mov 20(%%ebx), %%ebp; mov (%%ebx), %%ebx; int $0x80; pop %%ebp"
		     : "+a" (number), "+b" (args)
		     : "c" (args[1]), "d" (args[2]), "S" (args[3]), "D" (args[4])
		     : "memory", "cc");
	return number;
}

static long call(long number, long a, long b, long c)
{
	const long args[6] = { a, b, c };

	return call6(number, args);
}

/* offset is in pages. */
static long map(long at, long length, long protection, long flags, long file, long offset)
{
	const long args[6] = { at, length, protection, flags, file, offset };

	return call6(__NR_mmap2, args);
}

/* The compiler may emit calls of these two functions anywhere. */
void *memset(void *to, int byte, size_t size)
{
	void *at = to;

	asm volatile("rep stosb" : "+D" (at), "+c" (size) : "a" (byte) : "memory");
	return to;
}

void *memcpy(void *to, const void *from, size_t size)
{
	void *at = to;

	asm volatile("rep movsb" : "+D" (at), "+S" (from), "+c" (size) : : "memory");
	return to;
}

/* Write whole lines, because the output of several nodes may go to one place. */
static void say(const char *text)
{
	static char line[256];
	static size_t length;

	for (; *text; text++) {
		if (length < sizeof(line))
			line[length++] = *text;
		if (*text == '\n') {
			call(__NR_write, 1, (long)line, length);
			length = 0;
		}
	}
}

static void say_number(long value)
{
	char digits[16], *at = digits + sizeof(digits) - 1;
	unsigned long rest = value < 0 ? -value : value;

	*at = '\0';
	do {
		*--at = '0' + rest % 10;
		rest /= 10;
	} while (rest);
	if (value < 0)
		*--at = '-';
	say(at);
}

static void __attribute__((noreturn)) leave(int status)
{
	for (;;)
		call(__NR_exit_group, status, 0, 0);
}

/* ---- results ---- */

#define NOWHERE (-1)

static void ok_at(int where, bool good, const char *what)
{
	say(good ? "ok " : "not ok ");
	say_number(++count);
	say(" - 32 bits: ");
	say(what);
	if (where != NOWHERE) {
		say(", node ");
		say_number(where);
	}
	say("\n");
	failures += !good;
}

static void result_at(int where, long is, long expected, const char *what)
{
	ok_at(where, is == expected, what);
	if (is == expected)
		return;
	say("# got ");
	say_number(is);
	say(", should be ");
	say_number(expected);
	say("\n");
}

static void ok(bool good, const char *what)
{
	ok_at(NOWHERE, good, what);
}

static void result(long is, long expected, const char *what)
{
	result_at(NOWHERE, is, expected, what);
}

/* End the program if a result is an error without which no further test makes sense. */
static void must(long is, const char *what)
{
	result(is < 0 ? is : 0, 0, what);
	if (is >= 0)
		return;
	say("Bail out!\n");
	leave(1);
}

/* ---- the device ---- */

static long control(unsigned long number, void *arg)
{
	return call(__NR_ioctl, device, number, (long)arg);
}

static uint64_t address(void *at)
{
	return (uintptr_t)at;
}

static uint64_t place(unsigned int offset)
{
	return node * SLOT + offset;
}

static struct kdsm_op transfer(int opcode, unsigned int to, void *data, unsigned int length,
			       unsigned int offset)
{
	return (struct kdsm_op){
		.opcode = opcode,
		.node = to,
		.length = length,
		.offset = place(offset),
		.addr = address(data),
		.status = 1,
	};
}

static struct kdsm_op atomic(int opcode, unsigned int to, uint64_t compare, uint64_t operand)
{
	return (struct kdsm_op){
		.opcode = opcode,
		.node = to,
		.length = 8,
		.offset = place(WORD),
		.compare = compare,
		.operand = operand,
		.status = 1,
	};
}

static long submit_wait(struct kdsm_op *array, unsigned int number)
{
	struct kdsm_submit args = {
		.argsz = sizeof(args),
		.flags = KDSM_SUBMIT_WAIT,
		.ops = address(array),
		.count = number,
	};

	return control(KDSM_IOC_SUBMIT, &args);
}

static long submit(struct kdsm_op *array, unsigned int number, uint64_t *ticket)
{
	struct kdsm_submit args = {
		.argsz = sizeof(args),
		.ops = address(array),
		.count = number,
	};
	long ret = control(KDSM_IOC_SUBMIT, &args);

	*ticket = args.ticket;
	return ret;
}

static long complete(uint64_t ticket)
{
	struct kdsm_complete args = {
		.argsz = sizeof(args),
		.ticket = ticket,
		.timeout = 60 * SECOND,
	};

	return control(KDSM_IOC_COMPLETE, &args);
}

static long wait_while(uint64_t value, uint64_t timeout)
{
	struct kdsm_wait args = {
		.argsz = sizeof(args),
		.offset = place(WAITED),
		.value = value,
		.timeout = timeout,
	};

	return control(KDSM_IOC_WAIT, &args);
}

static long put_word(unsigned int to, unsigned int offset, uint64_t value)
{
	struct kdsm_op op = transfer(KDSM_OP_PUT, to, &value, sizeof(value), offset);

	return submit_wait(&op, 1);
}

/* ---- the tests ---- */

static void information(void)
{
	struct kdsm_info info = { .argsz = sizeof(info) };

	/* An address above 2 GiB shows whether compat_ptr() and u64_to_user_ptr() are used. */
	ok(address(&info) >> 31 == 1, "the stack is above 2 GiB");
	must(control(KDSM_IOC_INFO, &info), "INFO");
	ok(info.abi_version == KDSM_ABI_VERSION, "INFO, version");
	ok(info.node < info.nodes && info.nodes <= KDSM_MAX_NODES, "INFO, nodes");
	ok(info.cluster[0] && !info.cluster[KDSM_NAME_SIZE - 1], "INFO, name");
	node = info.node;
	nodes = info.nodes;
	result(control(_IO(KDSM_IOC_MAGIC, 255), &info), -ENOTTY, "an ioctl that is not there");
	result(control(KDSM_IOC_INFO, NULL), -EFAULT, "INFO, NULL");
}

static void opening(void)
{
	struct kdsm_region_open open = {
		.argsz = sizeof(open),
		.flags = KDSM_REGION_CREATE,
		.name = "compat",
		.size = (uint64_t)nodes * PART,
		.policy = KDSM_POLICY_PARTITIONED,
	};
	struct kdsm_region_destroy destroy = {
		.argsz = sizeof(destroy),
		.name = "compat-that-is-not-there",
	};

	result(submit_wait(ops, 1), -EBADFD, "SUBMIT before REGION_OPEN");
	must(control(KDSM_IOC_REGION_OPEN, &open), "REGION_OPEN, CREATE");
	ok(open.part_size == PART && open.size == (uint64_t)nodes * PART, "REGION_OPEN, sizes");
	ok(open.block_size == 4096 && open.policy == KDSM_POLICY_PARTITIONED &&
	   open.mode == 0600, "REGION_OPEN, the rest");
	ok(open.base >= 32ULL << 40, "REGION_OPEN, base above 32 TiB");
	result(control(KDSM_IOC_REGION_DESTROY, &destroy), -ENOENT,
	       "REGION_DESTROY of what is not there");
}

static void put_and_get(unsigned int to)
{
	struct kdsm_op op = transfer(KDSM_OP_PUT, to, put, BYTES, 0);
	unsigned int i, wrong = 0;

	for (i = 0; i < BYTES; i++) {
		put[i] = 16 * node + to + i;
		got[i] = ~put[i];
	}
	result_at(to, submit_wait(&op, 1), 0, "put");
	result_at(to, op.status, 0, "put, status");
	op = transfer(KDSM_OP_GET, to, got, BYTES, 0);
	result_at(to, submit_wait(&op, 1), 0, "get");
	for (i = 0; i < BYTES; i++)
		wrong += got[i] != put[i];
	result_at(to, wrong, 0, "get, wrong bytes");
}

static void one_atomic(const char *what, struct kdsm_op op, uint64_t before)
{
	result_at(op.node, submit_wait(&op, 1), 0, what);
	ok_at(op.node, !op.status && op.result == before, "the value before");
}

/* With carries into the upper 32 bits, and values that differ only there */
static void atomics(unsigned int to)
{
	const uint64_t first = 0x10ffffff00ULL + node, second = first + 0x1ff;

	result_at(to, put_word(to, WORD, first), 0, "put of a word");
	one_atomic("faa", atomic(KDSM_OP_FAA, to, 0, 0x1ff), first);
	one_atomic("cas of another value",
		   atomic(KDSM_OP_CAS, to, second ^ 1ULL << 40, 1), second);
	one_atomic("cas", atomic(KDSM_OP_CAS, to, second, ~second), second);
	one_atomic("faa after cas", atomic(KDSM_OP_FAA, to, 0, -1ULL), ~second);
}

/* Steal from a node that is busy and has no workers. */
static void thefts(unsigned int to)
{
	static union {
		struct kdsm_theft theft;
		char room[sizeof(struct kdsm_theft) + sizeof(struct kdsm_task_packed)];
	} loot;
	struct kdsm_op op = transfer(KDSM_OP_STEAL, to, &loot, kdsm_theft_size(1), WORD);

	result_at(to, put_word(to, WORD, 3), 0, "put of a crew");
	loot.theft = (struct kdsm_theft){
		.stride = 128, .count = 1, .deque = 1, .thief = 1, .most = 1,
	};
	result_at(to, submit_wait(&op, 1), 0, "theft");
	result_at(to, op.status, 0, "theft, status");
	ok_at(to, !loot.theft.taken && loot.theft.busy == 3, "theft of nothing");
}

/* Two submissions in flight at the same time, over all nodes, with results in two arrays */
static void tickets(void)
{
	uint64_t one, two;
	unsigned int i, wrong = 0;

	for (i = 0; i < nodes; i++) {
		put_word(i, 0, ABOVE * i + node);
		put_word(i, WORD, ABOVE * node + i);
		words[i] = ~0ULL;
		ops[i] = transfer(KDSM_OP_GET, i, &words[i], sizeof(words[i]), 0);
		more[i] = atomic(KDSM_OP_FAA, i, 0, 1);
	}
	result(submit(ops, nodes, &one), 0, "SUBMIT of gets without WAIT");
	result(submit(more, nodes, &two), 0, "SUBMIT of faas without WAIT");
	ok(one && two && one != two, "tickets");
	result(complete(two), 0, "COMPLETE of the second");
	result(complete(one), 0, "COMPLETE of the first");
	result(complete(one), -ENOENT, "COMPLETE again");
	result(complete(one | ABOVE), -ENOENT, "COMPLETE, the upper half of the ticket counts");
	for (i = 0; i < nodes; i++) {
		wrong += words[i] != ABOVE * i + node || ops[i].status;
		wrong += more[i].result != ABOVE * node + i || more[i].status;
	}
	result(wrong, 0, "COMPLETE, wrong results");
}

/* A put and an atomic on each node by a ring */
static void ring(void)
{
	struct kdsm_ring_setup setup = { .argsz = sizeof(setup), .entries = 2, .buffer_size = 64 };
	struct kdsm_ring_enter enter = {
		.argsz = sizeof(enter), .submit = 2, .wait = 2, .timeout = 60 * SECOND,
	};
	const struct kdsm_ring_completion *completions;
	struct kdsm_ring_entry *entries;
	struct kdsm_ring_head *head;
	unsigned int i, k, wrong = 0;
	long at;

	must(control(KDSM_IOC_RING_SETUP, &setup), "RING_SETUP");
	at = map(0, setup.size, PROT_READ | PROT_WRITE, MAP_SHARED, setup.file, 0);
	must(at < 0 && at >= -4095 ? at : 0, "mmap2 of the ring");
	head = (void *)at;
	entries = (void *)(at + setup.submissions);
	completions = (void *)(at + setup.completions);
	for (i = 0; i < nodes; i++) {
		*(uint64_t *)(at + setup.buffer + 8) = ABOVE * i + node;
		entries[0].op = transfer(KDSM_OP_PUT, i, NULL, 8, 0);
		entries[0].op.addr = 8;
		entries[0].data = ABOVE;
		entries[1].op = atomic(KDSM_OP_FAA, i, 0, ABOVE);
		entries[1].data = ABOVE + 1;
		head->submission_tail += 2;
		wrong += call(__NR_ioctl, setup.file, KDSM_IOC_RING_ENTER, (long)&enter) != 0;
		wrong += enter.submitted != 2 || enter.ready != 2;
		for (k = 0; k < 2; k++)
			wrong += completions[k].status || completions[k].data >> 32 != 1;
		head->completion_head += 2;
		ops[i] = transfer(KDSM_OP_GET, i, &words[i], 8, 0);
	}
	result(wrong, 0, "RING_ENTER, wrong results");
	result(submit_wait(ops, nodes), 0, "gets of what the ring has put");
	for (i = 0; i < nodes; i++)
		wrong += words[i] != ABOVE * i + node;
	result(wrong, 0, "wrong words");
	result(call(__NR_close, setup.file, 0, 0), 0, "close of the ring");
}

/* The lower 32 bits are a valid address, so a kernel that dropped the upper ones would succeed. */
static void addresses_above(void)
{
	struct kdsm_submit args = {
		.argsz = sizeof(args),
		.flags = KDSM_SUBMIT_WAIT,
		.count = 1,
	};
	struct kdsm_op op;

	op = transfer(KDSM_OP_PUT, node, put, BYTES, 0);
	op.addr += ABOVE;
	result(submit_wait(&op, 1), -EFAULT, "put from above 4 GiB");
	result(op.status, -EFAULT, "put from above 4 GiB, status");
	op = transfer(KDSM_OP_GET, node, got, BYTES, 0);
	op.addr += ABOVE;
	result(submit_wait(&op, 1), -EFAULT, "get to above 4 GiB");
	result(op.status, -EFAULT, "get to above 4 GiB, status");
	op = atomic(KDSM_OP_FAA, node, 0, 1);
	args.ops = address(&op) + ABOVE;
	result(control(KDSM_IOC_SUBMIT, &args), -EFAULT, "SUBMIT, operations above 4 GiB");
	args.ops = address(&op);
	op.offset += ABOVE;
	result(control(KDSM_IOC_SUBMIT, &args), -ERANGE, "faa, offset above 4 GiB");
}

/* A child sleeps until it is woken, or finds the new value if it comes late. */
static void waking(void)
{
	struct kdsm_wake wake = { .argsz = sizeof(wake), .offset = place(WAITED) };
	struct { long seconds, nanoseconds; } pause = { 0, SECOND / 5 };
	const uint64_t value = ABOVE + 7;
	long child, status = -1;

	must(put_word(node, WAITED, value), "put of the word that is waited for");
	result(wait_while(value, 0), -ETIMEDOUT, "WAIT, equal, timeout 0");
	result(wait_while(value, 1000), -ETIMEDOUT, "WAIT, equal, timeout 1 us");
	result(wait_while(7, 0), 0, "WAIT, differs in the upper half, timeout 0");
	result(wait_while(7, ~0ULL), 0, "WAIT, differs, for ever");
	result(control(KDSM_IOC_WAKE, &wake), 0, "WAKE of nobody");
	child = call(__NR_fork, 0, 0, 0);
	if (!child)
		leave(!!wait_while(value, 60 * SECOND));
	must(child, "fork");
	call(__NR_nanosleep, (long)&pause, 0, 0);
	result(put_word(node, WAITED, value + 1), 0, "put of another value");
	result(control(KDSM_IOC_WAKE, &wake), 0, "WAKE");
	result(call(__NR_waitpid, child, (long)&status, 0), child, "the child ends");
	result(status, 0, "it was woken");
	wake.offset += ABOVE;
	result(control(KDSM_IOC_WAKE, &wake), -ERANGE, "WAKE, offset above 4 GiB");
}

/* A region has one address in every program, above 4 GiB, so no 32-bit program can map it. */
static void mapping(void)
{
	const long protection = PROT_READ | PROT_WRITE;

	result(map(0, PART, protection, MAP_SHARED, device, 0), -ENOMEM, "mmap2");
	result(map(0x10000000, PART, protection, MAP_SHARED | MAP_FIXED, device, 0),
	       -EINVAL, "mmap2 to a place of its own choice");
}

/* Lock words can be mapped at any address. Each node has a lock of its own, by name. */
static void locking(void)
{
	struct kdsm_lock_open open = {
		.argsz = sizeof(open),
		.flags = KDSM_LOCK_CREATE,
		.kind = KDSM_LOCK_DMCS,
		.name = { 'c', '0' + node / 10, '0' + node % 10 },
	};
	struct kdsm_lock_thread thread = { .argsz = sizeof(thread) };
	struct kdsm_lock_take take = { .argsz = sizeof(take), .timeout = 60 * SECOND };
	struct kdsm_lock_give give = { .argsz = sizeof(give) };
	struct kdsm_lock_set set = { .argsz = sizeof(set) };
	static struct kdsm_lock_info info;
	struct kdsm_lock_word *word;
	uint64_t free, mine;
	long at;

	must(control(KDSM_IOC_LOCK_OPEN, &open), "LOCK_OPEN");
	ok(open.levels == 2 && open.settings.keep == KDSM_LOCK_KEEP_FOREVER, "LOCK_OPEN, results");
	must(control(KDSM_IOC_LOCK_THREAD, &thread), "LOCK_THREAD");
	at = map(0, KDSM_LOCKS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, device,
		 KDSM_LOCKS_OFFSET_32 / 4096);
	/* An address above 2 GiB is negative, but no error: errors are -4095 to -1. */
	must(at < 0 && at >= -4095 ? at : 0, "mmap2 of the lock words");
	result(map(0, KDSM_LOCKS_SIZE + 4096, PROT_READ, MAP_SHARED, device,
		   KDSM_LOCKS_OFFSET_32 / 4096), -EINVAL, "mmap2 of more than these");
	word = (struct kdsm_lock_word *)at + open.number;
	take.number = open.number;
	take.thread = thread.thread;
	give.number = open.number;
	give.thread = thread.thread;
	free = KDSM_LOCK_AT_NODE;
	mine = free | thread.thread;
	result(control(KDSM_IOC_LOCK, &take), 0, "LOCK");
	result(control(KDSM_IOC_LOCK, &take), -EDEADLK, "LOCK again");
	ok(word->state == mine, "the lock word says who has it");
	ok(__sync_bool_compare_and_swap(&word->state, mine, free), "unlocked by the word");
	ok(__sync_bool_compare_and_swap(&word->state, free, mine), "locked by the word");
	word->uses++;
	result(control(KDSM_IOC_LOCK_CONSISTENT, &give), -EINVAL, "LOCK_CONSISTENT");
	result(control(KDSM_IOC_UNLOCK, &give), 0, "UNLOCK");
	result(control(KDSM_IOC_UNLOCK, &give), -EPERM, "UNLOCK again");
	set.number = open.number;
	set.settings.mask = KDSM_LOCK_SET_KEEP;
	set.settings.keep = ABOVE;
	result(control(KDSM_IOC_LOCK_SET, &set), 0, "LOCK_SET");
	info.argsz = sizeof(info);
	info.number = open.number;
	result(control(KDSM_IOC_LOCK_INFO, &info), 0, "LOCK_INFO");
	ok(info.stats[KDSM_LOCK_STAT_LOCKS] == 1 && info.stats[KDSM_LOCK_STAT_FAST] == 1,
	   "LOCK_INFO, what was counted");
	ok(info.settings.keep == ABOVE, "LOCK_INFO, a setting above 32 bits");
}

static void __attribute__((noreturn)) all(void)
{
	unsigned int i;

	device = call(__NR_open, (long)KDSM_DEVICE, O_RDWR, 0);
	must(device, "open of " KDSM_DEVICE);
	information();
	opening();
	for (i = 0; i < nodes; i++) {
		put_and_get(i);
		atomics(i);
		thefts(i);
	}
	tickets();
	ring();
	addresses_above();
	waking();
	mapping();
	locking();
	say("1..");
	say_number(count);
	say("\n");
	leave(!!failures);
}

/* At the entry the stack is aligned differently than after a call. */
void __attribute__((noreturn, force_align_arg_pointer)) _start(void)
{
	all();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Every documented error of the ioctls on a bound file: operations, tickets, waiting and
 * waking; on this node's part and, if there is another node, on that node's part.
 */
#include <signal.h>
#include <time.h>

#include "hostile.h"

static long page;
static char *memory;		/* a page that an inaccessible one follows */
static struct kdsm_info info;
static struct kdsm_region_open opened;

static int bound(int flags)
{
	int file = device(flags), error;

	opened = region(file, "operation");
	opened.flags &= ~KDSM_REGION_EXCL;
	error = call(file, KDSM_IOC_REGION_OPEN, &opened);
	if (error)
		tap_bail("cannot open a region: %s", strerror(-error));
	return file;
}

static int submit(int file, uint32_t flags, struct kdsm_op *ops, uint32_t count,
		  uint64_t *ticket)
{
	struct kdsm_submit arg = {
		.argsz = sizeof(arg),
		.flags = flags,
		.ops = (uintptr_t)ops,
		.count = count,
	};
	int error = call(file, KDSM_IOC_SUBMIT, &arg);

	if (ticket)
		*ticket = arg.ticket;
	return error;
}

static int complete(int file, uint64_t ticket, uint64_t timeout)
{
	struct kdsm_complete arg = {
		.argsz = sizeof(arg),
		.ticket = ticket,
		.timeout = timeout,
	};

	return call(file, KDSM_IOC_COMPLETE, &arg);
}

static struct kdsm_op operation(uint8_t opcode, uint16_t node)
{
	return (struct kdsm_op){
		.opcode = opcode,
		.node = node,
		.length = 8,
		.addr = opcode <= KDSM_OP_PUT ? (uintptr_t)memory : 0,
	};
}

/*
 * Submit a good operation and a bad one: the call and the bad operation return the same
 * error, and the good one succeeds.
 */
static void bad_op(int file, const char *what, struct kdsm_op op, int expected)
{
	struct kdsm_op ops[2] = { operation(KDSM_OP_FAA, op.node), op };
	uint64_t former;
	int error;

	if (op.node >= info.nodes)
		ops[0].node = info.node;
	if (submit(file, KDSM_SUBMIT_WAIT, ops, 1, NULL))
		tap_bail("a good operation failed: %s", strerror(-ops[0].status));
	former = ops[0].result;
	ops[0].operand = 1;
	ops[1].status = 4711;
	error = submit(file, KDSM_SUBMIT_WAIT, ops, 2, NULL);
	tap_ok(error == expected && ops[1].status == expected,
	       "op on node %u, %s: %s", op.node, what, tap_error(expected));
	if (error != expected || ops[1].status != expected)
		printf("# got %s, status %s\n", tap_error(error),
		       tap_error(ops[1].status));
	tap_ok(!ops[0].status && ops[0].result == former,
	       "the good one beside it succeeded");
}

static void operations_on(int file, uint16_t node)
{
	const uint64_t end = opened.part_size;
	struct kdsm_op op;

#define TRY(what, code, field, value, expected) do {			\
	op = operation(code, node);					\
	op.field = (value);						\
	bad_op(file, what, op, expected);				\
} while (0)
	TRY("opcode 0", KDSM_OP_GET, opcode, 0, -EINVAL);
	TRY("opcode 7", KDSM_OP_GET, opcode, 7, -EINVAL);
	TRY("opcode 255", KDSM_OP_GET, opcode, 255, -EINVAL);
	TRY("unknown flag", KDSM_OP_PUT, flags, 2, -EINVAL);
	TRY("all flags", KDSM_OP_GET, flags, 255, -EINVAL);
	TRY("notifying get", KDSM_OP_GET, flags, KDSM_OP_NOTIFY, -EINVAL);
	TRY("notifying cas", KDSM_OP_CAS, flags, KDSM_OP_NOTIFY, -EINVAL);
	TRY("reserved", KDSM_OP_GET, reserved, 1, -EINVAL);
	TRY("get of nothing", KDSM_OP_GET, length, 0, -EINVAL);
	TRY("get too long", KDSM_OP_GET, length, KDSM_MAX_OP_LENGTH + 1, -EINVAL);
	TRY("get of 4 GiB", KDSM_OP_GET, length, UINT32_MAX, -EINVAL);
	TRY("put of nothing", KDSM_OP_PUT, length, 0, -EINVAL);
	TRY("cas of 4", KDSM_OP_CAS, length, 4, -EINVAL);
	TRY("faa of 16", KDSM_OP_FAA, length, 16, -EINVAL);
	TRY("cas at 4", KDSM_OP_CAS, offset, 4, -EINVAL);
	TRY("faa at 1", KDSM_OP_FAA, offset, 1, -EINVAL);
	TRY("get at the end", KDSM_OP_GET, offset, end, -ERANGE);
	TRY("get over the end", KDSM_OP_GET, offset, end - 7, -ERANGE);
	TRY("get that wraps", KDSM_OP_GET, offset, -4ULL, -ERANGE);
	TRY("get at 2^63", KDSM_OP_GET, offset, 1ULL << 63, -ERANGE);
	TRY("put over the end", KDSM_OP_PUT, offset, end - 1, -ERANGE);
	TRY("put that wraps", KDSM_OP_PUT, offset, -8ULL, -ERANGE);
	TRY("cas at the end", KDSM_OP_CAS, offset, end, -ERANGE);
	TRY("faa at the end of all", KDSM_OP_FAA, offset, -8ULL, -ERANGE);
	TRY("get to NULL", KDSM_OP_GET, addr, 0, -EFAULT);
	TRY("put from NULL", KDSM_OP_PUT, addr, 0, -EFAULT);
	TRY("get to nowhere", KDSM_OP_GET, addr, (uintptr_t)memory + page, -EFAULT);
	TRY("get over an edge", KDSM_OP_GET, addr, (uintptr_t)memory + page - 4, -EFAULT);
	TRY("put over an edge", KDSM_OP_PUT, addr, (uintptr_t)memory + page - 4, -EFAULT);
	TRY("get to the kernel", KDSM_OP_GET, addr, 0xffff888000000000ULL, -EFAULT);
	TRY("put from the kernel", KDSM_OP_PUT, addr, 0xffffffff81000000ULL, -EFAULT);
	TRY("get to addresses that wrap", KDSM_OP_GET, addr, -4ULL, -EFAULT);
#undef TRY
	op = operation(KDSM_OP_PUT, node);
	op.flags = KDSM_OP_NOTIFY;
	op.length = 12;
	bad_op(file, "notifying put of a word and a half", op, -EINVAL);
	op.length = KDSM_MAX_OP_LENGTH + 8;
	bad_op(file, "notifying put too long", op, -EINVAL);
	op.length = 16;
	op.offset = end - 8;
	bad_op(file, "notifying put over the end", op, -ERANGE);
	op.length = 8;
	op.offset = 4;
	bad_op(file, "notifying put across two words", op, -EINVAL);
	op = operation(KDSM_OP_PUT, node);
	op.addr = (uintptr_t)operations_on & -4096UL;	/* code is read-only */
	tap_result(submit(file, KDSM_SUBMIT_WAIT, &op, 1, NULL), 0,
		   "put from read-only memory");
	op.opcode = KDSM_OP_GET;
	bad_op(file, "get to read-only memory", op, -EFAULT);
	/* The last word of the part is accessible. */
	op = operation(KDSM_OP_GET, node);
	op.offset = end - 8;
	tap_result(submit(file, KDSM_SUBMIT_WAIT, &op, 1, NULL), 0, "get of the last word");
}

static const struct kdsm_find good_find = {
	.entries = 8, .nodes = 8, .data = 128, .first = 16, .node = { 1, 2 },
	.number = 99, .probes = 8, .fragment = 3, .run = 8,
};

/* The index is in memory that is still zero, so it has no entries. */
static void finds_on(int file, uint16_t node)
{
	const uint64_t part = opened.part_size;
	struct kdsm_find *find = (void *)memory, bad;
	struct kdsm_op op = operation(KDSM_OP_FIND, node);

	op.offset = part / 2;
	op.length = sizeof(*find);
	op.addr = (uintptr_t)find;
	*find = good_find;
	tap_result(submit(file, KDSM_SUBMIT_WAIT, &op, 1, NULL), 0, "find on node %u", node);
	tap_ok(find->outcome == KDSM_FIND_PUT && !find->entry && find->probes == 7 &&
	       find->number == 99 && find->done == 1, "it put the number");
#define TRY(what, field, value, expected) do {				\
	bad = good_find;						\
	bad.field = (value);						\
	*find = bad;							\
	bad_op(file, "find, " what, op, expected);			\
} while (0)
	TRY("no entries", entries, 0, -EINVAL);
	TRY("entries absurd", entries, -1ULL, -EINVAL);
	TRY("entries over the end", entries, part / 16 + 1, -ERANGE);
	TRY("entry behind the last", entry, 8, -EINVAL);
	TRY("no nodes", nodes, 0, -EINVAL);
	TRY("nodes absurd", nodes, 1ULL << 63, -EINVAL);
	TRY("nodes over the end", nodes, part / 16 - 7, -ERANGE);
	TRY("nodes at the end", data, part, -ERANGE);
	TRY("nodes at the end of all", data, -8ULL, -ERANGE);
	TRY("nodes at 4", data, 4, -EINVAL);
	TRY("first absurd", first, -1ULL, -EINVAL);
	TRY("number absurd", number, 1ULL << 40, -EINVAL);
	TRY("no probes", probes, 0, -EINVAL);
	TRY("too many probes", probes, KDSM_FIND_PROBES_MAX + 1, -EINVAL);
	TRY("outcome", outcome, KDSM_FIND_PUT, -EINVAL);
	TRY("a walk too long", done, KDSM_FIND_PROBES_MAX - 7, -EINVAL);
	TRY("a walk absurd", done, UINT32_MAX - 7, -EINVAL);
	TRY("runs of 0", run, 0, -EINVAL);
	TRY("runs of 3", run, 3, -EINVAL);
	TRY("runs absurd", run, UINT32_MAX, -EINVAL);
#undef TRY
	*find = good_find;
	op.offset = part / 2 + 4;
	bad_op(file, "find, entries at 4", op, -EINVAL);
	op.offset = part;
	bad_op(file, "find, entries at the end", op, -ERANGE);
	op.offset = -8ULL;
	bad_op(file, "find, entries at the end of all", op, -ERANGE);
	op.offset = part / 2;
	op.length--;
	bad_op(file, "find, length", op, -EINVAL);
	op.length++;
	op.addr = (uintptr_t)memory + page - 8;
	bad_op(file, "find, cut off", op, -EFAULT);
	/*
	 * The end of the longest walk. Each of its entries is a run, and is the index's
	 * only entry.
	 */
	*find = good_find;
	op.addr = (uintptr_t)find;
	find->entries = 1;
	find->done = KDSM_FIND_PROBES_MAX - find->probes;
	find->run = 1;
	find->fragment++;
	tap_result(submit(file, KDSM_SUBMIT_WAIT, &op, 1, NULL), 0, "find, round and round");
	tap_ok(find->outcome == KDSM_FIND_FULL && !find->entry && !find->probes &&
	       find->done == KDSM_FIND_PROBES_MAX, "it came to an end");
	/* A program has stored a word that is no entry. */
	*find = good_find;
	op.addr = (uintptr_t)find;
	find->entry = 1;
	find->probes = 1;
	((uint64_t *)(memory + 256))[0] = 0x1234;
	tap_result(submit(file, KDSM_SUBMIT_WAIT, &(struct kdsm_op){
		.opcode = KDSM_OP_PUT, .node = node, .length = 8, .offset = op.offset + 8,
		.addr = (uintptr_t)memory + 256 }, 1, NULL), 0, "put of what is no entry");
	bad_op(file, "find, what is no entry", op, -EIO);
}

static const struct kdsm_theft good_theft = {
	.workers = 64, .deques = 4096, .stride = 128, .count = 4, .deque = 16, .thief = 5,
	.proxy = 9, .most = KDSM_THEFT_MOST,
};

/* The words of workers at offset 64 publish no tasks, whatever earlier tests stored there. */
static void thefts_on(int file, uint16_t node)
{
	const uint64_t part = opened.part_size;
	struct kdsm_theft *theft = (void *)memory, bad;
	struct kdsm_op op = operation(KDSM_OP_STEAL, node), put = operation(KDSM_OP_PUT, node);
	static const struct kdsm_task_crew crew = { .busy = -1U, .used = -1U };

	put.addr = (uintptr_t)&crew;
	tap_result(submit(file, KDSM_SUBMIT_WAIT, &put, 1, NULL), 0, "put of an absurd crew");
	op.length = kdsm_theft_size(good_theft.most);
	op.addr = (uintptr_t)theft;
	*theft = good_theft;
	tap_result(submit(file, KDSM_SUBMIT_WAIT, &op, 1, NULL), 0, "theft on node %u", node);
	tap_ok(!theft->taken && theft->busy == -1U, "it found nothing");
#define TRY(what, field, value, expected) do {				\
	bad = good_theft;						\
	bad.field = (value);						\
	*theft = bad;							\
	bad_op(file, "theft, " what, op, expected);			\
} while (0)
	TRY("no workers", count, 0, -EINVAL);
	TRY("too many workers", count, KDSM_THEFT_WORKERS + 1, -EINVAL);
	TRY("workers over the end", workers, part - 256, -ERANGE);
	TRY("workers at the end of all", workers, -64ULL, -ERANGE);
	TRY("workers at 8", workers, 8, -EINVAL);
	TRY("no stride", stride, 0, -EINVAL);
	TRY("stride too short", stride, 64, -EINVAL);
	TRY("stride uneven", stride, 129, -EINVAL);
	TRY("stride over the end", stride, -64U, -ERANGE);
	TRY("no deque", deque, 0, -EINVAL);
	TRY("deque absurd", deque, -1U, -EINVAL);
	TRY("deque over the end", deque, part / 512, -ERANGE);
	TRY("deques at 16", deques, 16, -EINVAL);
	TRY("deques at the end", deques, part, -ERANGE);
	TRY("deques at the end of all", deques, -64ULL, -ERANGE);
	TRY("no tasks", most, 0, -EINVAL);
	TRY("fewer tasks than there is room for", most, 1, -EINVAL);
	TRY("too many tasks", most, KDSM_THEFT_MOST + 1, -EINVAL);
	TRY("tasks that wrap", most, 1U << 30, -EINVAL);
	TRY("taken", taken, 1, -EINVAL);
	TRY("busy", busy, 1, -EINVAL);
	TRY("reserved", reserved, 1, -EINVAL);
#undef TRY
	*theft = good_theft;
	op.offset = 4;
	bad_op(file, "theft, crew at 4", op, -EINVAL);
	op.offset = part;
	bad_op(file, "theft, crew at the end", op, -ERANGE);
	op.offset = -8ULL;
	bad_op(file, "theft, crew at the end of all", op, -ERANGE);
	op.offset = 0;
	op.length--;
	bad_op(file, "theft, length", op, -EINVAL);
	op.length = 8;
	bad_op(file, "theft, length of a word", op, -EINVAL);
	op.length = kdsm_theft_size(KDSM_THEFT_MOST + 1);
	bad_op(file, "theft, too long", op, -EINVAL);
	op.length = kdsm_theft_size(good_theft.most);
	op.addr = (uintptr_t)memory + page - 8;
	bad_op(file, "theft, cut off", op, -EFAULT);
}

static void bad_nodes(int file)
{
	struct kdsm_op op = operation(KDSM_OP_GET, info.nodes);

	bad_op(file, "a node too many", op, -EINVAL);
	op.node = KDSM_MAX_NODES;
	bad_op(file, "the node after the last that can be", op, -EINVAL);
	op.node = UINT16_MAX;
	bad_op(file, "node 65535", op, -EINVAL);
}

static void bad_submissions(int file)
{
	struct kdsm_op op = operation(KDSM_OP_FAA, info.node), *ops;
	struct kdsm_submit arg = {
		.argsz = sizeof(arg), .flags = KDSM_SUBMIT_WAIT,
		.ops = (uintptr_t)&op, .count = 1, .reserved = 1,
	};
	int unbound = device(O_RDWR);

	tap_result(call(file, KDSM_IOC_SUBMIT, &arg), -EINVAL, "SUBMIT, reserved");
	tap_result(submit(file, 2, &op, 1, NULL), -EINVAL, "SUBMIT, unknown flag");
	tap_result(submit(file, -1, &op, 1, NULL), -EINVAL, "SUBMIT, all flags");
	tap_result(submit(file, 1, &op, 0, NULL), -EINVAL, "SUBMIT of nothing");
	tap_result(submit(file, 1, &op, KDSM_MAX_OPS + 1, NULL), -EINVAL, "SUBMIT of too many");
	tap_result(submit(file, 1, &op, UINT32_MAX, NULL), -EINVAL, "SUBMIT of 4 G");
	tap_result(submit(file, 1, NULL, 1, NULL), -EFAULT, "SUBMIT, ops NULL");
	tap_result(submit(file, 1, (void *)(memory + page - 8), 1, NULL), -EFAULT,
		   "SUBMIT, ops cut off");
	tap_result(submit(file, 1, (void *)-64L, 8, NULL), -EFAULT,
		   "SUBMIT, ops that wrap");
	tap_result(submit(file, 1, (void *)0xffff888000000000UL, 1, NULL), -EFAULT,
		   "SUBMIT, ops in the kernel");
	tap_result(submit(unbound, 1, &op, 1, NULL), -EBADFD, "SUBMIT, file not bound");
	ops = (void *)memory;
	*ops = op;
	mprotect(memory, page, PROT_READ);
	tap_result(submit(file, 1, ops, 1, NULL), -EFAULT, "SUBMIT, ops read-only");
	mprotect(memory, page, PROT_READ | PROT_WRITE);
	close(unbound);
}

static void permissions(void)
{
	int file = bound(O_RDONLY);
	struct kdsm_op op = operation(KDSM_OP_GET, info.node);

	tap_result(submit(file, 1, &op, 1, NULL), 0, "get by a file for reading");
	for (uint16_t node = 0; node < info.nodes && node < 2; node++) {
		op = operation(KDSM_OP_PUT, node);
		tap_result(submit(file, 1, &op, 1, NULL), -EACCES, "put by a file for reading");
		op = operation(KDSM_OP_CAS, node);
		tap_result(submit(file, 1, &op, 1, NULL), -EACCES, "cas by a file for reading");
		op = operation(KDSM_OP_FAA, node);
		tap_result(submit(file, 1, &op, 1, NULL), -EACCES, "faa by a file for reading");
		op = operation(KDSM_OP_FIND, node);
		op.length = sizeof(struct kdsm_find);
		tap_result(submit(file, 1, &op, 1, NULL), -EACCES, "find by a file for reading");
		op = operation(KDSM_OP_STEAL, node);
		op.length = kdsm_theft_size(1);
		tap_result(submit(file, 1, &op, 1, NULL), -EACCES, "theft by a file for reading");
	}
	close(file);
}

static void tickets(int file)
{
	uint16_t other = (info.node + 1) % info.nodes;
	struct kdsm_op op = operation(KDSM_OP_GET, other), big[8];
	static char buffers[8][KDSM_MAX_OP_LENGTH];
	static uint64_t many[KDSM_MAX_TICKETS + 1];
	struct kdsm_complete arg = { .argsz = sizeof(arg), .flags = 1 };
	int unbound = device(O_RDWR), count, error = 0;
	uint64_t ticket, second;

	tap_result(complete(file, 0, 0), -ENOENT, "COMPLETE of ticket 0");
	tap_result(complete(file, 1ULL << 63, UINT64_MAX), -ENOENT, "COMPLETE of an unknown ticket");
	tap_result(complete(file, UINT64_MAX, 1), -ENOENT, "COMPLETE of ticket 2^64 - 1");
	tap_either(complete(unbound, 1, 0), -ENOENT, -EBADFD, "COMPLETE, file not bound");
	tap_result(call(file, KDSM_IOC_COMPLETE, &arg), -EINVAL, "COMPLETE, unknown flag");
	tap_result(submit(file, 0, &op, 1, &ticket), 0, "SUBMIT");
	tap_ok(ticket, "there is a ticket");
	tap_either(complete(unbound, ticket, 0), -ENOENT, -EBADFD, "COMPLETE on another file");
	tap_result(complete(file, ticket, UINT64_MAX), 0, "COMPLETE");
	tap_result(complete(file, ticket, 0), -ENOENT, "COMPLETE again");

	op.offset = opened.part_size;
	tap_result(submit(file, 0, &op, 1, &ticket), 0, "SUBMIT of a bad operation");
	tap_result(complete(file, ticket, UINT64_MAX), -ERANGE, "COMPLETE of it");
	op.offset = 0;

	/* The memory for the results is inaccessible when the operation completes. */
	tap_result(submit(file, 0, (void *)memory, 1, &ticket) ? 0 :
		   complete(file, ticket, UINT64_MAX), -EINVAL, "SUBMIT of a zeroed operation");
	memcpy(memory, &op, sizeof(op));
	tap_result(submit(file, 0, (void *)memory, 1, &ticket), 0, "SUBMIT");
	mprotect(memory, page, PROT_NONE);
	tap_result(complete(file, ticket, UINT64_MAX), -EFAULT, "COMPLETE into nothing");
	mprotect(memory, page, PROT_READ | PROT_WRITE);

	for (count = 0; count <= KDSM_MAX_TICKETS && !error; count += !error)
		error = submit(file, 0, &op, 1, &many[count]);
	tap_result(error, -EAGAIN, "SUBMIT until there are too many tickets");
	tap_ok(count > 0 && count <= KDSM_MAX_TICKETS, "that is after %d", count);
	for (error = 0; count-- > 0; )
		error = complete(file, many[count], UINT64_MAX) ? : error;
	tap_result(error, 0, "COMPLETE of all of them, last first");

	for (int i = 0; i < 8; i++) {
		big[i] = operation(KDSM_OP_GET, other);
		big[i].addr = (uintptr_t)buffers[i];
		big[i].length = opened.part_size < KDSM_MAX_OP_LENGTH ?
				opened.part_size : KDSM_MAX_OP_LENGTH;
	}
	for (count = error = 0; count < 256 && !error; count += !error)
		error = submit(file, 0, big, 8, &many[count]);
	tap_result(error, -EAGAIN, "SUBMIT until there are too many bytes");
	for (error = 0; count-- > 0; )
		error = complete(file, many[count], UINT64_MAX) ? : error;
	tap_result(error, 0, "COMPLETE of all of them");
	tap_result(submit(file, 0, &op, 1, &second), 0, "SUBMIT goes on after that");
	/* The second ticket remains for close() to complete. */
	tap_ok(second != ticket, "tickets are not used twice");
	close(unbound);
}

static int waiting(int file, uint64_t offset, uint64_t value, uint64_t timeout)
{
	struct kdsm_wait arg = {
		.argsz = sizeof(arg), .offset = offset,
		.value = value, .timeout = timeout,
	};

	return call(file, KDSM_IOC_WAIT, &arg);
}

static int wake(int file, uint64_t offset)
{
	struct kdsm_wake arg = { .argsz = sizeof(arg), .offset = offset };

	return call(file, KDSM_IOC_WAKE, &arg);
}

static void on_alarm(int signal)
{
	(void)signal;
}

static void waits(int file)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const uint64_t ms = 1000 * 1000, end = opened.part_size;
	struct kdsm_wait flagged = { .argsz = sizeof(flagged), .flags = 1 };
	struct kdsm_wake flagged_wake = { .argsz = sizeof(flagged_wake), .flags = 1 };
	int unbound = device(O_RDWR);
	struct timespec from, to;

	tap_result(call(file, KDSM_IOC_WAIT, &flagged), -EINVAL, "WAIT, unknown flag");
	tap_result(call(file, KDSM_IOC_WAKE, &flagged_wake), -EINVAL, "WAKE, unknown flag");
	tap_result(waiting(unbound, 0, 0, 0), -EBADFD, "WAIT, file not bound");
	tap_result(wake(unbound, 0), -EBADFD, "WAKE, file not bound");
	tap_result(waiting(file, 4, 0, 0), -EINVAL, "WAIT at 4");
	tap_result(wake(file, 1), -EINVAL, "WAKE at 1");
	tap_result(waiting(file, end, 0, 0), -ERANGE, "WAIT at the end");
	tap_result(waiting(file, -8ULL, 0, 0), -ERANGE, "WAIT at the end of all");
	tap_result(wake(file, end), -ERANGE, "WAKE at the end");
	tap_result(wake(file, -8ULL), -ERANGE, "WAKE at the end of all");
	tap_result(waiting(file, end - 8, 0, 0), -ETIMEDOUT, "WAIT without patience");
	clock_gettime(CLOCK_MONOTONIC, &from);
	tap_result(waiting(file, end - 8, 0, 20 * ms), -ETIMEDOUT, "WAIT for 20 ms");
	clock_gettime(CLOCK_MONOTONIC, &to);
	tap_ok((to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec >=
	       (long long)(20 * ms), "that took 20 ms at least");
	tap_result(waiting(file, end - 8, 1, UINT64_MAX), 0, "WAIT for what is there");
	tap_result(wake(file, end - 8), 0, "WAKE of nobody");
	sigaction(SIGALRM, &action, NULL);
	ualarm(50000, 50000);
	tap_result(waiting(file, end - 8, 0, UINT64_MAX), -EINTR, "WAIT with a signal");
	tap_result(waiting(file, end - 8, 0, UINT64_MAX - 1), -EINTR,
		   "WAIT for almost ever with a signal");
	tap_result(waiting(file, end - 8, 0, 1ULL << 63), -EINTR,
		   "WAIT for half of ever with a signal");
	ualarm(0, 0);
	close(unbound);
}

/* A process that is killed while it waits or has operations in flight leaves nothing behind. */
static void sudden_deaths(void)
{
	int status = 0, died = 0;

	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child) {
			int file = bound(O_RDWR);
			struct kdsm_op op = operation(KDSM_OP_GET, (info.node + 1) % info.nodes);

			op.addr = (uintptr_t)memory;
			for (int n = 0; n < 64; n++)
				submit(file, 0, &op, 1, NULL);
			if (i % 2)
				waiting(file, 0, 0, UINT64_MAX);
			for (;;)
				submit(file, KDSM_SUBMIT_WAIT, &op, 1, NULL);
		}
		usleep(20000 + i * 1000);
		kill(child, SIGKILL);
		died += waitpid(child, &status, 0) == child && WIFSIGNALED(status);
	}
	tap_ok(died == 20, "programs killed in the middle die");
}

int main(void)
{
	int file;

	page = sysconf(_SC_PAGESIZE);
	memory = lone_page();
	file = device(O_RDWR);
	info = information(file);
	close(file);
	file = bound(O_RDWR);
	operations_on(file, info.node);
	finds_on(file, info.node);
	thefts_on(file, info.node);
	if (info.nodes > 1) {
		operations_on(file, (info.node + 1) % info.nodes);
		finds_on(file, (info.node + 1) % info.nodes);
		thefts_on(file, (info.node + 1) % info.nodes);
	}
	bad_nodes(file);
	bad_submissions(file);
	permissions();
	tickets(file);
	waits(file);
	close(file);
	sudden_deaths();
	return tap_end();
}

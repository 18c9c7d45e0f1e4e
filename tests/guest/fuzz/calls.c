// SPDX-License-Identifier: GPL-2.0
/* The random calls of hostile-fuzz, but those about locks. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>

#include "fuzz.h"

struct fuzz fuzz;

static struct random *const rnd = &fuzz.random;
static sigjmp_buf jump;
static volatile sig_atomic_t jumping;

static void on_signal(int signal)
{
	if (signal == SIGALRM)
		return;
	if (!jumping)
		_exit(100 + signal);
	siglongjmp(jump, signal);
}

void fuzz_signals(void)
{
	const struct sigaction action = { .sa_handler = on_signal };
	const struct itimerval alarm = { { 0, 30000 }, { 0, 30000 } };

	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	setitimer(ITIMER_REAL, &alarm, NULL);
}

/* Choose an address for a struct: mostly an accessible one, sometimes one that faults. */
static void *place(size_t size)
{
	switch (random_below(rnd, 24)) {
	case 0:
		return fuzz.arena + VANISHING * PAGE - random_below(rnd, size + 1);
	case 1:
		return fuzz.arena + VANISHING * PAGE + random_below(rnd, 4 * PAGE);
	case 2:
		return fuzz.arena + READ_ONLY * PAGE + random_below(rnd, PAGE - size);
	case 3:
		return fuzz.arena + NO_ACCESS * PAGE - random_below(rnd, size + 1);
	case 4:
		return (void *)random_nasty(rnd);
	default:
		return fuzz.arena + random_below(rnd, 4 * PAGE);
	}
}

/*
 * Copy the object to a random address if it is accessible; otherwise the call gets the
 * bytes that are there.
 */
static void *placed(const void *object, size_t size)
{
	void *at = place(size);

	if ((char *)at < fuzz.arena || (char *)at >= fuzz.arena + ARENA_PAGES * PAGE)
		return at;
	jumping = 1;
	if (!sigsetjmp(jump, 1))
		memcpy(at, object, size);
	jumping = 0;
	return at;
}

static uint64_t address(uint64_t length)
{
	switch (random_below(rnd, 12)) {
	case 0:
		return (uintptr_t)place(64);
	case 1:
		return random_nasty(rnd);
	default:
		return (uintptr_t)fuzz.data + random_below(rnd, length < DATA ? DATA - length : 1);
	}
}

static uint64_t offset_in(const struct bound *bound)
{
	uint64_t part = bound->part_size ? bound->part_size : PAGE;

	switch (random_below(rnd, 8)) {
	case 0:
		return part - 8 * random_below(rnd, 4);
	case 1:
		return random_nasty(rnd);
	case 2:
		return random_below(rnd, part);
	default:
		return random_below(rnd, part) & ~7ULL;
	}
}

static uint32_t some_length(void)
{
	if (random_one_in(rnd, 200))
		return 2 << 20;
	if (random_one_in(rnd, 16))
		return random_nasty(rnd);
	return 1 + random_below(rnd, random_one_in(rnd, 10) ? 70000 : 64);
}

uint32_t fuzz_argsz(uint32_t size)
{
	return random_one_in(rnd, 20) ? random_nasty(rnd) : size;
}

void fuzz_doing(const char *what)
{
	snprintf(fuzz.progress->what, sizeof(fuzz.progress->what), "%s", what);
}

/* ---- ioctls ---- */

int fuzz_do(struct bound *bound, const char *what, unsigned long number, void *arg,
	    size_t size)
{
	if (random_one_in(rnd, 10))
		random_mangle(rnd, arg, size);
	fuzz_doing(what);
	return call(bound->file, number, placed(arg, size));
}

static int do_info(struct bound *bound)
{
	struct kdsm_info arg = { .argsz = fuzz_argsz(sizeof(arg)) };

	return fuzz_do(bound, "INFO", KDSM_IOC_INFO, &arg, sizeof(arg));
}

static int do_location(struct bound *bound)
{
	struct kdsm_location arg = {
		.argsz = fuzz_argsz(sizeof(arg)), .node = random_below(rnd, 4),
	};

	return fuzz_do(bound, "LOCATION", KDSM_IOC_LOCATION, &arg, sizeof(arg));
}

static int do_settle(struct bound *bound)
{
	struct kdsm_settle arg = {
		.argsz = fuzz_argsz(sizeof(arg)), .nodes = { random_below(rnd, 16) },
	};

	return fuzz_do(bound, "SETTLE", KDSM_IOC_SETTLE, &arg, sizeof(arg));
}

static unsigned int some_name(char *name)
{
	unsigned int number = random_below(rnd, NAMES);

	snprintf(name, KDSM_NAME_SIZE, "fuzz-%u", number);
	return number;
}

static int do_open(struct bound *bound)
{
	struct kdsm_region_open arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.flags = random_one_in(rnd, 8) ? random_below(rnd, 8) : KDSM_REGION_CREATE,
		.policy = KDSM_POLICY_PARTITIONED,
		.mode = 0666,
	};
	unsigned int number;
	int error;

	/* The name determines the attributes, so that several processes open the same regions. */
	number = some_name(arg.name);
	arg.size = (1 + number % 5) << 20;
	if (number % 4 > 1)
		arg.policy = number % 4 == 2 ? KDSM_POLICY_RELEASE : KDSM_POLICY_STRICT;
	arg.block_size = random_one_in(rnd, 16) ? PAGE << random_below(rnd, 10) : 0;
	if (number % 8 > 4) {
		arg.segments = 2;
		arg.segment[0].block_size = PAGE;
		arg.segment[1] = (struct kdsm_region_segment){ 2 << 20, 8 * PAGE, 0 };
	}
	if (random_one_in(rnd, 4))
		return fuzz_do(bound, "REGION_OPEN mangled", KDSM_IOC_REGION_OPEN,
			       &arg, sizeof(arg));
	fuzz_doing("REGION_OPEN");
	error = call(bound->file, KDSM_IOC_REGION_OPEN, &arg);
	if (!error) {
		bound->part_size = arg.part_size;
		bound->base = arg.base;
	}
	return error;
}

static int do_destroy(struct bound *bound)
{
	struct kdsm_region_destroy arg = { .argsz = fuzz_argsz(sizeof(arg)) };

	some_name(arg.name);
	return fuzz_do(bound, "REGION_DESTROY", KDSM_IOC_REGION_DESTROY, &arg, sizeof(arg));
}

/*
 * A find in a small table, so that finds of several processes meet. If mangled, it may
 * still be valid.
 */
static void make_find(struct bound *bound, struct kdsm_op *op)
{
	struct kdsm_find find = {
		.entries = 64, .nodes = 64, .data = 4096, .first = random_below(rnd, 64),
		.node = { 1 + random_below(rnd, 8), 7 }, .entry = random_below(rnd, 64),
		.number = random_below(rnd, 128), .probes = 1 + random_below(rnd, 70),
		.fragment = random_below(rnd, 4), .done = random_below(rnd, 200),
		.run = 1u << random_below(rnd, 8),
	};

	if (random_one_in(rnd, 4))
		random_mangle(rnd, &find, sizeof(find));
	op->length = sizeof(find);
	op->offset = random_one_in(rnd, 4) ? offset_in(bound) : 8 * random_below(rnd, 256);
	op->addr = (uintptr_t)placed(&find, sizeof(find));
}

/*
 * A theft from words that puts, atomics and other thefts change, so that the module may
 * find anything in the place of a deque.
 */
static void make_theft(struct bound *bound, struct kdsm_op *op)
{
	union {
		struct kdsm_theft theft;
		char room[sizeof(struct kdsm_theft) +
			  KDSM_THEFT_MOST * sizeof(struct kdsm_task_packed)];
	} loot = { .theft = {
		.workers = 64 * random_below(rnd, 8), .deques = 64 * random_below(rnd, 64),
		.stride = 128, .count = 1 + random_below(rnd, 8),
		.deque = 1 + random_below(rnd, 32), .first = random_below(rnd, 9),
		.thief = random_64(rnd), .proxy = random_below(rnd, 3),
		.most = 1 + random_below(rnd, KDSM_THEFT_MOST),
	} };

	op->length = kdsm_theft_size(loot.theft.most);
	if (random_one_in(rnd, 4))
		random_mangle(rnd, &loot, sizeof(loot.theft));
	op->offset = random_one_in(rnd, 4) ? offset_in(bound) : 8 * random_below(rnd, 256);
	op->addr = (uintptr_t)placed(&loot, op->length);
}

static int do_submit(struct bound *bound)
{
	static struct kdsm_op ops[KDSM_MAX_OPS];
	struct kdsm_submit arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.flags = random_one_in(rnd, 3) ? 0 : KDSM_SUBMIT_WAIT,
		.count = random_one_in(rnd, 50) ? random_below(rnd, KDSM_MAX_OPS) :
						  1 + random_below(rnd, 8),
	};
	struct kdsm_submit *there;
	int error;

	for (uint32_t i = 0; i < arg.count; i++) {
		ops[i] = (struct kdsm_op){
			.opcode = 1 + random_below(rnd, 6),
			.node = random_below(rnd, fuzz.info.nodes),
			.operand = random_64(rnd),
			.compare = random_below(rnd, 2),
			.offset = offset_in(bound),
		};
		ops[i].length = ops[i].opcode >= KDSM_OP_CAS ? 8 : some_length();
		ops[i].addr = address(ops[i].length);
		if (ops[i].opcode == KDSM_OP_FIND)
			make_find(bound, &ops[i]);
		if (ops[i].opcode == KDSM_OP_STEAL)
			make_theft(bound, &ops[i]);
		if (ops[i].opcode == KDSM_OP_PUT && random_one_in(rnd, 4)) {
			ops[i].flags = KDSM_OP_NOTIFY;
			ops[i].length = random_one_in(rnd, 2) ? 8 : ops[i].length & ~7U;
		}
		if (random_one_in(rnd, 60))
			random_mangle(rnd, &ops[i], sizeof(ops[i]));
	}
	/* The module writes results to the array, so it may also be at a bad address. */
	arg.ops = (uintptr_t)(arg.count > 32 ? ops : placed(ops, arg.count * sizeof(*ops)));
	if (random_one_in(rnd, 10))
		random_mangle(rnd, &arg, sizeof(arg));
	fuzz_doing("SUBMIT");
	there = placed(&arg, sizeof(arg));
	error = call(bound->file, KDSM_IOC_SUBMIT, there);
	if (!error && there >= (struct kdsm_submit *)fuzz.arena &&
	    there < (struct kdsm_submit *)(fuzz.arena + 4 * PAGE))
		bound->ticket[random_below(rnd, TICKETS)] = there->ticket;
	return error;
}

static int do_complete(struct bound *bound)
{
	struct kdsm_complete arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.timeout = random_one_in(rnd, 2) ? UINT64_MAX : random_below(rnd, 1000000),
	};
	uint64_t *ticket = bound->ticket + random_below(rnd, TICKETS / 2);
	int error;

	/* Prefer a ticket that was given out. */
	while (!*ticket && ticket < bound->ticket + TICKETS - 1)
		ticket++;
	arg.ticket = *ticket;
	error = fuzz_do(bound, "COMPLETE", KDSM_IOC_COMPLETE, &arg, sizeof(arg));
	if (!error || error == -ENOENT)
		*ticket = 0;
	return error;
}

static int do_wait(struct bound *bound)
{
	struct kdsm_wait arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.offset = offset_in(bound),
		.value = random_one_in(rnd, 4),
		.timeout = random_below(rnd, 1000000),
	};

	/* A mangled timeout may be infinite; the alarm ends such a wait. */
	return fuzz_do(bound, "WAIT", KDSM_IOC_WAIT, &arg, sizeof(arg));
}

static int do_wake(struct bound *bound)
{
	struct kdsm_wake arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.offset = offset_in(bound),
	};

	return fuzz_do(bound, "WAKE", KDSM_IOC_WAKE, &arg, sizeof(arg));
}

static int do_fence(struct bound *bound)
{
	struct kdsm_signature signature = {
		.floor = random_one_in(rnd, 8) ? random_64(rnd) : random_below(rnd, 1000),
		.count = random_below(rnd, 8),
	};
	struct kdsm_fence arg = { .argsz = fuzz_argsz(sizeof(arg)) };

	for (unsigned int i = 0; i < signature.count; i++)
		signature.notices[i] = (struct kdsm_notice){
			.ts = random_below(rnd, 1000),
			.first = random_below(rnd, 1024),
			.count = 1 + random_below(rnd, 64),
			.writer = random_one_in(rnd, 8) ? KDSM_WRITER_UNKNOWN :
							  random_below(rnd, fuzz.info.nodes),
			.share = random_one_in(rnd, 4) ? random_below(rnd, 8) : 0,
		};
	if (random_one_in(rnd, 4))
		random_mangle(rnd, &signature, KDSM_SIGNATURE_BYTES(signature.count));
	arg.signature = (uintptr_t)placed(&signature, sizeof(signature));
	return fuzz_do(bound, "RELEASE or ACQUIRE", random_one_in(rnd, 2) ? KDSM_IOC_RELEASE :
		       KDSM_IOC_ACQUIRE, &arg, sizeof(arg));
}

static int do_advise(struct bound *bound)
{
	struct kdsm_advise arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.offset = offset_in(bound),
		.length = random_one_in(rnd, 8) ? random_nasty(rnd) : random_below(rnd, 20000),
		.advice = random_below(rnd, KDSM_ADVICE_REFRESH + 2),
	};

	return fuzz_do(bound, "ADVISE", KDSM_IOC_ADVISE, &arg, sizeof(arg));
}

static int do_atomic(struct bound *bound)
{
	struct kdsm_atomic arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.flags = random_below(rnd, random_one_in(rnd, 8) ? 8 : 4),
		.offset = offset_in(bound) & -(uint64_t)random_below(rnd, 9),
		.opcode = random_below(rnd, KDSM_ATOMIC_CAS + 2),
		.size = 4 * random_below(rnd, 4),
		.operand = random_nasty(rnd),
		.compare = random_below(rnd, 2),
	};

	return fuzz_do(bound, "ATOMIC", KDSM_IOC_ATOMIC, &arg, sizeof(arg));
}

static int do_discard(struct bound *bound)
{
	struct kdsm_discard arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.offset = offset_in(bound),
		.length = random_one_in(rnd, 8) ? random_nasty(rnd) : random_below(rnd, 20000),
	};

	return fuzz_do(bound, "DISCARD", KDSM_IOC_DISCARD, &arg, sizeof(arg));
}

static int do_lost(struct bound *bound)
{
	struct kdsm_lost arg = {
		.argsz = fuzz_argsz(sizeof(arg)),
		.offsets = (uintptr_t)place(sizeof(uint64_t)),
		.count = random_one_in(rnd, 8) ? random_nasty(rnd) : random_below(rnd, 8),
		.next = random_one_in(rnd, 2) ? 0 : random_nasty(rnd),
	};

	return fuzz_do(bound, "LOST", KDSM_IOC_LOST, &arg, sizeof(arg));
}

static int do_junk_ioctl(struct bound *bound)
{
	unsigned char junk[256];
	unsigned long number = random_below(rnd, 24) |
			       KDSM_IOC_MAGIC << 8 | random_64(rnd) << 16;

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = random_one_in(rnd, 4) ? random_64(rnd) : 0;
	if (random_one_in(rnd, 2))
		number = random_64(rnd);
	/* Leave out the generic ioctls of files, which do not reach the module. */
	if ((number >> 8 & 0xff) != KDSM_IOC_MAGIC)
		number = (number & ~0xff00UL) | KDSM_IOC_MAGIC << 8;
	fuzz_doing("junk ioctl");
	return call(bound->file, number, placed(junk, sizeof(junk)));
}

/* ---- files and memory ---- */

static int do_mmap(struct bound *bound)
{
	uint64_t whole = bound->part_size * fuzz.info.nodes;
	void *hint = random_one_in(rnd, 4) ?
		     (void *)(bound->base + PAGE * random_below(rnd, 64)) : NULL;
	size_t length = random_one_in(rnd, 4) ? random_nasty(rnd) : whole;
	off_t offset = random_one_in(rnd, 3) ? PAGE * random_below(rnd, 512) : 0;
	void *at;

	fuzz_doing("mmap");
	at = mmap(hint, length, random_one_in(rnd, 8) ? random_below(rnd, 8) :
		  PROT_READ | PROT_WRITE,
		  random_one_in(rnd, 16) ? MAP_PRIVATE : MAP_SHARED, bound->file, offset);
	return at == MAP_FAILED ? -errno : 0;
}

/* Stay inside the module's mappings, so that the program does not unmap itself. */
static int do_munmap(struct bound *bound)
{
	uint64_t whole = bound->part_size * fuzz.info.nodes, from, length;
	void *at;

	fuzz_doing("munmap and the like");
	if (!bound->base || !whole)
		return -EINVAL;
	from = random_one_in(rnd, 2) ? 0 : random_below(rnd, whole) & -PAGE;
	length = random_one_in(rnd, 2) ? whole - from : PAGE;
	at = (void *)(bound->base + from);
	switch (random_below(rnd, 6)) {
	case 0:
		return madvise(at, length, random_below(rnd, 26)) ? -errno : 0;
	case 1:
		return mprotect(at, length, random_below(rnd, 8)) ? -errno : 0;
	default:
		return munmap(at, length) ? -errno : 0;
	}
}

static int do_touch(struct bound *bound)
{
	volatile uint64_t *at;
	int signal;

	fuzz_doing("touch");
	if (!bound->base || !bound->part_size)
		return -EINVAL;
	at = (void *)(bound->base +
		      (random_below(rnd, bound->part_size * fuzz.info.nodes) & ~7ULL));
	jumping = 1;
	signal = sigsetjmp(jump, 1);
	if (!signal) {
		if (random_one_in(rnd, 2))
			*at += 1;
		else
			(void)*at;
	}
	jumping = 0;
	return signal ? -EFAULT : 0;
}

static int do_reopen(struct bound *bound)
{
	fuzz_doing("close");
	/* A mapping keeps its region, and regions keep memory, so unmap most of them. */
	if (bound->words)
		munmap(bound->words, KDSM_LOCKS_SIZE);
	if (bound->base && !random_one_in(rnd, 4))
		munmap((void *)bound->base, bound->part_size * fuzz.info.nodes);
	close(bound->file);
	fuzz_doing("open");
	*bound = (struct bound){
		.file = device(random_one_in(rnd, 8) ? O_RDONLY : O_RDWR),
	};
	return 0;
}

static int do_other(struct bound *bound)
{
	struct pollfd poller = { .fd = bound->file, .events = POLLIN | POLLOUT };
	char bytes[64];

	fuzz_doing("read, write and the like");
	switch (random_below(rnd, 6)) {
	case 0:
		return read(bound->file, bytes, sizeof(bytes)) < 0 ? -errno : 0;
	case 1:
		return write(bound->file, bytes, sizeof(bytes)) < 0 ? -errno : 0;
	case 2:
		return poll(&poller, 1, 0) < 0 ? -errno : 0;
	case 3:
		return lseek(bound->file, random_nasty(rnd), SEEK_SET) < 0 ? -errno : 0;
	case 4:
		return fsync(bound->file) ? -errno : 0;
	default:
		return ftruncate(bound->file, 0) ? -errno : 0;
	}
}

/* ---- netlink ---- */

/* A limit that the module takes */
static uint64_t some_limit(void)
{
	return random_one_in(rnd, 4) ? 0 : KDSM_LIMIT_MIN + random_below(rnd, KDSM_LIMIT_MIN);
}

static void put_random(struct nlmsghdr *header, int depth)
{
	unsigned char bytes[80];
	size_t length = random_below(rnd, 4) ? random_below(rnd, 24) : random_below(rnd, 80);
	uint16_t type = random_below(rnd, KDSM_A_MAX + 3);

	if (depth && random_one_in(rnd, 3)) {
		struct nlattr *nest = mnl_attr_nest_start(header, random_one_in(rnd, 2) ?
			KDSM_A_NODES : KDSM_A_NODE_ENTRY);

		for (int i = random_below(rnd, 6); i > 0; i--)
			put_random(header, depth - 1);
		mnl_attr_nest_end(header, nest);
		return;
	}
	for (size_t i = 0; i < length; i++)
		bytes[i] = random_64(rnd);
	if (random_one_in(rnd, 2))
		length = 4;
	if (random_one_in(rnd, 4))
		length = snprintf((char *)bytes, sizeof(bytes), "text-%d", type) + 1;
	if (type == KDSM_A_REGION_NAME && random_one_in(rnd, 2))
		length = snprintf((char *)bytes, sizeof(bytes), "fuzz-%d",
				  (int)random_below(rnd, NAMES)) + 1;
	if (type == KDSM_A_REGION_LEASE && random_one_in(rnd, 2))
		memcpy(bytes, &(uint64_t){ random_below(rnd, 1000000) }, length = 8);
	if (type == KDSM_A_REGION_LIMIT && random_one_in(rnd, 2))
		memcpy(bytes, &(uint64_t){ some_limit() }, length = 8);
	if (type == KDSM_A_NODE_ID && random_one_in(rnd, 2))
		memcpy(bytes, &(uint32_t){ random_below(rnd, fuzz.info.nodes + 1) }, length = 4);
	mnl_attr_put(header, type, length, bytes);
}

/* Change settings of a region that may exist, while other processes use it. */
static int do_region_set(void)
{
	uint32_t which = 1 + random_below(rnd, 3);
	struct nlmsghdr *header;
	char name[KDSM_NAME_SIZE], buffer[256];

	some_name(name);
	header = genl_begin(&fuzz.genl, buffer, KDSM_CMD_REGION_SET, NLM_F_ACK);
	mnl_attr_put_strz(header, KDSM_A_REGION_NAME, name);
	if (which & 1)
		mnl_attr_put_u64(header, KDSM_A_REGION_LEASE,
				 random_one_in(rnd, 8) ? random_nasty(rnd) :
				 random_below(rnd, random_one_in(rnd, 50) ?
					      KDSM_LEASE_MAX : 1000000));
	if (which & 2)
		mnl_attr_put_u64(header, KDSM_A_REGION_LIMIT,
				 random_one_in(rnd, 8) ? random_nasty(rnd) : some_limit());
	fuzz_doing("REGION_SET");
	/*
	 * Drain replies that were left unread: none is the answer to this message, and they
	 * may leave no room for it.
	 */
	while (recv(mnl_socket_get_fd(fuzz.genl.socket), fuzz.genl.reply,
		    sizeof(fuzz.genl.reply), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		;
	return genl_send(&fuzz.genl, header);
}

static int do_netlink(void)
{
	static const uint8_t cmds[] = {
		KDSM_CMD_UP, KDSM_CMD_STATUS, KDSM_CMD_PROBE, KDSM_CMD_PEERS,
		KDSM_CMD_STATS, KDSM_CMD_REGIONS, KDSM_CMD_REGION_SET,
	};
	static char buffer[1 << 16];
	struct nlmsghdr *header;
	struct genlmsghdr *extra;
	uint32_t length;

	header = genl_begin(&fuzz.genl, buffer,
			    random_one_in(rnd, 10) ? random_64(rnd) :
			    cmds[random_below(rnd, sizeof(cmds))],
			    random_one_in(rnd, 4) ? NLM_F_DUMP : NLM_F_ACK);
	for (int i = random_below(rnd, 10); i > 0; i--)
		put_random(header, 3);
	length = header->nlmsg_len;
	if (random_one_in(rnd, 3) && length > MNL_NLMSG_HDRLEN)
		random_mangle(rnd, buffer + MNL_NLMSG_HDRLEN, length - MNL_NLMSG_HDRLEN);
	if (random_one_in(rnd, 10))
		header->nlmsg_len = random_below(rnd, length + 8);
	extra = mnl_nlmsg_get_payload(header);
	/* Nothing may take the cluster down, not even a mangled message. */
	if (fuzz.privileged && extra->cmd == KDSM_CMD_DOWN)
		extra->cmd = KDSM_CMD_STATUS;
	fuzz_doing("netlink");
	if (mnl_socket_sendto(fuzz.genl.socket, buffer, length) < 0)
		return -errno;
	/* All answers are there when the call returns; leave some of them unread. */
	while (!random_one_in(rnd, 8) &&
	       recv(mnl_socket_get_fd(fuzz.genl.socket), buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
		;
	return 0;
}

/* ---- any call ---- */

static int do_fork(void)
{
	pid_t child;

	fuzz_doing("fork");
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fuzz_signals();		/* a child does not inherit timers */
		for (int i = 0; i < 20; i++)
			fuzz_call(false);
		_exit(0);
	}
	if (child < 0)
		return -errno;
	if (random_one_in(rnd, 2)) {
		usleep(random_below(rnd, 2000));
		kill(child, SIGKILL);
	}
	fuzz_doing("waiting for a child");
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int fuzz_call(bool may_fork)
{
	static int (*const on_file[])(struct bound *bound) = {
		do_info, do_location, do_open, do_destroy,
		do_submit, do_submit, do_submit, do_submit, do_submit, do_submit,
		do_complete, do_complete, do_complete, do_wait, do_wait, do_wake, do_fence,
		do_fence, do_advise, do_atomic, do_settle, do_lost, do_discard, do_junk_ioctl,
		do_mmap, do_mmap, do_munmap, do_touch, do_touch,
		fuzz_lock, fuzz_lock, fuzz_lock, fuzz_lock, fuzz_lock, fuzz_lock,
		do_reopen, do_other,
	};
	struct bound *bound = &fuzz.files[random_below(rnd, FILES)];

	if (random_one_in(rnd, 4))
		return random_one_in(rnd, 10) ? do_region_set() : do_netlink();
	if (may_fork && random_one_in(rnd, 200))
		return do_fork();
	/* Most calls need a bound file. */
	if (!bound->part_size && random_one_in(rnd, 3))
		return do_open(bound);
	return on_file[random_below(rnd, sizeof(on_file) / sizeof(on_file[0]))](bound);
}


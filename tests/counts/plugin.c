// SPDX-License-Identifier: GPL-2.0
/*
 * A TCG plugin of QEMU that counts what an emulated machine executes: instructions of user
 * space and of the kernel, and executions of chosen kernel functions. All machines of a run
 * map one file of counters, so a mark in one machine records the counters of all.
 *
 *	-plugin plugin.so,dir=DIR,node=N,nodes=NODES
 *
 * The plugin writes DIR/nodeN.counts. The guest speaks to it by executing no-ops that carry
 * a byte: marks (mark.h), and the characters of lines (say.c). A line is a command:
 *
 *	event NAME ADDRESS	count executions of the instruction at ADDRESS
 *	range NAME FIRST LAST	count instructions of blocks in [FIRST, LAST]
 *	entry ADDRESS		an interrupt or exception enters the kernel at ADDRESS
 *	timer ADDRESS		the timer interrupt enters the kernel at ADDRESS
 *	work ADDRESS		a softirq for packets starts at ADDRESS
 *	rest ADDRESS		another softirq starts at ADDRESS
 *	leave ADDRESS		the scheduler starts at ADDRESS: no interrupt continues below it
 *	idle ADDRESS		the idle loop starts at ADDRESS
 *	busy ADDRESS		the idle loop ends at ADDRESS
 *	count			discard all translated code and count from now on
 *	section NAME		the marks from here on belong to NAME
 *	profile			record executions of blocks during the calls of the section
 *
 * The plugin copies every other line, and "section", to the output. A mark appears as
 * "mark NUMBER COUNT...", in the order that the line "columns" gives.
 *
 * Two kinds of work depend on the speed of the host, so each has a counter of its own: the
 * timer interrupt, without the softirqs for packets that run at its end, and the idle loop. So
 * have the rounds of an instruction with a repeat
 * prefix, which is one instruction however much it copies.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kdsm-bench/mark.h"
#include "qemu-plugin.h"

#define MAX_NODES	64
#define MAX_VCPUS	16
#define MAX_EVENTS	24
#define MAX_PLACES	256
#define MAX_DEPTH	8	/* of nested interrupts */
#define MAX_LINE	256

#define NAP_NS		1000000	/* time for packets in flight to arrive, in ns */
#define TURN_NAPS	20	/* naps after which a machine stops waiting for its turn */

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

enum counter {
	COUNT_USER,
	COUNT_KERNEL,
	COUNT_TIMER,
	COUNT_IDLE,
	COUNT_STRING,
	COUNT_DONE,	/* executions of MARK_DONE */
	COUNT_EVENT,	/* the first of MAX_EVENTS */
	COUNTERS = COUNT_EVENT + MAX_EVENTS,
};

static const char *const counter_names[COUNT_EVENT] = {
	"user", "kernel", "timer", "idle", "string", "done",
};

/* Only the thread of the vCPU writes its counters; a reader may see slightly stale values. */
struct counters {
	uint64_t count[COUNTERS];
} __attribute__((aligned(128)));

/* The file that the machines of a run map */
struct shared {
	struct counters counters[MAX_NODES][MAX_VCPUS];
	uint32_t turn;		/* number of the machine whose turn it is, plus one; 0: none */
	bool profiling;		/* a machine that was told to profile is in a call */
};

enum interrupt {
	INTERRUPT_NONE,
	INTERRUPT_OTHER,
	INTERRUPT_TIMER,
	INTERRUPT_TIMER_WORK,	/* a softirq for packets runs at the end of the timer's */
};

struct vcpu {
	bool halted;
	bool idle;		/* in the idle loop */
	uint64_t repeating;	/* address of the repeated instruction executed last, or 0 */
	unsigned int depth;	/* of nested interrupts */
	enum interrupt kinds[MAX_DEPTH + 1];	/* by depth; [0] is always INTERRUPT_NONE */
};

enum place_kind {
	PLACE_EVENT,
	PLACE_RANGE,
	PLACE_ENTRY,
	PLACE_TIMER,
	PLACE_WORK,
	PLACE_REST,
	PLACE_LEAVE,
	PLACE_IDLE,
	PLACE_BUSY,
};

/* An address, or a range of addresses, that a command names */
struct place {
	enum place_kind kind;
	uint64_t first, last;
	unsigned int event;	/* index of the event, for an event or a range */
};

/* A translated block of instructions */
struct block {
	struct block *next;	/* in plugin.blocks */
	uint64_t address;
	uint32_t instructions;
	int range;		/* index of the event whose range holds the block, or -1 */
	bool repeats;		/* the first instruction has a repeat prefix */
	uint64_t repeating;	/* address of the last instruction if it has one, or 0 */
	uint64_t executed;	/* times, while a machine profiles */
};

static struct {
	qemu_plugin_id_t id;
	unsigned int node, nodes;
	bool takes_turns;	/* the machine has one vCPU */
	bool counting;
	bool profiles;		/* the command "profile" was given in this section */
	struct shared *shared;
	struct vcpu vcpus[MAX_VCPUS];
	struct place places[MAX_PLACES];
	unsigned int place_count;
	char *events[MAX_EVENTS];
	unsigned int event_count;
	pthread_mutex_t lock;	/* protects the members below */
	FILE *output;
	char line[MAX_LINE];
	unsigned int length;
	struct block *blocks;
} plugin = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct vcpu *vcpu_of(unsigned int index)
{
	return &plugin.vcpus[index % MAX_VCPUS];
}

static void add(unsigned int index, unsigned int counter, uint64_t value)
{
	struct counters *counters = &plugin.shared->counters[plugin.node][index % MAX_VCPUS];

	__atomic_store_n(&counters->count[counter], counters->count[counter] + value,
			 __ATOMIC_RELAXED);
}

/* ---- interrupts and the idle loop ---- */

static void enter(unsigned int index, enum interrupt kind)
{
	struct vcpu *vcpu = vcpu_of(index);

	if (vcpu->depth < MAX_DEPTH)
		vcpu->kinds[++vcpu->depth] = kind;
}

static void on_entry(unsigned int index, void *data)
{
	(void)data;
	enter(index, INTERRUPT_OTHER);
}

static void on_timer(unsigned int index, void *data)
{
	(void)data;
	enter(index, INTERRUPT_TIMER);
}

static void on_work(unsigned int index, void *data)
{
	struct vcpu *vcpu = vcpu_of(index);

	(void)data;
	if (vcpu->kinds[vcpu->depth] == INTERRUPT_TIMER)
		vcpu->kinds[vcpu->depth] = INTERRUPT_TIMER_WORK;
}

static void on_rest(unsigned int index, void *data)
{
	struct vcpu *vcpu = vcpu_of(index);

	(void)data;
	if (vcpu->kinds[vcpu->depth] == INTERRUPT_TIMER_WORK)
		vcpu->kinds[vcpu->depth] = INTERRUPT_TIMER;
}

static void on_return(unsigned int index, void *data)
{
	struct vcpu *vcpu = vcpu_of(index);

	(void)data;
	if (vcpu->depth)
		vcpu->depth--;
}

/* The interrupted task may continue much later, after the work of other tasks. */
static void on_leave(unsigned int index, void *data)
{
	(void)data;
	vcpu_of(index)->depth = 0;
}

static void on_idle(unsigned int index, void *data)
{
	(void)data;
	vcpu_of(index)->idle = true;
}

static void on_busy(unsigned int index, void *data)
{
	(void)data;
	vcpu_of(index)->idle = false;
}

/* ---- turns ---- */

/*
 * How many packets one interrupt delivers would depend on how fast the host runs the
 * machines and the threads of their devices. Therefore a machine that wakes up first gives
 * all packets in flight the time to arrive, and machines run in turn: each runs until it is
 * idle. The lock is advisory: a machine that polls for the work of another keeps its turn
 * for TURN_NAPS only.
 */
static void take_turn(void)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	unsigned int naps;
	uint32_t nobody;

	for (naps = 0; naps < TURN_NAPS; naps++) {
		nanosleep(&nap, NULL);
		nobody = 0;
		if (__atomic_compare_exchange_n(&plugin.shared->turn, &nobody, plugin.node + 1,
						false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
	}
}

static void on_halt(unsigned int index, void *data)
{
	uint32_t mine = plugin.node + 1;

	(void)data;
	vcpu_of(index)->halted = true;
	__atomic_compare_exchange_n(&plugin.shared->turn, &mine, 0, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

/* ---- counting ---- */

static void count_block(unsigned int index, enum counter counter, struct block *block)
{
	struct vcpu *vcpu = vcpu_of(index);

	if (vcpu->halted) {
		vcpu->halted = false;
		take_turn();
	}
	/* QEMU executes each further round of a repeated instruction as a block of its own. */
	if (block->repeats && block->address == vcpu->repeating) {
		add(index, COUNT_STRING, 1);
		return;
	}
	vcpu->repeating = block->repeating;
	add(index, counter, block->instructions);
	if (counter > COUNT_KERNEL)
		return;
	if (block->range >= 0)
		add(index, COUNT_EVENT + block->range, block->instructions);
	if (__atomic_load_n(&plugin.shared->profiling, __ATOMIC_RELAXED))
		__atomic_fetch_add(&block->executed, 1, __ATOMIC_RELAXED);
}

static void on_user(unsigned int index, void *data)
{
	vcpu_of(index)->depth = 0;
	count_block(index, COUNT_USER, data);
}

static void on_kernel(unsigned int index, void *data)
{
	struct vcpu *vcpu = vcpu_of(index);

	if (vcpu->kinds[vcpu->depth] == INTERRUPT_TIMER)
		count_block(index, COUNT_TIMER, data);
	else
		count_block(index, vcpu->idle && !vcpu->depth ? COUNT_IDLE : COUNT_KERNEL, data);
}

static void on_event(unsigned int index, void *data)
{
	add(index, COUNT_EVENT + (uintptr_t)data, 1);
}

static void on_done(unsigned int index, void *data)
{
	(void)data;
	add(index, COUNT_DONE, 1);
}

static uint64_t sum(unsigned int node, unsigned int counter)
{
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < MAX_VCPUS; i++)
		total += __atomic_load_n(&plugin.shared->counters[node][i].count[counter],
					 __ATOMIC_RELAXED);
	return total;
}

static void on_mark(unsigned int index, void *data)
{
	unsigned int node, i;

	(void)index;
	pthread_mutex_lock(&plugin.lock);
	fprintf(plugin.output, "mark %u", (unsigned int)(uintptr_t)data);
	for (node = 0; node < plugin.nodes; node++)
		for (i = 0; i < COUNT_EVENT + plugin.event_count; i++)
			fprintf(plugin.output, " %" PRIu64, sum(node, i));
	fputc('\n', plugin.output);
	if (plugin.profiles)
		__atomic_store_n(&plugin.shared->profiling, (uintptr_t)data != MARK_END,
				 __ATOMIC_RELAXED);
	pthread_mutex_unlock(&plugin.lock);
}

/* ---- translation ---- */

static void on_byte(unsigned int index, void *data);

static void call_at(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t callback,
		    uintptr_t data)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)data);
}

static bool is(const struct qemu_plugin_insn *insn, const char *bytes, size_t size)
{
	return qemu_plugin_insn_size(insn) == size &&
	       !memcmp(qemu_plugin_insn_data(insn), bytes, size);
}

static void watch_places(struct qemu_plugin_insn *insn)
{
	static const qemu_plugin_vcpu_udata_cb_t callbacks[] = {
		[PLACE_EVENT] = on_event,
		[PLACE_ENTRY] = on_entry,
		[PLACE_TIMER] = on_timer,
		[PLACE_WORK] = on_work,
		[PLACE_REST] = on_rest,
		[PLACE_LEAVE] = on_leave,
		[PLACE_IDLE] = on_idle,
		[PLACE_BUSY] = on_busy,
	};
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	const struct place *place;

	for (place = plugin.places; place < plugin.places + plugin.place_count; place++)
		if (place->kind != PLACE_RANGE && place->first == address)
			call_at(insn, callbacks[place->kind], place->event);
}

static void watch(struct qemu_plugin_insn *insn)
{
	watch_places(insn);
	if (is(insn, "\x48\xcf", 2))		/* iretq */
		call_at(insn, on_return, 0);
	if (plugin.takes_turns && is(insn, "\xf4", 1))	/* hlt */
		call_at(insn, on_halt, 0);
}

/* A no-op of mark.h or say.c: nopl disp32(%rcx) or (%rax) */
static void listen(struct qemu_plugin_insn *insn)
{
	const uint8_t *data = qemu_plugin_insn_data(insn);
	uint32_t word;

	if (qemu_plugin_insn_size(insn) != 7 || data[0] != 0x0f || data[1] != 0x1f)
		return;
	memcpy(&word, data + 3, sizeof(word));
	if (word >> 8 != MARK_MAGIC)
		return;
	if (data[2] == 0x81 && (word & 0xff) == MARK_DONE)
		call_at(insn, on_done, 0);
	else if (data[2] == 0x81)
		call_at(insn, on_mark, word & 0xff);
	else if (data[2] == 0x80)
		call_at(insn, on_byte, word & 0xff);
}

/* movs, cmps, stos, lods, scas, ins or outs with a repeat prefix */
static bool is_repeated(const struct qemu_plugin_insn *insn)
{
	const uint8_t *data = qemu_plugin_insn_data(insn);
	size_t i = 0, size = qemu_plugin_insn_size(insn);
	bool repeated = false;

	for (; i < size && (data[i] == 0xf2 || data[i] == 0xf3 || data[i] == 0x66); i++)
		repeated |= data[i] != 0x66;
	if (i < size && (data[i] & 0xf0) == 0x40)	/* REX prefix */
		i++;
	if (!repeated || i + 1 != size)
		return false;
	return (data[i] >= 0xa4 && data[i] <= 0xa7) || (data[i] >= 0xaa && data[i] <= 0xaf) ||
	       (data[i] >= 0x6c && data[i] <= 0x6f);
}

static int range_of(uint64_t address)
{
	const struct place *place;

	for (place = plugin.places; place < plugin.places + plugin.place_count; place++)
		if (place->kind == PLACE_RANGE && address >= place->first &&
		    address <= place->last)
			return place->event;
	return -1;
}

static struct block *block_of(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(tb);
	block->instructions = n;
	block->range = range_of(block->address);
	block->repeats = is_repeated(qemu_plugin_tb_get_insn(tb, 0));
	if (is_repeated(last))
		block->repeating = qemu_plugin_insn_vaddr(last);
	pthread_mutex_lock(&plugin.lock);
	block->next = plugin.blocks;
	plugin.blocks = block;
	pthread_mutex_unlock(&plugin.lock);
	return block;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	bool is_kernel = qemu_plugin_tb_vaddr(tb) >> 63;
	size_t i, n = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *insn;

	(void)id;
	for (i = 0; i < n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		listen(insn);
		if (plugin.counting)
			watch(insn);
	}
	if (plugin.counting)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, is_kernel ? on_kernel : on_user,
						     QEMU_PLUGIN_CB_NO_REGS, block_of(tb));
}

static void on_exit_of_machine(qemu_plugin_id_t id, void *data);

/* A reset removes these callbacks, too. */
static void listen_to_all(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_exit_of_machine, NULL);
}

/* ---- commands; the caller holds the lock ---- */

static unsigned int event_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < plugin.event_count; i++)
		if (!strcmp(plugin.events[i], name))
			return i;
	if (i == MAX_EVENTS)
		abort();
	plugin.events[i] = strdup(name);
	plugin.event_count++;
	return i;
}

static bool add_place(const char *line)
{
	static const struct {
		const char *word;
		enum place_kind kind;
		bool is_counted;
	} kinds[] = {
		{ "event", PLACE_EVENT, true }, { "range", PLACE_RANGE, true },
		{ "entry", PLACE_ENTRY, false }, { "timer", PLACE_TIMER, false },
		{ "work", PLACE_WORK, false }, { "rest", PLACE_REST, false },
		{ "leave", PLACE_LEAVE, false }, { "idle", PLACE_IDLE, false },
		{ "busy", PLACE_BUSY, false },
	};
	char word[MAX_LINE], name[MAX_LINE];
	struct place place = { 0 };
	size_t i = 0;
	int at = 0;

	if (sscanf(line, "%s %n", word, &at) != 1)
		return false;
	while (i < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[i].word, word))
		i++;
	if (i == sizeof(kinds) / sizeof(kinds[0]))
		return false;
	place.kind = kinds[i].kind;
	line += at;
	if (kinds[i].is_counted) {
		if (sscanf(line, "%s %n", name, &at) != 1)
			return false;
		place.event = event_of(name);
		line += at;
	}
	if (sscanf(line, "%" SCNx64 " %" SCNx64, &place.first, &place.last) < 1)
		return false;
	if (plugin.place_count == MAX_PLACES)
		abort();
	plugin.places[plugin.place_count++] = place;
	return true;
}

static void begin_counting(void)
{
	unsigned int node, i;

	fputs("columns", plugin.output);
	for (node = 0; node < plugin.nodes; node++) {
		for (i = 0; i < COUNT_EVENT; i++)
			fprintf(plugin.output, " %s", counter_names[i]);
		for (i = 0; i < plugin.event_count; i++)
			fprintf(plugin.output, " %s", plugin.events[i]);
	}
	fputc('\n', plugin.output);
	plugin.counting = true;
	qemu_plugin_reset(plugin.id, listen_to_all);
}

static void end_profile(void)
{
	struct block *block;

	plugin.profiles = false;
	for (block = plugin.blocks; block; block = block->next) {
		if (block->executed)
			fprintf(plugin.output, "block %" PRIx64 " %u %" PRIu64 "\n",
				block->address, block->instructions, block->executed);
		block->executed = 0;
	}
}

static void command(const char *line)
{
	if (add_place(line))
		return;
	if (!strcmp(line, "count")) {
		begin_counting();
	} else if (!strcmp(line, "profile")) {
		plugin.profiles = true;
	} else {
		if (!strncmp(line, "section", 7))
			end_profile();
		fprintf(plugin.output, "%s\n", line);
	}
}

static void on_byte(unsigned int index, void *data)
{
	char byte = (uintptr_t)data;

	(void)index;
	pthread_mutex_lock(&plugin.lock);
	if (byte == '\n') {
		plugin.line[plugin.length] = 0;
		plugin.length = 0;
		command(plugin.line);
	} else if (plugin.length < MAX_LINE - 1) {
		plugin.line[plugin.length++] = byte;
	}
	pthread_mutex_unlock(&plugin.lock);
}

/* ---- start and end ---- */

static void on_exit_of_machine(qemu_plugin_id_t id, void *data)
{
	(void)id;
	on_halt(0, data);
	end_profile();
	fclose(plugin.output);
}

static int open_files(const char *dir)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/node%u.counts", dir, plugin.node);
	plugin.output = fopen(path, "w");
	if (!plugin.output) {
		perror(path);
		return -1;
	}
	snprintf(path, sizeof(path), "%s/shared", dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(struct shared))) {
		perror(path);
		return -1;
	}
	plugin.shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			     fd, 0);
	close(fd);
	if (plugin.shared == MAP_FAILED) {
		perror(path);
		return -1;
	}
	return 0;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv);

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	const char *dir = NULL;
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "dir=", 4))
			dir = argv[i] + 4;
		else if (sscanf(argv[i], "node=%u", &plugin.node) != 1 &&
			 sscanf(argv[i], "nodes=%u", &plugin.nodes) != 1)
			return -1;
	}
	if (!dir || plugin.nodes > MAX_NODES || plugin.node >= plugin.nodes || open_files(dir))
		return -1;
	plugin.id = id;
	plugin.takes_turns = info->system.smp_vcpus == 1;
	listen_to_all(id);
	return 0;
}

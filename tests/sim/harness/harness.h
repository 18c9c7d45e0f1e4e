/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator's harness, as its programs see it.
 *
 * A program contains protocol files of the module, unmodified, and runs them on
 * simulated nodes, once for each seed. The harness owns fibers and simulated time
 * (scheduler.c), the kernel's locks, work and allocator (kernel.c), the fabric with its
 * faults (fabric.c, cost.c), events (trace.c), random numbers and the processes that run
 * seeds and replay a failed one (run.c), and the command line (main.c). The program
 * owns its nodes, their load and the checks, and describes itself in sim_program.
 *
 * Everything that differs between two seeds comes from sim_random(), so a seed
 * always takes the same steps. Only --nodes limits the number of nodes, to KDSM_MAX_NODES.
 */
#ifndef KDSM_SIM_HARNESS_H
#define KDSM_SIM_HARNESS_H

#include <linux/types.h>

#include "fabric/fabric.h"

struct cli_option;

/* ---- random numbers of the seed: splitmix64 (run.c) ---- */

extern u64 sim_random_state;

static inline u64 sim_random(void)
{
	u64 z = sim_random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* A random number from 0 to n - 1 */
static inline unsigned int sim_below(unsigned int n)
{
	return (sim_random() >> 32) % n;
}

/* True one time in n; never, and without a random number, if n is 0. */
static inline bool sim_chance(unsigned int n)
{
	return n && !sim_below(n);
}

/* A random number from a to b */
static inline unsigned int sim_between(unsigned int a, unsigned int b)
{
	return a + sim_below(b - a + 1);
}

/* ---- schedule and faults of the seed ---- */

/**
 * struct sim_config - choices of the seed for the harness
 * @nodes: set before sim_program.choose()
 * @parallel: steps that take one unit of time together, as if as many CPUs ran fibers; 0: one
 * @yield: one in @yield scheduling points switches to another fiber
 * @preempt: at one in @preempt of these switches the fiber sleeps, as if interrupted
 * @pause: factor of the times that the protocol sleeps before it retries
 * @delay: longest time of a message or operation one way, in us
 * @late: one in @late messages or operations takes 30 times as long
 * @slow: node whose links are 20 times as slow; @nodes if there is none
 * @error: one in @error requests, replies and operations is lost
 * @ghost: one in @ghost compare-and-swaps that are lost lands when its initiator waits no more
 * @stray: half of the messages that outlive their sender's wait arrive within this, in us
 * @silence: time until a sender gives up a message to a node that is cut off, in us
 * @nomem: one in @nomem allocations fails
 * @shortage: no allocation of node @short_node succeeds from this time on, in us; 0: never
 * @shortage_end: allocations succeed again from this time on, in us
 * @short_node: see @shortage
 * @steps_max: a run of more steps fails
 * @time_max: a run of more simulated time fails, in us
 *
 * "One in 0" means never.
 */
struct sim_config {
	unsigned int nodes, parallel;
	unsigned int yield, preempt, pause;
	unsigned int delay, late, slow;
	unsigned int error, ghost, stray, silence;
	unsigned int nomem, short_node;
	u64 shortage, shortage_end;
	u64 steps_max, time_max;
};

extern struct sim_config sim;

/* Let the seed choose yield, preempt, delay and late. */
void sim_choose_schedule(void);
/*
 * Let the seed choose sim.error, from smallest to 500: always with --lossy, never with
 * --plain, and in one of one_in seeds otherwise.
 */
void sim_choose_errors(unsigned int one_in, unsigned int smallest);

/* Sums over all seeds of the process. */
struct sim_counts {
	u64 steps, messages, operations;
	u64 late, lost, stray, nomem;	/* faults, see struct sim_config */
};

extern struct sim_counts sim_counts;

/* ---- options and deliberate defects (main.c) ---- */

/**
 * struct sim_options - options of every program, the first member of the program's options
 * @seed: the first seed
 * @seeds: number of seeds; 0: the default
 * @jobs: processes that run seeds
 * @time: no seed begins later, in ns; 0: no limit
 * @replayed: the seed of --replay
 * @nodes_min: fewest nodes of a seed
 * @nodes_max: most nodes of a seed
 * @replays: --replay was given
 * @plain: no faults
 * @lossy: faults in every seed
 * @verbose: print events at once
 * @stats: print counters
 */
struct sim_options {
	uint64_t seed, seeds, jobs, time, replayed;
	unsigned int nodes_min, nodes_max;
	bool replays, plain, lossy, verbose, stats;
};

/* Initializer of a program with this range of nodes */
#define SIM_OPTIONS(least, most) {					\
	.seed = 1, .jobs = 1, .nodes_min = (least), .nodes_max = (most),	\
}

/**
 * struct sim_defect - a fault put into the protocol or into a check of it on purpose
 * @name: argument of --break
 * @what: for --help
 * @lossy: shows only where messages are lost
 * @data: the program's own
 */
struct sim_defect {
	const char *name, *what;
	bool lossy;
	unsigned int data;
};

/* Index into sim_program.defects; 0: none */
extern unsigned int sim_broken;

/* ---- events and failures (trace.c) ---- */

extern bool sim_tracing;

/*
 * End the seed as failed. object: number of the block, or of another object of the program,
 * that the failure concerns, or SIM_NONE. The report leaves out events of other objects.
 */
void __attribute__((noreturn, format(printf, 2, 3)))
sim_fail(s64 object, const char *format, ...);
void __attribute__((format(printf, 2, 3)))
sim_note(s64 object, const char *format, ...);

#define SIM_NONE	(-1)

/* Record an event. The macro evaluates its arguments only while events are kept. */
#define sim_event(object, ...) do {					\
	if (unlikely(sim_tracing))					\
		sim_note(object, __VA_ARGS__);				\
} while (0)

/* ---- fibers (scheduler.c; sim_yield(), sim_sleep() and queues are in shim.h) ---- */

/**
 * sim_spawn() - start a fiber
 * @node: its node
 * @name: for events; copied
 * @delay: until its first step, in us
 * @run: body of the fiber, which ends when @run returns
 * @arg: argument of @run
 */
void sim_spawn(unsigned int node, const char *name, u64 delay, void (*run)(void *arg),
	       void *arg);
/* Node and name of the current fiber; 0 and "-" outside of fibers. */
unsigned int sim_fiber_node(void);
const char *sim_fiber_name(void);
bool sim_in_fiber(void);
/* End the current fiber, which holds no lock. */
_Noreturn void sim_exit(void);
/* Sleep until this simulated time, or not at all if it has passed. */
void sim_sleep_until(u64 time);

/* Whether the seed lets this allocation fail (kernel.c) */
bool sim_no_memory(void);

/* ---- the fabric (fabric.c) ---- */

struct kdsm_fabric {
	unsigned int node;
};

/* The fabric of a node, from sim_program.start() to sim_program.stop(). */
struct kdsm_fabric *sim_fabric(unsigned int node);

/**
 * struct sim_message - a message, from kdsm_message() until its sender goes on; or a copy
 * @from: sender
 * @to: receiver; may be the sender
 * @type: of the message
 * @data: request of @length bytes
 * @reply: reply of @reply_length bytes
 * @length: see @data
 * @reply_length: see @reply
 * @status: result of kdsm_message()
 * @stray: a copy that arrives when the sender waits no more, so @status and @reply are lost
 * @tie: of a stray, see sim_program.tie()
 * @done: the sender may go on
 * @queue: the sender waits here
 */
struct sim_message {
	unsigned int from, to;
	enum kdsm_message_type type;
	u8 data[KDSM_MESSAGE_ROOM], reply[KDSM_MESSAGE_ROOM];
	unsigned int length, reply_length;
	int status;
	bool stray;
	u64 tie;
	bool done;
	struct sim_queue queue;
};

/* Choose the time of a message or operation one way, in us. */
u64 sim_latency(unsigned int from, unsigned int to);
/* Whether no message is in flight */
bool sim_fabric_is_quiet(void);
/*
 * Cut the node off from time "from" on, until time "until" (U64_MAX: for good). A message
 * that is in flight at "from" may still arrive. A later call replaces the interval.
 */
void sim_cut(unsigned int node, u64 from, u64 until);
/* Whether the node is cut off now */
bool sim_is_cut(unsigned int node);
/*
 * Whether the node is cut off for good. Its fibers go on, as on a node that is alive and reaches
 * no other: other nodes cannot tell the difference.
 */
bool sim_is_dead(unsigned int node);
/*
 * From time "at" on, a node that is cut off for good has come up again, and knows nothing of its
 * former life: it answers every message with -ENOENT, and operations at it fail.
 */
void sim_reboot(unsigned int node, u64 at);
/* Whether the nodes differ, and one of them is cut off */
bool sim_are_apart(unsigned int a, unsigned int b);
/* Serve a copy of the message some time later, when its sender waits no more. */
void sim_send_stray(const struct sim_message *message);
/* Lose nothing from now on, and cut no node off that is not dead. */
void sim_fabric_heal(void);

/* ---- costs instead of faults (cost.c) ---- */

/*
 * With units set, nothing is lost and no latency is random. One unit of simulated time is
 * then a sixteenth of a nanosecond, so that a step, which takes one unit, costs next to
 * nothing. The device of a node does one operation at a time, its CPU serves one message at
 * a time. All times are in units.
 */
struct sim_cost {
	unsigned int units;		/* in a microsecond; 0: latencies are random */
	unsigned int racks;		/* nodes are spread evenly over them */
	/* Latency one way: to the node itself, within its rack, and to another rack */
	unsigned int self, near, far;
	unsigned int atomic, message;	/* time at the target */
	unsigned int extra;		/* of a message one way, on top of the latency */
};

extern struct sim_cost sim_cost;

/* Time for which the CPU of the node has served messages in this seed */
u64 sim_cost_busy(unsigned int node);

/* Parse "RACKS[,SELF,NEAR,FAR,ATOMIC,MESSAGE[,EXTRA]]", times in ns. False: not of that form. */
bool sim_cost_parse(const char *text);

/* ---- the program ---- */

/**
 * struct sim_counter - a figure that --stats prints
 * @name: with hyphens
 * @value: sum over the seeds of this process; after all seeds, of all processes
 * @most: combine the processes' values to the largest, not to the sum
 */
struct sim_counter {
	const char *name;
	u64 *value;
	bool most;
};

/**
 * struct sim_program - a simulation on top of the harness
 * @doc: first paragraph of --help
 * @options: of this program, with their defaults
 * @option_table: options that are not in struct sim_options; may be NULL
 * @nodes_least: fewest nodes that --nodes takes
 * @defects: indexed by the program's own enum; the first is empty, the last has no name
 * @counters: for --stats; the last has no name
 * @object: noun for the objects whose numbers sim_event() and sim_fail() take
 * @message_name: name of each type of message that @serve knows
 * @check: complete the options; returns 0, or -1 with a reason why they are wrong
 * @report: print results after all seeds, and return whether they are right; the counters hold
 *	the sums
 * @choose: choose the seed's load and faults
 * @start: create the nodes, and fibers that run their load
 * @step: check the invariants; called between any two steps
 * @again: start fibers after all former ones have ended; returns whether there are any
 * @stop: check what must hold at the end, and free everything
 * @tell: print the state of the nodes after a failure
 * @send: check a message before it is sent
 * @serve: serve a message as node message->to; request->reply is message->reply
 * @delivered: called before the sender sees message->status; may change it
 * @operate: do an operation at its target; sets op->result, and op->status if it fails
 * @may_land: returns whether the target accepts operations of this batch
 * @heard: called when one of two nodes, neither of them cut off, reaches the other
 * @tie: returns a number that changes when one of two nodes gives up the other; operations and
 *	messages that are in flight then fail
 * @message_object: returns the object that a message concerns
 * @operation_object: returns the object that an operation concerns
 *
 * Functions may be NULL, except @choose, @start, @stop, @serve and @operate.
 */
struct sim_program {
	const char *doc;
	struct sim_options *options;
	const struct cli_option *option_table;
	unsigned int nodes_least;
	const struct sim_defect *defects;
	const struct sim_counter *counters;
	const char *object;
	const char *const *message_name;
	bool lacks_memory;

	/* around all seeds */
	int (*check)(char *reason);
	bool (*report)(void);

	/* one seed, in the order of calls */
	void (*choose)(u64 seed);
	void (*start)(void);
	void (*step)(void);
	bool (*again)(void);
	void (*stop)(void);
	void (*tell)(void);

	/* the fabric */
	void (*send)(const struct sim_message *message);
	int (*serve)(struct sim_message *message, struct kdsm_request *request);
	void (*delivered)(struct sim_message *message, bool cut);
	void (*operate)(unsigned int from, struct kdsm_operation *op);
	bool (*may_land)(unsigned int from, const struct kdsm_batch *batch);
	void (*heard)(unsigned int a, unsigned int b);
	u64 (*tie)(unsigned int a, unsigned int b);
	s64 (*message_object)(const struct sim_message *message);
	s64 (*operation_object)(const struct kdsm_operation *op);
};

extern const struct sim_program sim_program;

#endif /* KDSM_SIM_HARNESS_H */

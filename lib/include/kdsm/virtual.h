/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual runs: a cluster of many nodes in one thread, with a clock of its own.
 *
 * A virtual run executes a program for every node of a simulated cluster. All threads of the
 * nodes are coroutines of the calling thread, and each has a clock. The run always continues the
 * coroutine whose clock is lowest. The clocks advance by the time that the program computes, as
 * measured or at a fixed price, and by the time that remote operations take in a model of the
 * network. So the run tells how long the program would take on the cluster, and where the time
 * goes, however busy the machine is that simulates it.
 *
 * The model of the network is LogGP (A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman,
 * "LogGP: Incorporating Long Messages into the LogP Model", 1995), with a queue at each network
 * adapter and a queue at each node for messages that the node's kernel handles.
 *
 * Conventions are those of <kdsm/kdsm.h>. kdsm_virtual_run(3) has an example program.
 */
#ifndef KDSM_VIRTUAL_H
#define KDSM_VIRTUAL_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times are in virtual ns. */
struct kdsm_virtual_attr {
	size_t argsz;		/* size of this struct */
	unsigned int nodes;	/* 1 to KDSM_MAX_NODES */
	uint64_t one_sided;	/* a get or put without data, there and back */
	uint64_t message;	/* an atomic, find or steal, there and back, with its handler */
	uint64_t handler;	/* of message: time of the handler; a node handles one at a time */
	uint64_t gap;		/* between two operations that one adapter begins */
	uint64_t bandwidth;	/* of an adapter, in bytes per microsecond; at least 1 */
	uint64_t quantum;	/* most time that a coroutine runs ahead of another one */
	/*
	 * Price of one step of an operation on BDDs, or 0: computing takes as long as the CPU time
	 * that it takes here. With a price all other computing takes no time, unless the program
	 * calls kdsm_virtual_spend(), and two runs of the same program are the same.
	 */
	uint64_t step;
};

/*
 * Fill in *attr: 1 node, 2 us for a one-sided operation, 3 us for a message, 0.4 us of these for
 * the handler, 0.1 us gap, 12.5 GB/s, a quantum of 1 us, and no price. Errors: those of argsz.
 */
int kdsm_virtual_attr_init(struct kdsm_virtual_attr *attr);

/*
 * Run program(kdsm, argument) once for every node, where *kdsm is the cluster as that node sees
 * it. The program does not close *kdsm, and uses no lock (<kdsm/lock.h>) and no coherent region:
 * opening one fails with -EOPNOTSUPP. It may start threads only by functions of the library,
 * such as kdsm_tasks_open(). While the call runs, other threads of the process may use the
 * library, but not the objects of this run.
 *
 * Returns 0; the result of the lowest node whose program did not return 0; or a negative errno:
 *
 * -EINVAL	a field of *attr is out of range
 * -EBUSY	the caller is the program of a virtual run
 * -ENOMEM	this machine has no memory for the run
 * -EDEADLK	all threads of all nodes wait for each other; their memory is lost
 */
int kdsm_virtual_run(const struct kdsm_virtual_attr *attr,
		     int (*program)(struct kdsm *kdsm, void *argument), void *argument);

/*
 * The following functions are for the program of a virtual run. Elsewhere they do nothing and
 * return 0.
 */

/* Return the clock of the calling thread, in ns since the run began. */
uint64_t kdsm_virtual_now(void);

/* Let the calling thread compute for so many ns, which have their price. */
void kdsm_virtual_spend(uint64_t ns);

/* Uses of the time of workers of tasks (<kdsm/task.h>) */
enum kdsm_virtual_share {
	KDSM_VIRTUAL_COMPUTING,	/* in tasks */
	KDSM_VIRTUAL_GET,	/* remote operations, by kind; a vector counts as its first one */
	KDSM_VIRTUAL_PUT,
	KDSM_VIRTUAL_ATOMIC,
	KDSM_VIRTUAL_FIND,
	KDSM_VIRTUAL_STEAL,
	KDSM_VIRTUAL_WAITING,	/* for tasks, or for the results of stolen ones */
	KDSM_VIRTUAL_BARRIER,	/* idle, while the program of the node waits for other nodes */
	KDSM_VIRTUAL_SERIAL,	/* idle, while the program of the node does anything else */
	KDSM_VIRTUAL_COLLECTION, /* while garbage is collected */
	KDSM_VIRTUAL_SHARES
};

struct kdsm_virtual_times {
	size_t argsz;		/* size of this struct */
	uint64_t elapsed;	/* ns since the last kdsm_virtual_reset(), or since the beginning */
	unsigned int workers;	/* that the nodes had at the same time, at least 1 each */
	/* sum over all workers, in ns; together workers * elapsed */
	uint64_t share[KDSM_VIRTUAL_SHARES];
};

/* Store the times of the workers of all nodes in *times. Errors: those of argsz. */
int kdsm_virtual_times(struct kdsm_virtual_times *times);

/* Set the times of all nodes to zero. */
void kdsm_virtual_reset(void);

#ifdef __cplusplus
}
#endif

#endif /* KDSM_VIRTUAL_H */

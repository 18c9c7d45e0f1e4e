/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several processes and threads of a node that work on one coherent region. A coherent
 * region can be mapped at one address only, and a child inherits its parent's mappings. So
 * the parent opens only the meeting, and each child opens the coherent region itself.
 */
#ifndef GUEST_CREW_H
#define GUEST_CREW_H

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/coherent.h>

#include "guest.h"

#define CREW_PROCESSES	4
#define CREW_THREADS	4
#define CREW_NODES	64

/* The handles that a process has open */
struct crew {
	unsigned int process;		/* number of the process on this node */
	struct kdsm *kdsm;
	struct kdsm_region *region, *sync;
	struct kdsm_tree_barrier barrier;	/* its words are the first bytes of sync */
};

static inline void must(int error, const char *what)
{
	if (error)
		guest_die(what, error);
}

/* sync_size: bytes of sync beyond the barrier; participants: of the barrier, on each node. */
static inline void crew_open(struct crew *crew, const char *name,
			     const struct kdsm_region_attr *attr, uint64_t sync_size,
			     const uint32_t *participants)
{
	must(kdsm_open(0, &crew->kdsm), "kdsm_open");
	must(kdsm_region_open_coherent(crew->kdsm, name, attr,
				       KDSM_TREE_BARRIER_SIZE + sync_size, &crew->region,
				       &crew->sync), name);
	must(kdsm_tree_barrier_init(&crew->barrier, crew->region, crew->sync, 0, participants),
	     "kdsm_tree_barrier_init");
}

static inline void crew_close(struct crew *crew)
{
	kdsm_region_close(crew->region);
	kdsm_region_close(crew->sync);
	kdsm_close(crew->kdsm);
}

static inline void crew_wait(const struct crew *crew)
{
	unsigned int culprit = KDSM_MAX_NODES;
	int ret = kdsm_tree_barrier_wait(&crew->barrier, 120 * SECOND, &culprit);

	if (ret) {
		printf("# node %u is why\n", culprit);
		guest_die("kdsm_tree_barrier_wait", ret);
	}
}

/* Start a process that calls run() and exits with 1 if a CHECK() failed in it. */
static inline pid_t crew_fork(void (*run)(unsigned int process), unsigned int process)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		guest_die("fork", -errno);
	if (!pid) {
		failures = 0;
		run(process);
		fflush(stdout);
		_exit(failures != 0);
	}
	return pid;
}

/* Return the exit status of a process, or minus the signal that ended it. */
static inline int crew_join(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		guest_die("waitpid", -errno);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Run that many processes; each has to exit with status 0. */
static inline void crew_run(void (*run)(unsigned int process), unsigned int processes)
{
	pid_t pids[CREW_PROCESSES];
	unsigned int i;

	for (i = 0; i < processes; i++)
		pids[i] = crew_fork(run, i);
	for (i = 0; i < processes; i++)
		CHECK_IS(crew_join(pids[i]), 0);
}

/* Run that many threads; args is an array of elements of size bytes, one for each thread. */
static inline void crew_threads(void *(*run)(void *arg), void *args, size_t size,
				unsigned int threads)
{
	pthread_t ids[CREW_THREADS];
	unsigned int i;

	for (i = 0; i < threads; i++)
		must(-pthread_create(&ids[i], NULL, run, (char *)args + i * size),
		     "pthread_create");
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

#endif /* GUEST_CREW_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions for other folders of the library whose code is written as tasks: workers without
 * a pool, and the argument of a pool. Programs use <kdsm/task.h>; the files of lib/task share
 * internal.h.
 */
#ifndef KD_TASK_H
#define KD_TASK_H

#include <kdsm/task.h>

#include "core/core.h"

/**
 * kd_task_argument() - Get the argument of the pool that a worker belongs to
 * @worker: the worker; NULL: the worker whose thread calls this function
 * @start: the start function that the caller expects the pool to have
 *
 * Return: the argument, or NULL if the pool has another start function, or if @worker is NULL
 * and the calling thread is not that of a worker.
 */
void *kd_task_argument(struct kdsm_worker *worker,
		       int (*start)(void *argument, void **context)) KDSM_PRIVATE;

/**
 * kd_task_alone_new() - Make a worker that belongs to no pool
 * @worker: (out) the worker
 * @head: (out) the first element of its deque
 * @context: value of KDSM_CONTEXT() in the tasks that the worker runs
 *
 * The worker has no thread, and no other worker steals from it. The caller runs task f by
 * f_kdsm_call(*worker, *head, ...), in one thread at a time, and frees the worker by
 * kd_task_alone_free().
 *
 * Return: 0 or -ENOMEM.
 */
int kd_task_alone_new(struct kdsm_worker **worker, struct kdsm_task **head,
		      void *context) KDSM_PRIVATE;
/**
 * kd_task_alone_free() - Free a worker made by kd_task_alone_new()
 * @worker: the worker, or NULL
 */
void kd_task_alone_free(struct kdsm_worker *worker) KDSM_PRIVATE;

#endif /* KD_TASK_H */

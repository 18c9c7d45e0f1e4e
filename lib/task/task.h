/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tasks, for code of the library that is written as tasks. Programs use <kdsm/task.h>. */
#ifndef KD_TASK_H
#define KD_TASK_H

#include <kdsm/task.h>

#include "core/core.h"

/*
 * worker.c: the argument of the pool that the worker belongs to, if the pool's start
 * function is start; NULL if it is another. worker NULL: the worker that the calling thread
 * is, if it is one.
 */
void *kd_task_argument(struct kdsm_worker *worker,
		       int (*start)(void *argument, void **context)) KDSM_PRIVATE;

/*
 * alone.c: a worker of no pool, for code that is written as tasks and runs by itself
 * here. Nobody steals from it, and it has no thread: the caller calls
 * f_kdsm_call(*worker, *head, ...), in one thread at a time.
 */
int kd_task_alone_new(struct kdsm_worker **worker, struct kdsm_task **head,
		      void *context) KDSM_PRIVATE;
/* NULL is ignored. */
void kd_task_alone_free(struct kdsm_worker *worker) KDSM_PRIVATE;

#endif /* KD_TASK_H */

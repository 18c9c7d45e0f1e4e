/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The classic programs for task queues, as tasks and as plain functions. A plain function is the
 * task without spawn and sync, and not optimised further.
 */
#ifndef WORK_H
#define WORK_H

#include <stdbool.h>
#include <kdsm/task.h>
#include <kdsm/virtual.h>

/*
 * Between work_begin() and work_end(), each task of a program spends a price in virtual ns; or,
 * with 0, as long as the task takes here.
 */
void work_begin(uint64_t price);
void work_end(void);

extern bool work_virtual;
void work_pay(void);

/* Each task calls this function first. */
static inline void work_spend(void)
{
	if (__builtin_expect(work_virtual, 0))
		work_pay();
}

uint64_t plain_fib(unsigned int n);
KDSM_TASK_DECLARE(uint64_t, fib, unsigned int, n)

/* Squares of a row as bits: all of them, and those attacked. At first only "all" is not 0. */
struct board {
	uint32_t all, columns, left, right;
};

uint64_t plain_queens(struct board board);
KDSM_TASK_DECLARE(uint64_t, queens, struct board, board)

/*
 * Unbalanced tree search (Olivier et al., LCPC 2006), geometric trees of fixed shape. A node is a
 * SHA-1 digest that determines the number of its children: 4 on average above the given depth.
 * The result is the number of nodes.
 */
struct uts_node {
	uint8_t state[20];
	uint16_t height, depth;
};

struct uts_node uts_root(uint32_t seed, unsigned int depth);
uint64_t plain_uts(struct uts_node node);
KDSM_TASK_DECLARE(uint64_t, uts, struct uts_node, node)

/* Tree T1 of the paper */
#define UTS_T1_SEED	19
#define UTS_T1_DEPTH	10
#define UTS_T1_NODES	4130071

/* c += a * b; size x size doubles in rows of stride doubles, in memory that workers share. */
struct matrices {
	const double *a, *b;
	double *c;
	uint32_t size, stride;
};

void plain_matmul(struct matrices m);
KDSM_VOID_TASK_DECLARE(matmul, struct matrices, m)

/* Calls of the plain function for this size: as many tasks are spawned or called. */
uint64_t matmul_calls(uint32_t size);

#endif /* WORK_H */

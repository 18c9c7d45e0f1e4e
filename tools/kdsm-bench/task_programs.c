// SPDX-License-Identifier: GPL-2.0
/* The programs of kdsm-bench task, in the sizes that it runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "task.h"

#define BOARD		11
#define MATRIX		256

/* ---- the programs ---- */

static int run_fib(struct bench *bench, struct kdsm_tasks *tasks, uint64_t *result)
{
	return KDSM_RUN(tasks, result, fib, bench->options->fib);
}

static uint64_t plain_run_fib(struct bench *bench)
{
	return plain_fib(bench->options->fib);
}

static const struct board empty_board = { .all = (1 << BOARD) - 1 };

static int run_queens(struct bench *bench, struct kdsm_tasks *tasks, uint64_t *result)
{
	(void)bench;
	return KDSM_RUN(tasks, result, queens, empty_board);
}

static uint64_t plain_run_queens(struct bench *bench)
{
	(void)bench;
	return plain_queens(empty_board);
}

static int run_uts(struct bench *bench, struct kdsm_tasks *tasks, uint64_t *result)
{
	return KDSM_RUN(tasks, result, uts, uts_root(UTS_T1_SEED, bench->options->depth));
}

static uint64_t plain_run_uts(struct bench *bench)
{
	return plain_uts(uts_root(UTS_T1_SEED, bench->options->depth));
}

/* A checksum that depends on the places of the elements, too */
static uint64_t sum_of(const struct matrices *m)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < m->size * m->size; i++)
		sum += m->c[i] * (i % 13 + 1);
	return sum;
}

static int run_matmul(struct bench *bench, struct kdsm_tasks *tasks, uint64_t *result)
{
	struct matrices m = bench->matrices;
	int ret;

	memset(m.c, 0, MATRIX * MATRIX * sizeof(*m.c));
	ret = KDSM_RUN(tasks, NULL, matmul, m);
	*result = sum_of(&m);
	return ret;
}

static uint64_t plain_run_matmul(struct bench *bench)
{
	struct matrices m = bench->matrices;

	memset(m.c, 0, MATRIX * MATRIX * sizeof(*m.c));
	plain_matmul(m);
	return sum_of(&m);
}

static int run_tiles(struct bench *bench, struct kdsm_tasks *tasks, uint64_t *result)
{
	int ret, failed = 0;

	ret = KDSM_RUN(tasks, &failed, tile_matmul, 0, 0, 0, bench->tiles.side);
	if (!ret)
		ret = failed;
	if (!ret)
		ret = tiles_read(&bench->tiles, TILES_C, bench->matrices.c);
	*result = sum_of(&bench->matrices);
	return ret;
}

/* ---- numbers of spawned tasks, computed here because workers do not count them ---- */

static uint64_t spawned_fib(const struct bench *bench, uint64_t result)
{
	uint64_t a = 0, b = 0, next;
	unsigned int i;

	(void)result;
	/* s(n) = s(n - 1) + s(n - 2) + 1 */
	for (i = 1; i < bench->options->fib; i++) {
		next = a + b + 1;
		a = b;
		b = next;
	}
	return b;
}

static uint64_t spawned_board(struct board board)
{
	uint32_t left = board.all & ~(board.columns | board.left | board.right), place;
	uint64_t sum = 0;

	if (board.columns == board.all)
		return 0;
	for (; left; left &= left - 1) {
		place = left & -left;
		sum += 1 + spawned_board((struct board){
			board.all, board.columns | place, (board.left | place) << 1,
			(board.right | place) >> 1 });
	}
	return sum;
}

static uint64_t spawned_queens(const struct bench *bench, uint64_t result)
{
	(void)bench;
	(void)result;
	return spawned_board(empty_board);
}

/* Each node of the tree but the root is a task. */
static uint64_t spawned_uts(const struct bench *bench, uint64_t result)
{
	(void)bench;
	return result - 1;
}

/* 6 of 8 products of quarters are spawned, 2 are called. */
static uint64_t spawned_matmul(const struct bench *bench, uint64_t result)
{
	(void)result;
	return (matmul_calls(bench->matrices.size) - 1) / 8 * 6;
}

static uint64_t spawned_tiles(const struct bench *bench, uint64_t result)
{
	(void)result;
	return (tile_matmul_calls(bench->tiles.side) - 1) / 8 * 6;
}

/* ---- all programs ---- */

/* Virtual runs of one node are compared with those of several, so both do the same. */
static bool several(const struct run *run)
{
	return run->nodes > 1 || run->simulated;
}

static bool one(const struct run *run)
{
	return !several(run);
}

/* Several nodes multiply tiles in the region, because they cannot read a process' memory. */
const struct program bench_programs[BENCH_PROGRAMS] = {
	{ "fib", run_fib, plain_run_fib, spawned_fib, NULL },
	{ "queens", run_queens, plain_run_queens, spawned_queens, NULL },
	{ "uts", run_uts, plain_run_uts, spawned_uts, NULL },
	{ "matmul", run_matmul, plain_run_matmul, spawned_matmul, one },
	{ "matmul", run_tiles, plain_run_matmul, spawned_tiles, several },
};

/* ---- matrices ---- */

static double *new_matrix(void)
{
	double *matrix = malloc(MATRIX * MATRIX * sizeof(*matrix));
	uint32_t i;

	for (i = 0; matrix && i < MATRIX * MATRIX; i++)
		matrix[i] = i * i % 7;
	return matrix;
}

uint64_t bench_matrices_bytes(unsigned int nodes)
{
	return tiles_bytes(MATRIX / TILE, nodes);
}

int bench_matrices_init(struct bench *bench)
{
	bench->matrices = (struct matrices){ new_matrix(), new_matrix(), new_matrix(), MATRIX,
					     MATRIX };
	return bench->matrices.a && bench->matrices.b && bench->matrices.c ? 0 : -ENOMEM;
}

int bench_matrices_spread(struct bench *bench, uint64_t offset)
{
	int ret;

	bench->tiles = (struct tiles){ bench->run->region, offset, bench->run->nodes,
				       MATRIX / TILE };
	if (bench->run->node)
		return 0;
	ret = tiles_write(&bench->tiles, TILES_A, bench->matrices.a);
	return ret ? ret : tiles_write(&bench->tiles, TILES_B, bench->matrices.b);
}

void bench_matrices_free(struct bench *bench)
{
	free((double *)bench->matrices.a);
	free((double *)bench->matrices.b);
	free(bench->matrices.c);
}

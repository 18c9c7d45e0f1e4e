// SPDX-License-Identifier: GPL-2.0
/* Products of tiles, see tiles.h. */
#include <string.h>
#include "tiles.h"
#include "work.h"

static uint64_t matrix_bytes(uint32_t side, unsigned int nodes)
{
	return ((uint64_t)side * side + nodes - 1) / nodes * TILE_BYTES;
}

uint64_t tiles_bytes(uint32_t side, unsigned int nodes)
{
	return 3 * matrix_bytes(side, nodes);
}

static unsigned int node_of(const struct tiles *tiles, uint32_t row, uint32_t column)
{
	return (row * tiles->side + column) % tiles->nodes;
}

static uint64_t place_of(const struct tiles *tiles, enum tiles_which which, uint32_t row,
			 uint32_t column)
{
	return tiles->offset + which * matrix_bytes(tiles->side, tiles->nodes) +
	       (row * tiles->side + column) / tiles->nodes * TILE_BYTES;
}

static struct kdsm_op get_tile(const struct tiles *tiles, enum tiles_which which, uint32_t row,
			       uint32_t column, double *to)
{
	return kdsm_op_get(node_of(tiles, row, column), place_of(tiles, which, row, column), to,
			   TILE_BYTES);
}

static int put_tile(const struct tiles *tiles, enum tiles_which which, uint32_t row,
		    uint32_t column, const double *from)
{
	int ret = kdsm_put(tiles->region, node_of(tiles, row, column),
			   place_of(tiles, which, row, column), from, TILE_BYTES);

	/* The task ends, and others go on with the tile. */
	return ret ? ret : kdsm_settle(kdsm_region_cluster(tiles->region));
}

static double *row_in(const struct tiles *tiles, double *rows, uint32_t tile, uint32_t i)
{
	uint32_t row = tile / tiles->side * TILE + i, column = tile % tiles->side * TILE;

	return rows + (uint64_t)row * tiles->side * TILE + column;
}

int tiles_write(const struct tiles *tiles, enum tiles_which which, const double *rows)
{
	double tile[TILE * TILE];
	uint32_t n, i;
	int ret = 0;

	for (n = 0; n < tiles->side * tiles->side && !ret; n++) {
		for (i = 0; i < TILE; i++)
			memcpy(tile + i * TILE, row_in(tiles, (double *)rows, n, i),
			       TILE * sizeof(*tile));
		ret = put_tile(tiles, which, n / tiles->side, n % tiles->side, tile);
	}
	return ret;
}

int tiles_read(const struct tiles *tiles, enum tiles_which which, double *rows)
{
	double tile[TILE * TILE];
	struct kdsm_op op;
	uint32_t n, i;
	int ret = 0;

	for (n = 0; n < tiles->side * tiles->side && !ret; n++) {
		op = get_tile(tiles, which, n / tiles->side, n % tiles->side, tile);
		ret = kdsm_vector(tiles->region, &op, 1);
		for (i = 0; i < TILE && !ret; i++)
			memcpy(row_in(tiles, rows, n, i), tile + i * TILE,
			       TILE * sizeof(*tile));
	}
	return ret;
}

static int multiply(const struct tiles *tiles, uint32_t row, uint32_t column, uint32_t middle)
{
	double a[TILE * TILE], b[TILE * TILE], c[TILE * TILE];
	struct kdsm_op ops[] = {
		get_tile(tiles, TILES_A, row, middle, a),
		get_tile(tiles, TILES_B, middle, column, b),
		get_tile(tiles, TILES_C, row, column, c),
	};
	uint32_t i, j, k;
	int ret;

	memset(c, 0, sizeof(c));
	ret = kdsm_vector(tiles->region, ops, middle ? 3 : 2);
	if (ret)
		return ret;
	for (i = 0; i < TILE; i++)
		for (k = 0; k < TILE; k++)
			for (j = 0; j < TILE; j++)
				c[i * TILE + j] += a[i * TILE + k] * b[k * TILE + j];
	return put_tile(tiles, TILES_C, row, column, c);
}

KDSM_TASK_DEFINE(int, tile_matmul, uint32_t, row, uint32_t, column, uint32_t, middle,
		 uint32_t, size)
{
	uint32_t half = size / 2, round, i;
	int first = 0, ret;

	work_spend();
	if (size == 1)
		return multiply(KDSM_CONTEXT(), row, column, middle);
	/* The second half of the sum is added after the first half. */
	for (round = 0; round < 2 && !first; round++) {
		for (i = 0; i < 3; i++)
			KDSM_SPAWN(tile_matmul, row + i / 2 * half, column + i % 2 * half,
				   middle + round * half, half);
		first = KDSM_CALL(tile_matmul, row + half, column + half, middle + round * half,
				  half);
		for (i = 0; i < 3; i++) {
			ret = KDSM_SYNC(tile_matmul);
			first = first ? first : ret;
		}
	}
	return first;
}

uint64_t tile_matmul_calls(uint32_t side)
{
	return side == 1 ? 1 : 1 + 8 * tile_matmul_calls(side / 2);
}

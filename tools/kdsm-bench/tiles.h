/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Square matrices of tiles, which are spread round-robin over the nodes' parts of a region, and
 * their product as tasks of all nodes. A tile has one writer at a time, and the put of a tile
 * completes before its task does, so no get of a tile is torn.
 */
#ifndef TILES_H
#define TILES_H

#include <kdsm/task.h>

#define TILE		32		/* rows, and columns, of a tile */
#define TILE_BYTES	(TILE * TILE * sizeof(double))

/* Matrices a, b and c of side x side tiles each, at offset of every part. */
struct tiles {
	struct kdsm_region *region;
	uint64_t offset;		/* a multiple of 8 */
	unsigned int nodes;
	uint32_t side;
};

enum tiles_which { TILES_A, TILES_B, TILES_C };

/* Bytes in each part. */
uint64_t tiles_bytes(uint32_t side, unsigned int nodes);
/* Copy a matrix from or to rows in memory. Return 0 or a negative errno. */
int tiles_write(const struct tiles *tiles, enum tiles_which which, const double *rows);
int tiles_read(const struct tiles *tiles, enum tiles_which which, double *rows);

/*
 * Compute a cube of size^3 products of tiles; size is a power of two. The size x size tiles of c
 * from row and column on get the products of the tiles a[row..][middle..] and
 * b[middle..][column..], which are added unless middle is 0. The worker's context is the struct
 * tiles. Returns 0 or a negative errno.
 */
KDSM_TASK_DECLARE(int, tile_matmul, uint32_t, row, uint32_t, column, uint32_t, middle,
		  uint32_t, size)

/* Number of tasks that are spawned or called for a whole product. */
uint64_t tile_matmul_calls(uint32_t side);

#endif /* TILES_H */

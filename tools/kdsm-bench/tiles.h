/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Square matrices of tiles that are spread over the nodes' parts of a region, one after
 * the other, and their product as tasks of all nodes. A tile has one writer at a time,
 * whose put is complete before the task that did it is, so no get of it is torn.
 */
#ifndef TILES_H
#define TILES_H

#include <kdsm/task.h>

#define TILE		32		/* rows, and columns */
#define TILE_BYTES	(TILE * TILE * sizeof(double))

/* a, b and c, of side x side tiles each, at offset of every part. */
struct tiles {
	struct kdsm_region *region;
	uint64_t offset;		/* a multiple of 8 */
	unsigned int nodes;
	uint32_t side;
};

enum tiles_which { TILES_A, TILES_B, TILES_C };

/* Bytes of every part. */
uint64_t tiles_bytes(uint32_t side, unsigned int nodes);
/* Between a matrix and one in rows of memory; 0 or a negative errno. */
int tiles_write(const struct tiles *tiles, enum tiles_which which, const double *rows);
int tiles_read(const struct tiles *tiles, enum tiles_which which, double *rows);

/*
 * A cube of size^3 products of tiles: those at rows from row and columns from column on of
 * c get what those of a and b in the middle give. Where middle is 0, c has nothing yet. The
 * worker's context is the struct tiles. 0 or a negative errno. size: a power of two.
 */
KDSM_TASK_DECLARE(int, tile_matmul, uint32_t, row, uint32_t, column, uint32_t, middle,
		  uint32_t, size)

/* How often it is spawned or called for a whole product. */
uint64_t tile_matmul_calls(uint32_t side);

#endif /* TILES_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* A plot of a search over its levels, as an SVG picture */
#ifndef PLOT_H
#define PLOT_H

#include <stdint.h>
#include <gmp.h>

#define PLOT_POINTS	1024	/* a longer search loses points evenly */

/* Initially zero */
struct plot {
	struct plot_point {
		double level, states, nodes, seconds;	/* states: their decimal logarithm */
	} point[PLOT_POINTS];
	unsigned int count;
	uint64_t seen, stride;	/* of the points offered, each stride-th is kept */
};

/* Add what is known after a level. Where the level does not increase, another line begins. */
void plot_add(struct plot *plot, uint64_t level, const mpz_t states, uint64_t nodes,
	      double seconds);
/* Add the last point, in place of an earlier one if need be. */
void plot_end(struct plot *plot, uint64_t level, const mpz_t states, uint64_t nodes,
	      double seconds);
/* Write the picture. Returns 0 or a negative errno. */
int plot_write(const struct plot *plot, const char *path, const char *title);

#endif /* PLOT_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * CG of the NAS Parallel Benchmarks: the smallest eigenvalue of a sparse symmetric matrix, by
 * inverse iteration. Each iteration solves a system of equations approximately, by 25 steps of
 * the method of conjugate gradients.
 *
 * The matrix is the sum over i of w(i) x(i) x(i)', where x(i) is a random sparse
 * vector whose element i is 1/2 and w falls from 1 to 1/10 in a geometric series,
 * plus (1/10 - shift) I.
 *
 * Members have equal shares of the rows of the matrix and of the elements of all vectors. In a
 * step a member reads p, which other members have written. Vectors are spread, so members write
 * different blocks.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "random.h"

#define SEED		314159265
#define RCOND		0.1
#define STEPS		25
#define MAX_NONZER	8
#define MAX_ELEMENTS	(MAX_NONZER + 1)	/* of a random vector */

struct size {
	unsigned int n, nonzer, iterations;
	double shift, zeta;			/* zeta: the published result */
};

static const struct size sizes[] = {
	{ 1400, 7, 15, 10, 8.5971775078648 },		/* S */
	{ 7000, 8, 15, 12, 10.362595087124 },		/* W */
};

/* A random vector; its elements are in the order in which they were drawn. */
struct sparse {
	unsigned int count;
	unsigned int index[MAX_ELEMENTS];
	double value[MAX_ELEMENTS];
};

/*
 * The random vectors, and for each row j of the matrix the numbers of the vectors that have an
 * element j: row_vectors[row_begin[j]] to row_vectors[row_begin[j + 1] - 1]. Private memory.
 */
static struct sparse *vectors;
static unsigned int *row_begin, *row_vectors;

/* An element of the matrix. The column is the place of the vectors' element, see place(). */
struct element {
	double value;
	uint64_t column;
};

static struct kdsm_spread x, z, p, q, r;	/* of double */

static const struct size *size_of(const struct frame *frame)
{
	return &sizes[frame->class == 'W'];
}

/* Index of element i in the memory of a vector, which has gaps between members */
static uint64_t place(uint64_t i)
{
	return (double *)kdsm_spread_at(&p, i) - (double *)p.base;
}

/* ---- the matrix ---- */

static bool has(const struct sparse *vector, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < vector->count; i++)
		if (vector->index[i] == index)
			return true;
	return false;
}

/*
 * Draw nonzer random elements at random places below a power of two; drop places that are not
 * below n or were drawn before. Then set element i to 1/2.
 */
static void make_vector(const struct size *size, unsigned int i, uint64_t *state,
			struct sparse *vector)
{
	unsigned int power = 1, index, k;
	double value;

	while (power < size->n)
		power *= 2;
	while (vector->count < size->nonzer) {
		value = lcg_next(state);
		index = (unsigned int)(power * lcg_next(state));
		if (index >= size->n || has(vector, index))
			continue;
		vector->index[vector->count] = index;
		vector->value[vector->count++] = value;
	}
	for (k = 0; k < vector->count && vector->index[k] != i; k++)
		;
	vector->index[k] = i;
	vector->value[k] = 0.5;
	if (k == vector->count)
		vector->count++;
}

/* Every process makes all vectors, because each continues the random numbers of the last. */
static void make_vectors(const struct size *size)
{
	uint64_t state = SEED;
	unsigned int i, k, *end;

	vectors = frame_private(size->n, sizeof(*vectors));
	row_begin = frame_private(size->n + 2, sizeof(*row_begin));
	lcg_next(&state);	/* the benchmark's definition skips the first number */
	for (i = 0; i < size->n; i++) {
		make_vector(size, i, &state, &vectors[i]);
		for (k = 0; k < vectors[i].count; k++)
			row_begin[vectors[i].index[k] + 2]++;
	}
	for (i = 2; i <= size->n; i++)
		row_begin[i] += row_begin[i - 1];
	/* In the last loop, end[j] grows from the begin of row j to its end. */
	end = row_begin + 1;
	row_vectors = frame_private(end[size->n - 1] + row_begin[size->n + 1],
				    sizeof(*row_vectors));
	for (i = 0; i < size->n; i++)
		for (k = 0; k < vectors[i].count; k++)
			row_vectors[end[vectors[i].index[k]]++] = i;
}

/* Upper bound of the number of elements in a row. */
static uint64_t row_room(unsigned int row)
{
	uint64_t room = 0;
	unsigned int i;

	for (i = row_begin[row]; i < row_begin[row + 1]; i++)
		room += vectors[row_vectors[i]].count;
	return room;
}

/* Add value to an element of a row; a row is sorted by columns. Returns the new end. */
static struct element *add(struct element *row, struct element *end, uint64_t column,
			   double value)
{
	struct element *at = end;

	while (at > row && at[-1].column >= column)
		at--;
	if (at < end && at->column == column) {
		at->value += value;
		return end;
	}
	memmove(at + 1, at, (end - at) * sizeof(*at));
	*at = (struct element) { value, column };
	return end + 1;
}

static struct element *make_row(const struct size *size, unsigned int j, struct element *row)
{
	struct element *end = row;
	unsigned int i, k, in_vector;

	for (i = row_begin[j]; i < row_begin[j + 1]; i++) {
		const struct sparse *vector = &vectors[row_vectors[i]];
		double weight = pow(RCOND, (double)row_vectors[i] / size->n);

		for (in_vector = 0; vector->index[in_vector] != j; in_vector++)
			;
		for (k = 0; k < vector->count; k++)
			end = add(row, end, place(vector->index[k]),
				  vector->value[k] * (weight * vector->value[in_vector]));
	}
	return add(row, end, place(j), RCOND - size->shift);
}

/* ---- the computation ---- */

/* A member's share of everything. */
struct part {
	struct frame *frame;
	uint64_t count;
	struct element **rows;		/* begin of each row, and the end; private memory */
	struct element *elements;
	double *x, *z, *p, *q, *r;	/* count each */
};

static void make_rows(struct part *part, uint64_t first)
{
	const struct size *size = size_of(part->frame);
	uint64_t i, room = 0;
	struct element *at;

	for (i = 0; i < part->count; i++)
		room += row_room(first + i) + 1;
	at = frame_private(room + 1, sizeof(*at));
	part->elements = at;
	part->rows = frame_private(part->count + 1, sizeof(*part->rows));
	for (i = 0; i < part->count; i++) {
		part->rows[i] = at;
		at = make_row(size, first + i, at);
	}
	part->rows[i] = at;
}

static struct part make_part(struct frame *frame)
{
	struct kdsm_spread *vectors[] = { &x, &z, &p, &q, &r };
	uint64_t n = size_of(frame)->n, first = kdsm_share(n, frame->rank, frame->size);
	struct part part = {
		.frame = frame, .count = kdsm_share(n, frame->rank + 1, frame->size) - first,
	};
	size_t i;

	for (i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
		kdsm_job_spread(frame->job, n, sizeof(double), vectors[i]);
	part.x = kdsm_spread_at(&x, first);
	part.z = kdsm_spread_at(&z, first);
	part.p = kdsm_spread_at(&p, first);
	part.q = kdsm_spread_at(&q, first);
	part.r = kdsm_spread_at(&r, first);
	make_vectors(size_of(frame));
	make_rows(&part, first);
	return part;
}

/* to = A vector */
static void multiply(const struct part *part, const double *vector, double *to)
{
	const struct element *element;
	uint64_t i;
	double sum;

	for (i = 0; i < part->count; i++) {
		sum = 0;
		for (element = part->rows[i]; element < part->rows[i + 1]; element++)
			sum += element->value * vector[element->column];
		to[i] = sum;
	}
}

/* The scalar product over all members */
static double dot(const struct part *part, const double *a, const double *b)
{
	double sum = 0;
	uint64_t i;

	for (i = 0; i < part->count; i++)
		sum += a[i] * b[i];
	kdsm_job_allreduce(part->frame->job, KDSM_JOB_DOUBLE, KDSM_JOB_SUM, &sum, 1);
	return sum;
}

/* Solve A z = x approximately. Returns the norm of the residual. */
static double solve(struct part *part)
{
	double rho, former, alpha, beta, difference, sum = 0;
	uint64_t i;
	int step;

	for (i = 0; i < part->count; i++) {
		part->z[i] = 0;
		part->r[i] = part->x[i];
		part->p[i] = part->x[i];
	}
	rho = dot(part, part->r, part->r);

	for (step = 0; step < STEPS; step++) {
		multiply(part, (double *)p.base, part->q);
		alpha = rho / dot(part, part->p, part->q);

		for (i = 0; i < part->count; i++) {
			part->z[i] += alpha * part->p[i];
			part->r[i] -= alpha * part->q[i];
		}
		former = rho;
		rho = dot(part, part->r, part->r);

		beta = rho / former;
		for (i = 0; i < part->count; i++)
			part->p[i] = part->r[i] + beta * part->p[i];
		kdsm_job_barrier(part->frame->job);
	}

	multiply(part, (double *)z.base, part->q);
	for (i = 0; i < part->count; i++) {
		difference = part->x[i] - part->q[i];
		sum += difference * difference;
	}
	kdsm_job_allreduce(part->frame->job, KDSM_JOB_DOUBLE, KDSM_JOB_SUM, &sum, 1);
	return sqrt(sum);
}

/* One step of the inverse iteration. Returns an estimate of the eigenvalue. */
static double iterate(struct part *part, double *norm)
{
	double xz, zz;
	uint64_t i;

	*norm = solve(part);
	xz = dot(part, part->x, part->z);
	zz = dot(part, part->z, part->z);
	for (i = 0; i < part->count; i++)
		part->x[i] = part->z[i] / sqrt(zz);
	return size_of(part->frame)->shift + 1 / xz;
}

/* ---- blocks that must move ---- */

/* Whether the element of this index of a vector, or row of the matrix, is one of another node */
static bool is_others(const struct frame *frame, uint64_t index)
{
	return is_elsewhere(frame, kdsm_sharer(size_of(frame)->n, index, frame->size));
}

/* Blocks of p (or z) of other nodes that this node reads in a product of matrix and vector. */
static uint64_t blocks_needed(const struct frame *frame)
{
	uint64_t block = kdsm_region_block_size(kdsm_job_region(frame->job)), needed = 0, i, k;
	bool *touched = frame_private(p.stride / block * frame->size, sizeof(*touched));

	for (k = 0; k < size_of(frame)->n; k++) {
		const struct sparse *vector = &vectors[k];
		bool here = false;

		/* In the outer product, each row of the vector has all columns of the vector. */
		for (i = 0; i < vector->count; i++)
			here |= !is_others(frame, vector->index[i]);
		for (i = 0; here && i < vector->count; i++)
			if (is_others(frame, vector->index[i]))
				touched[place(vector->index[i]) * sizeof(double) / block] = true;
	}
	for (i = 0; i < p.stride / block * frame->size; i++)
		needed += touched[i];
	free(touched);
	return needed;
}

static double result, residual;		/* for print() */

static bool work(struct frame *frame)
{
	const struct size *size = size_of(frame);
	struct part part = make_part(frame);
	unsigned int iteration;
	uint64_t i;

	for (i = 0; i < part.count; i++)
		part.x[i] = 1;
	iterate(&part, &residual);	/* not measured, as the benchmark is defined */
	for (i = 0; i < part.count; i++)
		part.x[i] = 1;

	frame_begin(frame);
	for (iteration = 0; iteration < size->iterations; iteration++)
		result = iterate(&part, &residual);
	/* p in each step and z after the steps: others have written them since the last read. */
	frame_expects(frame, size->iterations * (STEPS + 1) * blocks_needed(frame));
	frame_end(frame);
	free(part.rows);
	free(part.elements);
	return fabs(result - size->zeta) <= 1 / 1e10;
}

static void print(const struct frame *frame)
{
	const struct size *size = size_of(frame);
	const struct total *total = &frame->total;
	double steps = size->iterations * STEPS, moves, operations, barriers;

	printf("n %u, %u iterations of %d steps; zeta %.13f, to be %.13f; residual %.2e\n",
	       size->n, size->iterations, STEPS, result, size->zeta, residual);
	if (frame->nodes == 1)
		return;
	operations = (total->gets + total->messages) / steps;
	barriers = total->puts / steps;
	printf("remote operations a step: %.2f of coherence, %.2f of sums and barriers\n",
	       operations, barriers);
	moves = total->expected / steps;
	printf("blocks that must move a step: %.2f; coherence takes %.2f x, with barriers %.2f x\n",
	       moves, operations / moves, (operations + barriers) / moves);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.doc = "An eigenvalue of a sparse matrix, as CG of the NAS Parallel Benchmarks "
		       "has it.",
		.work = work,
		.print = print,
	};

	return frame_main(argc, argv, &program);
}

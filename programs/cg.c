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
 * Workers have equal shares of the rows of the matrix and of the elements of all vectors. In a
 * step a worker reads p and two sums, which other workers have written. Vectors are spreads, so
 * workers of different nodes write different blocks.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
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

/* An element of the matrix. The column is the index that spread_index() gives. */
struct element {
	double value;
	uint64_t column;
};

/* A worker's part of sums over a whole vector. */
struct slot {
	_Alignas(64) double pq;
	double rr, other[2];
};

static struct spread x, z, p, q, r;		/* of double */
static struct spread slots;
static struct element **elements;		/* for each worker, room for its rows */

static const struct size *size_of(const struct job *job)
{
	return &sizes[job->class == 'W'];
}

/* ---- the matrix ---- */

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		job_check("private memory", -ENOMEM);
	return memory;
}

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

	vectors = allocate(size->n, sizeof(*vectors));
	row_begin = allocate(size->n + 2, sizeof(*row_begin));
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
	row_vectors = allocate(end[size->n - 1] + row_begin[size->n + 1], sizeof(*row_vectors));
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
			end = add(row, end, spread_index(&p, vector->index[k]),
				  vector->value[k] * (weight * vector->value[in_vector]));
	}
	return add(row, end, spread_index(&p, j), RCOND - size->shift);
}

/* ---- memory ---- */

static void layout(struct job *job)
{
	const struct size *size = size_of(job);
	unsigned int i, j;
	uint64_t room;

	if (!vectors) {
		make_vectors(size);
		elements = allocate(job->workers, sizeof(*elements));
	}
	x = job_spread(job, size->n, sizeof(double));
	z = job_spread(job, size->n, sizeof(double));
	p = job_spread(job, size->n, sizeof(double));
	q = job_spread(job, size->n, sizeof(double));
	r = job_spread(job, size->n, sizeof(double));
	slots = job_spread(job, job->workers, sizeof(struct slot));
	for (i = 0; i < job->workers; i++) {
		room = 1;
		for (j = share(size->n, i, job->workers);
		     j < share(size->n, i + 1, job->workers); j++)
			room += row_room(j) + 1;
		elements[i] = job_alloc(job, room * sizeof(struct element));
	}
}

/* ---- the computation ---- */

/* A worker's share of everything. */
struct part {
	struct worker *worker;
	uint64_t count;
	struct element **rows;		/* begin of each row, and the end; private memory */
	double *x, *z, *p, *q, *r;	/* count each */
	struct slot *slot;
};

static struct part part_of(struct worker *worker)
{
	const struct job *job = worker->job;
	uint64_t n = size_of(job)->n;
	uint64_t first = share(n, worker->rank, job->workers);

	return (struct part) {
		.worker = worker,
		.count = share(n, worker->rank + 1, job->workers) - first,
		.x = spread_at(&x, first),
		.z = spread_at(&z, first),
		.p = spread_at(&p, first),
		.q = spread_at(&q, first),
		.r = spread_at(&r, first),
		.slot = spread_at(&slots, worker->rank),
	};
}

static void make_rows(struct part *part)
{
	const struct job *job = part->worker->job;
	uint64_t first = share(size_of(job)->n, part->worker->rank, job->workers), i;
	struct element *at = elements[part->worker->rank];

	for (i = 0; i < part->count; i++) {
		part->rows[i] = at;
		at = make_row(size_of(job), first + i, at);
	}
	part->rows[i] = at;
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

static double dot(const struct part *part, const double *a, const double *b)
{
	double sum = 0;
	uint64_t i;

	for (i = 0; i < part->count; i++)
		sum += a[i] * b[i];
	return sum;
}

/*
 * Return the sum over all workers of one word of their slots. Every worker adds in the same
 * order, so all get the same sum. A worker may write the word again only after another barrier.
 */
static double sum_up(const struct part *part, size_t word)
{
	unsigned int i;
	double sum = 0;

	worker_barrier(part->worker);
	for (i = 0; i < part->worker->job->workers; i++)
		sum += *(double *)((char *)spread_at(&slots, i) + word);
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
	part->slot->rr = dot(part, part->r, part->r);
	rho = sum_up(part, offsetof(struct slot, rr));

	for (step = 0; step < STEPS; step++) {
		multiply(part, (double *)p.base, part->q);
		part->slot->pq = dot(part, part->p, part->q);
		alpha = rho / sum_up(part, offsetof(struct slot, pq));

		for (i = 0; i < part->count; i++) {
			part->z[i] += alpha * part->p[i];
			part->r[i] -= alpha * part->q[i];
		}
		part->slot->rr = dot(part, part->r, part->r);
		former = rho;
		rho = sum_up(part, offsetof(struct slot, rr));

		beta = rho / former;
		for (i = 0; i < part->count; i++)
			part->p[i] = part->r[i] + beta * part->p[i];
		worker_barrier(part->worker);
	}

	multiply(part, (double *)z.base, part->q);
	for (i = 0; i < part->count; i++) {
		difference = part->x[i] - part->q[i];
		sum += difference * difference;
	}
	part->slot->other[0] = sum;
	return sqrt(sum_up(part, offsetof(struct slot, other[0])));
}

/* One step of the inverse iteration. Returns an estimate of the eigenvalue. */
static double iterate(struct part *part, double *norm)
{
	double xz, zz;
	uint64_t i;

	*norm = solve(part);
	part->slot->pq = dot(part, part->x, part->z);
	part->slot->other[1] = dot(part, part->z, part->z);
	xz = sum_up(part, offsetof(struct slot, pq));
	zz = 0;
	for (i = 0; i < part->worker->job->workers; i++)
		zz += ((struct slot *)spread_at(&slots, i))->other[1];
	for (i = 0; i < part->count; i++)
		part->x[i] = part->z[i] / sqrt(zz);
	return size_of(part->worker->job)->shift + 1 / xz;
}

/* ---- blocks that must move ---- */

/* Blocks of p (or z) of other nodes that this node reads in a product of matrix and vector. */
static uint64_t blocks_needed(const struct job *job)
{
	uint64_t blocks = p.stride / job->block_size * job->nodes, needed = 0, i;
	bool *touched = allocate(blocks, sizeof(*touched));
	uint64_t n = size_of(job)->n;
	unsigned int k;

	for (k = 0; k < n; k++) {
		const struct sparse *vector = &vectors[k];
		bool here = false;

		/* In the outer product, each row of the vector has all columns of the vector. */
		for (i = 0; i < vector->count; i++)
			here |= vector->index[i] >= share(n, job->node, job->nodes) &&
				vector->index[i] < share(n, job->node + 1, job->nodes);
		for (i = 0; here && i < vector->count; i++)
			touched[spread_index(&p, vector->index[i]) * sizeof(double) /
				job->block_size] = true;
	}
	for (i = 0; i < blocks; i++)
		needed += touched[i] && i / (p.stride / job->block_size) != job->node;
	free(touched);
	return needed;
}

/*
 * Blocks that this node reads in an iteration: p in each step and z after the steps, because
 * other nodes have written them since the last read; and for each sum the slots of each other
 * node, one block. Sums: two in each step, one before the steps, one after them, and one for
 * the two sums of iterate().
 */
static uint64_t expected_blocks(const struct job *job)
{
	return (STEPS + 1) * blocks_needed(job) + (2 * STEPS + 3) * (job->nodes - 1);
}

static double result, residual;		/* of worker 0, for print() */

static bool work(struct worker *worker)
{
	const struct job *job = worker->job;
	const struct size *size = size_of(job);
	struct part part = part_of(worker);
	double zeta = 0, norm = 0;
	unsigned int iteration;
	uint64_t i;

	part.rows = allocate(part.count + 1, sizeof(*part.rows));
	make_rows(&part);
	for (i = 0; i < part.count; i++)
		part.x[i] = 1;
	iterate(&part, &norm);	/* the benchmark begins with an iteration that is not measured */
	for (i = 0; i < part.count; i++)
		part.x[i] = 1;

	worker_begin(worker);
	for (iteration = 0; iteration < size->iterations; iteration++)
		zeta = iterate(&part, &norm);
	if (worker->first && !job->packed)
		worker_expects(worker, size->iterations * expected_blocks(job));
	worker_end(worker);

	if (!worker->rank) {
		result = zeta;
		residual = norm;
	}
	free(part.rows);
	return fabs(zeta - size->zeta) <= 1 / 1e10;
}

static void print(const struct job *job, const struct total *total)
{
	const struct size *size = size_of(job);
	double steps = size->iterations * STEPS, moves, operations, barriers;

	printf("n %u, %u iterations of %d steps; zeta %.13f, to be %.13f; residual %.2e\n",
	       size->n, size->iterations, STEPS, result, size->zeta, residual);
	if (job->nodes == 1)
		return;
	operations = (total->gets + total->messages) / steps;
	barriers = total->puts / steps;
	printf("remote operations a step: %.2f of coherence, %.2f of barriers\n", operations,
	       barriers);
	if (!total->expected)
		return;
	moves = total->expected / steps;
	printf("blocks that must move a step: %.2f; coherence takes %.2f x, with barriers %.2f x\n",
	       moves, operations / moves, (operations + barriers) / moves);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "cg",
		.doc = "An eigenvalue of a sparse matrix, as CG of the NAS Parallel Benchmarks "
		       "has it.",
		.layout = layout,
		.work = work,
		.print = print,
	};

	return job_main(argc, argv, &program);
}

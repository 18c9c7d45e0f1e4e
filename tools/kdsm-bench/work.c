// SPDX-License-Identifier: GPL-2.0
/* The classic programs for task queues, see work.h. */
#include <math.h>
#include <string.h>
#include "work.h"

/*
 * Without a price, a task asks for the clock only after this many tasks: that takes longer than
 * a small task.
 */
#define ASK	16

bool work_virtual;

static uint64_t task_price;	/* in virtual ns, or 0 */

void work_begin(uint64_t price)
{
	work_virtual = true;
	task_price = price;
}

void work_end(void)
{
	work_virtual = false;
}

void work_pay(void)
{
	static unsigned int tasks;	/* of all nodes, which one thread executes */

	if (task_price || ++tasks % ASK == 0)
		kdsm_virtual_spend(task_price);
}

/* ---- Fibonacci numbers, the worst way ---- */

uint64_t plain_fib(unsigned int n)
{
	if (n < 2)
		return n;
	return plain_fib(n - 2) + plain_fib(n - 1);
}

KDSM_TASK_DEFINE(uint64_t, fib, unsigned int, n)
{
	uint64_t a;

	work_spend();
	if (n < 2)
		return n;
	KDSM_SPAWN(fib, n - 1);
	a = KDSM_CALL(fib, n - 2);
	return a + KDSM_SYNC(fib);
}

/* ---- queens ---- */

static struct board put_queen(struct board board, uint32_t place)
{
	return (struct board){
		board.all, board.columns | place, (board.left | place) << 1,
		(board.right | place) >> 1,
	};
}

static uint32_t places(const struct board *board)
{
	return board->all & ~(board->columns | board->left | board->right);
}

uint64_t plain_queens(struct board board)
{
	uint32_t left = places(&board);
	uint64_t sum = 0;

	if (board.columns == board.all)
		return 1;
	for (; left; left &= left - 1)
		sum += plain_queens(put_queen(board, left & -left));
	return sum;
}

KDSM_TASK_DEFINE(uint64_t, queens, struct board, board)
{
	uint32_t left = places(&board);
	unsigned int spawned = 0;
	uint64_t sum = 0;

	work_spend();
	if (board.columns == board.all)
		return 1;
	for (; left; left &= left - 1, spawned++)
		KDSM_SPAWN(queens, put_queen(board, left & -left));
	while (spawned--)
		sum += KDSM_SYNC(queens);
	return sum;
}

/* ---- unbalanced trees ---- */

static uint32_t rotate(uint32_t word, int by)
{
	return word << by | word >> (32 - by);
}

/* SHA-1 of at most 55 bytes. */
static void sha1(uint8_t digest[20], const uint8_t *from, size_t length)
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f, k, next, w[80];
	uint8_t block[64] = { 0 };
	int i;

	memcpy(block, from, length);
	block[length] = 0x80;
	block[62] = length * 8 >> 8;
	block[63] = length * 8;
	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 |
		       block[4 * i + 2] << 8 | block[4 * i + 3];
	for (; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (i = 0; i < 80; i++) {
		if (i < 20) {
			f = (b & c) | (~b & d);
			k = 0x5a827999;
		} else if (i < 40) {
			f = b ^ c ^ d;
			k = 0x6ed9eba1;
		} else if (i < 60) {
			f = (b & c) | (b & d) | (c & d);
			k = 0x8f1bbcdc;
		} else {
			f = b ^ c ^ d;
			k = 0xca62c1d6;
		}
		next = rotate(a, 5) + f + e + k + w[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
	for (i = 0; i < 20; i++)
		digest[i] = h[i / 4] >> (24 - i % 4 * 8);
}

struct uts_node uts_root(uint32_t seed, unsigned int depth)
{
	struct uts_node root = { .depth = depth };
	uint8_t from[20] = { 0 };
	int i;

	for (i = 0; i < 4; i++)
		from[16 + i] = seed >> (24 - 8 * i);
	sha1(root.state, from, sizeof(from));
	return root;
}

static struct uts_node child(const struct uts_node *node, uint32_t number)
{
	struct uts_node child = { .height = node->height + 1, .depth = node->depth };
	uint8_t from[24];
	int i;

	memcpy(from, node->state, 20);
	for (i = 0; i < 4; i++)
		from[20 + i] = number >> (24 - 8 * i);
	sha1(child.state, from, sizeof(from));
	return child;
}

static unsigned int children(const struct uts_node *node)
{
	const uint8_t *s = node->state;
	uint32_t word = (s[16] & 0x7fu) << 24 | s[17] << 16 | s[18] << 8 | s[19];
	double n;

	if (node->height >= node->depth)
		return 0;
	n = floor(log(1 - word / 2147483648.0) / log(1 - 1 / (1 + 4.0)));
	return n < 100 ? n : 100;
}

uint64_t plain_uts(struct uts_node node)
{
	unsigned int n = children(&node), i;
	uint64_t sum = 1;

	for (i = 0; i < n; i++)
		sum += plain_uts(child(&node, i));
	return sum;
}

KDSM_TASK_DEFINE(uint64_t, uts, struct uts_node, node)
{
	unsigned int n = children(&node), i;
	uint64_t sum = 1;

	work_spend();
	for (i = 0; i < n; i++)
		KDSM_SPAWN(uts, child(&node, i));
	for (i = 0; i < n; i++)
		sum += KDSM_SYNC(uts);
	return sum;
}

/* ---- matrices ---- */

#define LEAF 16

static void multiply(const struct matrices *m)
{
	uint32_t i, j, k;

	for (i = 0; i < m->size; i++)
		for (k = 0; k < m->size; k++)
			for (j = 0; j < m->size; j++)
				m->c[i * m->stride + j] += m->a[i * m->stride + k] *
							   m->b[k * m->stride + j];
}

/* One of the 8 products of quarters. 0 to 3 write different quarters, and so do 4 to 7. */
static struct matrices quarter(const struct matrices *m, unsigned int which)
{
	uint32_t half = m->size / 2, row = which >> 1 & 1, column = which & 1;
	uint32_t middle = which >> 2;

	return (struct matrices){
		m->a + (row * m->stride + middle) * half,
		m->b + (middle * m->stride + column) * half,
		m->c + (row * m->stride + column) * half, half, m->stride,
	};
}

void plain_matmul(struct matrices m)
{
	unsigned int i;

	if (m.size <= LEAF) {
		multiply(&m);
		return;
	}
	for (i = 0; i < 8; i++)
		plain_matmul(quarter(&m, i));
}

KDSM_VOID_TASK_DEFINE(matmul, struct matrices, m)
{
	unsigned int round, i;

	work_spend();
	if (m.size <= LEAF) {
		multiply(&m);
		return;
	}
	for (round = 0; round < 8; round += 4) {
		for (i = 0; i < 3; i++)
			KDSM_SPAWN(matmul, quarter(&m, round + i));
		KDSM_CALL(matmul, quarter(&m, round + 3));
		for (i = 0; i < 3; i++)
			KDSM_SYNC(matmul);
	}
}

uint64_t matmul_calls(uint32_t size)
{
	return size <= LEAF ? 1 : 1 + 8 * matmul_calls(size / 2);
}

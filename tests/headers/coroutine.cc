// SPDX-License-Identifier: GPL-2.0
/*
 * Coroutines of C++20 on a ring: each follows a linked list of places, with one get a step, and
 * all lists are followed at the same time. A completion resumes its coroutine. The program runs on
 * the local backend, and exits with 1 if a list is not as it was made.
 */
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <kdsm/ring.h>

namespace {

constexpr unsigned lists = 32;		/* and coroutines, and operations in flight */
constexpr unsigned length = 100;	/* elements of a list */

/* A coroutine that begins at once and frees itself at its end */
struct task {
	struct promise_type {
		task get_return_object() { return {}; }
		std::suspend_never initial_suspend() noexcept { return {}; }
		std::suspend_never final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
};

/* A get of a word, for co_await: prepares the operation, and gives its status. */
struct get_word : kdsm_ring_call {
	kdsm_ring *ring;
	unsigned node;
	std::uint64_t offset;
	std::uint64_t *to;
	std::coroutine_handle<> waiter;
	int status = 0;

	get_word(kdsm_ring *ring, unsigned node, std::uint64_t offset, std::uint64_t *to)
		: kdsm_ring_call{ resume }, ring(ring), node(node), offset(offset), to(to) {}

	bool await_ready() const { return false; }

	/* If the queue is full, the coroutine goes on at once, with that error. */
	bool await_suspend(std::coroutine_handle<> handle)
	{
		kdsm_ring_call *call = this;

		waiter = handle;
		status = kdsm_ring_prep_get(ring, node, offset, to, 8,
					    reinterpret_cast<std::uintptr_t>(call));
		return !status;
	}

	int await_resume() const { return status; }

	static void resume(kdsm_ring_call *call, int status, std::uint64_t)
	{
		get_word *self = static_cast<get_word *>(call);

		self->status = status;
		self->waiter.resume();
	}
};

/* An element is the offset of the next one; the last is 0. */
task follow(kdsm_ring *ring, unsigned list, unsigned *elements)
{
	std::uint64_t *word = static_cast<std::uint64_t *>(kdsm_ring_buffer(ring)) + list;
	std::uint64_t at = 8 * (1 + list);

	while (at) {
		if (co_await get_word(ring, 0, at, word))
			co_return;
		++*elements;
		at = *word;
	}
}

}

int main()
{
	kdsm_region_attr attr = {};
	unsigned elements[lists] = {};
	kdsm_region *region;
	kdsm_ring *ring;
	kdsm *cluster;
	int ret;

	attr.size = 1 << 20;
	if (kdsm_open(KDSM_OPEN_LOCAL, &cluster) ||
	    kdsm_region_open(cluster, "coroutine", &attr, &region) ||
	    kdsm_ring_open(region, lists, lists * 8, &ring))
		return 1;
	auto *part = static_cast<std::uint64_t *>(kdsm_region_part(region));
	for (unsigned list = 0; list < lists; list++)
		for (unsigned i = 0; i + 1 < length; i++)
			part[1 + list + i * lists] = 8 * (1 + list + (i + 1) * lists);
	for (unsigned list = 0; list < lists; list++)
		follow(ring, list, &elements[list]);
	while ((ret = kdsm_ring_run(ring, 1, KDSM_FOREVER)) > 0)
		;
	for (unsigned list = 0; list < lists; list++) {
		if (ret || elements[list] != length) {
			std::fprintf(stderr, "list %u has %u elements\n", list, elements[list]);
			return 1;
		}
	}
	kdsm_ring_close(ring);
	kdsm_region_close(region);
	kdsm_close(cluster);
	return 0;
}

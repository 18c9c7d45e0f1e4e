// SPDX-License-Identifier: GPL-2.0
/*
 * ring.hpp on the local backend: operations that a program waits for, calls functions for, and
 * waits for in coroutines. Run by tests/languages; silent if all is well.
 */
#include <kdsm/ring.hpp>

#include "expect.hh"

namespace {

constexpr unsigned lists = 32;		/* and coroutines */
constexpr unsigned length = 100;	/* elements of a list */

/* Follow a list by one get a step: an element is the offset of the next one; the last is 0. */
kdsmxx::task<unsigned> follow(kdsmxx::ring &ring, unsigned list)
{
	std::span<uint64_t, 1> word(&ring.buffer<uint64_t>()[list], 1);
	unsigned elements = 0;

	for (uint64_t at = 8 * (1 + list); at; at = word[0]) {
		co_await ring.get(0, at, word);
		elements++;
	}
	co_return elements;
}

/* A coroutine that waits for others, which are all in flight */
kdsmxx::task<unsigned> follow_all(kdsmxx::ring &ring)
{
	std::vector<kdsmxx::task<unsigned>> tasks;
	unsigned sum = 0;

	for (unsigned list = 0; list < lists; list++)
		tasks.push_back(follow(ring, list));
	for (kdsmxx::task<unsigned> &one : tasks)
		sum += co_await one;
	co_return sum;
}

kdsmxx::task<> fail(kdsmxx::ring &ring)
{
	co_await ring.faa(0, 4, 1);
	EXPECT(!"an exception leaves the coroutine");
}

kdsmxx::task<int> catch_it(kdsmxx::ring &ring)
{
	try {
		co_await fail(ring);
	} catch (const kdsmxx::error &error) {
		co_return error.code().value();
	}
	co_return 0;
}

/* Entries are fewer than coroutines, so operations wait in the object. */
void use_coroutines(kdsmxx::region &region, unsigned entries)
{
	kdsmxx::ring ring(region, entries, lists * 8);
	std::span<uint64_t> part = region.part<uint64_t>();

	for (unsigned list = 0; list < lists; list++)
		for (unsigned i = 0; i + 1 < length; i++)
			part[1 + list + i * lists] = 8 * (1 + list + (i + 1) * lists);
	EXPECT(ring.wait(follow_all(ring)) == lists * length && !ring.in_flight());
	EXPECT(ring.wait(catch_it(ring)) == EINVAL);
	fails(EINVAL, "faa of 8 bytes, node 0, offset 4: an argument is invalid, or does not fit the object",
	      [&] { ring.wait(fail(ring)); });
}

/* A task that is destroyed before its operation is complete, and a ring before its tasks */
void end_early(kdsmxx::region &region)
{
	std::vector<kdsmxx::task<unsigned>> tasks;
	kdsmxx::ring ring(region, 4, lists * 8);

	for (unsigned list = 0; list < lists; list++) {
		kdsmxx::task<unsigned> ended = follow(ring, list);

		tasks.push_back(follow(ring, list));
		EXPECT(!ended.done());
	}
	/* The gets of the tasks that have ended are still in flight. */
	EXPECT(ring.in_flight() == 2 * lists);
	for (unsigned i = 0; i < 10; i++)
		ring.run();
	EXPECT(!tasks[0].done());
}

void use_places(kdsmxx::region &region)
{
	kdsmxx::ring ring(region, 8, 4096);
	std::span<uint64_t> words = ring.buffer<uint64_t>();
	const uint64_t place = 32768;

	EXPECT(words.size() == 512);
	words[0] = 5;
	ring.wait(ring.put(0, place, words.first(1)));
	EXPECT(ring.wait(ring.faa(0, place, 2)) == 5);
	EXPECT(ring.wait(ring.cas(0, place, 7, 9)) == 7);
	{
		auto first = ring.get(0, place, words.subspan(1, 1));
		auto second = ring.faa(0, place + 8, 1);

		EXPECT(!first.done() && ring.in_flight() == 2);
		ring.submit();
		ring.finish();
		EXPECT(first.done() && second.done() && second.result() == 0 && words[1] == 9);
		EXPECT(ring.run() == 0);
	}
	{
		/* One that nobody waits for takes effect. */
		auto unused = ring.faa(0, place + 8, 1);
	}
	ring.finish();
	EXPECT(ring.wait(ring.faa(0, place + 8, 0)) == 2);
	fails(ERANGE, "get of 8 bytes, node 0, offset 65536: the bytes are not inside the region or part",
	      [&] { ring.wait(ring.get(0, 65536, words.first(1))); });
	fails(EFAULT, "get of 8 bytes, node 0, offset 0: the memory is not in the buffer of the ring", [&] {
		uint64_t outside[1];

		ring.wait(ring.get(0, 0, std::span(outside)));
	});
	fails(EOPNOTSUPP, "region \"coherent\" is coherent; the call needs a partitioned one", [&] {
		kdsmxx::cluster cluster(KDSM_OPEN_LOCAL);
		kdsmxx::region coherent(cluster, "coherent",
					kdsmxx::attributes(65536, KDSM_POLICY_STRICT));

		kdsmxx::ring(coherent, 8);
	});
	fails(EINVAL, "a ring has 1 to 1024 entries and at most 1073741824 bytes of buffer, not 0 and 0",
	      [&] { kdsmxx::ring(region, 0); });
}

void use_functions(kdsmxx::region &region)
{
	struct enough {};
	uint64_t sum = 0;
	unsigned calls = 0, errors = 0;
	auto unique = std::make_unique<int>(1);
	{
		kdsmxx::ring ring(region, 8);

		for (unsigned i = 0; i < 100; i++)
			ring.faa(0, 40960, 1, [&](int status, uint64_t former) {
				EXPECT(!status);
				sum += former;
				calls++;
				/* A function starts another operation. */
				if (calls == 50)
					ring.faa(0, 3, 1, [&](int error, uint64_t) { errors = -error; });
			});
		EXPECT(ring.in_flight() == 100);
		ring.finish();
		EXPECT(calls == 100 && sum == 4950 && errors == EINVAL);
		ring.faa(0, 40960, 1, [](int, uint64_t) { throw enough(); });
		ring.faa(0, 40960, 1, [&](int, uint64_t) { calls++; });
		try {
			ring.finish();
			EXPECT(!"the exception leaves run()");
		} catch (const enough &) {
		}
		ring.finish();
		EXPECT(calls == 101);
		/* Functions that are never called are destroyed with the ring. */
		for (unsigned i = 0; i < 20; i++)
			ring.faa(0, 40960, 1, [&, own = std::make_shared<int>(1)](int, uint64_t) {
				calls++;
			});
	}
	EXPECT(calls == 101);
}

}

int main()
{
	kdsmxx::cluster cluster(KDSM_OPEN_LOCAL);
	kdsmxx::region region(cluster, "rings", 65536);

	use_coroutines(region, lists);
	use_coroutines(region, 3);
	end_early(region);
	use_places(region);
	use_functions(region);
	kdsmxx::ring ring(region, 8), moved = std::move(ring);

	EXPECT(moved.wait(moved.faa(0, 49152, 1)) == 0);
	/* A task that waits for nothing in this ring */
	try {
		kdsmxx::ring other(region, 1);

		ring = kdsmxx::ring(region, 8, 4096);
		moved.wait(follow(ring, 0));
		EXPECT(!"the wait would not end");
	} catch (const std::logic_error &) {
	}
}

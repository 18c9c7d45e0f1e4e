// SPDX-License-Identifier: GPL-2.0
/* Every class of kdsm.hpp, on the local backend. Run by tests/languages; silent if all is well. */
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <thread>

#include <kdsm/kdsm.hpp>

#include "expect.hh"

using namespace std::chrono_literals;

static void use_places(kdsmxx::cluster &cluster)
{
	kdsmxx::region region(cluster, "places", 65536);
	std::span<uint64_t> words = region.part<uint64_t>();
	uint64_t some[4] = { 1, 2, 3, 4 }, back[4] = {};
	struct point {
		float x, y;
	};

	EXPECT(words.size() == 8192 && region.part().size() == 65536 && region.size() == 65536);
	EXPECT(region.memory().empty());
	region.put(0, 64, std::span(some));
	EXPECT(words[8] == 1 && words[11] == 4);
	region.get(0, 64, std::span(back));
	EXPECT(std::accumulate(back, back + 4, 0) == 10);
	region.put(0, 128, point{ 1.5f, 2.5f });
	EXPECT(region.get<point>(0, 128).y == 2.5f);
	EXPECT(region.cas(0, 0, 0, 5) == 0 && region.faa(0, 0, 2) == 5 && words[0] == 7);
	EXPECT(!region.wait(0, 7, 1ms) && region.wait(0, 8));
	region.put_notify(0, 0, 9);
	EXPECT(words[0] == 9);

	struct kdsm_op ops[] = { kdsm_op_faa(0, 0, 1), kdsm_op_get(0, 64, back, 8) };

	region.vector(ops);
	EXPECT(ops[0].result == 9 && back[0] == 1);
	fails(EINVAL, "offset 4 is not a multiple of 8", [&] { region.faa(0, 4, 1); });
	fails(ERANGE, "region \"places\": 8 bytes at offset 65536 are not inside a part, which has 65536 bytes",
	      [&] { region.put(0, 65536, uint64_t{ 1 }); });

	kdsmxx::barrier barrier(region, 4096);

	EXPECT(barrier.wait() && barrier.wait(1s));

	kdsmxx::region moved = std::move(region);

	EXPECT(moved.get<uint64_t>(0, 0) == 10 && !region.raw());
}

static void use_locks(kdsmxx::cluster &cluster)
{
	kdsmxx::region region(cluster, "locks", 65536);
	kdsmxx::mutex mutex(region, "m"), same(region, "m");
	kdsmxx::mutex shared(region, KDSM_LOCK_ANY, KDSM_LOCK_RMA_RW);
	unsigned int sum = 0;

	EXPECT(mutex.number() == same.number() && shared.number() != mutex.number());
	{
		std::lock_guard guard(mutex);

		EXPECT(mutex.is_mine());
		std::thread([&] { EXPECT(!same.try_lock() && !same.try_lock_for(1ms)); }).join();
	}
	EXPECT(!mutex.is_mine());
	{
		std::shared_lock guard(shared);

		std::thread([&] {
			std::shared_lock other(shared, 1s);

			EXPECT(other.owns_lock());
		}).join();
	}
	fails(EPERM, "region \"locks\": lock " + std::to_string(mutex.number()) +
	      ": the calling thread does not hold it", [&] { mutex.unlock(); });

	/* A thread that ends without unlocking */
	std::thread([&] { mutex.lock(); }).join();
	try {
		mutex.lock();
		EXPECT(!"the owner died");
	} catch (const kdsmxx::owner_died &) {
		std::lock_guard guard(mutex, std::adopt_lock);

		mutex.consistent();
	}
	EXPECT(mutex.try_lock());
	mutex.unlock();

	kdsmxx::condition condition(region, 0);
	kdsmxx::semaphore semaphore(region, 32768, 1);
	std::thread waiter([&] {
		std::lock_guard guard(mutex);

		condition.wait(mutex, [&] { return sum == 1; });
		sum++;
		condition.notify_all();
	});
	{
		std::lock_guard guard(mutex);

		sum++;
		condition.notify_one();
		condition.wait(mutex, [&] { return sum == 2; });
		EXPECT(!condition.wait_for(mutex, 1ms));
	}
	waiter.join();
	semaphore.acquire();
	EXPECT(!semaphore.try_acquire() && !semaphore.try_acquire_for(1ms) && semaphore.value() == 0);
	semaphore.release();
	EXPECT(semaphore.try_acquire());
}

static void use_coherent(kdsmxx::cluster &cluster)
{
	const uint64_t size = 1 << 20, heap_place = KDSM_TREE_BARRIER_SIZE;
	auto [memory, sync] = kdsmxx::open_coherent(
		cluster, "coherent", kdsmxx::attributes(size),
		heap_place + kdsmxx::heap::sync_size(size, 0, cluster.nodes()));
	std::span<uint32_t> words = memory.memory<uint32_t>();
	const uint32_t participants[] = { 2 };
	kdsmxx::tree_barrier barrier(memory, sync, 0, participants);

	EXPECT(words.size() == size / 4 && memory.part().empty());
	std::thread other([&] {
		words[1] = 7;
		barrier.wait();
	});
	barrier.wait(10s);
	EXPECT(words[1] == 7);
	other.join();
	EXPECT(memory.atomic_add<uint32_t>(4, 3) == 7 && memory.atomic_load<uint32_t>(4) == 10);
	EXPECT(memory.atomic_cas<uint32_t>(4, 10, 1) == 10);
	EXPECT(memory.atomic_exchange<uint64_t>(8, 5) == 0 && memory.lost().empty());
	memory.acquire(memory.release());
	memory.refresh(0, size);
	memory.prefetch(0, 4096);
	memory.flush(0, 4096);
	memory.pin(0, 4096);
	memory.discard(0, 4096);

	kdsmxx::heap heap(memory, sync, heap_place);
	std::pmr::vector<uint64_t> numbers(1000, 1, &heap);

	numbers.resize(10000, 2);
	EXPECT(std::accumulate(numbers.begin(), numbers.end(), 0) == 19000);
	auto *first = reinterpret_cast<uint32_t *>(numbers.data());
	EXPECT(first >= &words.front() && first <= &words.back());
	try {
		(void)heap.allocate(2 * size);
		EXPECT(!"there is no room");
	} catch (const std::bad_alloc &) {
	}
	heap.flush();
}

int main()
{
	kdsmxx::cluster cluster(KDSM_OPEN_LOCAL);

	EXPECT(cluster.node() == 0 && cluster.nodes() == 1 && cluster.is_local());
	EXPECT(cluster.name() == "local" && cluster.location(0).empty());
	EXPECT(cluster.domain() == KDSM_DOMAIN_SW && cluster.counts().get == 0);
	cluster.settle();
	fails(ENOENT, "there is no region \"none\"",
	      [&] { kdsmxx::region(cluster, "none"); });
	fails(EINVAL, "there is no node 1: the cluster has nodes 0 to 0", [&] { cluster.location(1); });
	use_places(cluster);
	use_locks(cluster);
	use_coherent(cluster);
	{
		struct kdsm_region_attr kept = kdsmxx::attributes(4096);

		kept.flags = KDSM_REGION_KEEP;
		kdsmxx::region(cluster, "kept", kept);
	}
	kdsmxx::region(cluster, "kept");
	cluster.destroy("kept");
	fails(ENOENT, "there is no region \"kept\"", [&] { cluster.destroy("kept"); });
	EXPECT(kdsmxx::timeout_of(-1ns) == 0 && kdsmxx::timeout_of(kdsmxx::forever) == KDSM_FOREVER);
}

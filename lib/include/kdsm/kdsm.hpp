/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libkdsm for C++20: objects that close themselves, spans in place of addresses and lengths, and
 * exceptions in place of negative error numbers. All functions are inline, and each makes one call
 * of a C function, whose manual page describes the call. kdsm.hpp(3) has example programs.
 *
 *   - Objects can be moved, not copied. An object that was moved from can only be destroyed or
 *     assigned to. The caller destroys a region after what uses it, and a cluster after its
 *     regions, as automatic variables do when they are declared in that order.
 *   - A call that fails throws kdsmxx::error. Its code() has the errno, in std::generic_category(),
 *     and what() the text of kdsm_error(). Outcomes that every program must expect are results
 *     instead: a wait that times out returns false, except that of tree_barrier, and so does an
 *     attempt to lock a lock that another thread holds.
 *   - Values that are put into regions are trivially copyable.
 *   - raw() of each object returns the object of the C functions, for calls that the class lacks.
 *   - The namespace is kdsmxx, because kdsm is a struct.
 *
 * <kdsm/job.hpp> has jobs, <kdsm/ring.hpp> rings and coroutines.
 */
#ifndef KDSM_HPP
#define KDSM_HPP

#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <kdsm/coherent.h>
#include <kdsm/heap.h>
#include <kdsm/kdsm.h>
#include <kdsm/lock.h>

namespace kdsmxx {

/* ---- errors and times ---- */

class error : public std::system_error {
public:
	/* number is a negative errno that a function of libkdsm has just returned in this thread. */
	explicit error(int number)
		: error(number, kdsm_error(number))
	{
	}

	error(int number, std::string text)
		: std::system_error(-number, std::generic_category()), text(std::move(text))
	{
	}

	/* The text alone: std::system_error would append the general text of the errno. */
	const char *what() const noexcept override
	{
		return text.c_str();
	}

private:
	std::string text;
};

/*
 * The former holder of a lock died. The catcher holds the lock: it makes the data consistent, calls
 * mutex::consistent(), and unlocks the lock, for example by a guard made with std::adopt_lock.
 */
class owner_died : public error {
public:
	using error::error;
};

/* Return what a function of libkdsm returned, or throw the error that it returned. */
inline int check(int returned)
{
	if (returned == -EOWNERDEAD)
		throw owner_died(returned);
	if (returned < 0)
		throw error(returned);
	return returned;
}

using duration = std::chrono::nanoseconds;

/* A timeout that never ends */
inline constexpr duration forever = duration::max();

/* A timeout in ns, as the C functions take it; a negative timeout counts as 0. */
inline uint64_t timeout_of(duration timeout)
{
	if (timeout == forever)
		return KDSM_FOREVER;
	return timeout.count() < 0 ? 0 : static_cast<uint64_t>(timeout.count());
}

/* Return false if the call returned this error, true if it succeeded; throw any other error. */
inline bool unless(int error, int returned)
{
	return returned != error && check(returned) >= 0;
}

/* Closes an object of the C functions, unless another object does so. */
template <auto Close>
struct closer {
	bool owns = true;

	template <typename Object>
	void operator()(Object *object) const
	{
		if (owns)
			Close(object);
	}
};

template <auto Close, typename Object>
using owner = std::unique_ptr<Object, closer<Close>>;

template <typename T>
concept value = std::is_trivially_copyable_v<T>;

/* ---- the cluster ---- */

class cluster {
public:
	/* flags as of kdsm_open(3) */
	explicit cluster(unsigned int flags = 0)
	{
		struct kdsm *opened;

		check(kdsm_open(flags, &opened));
		handle.reset(opened);
	}

	/* A cluster that another object owns, and closes */
	static cluster borrow(struct kdsm *opened) { return cluster(opened, false); }

	unsigned int node() const { return kdsm_node(raw()); }
	unsigned int nodes() const { return kdsm_nodes(raw()); }
	enum kdsm_domain domain() const { return kdsm_domain(raw()); }
	bool is_local() const { return kdsm_is_local(raw()); }
	std::string name() const { return kdsm_cluster_name(raw()); }

	std::string location(unsigned int node) const
	{
		char text[KDSM_LOCATION_SIZE];

		check(kdsm_location(raw(), node, text));
		return text;
	}

	void settle() { check(kdsm_settle(raw())); }
	void destroy(const std::string &region) { check(kdsm_region_destroy(raw(), region.c_str())); }

	struct kdsm_counts counts() const
	{
		struct kdsm_counts counts = {};

		counts.argsz = sizeof(counts);
		check(kdsm_counts(raw(), &counts));
		return counts;
	}

	struct kdsm *raw() const { return handle.get(); }

private:
	owner<kdsm_close, struct kdsm> handle;

	cluster(struct kdsm *opened, bool owns) : handle(opened, { owns }) {}
};

/* ---- regions ---- */

/* Attributes with argsz set, and all other fields 0 */
inline struct kdsm_region_attr attributes(uint64_t size, uint32_t policy = 0)
{
	struct kdsm_region_attr attr = {};

	attr.argsz = sizeof(attr);
	attr.size = size;
	attr.policy = policy;
	return attr;
}

class region {
public:
	/* Open a region that exists. */
	region(cluster &cluster, const std::string &name) { open(cluster, name, nullptr); }

	/* Open a region, and create it if it does not exist. */
	region(cluster &cluster, const std::string &name, const struct kdsm_region_attr &attr)
	{
		open(cluster, name, &attr);
	}

	/* A partitioned region of this size over all nodes, in bytes */
	region(cluster &cluster, const std::string &name, uint64_t size)
		: region(cluster, name, attributes(size))
	{
	}

	/* Take over a region that the C functions have opened. */
	explicit region(struct kdsm_region *opened) : region(opened, true) {}

	/* A region that another object owns, and closes */
	static region borrow(struct kdsm_region *opened) { return region(opened, false); }

	uint64_t size() const { return kdsm_region_size(raw()); }
	uint64_t part_size() const { return kdsm_region_part_size(raw()); }

	/* This node's part of a partitioned region; empty if the region is coherent */
	template <value T = std::byte>
	std::span<T> part() const
	{
		return view<T>(kdsm_region_part(raw()), part_size());
	}

	/* All of a coherent region; empty if the region is partitioned */
	template <value T = std::byte>
	std::span<T> memory() const
	{
		return view<T>(kdsm_region_address(raw()), part_size() ? 0 : size());
	}

	/* ---- operations on places of a partitioned region ---- */

	template <value T, std::size_t N>
		requires(!std::is_const_v<T>)
	void get(unsigned int node, uint64_t offset, std::span<T, N> to) const
	{
		check(kdsm_get(raw(), node, offset, to.data(), to.size_bytes()));
	}

	template <value T>
	T get(unsigned int node, uint64_t offset) const
	{
		T result;

		check(kdsm_get(raw(), node, offset, &result, sizeof(result)));
		return result;
	}

	template <value T, std::size_t N>
	void put(unsigned int node, uint64_t offset, std::span<T, N> from)
	{
		check(kdsm_put(raw(), node, offset, from.data(), from.size_bytes()));
	}

	template <value T>
	void put(unsigned int node, uint64_t offset, const T &from)
	{
		check(kdsm_put(raw(), node, offset, &from, sizeof(from)));
	}

	/* Return the value before. */
	uint64_t cas(unsigned int node, uint64_t offset, uint64_t expected, uint64_t desired)
	{
		uint64_t former;

		check(kdsm_cas(raw(), node, offset, expected, desired, &former));
		return former;
	}

	uint64_t faa(unsigned int node, uint64_t offset, uint64_t add)
	{
		uint64_t former;

		check(kdsm_faa(raw(), node, offset, add, &former));
		return former;
	}

	void vector(std::span<struct kdsm_op> ops)
	{
		check(kdsm_vector(raw(), ops.data(), static_cast<unsigned int>(ops.size())));
	}

	void put_notify(unsigned int node, uint64_t offset, uint64_t value)
	{
		check(kdsm_put_notify(raw(), node, offset, value));
	}

	/* Return false if the word of this node's part still equals value after the timeout. */
	bool wait(uint64_t offset, uint64_t value, duration timeout = forever) const
	{
		return unless(-ETIMEDOUT, kdsm_wait(raw(), offset, value, timeout_of(timeout)));
	}

	/* ---- coherence ---- */

	struct kdsm_signature release()
	{
		struct kdsm_signature signature;

		check(kdsm_release(raw(), &signature));
		return signature;
	}

	void acquire(const struct kdsm_signature &signature)
	{
		check(kdsm_acquire(raw(), &signature));
	}

	void refresh(uint64_t offset, uint64_t length) { check(kdsm_refresh(raw(), offset, length)); }
	void prefetch(uint64_t offset, uint64_t length) { check(kdsm_prefetch(raw(), offset, length)); }
	void flush(uint64_t offset, uint64_t length) { check(kdsm_flush(raw(), offset, length)); }
	void pin(uint64_t offset, uint64_t length) { check(kdsm_pin(raw(), offset, length)); }

	/* Atomic operations on a word of 4 or 8 bytes of a coherent region; they return the value before. */
	template <std::unsigned_integral T = uint64_t>
	T atomic_load(uint64_t offset, unsigned int order = 0) const
	{
		uint64_t word;

		check(kdsm_atomic_load(raw(), offset, sizeof(T), order, &word));
		return static_cast<T>(word);
	}

	template <std::unsigned_integral T = uint64_t>
	T atomic_exchange(uint64_t offset, T desired, unsigned int order = 0)
	{
		uint64_t former;

		check(kdsm_atomic_exchange(raw(), offset, sizeof(T), order, desired, &former));
		return static_cast<T>(former);
	}

	template <std::unsigned_integral T = uint64_t>
	T atomic_add(uint64_t offset, T add, unsigned int order = 0)
	{
		uint64_t former;

		check(kdsm_atomic_add(raw(), offset, sizeof(T), order, add, &former));
		return static_cast<T>(former);
	}

	template <std::unsigned_integral T = uint64_t>
	T atomic_cas(uint64_t offset, T expected, T desired, unsigned int order = 0)
	{
		uint64_t former;

		check(kdsm_atomic_cas(raw(), offset, sizeof(T), order, expected, desired, &former));
		return static_cast<T>(former);
	}

	/* Offsets of the lost blocks that programs of this node have met */
	std::vector<uint64_t> lost() const
	{
		std::vector<uint64_t> all;
		uint64_t some[64], next = 0;
		int count;

		do {
			count = check(kdsm_region_lost(raw(), some, 64, &next));
			all.insert(all.end(), some, some + count);
		} while (count == 64);
		return all;
	}

	void discard(uint64_t offset, uint64_t length)
	{
		check(kdsm_region_discard(raw(), offset, length));
	}

	struct kdsm_region *raw() const { return handle.get(); }

private:
	owner<kdsm_region_close, struct kdsm_region> handle;

	region(struct kdsm_region *opened, bool owns) : handle(opened, { owns }) {}

	void open(cluster &cluster, const std::string &name, const struct kdsm_region_attr *attr)
	{
		struct kdsm_region *opened;

		check(kdsm_region_open(cluster.raw(), name.c_str(), attr, &opened));
		handle.reset(opened);
	}

	template <value T>
	static std::span<T> view(void *address, uint64_t bytes)
	{
		return { static_cast<T *>(address), static_cast<std::size_t>(bytes / sizeof(T)) };
	}
};

/* A coherent region and its companion, a partitioned region of words to synchronise by */
struct coherent {
	region memory, sync;
};

/* attr.policy 0 means release; sync_size is in bytes on each node. */
inline coherent open_coherent(cluster &cluster, const std::string &name,
			      const struct kdsm_region_attr &attr, uint64_t sync_size)
{
	struct kdsm_region *memory, *sync;

	check(kdsm_region_open_coherent(cluster.raw(), name.c_str(), &attr, sync_size, &memory,
					&sync));
	return { region(memory), region(sync) };
}

/* ---- barriers ---- */

/* Over all nodes, one thread a node */
class barrier {
public:
	barrier(region &region, uint64_t offset) { kdsm_barrier_init(&state, region.raw(), offset); }

	/* Return false if a node has not arrived in time; another call continues the round. */
	bool wait(duration timeout = forever)
	{
		return unless(-ETIMEDOUT, kdsm_barrier_wait(&state, timeout_of(timeout)));
	}

	struct kdsm_barrier *raw() { return &state; }

private:
	struct kdsm_barrier state;
};

/* Over any number of threads on each node; it makes the coherent region consistent. */
class tree_barrier {
public:
	/* participants: threads of each node; empty: one each */
	tree_barrier(region &memory, region &sync, uint64_t offset,
		     std::span<const uint32_t> participants = {})
	{
		check(kdsm_tree_barrier_init(&state, memory.raw(), sync.raw(), offset,
					     participants.empty() ? nullptr : participants.data()));
	}

	/* A timeout breaks the barrier, so it is an error. */
	void wait(duration timeout = forever) const
	{
		check(kdsm_tree_barrier_wait(&state, timeout_of(timeout), nullptr));
	}

	const struct kdsm_tree_barrier *raw() const { return &state; }

private:
	struct kdsm_tree_barrier state;
};

/* ---- locks ---- */

/*
 * Usable with std::lock_guard, std::unique_lock and std::scoped_lock, and a lock of kind
 * KDSM_LOCK_RMA_RW with std::shared_lock. Locking throws owner_died with the lock held.
 */
class mutex {
public:
	/* The lock of this name; it is created if it does not exist. */
	mutex(region &region, const std::string &name, enum kdsm_lock_kind kind = KDSM_LOCK_RMA_MCS)
	{
		open(region, name.c_str(), 0, kind);
	}

	/* The lock of this number, or KDSM_LOCK_ANY: a new one */
	mutex(region &region, uint32_t number, enum kdsm_lock_kind kind = KDSM_LOCK_RMA_MCS)
	{
		open(region, nullptr, number, kind);
	}

	uint32_t number() const { return kdsm_lock_number(raw()); }
	enum kdsm_lock_kind kind() const { return kdsm_lock_kind(raw()); }
	bool is_mine() const { return kdsm_lock_is_mine(raw()); }
	void consistent() { check(kdsm_lock_consistent(raw())); }

	void lock() { check(kdsm_lock(raw())); }
	bool try_lock() { return unless(-EBUSY, kdsm_lock_try(raw())); }
	void unlock() { check(kdsm_unlock(raw())); }

	template <typename Rep, typename Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &timeout)
	{
		return unless(-ETIMEDOUT, kdsm_lock_timed(raw(), rounded(timeout)));
	}

	void lock_shared() { check(kdsm_read_lock(raw())); }
	bool try_lock_shared() { return unless(-EBUSY, kdsm_read_lock_try(raw())); }
	void unlock_shared() { check(kdsm_read_unlock(raw())); }

	template <typename Rep, typename Period>
	bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &timeout)
	{
		return unless(-ETIMEDOUT, kdsm_read_lock_timed(raw(), rounded(timeout)));
	}

	struct kdsm_lock *raw() const { return handle.get(); }

private:
	owner<kdsm_lock_close, struct kdsm_lock> handle;

	void open(region &region, const char *name, uint32_t number, enum kdsm_lock_kind kind)
	{
		struct kdsm_lock_attr attr = {};
		struct kdsm_lock *opened;

		attr.argsz = sizeof(attr);
		attr.kind = kind;
		check(kdsm_lock_create(region.raw(), name, number, &attr, &opened));
		handle.reset(opened);
	}

	template <typename Rep, typename Period>
	static uint64_t rounded(const std::chrono::duration<Rep, Period> &timeout)
	{
		return timeout_of(std::chrono::ceil<duration>(timeout));
	}
};

/* ---- condition variables and semaphores ---- */

class condition {
public:
	condition(region &region, uint64_t offset, uint32_t home = 0)
	{
		check(kdsm_cond_init(&state, region.raw(), offset, home));
	}

	/* The caller holds the lock, and tests its predicate again after the wait. */
	void wait(mutex &mutex) { check(kdsm_cond_wait(&state, mutex.raw())); }

	template <typename Predicate>
	void wait(mutex &mutex, Predicate done)
	{
		while (!done())
			wait(mutex);
	}

	/* Return false if no signal came before the timeout. */
	bool wait_for(mutex &mutex, duration timeout)
	{
		return unless(-ETIMEDOUT, kdsm_cond_timed(&state, mutex.raw(), timeout_of(timeout)));
	}

	void notify_one() { check(kdsm_cond_signal(&state)); }
	void notify_all() { check(kdsm_cond_broadcast(&state)); }
	struct kdsm_cond *raw() { return &state; }

private:
	struct kdsm_cond state;
};

class semaphore {
public:
	semaphore(region &region, uint64_t offset, uint32_t value, uint32_t home = 0)
	{
		check(kdsm_sem_init(&state, region.raw(), offset, home, value, nullptr));
	}

	/* The lock orders accesses to its coherent region, too. */
	semaphore(region &region, uint64_t offset, uint32_t value, mutex &mutex, uint32_t home = 0)
	{
		check(kdsm_sem_init(&state, region.raw(), offset, home, value, mutex.raw()));
	}

	/* A caught signal is an error, std::errc::interrupted. */
	void acquire() { check(kdsm_sem_wait(&state)); }
	bool try_acquire() { return unless(-EAGAIN, kdsm_sem_try(&state)); }

	bool try_acquire_for(duration timeout)
	{
		return unless(-ETIMEDOUT, kdsm_sem_timed(&state, timeout_of(timeout)));
	}

	void release() { check(kdsm_sem_post(&state)); }

	int32_t value()
	{
		int32_t now;

		check(kdsm_sem_value(&state, &now));
		return now;
	}

	struct kdsm_sem *raw() { return &state; }

private:
	struct kdsm_sem state;
};

/* ---- heap ---- */

/*
 * A heap in a coherent region, which is a memory resource for containers of std::pmr. A container
 * in the heap itself works on one node only, because it points to this object.
 */
class heap : public std::pmr::memory_resource {
public:
	/* Create the heap, or open the one that is there. */
	heap(region &memory, region &sync, uint64_t offset, unsigned int flags = 0)
	{
		struct kdsm_heap *opened;

		check(kdsm_heap_create(memory.raw(), sync.raw(), offset, flags, &opened));
		handle.reset(opened);
	}

	/* Bytes that the heap needs of every part of sync */
	static uint64_t sync_size(uint64_t size, uint32_t block_size, unsigned int nodes)
	{
		return kdsm_heap_sync_size(size, block_size, nodes);
	}

	void flush() { check(kdsm_heap_flush(raw())); }
	struct kdsm_heap *raw() const { return handle.get(); }

private:
	owner<kdsm_heap_close, struct kdsm_heap> handle;

	void *do_allocate(std::size_t bytes, std::size_t alignment) override
	{
		void *memory;
		int ret = kdsm_allocate(raw(), alignment, bytes, &memory);

		if (ret == -ENOMEM)
			throw std::bad_alloc();
		check(ret);
		return memory;
	}

	void do_deallocate(void *memory, std::size_t, std::size_t) override
	{
		/* Destructors deallocate, and must not throw: if the call fails, memory leaks. */
		kdsm_free(raw(), memory);
	}

	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
	{
		return this == &other;
	}
};

} /* namespace kdsmxx */

#endif /* KDSM_HPP */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Jobs for C++20, over <kdsm/job.h>. Conventions are those of <kdsm/kdsm.hpp>.
 *
 * If a job ends with an error, the next call of each member throws the error, with the sentence
 * that says why. If an exception destroys the job object of a member, the destructor ends the job,
 * so the other members do not wait for that member.
 */
#ifndef KDSM_JOB_HPP
#define KDSM_JOB_HPP

#include <exception>

#include <kdsm/job.h>
#include <kdsm/kdsm.hpp>

namespace kdsmxx {

/* Types that allreduce(), reduce() and scan() take: integers of 8 bytes, and double */
template <typename T>
concept number = sizeof(T) == 8 && (std::integral<T> || std::same_as<T, double>);

/* Attributes with argsz set, and all other fields 0 */
inline struct kdsm_job_attr job_attributes()
{
	struct kdsm_job_attr attr = {};

	attr.argsz = sizeof(attr);
	return attr;
}

/* An array of which every member has a share; no two shares have a block in common */
template <value T>
class spread {
public:
	explicit spread(const struct kdsm_spread &allocated) : state(allocated) {}

	uint64_t size() const { return state.count; }
	T &operator[](uint64_t i) const { return *static_cast<T *>(kdsm_spread_at(&state, i)); }

	/* The share of a member */
	std::span<T> part(uint32_t rank) const
	{
		return { reinterpret_cast<T *>(state.base + rank * state.stride),
			 static_cast<std::size_t>(kdsm_share(state.count, rank + 1, state.members) -
						  kdsm_share(state.count, rank, state.members)) };
	}

	const struct kdsm_spread *raw() const { return &state; }

private:
	struct kdsm_spread state;
};

/* Consecutive indices, for a loop over them */
struct indices {
	struct iterator {
		uint64_t i;

		uint64_t operator*() const { return i; }
		bool operator==(const iterator &) const = default;

		iterator &operator++()
		{
			++i;
			return *this;
		}
	};

	uint64_t first, last;	/* last: one past the last index */

	iterator begin() const { return { first }; }
	iterator end() const { return { last }; }
};

class job {
public:
	/*
	 * Join: collective. If attr.failed is NULL and the job ends with an error, the next call
	 * throws the error, and the process continues.
	 */
	explicit job(struct kdsm_job_attr attr = job_attributes())
	{
		struct kdsm_job *joined;

		if (!attr.failed)
			attr.failed = [](void *, int, const char *) {};
		check(kdsm_job_join(&attr, &joined));
		handle.reset(joined);
		own_cluster = kdsmxx::cluster::borrow(kdsm_job_cluster(joined));
		own_memory = region::borrow(kdsm_job_region(joined));
		own_sync = region::borrow(kdsm_job_sync(joined));
	}

	/*
	 * Leave the job and its memory: collective. Afterwards the object can only be destroyed or
	 * assigned to. The destructor leaves, too, but cannot report an error.
	 */
	void leave() { check(kdsm_job_leave(handle.release())); }

	/* End the job with an error, on all nodes. */
	void abort() { kdsm_job_abort(raw()); }

	uint32_t rank() const { return kdsm_job_rank(raw()); }
	uint32_t size() const { return kdsm_job_size(raw()); }
	unsigned int nodes() const { return kdsm_job_nodes(raw()); }
	/* Node of a member */
	unsigned int node(uint32_t rank) const { return kdsm_job_node(raw(), rank); }
	std::string name() const { return kdsm_job_name(raw()); }

	/* The references are valid until the job is left. */
	kdsmxx::cluster &cluster() { return own_cluster; }
	region &memory() { return own_memory; }
	region &sync() { return own_sync; }

	/* ---- collective calls ---- */

	void barrier() { check(kdsm_job_barrier(raw())); }

	template <value T>
	void broadcast(uint32_t root, T &data)
	{
		broadcast(root, std::span(&data, 1));
	}

	template <value T, std::size_t N>
	void broadcast(uint32_t root, std::span<T, N> data)
	{
		check(kdsm_job_broadcast(raw(), root, data.data(), data.size_bytes()));
	}

	/* Of numbers: return the result. Of spans: store the result in them. */
	template <number T>
	T allreduce(enum kdsm_job_op op, T data)
	{
		allreduce(op, std::span(&data, 1));
		return data;
	}

	template <number T, std::size_t N>
	void allreduce(enum kdsm_job_op op, std::span<T, N> data)
	{
		check(kdsm_job_allreduce(raw(), type_of<T>, op, data.data(), data.size()));
	}

	/* Only the member root gets the result; the others keep their own data. */
	template <number T>
	T reduce(uint32_t root, enum kdsm_job_op op, T data)
	{
		reduce(root, op, std::span(&data, 1));
		return data;
	}

	template <number T, std::size_t N>
	void reduce(uint32_t root, enum kdsm_job_op op, std::span<T, N> data)
	{
		check(kdsm_job_reduce(raw(), root, type_of<T>, op, data.data(), data.size()));
	}

	template <number T>
	T scan(enum kdsm_job_op op, T data)
	{
		scan(op, std::span(&data, 1));
		return data;
	}

	template <number T, std::size_t N>
	void scan(enum kdsm_job_op op, std::span<T, N> data)
	{
		check(kdsm_job_scan(raw(), type_of<T>, op, data.data(), data.size()));
	}

	/* Return the values of all members, by rank. */
	template <value T>
	std::vector<T> allgather(const T &mine)
	{
		std::vector<T> all(size());

		check(kdsm_job_allgather(raw(), &mine, sizeof(mine), all.data()));
		return all;
	}

	/* ---- memory, which all members allocate in the same order ---- */

	template <value T>
	std::span<T> alloc(std::size_t count)
	{
		uint64_t bytes = count <= UINT64_MAX / sizeof(T) ? count * sizeof(T) : UINT64_MAX;
		void *memory = kdsm_job_alloc(raw(), bytes);

		if (!memory)
			throw error(-errno);
		return { static_cast<T *>(memory), count };
	}

	/* Allocate this many bytes in every part of sync(), and return their offset. */
	uint64_t alloc_sync(uint64_t bytes)
	{
		uint64_t offset;

		check(kdsm_job_alloc_sync(raw(), bytes, &offset));
		return offset;
	}

	template <value T>
	kdsmxx::spread<T> spread(uint64_t count)
	{
		struct kdsm_spread allocated;

		check(kdsm_job_spread(raw(), count, sizeof(T), &allocated));
		return kdsmxx::spread<T>(allocated);
	}

	/* ---- loops ---- */

	/* This member's share of the indices below count: for (uint64_t i : job.share(count)) */
	indices share(uint64_t count) const
	{
		return { kdsm_share(count, rank(), size()), kdsm_share(count, rank() + 1, size()) };
	}

	/*
	 * Call body(i) once, at some member, for each index i below count. Members take chunks of
	 * indices when they are idle. Collective.
	 */
	template <std::invocable<uint64_t> Body>
	void loop(uint64_t count, uint64_t chunk, Body body)
	{
		struct kdsm_loop loop;
		uint64_t i, end;

		check(kdsm_job_loop(raw(), count, chunk, &loop));
		while (check(kdsm_loop_next(&loop, &i, &end)))
			for (; i < end; i++)
				body(i);
	}

	struct kdsm_job *raw() const { return handle.get(); }

private:
	struct leaver {
		int exceptions;

		leaver() : exceptions(std::uncaught_exceptions()) {}

		void operator()(struct kdsm_job *job) const
		{
			if (std::uncaught_exceptions() > exceptions)
				kdsm_job_abort(job);
			kdsm_job_leave(job);
		}
	};

	template <number T>
	static constexpr enum kdsm_job_type type_of =
		std::floating_point<T> ? KDSM_JOB_DOUBLE :
		std::signed_integral<T> ? KDSM_JOB_INT64 : KDSM_JOB_UINT64;

	std::unique_ptr<struct kdsm_job, leaver> handle;
	kdsmxx::cluster own_cluster = kdsmxx::cluster::borrow(nullptr);
	region own_memory = region::borrow(nullptr), own_sync = region::borrow(nullptr);
};

} /* namespace kdsmxx */

#endif /* KDSM_JOB_HPP */

// SPDX-License-Identifier: GPL-2.0
/*
 * job.hpp on the local backend, as a member of a job. With the argument "throw", rank 1 throws an exception,
 * which ends the job. Run by tests/languages; silent if all is well.
 */
#include <atomic>
#include <mutex>

#include <kdsm/job.hpp>

#include "expect.hh"

namespace {

struct pair {
	uint32_t first, second;
};

void use_collectives(kdsmxx::job &job)
{
	const uint64_t n = job.size(), r = job.rank(), sum = n * (n - 1) / 2;
	double reals[3] = { 1.0 * r, 0.5, -1.0 * r };
	uint64_t words[600];

	EXPECT(job.allreduce(KDSM_JOB_SUM, r) == sum);
	EXPECT(job.allreduce(KDSM_JOB_MIN, -static_cast<int64_t>(r)) == 1 - static_cast<int64_t>(n));
	job.allreduce(KDSM_JOB_MAX, std::span(reals));
	EXPECT(reals[0] == n - 1.0 && reals[1] == 0.5 && reals[2] == 0.0);
	EXPECT(job.reduce(n - 1, KDSM_JOB_SUM, r) == (r == n - 1 ? sum : r));
	EXPECT(job.scan(KDSM_JOB_SUM, r) == r * (r + 1) / 2);
	std::fill(std::begin(words), std::end(words), r);
	job.reduce(0, KDSM_JOB_SUM, std::span(words));
	EXPECT(words[599] == (r ? r : sum));
	job.scan(KDSM_JOB_MAX, std::span(reals));

	pair pair = { static_cast<uint32_t>(r), 7 };

	EXPECT(job.allgather(pair)[n - 1].first == n - 1);
	job.broadcast(n - 1, pair);
	EXPECT(pair.first == n - 1 && pair.second == 7);
	job.broadcast(0, std::span(words).first(100));
	EXPECT(words[99] == sum);
	fails(EINVAL, "job " + job.name() + ": kdsm_job_broadcast(): root " + std::to_string(n) +
	      " is not below the size of the job, " + std::to_string(n),
	      [&] { job.broadcast(n, pair); });
}

void use_memory(kdsmxx::job &job)
{
	std::span<uint64_t> shared = job.alloc<uint64_t>(1000);
	kdsmxx::spread<double> spread = job.spread<double>(101);
	uint64_t offset = job.alloc_sync(64), sum = 0;
	kdsmxx::mutex mutex(job.memory(), "sum");

	for (uint64_t i : job.share(1000))
		shared[i] = i;
	EXPECT(spread.size() == 101);
	for (double &one : spread.part(job.rank()))
		one = job.rank();
	job.sync().faa(0, offset, 1);
	job.barrier();
	for (uint64_t i = 0; i < 1000; i++)
		EXPECT(shared[i] == i);
	for (uint64_t i = 0; i < 101; i++)
		EXPECT(spread[i] == kdsm_sharer(101, i, job.size()));
	EXPECT(job.sync().get<uint64_t>(0, offset) == job.size());
	job.barrier();
	job.loop(1000, 7, [&](uint64_t i) { sum += i; });
	{
		std::lock_guard guard(mutex);

		shared[0] += sum;
	}
	job.barrier();
	EXPECT(shared[0] == 499500);
	try {
		job.alloc<uint64_t>(SIZE_MAX);
		EXPECT(!"there is no such memory");
	} catch (const kdsmxx::error &error) {
		EXPECT(error.code().value() == ENOMEM);
		EXPECT(std::string_view(error.what()).starts_with("job " + job.name() + ": no room"));
	}
	fails(EINVAL, "job " + job.name() + ": 0 bytes of memory (KDSM_MEMORY) are nothing to allocate",
	      [&] { job.alloc<uint64_t>(0); });
}

}

int main(int argc, char **)
{
	struct kdsm_job_attr wrong = kdsmxx::job_attributes();

	wrong.size = 2;
	wrong.rank = 2;
	fails(EINVAL, "rank 2 is not below the size of the job, 2", [&] { kdsmxx::job job(wrong); });

	kdsmxx::job job;

	EXPECT(job.node(job.rank()) == 0 && job.nodes() == 1 && job.cluster().is_local());
	if (argc == 1) {
		use_collectives(job);
		use_memory(job);

		kdsmxx::job moved = std::move(job);

		moved.barrier();
		moved.leave();
		return 0;
	}
	try {
		kdsmxx::job mine = std::move(job);

		if (mine.rank() == 1)
			throw std::bad_alloc();
		mine.barrier();
		EXPECT(!"the job has ended");
	} catch (const std::bad_alloc &) {
	} catch (const kdsmxx::error &error) {
		EXPECT(error.code().value() == ECANCELED);
		EXPECT(std::string_view(error.what()).ends_with(": rank 1 ended the job"));
	}
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rings for C++20, over <kdsm/ring.h>: many operations in flight, without a system call for each.
 * Conventions are those of <kdsm/kdsm.hpp>, and one thread at a time uses a ring.
 *
 * The caller starts operations, and learns in one of three ways that one is complete:
 *
 *	uint64_t former = ring.wait(ring.faa(node, offset, 1));		waits for it
 *	uint64_t former = co_await ring.faa(node, offset, 1);		in a coroutine, such as a task
 *	ring.faa(node, offset, 1, [](int status, uint64_t former) { ... });	calls a function
 *
 * ring.run() submits the started operations, resumes coroutines and calls functions. The caller may
 * start any number of operations: the object queues those for which the ring has no entry.
 */
#ifndef KDSM_RING_HPP
#define KDSM_RING_HPP

#include <algorithm>
#include <coroutine>
#include <deque>
#include <exception>
#include <optional>
#include <stdexcept>

#include <kdsm/kdsm.hpp>
#include <kdsm/ring.h>

namespace kdsmxx {

template <typename Result>
class pending;

class ring {
public:
	/* entries: most operations in the ring at a time; buffer_size: of the buffer, in bytes */
	ring(region &region, unsigned int entries, std::size_t buffer_size = 0)
		: state(std::make_unique<queue>(region, entries, buffer_size))
	{
	}

	/* The buffer; the memory of gets and puts must lie in it */
	template <value T = std::byte>
	std::span<T> buffer() const
	{
		return { static_cast<T *>(kdsm_ring_buffer(raw())),
			 kdsm_ring_buffer_size(raw()) / sizeof(T) };
	}

	/*
	 * Start an operation. Without done, the functions return a pending. With done, they return
	 * nothing, and run() calls done(status, former): status is 0 or a negative errno, former
	 * the value before a cas or faa. The bytes in the buffer belong to the operation until the
	 * operation is complete.
	 */
	template <value T, std::size_t N, typename... Done>
		requires(!std::is_const_v<T>)
	auto get(unsigned int node, uint64_t offset, std::span<T, N> to, Done... done)
	{
		return start<void>(kdsm_op_get(node, offset, to.data(), to.size_bytes()), done...);
	}

	template <value T, std::size_t N, typename... Done>
	auto put(unsigned int node, uint64_t offset, std::span<T, N> from, Done... done)
	{
		return start<void>(kdsm_op_put(node, offset, from.data(), from.size_bytes()), done...);
	}

	template <typename... Done>
	auto cas(unsigned int node, uint64_t offset, uint64_t expected, uint64_t desired, Done... done)
	{
		return start<uint64_t>(kdsm_op_cas(node, offset, expected, desired), done...);
	}

	template <typename... Done>
	auto faa(unsigned int node, uint64_t offset, uint64_t add, Done... done)
	{
		return start<uint64_t>(kdsm_op_faa(node, offset, add), done...);
	}

	/* Submit the started operations, without waiting for them. run() submits, too. */
	void submit() { check(kdsm_ring_submit(raw())); }

	/*
	 * Submit the started operations, and wait until count of those in the ring are complete, or
	 * all of them if they are fewer. Return the number of operations completed, which is lower
	 * if the timeout expires, and may be higher than count. If a function done throws, run()
	 * throws its exception, and the next call handles the remaining completions.
	 */
	unsigned int run(unsigned int count = 1, duration timeout = forever)
	{
		return state->run(count, timeout);
	}

	/* Run until nothing is in flight. */
	void finish()
	{
		while (in_flight())
			run();
	}

	/*
	 * Run until a pending or a task is done; return its result, or throw its exception. Throw
	 * std::logic_error if it is not done and nothing is in flight in this ring.
	 */
	template <typename Awaited>
	decltype(auto) wait(Awaited &&awaited)
	{
		while (!awaited.done()) {
			if (!in_flight())
				throw std::logic_error("kdsmxx::ring: the task does not wait for this ring");
			run();
		}
		return awaited.result();
	}

	/* Operations that were started and are not complete */
	std::size_t in_flight() const { return state->busy() + state->waiting.size(); }

	/* For calls that this class lacks, such as kdsm_ring_fd(); not for starting operations */
	struct kdsm_ring *raw() const { return state->handle.get(); }

private:
	template <typename Result>
	friend class pending;

	/* The waiter of an operation: the ring calls one of the functions, once. */
	class waiter {
	public:
		virtual void complete(int status, uint64_t former) = 0;
		virtual void lost() noexcept = 0;	/* the ring is destroyed */

	protected:
		~waiter() = default;
	};

	template <typename Done>
	class call final : public waiter {
	public:
		explicit call(Done &&done) : function(std::move(done)) {}

		void complete(int status, uint64_t former) override
		{
			std::unique_ptr<call> own(this);

			function(status, former);
		}

		void lost() noexcept override { delete this; }

	private:
		Done function;
	};

	struct started {
		struct kdsm_op op;
		waiter *by;	/* nullptr: the waiter was destroyed */
	};

	struct queue {
		owner<kdsm_ring_close, struct kdsm_ring> handle;
		std::vector<waiter *> waiters;		/* by data of their operations */
		std::vector<uint32_t> unused;		/* elements of waiters */
		std::deque<started> waiting;		/* for one of them */

		queue(region &region, unsigned int entries, std::size_t buffer_size)
		{
			struct kdsm_ring *opened;

			check(kdsm_ring_open(region.raw(), entries, buffer_size, &opened));
			handle.reset(opened);
			waiters.resize(entries);
			for (uint32_t i = entries; i--;)
				unused.push_back(i);
		}

		~queue()
		{
			for (waiter *by : waiters)
				if (by)
					by->lost();
			for (started &one : waiting)
				if (one.by)
					one.by->lost();
		}

		queue(const queue &) = delete;
		queue &operator=(const queue &) = delete;

		std::size_t busy() const { return waiters.size() - unused.size(); }

		void start(const struct kdsm_op &op, waiter *by)
		{
			if (unused.empty())
				waiting.push_back({ op, by });
			else
				prepare(op, by);
		}

		/* The ring has room, because it has as many entries as there are waiters. */
		void prepare(const struct kdsm_op &op, waiter *by)
		{
			struct kdsm_ring *ring = handle.get();
			uint32_t data = unused.back();
			void *memory = reinterpret_cast<void *>(static_cast<uintptr_t>(op.addr));

			switch (op.opcode) {
			case KDSM_OP_GET:
				check(kdsm_ring_prep_get(ring, op.node, op.offset, memory, op.length, data));
				break;
			case KDSM_OP_PUT:
				check(kdsm_ring_prep_put(ring, op.node, op.offset, memory, op.length, data));
				break;
			case KDSM_OP_CAS:
				check(kdsm_ring_prep_cas(ring, op.node, op.offset, op.compare, op.operand,
							 data));
				break;
			default:
				check(kdsm_ring_prep_faa(ring, op.node, op.offset, op.operand, data));
			}
			waiters[data] = by;
			unused.pop_back();
		}

		void forget(const waiter *by)
		{
			std::replace(waiters.begin(), waiters.end(), const_cast<waiter *>(by),
				     static_cast<waiter *>(nullptr));
			for (started &one : waiting)
				if (one.by == by)
					one.by = nullptr;
		}

		unsigned int run(unsigned int count, duration timeout)
		{
			struct kdsm_ring_completion completion;
			unsigned int most = static_cast<unsigned int>(busy()), i;

			/* The next call handles operations that complete while functions run. */
			unless(-ETIMEDOUT, kdsm_ring_wait(handle.get(), std::min(count, most),
							  timeout_of(timeout)));
			for (i = 0; i < most && kdsm_ring_reap(handle.get(), &completion, 1); i++)
				complete(completion);
			return i;
		}

		void complete(const struct kdsm_ring_completion &completion)
		{
			uint32_t data = static_cast<uint32_t>(completion.data);
			waiter *by = std::exchange(waiters[data], nullptr);

			unused.push_back(data);
			if (!waiting.empty()) {
				started next = waiting.front();

				waiting.pop_front();
				prepare(next.op, next.by);
			}
			if (by)
				by->complete(completion.status, completion.result);
		}
	};

	std::unique_ptr<queue> state;

	template <typename Result>
	pending<Result> start(const struct kdsm_op &op)
	{
		return pending<Result>(state.get(), op);
	}

	template <typename Result, std::invocable<int, uint64_t> Done>
	void start(const struct kdsm_op &op, Done &done)
	{
		auto by = std::make_unique<call<Done>>(std::move(done));

		state->start(op, by.get());
		by.release();
	}
};

/*
 * An operation that was started, for ring::wait() or co_await, which throw the operation's error.
 * The object cannot be moved. Destroying the object early loses the result, but does not cancel the
 * operation. If the ring is destroyed first, result() throws an error with ECANCELED.
 */
template <typename Result>
class [[nodiscard]] pending final : private ring::waiter {
public:
	pending(const pending &) = delete;
	pending &operator=(const pending &) = delete;

	~pending()
	{
		if (queue)
			queue->forget(this);
	}

	bool done() const { return !queue; }

	/* Only if done(): the value before a cas or faa; nothing for get and put */
	Result result() const
	{
		if (status)
			throw error(status, text());
		if constexpr (!std::is_void_v<Result>)
			return former;
	}

	bool await_ready() const noexcept { return done(); }
	void await_suspend(std::coroutine_handle<> handle) noexcept { coroutine = handle; }
	Result await_resume() const { return result(); }

private:
	friend class ring;

	pending(ring::queue *queue, const struct kdsm_op &op) : queue(queue), op(op)
	{
		queue->start(op, this);
	}

	void complete(int status, uint64_t former) override
	{
		this->status = status;
		this->former = former;
		queue = nullptr;
		/* Last, because the coroutine may destroy this object. */
		if (coroutine)
			coroutine.resume();
	}

	void lost() noexcept override
	{
		status = -ECANCELED;
		queue = nullptr;
	}

	std::string text() const
	{
		static const char *const names[] = { "get", "put", "cas", "faa" };

		return std::string(names[op.opcode - KDSM_OP_GET]) + " of " + std::to_string(op.length) +
		       " bytes, node " + std::to_string(op.node) + ", offset " +
		       std::to_string(op.offset) + ": " +
		       (status == -EFAULT ? "the memory is not in the buffer of the ring" :
					    kdsm_strerror(status));
	}

	ring::queue *queue;	/* nullptr: the operation is done */
	struct kdsm_op op;
	std::coroutine_handle<> coroutine;
	uint64_t former = 0;
	int status = 0;
};

/*
 * A coroutine that begins at once, and waits for operations of a ring or for other tasks. The task
 * owns the coroutine: destroying a task early destroys the coroutine at the point where it waits.
 * ring::wait(), and co_await in another coroutine, return the value, or throw the exception that
 * left the coroutine.
 */
template <typename T = void>
class [[nodiscard]] task {
	struct promise_base {
		std::coroutine_handle<> next;	/* of the coroutine that waits for this one */
		std::exception_ptr exception;

		struct final_awaiter {
			bool await_ready() const noexcept { return false; }

			template <typename Promise>
			std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept
			{
				std::coroutine_handle<> next = handle.promise().next;

				return next ? next : std::noop_coroutine();
			}

			void await_resume() const noexcept {}
		};

		std::suspend_never initial_suspend() const noexcept { return {}; }
		final_awaiter final_suspend() const noexcept { return {}; }
		void unhandled_exception() { exception = std::current_exception(); }
	};

	struct value_promise : promise_base {
		std::optional<T> value;

		void return_value(T returned) { value.emplace(std::move(returned)); }
	};

	struct void_promise : promise_base {
		void return_void() const noexcept {}
	};

public:
	struct promise_type : std::conditional_t<std::is_void_v<T>, void_promise, value_promise> {
		task get_return_object()
		{
			return task(std::coroutine_handle<promise_type>::from_promise(*this));
		}
	};

	task(task &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}

	task &operator=(task &&other) noexcept
	{
		std::swap(handle, other.handle);
		return *this;
	}

	~task()
	{
		if (handle)
			handle.destroy();
	}

	bool done() const { return handle.done(); }

	/* Only if done(), and only once, because the value is moved out. */
	T result()
	{
		if (handle.promise().exception)
			std::rethrow_exception(handle.promise().exception);
		if constexpr (!std::is_void_v<T>)
			return std::move(*handle.promise().value);
	}

	bool await_ready() const noexcept { return done(); }
	void await_suspend(std::coroutine_handle<> waiter) { handle.promise().next = waiter; }
	T await_resume() { return result(); }

private:
	explicit task(std::coroutine_handle<promise_type> handle) : handle(handle) {}

	std::coroutine_handle<promise_type> handle;
};

} /* namespace kdsmxx */

#endif /* KDSM_RING_HPP */

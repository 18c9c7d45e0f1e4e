/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The primitives of the kernel that the protocol files use, for the simulator. The headers
 * in linux/ and trace/ replace those of the kernel and include this one. One OS thread runs
 * all fibers, so fibers switch only at scheduling points: sim_yield(), and calls that block.
 * There is a scheduling point at each access where, in the kernel, another CPU could act in
 * between.
 */
#ifndef KDSM_SIM_SHIM_H
#define KDSM_SIM_SHIM_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <asm/types.h>

typedef __s16 s16;
typedef __u8 u8;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef unsigned long pgoff_t;
typedef unsigned int gfp_t;
typedef s64 ktime_t;

#define U16_MAX		0xffff
#define U32_MAX		0xffffffffU
#define U64_MAX		0xffffffffffffffffULL
#define PAGE_SHIFT	12
#define PAGE_SIZE	(1UL << PAGE_SHIFT)
#define PAGE_MASK	(~(PAGE_SIZE - 1))
#define SZ_16K		0x4000
#define SZ_64K		0x10000
#define SZ_1M		0x100000
#define SZ_4M		0x400000
#define BIT(n)		(1UL << (n))
#define BIT_ULL(n)	(1ULL << (n))
#define GENMASK_ULL(high, low)	(~0ULL >> (63 - (high)) & ~0ULL << (low))
#define FIELD_MAX(mask)		((mask) >> __builtin_ctzll(mask))
#define FIELD_PREP(mask, value)	((u64)(value) << __builtin_ctzll(mask) & (mask))
#define FIELD_GET(mask, bits)	(((bits) & (mask)) >> __builtin_ctzll(mask))
#define HZ		250

#define __packed	__attribute__((packed))
#define __aligned(n)		__attribute__((aligned(n)))
#define __must_hold(lock)
#define fallthrough	__attribute__((fallthrough))
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d)	(((n) + (d) - 1) / (d))
#define ilog2(n)		(63 - __builtin_clzll(n))
#define is_power_of_2(n)	((n) && !((n) & ((n) - 1)))
#define roundup_pow_of_two(n)	(1UL << (64 - __builtin_clzll((n) - 1)))
#define struct_size(p, member, n)	(sizeof(*(p)) + (n) * sizeof((p)->member[0]))
#define BUILD_BUG_ON(c)		_Static_assert(!(c), #c)
#define container_of(p, type, member)	((type *)((char *)(p) - offsetof(type, member)))

#define min(a, b)	({ typeof(a) _a = (a); typeof(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)	({ typeof(a) _a = (a); typeof(b) _b = (b); _a > _b ? _a : _b; })
#define max3(a, b, c)	max(max(a, b), c)
#define min3(a, b, c)	min(min(a, b), c)
#define min_t(t, a, b)	min((t)(a), (t)(b))
#define max_t(t, a, b)	max((t)(a), (t)(b))
#define clamp_t(t, v, a, b)	min((t)(b), max((t)(a), (t)(v)))

#define cpu_to_le16(x)	((__le16)(x))
#define cpu_to_le32(x)	((__le32)(x))
#define cpu_to_le64(x)	((__le64)(x))
#define le16_to_cpu(x)	((u16)(x))
#define le32_to_cpu(x)	((u32)(x))
#define le64_to_cpu(x)	((u64)(x))

struct kmem_cache;
struct vm_area_struct;
struct vm_operations_struct;
struct sockaddr_storage;
struct inode;

typedef struct { u8 b[16]; } uuid_t;

/* ---- errors ---- */

#define ERR_PTR(err)	((void *)(long)(err))
#define PTR_ERR(p)	((long)(p))
#define IS_ERR(p)	((unsigned long)(p) >= (unsigned long)-4095)
#define PTR_ERR_OR_ZERO(p)	({ void *_p = (p); IS_ERR(_p) ? PTR_ERR(_p) : 0; })
#define ERR_CAST(p)	((void *)(p))

/* ---- signals: there are none ---- */

#define signal_pending(task)	false
#define fatal_signal_pending(task)	false
#define cond_resched()		((void)0)

/* ---- scheduling points (harness/scheduler.c) ---- */

struct fiber;

/* Fibers that wait for an event. */
struct sim_queue {
	struct fiber *first;
};

/* Let other fibers run now, if the seed chooses so. */
void sim_yield(void);
void sim_sleep(u64 microseconds);
/* As sim_sleep(), before a retry; the seed can make the sleep longer. */
void sim_pause(u64 microseconds);
/* Simulated time, in us; see struct sim_cost for the exception */
u64 sim_now(void);
/* Join the queue. A sim_wake() between this call and sim_block() is not lost. */
void sim_prepare(struct sim_queue *queue);
/* Leave the queue. */
void sim_cancel(struct sim_queue *queue);
/* Wait for sim_wake(), and leave the queue. False: the deadline came first. */
bool sim_block(struct sim_queue *queue, u64 deadline);
/* Wake all fibers of the queue. */
void sim_wake(struct sim_queue *queue);

#define data_race(x)		(x)
#define READ_ONCE(x)		({ sim_yield(); *(const volatile typeof(x) *)&(x); })
#define WRITE_ONCE(x, v)	({ sim_yield(); *(volatile typeof(x) *)&(x) = (v); })
#define smp_mb()		sim_yield()
#define smp_rmb()		sim_yield()
#define smp_load_acquire(p)	READ_ONCE(*(p))
#define smp_store_release(p, v)	WRITE_ONCE(*(p), v)
#define cmpxchg(p, old, new) ({						\
	sim_yield();							\
	typeof(*(p)) _was = *(p);					\
	if (_was == (old))						\
		*(p) = (new);						\
	_was; })

typedef struct { s64 counter; } atomic64_t;
typedef struct { int counter; } atomic_t;

static inline s64 atomic64_read(const atomic64_t *v)
{
	return READ_ONCE(v->counter);
}

static inline void atomic64_add(s64 n, atomic64_t *v)
{
	v->counter += n;
}

#define atomic64_inc_return(v)	(++(v)->counter)

static inline bool atomic64_try_cmpxchg(atomic64_t *v, s64 *old, s64 new)
{
	s64 was = cmpxchg(&v->counter, *old, new);
	bool same = was == *old;

	*old = was;
	return same;
}

/* ---- locks (harness/kernel.c) ---- */

struct mutex {
	struct fiber *owner;
	struct sim_queue queue;
};

typedef struct mutex spinlock_t;

void mutex_init(struct mutex *mutex);
void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);
bool mutex_trylock(struct mutex *mutex);
void sim_assert_held(const struct mutex *mutex);

#define lockdep_assert_held(l)	sim_assert_held(l)
#define spin_lock_init(l)	mutex_init(l)
void spin_lock(spinlock_t *lock);
void spin_unlock(spinlock_t *lock);
void sim_might_sleep(void);

/* There are no softirqs: fibers run their handlers. */
#define spin_lock_bh(l)		spin_lock(l)
#define spin_unlock_bh(l)	spin_unlock(l)

/* ---- waiting ---- */

typedef struct sim_queue wait_queue_head_t;

#define init_waitqueue_head(q)	((q)->first = NULL)
#define wake_up_all(q)		({ sim_yield(); sim_wake(q); })
#define TASK_UNINTERRUPTIBLE	2
#define MAX_SCHEDULE_TIMEOUT	LONG_MAX

#define jiffies			((unsigned long)(sim_now() / (1000000 / HZ)))
#define time_after(a, b)	((long)((b) - (a)) < 0)
#define usleep_range(a, b)	sim_pause(a)
#define schedule_timeout_uninterruptible(t)	sim_sleep((u64)(t) * (1000000 / HZ))

/* The value is 1, or 0 if the condition is false when the time is over. */
#define wait_event_timeout(q, condition, timeout) ({			\
	u64 _end = sim_now() + (u64)(timeout) * (1000000 / HZ);		\
	long _left = 1;							\
	sim_might_sleep();						\
	for (;;) {							\
		sim_prepare(&(q));					\
		if (condition)						\
			break;						\
		if (!sim_block(&(q), _end)) {				\
			_left = !!(condition);				\
			break;						\
		}							\
	}								\
	sim_cancel(&(q));						\
	_left; })
#define wait_event(q, condition) do {					\
	sim_might_sleep();						\
	for (;;) {							\
		sim_prepare(&(q));					\
		if (condition)						\
			break;						\
		sim_block(&(q), U64_MAX);				\
	}								\
	sim_cancel(&(q));						\
} while (0)

struct completion {
	struct sim_queue queue;
};

/* ---- memory; any allocation may fail (harness/kernel.c) ---- */

#define GFP_KERNEL		0
#define GFP_KERNEL_ACCOUNT	0
#define GFP_NOWAIT		0
#define __GFP_NOWARN		0
#define __GFP_NOFAIL		1

void *sim_alloc(size_t size, bool zero);
/* An allocation that waits until there is memory */
void *sim_alloc_nofail(size_t size);
void sim_free(void *p);

#define kzalloc(n, f)		sim_alloc(n, true)
#define kvzalloc(n, f)		sim_alloc(n, true)
/* A cache is the size of its objects. */
#define KMEM_CACHE(type, f)	((struct kmem_cache *)sizeof(struct type))
#define kmem_cache_zalloc(c, f)	\
	((f) & __GFP_NOFAIL ? sim_alloc_nofail((size_t)(c)) : sim_alloc((size_t)(c), true))
#define kmem_cache_alloc(c, f)	sim_alloc((size_t)(c), false)
#define kmem_cache_free(c, p)	sim_free(p)
#define kmem_cache_destroy(c)	((void)(c))
#define kcalloc(n, s, f)	sim_alloc((size_t)(n) * (s), true)
#define kvcalloc(n, s, f)	sim_alloc((size_t)(n) * (s), true)
#define kvmalloc_array(n, s, f)	sim_alloc((size_t)(n) * (s), false)
#define kfree(p)		sim_free((void *)(p))
#define kvfree(p)		sim_free((void *)(p))
#define __get_free_page(f)	((unsigned long)sim_alloc(PAGE_SIZE, false))
#define free_page(p)		sim_free((void *)(p))

struct page {
	u64 words[PAGE_SIZE / sizeof(u64)];
};

#define page_address(page)	((void *)(page)->words)
/* Copies piece by piece, so that other CPUs can write meanwhile. The program defines it. */
void copy_page(void *to, const void *from);
void clear_page(void *page);

/* ---- lists ---- */

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name)		struct list_head name = { &(name), &(name) }

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *list)
{
	list_del_init(entry);
	list_add_tail(entry, list);
}

static inline void list_splice_tail(struct list_head *from, struct list_head *list)
{
	if (list_empty(from))
		return;
	from->next->prev = list->prev;
	list->prev->next = from->next;
	from->prev->next = list;
	list->prev = from->prev;
}

#define swap(a, b)		({ typeof(a) _was = (a); (a) = (b); (b) = _was; })

#define list_entry(p, type, member)	container_of(p, type, member)
#define list_first_entry(l, type, member)	list_entry((l)->next, type, member)
#define list_for_each_entry(p, l, member)				\
	for (p = list_entry((l)->next, typeof(*p), member);		\
	     &p->member != (l);						\
	     p = list_entry(p->member.next, typeof(*p), member))

#define list_first_entry_or_null(head, type, member)			\
	(list_empty(head) ? NULL : list_first_entry(head, type, member))

/* ---- red-black trees: lists in order of the keys ---- */

struct rb_node {
	struct rb_node *next, *previous;
};

struct rb_root_cached {
	struct rb_node *first, *last;
};

#define RB_ROOT_CACHED		((struct rb_root_cached){ NULL, NULL })
#define RB_CLEAR_NODE(node)	((node)->next = (node))
#define RB_EMPTY_NODE(node)	((node)->next == (node))
#define rb_entry(p, type, member)	container_of(p, type, member)
#define rb_first_cached(root)	((root)->first)
/* A root of the kernel has no last node */
#define rb_root			rb_root_cached
#define RB_ROOT			RB_ROOT_CACHED
#define rb_first(root)		((root)->first)
#define rb_erase(node, root)	rb_erase_cached(node, root)

static inline void rb_add_cached(struct rb_node *node, struct rb_root_cached *root,
				 bool (*less)(struct rb_node *a, const struct rb_node *b))
{
	struct rb_node *before = root->last;

	while (before && less(node, before))
		before = before->previous;
	node->previous = before;
	node->next = before ? before->next : root->first;
	*(before ? &before->next : &root->first) = node;
	*(node->next ? &node->next->previous : &root->last) = node;
}

static inline void rb_erase_cached(struct rb_node *node, struct rb_root_cached *root)
{
	*(node->previous ? &node->previous->next : &root->first) = node->next;
	*(node->next ? &node->next->previous : &root->last) = node->previous;
}

static inline struct rb_node *rb_find(const void *key, const struct rb_root *root,
				      int (*compare)(const void *key, const struct rb_node *node))
{
	struct rb_node *node = root->first;

	while (node && compare(key, node) > 0)
		node = node->next;
	return node && !compare(key, node) ? node : NULL;
}

static inline struct rb_node *rb_find_add(struct rb_node *node, struct rb_root *root,
					  int (*compare)(struct rb_node *a,
							 const struct rb_node *b))
{
	struct rb_node *before = root->last;

	while (before && compare(node, before) < 0)
		before = before->previous;
	if (before && !compare(node, before))
		return before;
	node->previous = before;
	node->next = before ? before->next : root->first;
	*(before ? &before->next : &root->first) = node;
	*(node->next ? &node->next->previous : &root->last) = node;
	return NULL;
}

/* ---- sparse arrays (harness/xarray.c) ---- */

struct xarray {
	spinlock_t xa_lock;
	struct sim_entry *entries;
	size_t count, room;
};

struct xa_node {
	u64 words[72];			/* as in Linux 6.1 */
};

#define XA_CHUNK_SIZE		64
#define XA_MARK_0		1
#define XA_MARK_1		2
typedef unsigned int xa_mark_t;
#define XA_FLAGS_ACCOUNT	0

#define xa_init_flags(array, flags)	memset(array, 0, sizeof(*(array)))
#define xa_lock(array)		spin_lock(&(array)->xa_lock)
#define xa_unlock(array)	spin_unlock(&(array)->xa_lock)
/* Values have an odd number in place of an address. */
#define xa_is_value(entry)	((unsigned long)(entry) & 1)
#define xa_mk_value(value)	((void *)((unsigned long)(value) << 1 | 1))
#define xa_to_value(entry)	((unsigned long)(entry) >> 1)
#define xa_is_err(entry)	(!xa_is_value(entry) && IS_ERR(entry))
#define xa_for_each_marked(array, index, entry, mark)			\
	for ((index) = 0; ((entry) = xa_find(array, &(index), ULONG_MAX, mark)); (index)++)

void *xa_load(const struct xarray *array, unsigned long index);
void *__xa_cmpxchg(struct xarray *array, unsigned long index, void *old, void *entry, gfp_t flags);
void __xa_set_mark(struct xarray *array, unsigned long index, xa_mark_t mark);
void __xa_clear_mark(struct xarray *array, unsigned long index, xa_mark_t mark);
/* The first entry with the mark */
void *xa_find(const struct xarray *array, unsigned long *index, unsigned long last,
	      xa_mark_t mark);
void xa_destroy(struct xarray *array);

/* A place in an array. The caller of these functions holds the lock of the array. */
struct xa_state {
	struct xarray *array;
	unsigned long index;
};

#define XA_STATE(name, xa, i)	struct xa_state name = { .array = xa, .index = i }

void *xas_load(struct xa_state *place);
/* Replace an entry; NULL removes it */
void *xas_store(struct xa_state *place, void *entry);
void xas_clear_mark(const struct xa_state *place, xa_mark_t mark);

/* ---- work (harness/kernel.c) ---- */

struct work_struct {
	void (*run)(struct work_struct *work);
	unsigned int node;
	bool pending, running;
};

#define INIT_WORK(work, function)					\
	(*(work) = (struct work_struct){ .run = (function) })
#define queue_work(queue, work)	sim_work(work)
#define system_unbound_wq	NULL
#define cancel_work_sync(work)	sim_work_end(work)

struct delayed_work {
	struct work_struct work;
};

#define INIT_DELAYED_WORK(w, f)		INIT_WORK(&(w)->work, f)
#define to_delayed_work(w)		container_of(w, struct delayed_work, work)
#define schedule_delayed_work(w, d)	sim_work_later(&(w)->work, d)
#define cancel_delayed_work_sync(w)	sim_work_end(&(w)->work)

void sim_work(struct work_struct *work);
void sim_work_later(struct work_struct *work, u64 delay);
void sim_work_end(struct work_struct *work);

#define NSEC_PER_USEC		1000L
#define NSEC_PER_SEC		1000000000L
#define ktime_get_ns()		(sim_now() * NSEC_PER_USEC)

/* ---- bitmaps and sort ---- */

#define BITS_TO_LONGS(n)	(((n) + 63) / 64)

static inline void sim_set_bit(unsigned int i, unsigned long *map)
{
	map[i / 64] |= 1UL << (i % 64);
}

#define DECLARE_BITMAP(map, bits)	unsigned long map[BITS_TO_LONGS(bits)]
#define __set_bit(i, map)	sim_set_bit(i, map)
#define set_bit(i, map)		sim_set_bit(i, map)
#define test_bit(i, map)	((map)[(i) / 64] >> ((i) % 64) & 1)
#define __ffs(x)		__builtin_ctzl(x)

static inline void bitmap_zero(unsigned long *map, unsigned int bits)
{
	memset(map, 0, BITS_TO_LONGS(bits) * sizeof(long));
}

#define bitmap_zalloc(bits, f)	((unsigned long *)sim_alloc(BITS_TO_LONGS(bits) * 8, true))
#define bitmap_free(map)	sim_free(map)

static inline unsigned long find_next_bit(const unsigned long *map, unsigned long size,
					  unsigned long from)
{
	while (from < size && !(map[from / 64] >> (from % 64) & 1))
		from++;
	return from;
}

#define for_each_set_bit(i, map, bits)					\
	for ((i) = find_next_bit(map, bits, 0); (i) < (bits);		\
	     (i) = find_next_bit(map, bits, (i) + 1))
#define __clear_bit(i, map)	((map)[(i) / 64] &= ~(1UL << ((i) % 64)))
#define clear_bit(i, map)	__clear_bit(i, map)

static inline void __assign_bit(unsigned int i, unsigned long *map, bool value)
{
	if (value)
		__set_bit(i, map);
	else
		__clear_bit(i, map);
}

static inline unsigned int bitmap_weight(const unsigned long *map, unsigned long bits)
{
	unsigned int i, weight = 0;

	for_each_set_bit(i, map, bits)
		weight++;
	return weight;
}

static inline void bitmap_copy(unsigned long *to, const unsigned long *from, unsigned int bits)
{
	memcpy(to, from, BITS_TO_LONGS(bits) * sizeof(long));
}

#define div_u64(a, b)		((u64)(a) / (b))
#define bitmap_empty(map, bits)	(find_next_bit(map, bits, 0) >= (bits))

static inline void sort(void *base, size_t count, size_t size,
			int (*compare)(const void *, const void *), void *swap)
{
	(void)swap;
	if (count)
		qsort(base, count, size, compare);
}

static inline void sort_r(void *base, size_t count, size_t size,
			  int (*compare)(const void *, const void *, const void *), void *swap,
			  const void *arg)
{
	(void)swap;
	if (count)
		qsort_r(base, count, size, (int (*)(const void *, const void *, void *))compare,
			(void *)arg);
}

/* ---- tracepoints: there are none ---- */

#define TP_PROTO(args...)	args
#define TRACE_EVENT(name, proto, ...)					\
	static inline void trace_##name(proto)				\
	{								\
	}

/* ---- sizes that each seed chooses ---- */

extern unsigned int sim_evict_shift;
#define KDSM_EVICT_SHIFT	sim_evict_shift

#endif /* KDSM_SIM_SHIM_H */

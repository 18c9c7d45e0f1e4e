// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The local backend: a cluster of one node, consisting of one process and the children that
 * it forks. A region is a memfd that is mapped shared, or anonymous memory if the process
 * is alone (KDSM_OPEN_ALONE). This file does what the module does for names, references and
 * sleepers. Locks are in local_lock.c. The members of a local job are unrelated processes, which
 * share files instead: local_shared.c.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include "core/internal.h"

/*
 * Sleepers of a region sleep on buckets, chosen by the offset of the word, in a page behind
 * the part, which fork() shares as it shares the part. A futex on the word itself would
 * compare only 32 of its 64 bits.
 *
 * A sleeper increments waiters, reads turn, checks the word, and sleeps while turn keeps
 * the value that it read. A waker has stored the word before the call; it reads waiters
 * and, if there are any, changes turn and wakes them. All of these accesses are
 * sequentially consistent, so either the sleeper sees the new word, or the waker sees the
 * sleeper; and if turn has changed since the sleeper read turn, the futex does not sleep. A
 * killed sleeper leaves waiters too high, which only costs later wakers a system call.
 */
struct bucket {
	_Alignas(64) uint32_t waiters;
	uint32_t turn;
};

#define BUCKETS		64
#define BUCKETS_SIZE	(BUCKETS * sizeof(struct bucket))

/* A region, as the module would keep it. Protected by kdsm->lock. */
struct kdsm_memory {
	struct kdsm_memory *next;
	char name[KDSM_NAME_SIZE];
	struct kdsm_region_open made;	/* by the creator, with the (out) fields */
	int fd;
	void *base;			/* alone: mapping used instead of the file's, or NULL */
	size_t length;			/* of base, in bytes */
	unsigned int bound;		/* number of struct kdsm_region bound to it */
	bool named;			/* false once the region is destroyed */
};

#define HUGE_PAGE (2UL << 20)

/*
 * Offset of the locks in the file of a region of that size, aligned to 64 KiB, the largest
 * page size.
 */
static uint64_t locks_offset(uint64_t size)
{
	return (size + BUCKETS_SIZE + 0xffff) & ~0xffffULL;
}

int kdsm_local_share(struct kdsm *kdsm, const char *name)
{
	int ret = kd_shared_start(name, &kdsm->shared);

	if (ret)
		return ret;
	ret = kdsm_local_open(kdsm);
	if (ret)
		kd_shared_end(kdsm->shared);
	return ret;
}

int kdsm_local_open(struct kdsm *kdsm)
{
	int ret = kdsm_lives_start();

	if (ret)
		return ret;
	kdsm->backend = &kdsm_local_backend;
	kdsm->node = 0;
	kdsm->nodes = 1;
	kdsm->domain = KDSM_DOMAIN_SW;
	strcpy(kdsm->cluster, "local");
	return 0;
}

static void memory_free(struct kdsm *kdsm, struct kdsm_memory *memory)
{
	struct kdsm_memory **link = &kdsm->memories;

	while (*link != memory)
		link = &(*link)->next;
	*link = memory->next;
	close(memory->fd);
	if (memory->base)
		munmap(memory->base, memory->length);
	free(memory);
}

static void memory_release(struct kdsm *kdsm, struct kdsm_memory *memory)
{
	if (!memory->bound && !(memory->named && (memory->made.flags & KDSM_REGION_KEEP)))
		memory_free(kdsm, memory);
}

static void local_close(struct kdsm *kdsm)
{
	while (kdsm->memories)
		memory_free(kdsm, kdsm->memories);
	kd_shared_end(kdsm->shared);
}

void kd_shared_leave(struct kdsm *kdsm)
{
	kd_shared_end(kdsm->shared);
	kdsm->shared = NULL;
}

static struct kdsm_memory *memory_find(struct kdsm *kdsm, const char *name)
{
	struct kdsm_memory *memory;

	for (memory = kdsm->memories; memory; memory = memory->next)
		if (memory->named && !strcmp(memory->name, name))
			return memory;
	return NULL;
}

/* Fill in the defaults, and check what KDSM_IOC_REGION_OPEN checks. */
static int attr_check(struct kdsm_region_open *arg)
{
	uint64_t block;

	if (!arg->mode)
		arg->mode = 0600;
	if (!arg->size || kdsm_segments_check(arg) || arg->policy < KDSM_POLICY_PARTITIONED ||
	    arg->policy > KDSM_POLICY_STRICT || arg->mode > 0777 ||
	    (arg->flags & KDSM_REGION_CONTIGUOUS && arg->policy == KDSM_POLICY_PARTITIONED))
		return -EINVAL;
	/* Bound by the address space of a program, with some room for arithmetic. */
	if (arg->size > (uint64_t)SIZE_MAX / 4 || arg->size > 1ULL << 46)
		return -EFBIG;
	if (!(arg->flags & KDSM_REGION_AT))
		arg->base = 0;
	else if (!kd_base_allowed(arg))
		return -EINVAL;
	block = arg->segments > 1 ? HUGE_PAGE : arg->block_size;
	arg->part_size = (arg->size + block - 1) & ~(block - 1);
	return 0;
}

/*
 * Pages are allocated on first access. Refuse a size now that memory and swap can never
 * hold.
 */
static int memory_check(uint64_t size)
{
	struct sysinfo info;

	if (sysinfo(&info))
		return -errno;
	if (size / info.mem_unit > (uint64_t)info.totalram + info.totalswap)
		return -ENOMEM;
	return 0;
}

/* Make the file of a region: of no name, or of one that other processes find. */
static int file_create(struct kdsm *kdsm, struct kdsm_region_open *arg, int *fd)
{
	uint64_t bytes = locks_offset(arg->part_size) + sizeof(struct kdsm_local_area);
	int ret = 0;

	if (kdsm->shared)
		return kd_shared_make(kdsm->shared, arg, bytes, arg->part_size + BUCKETS_SIZE, fd);
	*fd = memfd_create(arg->name, MFD_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, bytes)) {
		ret = errno == EINVAL ? -EFBIG : -errno;
		close(*fd);
	}
	return ret;
}

/* Add a memory, whose file has been made or found, to the list. The memory owns fd. */
static int memory_add(struct kdsm *kdsm, const struct kdsm_region_open *made, int fd,
		      struct kdsm_memory **out)
{
	struct kdsm_memory *memory = calloc(1, sizeof(*memory));

	if (!memory) {
		close(fd);
		return -ENOMEM;
	}
	memory->fd = fd;
	memcpy(memory->name, made->name, sizeof(memory->name));
	memory->named = true;
	memory->made = *made;
	memory->made.id = ++kdsm->last_id;
	memory->next = kdsm->memories;
	kdsm->memories = memory;
	*out = memory;
	return 0;
}

static int memory_create(struct kdsm *kdsm, struct kdsm_region_open *arg,
			 struct kdsm_memory **out)
{
	struct kdsm_region_open made = *arg;
	int ret, fd;

	ret = memory_check(arg->part_size);
	if (ret)
		return ret;
	made.size = arg->part_size;
	ret = file_create(kdsm, &made, &fd);
	return ret ? ret : memory_add(kdsm, &made, fd, out);
}

/* Look for the memory that another process has made, unless this one has it already. */
static int memory_adopt(struct kdsm *kdsm, const char *name, struct kdsm_memory **memory)
{
	struct kdsm_region_open made;
	int ret, fd;

	if (*memory || !kdsm->shared)
		return 0;
	ret = kd_shared_find(kdsm->shared, name, &fd, &made);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	return memory_add(kdsm, &made, fd, memory);
}

static int local_location(const struct kdsm *kdsm, unsigned int node,
			  char location[KDSM_LOCATION_SIZE])
{
	(void)kdsm;
	(void)node;
	location[0] = '\0';
	return 0;
}

/* Find or create the memory. */
static int memory_open(struct kdsm *kdsm, struct kdsm_region_open *arg,
		       struct kdsm_memory **out)
{
	struct kdsm_memory *memory = memory_find(kdsm, arg->name);
	int ret = memory_adopt(kdsm, arg->name, &memory);

	if (!ret && arg->flags & KDSM_REGION_CREATE)
		ret = attr_check(arg);
	if (ret)
		return ret;
	if (arg->flags & KDSM_REGION_CREATE) {
		if (memory && (arg->flags & KDSM_REGION_EXCL))
			return -EEXIST;
		if (memory && (memory->made.part_size != arg->part_size ||
			       !kdsm_segments_equal(&memory->made, arg) ||
			       memory->made.policy != arg->policy ||
			       (arg->base && memory->made.base != arg->base) ||
			       (memory->made.flags ^ arg->flags) & KDSM_REGION_CONTIGUOUS))
			return -EINVAL;
		if (!memory) {
			ret = memory_create(kdsm, arg, &memory);
			if (ret)
				return ret;
		}
	} else if (!memory) {
		return -ENOENT;
	}
	*out = memory;
	return 0;
}

static int local_bind(struct kdsm *kdsm, struct kdsm_region_open *arg,
		      struct kdsm_region *region)
{
	struct kdsm_memory *memory;
	int ret = kd_shared_lock(kdsm->shared);

	if (ret)
		return ret;
	ret = memory_open(kdsm, arg, &memory);
	kd_shared_unlock(kdsm->shared);
	if (ret)
		return ret;
	memory->bound++;
	*arg = memory->made;
	region->memory = memory;
	region->fd = memory->fd;
	region->writable = true;
	return 0;
}

static void local_unbind(struct kdsm_region *region)
{
	if (region->lock_words)
		munmap(region->lock_words, sizeof(struct kdsm_local_area));
	if (region->base && region->base != region->memory->base)
		munmap(region->base, region->length);
	region->memory->bound--;
	memory_release(region->kdsm, region->memory);
}

static void use_base(struct kdsm_region *region, void *base, size_t length)
{
	region->base = base;
	region->length = length;
	if (!region->coherent)
		region->part = region->base;
}

/*
 * Huge pages avoid most page faults and TLB misses of a large table, if the kernel grants
 * them; for shared memory it rarely does. Huge pages need an aligned address: reserve more
 * address space than needed, map into the aligned part of it, and unmap the rest.
 */
static int local_map(struct kdsm_region *region)
{
	int flags = region->kdsm->alone ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	size_t length = region->size + BUCKETS_SIZE;
	struct kdsm_memory *memory = region->memory;
	uintptr_t start, begin;
	void *space, *base;
	int ret;

	if (memory->base) {
		use_base(region, memory->base, memory->length);
		return 0;
	}
	if (memory->made.base) {
		if (region->window)
			length = region->window;
		flags |= region->window ? MAP_FIXED : MAP_FIXED_NOREPLACE;
		base = mmap((void *)memory->made.base, length, PROT_READ | PROT_WRITE,
			    flags | MAP_NORESERVE, region->kdsm->alone ? -1 : region->fd, 0);
		if (base == MAP_FAILED)
			return errno == EEXIST ? -EADDRINUSE : -errno;
		use_base(region, base, length);
		if (region->kdsm->alone) {
			memory->base = base;
			memory->length = length;
		}
		return 0;
	}
	space = mmap(NULL, length + HUGE_PAGE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		return -errno;
	start = (uintptr_t)space;
	begin = (start + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	base = mmap((void *)begin, length, PROT_READ | PROT_WRITE,
		    flags | MAP_NORESERVE | MAP_FIXED, region->kdsm->alone ? -1 : region->fd, 0);
	if (base == MAP_FAILED) {
		ret = -errno;
		munmap(space, length + HUGE_PAGE);
		return ret;
	}
	if (begin > start)
		munmap(space, begin - start);
	if (begin - start < HUGE_PAGE)
		munmap((void *)(begin + length), HUGE_PAGE - (begin - start));
	madvise(base, length, MADV_HUGEPAGE);
	use_base(region, base, length);
	if (region->kdsm->alone) {
		memory->base = base;
		memory->length = length;
	}
	return 0;
}

int kdsm_local_map_locks(struct kdsm_region *region)
{
	struct kdsm_local_area *area;
	uint64_t serial = 0;
	int ret = kdsm_lives_start();

	if (ret)
		return ret;
	area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		    region->fd, locks_offset(region->size));
	if (area == MAP_FAILED)
		return -errno;
	/*
	 * Relatives that map the area concurrently agree on the serial that was stored
	 * first.
	 */
	__atomic_compare_exchange_n(&area->serial, &serial, kdsm_lives_serial(), false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	region->lock_words = area->words;
	return 0;
}

static int local_destroy(struct kdsm *kdsm, const char *name)
{
	struct kdsm_memory *memory = memory_find(kdsm, name);

	if (!memory)
		return -ENOENT;
	kd_shared_remove(kdsm->shared, name);
	memory->named = false;
	memory_release(kdsm, memory);
	return 0;
}

/* There are no other nodes, so every operation that gets here names a wrong node. */
static int local_submit(struct kdsm_region *region, struct kdsm_op *ops,
			unsigned int count, uint64_t *ticket)
{
	unsigned int i;

	(void)region;
	for (i = 0; i < count; i++)
		ops[i].status = -EINVAL;
	if (!ticket)
		return -EINVAL;
	*ticket = 0;
	return 0;
}

static int local_complete(struct kdsm_region *region, uint64_t ticket,
			  uint64_t timeout)
{
	(void)region, (void)ticket, (void)timeout;
	return -ENOENT;
}

static struct bucket *bucket_of(struct kdsm_region *region, uint64_t offset)
{
	struct bucket *buckets = (void *)(region->base + region->size);

	return &buckets[offset / 8 % BUCKETS];
}

static int futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	/* Without FUTEX_PRIVATE_FLAG, because sleepers may be in other processes. */
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0) < 0 ? -errno : 0;
}

static int local_wait(struct kdsm_region *region, uint64_t offset,
		      uint64_t value, uint64_t timeout)
{
	struct bucket *bucket = bucket_of(region, offset);
	uint64_t *word = kdsm_word(region, offset);
	uint64_t begin = kdsm_now();
	struct timespec ts;
	uint64_t left;
	uint32_t turn;
	int ret;

	while (kd_scheduler && __atomic_load_n(word, __ATOMIC_SEQ_CST) == value)
		if (!kd_scheduler->block(word, kdsm_left(begin, timeout)))
			return -ETIMEDOUT;
	__atomic_fetch_add(&bucket->waiters, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		turn = __atomic_load_n(&bucket->turn, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
			ret = 0;
			break;
		}
		left = kdsm_left(begin, timeout);
		if (!left) {
			ret = -ETIMEDOUT;
			break;
		}
		ts.tv_sec = left / 1000000000;
		ts.tv_nsec = left % 1000000000;
		ret = futex(&bucket->turn, FUTEX_WAIT, turn,
			    timeout == KDSM_FOREVER ? NULL : &ts);
		if (ret == -EINTR)
			break;
	}
	__atomic_fetch_sub(&bucket->waiters, 1, __ATOMIC_SEQ_CST);
	return ret;
}

static int local_wake(struct kdsm_region *region, uint64_t offset)
{
	struct bucket *bucket = bucket_of(region, offset);

	if (kd_scheduler)
		kd_scheduler->wake(kdsm_word(region, offset));
	if (!__atomic_load_n(&bucket->waiters, __ATOMIC_SEQ_CST))
		return 0;
	__atomic_fetch_add(&bucket->turn, 1, __ATOMIC_SEQ_CST);
	futex(&bucket->turn, FUTEX_WAKE, INT_MAX, NULL);
	return 0;
}

/*
 * All threads and children share one copy of a coherent region, so there are no writes to
 * announce and no stale copies: a full barrier is enough.
 */
static int local_release(struct kdsm_region *region, struct kdsm_signature *signature)
{
	(void)region;
	__sync_synchronize();
	if (signature)
		kdsm_signature_init(signature);
	return 0;
}

static int local_acquire(struct kdsm_region *region,
			 const struct kdsm_signature *signature)
{
	(void)region;
	(void)signature;
	__sync_synchronize();
	return 0;
}

/* Every block is always resident, and no other node can own it. */
static int local_advise(struct kdsm_region *region, enum kdsm_advice advice,
			uint64_t offset, uint64_t length)
{
	(void)region;
	(void)advice;
	(void)offset;
	(void)length;
	return 0;
}

/* Nothing is merged where all share one copy. */
static int local_races(struct kdsm_region *region, struct kdsm_races *arg)
{
	(void)region;
	arg->count = 0;
	arg->next = 0;
	return 0;
}

/* No other node dies. */
static int local_lost(struct kdsm_region *region, struct kdsm_lost *arg)
{
	arg->count = 0;
	arg->next = region->size;
	return 0;
}

static int local_discard(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	(void)region;
	(void)offset;
	(void)length;
	return 0;
}

const struct kdsm_backend kdsm_local_backend = {
	.close = local_close,
	.location = local_location,
	.bind = local_bind,
	.unbind = local_unbind,
	.map = local_map,
	.destroy = local_destroy,
	.submit = local_submit,
	.complete = local_complete,
	.wait = local_wait,
	.wake = local_wake,
	.release = local_release,
	.acquire = local_acquire,
	.advise = local_advise,
	.races = local_races,
	.lost = local_lost,
	.discard = local_discard,
	.locks = &kdsm_local_locks,
};

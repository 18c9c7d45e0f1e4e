// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Signatures as programs use them: merging, sending, receiving. How the module fills and
 * applies signatures is in kmod/coherence/signature.c.
 */
#include <errno.h>
#include <string.h>
#include <kdsm/coherent.h>
#include "core/core.h"

void kdsm_signature_init(struct kdsm_signature *signature)
{
	memset(signature, 0, KDSM_SIGNATURE_BYTES(0));
}

static unsigned int writer_of(const struct kdsm_notice *notice, uint64_t block)
{
	return notice->writer + (notice->share ? (block - notice->first) / notice->share : 0);
}

/* Whether one makes other redundant: it has the same timestamp, all blocks, and their writers */
static bool covers(const struct kdsm_notice *one, const struct kdsm_notice *other)
{
	return one->ts == other->ts && one->first <= other->first &&
	       other->first - one->first + other->count <= one->count &&
	       (other->writer == KDSM_WRITER_UNKNOWN ||
		(other->writer == writer_of(one, other->first) &&
		 (!other->share || other->share == one->share)));
}

/* Notices of two signatures, in descending order of their timestamps */
struct newest {
	struct kdsm_notice list[2 * KDSM_NOTICES_MAX];
	unsigned int count;
};

static void newest_add(struct newest *newest, const struct kdsm_notice *notice)
{
	unsigned int i;

	/* Drop covered notices, so that merging the same signature again changes nothing. */
	for (i = newest->count; i && newest->list[i - 1].ts == notice->ts; i--) {
		if (covers(&newest->list[i - 1], notice))
			return;
		if (covers(notice, &newest->list[i - 1]))
			newest->list[i - 1] = newest->list[--newest->count];
	}
	newest->list[newest->count++] = *notice;
}

static unsigned int bounded(const struct kdsm_signature *signature)
{
	return signature->count < KDSM_NOTICES_MAX ? signature->count : KDSM_NOTICES_MAX;
}

void kdsm_signature_merge(struct kdsm_signature *signature,
			  const struct kdsm_signature *other)
{
	unsigned int i = bounded(signature), j = bounded(other);
	struct newest newest;

	newest.count = 0;
	while (i || j) {
		if (!j || (i && signature->notices[i - 1].ts > other->notices[j - 1].ts))
			newest_add(&newest, &signature->notices[--i]);
		else
			newest_add(&newest, &other->notices[--j]);
	}
	signature->floor = kdsm_larger(signature->floor, other->floor);
	if (newest.count > KDSM_NOTICES_MAX)
		newest.count = kdsm_notices_join(newest.list, newest.count, KDSM_NOTICES_MAX);
	if (newest.count > KDSM_NOTICES_MAX) {
		signature->floor = kdsm_larger(signature->floor, newest.list[KDSM_NOTICES_MAX].ts);
		newest.count = KDSM_NOTICES_MAX;
	}
	/* The floor covers these notices. */
	while (newest.count && newest.list[newest.count - 1].ts <= signature->floor)
		newest.count--;
	signature->count = newest.count;
	for (i = 0; i < newest.count; i++)
		signature->notices[i] = newest.list[newest.count - 1 - i];
}

/* Layout of a place: the value, then the used bytes of the signature */
enum {
	VALUE = 0,
	BYTES = 8,
};

_Static_assert(BYTES + sizeof(struct kdsm_signature) <= KDSM_SIGNATURE_PLACE,
	       "the signature outgrew its place");
_Static_assert(sizeof(struct kdsm_signature) == KDSM_SIGNATURE_BYTES(KDSM_NOTICES_MAX) &&
	       KDSM_SIGNATURE_BYTES(1) % 8 == 0, "signatures are words");

void kdsm_signature_ops(struct kdsm_op ops[2], unsigned int node, uint64_t offset,
			const struct kdsm_signature *signature, const uint64_t *value)
{
	ops[0] = kdsm_op_put(node, offset + BYTES, signature,
			     KDSM_SIGNATURE_BYTES(bounded(signature)));
	ops[1] = kdsm_op_put(node, offset + VALUE, value, sizeof(*value));
	ops[1].flags = KDSM_OP_NOTIFY;
}

int kdsm_signature_put(struct kdsm_region *sync, unsigned int node, uint64_t offset,
		       const struct kdsm_signature *signature, uint64_t value)
{
	struct kdsm_op ops[2];

	if (offset & 7)
		return -EINVAL;
	kdsm_signature_ops(ops, node, offset, signature, &value);
	return kdsm_vector(sync, ops, 2);
}

/* Load whole words by single loads, because a device may have stored them. */
static void load_words(const struct kdsm_region *region, uint64_t offset, void *to,
		       size_t length)
{
	const uint64_t *from = kdsm_word(region, offset);
	uint64_t word;
	size_t i;

	for (i = 0; i < length / 8; i++) {
		word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		memcpy((char *)to + 8 * i, &word, 8);
	}
}

int kdsm_signature_get(const struct kdsm_region *sync, uint64_t offset,
		       struct kdsm_signature *signature)
{
	unsigned int head = KDSM_SIGNATURE_BYTES(0);

	load_words(sync, offset + BYTES, signature, head);
	if (signature->count > KDSM_NOTICES_MAX || signature->reserved) {
		kdsm_signature_init(signature);
		return kd_because(-EPROTO,
				  "region \"%s\": there is no signature at offset %" PRIu64,
				  sync->name, offset);
	}
	load_words(sync, offset + BYTES + head, signature->notices,
		   KDSM_SIGNATURE_BYTES(signature->count) - head);
	return 0;
}

int kdsm_signature_wait(struct kdsm_region *sync, uint64_t offset, uint64_t value,
			uint64_t timeout, struct kdsm_signature *signature)
{
	int ret = kd_place_check(sync, offset, 8, KDSM_SIGNATURE_PLACE);

	if (!ret)
		ret = kdsm_await(sync, offset + VALUE, value, timeout);
	return ret ? ret : kdsm_signature_get(sync, offset, signature);
}

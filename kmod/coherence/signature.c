// SPDX-License-Identifier: GPL-2.0
/* Bounded signatures; see coherence.h. There are no locks: the caller guards the signature. */
#include <linux/minmax.h>
#include <linux/string.h>

#include "internal.h"

void kdsm_signature_init(struct kdsm_signature *signature)
{
	memset(signature, 0, sizeof(*signature));
}

/*
 * Take the blocks that a newer notice covers off the ends of an older notice. The newer
 * notice suffices for these blocks, because an owner made it, and that owner's content had
 * the older writes. The same holds for a notice of equal timestamp: it is the same
 * writer's, or covers other blocks. Returns false if no block is left.
 */
static bool kdsm_notice_trim(struct kdsm_notice *notice, const struct kdsm_notice *newer)
{
	u64 end = notice->first + notice->count, newer_end = newer->first + newer->count;

	if (newer->first <= notice->first && newer_end > notice->first) {
		notice->first = min(newer_end, end);
		notice->count = end - notice->first;
	} else if (newer->first < end && newer_end >= end) {
		notice->count = newer->first - notice->first;
	}
	return notice->count;
}

bool kdsm_signature_add(struct kdsm_signature *signature, const struct kdsm_notice *added)
{
	struct kdsm_notice *list = signature->notices, trimmed = *added, *notice = &trimmed;
	unsigned int at = signature->count, i, left = 0;

	if (notice->ts <= signature->floor)
		return false;
	while (at && list[at - 1].ts >= notice->ts)
		if (!kdsm_notice_trim(notice, &list[--at]))
			return false;
	for (i = 0; i < at; i++)
		if (kdsm_notice_trim(&list[i], notice))
			list[left++] = list[i];
	memmove(&list[left], &list[at], (signature->count - at) * sizeof(*list));
	signature->count -= at - left;
	at = left;
	if (signature->count < KDSM_NOTICES_MAX) {
		memmove(&list[at + 1], &list[at], (signature->count - at) * sizeof(*list));
		signature->count++;
	} else if (at) {
		WRITE_ONCE(signature->floor, max(signature->floor, list[0].ts));
		memmove(&list[0], &list[1], --at * sizeof(*list));
	} else {
		WRITE_ONCE(signature->floor, notice->ts);
		return true;
	}
	list[at] = *notice;
	return true;
}

void kdsm_signature_raise(struct kdsm_signature *signature, u64 floor)
{
	unsigned int gone = 0;

	if (floor <= signature->floor)
		return;
	WRITE_ONCE(signature->floor, floor);
	while (gone < signature->count && signature->notices[gone].ts <= floor)
		gone++;
	signature->count -= gone;
	memmove(signature->notices, signature->notices + gone,
		signature->count * sizeof(*signature->notices));
}

u64 kdsm_signature_newest(const struct kdsm_signature *signature, unsigned int *writer)
{
	u64 newest = signature->floor;
	unsigned int i;

	*writer = KDSM_NOBODY;
	/* A signature that comes from a program may have any order */
	for (i = 0; i < signature->count; i++) {
		if (signature->notices[i].ts <= newest)
			continue;
		newest = signature->notices[i].ts;
		*writer = signature->notices[i].writer;
	}
	return newest;
}

const struct kdsm_notice *kdsm_signature_find(const struct kdsm_signature *signature, u64 index,
					      unsigned int node)
{
	const struct kdsm_notice *notice;
	unsigned int i;

	for (i = signature->count; i--;) {
		notice = &signature->notices[i];
		if (notice->writer != node && index >= notice->first &&
		    index - notice->first < notice->count)
			return notice;
	}
	return NULL;
}

void kdsm_signature_flatten(struct kdsm_signature *signature)
{
	unsigned int writer;
	u64 floor = kdsm_signature_newest(signature, &writer);

	kdsm_signature_init(signature);
	signature->floor = floor;
}

bool kdsm_signature_sane(const struct kdsm_signature *signature, unsigned int nodes,
			 u64 blocks)
{
	unsigned int i;

	if (signature->count > KDSM_NOTICES_MAX || signature->reserved)
		return false;
	for (i = 0; i < signature->count; i++) {
		const struct kdsm_notice *notice = &signature->notices[i];

		if (notice->writer >= nodes || !notice->count || notice->reserved ||
		    notice->first >= blocks || notice->count > blocks - notice->first)
			return false;
	}
	return true;
}

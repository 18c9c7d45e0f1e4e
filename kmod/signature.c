// SPDX-License-Identifier: GPL-2.0
/* Bounded signatures; see signature.h. No locks: who holds one guards it. */
#include <linux/minmax.h>
#include <linux/string.h>

#include "signature.h"

void kdsm_signature_init(struct kdsm_signature *signature)
{
	memset(signature, 0, sizeof(*signature));
}

static bool kdsm_notice_covers(const struct kdsm_notice *notice,
			       const struct kdsm_notice *other)
{
	return notice->ts == other->ts && notice->writer == other->writer &&
	       notice->first <= other->first &&
	       other->first - notice->first + (u64)other->count <= notice->count;
}

bool kdsm_signature_add(struct kdsm_signature *signature,
			const struct kdsm_notice *notice)
{
	struct kdsm_notice *list = signature->notices;
	unsigned int at = signature->count;

	if (notice->ts <= signature->floor)
		return false;
	while (at && list[at - 1].ts > notice->ts)
		at--;
	for (unsigned int i = at; i && list[i - 1].ts == notice->ts; i--)
		if (kdsm_notice_covers(&list[i - 1], notice))
			return false;
	if (signature->count < KDSM_NOTICES_MAX) {
		memmove(&list[at + 1], &list[at], (signature->count - at) * sizeof(*list));
		signature->count++;
	} else if (at) {
		signature->floor = max(signature->floor, list[0].ts);
		memmove(&list[0], &list[1], --at * sizeof(*list));
	} else {
		signature->floor = notice->ts;
		return true;
	}
	list[at] = *notice;
	return true;
}

void kdsm_signature_merge(struct kdsm_signature *signature,
			  const struct kdsm_signature *other)
{
	unsigned int gone = 0, i;

	for (i = 0; i < other->count; i++)
		kdsm_signature_add(signature, &other->notices[i]);
	if (other->floor <= signature->floor)
		return;
	/* What the floor says now need not be listed. */
	signature->floor = other->floor;
	while (gone < signature->count &&
	       signature->notices[gone].ts <= signature->floor)
		gone++;
	signature->count -= gone;
	memmove(signature->notices, signature->notices + gone,
		signature->count * sizeof(*signature->notices));
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

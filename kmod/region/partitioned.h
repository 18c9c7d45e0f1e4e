/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations that programs submit on the region of a file, and waiting for words.
 */
#ifndef KDSM_PGAS_H
#define KDSM_PGAS_H

#include <linux/kdsm.h>
#include <linux/list.h>
#include <linux/spinlock.h>

struct kdsm_region;

/* What a bound file has under way. */
struct kdsm_submissions {
	struct kdsm_region *region;
	bool may_write;
	spinlock_t lock;	/* guards what follows */
	struct list_head list;	/* submitted, not completed */
	u64 last_ticket;
	unsigned int count;
	u64 bytes;
};

void kdsm_submissions_init(struct kdsm_submissions *submissions,
			   struct kdsm_region *region, bool may_write);
/* Wait for all that is under way, in bounded time, and forget it. */
void kdsm_submissions_drain(struct kdsm_submissions *submissions);

int kdsm_pgas_submit(struct kdsm_submissions *submissions, struct kdsm_submit *args);
int kdsm_pgas_complete(struct kdsm_submissions *submissions,
		       const struct kdsm_complete *args);
int kdsm_pgas_wait(struct kdsm_region *region, const struct kdsm_wait *args);
int kdsm_pgas_wake(struct kdsm_region *region, const struct kdsm_wake *args);

#endif /* KDSM_PGAS_H */

// SPDX-License-Identifier: GPL-2.0
/* Accounts of the bytes that memories hold; see struct kdsm_account. memory.c charges them. */
#include <linux/mm.h>

#include "internal.h"

/* Upper bound of an account plus spare, in bytes; U64_MAX: none */
static u64 kdsm_account_bound(const struct kdsm_account *account, u64 spare)
{
	unsigned int percent = account->percent ? READ_ONCE(*account->percent) : 100;
	u64 limit = READ_ONCE(account->limit), bound = U64_MAX;

	if (percent < 100)
		bound = (u64)totalram_pages() * percent / 100 << PAGE_SHIFT;
	if (limit)
		bound = min(bound, limit);
	return bound < U64_MAX - spare ? bound + spare : U64_MAX;
}

u64 kdsm_account_limit(const struct kdsm_account *account)
{
	return kdsm_account_bound(account, 0);
}

bool kdsm_account_charge(struct kdsm_account *account, u64 bytes, u64 spare)
{
	struct kdsm_account *a;

	for (a = account; a; a = a->parent) {
		if (atomic64_add_return(bytes, &a->bytes) <= kdsm_account_bound(a, spare))
			continue;
		atomic64_sub(bytes, &a->bytes);
		for (; account != a; account = account->parent)
			atomic64_sub(bytes, &account->bytes);
		return false;
	}
	return true;
}

void kdsm_account_uncharge(struct kdsm_account *account, u64 bytes)
{
	for (; account; account = account->parent)
		atomic64_sub(bytes, &account->bytes);
}

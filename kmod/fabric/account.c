// SPDX-License-Identifier: GPL-2.0
/* Accounts of the bytes that memories hold; see struct kdsm_account. memory.c charges them. */
#include <linux/mm.h>

#include "internal.h"

u64 kdsm_account_limit(const struct kdsm_account *account)
{
	unsigned int percent = account->percent ? READ_ONCE(*account->percent) : 100;

	return percent < 100 ? (u64)totalram_pages() * percent / 100 << PAGE_SHIFT : U64_MAX;
}

bool kdsm_account_charge(struct kdsm_account *account, u64 bytes)
{
	struct kdsm_account *a;

	for (a = account; a; a = a->parent) {
		if (atomic64_add_return(bytes, &a->bytes) <= kdsm_account_limit(a))
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

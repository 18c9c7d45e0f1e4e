/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hashes of the table; its entries are in <linux/kdsm_table.h>. */
#ifndef KD_TABLE_ENTRY_H
#define KD_TABLE_ENTRY_H

#include <stdint.h>

#include <linux/kdsm_table.h>

#include <kdsm/table.h>

/* The full product of two words, folded: wyhash's mixing step. */
static inline uint64_t kd_mix(uint64_t x, uint64_t y)
{
	unsigned __int128 product = (unsigned __int128)x * y;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t kd_hash(uint64_t a, uint64_t b)
{
	uint64_t h = kd_mix(a ^ UINT64_C(0x9e3779b97f4a7c15),
			    b ^ UINT64_C(0xd6e8feb86659fd93));

	return kd_mix(h, UINT64_C(0xa0761d6478bd642f));
}

/* A number below range, from the high bits of the hash. */
static inline uint64_t kd_reduce(uint64_t hash, uint64_t range)
{
	return (uint64_t)(((unsigned __int128)hash * range) >> 64);
}

#endif /* KD_TABLE_ENTRY_H */

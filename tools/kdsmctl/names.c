// SPDX-License-Identifier: GPL-2.0
/* Names of counters, see names.h. */
#include "names.h"

const char *const stat_names[KDSM_STAT_COUNT] = {
	[KDSM_STAT_GET] = "get",
	[KDSM_STAT_PUT] = "put",
	[KDSM_STAT_PUT_NOTIFY] = "put_notify",
	[KDSM_STAT_CAS] = "cas",
	[KDSM_STAT_FAA] = "faa",
	[KDSM_STAT_AM] = "am",
	[KDSM_STAT_AM_CAS] = "am_cas",
	[KDSM_STAT_AM_FAA] = "am_faa",
	[KDSM_STAT_AM_GET] = "am_get",
	[KDSM_STAT_AM_SERVED] = "am_served",
	[KDSM_STAT_GET_BYTES] = "get_bytes",
	[KDSM_STAT_PUT_BYTES] = "put_bytes",
	[KDSM_STAT_CHAINS] = "chains",
	[KDSM_STAT_ERRORS] = "errors",
	[KDSM_STAT_WAIT_POLLED] = "wait_polled",
	[KDSM_STAT_WAIT_SLEPT] = "wait_slept",
	[KDSM_STAT_CREDIT_WAITS] = "credit_waits",
	[KDSM_STAT_AM_FIND] = "am_find",
	[KDSM_STAT_AM_STEAL] = "am_steal",
	[KDSM_STAT_REGISTRATIONS] = "registrations",
	[KDSM_STAT_KEYS] = "keys",
	[KDSM_STAT_AM_DEFERRED] = "am_deferred",
};

const char *const latency_names[KDSM_LATENCY_COUNT] = {
	[KDSM_LATENCY_GET] = "get",
	[KDSM_LATENCY_PUT] = "put",
	[KDSM_LATENCY_PUT_NOTIFY] = "put_notify",
	[KDSM_LATENCY_CAS] = "cas",
	[KDSM_LATENCY_FAA] = "faa",
	[KDSM_LATENCY_FIND] = "find",
	[KDSM_LATENCY_STEAL] = "steal",
	[KDSM_LATENCY_MIXED] = "mixed",
	[KDSM_LATENCY_MESSAGE] = "message",
	[KDSM_LATENCY_READ] = "read",
	[KDSM_LATENCY_WRITE] = "write",
	[KDSM_LATENCY_LOCK] = "lock",
};

const struct coherence_name coherence_names[KDSM_COHERENCE_COUNT] = {
	[KDSM_COHERENCE_OWNED] = { "owned", "blocks owned", true },
	[KDSM_COHERENCE_READABLE] = { "readable", "blocks readable", true },
	[KDSM_COHERENCE_WRITABLE] = { "writable", "blocks writable", true },
	[KDSM_COHERENCE_INVALID] = { "invalid", "blocks invalid", true },
	[KDSM_COHERENCE_READ_FAULTS] = { "read_faults", "read faults", false },
	[KDSM_COHERENCE_WRITE_FAULTS] = { "write_faults", "write faults", false },
	[KDSM_COHERENCE_UPGRADES] = { "upgrades", "blocks into the write set", false },
	[KDSM_COHERENCE_FAST_READS] = { "fast_reads", "misses, writer known", false },
	[KDSM_COHERENCE_SLOW_READS] = { "slow_reads", "misses, owner asked", false },
	[KDSM_COHERENCE_FAST_RELEASES] = { "fast_releases", "blocks released as owner", false },
	[KDSM_COHERENCE_SLOW_RELEASES] = { "slow_releases", "blocks taken over", false },
	[KDSM_COHERENCE_MIGRATIONS] = { "migrations", "blocks handed over", false },
	[KDSM_COHERENCE_INVALIDATIONS] = { "invalidations", "invalidations", false },
	[KDSM_COHERENCE_MERGES] = { "merges", "merges", false },
	[KDSM_COHERENCE_RACES] = { "races", "data races seen", false },
	[KDSM_COHERENCE_RENEWALS] = { "renewals", "misses, copy still current", false },
	[KDSM_COHERENCE_LOST] = { "lost", "blocks lost", true },
	[KDSM_COHERENCE_LOOKED] = { "looked", "looked at by acquires", false },
	[KDSM_COHERENCE_FLUSHES] = { "flushes", "ranges remapped", false },
	[KDSM_COHERENCE_BYTES] = { "bytes", "bytes brought here", false },
	[KDSM_COHERENCE_EVICTIONS] = { "evictions", "chunks evicted", false },
	[KDSM_COHERENCE_PUSHES] = { "pushes", "pushes of blocks", false },
};

const struct refusal refusals[REFUSALS + 1] = {
	{ "cluster", KDSM_A_REFUSED_CLUSTER }, { "version", KDSM_A_REFUSED_VERSION },
	{ "node", KDSM_A_REFUSED_NODE }, { "port", KDSM_A_REFUSED_PORT },
	{ "key", KDSM_A_REFUSED_KEY }, { "proof", KDSM_A_REFUSED_PROOF },
	{ "silent", KDSM_A_REFUSED_SILENT }, { "message", KDSM_A_REFUSED_MESSAGE },
	{ 0 }
};

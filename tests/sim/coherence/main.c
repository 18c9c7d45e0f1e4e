// SPDX-License-Identifier: GPL-2.0
/* The simulation of the coherence protocols: options, seeds, counters. */
#include <stdio.h>

#include "common/cli.h"
#include "sim.h"

struct config config;
struct counts counts;

static struct options {
	struct sim_options common;
	const char *policy;		/* NULL: odd seeds release, even ones strict */
	unsigned int blocks;		/* 0: the seed chooses */
	uint64_t block_size;		/* in bytes; 0: the seed chooses */
	unsigned int segments;		/* 0: the seed chooses */
	uint64_t endless;		/* in ns; 0: programs end */
	unsigned int writers, fair;
	const char *costs;		/* name of a pattern; NULL: other programs */
	unsigned int deaths, limit;
	bool away, shortage, litmus, discard;
} options = { .common = SIM_OPTIONS(2, 8), .writers = 2 };

/*
 * In sim_defect.data: the defect shows only with policy strict; if nodes die; if one is away; as
 * unfairness to programs without end; if memory is short; in costs; if programs discard lost
 * blocks; if memory is limited
 */
#define STRICT	1
#define DEATHS	2
#define AWAY	4
#define UNFAIR	8
#define SHORTAGE	16
#define COSTS	32
#define DISCARD	64
#define LIMIT	128

static const struct sim_defect defects[BREAK_COUNT + 1] = {
	[BREAK_RTS] = { "rts", "an owner that is read does not raise the read timestamp" },
	[BREAK_TWIN] = { "twin", "no twin is made when a block is handed over" },
	[BREAK_NOTICE] = { "notice", "one write notice in 20 is dropped" },
	[BREAK_FLOOR] = { "floor", "an acquire ignores the signature's floor" },
	[BREAK_SUMMARY] = { "summary", "a summary has the timestamp of the oldest notice" },
	[BREAK_RAISED] = { "raised", "no acquire looks at what new summaries demand" },
	[BREAK_DIRTY] = { "dirty", "one dirty bit in 20 is not seen by a harvest" },
	[BREAK_MERGE] = { "merge", "a merge takes the remote content and drops the local writes" },
	[BREAK_UNMAP] = { "unmap", "one range in 20 is not unmapped" },
	[BREAK_FORGET] = { "forget", "a node forgets to which node it handed a block over" },
	[BREAK_OLD] = { "old", "a node follows links that are older than what it knows",
			false, STRICT },
	[BREAK_NUMBER] = { "number", "a node does not know which hand-over it had last" },
	[BREAK_LEASE] = { "lease", "the read timestamp does not go with the ownership" },
	[BREAK_FLUSH] = { "flush", "one TLB flush in 4 does not happen" },
	[BREAK_AHEAD] = { "ahead", "a block that came along with a miss is taken although stale" },
	[BREAK_STAMP] = { "stamp", "a stamp promises more than its owner's read timestamp" },
	[BREAK_ORDER] = { "order", "no fence between the reads of a stamp and of its content" },
	[BREAK_LATE] = { "late", "a process unmaps without a notification" },
	[BREAK_END] = { "end", "unmapped blocks are marked before TLBs are flushed" },
	[BREAK_KEEP] = { "keep", "a twin does not become what a read miss merges" },
	[BREAK_SKIP] = { "skip", "a takeover does not read content that is newer than the copy" },
	[BREAK_ORIGIN] = { "origin", "a takeover trusts a copy that came from another node" },
	[BREAK_DOUBT] = { "doubt", "a hand-over forgets writes that harvests have not shown yet" },
	[BREAK_DIRECT] = { "direct", "a takeover trusts a copy that it read after the hand-over",
			   false, SHORTAGE },
	[BREAK_RACE] = { "race", "one data race in 4 is not reported" },
	[BREAK_BLAME] = { "blame", "a data race names another node" },
	[BREAK_LEARN] = { "learn", "a miss ignores what notices say of the block" },
	[BREAK_SAME] = { "same", "a lease is renewed although the content has changed" },
	[BREAK_ATOMIC] = { "atomic", "an atomic operation acts on the copy that its node has" },
	[BREAK_WEAK] = { "weak", "an atomic operation does not acquire" },
	[BREAK_SOON] = { "soon", "an atomic operation relies on an acquire that has not ended" },
	[BREAK_ASK] = { "ask", "a miss in a refreshed range does not ask the owner" },
	[BREAK_DROP] = { "drop", "a node forgets a block that it had" },
	[BREAK_READER] = { "reader", "one reader in 10 is not asked to drop its copy",
			   false, STRICT },
	[BREAK_EARLY] = { "early", "a writer does not wait for the leases of readers",
			  false, STRICT },
	[BREAK_STALE] = { "stale", "a reader uses what it fetched although it must drop it",
			  false, STRICT },
	[BREAK_SET] = { "set", "the set of readers does not go with the ownership",
			false, STRICT },
	[BREAK_PROTECT] = { "protect", "one lent block in 10 stays mapped for writing",
			    false, STRICT },
	[BREAK_DEFER] = { "defer", "one range in 10 is unmapped too late",
			  false, STRICT },
	[BREAK_MAP] = { "map", "one mapping in 20 is writable in any state of the block",
			false, STRICT },
	[BREAK_LOCK] = { "lock", "one mapping in 4 is made without the block's lock",
			 false, STRICT },
	[BREAK_HASTE] = { "haste", "leases have no length", false, STRICT },
	[BREAK_FETCH] = { "fetch", "a reader gives up a copy, and goes on to fetch it",
			  false, STRICT },
	[BREAK_QUEUE] = { "queue", "a node forgets readers that it has queued", false, UNFAIR },
	[BREAK_LINE] = { "line", "readers pass the writers that are queued", false, UNFAIR },
	[BREAK_CANCEL] = { "cancel", "a writer ends loans that readers have not used yet",
			   false, UNFAIR },
	[BREAK_DEAD] = { "dead", "a reader that died stays in the set of readers",
			 false, STRICT | DEATHS },
	[BREAK_LOST] = { "lost", "a release ends at the first block that it cannot take over",
			 false, DEATHS },
	[BREAK_CLAIM] = { "claim", "a node discards a block although another one refuses",
			  false, DEATHS | DISCARD },
	[BREAK_DONE] = { "done", "a node keeps its copy of a block that another node discards",
			 false, DEATHS | DISCARD },
	[BREAK_EXCLUDE] = { "exclude", "a node does not ask whether others excluded it",
			    false, AWAY | DISCARD },
	[BREAK_BLIND] = { "blind", "an atomic operation does not ask whether its node is excluded",
			  false, AWAY | DISCARD },
	[BREAK_CLOSE] = { "close", "a region's inode goes before its hand-overs have ended",
			  false, STRICT },
	[BREAK_PLACE] = { "place", "a queued node asks the node in front again, not along links",
			  false, SHORTAGE },
	[BREAK_CIRCLE] = { "circle", "a node is sent from successor to successor without end",
			   false, SHORTAGE },
	[BREAK_BEHIND] = { "behind", "after an acquire without memory, the next sees only its news",
			   false, SHORTAGE },
	[BREAK_KEY] = { "key", "a node reads from memory that another node has made again",
			false, LIMIT },
	[BREAK_UNREAD] = { "unread", "a node evicts what the next owner has not read",
			   false, LIMIT },
	[BREAK_KEPT] = { "kept", "a node evicts content that it alone has", false, LIMIT },
	[BREAK_MEMO] = { "memo", "a node that does not hold a block forgets the hand-over's number",
			 false, LIMIT },
	[BREAK_LINK] = { "link", "a node that does not hold a block forgets its owner",
			 false, LIMIT },
	[BREAK_PAST] = { "past", "a node that does not hold a block forgets what it wrote there",
			 false, LIMIT },
	[BREAK_RECORD] = { "record", "a node forgets the writes to a block that no task uses" },
	[BREAK_COVER] = { "cover", "one copy in 4 has no lease" },
	[BREAK_COPIES] = { "copies", "an owner forgets the readers of a block that no task uses",
			   false, STRICT },
	[BREAK_STAY] = { "stay", "a node forgets how long it keeps a block that no task uses",
			 false, STRICT },
	[BREAK_WALK] = { "walk", "an acquire looks at all blocks", false, COSTS },
	[BREAK_TIE] = { "tie", "a node that was given up keeps its copies", false, STRICT | AWAY },
	[BREAK_LOAN] = { "loan", "a reader takes up late loans", false, STRICT | AWAY },
};

/* ---- options ---- */

static const char *const policies[] = { "release", "strict", NULL };

static const struct cli_option table[] = {
	{ "policy", 'P', "POLICY",
	  "Policy of all seeds, release or strict (odd seeds: release, even ones: strict)",
	  CLI_WORD, .offset = offsetof(struct options, policy), .words = policies },
	{ "blocks", 'B', "COUNT", "Blocks that programs use (1 to 8, as the seed chooses)",
	  CLI_COUNT, .offset = offsetof(struct options, blocks), .range = { 1, BLOCKS_MAX, 1 } },
	{ "block-size", 'z', "SIZE", "Size of a block, 4K to 2M (4K or 8K, as the seed chooses)",
	  CLI_SIZE, .offset = offsetof(struct options, block_size),
	  .range = { PAGE_SIZE, 512 * PAGE_SIZE, PAGE_SIZE } },
	{ "segments", 'g', "COUNT",
	  "Segments of the region, with blocks of 4K, 8K or 16K (mostly 1, as the seed chooses)",
	  CLI_COUNT, .offset = offsetof(struct options, segments),
	  .range = { 1, SEGMENTS_MAX, 1 } },
	{ "endless", 'e', "TIME",
	  "Programs without end access one word for TIME, without faults (policy strict)",
	  CLI_TIME, .offset = offsetof(struct options, endless),
	  .range = { 1000000, 10000000000, 1000 } },
	{ "costs", 'c', "PROGRAM",
	  "Print what the accesses of PROGRAM cost, as means of a node: cg, is, matmul, tree, "
	  "migrate or neighbours (policy release)",
	  CLI_WORD, .offset = offsetof(struct options, costs), .words = patterns },
	{ "writers", 'w', "COUNT", "With --endless: nodes that write, the others read (2)",
	  CLI_COUNT, .offset = offsetof(struct options, writers),
	  .range = { 0, KDSM_MAX_NODES, 1 } },
	{ "fair", 'f', "TIMES",
	  "With --endless: fail if a request waits longer than TIMES times the mean", CLI_COUNT,
	  .offset = offsetof(struct options, fair), .range = { 1, 1000000, 1 } },
	{ "deaths", 'd', "COUNT", "Nodes that die for good, half of which reboot (0)",
	  CLI_COUNT, .offset = offsetof(struct options, deaths), .range = { 0, 64, 1 } },
	{ "discard", 'D', NULL,
	  "With --deaths or --away: let programs discard lost blocks, in the end all of them",
	  CLI_FLAG, .offset = offsetof(struct options, discard) },
	{ "away", 'a', NULL, "Cut one node off for so long that others give it up", CLI_FLAG,
	  .offset = offsetof(struct options, away) },
	{ "shortage", 'm', NULL,
	  "Let allocations fail in every seed, now and then or all of one node for a while",
	  CLI_FLAG, .offset = offsetof(struct options, shortage) },
	{ "limit", 'E', "COUNT",
	  "Chunks, of frames and twins, that a node may hold: more if the region needs it (any)",
	  CLI_COUNT, .offset = offsetof(struct options, limit), .range = { 2, 1000000, 1 } },
	{ "litmus", 'L', NULL,
	  "Run litmus tests, a form in each seed; fail if an outcome that must be seen is not",
	  CLI_FLAG, .offset = offsetof(struct options, litmus) },
	{ 0 }
};

/* ---- counters ---- */

#define COUNTERS_OWN	64
#define COUNTERS_LITMUS	512

#define STAT(name, stat)	{ name, &counts.stats[KDSM_COHERENCE_##stat] }

static struct sim_counter counters[COUNTERS_OWN + COUNTERS_LITMUS + 1] = {
	{ "loads", &counts.loads },
	{ "stores", &counts.stores },
	{ "acquires", &counts.acquires },
	{ "releases", &counts.releases },
	{ "atomics", &counts.atomics },
	{ "refreshes", &counts.refreshes },
	{ "releases-with-floor", &counts.floors },
	{ "stamps-read", &counts.probes },
	{ "blocks-ahead", &counts.ahead },
	{ "unmaps", &counts.unmaps },
	{ "errors-seen", &counts.errors },
	{ "stalls", &counts.stalls },
	{ "outages", &counts.outages },
	{ "drops", &counts.drops },
	{ "stale-reads", &counts.stale },
	{ "raced", &counts.raced },
	{ "deaths", &counts.deaths },
	{ "reboots", &counts.reboots },
	{ "given-up", &counts.given_up },
	{ "learnt-of-it", &counts.untied },
	{ "owners-unreachable", &counts.unreachable },
	{ "words-spoiled", &counts.spoiled },
	{ "discards", &counts.discards },
	{ "outcasts", &counts.outcasts },
	{ "endless-reads", &counts.reads },
	{ "endless-writes", &counts.writes },
	{ "endless-readers", &counts.read_nodes },
	{ "endless-starved", &counts.starved },
	{ "endless-waits", &counts.waits },
	{ "endless-longest", &counts.longest, true },
	{ "endless-unfair", &counts.unfair, true },
	STAT("read-faults", READ_FAULTS),
	STAT("write-faults", WRITE_FAULTS),
	STAT("upgrades", UPGRADES),
	STAT("fast-reads", FAST_READS),
	STAT("slow-reads", SLOW_READS),
	STAT("fast-releases", FAST_RELEASES),
	STAT("slow-releases", SLOW_RELEASES),
	STAT("migrations", MIGRATIONS),
	STAT("invalidations", INVALIDATIONS),
	STAT("merges", MERGES),
	STAT("races", RACES),
	STAT("flushes", FLUSHES),
	STAT("bytes", BYTES),
	STAT("looked", LOOKED),
	STAT("renewals", RENEWALS),
	STAT("evictions", EVICTIONS),
	STAT("pushes", PUSHES),
};

static void litmus_begin(void)
{
	unsigned int n;

	forms_list(!options.policy || options.policy == policies[0],
		   !options.policy || options.policy == policies[STRICT]);
	for (n = 0; counters[n].name; n++)
		;
	forms_counters(&counters[n], COUNTERS_LITMUS);
}

/* ---- options that need others ---- */

static int check(char *reason)
{
	unsigned int needs = sim_broken ? defects[sim_broken].data : 0;

	if (sim_broken && !options.policy)
		options.policy = policies[needs & STRICT];
	if (needs & DEATHS)
		options.deaths = 1;
	options.away |= needs & AWAY;
	options.shortage |= needs & SHORTAGE;
	if (needs & LIMIT) {
		options.limit = 2;
		options.blocks = 12;
	}
	options.discard |= needs & DISCARD;
	if (needs & UNFAIR) {
		options.endless = 30000000;
		options.common.nodes_min = 32;
		options.common.nodes_max = 32;
		options.writers = 16;
		options.fair = 4;
	}
	if (options.endless) {
		options.policy = policies[STRICT];
		options.common.plain = true;
	}
	if (needs & COSTS && !options.costs)
		options.costs = "neighbours";
	if (options.costs) {
		options.policy = policies[0];
		options.common.plain = true;
	}
	if ((options.litmus || options.costs) &&
	    (options.endless || options.deaths || options.away)) {
		snprintf(reason, REASON_SIZE, "%s need nodes that stay, and end",
			 options.litmus ? "litmus tests" : "costs");
		return -1;
	}
	if (options.litmus && options.costs) {
		snprintf(reason, REASON_SIZE, "--litmus and --costs exclude each other");
		return -1;
	}
	if (options.litmus)
		litmus_begin();
	if (options.block_size & (options.block_size - 1)) {
		snprintf(reason, REASON_SIZE, "the size of a block must be a power of two");
		return -1;
	}
	if (options.segments > 1 && (options.block_size || options.costs)) {
		snprintf(reason, REASON_SIZE, "segments have blocks of sizes that the seed chooses");
		return -1;
	}
	return 0;
}

/* ---- seeds ---- */

/* Choose the sizes of blocks. A chunk has one, two or four of the largest blocks. */
static void choose_sizes(void)
{
	unsigned int largest, i;

	config.segments = options.segments ?: sim_chance(4) ? sim_between(2, SEGMENTS_MAX) : 1;
	config.segment[0].pages = sim_chance(4) ? 2 : 1;
	if (options.block_size) {
		config.segments = 1;
		config.segment[0].pages = options.block_size / PAGE_SIZE;
	}
	largest = config.segment[0].pages;
	for (i = 1; i < config.segments; i++) {
		do
			config.segment[i].pages = 1 << sim_below(3);
		while (config.segment[i].pages == config.segment[i - 1].pages);
		largest = max(largest, config.segment[i].pages);
	}
	sim_evict_shift = ilog2(largest * PAGE_SIZE) + sim_below(3);
}

/* Choose blocks: some are neighbours, some are in other groups, which other nodes own first. */
static void choose_blocks(void)
{
	bool is_large = config.segment[0].pages > 2;
	unsigned int i;
	u64 at;

	config.blocks = options.blocks ?: sim_between(1, BLOCKS_FEW);
	config.index = calloc(config.blocks, sizeof(*config.index));
	at = sim_chance(2) ? 0 : KDSM_CYCLE_BLOCKS - 1 - sim_below(3);
	for (i = 0; i < config.blocks; i++) {
		config.index[i] = at;
		/* Large blocks are neighbours, so that page tables stay small. */
		at += !is_large && sim_chance(6) ? sim_between(2, KDSM_CYCLE_BLOCKS) : 1;
	}
	config.region_blocks = (at / KDSM_CYCLE_BLOCKS + 1) * KDSM_CYCLE_BLOCKS;
	if (sim_chance(2))
		config.region_blocks = at;	/* the last table is not full */
}

/*
 * Begin each segment at a used block. A segment must begin at a chunk, so the numbers of the used
 * blocks rise from that block on. For the second segment the numbers of all used blocks rise, so
 * that the used blocks on both sides of the boundary stay neighbours.
 */
static void choose_segments(void)
{
	unsigned int block = 0, chunk, i, j;
	u64 more;

	for (i = 1; i < config.segments && block + 1 < config.blocks; i++) {
		block = sim_between(block + 1, config.blocks - 1);
		chunk = (1U << sim_evict_shift) / (config.segment[i - 1].pages * PAGE_SIZE);
		more = -(config.index[block] - config.segment[i - 1].first) % chunk;
		for (j = i == 1 ? 0 : block; j < config.blocks; j++)
			config.index[j] += more;
		config.region_blocks += more;
		config.segment[i].first = config.index[block];
	}
	config.segments = i;
}

static void choose_load(void)
{
	config.processes = sim_between(1, PROCESSES_MAX);
	config.threads = sim_between(1, 2);
	choose_sizes();
	choose_blocks();
	choose_segments();
	config.words = sim_between(8, 100);
	if (config.blocks > BLOCKS_FEW)
		config.words = max(config.words, config.blocks);
	config.locks = sim_below(11);
	config.phases = sim_between(1, 4);
	config.rounds = sim_between(2, 16);
	config.values = sim_chance(3) ? sim_between(2, 4) : 0;
}

/* Some allocations fail now and then, or none of a node succeeds for up to 20 ms. */
static void choose_shortage(void)
{
	bool often = sim_broken == BREAK_PLACE || sim_broken == BREAK_CIRCLE;

	if (often || sim_chance(2)) {
		sim.nomem = sim_between(10, often ? 30 : 200);
		return;
	}
	sim.short_node = sim_below(sim.nodes);
	sim.shortage = 1 + sim_below(sim_chance(2) ? 3000 : 30000);
	sim.shortage_end = sim.shortage + sim_between(1, 20000);
}

/*
 * The living nodes together have room for all frames, and each of them also for one frame and one
 * twin for each of its threads.
 */
static void choose_eviction(void)
{
	unsigned int living = sim.nodes - config.deaths - config.away, chunks;

	if (!options.limit || living < 2)
		return;
	chunks = ((region_pages() * PAGE_SIZE - 1) >> sim_evict_shift) + 1;
	chunks = min(chunks, config.blocks);
	config.limit = max(options.limit, chunks / living + 2 +
			   2 * config.processes * config.threads);
	config.reclaim = sim_chance(2) ? 10 : 0;
	/* Unreleased writes to blocks that are lost stay. */
	if (config.deaths || config.away)
		config.limit += chunks;
}

static void choose_faults(void)
{
	config.deaths = min(options.deaths, sim.nodes - 1);
	if (config.deaths && (sim_broken == BREAK_LOST || sim_chance(2))) {
		config.processes = 1;
		config.threads = 1;
	}
	config.away = options.away && sim.nodes - config.deaths > 1;
	config.discard = options.discard && (config.deaths || config.away) ? sim_between(1, 4) : 0;
	if (options.shortage)
		choose_shortage();
	if (options.common.plain)
		return;
	if (sim_chance(12))
		sim.nomem = sim_between(10, 200);
	sim_choose_errors(8, 3);
	if (sim_chance(20))
		config.stall = sim_between(50, 500);
	config.outage = sim_chance(20);
	/* With longer pauses, sim.time_max ends a retry that never succeeds. */
	if (!config.deaths && (config.stall || config.outage || (sim.error && sim_chance(2))))
		sim.pause = 1000;
}

/* Unmap more often for these defects, which few seeds would show otherwise. */
static void choose_for_defect(void)
{
	if (sim_broken == BREAK_END || sim_broken == BREAK_LATE)
		config.unmap = 3;
	if (sim_broken == BREAK_END) {
		/* Threads that continue to use entries of a TLB */
		config.threads = 2;
		config.evict = 50;
		config.processes = 1;
		sim.delay = 200;
	}
}

/* Large seeds may take more steps. */
static void choose_limits(void)
{
	sim.steps_max *= 1 + config.blocks / 50 + config.segment[0].pages / 16;
	/* Nodes that wait for each other because a node died go on after a minute. */
	if (options.deaths)
		sim.steps_max *= 8;
}

/*
 * Requests of all nodes for one block, on links without delays that few messages have. A node
 * takes a step in a microsecond, whatever the number of nodes.
 */
static void choose_endless(void)
{
	config.endless = options.endless / NSEC_PER_USEC;
	config.writers = options.writers;
	config.fair = options.fair;
	config.processes = 1;
	config.threads = 1;
	config.unmap = 0;
	config.advise = 0;
	sim.yield = 1;
	sim.preempt = 0;
	sim.late = 0;
	sim.delay = 5;
	sim.slow = sim.nodes;
	sim.parallel = sim.nodes;
	sim.steps_max *= 20 * sim.nodes;
}

/* Blocks follow each other, links are equal, and one thread of each node runs. */
static void choose_costs(void)
{
	unsigned int i;

	config.costs = true;
	config.processes = 1;
	config.threads = 1;
	config.locks = 1;
	config.values = 0;
	config.unmap = 0;
	config.advise = 0;
	config.race = false;
	config.contiguous = true;
	config.segments = 1;
	config.segment[0].pages = options.block_size ? options.block_size / PAGE_SIZE : 1;
	config.blocks = patterns_choose(options.costs);
	config.region_blocks = config.blocks;
	if (config.blocks > BLOCKS_MAX)
		sim_fail(SIM_NONE, "%u nodes use %u blocks, and at most %u are possible", sim.nodes,
			 config.blocks, BLOCKS_MAX);
	free(config.index);
	config.index = calloc(config.blocks, sizeof(*config.index));
	for (i = 0; i < config.blocks; i++)
		config.index[i] = i;
	sim.yield = 12;
	sim.slow = sim.nodes;
	sim.steps_max = 1ULL << 62;	/* no limit */
}

static u32 choose_policy(u64 seed)
{
	if (options.policy)
		return options.policy == policies[STRICT] ? KDSM_POLICY_STRICT :
		       KDSM_POLICY_RELEASE;
	return seed % 2 ? KDSM_POLICY_RELEASE : KDSM_POLICY_STRICT;
}

static void choose(u64 seed)
{
	memset(&config, 0, sizeof(config));
	config.policy = choose_policy(seed);
	sim.stray = 10000;
	sim.silence = 1000000;
	choose_load();
	sim_choose_schedule();
	sim.slow = sim_chance(4) ? sim_below(sim.nodes) : sim.nodes;
	config.unmap = sim_chance(3) ? 10 : 0;
	config.advise = sim_chance(3) ? 8 : 0;
	config.evict = sim_chance(2) ? 3 : 50;
	choose_for_defect();
	choose_limits();
	config.contiguous = sim_chance(2);
	if (sim_broken == BREAK_FORGET || sim_broken == BREAK_NUMBER || sim_broken == BREAK_OLD ||
	    sim_broken == BREAK_MEMO)
		sim.error = sim_between(3, 30);
	choose_faults();
	choose_eviction();
	config.contiguous_homes = !options.costs && sim_chance(3);
	/* Of the programs only those of race_free.c use them. */
	if (config.policy == KDSM_POLICY_RELEASE && !options.litmus && !options.costs &&
	    sim_chance(2))
		config.atoms = sim_between(1, ATOMS_MAX);
	/*
	 * Dead nodes report nothing, discards drop writes, releases may leave writes, and evictions
	 * release some early.
	 */
	config.race = sim_chance(3) && !config.deaths && !config.discard && !config.away &&
		      !config.limit;
	if (options.endless)
		choose_endless();
	if (options.costs)
		choose_costs();
	config.litmus = options.litmus;
	if (options.litmus)
		forms_choose(seed);
}

static void start(void)
{
	unsigned int i;

	sim_event(SIM_NONE, "policy %s processes %u threads %u blocks %u words %u locks %u",
		  config.policy == KDSM_POLICY_STRICT ? "strict" : "release", config.processes,
		  config.threads, config.blocks, config.words, config.locks);
	for (i = 0; i < config.segments; i++)
		sim_event(SIM_NONE, "from block %llu on, blocks have %u pages",
			  config.segment[i].first, config.segment[i].pages);
	sim_event(SIM_NONE, "phases %u rounds %u values %u unmap %u advise %u evict %u stall %u outage %u",
		  config.phases, config.rounds, config.values, config.unmap, config.advise,
		  config.evict, config.stall, config.outage);
	stalls_start();
	check_start();
	deaths_start();
	nodes_start();
	mappings_start();
	load_start();
}

static bool again(void)
{
	bool faults = sim.error || config.stall || config.outage || config.deaths || config.away;

	if (config.closing)
		return false;
	if (!faults || config.healed) {
		check_end();
		config.closing = true;
		return config.policy == KDSM_POLICY_STRICT ? region_close() : notice_forge();
	}
	sim_fabric_heal();
	config.stall = 0;
	config.outage = false;
	config.away = false;
	config.healed = true;
	load_again();
	return true;
}

static void stop(void)
{
	load_stop();
	mappings_stop();
	nodes_stop();
	deaths_stop();
	check_stop();
	free(config.index);
}

/* ---- the program ---- */

static bool report(void)
{
	unfair_report();
	return !options.litmus || forms_report();
}

const struct sim_program sim_program = {
	.doc = "Runs the coherence protocols on simulated nodes, once for each seed.",
	.options = &options.common,
	.option_table = table,
	.nodes_least = 1,
	.defects = defects,
	.counters = counters,
	.object = "block",
	.message_name = message_names,
	.check = check,
	.report = report,
	.choose = choose,
	.start = start,
	.step = check_step,
	.again = again,
	.stop = stop,
	.send = message_send,
	.delivered = message_delivered,
	.tie = tie_of,
	.serve = serve_message,
	.operate = serve_operation,
	.message_object = message_block,
	.operation_object = operation_block,
};

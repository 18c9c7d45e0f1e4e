// SPDX-License-Identifier: GPL-2.0
/*
 * Metrics as text, see metrics.h. Prometheus's own text format lacks the types "info" and
 * "stateset", and node_exporter refuses a file that has them, so there is none of them here.
 */
#include <inttypes.h>

#include "metrics.h"
#include "names.h"

/* Classes of durations with a bucket of their own: below 256 ns, and up to 17 s */
#define FIRST_BUCKET	7
#define LAST_BUCKET	33

static void family(FILE *out, const char *name, const char *type, const char *unit,
		   const char *help)
{
	fprintf(out, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
	fprintf(out, "# HELP %s %s\n", name, help);
}

/* Names of regions and locks are printable, but may have quotes and backslashes. */
static void label(FILE *out, char before, const char *name, const char *value)
{
	fprintf(out, "%c%s=\"", before, name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			putc('\\', out);
		putc(*value, out);
	}
	putc('"', out);
}

static void gauge(FILE *out, const char *name, uint64_t value, const char *unit, const char *help)
{
	family(out, name, "gauge", unit, help);
	fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void write_node(const struct metrics *metrics, FILE *out)
{
	family(out, "kdsm_node", "gauge", NULL, "Number of this node, with names of its cluster.");
	fputs("kdsm_node", out);
	label(out, '{', "cluster", metrics->cluster);
	label(out, ',', "device", metrics->device);
	fprintf(out, "} %u\n", metrics->node);
	gauge(out, "kdsm_nodes", metrics->nodes, NULL, "Nodes of the cluster.");
	gauge(out, "kdsm_memory_bytes", metrics->memory, "bytes",
	      "Memory of regions on this node.");
	family(out, "kdsm_refused", "counter", NULL,
	       "Connections refused and messages that made no sense, by reason.");
	for (int i = 0; refusals[i].name; i++)
		fprintf(out, "kdsm_refused_total{reason=\"%s\"} %" PRIu64 "\n", refusals[i].name,
			metrics->refused[i]);
}

static void write_peers(const struct metrics *metrics, FILE *out)
{
	const struct metrics_peer *peers = metrics->peers;

	family(out, "kdsm_peer_down", "gauge", NULL,
	       "1 if the node did not answer the last attempt to connect.");
	for (size_t i = 0; i < metrics->peer_count; i++)
		fprintf(out, "kdsm_peer_down{peer=\"%u\"} %d\n", peers[i].node, peers[i].down);
	family(out, "kdsm_peer_connects", "counter", NULL, "Connections made to the node.");
	for (size_t i = 0; i < metrics->peer_count; i++)
		fprintf(out, "kdsm_peer_connects_total{peer=\"%u\"} %" PRIu64 "\n", peers[i].node,
			peers[i].connects);
	family(out, "kdsm_peer_errors", "counter", NULL,
	       "Connections to the node that broke or failed.");
	for (size_t i = 0; i < metrics->peer_count; i++)
		fprintf(out, "kdsm_peer_errors_total{peer=\"%u\"} %" PRIu64 "\n", peers[i].node,
			peers[i].errors);
}

static void write_operations(const struct metrics *metrics, FILE *out)
{
	family(out, "kdsm_operations", "counter", NULL,
	       "Operations on other nodes, and what they needed; see kdsmctl stats.");
	for (int i = 0; i < KDSM_STAT_COUNT; i++)
		if (i != KDSM_STAT_GET_BYTES && i != KDSM_STAT_PUT_BYTES)
			fprintf(out, "kdsm_operations_total{operation=\"%s\"} %" PRIu64 "\n",
				stat_names[i], metrics->stats[i]);
	family(out, "kdsm_transferred_bytes", "counter", "bytes", "Bytes of gets and puts.");
	fprintf(out, "kdsm_transferred_bytes_total{operation=\"get\"} %" PRIu64 "\n",
		metrics->stats[KDSM_STAT_GET_BYTES]);
	fprintf(out, "kdsm_transferred_bytes_total{operation=\"put\"} %" PRIu64 "\n",
		metrics->stats[KDSM_STAT_PUT_BYTES]);
}

static void write_latencies(const struct metrics *metrics, FILE *out)
{
	static const char name[] = "kdsm_latency_seconds";

	family(out, name, "histogram", "seconds",
	       "Durations of operations and waits; see kdsmctl stats --latency.");
	for (int kind = 0; kind < KDSM_LATENCY_COUNT; kind++) {
		const struct latency *latency = &metrics->latencies[kind];
		uint64_t count = 0;

		for (int i = 0; i <= LAST_BUCKET; i++) {
			count += latency->counts[i];
			if (i >= FIRST_BUCKET)
				fprintf(out, "%s_bucket{operation=\"%s\",le=\"%.9g\"} %" PRIu64
					"\n", name, latency_names[kind], (2ULL << i) / 1e9, count);
		}
		fprintf(out, "%s_bucket{operation=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name,
			latency_names[kind], latency_count(latency));
		fprintf(out, "%s_count{operation=\"%s\"} %" PRIu64 "\n", name,
			latency_names[kind], latency_count(latency));
		fprintf(out, "%s_sum{operation=\"%s\"} %.9f\n", name, latency_names[kind],
			latency->sum / 1e9);
	}
}

static void region_sample(FILE *out, const char *name, const struct metrics_region *region,
			  const char *what, const char *which, uint64_t value)
{
	fputs(name, out);
	label(out, '{', "region", region->name);
	if (what)
		label(out, ',', what, which);
	fprintf(out, "} %" PRIu64 "\n", value);
}

static void write_regions(const struct metrics *metrics, FILE *out)
{
	const struct metrics_region *region = metrics->regions;
	const struct metrics_region *end = region + metrics->region_count;

	family(out, "kdsm_region_size_bytes", "gauge", "bytes", "Size of the region.");
	for (region = metrics->regions; region < end; region++)
		region_sample(out, "kdsm_region_size_bytes", region, NULL, NULL, region->size);
	family(out, "kdsm_region_opens", "gauge", NULL, "Files of this node bound to the region.");
	for (region = metrics->regions; region < end; region++)
		region_sample(out, "kdsm_region_opens", region, NULL, NULL, region->opens);
	family(out, "kdsm_region_memory_bytes", "gauge", "bytes",
	       "Memory of the region on this node.");
	for (region = metrics->regions; region < end; region++)
		region_sample(out, "kdsm_region_memory_bytes", region, NULL, NULL,
			      region->coherent ? region->memory : region->resident);
	family(out, "kdsm_region_limit_bytes", "gauge", "bytes",
	       "Upper bound of the memory of the region on this node; 0: none.");
	for (region = metrics->regions; region < end; region++)
		if (region->coherent)
			region_sample(out, "kdsm_region_limit_bytes", region, NULL, NULL,
				      region->limit);
	family(out, "kdsm_region_blocks", "gauge", NULL, "Blocks of this node by state.");
	for (region = metrics->regions; region < end; region++)
		for (int i = 0; region->coherent && i < KDSM_COHERENCE_COUNT; i++)
			if (coherence_names[i].is_current)
				region_sample(out, "kdsm_region_blocks", region, "state",
					      coherence_names[i].name, region->coherence[i]);
	family(out, "kdsm_region_events", "counter", NULL,
	       "Counters of coherence; see kdsmctl region show.");
	for (region = metrics->regions; region < end; region++)
		for (int i = 0; region->coherent && i < KDSM_COHERENCE_COUNT; i++)
			if (!coherence_names[i].is_current)
				region_sample(out, "kdsm_region_events_total", region, "event",
					      coherence_names[i].name, region->coherence[i]);
}

/* name{region="...",lock="..." and the caller goes on */
static void lock_sample(FILE *out, const char *name, const struct metrics *metrics,
			const struct metrics_lock *lock)
{
	const char *region = "";
	char number[16];

	for (size_t i = 0; i < metrics->region_count; i++)
		if (metrics->regions[i].id == lock->id)
			region = metrics->regions[i].name;
	snprintf(number, sizeof(number), "%u", lock->number);
	fputs(name, out);
	label(out, '{', "region", region);
	label(out, ',', "number", number);
	label(out, ',', "lock", lock->name);
}

static void write_locks(const struct metrics *metrics, FILE *out)
{
	const struct metrics_lock *lock, *end = metrics->locks + metrics->lock_count;

	family(out, "kdsm_lock_waits", "counter", NULL, "Waits of threads of this node.");
	for (lock = metrics->locks; lock < end; lock++) {
		lock_sample(out, "kdsm_lock_waits_total", metrics, lock);
		fprintf(out, "} %" PRIu64 "\n", lock->waits);
	}
	family(out, "kdsm_lock_waited_seconds", "counter", "seconds",
	       "Time that threads of this node waited.");
	for (lock = metrics->locks; lock < end; lock++) {
		lock_sample(out, "kdsm_lock_waited_seconds_total", metrics, lock);
		fprintf(out, "} %.9f\n", lock->waited / 1e9);
	}
	family(out, "kdsm_lock_handovers", "counter", NULL,
	       "Hand-overs to a thread of this node, and to another node.");
	for (lock = metrics->locks; lock < end; lock++) {
		lock_sample(out, "kdsm_lock_handovers_total", metrics, lock);
		fprintf(out, ",to=\"thread\"} %" PRIu64 "\n", lock->handed);
		lock_sample(out, "kdsm_lock_handovers_total", metrics, lock);
		fprintf(out, ",to=\"node\"} %" PRIu64 "\n", lock->passed);
	}
}

void metrics_write(const struct metrics *metrics, FILE *out)
{
	gauge(out, "kdsm_up", metrics->up, NULL, "1 if the cluster is up on this node.");
	if (metrics->up) {
		write_node(metrics, out);
		write_peers(metrics, out);
		write_operations(metrics, out);
		write_latencies(metrics, out);
		write_regions(metrics, out);
		write_locks(metrics, out);
	}
	fputs("# EOF\n", out);
}

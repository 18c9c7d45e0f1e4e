// SPDX-License-Identifier: GPL-2.0
/* kdsmctl stats --latency: how long operations took. latency.h has the histograms. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/number.h"
#include "common/table.h"
#include "latency.h"
#include "names.h"
#include "print.h"

/* ---- numbers ---- */

uint64_t latency_count(const struct latency *latency)
{
	uint64_t count = 0;

	for (int i = 0; i < KDSM_LATENCY_CLASSES; i++)
		count += latency->counts[i];
	return count;
}

double latency_mean(const struct latency *latency)
{
	uint64_t count = latency_count(latency);

	return count ? (double)latency->sum / count : 0;
}

double latency_quantile(const struct latency *latency, double share)
{
	double rank = latency_count(latency) * share, sum = 0;

	for (int i = 0; i < KDSM_LATENCY_CLASSES; i++) {
		if (latency->counts[i] && sum + latency->counts[i] >= rank)
			return (double)(UINT64_C(1) << i) * (1 + (rank - sum) / latency->counts[i]);
		sum += latency->counts[i];
	}
	return 0;
}

void latency_add(struct latency *sum, const struct latency *old, const struct latency *new)
{
	static const struct latency none;

	/* The cluster came up again in between: new counts from 0 */
	if (latency_count(new) < latency_count(old))
		old = &none;
	sum->sum += new->sum - old->sum;
	for (int i = 0; i < KDSM_LATENCY_CLASSES; i++)
		sum->counts[i] += new->counts[i] - old->counts[i];
}

/* ---- reading ---- */

static void one_kind(attrs at, void *data)
{
	const struct nlattr *counts = at[KDSM_A_LATENCY_COUNTS];
	uint32_t kind = attr_u32(at, KDSM_A_LATENCY);
	struct latency *latencies = data, *latency;

	if (kind >= KDSM_LATENCY_COUNT || !counts ||
	    mnl_attr_get_payload_len(counts) != sizeof(latency->counts))
		return;
	latency = &latencies[kind];
	latency->sum = attr_u64(at, KDSM_A_LATENCY_SUM);
	memcpy(latency->counts, mnl_attr_get_payload(counts), sizeof(latency->counts));
}

int latencies_read(struct module *module, uint32_t node, uint32_t timeout,
		   struct latency *latencies)
{
	struct nlmsghdr *request = module_begin(module, KDSM_CMD_LATENCIES);

	memset(latencies, 0, KDSM_LATENCY_COUNT * sizeof(*latencies));
	if (node != UINT32_MAX)
		mnl_attr_put_u32(request, KDSM_A_NODE_ID, node);
	mnl_attr_put_u32(request, KDSM_A_TIMEOUT, timeout);
	return module_list(module, one_kind, latencies);
}

/* ---- output ---- */

static void print_text(const struct latency *latencies)
{
	static const struct column columns[] = {
		{ "OPERATION", TABLE_LEFT, 0 }, { "COUNT", TABLE_RIGHT, 0 },
		{ "MEAN", TABLE_RIGHT, 0 }, { "P50", TABLE_RIGHT, 0 },
		{ "P90", TABLE_RIGHT, 0 }, { "P99", TABLE_RIGHT, 0 },
		{ "P99.9", TABLE_RIGHT, 0 }, { 0 }
	};
	static const double shares[] = { 0.5, 0.9, 0.99, 0.999 };
	struct table *table = table_new(columns);
	char time[HUMAN_SIZE];

	for (int i = 0; i < KDSM_LATENCY_COUNT; i++) {
		const struct latency *latency = &latencies[i];

		table_cell(table, "%s", latency_names[i]);
		table_cell(table, "%ju", (uintmax_t)latency_count(latency));
		table_cell(table, "%s", latency_count(latency) ?
					human_time(latency_mean(latency), time) : "-");
		for (unsigned int j = 0; j < MNL_ARRAY_SIZE(shares); j++)
			table_cell(table, "%s", latency_count(latency) ?
				   human_time(latency_quantile(latency, shares[j]), time) : "-");
	}
	table_print(table);
	table_free(table);
}

static void print_json(const struct latency *latencies)
{
	struct json_object *out = json_object_new_object();

	for (int i = 0; i < KDSM_LATENCY_COUNT; i++) {
		struct json_object *kind = json_object_new_object();
		struct json_object *counts = json_object_new_array();

		for (int j = 0; j < KDSM_LATENCY_CLASSES; j++)
			json_object_array_add(counts,
					      json_object_new_uint64(latencies[i].counts[j]));
		json_number(kind, "count", latency_count(&latencies[i]));
		json_number(kind, "sum", latencies[i].sum);
		json_object_object_add(kind, "counts", counts);
		json_object_object_add(out, latency_names[i], kind);
	}
	json_print(out);
	json_object_put(out);
}

int latencies_print(struct module *module, bool json)
{
	struct latency latencies[KDSM_LATENCY_COUNT];
	int error = latencies_read(module, UINT32_MAX, KDSM_TIMEOUT_DEFAULT, latencies);

	if (error)
		return error;
	if (json)
		print_json(latencies);
	else
		print_text(latencies);
	return 0;
}

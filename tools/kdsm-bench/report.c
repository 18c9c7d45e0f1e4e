// SPDX-License-Identifier: GPL-2.0
/* Parts of the output that all kinds share. */
#include <stdio.h>
#include "bench.h"
#include "common/cluster.h"

const char *domain_name(const struct run *run)
{
	enum kdsm_domain domain = kdsm_domain(run->kdsm);

	return domain <= KDSM_DOMAIN_GLOB ? domain_names[domain] : "?";
}

static void add_uint(struct json_object *object, const char *name, uint64_t value)
{
	json_object_object_add(object, name, json_object_new_uint64(value));
}

static void add_real(struct json_object *object, const char *name, double value)
{
	char text[32];

	/* Three digits are more than the resolution of the clock. */
	snprintf(text, sizeof(text), "%.3f", value);
	json_object_object_add(object, name, json_object_new_double_s(value, text));
}

struct json_object *report_begin(const struct run *run)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "bench", json_object_new_string(run->options->kind));
	add_uint(object, "cluster_nodes", run->nodes);
	json_object_object_add(object, "domain",
			       json_object_new_string(domain_name(run)));
	json_object_object_add(object, "results", json_object_new_array());
	return object;
}

struct json_object *report_latency(const struct summary *summary)
{
	struct json_object *object = json_object_new_object();

	add_real(object, "min", summary->min);
	add_real(object, "median", summary->median);
	add_real(object, "mean", summary->mean);
	add_real(object, "p90", summary->p90);
	add_real(object, "p99", summary->p99);
	add_real(object, "p999", summary->p999);
	add_real(object, "max", summary->max);
	return object;
}

struct json_object *report_remote(const struct kdsm_counts *counts)
{
	struct json_object *object = json_object_new_object();

	add_uint(object, "get", counts->get);
	add_uint(object, "put", counts->put);
	add_uint(object, "cas", counts->cas);
	add_uint(object, "faa", counts->faa);
	add_uint(object, "steal", counts->steal);
	add_uint(object, "am", counts->am);
	add_uint(object, "bytes", counts->bytes);
	add_uint(object, "calls", counts->calls);
	return object;
}

void report_remote_text(const struct kdsm_counts *counts, const char *calls)
{
	printf("remote operations in %s: %llu get, %llu put, %llu cas, %llu faa, "
	       "%llu steal (%llu by active message), %llu bytes, %llu system calls\n", calls,
	       (unsigned long long)counts->get, (unsigned long long)counts->put,
	       (unsigned long long)counts->cas, (unsigned long long)counts->faa,
	       (unsigned long long)counts->steal, (unsigned long long)counts->am,
	       (unsigned long long)counts->bytes,
	       (unsigned long long)counts->calls);
}

void counts_since(const struct run *run, const struct kdsm_counts *before,
		  struct kdsm_counts *difference)
{
	difference->argsz = sizeof(*difference);
	kdsm_counts(run->kdsm, difference);
	difference->get -= before->get;
	difference->put -= before->put;
	difference->cas -= before->cas;
	difference->faa -= before->faa;
	difference->steal -= before->steal;
	difference->am -= before->am;
	difference->bytes -= before->bytes;
	difference->calls -= before->calls;
}

void report_end(struct run *run)
{
	if (run->options->json)
		puts(json_object_to_json_string_ext(run->result, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
}

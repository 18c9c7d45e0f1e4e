// SPDX-License-Identifier: GPL-2.0
/* Options and times of virtual runs, see virtual.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/virtual.h"

/* Longest part of a refused text that a reason repeats, in characters */
#define SHOWN	48

/* Longest number of a bandwidth, in characters */
#define DIGITS	24

static int parse_bandwidth(const char *text, uint64_t *bandwidth, char *reason);

static int parse_time(const char *text, uint64_t *ns, char *reason)
{
	const struct range range = { 0, SECOND, 0 };

	return time_parse(text, &range, ns, reason);
}

/* Settings of --network */
static const struct setting {
	const char *name;
	size_t offset;		/* in struct kdsm_virtual_attr */
	int (*parse)(const char *text, uint64_t *value, char *reason);
} settings[] = {
	{ "one-sided", offsetof(struct kdsm_virtual_attr, one_sided), parse_time },
	{ "message", offsetof(struct kdsm_virtual_attr, message), parse_time },
	{ "handler", offsetof(struct kdsm_virtual_attr, handler), parse_time },
	{ "gap", offsetof(struct kdsm_virtual_attr, gap), parse_time },
	{ "bandwidth", offsetof(struct kdsm_virtual_attr, bandwidth), parse_bandwidth },
	{ "quantum", offsetof(struct kdsm_virtual_attr, quantum), parse_time },
};

#define SETTINGS	(sizeof(settings) / sizeof(settings[0]))

void virtual_init(struct virtual_options *v)
{
	memset(v, 0, sizeof(*v));
	v->attr.argsz = sizeof(v->attr);
	kdsm_virtual_attr_init(&v->attr);
	v->workers = 1;
}

/* ---- the command line ---- */

/* A part of NODESxWORKERS */
static int parse_count(const char *whole, const char *what, const char *text, unsigned int most,
		       unsigned int *count, char *reason)
{
	const struct range range = { 1, most, 1 };
	char why[REASON_SIZE];
	uint64_t value;

	if (!number_parse(text, &range, &value, why)) {
		*count = value;
		return 0;
	}
	snprintf(reason, REASON_SIZE, "'%.*s': %s: %.160s", SHOWN, whole, what, why);
	return -1;
}

int virtual_parse(struct virtual_options *v, const char *text, char reason[REASON_SIZE])
{
	const char *x = strchr(text, 'x');
	char nodes[SHOWN];

	/* The digits before the x are copied, because 0x16 would be hexadecimal. */
	if (!x || x == text || !x[1] || x - text >= (long)sizeof(nodes)) {
		snprintf(reason, REASON_SIZE,
			 "'%.*s' is not NODESxWORKERS, two numbers such as 32x16", SHOWN, text);
		return -1;
	}
	memcpy(nodes, text, x - text);
	nodes[x - text] = '\0';
	if (parse_count(text, "nodes", nodes, KDSM_MAX_NODES, &v->attr.nodes, reason) ||
	    parse_count(text, "workers", x + 1, VIRTUAL_WORKERS, &v->workers, reason))
		return -1;
	v->given = true;
	return 0;
}

/* Bytes a second, with a suffix; the result is in bytes per microsecond. */
static int parse_bandwidth(const char *text, uint64_t *bandwidth, char *reason)
{
	static const struct { char suffix; double factor; } suffixes[] = {
		{ 'M', 1 }, { 'G', 1e3 }, { 'T', 1e6 },
	};
	char digits[DIGITS] = "", why[REASON_SIZE];
	size_t length = strlen(text), i;
	double value = 0;

	if (length && length <= sizeof(digits)) {
		memcpy(digits, text, length - 1);
		digits[length - 1] = '\0';
		for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
			if (text[length - 1] == suffixes[i].suffix &&
			    !real_parse(digits, 0, 1e6, &value, why))
				value *= suffixes[i].factor;
	}
	if (value >= 1 && value <= 1e9 && *digits) {
		*bandwidth = value + 0.5;
		return 0;
	}
	snprintf(reason, REASON_SIZE,
		 "'%.*s' is not a bandwidth from 1M to 1000T bytes a second; suffixes are M, G and T",
		 SHOWN, text);
	return -1;
}

static int take_setting(void *values, unsigned int index, const char *text, char *reason)
{
	const struct setting *setting;
	struct virtual_options *v = values;
	char why[REASON_SIZE];
	size_t length;

	(void)index;
	for (setting = settings; setting < settings + SETTINGS; setting++) {
		length = strlen(setting->name);
		if (strncmp(text, setting->name, length) || text[length] != '=')
			continue;
		if (!setting->parse(text + length + 1,
				    (uint64_t *)((char *)&v->attr + setting->offset), why))
			return 0;
		snprintf(reason, REASON_SIZE, "'%.*s': %.160s", SHOWN, text, why);
		return -1;
	}
	snprintf(reason, REASON_SIZE,
		 "'%.*s' is not NAME=VALUE; names are one-sided, message, handler, gap, bandwidth and quantum",
		 SHOWN, text);
	return -1;
}

int virtual_parse_network(struct virtual_options *v, const char *text, char reason[REASON_SIZE])
{
	v->network = true;
	return list_parse(text, SETTINGS, take_setting, v, reason) < 0 ? -1 : 0;
}

int virtual_check(const struct virtual_options *v, char reason[REASON_SIZE])
{
	char handler[HUMAN_SIZE], message[HUMAN_SIZE];

	if (!v->given && (v->network || v->attr.step)) {
		snprintf(reason, REASON_SIZE, "--%s: is for virtual runs: give --virtual, too",
			 v->network ? "network" : "task-time");
		return -1;
	}
	if (v->attr.handler <= v->attr.message)
		return 0;
	snprintf(reason, REASON_SIZE,
		 "--network: handler=%s is part of message=%s, and cannot take longer",
		 human_time(v->attr.handler, handler), human_time(v->attr.message, message));
	return -1;
}

const char *virtual_reason(int error)
{
	switch (-error) {
	case EDEADLK:
		return "the virtual run cannot go on: all threads of all nodes "
		       "wait for each other, which is an error in kdsm: "
		       "report it with this command line";
	case ENOMEM:
		return "this machine has no memory for the virtual run: "
		       "simulate fewer nodes or workers";
	case EINVAL:
		return "the virtual run cannot begin: "
		       "a value of --virtual or --network is out of range";
	default:
		return kdsm_error(error);
	}
}

/* ---- times ---- */

/* Names of shares in JSON, and in text */
static const struct { const char *name, *text; } shares[KDSM_VIRTUAL_SHARES] = {
	[KDSM_VIRTUAL_COMPUTING] = { "computing", "computing" },
	[KDSM_VIRTUAL_GET] = { "get", "remote get" },
	[KDSM_VIRTUAL_PUT] = { "put", "remote put" },
	[KDSM_VIRTUAL_ATOMIC] = { "atomic", "remote atomic operations" },
	[KDSM_VIRTUAL_FIND] = { "find", "remote find" },
	[KDSM_VIRTUAL_STEAL] = { "steal", "remote steal" },
	[KDSM_VIRTUAL_WAITING] = { "waiting", "waiting for work" },
	[KDSM_VIRTUAL_BARRIER] = { "barrier", "barriers" },
	[KDSM_VIRTUAL_SERIAL] = { "serial", "serial parts" },
	[KDSM_VIRTUAL_COLLECTION] = { "collection", "collection" },
};

double virtual_part(const struct kdsm_virtual_times *times, enum kdsm_virtual_share share)
{
	double all = (double)times->elapsed * times->workers;

	return all > 0 ? times->share[share] / all : 0;
}

double virtual_remote(const struct kdsm_virtual_times *times)
{
	return virtual_part(times, KDSM_VIRTUAL_GET) + virtual_part(times, KDSM_VIRTUAL_PUT) +
	       virtual_part(times, KDSM_VIRTUAL_ATOMIC) +
	       virtual_part(times, KDSM_VIRTUAL_FIND) + virtual_part(times, KDSM_VIRTUAL_STEAL);
}

void virtual_print_shares(const struct kdsm_virtual_times *times)
{
	const char *before = "shares";
	unsigned int i;

	for (i = 0; i < KDSM_VIRTUAL_SHARES; i++) {
		if (!times->share[i])
			continue;
		printf("%-15s%5.1f %% %s\n", before, 100 * virtual_part(times, i), shares[i].text);
		before = "";
	}
}

struct json_object *virtual_json(const struct virtual_options *v,
				 const struct kdsm_virtual_times *times)
{
	struct json_object *object = json_object_new_object(), *parts = json_object_new_object();
	unsigned int i;

	json_number(object, "nodes", v->attr.nodes);
	json_number(object, "workers", v->workers);
	json_number(object, "one_sided_ns", v->attr.one_sided);
	json_number(object, "message_ns", v->attr.message);
	json_number(object, "handler_ns", v->attr.handler);
	json_number(object, "gap_ns", v->attr.gap);
	json_number(object, "bytes_per_us", v->attr.bandwidth);
	json_number(object, "quantum_ns", v->attr.quantum);
	json_number(object, "task_time_ns", v->attr.step);
	json_seconds(object, "elapsed", times->elapsed / 1e9);
	for (i = 0; i < KDSM_VIRTUAL_SHARES; i++)
		json_seconds(parts, shares[i].name, virtual_part(times, i));
	json_object_object_add(object, "shares", parts);
	return object;
}

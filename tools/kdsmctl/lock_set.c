// SPDX-License-Identifier: GPL-2.0
/* kdsmctl lock set: change settings of a lock, which may be in use. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/cluster.h"
#include "commands.h"
#include "lock.h"

/* Largest value of the setting "keep", in ns */
#define MOST_KEEP	(1000 * SECOND)

struct arguments {
	const char *name;
	struct kdsm_lock_settings settings;
};

/* ---- parsing ---- */

static int parse_threshold(const char *text, uint32_t *threshold, char *reason)
{
	const struct range range = { 1, KDSM_LOCK_T_MAX, 1 };
	uint64_t value;

	if (number_parse(text, &range, &value, reason))
		return -1;
	*threshold = value;
	return 0;
}

/* Levels count from 2. Level 1 is the whole cluster, which cannot hand the lock to another part. */
static int parse_t_l(const char *level, const char *text, struct kdsm_lock_settings *settings,
		     char *reason)
{
	unsigned int i = level[0] - '0';

	if (i == 1 && !level[1]) {
		snprintf(reason, REASON_SIZE, "level 1 is the cluster, which hands a lock to no other; T_W bounds writers in a row");
		return -1;
	}
	if (i < 2 || i > KDSM_LOCK_LEVELS || level[1]) {
		snprintf(reason, REASON_SIZE, "levels are 2 to %d", KDSM_LOCK_LEVELS);
		return -1;
	}
	settings->mask |= KDSM_LOCK_SET_T_L(i);
	if (strcmp(text, "auto"))
		return parse_threshold(text, &settings->t_l[i - 1], reason);
	settings->t_l[i - 1] = KDSM_LOCK_T_L_AUTO;
	return 0;
}

static int parse_keep(const char *text, struct kdsm_lock_settings *settings, char *reason)
{
	const struct range range = { 0, MOST_KEEP, 1000 };
	uint64_t ns = KDSM_LOCK_KEEP_FOREVER;

	if (strcmp(text, "forever") && time_parse(text, &range, &ns, reason))
		return -1;
	settings->mask |= KDSM_LOCK_SET_KEEP;
	settings->keep = ns;
	return 0;
}

/* NAME=VALUE; a name is in upper or lower case. */
static int parse_setting(const char *text, struct kdsm_lock_settings *settings, char *reason)
{
	const struct {
		const char *name;
		unsigned int mask;
		uint32_t *threshold;
	} thresholds[] = {
		{ "T_DC", KDSM_LOCK_SET_T_DC, &settings->t_dc },
		{ "T_R", KDSM_LOCK_SET_T_R, &settings->t_r },
		{ "T_W", KDSM_LOCK_SET_T_W, &settings->t_w },
	};
	const char *value = strchrnul(text, '=') + 1;
	char name[16];
	unsigned int i;

	snprintf(name, sizeof(name), "%.*s", (int)(value - 1 - text), text);
	if (!value[-1])
		name[0] = '\0';
	if (!strncasecmp(name, "T_L.", 4))
		return parse_t_l(name + 4, value, settings, reason);
	if (!strcasecmp(name, "keep"))
		return parse_keep(value, settings, reason);
	for (i = 0; i < sizeof(thresholds) / sizeof(thresholds[0]); i++) {
		if (strcasecmp(name, thresholds[i].name))
			continue;
		settings->mask |= thresholds[i].mask;
		return parse_threshold(value, thresholds[i].threshold, reason);
	}
	snprintf(reason, REASON_SIZE, "there is no such setting: use T_L.2=N to T_L.%d=N, T_DC=N, T_R=N, T_W=N or keep=TIME",
		 KDSM_LOCK_LEVELS);
	return -1;
}

static int take_argument(void *values, unsigned int index, const char *text, char *reason)
{
	struct arguments *arguments = values;
	char why[REASON_SIZE];

	if (!index)
		return take_name(&arguments->name, text, reason);
	if (!parse_setting(text, &arguments->settings, why))
		return 0;
	snprintf(reason, REASON_SIZE, "%.48s: %.200s", text, why);
	return -1;
}

static const struct cli cli = {
	.doc = "Change settings of a lock, which may be in use. NAME is its name, REGION/NAME or "
	       "REGION/NUMBER.\vSettings: T_L.2=N and so on, T_DC=N, T_R=N and T_W=N, where N is a "
	       "number, for T_L also auto; and keep=TIME, in microseconds unless it has a suffix, "
	       "or keep=forever.",
	.args = "NAME SETTING=VALUE...",
	.least = 2,
	.most = UINT_MAX,
	.argument = take_argument,
};

/* ---- setting ---- */

/* Return a sentence about a setting in mask that the lock does not have, or NULL. */
static const char *missing(const struct kdsm_lock_info *info, uint32_t mask, char *buffer,
			   size_t size)
{
	unsigned int level;

	mask &= ~info->settings.mask;
	for (level = 2; level <= KDSM_LOCK_LEVELS; level++) {
		if (!(mask & KDSM_LOCK_SET_T_L(level)))
			continue;
		if (level > info->levels)
			snprintf(buffer, size, "there is no level %u here, as its levels are 1 to %u",
				 level, info->levels);
		else
			snprintf(buffer, size, "a lock of kind %s has no T_L.%u",
				 lock_kind_name(info->kind), level);
		return buffer;
	}
	if (!(mask & (KDSM_LOCK_SET_T_DC | KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W)))
		return NULL;
	snprintf(buffer, size, "a lock of kind %s has no %s", lock_kind_name(info->kind),
		 mask & KDSM_LOCK_SET_T_DC ? "T_DC" : mask & KDSM_LOCK_SET_T_R ? "T_R" : "T_W");
	return buffer;
}

static const char *set_error(int error)
{
	switch (error) {
	case ERANGE:
		return "a value is out of range (T_DC: at most the number of nodes)";
	case EACCES:
		return "no permission to change its region";
	case EHOSTDOWN:
	case ETIMEDOUT:
		return "a node that has it open does not answer (kdsmctl status)";
	default:
		return strerror(error);
	}
}

static int apply(const struct lock *lock, void *data)
{
	struct kdsm_lock_set arg = {
		.argsz = sizeof(arg),
		.number = lock->info.number,
		.settings = *(struct kdsm_lock_settings *)data,
	};
	char buffer[KDSM_NAME_SIZE], words[128];
	const char *why;

	why = missing(&lock->info, arg.settings.mask, words, sizeof(words));
	if (!why && !ioctl(lock->file, KDSM_IOC_LOCK_SET, &arg))
		return 0;
	warnx("cannot set lock %s/%s: %s", lock->region, lock_label(lock, buffer),
	      why ? why : set_error(errno));
	return -1;
}

int lock_set(int argc, char **argv)
{
	struct arguments arguments = { .settings.mask = 0 };

	cli_parse(&cli, argc, argv, &arguments);
	return lock_find(arguments.name, O_RDWR, apply, &arguments.settings) ?
	       EXIT_FAILURE : EXIT_SUCCESS;
}

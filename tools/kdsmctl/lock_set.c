// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl lock set: thresholds of a lock, in use or not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "commands.h"
#include "lock.h"

static int parse_threshold(const char *word, uint32_t *value)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(word, &end, 10);
	if (errno || *word < '0' || *word > '9' || *end || !number || number > KDSM_LOCK_T_MAX)
		return -1;
	*value = number;
	return 0;
}

/* The same, or "auto". */
static int parse_t_l(const char *word, uint32_t *value)
{
	if (strcmp(word, "auto"))
		return parse_threshold(word, value);
	*value = KDSM_LOCK_T_L_AUTO;
	return 0;
}

/* Microseconds, or "forever". */
static int parse_keep(const char *word, __u64 *keep)
{
	double value;
	char *end;

	if (!strcmp(word, "forever")) {
		*keep = KDSM_LOCK_KEEP_FOREVER;
		return 0;
	}
	value = strtod(word, &end);
	if (*word < '0' || *word > '9' || *end || !(value <= 1e9))
		return -1;
	*keep = value * 1e3 + 0.5;
	return 0;
}

/*
 * "T_L.2=16" and the like. A name in any case: 0, -1 (no such setting), -2 (value), -3
 * (level 1, which has none).
 */
static int parse_setting(const char *word, struct kdsm_lock_settings *settings)
{
	const char *value = strchr(word, '=');
	size_t length = value ? (size_t)(value++ - word) : 0;
	unsigned int level;

	if (!length)
		return -1;
	if (length == 5 && !strncasecmp(word, "T_L.", 4)) {
		level = word[4] - '0';
		if (level == 1)
			return -3;
		if (level < 2 || level > KDSM_LOCK_LEVELS)
			return -1;
		settings->mask |= KDSM_LOCK_SET_T_L(level);
		return parse_t_l(value, &settings->t_l[level - 1]) ? -2 : 0;
	}
	if (length == 4 && !strncasecmp(word, "T_DC", 4)) {
		settings->mask |= KDSM_LOCK_SET_T_DC;
		return parse_threshold(value, &settings->t_dc) ? -2 : 0;
	}
	if (length == 3 && !strncasecmp(word, "T_R", 3)) {
		settings->mask |= KDSM_LOCK_SET_T_R;
		return parse_threshold(value, &settings->t_r) ? -2 : 0;
	}
	if (length == 3 && !strncasecmp(word, "T_W", 3)) {
		settings->mask |= KDSM_LOCK_SET_T_W;
		return parse_threshold(value, &settings->t_w) ? -2 : 0;
	}
	if (length == 4 && !strncasecmp(word, "keep", 4)) {
		settings->mask |= KDSM_LOCK_SET_KEEP;
		return parse_keep(value, &settings->keep) ? -2 : 0;
	}
	return -1;
}

/* Which of the settings the lock does not have; NULL: it has them all. */
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
		return "a node that has it open could not be told (kdsmctl status)";
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
	fprintf(stderr, "kdsmctl: cannot set lock %s/%s: %s\n", lock->region,
		lock_label(lock, buffer), why ? why : set_error(errno));
	return -1;
}

int lock_set(int argc, char **argv)
{
	struct kdsm_lock_settings settings = { .mask = 0 };

	if (argc < 3 || argv[1][0] == '-' || !argv[1][0])
		return usage_error("lock set needs the name of a lock and SETTING=VALUE");
	for (int i = 2; i < argc; i++) {
		switch (parse_setting(argv[i], &settings)) {
		case 0:
			break;
		case -1:
			return usage_error("'%s' is no setting: T_L.2=N to T_L.%d=N, T_DC=N, T_R=N, T_W=N, keep=US or keep=forever",
					   argv[i], KDSM_LOCK_LEVELS);
		case -3:
			return usage_error("'%s': level 1 is the cluster, which passes a lock to no other; T_W bounds writers in a row",
					   argv[i]);
		default:
			return usage_error("'%s': a threshold is a number from 1 to %u, T_L also 'auto', keep a time in us up to 1e9 or 'forever'",
					   argv[i], KDSM_LOCK_T_MAX);
		}
	}
	return lock_find(argv[1], O_RDWR, apply, &settings) ? EXIT_FAILURE : EXIT_SUCCESS;
}

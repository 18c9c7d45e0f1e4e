/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks that are open on this node, in the regions that the caller may open.
 */
#ifndef KDSMCTL_LOCK_H
#define KDSMCTL_LOCK_H

#include <stdint.h>
#include <json-c/json.h>
#include <linux/kdsm.h>

struct lock {
	char region[KDSM_NAME_SIZE];
	int file;			/* bound to the region */
	struct kdsm_lock_info info;
};

/*
 * visit() for each lock, by region and number, until it returns other than 0. access:
 * O_RDONLY or O_RDWR. Regions that may not be opened so are passed over. -1 after a
 * message on stderr, else what the last visit() returned.
 */
int locks_walk(int access, int (*visit)(const struct lock *lock, void *data), void *data);

/*
 * The lock that is called so: its name or number, behind the name of its region and a
 * slash if there are several of the name. visit() is called for it alone. -1 after a
 * message on stderr.
 */
int lock_find(const char *name, int access,
	      int (*visit)(const struct lock *lock, void *data), void *data);

const char *lock_kind_name(uint32_t kind);
/* Its name, or its number in buffer, of KDSM_NAME_SIZE bytes. */
const char *lock_label(const struct lock *lock, char *buffer);

/* lock_show.c */
int lock_show(int argc, char **argv);
int lock_watch(int argc, char **argv);
struct json_object *lock_json(const struct lock *lock);

/* lock_set.c */
int lock_set(int argc, char **argv);

#endif /* KDSMCTL_LOCK_H */

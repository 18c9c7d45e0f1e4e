/* SPDX-License-Identifier: GPL-2.0 */
/* Locks that are open on this node, in the regions that the caller may open. */
#ifndef KDSMCTL_LOCK_H
#define KDSMCTL_LOCK_H

#include <stdint.h>
#include <json-c/json.h>
#include <kdsm/uapi.h>

struct lock {
	char region[KDSM_NAME_SIZE];
	int file;			/* a file of the device, bound to the region */
	struct kdsm_lock_info info;
};

/*
 * Call visit() for each lock, in order of region and number, until visit() returns a value
 * other than 0. access is O_RDONLY or O_RDWR. The walk skips regions that the caller must not
 * open with this access. Returns the value of the last visit(), or -1 after a message on stderr.
 */
int locks_walk(int access, int (*visit)(const struct lock *lock, void *data), void *data);

/*
 * Call visit() for one lock. name is the lock's name or number, REGION/NAME or REGION/NUMBER.
 * Returns 0, or the value of visit() if it is below 0, or -1 after a message on stderr if no
 * lock or several locks have the name.
 */
int lock_find(const char *name, int access,
	      int (*visit)(const struct lock *lock, void *data), void *data);

/* The lock's name; or its number, written to buffer of KDSM_NAME_SIZE bytes, if it has none. */
const char *lock_label(const struct lock *lock, char *buffer);

/* lock_show.c: describe the lock as an object, which the caller owns. */
struct json_object *lock_json(const struct lock *lock);

#endif /* KDSMCTL_LOCK_H */

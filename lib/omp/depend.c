// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dependences of tasks. A task waits for all incomplete siblings that were created before it and
 * name the same address, unless both only read. mutexinoutset and inoutset count as inout, which
 * is stricter than they ask for.
 *
 * The caller of all functions holds the lock of the team's pool.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static bool conflict(const struct ko_task *task, const struct ko_depend *depends,
		     unsigned int count)
{
	unsigned int i, j;

	for (i = 0; i < task->depend_count; i++)
		for (j = 0; j < count; j++)
			if (task->depends[i].address == depends[j].address &&
			    (task->depends[i].writes || depends[j].writes))
				return true;
	return false;
}

static void block(struct ko_task *task, struct ko_task *blocker)
{
	unsigned int room = blocker->successor_room ? 2 * blocker->successor_room : 4;
	struct ko_task **successors;

	if (blocker->successor_count == blocker->successor_room) {
		successors = ko_shared_alloc(16, room * sizeof(task));
		if (!successors)
			ko_fatal("no memory for %u tasks that depend on one", room);
		memcpy(successors, blocker->successors, blocker->successor_count * sizeof(task));
		free(blocker->successors);
		blocker->successors = successors;
		blocker->successor_room = room;
	}
	blocker->successors[blocker->successor_count++] = task;
	task->blockers++;
}

bool ko_depend_add(struct ko_task *task)
{
	struct ko_task *parent = task->parent, *other;

	for (other = parent->dependents; other; other = other->dependent)
		if (conflict(other, task->depends, task->depend_count))
			block(task, other);
	task->dependent = parent->dependents;
	task->dependent_link = &parent->dependents;
	if (task->dependent)
		task->dependent->dependent_link = &task->dependent;
	parent->dependents = task;
	return task->blockers;
}

void ko_depend_remove(struct ko_task *task, void *context,
		      void (*release)(void *context, struct ko_task *task))
{
	unsigned int i;

	if (!task->depend_count)
		return;
	*task->dependent_link = task->dependent;
	if (task->dependent)
		task->dependent->dependent_link = task->dependent_link;
	for (i = 0; i < task->successor_count; i++)
		if (!--task->successors[i]->blockers)
			release(context, task->successors[i]);
}

bool ko_depend_pending(const struct ko_task *parent, const struct ko_depend *depends,
		       unsigned int count)
{
	const struct ko_task *other;

	for (other = parent->dependents; other; other = other->dependent)
		if (conflict(other, depends, count))
			return true;
	return false;
}

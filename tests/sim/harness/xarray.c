// SPDX-License-Identifier: GPL-2.0
/* The kernel's sparse arrays, as far as the protocol files use them: a list in order of index */
#include "internal.h"

struct sim_entry {
	unsigned long index;
	void *value;
	xa_mark_t marks;
};

/* The place of the first entry whose index is not below this one */
static size_t place_of(const struct xarray *array, unsigned long index)
{
	size_t low = 0, high = array->count, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (array->entries[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *xa_find(const struct xarray *array, unsigned long *index, unsigned long last,
	      xa_mark_t mark)
{
	size_t i = place_of(array, *index);

	while (i < array->count && !(array->entries[i].marks & mark))
		i++;
	if (i == array->count || array->entries[i].index > last)
		return NULL;
	*index = array->entries[i].index;
	return array->entries[i].value;
}

void *xa_load(const struct xarray *array, unsigned long index)
{
	size_t i = place_of(array, index);

	return i < array->count && array->entries[i].index == index ? array->entries[i].value :
								       NULL;
}

/* The marks of an entry, or NULL */
static xa_mark_t *marks_of(struct xarray *array, unsigned long index)
{
	sim_assert_held(&array->xa_lock);
	return xa_load(array, index) ? &array->entries[place_of(array, index)].marks : NULL;
}

void __xa_set_mark(struct xarray *array, unsigned long index, xa_mark_t mark)
{
	xa_mark_t *marks = marks_of(array, index);

	if (marks)
		*marks |= mark;
}

void __xa_clear_mark(struct xarray *array, unsigned long index, xa_mark_t mark)
{
	xa_mark_t *marks = marks_of(array, index);

	if (marks)
		*marks &= ~mark;
}

/* As in the kernel, an allocation drops the lock, and then looks at the entry again. */
void *__xa_cmpxchg(struct xarray *array, unsigned long index, void *old, void *entry, gfp_t flags)
{
	void *was = xa_load(array, index);
	size_t i;

	sim_assert_held(&array->xa_lock);
	if (was != old)
		return was;
	if (!was) {
		xa_unlock(array);
		was = sim_no_memory() ? ERR_PTR(-ENOMEM) : NULL;
		xa_lock(array);
		if (was)
			return was;
		was = xa_load(array, index);
		if (was)
			return was;
	}
	i = place_of(array, index);
	if (!was) {
		if (array->count == array->room) {
			array->room = 2 * array->room + 8;
			array->entries = realloc(array->entries,
						 array->room * sizeof(*array->entries));
		}
		memmove(&array->entries[i + 1], &array->entries[i],
			(array->count++ - i) * sizeof(*array->entries));
		array->entries[i].marks = 0;
	}
	array->entries[i].index = index;
	array->entries[i].value = entry;
	return was;
}

void *xas_load(struct xa_state *place)
{
	return xa_load(place->array, place->index);
}

void *xas_store(struct xa_state *place, void *entry)
{
	struct xarray *array = place->array;
	size_t i = place_of(array, place->index);
	void *was = xas_load(place);

	sim_assert_held(&array->xa_lock);
	if (!was)
		sim_fail(SIM_NONE, "an entry is replaced that does not exist");
	if (entry)
		array->entries[i].value = entry;
	else
		memmove(&array->entries[i], &array->entries[i + 1],
			(--array->count - i) * sizeof(*array->entries));
	return was;
}

void xas_clear_mark(const struct xa_state *place, xa_mark_t mark)
{
	__xa_clear_mark(place->array, place->index, mark);
}

void xa_destroy(struct xarray *array)
{
	free(array->entries);
	memset(array, 0, sizeof(*array));
}

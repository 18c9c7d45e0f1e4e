// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariants that a user gives in addition to the model: a set of states in a file, or a
 * bound on the tokens of places. Each becomes a property of the model.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formula.h"
#include "internal.h"

/*
 * Add a property that is violated in the states of bad. The model takes ownership of name
 * and of bound, which may be NULL; on failure they are freed.
 */
static int add_property(struct kd_model *model, char *name, kdsm_bdd bad, struct kd_bound *bound)
{
	struct kd_property *more = NULL;

	if (name)
		more = reallocarray(model->property, model->properties + 1, sizeof(*more));
	if (!more) {
		free(name);
		kd_bound_free(bound);
		return -ENOMEM;
	}
	model->property = more;
	more[model->properties++] = (struct kd_property){
		.name = name, .bad = bad, .bound = bound,
	};
	return 0;
}

/* ---- bounds ---- */

struct kd_bound {
	struct kd_places places;
	uint64_t tokens;		/* bound on the tokens of all places together */
};

static int compare_numbers(const void *x, const void *y)
{
	unsigned int a = *(const unsigned int *)x, b = *(const unsigned int *)y;

	return (a > b) - (a < b);
}

static int add_place(const struct kd_net *net, const char *id, size_t length,
		     struct kd_places *places)
{
	unsigned int i;

	for (i = 0; i < net->places; i++) {
		if (strncmp(net->place[i].id, id, length) || net->place[i].id[length])
			continue;
		places->place[places->count++] = i;
		return 0;
	}
	return -ENOENT;
}

/* A place that stands alone may have a comma in its name. */
int kd_places_parse(struct kd_places *places, const struct kd_net *net, const char *option,
		    const char *text, const char *end, struct kdsm_reach_message *message)
{
	const char *id = text;
	unsigned int i;
	size_t n;

	if (!net) {
		kd_say(message, "%s %s: the model has no places; only a Petri net has", option,
		       text);
		return -EINVAL;
	}
	/* one more than the net has: with as many names, some place is named twice */
	places->place = calloc(net->places + 1, sizeof(*places->place));
	if (!places->place)
		return -ENOMEM;
	if (add_place(net, text, end - text, places) == 0)
		return 0;
	for (; places->count <= net->places; id += n + 1) {
		n = strcspn(id, ",");
		if (n > (size_t)(end - id))
			n = end - id;
		if (add_place(net, id, n, places) < 0) {
			kd_say(message, "%s %s: the net has no place with the id %.*s", option,
			       text, (int)n, id);
			return -EINVAL;
		}
		if (id + n == end)
			break;
	}
	qsort(places->place, places->count, sizeof(*places->place), compare_numbers);
	for (i = 1; i < places->count; i++) {
		if (places->place[i] == places->place[i - 1]) {
			kd_say(message, "%s %s: place %s is there twice", option, text,
			       net->place[places->place[i]].id);
			return -EINVAL;
		}
	}
	return 0;
}

char *kd_places_name(const struct kd_net *net, const struct kd_places *places)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	unsigned int i;

	if (!file)
		return NULL;
	for (i = 0; i < places->count; i++)
		fprintf(file, "%s%s", i ? " + " : "", net->place[places->place[i]].id);
	if (fclose(file)) {
		free(text);
		return NULL;
	}
	return text;
}

static int parse_bound(const struct kd_net *net, const char *text, struct kd_bound *bound,
		       struct kdsm_reach_message *message)
{
	const char *equals = strrchr(text, '=');
	char *end = NULL;

	if (equals && equals > text && equals[1] >= '0' && equals[1] <= '9') {
		errno = 0;
		bound->tokens = strtoull(equals + 1, &end, 10);
	}
	if (!end || *end || errno) {
		kd_say(message, "--bound %s: not of the form PLACE=K or PLACE,PLACE,...=K", text);
		return -EINVAL;
	}
	return kd_places_parse(&bound->places, net, "--bound", text, equals, message);
}

/* The bound of places that cannot have so many tokens with their present bits is trivial. */
static bool trivial(const struct kd_marking *m, const struct kd_bound *bound)
{
	uint64_t most = 0;
	unsigned int i;

	for (i = 0; i < bound->places.count; i++)
		most += (UINT64_C(1) << m->width[bound->places.place[i]]) - 1;
	return bound->tokens >= most;
}

/* The states with more tokens on the places than the bound */
static kdsm_bdd too_many(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			 const struct kd_bound *bound)
{
	struct kd_sum sum = { .constant = -(int64_t)bound->tokens };
	kdsm_bdd most;
	unsigned int i;
	int r = 0;

	if (trivial(m, bound))
		return KDSM_BDD_FALSE;
	for (i = 0; r == 0 && i < bound->places.count; i++)
		r = kd_sum_add_place(&sum, bound->places.place[i], 1);
	most = r < 0 ? kd_end(w, kd_failure(r)) : kd_sum_at_most(w, m, &sum, KDSM_BDD_TRUE);
	free(sum.addend);
	return most == KDSM_BDD_INVALID ? most : kdsm_bdd_not(most);
}

/* Describe the bound, as in "p + q <= 1". */
static char *describe(const struct kd_net *net, const struct kd_bound *bound)
{
	char *places = kd_places_name(net, &bound->places), *text = NULL;

	if (places && asprintf(&text, "%s <= %" PRIu64, places, bound->tokens) < 0)
		text = NULL;
	free(places);
	return text;
}

void kd_bound_free(struct kd_bound *bound)
{
	if (bound)
		free(bound->places.place);
	free(bound);
}

uint64_t kd_bound_digest(const struct kd_bound *bound)
{
	uint64_t digest = kd_hash(bound->places.count, bound->tokens);
	unsigned int i;

	for (i = 0; i < bound->places.count; i++)
		digest = kd_hash(digest, bound->places.place[i]);
	return digest;
}

int kd_invariant_bound(struct kdsm_bdd_worker *worker, const char *text,
		       struct kd_model *model, struct kdsm_reach_message *message)
{
	struct kd_bound *bound = calloc(1, sizeof(*bound));
	char *name;
	kdsm_bdd bad;
	int ret;

	message->text[0] = 0;
	ret = bound ? parse_bound(model->net, text, bound, message) : -ENOMEM;
	if (ret == 0) {
		name = describe(model->net, bound);
		kdsm_bdd_private(worker, 1);
		bad = too_many(worker, model->marking, bound);
		kdsm_bdd_private(worker, 0);
		if (bad != KDSM_BDD_INVALID)
			return add_property(model, name, bad, bound);
		free(name);
		ret = kdsm_bdd_error(worker);
	}
	kd_bound_free(bound);
	return ret;
}

int kd_property_widen(struct kdsm_bdd_worker *worker, struct kd_model *model,
		      unsigned int property, unsigned int place)
{
	struct kd_property *p = &model->property[property];
	const struct kd_marking *m = model->marking;
	uint32_t top = kd_marking_variable(m, place, m->width[place] - 1);

	if (p->bound)
		p->bad = too_many(worker, m, p->bound);
	else	/* the file's states have no more tokens than the place could have */
		p->bad = kdsm_bdd_or(worker, p->bad, kdsm_bdd_variable(worker, top));
	return p->bad == KDSM_BDD_INVALID ? kdsm_bdd_error(worker) : 0;
}

/* ---- sets of states ---- */

int kd_states_check(struct kdsm_bdd_worker *w, kdsm_bdd a, const struct kd_model *model)
{
	struct kd_walk walk;
	uint32_t i;
	int ret;

	ret = kd_walk(&walk, w, a);
	if (ret == 0)
		ret = kd_walk_variables(&walk);
	for (i = 0; ret == 0 && i < walk.variables; i++)
		if (!bsearch(&walk.variable[i], model->variables, model->bits,
			     sizeof(walk.variable[i]), compare_numbers))
			ret = -EDOM;
	kd_walk_destroy(&walk);
	return ret;
}

static int read_file(struct kdsm_bdd_worker *w, const char *path, FILE *file,
		     struct kd_model *model, struct kdsm_reach_message *message)
{
	struct kd_bdd_reader reader = { .worker = w, .file = file };
	struct kd_bdd_content content;
	int ret;

	kd_marking_from_file(model->marking, &reader.from_file);
	ret = kd_bdd_load(&reader, &content);
	if (ret == -EINVAL)
		kd_say(message,
		       "%s: byte %" PRIu64 ": %s; is this a set of states in the .bdd format, and whole?",
		       path, reader.wrong_at, reader.wrong);
	else if (ret == -EIO)
		kd_say(message, "%s: cannot be read", path);
	if (ret == 0 && !kd_states_fit(&content, model->marking)) {
		ret = -EINVAL;
		kd_say(message,
		       "%s: has markings in another order of the places; give the --order that kdsm-reach printed when it wrote the file",
		       path);
	}
	if (ret == 0)
		ret = kd_states_check(w, content.function[0], model);
	if (ret == -EDOM) {
		ret = -EINVAL;
		kd_say(message,
		       "%s: speaks of more than the %u bits of a state of %s; is it an invariant of this model?",
		       path, model->bits, model->name);
	}
	if (ret == 0)
		ret = add_property(model, strdup(path), kdsm_bdd_not(content.function[0]),
				   NULL);
	kd_bdd_content_destroy(&content);
	kd_bdd_reader_destroy(&reader);
	return ret;
}

int kd_invariant_file(struct kdsm_bdd_worker *worker, const char *path,
		      struct kd_model *model, struct kdsm_reach_message *message)
{
	FILE *file = fopen(path, "re");
	int ret;

	message->text[0] = 0;
	if (!file) {
		ret = -errno;
		kd_say(message, "%s: %s", path, strerror(-ret));
		return ret;
	}
	kdsm_bdd_private(worker, 1);
	ret = read_file(worker, path, file, model, message);
	kdsm_bdd_private(worker, 0);
	fclose(file);
	if (ret < 0 && !message->text[0])
		kd_say(message, "%s: %s", path, strerror(-ret));
	return ret;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * brute: write random formulas about a Petri net in the contest's XML, and answer them from the
 * explicit graph of its markings; see usage() below.
 *
 * This program checks kdsm-reach, so it shares no code with it, not even the reader of nets.
 */
#include <err.h>
#include <expat.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void usage(FILE *to)
{
	fputs("usage: brute [-m STATES] [-e EDGES] [-n COUNT] [-s SEED] NET.pnml FORMULAS.xml\n\n"
	      "Explores NET.pnml, and writes COUNT (16) random formulas of each of five examinations of\n"
	      "the Model Checking Contest, and that about deadlocks, to FORMULAS.xml. Prints\n"
	      "\"states N\", \"fired N\", and \"FORMULA ID ANSWER\" for each formula.\n\n"
	      "  -m STATES  exit status 3 if there are more states (1000000)\n"
	      "  -e EDGES   if more transitions are fired, there are no formulas of CTL (100000000)\n"
	      "  -s SEED    of the formulas (1)\n", to);
}

static void *grow(void *memory, size_t count, size_t size)
{
	memory = reallocarray(memory, count ? count : 1, size);
	if (!memory)
		errx(2, "no memory");
	return memory;
}

/* splitmix64 */
static uint64_t random_state;

static unsigned int below(unsigned int n)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}

/* ---- the net ---- */

enum kind { PLACE, TRANSITION, REFERENCE };
enum arc_type { NORMAL, READ, INHIBITOR };

struct node {
	char *id, *ref;
	enum kind kind;
	unsigned int index;	/* among the places or transitions */
	uint32_t tokens;
};

struct arc {
	char *from, *to;
	uint32_t weight;
	enum arc_type type;
};

/* What a transition needs of a place, and does to it */
struct touch {
	unsigned int place;
	uint64_t least, most;	/* tokens with which the transition is enabled */
	int64_t change;
};

struct transition {
	struct touch *touch;
	unsigned int touches;
};

static struct node *nodes;
static struct arc *arcs;
static size_t node_count, arc_count;
static struct node **place;	/* by index */
static char **transition_id;
static struct transition *transition;
static unsigned int places, transitions;

/* ---- its file ---- */

static XML_Parser parser;
static enum { NOTHING, TOKENS, WEIGHT } number;	/* the meaning of the text */
static unsigned int foreign;	/* depth of elements that mean nothing */
static char text[64];

static const char *attribute(const char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (!strcmp(*attributes, name))
			return attributes[1];
	return NULL;
}

static char *copy(const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		errx(2, "no memory");
	return c;
}

static void add_node(enum kind kind, const char **attributes)
{
	nodes = grow(nodes, node_count + 1, sizeof(*nodes));
	nodes[node_count++] = (struct node){
		.id = copy(attribute(attributes, "id")), .kind = kind,
		.ref = copy(attribute(attributes, "ref")),
		.index = kind == PLACE ? places++ : kind == TRANSITION ? transitions++ : 0,
	};
}

static void add_arc(const char **attributes)
{
	const char *type = attribute(attributes, "type");

	arcs = grow(arcs, arc_count + 1, sizeof(*arcs));
	arcs[arc_count++] = (struct arc){
		copy(attribute(attributes, "source")), copy(attribute(attributes, "target")), 1,
		!type || !strcmp(type, "normal") ? NORMAL :
		!strcmp(type, "inhibitor") ? INHIBITOR : READ,
	};
}

static void start(void *data, const char *name, const char **attributes)
{
	(void)data;
	if (foreign || !strcmp(name, "name") || !strcmp(name, "graphics") ||
	    !strcmp(name, "toolspecific"))
		foreign++;
	else if (!strcmp(name, "place"))
		add_node(PLACE, attributes);
	else if (!strcmp(name, "transition"))
		add_node(TRANSITION, attributes);
	else if (!strcmp(name, "referencePlace") || !strcmp(name, "referenceTransition"))
		add_node(REFERENCE, attributes);
	else if (!strcmp(name, "arc"))
		add_arc(attributes);
	else if (!strcmp(name, "initialMarking"))
		number = TOKENS;
	else if (!strcmp(name, "inscription"))
		number = WEIGHT;
	text[0] = 0;
}

static void characters(void *data, const char *s, int length)
{
	size_t n = strlen(text);

	(void)data;
	if (foreign || number == NOTHING)
		return;
	if (n + length >= sizeof(text))
		errx(2, "a number is too long");
	memcpy(text + n, s, length);
	text[n + length] = 0;
}

static void end(void *data, const char *name)
{
	(void)data;
	if (foreign) {
		foreign--;
	} else if (number != NOTHING && !strcmp(name, "text")) {
		if (number == TOKENS)
			nodes[node_count - 1].tokens = strtoul(text, NULL, 10);
		else
			arcs[arc_count - 1].weight = strtoul(text, NULL, 10);
		number = NOTHING;
	}
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->id, ((const struct node *)b)->id);
}

static struct node *node_of(const char *id)
{
	struct node key = { .id = (char *)id }, *found;

	do {
		found = bsearch(&key, nodes, node_count, sizeof(*nodes), compare_nodes);
		if (!found)
			errx(2, "no node %s", key.id);
		key.id = found->ref;
	} while (found->kind == REFERENCE);
	return found;
}

static struct touch *touch_of(struct transition *t, unsigned int p)
{
	unsigned int i;

	for (i = 0; i < t->touches; i++)
		if (t->touch[i].place == p)
			return &t->touch[i];
	t->touch = grow(t->touch, t->touches + 1, sizeof(*t->touch));
	t->touch[t->touches] = (struct touch){ p, 0, UINT64_MAX, 0 };
	return &t->touch[t->touches++];
}

/* A transition needs all tokens that its normal arcs take together, whatever it puts back. */
static void connect(const struct arc *a)
{
	const struct node *from = node_of(a->from), *to = node_of(a->to);
	struct touch *t;

	if (from->kind == TRANSITION) {
		touch_of(&transition[from->index], to->index)->change += a->weight;
		return;
	}
	t = touch_of(&transition[to->index], from->index);
	if (a->type == INHIBITOR && t->most > a->weight - 1)
		t->most = a->weight - 1;
	if (a->type != NORMAL)
		return;
	t->change -= a->weight;
	t->least += a->weight;
}

/* After all normal arcs */
static void connect_read(const struct arc *a)
{
	struct touch *t;

	if (a->type != READ)
		return;
	t = touch_of(&transition[node_of(a->to)->index], node_of(a->from)->index);
	if (t->least < a->weight)
		t->least = a->weight;
}

static void read_net(const char *path)
{
	FILE *file = fopen(path, "re");
	char buffer[65536];
	size_t n, i;

	if (!file)
		err(2, "%s", path);
	parser = XML_ParserCreate(NULL);
	XML_SetElementHandler(parser, start, end);
	XML_SetCharacterDataHandler(parser, characters);
	do {
		n = fread(buffer, 1, sizeof(buffer), file);
		if (XML_Parse(parser, buffer, n, n == 0) != XML_STATUS_OK)
			errx(2, "%s: not well-formed", path);
	} while (n);
	XML_ParserFree(parser);
	fclose(file);
	qsort(nodes, node_count, sizeof(*nodes), compare_nodes);
	place = grow(NULL, places, sizeof(*place));
	transition_id = grow(NULL, transitions, sizeof(*transition_id));
	transition = calloc(transitions + 1, sizeof(*transition));
	for (i = 0; i < node_count; i++) {
		if (nodes[i].kind == PLACE)
			place[nodes[i].index] = &nodes[i];
		else if (nodes[i].kind == TRANSITION)
			transition_id[nodes[i].index] = nodes[i].id;
	}
	for (i = 0; i < arc_count; i++)
		connect(&arcs[i]);
	for (i = 0; i < arc_count; i++)
		connect_read(&arcs[i]);
}

/* ---- markings ---- */

/* Each place has a field of this many bits, in words of 64 bits. */
static unsigned int width, words;
static uint64_t *marking;	/* all states, in the order of discovery */
static uint32_t *slot;		/* hash table: state + 1 */
static size_t states, room, slots;
static uint64_t most_states = 1000000, most_edges = 100000000, fired;
static bool with_edges;
static uint32_t *next_state;	/* by edge, in the order of states */
static uint64_t *first_edge;	/* by state, and one more */
static size_t edge_room;

static uint64_t tokens(const uint64_t *m, unsigned int p)
{
	unsigned int bit = p * width;

	return m[bit / 64] >> bit % 64 & (UINT64_MAX >> (64 - width));
}

/* False: they do not fit. */
static bool set_tokens(uint64_t *m, unsigned int p, uint64_t count)
{
	uint64_t mask = UINT64_MAX >> (64 - width);
	unsigned int bit = p * width;

	if (count > mask)
		return false;
	m[bit / 64] = (m[bit / 64] & ~(mask << bit % 64)) | count << bit % 64;
	return true;
}

static bool enabled(const struct transition *t, const uint64_t *m)
{
	unsigned int i;

	for (i = 0; i < t->touches; i++) {
		uint64_t n = tokens(m, t->touch[i].place);

		if (n < t->touch[i].least || n > t->touch[i].most)
			return false;
	}
	return true;
}

static size_t slot_of(const uint64_t *m)
{
	uint64_t h = 0;
	unsigned int i;
	size_t at;

	for (i = 0; i < words; i++) {
		h = (h ^ m[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	for (at = h & (slots - 1); slot[at]; at = (at + 1) & (slots - 1))
		if (!memcmp(marking + (slot[at] - 1) * words, m, words * sizeof(*m)))
			break;
	return at;
}

static void grow_slots(void)
{
	size_t i;

	free(slot);
	slots = slots ? 2 * slots : 1 << 12;
	slot = calloc(slots, sizeof(*slot));
	if (!slot)
		errx(2, "no memory");
	for (i = 0; i < states; i++)
		slot[slot_of(marking + i * words)] = i + 1;
}

/* The number of a state, old or new */
static size_t state_of(const uint64_t *m)
{
	size_t at = slot_of(m);

	if (slot[at])
		return slot[at] - 1;
	if (states == room) {
		room = room ? room + room / 2 : 1 << 12;
		marking = grow(marking, room * words, sizeof(*marking));
		first_edge = grow(first_edge, room + 1, sizeof(*first_edge));
	}
	memcpy(marking + states * words, m, words * sizeof(*m));
	slot[at] = ++states;
	if (2 * states > slots)
		grow_slots();
	return states - 1;
}

static void add_edge(size_t to)
{
	if (with_edges && fired >= most_edges) {
		with_edges = false;
		free(next_state);
		next_state = NULL;
	}
	if (with_edges && fired == edge_room) {
		edge_room = edge_room ? edge_room + edge_room / 2 : 1 << 12;
		next_state = grow(next_state, edge_room, sizeof(*next_state));
	}
	if (with_edges)
		next_state[fired] = to;
	fired++;
}

/* Find all states. False: a place needs more bits. */
static bool explore(void)
{
	uint64_t *m;
	unsigned int t, i;
	size_t at;

	words = (places * width + 63) / 64 + !places;
	m = calloc(words, sizeof(*m));
	states = 0;
	room = 0;
	slots = 0;
	fired = 0;
	edge_room = 0;
	with_edges = true;
	grow_slots();
	for (i = 0; i < places; i++)
		if (!set_tokens(m, i, place[i]->tokens))
			return false;
	state_of(m);
	for (at = 0; at < states; at++) {
		if (states > most_states) {
			fprintf(stderr, "more than %" PRIu64 " states\n", most_states);
			exit(3);
		}
		first_edge[at] = fired;
		for (t = 0; t < transitions; t++) {
			const struct transition *tr = &transition[t];

			if (!enabled(tr, marking + at * words))
				continue;
			memcpy(m, marking + at * words, words * sizeof(*m));
			for (i = 0; i < tr->touches; i++)
				if (!set_tokens(m, tr->touch[i].place, tr->touch[i].change +
						tokens(m, tr->touch[i].place)))
					return false;
			add_edge(state_of(m));
		}
	}
	first_edge[states] = fired;
	free(m);
	return true;
}

/* ---- predecessors ---- */

static uint32_t *previous_state;
static uint64_t *first_previous;

static void turn_edges(void)
{
	uint64_t *at, e;
	size_t s;

	previous_state = grow(NULL, fired, sizeof(*previous_state));
	first_previous = calloc(states + 2, sizeof(*first_previous));
	if (!first_previous)
		errx(2, "no memory");
	/* at[s] is the next free place of the predecessors of s, and ends where s + 1 begins */
	at = first_previous + 1;
	for (e = 0; e < fired; e++)
		if (next_state[e] + 1 < states)
			at[next_state[e] + 1]++;
	for (s = 1; s < states; s++)
		at[s] += at[s - 1];
	for (s = 0; s < states; s++)
		for (e = first_edge[s]; e < first_edge[s + 1]; e++)
			previous_state[at[next_state[e]]++] = s;
}

/* ---- formulas ---- */

enum op {
	DEADLOCK, FIREABLE, COMPARE, NOT, AND, OR, XOR, IMPLICATION, EQUIVALENCE,
	EX, AX, EF, AF, EG, AG, EU, AU,
};

#define MOST_NAMES	4

/* A number: the tokens of places, plus or minus those of others, plus a constant */
struct amount {
	unsigned int place[MOST_NAMES], places;
	unsigned int other[MOST_NAMES], others;
	int64_t constant;
	bool difference;	/* the others, and the constant, are subtracted */
};

struct formula {
	enum op op;
	struct formula *a, *b;
	unsigned int fireable[MOST_NAMES], count;
	unsigned int comparison;
	struct amount left, right;
};

static const char *const comparisons[] = {
	"integer-le", "integer-lt", "integer-ge", "integer-gt", "integer-eq", "integer-ne",
};

static int64_t value(const struct amount *n, const uint64_t *m)
{
	int64_t sum = 0, rest = n->constant;
	unsigned int i;

	for (i = 0; i < n->places; i++)
		sum += tokens(m, n->place[i]);
	for (i = 0; i < n->others; i++)
		rest += tokens(m, n->other[i]);
	return n->difference ? sum - rest : sum + rest;
}

static bool compare(const struct formula *f, const uint64_t *m)
{
	int64_t a = value(&f->left, m), b = value(&f->right, m);

	switch (f->comparison) {
	case 0:
		return a <= b;
	case 1:
		return a < b;
	case 2:
		return a >= b;
	case 3:
		return a > b;
	case 4:
		return a == b;
	default:
		return a != b;
	}
}

static bool any_enabled(const struct formula *f, const uint64_t *m)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (enabled(&transition[f->fireable[i]], m))
			return true;
	return false;
}

/* Different numbers below n */
static unsigned int choose(unsigned int *chosen, unsigned int n, unsigned int most)
{
	unsigned int count = 0, i, tries;

	for (tries = 1 + below(most); tries; tries--) {
		chosen[count] = below(n);
		for (i = 0; chosen[i] != chosen[count]; i++)
			;
		count += i == count;
	}
	return count;
}

/* A comparison that some states meet, and often others do not */
static void random_comparison(struct formula *f)
{
	const uint64_t *m = marking + (size_t)below(states) * words;
	unsigned int style = below(8);

	f->op = COMPARE;
	f->comparison = below(3) ? 0 : below(6);
	f->left.places = choose(f->left.place, places, below(3) ? 1 : MOST_NAMES);
	if (style == 0)
		f->left.others = choose(f->left.other, places, 2);
	f->left.difference = style == 0 && below(2);
	if (style < 5) {
		f->right.constant = value(&f->left, m) + below(3) - 1;
		if (f->right.constant < 0)
			f->right.constant = 0;
	} else {
		f->right.places = choose(f->right.place, places, 2);
		f->right.constant = style == 7 ? below(3) : 0;
	}
	if (style < 7 && below(2) && f->comparison == 0) {
		const struct amount left = f->left;

		f->left = f->right;
		f->right = left;
	}
}

/* A formula of this many levels; with fireability, or with cardinality */
static struct formula *random_formula(unsigned int depth, bool fire, bool ctl)
{
	struct formula *f = calloc(1, sizeof(*f));
	unsigned int op;

	if (!f)
		errx(2, "no memory");
	if (depth == 0 || below(5) == 0) {
		if (fire && transitions) {
			f->op = FIREABLE;
			f->count = choose(f->fireable, transitions, MOST_NAMES);
		} else {
			random_comparison(f);
		}
		return f;
	}
	op = ctl && below(2) ? EX + below(AU - EX + 1) :
	     below(8) ? NOT + below(3) : XOR + below(3);
	f->op = op;
	f->a = random_formula(depth - 1, fire, ctl);
	if ((op >= AND && op <= EQUIVALENCE) || op >= EU)
		f->b = random_formula(depth - 1, fire, ctl);
	return f;
}

static void free_formula(struct formula *f)
{
	if (!f)
		return;
	free_formula(f->a);
	free_formula(f->b);
	free(f);
}

/* ---- answers ---- */

/* A set of states has a byte for each. */
static unsigned char *new_set(void)
{
	unsigned char *set = calloc(states, 1);

	if (!set)
		errx(2, "no memory");
	return set;
}

static bool stuck(size_t s)
{
	return first_edge[s] == first_edge[s + 1];
}

/* States with a path through f to g */
static unsigned char *until(const unsigned char *f, const unsigned char *g)
{
	unsigned char *set = new_set();
	uint32_t *queue = grow(NULL, states, sizeof(*queue));
	size_t in = 0, out = 0, s;
	uint64_t e;

	for (s = 0; s < states; s++) {
		set[s] = g[s];
		if (g[s])
			queue[in++] = s;
	}
	while (out < in) {
		s = queue[out++];
		for (e = first_previous[s]; e < first_previous[s + 1]; e++) {
			uint32_t p = previous_state[e];

			if (!set[p] && (!f || f[p])) {
				set[p] = 1;
				queue[in++] = p;
			}
		}
	}
	free(queue);
	return set;
}

/* States with a path in f that has no end, or ends in a deadlock */
static unsigned char *always(const unsigned char *f)
{
	unsigned char *set = new_set();
	uint32_t *queue = grow(NULL, states, sizeof(*queue));
	uint32_t *left = calloc(states, sizeof(*left));	/* successors in the set */
	size_t in = 0, out = 0, s;
	uint64_t e;

	if (!left)
		errx(2, "no memory");
	for (s = 0; s < states; s++) {
		set[s] = f[s];
		for (e = first_edge[s]; e < first_edge[s + 1]; e++)
			left[s] += f[next_state[e]];
	}
	for (s = 0; s < states; s++)
		if (set[s] && !left[s] && !stuck(s)) {
			set[s] = 0;
			queue[in++] = s;
		}
	while (out < in) {
		s = queue[out++];
		for (e = first_previous[s]; e < first_previous[s + 1]; e++) {
			uint32_t p = previous_state[e];

			if (--left[p] == 0 && set[p]) {
				set[p] = 0;
				queue[in++] = p;
			}
		}
	}
	free(queue);
	free(left);
	return set;
}

static void invert(unsigned char *set)
{
	size_t s;

	for (s = 0; s < states; s++)
		set[s] = !set[s];
}

/* Replace a set by the states with a successor in it. */
static void before(unsigned char *set)
{
	unsigned char *result = new_set();
	uint64_t e;
	size_t s;

	for (s = 0; s < states; s++)
		for (e = first_edge[s]; e < first_edge[s + 1]; e++)
			result[s] |= set[next_state[e]];
	memcpy(set, result, states);
	free(result);
}

static unsigned char *all_until(unsigned char *f, unsigned char *g)
{
	unsigned char *bad, *never;
	size_t s;

	/* not: g never holds, or neither holds before g does */
	invert(g);
	never = always(g);
	for (s = 0; s < states; s++)
		f[s] = !f[s] && g[s];
	bad = until(g, f);
	for (s = 0; s < states; s++)
		bad[s] = !bad[s] && !never[s];
	free(never);
	return bad;
}

static bool combine(enum op op, bool a, bool b)
{
	switch (op) {
	case AND:
		return a && b;
	case OR:
		return a || b;
	case XOR:
		return a != b;
	case IMPLICATION:
		return !a || b;
	default:
		return a == b;
	}
}

static unsigned char *evaluate(const struct formula *f)
{
	unsigned char *a = f->a ? evaluate(f->a) : new_set();
	unsigned char *b = f->b ? evaluate(f->b) : NULL, *set = NULL;
	size_t s;

	switch (f->op) {
	case DEADLOCK:
		for (s = 0; s < states; s++)
			a[s] = stuck(s);
		break;
	case FIREABLE:
		for (s = 0; s < states; s++)
			a[s] = any_enabled(f, marking + s * words);
		break;
	case COMPARE:
		for (s = 0; s < states; s++)
			a[s] = compare(f, marking + s * words);
		break;
	case NOT:
		invert(a);
		break;
	case AND:
	case OR:
	case XOR:
	case IMPLICATION:
	case EQUIVALENCE:
		for (s = 0; s < states; s++)
			a[s] = combine(f->op, a[s], b[s]);
		break;
	case EX:
		before(a);
		break;
	case AX:
		invert(a);
		before(a);
		invert(a);
		break;
	case EF:
		set = until(NULL, a);
		break;
	case AG:
		invert(a);
		set = until(NULL, a);
		invert(set);
		break;
	case EG:
		set = always(a);
		break;
	case AF:
		invert(a);
		set = always(a);
		invert(set);
		break;
	case EU:
		set = until(a, b);
		break;
	case AU:
		set = all_until(a, b);
		break;
	}
	free(b);
	if (!set)
		return a;
	free(a);
	return set;
}

/* The value in the initial state of "exists-path finally" or "all-paths globally" */
static bool reachable(const struct formula *f)
{
	unsigned char *set = evaluate(f->a);
	bool all = f->op == AG;
	size_t s;

	for (s = 0; s < states && (set[s] || !all) && !(set[s] && !all); s++)
		;
	free(set);
	return (s == states) == all;
}

/* ---- XML ---- */

static void put_text(FILE *file, const char *s)
{
	for (; *s; s++) {
		if (strchr("<>&\"'", *s))
			fprintf(file, "&#%d;", *s);
		else
			fputc(*s, file);
	}
}

static void put_places(FILE *file, const char *element, const unsigned int *list,
		       unsigned int count)
{
	unsigned int i;

	fprintf(file, "<%s>", element);
	for (i = 0; i < count; i++) {
		fputs("<place>", file);
		put_text(file, place[list[i]]->id);
		fputs("</place>", file);
	}
	fprintf(file, "</%s>", element);
}

static void put_amount(FILE *file, const struct amount *n)
{
	const char *sum = n->difference ? "integer-difference" : "integer-sum";
	bool two = n->others || (n->places && n->constant);

	if (two)
		fprintf(file, "<%s>", sum);
	if (n->places)
		put_places(file, "tokens-count", n->place, n->places);
	if (n->others)
		put_places(file, "tokens-count", n->other, n->others);
	if (n->constant || (!n->places && !n->others))
		fprintf(file, "<integer-constant>%" PRId64 "</integer-constant>", n->constant);
	if (two)
		fprintf(file, "</%s>", sum);
}

static const struct {
	const char *open, *middle, *close;
} elements[] = {
	[DEADLOCK] = { "<deadlock/>", "", "" },
	[FIREABLE] = { "<is-fireable>", "", "</is-fireable>" },
	[NOT] = { "<negation>", "", "</negation>" },
	[AND] = { "<conjunction>", "", "</conjunction>" },
	[OR] = { "<disjunction>", "", "</disjunction>" },
	[XOR] = { "<exclusive-disjunction>", "", "</exclusive-disjunction>" },
	[IMPLICATION] = { "<implication>", "", "</implication>" },
	[EQUIVALENCE] = { "<equivalence>", "", "</equivalence>" },
	[EX] = { "<exists-path><next>", "", "</next></exists-path>" },
	[AX] = { "<all-paths><next>", "", "</next></all-paths>" },
	[EF] = { "<exists-path><finally>", "", "</finally></exists-path>" },
	[AF] = { "<all-paths><finally>", "", "</finally></all-paths>" },
	[EG] = { "<exists-path><globally>", "", "</globally></exists-path>" },
	[AG] = { "<all-paths><globally>", "", "</globally></all-paths>" },
	[EU] = { "<exists-path><until><before>", "</before><reach>",
		 "</reach></until></exists-path>" },
	[AU] = { "<all-paths><until><before>", "</before><reach>", "</reach></until></all-paths>" },
};

static void put_formula(FILE *file, const struct formula *f)
{
	unsigned int i;

	if (f->op == COMPARE) {
		fprintf(file, "<%s>", comparisons[f->comparison]);
		put_amount(file, &f->left);
		put_amount(file, &f->right);
		fprintf(file, "</%s>\n", comparisons[f->comparison]);
		return;
	}
	fputs(elements[f->op].open, file);
	for (i = 0; i < f->count; i++) {
		fputs("<transition>", file);
		put_text(file, transition_id[f->fireable[i]]);
		fputs("</transition>", file);
	}
	if (f->a)
		put_formula(file, f->a);
	fputs(elements[f->op].middle, file);
	if (f->b)
		put_formula(file, f->b);
	fprintf(file, "%s\n", elements[f->op].close);
}

/* ---- examinations ---- */

static void begin_property(FILE *file, const char *examination, unsigned int n)
{
	fprintf(file, "<property><id>%s-%02u</id><formula>", examination, n);
}

static void end_property(FILE *file)
{
	fprintf(file, "</formula></property>\n");
}

static void answer(FILE *file, const char *examination, unsigned int n, struct formula *f)
{
	bool holds;

	begin_property(file, examination, n);
	put_formula(file, f);
	end_property(file);
	if (with_edges) {
		unsigned char *set = evaluate(f);

		holds = set[0];
		free(set);
	} else {
		holds = reachable(f);
	}
	printf("FORMULA %s-%02u %s\n", examination, n, holds ? "TRUE" : "FALSE");
	free_formula(f);
}

static struct formula *path_to(struct formula *a)
{
	struct formula *f = calloc(1, sizeof(*f));

	if (!f)
		errx(2, "no memory");
	f->op = below(2) ? EF : AG;
	f->a = a;
	return f;
}

static void answer_bound(FILE *file, unsigned int n)
{
	unsigned int list[MOST_NAMES], count = choose(list, places, below(2) ? 1 : MOST_NAMES), i;
	uint64_t most = 0, sum;
	size_t s;

	begin_property(file, "UpperBounds", n);
	put_places(file, "place-bound", list, count);
	end_property(file);
	for (s = 0; s < states; s++) {
		for (sum = 0, i = 0; i < count; i++)
			sum += tokens(marking + s * words, list[i]);
		most = sum > most ? sum : most;
	}
	printf("FORMULA UpperBounds-%02u %" PRIu64 "\n", n, most);
}

static void answer_all(FILE *file, unsigned int count)
{
	struct formula *f = calloc(1, sizeof(*f));
	unsigned int n;

	if (!f)
		errx(2, "no memory");
	f->op = DEADLOCK;
	f = path_to(f);
	f->op = EF;
	fprintf(file, "<?xml version=\"1.0\"?>\n<property-set xmlns=\"http://mcc.lip6.fr/\">\n");
	answer(file, "ReachabilityDeadlock", 0, f);
	for (n = 0; n < count; n++) {
		answer(file, "ReachabilityCardinality", n,
		       path_to(random_formula(1 + below(3), false, false)));
		answer(file, "ReachabilityFireability", n,
		       path_to(random_formula(1 + below(3), true, false)));
		answer_bound(file, n);
		if (!with_edges)
			continue;
		answer(file, "CTLCardinality", n, random_formula(2 + below(4), false, true));
		answer(file, "CTLFireability", n, random_formula(2 + below(4), true, true));
	}
	fprintf(file, "</property-set>\n");
}

int main(int argc, char **argv)
{
	unsigned int count = 16;
	FILE *file;
	int option;

	random_state = 1;
	while ((option = getopt(argc, argv, "m:e:n:s:h")) != -1) {
		switch (option) {
		case 'm':
			most_states = strtoull(optarg, NULL, 10);
			break;
		case 'e':
			most_edges = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			count = strtoul(optarg, NULL, 10);
			break;
		case 's':
			random_state = strtoull(optarg, NULL, 10);
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 64;
		}
	}
	if (argc - optind != 2) {
		usage(stderr);
		return 64;
	}
	read_net(argv[optind]);
	for (width = 1; !explore(); width *= 2)
		if (width == 32)
			errx(2, "a place gets too many tokens");
	printf("states %zu\nfired %" PRIu64 "\n", states, fired);
	if (!places)
		return 0;
	if (with_edges)
		turn_edges();
	file = fopen(argv[optind + 1], "we");
	if (!file)
		err(2, "%s", argv[optind + 1]);
	answer_all(file, count);
	if (fclose(file))
		err(2, "%s", argv[optind + 1]);
	return 0;
}

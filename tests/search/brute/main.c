// SPDX-License-Identifier: GPL-2.0
/*
 * brute: write random formulas about a Petri net in the contest's XML, and answer them from the
 * explicit graph of its markings; see usage() below.
 *
 * This program checks kdsm-reach, so it shares no code with it, not even the reader of nets.
 */
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "brute.h"

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

void *grow(void *memory, size_t count, size_t size)
{
	memory = reallocarray(memory, count ? count : 1, size);
	if (!memory)
		errx(2, "no memory");
	return memory;
}

/* splitmix64 */
uint64_t random_state;

unsigned int below(unsigned int n)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}

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
	begin_property(file, examination, n);
	put_formula(file, f);
	end_property(file);
	printf("FORMULA %s-%02u %s\n", examination, n, holds(f) ? "TRUE" : "FALSE");
	free_formula(f);
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
			sum += tokens(marking_of(s), list[i]);
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
	explore();
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

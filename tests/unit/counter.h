/* SPDX-License-Identifier: GPL-2.0 */
/* A net that counts: in the order of the file, saturation finds its states in one round. */
#ifndef UNIT_COUNTER_H
#define UNIT_COUNTER_H

#include <stdio.h>

/* Write a counter of so many bits, the lowest first: t<i> moves the token of z<i> to o<i>. */
static inline void write_counter(FILE *file, unsigned int bits)
{
	unsigned int i, k;

	fprintf(file, "<pnml><net id='n' type='ptnet'>\n");
	for (i = 0; i < bits; i++) {
		fprintf(file, "<place id='z%u'><initialMarking><text>1</text></initialMarking></place>\n"
			"<place id='o%u'/><transition id='t%u'/>\n", i, i, i);
		for (k = 0; k <= i; k++)
			fprintf(file, "<arc id='a%u.%u' source='%c%u' target='t%u'/>\n"
				"<arc id='b%u.%u' source='t%u' target='%c%u'/>\n",
				i, k, k < i ? 'o' : 'z', k, i, i, k, i, k < i ? 'z' : 'o', k);
	}
	fprintf(file, "</net></pnml>\n");
}

#endif /* UNIT_COUNTER_H */

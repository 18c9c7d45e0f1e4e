/* SPDX-License-Identifier: GPL-2.0 */
/* Files and known results of the demonstration models */
#ifndef UNIT_MODELS_H
#define UNIT_MODELS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reach/internal.h"

static char models[4096];	/* directory of the models */

/* Search for tests/models above the program, then in the current directory. */
static inline bool find_models(void)
{
	char self[2000], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = 0;
	do {
		slash = strrchr(self, '/');
		if (slash)
			*slash = 0;
		snprintf(models, sizeof(models), "%s%stests/models", slash ? self : "",
			 slash ? "/" : "");
	} while (slash && access(models, X_OK));
	return true;
}

static inline struct kd_net *read_net(const char *path)
{
	static unsigned char text[1 << 20];
	struct kdsm_reach_message message;
	FILE *file = fopen(path, "r");
	struct kd_net *net;
	size_t size;

	assert_non_null(file);
	size = fread(text, 1, sizeof(text), file);
	fclose(file);
	assert_int_equal(kd_net_read(path, text, size, &net, &message), 0);
	return net;
}

/* Known results of a model */
struct expected {
	char model[64], states[64];
	uint64_t nodes, levels;
};

/*
 * Read the known results of a directory's models. Returns 0 if the directory has no file of
 * them.
 */
static inline unsigned int read_expected_of(const char *directory, struct expected *expected,
					    unsigned int most)
{
	char path[8192], line[256];
	unsigned int n = 0;
	FILE *file;

	assert_in_range(snprintf(path, sizeof(path), "%s/expected.csv", directory), 0,
			sizeof(path) - 1);
	file = fopen(path, "r");
	if (!file)
		return 0;
	assert_non_null(fgets(line, sizeof(line), file));
	while (n < most && fgets(line, sizeof(line), file)) {
		int fields = sscanf(line, "%63[^,],%63[^,],%lu,%lu", expected[n].model,
				    expected[n].states, &expected[n].nodes,
				    &expected[n].levels);

		assert_int_equal(fields, 4);
		n++;
	}
	fclose(file);
	return n;
}

static inline unsigned int read_expected(struct expected *expected, unsigned int most)
{
	unsigned int n = read_expected_of(models, expected, most);

	assert_int_not_equal(n, 0);
	return n;
}

/* Models that are not in the repository, and are optional */
static inline const char *shared_models(void)
{
	static char directory[4200];

	snprintf(directory, sizeof(directory), "%s/../../../shared/models", models);
	return directory;
}

/* Compare what the search found with the known results. */
static inline void check_states(const struct kdsm_reach_result *result,
				const struct expected *expected)
{
	char *states = mpz_get_str(NULL, 10, result->states);

	assert_string_equal(states, expected->states);
	free(states);
	assert_int_equal(result->nodes, expected->nodes);
}

static inline void check_result(const struct kdsm_reach_result *result,
				const struct expected *expected)
{
	check_states(result, expected);
	assert_int_equal(result->levels, expected->levels);
}

#endif /* UNIT_MODELS_H */

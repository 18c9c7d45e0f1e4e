/* SPDX-License-Identifier: GPL-2.0 */
/* Where the demonstration models are: above the program, wherever it was built, or here. */
#ifndef UNIT_MODELS_H
#define UNIT_MODELS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char models[4096];	/* the directory */

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

#endif /* UNIT_MODELS_H */

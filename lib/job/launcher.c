// SPDX-License-Identifier: LGPL-2.1-or-later
/* Variables of the environment by which launchers describe a job to its processes */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/*
 * The variables of each launcher, the most specific launcher first: a program that mpirun starts in
 * an allocation of Slurm has Slurm's variables, too, which do not describe it. The columns behind
 * size are NULL if there is no such variable.
 */
static const struct launcher {
	const char *rank, *size;
	const char *nodes;	/* number of nodes */
	const char *here;	/* number of members on this node */
	const char *job, *step;	/* numbers or names that make up the name of the job */
} launchers[] = {
	{ "KDSM_RANK", "KDSM_SIZE", "KDSM_NODES", NULL, NULL, NULL },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, "OMPI_COMM_WORLD_LOCAL_SIZE",
	  "PMIX_NAMESPACE", NULL },
	{ "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALNRANKS", "PMI_JOBID", NULL },
	{ "PMIX_RANK", "SLURM_NTASKS", "SLURM_NNODES", NULL, "SLURM_JOB_ID", "SLURM_STEP_ID" },
	{ "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NNODES", NULL, "SLURM_JOB_ID", "SLURM_STEP_ID" },
};

/* Returns the value of a variable, or NULL if it is not set or empty. */
static const char *variable(const char *name)
{
	const char *value = name ? getenv(name) : NULL;

	return value && *value ? value : NULL;
}

/*
 * Read a variable as a number from least to most, followed by K, M, G or T if units says so.
 * *number stays if the variable is not set. Returns -EINVAL if it has another value.
 */
static int number(const char *name, uint64_t least, uint64_t most, bool units, uint64_t *number)
{
	static const char letters[] = "KMGT";
	const char *value = variable(name), *letter;
	unsigned long long n;
	char *end;

	if (!value)
		return 0;
	errno = 0;
	n = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)*value) || errno)
		return -EINVAL;
	letter = units && *end ? strchr(letters, *end) : NULL;
	if (letter) {
		unsigned int shift = 10 * (letter - letters + 1);

		if (n > UINT64_MAX >> shift)
			return -EINVAL;
		n <<= shift;
		end++;
	}
	if (*end || n < least || n > most)
		return -EINVAL;
	*number = n;
	return 0;
}

static const struct launcher *find(void)
{
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
		if (variable(launchers[i].size) && (!i || variable(launchers[i].rank)))
			return &launchers[i];
	return NULL;
}

static int read_launcher(struct kd_launch *launch, const struct launcher *launcher,
			 const char **bad)
{
	uint64_t size = 0, rank = 0, nodes = 1, here;

	*bad = launcher->size;
	if (number(launcher->size, 1, KDSM_JOB_MOST, false, &size))
		return -EINVAL;
	*bad = launcher->rank;
	if (number(launcher->rank, 0, size - 1, false, &rank))
		return -EINVAL;
	*bad = launcher->nodes;
	if (number(launcher->nodes, 1, UINT32_MAX, false, &nodes))
		return -EINVAL;
	here = size;
	*bad = launcher->here;
	if (number(launcher->here, 1, UINT32_MAX, false, &here))
		return -EINVAL;
	launch->size = size;
	launch->rank = rank;
	launch->ranked = variable(launcher->rank);
	launch->elsewhere = nodes > 1 || here < size;
	return 0;
}

/* The default name. A name of a region has no spaces and other special characters. */
static void name(struct kd_launch *launch, const struct launcher *launcher)
{
	const char *job = variable("KDSM_JOB"), *step = NULL;
	char *at;

	if (!job && launcher) {
		job = variable(launcher->job);
		step = variable(launcher->step);
	}
	if (!job)
		job = program_invocation_short_name;
	snprintf(launch->name, sizeof(launch->name), "%s%s%s", job, step ? "." : "",
		 step ? step : "");
	for (at = launch->name; *at; at++)
		if (*at < 0x21 || *at > 0x7e)
			*at = '-';
}

int kd_launch_read(struct kd_launch *launch, const char **bad)
{
	const struct launcher *launcher = find();
	const char *local = variable("KDSM_LOCAL");

	memset(launch, 0, sizeof(*launch));
	launch->local = local && strcmp(local, "0");
	name(launch, launcher);
	*bad = "KDSM_MEMORY";
	if (number("KDSM_MEMORY", 1, UINT64_C(1) << 46, true, &launch->memory))
		return -EINVAL;
	*bad = "KDSM_TIMEOUT";
	if (number("KDSM_TIMEOUT", 1, 86400, false, &launch->timeout))
		return -EINVAL;
	launch->timeout *= KD_SECOND;
	return launcher ? read_launcher(launch, launcher, bad) : 0;
}

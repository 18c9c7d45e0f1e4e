// SPDX-License-Identifier: GPL-2.0
/*
 * Jacobi's method for the temperature of a plate whose upper edge is hot, on all members of a job.
 * Each member computes its share of the rows, and reads the rows above and below, which its
 * neighbours write. The sum over the members is the barrier of a step, too.
 */
#include <math.h>
#include <stdio.h>
#include <kdsm/job.h>

#define N 512	/* rows and columns; a row is one block, so members write different blocks */

int main(void)
{
	double change, (*plate)[N][N];
	struct kdsm_job *job;

	kdsm_job_join(NULL, &job);
	plate = kdsm_job_alloc(job, 2 * sizeof(*plate));
	for (int step = 0; step < 200; step++) {
		double (*a)[N] = plate[step % 2], (*b)[N] = plate[(step + 1) % 2];

		change = 0;
		KDSM_JOB_FOR(job, i, N - 1)
			for (int j = 1; j < N - 1; j++) {
				b[i][j] = ((i ? a[i - 1][j] : 100) + a[i + 1][j] +
					   a[i][j - 1] + a[i][j + 1]) / 4;
				change += fabs(b[i][j] - a[i][j]);
			}
		kdsm_job_allreduce(job, KDSM_JOB_DOUBLE, KDSM_JOB_SUM, &change, 1);
	}
	if (!kdsm_job_rank(job))
		printf("change of the last step: %.6f\n", change);
	return kdsm_job_leave(job);
}

// SPDX-License-Identifier: GPL-2.0
/* Functions omp_*: what they return after what was set. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	double begin = omp_get_wtime();
	omp_sched_t kind;
	int chunk, i;

	for (i = omp_sched_static; i <= (int)omp_sched_guided; i++) {
		omp_set_schedule(i, i * 3);
		omp_get_schedule(&kind, &chunk);
		printf("schedule %d %d\n", (int)kind, chunk);
	}
	printf("procs %d, limit %d, dynamic %d, nested %d\n", omp_get_num_procs() > 0,
	       omp_get_thread_limit(), omp_get_dynamic(), omp_get_max_active_levels());
	omp_set_max_active_levels(3);
	printf("levels %d, level %d, active %d, team %d, number %d, ancestor %d %d\n",
	       omp_get_max_active_levels(), omp_get_level(), omp_get_active_level(),
	       omp_get_team_size(0), omp_get_thread_num(), omp_get_ancestor_thread_num(0),
	       omp_get_ancestor_thread_num(1));
#pragma omp parallel num_threads(2)
	{
		/* A thread's variables are its own. */
		omp_set_num_threads(omp_get_thread_num() + 5);
#pragma omp barrier
		if (omp_get_max_threads() != omp_get_thread_num() + 5)
			printf("wrong\n");
#pragma omp master
		printf("level %d, team %d %d\n", omp_get_level(), omp_get_team_size(0),
		       omp_get_team_size(1));
	}
	omp_set_num_threads(3);
	printf("max %d, final %d, cancellation %d, devices %d %d, teams %d %d\n",
	       omp_get_max_threads(), omp_in_final(), omp_get_cancellation(),
	       omp_get_num_devices(), omp_is_initial_device(), omp_get_num_teams(),
	       omp_get_team_num());
	usleep(10000);
	printf("time %d %d\n", omp_get_wtime() - begin >= 0.01, omp_get_wtick() < 0.1);
	return 0;
}

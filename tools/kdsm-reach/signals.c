// SPDX-License-Identifier: GPL-2.0
/* Signals of kdsm-reach, see signals.h. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "signals.h"

static struct kdsm_reach *volatile searching;	/* NULL: no search */
static volatile sig_atomic_t caught;		/* the signal that stopped the search, or 0 */
static bool terminal;				/* has a line of progress */

#define SAY(text)	((void)!write(STDERR_FILENO, text, sizeof(text) - 1))

static void on_report(int number)
{
	int error = errno;

	(void)number;
	if (searching)
		kdsm_reach_report(searching);
	else
		SAY("kdsm-reach: not searching: reading the model, or printing the result\n");
	errno = error;
}

static void on_stop(int number)
{
	int error = errno;

	if (caught) {
		signal(number, SIG_DFL);
		raise(number);	/* ends the process when the handler returns */
		return;
	}
	caught = number;
	kdsm_reach_stop(searching);
	if (terminal)
		SAY("\r\033[K");
	SAY("kdsm-reach: stopping the search; a second signal ends the program at once\n");
	errno = error;
}

/* A shell lets programs in the background ignore SIGINT; leave that. */
static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, former;

	if (!sigaction(number, NULL, &former) && former.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

void signals_begin(void)
{
	terminal = isatty(STDERR_FILENO);
	handle(SIGUSR1, on_report);
}

void signals_catch(struct kdsm_reach *reach)
{
	searching = reach;
	handle(SIGINT, on_stop);
	handle(SIGTERM, on_stop);
}

int signals_release(void)
{
	handle(SIGINT, SIG_DFL);
	handle(SIGTERM, SIG_DFL);
	searching = NULL;
	return caught;
}

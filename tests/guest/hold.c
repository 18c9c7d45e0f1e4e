// SPDX-License-Identifier: GPL-2.0
/*
 * hold open|bound|mapped NAME: have the device open, a file bound to region NAME
 * (created), or only a mapping of it; say "held", and stay until standard input
 * ends. For scripts that look at what the module refuses meanwhile.
 */
#include "hostile.h"

int main(int argc, char **argv)
{
	struct kdsm_region_open arg = {
		.argsz = sizeof(arg), .flags = KDSM_REGION_CREATE, .size = 4 << 20,
		.policy = KDSM_POLICY_PARTITIONED,
	};
	int file = device(O_RDWR), error;
	char c;

	if (argc != 3 || strlen(argv[2]) >= sizeof(arg.name)) {
		fprintf(stderr, "usage: hold open|bound|mapped NAME\n");
		return 2;
	}
	strcpy(arg.name, argv[2]);
	if (strcmp(argv[1], "open")) {
		error = call(file, KDSM_IOC_REGION_OPEN, &arg);
		if (error)
			tap_bail("cannot open region %s: %s", arg.name, strerror(-error));
	}
	if (!strcmp(argv[1], "mapped")) {
		if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED)
			tap_bail("mmap: %s", strerror(errno));
		close(file);
	}
	printf("held\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cut off the packets that this node sends: it gets wrong hardware addresses for all other
 * nodes. It still receives their packets, which is a harder case than silence in both
 * directions. No program is started for that, because on a busy host it would start late.
 */
#ifndef KDSM_TESTS_MUTE_H
#define KDSM_TESTS_MUTE_H

#include <arpa/inet.h>
#include <net/if_arp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Give the node with this address a wrong hardware address, or the right one back. */
static inline bool mute_node(int file, const char *address, bool on)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct arpreq entry = {
		.arp_ha = { .sa_family = ARPHRD_ETHER, .sa_data = "\x02\0\0\0\0\x99" },
		.arp_flags = ATF_COM | ATF_PERM,
		.arp_dev = "eth0",
	};

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		return false;
	memcpy(&entry.arp_pa, &to, sizeof(to));
	return !ioctl(file, on ? SIOCSARP : SIOCDARP, &entry);
}

static inline void mute(bool on)
{
	unsigned int id, self = strtoul(getenv("KDSM_NODE"), NULL, 10);
	FILE *config = fopen(getenv("KDSM_CONFIG"), "r");
	int file = socket(AF_INET, SOCK_DGRAM, 0);
	char line[256], address[64];
	bool done = config && file >= 0;

	while (done && fgets(line, sizeof(line), config))
		if (sscanf(line, "node %u %63s", &id, address) == 2 && id != self)
			done = mute_node(file, address, on);
	if (!done) {
		puts("Bail out! cannot change the neighbours");
		exit(EXIT_FAILURE);
	}
	fclose(config);
	close(file);
}

/*
 * Wait until all nodes have called this as often. The host leads the meeting (tests/machine/run),
 * so nodes without a network can take part.
 */
static inline void meet_at_host(void)
{
	char word[16];

	if (dprintf(3, "%s meet\n", getenv("KDSM_NODE")) < 0 || read(3, word, sizeof(word)) <= 0) {
		puts("Bail out! the host does not answer");
		exit(EXIT_FAILURE);
	}
}

/* Let node 0 remember for long what silent nodes have open, or for as long as usual. */
static inline void remember_nodes(bool on)
{
	FILE *file = fopen("/sys/module/kdsm/parameters/forget_s", "w");

	if (!file || fprintf(file, "%u\n", on ? 3600 : 60) < 0 || fclose(file)) {
		puts("Bail out! cannot set forget_s");
		exit(EXIT_FAILURE);
	}
}

#endif /* KDSM_TESTS_MUTE_H */

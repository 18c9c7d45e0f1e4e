// SPDX-License-Identifier: GPL-2.0
/* How the nodes of hostile-wire and hostile-accept meet; see meeting.h. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include "../hostile.h"
#include "meeting.h"

#define TALK	18816	/* port of node 1, for node 0 */
#define WAIT	18817	/* port of node 1, for the other nodes */

static struct in_addr node1;
/* Node 1: sockets of nodes 2 and above, in any order */
static int others[KDSM_MAX_NODES];
static unsigned int others_count;

void (*meeting_turn)(unsigned int node);

struct json_object *own_status(void)
{
	struct json_object *status = NULL;
	FILE *pipe = popen("kdsmctl status --json", "re");
	static char text[1 << 16];
	size_t length;

	if (pipe) {
		length = fread(text, 1, sizeof(text) - 1, pipe);
		text[length] = '\0';
		if (!pclose(pipe))
			status = json_tokener_parse(text);
	}
	if (!status)
		tap_bail("kdsmctl status failed");
	return status;
}

int64_t member(struct json_object *object, const char *key)
{
	return json_object_get_int64(json_object_object_get(object, key));
}

int64_t peer_member(unsigned int node, const char *key)
{
	struct json_object *status = own_status();
	struct json_object *peers = json_object_object_get(status, "peers");
	int64_t value = member(json_object_array_get_idx(peers, node), key);

	json_object_put(status);
	return value;
}

static struct sockaddr_in address_of(struct json_object *status, int node)
{
	struct json_object *peers = json_object_object_get(status, "peers");
	struct json_object *peer = json_object_array_get_idx(peers, node);
	struct sockaddr_in address = { .sin_family = AF_INET };
	const char *text;

	text = json_object_get_string(json_object_object_get(peer, "address"));
	if (!text || inet_pton(AF_INET, text, &address.sin_addr) != 1)
		tap_bail("no IPv4 address of node %d", node);
	return address;
}

void meeting_scene(struct scene *scene, unsigned int from, unsigned int to)
{
	struct json_object *status = own_status();
	int file = device(O_RDWR);
	struct kdsm_info info = information(file);

	close(file);
	if (info.nodes < 2) {
		tap_ok(true, "# SKIP there is no other node");
		exit(tap_end());
	}
	if (info.node < 2 && system("modprobe -a ib_uverbs rdma_ucm")) {
		tap_ok(true, "# SKIP no verbs for programs in this kernel");
		exit(tap_end());
	}
	node1 = address_of(status, 1).sin_addr;
	scene->own = address_of(status, from);
	scene->target = address_of(status, to);
	scene->target.sin_port = htons(member(status, "port"));
	/* These values are in the wire's byte order only on a little-endian machine. */
	scene->hello = (struct kdsm_wire_hello){
		.magic = KDSM_WIRE_MAGIC,
		.version = KDSM_WIRE_VERSION,
		.node = from,
		.nodes = info.nodes,
		.domain = info.domain,
		.target = to,
		.incarnation = 0x6b64736d,
	};
	memcpy(scene->hello.uuid, info.uuid, sizeof(scene->hello.uuid));
	attack_key_read(&scene->key);
	scene->hello.key = scene->key.id;
	json_object_put(status);
}

static int listener(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, file = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(file, (struct sockaddr *)&any, sizeof(any)) || listen(file, 64))
		tap_bail("cannot listen: %s", strerror(errno));
	return file;
}

/* Connect to node 1, within 60 s. */
static int connect_to(uint16_t port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr = node1, .sin_port = htons(port),
	};

	for (int i = 0; i < 600; i++) {
		int file = socket(AF_INET, SOCK_STREAM, 0);

		if (!connect(file, (struct sockaddr *)&to, sizeof(to)))
			return file;
		close(file);
		usleep(100000);
	}
	tap_bail("node 1 does not come");
}

static FILE *node1_open(unsigned int count)
{
	int wait = listener(WAIT), talk = listener(TALK);

	/* The connections of the other nodes end with this process. */
	for (; others_count < count; others_count++) {
		others[others_count] = accept(wait, NULL, NULL);
		if (others[others_count] < 0)
			tap_bail("accept: %s", strerror(errno));
	}
	return fdopen(accept(talk, NULL, NULL), "r+");
}

void meeting_pass(void)
{
	char c = '>';

	for (unsigned int i = 0; i < others_count; i++)
		if (write(others[i], &c, 1) != 1 || read(others[i], &c, 1) != 1)
			tap_bail("another node does not answer");
}

FILE *meeting_open(unsigned int node, unsigned int nodes)
{
	FILE *stream;
	char c;

	if (node > 1) {
		int file = connect_to(WAIT);

		while (read(file, &c, 1) > 0) {
			if (meeting_turn)
				meeting_turn(node);
			if (write(file, &c, 1) != 1)
				break;
		}
		exit(tap_end());
	}
	stream = node ? node1_open(nodes - 2) : fdopen(connect_to(TALK), "r+");
	if (!stream)
		tap_bail("nobody talks");
	setvbuf(stream, NULL, _IONBF, 0);
	return stream;
}

void own_module(const char *command)
{
	if (system(command))
		tap_bail("%s failed", command);
}

/* Put a word to node 1 from this CPU, which chooses the connection. 0 or -errno. */
static int put_one(void)
{
	int error = -1;

	for (int i = 0; i < 40 && error; i++) {
		int file = device(O_RDWR);
		struct kdsm_region_open open = region(file, "after-wire");
		uint64_t word = 1;
		struct kdsm_op op = { .opcode = KDSM_OP_PUT, .node = 1, .length = 8,
			.addr = (uintptr_t)&word };
		struct kdsm_submit submit = { .argsz = sizeof(submit), .count = 1,
			.flags = KDSM_SUBMIT_WAIT, .ops = (uintptr_t)&op };

		error = call(file, KDSM_IOC_REGION_OPEN, &open);
		if (!error)
			error = call(file, KDSM_IOC_SUBMIT, &submit);
		close(file);
		if (error)
			usleep(500000);
	}
	return error;
}

void recovers(void)
{
	int error = 0, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t before, one;

	sched_getaffinity(0, sizeof(before), &before);
	for (int i = 0; i < cpus && !error; i++) {
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		sched_setaffinity(0, sizeof(one), &one);
		error = put_one();
	}
	sched_setaffinity(0, sizeof(before), &before);
	tap_result(error, 0, "the nodes work together again");
}

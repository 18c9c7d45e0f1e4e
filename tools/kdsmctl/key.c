// SPDX-License-Identifier: GPL-2.0
/* kdsmctl key: make the key of a cluster, and change it while nodes are up. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/module.h"
#include "commands.h"
#include "key_file.h"

struct arguments {
	const char *path;
};

static int take_path(void *values, unsigned int index, const char *text, char *reason)
{
	struct arguments *arguments = values;

	(void)index;
	return take_name(&arguments->path, text, reason);
}

static const char *parse_path(const char *doc, int argc, char **argv)
{
	const struct cli cli = {
		.doc = doc, .args = "KEYFILE", .least = 1, .most = 1, .argument = take_path,
	};
	struct arguments arguments = { 0 };

	cli_parse(&cli, argc, argv, &arguments);
	return arguments.path;
}

int key_make(int argc, char **argv)
{
	const char *path = parse_path("Make a random key and write it to KEYFILE, which does not exist "
				      "yet. Copy it to all nodes, over a channel that nobody else "
				      "can read.", argc, argv);
	char error[512];

	if (key_file_make(path, error, sizeof(error)))
		errx(EXIT_FAILURE, "%s", error);
	return EXIT_SUCCESS;
}

static void take_uuid(attrs at, void *data)
{
	if (at[KDSM_A_UUID] && mnl_attr_get_payload_len(at[KDSM_A_UUID]) == KDSM_UUID_SIZE)
		memcpy(data, mnl_attr_get_payload(at[KDSM_A_UUID]), KDSM_UUID_SIZE);
}

static int load(struct module *module, const char *path)
{
	uint8_t uuid[KDSM_UUID_SIZE];
	char text[512];
	int error;

	module_begin(module, KDSM_CMD_STATUS);
	error = module_send(module, take_uuid, uuid);
	if (!error && key_file_load(path, uuid, text, sizeof(text)))
		errx(EXIT_FAILURE, "%s", text);
	if (!error) {
		module_begin(module, KDSM_CMD_KEY_LOAD);
		error = module_send(module, NULL, NULL);
	}
	return error;
}

/* Call a function with the module, and tell of its error. Returns an exit status. */
static int with_module(int (*call)(struct module *module, const char *path), const char *path,
		       const char *doing)
{
	struct module *module = module_need();
	int error;

	error = call(module, path);
	return module_end(module, doing, error);
}

int key_load(int argc, char **argv)
{
	const char *path = parse_path("Let this node, which is up, use the key in KEYFILE, and accept "
				      "the key that it used until now, too.", argc, argv);

	return with_module(load, path, "load the key");
}

static int retire(struct module *module, const char *path)
{
	(void)path;
	module_begin(module, KDSM_CMD_KEY_RETIRE);
	return module_send(module, NULL, NULL);
}

int key_retire(int argc, char **argv)
{
	static const struct cli cli = {
		.doc = "Let this node accept only the key that it loaded last.",
	};

	cli_parse(&cli, argc, argv, NULL);
	return with_module(retire, NULL, "retire the former key");
}

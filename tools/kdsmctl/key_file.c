// SPDX-License-Identifier: GPL-2.0
/* The file of a cluster's key; see key_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "key_file.h"

#define DIGITS	(2 * KDSM_KEY_SIZE)

int key_file_make(const char *path, char *error, size_t error_size)
{
	char text[DIGITS + 2];
	uint8_t key[KDSM_KEY_SIZE];
	int file;

	if (getrandom(key, sizeof(key), 0) != sizeof(key)) {
		snprintf(error, error_size, "no random numbers: %s", strerror(errno));
		return -1;
	}
	for (size_t i = 0; i < sizeof(key); i++)
		snprintf(text + 2 * i, 3, "%02x", key[i]);
	text[DIGITS] = '\n';
	file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0) {
		snprintf(error, error_size, "%s: %s", path, errno == EEXIST ?
			 "exists; remove it if no node uses that key" : strerror(errno));
		return -1;
	}
	if (write(file, text, DIGITS + 1) != DIGITS + 1 || fsync(file) || close(file)) {
		snprintf(error, error_size, "%s: cannot write: %s", path, strerror(errno));
		unlink(path);
		return -1;
	}
	return 0;
}

/* Parse one line of digits, and nothing else. */
static bool parse(const char *text, size_t length, uint8_t key[KDSM_KEY_SIZE])
{
	unsigned int byte;

	if (length != DIGITS && !(length == DIGITS + 1 && text[DIGITS] == '\n'))
		return false;
	if (strspn(text, "0123456789abcdefABCDEF") != DIGITS)
		return false;
	for (size_t i = 0; i < KDSM_KEY_SIZE; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		key[i] = byte;
	}
	return true;
}

/* Read a key from a file that nobody but its owner, this user or root, can read. */
static int read_key(const char *path, uint8_t key[KDSM_KEY_SIZE], char *error, size_t error_size)
{
	char text[DIGITS + 3] = "";
	struct stat status;
	ssize_t length;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0) {
		snprintf(error, error_size, "%s: %s", path, errno == ENOENT ?
			 "does not exist; 'kdsmctl key make' makes a key, which all nodes need" :
			 strerror(errno));
		return -1;
	}
	if (fstat(file, &status) || !S_ISREG(status.st_mode)) {
		snprintf(error, error_size, "%s: not a file with a key", path);
		goto close;
	}
	if (status.st_mode & 077 || (status.st_uid && status.st_uid != geteuid())) {
		snprintf(error, error_size,
			 "%s: mode %04o, user %u: others can know the key; make another, of mode 0600",
			 path, status.st_mode & 07777, status.st_uid);
		goto close;
	}
	length = read(file, text, sizeof(text) - 1);
	if (length < 0 || !parse(text, length, key)) {
		snprintf(error, error_size, "%s: not a key, which is a line of %d hexadecimal digits",
			 path, DIGITS);
		goto close;
	}
	close(file);
	return 0;
close:
	close(file);
	return -1;
}

int key_file_check(const char *path, char *error, size_t error_size)
{
	uint8_t key[KDSM_KEY_SIZE];
	int result = read_key(path, key, error, error_size);

	explicit_bzero(key, sizeof(key));
	return result;
}

int key_file_load(const char *path, const uint8_t uuid[KDSM_UUID_SIZE], char *error,
		  size_t error_size)
{
	char name[sizeof(KDSM_KEY_PREFIX) + UUID_STR_LEN] = KDSM_KEY_PREFIX;
	uint8_t key[KDSM_KEY_SIZE];
	long added;

	if (read_key(path, key, error, error_size))
		return -1;
	uuid_unparse_lower(uuid, name + strlen(KDSM_KEY_PREFIX));
	added = syscall(SYS_add_key, KDSM_KEY_TYPE, name, key, sizeof(key),
			KEY_SPEC_PROCESS_KEYRING);
	explicit_bzero(key, sizeof(key));
	if (added >= 0)
		return 0;
	snprintf(error, error_size, "%s: the kernel does not take the key: %s", path,
		 strerror(errno));
	return -1;
}

/* SPDX-License-Identifier: GPL-2.0 */
/* The file of a cluster's key: a line of 64 hexadecimal digits, that only its owner can read. */
#ifndef KDSMCTL_KEY_FILE_H
#define KDSMCTL_KEY_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <kdsm/uapi_netlink.h>

/*
 * Make a random key and write it to a new file. All functions return 0, or -1 with a sentence in
 * error, without a newline, that names the file, the mistake and the remedy.
 */
int key_file_make(const char *path, char *error, size_t error_size);
/* Read a file, and check that it has a key that nobody else can know. */
int key_file_check(const char *path, char *error, size_t error_size);
/*
 * Read a file and put its key into the keyring of this process, where the module finds the key of
 * the cluster with this UUID.
 */
int key_file_load(const char *path, const uint8_t uuid[KDSM_UUID_SIZE], char *error,
		  size_t error_size);

#endif /* KDSMCTL_KEY_FILE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* The module's generic netlink family: requests, dumps, and messages about errors. */
#ifndef COMMON_MODULE_H
#define COMMON_MODULE_H

#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>
#include <linux/kdsm_netlink.h>

struct module;

/* Parsed attributes of one message; NULL where one is absent. */
typedef const struct nlattr *const *attrs;

/* NULL after a message on stderr. */
struct module *module_open(void);
void module_close(struct module *module);

/* Size of the largest request, in bytes, for mnl_attr_put_check() */
#define MODULE_MAX_REQUEST	(256U << 10)

/*
 * Begin a request with module_begin(), fill it with mnl_attr_put_check(), and send it with
 * module_send(). module_send() and module_dump() return 0 or a negative errno, and print
 * nothing; reply() sees each message of the answer, and may be NULL. module_complain() prints
 * why "doing" failed, with the module's text if it gave one.
 */

struct nlmsghdr *module_begin(struct module *module, enum kdsm_cmd cmd);
int module_send(struct module *module, void (*reply)(attrs at, void *data), void *data);
int module_dump(struct module *module, enum kdsm_cmd cmd,
		void (*reply)(attrs at, void *data), void *data);
void module_complain(struct module *module, const char *doing, int error);

/* 0 or "" if the attribute is absent: the module may be older than this program. */
uint32_t attr_u32(attrs at, enum kdsm_attr type);
uint64_t attr_u64(attrs at, enum kdsm_attr type);
const char *attr_string(attrs at, enum kdsm_attr type);
/* Add the numbers of a nest, whose attributes count from 1, to count values. */
void attr_counters(attrs at, enum kdsm_attr type, uint64_t *values, unsigned int count);

#endif /* COMMON_MODULE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module's generic netlink family: requests, dumps, and what errors mean.
 */
#ifndef KDSMCTL_MODULE_H
#define KDSMCTL_MODULE_H

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

/*
 * A request is begun, filled with mnl_attr_put_check() up to MODULE_MAX_REQUEST
 * and sent. module_send() and module_dump() return 0 or a negative errno, and
 * say nothing; module_complain() says on stderr what went wrong, with the
 * module's own words where it gave some.
 */
#define MODULE_MAX_REQUEST	(256U << 10)

struct nlmsghdr *module_begin(struct module *module, enum kdsm_cmd cmd);
int module_send(struct module *module, void (*reply)(attrs at, void *data), void *data);
int module_dump(struct module *module, enum kdsm_cmd cmd,
		void (*reply)(attrs at, void *data), void *data);
void module_complain(struct module *module, const char *doing, int error);

/* Absent numbers are 0, absent strings "": the module may be older. */
uint32_t attr_u32(attrs at, enum kdsm_attr type);
uint64_t attr_u64(attrs at, enum kdsm_attr type);
const char *attr_string(attrs at, enum kdsm_attr type);

#endif /* KDSMCTL_MODULE_H */

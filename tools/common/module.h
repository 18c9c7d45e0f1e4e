/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module's generic netlink family: requests, dumps, and messages about errors. A struct
 * module is an open netlink socket; one thread at a time uses it.
 */
#ifndef COMMON_MODULE_H
#define COMMON_MODULE_H

#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>
#include <kdsm/uapi_netlink.h>

struct module;

/* Parsed attributes of one message; NULL where one is absent. */
typedef const struct nlattr *const *attrs;

/* Open the family. Returns NULL after a message on stderr. */
struct module *module_open(void);
/* As module_open(), but the program ends with EXIT_FAILURE instead */
struct module *module_need(void);
void module_close(struct module *module);

/* Size of the largest request, in bytes, for mnl_attr_put_check() */
#define MODULE_MAX_REQUEST	(256U << 10)

/*
 * A caller begins a request with module_begin(), fills it with mnl_attr_put_check(), and sends it
 * with module_send() or, for a list, module_list(); or it asks for a list without attributes with
 * module_dump(). All return 0 or a negative errno, and print nothing. They call reply(), which may
 * be NULL, for each message of the answer. module_complain() prints to stderr why "doing" failed
 * with error, a negative errno, and the module's own text if it sent one.
 */

struct nlmsghdr *module_begin(struct module *module, enum kdsm_cmd cmd);
int module_send(struct module *module, void (*reply)(attrs at, void *data), void *data);
int module_list(struct module *module, void (*reply)(attrs at, void *data), void *data);
int module_dump(struct module *module, enum kdsm_cmd cmd,
		void (*reply)(attrs at, void *data), void *data);
/*
 * Join the multicast group of events. A module that has joined is for module_receive() only,
 * which waits for messages and calls reply() for each. Both return 0 or a negative errno; -ENOBUFS:
 * messages were lost, because the caller was slow.
 */
int module_join(struct module *module);
int module_receive(struct module *module, void (*reply)(attrs at, void *data), void *data);
void module_complain(struct module *module, const char *doing, int error);
/*
 * Close the module after a command, and return the exit status of the program: EXIT_FAILURE, after
 * module_complain(), if error is not 0
 */
int module_end(struct module *module, const char *doing, int error);

/*
 * Return the value of an attribute; 0 or "" if the attribute is absent, because the module may
 * be older than this program.
 */
uint32_t attr_u32(attrs at, enum kdsm_attr type);
uint64_t attr_u64(attrs at, enum kdsm_attr type);
const char *attr_string(attrs at, enum kdsm_attr type);
/*
 * Store the text of an IPv4 or IPv6 address in buffer, of INET6_ADDRSTRLEN bytes, and return it;
 * "?" if the attribute is absent.
 */
const char *attr_address(attrs at, enum kdsm_attr type, char *buffer);
/* Add each number of a nest to a value: attribute i of the nest to values[i - 1]. */
void attr_counters(attrs at, enum kdsm_attr type, uint64_t *values, unsigned int count);

#endif /* COMMON_MODULE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* The generic netlink family; <kdsm/uapi_netlink.h> documents its commands */
#ifndef KDSM_NETLINK_H
#define KDSM_NETLINK_H

int kdsm_netlink_init(void);
void kdsm_netlink_exit(void);

#endif /* KDSM_NETLINK_H */

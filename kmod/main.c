// SPDX-License-Identifier: GPL-2.0
/* Loading and unloading of the module; cluster.c brings the cluster up and down */
#include <linux/module.h>

#include "chardev.h"
#include "cluster.h"
#include "coherence/coherence.h"
#include "netlink.h"
#include "region/region.h"

static int __init kdsm_init(void)
{
	int err;

	err = kdsm_blocks_init();
	if (err)
		return err;
	err = kdsm_fabric_init();
	if (err)
		goto exit_blocks;
	err = kdsm_chardev_init();
	if (err)
		goto exit_fabric;
	err = kdsm_netlink_init();
	if (err)
		goto exit_chardev;
	return 0;

exit_chardev:
	kdsm_chardev_exit();
exit_fabric:
	kdsm_fabric_exit();
exit_blocks:
	kdsm_blocks_exit();
	return err;
}

static void __exit kdsm_exit(void)
{
	kdsm_netlink_exit();
	/* Cannot fail with -EBUSY: an open file pins the module, so no file is bound here. */
	kdsm_cluster_down();
	kdsm_chardev_exit();
	kdsm_notifier_exit();
	kdsm_fabric_exit();
	kdsm_blocks_exit();
}

module_init(kdsm_init);
module_exit(kdsm_exit);

MODULE_DESCRIPTION("Distributed shared memory over RDMA");
MODULE_AUTHOR("The kdsm developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(KDSM_VERSION);

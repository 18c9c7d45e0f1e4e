/* SPDX-License-Identifier: GPL-2.0 */
/* The character device /dev/kdsm. */
#ifndef KDSM_CHARDEV_H
#define KDSM_CHARDEV_H

#include <linux/types.h>

/*
 * Copy in an argument struct of any known size, at least that of its first version; see
 * <linux/kdsm.h>. *argsz: what the caller says; as much is copied out by put.
 */
int kdsm_args_get(void *args, size_t size, size_t least, void __user *user, u32 *argsz);
int kdsm_args_put(const void *args, size_t size, void __user *user, u32 argsz);

int kdsm_chardev_init(void);
void kdsm_chardev_exit(void);

#endif /* KDSM_CHARDEV_H */

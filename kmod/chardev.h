/* SPDX-License-Identifier: GPL-2.0 */
/* The character device /dev/kdsm; <kdsm/uapi.h> documents its ioctls */
#ifndef KDSM_CHARDEV_H
#define KDSM_CHARDEV_H

int kdsm_chardev_init(void);
void kdsm_chardev_exit(void);

#endif /* KDSM_CHARDEV_H */

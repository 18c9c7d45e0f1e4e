/* SPDX-License-Identifier: GPL-2.0 */
/* Argument structs of ioctls, which grow from one version to the next. */
#ifndef KDSM_ARGUMENTS_H
#define KDSM_ARGUMENTS_H

#include <linux/types.h>

/*
 * Copy in an argument struct of size bytes. A caller of another version has a shorter or
 * longer one, of least bytes or more, and says in its first word how long; see
 * <linux/kdsm.h>. *argsz is that length, which kdsm_args_put() needs.
 * -EFAULT; -EINVAL: too short; -E2BIG: too long, or bytes that this version does not know
 * are not zero.
 */
int kdsm_args_get(void *args, size_t size, size_t least, void __user *user, u32 *argsz);
/* Copy out as much of the struct as the caller has room for. -EFAULT. */
int kdsm_args_put(const void *args, size_t size, void __user *user, u32 argsz);

#endif /* KDSM_ARGUMENTS_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Copying the argument structs of ioctls, which grow from one version to the next */
#ifndef KDSM_ARGUMENTS_H
#define KDSM_ARGUMENTS_H

#include <linux/types.h>

/**
 * kdsm_args_get() - copy in the argument struct of an ioctl
 * @args: the module's struct; bytes that the program does not pass are set to 0
 * @size: of the module's struct, in bytes
 * @least: size of the first version of the struct, in bytes
 * @user: the program's struct, whose first word is its size; see <kdsm/uapi.h>
 * @argsz: set to the size of the program's struct, for kdsm_args_put()
 *
 * A program of another version may pass a shorter or longer struct.
 *
 * Return: 0; -EFAULT; -EINVAL if the program's struct is shorter than @least; -E2BIG if the
 * program's struct is longer than a page, or has bytes behind @size that are not 0.
 */
int kdsm_args_get(void *args, size_t size, size_t least, void __user *user, u32 *argsz);

/**
 * kdsm_args_put() - copy out as much of an argument struct as the program has room for
 * @args: the module's struct
 * @size: of the module's struct, in bytes
 * @user: the program's struct
 * @argsz: size of the program's struct, from kdsm_args_get()
 *
 * Return: 0 or -EFAULT.
 */
int kdsm_args_put(const void *args, size_t size, void __user *user, u32 argsz);

#endif /* KDSM_ARGUMENTS_H */

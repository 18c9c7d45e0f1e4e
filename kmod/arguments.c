// SPDX-License-Identifier: GPL-2.0
/* Copying the argument structs of ioctls in and out; see arguments.h */
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "arguments.h"

int kdsm_args_get(void *args, size_t size, size_t least, void __user *user, u32 *argsz)
{
	if (get_user(*argsz, (u32 __user *)user))
		return -EFAULT;
	if (*argsz < least)
		return -EINVAL;
	if (*argsz > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(args, size, user, *argsz);
}

int kdsm_args_put(const void *args, size_t size, void __user *user, u32 argsz)
{
	return copy_to_user(user, args, min_t(size_t, size, argsz)) ? -EFAULT : 0;
}

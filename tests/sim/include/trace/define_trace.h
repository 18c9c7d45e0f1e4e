/* SPDX-License-Identifier: GPL-2.0 */
/* There are no tracepoints, so there is nothing to define. */

/* SPDX-License-Identifier: GPL-2.0 */
/* No tracepoints: there is nothing to define. */

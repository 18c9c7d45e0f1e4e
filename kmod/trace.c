// SPDX-License-Identifier: GPL-2.0
/* Defines the tracepoints of trace.h; no other file may define CREATE_TRACE_POINTS. */
#include <linux/types.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

// SPDX-License-Identifier: GPL-2.0
/* Names and operands of the instructions */
#include "program.h"

const char *const op_names[] = {
#define X(id, name, operands) [DASS_##id] = name,
	DASS_INSTRUCTIONS
#undef X
	[DASS_end] = "the end",
};

const char *const op_operands[] = {
#define X(id, name, operands) [DASS_##id] = operands,
	DASS_INSTRUCTIONS
#undef X
	[DASS_end] = "",
};

// SPDX-License-Identifier: GPL-2.0
/*
 * The forms. Those of the literature have the names that diy and herd give them. The
 * forbidden outcomes are written by hand; tests/unit/litmus.c compares them with the outcomes
 * that litmus_explore() finds.
 *
 * The outcome that must be seen is mostly that of roles of which each begins when the role before
 * has ended. An outcome without synchronisation MAY show if it needs a rare order of releases.
 */
#include "litmus.h"

#define MUST	LITMUS_MUST
#define MAY	LITMUS_MAY
#define NEVER	LITMUS_NEVER

const struct litmus_form litmus_forms[] = {
	/* Two roles */
	{ "MP", "x=1 y=1 | a=y b=x", "a=1 b=0", "a=1 b=1", MUST },
	{ "SB", "x=1 a=y | y=1 b=x", "a=0 b=0", "a=0 b=1", MUST },
	{ "LB", "a=x y=1 | b=y x=1", "a=1 b=1", "a=0 b=1", NEVER },
	{ "R", "x=1 y=1 | y=2 a=x", "Y=2 a=0", "Y=2 a=1", MUST },
	{ "S", "x=2 y=1 | a=y x=1", "a=1 X=2", "a=1 X=1", MAY },
	{ "2+2W", "x=1 y=2 | y=1 x=2", "X=1 Y=1 or X=0 or Y=0", "X=2 Y=1", MUST },
	/* Each role reads its own store, and then once more, before the other variable. */
	{ "SB+rfi-pos", "x=1 a=x b=x c=y | y=1 d=y e=y f=x", "a=1 b=1 c=0 d=1 e=1 f=0",
	  "a=1 b=1 c=0 d=1 e=1 f=1", MUST },
	/* One variable */
	{ "CoRR", "x=1 | a=x b=x", "a=1 b=0", "a=1 b=1", MAY },
	{ "CoRR2", "x=1 | x=2 | a=x b=x | c=x d=x", "a=1 b=2 c=2 d=1", "a=2 b=2 c=2 d=2", MAY },
	{ "CoWW", "x=1 x=2 | a=x b=x", "X!2 or a=1 b=0 or a=2 b!2", "a=2 b=2", MAY },
	{ "CoRW1", "a=x x=1", "a=1", "a=0 X=1", NEVER },
	{ "CoRW2", "a=x x=1 | x=2", "a=2 X=2", "a=0 X=2", MAY },
	{ "CoWR", "x=1 a=x | x=2", "a=2 X=1 or a=0", "a=1 X=2", NEVER },
	{ "exchange", "a=x:1 | b=x:2",
	  "a=0 b!1 or b=0 a!2 or a=0 X!2 or b=0 X!1 or a!0 b!0", "a=0 b=1 X=2", MUST },
	/* Three roles and two variables */
	{ "WRC", "x=1 | a=x y=1 | b=y c=x", "a=1 b=1 c=0", "a=1 b=1 c=1", MUST },
	{ "RWC", "x=1 | a=x b=y | y=1 c=x", "a=1 b=0 c=0", "a=1 b=0 c=1", MUST },
	{ "WWC", "x=2 | a=x y=1 | b=y x=1", "a=2 b=1 X=2", "a=2 b=1 X=1", MAY },
	{ "WRR+2W", "x=2 | a=x b=y | y=1 x=1", "a=2 b=0 X=2", "a=2 b=0 X=1", MUST },
	{ "WRW+2W", "x=2 | a=x y=1 | y=2 x=1", "a=2 Y=2 X=2", "a=2 Y=2 X=1", MAY },
	{ "WRW+WR", "x=1 | a=x y=1 | y=2 b=x", "a=1 Y=2 b=0", "a=1 Y=2 b=1", MUST },
	/* Three variables */
	{ "ISA2", "x=1 y=1 | a=y z=1 | b=z c=x", "a=1 b=1 c=0", "a=1 b=1 c=1", MUST },
	{ "W+RWC", "x=1 y=1 | a=y b=z | z=1 c=x", "a=1 b=0 c=0", "a=1 b=0 c=1", MUST },
	{ "Z6.0", "x=1 y=1 | a=y z=1 | z=2 b=x", "a=1 Z=2 b=0", "a=1 Z=2 b=1", MUST },
	{ "Z6.1", "x=2 y=1 | y=2 z=1 | a=z x=1", "Y=2 a=1 X=2", "Y=2 a=1 X=1", MAY },
	{ "Z6.2", "x=2 y=1 | a=y z=1 | b=z x=1", "a=1 b=1 X=2", "a=1 b=1 X=1", MAY },
	{ "Z6.3", "x=1 y=1 | y=2 z=1 | a=z b=x", "Y=2 a=1 b=0", "Y=2 a=1 b=1", MUST },
	{ "Z6.4", "x=1 y=1 | y=2 a=z | z=1 b=x", "Y=2 a=0 b=0", "Y=2 a=0 b=1", MUST },
	{ "Z6.5", "x=1 y=1 | y=2 z=1 | z=2 a=x", "Y=2 Z=2 a=0", "Y=2 Z=2 a=1", MUST },
	{ "3.SB", "x=1 a=y | y=1 b=z | z=1 c=x", "a=0 b=0 c=0", "a=0 b=0 c=1", MUST },
	{ "3.LB", "a=x y=1 | b=y z=1 | c=z x=1", "a=1 b=1 c=1", "a=0 b=1 c=1", NEVER },
	{ "3.2W", "x=2 y=1 | y=2 z=1 | z=2 x=1", "X=2 Y=2 Z=2", "X=1 Y=2 Z=2", MUST },
	/* Four roles */
	{ "IRIW", "x=1 | y=1 | a=x b=y | c=y d=x", "a=1 b=0 c=1 d=0", "a=1 b=1 c=1 d=1", MUST },

	/* Synchronisation of their own */
	{ "MP by a signature", "x=1 !0 | a=x ?0 b=x", "b!1", NULL, MAY },
	{ "MP by a barrier", "x=1 # | a=x # b=x", "b!1", NULL, MAY },
	{ "SB, and a barrier", "x=1 a=y # | y=1 b=x #", "X!1 or Y!1", NULL, MAY },
	{ "WRC by signatures", "x=1 !0 | ?0 a=x y=1 !1 | ?1 b=y c=x",
	  "a!1 or b!1 or c!1", NULL, MAY },
	{ "ISA2 by signatures", "x=1 y=1 !0 | ?0 a=y z=1 !1 | ?1 b=z c=x",
	  "a!1 or b!1 or c!1", NULL, MAY },
	{ "W+RWC, one half ordered", "x=1 y=1 !0 | ?0 a=y b=z | z=1 c=x",
	  "a!1 or X!1 or Z!1", NULL, MAY },
	{ "IRIW, all ordered", "x=1 !0 !1 | y=1 !2 !3 | ?0 a=x ?2 b=y | ?3 c=y ?1 d=x",
	  "a!1 or b!1 or c!1 or d!1", NULL, MAY },
	{ "IRIW, one half ordered", "x=1 !0 | y=1 !1 | ?0 a=x b=y | ?1 c=y d=x",
	  "a!1 or c!1", NULL, MAY },
	{ "CoRR by signatures", "x=1 !0 x=2 !1 | ?0 a=x b=x ?1 c=x d=x",
	  "a=0 or b=0 or c!2 or d!2", NULL, MAY },
	{ "CoWW by signatures", "x=1 !0 | ?0 x=2 !1 | ?1 a=x b=x", "a!2 or b!2 or X!2", NULL, MAY },
	{ "2+2W by a signature", "x=1 y=2 !0 | ?0 y=1 x=2", "X!2 or Y!1", NULL, MAY },
	{ "3.SB, and a barrier", "x=1 # a=y | y=1 # b=z | z=1 # c=x",
	  "a!1 or b!1 or c!1", NULL, MAY },
	{ "MP by a lock", "(0 x=1 y=1 )0 | (0 a=y b=x )0", "a=1 b!1 or a=0 b!0", NULL, MAY },
	{ "MP by two locks", "(0 x=1 )0 (1 y=1 )1 | (1 a=y )1 (0 b=x )0", "a=1 b!1", NULL, MAY },
	{ "WRC, seen at second hand", "(0 x=1 )0 | (0 a=x )0 (1 y=1 )1 | (1 b=y c=x )1",
	  "a=1 b=1 c=0", NULL, MAY },
	{ "2+2W by a lock", "(0 x=1 y=2 )0 | (0 y=1 x=2 )0",
	  "X=1 Y=1 or X=2 Y=2 or X=0 or Y=0", NULL, MAY },
	{ "3.2W by a lock", "(0 x=2 y=1 )0 | (0 y=2 z=1 )0 | (0 z=2 x=1 )0",
	  "X=2 Y=2 Z=2 or X=0 or Y=0 or Z=0", NULL, MAY },
	{ "exchange by a lock", "(0 a=x x=1 )0 | (0 b=x x=2 )0 | (0 c=x )0",
	  "a=0 b!1 or b=0 a!2 or a=0 X!2 or b=0 X!1 or a!0 b!0", NULL, MAY },
	{ NULL, NULL, NULL, NULL, MAY }
};

const unsigned int litmus_form_count = sizeof(litmus_forms) / sizeof(litmus_forms[0]) - 1;

const char *const litmus_sync_names[LITMUS_SYNCS] = {
	[LITMUS_ALONE] = "alone",
	[LITMUS_LOCKED] = "locked",
	[LITMUS_PHASES] = "phases",
	[LITMUS_CHAIN] = "chain",
};

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Marks in the instruction stream. A mark is a no-op whose operand is unused, so a
 * processor ignores it. tests/counts/plugin.c, when QEMU has loaded it, records at each
 * mark how many instructions all emulated machines have executed.
 */
#ifndef MARK_H
#define MARK_H

/* The upper three bytes of the no-op's displacement; the lowest is the mark's number */
#define MARK_MAGIC	0x6d7364

#define MARK_BEGIN	1	/* the measured operation begins */
#define MARK_MIDDLE	2	/* its second half begins */
#define MARK_END	3	/* it has ended */
#define MARK_DONE	4	/* a thread of any node has done one of the measured things */

#ifdef __x86_64__
/* nopl disp32(%rcx) */
#define mark_place(number)							\
	({									\
		__asm__ volatile(".byte 0x0f, 0x1f, 0x81\n\t.long %c0"		\
				 : : "i" (MARK_MAGIC << 8 | (number)) : "memory");	\
	})
#else
#define mark_place(number) do { } while (0)
#endif

#endif /* MARK_H */

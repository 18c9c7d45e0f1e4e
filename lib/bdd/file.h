/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files in the .bdd format: what their readers have in common, and how functions
 * are written. All integers are little-endian, without padding:
 *
 *	file     := i32 integers_per_state, i32 bits_per_integer, i32 action_bits,
 *	            set, i32 relation_count, relation * relation_count, [trailer]
 *	set      := section, u64 bdd, u64 integers_per_state, u64 variables
 *	relation := section, u64 bdd, u64 variables
 *	section  := u64 count, node * count
 *	node     := u64 a, u64 b
 *
 * Nodes are numbered from 1 through all sections and refer to lower numbers; they
 * are those of <kdsm/bdd.h>. To readers of models whatever follows the relations is
 * nothing. What kdsm writes there lets it see damage, and has a place for a note:
 *
 *	trailer  := u64 magic, u64 words, u64 note * words, u64 checksum
 *
 * The checksum is over all integers in front of it, each as 64 bits, so a file with one
 * changed bit is refused wherever the bit is; but for the magic itself, where it makes a
 * file without trailer of what is as it was written for the rest.
 */
#ifndef KD_BDD_FILE_H
#define KD_BDD_FILE_H

#include "internal.h"

#define KD_FIRST_ACTION	1000000
#define KD_FILE_MAX_BITS	(KD_FIRST_ACTION / 2)	/* of a state */
#define KD_FILE_MAX_ACTIONS	(KDSM_BDD_MAX_VARIABLE + 1 - KD_FIRST_ACTION)
#define KD_FILE_MAGIC	UINT64_C(0x0a4d55536d73646b)	/* "kdsmSUM\n" */

/* From one checksum to the next: another word gives another one. */
static inline uint64_t kd_file_sum(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 32;
}

/*
 * Reading. The file is not trusted: every length, reference and variable is checked
 * before it is used, and memory is asked for only in proportion to what was read.
 */
struct kd_bdd_reader {
	struct kdsm_bdd_worker *worker;	/* makes the nodes */
	FILE *file;			/* or NULL: the file is in bytes */
	const unsigned char *bytes;
	uint64_t size, at;		/* of bytes; how far it is read */
	uint64_t sum;
	uint32_t integers, bits, actions;	/* of a state; bits in all; of a label */
	kdsm_bdd *edges;		/* by number in the file */
	uint32_t *variables;		/* likewise, to check the order */
	uint64_t count, capacity;	/* of both; number 0 included */
	const char *wrong;		/* after -EINVAL, with the offset of the field */
	uint64_t wrong_at;
};

/* What is wrong, and at which offset. Returns -EINVAL. */
int kd_bdd_wrong(struct kd_bdd_reader *r, uint64_t at, const char *what);

/* The first of all. Whatever it returns, the reader is to be destroyed. */
int kd_bdd_get_header(struct kd_bdd_reader *r);
void kd_bdd_reader_destroy(struct kd_bdd_reader *r);
int kd_bdd_get_u64(struct kd_bdd_reader *r, uint64_t *value);
int kd_bdd_get_i32(struct kd_bdd_reader *r, int32_t *value);
int kd_bdd_get_edge(struct kd_bdd_reader *r, kdsm_bdd *edge);
int kd_bdd_get_section(struct kd_bdd_reader *r);

/* What a file has: functions, and with each the set that it was written with. */
struct kd_bdd_content {
	kdsm_bdd *function, *variables;
	unsigned int count;
	uint64_t *note;
	uint64_t words;			/* of the note */
	bool whole;			/* there is a trailer */
};

/*
 * Read all of it, from a reader of which worker and file are set. Whatever it returns,
 * content is to be destroyed, and the reader.
 */
int kd_bdd_load(struct kd_bdd_reader *r, struct kd_bdd_content *content);
void kd_bdd_content_destroy(struct kd_bdd_content *content);

/* Write, with a note. The content's arrays stay the caller's; variables may be NULL. */
int kd_bdd_save(struct kdsm_bdd_worker *worker, FILE *file, const struct kd_bdd_content *content);

#endif /* KD_BDD_FILE_H */

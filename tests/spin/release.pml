/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policy release with its data (kmod/coherence/access.c, acquire.c, release.c, twin.c,
 * signature.c): one block of two words. The program guards each word by a lock of its own,
 * so two nodes may write the block concurrently (false sharing). Each thread locks, reads the
 * word, may write it, and unlocks. The lock carries the signature from the release to the
 * acquire.
 *
 * Asserted at every read under the lock: the read returns the value written last under the
 * lock. Checked by spin: no thread waits forever.
 *
 * Steps: everything that the code does under the lock of the block is one step. Where a
 * process that does not take that lock can see a difference, the model makes two steps, with
 * `lock` set in between. Such a process is a program that writes, or an acquire that takes
 * only coherence->lock. A remote read is one step for each word, and other processes run
 * between these steps. Programs write a word at any time while it is mapped.
 *
 * Not modelled: links and the way to the owner (ownership.pml), so a request for the
 * ownership goes to the end of the queue at once, and a request for a copy waits until there
 * is an owner; failures; and other blocks, but for OTHERS=n releases in all of another block,
 * which raise clocks and floors. An unmodified block may leave the write set at any release,
 * not only at the KDSM_IDLE_MAX-th. A lease is 1 timestamp.
 *
 * NOTICES=n: a signature has room for n notices; with 0 it has only the floor. The model has no
 * summaries: a summary is a floor of its blocks, and with one block that is the floor.
 * VALUES=n: words count modulo n. With TWICE a thread may write twice under the lock, so
 * with VALUES=2 it can restore the former value.
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define RTS_NOT_RAISED_FOR_COPY		(FAULT == 1)
#define TIMESTAMP_NOT_ABOVE_RTS		(FAULT == 2)
#define RTS_NOT_PASSED_ON		(FAULT == 3)
#define NO_TWIN_AT_HANDOVER		(FAULT == 4)
#define NO_NOTICE_AT_HANDOVER		(FAULT == 5)
#define TAKEN_FROM_FRAME		(FAULT == 6)
#define COPIED_NOT_MERGED		(FAULT == 7)
#define TWIN_KEPT_AT_READ		(FAULT == 8)
#define NOTICES_IGNORED			(FAULT == 9)
#define FLOOR_IGNORED			(FAULT == 10)
#define NOT_LOOKED_AGAIN		(FAULT == 11)
#define COMPARED_WITH_TWIN		(FAULT == 12)
#define HARVESTED_AFTER_TWIN		(FAULT == 13)
#define NOT_HARVESTED_WHEN_INVALID	(FAULT == 14)
#define FLOOR_LOOKED_AT_TOO_EARLY	(FAULT == 15)
#define NO_TWIN_AT_FIRST_WRITE		(FAULT == 16)
#define OLD_NOTICE_FORGOTTEN		(FAULT == 17)
#define RENEWED_IF_CHANGED		(FAULT == 18)

/* Threads, the node of each thread, how often each thread locks, and what it may do */
#ifndef T
#define T		3
#endif
#ifndef N
#define N		3
#endif
#define node_of(t)	((t) % N)
#ifndef ROUNDS
#define ROUNDS		2
#endif
#ifndef NOTICES
#define NOTICES		1
#endif
#ifndef OTHERS
#define OTHERS		0
#endif
#ifndef VALUES
#define VALUES		16
#endif
/*
 * By default every thread may read and write every word. WRITERS: threads 0 and 1 write
 * words 0 and 1, the other threads read. NO_READERS: a thread that locks a word writes it.
 */
#ifdef WRITERS
#define may_lock(t, w)	((t) > 1 || (t) == (w))
#define may_write(t, w)	((t) < 2)
#define may_skip(t)	false
#else
#define may_lock(t, w)	true
#define may_write(t, w)	true
#ifdef NO_READERS
#define may_skip(t)	false
#else
#define may_skip(t)	true
#endif
#endif

#define NOBODY	255
#define OTHER	254	/* the writer of another block */

#define INVALID		0	/* enum kdsm_block_state */
#define READABLE	1
#define WRITABLE	2

/* enum kdsm_block_role; a node with NONE that is behind another in the queue is WAITING */
#define NONE	0
#define TAKING	1
#define OWNER	2

#define UNMAPPED	0	/* how the page table maps the block */
#define READING		1
#define WRITING		2

#define max(a, b)	((a) > (b) -> (a) : (b))

/* ---- each node ---- */

bool lock[N], busy[N], twinned[N], modified[N], dirty[N], cached[N];
byte state[N], role[N], next[N], writer[N], wanted[N], wts[N], rts[N];
byte from[N], from_wts[N], from_rts[N];
byte frame[2 * N], twin[2 * N];
byte map[N];
bool written[N];		/* the dirty bit of the page table entry */
bool fence[N];
byte clock[N];

/* Signatures: one for each node, followed by one for each lock of the program */
#define SIGS	(N + 2)
byte floor[SIGS];
#if NOTICES > 0
byte old_ts[SIGS], old_by[SIGS];	/* the older notice; none if ts is 0 */
#endif
#if NOTICES > 1
byte new_ts[SIGS], new_by[SIGS];	/* the newer notice; none if there is no older one */
#endif

/* ---- the program ---- */

bool held[2];
byte value[2];			/* the value written last under the lock */

/* ---- the cluster ---- */

byte last = 0;			/* the last node in the queue for ownership */
byte holder = 0;		/* the owner, or the node that is taking over */
#if OTHERS > 0
byte others;
#endif

/* ---- signature.c ---- */

byte ts;			/* scratch variable, without meaning between steps */

inline notice_add(s, t, by)
{
	if
	:: t <= floor[s] -> skip
#if NOTICES == 0
	:: else -> floor[s] = t
#elif NOTICES == 1
	:: else ->
		if
		:: old_ts[s] == 0 -> old_ts[s] = t; old_by[s] = by
		:: old_ts[s] == t && old_by[s] == by -> skip
		:: old_ts[s] > t -> floor[s] = t
		:: else ->
			if
			:: !OLD_NOTICE_FORGOTTEN -> floor[s] = old_ts[s]
			:: else
			fi;
			old_ts[s] = t;
			old_by[s] = by
		fi
#else
	:: else ->
		if
		:: old_ts[s] == 0 -> old_ts[s] = t; old_by[s] = by
		:: old_ts[s] == t && old_by[s] == by -> skip
		:: new_ts[s] == t && new_by[s] == by -> skip
		:: old_ts[s] != 0 && new_ts[s] == 0 &&
		   !(old_ts[s] == t && old_by[s] == by) ->
			if
			:: t >= old_ts[s] -> new_ts[s] = t; new_by[s] = by
			:: else ->
				new_ts[s] = old_ts[s];
				new_by[s] = old_by[s];
				old_ts[s] = t;
				old_by[s] = by
			fi
		:: else ->
			if
			:: t < old_ts[s] -> floor[s] = t
			:: else ->
				floor[s] = old_ts[s];
				if
				:: t < new_ts[s] -> old_ts[s] = t; old_by[s] = by
				:: else ->
					old_ts[s] = new_ts[s];
					old_by[s] = new_by[s];
					new_ts[s] = t;
					new_by[s] = by
				fi
			fi
		fi
#endif
	fi
}

inline signature_merge(s, o)
{
	if
	:: floor[o] > floor[s] ->
		floor[s] = floor[o];
#if NOTICES > 1
		if
		:: old_ts[s] <= floor[s] ->
			old_ts[s] = new_ts[s];
			old_by[s] = new_by[s];
			new_ts[s] = 0;
			new_by[s] = 0
		:: else
		fi;
#endif
#if NOTICES > 0
		if
		:: old_ts[s] <= floor[s] -> old_ts[s] = 0; old_by[s] = 0
		:: else
		fi
#endif
	:: else
	fi;
#if NOTICES > 0
	if
	:: old_ts[o] != 0 -> notice_add(s, old_ts[o], old_by[o])
	:: else
	fi;
#endif
#if NOTICES > 1
	if
	:: new_ts[o] != 0 -> notice_add(s, new_ts[o], new_by[o])
	:: else
	fi
#endif
}

inline signature_copy(s, o)
{
	floor[s] = floor[o];
#if NOTICES > 0
	old_ts[s] = old_ts[o];
	old_by[s] = old_by[o];
#endif
#if NOTICES > 1
	new_ts[s] = new_ts[o];
	new_by[s] = new_by[o]
#endif
}

/* ---- release.c, twin.c: under the lock of the block ---- */

/* kdsm_block_publish(), kdsm_notice_flush() */
inline publish(n, at_least)
{
	ts = max(at_least, wts[n] + 1);
	if
	:: !TIMESTAMP_NOT_ABOVE_RTS -> ts = max(ts, rts[n] + 1)
	:: else
	fi;
	clock[n] = max(clock[n], ts);
	if
	:: !(NO_NOTICE_AT_HANDOVER && at_least == 0) -> notice_add(n, ts, n)
	:: else
	fi;
	wts[n] = ts;
	rts[n] = ts;
	modified[n] = false;
	ts = 0
}

/* kdsm_block_harvest() */
inline harvest(n)
{
	modified[n] = modified[n] || written[n];
	written[n] = false
}

inline twin_make(n)
{
	twin[2 * n] = frame[2 * n];
	twin[2 * n + 1] = frame[2 * n + 1];
	twinned[n] = true
}

inline merge_word(n, at, news, keep)
{
	if
	:: COPIED_NOT_MERGED -> frame[2 * n + at] = news
	:: else -> frame[2 * n + at] = frame[2 * n + at] ^ news ^ twin[2 * n + at]
	fi;
	if
	:: keep -> twin[2 * n + at] = news
	:: else
	fi
}

/* kdsm_twin_merge() of the content that the thread has fetched into word0 and word1 */
inline twin_merge(n, keep)
{
	merge_word(n, 0, word0, keep);
	merge_word(n, 1, word1, keep);
	word0 = 0;
	word1 = 0
}

/* kdsm_release_handover() before it makes the twin */
inline handover_begin(n)
{
	lock[n] = true;
	if
	:: HARVESTED_AFTER_TWIN -> twin_make(n)
	:: !HARVESTED_AFTER_TWIN && state[n] == WRITABLE -> harvest(n)
	:: else
	fi
}

/* The rest of kdsm_release_handover(). The role becomes NONE; the caller drops the lock. */
inline handover_end(n)
{
	if
	:: HARVESTED_AFTER_TWIN ->
		if
		:: state[n] == WRITABLE -> harvest(n)
		:: else
		fi
	:: !HARVESTED_AFTER_TWIN && !NO_TWIN_AT_HANDOVER -> twin_make(n)
	:: NO_TWIN_AT_HANDOVER -> twinned[n] = true
	fi;
	if
	:: modified[n] -> publish(n, 0)
	:: else
	fi;
	cached[n] = true;
	role[n] = NONE
}

/* Node n hands the block over to node m, by the answer YES or by a grant. */
inline grant(n, m)
{
	from[m] = n;
	from_wts[m] = wts[n];
	from_rts[m] = (RTS_NOT_PASSED_ON -> wts[n] : rts[n]);
	role[m] = TAKING;
	holder = m
}

/* ---- threads; these inlines use the variables of proctype thread ---- */

/* kdsm_block_invalidate() */
inline invalidate()
{
	victim = true;
	if
	:: state[me] == WRITABLE -> was_writable = true
	:: else -> twinned[me] = false
	fi;
	state[me] = INVALID;
	cached[me] = false
}

/*
 * kdsm_acquire_merge(): whether a notice of the lock's signature, which has the same floor or a
 * lower one by now, is news. A notice of the same or a later time says all that it says.
 */
#if NOTICES > 1
#define knows(t)	(old_ts[me] >= t && old_by[me] != OTHER || \
			 new_ts[me] >= t && new_by[me] != OTHER)
#elif NOTICES > 0
#define knows(t)	(old_ts[me] >= t && old_by[me] != OTHER)
#endif
#define is_news(t, by)	(t > max(floor[me], floor[N + w]) && by != me && by != OTHER && \
			 !knows(t) && !NOTICES_IGNORED)

/* kdsm_acquire_notice() */
inline acquire_notice(is_new, t)
{
	if
	:: is_new ->
		d_step {
			!lock[me] ->
			if
			:: role[me] != OWNER && t > wts[me] && state[me] != INVALID ->
				invalidate()
			:: else
			fi;
			is_new = false
		}
	:: else
	fi
}

inline learn_from(t, by)
{
	if
	:: role[me] != OWNER && t > wts[me] && t > wanted[me] ->
		wanted[me] = t;
		writer[me] = by
	:: else
	fi
}

/* kdsm_block_learn(): the newest notice of another node */
inline learn()
{
#if NOTICES > 1
	if
	:: new_ts[me] != 0 && new_by[me] != me && new_by[me] != OTHER ->
		learn_from(new_ts[me], new_by[me])
	:: else ->
#endif
#if NOTICES > 0
		if
		:: old_ts[me] != 0 && old_by[me] != me && old_by[me] != OTHER ->
			learn_from(old_ts[me], old_by[me])
		:: else
		fi
#else
		skip
#endif
#if NOTICES > 1
	fi
#endif
}

/* kdsm_release_acquire() of the signature that came with lock w */
inline acquire()
{
	d_step {
		!fence[me] ->
		fence[me] = true;
		clock[me] = max(clock[me], floor[N + w]);
#if NOTICES > 0
		clock[me] = max(clock[me], old_ts[N + w]);
#endif
#if NOTICES > 1
		clock[me] = max(clock[me], new_ts[N + w]);
#endif
#if NOTICES > 0
		news_old = is_news(old_ts[N + w], old_by[N + w]);
#endif
#if NOTICES > 1
		news_new = is_news(new_ts[N + w], new_by[N + w]);
#endif
		signature_merge(me, N + w);
		least = floor[me]
	};
#if NOTICES > 0
	acquire_notice(news_old, old_ts[N + w]);
#endif
#if NOTICES > 1
	acquire_notice(news_new, new_ts[N + w]);
#endif
	/* kdsm_acquire_floor() visits only blocks among the cached ones. */
	if
	:: cached[me] ->
		d_step {
			!lock[me] ->
			if
			:: state[me] != INVALID && role[me] != OWNER && rts[me] < least &&
			   !FLOOR_IGNORED -> invalidate()
			:: else
			fi;
			least = 0
		}
	:: d_step { !cached[me] -> least = 0 }
	fi;
	/* kdsm_victims_unmap() */
	if
	:: victim ->
		if
		:: was_writable ->
			/* kdsm_run_retire() */
			d_step {
				map[me] = (map[me] == WRITING -> READING : map[me]);
				found = written[me] && !NOT_HARVESTED_WHEN_INVALID;
				written[me] = false
			};
			d_step {
				!lock[me] ->
				modified[me] = modified[me] || found;
				if
				:: !modified[me] && state[me] == INVALID ->
					twinned[me] = false;
					dirty[me] = false
				:: else
				fi;
				found = false;
				was_writable = false
			}
		:: else
		fi;
		/* kdsm_pages_unmap(), kdsm_coherence_unmapped() */
		d_step {
			map[me] = UNMAPPED;
			written[me] = false
		};
		d_step {
			!lock[me] ->
			modified[me] = modified[me] || dirty[me];
			victim = false
		}
	:: else
	fi;
	fence[me] = false
}

/* Choose the node to fetch from: a known writer, or the owner. */
inline read_miss_begin()
{
	learn();
	known = writer[me] != NOBODY && wanted[me] >= floor[me] && wanted[me] > 0;
	if
	:: known ->
		whom = writer[me];
		copy_wts = wanted[me];
		copy_rts = wanted[me]
	:: else ->
		least = clock[me]		/* sent with the request */
	fi
}

/* kdsm_block_upgrade(), and mapping the block */
inline access_end()
{
	if
	:: writing && state[me] == READABLE ->
		if
		:: role[me] != OWNER && !twinned[me] && !NO_TWIN_AT_FIRST_WRITE ->
			twin_make(me)
		:: else
		fi;
		state[me] = WRITABLE;
		dirty[me] = true
	:: else
	fi;
	if
	:: state[me] == WRITABLE ->
		modified[me] = modified[me] || writing;
		map[me] = WRITING
	:: else ->
		map[me] = READING
	fi
}

/* kdsm_release_access(), called by a page fault of a read or a write */
inline access()
{
	if
	:: d_step { state[me] != INVALID && !lock[me] -> access_end() }
	:: d_step {
		/* kdsm_block_read_miss() */
		state[me] == INVALID && !busy[me] && !lock[me] ->
		busy[me] = true;
		bounce = twinned[me];
		read_miss_begin()
	   };
		do
		:: d_step {
			/* kdsm_ownership_read(), kdsm_release_lend() */
			!known && role[holder] == OWNER && !lock[holder] ->
			whom = holder;
			copy_wts = wts[whom];
			/* The frame here has the newest write: only the lease had ended */
			renewed = wts[whom] <= wts[me] || RENEWED_IF_CHANGED;
			copy_rts = max(rts[whom], max(wts[whom], least) + 1);
			if
			:: !RTS_NOT_RAISED_FOR_COPY -> rts[whom] = copy_rts
			:: else
			fi;
			least = 0;
			known = true
		   }
		:: d_step {
			known ->
			if
			:: renewed
			:: !renewed && bounce -> word0 = frame[2 * whom]
			:: else -> frame[2 * me] = frame[2 * whom]
			fi
		   };
			d_step {
				if
				:: renewed
				:: !renewed && bounce -> word1 = frame[2 * whom + 1]
				:: else -> frame[2 * me + 1] = frame[2 * whom + 1]
				fi
			};
			d_step {
				!lock[me] ->
				if
				:: bounce && !renewed -> twin_merge(me, !TWIN_KEPT_AT_READ)
				:: else
				fi;
				renewed = false;
				wts[me] = copy_wts;
				learn();
				rts[me] = copy_rts;
				whom = 0;
				copy_wts = 0;
				copy_rts = 0;
				if
				:: (wanted[me] > wts[me] || rts[me] < floor[me]) &&
				   !NOT_LOOKED_AGAIN ->
					read_miss_begin()
				:: else ->
					/*
					 * An acquire sees the check and the entry into
					 * the list as one step, under coherence->lock.
					 */
					cached[me] = !FLOOR_LOOKED_AT_TOO_EARLY;
					known = false;
					lock[me] = true;
					done = true
				fi
			};
			if
			:: done -> break
			:: else
			fi
		od;
		atomic {
			done = false;
			bounce = false;
			writer[me] = NOBODY;
			state[me] = (dirty[me] -> WRITABLE : READABLE);
			cached[me] = true;
			busy[me] = false;
			access_end();
			lock[me] = false
		}
	fi
}

#define differs(n)	(frame[2 * n] != twin[2 * n] || frame[2 * n + 1] != twin[2 * n + 1])

/* kdsm_block_take() */
inline block_take()
{
	d_step {
		!lock[me] && !busy[me] ->
		done = role[me] == OWNER || !modified[me] ||
		       COMPARED_WITH_TWIN && !differs(me);
		busy[me] = !done
	};
	if
	:: !done ->
		/* kdsm_ownership_take(), kdsm_coherence_serve_own() */
		if
		:: d_step {
			role[last] == OWNER && !lock[last] ->
			whom = last;
			handover_begin(whom)
		   };
			d_step {
				handover_end(whom);
				grant(whom, me);
				lock[whom] = false;
				whom = 0;
				last = me
			}
		:: d_step {
			role[last] != OWNER && !lock[last] ->
			next[last] = me;
			last = me
		   };
			role[me] == TAKING
		fi;
		word0 = (TAKEN_FROM_FRAME -> frame[2 * from[me]] : twin[2 * from[me]]);
		word1 = (TAKEN_FROM_FRAME -> frame[2 * from[me] + 1] : twin[2 * from[me] + 1]);
		d_step {
			!lock[me] ->
			twin_merge(me, false);
			twinned[me] = false;
			state[me] = WRITABLE;
			writer[me] = NOBODY;
			wts[me] = from_wts[me];
			rts[me] = from_rts[me];
			from[me] = 0;
			from_wts[me] = 0;
			from_rts[me] = 0;
			cached[me] = false;
			busy[me] = false;
			role[me] = OWNER;
			/* kdsm_ownership_taken() */
			if
			:: next[me] != NOBODY -> handover_begin(me)
			:: else -> done = true
			fi
		};
		if
		:: !done ->
			d_step {
				handover_end(me);
				grant(me, next[me]);
				next[me] = NOBODY;
				lock[me] = false
			}
		:: else
		fi
	:: else
	fi;
	done = false
}

/* kdsm_release_release(). Then lock w gets the signature, and the thread unlocks it. */
inline release()
{
	/* kdsm_writes_take(), kdsm_writes_harvest() */
	d_step {
		!fence[me] ->
		fence[me] = true;
		listed = dirty[me];
		found = listed && written[me];
		written[me] = written[me] && !listed
	};
	if
	:: listed ->
		d_step {
			!lock[me] ->
			modified[me] = modified[me] || found;
			found = modified[me]
		};
		if
		:: found && role[me] != OWNER -> block_take()
		:: else
		fi;
		/* kdsm_writes_publish() */
		if
		:: found ->
			d_step {
				!lock[me] ->
				if
				:: role[me] == OWNER && modified[me] ->
					publish(me, clock[me] + 1)
				:: else
				fi
			}
		:: else
		fi
	:: else
	fi;
#if OTHERS > 0
	if
	:: d_step {
		others < OTHERS ->
		others++;
		clock[me]++;
		notice_add(me, clock[me], OTHER)
	   }
	:: true
	fi;
#endif
	/* kdsm_writes_retire() */
	if
	:: listed && !found ->
		if
		:: d_step {
			!lock[me] && state[me] == WRITABLE && !modified[me] ->
			map[me] = (map[me] == WRITING -> READING : map[me]);
			harvest(me);
			if
			:: !modified[me] ->
				state[me] = READABLE;
				twinned[me] = twinned[me] && role[me] == OWNER;
				dirty[me] = false
			:: else
			fi
		   }
		:: true
		fi
	:: else
	fi;
	d_step {
		listed = false;
		found = false;
		signature_copy(N + w, me);
		fence[me] = false;
		held[w] = false;
		w = 0
	}
}

proctype thread(byte t)
{
	byte me = node_of(t), w, rounds;
	bool writing, again;
	/* acquire, release */
#if NOTICES > 0
	bool news_old;
#endif
#if NOTICES > 1
	bool news_new;
#endif
	bool victim, was_writable, found, listed;
	byte least;
	/* access, block_take */
	bool known, bounce, renewed, done;
	byte whom, copy_wts, copy_rts, word0, word1;

	do
	:: rounds == ROUNDS -> break
	:: rounds < ROUNDS ->
		if
		:: d_step { may_lock(t, 0) && !held[0] -> held[0] = true }
		:: d_step { may_lock(t, 1) && !held[1] -> held[1] = true; w = 1 }
		fi;
		rounds++;
		acquire();
		do
		:: d_step {
			!writing && map[me] != UNMAPPED ->
			assert(frame[2 * me + w] == value[w])
		   };
			if
			:: may_write(t, w) -> writing = true
			:: may_write(t, w) && may_skip(t) -> break
			:: !may_write(t, w) -> break
			fi
		:: d_step {
			writing && map[me] == WRITING ->
			value[w] = (value[w] + 1) % VALUES;
			frame[2 * me + w] = value[w];
			written[me] = true
		   };
#ifdef TWICE
			if
			:: !again -> again = true
			:: break
			fi
#else
			break
#endif
		:: else -> access()
		od;
		writing = false;
		again = false;
		release()
	od
}

init {
	byte n;

	atomic {
		do
		:: n < N ->
			next[n] = NOBODY;
			writer[n] = NOBODY;
			n++
		:: else -> break
		od;
		role[0] = OWNER;
		state[0] = READABLE;
		n = 0;
		do
		:: n < T -> run thread(n); n++
		:: else -> break
		od;
		n = 0
	}
}

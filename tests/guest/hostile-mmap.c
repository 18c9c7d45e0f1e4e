// SPDX-License-Identifier: GPL-2.0
/* Mappings: calls that are refused, accesses that fault, and what keeps a region alive. */
#include <setjmp.h>
#include <signal.h>

#include "hostile.h"

static struct kdsm_info info;
static struct kdsm_region_open opened;
static size_t whole;		/* bytes of all nodes' parts */
static sigjmp_buf jump;

static int map(int file, void *at, size_t length, int protection, int flags,
	       off_t offset, char **result)
{
	char *got = mmap(at, length, protection, flags, file, offset);

	if (got == MAP_FAILED)
		return -errno;
	if (result)
		*result = got;
	else
		munmap(got, length);
	return 0;
}

static void on_fault(int signal)
{
	siglongjmp(jump, signal);
}

/* Access the byte; return 0, or the signal that the access raises. */
static int touch(volatile char *at, bool write)
{
	int signal = sigsetjmp(jump, 1);

	if (signal)
		return signal;
	if (write)
		*at = 1;
	else
		(void)*at;
	return 0;
}

static int bound(int flags)
{
	int file = device(flags), error;

	opened = region(file, "mmap");
	opened.flags &= ~KDSM_REGION_EXCL;
	error = call(file, KDSM_IOC_REGION_OPEN, &opened);
	if (error)
		tap_bail("cannot open a region: %s", strerror(-error));
	return file;
}

static void refused(int file)
{
	const int both = PROT_READ | PROT_WRITE;
	char *base = (char *)opened.base, *got;
	int unbound = device(O_RDWR), reader = bound(O_RDONLY);

	tap_result(map(unbound, NULL, 4096, both, MAP_SHARED, 0, NULL), -EBADFD,
		   "mmap of a file that is not bound");
	tap_result(map(file, NULL, 4096, both, MAP_PRIVATE, 0, NULL), -EINVAL,
		   "private mmap");
	tap_result(map(file, NULL, 4096, PROT_READ, MAP_PRIVATE, 0, NULL), -EINVAL,
		   "private mmap for reading");
	tap_result(map(file, NULL, whole + 4096, both, MAP_SHARED, 0, NULL), -EINVAL,
		   "mmap longer than the region");
	tap_result(map(file, NULL, 4096, both, MAP_SHARED, whole, NULL), -EINVAL,
		   "mmap behind the region");
	tap_result(map(file, NULL, 8192, both, MAP_SHARED, whole - 4096, NULL), -EINVAL,
		   "mmap over the end of the region");
	tap_either(map(file, NULL, 4096, both, MAP_SHARED, 1L << 62, NULL), -EINVAL,
		   -EOVERFLOW, "mmap at 2^62");
	tap_result(map(file, base + 4096, 4096, both, MAP_SHARED | MAP_FIXED, 0, NULL),
		   -EINVAL, "mmap at the wrong address");
	tap_result(map(file, base - (1L << 30), 4096, both, MAP_SHARED | MAP_FIXED, 0, NULL),
		   -EINVAL, "mmap at an address before it");
	tap_either(map(file, NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, 0, NULL),
		   -EACCES, -EPERM, "executable mmap");
	tap_result(map(reader, NULL, 4096, both, MAP_SHARED, 0, NULL), -EACCES,
		   "writable mmap of a file for reading");
	tap_result(map(reader, NULL, 4096, PROT_READ, MAP_SHARED, 0, &got), 0,
		   "mmap of a file for reading");
	tap_ok(got == base, "it is at its address");
	tap_ok(mprotect(got, 4096, both) && errno == EACCES,
	       "mprotect to writable there: EACCES");
	tap_ok(mprotect(got, 4096, PROT_READ | PROT_EXEC), "mprotect to executable: refused");
	tap_ok(map(file, base, 4096, both, MAP_SHARED | MAP_FIXED_NOREPLACE, 0, NULL),
	       "a second mmap at the same place, no replacing: refused");
	munmap(got, 4096);
	close(unbound);
	close(reader);
}

static void moved(int file)
{
	char *base, *there = lone_page();

	tap_result(map(file, NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &base), 0,
		   "mmap of the whole region");
	tap_ok(base == (char *)opened.base, "it is at its address");
	tap_ok(mremap(base, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, there) == MAP_FAILED,
	       "mremap to another place: refused");
	tap_ok(mremap(base, 0, 4096, MREMAP_MAYMOVE) == MAP_FAILED,
	       "mremap to have it twice: refused");
	tap_ok(mremap(base, whole, whole + (1 << 20), MREMAP_MAYMOVE) == MAP_FAILED,
	       "mremap to something longer: refused");
	munmap(there, 8192);
	munmap(base, whole);
}

/* Faults in the parts of nodes, in a hole, and after the file was closed */
static void faults(int file)
{
	const size_t part = opened.part_size;
	char *base, *own;
	int through;

	map(file, NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &base);
	own = base + info.node * part;
	tap_result(touch(own, false), 0, "the own part can be read");
	tap_result(touch(own + part - 1, true), 0, "and written, at its end");
	for (unsigned int node = 0; node < info.nodes && node < 4; node++) {
		if (node == info.node)
			continue;
		tap_ok(touch(base + node * part, false) == SIGBUS &&
		       touch(base + node * part + part - 1, true) == SIGBUS,
		       "node %u's part gives SIGBUS", node);
	}
	munmap(own, 4096);
	tap_ok(touch(own, false) == SIGSEGV, "a hole gives SIGSEGV");
	tap_result(touch(own + 4096, true), 0, "behind the hole it goes on");
	through = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	tap_ok(pwrite(through, "x", 1, (off_t)(own + 4096)) == 1 && own[4096] == 'x',
	       "a debugger can write the own part");
	tap_ok(pread(through, own + 4097, 1, (off_t)(base + (info.node ? 0 : part))) <= 0 ||
	       info.nodes == 1, "and cannot read another's");
	close(through);
	madvise(own + 4096, part - 4096, MADV_DONTNEED);
	tap_ok(own[4096] == 'x', "MADV_DONTNEED loses nothing");
	tap_ok(madvise(own + 4096, part - 4096, MADV_REMOVE), "MADV_REMOVE: refused");
	mlock(own + 4096, 4096);
	close(file);
	tap_result(touch(own + 8192, true), 0, "mappings outlive their file");
	file = bound(O_RDWR);
	tap_ok(own[4096] == 'x', "the region lived on by its mapping");
	munmap(base, whole);
	close(file);
	file = bound(O_RDWR);
	map(file, NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &base);
	tap_ok(base[info.node * part + 4096] == 0, "and its memory is zero when it is created again");
	munmap(base, whole);
	close(file);
}

static void forked(void)
{
	int file = bound(O_RDWR), status;
	size_t part = opened.part_size;
	char *base, *own;
	pid_t child;

	map(file, NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &base);
	own = base + info.node * part;
	own[0] = 'p';
	fflush(stdout);
	child = fork();
	if (!child) {
		int good = own[0] == 'p';

		close(file);
		own[1] = 'c';
		munmap(base, part / 2);
		_exit(!good);
	}
	tap_ok(waitpid(child, &status, 0) == child && !status && own[1] == 'c',
	       "a child shares the mapping");
	close(file);
	tap_ok(own[0] == 'p', "and leaves it alone when it exits");
	munmap(base, whole);
}

int main(void)
{
	const struct sigaction action = { .sa_handler = on_fault };
	int file = device(O_RDWR);

	info = information(file);
	close(file);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	file = bound(O_RDWR);
	whole = opened.part_size * info.nodes;
	refused(file);
	moved(file);
	faults(file);
	forked();
	return tap_end();
}

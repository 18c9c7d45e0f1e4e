// SPDX-License-Identifier: GPL-2.0
/*
 * mutate: run the main() of kdsm-reach on damaged copies of valid files, and check that it
 * neither crashes nor hangs, and ends with a status and a message that fit; see usage() below.
 *
 * A number decides everything about a copy: the file, the changes, and the options of
 * kdsm-reach. So one number repeats a failure.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define MOST_FILES	256
#define MOST_SIZE	(1 << 20)	/* bytes of a copy */
#define MOST_OUTPUT	65536		/* bytes that are looked at */
#define MOST_ARGUMENTS	32

static void usage(FILE *to)
{
	fputs("usage: mutate [-n COUNT] [-s FIRST] [-t SECONDS] [-k] DIRECTORY\n\n"
	      "Runs kdsm-reach, which is linked with this program, on COUNT (1000) damaged copies of the\n"
	      "files in DIRECTORY, which all are small and valid. The copies have the numbers FIRST (0)\n"
	      "and so on. Prints each failure with its number, and at the end how often each exit\n"
	      "status was seen. Exit status 1 if there was a failure.\n\n"
	      "A suffix tells what a file is: .pnml, .aag, .aig and .bdd are models. NAME.xml has\n"
	      "formulas about the model NAME.pnml, NAME.set an invariant of it, and NAME.point a\n"
	      "checkpoint of its search.\n\n"
	      "A search gets SIGTERM after SECONDS of CPU time (2), and must end then. Reading a file\n"
	      "must take less.\n\n"
	      "  -k  keep the last copy as \"mutant\" in the current directory\n", to);
}

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED	true	/* needs much address space and time */
#else
#define SANITIZED	false
#endif

static double limit = 2;	/* seconds of CPU time before SIGTERM */

/* The sanitizers take these options before main(). */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "exitcode=99:allocator_may_return_null=1";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return "exitcode=99:print_stacktrace=1";
}

/* ---- random numbers ---- */

static uint64_t random_state;

/* splitmix64 */
static uint64_t random64(void)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static size_t below(size_t n)
{
	return n ? random64() % n : 0;
}

/* ---- files ---- */

struct text {
	unsigned char *bytes;
	size_t size;
};

static struct file {
	char *name, *suffix;
	struct text text;
} files[MOST_FILES];

static unsigned int file_count;

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static void read_file(const char *path, const char *name)
{
	struct file *f = &files[file_count];
	FILE *in = fopen(path, "re");

	if (!in)
		err(2, "%s", path);
	if (file_count == MOST_FILES)
		errx(2, "more than %d files", MOST_FILES);
	f->text.bytes = malloc(MOST_SIZE);
	f->name = strdup(name);
	if (!f->text.bytes || !f->name)
		errx(2, "no memory");
	f->text.size = fread(f->text.bytes, 1, MOST_SIZE, in);
	fclose(in);
	f->suffix = strrchr(f->name, '.');
	if (f->suffix && f->text.size)
		file_count++;
}

static void read_files(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[4096];

	if (!dir)
		err(2, "%s", directory);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (entry->d_name[0] != '.')
			read_file(path, entry->d_name);
	}
	closedir(dir);
	if (!file_count)
		errx(2, "%s: no files", directory);
	qsort(files, file_count, sizeof(*files), compare_files);
}

/* ---- changes ---- */

/* Replace length bytes at this place by others. */
static void replace(struct text *t, size_t at, size_t length, const void *by, size_t size)
{
	unsigned char *copy;

	if (t->size - length + size > MOST_SIZE)
		return;
	copy = malloc(size + 1);
	if (!copy)
		errx(2, "no memory");
	memcpy(copy, by, size);
	memmove(t->bytes + at + size, t->bytes + at + length, t->size - at - length);
	memcpy(t->bytes + at, copy, size);
	t->size += size - length;
	free(copy);
}

struct part {
	size_t at, length;
};

/* Duplicate, remove, move or exchange parts. */
static void rearrange(struct text *t, struct part a, struct part b)
{
	struct part swap;
	unsigned int times;

	switch (below(5)) {
	case 0:
		return replace(t, a.at, a.length, "", 0);
	case 1:
		return replace(t, a.at, 0, t->bytes + a.at, a.length);
	case 2:
		for (times = 1 << below(11); times; times--)
			replace(t, a.at, 0, t->bytes + a.at, a.length);
		return;
	case 3:
		return replace(t, b.at, 0, t->bytes + a.at, a.length);
	default:
		if (a.at > b.at) {
			swap = a;
			a = b;
			b = swap;
		}
		if (a.at + a.length > b.at)
			return;
		replace(t, b.at + b.length, 0, t->bytes + a.at, a.length);
		replace(t, a.at, a.length, t->bytes + b.at, b.length);
	}
}

static void change_bytes(struct text *t)
{
	unsigned int times = 1 + below(4);
	unsigned char byte;
	size_t at;

	while (times-- && t->size) {
		at = below(t->size);
		byte = random64();
		switch (below(4)) {
		case 0:
			t->bytes[at] ^= 1 << below(8);
			break;
		case 1:
			t->bytes[at] = byte;
			break;
		case 2:
			replace(t, at, 0, &byte, 1);
			break;
		default:
			replace(t, at, 1, "", 0);
		}
	}
}

static struct part any_part(const struct text *t)
{
	size_t at = below(t->size), most = t->size - at;

	return (struct part){ at, 1 + below(most < 64 || below(2) ? most : 64) };
}

static void change_parts(struct text *t)
{
	rearrange(t, any_part(t), any_part(t));
}

static void truncate_text(struct text *t)
{
	t->size = below(t->size);
}

static struct part any_line(const struct text *t)
{
	size_t at = below(t->size), end = at;

	while (at && t->bytes[at - 1] != '\n')
		at--;
	while (end < t->size && t->bytes[end] != '\n')
		end++;
	return (struct part){ at, end - at + (end < t->size) };
}

static void change_lines(struct text *t)
{
	rearrange(t, any_line(t), any_line(t));
}

static bool is_word(unsigned char c)
{
	return c == '_' || c == '-' || c >= 0x80 || (c >= '0' && c <= '9') ||
	       ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* The next word from a random place on, or an empty part */
static struct part any_word(const struct text *t)
{
	size_t at = below(t->size), end;

	while (at < t->size && !is_word(t->bytes[at]))
		at++;
	while (at && at < t->size && is_word(t->bytes[at - 1]))
		at--;
	for (end = at; end < t->size && is_word(t->bytes[end]); end++)
		;
	return (struct part){ at, end - at };
}

static void change_words(struct text *t)
{
	static const char *const words[] = {
		"", "place", "transition", "arc", "page", "net", "pnml", "text", "inscription",
		"initialMarking", "referencePlace", "referenceTransition", "type", "inhibitor",
		"read", "test", "normal", "reset", "ptnet", "name", "toolspecific", "graphics",
		"property-set", "property", "formula", "deadlock", "negation", "conjunction",
		"integer-le", "integer-sum", "tokens-count", "place-bound", "exists-path",
		"all-paths", "finally", "globally", "next", "until", "before", "reach", "true",
		"aag", "aig", "i0", "l0", "o0", "b0", "c", "&amp;", "&#0;", "]]>", "<!--", "-->",
		"<![CDATA[", "<!DOCTYPE a [<!ENTITY b 'c'>]>", "\xff\xfe", "\xef\xbb\xbf",
	};
	struct part a = any_word(t), b = any_word(t);
	const char *word = words[below(sizeof(words) / sizeof(*words))];

	if (below(2))
		replace(t, a.at, a.length, t->bytes + b.at, b.length);
	else
		replace(t, a.at, a.length, word, strlen(word));
}

static void change_numbers(struct text *t)
{
	static const char *const numbers[] = {
		"0", "1", "2", "3", "-1", "+1", "00", "7", "8", "255", "256", "32767", "32768",
		"65535", "65536", "2147483646", "2147483647", "2147483648", "4294967295",
		"4294967296", "1099511627776", "1099511627777", "9223372036854775807",
		"9223372036854775808", "18446744073709551615", "18446744073709551616",
		"100000000000000000000000000000000000000000", "0x10", "1e9", "1.5", " 1", "1 ", "",
	};
	const char *number = numbers[below(sizeof(numbers) / sizeof(*numbers))];
	size_t at = below(t->size), end;

	while (at < t->size && (t->bytes[at] < '0' || t->bytes[at] > '9'))
		at++;
	while (at && at < t->size && t->bytes[at - 1] >= '0' && t->bytes[at - 1] <= '9')
		at--;
	for (end = at; end < t->size && t->bytes[end] >= '0' && t->bytes[end] <= '9'; end++)
		;
	replace(t, at, end - at, number, strlen(number));
}

/* A tag from a random place on, and all up to the end of its element; or an empty part */
static struct part any_element(const struct text *t)
{
	size_t at = below(t->size), end;
	int depth = 0;

	while (at < t->size && t->bytes[at] != '<')
		at++;
	while (at + 1 < t->size && t->bytes[at + 1] == '/')
		for (at++; at < t->size && t->bytes[at] != '<'; at++)
			;
	for (end = at; end + 1 < t->size; end++) {
		if (t->bytes[end] == '<')
			depth += t->bytes[end + 1] == '/' ? -1 : 1;
		if (t->bytes[end + 1] == '>' && (t->bytes[end] == '/' || t->bytes[end] == '?'))
			depth--;
		if (t->bytes[end + 1] == '>' && depth <= 0)
			return (struct part){ at, end + 2 - at };
	}
	return (struct part){ t->size, 0 };
}

static void change_elements(struct text *t)
{
	struct part a = any_element(t), b = any_element(t);
	unsigned int times;
	size_t tag;

	if (below(8))
		return rearrange(t, a, b);
	/* nest the element in itself, by its tags */
	for (tag = 0; tag < a.length && t->bytes[a.at + tag] != '>'; tag++)
		;
	for (times = 1 << below(10); times; times--)
		replace(t, a.at, 0, t->bytes + a.at, tag < a.length ? tag + 1 : 0);
}

/* Little-endian integers of four or eight bytes at extremes */
static void change_integers(struct text *t)
{
	static const uint64_t values[] = {
		0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff,
		0x100000000, 0xffffffffff, 0x10000000000, 0x8000000000000000, 0x8000000000000001,
		0x7fffffffffffffff, 0xffffffffffffffff, 1000000ull << 40, 0xffffffull << 40,
	};
	size_t bytes = below(2) ? 4 : 8, at, i;
	unsigned int times = 1 + below(3);
	uint64_t value;

	while (times-- && t->size > bytes) {
		at = below(2) ? below(t->size - bytes) : below(t->size < 64 ? t->size : 64);
		at -= below(2) ? at % 4 : 0;
		if (at + bytes > t->size)
			continue;
		for (value = 0, i = bytes; i--; )
			value = value << 8 | t->bytes[at + i];
		switch (below(3)) {
		case 0:
			value = values[below(sizeof(values) / sizeof(*values))];
			break;
		case 1:
			value += 1 + below(3);
			break;
		default:
			value -= 1 + below(3);
		}
		for (i = 0; i < bytes; i++)
			t->bytes[at + i] = value >> 8 * i;
	}
}

/* Put a part of another file into this one. */
static void mix(struct text *t)
{
	const struct text *other = &files[below(file_count)].text;
	struct part a = any_part(t), b = any_part(other);

	replace(t, a.at, below(2) ? a.length : 0, other->bytes + b.at, b.length);
}

/* In several members, or with a tail, as gzip allows */
static void compress_text(struct text *t)
{
	static unsigned char out[2 * MOST_SIZE];
	z_stream z = { .next_in = t->bytes, .avail_in = t->size, .next_out = out,
		       .avail_out = sizeof(out) };

	if (deflateInit2(&z, 1 + below(9), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
	    deflate(&z, Z_FINISH) != Z_STREAM_END)
		errx(2, "deflate failed");
	deflateEnd(&z);
	if (sizeof(out) - z.avail_out <= MOST_SIZE) {
		t->size = sizeof(out) - z.avail_out;
		memcpy(t->bytes, out, t->size);
	}
}

typedef void (*change)(struct text *t);

static const change changes_of_text[] = {
	change_bytes, change_parts, change_lines, change_words, change_words, change_numbers,
	change_numbers, truncate_text, mix, NULL
};

static const change changes_of_elements[] = {
	change_elements, change_elements, change_words, change_numbers, change_bytes, truncate_text,
	change_lines, change_parts, mix, NULL
};

static const change changes_of_integers[] = {
	change_integers, change_integers, change_integers, change_bytes, change_parts,
	truncate_text, mix, change_numbers, NULL
};

/* ---- kinds of files ---- */

/* The options end with NULL. */
static const struct kind {
	const char *suffix;
	bool is_model, compressed;	/* the file may be compressed */
	const change *changes;		/* end with NULL */
	const char *options[4][10];
} kinds[] = {
	{ ".pnml", true, true, changes_of_elements, {
		{ "--counts" },
		{ "--strategy", "bfs", "--levels", "10", "--deadlocks", "--trace" },
		{ "--strategy", "chaining", "--order", "force" },
		{ "--order", "sloan" } } },
	{ ".aag", true, true, changes_of_text, {
		{ "--deadlocks" },
		{ "--strategy", "bfs", "--levels", "10", "--trace" },
		{ "--strategy", "chaining" },
		{ "--order", "file" } } },
	{ ".aig", true, true, changes_of_integers, {
		{ "--deadlocks" },
		{ "--strategy", "bfs", "--levels", "10", "--trace" },
		{ "--strategy", "chaining" },
		{ "--order", "file" } } },
	{ ".bdd", true, true, changes_of_integers, {
		{ "--deadlocks" },
		{ "--strategy", "bfs", "--levels", "10", "--trace" },
		{ "--strategy", "chaining" },
		{ "--strategy", "saturation" } } },
	{ ".xml", false, false, changes_of_elements, {
		{ "--formulas" },
		{ "--strategy", "bfs", "--trace", "--formulas" },
		{ "--levels", "3", "--formulas" },
		{ "--formulas" } } },
	{ ".set", false, false, changes_of_integers, {
		{ "--order", "file", "--invariant" },
		{ "--order", "file", "--strategy", "bfs", "--trace", "--invariant" },
		{ "--order", "file", "--levels", "3", "--invariant" },
		{ "--order", "file", "--strategy", "chaining", "--invariant" } } },
	{ ".point", false, false, changes_of_integers, {
		{ "--order", "file", "--checkpoint" },
		{ "--order", "file", "--checkpoint" },
		{ "--order", "file", "--deadlocks", "--checkpoint" },
		{ "--order", "file", "--levels", "3", "--checkpoint" } } },
};

static const struct kind *kind_of(const struct file *f)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].suffix, f->suffix))
			return &kinds[i];
	errx(2, "%s: the suffix is of no known kind", f->name);
}

static void damage(struct text *t, const struct kind *kind)
{
	unsigned int times = below(3) ? 1 : 1 + below(3), changes = 0;

	while (kind->changes[changes])
		changes++;
	while (times-- && t->size)
		kind->changes[below(changes)](t);
	if (kind->compressed && below(8) == 0) {
		compress_text(t);
		if (below(2))
			changes_of_integers[below(7)](t);
	}
}

/* ---- runs ---- */

static const char *directory;
static char mutant[256], out_path[256], err_path[256];
static unsigned int seen[256], stopped, failures;

static void write_mutant(const struct text *t)
{
	FILE *file = fopen(mutant, "we");

	if (!file || fwrite(t->bytes, 1, t->size, file) != t->size || fclose(file))
		err(2, "%s", mutant);
}

static void set_limit(int what, uint64_t value)
{
	const struct rlimit l = { value, value };

	setrlimit(what, &l);
}

/* The main() of kdsm-reach */
int kdsm_reach_main(int argc, char **argv);

static _Noreturn void become(int count, char **arguments)
{
	const uint64_t cpu = SANITIZED ? 60 : 12;
	sigset_t none;

	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_CPU, cpu);
	if (!SANITIZED)
		set_limit(RLIMIT_AS, UINT64_C(1) << 32);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!freopen("/dev/null", "r", stdin) || !freopen(out_path, "w", stdout) ||
	    !freopen(err_path, "w", stderr))
		_exit(126);
	optind = 0;
	program_invocation_short_name = arguments[0];
	exit(kdsm_reach_main(count, arguments));
}

static double cpu_time(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Wait for the process. Send it SIGTERM at the limit, and SIGKILL if that does not end it. */
static int wait_for(pid_t pid, bool *terminated)
{
	const struct timespec moment = { 0, 50000000 };
	unsigned int moments = 0;
	sigset_t child;
	int status;

	*terminated = false;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (sigtimedwait(&child, NULL, &moment) == SIGCHLD)
			continue;
		if (!*terminated && cpu_time(pid) > limit) {
			kill(pid, SIGTERM);
			*terminated = true;
		}
		if (++moments == 20 * 600)	/* it sleeps for ten minutes */
			kill(pid, SIGKILL);
	}
	return status;
}

static void read_output(const char *path, char *text)
{
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(text, 1, MOST_OUTPUT - 1, file) : 0, i;

	for (i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : '?';
	text[n] = 0;
	if (file)
		fclose(file);
}

/* Whether the text is one line that kdsm-reach says, or no line */
static bool is_message(const char *text)
{
	const char *end = strchr(text, '\n');

	return !strncmp(text, "kdsm-reach: ", 12) && end && !end[1];
}

/* Why this end is wrong; NULL if it is right. */
static const char *judge(int status, bool terminated, const char *out, const char *said)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && terminated)
		return "took too long to read its files, or to count";
	if (WIFSIGNALED(status))
		return "ended by a signal";
	if (strstr(said, "Sanitizer") || strstr(said, "runtime error"))
		return "an error that a sanitizer found";
	if (code == 2 && (!is_message(said) || !strstr(said, "mutant:")))
		return "refused without one message that names the file";
	/* a formula is unknown after --levels, which is no failure */
	if (code == 3 && !is_message(said) && (*said || !strstr(out, "\"complete\": false")))
		return "failed without one message";
	if ((code == 0 || code == 1 || code == 143) && !strstr(out, "\"states\": \""))
		return "no number of states";
	if ((code == 0 || code == 1) && *said && !strstr(said, "checkpoint"))
		return "a message, but no failure";
	if (code != 0 && code != 1 && code != 2 && code != 3 && !(code == 143 && terminated))
		return "an exit status that is not documented";
	return NULL;
}

static void run(uint64_t number, const struct file *f, const struct kind *kind)
{
	static char out[MOST_OUTPUT], said[MOST_OUTPUT];
	const char *arguments[MOST_ARGUMENTS] = {
		"kdsm-reach", "--local", "--json", "-w", "1", "--progress", "0",
		"--table", "1", "--cache", "1",
	};
	const char *const *option = kind->options[below(4)];
	unsigned int n = 11, i;
	const char *wrong;
	char model[4096];
	bool terminated;
	int status;
	pid_t pid;

	while (*option)
		arguments[n++] = *option++;
	arguments[n++] = mutant;
	if (!kind->is_model) {
		snprintf(model, sizeof(model), "%s/%.*s.pnml", directory,
			 (int)(f->suffix - f->name), f->name);
		arguments[n++] = model;
	}
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (pid == 0)
		become(n, (char **)arguments);
	status = wait_for(pid, &terminated);
	stopped += terminated;
	seen[WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)]++;
	read_output(out_path, out);
	read_output(err_path, said);
	wrong = judge(status, terminated, out, said);
	if (!wrong)
		return;
	failures++;
	printf("%" PRIu64 " of %s: %s (%s %d):", number, f->name, wrong,
	       WIFEXITED(status) ? "status" : "signal",
	       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	for (i = 9; i < n; i++)
		printf(" %s", arguments[i]);
	printf("\n%.2000s%.200s\n", said, out);
	fflush(stdout);
}

static void mutate(uint64_t number)
{
	static unsigned char bytes[MOST_SIZE];
	struct text t = { bytes, 0 };
	const struct kind *kind;
	const struct file *f;

	random_state = number * UINT64_C(0xd1342543de82ef95);
	f = &files[below(file_count)];
	kind = kind_of(f);
	t.size = f->text.size;
	memcpy(bytes, f->text.bytes, t.size);
	damage(&t, kind);
	write_mutant(&t);
	run(number, f, kind);
}

static void prepare(const char *work)
{
	sigset_t child;

	snprintf(mutant, sizeof(mutant), "%s/mutant", work);
	snprintf(out_path, sizeof(out_path), "%s/out", work);
	snprintf(err_path, sizeof(err_path), "%s/err", work);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
}

int main(int argc, char **argv)
{
	uint64_t first = 0, count = 1000, i;
	char work[] = "/tmp/kdsm-mutate-XXXXXX";
	bool keep = false;
	int option;

	while ((option = getopt(argc, argv, "n:s:t:kh")) != -1) {
		switch (option) {
		case 'n':
			count = strtoull(optarg, NULL, 0);
			break;
		case 's':
			first = strtoull(optarg, NULL, 0);
			break;
		case 't':
			limit = atof(optarg);
			break;
		case 'k':
			keep = true;
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 64;
		}
	}
	if (argc - optind != 1) {
		usage(stderr);
		return 64;
	}
	directory = argv[optind];
	read_files(directory);
	if (!mkdtemp(work))
		err(2, "%s", work);
	prepare(work);
	for (i = 0; i < count; i++)
		mutate(first + i);
	printf("%" PRIu64 " copies, %u failures, %u stopped; exit status:", count, failures,
	       stopped);
	for (i = 0; i < 256; i++)
		if (seen[i])
			printf(" %" PRIu64 ": %u", i, seen[i]);
	printf("\n%s mutate\n", failures ? "not ok" : "ok");
	if (keep)
		rename(mutant, "mutant");
	unlink(mutant);
	unlink(out_path);
	unlink(err_path);
	rmdir(work);
	return failures > 0;
}

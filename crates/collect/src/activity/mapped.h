/* Which libraries are mapped: as the kernel tells. The C library's own list cannot be walked beside a thread that loads a
 * library: dl_iterate_phdr looks for the thread-local variables of that one, for which there may be no room yet, and ends the
 * process by SIGSEGV (glibc 2.36 and 2.39).
 */

#define MAPS_BYTES (PATH_MAX + 256) /* a line at least */

/* Says 1 where it has seen enough. */
typedef int each_library(uintptr_t from, uintptr_t to, const char *path, void *own);

static uintptr_t hexadecimal(const char **text)
{
	uintptr_t number = 0;
	char digit;

	for (; (digit = **text, (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f')); ++*text)
		number = number << 4 | (uintptr_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
	return number;
}

/* Before the file's path no x but that of what may be executed stands in a line. */
static int look_at_line(char *line, each_library *each, void *own)
{
	static const char deleted[] = " (deleted)";
	const char *at = line;
	char *path = strchr(line, '/');
	size_t bytes = path ? strlen(path) : 0, of_deleted = sizeof(deleted) - 1;
	uintptr_t from = hexadecimal(&at), to;

	if (!path || *at++ != '-' || !memchr(line, 'x', path - line))
		return 0;
	to = hexadecimal(&at);
	if (bytes > of_deleted && !strcmp(path + bytes - of_deleted, deleted))
		path[bytes - of_deleted] = 0;
	return each(from, to, path, own);
}

/* Looks at the whole lines in `text`; returns where the rest begins, `text`'s end where somebody has seen enough. */
static char *look_at_lines(char *text, each_library *each, void *own, int *enough)
{
	char *end;

	while (!*enough && (end = strchr(text, '\n'))) {
		*end = 0;
		*enough = look_at_line(text, each, own);
		text = end + 1;
	}
	return text;
}

static int each_mapped(each_library *each, void *own)
{
	int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), enough = 0;
	char text[MAPS_BYTES], *rest;
	size_t kept = 0;
	ssize_t got;

	while (file >= 0 && !enough && (got = read(file, text + kept, sizeof(text) - 1 - kept)) > 0) {
		text[kept + got] = 0;
		rest = look_at_lines(text, each, own, &enough);
		kept = strlen(rest);
		/* no path is as long */
		kept = kept < sizeof(text) - 1 ? kept : 0;
		memmove(text, rest, kept);
	}
	if (file >= 0)
		close(file);
	return enough;
}

/* A library, by how its file's name begins or by an address in it; its path. */
struct mapped {
	const char *beginning;
	uintptr_t at;
	const char *but; /* another one than that */
	char path[PATH_MAX];
};

static int is_meant(uintptr_t from, uintptr_t to, const char *path, void *own)
{
	struct mapped *mapped = own;

	if (mapped->at && (mapped->at < from || mapped->at >= to))
		return 0;
	if (mapped->beginning && !starts_with(name_of(path), mapped->beginning))
		return 0;
	if (mapped->but && !strcmp(path, mapped->but))
		return 0;
	return snprintf(mapped->path, sizeof(mapped->path), "%s", path) < (int)sizeof(mapped->path);
}

static int is_mapped(struct mapped *mapped)
{
	return each_mapped(is_meant, mapped);
}

/* Which CUPTI is asked: the one that the program has mapped already, as there must never be two; else the one that the user
 * names, the loader's, one beside the CUDA runtime, or the toolkit's.
 */

static const char *loaded_name(void *library)
{
	struct link_map *map = NULL;

	return !dlinfo(library, RTLD_DI_LINKMAP, &map) && map && map->l_name && *map->l_name ? map->l_name
											     : NULL;
}

/* By the name that the program has loaded it by: what lies beside that need not lie beside the file that a link leads to. */
static void name_as_loaded(struct mapped *mapped)
{
	void *library = dlopen(mapped->path, RTLD_LAZY | RTLD_NOLOAD);
	const char *name = library ? loaded_name(library) : NULL;

	if (name)
		snprintf(mapped->path, sizeof(mapped->path), "%s", name);
	if (library)
		dlclose(library);
}

static int take_entries(void *library)
{
	size_t at;

	for (at = 0; at < sizeof(cupti_entries) / sizeof(cupti_entries[0]); at++) {
		*cupti_entries[at].entry = dlsym(library, cupti_entries[at].name);
		if (!*cupti_entries[at].entry && cupti_entries[at].needed)
			return 0;
	}
	return 1;
}

static void note_library(void *library, const char *path)
{
	const char *name = loaded_name(library);

	snprintf((char *)head()->library, LIBRARY_BYTES, "%s", name ? name : path);
}

/* Whether it is settled what becomes of this process. One that is too new for the driver does nothing, and stays mapped. */
static int try_library(const char *path, int flags)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	int error;

	if (!library)
		return 0;
	note_library(library, path);
	if (!take_entries(library)) {
		set_state(ACTIVITY_REFUSED, STEP_LOAD, 0);
		dlclose(library);
		return 0;
	}
	cupti.version(&head()->version);
	error = begin();
	if (!error)
		guard(library);
	return error != CUPTI_NOT_INITIALIZED;
}

static const char *const sonames[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8" };

#define SONAMES (sizeof(sonames) / sizeof(sonames[0]))

static int try_folder(const char *folder)
{
	char path[PATH_MAX];
	size_t at;

	for (at = 0; at < SONAMES; at++) {
		if (snprintf(path, sizeof(path), "%s/%s", folder, sonames[at]) >= (int)sizeof(path))
			return 0;
		if (!access(path, R_OK) && try_library(path, 0))
			return 1;
	}
	return 0;
}

/* Where packages of Python have it, seen from the runtime's folder. */
static int try_beside_runtime(void)
{
	static const char *const beside[] = { "", "/../../cuda_cupti/lib", "/../../cu13/lib",
					      "/../extras/CUPTI/lib64" };
	struct mapped runtime = { .beginning = "libcudart.so" };
	char folder[PATH_MAX + 32], *slash;
	size_t at;

	if (!is_mapped(&runtime))
		return 0;
	name_as_loaded(&runtime);
	slash = strrchr(runtime.path, '/');
	if (!slash)
		return 0;
	*slash = 0;
	for (at = 0; at < sizeof(beside) / sizeof(beside[0]); at++) {
		snprintf(folder, sizeof(folder), "%s%s", runtime.path, beside[at]);
		if (try_folder(folder))
			return 1;
	}
	return 0;
}

static int try_toolkits(void)
{
	glob_t found = { 0 };
	int taken = 0;
	size_t at;

	if (!glob("/usr/local/cuda*/extras/CUPTI/lib64", 0, NULL, &found)) {
		for (at = 0; at < found.gl_pathc && !taken; at++)
			taken = try_folder(found.gl_pathv[at]);
	}
	globfree(&found);
	return taken;
}

static int try_loader(void)
{
	size_t at;

	for (at = 0; at < SONAMES; at++) {
		if (try_library(sonames[at], 0))
			return 1;
	}
	return 0;
}

/* One that is loaded from a file of another name; NULL: none is. */
static const char *loaded_soname(void)
{
	void *library;
	size_t at;

	for (at = 0; at < SONAMES; at++) {
		library = dlopen(sonames[at], RTLD_LAZY | RTLD_NOLOAD);
		if (library) {
			dlclose(library);
			return sonames[at];
		}
	}
	return NULL;
}

static void ask_cupti(void)
{
	struct mapped mapped = { .beginning = "libcupti.so" };
	const char *named = getenv("GPUSCOPE_CUPTI"), *loaded;

	if (is_mapped(&mapped))
		try_library(mapped.path, RTLD_NOLOAD);
	else if ((loaded = loaded_soname()))
		try_library(loaded, RTLD_NOLOAD);
	else if (named && *named)
		try_library(named, 0);
	else if (!try_loader() && !try_beside_runtime())
		try_toolkits();
	if (head()->state == ACTIVITY_NONE)
		set_state(ACTIVITY_ABSENT, STEP_NONE, 0);
}

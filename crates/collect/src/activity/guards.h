/* Gives CUPTI to the program as soon as that asks for it: one at a time can hold it, and the program's own tool goes first.
 *
 * While we hold it, the functions with which a tool begins lead here. Whoever calls one of them first has all of them put back
 * as they were, waits until what was done is handed over, and goes on to the function itself.
 */

/* Tells all that was done so far, and lets go of CUPTI. */
static void hand_over(void);

#ifdef __x86_64__

enum { GUARD_SUBSCRIBE, GUARD_SUBSCRIBE_V2, GUARD_CALLBACKS, GUARDS };

typedef int guarded_function(void *, void *, void *, void *);

/* Of one function: where it begins (0: there is none), and what lies there. */
static struct {
	uint64_t *at;
	uint64_t code;
} guards[GUARDS];

static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER;
static int is_guarded;

/* Written at once: whoever is about to run a function runs it as it was, or as it is. */
static void write_code(int guard, uint64_t code)
{
	__atomic_store_n(guards[guard].at, code, __ATOMIC_SEQ_CST);
}

/* Others run what lies on the same page meanwhile. */
static int protect(int guard, int how)
{
	uintptr_t page = (uintptr_t)guards[guard].at & -(uintptr_t)PAGE_BYTES;

	return guards[guard].at && mprotect((void *)page, PAGE_BYTES, how);
}

static int protect_all(int how)
{
	int guard, failed = 0;

	for (guard = 0; guard < GUARDS; guard++)
		failed |= protect(guard, how);
	return failed;
}

/* Whether they were guarded until now. */
static int put_back(void)
{
	int guard, was;

	pthread_mutex_lock(&guards_lock);
	was = is_guarded;
	if (was && !protect_all(PROT_READ | PROT_WRITE | PROT_EXEC)) {
		for (guard = 0; guard < GUARDS; guard++) {
			if (guards[guard].at)
				write_code(guard, guards[guard].code);
		}
		is_guarded = 0;
	}
	if (was)
		protect_all(PROT_READ | PROT_EXEC);
	pthread_mutex_unlock(&guards_lock);
	return was;
}

/* The program asks. False: it cannot have it, as code can no longer be written. */
static int give_way(void)
{
	if (put_back() && !is_guarded && on)
		hand_over();
	return !is_guarded;
}

#define GUARD(name, guard)                                               \
	static int name(void *a, void *b, void *c, void *d)              \
	{                                                                \
		if (!give_way())                                         \
			return CUPTI_HELD;                               \
		return ((guarded_function *)guards[guard].at)(a, b, c, d); \
	}

GUARD(subscribes, GUARD_SUBSCRIBE)
GUARD(subscribes_v2, GUARD_SUBSCRIBE_V2)
GUARD(registers_callbacks, GUARD_CALLBACKS)

static guarded_function *const guarding[GUARDS] = { subscribes, subscribes_v2, registers_callbacks };

#define JUMP_BYTES 5
#define STUB_BYTES 16 /* jmp *0(%rip), and where to */
#define REACH 0x7ff00000L
#define APART (1L << 20)

static int is_near(const char *stubs, const void *function)
{
	intptr_t apart = stubs - (const char *)function;

	return apart > -REACH && apart < REACH;
}

/* A page that jumps in `function` reach; it is written once. */
static char *page_near(const char *function)
{
	const char *page = (const char *)((uintptr_t)function & -(uintptr_t)PAGE_BYTES);
	long apart;
	void *at;

	for (apart = APART; apart < REACH; apart += APART) {
		at = mmap((void *)(page - apart), PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			return NULL;
		if (is_near(at, function))
			return at;
		munmap(at, PAGE_BYTES);
	}
	return NULL;
}

static int write_stubs(char *stubs)
{
	static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 };
	int guard;

	for (guard = 0; guard < GUARDS; guard++) {
		memcpy(stubs + guard * STUB_BYTES, jump, sizeof(jump));
		memcpy(stubs + guard * STUB_BYTES + sizeof(jump), &guarding[guard], sizeof(void *));
	}
	return mprotect(stubs, PAGE_BYTES, PROT_READ | PROT_EXEC);
}

/* Where functions lead while they are guarded; NULL: they cannot. */
static char *stubs_near(const char *function)
{
	static char *stubs;

	if (stubs)
		return is_near(stubs, function) ? stubs : NULL;
	stubs = page_near(function);
	if (stubs && write_stubs(stubs)) {
		munmap(stubs, PAGE_BYTES);
		stubs = NULL;
	}
	return stubs;
}

/* The function's first bytes with a jump before them. */
static uint64_t led(int guard, const char *stubs)
{
	const char *to = stubs + guard * STUB_BYTES, *from = (const char *)guards[guard].at + JUMP_BYTES;
	int32_t apart = (int32_t)(to - from);
	uint64_t code = guards[guard].code;

	memcpy((char *)&code + 1, &apart, sizeof(apart));
	*(uint8_t *)&code = 0xe9;
	return code;
}

/* Its bytes are written at once where they lie as the compiler aligns functions, and belong to it alone. */
static int take_guarded(int guard, void *library, const char *name)
{
	void *at = dlsym(library, name);
	const ElfW(Sym) *symbol = NULL;
	Dl_info of;

	guards[guard].at = NULL;
	if (!at)
		return 0;
	if ((uintptr_t)at % sizeof(uint64_t) || !dladdr1(at, &of, (void **)&symbol, RTLD_DL_SYMENT) ||
	    !symbol || symbol->st_size < sizeof(uint64_t))
		return 0;
	guards[guard].at = at;
	guards[guard].code = *(uint64_t *)at;
	return 1;
}

static int can_guard(void *library)
{
	take_guarded(GUARD_SUBSCRIBE_V2, library, "cuptiSubscribe_v2");
	return take_guarded(GUARD_SUBSCRIBE, library, "cuptiSubscribe") &&
	       take_guarded(GUARD_CALLBACKS, library, "cuptiActivityRegisterCallbacks");
}

/* From now on. Where code may not be written the program's tool is told that CUPTI is taken. */
static void guard(void *library)
{
	char *stubs;
	int at;

	pthread_mutex_lock(&guards_lock);
	stubs = !is_guarded && can_guard(library) ? stubs_near((char *)guards[GUARD_SUBSCRIBE].at) : NULL;
	is_guarded |= stubs && !protect_all(PROT_READ | PROT_WRITE | PROT_EXEC);
	for (at = 0; stubs && is_guarded && at < GUARDS; at++) {
		if (guards[at].at)
			write_code(at, led(at, stubs));
	}
	if (stubs)
		protect_all(PROT_READ | PROT_EXEC);
	pthread_mutex_unlock(&guards_lock);
	head()->guarded = is_guarded;
}

/* Of threads that a forked child does not have. */
static void forget_threads(void)
{
	pthread_mutex_init(&guards_lock, NULL);
}

#else

/* Of no other processor are instructions written here. */
static void guard(void *library)
{
	(void)hand_over;
}

static int put_back(void)
{
	return 0;
}

static void forget_threads(void) {}

#endif

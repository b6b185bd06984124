/* What is loaded into a program that is traced from inside: the body of a call (call.bpf.h), entered by patched functions.
 *
 * It needs no library and calls none. It allocates nothing, takes no lock that the program may hold, starts no thread, says
 * nothing, and touches none of the program's memory that may not be there. Where it cannot do its work it stays dormant, and
 * the program runs as without it.
 */
#include <linux/types.h>

#include "arena.h"
#include "host.h"
#include "memory.h"

#include "watch.h"
#include "call.bpf.h"
#include "interpreter.h"

#include "clock.h"
#include "confined.h"
#include "loaded.h"
#include "ranges.h"
#include "unwind.h"

_Static_assert(__builtin_offsetof(struct hook, on) == 40 && __builtin_offsetof(struct hook, plain) == 56 &&
		       __builtin_offsetof(struct control, counting) == 672 &&
		       __builtin_offsetof(struct door, wake) == 12 && HOOK_PASSES == 0 && HOOK_COUNTS == 2,
	       "as enter.S has them");
_Static_assert(sizeof(struct options) <= ARENA_PAGE, "a page");
_Static_assert(sizeof(struct control) <= ARENA_PAGE, "a page");
_Static_assert(sizeof(struct process_head) <= ARENA_PAGE, "a page");

/* of an epoch: the process, how often it was traced before, and whether its calls pass */
#define EPOCH_PROCESS ((1u << 22) - 1)
#define EPOCH_ROUND (1u << 22)
#define DORMANT (1u << 31)
#define NO_SUCH_THREAD (-3)
#define BLOCKS_LOOKED_AT 4
#define FEW_BLOCKS 16
#define MADV_WIPE_ON_FORK 18
#define MADV_DONT_DUMP 16
#define MADV_REMOVE 9
#define LEFT_TO_LIBRARIES (64ull << 30)

/* Zero in a child, which the kernel sees to: then it has not joined yet. */
struct membership {
	__u32 epoch;
	__u32 joining;
};

SHARED struct membership membership;
__thread __u32 epoch;
/* whether this process, or the one that it was forked from, is traced now */
static bool is_traced;

/* The section "pages" ends with a page of its own, and what follows it begins with one. */
static char last_page[ARENA_PAGE] __attribute__((section("pages"), aligned(ARENA_PAGE), used));
static char first_page[ARENA_PAGE] __attribute__((aligned(ARENA_PAGE), used));

/* ---- which map is which table ---- */

#define BIND(map, place) ((map).type = (void *)(unsigned long)(place))
#define AFTER(place, type) ((__u32)((place) + ((sizeof(type) + 63) & ~63ul)))

static void bind(void)
{
	__u32 at_thread = sizeof(struct local), at_kernel = AFTER(at_thread, struct thread),
	      at_site = AFTER(at_kernel, struct kernel_scratch);

	rules_at = AFTER(at_site, struct site_scratch);

	_Static_assert(BLOCK_LOCAL + sizeof(struct local) == BLOCK_THREAD, "one follows the other");
	_Static_assert(sizeof(struct local) + sizeof(struct thread) + sizeof(struct kernel_scratch) +
				       sizeof(struct site_scratch) + sizeof(struct rules) + 256 <
			       BLOCK_ROWS - BLOCK_LOCAL,
		       "they lie before the rows");
	BIND(specs, PLACE_SPECS);
	BIND(probe_sites, PLACE_PROBE_SITES);
	BIND(targets, PLACE_NOWHERE);
	BIND(row_counters, OWN_ROWS);
	BIND(totals, OWN_TOTALS);
	BIND(failures, OWN_FAILURES);
	BIND(flows, PROCESS_FLOWS);
	BIND(shapes, PROCESS_SHAPES);
	BIND(kernels, PROCESS_KERNELS);
	BIND(named_handles, PROCESS_NAMED_HANDLES);
	BIND(aggregates, PROCESS_AGGREGATES);
	BIND(aggregate_texts, PROCESS_AGGREGATE_TEXTS);
	BIND(lanes, PROCESS_LANES);
	BIND(work_losses, PROCESS_WORK_LOSSES);
	BIND(memory_losses, PROCESS_MEMORY_LOSSES);
	BIND(known_sites, PROCESS_KNOWN_SITES);
	BIND(pythons, PROCESS_PYTHONS);
	BIND(threads, at_thread);
	BIND(kernel_scratches, at_kernel);
	BIND(site_scratches, at_site);
	BIND(events, RING_CALLS);
	BIND(memory, RING_MEMORY);
	BIND(work, RING_WORK);
}

static void note_open_calls(struct message *message)
{
	const struct thread *thread;

	if (!self || epoch != membership.epoch)
		return;
	thread = bpf_task_storage_get(&threads, NULL, 0, 0);
	for (__u32 i = 0; i < MESSAGE_OPEN && i < thread->depth; i++) {
		message->open_entered[i] = thread->frames[i].entered;
		message->open_row[i] = thread->frames[i].row;
	}
}

/* ---- joining ---- */

static bool map_page(volatile void *at, int fd, __u64 offset, int rights)
{
	return !failed_call(SYS6(mmap, at, ARENA_PAGE, rights, MAP_SHARED_FIXED, fd, offset));
}

static bool map_all(int of_process, int of_run)
{
	/* room beside libraries is left to libraries that come later, and to what their patches need */
	char *below = (char *)((__u64)last_page - LEFT_TO_LIBRARIES) - RUN_BYTES;
	/* what was there before gives way at once: there is always memory where a hook may be writing */
	long memory_of_run = SYS6(mmap, run ? run : below, RUN_BYTES, 1,
				  MAP_SHARED_LAZY | (run ? MAP_FIXED_ : 0), of_run, 0);
	long memory_of_process = SYS6(mmap, process ? process : below - PROCESS_BYTES, PROCESS_BYTES, PROT_RW,
				      MAP_SHARED_LAZY | (process ? MAP_FIXED_ : 0), of_process, 0);

	if (failed_call(memory_of_run) || failed_call(memory_of_process))
		return false;
	SYS3(madvise, memory_of_run, RUN_BYTES, MADV_DONT_DUMP);
	SYS3(madvise, memory_of_process, PROCESS_BYTES, MADV_DONT_DUMP);
	run = (char *)memory_of_run;
	memcpy(layout, ((struct process_head *)memory_of_process)->shape, sizeof(layout));
	if (!map_page(&options, of_run, RUN_OPTIONS, 1) ||
	    !map_page(&site_options, of_run, RUN_SITE_OPTIONS, 1) ||
	    !map_page(&control, of_process, PROCESS_CONTROL, PROT_RW) ||
	    !map_page(&site_counters, of_process, PROCESS_SITE_COUNTERS, PROT_RW) ||
	    !map_page(&aggregate_counters, of_process, PROCESS_AGGREGATE_COUNTERS, PROT_RW))
		return false;
	process = (char *)memory_of_process;
	clock_ahead = ((struct process_head *)process)->clock_ahead;
	((struct process_head *)process)->mapped = 1;
	return true;
}

/* Whether gpuscope wants this process; it has its memory then. */
static bool join(__u32 kind)
{
	struct message message = { .magic = ARENA_MAGIC, .kind = kind };
	int fds[2] = { -1, -1 };
	bool joined;

	/* a child's namespace may be another one; gpuscope knows by how much its clock is ahead */
	clock_ahead = 0;
	message.at = read_clock();
	message.tid = (__u32)SYS0(gettid);
	message.parent = (__u32)SYS0(getppid);
	joined = ask(&message, fds, PATIENCE_S) && map_all(fds[0], fds[1]);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			SYS1(close, fds[i]);
	return joined;
}

/* The process is in the `round`th state of its own. */
static void set_epoch(__u32 round, bool traced)
{
	__u32 number =
		((__u32)SYS0(getpid) & EPOCH_PROCESS) | (round * EPOCH_ROUND & ~(EPOCH_PROCESS | DORMANT));

	is_traced = traced;
	__atomic_store_n(&membership.epoch, traced ? number : number | DORMANT, __ATOMIC_RELEASE);
}

static bool is_borrowed(void)
{
	__u32 number = membership.epoch & EPOCH_PROCESS;

	return number && number != ((__u32)SYS0(getpid) & EPOCH_PROCESS);
}

/* Nothing that is called from now on is recorded. */
static void leave_tracing(void)
{
	switch_all_off();
	if (is_traced)
		__atomic_fetch_add(&door.joined, 1, __ATOMIC_RELEASE);
	set_epoch(membership.epoch / EPOCH_ROUND + 1, false);
}

/* A forked child makes its first call. */
static void join_child(void)
{
	if (__atomic_exchange_n(&membership.joining, 1, __ATOMIC_ACQUIRE))
		return; /* another thread does: what this one calls meanwhile is not seen */
	/* the thread that was looking has stayed behind */
	looking = 0;
	if (stands_by() && patched_count)
		make_door();
	if (is_traced && join(MESSAGE_CHILD)) {
		set_epoch(0, true);
		door.joined = 1;
		return;
	}
	is_traced = false;
	/* the parent's is not ours to write to; nobody of this process is in a hook yet */
	if (process)
		SYS2(munmap, process, PROCESS_BYTES);
	process = NULL;
	leave_tracing();
}

/* Whether this process has memory of its own, as a child gets it when it first needs it. */
static bool is_member(void)
{
	if (!membership.epoch && (process || stands_by()))
		join_child();
	return process && membership.epoch && !(membership.epoch & DORMANT);
}

/* gpuscope wants a process that has stood by, or has done with it. */
static void answer_door(void)
{
	__u32 wish;

	if (__atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return; /* the dynamic linker is at work: the next call sees to it */
	wish = __atomic_exchange_n(&door.wake, 0, __ATOMIC_ACQ_REL);
	if (wish == DOOR_LEAVE && is_traced) {
		leave_tracing();
		/* gives the memory back; what a hook writes that is under way, nobody reads */
		SYS3(madvise, process, PROCESS_BYTES, MADV_REMOVE);
	} else if (wish == DOOR_JOIN) {
		/* another gpuscope may have gone without a word */
		if (is_traced)
			leave_tracing();
		append_path(address.path, (const char *)door.path);
		if (join(MESSAGE_LATE)) {
			set_epoch(membership.epoch / EPOCH_ROUND + 1, true);
			switch_on_loaded();
			__atomic_fetch_add(&door.joined, 1, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

/* Whether the call is to be recorded, where the program stands by, or did. */
static __noinline bool passes_door(const struct hook *hook)
{
	if (!membership.epoch)
		join_child();
	if (door.wake && door.tgid == (membership.epoch & EPOCH_PROCESS))
		answer_door();
	return __atomic_load_n(&hook->on, __ATOMIC_ACQUIRE);
}

static void count_patched(__u64 done, __u64 refused)
{
	struct process_head *head = (struct process_head *)process;

	if (is_traced) {
		__sync_fetch_and_add(&head->patched, done);
		__sync_fetch_and_add(&head->refused, refused);
	} else if (door.magic) {
		__sync_fetch_and_add(&door.patched, done);
		__sync_fetch_and_add(&door.refused, refused);
	}
}

/* ---- blocks ---- */

static struct block *block_at(__u32 number)
{
	return (struct block *)(process + PROCESS_BLOCKS + (__u64)number * BLOCK_BYTES);
}

/* The block of a thread that has ended; NULL: among those that were looked at there is none. */
static struct block *inherited(__u32 tid, __u32 count)
{
	static __u32 cursor;

	for (__u32 i = 0; i < BLOCKS_LOOKED_AT && count > FEW_BLOCKS; i++) {
		__u32 number = __sync_fetch_and_add(&cursor, 1) % count;
		struct block *block = block_at(number);
		__u32 owner = __atomic_load_n(&block->owner, __ATOMIC_ACQUIRE);

		if (owner && SYS3(tgkill, epoch & EPOCH_PROCESS, owner, 0) == NO_SUCH_THREAD &&
		    __sync_bool_compare_and_swap(&block->owner, owner, tid)) {
			memset((char *)block + BLOCK_LOCAL, 0, BLOCK_ROWS - BLOCK_LOCAL);
			return block;
		}
	}
	return NULL;
}

static struct block *named(struct block *block, __u32 tid)
{
	struct local *own = (struct local *)((char *)block + BLOCK_LOCAL);

	own->ids = (__u64)((struct process_head *)process)->tgid << 32 | tid;
	block->pointer = 0;
	return block;
}

static struct block *claim(__u32 tid)
{
	struct process_head *head = (struct process_head *)process;
	__u32 count = __atomic_load_n(&head->blocks, __ATOMIC_ACQUIRE), number;
	struct block *block = inherited(tid, count < MOST_BLOCKS ? count : MOST_BLOCKS);

	if (block)
		return named(block, tid);
	number = __sync_fetch_and_add(&head->blocks, 1);
	if (number >= MOST_BLOCKS) {
		__sync_fetch_and_add(&head->blocks, -1);
		return NULL;
	}
	block = block_at(number);
	block->ring_bytes = number < LARGE_RINGS ? RING_BYTES : RING_BYTES_OF_MANY;
	__atomic_store_n(&block->owner, tid, __ATOMIC_RELEASE);
	return named(block, tid);
}

/* The thread calls for the first time in this process. */
static __noinline void begin_thread(void)
{
	__u32 tid;

	self = NULL;
	other = NULL;
	if (!membership.epoch)
		join_child();
	epoch = __atomic_load_n(&membership.epoch, __ATOMIC_ACQUIRE);
	if (!epoch || (epoch & DORMANT))
		return;
	if (is_quiet)
		return; /* who calls is not known: that it did is counted */
	tid = (__u32)SYS0(gettid);
	self = claim(tid);
	if (!self)
		return;
	self->pointer = thread_pointer_of(NULL);
	now_ns();
	hand_over_left();
}

/* ---- calls ---- */

INLINE bool is_within(const struct block *block, __u64 sp)
{
	return block->busy && sp < ((const struct local *)((const char *)block + BLOCK_LOCAL))->sp;
}

/* Has the two blocks of the thread change places. A handler that comes between finds the same one twice, and uses neither. */
INLINE void change_places(void)
{
	struct block *block = other;

	__atomic_store_n(&other, self, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&self, block, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* A handler of a signal has interrupted a hook of this thread and calls. False: another one has interrupted that, too. */
static __noinline bool step_aside(__u64 sp)
{
	if (!other)
		other = claim((__u32)local()->ids);
	if (!other || other == self || is_within(other, sp))
		return false;
	change_places();
	local()->aside = true;
	return true;
}

/* Whether the thread may work in its block: a handler of a signal that has interrupted it there works in another one. Where
 * a handler has left by a jump, what it interrupted will not go on: it lies below on the stack then.
 */
INLINE bool begin(const struct pt_regs *regs)
{
	struct local *own;

	if (epoch != membership.epoch || !self) {
		if (epoch != membership.epoch)
			begin_thread();
		if (!self) {
			if (process && !(epoch & DORMANT))
				__sync_fetch_and_add(&((struct process_head *)process)->unseen, 1);
			return false;
		}
	}
	if (is_within(self, regs->rsp) && !step_aside(regs->rsp)) {
		__sync_fetch_and_add(&((struct process_head *)process)->nested, 1);
		return false;
	}
	own = local();
	own->sp = regs->rsp;
	if (!on_own_stack(regs->rsp, 8))
		know_pages_of_stack(regs->rsp, 1);
	__atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&self->busy, now_ns(), __ATOMIC_RELAXED);
	return true;
}

INLINE void end(void)
{
	struct block *done = self;

	if (local()->aside) {
		local()->aside = false;
		change_places();
	}
	__atomic_store_n(&done->busy, 0, __ATOMIC_RELEASE);
}

/* How many of the words above the return address may be copied: the page that it lies on is there; whether the next one is,
 * the kernel says, and the process's map once.
 */
INLINE __u32 words_above(__u64 sp, __u32 words)
{
	__u64 from = sp + 8, next = (sp & ~(ARENA_PAGE - 1ull)) + ARENA_PAGE, word, left;

	if (from + words * 8ull <= next || on_own_stack(from, words * 8ull))
		return words;
	if (!local()->stack[1])
		find_stack(sp);
	if (!on_own_stack(from, words * 8ull) && !read_by_kernel(&word, sizeof(word), next))
		know_pages_of_stack(sp, 2);
	left = own_stack_from(from) / 8;
	return left < words ? (__u32)left : words;
}

/* Whether nothing but its number is wanted of a call: neither when it was, nor what it was given. */
INLINE bool is_plain(const struct spec *spec)
{
	return spec && !(spec->flags & ~SPEC_FALLIBLE) && !spec->hook.flags && !needs_frame(spec);
}

/* Counts such a call, which takes no time that would have to be known. Nothing is written that a handler of a signal could
 * find half done. False: it is the thread's first one.
 */
INLINE bool count_plain(const struct hook *hook)
{
	__u64 row = (__u32)hook->cookie;

	if (epoch != membership.epoch || !self || row >= ARENA_ROWS ||
	    !is_plain(element(PLACE_SPECS, (__u32)row, sizeof(struct spec))) || !thread_known())
		return false;
	if (counting())
		asm volatile("incq %0" : "+m"(*(__u64 *)((char *)self + BLOCK_PLAIN + row * 8)));
	return true;
}

/* The same of a function, whose further calls `agent_call` counts by itself. */
INLINE bool count_plain_function(struct hook *hook)
{
	__u64 tells = HOOK_TELLS;

	if (hook->returns || !count_plain(hook))
		return false;
	hook->plain = BLOCK_PLAIN + (__u64)(__u32)hook->cookie * 8;
	__atomic_compare_exchange_n(&hook->on, &tells, HOOK_COUNTS, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	return true;
}

/* 0: the call need not come back to `agent_leave`; else 1 and the words of the stack that the function may be given. */
int agent_enter(struct pt_regs *regs, struct hook *hook)
{
	__u32 words = 0;

	if ((door.wake || !hook->on) && !passes_door(hook))
		return 0;
	if (count_plain_function(hook) || !begin(regs))
		return 0;
	if (is_left(local()->now)) {
		end();
		leave_tracing();
		return 0;
	}
	local()->trusted = 0;
	local()->at_entry = true;
	enter_call(regs, hook->cookie);
	if (hook->returns)
		words = 1 + words_above(regs->rsp, hook->words);
	end();
	return (int)words;
}

void agent_leave(struct pt_regs *regs, const struct hook *hook)
{
	const struct spec *spec = element(PLACE_SPECS, (__u32)hook->cookie, sizeof(*spec));

	if (!begin(regs))
		return;
	local()->trusted = spec && (spec->flags & SPEC_FALLIBLE) && !(__u32)regs->rax;
	local()->at_entry = false;
	leave_call(regs, hook->cookie);
	end();
}

/* A thread passes a place within a function. */
void agent_place(struct pt_regs *regs, const struct hook *hook)
{
	if ((door.wake || !hook->on) && !passes_door(hook))
		return;
	if (count_plain(hook) || !begin(regs))
		return;
	if (is_left(local()->now)) {
		end();
		leave_tracing();
		return;
	}
	local()->trusted = 0;
	local()->at_entry = false;
	local()->at_place = true;
	enter_call(regs, hook->cookie);
	local()->at_place = false;
	end();
}

/* whether this process may be traced at all */
static bool has_begun;

#include "nvtx.h"

/* ---- the beginning ---- */

#define NAME "GPUSCOPE_AGENT="

/* Where gpuscope listens, from the environment that the program was started with. */
static bool read_address(void)
{
	long fd = SYS3(open, "/proc/self/environ", 02000000, 0), read;
	__u32 matched = 0, length = 0;
	bool skips = false, takes = false;
	char text[LINE_BYTES];

	if (failed_call(fd))
		return false;
	while ((read = SYS3(read, fd, text, sizeof(text))) > 0) {
		for (long i = 0; i < read; i++) {
			if (takes) {
				if (!text[i] || length >= LONGEST_PATH)
					goto done;
				address.path[length++] = text[i];
			} else if (!text[i]) {
				matched = 0;
				skips = false;
			} else if (!skips && text[i] == NAME[matched]) {
				takes = !NAME[++matched];
			} else {
				skips = true;
			}
		}
	}
done:
	SYS1(close, fd);
	address.family = AF_UNIX_;
	if (begins_with(address.path, STANDBY))
		append_path(folder, address.path + sizeof(STANDBY) - 1);
	return length && length < LONGEST_PATH;
}

/* What the kernel has told the program: where its clock is, and the program's headers. */
static void read_auxiliaries(void)
{
	__u64 pairs[64];
	long fd = SYS3(open, "/proc/self/auxv", 02000000, 0), bytes;

	if (failed_call(fd))
		return;
	bytes = SYS3(read, fd, pairs, sizeof(pairs));
	SYS1(close, fd);
	for (long i = 0; i + 1 < bytes / 8 && pairs[i]; i += 2) {
		if (pairs[i] == 33 /* AT_SYSINFO_EHDR */)
			clock_of_kernel =
				(clock_function)exported((const char *)pairs[i + 1], "__vdso_clock_gettime");
		if (pairs[i] == 3 /* AT_PHDR */)
			program_headers = pairs[i + 1];
	}
}

static bool make_membership(void)
{
	long page = SYS6(mmap, &membership, ARENA_PAGE, PROT_RW, MAP_PRIVATE_ANON | MAP_FIXED_, -1, 0);

	return !failed_call(page) && !SYS3(madvise, page, ARENA_PAGE, MADV_WIPE_ON_FORK);
}

/* Has the dynamic linker's notification lead to us, where its calls are among those that gpuscope has found in linkers. */
static void redirect_linker(void)
{
	static struct arena_call calls[MOST_LINKER_CALLS];
	struct work work = { .call = calls, .bias = _r_debug.base };
	struct arena_file none = { 0 };
	char path[LONGEST_PATH + sizeof(LINKERS)];
	long fd, bytes;

	append_text(append_text(path, folder), LINKERS);
	fd = SYS3(open, path, 02000000, 0);
	if (failed_call(fd))
		return;
	bytes = SYS3(read, fd, calls, sizeof(calls));
	SYS1(close, fd);
	for (long i = 0; !failed_call(bytes) && i < bytes / (long)sizeof(*calls); i++)
		if (is_call_of(&calls[i], work.bias, _r_debug.notification))
			calls[work.calls++] = calls[i];
	if (work.calls)
		patch(&work, &none);
}

extern const char _DYNAMIC[] __attribute__((visibility("hidden")));

/* Whether the dynamic linker has loaded us before the program's own libraries: who loads us later, as NVTX does where
 * LD_PRELOAD was taken away, runs already, and its functions must not be changed under it.
 */
static bool is_preloaded(void)
{
	const struct loaded *loaded = _r_debug.first;

	for (; loaded && (__u64)_DYNAMIC != loaded->dynamic; loaded = loaded->next)
		for (const char *at = loaded->name; at && *at; at++)
			if (begins_with(at, "/libc.so."))
				return false;
	return true;
}

__attribute__((constructor)) static void begin_program(void)
{
	if (!&_r_debug || !is_preloaded() || !read_address() || !make_membership())
		return;
	bind();
	read_auxiliaries();
	if (stands_by()) {
		set_epoch(0, false);
		redirect_linker();
	} else if (join(MESSAGE_PROGRAM)) {
		set_epoch(0, true);
	} else {
		return;
	}
	has_begun = true;
	agent_libraries();
}

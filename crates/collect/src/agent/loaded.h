/* What is done when the dynamic linker has loaded new files: they are patched, once gpuscope has looked at them. */
#ifndef GPUSCOPE_AGENT_LOADED_H
#define GPUSCOPE_AGENT_LOADED_H

#include "candidate.h"
#include "door.h"
#include "kept.h"
#include "listed.h"
#include "planner.h"
#include "switch.h"

static void note_open_calls(struct message *message);
static bool is_member(void);

/* Has gpuscope look at files that nobody has looked at, and waits for it. */
static void wait_for(const struct found_file *found, __u32 count)
{
	struct message message = {
		.magic = ARENA_MAGIC, .kind = MESSAGE_LIBRARIES, .files = count, .at = read_clock()
	};

	message.tid = (__u32)SYS0(gettid);
	for (__u32 i = 0; i < count; i++) {
		message.file[i] = found[i].file;
		message.address[i] = found[i].address;
	}
	note_open_calls(&message);
	ask(&message, NULL, ((struct run_head *)run)->patience);
}

static void patch_found(char *plans, const struct found_file *found, __u32 count, bool on)
{
	for (__u32 i = 0; i < count; i++) {
		const struct arena_planned *plan = plan_of(plans, &found[i].file);

		if (plan)
			patch_file(plans, plan, &found[i].file, found[i].bias, on);
	}
}

static void have_door(void)
{
	if (door.tgid != (__u32)SYS0(getpid))
		make_door();
}

/* Patches a file as it was planned when another program loaded it; false: it was not. */
static bool stand_by_as_kept(const struct found_file *found)
{
	struct arena_planned plan;

	if (!find_kept(found, &plan))
		return false;
	have_door();
	patch_file(kept_plans.at, &plan, &found->file, found->bias, false);
	return true;
}

/* Patches what nobody traces yet, so that it can be switched on. */
static void stand_by_for(const struct found_file *found, __u32 count)
{
	const char *paths[MESSAGE_FILES];
	char *plans;

	have_door();
	for (__u32 i = 0; i < count; i++)
		paths[i] = found[i].path;
	plans = plans_for(paths, count);
	if (!plans) {
		count_patched(0, count);
		return;
	}
	patch_found(plans, found, count, false);
	SYS2(munmap, plans, RUN_BYTES);
}

static void take_up(const struct found_file *found, __u32 count, bool traced)
{
	if (!count)
		return;
	if (!traced) {
		stand_by_for(found, count);
		return;
	}
	wait_for(found, count);
	patch_found(run, found, count, true);
}

/* Whether nothing is to be asked about a file: it is none, it was patched, or nobody would want it. */
static bool is_settled(const struct loaded *loaded, struct found_file *found, bool traced)
{
	const struct arena_planned *plan;

	if (!name_file(loaded, found))
		return true;
	if (!traced)
		return !may_hold_functions(found->path, found->bias) || !identify_file(found) ||
		       stand_by_as_kept(found);
	if (!identify_file(found))
		return true;
	plan = plan_of(run, &found->file);
	if (plan)
		patch_file(run, plan, &found->file, found->bias, true);
	return plan;
}

/* What was patched and is not loaded any more will not be called. */
static void forget_patched(void)
{
	__u32 kept = 0;

	for (__u32 i = 0; i < patched_count; i++)
		for (const struct loaded *loaded = _r_debug.first; loaded; loaded = loaded->next)
			if (loaded->bias == patched_files[i].bias) {
				patched_files[kept++] = patched_files[i];
				break;
			}
	patched_count = kept;
}

/* Patches what is new in the list. */
static void look_at_list(bool traced)
{
	const struct loaded *loaded = has_shrunk || !last ? _r_debug.first : last->next;
	struct found_file found[MESSAGE_FILES];
	__u32 count = 0;

	look++;
	if (has_shrunk) {
		forget_modules();
		forget_patched();
	}
	for (; loaded; loaded = loaded->next) {
		last = loaded;
		note_module(loaded);
		if (is_seen(loaded) || is_settled(loaded, &found[count], traced) || ++count < MESSAGE_FILES)
			continue;
		take_up(found, count, traced);
		count = 0;
	}
	take_up(found, count, traced);
	let_go_of_kept();
	if (has_shrunk)
		forget_others();
	has_shrunk = false;
}

/* The dynamic linker has changed what is loaded, or is about to. */
void agent_libraries(void)
{
	bool traced;

	if (_r_debug.state == LIST_SHRINKS)
		has_shrunk = true;
	if (_r_debug.state != LIST_CONSISTENT)
		return;
	traced = is_member();
	if ((!traced && !stands_by()) || __atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return;
	look_at_list(traced);
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

/* Has calls of what is loaded recorded, by a gpuscope that has looked at it already, mostly. What it has not looked at waits
 * for that here. The dynamic linker's list may be changing: what was patched is known without it.
 */
static void switch_on_loaded(void)
{
	struct found_file found[MESSAGE_FILES];
	__u32 count = 0;

	for (__u32 i = 0; i < patched_count && count < MESSAGE_FILES; i++)
		if (!plan_of(run, &patched_files[i].file))
			found[count++] = (struct found_file){ .file = patched_files[i].file };
	if (count)
		wait_for(found, count);
	for (__u32 i = 0; i < patched_count; i++) {
		const struct arena_planned *plan = plan_of(run, &patched_files[i].file);

		if (plan)
			switch_on(run, plan, &patched_files[i]);
	}
}

#endif

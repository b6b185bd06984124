/* What happens at a hooked call: whose it is, what is kept while it is open, what is told when it has ended. Written once
 * for the programs in the kernel and for the agent inside of a process; how either is called is their own business.
 */
#ifndef GPUSCOPE_CALL_BPF_H
#define GPUSCOPE_CALL_BPF_H

#include "event.bpf.h"
#include "frame.bpf.h"
#include "place.bpf.h"
#include "watch.bpf.h"

/* Rows that are only counted, by nothing but their name, need no frame: the session keeps the time. */
static __always_inline bool needs_frame(const struct spec *spec)
{
	return options.every_frame || spec->keep_open || (spec->flags & (SPEC_STREAM | SPEC_KERNEL)) ||
	       spec->scale || touches_memory(spec) || spec->work.step || spec->variant[0].word != WORD_NONE ||
	       spec->launch.role > ROLE_STUB || (spec->hook.flags & HOOK_WORDS);
}

/* `site`: number of the static probe, 0 at a function. */
static __always_inline void at_entry_only(const struct spec *spec, struct pt_regs *ctx, __u32 row, __u64 ids,
					  struct thread *thread, __u32 site)
{
	struct finished call = { .tgid = ids >> 32, .tid = (__u32)ids, .flags = EVENT_NO_RETURN };
	struct frame *frame = NULL;

	call.where = site ? SITE_AT_PLACE : SITE_AT_ENTRY;
	if (thread && needs_frame(spec)) {
		frame = spare_frame(thread, row, bpf_ktime_get_ns());
		if (!site)
			save_words(frame, spec, ctx);
		else if (!save_places(thread, ctx, site))
			without_words(&call, row);
	}
	finish(ctx, spec, frame, thread, &call, row);
	if (frame && !thread->depth)
		thread->returned = frame->entered;
}

static __always_inline __u64 *session_cookie(void *ctx)
{
	return bpf_ksym_exists(bpf_session_cookie) ? bpf_session_cookie() : bpf_session_cookie___ctx(ctx);
}

static __always_inline bool session_returns(void *ctx)
{
	return bpf_ksym_exists(bpf_session_is_return) ? bpf_session_is_return()
						      : bpf_session_is_return___ctx(ctx);
}

/* When the call that returns was entered, which only a session keeps; else: now. */
static __always_inline __u64 entered_at(struct pt_regs *ctx, bool session, __u64 now)
{
	return session ? *session_cookie(ctx) : now;
}

/* Whether the call that returns was entered before calls counted. A session keeps no time of entry then; without one, and
 * without a frame, its entry was not seen where it returns to a place above all that were.
 */
static __always_inline bool entered_before(struct pt_regs *ctx, const struct thread *thread,
					   const struct frame *frame, bool session)
{
	if (session)
		return !*session_cookie(ctx);
	if (frame)
		return frame->marks & FRAME_BEFORE;
	return !thread || entered_with(ctx) > thread->top;
}

/* Whether the call that returns counts: entered and left while calls do. */
static __always_inline bool counted_return(const struct spec *spec, struct pt_regs *ctx, __u32 row,
					   struct thread *thread, const struct frame *frame, bool session)
{
	if (!entered_before(ctx, thread, frame, session))
		return counting();
	count_before(row);
	if (thread && spec->launch.role == ROLE_STUB)
		thread->stub = 0;
	return false;
}

static __always_inline void at_return(const struct spec *spec, struct pt_regs *ctx, __u32 row, bool session)
{
	struct thread *thread = needs_frame(spec) || !session ? thread_known() : NULL;
	__u64 now = bpf_ktime_get_ns(), ids = thread ? thread->ids : bpf_get_current_pid_tgid();
	struct finished call = { .result = PT_REGS_RC(ctx), .tgid = ids >> 32, .tid = (__u32)ids };
	struct frame *frame = thread ? frame_returned(thread, entered_with(ctx), row) : NULL;

	if (SELDOM(!counted_return(spec, ctx, row, thread, frame, session))) {
		left(frame, ids);
		return;
	}
	if (SELDOM(!frame && thread))
		frame = frame_missing(thread, row, entered_at(ctx, session, now), &call);
	call.duration = now - (frame ? frame->entered : entered_at(ctx, session, now));
	finish(ctx, spec, frame, thread, &call, row);
	left(frame, ids);
	if (thread && !thread->depth)
		thread->returned = now;
}

/* At entry: counts it, if calls count, and says whose it is. False: this call is none of ours. */
static __always_inline bool enter(__u32 row, __u64 cookie, __u64 *ids, struct thread **thread, bool counts)
{
	*thread = thread_known();
	*ids = *thread ? (*thread)->ids : bpf_get_current_pid_tgid();
	if ((!*thread || !watched_once_for_all()) && !watched(*ids >> 32))
		return false;
	if (SELDOM(!*thread))
		*thread = thread_made(*ids);
	if (counts)
		count_entry(row, cookie);
	return true;
}

/* The number of a static probe, 0: none. */
#define COOKIE_SITE(cookie) ((__u32)((cookie) >> 32) & 0xffff)

static __always_inline int enter_call(struct pt_regs *ctx, __u64 cookie)
{
	__u32 row = (__u32)cookie, site = COOKIE_SITE(cookie);
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);
	bool counts = counting();
	struct thread *thread;
	__u64 ids;

	if (!spec || !enter(row, cookie, &ids, &thread, counts))
		return 0;
	if (thread && spec->launch.role == ROLE_STUB)
		enter_stub(thread, spec, ctx);
	if (spec->flags & SPEC_RETURN) {
		if (thread)
			frame_open(thread, ctx, spec, row, bpf_ktime_get_ns(), counts);
	} else if (counts) {
		at_entry_only(spec, ctx, row, ids, thread, site);
	}
	return 0;
}

static __always_inline int leave_call(struct pt_regs *ctx, __u64 cookie)
{
	__u32 row = (__u32)cookie;
	const struct spec *spec = bpf_map_lookup_elem(&specs, &row);

	if (spec && (spec->flags & SPEC_RETURN) && watched(bpf_get_current_pid_tgid() >> 32))
		at_return(spec, ctx, row, false);
	return 0;
}

#endif

/* Records of work: in which stream a call has put what, and what is lost where the ring is full. When one is told is said by
 * work.bpf.h.
 */
#ifndef GPUSCOPE_WORK_RECORD_BPF_H
#define GPUSCOPE_WORK_RECORD_BPF_H

#include "capture.bpf.h"
#include "finished.bpf.h"
#include "launch.bpf.h"
#include "memory.bpf.h"

#define STREAM_LEGACY 1
#define UNTOLD (~0ull)

static __noinline int lose_work(__u32 tgid, bool copy, __u64 bytes)
{
	__u32 slot = tgid & (FLOWS - 1), key = tgid;
	struct flow *flow = bpf_map_lookup_elem(&flows, &slot);
	struct work_loss *loss;

	__sync_fetch_and_add(&control.work_lost, 1);
	if (flow)
		__sync_fetch_and_add(&flow->lost, 1);
	loss = bpf_map_lookup_elem(&work_losses, &key);
	if (!loss) {
		bpf_map_update_elem(&work_losses, &key, &NO_WORK_LOSS, BPF_NOEXIST);
		loss = bpf_map_lookup_elem(&work_losses, &key);
	}
	if (!loss)
		return 0;
	__sync_fetch_and_add(copy ? &loss->copies : &loss->others, 1);
	if (copy)
		__sync_fetch_and_add(&loss->bytes, bytes);
	return 0;
}

/* 0: it could not be read. */
__noinline int read_part(const struct frame *frame, const struct spec_read *from, __u64 *value)
{
	__u64 word;
	__u32 bytes;

	if (!frame || !from || !value)
		return 0;
	word = word_at(frame, from->word);
	bytes = from->bytes > 8 ? 8 : from->bytes;
	*value = 0;
	if (from->offset != READ_DIRECT)
		return word && !bpf_probe_read_user(value, bytes, (void *)(word + from->offset));
	*value = narrow(word, bytes);
	return true;
}

/* ---- lanes ---- */

/* False: the stream could not be read. */
static __always_inline bool lane_of(const struct spec_work *spec, const struct frame *frame,
				    const struct thread *thread, __u64 context, struct lane_key *key)
{
	if (spec->stream.bytes && !read_part(frame, &spec->stream, &key->stream))
		return false;
	key->image = thread->image;
	key->tgid = thread->ids >> 32;
	if (key->stream > WIRE_PER_THREAD)
		return true;
	if (!key->stream && (spec->flags & WORK_PER_THREAD))
		key->stream = WIRE_PER_THREAD;
	if (key->stream == STREAM_LEGACY)
		key->stream = 0;
	if (key->stream == WIRE_PER_THREAD)
		key->tid = (__u32)thread->ids;
	key->context = context;
	return true;
}

static __always_inline struct lane *lane_made(const struct lane_key *key)
{
	struct lane *lane = bpf_map_lookup_elem(&lanes, key);
	struct lane none = { .generation = UNTOLD };

	if (lane)
		return lane;
	bpf_map_update_elem(&lanes, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&lanes, key);
}

/* ---- records ---- */

static __always_inline void read_parts(const struct spec_work *spec, const struct frame *frame,
				       struct work_call *record)
{
	record->unreadable = 0;
	for (__u32 i = 0; i < WIRE_WORK; i++) {
		__u64 value = 0;

		if (i < spec->parts && !read_part(frame, &spec->part[i], &value))
			record->unreadable |= 1u << i;
		record->part[i] = value;
	}
}

/* One copy of a batch; `count` of its parts are elements of arrays. */
static __always_inline void read_element(const struct spec_work *spec, const struct frame *frame, __u32 index,
					 __u32 count, struct work_call *record)
{
	record->unreadable = 0;
	for (__u32 i = 0; i < WIRE_WORK; i++) {
		__u64 array = word_at(frame, spec->part[i].word), value = 0;
		__u32 bytes = spec->part[i].bytes > 8 ? 8 : spec->part[i].bytes;

		if (i < count && (!array || bpf_probe_read_user(&value, bytes,
								(void *)(array + spec->part[i].offset +
									 (__u64)spec->stride * index))))
			record->unreadable |= 1u << i;
		record->part[i] = value;
	}
}

struct told {
	__u64 submitted;
	__u64 generation;
	__u64 generation_now;
	__u64 lost;
	__u64 variant;
};

static __always_inline void fill_work(struct work_call *record, const struct frame *frame,
				      const struct finished *call, const struct lane_key *key,
				      const struct told *told)
{
	record->kind = WORK_CALL;
	record->row = frame->row;
	record->entered = frame->entered;
	record->returned = frame->entered + call->duration;
	record->context = call->context;
	record->stream = key->stream;
	record->site = call->site;
	record->bytes = call->bytes;
	record->submitted = told->submitted;
	record->generation = told->generation;
	record->generation_now = told->generation_now;
	record->lost = told->lost;
	record->kernel = 0;
	record->variant = 0;
	record->tgid = call->tgid;
	record->tid = call->tid;
	record->copies = 1;
}

static __always_inline void submit_work(struct work_call *record)
{
	bool crowded = !(record->entered & 31) &&
		       bpf_ringbuf_query(&work, BPF_RB_AVAIL_DATA) > options.work_soft_limit;

	bpf_ringbuf_submit(record, crowded ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

struct batch {
	const struct spec *spec;
	const struct frame *frame;
	const struct finished *call;
	const struct lane_key *key;
	const struct told *told;
	__u32 copies;
	__u32 parts; /* of an element */
};

static long tell_element(__u32 index, struct batch *batch)
{
	struct work_call *record = bpf_ringbuf_reserve(&work, sizeof(*record), 0);

	if (!record) {
		lose_work(batch->call->tgid, true, 0);
		return 0;
	}
	fill_work(record, batch->frame, batch->call, batch->key, batch->told);
	record->copies = batch->copies;
	read_element(&batch->spec->work, batch->frame, index, batch->parts, record);
	submit_work(record);
	return 0;
}

__noinline int tell_batch(const struct spec *spec, const struct frame *frame, const struct finished *call,
			  const struct lane_key *key, const struct told *told)
{
	struct batch batch = { .spec = spec, .frame = frame, .call = call, .key = key, .told = told };
	__u64 copies = 1;

	if (!spec || !frame || !call || !key || !told)
		return 0;
	batch.parts = spec->work.parts - 1;
	if (batch.parts >= WIRE_WORK || !read_part(frame, &spec->work.part[batch.parts], &copies))
		return 0;
	batch.copies = (__u32)copies;
	bpf_loop(copies < WIRE_BATCH ? (__u32)copies : WIRE_BATCH, tell_element, &batch, 0);
	return 0;
}

/* 1: told; 0: the ring is full. */
static __noinline int tell_work(const struct spec *spec, const struct frame *frame,
				const struct finished *call, const struct lane_key *key,
				const struct told *told)
{
	struct work_call *record = bpf_ringbuf_reserve(&work, sizeof(*record), 0);

	if (!record) {
		lose_work(call->tgid, spec->work.step == WORK_COPY, call->bytes);
		return 0;
	}
	fill_work(record, frame, call, key, told);
	if ((spec->flags & SPEC_KERNEL) || (spec->work.flags & WORK_KERNEL))
		record->kernel = told->variant;
	else
		record->variant = told->variant;
	read_parts(&spec->work, frame, record);
	submit_work(record);
	return 1;
}

#endif

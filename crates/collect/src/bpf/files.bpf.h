/* Whether a process maps files as code that user space has not looked at: only then it has to wait. */
#ifndef GPUSCOPE_FILES_BPF_H
#define GPUSCOPE_FILES_BPF_H

#include "site.bpf.h"
#include "state.bpf.h"

struct super_block {
	__u32 s_dev;
} __attribute__((preserve_access_index));

/* of the same structures as elsewhere, what is asked here */
struct inode___key {
	__u64 i_ino;
	__u32 i_generation;
	struct super_block *i_sb;
} __attribute__((preserve_access_index));

/* since Linux 6.11, and before */
struct inode___parts {
	__s64 i_ctime_sec;
	__u32 i_ctime_nsec;
} __attribute__((preserve_access_index));

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
} __attribute__((preserve_access_index));

struct inode___whole {
	struct timespec64 __i_ctime;
} __attribute__((preserve_access_index));

struct file___key {
	struct inode___key *f_inode;
} __attribute__((preserve_access_index));

struct vm_area_struct___key {
	struct file___key *vm_file;
	unsigned long vm_start;
	unsigned long vm_flags;
} __attribute__((preserve_access_index));

struct bpf_iter_task_vma {
	__u64 opaque;
};

/* since Linux 6.7 */
extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 __u64 address) __weak __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __weak __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __weak __ksym;

#define VM_EXEC 4
#define NSEC_BITS ((1u << 30) - 1) /* the others are flags of the kernel's */

/* Of a file that was deleted, numbers may come again: not so with the time of its last change. */
struct file_key {
	__u64 inode;
	__u64 changed;
	__u32 device;
	__u32 generation;
};

/* By file: `control.known_files` as it was when user space had looked at it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, __u64);
} known_files SEC(".maps");

/* Whose thread waits for a file to be looked at: its notice's sequence, and where that thread has mapped it first. */
struct fresh_file {
	__u64 sequence;
	__u64 address;
};

/* Files that are mapped and not known. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct file_key);
	__type(value, struct fresh_file);
} fresh_files SEC(".maps");

const struct file_key *file_key_type __attribute__((unused));
const struct fresh_file *fresh_file_type __attribute__((unused));

static __always_inline __u64 changed_at(struct inode___key *inode)
{
	if (bpf_core_field_exists(struct inode___parts, i_ctime_sec)) {
		struct inode___parts *parts = (void *)inode;

		return (__u64)parts->i_ctime_sec << 30 | (parts->i_ctime_nsec & NSEC_BITS);
	}
	if (bpf_core_field_exists(struct inode___whole, __i_ctime)) {
		struct inode___whole *whole = (void *)inode;

		return (__u64)whole->__i_ctime.tv_sec << 30 | (whole->__i_ctime.tv_nsec & NSEC_BITS);
	}
	return 0;
}

/* Not inlined, as the next one: at 64 bytes of stack a function of a program gets them from one piece of memory for
 * each CPU (see `keep_own_stack`), and this program sleeps.
 */
static __noinline bool is_unknown(struct vm_area_struct___key *vma, __u64 sequence)
{
	struct file_key key;
	struct inode___key *inode;
	struct file___key *file = vma->vm_file;
	struct fresh_file fresh = { .sequence = sequence, .address = vma->vm_start };
	struct fresh_file *met;
	__u64 *known;

	if (!file || !(vma->vm_flags & VM_EXEC))
		return false;
	inode = file->f_inode;
	if (!inode)
		return false;
	key.inode = inode->i_ino;
	key.changed = changed_at(inode);
	key.device = inode->i_sb->s_dev;
	key.generation = inode->i_generation;
	known = bpf_map_lookup_elem(&known_files, &key);
	if (known && *known == control.known_files)
		return false;
	met = bpf_map_lookup_elem(&fresh_files, &key);
	if (!met || met->sequence != sequence)
		bpf_map_update_elem(&fresh_files, &key, &fresh, BPF_ANY);
	return true;
}

static __noinline bool maps_unknown_files(__u64 sequence)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	/* another thread changes what is mapped at this moment */
	bool unknown = bpf_iter_task_vma_new(&it, bpf_get_current_task_btf(), 0) != 0;

	while ((vma = bpf_iter_task_vma_next(&it)))
		if (is_unknown((void *)vma, sequence))
			unknown = true;
	bpf_iter_task_vma_destroy(&it);
	return unknown;
}

static __always_inline bool can_look_at_files(void)
{
	return bpf_ksym_exists(bpf_iter_task_vma_new);
}

#endif

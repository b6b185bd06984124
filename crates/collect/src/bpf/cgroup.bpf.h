/* Where a process runs, for those that are gone before user space can look: the names of its cgroups. */
#ifndef GPUSCOPE_CGROUP_BPF_H
#define GPUSCOPE_CGROUP_BPF_H

#include "state.bpf.h"

struct kernfs_node {
	struct kernfs_node *parent;
	const char *name;
	__u64 id;
} __attribute__((preserve_access_index));

/* since Linux 6.15 */
struct kernfs_node___later {
	struct kernfs_node *__parent;
} __attribute__((preserve_access_index));

struct cgroup {
	struct kernfs_node *kn;
} __attribute__((preserve_access_index));

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} __attribute__((preserve_access_index));

struct css_set {
	struct cgroup *dfl_cgrp;
	struct cgroup_subsys_state *subsys[1];
} __attribute__((preserve_access_index));

struct task_struct___cgroup {
	struct css_set *cgroups;
} __attribute__((preserve_access_index));

/* Of those that Slurm and systemd use, where cgroup v1 does. */
enum cgroup_subsys_id {
	freezer_cgrp_id,
	devices_cgrp_id,
	memory_cgrp_id,
};

#define KNOWN_PLACES 1024

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KNOWN_PLACES);
	__type(key, __u64);
	__type(value, struct cgroup_path);
} places SEC(".maps");

static const struct cgroup_path NO_PLACE;

static __always_inline struct kernfs_node *parent_of(const struct kernfs_node *node)
{
	const struct kernfs_node___later *later = (const void *)node;

	return bpf_core_field_exists(later->__parent) ? BPF_CORE_READ(later, __parent)
						      : BPF_CORE_READ(node, parent);
}

/* Where in the text; the compiler may not take the bound away, which it thinks is checked. */
static __always_inline char *spot_of(struct cgroup_path *path, __u32 at)
{
	barrier_var(at);
	return &path->text[at & (WIRE_CGROUP - 1)];
}

struct names {
	struct cgroup_path *path;
	struct kernfs_node *node;
	__u32 at;
};

/* 1: it was the last one. */
static long write_name(__u32 index, struct names *names)
{
	struct kernfs_node *node = names->node, *parent = node ? parent_of(node) : NULL;
	__u32 at = names->at;
	long length;

	if (!parent) /* the root has no name */
		return 1;
	if (at >= WIRE_CGROUP || index == WIRE_CGROUP_DEPTH - 1) {
		names->path->cut = 1;
		return 1;
	}
	length = bpf_probe_read_kernel_str(spot_of(names->path, at), WIRE_CGROUP_NAME,
					   BPF_CORE_READ(node, name));
	if (length <= 0)
		return 1;
	names->at = at + length;
	names->node = parent;
	return 0;
}

/* Writes the names of a cgroup and of those around it behind `at`, and a NUL; where that ends. */
__noinline __u32 write_names(struct cgroup_path *path, __u64 node, __u32 at)
{
	struct names names = { .path = path, .node = (void *)node, .at = at };

	if (!path)
		return 0;
	bpf_loop(WIRE_CGROUP_DEPTH, write_name, &names, 0);
	if (names.at >= WIRE_CGROUP) {
		path->cut = 1;
		return names.at;
	}
	*spot_of(path, names.at) = 0;
	return names.at + 1;
}

static __always_inline struct kernfs_node *node_in(struct css_set *set, __u64 subsystem, bool there)
{
	struct cgroup_subsys_state *state = NULL;
	const void *first = __builtin_preserve_access_index(&set->subsys[0]);
	struct cgroup *group;

	if (!there || bpf_probe_read_kernel(&state, sizeof(state), first + subsystem * sizeof(state)))
		return NULL;
	group = BPF_CORE_READ(state, cgroup);
	/* of cgroup v2 all are one */
	return group && group != BPF_CORE_READ(set, dfl_cgrp) ? BPF_CORE_READ(group, kn) : NULL;
}

#define NODE_OF(set, subsystem)                                             \
	node_in(set, bpf_core_enum_value(enum cgroup_subsys_id, subsystem), \
		bpf_core_enum_value_exists(enum cgroup_subsys_id, subsystem))

/* The key of where the current process runs, whose path is in `places` from now on. */
static __noinline __u64 place_of(struct task_struct *task)
{
	struct task_struct___cgroup *member = (void *)task;
	struct css_set *set = BPF_CORE_READ(member, cgroups);
	struct kernfs_node *unified = BPF_CORE_READ(set, dfl_cgrp, kn);
	struct kernfs_node *freezer = NODE_OF(set, freezer_cgrp_id);
	struct kernfs_node *devices = NODE_OF(set, devices_cgrp_id);
	struct kernfs_node *memory = NODE_OF(set, memory_cgrp_id);
	struct cgroup_path *path;
	__u64 key = mix(mix((__u64)unified, (__u64)freezer), mix((__u64)devices, (__u64)memory));
	__u32 length;

	key = mix(key, BPF_CORE_READ(unified, id));
	key = mix(mix(key, BPF_CORE_READ(freezer, id)), BPF_CORE_READ(devices, id));
	key = mix(key, BPF_CORE_READ(memory, id));
	if (bpf_map_lookup_elem(&places, &key))
		return key;
	bpf_map_update_elem(&places, &key, &NO_PLACE, BPF_NOEXIST);
	path = bpf_map_lookup_elem(&places, &key);
	if (!path)
		return 0;
	length = write_names(path, (__u64)unified, 0);
	length = write_names(path, (__u64)freezer, length);
	length = write_names(path, (__u64)devices, length);
	path->length = write_names(path, (__u64)memory, length);
	return key;
}

#endif

/* Which device of NVIDIA's driver a descriptor stands for, as the kernel's own structures say, and whether it is the last
 * one. Which calls are looked at is not this file's business.
 */
#ifndef GPUSCOPE_DRIVER_DEVICE_BPF_H
#define GPUSCOPE_DRIVER_DEVICE_BPF_H

#include "state.bpf.h"

#define FRONT_MAJOR 195
#define FRONT_MODULE "nvidia"
#define UVM_MODULE "nvidia_uvm"

struct module {
	char name[16];
} __attribute__((preserve_access_index));

struct file_operations {
	struct module *owner;
} __attribute__((preserve_access_index));

struct inode {
	__u32 i_rdev;
} __attribute__((preserve_access_index));

typedef struct {
	long counter;
} atomic_long;

typedef struct {
	atomic_long refcnt;
} file_reference;

struct file {
	struct inode *f_inode;
	const struct file_operations *f_op;
} __attribute__((preserve_access_index));

/* Linux 6.13 counts references from 0. */
struct file___from_0 {
	file_reference f_ref;
} __attribute__((preserve_access_index));

struct file___from_1 {
	atomic_long f_count;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct task_struct___files {
	struct files_struct *files;
} __attribute__((preserve_access_index));

static __always_inline bool same_text(const char *text, const char *other, int bytes)
{
	for (int i = 0; i < bytes; i++)
		if (text[i] != other[i])
			return false;
	return true;
}

/* The numbers of UVM's devices are given out as the module loads, by the first program that needs it: until user space
 * knows them, they are told by their module.
 */
static __always_inline __u8 family_of(struct file *file, __u32 device)
{
	char name[16] = {};

	if (device >> 20 == FRONT_MAJOR)
		return FAMILY_FRONT;
	if (control.uvm_major && device >> 20 == control.uvm_major)
		return FAMILY_UVM;
	BPF_CORE_READ_INTO(&name, file, f_op, owner, name);
	if (same_text(name, UVM_MODULE, sizeof(UVM_MODULE)))
		return FAMILY_UVM;
	return same_text(name, FRONT_MODULE, sizeof(FRONT_MODULE)) ? FAMILY_CAPS : 0;
}

struct device {
	__u64 file;
	__u32 minor;
	__u32 family; /* enum driver_family, 0: none of the driver's */
};

/* Notes which device of the driver descriptor `fd` stands for; 0: none. */
static __noinline int find_device(struct device *found, __u32 fd)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;
	__u32 device;

	if (!found || fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	if (!file)
		return 0;
	device = BPF_CORE_READ(file, f_inode, i_rdev);
	if (!device)
		return 0;
	found->family = family_of(file, device);
	found->minor = device & 0xfffff;
	found->file = (__u64)file;
	return found->family;
}

static __always_inline void set_device(struct asked *asked, const struct device *device)
{
	asked->family = device->family;
	asked->minor = device->minor;
	asked->file = device->file;
}

static __always_inline bool is_last(__u64 address)
{
	struct file___from_0 *from_0 = (void *)address;
	struct file___from_1 *from_1 = (void *)address;

	if (bpf_core_field_exists(from_0->f_ref))
		return BPF_CORE_READ(from_0, f_ref.refcnt.counter) == 0;
	return BPF_CORE_READ(from_1, f_count.counter) == 1;
}

#endif

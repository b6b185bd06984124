// SPDX-License-Identifier: MIT OR GPL-2.0
/* A stand-in for NVIDIA's driver: its module name, device nodes, function names and the first bytes of its structures,
 * without hardware. Requests are answered as the driver answers them: 0 from the system call, the status in the structure.
 * Parameter tick_ms (period of pretended interrupts); counters are read-only parameters.
 */
#include <linux/cdev.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/module.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/version.h>

/* Nothing is known of what a function does but by calling it, as across files of the driver. */
#define stand_in __attribute__((noipa))

#define NV_MAJOR 195
#define ESC_RM_FREE 0x29
#define ESC_RM_CONTROL 0x2a
#define ESC_RM_ALLOC 0x2b
#define ESC_SLEEP 0xff /* the argument is a time in microseconds */
#define ESC_REFUSED 0xfe
#define UVM_INITIALIZE 0x30000001

typedef unsigned int NvU32;
typedef unsigned long long NvU64;
typedef unsigned char NvU8;

/* what a client passes, with the status where the driver has it */
struct rm_alloc {
	NvU32 hRoot, hObjectParent, hObjectNew, hClass;
	NvU64 pAllocParms, pRightsRequested;
	NvU32 paramsSize, flags, status, pad;
};

struct rm_control {
	NvU32 hClient, hObject, cmd, flags;
	NvU64 params;
	NvU32 paramsSize, status;
};

struct rm_free {
	NvU32 hRoot, hObjectParent, hObjectOld, status;
};

typedef struct {
	NvU32 minor;
	NvU32 gpu_id;
	struct {
		NvU32 domain;
		NvU8 bus : 5;
		NvU8 slot : 3;
	} pci;
	const char *name;
	char label[12];
} nv_state_t;

/* as uvm_perf_events.h of 580 has it, as far as it is read */
typedef enum {
	UVM_PERF_EVENT_FAULT = 6,
	UVM_PERF_EVENT_MIGRATION = 7,
	UVM_PERF_EVENT_REVOCATION = 8,
} uvm_perf_event_t;

typedef union {
	struct {
		void *space;
		unsigned int proc_id;
		union {
			struct {
				void *buffer_entry;
				NvU32 batch_id;
				bool is_duplicate;
			} gpu;
			struct {
				NvU64 fault_va;
				NvU32 cpu_num;
				bool is_write;
				NvU64 pc;
			} cpu;
		};
	} fault;
	struct {
		void *push;
		void *va_block;
		unsigned int dst;
		unsigned int src;
		void *copy_desc;
		NvU64 address;
		NvU64 bytes;
		int transfer_mode;
		void *access_counter;
		int cause;
	} migration;
} uvm_perf_event_data_t;

typedef struct {
	void *list[9];
} uvm_perf_va_space_events_t;

static unsigned int tick_ms;
module_param(tick_ms, uint, 0644);
static long n_open, n_close, n_ioctl, n_isr, n_migrations, n_faults;
module_param(n_open, long, 0444);
module_param(n_close, long, 0444);
module_param(n_ioctl, long, 0444);
module_param(n_isr, long, 0444);
module_param(n_migrations, long, 0444);
module_param(n_faults, long, 0444);
static char *version = "580.159.04";
module_param(version, charp, 0444);

static struct class *nodes;
static struct timer_list tick;
static int uvm_major;
static NvU32 next_handle = 0xc1d00001;
static nv_state_t state = { .minor = 0, .gpu_id = 0x1000, .pci = { .domain = 7, .bus = 21, .slot = 5 }, .name = "stand-in", .label = "GPU zero" };

/* not static, and never inlined: kallsyms, BTF and ftrace all see them, as they see the driver's */
int nvidia_open(struct inode *inode, struct file *file);
int nvidia_close(struct inode *inode, struct file *file);
int nvidia_mmap(struct file *file, struct vm_area_struct *vma);
unsigned int nvidia_poll(struct file *file, struct poll_table_struct *wait);
long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long i_arg);
NvU32 rm_ioctl(void *sp, nv_state_t *pNv, void *nvfp, NvU32 Command, void *pData, NvU32 dataSize);
NvU32 _issueRpcAndWait(void *pGpu, void *pRpc);
irqreturn_t nvidia_isr(int irq, void *arg);
irqreturn_t nvidia_isr_kthread_bh(int irq, void *data);
long uvm_unlocked_ioctl_entry(struct file *file, unsigned int cmd, unsigned long arg);
void uvm_perf_event_notify(uvm_perf_va_space_events_t *va_space_events, uvm_perf_event_t event_id,
			   uvm_perf_event_data_t *event_data);

stand_in int nvidia_open(struct inode *inode, struct file *file)
{
	n_open++;
	return 0;
}

stand_in int nvidia_close(struct inode *inode, struct file *file)
{
	n_close++;
	return 0;
}

stand_in int nvidia_mmap(struct file *file, struct vm_area_struct *vma)
{
	return -EINVAL;
}

stand_in unsigned int nvidia_poll(struct file *file, struct poll_table_struct *wait)
{
	return 0;
}

stand_in NvU32 _issueRpcAndWait(void *pGpu, void *pRpc)
{
	barrier();
	return 0;
}

/* The kernel's copy of what the client passed; the status goes there, too. */
stand_in NvU32 rm_ioctl(void *sp, nv_state_t *pNv, void *nvfp, NvU32 Command, void *pData, NvU32 dataSize)
{
	if (Command == ESC_RM_ALLOC && dataSize >= sizeof(struct rm_alloc)) {
		struct rm_alloc *alloc = pData;

		_issueRpcAndWait(pNv, NULL);
		if (!alloc->hObjectNew)
			alloc->hObjectNew = next_handle++;
		/* as the driver does: a client is asked for by one class and becomes another */
		if (alloc->hClass == 0x41)
			alloc->hClass = 0;
		alloc->status = 0;
	} else if (Command == ESC_RM_CONTROL && dataSize >= sizeof(struct rm_control)) {
		((struct rm_control *)pData)->status = _issueRpcAndWait(pNv, NULL);
	} else if (Command == ESC_RM_FREE && dataSize >= sizeof(struct rm_free)) {
		((struct rm_free *)pData)->status = 0;
	}
	return 0;
}

stand_in long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long i_arg)
{
	NvU64 copy[32] = {};
	NvU32 size = _IOC_SIZE(cmd);

	n_ioctl++;
	switch (_IOC_NR(cmd)) {
	case ESC_SLEEP:
		usleep_range(i_arg, i_arg + 50);
		return 0;
	case ESC_REFUSED:
		return -EINVAL;
	}
	if (size > sizeof(copy))
		return -EINVAL;
	if (copy_from_user(copy, (void __user *)i_arg, size))
		return -EFAULT;
	rm_ioctl(NULL, &state, NULL, _IOC_NR(cmd), copy, size);
	return copy_to_user((void __user *)i_arg, copy, size) ? -EFAULT : 0;
}

stand_in void uvm_perf_event_notify(uvm_perf_va_space_events_t *va_space_events, uvm_perf_event_t event_id,
				    uvm_perf_event_data_t *event_data)
{
	if (event_id == UVM_PERF_EVENT_MIGRATION)
		n_migrations++;
	else if (event_id == UVM_PERF_EVENT_FAULT)
		n_faults++;
}

/* Requests of UVM are plain numbers; the status is the structure's last word. Each but the first pretends that a page
 * faults on a processor and then moves there.
 */
stand_in long uvm_unlocked_ioctl_entry(struct file *file, unsigned int cmd, unsigned long arg)
{
	uvm_perf_event_data_t event = { .fault = { .proc_id = 0, .cpu = { .fault_va = 0x7f0000200000, .cpu_num = 1, .is_write = true } } };
	NvU32 status[4];

	if (cmd == UVM_INITIALIZE) {
		if (copy_from_user(status, (void __user *)arg, sizeof(status)))
			return -EFAULT;
		status[2] = 0;
		return copy_to_user((void __user *)arg, status, sizeof(status)) ? -EFAULT : 0;
	}
	uvm_perf_event_notify(NULL, UVM_PERF_EVENT_FAULT, &event);
	event = (uvm_perf_event_data_t){ .migration = { .dst = 0, .src = 1, .address = 0x7f0000200000, .bytes = 2 << 20, .cause = 6 } };
	uvm_perf_event_notify(NULL, UVM_PERF_EVENT_MIGRATION, &event);
	return 0;
}

stand_in irqreturn_t nvidia_isr(int irq, void *arg)
{
	n_isr++;
	return IRQ_WAKE_THREAD;
}

stand_in irqreturn_t nvidia_isr_kthread_bh(int irq, void *data)
{
	return IRQ_HANDLED;
}

static void on_tick(struct timer_list *timer)
{
	if (nvidia_isr(99, &state) == IRQ_WAKE_THREAD)
		nvidia_isr_kthread_bh(99, &state);
	if (tick_ms)
		mod_timer(&tick, jiffies + msecs_to_jiffies(tick_ms));
}

static const struct file_operations of_rm = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
	.release = nvidia_close,
	.mmap = nvidia_mmap,
	.unlocked_ioctl = nvidia_unlocked_ioctl,
};

static const struct file_operations of_uvm = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = uvm_unlocked_ioctl_entry,
};

static int __init stand_in_init(void)
{
	int error = register_chrdev(NV_MAJOR, "nvidia-frontend", &of_rm);

	if (error)
		return error;
	uvm_major = register_chrdev(0, "nvidia-uvm", &of_uvm);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	nodes = class_create("nvidia");
#else
	nodes = class_create(THIS_MODULE, "nvidia");
#endif
	device_create(nodes, NULL, MKDEV(NV_MAJOR, 255), NULL, "nvidiactl");
	device_create(nodes, NULL, MKDEV(NV_MAJOR, 0), NULL, "nvidia0");
	device_create(nodes, NULL, MKDEV(uvm_major, 0), NULL, "nvidia-uvm");
	timer_setup(&tick, on_tick, 0);
	if (tick_ms)
		mod_timer(&tick, jiffies + 1);
	return 0;
}

static void __exit stand_in_exit(void)
{
	tick_ms = 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	timer_shutdown_sync(&tick);
#else
	del_timer_sync(&tick);
#endif
	device_destroy(nodes, MKDEV(uvm_major, 0));
	device_destroy(nodes, MKDEV(NV_MAJOR, 0));
	device_destroy(nodes, MKDEV(NV_MAJOR, 255));
	class_destroy(nodes);
	unregister_chrdev(uvm_major, "nvidia-uvm");
	unregister_chrdev(NV_MAJOR, "nvidia-frontend");
}

module_init(stand_in_init);
module_exit(stand_in_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("stand-in for NVIDIA's driver, for tests");
MODULE_VERSION("580.159.04");

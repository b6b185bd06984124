// A module that reports Xids as NVIDIA's driver does: writing "CODE PID" to its parameter `xid` fires the tracepoint and
// prints the line of the log.
#include <linux/module.h>
#include <linux/pci.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

#define MESSAGE "Ch 00000008, intr 10000000"

static struct pci_dev *device;

static int report(const char *value, const struct kernel_param *param)
{
	unsigned int code, pid;

	if (sscanf(value, "%u %u", &code, &pid) != 2)
		return -EINVAL;
	pr_err("NVRM: Xid (PCI:0000:17:00): %u, pid=%u, name=a, b, %s\n", code, pid, MESSAGE);
	trace_nvidia_dev_xid(device, code, MESSAGE);
	return 0;
}

static const struct kernel_param_ops operations = { .set = report };
module_param_cb(xid, &operations, NULL, 0200);

static int __init begin(void)
{
	device = kzalloc(sizeof(*device), GFP_KERNEL);
	return device ? kobject_set_name(&device->dev.kobj, "0000:17:00.0") : -ENOMEM;
}

static void __exit end(void)
{
	kfree_const(device->dev.kobj.name);
	kfree(device);
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");

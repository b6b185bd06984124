/* Xids, as the driver's tracepoint tells them. */
#ifndef GPUSCOPE_XID_BPF_H
#define GPUSCOPE_XID_BPF_H

#include "state.bpf.h"

struct kobject___xid {
	const char *name;
} __attribute__((preserve_access_index));

struct device___xid {
	struct kobject___xid kobj;
} __attribute__((preserve_access_index));

struct pci_dev___xid {
	struct device___xid dev;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} xids SEC(".maps");

__u64 xids_lost; /* that found the ring full */

const struct xid_event *xid_event_type __attribute__((unused));

/* Arguments: the device, the code, the message without process. Whoever runs is not who is meant. */
SEC("raw_tp/nvidia_dev_xid")
int xid_reported(struct bpf_raw_tracepoint_args *ctx)
{
	struct pci_dev___xid *device = (void *)ctx->args[0];
	struct xid_event *event = bpf_ringbuf_reserve(&xids, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&xids_lost, 1);
		return 0;
	}
	event->at = bpf_ktime_get_ns();
	event->code = (__u32)ctx->args[1];
	event->pad = 0;
	event->device[0] = 0;
	event->message[0] = 0;
	/* a kernel without PCI has no such structure */
	if (bpf_core_field_exists(device->dev))
		bpf_probe_read_kernel_str(event->device, sizeof(event->device),
					  BPF_CORE_READ(device, dev.kobj.name));
	bpf_probe_read_kernel_str(event->message, sizeof(event->message), (void *)ctx->args[2]);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

#endif

/* What a program asks of NVIDIA's kernel driver: system calls on its devices, ioctls above all. Base of it all are the
 * tracepoints of system calls, which need neither kprobes nor the driver's symbols.
 */
#ifndef GPUSCOPE_DRIVER_BPF_H
#define GPUSCOPE_DRIVER_BPF_H

#include "driver_enter.bpf.h"
#include "driver_leave.bpf.h"

#endif

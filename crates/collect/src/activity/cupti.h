/* What of CUPTI is used: its entries, by their documented prototypes, and where fields lie in its records. These offsets are
 * the same from CUDA 11.8 to 13.5, whatever the structures are called; records only grow at their ends.
 */
#ifndef GPUSCOPE_CUPTI_H
#define GPUSCOPE_CUPTI_H

enum {
	CUPTI_OK = 0,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_HELD = 39, /* by another tool */
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_KERNEL = 3,
	CUPTI_KIND_DEVICE = 8,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22,
	CUPTI_KIND_GRAPH_TRACE = 51,
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_GRAPH_ADD_MEMCPY_NODE = 504, /* cuGraphAddMemcpyNode */
	CUPTI_GRAPH_ADD_NODE = 712,        /* cuGraphAddNode, of CUDA 12.2 and later */
	CUPTI_GRAPH_ADD_NODE_V2 = 723,     /* of 12.3 */
	CUPTI_GRAPH_ADD_NODE_V3 = 863,     /* of 13.4 */
	CUPTI_CONTEXT_CREATED = 1,
	CUPTI_STREAM_CREATED = 3,
	CUPTI_FLUSH_FORCED = 1,
	CUPTI_DEVICE_BUFFER_SIZE = 0,
	CUPTI_CLEARED_BUFFERS = 5,
	CUPTI_THREAD_ID_SYSTEM = 1,
};

typedef void cupti_callback(void *own, uint32_t domain, uint32_t id, const void *data);

/* Of the driver's domain. */
struct cupti_call {
	uint32_t site;
	const char *name;
	const void *const *arguments; /* a structure of them */
};

/* Of the resource domain. */
struct cupti_resource {
	void *context;
	void *stream;
	void *more;
};

static struct {
	int (*version)(uint32_t *);
	int (*subscribe)(void **, cupti_callback *, void *);
	int (*unsubscribe)(void *);
	int (*enable_callback)(uint32_t, void *, uint32_t, uint32_t);
	int (*register_callbacks)(void (*)(uint8_t **, size_t *, size_t *),
				  void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
	int (*next_record)(uint8_t *, size_t, void **);
	int (*enable)(uint32_t);
	int (*disable)(uint32_t);
	int (*flush)(uint32_t);
	int (*dropped)(void *, uint32_t, size_t *);
	int (*timestamp)(uint64_t *);
	/* may be missing */
	int (*register_timestamp)(uint64_t (*)(void));
	int (*set_attribute)(uint32_t, size_t *, void *);
	int (*get_attribute)(uint32_t, size_t *, void *);
	int (*set_thread_id_type)(uint32_t);
	int (*get_thread_id_type)(uint32_t *);
	int (*stream_id)(void *, void *, uint8_t, uint32_t *);
	int (*context_id)(void *, uint32_t *);
} cupti;

static const struct {
	const char *name;
	void **entry;
	int needed;
} cupti_entries[] = {
	{ "cuptiGetVersion", (void **)&cupti.version, 1 },
	{ "cuptiSubscribe", (void **)&cupti.subscribe, 1 },
	{ "cuptiUnsubscribe", (void **)&cupti.unsubscribe, 1 },
	{ "cuptiEnableCallback", (void **)&cupti.enable_callback, 1 },
	{ "cuptiActivityRegisterCallbacks", (void **)&cupti.register_callbacks, 1 },
	{ "cuptiActivityGetNextRecord", (void **)&cupti.next_record, 1 },
	{ "cuptiActivityEnable", (void **)&cupti.enable, 1 },
	{ "cuptiActivityDisable", (void **)&cupti.disable, 1 },
	{ "cuptiActivityFlushAll", (void **)&cupti.flush, 1 },
	{ "cuptiActivityGetNumDroppedRecords", (void **)&cupti.dropped, 1 },
	{ "cuptiGetTimestamp", (void **)&cupti.timestamp, 1 },
	{ "cuptiActivityRegisterTimestampCallback", (void **)&cupti.register_timestamp, 0 },
	{ "cuptiActivitySetAttribute", (void **)&cupti.set_attribute, 0 },
	{ "cuptiActivityGetAttribute", (void **)&cupti.get_attribute, 0 },
	{ "cuptiSetThreadIdType", (void **)&cupti.set_thread_id_type, 0 },
	{ "cuptiGetThreadIdType", (void **)&cupti.get_thread_id_type, 0 },
	{ "cuptiGetStreamIdEx", (void **)&cupti.stream_id, 0 },
	{ "cuptiGetContextId", (void **)&cupti.context_id, 0 },
};

/* Where fields lie. */
enum {
	KERNEL_REGISTERS = 6,
	KERNEL_BEGIN = 16,
	KERNEL_DEVICE = 40,
	KERNEL_GRID = 52,
	KERNEL_BLOCK = 64,
	KERNEL_STATIC = 76,
	KERNEL_DYNAMIC = 80,
	KERNEL_NAME = 104,
	KERNEL_NODE = 144,
	KERNEL_GRAPH = 156,
	COPY_KIND = 4,
	COPY_FROM = 5,
	COPY_TO = 6,
	COPY_FLAGS = 7,
	COPY_BYTES = 8,
	COPY_BEGIN = 16,
	COPY_DEVICE = 32,
	COPY_NODE = 64,
	COPY_GRAPH = 72,
	PEER_FROM = 44,
	PEER_NODE = 72,
	PEER_GRAPH = 80,
	MEMSET_FLAGS = 48,
	MEMSET_MEMORY = 50,
	GRAPH_BEGIN = 8,
	GRAPH_DEVICE = 24,
	GRAPH_NUMBER = 28,
	GRAPH_CONTEXT = 32,
	GRAPH_STREAM = 36,
	OVERHEAD_KIND = 4,
	OVERHEAD_BEGIN = 24,
	DEVICE_WARP = 32,
	DEVICE_MULTIPROCESSORS = 44,
	DEVICE_WARPS = 52,
	DEVICE_BLOCKS = 56,
	DEVICE_SHARED = 60,
	DEVICE_REGISTERS = 64,
	DEVICE_MAJOR = 104,
	DEVICE_MINOR = 108,
	DEVICE_NUMBER = 112,
	DEVICE_IS_PARTED = 145,
};

static inline uint64_t u64_at(const uint8_t *record, int at)
{
	uint64_t value;

	memcpy(&value, record + at, 8);
	return value;
}

static inline uint32_t u32_at(const uint8_t *record, int at)
{
	uint32_t value;

	memcpy(&value, record + at, 4);
	return value;
}

#endif

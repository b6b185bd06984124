/* What CUPTI hands over: buffers of records, each read once and given back. */

/* Each is cleared before CUPTI uses it: by us, on CUPTI's own thread, where it takes our word for that (CUPTI_CLEARED_BUFFERS),
 * else by CUPTI on a thread of the program, which 4 MiB take more than half a millisecond.
 */
#define BUFFER_BYTES (512 << 10)
#define KEPT_BUFFERS 16

/* What CUPTI gets where there is no memory: it must have something. */
static uint8_t spare[65536] __attribute__((aligned(8)));

static uint8_t *kept[KEPT_BUFFERS];

static int64_t clock_offset; /* to be added to CUPTI's times, ns */
static uint64_t last_end;    /* of what was told of */

static void give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
	uint8_t *found = NULL;
	int at;

	for (at = 0; at < KEPT_BUFFERS && !found; at++)
		found = __atomic_exchange_n(&kept[at], NULL, __ATOMIC_ACQ_REL);
	if (!found)
		found = calloc(1, BUFFER_BYTES);
	*buffer = found ? found : spare;
	*bytes = found ? BUFFER_BYTES : sizeof(spare);
	*most = 0;
}

static void take_back(uint8_t *buffer)
{
	uint8_t *none;
	int at;

	memset(buffer, 0, buffer == spare ? sizeof(spare) : BUFFER_BYTES);
	if (buffer == spare)
		return;
	for (at = 0; at < KEPT_BUFFERS; at++) {
		none = NULL;
		if (__atomic_compare_exchange_n(&kept[at], &none, buffer, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return;
	}
	free(buffer);
}

static void place_in(struct activity_record *to, const uint8_t *from, int begin, int device)
{
	to->begin = u64_at(from, begin);
	to->end = u64_at(from, begin + 8);
	to->device = u32_at(from, device);
	to->context = u32_at(from, device + 4);
	to->stream = u32_at(from, device + 8);
}

static void read_kernel(struct activity_record *to, const uint8_t *from)
{
	to->kind = ACTIVITY_KERNEL;
	place_in(to, from, KERNEL_BEGIN, KERNEL_DEVICE);
	memcpy(&to->registers, from + KERNEL_REGISTERS, 2);
	memcpy(to->grid, from + KERNEL_GRID, sizeof(to->grid));
	memcpy(to->block, from + KERNEL_BLOCK, sizeof(to->block));
	to->shared_static = u32_at(from, KERNEL_STATIC);
	to->shared_dynamic = u32_at(from, KERNEL_DYNAMIC);
	to->node = u64_at(from, KERNEL_NODE);
	to->graph = u32_at(from, KERNEL_GRAPH);
}

static void read_copy(struct activity_record *to, const uint8_t *from)
{
	to->kind = ACTIVITY_COPY;
	place_in(to, from, COPY_BEGIN, COPY_DEVICE);
	to->bytes = u64_at(from, COPY_BYTES);
	to->copy = from[COPY_KIND];
	to->from = from[COPY_FROM];
	to->to = from[COPY_TO];
	to->flags = from[COPY_FLAGS];
	to->node = u64_at(from, COPY_NODE);
	to->graph = u32_at(from, COPY_GRAPH);
}

static void read_peer_copy(struct activity_record *to, const uint8_t *from)
{
	read_copy(to, from);
	to->peer = u32_at(from, PEER_FROM);
	to->node = u64_at(from, PEER_NODE);
	to->graph = u32_at(from, PEER_GRAPH);
}

static void read_memset(struct activity_record *to, const uint8_t *from)
{
	to->kind = ACTIVITY_MEMSET;
	place_in(to, from, COPY_BEGIN, COPY_DEVICE);
	to->bytes = u64_at(from, COPY_BYTES);
	to->flags = from[MEMSET_FLAGS];
	to->to = from[MEMSET_MEMORY];
	to->node = u64_at(from, COPY_NODE);
	to->graph = u32_at(from, COPY_GRAPH);
}

static void read_graph(struct activity_record *to, const uint8_t *from)
{
	to->kind = ACTIVITY_GRAPH;
	to->begin = u64_at(from, GRAPH_BEGIN);
	to->end = u64_at(from, GRAPH_BEGIN + 8);
	to->device = u32_at(from, GRAPH_DEVICE);
	to->graph = u32_at(from, GRAPH_NUMBER);
	to->context = u32_at(from, GRAPH_CONTEXT);
	to->stream = u32_at(from, GRAPH_STREAM);
}

static void read_overhead(struct activity_record *to, const uint8_t *from)
{
	to->kind = ACTIVITY_OVERHEAD;
	to->begin = u64_at(from, OVERHEAD_BEGIN);
	to->end = u64_at(from, OVERHEAD_BEGIN + 8);
	to->bytes = u32_at(from, OVERHEAD_KIND);
}

#define WARP_THREADS 32
#define MOST_MULTIPROCESSORS 4096

/* Of a part of a device (MIG) the number of the whole is not that of the part. False: it is not known. */
static int read_device(struct activity_record *to, const uint8_t *from)
{
	to->kind = ACTIVITY_DEVICE;
	to->begin = to->end = now_ns() - clock_offset;
	to->device = u32_at(from, DEVICE_NUMBER);
	to->bytes = u32_at(from, DEVICE_MULTIPROCESSORS);
	to->grid[0] = u32_at(from, DEVICE_WARPS);
	to->grid[1] = u32_at(from, DEVICE_BLOCKS);
	to->grid[2] = u32_at(from, DEVICE_REGISTERS);
	to->block[0] = u32_at(from, DEVICE_SHARED);
	to->block[1] = u32_at(from, DEVICE_MAJOR);
	to->block[2] = u32_at(from, DEVICE_MINOR);
	return u32_at(from, DEVICE_WARP) == WARP_THREADS && !from[DEVICE_IS_PARTED] && to->bytes &&
	       to->bytes <= MOST_MULTIPROCESSORS;
}

/* False: it is none of those that were asked for. */
static int read_record(struct activity_record *to, const uint8_t *from)
{
	memset(to, 0, sizeof(*to));
	switch (u32_at(from, 0)) {
	case CUPTI_KIND_KERNEL:
	case CUPTI_KIND_CONCURRENT_KERNEL:
		read_kernel(to, from);
		return 1;
	case CUPTI_KIND_MEMCPY:
		read_copy(to, from);
		return 1;
	case CUPTI_KIND_MEMCPY2:
		read_peer_copy(to, from);
		return 1;
	case CUPTI_KIND_MEMSET:
		read_memset(to, from);
		return 1;
	case CUPTI_KIND_GRAPH_TRACE:
		read_graph(to, from);
		return 1;
	case CUPTI_KIND_DEVICE:
		return read_device(to, from);
	case CUPTI_KIND_OVERHEAD:
		read_overhead(to, from);
		return 1;
	default:
		count(&head()->other, 1);
		return 0;
	}
}

/* What has not ended when CUPTI hands over all that it has. */
static struct {
	int collected; /* instead of counted */
	uint64_t since;
} unfinished;

static void leave_out(const struct activity_record *record)
{
	uint64_t since = record->begin ? record->begin + clock_offset : last_end;

	if (record->kind == ACTIVITY_OVERHEAD) {
		count(&head()->untimed, 1);
	} else if (unfinished.collected && !record->end) {
		unfinished.since = since < unfinished.since ? since : unfinished.since;
	} else {
		count(&head()->invalid, 1);
	}
}

static void add_record(struct batch *batch, const uint8_t *from)
{
	struct activity_record *to = &batch->records[batch->count];

	if (!read_record(to, from))
		return;
	if (!to->begin || to->end < to->begin) {
		leave_out(to);
		return;
	}
	to->begin += clock_offset;
	to->end += clock_offset;
	last_end = to->end > last_end ? to->end : last_end;
	/* what CUPTI still had of another gpuscope's time */
	if (own.waits && to->end <= head()->began)
		return;
	batch->names[batch->count] = NULL;
	if (to->kind == ACTIVITY_KERNEL)
		memcpy(&batch->names[batch->count], from + KERNEL_NAME, sizeof(char *));
	if (++batch->count == BATCH)
		write_batch(batch);
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	struct batch batch = { 0 };
	void *record = NULL;
	size_t dropped = 0;

	if (on && buffer != spare) {
		while (cupti.next_record(buffer, valid, &record) == CUPTI_OK && record)
			add_record(&batch, record);
		write_batch(&batch);
	}
	if (on && cupti.dropped(context, stream, &dropped) == CUPTI_OK)
		count(&head()->dropped, dropped);
	take_back(buffer);
}

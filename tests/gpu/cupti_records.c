/* Writes what the GPU really did: CUPTI's kernel, copy, memset and graph records as JSON lines.
 *
 * An injection library: CUDA_INJECTION64_PATH=cupti_records.so CUPTI_RECORDS=FILE program. Each process writes
 * FILE.PID. Times are CLOCK_MONOTONIC in ns, the clock of gpuscope's records: CUPTI asks a callback of ours for the
 * time and fits the GPU's clock to it. `clock` lines (at start and end) bracket CUPTI's own clock with ours, so that a
 * reader can see how far apart the two are. CUPTI_GRAPHS=1 asks for one record of each graph launch instead of one of
 * each node. CUPTI_API=1 asks for a record of each API call as well, which is counted and not written, CUPTI_SYNC=1 for one of each
 * synchronisation. CUPTI_BESIDE=1 asks as gpuscope does beside these: for CUPTI's own overhead, with a subscriber that hears of streams,
 * and in small buffers on the device. CUPTI_KINDS=LETTERS asks for no more than k (kernels), c (copies), f (fills), g (graphs),
 * CUPTI_NODES=1 (not with CUPTI_BESIDE) for a line of each node of a graph that is made,
 * CUPTI_BUFFER_BYTES=N for other buffers than of 4 MiB (`late` lines say how many µs after its end a kernel was handed over),
 * CUPTI_FLUSH_MS=N to have what is done handed over so often, CUPTI_PERIOD_MS=N to have CUPTI do so by itself,
 * CUPTI_FLUSH_WHEN=before (after) to do so only until (from when) a graph gets its first node that copies, CUPTI_AT_COPY=LETTERS to do
 * something just before it gets that: f (hand over), c (cease to record copies), d (cease to record anything), e (record again).
 * CUPTI_STEPS=MS:LETTERS+... the same so long after it, and beside these k (record kernels and fills again) and F (hand over each 100 ms from then on).
 * CUPTI_ATTRIBUTES=N:VALUE+... sets attributes, by their numbers. The last line is `end`; without it, or with `dropped` above 0, the file is not complete.
 *
 * Build: cc -O2 -shared -fPIC -I CUDA/include cupti_records.c -o cupti_records.so -L CUDA/lib -l:libcupti.so.13
 */
#include <cuda.h>
#include <cupti.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (4 << 20)

static FILE *records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t dropped, calls;

static uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void check(CUptiResult result, const char *what)
{
	const char *text = "?";

	if (result == CUPTI_SUCCESS)
		return;
	cuptiGetResultString(result, &text);
	fprintf(stderr, "cupti_records.so: %s: %s\n", what, text);
	fprintf(records, "{\"kind\":\"failure\",\"what\":\"%s\",\"why\":\"%s\"}\n", what, text);
}

/* Kernel names are mangled: no character in them needs an escape. */
static void write_kernel(const CUpti_ActivityKernel10 *k)
{
	fprintf(records,
		"{\"kind\":\"kernel\",\"name\":\"%s\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
		",\"context\":%u,\"stream\":%u,\"correlation\":%u,\"graph\":%u,\"node\":%" PRIu64
		",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"shared\":%d}\n",
		k->name ? k->name : "", (uint64_t)k->start, (uint64_t)k->end, k->contextId, k->streamId,
		k->correlationId, k->graphId, (uint64_t)k->graphNodeId, k->gridX, k->gridY, k->gridZ,
		k->blockX, k->blockY, k->blockZ, k->dynamicSharedMemory);
}

static void write_copy(const CUpti_ActivityMemcpy6 *c)
{
	fprintf(records,
		"{\"kind\":\"copy\",\"copy_kind\":%u,\"src\":%u,\"dst\":%u,\"flags\":%u,\"bytes\":%" PRIu64
		",\"count\":%" PRIu64 ",\"start\":%" PRIu64 ",\"end\":%" PRIu64
		",\"context\":%u,\"stream\":%u,\"correlation\":%u,\"graph\":%u,\"node\":%" PRIu64 "}\n",
		c->copyKind, c->srcKind, c->dstKind, c->flags, (uint64_t)c->bytes, (uint64_t)c->copyCount,
		(uint64_t)c->start, (uint64_t)c->end, c->contextId, c->streamId, c->correlationId, c->graphId,
		(uint64_t)c->graphNodeId);
}

static void write_peer_copy(const CUpti_ActivityMemcpyPtoP4 *c)
{
	fprintf(records,
		"{\"kind\":\"copy\",\"copy_kind\":%u,\"src\":%u,\"dst\":%u,\"flags\":%u,\"bytes\":%" PRIu64
		",\"count\":1,\"start\":%" PRIu64 ",\"end\":%" PRIu64
		",\"context\":%u,\"stream\":%u,\"correlation\":%u,\"graph\":%u,\"node\":%" PRIu64 "}\n",
		c->copyKind, c->srcKind, c->dstKind, c->flags, (uint64_t)c->bytes, (uint64_t)c->start,
		(uint64_t)c->end, c->contextId, c->streamId, c->correlationId, c->graphId,
		(uint64_t)c->graphNodeId);
}

static void write_memset(const CUpti_ActivityMemset4 *m)
{
	fprintf(records,
		"{\"kind\":\"memset\",\"memory\":%u,\"bytes\":%" PRIu64 ",\"start\":%" PRIu64
		",\"end\":%" PRIu64
		",\"context\":%u,\"stream\":%u,\"correlation\":%u,\"graph\":%u,\"node\":%" PRIu64 "}\n",
		m->memoryKind, (uint64_t)m->bytes, (uint64_t)m->start, (uint64_t)m->end, m->contextId,
		m->streamId, m->correlationId, m->graphId, (uint64_t)m->graphNodeId);
}

static void write_graph(const CUpti_ActivityGraphTrace2 *g)
{
	fprintf(records,
		"{\"kind\":\"graph\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
		",\"context\":%u,\"stream\":%u,\"correlation\":%u,\"graph\":%u}\n",
		(uint64_t)g->start, (uint64_t)g->end, g->contextId, g->streamId, g->correlationId,
		g->graphId);
}

static void write_sync(const CUpti_ActivitySynchronization *s)
{
	fprintf(records,
		"{\"kind\":\"sync\",\"type\":%d,\"start\":%" PRIu64 ",\"end\":%" PRIu64
		",\"context\":%u,\"stream\":%u,\"event\":%u,\"correlation\":%u}\n",
		(int)s->type, (uint64_t)s->start, (uint64_t)s->end, s->contextId, s->streamId,
		s->cudaEventId, s->correlationId);
}

static void write_record(const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return write_kernel((const CUpti_ActivityKernel10 *)record);
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		return write_copy((const CUpti_ActivityMemcpy6 *)record);
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return write_peer_copy((const CUpti_ActivityMemcpyPtoP4 *)record);
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return write_memset((const CUpti_ActivityMemset4 *)record);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		return write_graph((const CUpti_ActivityGraphTrace2 *)record);
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		return write_sync((const CUpti_ActivitySynchronization *)record);
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER:
		calls++;
		return;
	default:
		fprintf(records, "{\"kind\":\"other\",\"number\":%d}\n", record->kind);
	}
}

static void give_buffer(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	const char *asked = getenv("CUPTI_BUFFER_BYTES");
	size_t wanted = asked ? (size_t)atoi(asked) : BUFFER_BYTES;

	*buffer = aligned_alloc(8, wanted);
	*bytes = *buffer ? wanted : 0;
	*max_records = 0;
}

static void take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	CUpti_Activity *record = NULL;
	size_t lost = 0;
	uint64_t first = 0, last = 0, at = monotonic();

	(void)bytes;
	pthread_mutex_lock(&lock);
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		write_record(record);
		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
			last = ((const CUpti_ActivityKernel10 *)record)->end;
			first = first ? first : last;
		}
	}
	if (first && getenv("CUPTI_BUFFER_BYTES"))
		fprintf(records, "{\"kind\":\"late\",\"first\":%" PRId64 ",\"last\":%" PRId64 "}\n", (int64_t)(at - first) / 1000, (int64_t)(at - last) / 1000);
	cuptiActivityGetNumDroppedRecords(context, stream, &lost);
	dropped += lost;
	pthread_mutex_unlock(&lock);
	free(buffer);
}

static void write_clock(const char *when)
{
	uint64_t before = monotonic(), cupti = 0, after;

	check(cuptiGetTimestamp(&cupti), "cuptiGetTimestamp");
	after = monotonic();
	fprintf(records,
		"{\"kind\":\"clock\",\"when\":\"%s\",\"before\":%" PRIu64 ",\"cupti\":%" PRIu64
		",\"after\":%" PRIu64 "}\n",
		when, before, cupti, after);
}

static void finish(void)
{
	check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
	pthread_mutex_lock(&lock);
	write_clock("end");
	fprintf(records, "{\"kind\":\"end\",\"dropped\":%zu,\"calls\":%zu}\n", dropped, calls);
	fclose(records);
	records = fopen("/dev/null", "w");
	pthread_mutex_unlock(&lock);
}

static uint64_t CUPTIAPI timestamp(void)
{
	return monotonic();
}

/* Whether a graph has got a node that copies. */
static volatile int has_copies;

static void *flush_all_the_time(void *ms)
{
	const char *when = getenv("CUPTI_FLUSH_WHEN");

	for (;;) {
		usleep(1000 * (uintptr_t)ms);
		if (!when || has_copies == (when[0] == 'a'))
			cuptiActivityFlushAll(0);
	}
	return NULL;
}

static void flush_each(int ms)
{
	pthread_t thread;

	pthread_create(&thread, NULL, flush_all_the_time, (void *)(uintptr_t)ms);
}

static void do_step(char step)
{
	static const CUpti_ActivityKind copies[] = { CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2 };
	static const CUpti_ActivityKind others[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET };

	if (step == 'f')
		cuptiActivityFlushAll(0);
	if (step == 'F')
		flush_each(100);
	for (int i = 0; i < 2; i++) {
		if (step == 'c' || step == 'd')
			cuptiActivityDisable(copies[i]);
		if (step == 'd')
			cuptiActivityDisable(others[i]);
		if (step == 'e')
			cuptiActivityEnable(copies[i]);
		if (step == 'e' || step == 'k')
			cuptiActivityEnable(others[i]);
	}
}

/* As CUPTI_AT_COPY says. */
static void at_first_copy(void)
{
	const char *step = getenv("CUPTI_AT_COPY");

	for (; step && *step; step++)
		do_step(*step);
}

/* As CUPTI_STEPS says. */
static void *go_through_steps(void *steps)
{
	const char *step = steps;
	int ms, before = 0;

	while (!has_copies)
		usleep(1000);
	for (; step; step = strchr(step, '+') ? strchr(step, '+') + 1 : NULL) {
		ms = atoi(step);
		usleep(1000 * (ms - before));
		before = ms;
		for (const char *letter = strchr(step, ':') + 1; *letter && *letter != '+'; letter++) {
			do_step(*letter);
			pthread_mutex_lock(&lock);
			fprintf(records, "{\"kind\":\"step %c\",\"at\":%" PRIu64 "}\n", *letter, monotonic());
			pthread_mutex_unlock(&lock);
		}
	}
	return NULL;
}

static void hear(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_ResourceData *resource = data;
	const CUpti_GraphData *graph;

	(void)unused;
	if (domain != CUPTI_CB_DOMAIN_RESOURCE ||
	    (id != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING && id != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED))
		return;
	graph = resource->resourceDescriptor;
	if (graph->nodeType == CU_GRAPH_NODE_TYPE_MEMCPY && !has_copies) {
		has_copies = 1;
		at_first_copy();
	}
	pthread_mutex_lock(&lock);
	fprintf(records, "{\"kind\":\"node %d, event %d\",\"at\":%" PRIu64 "}\n", (int)graph->nodeType, (int)id, monotonic());
	pthread_mutex_unlock(&lock);
}

static void hear_of_nodes(void)
{
	CUpti_SubscriberHandle subscriber;

	check(cuptiSubscribe(&subscriber, hear, NULL), "subscribe");
	check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING), "nodes");
	check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED), "nodes");
}

static void ask_beside(void)
{
	CUpti_SubscriberHandle subscriber;
	size_t bytes = sizeof(size_t), device_buffer = 1 << 20;

	check(cuptiSubscribe(&subscriber, hear, NULL), "subscribe");
	check(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &device_buffer), "small buffers");
	check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED), "hear of streams");
	check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD), "enable overhead");
}

static void set_attributes(const char *all)
{
	for (; all; all = strchr(all, '+') ? strchr(all, '+') + 1 : NULL) {
		int which = atoi(all);
		size_t value = atoi(strchr(all, ':') + 1), bytes = sizeof(value);
		uint8_t small = value;

		if (cuptiActivitySetAttribute(which, &bytes, &value) != CUPTI_SUCCESS) {
			bytes = 1;
			check(cuptiActivitySetAttribute(which, &bytes, &small), "attribute");
		}
	}
}

static void ask_for(const char *kinds)
{
	if (strchr(kinds, 'k'))
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable kernels");
	if (strchr(kinds, 'c')) {
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), "enable copies");
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2), "enable peer copies");
	}
	if (strchr(kinds, 'f'))
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), "enable memsets");
	if (strchr(kinds, 'g'))
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), "enable graphs");
}

/* What CUDA calls in the library named by CUDA_INJECTION64_PATH, in cuInit. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	const char *path = getenv("CUPTI_RECORDS"), *kinds = getenv("CUPTI_KINDS");
	char name[4096];

	snprintf(name, sizeof(name), "%s.%d", path ? path : "cupti_records", getpid());
	records = fopen(name, "w");
	if (!records)
		return 0;
	fprintf(records, "{\"kind\":\"process\",\"pid\":%d}\n", getpid());
	set_attributes(getenv("CUPTI_ATTRIBUTES"));
	check(cuptiActivityRegisterTimestampCallback(timestamp), "cuptiActivityRegisterTimestampCallback");
	check(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
	write_clock("start");
	if (getenv("CUPTI_BESIDE"))
		ask_beside();
	if (getenv("CUPTI_NODES") || getenv("CUPTI_FLUSH_WHEN") || getenv("CUPTI_AT_COPY") || getenv("CUPTI_STEPS"))
		hear_of_nodes();
	ask_for(kinds ? kinds : getenv("CUPTI_GRAPHS") ? "kcfg" : "kcf");
	if (getenv("CUPTI_SYNC"))
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), "enable synchronisation");
	if (getenv("CUPTI_API")) {
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), "enable the runtime's calls");
		check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), "enable the driver's calls");
	}
	if (getenv("CUPTI_FLUSH_MS"))
		flush_each(atoi(getenv("CUPTI_FLUSH_MS")));
	if (getenv("CUPTI_STEPS")) {
		pthread_t thread;

		pthread_create(&thread, NULL, go_through_steps, getenv("CUPTI_STEPS"));
	}
	if (getenv("CUPTI_PERIOD_MS"))
		check(cuptiActivityFlushPeriod(atoi(getenv("CUPTI_PERIOD_MS"))), "cuptiActivityFlushPeriod");
	atexit(finish);
	return 1;
}

// What CUPTI takes of each call of a program, by what it is asked for: ns of the calling thread's own processor time.
//
// usage: cupti_cost WAY [ROUNDS]   one WAY a process, as CUPTI leaves traces in it:
//   none        CUPTI is not loaded
//   loaded      it is, and asked for nothing
//   kernels     kernels, copies and fills
//   beside      and its own overhead, with a subscriber that hears of streams
//   told        as beside, and told when a node is put into a graph by hand
//   nodes       as beside, and told when a node of a graph is made
//   zeroed      as kernels; its buffers are handed over cleared
//   shared      as kernels; one buffer for all threads
//   pinned      as kernels; what the GPU writes goes to memory of the host
//   disabled    as kernels, and then no longer
//   unsubscribed  as beside, and then no longer
//   finalized   as kernels, and then cuptiFinalize
// prints: WAY, and per call of cudaGetDevice, cudaPeekAtLastError, cuCtxGetCurrent, of a launch and of a copy of 4 bytes on the device
//
// Build: nvcc -O2 cupti_cost.cu -o cupti_cost -I CUDA/include -L CUDA/lib64 -lcuda -l:libcupti.so.13
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#define BUFFER_BYTES (512 << 10)
#define CALLS 200000
#define LAUNCHES 300
#define STEPS 40

static const CUpti_CallbackId by_hand[] = { CUPTI_DRIVER_TRACE_CBID_cuGraphAddMemcpyNode, CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode,
					    CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2 };

__global__ void nothing(int *) {}

static bool cleared;

static void CUPTIAPI give(uint8_t **buffer, size_t *bytes, size_t *most)
{
	*buffer = (uint8_t *)(cleared ? calloc(1, BUFFER_BYTES) : malloc(BUFFER_BYTES));
	*bytes = BUFFER_BYTES;
	*most = 0;
}

static void CUPTIAPI take(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t)
{
	free(buffer);
}

static void CUPTIAPI hear(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}

static void must(CUptiResult result, const char *what)
{
	if (result != CUPTI_SUCCESS)
		printf("%s: refused with %d\n", what, result);
}

static CUpti_SubscriberHandle subscriber;
static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
					    CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET };

static void set(CUpti_ActivityAttribute attribute, size_t bytes, const void *value)
{
	must(cuptiActivitySetAttribute(attribute, &bytes, (void *)value), "attribute");
}

static void ask(const char *way)
{
	const uint8_t yes = 1, no = 0;
	bool told = !strcmp(way, "told"), nodes = !strcmp(way, "nodes"), beside = told || nodes || !strcmp(way, "beside") || !strcmp(way, "unsubscribed");

	if (!strcmp(way, "none"))
		return;
	cleared = !strcmp(way, "zeroed");
	must(cuptiActivityRegisterCallbacks(give, take), "callbacks");
	if (!strcmp(way, "loaded"))
		return;
	if (cleared)
		set(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof(yes), &yes);
	if (!strcmp(way, "pinned"))
		set(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, sizeof(yes), &yes);
	if (!strcmp(way, "shared"))
		set(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, sizeof(no), &no);
	if (beside) {
		must(cuptiSubscribe(&subscriber, hear, NULL), "subscribe");
		must(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED), "hear");
		must(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD), "overhead");
	}
	for (CUpti_CallbackId id : by_hand)
		if (told)
			must(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id), "hear of nodes by hand");
	if (nodes)
		must(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING), "hear of nodes");
	for (CUpti_ActivityKind kind : kinds)
		must(cuptiActivityEnable(kind), "enable");
}

static void stop(const char *way)
{
	if (strcmp(way, "disabled") && strcmp(way, "unsubscribed") && strcmp(way, "finalized"))
		return;
	for (CUpti_ActivityKind kind : kinds)
		must(cuptiActivityDisable(kind), "disable");
	if (subscriber) {
		must(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_OVERHEAD), "disable overhead");
		must(cuptiUnsubscribe(subscriber), "unsubscribe");
	}
	if (!strcmp(way, "finalized"))
		must(cuptiFinalize(), "finalize");
}

static uint64_t cpu(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

template <typename Call> static double each(int times, Call call)
{
	uint64_t since = cpu();

	for (int i = 0; i < times; i++)
		call();
	return (double)(cpu() - since) / times;
}

template <typename Call> static double given(Call call)
{
	double sum = 0;

	for (int step = 0; step < STEPS; step++) {
		sum += each(LAUNCHES, call);
		cudaDeviceSynchronize();
	}
	return sum / STEPS;
}

int main(int count, char **words)
{
	const char *way = count > 1 ? words[1] : "none";
	int device, *memory;
	CUcontext context;

	cudaSetDevice(0);
	cudaMalloc(&memory, 4096);
	nothing<<<1, 1>>>(memory);
	cudaDeviceSynchronize();
	ask(way);
	given([&] { nothing<<<1, 1>>>(memory); });
	stop(way);
	for (int round = 0; round < (count > 2 ? atoi(words[2]) : 1); round++)
		printf("%s\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\n", way, each(CALLS, [&] { cudaGetDevice(&device); }),
		       each(CALLS, [&] { cudaPeekAtLastError(); }), each(CALLS, [&] { cuCtxGetCurrent(&context); }),
		       given([&] { nothing<<<1, 1>>>(memory); }),
		       given([&] { cudaMemcpyAsync(memory, memory + 8, 4, cudaMemcpyDeviceToDevice); }));
	return 0;
}

// Rounds of GPU work followed by a pause of the host, in many ways to wait or not to wait for the work. What the GPU
// did is for CUPTI to say; a tracer that claims the GPU idle while it worked is wrong, whatever it saw.
// usage: idle SCENARIO ROUNDS      prints BEGIN ns, END ns (CLOCK_MONOTONIC) and  ELAPSED {"count":…,"ms":…}, the
// times between events that the program asked for. `idle list` prints the scenarios.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <time.h>
#include <unistd.h>

static const int KERNEL_US = 300, PAUSE_US = 1000, LONG_US = 2000;
static const size_t BIG = 1ul << 30;
static cudaStream_t stream, other, nonblocking;
static cudaEvent_t event, begin, end;
static cudaGraphExec_t graph;
static char *device, *device2, *pinned, *pageable;
static long elapsed_count;
static double elapsed_ms;

static void check(cudaError_t status, const char *what)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "idle: %s: %s\n", what, cudaGetErrorString(status));
	exit(1);
}

#define CUDA(call) check(call, #call)

__global__ void spin(long microseconds)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while (now - start < (unsigned long long)microseconds * 1000);
}

static void work(cudaStream_t where, long microseconds = KERNEL_US)
{
	spin<<<1, 1, 0, where>>>(microseconds);
	CUDA(cudaGetLastError());
}

static void rest()
{
	usleep(PAUSE_US);
}

// ---- rounds that wait for their work: the pause is provably idle ----

static void wait_stream()
{
	work(stream);
	CUDA(cudaStreamSynchronize(stream));
	rest();
}

static void wait_device()
{
	work(stream);
	work(nonblocking);
	CUDA(cudaDeviceSynchronize());
	rest();
}

static void wait_event()
{
	CUDA(cudaEventRecord(begin, stream));
	work(stream);
	CUDA(cudaEventRecord(end, stream));
	CUDA(cudaEventSynchronize(end));
	float milliseconds;
	CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
	elapsed_count++;
	elapsed_ms += milliseconds;
	rest();
}

static void poll_event()
{
	work(stream);
	CUDA(cudaEventRecord(event, stream));
	while (cudaEventQuery(event) == cudaErrorNotReady)
		;
	rest();
}

static void poll_stream()
{
	work(stream);
	while (cudaStreamQuery(stream) == cudaErrorNotReady)
		;
	rest();
}

static void wait_copy()
{
	work(0);
	CUDA(cudaMemcpy(pageable, device, 4, cudaMemcpyDeviceToHost));
	rest();
}

static void wait_item()
{
	work(stream);
	CUDA(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	rest();
}

static void wait_graph()
{
	CUDA(cudaGraphLaunch(graph, stream));
	CUDA(cudaStreamSynchronize(stream));
	rest();
}

static void wait_chain()
{
	work(stream);
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaStreamWaitEvent(other, event, 0));
	work(other);
	CUDA(cudaStreamSynchronize(other));
	CUDA(cudaStreamSynchronize(stream));
	rest();
}

static void wait_legacy()
{
	work(stream);
	CUDA(cudaStreamSynchronize(0));
	rest();
}

// ---- a round that waits in a call that does not say so ----

static void hidden_free()
{
	void *memory;

	CUDA(cudaMalloc(&memory, 1 << 20));
	work(nonblocking);
	CUDA(cudaFree(memory));
	rest();
}

// ---- rounds that wait for something else: the GPU works in the pause ----

static void miss_nonblocking()
{
	work(nonblocking, LONG_US);
	work(stream);
	CUDA(cudaStreamSynchronize(stream));
	rest();
	CUDA(cudaStreamSynchronize(nonblocking));
}

static void miss_legacy_sync()
{
	work(nonblocking, LONG_US);
	CUDA(cudaStreamSynchronize(0));
	rest();
	CUDA(cudaStreamSynchronize(nonblocking));
}

static void miss_blocking_sync()
{
	work(0, LONG_US);
	CUDA(cudaStreamSynchronize(stream));
	rest();
	CUDA(cudaStreamSynchronize(0));
}

static void miss_new_event()
{
	cudaEvent_t never;

	CUDA(cudaEventCreate(&never));
	work(stream, LONG_US);
	CUDA(cudaEventQuery(never));
	CUDA(cudaEventSynchronize(never));
	rest();
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaEventDestroy(never));
}

static void miss_old_event()
{
	CUDA(cudaEventRecord(event, stream));
	work(stream, LONG_US);
	CUDA(cudaEventSynchronize(event));
	rest();
	CUDA(cudaStreamSynchronize(stream));
}

static void miss_destroyed()
{
	cudaStream_t gone;

	CUDA(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
	work(gone, LONG_US);
	CUDA(cudaStreamDestroy(gone));
	rest();
	CUDA(cudaDeviceSynchronize());
}

static void miss_malloc()
{
	void *memory;

	work(stream, LONG_US);
	CUDA(cudaMalloc(&memory, 1 << 20));
	rest();
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaFree(memory));
}

static void miss_device_copy()
{
	CUDA(cudaMemcpy(device2, device, BIG, cudaMemcpyDeviceToDevice));
	rest();
	CUDA(cudaStreamSynchronize(0));
}

static void miss_memset()
{
	CUDA(cudaMemset(device, 1, BIG));
	rest();
	CUDA(cudaStreamSynchronize(0));
}

static void miss_pageable()
{
	CUDA(cudaMemcpy(device, pageable, 1 << 22, cudaMemcpyHostToDevice));
	rest();
	CUDA(cudaStreamSynchronize(0));
}

static void miss_staged()
{
	work(stream, LONG_US);
	CUDA(cudaMemcpyAsync(device, pageable, 4096, cudaMemcpyHostToDevice, stream));
	rest();
	CUDA(cudaStreamSynchronize(stream));
}

static void miss_pinned_async()
{
	work(stream, LONG_US);
	CUDA(cudaMemcpyAsync(pinned, device, 4096, cudaMemcpyDeviceToHost, stream));
	rest();
	CUDA(cudaStreamSynchronize(stream));
}

static void miss_graph()
{
	CUDA(cudaGraphLaunch(graph, stream));
	work(other);
	CUDA(cudaStreamSynchronize(other));
	rest();
	CUDA(cudaStreamSynchronize(stream));
}

// Two threads with a stream each: idle is only what both leave idle.
static void miss_threads()
{
	std::thread one([] {
		work(stream);
		CUDA(cudaStreamSynchronize(stream));
		usleep(PAUSE_US);
	});
	std::thread two([] {
		usleep(KERNEL_US);
		work(nonblocking, LONG_US);
		usleep(PAUSE_US / 2);
		CUDA(cudaStreamSynchronize(nonblocking));
	});
	one.join();
	two.join();
	rest();
}

// One thread waits while another one submits.
static void miss_race()
{
	std::thread one([] {
		for (int i = 0; i < 20; i++) {
			work(nonblocking, 20);
			usleep(30);
		}
	});
	for (int i = 0; i < 10; i++) {
		CUDA(cudaDeviceSynchronize());
		usleep(50);
	}
	one.join();
	CUDA(cudaDeviceSynchronize());
	rest();
}

// clang-format off
#define SCENARIO(name) { #name, name }
// clang-format on

static const struct {
	const char *name;
	void (*round)();
} scenarios[] = {
	SCENARIO(wait_stream),      SCENARIO(wait_device),        SCENARIO(wait_event),
	SCENARIO(poll_event),       SCENARIO(poll_stream),        SCENARIO(wait_copy),
	SCENARIO(wait_item),        SCENARIO(hidden_free),        SCENARIO(wait_graph),
	SCENARIO(wait_chain),       SCENARIO(wait_legacy),        SCENARIO(miss_nonblocking),
	SCENARIO(miss_legacy_sync), SCENARIO(miss_blocking_sync), SCENARIO(miss_new_event),
	SCENARIO(miss_old_event),   SCENARIO(miss_destroyed),     SCENARIO(miss_malloc),
	SCENARIO(miss_device_copy), SCENARIO(miss_memset),        SCENARIO(miss_pageable),
	SCENARIO(miss_staged),      SCENARIO(miss_pinned_async),  SCENARIO(miss_graph),
	SCENARIO(miss_threads),     SCENARIO(miss_race),
};

static void build_graph()
{
	cudaGraph_t recorded;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 10; i++)
		work(stream, LONG_US / 10);
	CUDA(cudaStreamEndCapture(stream, &recorded));
	CUDA(cudaGraphInstantiate(&graph, recorded, 0));
	CUDA(cudaGraphDestroy(recorded));
}

static void prepare()
{
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamCreate(&other));
	CUDA(cudaStreamCreateWithFlags(&nonblocking, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaEventCreate(&begin));
	CUDA(cudaEventCreate(&end));
	CUDA(cudaMalloc((void **)&device, BIG));
	CUDA(cudaMalloc((void **)&device2, BIG));
	CUDA(cudaMallocHost((void **)&pinned, 1 << 22));
	pageable = (char *)malloc(1 << 22);
	memset(pageable, 1, 1 << 22);
	build_graph();
	CUDA(cudaDeviceSynchronize());
}

static void mark(const char *name)
{
	struct timespec now;

	CUDA(cudaDeviceSynchronize());
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%s %lld\n", name, now.tv_sec * 1000000000ll + now.tv_nsec);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "list";
	int rounds = argc > 2 ? atoi(argv[2]) : 100;

	for (auto &scenario : scenarios) {
		if (!strcmp(name, "list"))
			puts(scenario.name);
		if (strcmp(name, scenario.name))
			continue;
		prepare();
		mark("BEGIN");
		for (int i = 0; i < rounds; i++)
			scenario.round();
		mark("END");
		printf("ELAPSED {\"count\":%ld,\"ms\":%.9g}\n", elapsed_count, elapsed_ms);
		return 0;
	}
	return strcmp(name, "list") ? 2 : 0;
}

// What happens in a running program when CUPTI is asked late: while a kernel runs, or while work is captured.
//
// usage: cupti_late WAY
//   serving     a kernel runs until the host tells it to end; another thread launches and waits all the time
//   finite      the same with a kernel of 2 s
//   capturing   another thread captures a graph meanwhile, in the global mode
//   waiting     it is not CUPTI that is asked, but cuCtxSynchronize in a thread of the relaxed mode, while another thread captures
//   serving-waiting  and while a kernel runs, of which it waits for the end
//   freeing, serving-freeing   the same of what gives memory back
// prints for each call of CUPTI how long it took, and the longest that the other thread had to wait within it. A call that takes 3 s is
// said to block; the kernel is then told to end.
//
// Build: nvcc -O2 -std=c++17 cupti_late.cu -o cupti_late -I CUDA/include -L CUDA/lib64 -lcuda -l:libcupti.so.13
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <thread>
#include <time.h>
#include <unistd.h>

__global__ void small(int *to)
{
	atomicAdd(to, 1);
}

__global__ void serve(volatile int *end, long long most)
{
	long long began, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (!*end && now - began < most);
}

static double now()
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1e3 + at.tv_nsec / 1e6;
}

static volatile int *end_of_kernel;
static std::atomic<double> since, last, longest;
static std::atomic<const char *> step;
static std::atomic<bool> over;
static int *memory;
static cudaStream_t serving_stream;
static bool is_served;

// Says which call of ours takes so long that it seems to wait for the kernel, and ends the kernel.
static void watch()
{
	while (!over) {
		usleep(10000);
		if (step && now() - since > 3000 && !*end_of_kernel) {
			printf("  %s BLOCKS; the other thread's last call was %.0f ms ago\n", step.load(), now() - last);
			fflush(stdout);
			*end_of_kernel = 1;
		}
	}
}

static void launch_all_the_time()
{
	cudaStream_t own;

	cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
	while (!over) {
		double began = now();

		small<<<1, 1, 0, own>>>(memory);
		cudaStreamSynchronize(own);
		last = now();
		if (last - began > longest)
			longest = last - began;
		usleep(1000);
	}
}

static void capture_all_the_time()
{
	cudaStream_t own;
	int good = 0, bad = 0;

	cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
	while (!over) {
		cudaGraph_t graph = nullptr;
		cudaError_t error = cudaStreamBeginCapture(own, cudaStreamCaptureModeGlobal), inner = cudaSuccess;

		for (int i = 0; i < 20 && !error && !inner; i++) {
			small<<<1, 1, 0, own>>>(memory);
			inner = cudaGetLastError();
			usleep(1000);
		}
		error = error ? error : cudaStreamEndCapture(own, &graph);
		if (error || inner) {
			if (!bad++)
				printf("  a capture failed, within %s: %s, %s\n", step.load() ? step.load() : "-",
				       cudaGetErrorName(error), cudaGetErrorName(inner));
		} else
			good++;
		if (graph)
			cudaGraphDestroy(graph);
		last = now();
	}
	printf("  captures: %d good, %d failed\n", good, bad);
}

template <typename Call> static void timed(const char *what, Call call)
{
	longest = 0;
	since = now();
	step = what;
	int result = (int)call();
	double took = now() - since;
	step = nullptr;
	printf("%s: %d, %.1f ms, the other thread %.1f ms\n", what, result, took, longest.load());
	fflush(stdout);
	usleep(100000);
}

static void CUPTIAPI give(uint8_t **buffer, size_t *bytes, size_t *most)
{
	*buffer = (uint8_t *)calloc(1, 512 << 10);
	*bytes = 512 << 10;
	*most = 0;
}

static void CUPTIAPI take(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
	printf("  %zu bytes of records\n", valid);
	free(buffer);
}

static void CUPTIAPI hear(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}

static void ask()
{
	CUpti_SubscriberHandle subscriber;
	static const struct {
		const char *name;
		CUpti_ActivityKind kind;
	} kinds[] = { { "fills", CUPTI_ACTIVITY_KIND_MEMSET }, { "copies", CUPTI_ACTIVITY_KIND_MEMCPY },
		      { "kernels", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL }, { "overhead", CUPTI_ACTIVITY_KIND_OVERHEAD } };

	timed("subscribe", [&] { return cuptiSubscribe(&subscriber, hear, nullptr); });
	timed("callbacks", [&] { return cuptiActivityRegisterCallbacks(give, take); });
	timed("hear", [&] { return cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED); });
	for (auto &some : kinds)
		timed(some.name, [&] { return cuptiActivityEnable(some.kind); });
	timed("flush", [&] { return cuptiActivityFlushAll(0); });
	timed("flush, forced", [&] { return cuptiActivityFlushAll(1); });
	for (auto &some : kinds)
		timed("disable", [&] { return cuptiActivityDisable(some.kind); });
	for (auto &some : kinds)
		timed("enable again", [&] { return cuptiActivityEnable(some.kind); });
	for (auto &some : kinds)
		timed("disable again", [&] { return cuptiActivityDisable(some.kind); });
	timed("flush, forced", [&] { return cuptiActivityFlushAll(1); });
	timed("unsubscribe", [&] { return cuptiUnsubscribe(subscriber); });
}

static void wait()
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	cudaFree(nullptr);
	timed("mode", [&] { return cuThreadExchangeStreamCaptureMode(&mode); });
	for (int i = 0; i < 3; i++)
		timed("cuCtxSynchronize", [] { return cuCtxSynchronize(); });
}

// What is known to wait for the device, too; each is done by a thread of its own, so that one that waits does not hide the next.
static void free_all()
{
	static CUdeviceptr small_one, large, whole;
	static void *host, *registered;
	CUcontext context;

	cudaFree(nullptr);
	cuCtxGetCurrent(&context);
	auto relaxed = [context](const char *what, auto call) {
		std::thread([=] {
			CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

			cuCtxSetCurrent(context);
			cuThreadExchangeStreamCaptureMode(&mode);
			timed(what, call);
		}).join();
		if (*end_of_kernel && is_served) {
			*end_of_kernel = 0;
			serve<<<1, 1, 0, serving_stream>>>(end_of_kernel, 60000000000LL);
		}
	};
	relaxed("cuMemAlloc 64 KiB", [] { return cuMemAlloc(&small_one, 64 << 10); });
	relaxed("cuMemAlloc 4 MiB", [] { return cuMemAlloc(&large, 4 << 20); });
	relaxed("cuMemAlloc 64 MiB", [] { return cuMemAlloc(&whole, 64 << 20); });
	relaxed("cuMemFree 64 KiB", [] { return cuMemFree(small_one); });
	relaxed("cuMemFree 4 MiB", [] { return cuMemFree(large); });
	relaxed("cuMemFree 64 MiB", [] { return cuMemFree(whole); });
	relaxed("cuMemHostAlloc", [] { return cuMemHostAlloc(&host, 1 << 20, 0); });
	relaxed("cuMemFreeHost", [] { return cuMemFreeHost(host); });
	registered = aligned_alloc(4096, 1 << 20);
	relaxed("cuMemHostRegister", [] { return cuMemHostRegister(registered, 1 << 20, 0); });
	relaxed("cuMemHostUnregister", [] { return cuMemHostUnregister(registered); });
}

int main(int count, char **words)
{
	const char *way = count > 1 ? words[1] : "serving";
	bool waits = strstr(way, "waiting") != nullptr;
	bool frees = strstr(way, "freeing") != nullptr;

	is_served = strcmp(way, "capturing") && strcmp(way, "waiting") && strcmp(way, "freeing");
	cudaMalloc(&memory, 4096);
	cudaHostAlloc((void **)&end_of_kernel, 64, cudaHostAllocMapped);
	*end_of_kernel = 0;
	cudaStreamCreateWithFlags(&serving_stream, cudaStreamNonBlocking);
	small<<<1, 1>>>(memory);
	serve<<<1, 1>>>(end_of_kernel, 0);
	cudaDeviceSynchronize();
	printf("%s\n", way);
	if (is_served)
		serve<<<1, 1, 0, serving_stream>>>(end_of_kernel, !strcmp(way, "finite") ? 2000000000LL : 60000000000LL);
	last = now();
	std::thread other(is_served ? launch_all_the_time : capture_all_the_time), guard(watch);
	usleep(300000);
	if (frees)
		free_all();
	else if (waits)
		wait();
	else
		ask();
	over = true;
	other.join();
	guard.join();
	*end_of_kernel = 1;
	printf("ended: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
	return 0;
}

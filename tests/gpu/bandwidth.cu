// Copies between host and device, each timed: pageable and pinned, both directions, synchronous and asynchronous.
// A synchronous copy is timed by the host's clock, an asynchronous one by events around it.
// usage: bandwidth BYTES COUNT synchronous|asynchronous
// prints  BANDWIDTH {"rows":[{"direction":…,"host":…,"count":…,"bytes":…,"seconds":…}]}
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void check(cudaError_t status, const char *what)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "bandwidth: %s: %s\n", what, cudaGetErrorString(status));
	exit(1);
}

#define CUDA(call) check(call, #call)

static double time_synchronous(void *to, const void *from, size_t bytes, int count, cudaMemcpyKind kind)
{
	double seconds = 0;

	for (int i = 0; i < count; i++) {
		auto start = std::chrono::steady_clock::now();
		CUDA(cudaMemcpy(to, from, bytes, kind));
		seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
	}
	return seconds;
}

static double time_asynchronous(void *to, const void *from, size_t bytes, int count, cudaMemcpyKind kind)
{
	cudaStream_t stream;
	cudaEvent_t begin, end;
	double seconds = 0;
	float milliseconds;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaEventCreate(&begin));
	CUDA(cudaEventCreate(&end));
	for (int i = 0; i < count; i++) {
		CUDA(cudaEventRecord(begin, stream));
		CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream));
		CUDA(cudaEventRecord(end, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
		seconds += milliseconds / 1e3;
	}
	CUDA(cudaEventDestroy(begin));
	CUDA(cudaEventDestroy(end));
	CUDA(cudaStreamDestroy(stream));
	return seconds;
}

static void print(const char *direction, const char *host, size_t bytes, int count, double seconds)
{
	static const char *comma = "";

	printf("%s{\"direction\":\"%s\",\"host\":\"%s\",\"count\":%d,\"bytes\":%zu,\"seconds\":%.9f}", comma,
	       direction, host, count, bytes * count, seconds);
	comma = ",";
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 20;
	int count = argc > 2 ? atoi(argv[2]) : 20;
	auto time = argc > 3 && !strcmp(argv[3], "asynchronous") ? time_asynchronous : time_synchronous;
	void *pageable = malloc(bytes), *pinned, *device;

	CUDA(cudaMallocHost(&pinned, bytes));
	CUDA(cudaMalloc(&device, bytes));
	memset(pageable, 1, bytes);
	memset(pinned, 2, bytes);
	CUDA(cudaDeviceSynchronize());
	printf("BANDWIDTH {\"rows\":[");
	for (void *host : { pageable, pinned }) {
		const char *kind = host == pageable ? "pageable" : "pinned";

		print("HtoD", kind, bytes, count, time(device, host, bytes, count, cudaMemcpyHostToDevice));
		print("DtoH", kind, bytes, count, time(host, device, bytes, count, cudaMemcpyDeviceToHost));
	}
	printf("]}\n");
	return 0;
}

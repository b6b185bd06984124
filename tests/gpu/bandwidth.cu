// Copies between host and device, each timed: pageable and pinned, both directions, synchronous and asynchronous.
// A synchronous copy is timed by the host's clock, an asynchronous one by events around it.
// usage: bandwidth BYTES COUNT      prints  BANDWIDTH {"bytes":…,"rows":[{"direction":…,"host":…,"blocking":…,…}]}
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

static void measure(const char *host, void *memory, void *device, size_t bytes, int count, const char *comma)
{
	for (int blocking = 1; blocking >= 0; blocking--) {
		auto time = blocking ? time_synchronous : time_asynchronous;
		double in = time(device, memory, bytes, count, cudaMemcpyHostToDevice);
		double out = time(memory, device, bytes, count, cudaMemcpyDeviceToHost);

		printf("%s{\"direction\":\"HtoD\",\"host\":\"%s\",\"blocking\":%s,\"count\":%d,\"seconds\":%."
		       "9f},"
		       "{\"direction\":\"DtoH\",\"host\":\"%s\",\"blocking\":%s,\"count\":%d,\"seconds\":%."
		       "9f}",
		       blocking ? comma : ",", host, blocking ? "true" : "false", count, in, host,
		       blocking ? "true" : "false", count, out);
	}
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 20;
	int count = argc > 2 ? atoi(argv[2]) : 20;
	void *pageable = malloc(bytes), *pinned, *device;

	CUDA(cudaMallocHost(&pinned, bytes));
	CUDA(cudaMalloc(&device, bytes));
	memset(pageable, 1, bytes);
	memset(pinned, 2, bytes);
	CUDA(cudaDeviceSynchronize());
	printf("BANDWIDTH {\"bytes\":%zu,\"rows\":[", bytes);
	measure("pageable", pageable, device, bytes, count, "");
	measure("pinned", pinned, device, bytes, count, ",");
	printf("]}\n");
	return 0;
}

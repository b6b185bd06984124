// Blocks of data are read, brought to the GPU, counted there and brought back: four threads, each with a stream and a pinned buffer.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                    \
	do {                                                                                           \
		cudaError_t error = (call);                                                            \
		if (error != cudaSuccess) {                                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
			exit(1);                                                                       \
		}                                                                                      \
	} while (0)

__global__ void histogram(const unsigned char *bytes, size_t count, unsigned *bins)
{
	__shared__ unsigned own[256];
	own[threadIdx.x] = 0;
	__syncthreads();
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		atomicAdd(&own[bytes[i]], 1);
	__syncthreads();
	atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

static const size_t BLOCK = 8 << 20;

static void decode(unsigned char *into, unsigned seed)
{
	for (size_t i = 0; i < BLOCK; i++) {
		seed = seed * 1664525u + 1013904223u;
		into[i] = seed >> 24;
	}
}

static void worker(std::atomic<int> &next, int blocks, std::vector<unsigned> &sum)
{
	unsigned char *host, *device;
	unsigned *bins, own[256];
	cudaStream_t stream;
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&host, BLOCK));
	CHECK(cudaMallocAsync(&device, BLOCK, stream));
	CHECK(cudaMallocAsync(&bins, sizeof(own), stream));
	for (int block; (block = next++) < blocks;) {
		decode(host, block);
		CHECK(cudaMemcpyAsync(device, host, BLOCK, cudaMemcpyHostToDevice, stream));
		CHECK(cudaMemsetAsync(bins, 0, sizeof(own), stream));
		histogram<<<128, 256, 0, stream>>>(device, BLOCK, bins);
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpyAsync(own, bins, sizeof(own), cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < 256; i++)
			sum[i] += own[i];
	}
	CHECK(cudaFreeAsync(device, stream));
	CHECK(cudaFreeAsync(bins, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaFreeHost(host));
	CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	int blocks = argc > 1 ? atoi(argv[1]) : 1000, threads = 4;
	std::atomic<int> next{ 0 };
	std::vector<std::vector<unsigned>> sums(threads, std::vector<unsigned>(256));
	std::vector<std::thread> all;
	for (int i = 0; i < threads; i++)
		all.emplace_back(worker, std::ref(next), blocks, std::ref(sums[i]));
	unsigned long long total = 0;
	for (int i = 0; i < threads; i++) {
		all[i].join();
		for (unsigned bin : sums[i])
			total += bin;
	}
	printf("%llu bytes counted\n", total);
	return 0;
}

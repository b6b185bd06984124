// Heat spreads over a plate that two GPUs share; each step they pass their borders to each other, and every 20 steps the change is looked at.
#include <cstdio>
#include <cstdlib>
#include <cmath>
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

__global__ void spread(const float *from, float *to, int width, int rows)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
	if (x < 1 || x >= width - 1 || y > rows)
		return;
	int at = y * width + x;
	to[at] = 0.25f * (from[at - 1] + from[at + 1] + from[at - width] + from[at + width]);
}

__global__ void change(const float *a, const float *b, float *sum, int count)
{
	float own = 0;
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		own += fabsf(a[i] - b[i]);
	atomicAdd(sum, own);
}

struct Part {
	float *grid[2];
	float *sum;
	cudaStream_t work, border;
	cudaEvent_t done, passed;
};

static float look(std::vector<Part> &parts, int now, int width, int rows)
{
	float total = 0;
	for (size_t gpu = 0; gpu < parts.size(); gpu++) {
		float sum = 0;
		CHECK(cudaSetDevice(gpu));
		CHECK(cudaMemset(parts[gpu].sum, 0, sizeof(float)));
		change<<<256, 256>>>(parts[gpu].grid[0], parts[gpu].grid[1], parts[gpu].sum, width * rows);
		CHECK(cudaMemcpy(&sum, parts[gpu].sum, sizeof(float), cudaMemcpyDeviceToHost));
		total += sum;
	}
	return total;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 2000, width = 8192, gpus;
	CHECK(cudaGetDeviceCount(&gpus));
	int rows = 8192 / gpus;
	std::vector<Part> parts(gpus);
	for (int gpu = 0; gpu < gpus; gpu++) {
		Part &part = parts[gpu];
		CHECK(cudaSetDevice(gpu));
		for (int other = 0; other < gpus; other++)
			if (other != gpu)
				cudaDeviceEnablePeerAccess(other, 0);
		std::vector<float> start((size_t)(rows + 2) * width, gpu ? 0.0f : 100.0f);
		for (float *&grid : part.grid) {
			CHECK(cudaMalloc(&grid, start.size() * sizeof(float)));
			CHECK(cudaMemcpy(grid, start.data(), start.size() * sizeof(float),
					 cudaMemcpyHostToDevice));
		}
		CHECK(cudaMalloc(&part.sum, sizeof(float)));
		CHECK(cudaStreamCreate(&part.work));
		CHECK(cudaStreamCreate(&part.border));
		CHECK(cudaEventCreateWithFlags(&part.done, cudaEventDisableTiming));
		CHECK(cudaEventCreateWithFlags(&part.passed, cudaEventDisableTiming));
	}
	dim3 block(32, 8), blocks((width + 31) / 32, (rows + 7) / 8);
	for (int step = 0; step < steps; step++) {
		int now = step & 1;
		for (int gpu = 0; gpu < gpus; gpu++) {
			CHECK(cudaSetDevice(gpu));
			spread<<<blocks, block, 0, parts[gpu].work>>>(parts[gpu].grid[now],
								      parts[gpu].grid[!now], width, rows);
			CHECK(cudaEventRecord(parts[gpu].done, parts[gpu].work));
		}
		for (int gpu = 0; gpu < gpus; gpu++) {
			Part &part = parts[gpu];
			CHECK(cudaSetDevice(gpu));
			CHECK(cudaStreamWaitEvent(part.border, part.done, 0));
			if (gpu > 0)
				CHECK(cudaMemcpyPeerAsync(
					parts[gpu - 1].grid[!now] + (size_t)(rows + 1) * width, gpu - 1,
					part.grid[!now] + width, gpu, width * sizeof(float), part.border));
			if (gpu + 1 < gpus)
				CHECK(cudaMemcpyPeerAsync(parts[gpu + 1].grid[!now], gpu + 1,
							  part.grid[!now] + (size_t)rows * width, gpu,
							  width * sizeof(float), part.border));
			CHECK(cudaEventRecord(part.passed, part.border));
		}
		for (int gpu = 0; gpu < gpus; gpu++) {
			CHECK(cudaSetDevice(gpu));
			for (Part &other : parts)
				CHECK(cudaStreamWaitEvent(parts[gpu].work, other.passed, 0));
		}
		if (step % 20 == 19)
			printf("step %d: %g\n", step + 1, look(parts, now, width, rows));
	}
	for (int gpu = 0; gpu < gpus; gpu++) {
		CHECK(cudaSetDevice(gpu));
		CHECK(cudaDeviceSynchronize());
	}
	return 0;
}

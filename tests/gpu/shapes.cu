// For machines without a GPU: a few calls that must fail, each printed as `CALL name code error`.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void nothing(int)
{
}

static void say(const char *name, cudaError_t status)
{
	printf("CALL %s %d %s\n", name, (int)status, cudaGetErrorName(status));
}

int main()
{
	void *memory = nullptr;
	char host[64] = {};

	say("cudaMalloc", cudaMalloc(&memory, 12345));
	nothing<<<dim3(3, 5, 7), dim3(32, 2, 1), 128>>>(1);
	say("cudaLaunchKernel", cudaGetLastError());
	say("cudaMemcpy", cudaMemcpy(host, host, sizeof(host), cudaMemcpyHostToDevice));
	say("cudaDeviceSynchronize", cudaDeviceSynchronize());
	return 0;
}

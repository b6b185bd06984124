// Particles in managed memory: the GPU moves them, the host sorts some out, and so on.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

struct Particle {
	float place[3], speed[3];
};

__global__ void move(Particle *all, int count, float dt)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= count)
		return;
	for (int axis = 0; axis < 3; axis++) {
		all[i].speed[axis] -= dt * all[i].place[axis];
		all[i].place[axis] += dt * all[i].speed[axis];
	}
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 100, count = 4 << 20;
	Particle *all;
	if (cudaMallocManaged(&all, count * sizeof(Particle)) != cudaSuccess)
		return 1;
	for (int i = 0; i < count; i++)
		for (int axis = 0; axis < 3; axis++) {
			all[i].place[axis] = (i * 31 + axis) % 1000 / 1000.0f;
			all[i].speed[axis] = 0;
		}
	for (int step = 0; step < steps; step++) {
		for (int i = 0; i < 10; i++)
			move<<<(count + 255) / 256, 256>>>(all, count, 0.01f);
		cudaDeviceSynchronize();
		int outside = 0;
		for (int i = 0; i < count; i += 64)
			outside += all[i].place[0] > 0.9f;
		if (step % 10 == 9)
			printf("step %d: %d outside\n", step + 1, outside);
	}
	cudaFree(all);
	return 0;
}

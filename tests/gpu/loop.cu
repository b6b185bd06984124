// Launches for some seconds without a pause; each launch carries its number in its dynamic shared memory size, so
// that a tracer that comes late can be asked for gaps.
// usage: loop [seconds] [pause between launches in µs]        last line: LOOP {"launches":…,"checksum":…}
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

const int NUMBERS = 16384;

__global__ void count(unsigned long long *launches)
{
	if (threadIdx.x == 0)
		*launches += 1;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	int pause_us = argc > 2 ? atoi(argv[2]) : 50;
	auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
	unsigned long long *launches = nullptr, seen = 0;
	long made = 0;

	if (cudaMalloc((void **)&launches, sizeof(*launches)) || cudaMemset(launches, 0, sizeof(*launches)))
		return 1;
	printf("READY %d\n", getpid());
	fflush(stdout);
	while (std::chrono::steady_clock::now() < end) {
		count<<<1, 32, made % NUMBERS>>>(launches);
		made++;
		if (made % 1000 == 0)
			cudaDeviceSynchronize();
		usleep(pause_us);
	}
	cudaMemcpy(&seen, launches, sizeof(seen), cudaMemcpyDeviceToHost);
	printf("LOOP {\"launches\":%ld,\"checksum\":%llu}\n", made, seen);
	return 0;
}

/* Fills memory of device 0 for a while, then of two devices in turn, with pauses in which each does nothing. */
#include <stddef.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaMalloc(void **memory, size_t bytes);
int cudaMemsetAsync(void *memory, int value, size_t bytes, void *stream);
int cudaDeviceSynchronize(void);

#define BYTES (1 << 20)
#define ALONE 10
#define ROUNDS 40

int main(void)
{
	void *memory[2] = { NULL, NULL };
	int failed = 0;

	for (int device = 0; device < 2; device++) {
		failed |= cudaSetDevice(device);
		failed |= cudaMalloc(&memory[device], BYTES);
	}
	for (int round = 0; round < ROUNDS; round++) {
		int device = round < ALONE ? 0 : round % 2;

		failed |= cudaSetDevice(device);
		failed |= cudaMemsetAsync(memory[device], 0, BYTES, NULL);
		failed |= cudaDeviceSynchronize();
		usleep(2000);
	}
	return failed;
}

/*
 * A libcuda.so.1 whose calls return at once, and which calls back on the caller's stack with frames that exceptions can
 * pass (-fexceptions), as NVIDIA's own does. It counts nothing: what a program did is what it prints.
 */
#include "cuda.h"
#include <stdatomic.h>
#include <stdint.h>

static atomic_ullong next = 0x7f0000000000ULL;

int cuInit(unsigned flags)
{
	return flags ? 1 : 0;
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
	*address = atomic_fetch_add(&next, (bytes + 511) / 512 * 512);
	return 0;
}

int cuMemFree_v2(unsigned long long address)
{
	return address ? 0 : 1;
}

int cuCtxSynchronize(void)
{
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	*stream = (void *)(uintptr_t)atomic_fetch_add(&next, 512);
	return flags > 1 ? 1 : 0;
}

int cuStreamSynchronize(void *stream)
{
	return stream ? 0 : 1;
}

/* `kernel`: an address of the program's that nothing can be read from. */
int cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
		   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,
		   void **extra)
{
	(void)grid_y, (void)grid_z, (void)block_y, (void)block_z, (void)shared_bytes;
	(void)stream, (void)arguments, (void)extra;
	return kernel && grid_x && block_x ? 0 : 1;
}

int cuLaunchHostFunc(void *stream, host_function function, void *data)
{
	(void)stream;
	function(data);
	return 0;
}

int cuStreamAddCallback(void *stream, stream_callback function, void *data, unsigned flags)
{
	function(stream, 0, data);
	return flags ? 1 : 0;
}

int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *kernel, shared_memory_of shared,
				     size_t fixed, int limit)
{
	(void)kernel, (void)fixed, (void)limit;
	*block = 256;
	*grid = (int)shared(*block);
	return 0;
}

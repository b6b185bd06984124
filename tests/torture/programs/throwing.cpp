// Exceptions that leave functions of CUDA through the callback that they were given.
#include "cuda.h"
#include <cstdio>

static void thrower(void *)
{
	throw 1;
}
static void stream_thrower(void *, int, void *)
{
	throw 2;
}
static size_t sizing_thrower(int)
{
	throw 3;
}

template <typename Call> static int caught(Call call)
{
	try {
		call();
	} catch (int what) {
		return what;
	}
	return 0;
}

int main()
{
	int sum = 0, grid, block;
	cuInit(0);
	for (int i = 0; i < 100; i++) {
		sum += caught([] { cuLaunchHostFunc(nullptr, thrower, nullptr); });
		sum += caught([] { cuStreamAddCallback(nullptr, stream_thrower, nullptr, 0); });
		sum += caught([&] {
			cuOccupancyMaxPotentialBlockSize(&grid, &block, nullptr, sizing_thrower, 0, 0);
		});
	}
	std::printf("caught %d\n", sum);
	return sum == 600 ? 0 : 1;
}

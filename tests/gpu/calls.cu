// Makes a known number of CUDA calls from several threads and prints, as the last line, how many of each it made
// and a checksum of what the GPU computed:  COUNTS {"calls":{…},"errors":{…},"seconds":…,"checksum":…}
// usage: calls [launches per thread] [threads] [--wait]
// --wait: one uncounted round, `READY pid`, a line of stdin, the counted round, COUNTS, a line of stdin, end.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::mutex lock;
static std::map<std::string, long> calls, errors;
static unsigned long long checksum;

static cudaError_t counted(const char *name, cudaError_t status)
{
	std::lock_guard<std::mutex> guard(lock);
	calls[name]++;
	if (status != cudaSuccess)
		errors[name]++;
	return status;
}

#define CUDA(function, ...) counted(#function, function(__VA_ARGS__))

__global__ void add(unsigned *values, int count, unsigned what)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		values[i] = values[i] * 3 + what + i;
}

// Not CUDA(…): `<<<>>>` and this template do not name the function that they call.
static void launch(cudaStream_t stream, unsigned *values, int count, unsigned what)
{
	add<<<(count + 127) / 128, 128, 0, stream>>>(values, count, what);
	counted("cudaLaunchKernel", cudaSuccess);
}

static void launch_with_attributes(cudaStream_t stream, unsigned *values, int count, unsigned what)
{
	cudaLaunchConfig_t config = {};

	config.gridDim = dim3((count + 127) / 128);
	config.blockDim = dim3(128);
	config.stream = stream;
	counted("cudaLaunchKernelExC", cudaLaunchKernelEx(&config, add, values, count, what));
}

static void work(int number, int launches)
{
	const int count = 4096;
	const size_t bytes = count * sizeof(unsigned);
	std::vector<unsigned> host(count, number + 1);
	unsigned *values = nullptr, *copy = nullptr;
	unsigned long long sum = 0;
	cudaStream_t stream;
	cudaEvent_t event;

	CUDA(cudaSetDevice, 0);
	CUDA(cudaStreamCreate, &stream);
	CUDA(cudaEventCreate, &event);
	counted("cudaMalloc", cudaMalloc((void **)&values, bytes));
	counted("cudaMalloc", cudaMalloc((void **)&copy, bytes));
	CUDA(cudaMemcpyAsync, values, host.data(), bytes, cudaMemcpyHostToDevice, stream);
	CUDA(cudaMemsetAsync, copy, 0, bytes, stream);
	for (int i = 0; i < launches; i++) {
		if (i % 16 == 7)
			launch_with_attributes(stream, values, count, i);
		else
			launch(stream, values, count, i);
		if (i % 10 == 9)
			CUDA(cudaMemcpyAsync, copy, values, bytes, cudaMemcpyDeviceToDevice, stream);
		if (i % 50 == 49)
			CUDA(cudaEventRecord, event, stream);
	}
	CUDA(cudaStreamSynchronize, stream);
	CUDA(cudaMemcpy, host.data(), values, bytes, cudaMemcpyDeviceToHost);
	CUDA(cudaFree, values);
	CUDA(cudaFree, copy);
	CUDA(cudaEventDestroy, event);
	CUDA(cudaStreamDestroy, stream);
	for (unsigned value : host)
		sum = sum * 31 + value;
	std::lock_guard<std::mutex> guard(lock);
	checksum ^= sum << (number % 7);
}

static double round_of(int launches, int threads)
{
	auto start = std::chrono::steady_clock::now();
	std::vector<std::thread> workers;
	void *huge = nullptr;

	for (int i = 0; i < threads; i++)
		workers.emplace_back(work, i, launches);
	for (auto &worker : workers)
		worker.join();
	counted("cudaMalloc", cudaMalloc(&huge, 1ull << 50)); // more than any GPU has
	cudaGetLastError(); // returns the failure of another call: not one of its own
	counted("cudaGetLastError", cudaSuccess);
	CUDA(cudaDeviceSynchronize, );
	return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static void print(const char *name, const std::map<std::string, long> &numbers)
{
	const char *comma = "";

	printf("\"%s\":{", name);
	for (auto &number : numbers) {
		printf("%s\"%s\":%ld", comma, number.first.c_str(), number.second);
		comma = ",";
	}
	printf("},");
}

static void print_counts(double seconds)
{
	printf("COUNTS {");
	print("calls", calls);
	print("errors", errors);
	printf("\"seconds\":%.6f,\"checksum\":%llu}\n", seconds, checksum);
	fflush(stdout);
}

static void await_line()
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

int main(int argc, char **argv)
{
	int launches = argc > 1 ? atoi(argv[1]) : 1000, threads = argc > 2 ? atoi(argv[2]) : 2;
	bool wait = argc > 3 && !strcmp(argv[3], "--wait");

	if (wait) {
		round_of(launches, threads);
		calls.clear();
		errors.clear();
		checksum = 0;
		printf("READY %d\n", getpid());
		fflush(stdout);
		await_line();
	}
	print_counts(round_of(launches, threads));
	if (wait)
		await_line();
	return 0;
}

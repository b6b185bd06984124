// What CUDA can do beside launching kernels and copying, one feature a process: each says what came of it, which is the same on each run,
// so that a program that is looked at can be compared with one that is not.
//
// usage: features FEATURE [ROUNDS]   no FEATURE: their names
// prints: FEATURE: RESULT; exit status 0, or 1 with CUDA's error. Some end as their name says (exit, abort, killed).
//
// Build: nvcc -O2 -std=c++17 -arch=sm_90 -rdc=true features.cu -o features -lcudadevrt -lcuda
#include <cooperative_groups.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace cg = cooperative_groups;

static void must(cudaError_t error, int line)
{
	if (error == cudaSuccess)
		return;
	printf("line %d: %s\n", line, cudaGetErrorName(error));
	fflush(stdout);
	_exit(1);
}

static void must(CUresult error, int line)
{
	const char *name = "?";

	if (error == CUDA_SUCCESS)
		return;
	cuGetErrorName(error, &name);
	printf("line %d: %s\n", line, name);
	fflush(stdout);
	_exit(1);
}

#define CHECK(call) must((call), __LINE__)

static int rounds = 20;

__global__ void add(int *to, int count, int much)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		to[i] += much;
}

__device__ void spin(long long ns)
{
	long long began, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - began < ns);
}

__global__ void busy(long long ns)
{
	spin(ns);
}

#define COUNT (1 << 16)

struct Numbers {
	int *device;

	Numbers()
	{
		CHECK(cudaMalloc(&device, COUNT * sizeof(int)));
		CHECK(cudaMemset(device, 0, COUNT * sizeof(int)));
	}
	long long sum()
	{
		std::vector<int> host(COUNT);
		long long all = 0;

		CHECK(cudaMemcpy(host.data(), device, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
		for (int number : host)
			all += number;
		return all;
	}
};

// A loop in a graph, whose body copies, fills and computes.
__global__ void again(cudaGraphConditionalHandle handle, int *left)
{
	cudaGraphSetConditional(handle, --*left > 0);
}

static long long conditional()
{
	Numbers numbers;
	int *left, *other, five = 5;
	cudaStream_t stream;
	long long all = 0;

	CHECK(cudaMalloc(&left, sizeof(int)));
	CHECK(cudaMalloc(&other, COUNT * sizeof(int)));
	CHECK(cudaStreamCreate(&stream));
	for (int graphs = 0; graphs < 4; graphs++) {
		cudaGraph_t graph, body;
		cudaGraphExec_t ready;
		cudaGraphNode_t node;
		cudaGraphConditionalHandle handle;
		cudaGraphNodeParams loop = {};

		CHECK(cudaGraphCreate(&graph, 0));
		CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
		loop.type = cudaGraphNodeTypeConditional;
		loop.conditional.handle = handle;
		loop.conditional.type = cudaGraphCondTypeWhile;
		loop.conditional.size = 1;
		CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop));
		body = loop.conditional.phGraph_out[0];
		CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
						    cudaStreamCaptureModeRelaxed));
		CHECK(cudaMemsetAsync(other, 0, COUNT * sizeof(int), stream));
		add<<<64, 256, 0, stream>>>(other, COUNT, 3);
		CHECK(cudaMemcpyAsync(numbers.device, other, COUNT * sizeof(int),
				      cudaMemcpyDeviceToDevice, stream));
		add<<<64, 256, 0, stream>>>(numbers.device, COUNT, 1);
		again<<<1, 1, 0, stream>>>(handle, left);
		CHECK(cudaStreamEndCapture(stream, nullptr));
		CHECK(cudaGraphInstantiate(&ready, graph, 0));
		for (int i = 0; i < rounds; i++) {
			CHECK(cudaMemcpyAsync(left, &five, sizeof(int), cudaMemcpyHostToDevice, stream));
			CHECK(cudaGraphLaunch(ready, stream));
			CHECK(cudaStreamSynchronize(stream));
			all += numbers.sum();
		}
		CHECK(cudaGraphExecDestroy(ready));
		CHECK(cudaGraphDestroy(graph));
	}
	return all;
}

// A graph that a kernel launches.
__global__ void start(cudaGraphExec_t graph)
{
	cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);
}

static long long device_graph()
{
	Numbers numbers;
	cudaStream_t stream;
	cudaGraph_t inner, outer;
	cudaGraphExec_t inner_ready, outer_ready;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	add<<<64, 256, 0, stream>>>(numbers.device, COUNT, 2);
	CHECK(cudaStreamEndCapture(stream, &inner));
	CHECK(cudaGraphInstantiate(&inner_ready, inner, cudaGraphInstantiateFlagDeviceLaunch));
	CHECK(cudaGraphUpload(inner_ready, stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	start<<<1, 1, 0, stream>>>(inner_ready);
	CHECK(cudaStreamEndCapture(stream, &outer));
	CHECK(cudaGraphInstantiate(&outer_ready, outer, 0));
	for (int i = 0; i < rounds; i++) {
		CHECK(cudaGraphLaunch(outer_ready, stream));
		CHECK(cudaStreamSynchronize(stream));
	}
	return numbers.sum();
}

// Kernels that launch kernels.
__global__ void nested_kernel(int *to, int depth)
{
	add<<<4, 256>>>(to, COUNT, 1);
	if (depth > 0)
		nested_kernel<<<1, 1>>>(to, depth - 1);
}

static long long nested()
{
	Numbers numbers;

	for (int i = 0; i < rounds; i++) {
		nested_kernel<<<1, 1>>>(numbers.device, 5);
		CHECK(cudaDeviceSynchronize());
	}
	return numbers.sum();
}

// A part of the multiprocessors, by a green context.
static long long green()
{
	CUdevice device;
	CUdevResource all, parts[2], rest;
	unsigned int groups = 2;
	CUcontext primary;
	int *numbers, host[256];
	long long sum = 0;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&primary, device));
	CHECK(cuCtxSetCurrent(primary));
	CHECK(cudaMalloc(&numbers, sizeof host));
	CHECK(cudaMemset(numbers, 0, sizeof host));
	CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 16));
	for (unsigned int i = 0; i < groups; i++) {
		CUdevResourceDesc description;
		CUgreenCtx context;
		CUstream stream;

		CHECK(cuDevResourceGenerateDesc(&description, &parts[i], 1));
		CHECK(cuGreenCtxCreate(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
		CHECK(cuGreenCtxStreamCreate(&stream, context, CU_STREAM_NON_BLOCKING, 0));
		for (int k = 0; k < rounds; k++)
			add<<<8, 64, 0, (cudaStream_t)stream>>>(numbers, 256, 1);
		CHECK(cuStreamSynchronize(stream));
		CUcontext own;
		CHECK(cuCtxFromGreenCtx(&own, context));
		CHECK(cuCtxPushCurrent(own));
		add<<<8, 64>>>(numbers, 256, 1);
		CHECK(cudaDeviceSynchronize());
		CHECK(cuCtxPopCurrent(nullptr));
		CHECK(cuStreamDestroy(stream));
		CHECK(cuGreenCtxDestroy(context));
	}
	CHECK(cudaMemcpy(host, numbers, sizeof host, cudaMemcpyDeviceToHost));
	for (int number : host)
		sum += number;
	return sum;
}

// A kernel that begins before the one ahead of it on its stream has ended, and waits for it within.
__global__ void first_part(int *to)
{
	cudaTriggerProgrammaticLaunchCompletion();
	spin(200000);
	if (threadIdx.x == 0)
		atomicAdd(to, 1);
}

__global__ void second_part(int *to)
{
	cudaGridDependencySynchronize();
	if (threadIdx.x == 0 && *to % 2)
		atomicAdd(to, 1);
}

static long long dependent()
{
	Numbers numbers;
	cudaStream_t stream;
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute early;

	CHECK(cudaStreamCreate(&stream));
	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	config.gridDim = 1;
	config.blockDim = 32;
	config.stream = stream;
	config.attrs = &early;
	config.numAttrs = 1;
	for (int i = 0; i < rounds; i++) {
		first_part<<<1, 32, 0, stream>>>(numbers.device);
		CHECK(cudaLaunchKernelEx(&config, second_part, numbers.device));
	}
	CHECK(cudaStreamSynchronize(stream));
	return numbers.sum();
}

// Two kernels that wait for each other: one alone on the device would wait for ever; the number is how often it gave up.
__global__ void meet(volatile int *mine, volatile int *other, int *missed)
{
	long long began, now;

	*mine = 1;
	__threadfence_system();
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
	while (*other == 0) {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
		if (now - began > 2000000000) {
			atomicAdd(missed, 1);
			return;
		}
	}
}

static long long handshake()
{
	cudaStream_t streams[2];
	int *flags, missed;

	CHECK(cudaMalloc(&flags, 3 * sizeof(int)));
	CHECK(cudaMemset(flags, 0, 3 * sizeof(int)));
	for (auto &stream : streams)
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < rounds; i++) {
		CHECK(cudaMemset(flags, 0, 2 * sizeof(int)));
		CHECK(cudaDeviceSynchronize());
		meet<<<1, 1, 0, streams[0]>>>(flags, flags + 1, flags + 2);
		meet<<<1, 1, 0, streams[1]>>>(flags + 1, flags, flags + 2);
		CHECK(cudaDeviceSynchronize());
	}
	CHECK(cudaMemcpy(&missed, flags + 2, sizeof missed, cudaMemcpyDeviceToHost));
	return missed;
}

// A kernel that lives as long as the program works: it serves requests that the host writes into pinned memory.
__global__ void server(volatile int *request, volatile int *answer)
{
	for (int served = 0;;) {
		int asked = *request;

		if (asked < 0)
			return;
		if (asked == served)
			continue;
		served = asked;
		*answer = served;
		__threadfence_system();
	}
}

static long long persistent()
{
	volatile int *request, *answer;
	Numbers numbers;
	cudaStream_t stream, own;

	CHECK(cudaHostAlloc((void **)&request, 256, cudaHostAllocMapped));
	answer = request + 32;
	*request = *answer = 0;
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
	add<<<64, 256, 0, own>>>(numbers.device, COUNT, 1); // loaded now: loading waits for the device
	CHECK(cudaDeviceSynchronize());
	server<<<1, 1, 0, stream>>>(request, answer);
	for (int i = 1; i <= rounds * 10; i++) {
		*request = i;
		while (*answer != i)
			;
		add<<<64, 256, 0, own>>>(numbers.device, COUNT, 1);
		CHECK(cudaStreamSynchronize(own));
		usleep(20000);
	}
	*request = -1;
	CHECK(cudaStreamSynchronize(stream));
	return *answer + numbers.sum();
}

// All blocks wait for each other; blocks of a cluster read each other's shared memory.
__global__ void grid_wide(int *to)
{
	cg::grid_group grid = cg::this_grid();

	for (int i = 0; i < 10; i++) {
		if (grid.thread_rank() == 0)
			to[0]++;
		grid.sync();
		if (grid.thread_rank() == 1)
			to[1] += to[0];
		grid.sync();
	}
}

__global__ void __cluster_dims__(4, 1, 1) clustered(int *to)
{
	__shared__ int mine;
	cg::cluster_group cluster = cg::this_cluster();

	if (threadIdx.x == 0)
		mine = cluster.block_rank() + 1;
	cluster.sync();
	if (threadIdx.x == 0)
		atomicAdd(to + 2, *cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % 4));
	cluster.sync();
}

static long long cooperative()
{
	Numbers numbers;
	void *arguments[] = { &numbers.device };

	for (int i = 0; i < rounds; i++) {
		CHECK(cudaLaunchCooperativeKernel((void *)grid_wide, dim3(132), dim3(128), arguments, 0, nullptr));
		clustered<<<8, 32>>>(numbers.device);
	}
	CHECK(cudaDeviceSynchronize());
	return numbers.sum();
}

// A stream that waits for a number which the host writes.
static long long stream_waits()
{
	Numbers numbers;
	cudaStream_t stream;
	volatile uint32_t *word;
	CUdeviceptr device;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaHostAlloc((void **)&word, 64, cudaHostAllocMapped));
	CHECK(cuMemHostGetDevicePointer(&device, (void *)word, 0));
	*word = 0;
	add<<<64, 256, 0, stream>>>(numbers.device, COUNT, 1); // loaded now: loading waits for the device
	CHECK(cudaDeviceSynchronize());
	for (int i = 1; i <= rounds; i++) {
		CHECK(cuStreamWaitValue32((CUstream)stream, device, i, CU_STREAM_WAIT_VALUE_GEQ));
		add<<<64, 256, 0, stream>>>(numbers.device, COUNT, 1);
		CHECK(cuStreamWriteValue32((CUstream)stream, device + 4, i, 0));
		usleep(2000);
		*word = i;
		while (word[1] != (uint32_t)i)
			;
	}
	CHECK(cudaStreamSynchronize(stream));
	return numbers.sum();
}

// Memory that a graph allocates and frees, a graph within it, and the graph changed between replays.
static long long graph_memory()
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t ready = nullptr;
	Numbers numbers;

	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < rounds; i++) {
		int *own;
		cudaGraphExecUpdateResultInfo info;

		CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
		CHECK(cudaMallocAsync(&own, COUNT * sizeof(int), stream));
		CHECK(cudaMemsetAsync(own, 0, COUNT * sizeof(int), stream));
		add<<<64, 256, 0, stream>>>(own, COUNT, 1);
		CHECK(cudaMemcpyAsync(numbers.device, own, COUNT * sizeof(int), cudaMemcpyDeviceToDevice, stream));
		CHECK(cudaFreeAsync(own, stream));
		CHECK(cudaStreamEndCapture(stream, &graph));
		if (!ready || cudaGraphExecUpdate(ready, graph, &info) != cudaSuccess) {
			cudaGetLastError();
			if (ready)
				CHECK(cudaGraphExecDestroy(ready));
			CHECK(cudaGraphInstantiate(&ready, graph, 0));
		}
		CHECK(cudaGraphLaunch(ready, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaGraphDestroy(graph));
	}
	return numbers.sum();
}

// The device is reset between pieces of work.
static long long reset()
{
	long long all = 0;

	for (int i = 0; i < 6; i++) {
		Numbers numbers;

		for (int k = 0; k < rounds; k++)
			add<<<64, 256>>>(numbers.device, COUNT, 1);
		all += numbers.sum();
		CHECK(cudaDeviceReset());
	}
	return all;
}

// Contexts of the program's own, made and destroyed.
static long long contexts()
{
	long long all = 0;

	CHECK(cuInit(0));
	for (int i = 0; i < 6; i++) {
		CUcontext context;
		CUdeviceptr memory;
		int host[64], *device;

		CHECK(cuCtxCreate(&context, nullptr, 0, 0));
		CHECK(cuMemAlloc(&memory, sizeof host));
		CHECK(cuMemsetD32(memory, i, 64));
		device = (int *)memory;
		add<<<1, 64>>>(device, 64, 1);
		CHECK(cuMemcpyDtoH(host, memory, sizeof host));
		for (int number : host)
			all += number;
		CHECK(cuCtxDestroy(context));
	}
	return all;
}

__global__ void fails(int *to, int how)
{
	if (how == 0)
		*(volatile int *)16 = 1;
	if (how == 1)
		__trap();
	if (how == 2)
		printf("printed by the device, %d\n", to[0]);
}

static long long faulty(int how)
{
	Numbers numbers;
	cudaError_t error;

	add<<<64, 256>>>(numbers.device, COUNT, 1);
	fails<<<1, 1>>>(numbers.device, how);
	error = cudaDeviceSynchronize();
	printf("%s, then %s\n", cudaGetErrorName(error), cudaGetErrorName(cudaMemset(numbers.device, 0, 4)));
	return error;
}

static long long illegal() { return faulty(0); }
static long long trap() { return faulty(1); }
static long long prints() { return faulty(2); }

// A child by fork goes on without CUDA, one by exec with it.
static long long children()
{
	Numbers numbers;
	int status;
	long long all;

	for (int i = 0; i < 5; i++) {
		add<<<64, 256>>>(numbers.device, COUNT, 1);
		pid_t child = fork();
		if (child == 0)
			_exit(cudaMemset(numbers.device, 0, 4) == cudaSuccess ? 1 : 7);
		waitpid(child, &status, 0);
		all = WEXITSTATUS(status);
		child = fork();
		if (child == 0) {
			execl("/proc/self/exe", "features", "nested", "3", (char *)nullptr);
			_exit(2);
		}
		waitpid(child, &status, 0);
		all += WEXITSTATUS(status) * 100;
	}
	return all + numbers.sum();
}

// The state of the device is put aside by the driver, and brought back.
static long long checkpoint()
{
	Numbers numbers;
	int status;

	for (int i = 0; i < 3; i++) {
		add<<<64, 256>>>(numbers.device, COUNT, 1);
		CHECK(cudaDeviceSynchronize());
		pid_t self = getpid(), child = fork();
		if (child == 0) {
			char number[16];

			snprintf(number, sizeof number, "%d", self);
			execl("/proc/self/exe", "features", "checkpoints", number, (char *)nullptr);
			_exit(2);
		}
		waitpid(child, &status, 0);
		if (status) {
			printf("checkpoint of %d: status %x\n", i, status);
			return -1;
		}
	}
	return numbers.sum();
}

static long long checkpoints()
{
	CUcheckpointLockArgs lock = {};
	CUcheckpointCheckpointArgs put = {};
	CUcheckpointRestoreArgs bring = {};
	CUcheckpointUnlockArgs unlock = {};
	int pid = rounds;

	CHECK(cuInit(0));
	lock.timeoutMs = 5000;
	CHECK(cuCheckpointProcessLock(pid, &lock));
	CHECK(cuCheckpointProcessCheckpoint(pid, &put));
	CHECK(cuCheckpointProcessRestore(pid, &bring));
	CHECK(cuCheckpointProcessUnlock(pid, &unlock));
	return 0;
}

// Memory by addresses that the program reserves, and many copies in one call.
static long long mapped()
{
	CUmemAllocationProp kind = {};
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc access = {};
	CUdeviceptr at;
	size_t piece;
	std::vector<int> host(COUNT, 2);
	long long all = 0;

	CHECK(cudaFree(nullptr));
	kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	CHECK(cuMemGetAllocationGranularity(&piece, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	access.location = kind.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	for (int i = 0; i < rounds; i++) {
		CHECK(cuMemAddressReserve(&at, piece, 0, 0, 0));
		CHECK(cuMemCreate(&handle, piece, &kind, 0));
		CHECK(cuMemMap(at, piece, 0, handle, 0));
		CHECK(cuMemSetAccess(at, piece, &access, 1));
		CHECK(cuMemcpyHtoD(at, host.data(), COUNT * sizeof(int)));
		add<<<64, 256>>>((int *)at, COUNT, 1);
		std::vector<int> back(COUNT);
		CHECK(cuMemcpyDtoH(back.data(), at, COUNT * sizeof(int)));
		for (int number : back)
			all += number;
		CHECK(cuMemUnmap(at, piece));
		CHECK(cuMemRelease(handle));
		CHECK(cuMemAddressFree(at, piece));
	}
	return all;
}

static long long batch()
{
	const int pieces = 64;
	Numbers numbers;
	cudaStream_t stream;
	int *pinned;
	std::vector<void *> to;
	std::vector<const void *> from;
	std::vector<size_t> sizes;
	cudaMemcpyAttributes attributes = {};
	size_t first = 0;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocHost(&pinned, COUNT * sizeof(int)));
	for (int i = 0; i < COUNT; i++)
		pinned[i] = i % 7;
	for (int i = 0; i < pieces; i++) {
		to.push_back(numbers.device + i * (COUNT / pieces));
		from.push_back(pinned + i * (COUNT / pieces));
		sizes.push_back(COUNT / pieces * sizeof(int));
	}
	attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	for (int i = 0; i < rounds; i++)
		CHECK(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), pieces, &attributes, &first, 1,
					   stream));
	CHECK(cudaStreamSynchronize(stream));
	return numbers.sum();
}

// Threads that come and go, each with a stream of its own.
static long long threads()
{
	Numbers numbers;

	for (int i = 0; i < rounds; i++) {
		std::vector<std::thread> all;

		for (int k = 0; k < 16; k++)
			all.emplace_back([&, k] {
				cudaStream_t stream;

				CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
				add<<<4, 256, 0, stream>>>(numbers.device + k * (COUNT / 16), COUNT / 16, 1);
				CHECK(cudaStreamSynchronize(stream));
				CHECK(cudaStreamDestroy(stream));
			});
		for (auto &thread : all)
			thread.join();
	}
	return numbers.sum();
}

// A thread ends the program while another waits and the device works.
static long long ends_early()
{
	Numbers numbers;

	std::thread([] {
		usleep(300000);
		puts("exit within a thread");
		exit(3);
	}).detach();
	busy<<<1, 1>>>(600000000);
	pause();
	return 0;
}

static long long aborts()
{
	Numbers numbers;

	busy<<<1, 1>>>(100000000);
	add<<<64, 256>>>(numbers.device, COUNT, 1);
	abort();
}

static long long killed()
{
	Numbers numbers;

	busy<<<1, 1>>>(500000000);
	raise(SIGTERM);
	return 0;
}

// Arrays, and what a texture reads of them.
__global__ void look_up(cudaTextureObject_t texture, float *to, int width)
{
	to[threadIdx.x] = tex2D<float>(texture, threadIdx.x % width + 0.5f, threadIdx.x / width + 0.5f);
}

static long long textures()
{
	const int width = 16;
	std::vector<float> host(width * width), back(width * width);
	cudaArray_t array;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;
	float *to, all = 0;

	for (size_t i = 0; i < host.size(); i++)
		host[i] = i;
	CHECK(cudaMalloc(&to, host.size() * sizeof(float)));
	for (int i = 0; i < rounds; i++) {
		CHECK(cudaMallocArray(&array, &format, width, width));
		CHECK(cudaMemcpy2DToArray(array, 0, 0, host.data(), width * sizeof(float), width * sizeof(float), width,
					  cudaMemcpyHostToDevice));
		resource.resType = cudaResourceTypeArray;
		resource.res.array.array = array;
		CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
		look_up<<<1, width * width>>>(texture, to, width);
		CHECK(cudaMemcpy(back.data(), to, back.size() * sizeof(float), cudaMemcpyDeviceToHost));
		for (float number : back)
			all += number;
		CHECK(cudaDestroyTextureObject(texture));
		CHECK(cudaFreeArray(array));
	}
	return all;
}

// Memory that another process opens.
static long long shared()
{
	Numbers numbers;
	cudaIpcMemHandle_t handle;
	int status, lines[2];

	CHECK(cudaIpcGetMemHandle(&handle, numbers.device));
	for (int i = 0; i < 3; i++) {
		if (pipe(lines))
			return -1;
		pid_t child = fork();
		if (child == 0) {
			dup2(lines[0], 0);
			execl("/proc/self/exe", "features", "opens", (char *)nullptr);
			_exit(2);
		}
		if (write(lines[1], &handle, sizeof handle) != sizeof handle)
			return -1;
		waitpid(child, &status, 0);
		if (status)
			return -1;
	}
	return numbers.sum();
}

static long long opens()
{
	cudaIpcMemHandle_t handle;
	int *device;

	if (read(0, &handle, sizeof handle) != sizeof handle)
		return -1;
	CHECK(cudaIpcOpenMemHandle((void **)&device, handle, cudaIpcMemLazyEnablePeerAccess));
	add<<<64, 256>>>(device, COUNT, 1);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaIpcCloseMemHandle(device));
	return 0;
}

// Do events say that what took 5 ms took 5 ms at least?
static long long timed()
{
	cudaEvent_t begin, end;
	float ms, least = 1e9;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	for (int i = 0; i < rounds; i++) {
		CHECK(cudaEventRecord(begin));
		busy<<<1, 1>>>(5000000);
		CHECK(cudaEventRecord(end));
		CHECK(cudaEventSynchronize(end));
		CHECK(cudaEventElapsedTime(&ms, begin, end));
		least = ms < least ? ms : least;
	}
	return least > 4.99f;
}

static const struct {
	const char *name;
	long long (*run)();
	bool hidden;
} features[] = {
	{ "conditional", conditional }, { "device-graph", device_graph }, { "nested", nested },
	{ "green", green },		{ "dependent", dependent },	  { "handshake", handshake },
	{ "persistent", persistent },	{ "cooperative", cooperative },	  { "stream-waits", stream_waits },
	{ "graph-memory", graph_memory }, { "reset", reset },		  { "contexts", contexts },
	{ "illegal", illegal },		{ "trap", trap },		  { "prints", prints },
	{ "children", children },	{ "checkpoint", checkpoint },	  { "mapped", mapped },
	{ "batch", batch },		{ "threads", threads },		  { "exit", ends_early },
	{ "abort", aborts },		{ "killed", killed },		  { "textures", textures },
	{ "shared", shared },		{ "timed", timed },		  { "opens", opens, true },
	{ "checkpoints", checkpoints, true },
};

int main(int argc, char **argv)
{
	if (argc > 2)
		rounds = atoi(argv[2]);
	for (auto &feature : features) {
		if (argc < 2 && !feature.hidden)
			puts(feature.name);
		if (argc > 1 && strcmp(argv[1], feature.name) == 0) {
			printf("%s: %lld\n", feature.name, feature.run());
			return 0;
		}
	}
	return argc > 1 ? 2 : 0;
}

// Graphs with copies in them, made and launched in several ways: which of them go on while CUPTI records?
//
// usage: graph_copies LETTERS [ROUNDS]   prints the sum that the rounds copied and added up
// Without letters: a graph of eight chained copies within the device, by nodes of its own, and one kernel.
//   c  the copies are captured from a stream    k  no kernel in the graph     o  one copy
//   u  the copies do not wait for each other    f  node priorities are used (CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
//   s  the copies' source is a variable of the module          h  the copies go to pinned memory of the host
//   e  kernels in the graph begin before the one ahead has ended (programmatic edges)
//   p  a kernel that begins so follows each launch             l  large copies (16 MiB)
//   y  copies of one byte    q  memory, streams and launches of others after the graph is made
//   b  copies on the stream of each kind before anything is handed over           m  three streams, which all do so
//   t  copies of a few bytes, each of another number      x  a second graph in turns     w  the host waits behind each
//   a  kernels ahead of the copies      n  no copies      d  a copy to the host and a wait behind each launch
// Build: nvcc -O2 -std=c++17 -arch=sm_90 graph_copies.cu -o graph_copies -lcuda
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		int error = (call);                                                                                    \
		if (error) {                                                                                           \
			printf("%s: %d\n", #call, error);                                                              \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

__device__ int constants[64] = { 1, 2, 3, 4, 5, 6, 7, 8 };

__global__ void add(int *total, const int *from)
{
	cudaGridDependencySynchronize();
	atomicAdd(total, from[threadIdx.x]);
	cudaTriggerProgrammaticLaunchCompletion();
}

static const char *asked;
static bool is(char letter) { return strchr(asked, letter) != nullptr; }

static const int copies = 8;
static CUgraphNode last;
static bool has_last;

static void add_copy(CUgraph graph, CUcontext context, CUdeviceptr to, CUdeviceptr from, size_t bytes, bool host)
{
	CUDA_MEMCPY3D copy = {};
	CUgraphNode node;

	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = from;
	copy.dstMemoryType = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = host ? 0 : to;
	copy.dstHost = host ? (void *)to : nullptr;
	copy.WidthInBytes = bytes;
	copy.Height = copy.Depth = 1;
	CHECK(cuGraphAddMemcpyNode(&node, graph, has_last && !is('u') ? &last : nullptr, has_last && !is('u'), &copy, context));
	last = node;
	has_last = true;
}

static void add_kernel(CUgraph graph, CUfunction function, void **arguments, bool early)
{
	CUgraphNodeParams params = {};
	CUgraphEdgeData edge = {};
	CUgraphNode node;

	params.type = CU_GRAPH_NODE_TYPE_KERNEL;
	params.kernel.func = function;
	params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
	params.kernel.blockDimX = 8;
	params.kernel.blockDimY = params.kernel.blockDimZ = 1;
	params.kernel.kernelParams = arguments;
	if (early) {
		edge.from_port = 1;
		edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
	}
	CHECK(cuGraphAddNode(&node, graph, has_last ? &last : nullptr, has_last ? &edge : nullptr, has_last, &params));
	last = node;
	has_last = true;
}

static void launch_early(cudaStream_t stream, int *total, int *from)
{
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};

	config.gridDim = 1;
	config.blockDim = 8;
	config.stream = stream;
	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelEx(&config, add, total, (const int *)from));
}

int main(int argc, char **argv)
{
	asked = argc > 1 ? argv[1] : "";
	int rounds = argc > 2 ? atoi(argv[2]) : 40, sum = 0;
	size_t bytes = is('l') ? 16 << 20 : 8 * sizeof(int);
	int number = is('n') ? 0 : is('o') ? 1 : copies;
	cudaStream_t stream;
	CUcontext context;
	CUgraph graph;
	CUgraphExec made, other;
	cudaFunction_t function;
	int *from, *to, *total, *host;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&from, bytes));
	CHECK(cudaMalloc(&to, bytes * copies));
	CHECK(cudaMalloc(&total, sizeof(int)));
	CHECK(cudaMallocHost(&host, bytes * copies));
	CHECK(cudaMemset(from, 0, bytes));
	CHECK(cudaMemset(to, 0, bytes * copies));
	CHECK(cudaMemset(total, 0, sizeof(int)));
	CHECK(cudaMemcpyFromSymbol(host, constants, 8 * sizeof(int)));
	CHECK(cudaMemcpy(from, host, 8 * sizeof(int), cudaMemcpyHostToDevice));
	if (is('s'))
		CHECK(cudaGetSymbolAddress((void **)&from, constants));
	if (is('b')) {
		cudaStream_t others[3] = { stream, stream, stream };
		for (int i = 1; is('m') && i < 3; i++)
			CHECK(cudaStreamCreateWithPriority(&others[i], cudaStreamNonBlocking, -1));
		for (int i = 0; i < 30; i++) {
			int *pageable = (int *)malloc(256);
			cudaStream_t on = others[i % 3];
			memset(pageable, 0, 256);
			CHECK(cudaMemcpyAsync(to + 8, pageable, 8 + i % 4 * 8, cudaMemcpyHostToDevice, on));
			CHECK(cudaMemcpyAsync(to + 16, to + 8, 16, cudaMemcpyDeviceToDevice, on));
			CHECK(cudaMemcpyAsync(host, to + 16, 4, cudaMemcpyDeviceToHost, on));
			CHECK(cudaMemsetAsync(to + 8, 0, 64, on));
			add<<<1, 8, 0, on>>>(total, to);
			if (i % 5 == 0)
				CHECK(cudaStreamSynchronize(on));
		}
	}
	CHECK(cudaDeviceSynchronize());
	/* what CUPTI has by now is handed over */
	usleep(350000);
	CHECK(cuCtxGetCurrent(&context));
	CHECK(cudaGetFuncBySymbol(&function, (const void *)add));
	if (is('c')) {
		CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		for (int i = 0; i < number; i++)
			CHECK(cudaMemcpyAsync(is('h') ? host + i * 8 : to + i * 8, from, bytes, cudaMemcpyDefault, stream));
		if (!is('k'))
			add<<<1, 8, 0, stream>>>(total, is('h') ? from : to);
		CHECK(cudaStreamEndCapture(stream, &graph));
	} else {
		int *first = is('h') || is('n') ? from : to;
		void *arguments[] = { &total, &first };
		CHECK(cuGraphCreate(&graph, 0));
		if (is('a'))
			for (int i = 0; i < 3; i++)
				add_kernel(graph, (CUfunction)function, arguments, is('e') && i);
		for (int i = 0; i < number; i++)
			add_copy(graph, context, (CUdeviceptr)(is('h') ? host + i * 8 : to + i * 8), (CUdeviceptr)from, is('y') ? 1 : is('t') ? 4 + i * 4 : bytes, is('h'));
		for (int i = 0; i < (is('k') ? 0 : is('e') ? 4 : 1); i++)
			add_kernel(graph, (CUfunction)function, arguments, is('e') && i);
	}
	CHECK(cuGraphInstantiateWithFlags(&made, graph, is('f') ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0));
	if (is('x'))
		CHECK(cuGraphInstantiateWithFlags(&other, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	for (int i = 0; is('q') && i < 64; i++) {
		cudaStream_t more;
		void *memory;
		CHECK(cudaMalloc(&memory, 1 << 20));
		CHECK(cudaMemset(memory, 255, 1 << 20));
		CHECK(cudaHostAlloc(&memory, 128, cudaHostAllocPortable));
		CHECK(cudaStreamCreate(&more));
		add<<<1, 8, 0, more>>>(total, to);
	}
	for (int round = 0; round < rounds; round++) {
		CHECK(cuGraphLaunch(is('x') && round % 2 ? other : made, stream));
		if (is('w'))
			CHECK(cudaStreamSynchronize(stream));
		if (is('p'))
			launch_early(stream, total, from);
		if (is('d')) {
			CHECK(cudaMemcpyAsync(host, total, 1, cudaMemcpyDeviceToHost, stream));
			CHECK(cudaStreamSynchronize(stream));
		}
		usleep(10000);
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&sum, total, sizeof(sum), cudaMemcpyDeviceToHost));
	printf("%s: %d\n", asked, sum);
	return 0;
}

// Every way to copy that the runtime and the driver offer, from and to every kind of memory. What was copied is for
// CUPTI to say. usage: copies [--wait]     (--wait: the memory is taken, `READY pid`, a line of stdin, the copies,
// `DONE`, a line of stdin)
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

static const size_t BYTES = 1 << 20;
__device__ char symbol[4096];

static void check(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "copies: %s: error %d\n", what, status);
	exit(1);
}

#define CUDA(call) check(call, #call)

struct Memory {
	char *pageable, *pinned, *registered, *mapped, *part, *device, *other, *pooled, *managed;
	cudaArray_t array;
	cudaStream_t stream, nonblocking;
};

static Memory take()
{
	Memory m;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();

	m.pageable = (char *)malloc(BYTES);
	memset(m.pageable, 1, BYTES);
	m.registered = (char *)malloc(BYTES);
	memset(m.registered, 2, BYTES);
	// the middle half of a mapping is registered
	m.part = (char *)mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUDA(cudaMallocHost((void **)&m.pinned, BYTES));
	CUDA(cudaHostAlloc((void **)&m.mapped, BYTES, cudaHostAllocMapped | cudaHostAllocPortable));
	CUDA(cudaHostRegister(m.registered, BYTES, 0));
	CUDA(cudaHostRegister(m.part + BYTES / 4, BYTES / 2, 0));
	CUDA(cudaMalloc((void **)&m.device, BYTES));
	CUDA(cudaMalloc((void **)&m.other, BYTES));
	CUDA(cudaMallocManaged((void **)&m.managed, BYTES));
	CUDA(cudaMallocArray(&m.array, &format, 64, 64));
	CUDA(cudaStreamCreate(&m.stream));
	CUDA(cudaStreamCreateWithFlags(&m.nonblocking, cudaStreamNonBlocking));
	CUDA(cudaMallocAsync((void **)&m.pooled, BYTES, m.stream));
	CUDA(cudaStreamSynchronize(m.stream));
	return m;
}

// Sizes differ from call to call, so that no mistake cancels another.
static void plain(const Memory &m)
{
	CUDA(cudaMemcpy(m.device, m.pageable, 1001, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(m.device, m.pageable, BYTES, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(m.device + 64, m.pinned + 5000, 2003, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(m.device, m.registered + 77, 3001, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(m.device, m.mapped + 77, 3011, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(m.device, m.part + BYTES / 4 + 100, 3019, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(m.device, m.part, 3023, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(m.pageable, m.device, 4001, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(m.pinned, m.device, 4003, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(m.part + BYTES / 2, m.device, 4007, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(m.other, m.device, 5003, cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpy(m.pooled, m.device + 128, 5009, cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpy(m.pageable, m.pinned, 6007, cudaMemcpyHostToHost));
	CUDA(cudaMemcpy(m.device, m.pageable, 0, cudaMemcpyHostToDevice));
}

static void by_address(const Memory &m)
{
	CUDA(cudaMemcpy(m.device, m.pageable, 7001, cudaMemcpyDefault));
	CUDA(cudaMemcpy(m.device, m.pinned, 7013, cudaMemcpyDefault));
	CUDA(cudaMemcpy(m.registered, m.device, 7019, cudaMemcpyDefault));
	CUDA(cudaMemcpy(m.pageable, m.pooled, 7027, cudaMemcpyDefault));
	CUDA(cudaMemcpy(m.other, m.device, 7039, cudaMemcpyDefault));
	CUDA(cudaMemcpyAsync(m.pinned, m.device, 7043, cudaMemcpyDefault, m.stream));
	CUDA(cudaMemcpyAsync(m.pooled, m.pageable, 7057, cudaMemcpyDefault, m.nonblocking));
	CUDA(cuMemcpy((CUdeviceptr)m.device, (CUdeviceptr)m.pageable, 7069));
	CUDA(cuMemcpy((CUdeviceptr)m.pageable, (CUdeviceptr)m.other, 7079));
}

static void asynchronous(const Memory &m)
{
	CUDA(cudaMemcpyAsync(m.device, m.pageable, 8009, cudaMemcpyHostToDevice, m.stream));
	CUDA(cudaMemcpyAsync(m.device, m.pinned, 8011, cudaMemcpyHostToDevice, m.stream));
	CUDA(cudaMemcpyAsync(m.device, m.registered, 8017, cudaMemcpyHostToDevice, m.nonblocking));
	CUDA(cudaMemcpyAsync(m.pageable, m.device, 8039, cudaMemcpyDeviceToHost, m.stream));
	CUDA(cudaMemcpyAsync(m.mapped, m.device, 8053, cudaMemcpyDeviceToHost, 0));
	CUDA(cudaMemcpyAsync(m.other, m.device, 8059, cudaMemcpyDeviceToDevice, cudaStreamPerThread));
	CUDA(cudaMemcpyToSymbol(symbol, m.pageable, 1009));
	CUDA(cudaMemcpyFromSymbol(m.pinned, symbol, 1013));
	CUDA(cudaMemcpyToSymbolAsync(symbol, m.pinned, 1019, 0, cudaMemcpyHostToDevice, m.stream));
	CUDA(cuMemcpyHtoD((CUdeviceptr)m.device, m.pinned, 1021));
	CUDA(cuMemcpyDtoH(m.pageable, (CUdeviceptr)m.device, 1031));
	CUDA(cuMemcpyDtoDAsync((CUdeviceptr)m.device, (CUdeviceptr)m.other, 1033, m.stream));
}

static void shaped(const Memory &m)
{
	cudaMemcpy3DParms cube = {};
	cudaMemcpy3DPeerParms peer = {};

	CUDA(cudaMemcpy2D(m.device, 512, m.pageable, 512, 250, 31, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2D(m.pinned, 512, m.device, 512, 251, 33, cudaMemcpyDefault));
	CUDA(cudaMemcpy2DAsync(m.pageable, 512, m.device, 512, 252, 34, cudaMemcpyDeviceToHost, m.stream));
	CUDA(cudaMemcpy2DToArray(m.array, 0, 0, m.pageable, 256, 256, 63, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2DFromArray(m.pinned, 256, m.array, 0, 0, 256, 62, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy2DToArrayAsync(m.array, 0, 0, m.device, 256, 256, 61, cudaMemcpyDeviceToDevice,
				      m.stream));
	cube.srcPtr = make_cudaPitchedPtr(m.pinned, 256, 256, 16);
	cube.dstPtr = make_cudaPitchedPtr(m.device, 256, 256, 16);
	cube.extent = make_cudaExtent(255, 15, 13);
	cube.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&cube));
	cube.kind = cudaMemcpyDefault;
	CUDA(cudaMemcpy3DAsync(&cube, m.stream));
	CUDA(cudaMemcpyPeer(m.other, 0, m.device, 0, 9001));
	CUDA(cudaMemcpyPeerAsync(m.other, 0, m.device, 0, 9007, m.stream));
	peer.srcPtr = make_cudaPitchedPtr(m.device, 256, 256, 16);
	peer.dstPtr = make_cudaPitchedPtr(m.other, 256, 256, 16);
	peer.extent = make_cudaExtent(254, 14, 12);
	CUDA(cudaMemcpy3DPeer(&peer));
}

static void batched(const Memory &m)
{
	void *to[] = { m.device, m.device + 4096, m.device + 8192 };
	const void *pinned[] = { m.pinned, m.pinned + 4096, m.pinned + 8192 };
	const void *pageable[] = { m.pageable, m.pageable + 4096, m.pageable + 8192 };
	size_t sizes[] = { 1000, 2000, 3000 }, first[] = { 0 };
	cudaMemcpyAttributes attributes = {};
	cudaMemcpy3DBatchOp cube = {};

	attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CUDA(cudaMemcpyBatchAsync(to, pinned, sizes, 3, &attributes, first, 1, m.stream));
	CUDA(cudaMemcpyBatchAsync(to, pageable, sizes, 3, &attributes, first, 1, m.stream));
	cube.src.type = cube.dst.type = cudaMemcpyOperandTypePointer;
	cube.src.op.ptr.ptr = m.pinned;
	cube.dst.op.ptr.ptr = m.device;
	cube.extent = make_cudaExtent(256, 4, 2);
	cube.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CUDA(cudaMemcpy3DBatchAsync(1, &cube, 0, m.stream));
}

// Copies that are recorded and replayed twice: none of the calls copies anything.
static void replayed(const Memory &m)
{
	cudaGraph_t graph;
	cudaGraphExec_t runnable;

	CUDA(cudaStreamBeginCapture(m.nonblocking, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpyAsync(m.device, m.pinned, 9011, cudaMemcpyHostToDevice, m.nonblocking));
	CUDA(cudaMemsetAsync(m.device, 0, 9013, m.nonblocking));
	CUDA(cudaStreamEndCapture(m.nonblocking, &graph));
	CUDA(cudaGraphInstantiate(&runnable, graph, 0));
	CUDA(cudaGraphLaunch(runnable, m.stream));
	CUDA(cudaGraphLaunch(runnable, m.stream));
}

// From and to managed memory: neither side is host or device for sure.
static void managed(const Memory &m)
{
	CUDA(cudaMemcpy(m.device, m.managed, 9029, cudaMemcpyDefault));
	CUDA(cudaMemcpy(m.managed, m.device, 9041, cudaMemcpyDefault));
}

static void await_line()
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

int main(int argc, char **argv)
{
	bool wait = argc > 1 && !strcmp(argv[1], "--wait");
	Memory m = take();

	if (wait) {
		printf("READY %d\n", getpid());
		fflush(stdout);
		await_line();
	}
	plain(m);
	by_address(m);
	asynchronous(m);
	shaped(m);
	batched(m);
	replayed(m);
	managed(m);
	CUDA(cudaDeviceSynchronize());
	printf("DONE\n");
	fflush(stdout);
	if (wait)
		await_line();
	return 0;
}

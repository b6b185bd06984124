// Answers requests: a thread makes them, two threads take them and replay a graph of a small network for each; who is done is polled for.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                    \
	do {                                                                                           \
		cudaError_t error = (call);                                                            \
		if (error != cudaSuccess) {                                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
			exit(1);                                                                       \
		}                                                                                      \
	} while (0)

const int WIDTH = 1024, LAYERS = 24;

__global__ void layer(const float *in, const float *weights, float *out)
{
	int row = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;
	for (int i = 0; i < WIDTH; i++)
		sum += weights[i * WIDTH + row] * in[i];
	out[row] = sum > 0 ? sum : 0;
}

struct Queue {
	std::mutex mutex;
	std::condition_variable more;
	std::deque<int> requests;
	bool over = false;
};

static bool take(Queue &queue, int &request)
{
	std::unique_lock<std::mutex> lock(queue.mutex);
	queue.more.wait(lock, [&] { return queue.over || !queue.requests.empty(); });
	if (queue.requests.empty())
		return false;
	request = queue.requests.front();
	queue.requests.pop_front();
	return true;
}

static void serve(Queue &queue, long &answered)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t ready;
	cudaEvent_t done;
	float *values[2], *weights, *host;
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	CHECK(cudaMallocHost(&host, WIDTH * sizeof(float)));
	for (float *&value : values)
		CHECK(cudaMalloc(&value, WIDTH * sizeof(float)));
	CHECK(cudaMalloc(&weights, LAYERS * WIDTH * WIDTH * sizeof(float)));
	CHECK(cudaMemsetAsync(weights, 0, LAYERS * WIDTH * WIDTH * sizeof(float), stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(values[0], host, WIDTH * sizeof(float), cudaMemcpyHostToDevice, stream));
	for (int i = 0; i < LAYERS; i++)
		layer<<<WIDTH / 128, 128, 0, stream>>>(values[i & 1], weights + (size_t)i * WIDTH * WIDTH,
						       values[!(i & 1)]);
	CHECK(cudaMemcpyAsync(host, values[LAYERS & 1], WIDTH * sizeof(float), cudaMemcpyDeviceToHost,
			      stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&ready, graph, 0));
	for (int request; take(queue, request); answered++) {
		for (int i = 0; i < WIDTH; i++)
			host[i] = request % (i + 1);
		CHECK(cudaGraphLaunch(ready, stream));
		CHECK(cudaEventRecord(done, stream));
		while (cudaEventQuery(done) == cudaErrorNotReady)
			std::this_thread::yield();
	}
	CHECK(cudaGraphExecDestroy(ready));
	CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	int requests = argc > 1 ? atoi(argv[1]) : 4000;
	Queue queue;
	long answered[2] = {};
	std::vector<std::thread> servers;
	for (long &count : answered)
		servers.emplace_back(serve, std::ref(queue), std::ref(count));
	for (int i = 0; i < requests; i++) {
		std::this_thread::sleep_for(std::chrono::microseconds(1000));
		std::lock_guard<std::mutex> lock(queue.mutex);
		queue.requests.push_back(i);
		queue.more.notify_one();
	}
	{
		std::lock_guard<std::mutex> lock(queue.mutex);
		queue.over = true;
		queue.more.notify_all();
	}
	for (std::thread &server : servers)
		server.join();
	printf("%ld answers\n", answered[0] + answered[1]);
	return 0;
}

// Hands out and frees tensors in four threads, some of which fail; prints its own book.
// with "wait": first waits until all three probes are looked at, and goes on afterwards until none is
// with "segment": first takes memory from the driver, which tensors lie in
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" void *tensor_new(size_t size, int device, int64_t stream);
extern "C" void tensor_delete(void *pointer);
extern "C" void tensor_delete_uncached(void *pointer);
extern "C" unsigned tensor_watchers();
extern "C" void tensor_segment(uintptr_t start);

constexpr unsigned PROBES = 3;

struct Book {
    uint64_t handed_out, bytes, freed, held_bytes, failed;
};

static void work(int thread, Book *book)
{
    std::mt19937 random(thread);
    std::vector<std::pair<void *, size_t>> held;
    for (int round = 0; round < 2000; round++) {
        size_t size = 1 + random() % 3000000;
        if (round % 50 == 0)
            size = size_t{1} << 41;
        try {
            held.emplace_back(tensor_new(size, thread - 1, -thread), size);
            book->handed_out++;
            book->bytes += size;
            book->held_bytes += size;
        } catch (const std::bad_alloc &) {
            book->failed++;
        }
        if (held.size() > 8 || (round % 3 == 0 && !held.empty())) {
            size_t at = random() % held.size();
            (round % 2 ? tensor_delete : tensor_delete_uncached)(held[at].first);
            book->freed++;
            book->held_bytes -= held[at].second;
            held.erase(held.begin() + at);
        }
    }
}

static bool take_segment()
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
    auto call = [&](const char *name) { return driver ? dlsym(driver, name) : nullptr; };
    auto init = reinterpret_cast<int (*)(unsigned)>(call("cuInit"));
    auto retain = reinterpret_cast<int (*)(void **, int)>(call("cuDevicePrimaryCtxRetain"));
    auto use = reinterpret_cast<int (*)(void *)>(call("cuCtxSetCurrent"));
    auto take = reinterpret_cast<int (*)(uint64_t *, size_t)>(call("cuMemAlloc_v2"));
    uint64_t address;
    if (!init || !retain || !use || !take)
        return false;
    if (init(0) || retain(&context, 0) || use(context) || take(&address, size_t{1} << 30))
        return false;
    tensor_segment(address);
    return true;
}

int main(int count, char **arguments)
{
    bool wait = count > 1 && !strcmp(arguments[1], "wait");
    if (count > 1 && !strcmp(arguments[1], "segment") && !take_segment())
        return 1;
    unsigned before = tensor_watchers();
    while (wait && tensor_watchers() < PROBES)
        usleep(1000);
    tensor_new(0, 0, 0);
    Book books[4] = {}, sum = {};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++)
        threads.emplace_back(work, thread, books + thread);
    for (auto &thread : threads)
        thread.join();
    for (const Book &book : books) {
        sum.handed_out += book.handed_out;
        sum.bytes += book.bytes;
        sum.freed += book.freed;
        sum.held_bytes += book.held_bytes;
        sum.failed += book.failed;
    }
    unsigned during = tensor_watchers();
    printf("{\"handed_out\":%lu,\"bytes\":%lu,\"freed\":%lu,\"held_bytes\":%lu,\"failed\":%lu,\"before\":%u,\"during\":%u}\n",
           sum.handed_out, sum.bytes, sum.freed, sum.held_bytes, sum.failed, before, during);
    fflush(stdout);
    // whoever has put probes here may count from a little later on
    while (wait && tensor_watchers()) {
        tensor_delete(tensor_new(1, 0, 0));
        usleep(1000);
    }
    return 0;
}

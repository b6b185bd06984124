// The marked places of PyTorch's allocator in a library of its name: the same probes, semaphores and arguments.
#include "static_probe.h"
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>

extern "C" {
PROBE_SEMAPHORE(torch_sdt_semaphore_pytorch_malloc);
PROBE_SEMAPHORE(torch_sdt_semaphore_pytorch_free);
}

namespace {
std::mutex mutex;
std::map<uintptr_t, size_t> blocks;
uintptr_t next = 0x7f0000000000;

// first fit in an address range, so that freed addresses are handed out again
void *block_of(size_t size)
{
    std::lock_guard<std::mutex> lock(mutex);
    uintptr_t at = next;
    for (const auto &[start, length] : blocks) {
        if (at + size <= start)
            break;
        at = start + length;
    }
    blocks[at] = (size + 511) / 512 * 512;
    return reinterpret_cast<void *>(at);
}
} // namespace

// from here on tensors lie there
extern "C" void tensor_segment(uintptr_t start)
{
    next = start;
}

extern "C" void *tensor_new(size_t size, int device, int64_t stream)
{
    if (size >= size_t{1} << 40)
        throw std::bad_alloc();
    void *pointer = size ? block_of(size) : nullptr;
    int8_t index = static_cast<int8_t>(device);
    if (size && torch_sdt_semaphore_pytorch_malloc)
        __asm__ __volatile__(PROBE_NOTE("nop", "pytorch", "malloc", "torch_sdt_semaphore_pytorch_malloc",
                                        "-8@%0 -1@%1 -8@%2 -8@%3") //
                             ".byte 0xe9, 0, 0, 0, 0\n" // a long jump follows, as in PyTorch 2.11
                             :
                             : "nor"(pointer), "r"(index), "nor"(size), "m"(stream));
    return pointer;
}

static inline __attribute__((always_inline)) void freed(void *pointer)
{
    if (torch_sdt_semaphore_pytorch_free)
        __asm__ __volatile__(PROBE_NOTE("nop", "pytorch", "free", "torch_sdt_semaphore_pytorch_free", "-8@%0")
                             :
                             : "nor"(pointer));
    std::lock_guard<std::mutex> lock(mutex);
    blocks.erase(reinterpret_cast<uintptr_t>(pointer));
}

extern "C" void tensor_delete(void *pointer)
{
    freed(pointer);
}

extern "C" void tensor_delete_uncached(void *pointer)
{
    freed(pointer);
}

// how often somebody looks, by the program's own counters
extern "C" unsigned tensor_watchers()
{
    return torch_sdt_semaphore_pytorch_malloc + torch_sdt_semaphore_pytorch_free;
}

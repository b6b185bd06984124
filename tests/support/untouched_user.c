/* Gives the driver strings in pages of a file that nobody has touched: FILE has one in each page. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuModuleLoad(void **module, const char *name);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

struct handle {
    uint32_t tag, pad;
    const char *name;
};

int main(int count, char **words) {
    int file = count > 1 ? open(words[1], O_RDONLY) : -1;
    char *fixed = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE, file, 0);
    char *writable = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    struct handle handle = {2, 0, fixed}, nowhere = {2, 0, (char *)0x10};
    void *module;

    if (fixed == MAP_FAILED || writable == MAP_FAILED)
        return 1;
    /* what lies around a page that is touched is mapped with it, unless asked not to */
    madvise(fixed, 3 * 4096, MADV_RANDOM);
    madvise(writable, 3 * 4096, MADV_RANDOM);
    cuInit(0);
    for (int i = 0; i < 3; i++)
        cuLaunchKernel(&handle, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    cuLaunchKernel(&nowhere, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    cuModuleLoad(&module, fixed + 4096);
    cuModuleLoad(&module, writable + 2 * 4096);
    sleep(1); /* as a program that goes on */
    return 0;
}

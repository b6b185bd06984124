/* Looks like a Python interpreter whose memory is that of a file: the one that HANGS_AT names. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

char _PyRuntime[8192] __attribute__((aligned(4096))) = {1};
unsigned long Py_Version = 0x030b07f0;

__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("HANGS_AT"), O_RDONLY);
    if (file < 0 || mmap(_PyRuntime, sizeof(_PyRuntime), PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
        abort();
    close(file);
}

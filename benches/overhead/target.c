/* Functions that cost nothing, under the names of CUDA ones: what a hook adds to them is the hook. They begin as
 * those of libcudart do, with `push %rbp`. Built as libcudart.so.13 and libcuda.so.1, and with -DBEFORE='"empty_"' as a library that no
 * tracer takes for CUDA's.
 */
#ifndef BEFORE
#define BEFORE ""
#endif
#define FUNCTION(name) DEFINE(BEFORE #name)
#define DEFINE(name)                                                                  \
	__asm__(".text\n.globl " name "\n.type " name ",@function\n.p2align 4\n" name \
		":\npush %rbp\nmov %rsp,%rbp\nxor %eax,%eax\npop %rbp\nret\n"         \
		".size " name ",.-" name "\n")

/* what holds functions of CUDA loads the driver by this name */
__attribute__((used)) static const char driver[] = "libcuda.so.1";

FUNCTION(cudaMemcpyAsync);
FUNCTION(cudaLaunchKernel);
FUNCTION(cudaMalloc);
FUNCTION(cudaStreamSynchronize);
FUNCTION(cudaGetDevice);
FUNCTION(cuMemcpyHtoDAsync_v2);
FUNCTION(cuLaunchKernel);
FUNCTION(cuMemAlloc_v2);
FUNCTION(cuStreamSynchronize);
/* unknown to the catalogue: hooked at its entry alone, with its six registers */
FUNCTION(cudaBenchEntryOnly);

/* Functions that begin with an instruction of each kind, and one that loads a library. */
#include <dlfcn.h>
#include <stddef.h>

#define PLACE(name, code)                                                         \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n.balign 16\n" name \
            ":\n" code "\nret\n.size " name ", . - " name "\n")

PLACE("place_push", "push %rbp\nmov %rdi, %rax\npop %rbp");
PLACE("place_nop", ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\nmov %rdi, %rax");
/* nothing that the kernel emulates comes before the end */
PLACE("place_stepped", "xor %eax, %eax\nmov %rdi, %rax");

int place_load(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    int (*value)(void) = library ? (int (*)(void))dlsym(library, "late_value") : NULL;
    return value ? value() : -1;
}

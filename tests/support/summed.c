/* Calls whose sums are known, by threads that meet each group at the same time. */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

__attribute__((noinline)) int sum_work(size_t size, int kind, const char *path, int64_t delta, uint32_t *out) {
    *out = (uint32_t)size + 1;
    return kind == 3 ? -1 : (int)(delta < 0);
}

__attribute__((noinline)) int64_t sum_place(int64_t a, int64_t b);

/* By hand, so that places within it are known: the first two instructions have 3 bytes each. */
__asm__(".globl sum_place\n"
        ".type sum_place, @function\n"
        "sum_place:\n"
        "  mov %rdi, %rax\n"
        "  add %rsi, %rax\n"
        "  nop\n"
        "  ret\n"
        ".size sum_place, . - sum_place\n");

static jmp_buf back;

__attribute__((noinline)) void longjmp_out(int value) { longjmp(back, value); }

/* Leaves `longjmp_out` by another way than its return. */
int sum_jump(int value) {
    int came = setjmp(back);
    if (!came)
        longjmp_out(value);
    return came;
}

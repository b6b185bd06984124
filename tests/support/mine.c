#include "mine.h"
#include <unistd.h>

int mine_data = 5;

int mine_eight(const char *name, uint32_t a, int64_t b, void *p, size_t size, uint8_t small, const char *second,
               int32_t last) {
    /* reading them brings their page into memory */
    return (name && name[0] ? 1 : 0) + (int)a + (int)b + (p ? 1 : 0) + (int)size + small + (second > (char *)4096 && second[0]) + last;
}

int mine_fill(const struct box *box, uint64_t *result) {
    if (!box)
        return 7;
    *result = (uint64_t)box->width * box->height;
    return 0;
}

double mine_scale(double x, uint32_t n) { return x * n; }
long mine_get_one(long value) { return value + 1; }
long mine_get_two(long value) { return value + 2; }
long mine_get_alias(long value) __attribute__((alias("mine_get_two")));

void mine_wait(void) {
    volatile int microseconds = 1000;
    for (;;)
        usleep((useconds_t)microseconds);
}

/* A leaf that keeps its value below the stack pointer, and has a 5-byte nop in the middle, as a USDT site. */
__asm__(".globl mine_red_zone\n"
        ".type mine_red_zone, @function\n"
        "mine_red_zone:\n"
        "  push %rbp\n"
        "  mov %rsp, %rbp\n"
        "  mov %rdi, -8(%rsp)\n"
        "  mov %rdi, -16(%rsp)\n"
        "  .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
        "  mov -8(%rsp), %rax\n"
        "  add -16(%rsp), %rax\n"
        "  pop %rbp\n"
        "  ret\n"
        ".size mine_red_zone, . - mine_red_zone\n"
        /* no instruction begins with this byte */
        ".globl mine_undecodable\n"
        ".type mine_undecodable, @function\n"
        "mine_undecodable:\n"
        "  .byte 0x06, 0x06, 0x06\n"
        ".size mine_undecodable, . - mine_undecodable\n");

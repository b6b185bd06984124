/* Functions whose arguments lie in each kind of place: registers, the stack, a structure by value or by its address. */
#include "mine.h"

uint64_t mine_scale(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
		    uint64_t i)
{
	return a + b + c + d + e + f + g * 2 + h * 3 + i * 5;
}

uint64_t mine_box(struct box box, uint32_t more)
{
	return box.width + box.depth + more;
}

__attribute__((noinline)) static uint64_t below(uint64_t n)
{
	return n ? mine_scale(n, 0, 0, 0, 0, 0, 0, 0, 0) + below(n - 1) : 0;
}

uint64_t mine_deep(uint64_t n)
{
	return below(n) + 1;
}

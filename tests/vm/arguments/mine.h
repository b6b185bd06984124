#include <stdint.h>

struct box {
	uint64_t width, height, length, depth;
};

uint64_t mine_scale(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
		    uint64_t i);
uint64_t mine_box(struct box box, uint32_t more);
uint64_t mine_deep(uint64_t n);

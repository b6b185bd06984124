/* A library that gpuscope has never heard of. */
#include <stddef.h>
#include <stdint.h>

struct box {
    uint32_t width, height;
    const char *label;
    struct {
        int16_t x, y;
        uint8_t kind;
    } place;
};

int mine_eight(const char *name, uint32_t a, int64_t b, void *p, size_t size, uint8_t small, const char *second,
               int32_t last);
int mine_fill(const struct box *box, uint64_t *result);
double mine_scale(double x, uint32_t n);
long mine_get_one(long value);
long mine_get_two(long value);
long mine_get_alias(long value); /* another name of mine_get_two */
long mine_red_zone(long value);
void mine_wait(void);

// A library whose functions have arguments of every kind that a hook file can describe. See ../hooks-reference.md.
#ifndef MYLIB_H
#define MYLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
	uint32_t width, height;
	const void *pixels;
	char format[8];
};
struct tag {
	uint64_t high, low;
};
struct size3 {
	uint32_t x, y, z;
};
enum speed { SLOW, FAST };
enum status { MY_OK, MY_BUSY = 3, MY_NO_MEMORY = 12 };

int my_open(const char *, uint32_t, void **);
int my_numbers(uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, bool, size_t);
int my_scale(double, float, void *, unsigned);
int my_name(void *, char *, size_t *);
int my_launch(struct size3, struct size3, void (*)(int), enum speed);
int my_upload(uint64_t, const struct image *);
int my_mark(struct tag);
uint32_t my_stat_open(void *);
uint32_t my_stat_bytes(void *);
void my_close(void *);
int my_secret(int, int);

#endif

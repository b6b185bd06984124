// Calls each function of mylib once or twice. See ../hooks.md.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
int my_open(const char *, uint32_t, void **);
int my_numbers(uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, bool, size_t);
int my_scale(double, float, void *, unsigned);
int my_name(void *, char *, size_t *);
int my_launch(struct size3, struct size3, void (*)(int), int);
int my_upload(uint64_t, const struct image *);
int my_mark(struct tag);
uint32_t my_stat_open(void *);
uint32_t my_stat_bytes(void *);
void my_close(void *);
int my_secret(int, int);

static void done(int status)
{
	(void)status;
}

int main(void)
{
	void *handle = NULL;
	char name[32], path[32];
	size_t length = sizeof name;
	struct image image = { 640, 480, name, "RGBA" };

	strcpy(path, "/dev/my \"device\"");
	my_open(path, 9, &handle);
	strcpy(path, "/dev/mydevice");
	my_open(path, 2, &handle);
	my_numbers(200, -5, 60000, -300, 4000000000u, -70000, 1ull << 40, -1, true, 1536);
	my_scale(2.5, 1.0f, name, 32);
	my_name(handle, name, &length);
	my_launch((struct size3){ 128, 2, 1 }, (struct size3){ 256, 1, 1 }, done, 1);
	my_launch((struct size3){ 1, 1, 1 }, (struct size3){ 32, 1, 1 }, done, 0);
	my_upload(0x7f0000001000, &image);
	my_mark((struct tag){ 1, 2 });
	my_stat_open(handle);
	my_stat_bytes(handle);
	my_secret(40, 2);
	my_close(handle);
	return 0;
}

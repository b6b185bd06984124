// The functions of mylib.h.
#include "mylib.h"
#include <stdlib.h>
#include <string.h>

int my_open(const char *path, uint32_t flags, void **out)
{
	(void)path;
	if (flags > 7)
		return MY_NO_MEMORY;
	*out = malloc(1);
	return MY_OK;
}

int my_numbers(uint8_t a, int8_t b, uint16_t c, int16_t d, uint32_t e, int32_t f, uint64_t g, int64_t h,
	       bool i, size_t j)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)i, (void)j;
	return MY_OK;
}

int my_scale(double by, float plus, void *data, unsigned count)
{
	(void)by, (void)plus, (void)data, (void)count;
	return MY_OK;
}

int my_name(void *handle, char *name, size_t *length)
{
	(void)handle;
	strcpy(name, "first light");
	*length = 11;
	return MY_OK;
}

int my_launch(struct size3 grid, struct size3 block, void (*done)(int), enum speed speed)
{
	(void)grid, (void)block, (void)done;
	return speed == FAST ? MY_OK : MY_BUSY;
}

int my_upload(uint64_t to, const struct image *image)
{
	(void)to, (void)image;
	return MY_OK;
}

int my_mark(struct tag tag)
{
	(void)tag;
	return MY_OK;
}

uint32_t my_stat_open(void *handle)
{
	return handle != NULL;
}

uint32_t my_stat_bytes(void *handle)
{
	return handle ? 4096 : 0;
}

void my_close(void *handle)
{
	free(handle);
}

int my_secret(int a, int b)
{
	return a + b;
}

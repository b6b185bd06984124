// Calls each function of mylib once or twice. See ../hooks-reference.md.
#include "mylib.h"
#include <string.h>

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

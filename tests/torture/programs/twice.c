/* Programs that become another one twice, quickly, the second a setuid one, which says whose rights it has. Argument: how often. */
#include "cuda.h"
#ifdef STATIC
#include "cuda.c"
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program that nobody has seen before: it is looked at when it begins. */
static void copy(const char *from, const char *to)
{
	int source = open(from, O_RDONLY), copy = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
	struct stat about;

	if (fstat(source, &about) || sendfile(copy, source, NULL, (size_t)about.st_size) != about.st_size)
		exit(3);
	close(source);
	close(copy);
}

static int lost(const char *program)
{
	pid_t child;
	int status;

	copy(program, "./first");
	child = vfork();
	if (!child) {
		execl("./first", "first", "again", NULL);
		_exit(9);
	}
	if (waitpid(child, &status, 0) != child || unlink("./first"))
		exit(3);
	return status != 0;
}

int main(int count, char **arguments)
{
	int times = count > 1 ? atoi(arguments[1]) : 0, rights_lost = 0;

	if (count > 1 && !strcmp(arguments[1], "rights"))
		return geteuid() != 0;
	if (count > 1 && !strcmp(arguments[1], "again")) {
		execl("./setuid", "setuid", "rights", NULL);
		return 9;
	}
	if (cuInit(0))
		return 2;
	for (int i = 0; i < times; i++)
		rights_lost += lost(i % 2 ? "./twice" : "./twice-static");
	printf("lost %d of %d\n", rights_lost, times);
	return rights_lost != 0;
}

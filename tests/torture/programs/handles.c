/* Handles that are none: numbers, pages that are not there or not to be read, and one that another thread takes away and
 * brings back all the time. The library accepts them, so whoever looks behind a handle because the call has succeeded dies.
 */
#include "cuda.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#define PAGE 4096
#define ROUNDS 20000

static atomic_int done;
static char *restless;

static char *pages(int rights)
{
	return mmap(NULL, 2 * PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int launch(uintptr_t kernel)
{
	return cuLaunchKernel((void *)kernel, 1, 1, 1, 32, 1, 1, 0, (void *)kernel, NULL, NULL);
}

static void *come_and_go(void *unused)
{
	while (!atomic_load(&done)) {
		munmap(restless, PAGE);
		mmap(restless, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	return unused;
}

/* Of a page that is there for the first call, and gone for the next. */
static int vanishes(void)
{
	char *page = pages(PROT_READ | PROT_WRITE);
	int wrong = launch((uintptr_t)page);

	munmap(page, 2 * PAGE);
	return wrong + launch((uintptr_t)page);
}

static int races(void)
{
	int wrong = 0;
	pthread_t other;

	restless = pages(PROT_READ | PROT_WRITE);
	if (pthread_create(&other, NULL, come_and_go, NULL))
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		wrong += launch((uintptr_t)restless + (uintptr_t)i % 256 * 8);
	atomic_store(&done, 1);
	pthread_join(other, NULL);
	return wrong;
}

int main(void)
{
	char *gone = pages(PROT_READ), *forbidden = pages(PROT_NONE), *half = pages(PROT_READ);
	uintptr_t of[] = { 1,
			   8,
			   (uintptr_t)-1,
			   (uintptr_t)-8,
			   0x800000000000,
			   0x10000,
			   (uintptr_t)gone,
			   (uintptr_t)forbidden,
			   (uintptr_t)half + PAGE - 4 };
	int wrong = cuInit(0);

	munmap(gone, 2 * PAGE);
	munmap(half + PAGE, PAGE);
	for (int again = 0; again < 3; again++)
		for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
			wrong += launch(of[i]);
	for (int i = 0; i < 100; i++)
		wrong += vanishes();
	wrong += races();
	printf("%d wrong\n", wrong);
	return wrong != 0;
}

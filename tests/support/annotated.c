/* A program that annotates what it does with nvtx3's headers: each argument names a part of it, which prints the levels that it
 * was told.
 */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static nvtxEventAttributes_t of(const char *name)
{
	nvtxEventAttributes_t attributes = { 0 };

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = name;
	return attributes;
}

static void nested(void)
{
	int levels[] = { nvtxRangePushA("outer"), nvtxRangePushW(L"größer ✓"), nvtxRangePushA("inner") };

	nvtxMarkA("a mark");
	printf("levels %d %d %d", levels[0], levels[1], levels[2]);
	for (int i = 0; i < 4; i++)
		printf(" %d", nvtxRangePop());
	printf("\n");
}

static void domains(void)
{
	nvtxDomainHandle_t data = nvtxDomainCreateA("data"), train = nvtxDomainCreateA("train");
	nvtxStringHandle_t known = nvtxDomainRegisterStringA(train, "registered");
	nvtxEventAttributes_t load = of("load"), step = of("step");

	step.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	step.message.registered = known;
	step.category = 5;
	step.colorType = NVTX_COLOR_ARGB;
	step.color = 0xff76b900;
	printf("domains %d %d", nvtxDomainRangePushEx(data, &load), nvtxDomainRangePushEx(train, &step));
	/* not nested: each is its own domain's */
	printf(" %d %d\n", nvtxDomainRangePop(data), nvtxDomainRangePop(train));
	nvtxDomainMarkEx(data, &load);
	nvtxDomainDestroy(data);
}

static void names(void)
{
	nvtxDomainHandle_t train = nvtxDomainCreateA("train");
	nvtxEventAttributes_t step = of("step");

	nvtxNameOsThreadA((uint32_t)getpid(), "the only one");
	nvtxNameCategoryW(5, L"of none");
	nvtxDomainNameCategoryA(train, 5, "phases");
	step.category = 5;
	nvtxDomainRangePushEx(train, &step);
	nvtxDomainRangePop(train);
	nvtxMarkEx(&step);
}

static void *on_thread(void *id)
{
	nvtxRangePushA("of a thread");
	nvtxRangePop();
	nvtxRangeEnd(*(nvtxRangeId_t *)id);
	return NULL;
}

static void threads(void)
{
	nvtxRangeId_t id = nvtxRangeStartA("ends elsewhere");
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, on_thread, &id);
		pthread_join(thread, NULL);
	}
}

static void odd(void)
{
	char long_name[400];
	nvtxEventAttributes_t none = { 0 };

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	nvtxRangePushA("\033[2J \"quoted\" \xff\xfe");
	nvtxRangePushA(long_name);
	nvtxRangePushA("");
	nvtxRangePushA((const char *)0x1234560000);
	nvtxRangePushA(NULL);
	nvtxRangePushEx(NULL);
	nvtxRangePushEx(&none);
	for (int i = 0; i < 7; i++)
		nvtxRangePop();
	nvtxDomainRangePop((nvtxDomainHandle_t)0x77);
	nvtxRangeEnd(12345);
}

static void forks(void)
{
	nvtxRangePushA("around a fork");
	if (!fork()) {
		nvtxRangePushA("of a child");
		nvtxRangePop();
		_exit(0);
	}
	wait(NULL);
	nvtxRangePop();
}

static void many(long count)
{
	for (long i = 0; i < count; i++) {
		nvtxRangePushA("one of many");
		nvtxRangePop();
	}
}

static void many_domains(long count)
{
	char name[32];

	for (long i = 0; i < count; i++) {
		nvtxEventAttributes_t attributes = of("x");

		snprintf(name, sizeof(name), "domain %ld", i);
		nvtxDomainMarkEx(nvtxDomainCreateA(name), &attributes);
	}
}

static void deep(long depth)
{
	for (long i = 0; i < depth; i++)
		nvtxRangePushA("deep");
	for (long i = 0; i < depth; i++)
		nvtxRangePop();
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static int by_number(const void *one, const void *other)
{
	double apart = *(const double *)one - *(const double *)other;

	return (apart > 0) - (apart < 0);
}

#define ROUNDS 25
#define TIMES 5000

/* What a range costs, in bursts that a thread's memory for events holds, with pauses in which it is read. */
static void timed(void)
{
	static const char *const kinds[] = { "literal", "registered", "on the heap", "mark" };
	nvtxDomainHandle_t domain = nvtxDomainCreateA("train");
	nvtxEventAttributes_t registered = of(NULL);
	struct timespec pause = { 0, 40000000 };
	char *heap = strdup("forward of layer 12");
	double took[4][ROUNDS];

	registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	registered.message.registered = nvtxDomainRegisterStringA(domain, heap);
	for (int round = 0; round < ROUNDS; round++)
		for (int kind = 0; kind < 4; kind++) {
			double begin = now_ns();

			for (int i = 0; i < TIMES; i++) {
				if (kind == 3) {
					nvtxMarkA("forward of layer 12");
				} else if (kind == 1) {
					nvtxDomainRangePushEx(domain, &registered);
					nvtxDomainRangePop(domain);
				} else {
					nvtxRangePushA(kind ? heap : "forward of layer 12");
					nvtxRangePop();
				}
			}
			took[kind][round] = (now_ns() - begin) / TIMES;
			nanosleep(&pause, NULL);
		}
	for (int kind = 0; kind < 4; kind++) {
		qsort(took[kind], ROUNDS, sizeof(double), by_number);
		printf("%s: %.0f ns (%.0f to %.0f)\n", kinds[kind], took[kind][ROUNDS / 2], took[kind][0],
		       took[kind][ROUNDS - 1]);
	}
	free(heap);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *what = argv[i];

		if (!strcmp(what, "nested"))
			nested();
		else if (!strcmp(what, "domains"))
			domains();
		else if (!strcmp(what, "names"))
			names();
		else if (!strcmp(what, "threads"))
			threads();
		else if (!strcmp(what, "odd"))
			odd();
		else if (!strcmp(what, "fork"))
			forks();
		else if (!strcmp(what, "many"))
			many(atol(argv[++i]));
		else if (!strcmp(what, "domains of"))
			many_domains(atol(argv[++i]));
		else if (!strcmp(what, "deep"))
			deep(atol(argv[++i]));
		else if (!strcmp(what, "time"))
			timed();
		else if (!strcmp(what, "open")) {
			nvtxRangePushA("never ends");
			nvtxRangeStartA("never ends, of no thread");
		} else if (!strcmp(what, "killed"))
			raise(SIGKILL);
		fflush(stdout);
	}
	return 0;
}

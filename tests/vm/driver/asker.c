/* Asks the stand-in for NVIDIA's driver in every way that programs do, and says what it did: one line "NAME COUNT" for
 * each kind of call, as a tracer should count them.
 *   a wrapper (number 211) around another request, an unknown number, a wrong size, an argument that is not there,
 *   an argument whose page is not resident, descriptors that were duplicated and passed to a child, calls from inside
 *   functions that are hooked, and an end without giving anything back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST(nr, size) (3u << 30 | (unsigned)(size) << 16 | 'F' << 8 | (nr))
#define MIB (1ull << 20)

struct alloc {
	uint32_t root, parent, object, class;
	uint64_t parameters, rights;
	uint32_t size, flags, status, pad;
};

struct control {
	uint32_t client, object, cmd, flags;
	uint64_t parameters;
	uint32_t size, status;
};

struct release {
	uint32_t root, parent, object, status;
};

struct wrapper {
	uint32_t cmd, size;
	uint64_t argument;
};

static int device;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "asker: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t make(int fd, uint32_t client, uint32_t class, uint64_t bytes)
{
	uint64_t parameters[16] = { [8] = bytes };
	struct alloc alloc = { .root = client, .parent = client, .class = class, .parameters = (uintptr_t)parameters,
			       .size = sizeof(parameters), .status = 0x55 };

	must(!ioctl(fd, REQUEST(0x2b, sizeof(alloc)), &alloc) && !alloc.status, "RM_ALLOC");
	return alloc.object;
}

/* Hooked by name: what they ask is theirs. */
__attribute__((noinline, visibility("default"))) uint32_t take_memory(uint32_t client, uint64_t bytes)
{
	uint32_t object = make(device, client, 0x40, bytes);
	struct control control = { .client = client, .object = object, .cmd = 0x503c0104 };

	must(!ioctl(device, REQUEST(0x2a, sizeof(control)), &control), "RM_CONTROL");
	return object;
}

__attribute__((noinline, visibility("default"))) void give_back(uint32_t client, uint32_t object)
{
	struct release release = { client, client, object, 0 };

	must(!ioctl(device, REQUEST(0x29, sizeof(release)), &release), "RM_FREE");
}

static void wrapped(uint32_t client)
{
	struct control control = { .client = client, .object = client, .cmd = 0xa06c0101 };
	struct wrapper wrapper = { 0x2a, sizeof(control), (uintptr_t)&control };

	ioctl(device, REQUEST(211, sizeof(wrapper)), &wrapper);
}

static void strange(void)
{
	uint64_t words[8] = { 0 };

	ioctl(device, REQUEST(0xa5, sizeof(words)), words); /* no table has it */
	ioctl(device, REQUEST(0x2a, 24), words);	    /* of a wrong size */
	must(ioctl(device, REQUEST(0x29, sizeof(struct release)), (void *)8) < 0, "an argument that is not there");
	must(ioctl(device, REQUEST(0xfe, 16), words) < 0, "a call that is refused");
}

/* The driver reads and writes it, a program of the kernel cannot before: the page is not there yet. */
static void not_resident(uint32_t client, uint32_t object)
{
	char path[] = "/tmp/asker.XXXXXX";
	int file = mkstemp(path);
	struct release release = { client, client, object, 0 }, *mapped;

	must(write(file, &release, sizeof(release)) == sizeof(release), "write");
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	must(mapped != MAP_FAILED, "mmap");
	madvise(mapped, 4096, MADV_DONTNEED);
	must(!ioctl(device, REQUEST(0x29, sizeof(release)), mapped), "RM_FREE");
	unlink(path);
	close(file);
}

static void by_a_child(uint32_t client)
{
	pid_t child = fork();
	int status;

	if (!child) {
		give_back(client, take_memory(client, 3 * MIB));
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child && !status, "the child");
}

int main(void)
{
	struct pollfd polled;
	uint32_t client, kept, first, uvm_words[4] = { 0 };
	int copy, uvm;

	must(open("/dev/nvidia7", O_RDWR) < 0, "a device that is not there");
	device = open("/dev/nvidiactl", O_RDWR);
	must(device >= 0, "/dev/nvidiactl");
	client = make(device, 0, 0x41, 0);
	first = take_memory(client, 64 * MIB);
	kept = take_memory(client, 5 * MIB);
	wrapped(client);
	strange();
	not_resident(client, first);
	by_a_child(client);
	mmap(NULL, 65536, PROT_READ, MAP_SHARED, device, 0);
	polled = (struct pollfd){ device, POLLIN, 0 };
	poll(&polled, 1, 0);
	copy = dup(device);
	close(device);
	device = copy;
	give_back(client, take_memory(client, 7 * MIB));
	uvm = open("/dev/nvidia-uvm", O_RDWR);
	must(uvm >= 0 && !ioctl(uvm, 0x30000001, uvm_words), "UVM_INITIALIZE");
	close(uvm);
	printf("asker: client %x keeps %x\n", client, kept);
	return 0;
}

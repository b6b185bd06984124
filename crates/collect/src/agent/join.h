/* How a process gets its memory, and how a thread waits for gpuscope: messages on a socket, with an end to each wait. */
#ifndef GPUSCOPE_AGENT_JOIN_H
#define GPUSCOPE_AGENT_JOIN_H

#include "clock.h"
#include "memory.h"

#define LONGEST_PATH 100
#define PATIENCE_S 2
#define AF_UNIX_ 1
#define SOCK_SEQPACKET_CLOEXEC (5 | 02000000)
#define SOL_SOCKET_ 1
#define SO_RCVTIMEO_ 20
#define SO_SNDTIMEO_ 21
#define MSG_NOSIGNAL_ 0x4000
#define MSG_CMSG_CLOEXEC_ 0x40000000
#define INTERRUPTED (-4)

struct unix_address {
	__u16 family;
	char path[LONGEST_PATH + 8];
};

struct message_head {
	void *name;
	__u32 name_bytes;
	__u32 pad;
	struct io_vector *vectors;
	__u64 vector_count;
	void *control;
	__u64 control_bytes;
	int flags;
	__u32 pad2;
};

struct passed {
	__u64 bytes;
	int level;
	int type;
	int fd[2];
};

static struct unix_address address;

static long connect_to_us(__s64 seconds)
{
	struct time_of patience = { seconds, 0 };
	long fd = SYS3(socket, AF_UNIX_, SOCK_SEQPACKET_CLOEXEC, 0);

	if (failed_call(fd))
		return fd;
	SYS6(setsockopt, fd, SOL_SOCKET_, SO_RCVTIMEO_, &patience, sizeof(patience), 0);
	SYS6(setsockopt, fd, SOL_SOCKET_, SO_SNDTIMEO_, &patience, sizeof(patience), 0);
	for (;;) {
		long error = SYS3(connect, fd, &address, sizeof(address));

		if (!failed_call(error))
			return fd;
		if (error != INTERRUPTED) {
			SYS1(close, fd);
			return error;
		}
	}
}

static bool send_message(long fd, const struct message *message)
{
	long sent;

	do
		sent = SYS6(sendto, fd, message, sizeof(*message), MSG_NOSIGNAL_, 0, 0);
	while (sent == INTERRUPTED);
	return sent == sizeof(*message);
}

/* Waits for the answer, and for the two descriptors that come with it, where `fds` is one. */
static bool receive_answer(long fd, int *fds, __s64 seconds)
{
	struct answer answer = { 0 };
	struct passed passed = { 0 };
	struct io_vector vector = { &answer, sizeof(answer) };
	__u64 end = read_clock() + (__u64)seconds * 1000000000ull;
	long received;

	do {
		struct message_head head = {
			.vectors = &vector,
			.vector_count = 1,
			.control = fds ? &passed : NULL,
			.control_bytes = fds ? sizeof(passed) : 0,
		};

		received = SYS3(recvmsg, fd, &head, MSG_CMSG_CLOEXEC_);
	} while (received == INTERRUPTED && read_clock() < end);
	if (fds) {
		bool whole =
			passed.bytes == sizeof(passed) && passed.level == SOL_SOCKET_ && passed.type == 1;

		fds[0] = whole ? passed.fd[0] : -1;
		fds[1] = whole ? passed.fd[1] : -1;
	}
	return received == sizeof(answer) && answer.magic == ARENA_MAGIC && answer.accepted;
}

/* False: nobody has answered, or gpuscope does not want it. */
static bool ask(const struct message *message, int *fds, __s64 seconds)
{
	long fd = connect_to_us(seconds);
	bool answered;

	if (failed_call(fd))
		return false;
	answered = send_message(fd, message) && receive_answer(fd, fds, seconds);
	SYS1(close, fd);
	return answered;
}

#endif

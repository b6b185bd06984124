/* How the library meets gpuscope: it calls at the socket that the environment names, and gets the memory that both share.
 *
 * The connection stays open: where it ends, gpuscope is gone.
 */

/* Nobody is waited for without an end. */
static void be_patient(int socket)
{
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };

	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

static int connected(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	be_patient(fd);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

/* The file that comes with the answer, or -1. */
static int received_file(int socket)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} passed = { 0 };
	struct activity_message answer = { 0 };
	struct iovec part = { &answer, sizeof(answer) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &passed, .msg_controllen = sizeof(passed)
	};
	struct cmsghdr *header;
	int file = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(answer))
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(&file, CMSG_DATA(header), sizeof(file));
	return file;
}

/* In place of what an earlier gpuscope has shared: CUPTI may still write there, and address space is not for ever. */
static void *in_place(void *at)
{
	if (!own.shared)
		return at;
	return mremap(at, SHARED_BYTES, SHARED_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, own.shared);
}

static int map_shared(int file)
{
	void *at = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), *moved = MAP_FAILED;

	close(file);
	if (at == MAP_FAILED)
		return 0;
	pthread_mutex_lock(&lock);
	if (((struct activity_head *)at)->magic == ACTIVITY_MAGIC)
		moved = in_place(at);
	pthread_mutex_unlock(&lock);
	if (moved == MAP_FAILED) {
		munmap(at, SHARED_BYTES);
		return 0;
	}
	own.shared = moved;
	return 1;
}

/* Has gpuscope, at the other end of a connection, give us memory. */
static int greet(int socket)
{
	const struct activity_message greeting = { .magic = ACTIVITY_MAGIC };
	int file = -1;

	if (send(socket, &greeting, sizeof(greeting), MSG_NOSIGNAL) == sizeof(greeting))
		file = received_file(socket);
	if (file < 0 || !map_shared(file))
		return 0;
	own.socket = socket;
	return 1;
}

static int meet(const char *path)
{
	int socket = connected(path);

	if (socket < 0)
		return 0;
	if (greet(socket))
		return 1;
	close(socket);
	return 0;
}

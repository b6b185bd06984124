/* A program that may be asked later what its GPUs execute (gpuscope preload): a thread waits at a socket of its own until a
 * gpuscope of the same user, or root's, calls. CUPTI is neither loaded nor asked before.
 */

#define STANDBY "standby:"
#define DOORS "gpuscope-doors-" /* as the agent's doors: a folder of the user's that nobody else may enter */

/* A descriptor of ours. The program may close what it has not opened, and have another file there. */
struct held {
	int fd;
	ino_t inode;
};

/* The C library's own have new versions. */
static int look_at(int file, const char *path, struct stat *status, int flags)
{
	return syscall(SYS_newfstatat, file, path, status, flags);
}

static struct held listening = { .fd = -1 };

static struct held hold(int fd)
{
	struct stat status;

	return (struct held){ .fd = fd,
			      .inode = look_at(fd, "", &status, AT_EMPTY_PATH) ? 0 : status.st_ino };
}

static int is_held(struct held held)
{
	struct stat status;

	return held.fd >= 0 && !look_at(held.fd, "", &status, AT_EMPTY_PATH) && S_ISSOCK(status.st_mode) &&
	       status.st_ino == held.inode;
}

static void let_go(struct held held)
{
	if (is_held(held))
		close(held.fd);
}

/* A folder that only this user may look at; what somebody else has planted is none. */
static int is_ours_alone(const char *folder)
{
	struct stat status;

	return !look_at(AT_FDCWD, folder, &status, AT_SYMLINK_NOFOLLOW) && S_ISDIR(status.st_mode) &&
	       status.st_uid == geteuid() && !(status.st_mode & 077);
}

static int listen_in(const char *place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[64];
	int fd;

	snprintf(folder, sizeof(folder), "%s/" DOORS "%u", place, geteuid());
	mkdir(folder, 0700);
	if (!is_ours_alone(folder))
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%d.gpu", folder, getpid());
	unlink(address.sun_path); /* of a process that had our number */
	if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 4))
		return fd;
	close(fd);
	return -1;
}

/* Of this user, or root's. */
static int is_friend(int connection)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

static void forget_all(struct held connection)
{
	pthread_mutex_lock(&lock);
	/* what CUPTI hands over late still finds memory there; a gpuscope that the program has closed still reads it */
	if (is_held(connection))
		madvise(own.shared, SHARED_BYTES, MADV_REMOVE);
	forget_names();
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&life.lock);
	life.ended = 0;
	if (life.ending != ENDING_PROCESS)
		life.ending = ENDING_NONE;
	pthread_mutex_unlock(&life.lock);
	let_go(connection);
	own.socket = -1;
	is_open = 0;
}

/* Until gpuscope has gone, or has been closed by the program. */
static void wait_for_end(struct held connection)
{
	struct pollfd end = { .fd = connection.fd };

	while (is_held(connection) && (poll(&end, 1, -1) >= 0 || errno == EINTR)) {
		if (end.revents)
			return;
	}
}

/* Records as long as gpuscope is there. */
static void attend(int connection)
{
	struct held held = hold(connection);
	uint64_t late;

	be_patient(connection);
	if (!is_friend(connection) || !greet(connection)) {
		close(connection);
		return;
	}
	head()->began = now_ns();
	ask_cupti();
	if (on) {
		late = now_ns();
		write_turn(late, late, TURN_LATE); /* calls of before are not told of */
		look_after(NULL);
	}
	/* why there is nothing can be read as long */
	wait_for_end(held);
	forget_all(held);
}

static void *wait_for_gpuscope(void *unused)
{
	int connection;

	prctl(PR_SET_NAME, "gpuscope-gpu");
	while (!life.ending && is_held(listening)) {
		connection = accept4(listening.fd, NULL, NULL, SOCK_CLOEXEC);
		if (connection >= 0)
			attend(connection);
		else if (errno != EINTR && errno != ECONNABORTED)
			break;
	}
	let_go(listening);
	return NULL;
}

static void close_in_child(void)
{
	let_go(listening);
}

static void stand_by(void)
{
	int fd = listen_in("/dev/shm");

	if (fd < 0)
		fd = listen_in("/tmp");
	if (fd < 0)
		return;
	listening = hold(fd);
	own.waits = 1;
	pthread_atfork(NULL, NULL, close_in_child);
	if (start_thread(wait_for_gpuscope))
		let_go(listening);
}

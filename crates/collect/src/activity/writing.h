/* How records get into the ring. */

#define BATCH 64

/* Records on their way, and the names that they are to get. */
struct batch {
	int count;
	struct activity_record records[BATCH];
	const char *names[BATCH];
};

static struct activity_record *place_of(uint64_t number)
{
	return (struct activity_record *)(own.shared + SHARED_RING) + number % MOST_RECORDS;
}

static void write_batch(struct batch *batch)
{
	uint64_t written, taken;
	int at;

	pthread_mutex_lock(&lock);
	taken = __atomic_load_n((uint64_t *)(own.shared + SHARED_TAKEN), __ATOMIC_ACQUIRE);
	for (at = 0; at < batch->count && on; at++) {
		written = head()->written;
		if (written - taken >= MOST_RECORDS) {
			head()->full++;
			continue;
		}
		batch->records[at].name = number_of_name(batch->names[at]);
		if (batch->names[at] && !batch->records[at].name)
			head()->unnamed++;
		*place_of(written) = batch->records[at];
		__atomic_store_n(&head()->written, written + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	batch->count = 0;
}

static void count(__u64 *counter, uint64_t more)
{
	if (more)
		__atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

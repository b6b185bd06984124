/* What CUPTI is asked for, and how it is left: as whoever asks it next in this process expects it to be. */

static void *subscriber;

static const struct {
	uint32_t kind;
	uint32_t step;
} wanted[] = {
	{ CUPTI_KIND_CONCURRENT_KERNEL, STEP_KERNELS },
	{ CUPTI_KIND_MEMCPY, STEP_COPIES },
	{ CUPTI_KIND_MEMCPY2, STEP_COPIES },
	{ CUPTI_KIND_MEMSET, STEP_MEMSETS },
};

#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

static void disable_kinds(void)
{
	size_t at;

	for (at = 0; at < WANTED; at++)
		cupti.disable(wanted[at].kind);
	if (head()->graphs)
		cupti.disable(CUPTI_KIND_GRAPH_TRACE);
}

static void disable_copies(void)
{
	size_t at;

	for (at = 0; at < WANTED; at++) {
		if (wanted[at].step == STEP_COPIES)
			cupti.disable(wanted[at].kind);
	}
}

static int is_wanted(uint32_t step)
{
	return step != STEP_COPIES || !by_hand_since();
}

static int ask_for_wanted(uint32_t *step)
{
	size_t at;
	int error = CUPTI_OK;

	for (at = 0; at < WANTED && error == CUPTI_OK; at++) {
		*step = wanted[at].step;
		if (is_wanted(*step))
			error = cupti.enable(wanted[at].kind);
	}
	/* another thread may have put the first one meanwhile */
	if (by_hand_since())
		leave_copies();
	return error;
}

/* What CUPTI answers where it refuses; 0: all is asked for. */
static int ask_for_kinds(uint32_t *step)
{
	int error = ask_for_wanted(step);

	if (error != CUPTI_OK)
		return error;
	*step = STEP_GRAPHS;
	return head()->graphs ? cupti.enable(CUPTI_KIND_GRAPH_TRACE) : CUPTI_OK;
}

/* Of contexts and streams that are made, and of copies that are put into graphs. */
static void hear_of_what_is_made(uint32_t heard)
{
	static const uint32_t nodes[] = { CUPTI_GRAPH_ADD_MEMCPY_NODE, CUPTI_GRAPH_ADD_NODE,
					  CUPTI_GRAPH_ADD_NODE_V2, CUPTI_GRAPH_ADD_NODE_V3 };
	size_t at;

	for (at = 0; at < sizeof(nodes) / sizeof(nodes[0]); at++)
		cupti.enable_callback(heard, subscriber, CUPTI_DOMAIN_DRIVER, nodes[at]);
	cupti.enable_callback(heard, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_CREATED);
	cupti.enable_callback(heard, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_STREAM_CREATED);
}

/* Whether what buffers hold when CUPTI gets them is nothing. */
static void say_cleared(uint8_t cleared)
{
	size_t bytes = sizeof(cleared);

	if (cupti.set_attribute)
		cupti.set_attribute(CUPTI_CLEARED_BUFFERS, &bytes, &cleared);
}

/* As they were before us. */
static struct {
	size_t device_buffer;
	uint32_t thread_ids;
	int has_device_buffer;
	int has_thread_ids;
} before;

static void set_device_buffer(size_t buffer)
{
	size_t bytes = sizeof(buffer);

	cupti.set_attribute(CUPTI_DEVICE_BUFFER_SIZE, &bytes, &buffer);
}

/* Less memory of the device: buffers of a megabyte, of which CUPTI takes as many as it needs. */
static void keep_small(void)
{
	size_t bytes = sizeof(before.device_buffer);

	if (cupti.set_attribute && cupti.get_attribute) {
		before.has_device_buffer = cupti.get_attribute(CUPTI_DEVICE_BUFFER_SIZE, &bytes,
							       &before.device_buffer) == CUPTI_OK;
		set_device_buffer(1 << 20);
	}
	if (cupti.set_thread_id_type && cupti.get_thread_id_type) {
		before.has_thread_ids = cupti.get_thread_id_type(&before.thread_ids) == CUPTI_OK;
		cupti.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	}
}

static void put_settings_back(void)
{
	say_cleared(0);
	if (before.has_device_buffer)
		set_device_buffer(before.device_buffer);
	if (before.has_thread_ids)
		cupti.set_thread_id_type(before.thread_ids);
	before.has_device_buffer = before.has_thread_ids = 0;
	leave_clock();
}

/* What can be done without. */
static void ask_beside(void)
{
	head()->overheads = cupti.enable(CUPTI_KIND_OVERHEAD) == CUPTI_OK;
	cupti.enable(CUPTI_KIND_DEVICE);
}

static int ask(uint32_t *step)
{
	int error;

	*step = STEP_CALLBACKS;
	error = cupti.register_callbacks(give_buffer, take_buffer);
	if (error != CUPTI_OK)
		return error;
	set_clock();
	keep_small();
	say_cleared(1);
	hear_of_what_is_made(1);
	return ask_for_kinds(step);
}

static void stop_asking(void)
{
	disable_kinds();
	cupti.disable(CUPTI_KIND_OVERHEAD);
	cupti.disable(CUPTI_KIND_DEVICE);
	hear_of_what_is_made(0);
	put_settings_back();
	cupti.unsubscribe(subscriber);
	/* whoever asks meanwhile waits until it is over */
	put_back();
}

/* What CUPTI calls us for. Which stream is which: CUPTI numbers them, calls name them by handles. It tells when one is made, also
 * those of a context that are always there.
 */

#define LEGACY_STREAM ((void *)1)
#define PER_THREAD_STREAM ((void *)2)

static void write_stream(void *context, void *stream, uint8_t per_thread, uint64_t handle)
{
	struct batch batch = { .count = 1 };
	struct activity_record *record = &batch.records[0];

	if (!cupti.stream_id || cupti.stream_id(context, stream, per_thread, &record->stream) != CUPTI_OK)
		return;
	if (cupti.context_id)
		cupti.context_id(context, &record->context);
	record->kind = ACTIVITY_STREAM;
	record->begin = record->end = now_ns();
	record->bytes = handle;
	write_batch(&batch);
}

static void hear(void *unused, uint32_t domain, uint32_t id, const void *data)
{
	const struct cupti_resource *resource = data;

	if (on && domain == CUPTI_DOMAIN_DRIVER && data)
		hear_of_node(id, data);
	if (!on || domain != CUPTI_DOMAIN_RESOURCE || !resource)
		return;
	if (id == CUPTI_CONTEXT_CREATED)
		write_stream(resource->context, NULL, 0, 0);
	else if (id == CUPTI_STREAM_CREATED)
		write_stream(resource->context, resource->stream, 0, (uintptr_t)resource->stream);
}

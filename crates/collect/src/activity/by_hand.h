/* Programs that put copies into graphs by hand, as XLA does for JAX, and not by capturing a stream. Such graphs can fail
 * (CUDA_ERROR_LAUNCH_FAILED, Xid 13 and 31) while CUPTI records copies, once it was asked to hand over what is done (CUPTI 12.6 to 13.5
 * with driver 580; asked before the graph is made is enough). Without copies recorded they do not: so from before the first one is made
 * copies are not recorded any more; kernels and fills are.
 */

static __u64 first_by_hand;

/* CLOCK_MONOTONIC ns; 0: the program has put none. */
static uint64_t by_hand_since(void)
{
	return __atomic_load_n(&first_by_hand, __ATOMIC_ACQUIRE);
}

static void note_first(__u64 *place, __u64 at)
{
	__u64 none = 0;

	__atomic_compare_exchange_n(place, &none, at, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void disable_copies(void);

/* Says until when copies are recorded; who asks later has none. */
static void leave_copies(void)
{
	__u64 now = now_ns();

	note_first(&first_by_hand, now);
	disable_copies();
	note_first(&head()->copies, now);
}

#define COPY_NODE 1 /* CU_GRAPH_NODE_TYPE_MEMCPY, with which CUgraphNodeParams begins */

/* Whether a call that CUPTI tells of puts a copy into a graph. */
static int puts_copy(uint32_t id, const struct cupti_call *call)
{
	const void *const *arguments = call->arguments;
	const uint32_t *node;

	if (id == CUPTI_GRAPH_ADD_MEMCPY_NODE)
		return 1;
	if (!arguments)
		return 0;
	node = arguments[id == CUPTI_GRAPH_ADD_NODE ? 4 : 5];
	return node && *node == COPY_NODE;
}

/* CUPTI tells before such a call, and after it. */
static void hear_of_node(uint32_t id, const struct cupti_call *call)
{
	if (!by_hand_since() && puts_copy(id, call))
		leave_copies();
}

static int puts_copies(uintptr_t from, uintptr_t to, const char *path, void *own)
{
	static const char *const libraries[] = { "xla_", "_XLAC", "libtensorflow", "_pywrap_tensorflow" };
	size_t at;

	for (at = 0; at < sizeof(libraries) / sizeof(libraries[0]); at++) {
		if (starts_with(name_of(path), libraries[at]))
			return 1;
	}
	return 0;
}

/* Of a program that ran before it is not known what its graphs hold; of some libraries it is that they put copies into them. */
static int may_have_put_copies(void)
{
	return each_mapped(puts_copies, NULL);
}

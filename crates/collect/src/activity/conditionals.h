/* Programs whose graphs have conditional nodes: the device decides whether their bodies run, and how often, as loops of JAX do.
 * While CUPTI records copies and is asked to hand over what is done such graphs can fail (CUDA_ERROR_LAUNCH_FAILED, Xid 13; CUPTI 13.0,
 * driver 580), so that nothing is recorded any more from before the first of them can be made. To cease asking then is not enough.
 */

static uint64_t first_conditional;

/* CLOCK_MONOTONIC ns; 0: the program has made none. */
static uint64_t conditionals_since(void)
{
	return __atomic_load_n(&first_conditional, __ATOMIC_ACQUIRE);
}

/* Has recording end at once. */
static void leave_to_conditionals(void);

/* CUPTI tells when a handle for such a node is made, before and after that. */
static void hear_of_conditional(void)
{
	uint64_t none = 0;

	if (__atomic_compare_exchange_n(&first_conditional, &none, now_ns(), 0, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		leave_to_conditionals();
}

/* How it begins. */

/* What CUPTI answers where it refuses; 0: from now on it tells what is done. */
static int begin(void)
{
	static int registered;
	uint32_t step = STEP_SUBSCRIBE;
	int error;

	/* in a program that runs already it waits for what its devices do */
	set_state(ACTIVITY_ASKED, step, 0);
	error = cupti.subscribe(&subscriber, hear, NULL);
	if (error != CUPTI_OK) {
		set_state(ACTIVITY_REFUSED, step, error);
		return error;
	}
	on = 1;
	begin_to_look(); /* whoever asks now knows of none */
	if (own.waits && may_have_put_copies())
		leave_copies();
	error = ask(&step);
	if (!error) {
		ask_beside();
		begin_windows();
	}
	if (!error)
		set_state(ACTIVITY_ON, STEP_NONE, 0);
	if (!error && !own.waits && start_thread(look_after)) {
		step = STEP_THREAD;
		error = -1;
	}
	if (error) {
		on = 0;
		stop_asking();
		set_state(ACTIVITY_REFUSED, step, error);
		return error;
	}
	if (!registered) {
		registered = 1;
		pthread_atfork(NULL, NULL, in_child);
		atexit(at_exit);
	}
	return 0;
}

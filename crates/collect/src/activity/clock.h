/* Whose clock records have: CUPTI asks us for the time and fits the GPU's clock to it. Where it does not, it has a clock of its
 * own, and what that differs by is measured again and again.
 */

#define NEAR_NS 1000000
#define TRIES 32

static uint64_t timestamp(void)
{
	return now_ns();
}

static void fit_clock(void)
{
	uint64_t before, theirs, after, least = UINT64_MAX;
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		before = now_ns();
		if (cupti.timestamp(&theirs) != CUPTI_OK)
			return;
		after = now_ns();
		if (after - before >= least)
			continue;
		least = after - before;
		clock_offset = (int64_t)(before + least / 2 - theirs);
	}
}

/* What CUPTI itself takes where nobody gives it a clock. */
static uint64_t time_of_day(void)
{
	return ns_of(CLOCK_REALTIME);
}

static void leave_clock(void)
{
	if (cupti.register_timestamp)
		cupti.register_timestamp(time_of_day);
}

/* To be called before any kind is enabled. */
static void set_clock(void)
{
	uint64_t theirs = 0, before = now_ns();
	int64_t apart;

	if (cupti.register_timestamp && cupti.register_timestamp(timestamp) == CUPTI_OK &&
	    cupti.timestamp(&theirs) == CUPTI_OK) {
		apart = (int64_t)(theirs - before);
		if (apart > -NEAR_NS && (uint64_t)apart < NEAR_NS + now_ns() - before) {
			head()->clock = CLOCK_ASKED;
			return;
		}
	}
	head()->clock = CLOCK_FITTED;
	fit_clock();
}

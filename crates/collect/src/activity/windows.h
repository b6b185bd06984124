/* Windows: where gpuscope asks for it, activities are recorded for a part of each period, and not between. */

#define NS_OF_A_MS 1000000

static int is_open;

static void write_turn(uint64_t from, uint64_t to, enum activity_turn turn)
{
	struct batch batch = { .count = 1 };

	batch.records[0].kind = ACTIVITY_WINDOW;
	batch.records[0].begin = from;
	batch.records[0].end = to;
	batch.records[0].bytes = turn;
	write_batch(&batch);
}

/* All kinds are asked for from now on: what is given to devices later is recorded. */
static void say_open(void)
{
	uint64_t now = now_ns();

	is_open = 1;
	count(&head()->windows, 1);
	write_turn(now, now, TURN_OPENED);
}

static void open_window(void)
{
	uint32_t step;

	if (ask_for_kinds(&step) == CUPTI_OK) {
		say_open();
		return;
	}
	disable_kinds();
	count(&head()->unopened, 1);
	is_open = 1; /* until the next one */
}

/* What was given before is told of when it is done. */
static void close_window(void)
{
	uint64_t now = now_ns();

	disable_kinds();
	is_open = 0;
	write_turn(now, now, TURN_CLOSED);
}

/* The first one begins with the first call of CUDA. */
static void begin_windows(void)
{
	if (head()->period)
		say_open();
}

static uint64_t ns_into_period(void)
{
	return (now_ns() - head()->began) % head()->period;
}

static void turn_window(void)
{
	int wants_open;

	if (!head()->period)
		return;
	wants_open = ns_into_period() < head()->window;
	if (wants_open && !is_open)
		open_window();
	else if (!wants_open && is_open)
		close_window();
}

/* How long to wait, at most so long. */
static long ms_until_turn(long most)
{
	uint64_t into, left;

	if (!head()->period)
		return most;
	into = ns_into_period();
	left = (into < head()->window ? head()->window : head()->period) - into;
	return left / NS_OF_A_MS + 1 < (uint64_t)most ? (long)(left / NS_OF_A_MS) + 1 : most;
}

/* Names of kernels, each written once. CUPTI gives the same pointer for the same kernel, as a rule: what lies there is compared
 * all the same.
 */

#define NAME_SLOTS (MOST_NAMES * 2)

/* Pointers that were seen, and the numbers of their names. Changed under the lock of the writer. */
static struct {
	const char *text;
	uint32_t number;
} seen[NAME_SLOTS];

static struct activity_name *name_numbered(uint32_t number)
{
	return (struct activity_name *)(own.shared + SHARED_NAMES) + (number - 1);
}

static int is_name(uint32_t number, const char *text)
{
	const struct activity_name *name = name_numbered(number);
	const char *kept = own.shared + SHARED_TEXTS + name->at;

	return name->at <= MOST_TEXT_BYTES - MOST_NAME_BYTES && name->bytes <= MOST_NAME_BYTES &&
	       !strncmp(kept, text, name->bytes) && (name->bytes == MOST_NAME_BYTES || !text[name->bytes]);
}

/* Before another gpuscope's memory. */
static void forget_names(void)
{
	memset(seen, 0, sizeof(seen));
}

/* The number of a new name; 0: there is no room. */
static uint32_t add_name(const char *text)
{
	uint64_t number = head()->names, at = head()->text_bytes;
	size_t bytes = strnlen(text, MOST_NAME_BYTES);

	if (number >= MOST_NAMES || at > MOST_TEXT_BYTES - MOST_NAME_BYTES)
		return 0;
	memcpy(own.shared + SHARED_TEXTS + at, text, bytes);
	*name_numbered(number + 1) = (struct activity_name){ .at = at, .bytes = bytes };
	head()->text_bytes = at + bytes;
	__atomic_store_n(&head()->names, number + 1, __ATOMIC_RELEASE);
	return number + 1;
}

static uint32_t number_of_name(const char *text)
{
	uint64_t hash = ((uintptr_t)text >> 3) * 0x9e3779b97f4a7c15;
	uint32_t at = hash >> 49, tries;

	if (!text)
		return 0;
	for (tries = 0; tries < NAME_SLOTS; tries++, at = (at + 1) % NAME_SLOTS) {
		if (!seen[at].text || (seen[at].text == text && !is_name(seen[at].number, text))) {
			seen[at].number = add_name(text);
			seen[at].text = seen[at].number ? text : NULL;
			return seen[at].number;
		}
		if (seen[at].text == text)
			return seen[at].number;
	}
	return 0;
}

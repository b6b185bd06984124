/* Tables in shared memory. Look-ups take no lock; what comes and goes does, for a bounded time: whoever does not get it finds
 * the table full, which the body counts. Tables of a thread's own have no other writer. A handler of a signal that has
 * interrupted its own thread within the lock does not wait: who holds it goes on when the handler is done.
 */
#ifndef GPUSCOPE_AGENT_TABLE_H
#define GPUSCOPE_AGENT_TABLE_H

#include "arena.h"
#include "thread.h"
#include "wire.h"

#define LONGEST_WAIT (1 << 20) /* turns */
#define WAIT_AGAIN (1 << 12)   /* for an owner that was waited for in vain: it may have left by a jump */
#define EXISTS (-17)
#define MISSING (-2)
#define FULL (-7)
/* variants of a total from here on are kernels, of which there may be any number */
#define FIRST_OF_MANY 4096

/* Where arrays that gpuscope writes lie, as places behind those of tables. */
enum run_place { PLACE_SPECS = ARENA_TABLES, PLACE_PROBE_SITES, PLACE_NOWHERE, PLACE_UNLISTED };

/* The process's memory, and the run's; NULL: there is none. */
static char *process, *run;
static struct table_shape layout[ARENA_TABLES];

INLINE __u64 filled_up(__u64 bytes)
{
	return (bytes + 7) & ~7ull;
}

INLINE __u64 hash_of(const void *key, __u32 bytes)
{
	__u64 hash = 0;

	for (__u32 i = 0; i + 8 <= bytes; i += 8) {
		hash = (hash ^ *(const __u64 *)((const char *)key + i)) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	if (bytes & 4) {
		hash = (hash ^ *(const __u32 *)((const char *)key + (bytes & ~7u))) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Keys are words of four bytes. */
INLINE bool same(const void *one, const void *other, __u32 bytes)
{
	__u64 differs = 0;

	for (__u32 i = 0; i + 8 <= bytes; i += 8)
		differs |=
			*(const __u64 *)((const char *)one + i) ^ *(const __u64 *)((const char *)other + i);
	if (bytes & 4)
		differs |= *(const __u32 *)((const char *)one + (bytes & ~7u)) ^
			   *(const __u32 *)((const char *)other + (bytes & ~7u));
	return !differs;
}

INLINE struct table *table_at(__u32 place)
{
	char *base = place <= OWN_FAILURES ? (char *)self : process;

	return (struct table *)(base + layout[place].offset);
}

INLINE __u32 *index_of(struct table *table)
{
	return (__u32 *)(table + 1);
}

INLINE struct table_entry *entry_of(struct table *table, const struct table_shape *shape, __u32 number,
				    __u32 key_bytes, __u32 value_bytes)
{
	__u64 stride = sizeof(struct table_entry) + filled_up(key_bytes) + filled_up(value_bytes);

	return (struct table_entry *)((char *)(index_of(table) + shape->slots) + (number - 1) * stride);
}

/* The entry of a key, NULL: there is none. `slot`: where it is named, or where it would be. */
INLINE struct table_entry *search(struct table *table, const struct table_shape *shape, const void *key,
				  __u32 key_bytes, __u32 value_bytes, __u32 *slot)
{
	__u32 mask = shape->slots - 1, at = (__u32)hash_of(key, key_bytes), *index = index_of(table),
	      gone = SLOT_GONE;

	for (__u32 turn = 0; turn <= mask; turn++, at++) {
		__u32 number = __atomic_load_n(&index[at & mask], __ATOMIC_ACQUIRE);
		struct table_entry *entry;

		if (SELDOM(!number)) {
			*slot = gone == SLOT_GONE ? at & mask : gone;
			return NULL;
		}
		if (SELDOM(number == SLOT_GONE)) {
			gone = gone == SLOT_GONE ? at & mask : gone;
			continue;
		}
		if (SELDOM(number > shape->most))
			continue;
		entry = entry_of(table, shape, number, key_bytes, value_bytes);
		if (!SELDOM(!__atomic_load_n(&entry->in_use, __ATOMIC_ACQUIRE)) &&
		    !SELDOM(!same(entry + 1, key, key_bytes))) {
			*slot = at & mask;
			return entry;
		}
	}
	*slot = gone;
	return NULL;
}

INLINE void *value_of(struct table_entry *entry, __u32 key_bytes)
{
	return (char *)(entry + 1) + filled_up(key_bytes);
}

INLINE void *element(__u32 place, __u32 number, __u32 value_bytes)
{
	if (place == PLACE_SPECS)
		return number < ((struct run_head *)run)->rows ? run + RUN_SPECS + (__u64)number * value_bytes
							       : NULL;
	if (place == PLACE_PROBE_SITES)
		return number <= WIRE_PROBE_SITES ? run + RUN_PROBE_SITES + (__u64)number * value_bytes
						  : NULL;
	return number < layout[place].most ? (char *)table_at(place) + (__u64)number * value_bytes : NULL;
}

INLINE void *find_entry(__u32 place, const void *key, __u32 key_bytes, __u32 value_bytes)
{
	struct table_entry *entry;
	__u32 slot;

	entry = search(table_at(place), &layout[place], key, key_bytes, value_bytes, &slot);
	return entry ? value_of(entry, key_bytes) : NULL;
}

/* As a total's key is written: what was just written is read fastest in the same pieces. */
struct key_of_total {
	__u32 tgid;
	__u32 row;
	__u64 variant;
};

/* A total, without a look into the table if the thread has just added to it. */
INLINE void *find_total(const struct key_of_total *key, __u32 value_bytes)
{
	struct known_total *known =
		&local()->known_total[(key->row ^ (__u32)key->variant) & (TOTALS_KNOWN - 1)];
	void *total;

	if (known->total && known->row == key->row && known->variant == key->variant &&
	    known->tgid == key->tgid)
		return known->total;
	total = find_entry(OWN_TOTALS, key, sizeof(*key), value_bytes);
	if (total)
		*known = (struct known_total){ key->tgid, key->row, key->variant, total };
	return total;
}

INLINE void *find(__u32 place, const void *key, __u32 key_bytes, __u32 value_bytes)
{
	if (place == OWN_TOTALS)
		return find_total(key, value_bytes);
	if (place >= PLACE_NOWHERE)
		return NULL;
	if (place >= ARENA_TABLES || !layout[place].slots)
		return element(place, *(const __u32 *)key, value_bytes);
	return find_entry(place, key, key_bytes, value_bytes);
}

static bool lock(struct table *table)
{
	__u32 own = (__u32)local()->ids, owner = 0;

	for (__u32 turn = 0; turn < LONGEST_WAIT; turn++, owner = 0) {
		if (__atomic_compare_exchange_n(&table->owner, &owner, own, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			table->stuck = 0;
			return true;
		}
		if (owner == own ||
		    (turn >= WAIT_AGAIN && owner == __atomic_load_n(&table->stuck, __ATOMIC_RELAXED)))
			return false;
		__builtin_ia32_pause();
	}
	__atomic_store_n(&table->stuck, __atomic_load_n(&table->owner, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	return false;
}

INLINE void unlock(struct table *table)
{
	__atomic_store_n(&table->owner, 0, __ATOMIC_RELEASE);
}

/* A hook of this thread does not go on: a handler that had interrupted it has left by a jump. */
static __attribute__((noinline)) void let_go_of_tables(void)
{
	for (__u32 place = 0; place < ARENA_TABLES; place++) {
		struct table *table = table_at(place);

		if (layout[place].slots && table->owner == (__u32)local()->ids)
			unlock(table);
	}
}

/* The number of an entry that is not in use; 0: the table is full. What is said of no process, and what stands for all that
 * found no room, has a part that others leave them.
 */
static __u32 take_entry(struct table *table, const struct table_shape *shape, __u32 key_bytes,
			__u32 value_bytes, bool spare)
{
	__u32 number = table->free, most = spare ? shape->most : shape->most - shape->most / 8;

	if (number && number <= shape->most) {
		table->free = entry_of(table, shape, number, key_bytes, value_bytes)->next;
		return number;
	}
	return table->used < most ? ++table->used : 0;
}

/* Of a total's key: its function is counted whatever its variant; or its process is unknown. */
INLINE bool is_of_all(const void *key)
{
	const struct key_of_total *total = key;

	return !total->tgid || total->variant < FIRST_OF_MANY;
}

static long add(__u32 place, const void *key, const void *value, bool replaces, __u32 key_bytes,
		__u32 value_bytes)
{
	struct table *table = table_at(place);
	const struct table_shape *shape = &layout[place];
	struct table_entry *entry;
	__u32 slot, number;
	long result = FULL;

	if (!lock(table))
		return FULL;
	entry = search(table, shape, key, key_bytes, value_bytes, &slot);
	if (entry) {
		if (replaces)
			memcpy(value_of(entry, key_bytes), value, value_bytes);
		result = replaces ? 0 : EXISTS;
	} else if (slot != SLOT_GONE) {
		number = take_entry(table, shape, key_bytes, value_bytes,
				    place == OWN_TOTALS && is_of_all(key));
		if (number) {
			entry = entry_of(table, shape, number, key_bytes, value_bytes);
			memcpy(entry + 1, key, key_bytes);
			memcpy(value_of(entry, key_bytes), value, value_bytes);
			__atomic_store_n(&entry->in_use, 1, __ATOMIC_RELEASE);
			__atomic_store_n(&index_of(table)[slot], number, __ATOMIC_RELEASE);
			result = 0;
		}
	}
	unlock(table);
	return result;
}

#define put(place, key, value, how, key_bytes, value_bytes) \
	((place) < ARENA_TABLES ? add(place, key, value, (how) == 0, key_bytes, value_bytes) : FULL)

static long drop(__u32 place, const void *key, __u32 key_bytes, __u32 value_bytes)
{
	const struct table_shape *shape = &layout[place];
	struct table_entry *entry;
	struct table *table;
	__u32 slot, number;

	if (place >= ARENA_TABLES)
		return MISSING;
	table = table_at(place);
	if (!lock(table))
		return MISSING;
	entry = search(table, shape, key, key_bytes, value_bytes, &slot);
	if (entry) {
		number = index_of(table)[slot];
		__atomic_store_n(&index_of(table)[slot], SLOT_GONE, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->in_use, 0, __ATOMIC_RELEASE);
		entry->next = table->free;
		table->free = number;
	}
	unlock(table);
	return entry ? 0 : MISSING;
}

#endif

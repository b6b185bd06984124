/* Calls them, one through a pointer; its status says whether they have returned what they should. */
#include <stdio.h>
#include "mine.h"

#define TIMES 100

static uint64_t (*volatile indirect)(uint64_t) = mine_deep;

int main(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < TIMES; i++) {
		struct box box = { 10, 20, 30, 40 };

		sum += mine_scale(1, 2, 3, 4, 5, 6, 7, 8, 9);
		sum += mine_box(box, 7);
		sum += indirect(5);
	}
	printf("%lu\n", (unsigned long)sum);
	return sum != TIMES * (104 + 57 + 16);
}

#include <stdio.h>

void marked_places(void);
void marked_pointers(void);
long marked_red_zone(long value);
long marked_long_nop(long value);
void marked_others(void);

int main(void)
{
	long wrong = 0;

	marked_places();
	marked_pointers();
	for (long i = 0; i < 3000; i++)
		wrong += (marked_red_zone(i) != i) + (marked_long_nop(i) != i);
	marked_others();
	printf("%ld wrong\n", wrong);
	return wrong != 0;
}

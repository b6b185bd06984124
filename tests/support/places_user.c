/* Calls each function of the library as often as it is told, and loads another library through it. */
#include <stdio.h>
#include <stdlib.h>

long place_push(long), place_nop(long), place_stepped(long);
int place_load(const char *path);

int main(int count, char **words) {
    long times = count > 1 ? atol(words[1]) : 0, sum = 0;

    for (long i = 0; i < times; i++)
        sum += place_push(i) + place_nop(i) + place_stepped(i);
    printf("%ld %d\n", sum, count > 2 ? place_load(words[2]) : 0);
    return 0;
}

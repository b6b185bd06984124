/* Calls quickly, then for as long as it is told. */
#include <stdio.h>
#include <stdlib.h>

int hang_ms(int), hang_not(int), hang_around(int);

int main(int count, char **words) {
    int sum = 0;

    for (int i = 0; i < 20; i++)
        sum += hang_not(i);
    sum += hang_around(count > 1 ? atoi(words[1]) : 0);
    printf("%d\n", sum);
    return 0;
}

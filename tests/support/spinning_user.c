/* Makes one call, which works for as long as it is told. */
#include <stdlib.h>

int spin_ms(int);

int main(int count, char **words) {
    return spin_ms(count > 1 ? atoi(words[1]) : 0) < 0;
}

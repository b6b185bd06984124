/* A function that returns when it is told to, and one that returns at once. */
#include <unistd.h>

int hang_ms(int ms) {
    usleep((useconds_t)ms * 1000);
    return ms;
}

int hang_not(int value) {
    return value;
}

int hang_around(int ms) {
    return hang_not(1) + hang_ms(ms);
}

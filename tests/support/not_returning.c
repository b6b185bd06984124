/* Functions that return when they are told to, asleep and at work, and one that returns at once. */
#include <time.h>
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

static __attribute__((noinline)) int turn(time_t until) {
    volatile int turns = 0;
    while (turns < 1 << 20)
        turns++;
    return time(NULL) < until;
}

int spin_ms(int ms) {
    time_t until = time(NULL) + ms / 1000;
    while (turn(until))
        ;
    return ms;
}

/* Functions that return when they are told to, asleep and at work, and one that returns at once. Whoever waits for the first
 * to be entered names a file that it makes then. */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void tell_entered(void) {
    const char *file = getenv("ENTERED");

    if (file)
        close(open(file, O_CREAT | O_WRONLY, 0600));
}

int hang_ms(int ms) {
    tell_entered();
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

// Throws through a function of C++ and through one of C, neither of which would survive a return probe.
#include <cstdio>

__attribute__((noinline)) void thrown_through(int value) {
    if (value >= 0)
        throw value;
}

extern "C" __attribute__((noinline)) void c_calls_back(void (*back)(int), int value) {
    back(value);
    std::fflush(stdout);
}

int main() {
    int caught = 0;
    for (int i = 0; i < 20; i++) {
        try {
            c_calls_back(thrown_through, i);
        } catch (int) {
            caught++;
        }
    }
    std::printf("caught %d\n", caught);
}

// Throws through a function of C++, which a return probe would not survive.
#include <cstdio>

__attribute__((noinline)) void thrown_through(int value) {
    if (value >= 0)
        throw value;
}

int main() {
    int caught = 0;
    for (int i = 0; i < 20; i++) {
        try {
            thrown_through(i);
        } catch (int) {
            caught++;
        }
    }
    std::printf("caught %d\n", caught);
}

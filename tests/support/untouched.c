/* A driver of its own, whose functions look at nothing that they are given. */
int cuInit(unsigned flags) {
    return (int)(flags & 0);
}

int cuModuleLoad(void **module, const char *name) {
    *module = (void *)0x1000;
    return name ? 0 : 1;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    return function ? 0 : 1;
}

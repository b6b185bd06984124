/* The library runs wherever CUDA does, also where glibc is older than where it was built: entries that have got new versions
 * since, without having changed for us, are taken by their old ones.
 */
#ifdef __x86_64__
#define OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version)
OLD(dladdr1, "2.3.3");
OLD(dlclose, "2.2.5");
OLD(dlinfo, "2.3.3");
OLD(dlopen, "2.2.5");
OLD(dlsym, "2.2.5");
OLD(glob, "2.2.5");
OLD(pthread_condattr_setclock, "2.3.3");
OLD(pthread_create, "2.2.5");
OLD(pthread_detach, "2.2.5");
OLD(pthread_sigmask, "2.2.5");
#undef OLD
#endif

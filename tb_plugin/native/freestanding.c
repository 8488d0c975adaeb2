/* What compilers expect of every program, since neither libc nor Windows' start files are linked. */
#include <stddef.h>

#if !__STDC_HOSTED__
void *memset(void *to, int byte, size_t size) {
    for (size_t i = 0; i < size; i++) ((unsigned char *)to)[i] = (unsigned char)byte;
    return to;
}

#ifdef _WIN32
int _fltused = 0;
int DllMainCRTStartup(void *library, unsigned reason, void *reserved) {
    (void)library, (void)reason, (void)reserved;
    return 1;
}
#endif
#else
typedef int Hosted; /* a file of C isn't empty */
#endif

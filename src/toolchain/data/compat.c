// SPDX-License-Identifier: Apache-2.0
// What headers and libstdc++.a of a newer Debian take from glibc after 2.28, made of what 2.28 has. Hidden, so that a
// library brings its own copy and offers none. Linked by libc.so of the stubs; see stubs.cpp.
#include <stddef.h>

#define HIDDEN __attribute__((visibility("hidden")))

// Before 2.33 these were inline functions of the headers over versioned entry points. The version of struct stat is 1 on
// x86_64 and 0 on aarch64.
#ifdef __aarch64__
#define STAT_VERSION 0
#else
#define STAT_VERSION 1
#endif
#define MKNOD_VERSION 0

struct stat;
extern int __xstat(int version, const char *path, struct stat *out);
extern int __lxstat(int version, const char *path, struct stat *out);
extern int __fxstat(int version, int fd, struct stat *out);
extern int __fxstatat(int version, int directory, const char *path, struct stat *out, int flags);
extern int __xmknod(int version, const char *path, unsigned mode, unsigned long *device);
extern int __xmknodat(int version, int directory, const char *path, unsigned mode, unsigned long *device);

#define STAT_FAMILY(suffix)                                                                                            \
    HIDDEN int stat##suffix(const char *path, struct stat *out) { return __xstat(STAT_VERSION, path, out); }           \
    HIDDEN int lstat##suffix(const char *path, struct stat *out) { return __lxstat(STAT_VERSION, path, out); }         \
    HIDDEN int fstat##suffix(int fd, struct stat *out) { return __fxstat(STAT_VERSION, fd, out); }                     \
    HIDDEN int fstatat##suffix(int directory, const char *path, struct stat *out, int flags) {                         \
        return __fxstatat(STAT_VERSION, directory, path, out, flags);                                                  \
    }

STAT_FAMILY()
STAT_FAMILY(64)

HIDDEN int mknod(const char *path, unsigned mode, unsigned long device) {
    return __xmknod(MKNOD_VERSION, path, mode, &device);
}
HIDDEN int mknodat(int directory, const char *path, unsigned mode, unsigned long device) {
    return __xmknodat(MKNOD_VERSION, directory, path, mode, &device);
}

// "There may be threads" is always right; it costs an atomic operation where the real one could save it.
HIDDEN char __libc_single_threaded = 0;

extern long getrandom(void *out, size_t size, unsigned flags);
extern void abort(void) __attribute__((noreturn));

HIDDEN void arc4random_buf(void *out, size_t size) {
    char *at = out;
    while (size > 0) {
        const long got = getrandom(at, size > 256 ? 256 : size, 0); // up to 256 bytes are never interrupted
        if (got < 0) {
            abort();
        }
        at += got;
        size -= (size_t)got;
    }
}
HIDDEN unsigned arc4random(void) {
    unsigned value;
    arc4random_buf(&value, sizeof value);
    return value;
}

/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into a program: the n-th file operation on a path below FAULT_BELOW kills the program before it
 * happens, or fails. FAULT_OPS: a list of write, fsync, rename, open, unlink; FAULT_AT: n, from 1;
 * FAULT_DO: kill, or an errno ("28"): then this one and all later ones fail.
 *   cc -shared -fPIC -O1 -o fault_at.so fault_at.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long count;

/* True when this operation has to fail; does not return when it has to kill. */
static int is_hit(const char *op, const char *path) {
    const char *ops = getenv("FAULT_OPS");
    const char *below = getenv("FAULT_BELOW");
    const char *at = getenv("FAULT_AT");
    const char *what = getenv("FAULT_DO");
    if (!ops || !below || !at || !what || !strstr(ops, op) || strncmp(path, below, strlen(below)) != 0) {
        return 0;
    }
    const long n = atomic_fetch_add(&count, 1) + 1;
    if (strcmp(what, "kill") == 0) {
        if (n == atol(at)) {
            kill(getpid(), SIGKILL);
            pause();
        }
        return 0;
    }
    if (n < atol(at)) {
        return 0;
    }
    errno = atoi(what);
    return 1;
}

static int is_hit_fd(const char *op, int fd) {
    char link[64];
    char path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) {
        return 0;
    }
    path[n] = '\0';
    return is_hit(op, path);
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

ssize_t write(int fd, const void *data, size_t size) {
    return is_hit_fd("write", fd) ? -1 : NEXT(ssize_t(*)(int, const void *, size_t), "write")(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return is_hit_fd("write", fd) ? -1 : NEXT(ssize_t(*)(int, const void *, size_t, off_t), "pwrite")(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return is_hit_fd("write", fd) ? -1 : NEXT(ssize_t(*)(int, const void *, size_t, off64_t), "pwrite64")(fd, data, size, at);
}

int fsync(int fd) { return is_hit_fd("fsync", fd) ? -1 : NEXT(int (*)(int), "fsync")(fd); }

int fdatasync(int fd) { return is_hit_fd("fsync", fd) ? -1 : NEXT(int (*)(int), "fdatasync")(fd); }

int rename(const char *from, const char *to) {
    return is_hit("rename", to) ? -1 : NEXT(int (*)(const char *, const char *), "rename")(from, to);
}

int unlink(const char *path) { return is_hit("unlink", path) ? -1 : NEXT(int (*)(const char *), "unlink")(path); }

static mode_t mode_of(int flags, va_list rest) {
    return (flags & (O_CREAT | O_TMPFILE)) ? (mode_t)va_arg(rest, int) : 0;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return (flags & O_CREAT) && is_hit("open", path) ? -1 : NEXT(int (*)(const char *, int, ...), "open")(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return (flags & O_CREAT) && is_hit("open", path) ? -1 : NEXT(int (*)(const char *, int, ...), "open64")(path, flags, mode);
}

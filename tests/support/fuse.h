/* What file systems of the tests share: one file, requests of the kernel one after the other. Stands before the source of each, which
 * says what it answers in `serve`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT = 1, FILE_NODE = 2, LARGEST = 1 << 17 };

static int channel;

static void serve(struct fuse_in_header *in, void *argument);

static void answer(unsigned long long unique, int error, const void *data, size_t size) {
    static char message[LARGEST + 4096];
    struct fuse_out_header *header = (struct fuse_out_header *)message;
    header->unique = unique;
    header->error = -error;
    header->len = (unsigned)(sizeof(*header) + size);
    if (size)
        memcpy(message + sizeof(*header), data, size);
    if (write(channel, message, header->len) < 0 && errno == ENODEV)
        exit(0);
}

static void describe_file(struct fuse_attr *attr, unsigned long long node, unsigned mode, unsigned long long size) {
    memset(attr, 0, sizeof(*attr));
    attr->ino = node;
    attr->mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | mode;
    attr->nlink = 1;
    attr->size = node == ROOT ? 0 : size;
    attr->blksize = 4096;
}

/* Says "ok" when it is mounted. Returns when it was unmounted, or cannot be. */
static int mount_at(const char *folder) {
    static char request[LARGEST + 4096];
    char options[200];
    if ((channel = open("/dev/fuse", O_RDWR)) < 0) {
        perror("/dev/fuse");
        return 1;
    }
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", channel);
    if (mount("tests", folder, "fuse", MS_NODEV, options)) {
        perror("mount");
        return 1;
    }
    puts("ok");
    fflush(stdout);
    for (;;) {
        ssize_t got = read(channel, request, sizeof(request));
        if (got < 0 && (errno == EINTR || errno == ENOENT))
            continue;
        if (got < (ssize_t)sizeof(struct fuse_in_header))
            return 0;
        serve((struct fuse_in_header *)request, request + sizeof(struct fuse_in_header));
    }
}

/* A file system with one file, `file`, which holds what another file holds. Stopped (SIGSTOP) it answers nobody.
 * usage: hanging FOLDER SOURCE    says "ok" when it is mounted; unmounts it when it is killed by SIGTERM */
static const char *folder;
static int source;

static void leave(int signal) {
    (void)signal;
    umount2(folder, MNT_DETACH);
    _exit(0);
}

static void describe(struct fuse_attr *attr, unsigned long long node) {
    struct stat stat;
    fstat(source, &stat);
    describe_file(attr, node, 0755, (unsigned long long)stat.st_size);
}

static void look_up(unsigned long long unique, const char *name) {
    struct fuse_entry_out entry = {.nodeid = FILE_NODE, .entry_valid = 3600, .attr_valid = 3600};
    describe(&entry.attr, FILE_NODE);
    answer(unique, strcmp(name, "file") ? ENOENT : 0, &entry, strcmp(name, "file") ? 0 : sizeof(entry));
}

static void serve(struct fuse_in_header *in, void *argument) {
    static char bytes[LARGEST];
    struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = LARGEST, .max_write = 4096};
    struct fuse_attr_out attr = {.attr_valid = 3600};
    struct fuse_open_out open = {0};
    struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};
    struct fuse_read_in *read_in = argument;
    ssize_t size;
    switch (in->opcode) {
    case FUSE_INIT:
        answer(in->unique, 0, &init, sizeof(init));
        break;
    case FUSE_LOOKUP:
        look_up(in->unique, argument);
        break;
    case FUSE_GETATTR:
        describe(&attr.attr, in->nodeid);
        answer(in->unique, 0, &attr, sizeof(attr));
        break;
    case FUSE_OPEN:
        answer(in->unique, 0, &open, sizeof(open));
        break;
    case FUSE_READ:
        size = pread(source, bytes, read_in->size < LARGEST ? read_in->size : LARGEST, (off_t)read_in->offset);
        answer(in->unique, size < 0 ? EIO : 0, bytes, size < 0 ? 0 : (size_t)size);
        break;
    case FUSE_STATFS:
        answer(in->unique, 0, &statfs, sizeof(statfs));
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        answer(in->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        answer(in->unique, ENOSYS, NULL, 0);
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || (source = open(argv[2], O_RDONLY)) < 0)
        return 2;
    folder = argv[1];
    signal(SIGTERM, leave);
    return mount_at(folder);
}

/* A disk that fails: a file system with one file, of any name, which takes so many bytes in all, the last of them also as a part of
 * what is to be written, and then refuses more; after SIGUSR1 it has room again.
 * usage: failing FOLDER BYTES ERRNO    says "ok" when it is mounted */
enum { DISK = 1 << 22 };

static char disk[DISK];
static size_t length, taken;
static volatile size_t most;
static int refusal, made;

static void describe(struct fuse_attr *attr, unsigned long long node) {
    describe_file(attr, node, 0600, length);
}

static void enter(unsigned long long unique, int open) {
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out = {.entry = {.nodeid = FILE_NODE}};
    describe(&out.entry.attr, FILE_NODE);
    answer(unique, made ? 0 : ENOENT, &out, !made ? 0 : open ? sizeof(out) : sizeof(out.entry));
}

static void take(unsigned long long unique, struct fuse_write_in *in) {
    size_t room = taken < most ? most - taken : 0;
    struct fuse_write_out out = {.size = in->size < room ? in->size : room};
    size_t end = in->offset + out.size;
    if ((in->size && !out.size) || end > DISK) {
        answer(unique, refusal, NULL, 0);
        return;
    }
    memcpy(disk + in->offset, in + 1, out.size);
    taken += out.size;
    length = end > length ? end : length;
    answer(unique, 0, &out, sizeof(out));
}

static void give(unsigned long long unique, struct fuse_read_in *in) {
    size_t from = in->offset < length ? in->offset : length;
    size_t left = length - from;
    answer(unique, 0, disk + from, in->size < left ? in->size : left);
}

static void serve(struct fuse_in_header *in, void *argument) {
    struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = LARGEST, .max_write = LARGEST - 4096};
    struct fuse_attr_out attr = {0};
    struct fuse_open_out open = {0};
    struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};
    struct fuse_setattr_in *set = argument;
    switch (in->opcode) {
    case FUSE_INIT:
        answer(in->unique, 0, &init, sizeof(init));
        break;
    case FUSE_LOOKUP:
        enter(in->unique, 0);
        break;
    case FUSE_CREATE:
        made = 1;
        enter(in->unique, 1);
        break;
    case FUSE_SETATTR:
        if (set->valid & FATTR_SIZE)
            length = set->size < DISK ? set->size : DISK;
        /* fall through */
    case FUSE_GETATTR:
        describe(&attr.attr, in->nodeid);
        answer(in->unique, 0, &attr, sizeof(attr));
        break;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        answer(in->unique, 0, &open, sizeof(open));
        break;
    case FUSE_WRITE:
        take(in->unique, argument);
        break;
    case FUSE_READ:
        give(in->unique, argument);
        break;
    case FUSE_STATFS:
        answer(in->unique, 0, &statfs, sizeof(statfs));
        break;
    case FUSE_UNLINK:
        made = 0;
        length = 0;
        /* fall through */
    case FUSE_RENAME:
    case FUSE_RENAME2:
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
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

static void have_room(int signal) {
    (void)signal;
    most = (size_t)-1;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    most = strtoul(argv[2], NULL, 10);
    refusal = atoi(argv[3]);
    signal(SIGUSR1, have_room);
    return mount_at(argv[1]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared_heap.c - packets go to another program without a copy.
 *
 * One process has a heap whose memory is in files (PCPA_HEAP_SHARED).  It starts a
 * second one, a program of its own as far as the two are concerned, and tells it over a
 * Unix socket of each arena as the heap grows, with the descriptor of the file, and
 * before memory goes back.  A packet is then a file's number, an offset and a length:
 *
 *     sender                        socket                receiver
 *     ADD    file 0 at 0, 4 MiB     ------- fd --------> mmap
 *     PACKET file 0 at 8192, 900    --------------------> reads it, answers in place
 *     REMOVE file 0 at 0, 2 MiB     --------------------> unmaps
 *
 * The receiver answers each message, so that an addition it can't map is refused, and
 * nothing is given back that it still uses.  (vhost-user works like this.)
 */
#define _GNU_SOURCE
#include <pcpalloc/pcpalloc.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX 8u /* one for each node and kind of page */
#define PACKETS 4000u
#define ROUNDS 3u

enum kind { ADD, REMOVE, PACKET, END };

struct message {
	enum kind kind;
	unsigned file;
	uint64_t offset, bytes;
};

/* What a packet holds here; the receiver writes `answer`. */
struct packet {
	uint64_t number, answer;
	char payload[];
};

/* ---- Messages, with a descriptor or without (-1) --------------------------------- */

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

static int message_send(int sock, const struct message *m, int fd)
{
	struct iovec data = { (void *)(uintptr_t)m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &data, .msg_iovlen = 1 };
	union control control;
	struct cmsghdr *c;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		h.msg_control = control.room;
		h.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL) == (ssize_t)sizeof(*m) ? 0 : -EIO;
}

static int message_receive(int sock, struct message *m, int *fd)
{
	union control control;
	struct iovec data = { m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c;

	*fd = -1;
	if (recvmsg(sock, &h, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*m))
		return -EIO;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return 0;
}

/* ---- The receiver ------------------------------------------------------------------ */

/* Address space for the whole of a file, of which arenas are mapped. */
static struct view {
	char *base;
	int fd;
} views[FILES_MAX];

static int view_open(struct view *v, int fd)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) != 0)
		return -errno;
	/* Room to move to where huge pages begin. */
	p = mmap(NULL, 2 * (size_t)st.st_size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	/* The size is a power of two. */
	v->base = (char *)p + (-(uintptr_t)p & ((uintptr_t)st.st_size - 1));
	v->fd = fd;
	return 0;
}

static int arena_map(const struct message *m, int fd)
{
	struct view *v = &views[m->file];
	int err = v->base ? 0 : view_open(v, fd);

	if (err)
		return err;
	if (fd != v->fd)
		close(fd); /* the same file once more */
	return mmap(v->base + m->offset, m->bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, v->fd,
		    (off_t)m->offset) == MAP_FAILED
		       ? -errno
		       : 0;
}

static int arena_unmap(const struct message *m)
{
	return mmap(views[m->file].base + m->offset, m->bytes, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		    0) == MAP_FAILED
		       ? -errno
		       : 0;
}

static uint64_t sum_of(const struct packet *p, size_t bytes)
{
	uint64_t sum = p->number;

	for (size_t i = 0; i < bytes - sizeof(*p); i++)
		sum = sum * 31 + (unsigned char)p->payload[i];
	return sum;
}

static int packet_read(const struct message *m)
{
	struct packet *p = (void *)(views[m->file].base + m->offset);

	p->answer = sum_of(p, m->bytes);
	return 0;
}

static int receiver(int sock)
{
	unsigned long packets = 0;
	struct message m = { .kind = PACKET };
	int fd, err;

	while (message_receive(sock, &m, &fd) == 0 && m.kind != END) {
		if (m.kind == ADD)
			err = arena_map(&m, fd);
		else if (m.kind == REMOVE)
			err = arena_unmap(&m);
		else
			err = packet_read(&m);
		packets += m.kind == PACKET;
		m.bytes = (uint64_t)-err;
		if (message_send(sock, &m, -1) != 0)
			return 1;
	}
	printf("receiver: %lu packets\n", packets);
	return m.kind == END ? 0 : 1;
}

/* ---- The sender -------------------------------------------------------------------- */

/* Where the sender has what is at the beginning of a file. */
static struct origin {
	char *base;
	int fd;
} origins[FILES_MAX];
static unsigned nr_origins;
static int sock = -1;

/* Sends a message and waits for the receiver's word on it. */
static int ask(struct message m, int fd)
{
	int err = message_send(sock, &m, fd);

	if (!err)
		err = message_receive(sock, &m, &fd);
	return err ? err : -(int)m.bytes;
}

static int file_of(const struct pcpa_arena_info *arena)
{
	unsigned f = 0;

	while (f < nr_origins && origins[f].fd != arena->fd)
		f++;
	if (f == FILES_MAX)
		return -ENOSPC;
	if (f == nr_origins)
		origins[nr_origins++] = (struct origin){
			(char *)arena->base - arena->offset, arena->fd
		};
	return (int)f;
}

/* Called by the heap before an arena's first use and after its last. */
static int on_arena(enum pcpa_arena_change change,
		    const struct pcpa_arena_info *arena, void *arg)
{
	unsigned *changes = arg;
	int file = file_of(arena);
	struct message m = { .kind = change == PCPA_ARENA_ADD ? ADD : REMOVE,
			     .file = (unsigned)file,
			     .offset = arena->offset,
			     .bytes = arena->bytes };

	if (file < 0)
		return file;
	changes[change]++;
	return ask(m, m.kind == ADD ? arena->fd : -1);
}

/* A block as the receiver finds it: arenas of a file keep their distances. */
static struct message reference(const void *block, size_t bytes)
{
	struct message m = { .kind = PACKET, .bytes = bytes };
	unsigned f;

	m.offset = UINT64_MAX;
	for (f = 0; f < nr_origins; f++) {
		uintptr_t at = (uintptr_t)block - (uintptr_t)origins[f].base;

		/* Of the windows before the block its own is the nearest. */
		if ((const char *)block >= origins[f].base && at < m.offset) {
			m.file = f;
			m.offset = at;
		}
	}
	return m;
}

static int packet_send(struct packet *p, uint64_t number)
{
	size_t bytes = sizeof(*p) + 900;
	int err;

	p->number = number;
	p->answer = 0;
	memset(p->payload, (int)number, bytes - sizeof(*p));
	err = ask(reference(p, bytes), -1);
	if (!err && p->answer != sum_of(p, bytes)) {
		fprintf(stderr, "packet %llu came as another\n",
			(unsigned long long)number);
		err = -EBADMSG;
	}
	return err;
}

/* All packets are in memory at once, which makes the heap grow. */
static int send_packets(struct pcpa_heap *heap)
{
	static void *blocks[PACKETS];
	size_t got, i;
	int err = 0;

	got = pcpa_alloc_bulk(heap, 0, 0, blocks, PACKETS);
	if (got < PACKETS)
		err = -errno;
	for (i = 0; i < got && !err; i++)
		err = packet_send(blocks[i], i);
	pcpa_free_bulk(heap, blocks, got);
	return err;
}

/* Each round grows into memory that the one before has given back. */
static int rounds(struct pcpa_heap *heap)
{
	int err = 0;

	for (unsigned i = 0; i < ROUNDS && !err; i++) {
		err = send_packets(heap);
		pcpa_heap_trim(heap, 0);
	}
	return err;
}

static int sender(void)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	unsigned changes[2] = { 0, 0 };
	struct pcpa_heap *heap;
	int err;

	opts.flags = PCPA_HEAP_SHARED;
	opts.max_bytes = 64u << 20;
	err = pcpa_heap_create(&opts, &heap);
	if (err) {
		fprintf(stderr, "heap: %s\n", strerror(-err));
		return 1;
	}
	err = pcpa_heap_notify(heap, on_arena, changes);
	if (!err)
		err = rounds(heap);
	if (err)
		fprintf(stderr, "sender: %s\n", strerror(-err));
	printf("sender: %u arenas added, %u parts removed\n",
	       changes[PCPA_ARENA_ADD], changes[PCPA_ARENA_REMOVE]);
	if (pcpa_heap_destroy(heap) != 0)
		err = -EBUSY;
	return message_send(sock, &(struct message){ .kind = END }, -1) || err;
}

/* Runs this file again as the receiver, with its end of the socket. */
static pid_t receiver_start(int end)
{
	pid_t pid = fork();
	char number[16];

	if (pid != 0)
		return pid;
	snprintf(number, sizeof(number), "%d", dup(end)); /* open after exec */
	execl("/proc/self/exe", "shared_heap", number, (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	int ends[2], status = 0, failed;
	pid_t pid;

	if (argc > 1)
		return receiver(atoi(argv[1]));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		perror("socketpair");
		return 1;
	}
	sock = ends[0];
	pid = receiver_start(ends[1]);
	close(ends[1]);
	if (pid < 0) {
		perror("fork");
		return 1;
	}
	failed = sender();
	close(sock);
	waitpid(pid, &status, 0);
	return failed || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

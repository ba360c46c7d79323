/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet_capture.c - captures what passes an interface, like a small tcpdump, in
 * blocks of a heap.
 *
 *    kernel --recvmmsg--> receive thread --pipe--> worker 1..N --> file
 *                          takes blocks            frees blocks
 *
 * The receive thread has 64 blocks of one page (4 KiB) ready, and the kernel writes
 * the next packets straight into them; one bulk call replaces those that were used.
 * How long a packet is shows only when it is there: what doesn't fit goes on in a
 * buffer aside, and is copied, once, into a block of the order that its length needs
 * (1: up to 8 KiB, 2: 16, 3: 32, ...).  So each packet lies in one piece, in the
 * smallest block that holds it.  Workers take batches, look at the packets, write
 * them, and free them with one bulk call: the blocks come back to the receive thread
 * in batches, through the heap's depot.
 *
 * A block begins with a struct packet; the bytes follow at HEADROOM, which leaves
 * room for the VLAN tag that the kernel took out.  Batches are numbered, and written
 * in turn, so that the file has the order of arrival for any number of workers.
 *
 * Nothing is lost without being counted: by the kernel, when its queue is full, or
 * here, when the heap has no block.  At the end each packet must be accounted for and
 * each block be back; else the exit status is 1.  docs/af_packet.md explains the
 * numbers.
 */
#define _GNU_SOURCE
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include <argp.h>
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <limits.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/if_ether.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64	   /* packets that are received and handed over at once */
#define HEADROOM 128	   /* bytes before a packet's first, in its block */
#define VLAN_TAG 4	   /* bytes */
#define MAX_SNAPLEN 262144 /* as tcpdump's */
#define MAX_WORKERS 256
#define NR_ORDERS (PCPA_MAX_ORDER + 1)

/* ---- Options ------------------------------------------------------------- */

static struct {
	const char *iface, *file, *filter;
	unsigned long long workers, snaplen, heap_bytes, buffer_bytes;
	unsigned long long count, seconds; /* 0: no end */
	bool not_promiscuous;
} opt = {
	.filter = "",
	.workers = 2,
	.snaplen = MAX_SNAPLEN,
	.heap_bytes = 256u << 20,
	.buffer_bytes = 32u << 20,
};

static const struct argp_option argp_options[] = {
	{"interface", 'i', "IFACE", 0, "Capture on this interface", 0},
	{"write", 'w', "FILE", 0,
	 "Write to FILE, as pcap with nanoseconds; -: standard output", 0},
	{"workers", 'n', "WORKERS", 0, "Number of worker threads (2)", 0},
	{"count", 'c', "COUNT", 0, "End after COUNT packets", 0},
	{"time", 't', "SECONDS", 0, "End after so many seconds", 0},
	{"snaplen", 's', "BYTES", 0, "Keep the first BYTES (262144)", 0},
	{"heap-size", 'H', "SIZE", 0, "Bound of the blocks' memory (256M)", 0},
	{"buffer-size", 'B', "SIZE", 0, "Bound of the kernel's queue (32M)", 0},
	{"no-promiscuous-mode", 'p', 0, 0, "Only what is for this machine", 0},
	{0},
};

static const struct number {
	int key;
	const char *name, *units; /* each is 1024 of the one before */
	unsigned long long *value, min, max;
} numbers[] = {
	{'n', "workers", "", &opt.workers, 1, MAX_WORKERS},
	{'c', "count", "", &opt.count, 1, ULLONG_MAX},
	{'t', "time", "", &opt.seconds, 1, 1u << 30},
	{'s', "snaplen", "", &opt.snaplen, 1, MAX_SNAPLEN},
	{'H', "heap-size", "KMG", &opt.heap_bytes, 4096, 1ull << 43},
	{'B', "buffer-size", "KMG", &opt.buffer_bytes, 4096, 1u << 30},
};

static void number_parse(const struct number *n, const char *text,
			 struct argp_state *state)
{
	unsigned long long value;
	unsigned shift = 0;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end && strchr(n->units, *end))
		shift = 10 * (unsigned)(strchr(n->units, *end++) - n->units + 1);
	if (text[0] < '0' || text[0] > '9' || *end || errno ||
	    value > n->max >> shift || value << shift < n->min)
		argp_error(state, "--%s '%s': not a number from %llu to %llu%s%s",
			   n->name, text, n->min, n->max,
			   *n->units ? ", also in " : "", n->units);
	*n->value = value << shift;
}

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].key == key) {
			number_parse(&numbers[i], arg, state);
			return 0;
		}
	if (key == 'i')
		opt.iface = arg;
	else if (key == 'w')
		opt.file = arg;
	else if (key == 'p')
		opt.not_promiscuous = true;
	else if (key == ARGP_KEY_ARG && state->arg_num == 0)
		opt.filter = arg;
	else if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s': quote the filter", arg);
	else if (key == ARGP_KEY_END && !opt.iface)
		argp_error(state, "-i IFACE is required");
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

/* ---- State --------------------------------------------------------------- */

/* At the start of each block. */
struct packet {
	struct timespec time;
	unsigned char *bytes; /* in the block, from HEADROOM - VLAN_TAG on */
	uint32_t captured, length; /* of bytes; of the packet */
};

struct worker {
	pthread_t thread;
	unsigned long long packets, bytes; /* that it has processed */
};

static struct pcpa_heap *heap;
static size_t page_bytes;
static int sock;
static bool has_link_header; /* else packets begin with that of IP */

static atomic_bool stopping; /* the capture is to end */
static atomic_bool stopped;  /* the receive thread has ended */
static atomic_bool failed;   /* which has been said */

/* Written by the receive thread. */
static struct {
	_Atomic unsigned long long packets;	      /* that were received */
	_Atomic unsigned long long bytes;	      /* of those with a block */
	_Atomic unsigned long long no_block;	      /* those without */
	_Atomic unsigned long long orders[NR_ORDERS]; /* those with, by order */
} received;

/* What the kernel has counted; of the main thread. */
static struct {
	unsigned long long seen, dropped;
} kernel;

/* Ends the capture; what is there is kept. */
static void fail(const char *what, int error)
{
	warnx("%s: %s", what, strerror(error));
	failed = true;
	stopping = true;
}

/* ---- Batches between the threads ----------------------------------------- */

struct batch {
	unsigned long long number;
	size_t n;
	void *blocks[BATCH];
};

_Static_assert(sizeof(struct batch) <= PIPE_BUF, "a pipe keeps it in one piece");

/* Whoever writes waits while it is full (of some thousand batches); packets wait
 * in the kernel's queue then.  Closed at the end, so that reads return 0. */
static int batches[2];

static void batch_put(const struct batch *batch)
{
	if (write(batches[1], batch, sizeof(*batch)) != sizeof(*batch))
		err(1, "pipe");
}

static bool batch_get(struct batch *batch)
{
	return read(batches[0], batch, sizeof(*batch)) == sizeof(*batch);
}

/* ---- Output file --------------------------------------------------------- */

static struct {
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	unsigned long long turn; /* the batch that is written next */
	unsigned long long written, unwritten;
	pcap_dumper_t *dumper; /* NULL: no file */
} output = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static void output_open(pcap_t *pcap)
{
	output.dumper = pcap_dump_open(pcap, opt.file);
	if (!output.dumper)
		errx(1, "cannot write: %s", pcap_geterr(pcap));
	if (pcap_dump_flush(output.dumper))
		err(1, "cannot write '%s'", opt.file);
	setvbuf(pcap_dump_file(output.dumper), NULL, _IOFBF, 1 << 20);
}

/* Returns 0 or an errno. */
static int packets_write(const struct batch *batch)
{
	errno = 0;
	for (size_t i = 0; i < batch->n; i++) {
		const struct packet *packet = batch->blocks[i];
		struct pcap_pkthdr header = {
			/* In this file the microseconds are nanoseconds. */
			.ts = {packet->time.tv_sec, packet->time.tv_nsec},
			.caplen = packet->captured,
			.len = packet->length,
		};

		pcap_dump((u_char *)output.dumper, &header, packet->bytes);
	}
	if (pcap_dump_flush(output.dumper) ||
	    ferror(pcap_dump_file(output.dumper)))
		return errno ? errno : EIO;
	return 0;
}

/* Waits for the batch's turn.  They are taken in order, so whoever has the next one
 * waits for nobody. */
static void batch_write(const struct batch *batch)
{
	int error = 0;

	pthread_mutex_lock(&output.lock);
	while (output.turn != batch->number)
		pthread_cond_wait(&output.changed, &output.lock);
	if (output.unwritten == 0)
		error = packets_write(batch);
	if (error)
		fail(opt.file, error);
	if (error || output.unwritten > 0)
		output.unwritten += batch->n;
	else
		output.written += batch->n;
	output.turn++;
	pthread_cond_broadcast(&output.changed);
	pthread_mutex_unlock(&output.lock);
}

/* ---- Workers ------------------------------------------------------------- */

/* What your program does with a packet goes here. */
static void packet_process(struct worker *worker, const struct packet *packet)
{
	worker->packets++;
	worker->bytes += packet->length;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct batch batch;

	while (batch_get(&batch)) {
		for (size_t i = 0; i < batch.n; i++)
			packet_process(worker, batch.blocks[i]);
		if (output.dumper)
			batch_write(&batch);
		pcpa_free_bulk(heap, batch.blocks, batch.n);
	}
	return NULL;
}

/* ---- Receive thread ------------------------------------------------------ */

static struct {
	void *blocks[BATCH]; /* of order 0, for the next packets; NULL: used */
	char *rest;	     /* BATCH times snaplen, for what doesn't fit */
	struct iovec pieces[BATCH][2];
	struct mmsghdr messages[BATCH];
	union { /* a packet's timestamp and what else is known of it */
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct timespec)) +
			  CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control[BATCH];
} rx;

static void message_prepare(unsigned i)
{
	rx.pieces[i][0].iov_base = (char *)rx.blocks[i] + HEADROOM;
	rx.pieces[i][0].iov_len = page_bytes - HEADROOM;
	rx.pieces[i][1].iov_base = rx.rest + i * opt.snaplen;
	rx.pieces[i][1].iov_len = opt.snaplen;
	rx.messages[i].msg_hdr = (struct msghdr){
		.msg_iov = rx.pieces[i],
		.msg_iovlen = 2,
		.msg_control = &rx.control[i],
		.msg_controllen = sizeof(rx.control[i]),
	};
}

/* A block with the bytes of packet i: that which they were received into, or a
 * larger one with a copy; NULL if there is none. */
static struct packet *packet_block(unsigned i, size_t bytes)
{
	struct iovec *piece = rx.pieces[i];
	char *block = rx.blocks[i];
	unsigned order = 0;

	while (page_bytes << order < HEADROOM + bytes)
		order++;
	if (order == 0) {
		rx.blocks[i] = NULL;
	} else {
		block = pcpa_alloc(heap, order, 0);
		if (!block)
			return NULL;
		memcpy(block + HEADROOM, piece[0].iov_base, piece[0].iov_len);
		memcpy(block + page_bytes, piece[1].iov_base,
		       bytes - piece[0].iov_len);
	}
	received.orders[order]++;
	return (struct packet *)(void *)block;
}

/* The tag that the kernel took out goes back behind the two addresses. */
static void vlan_insert(struct packet *packet, const struct tpacket_auxdata *aux)
{
	bool typed = aux->tp_status & TP_STATUS_VLAN_TPID_VALID;
	uint16_t tag[2] = {htons(typed ? aux->tp_vlan_tpid : ETH_P_8021Q),
			   htons(aux->tp_vlan_tci)};

	packet->length += VLAN_TAG;
	if (packet->captured < 2 * ETH_ALEN)
		return;
	packet->bytes -= VLAN_TAG;
	memmove(packet->bytes, packet->bytes + VLAN_TAG, 2 * ETH_ALEN);
	memcpy(packet->bytes + 2 * ETH_ALEN, tag, VLAN_TAG);
	packet->captured += VLAN_TAG;
	if (packet->captured > opt.snaplen)
		packet->captured = (uint32_t)opt.snaplen;
}

static void packet_describe(struct packet *packet, struct mmsghdr *message)
{
	struct msghdr *header = &message->msg_hdr;
	struct tpacket_auxdata aux = {.tp_len = message->msg_len};
	struct timespec time = {0, 0};
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SCM_TIMESTAMPNS)
			memcpy(&time, CMSG_DATA(c), sizeof(time));
		if (c->cmsg_level == SOL_PACKET &&
		    c->cmsg_type == PACKET_AUXDATA)
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	}
	packet->time = time;
	packet->bytes = (unsigned char *)packet + HEADROOM;
	packet->captured = message->msg_len;
	packet->length = aux.tp_len;
	if (has_link_header && aux.tp_status & TP_STATUS_VLAN_VALID)
		vlan_insert(packet, &aux);
}

static void packets_hand_over(unsigned n)
{
	static struct batch batch;

	batch.n = 0;
	for (unsigned i = 0; i < n; i++) {
		struct packet *packet =
			packet_block(i, rx.messages[i].msg_len);

		if (!packet) {
			received.no_block++;
			continue;
		}
		packet_describe(packet, &rx.messages[i]);
		received.bytes += packet->length;
		batch.blocks[batch.n++] = packet;
	}
	if (batch.n > 0) {
		batch_put(&batch);
		batch.number++;
	}
}

/* Takes up to n packets off the socket, and forgets them.  Returns how many. */
static unsigned packets_discard(unsigned n)
{
	unsigned i = 0;

	while (i < n && recv(sock, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0)
		i++;
	return i;
}

/* Receives what is there, up to `most` packets.  Returns how many, or -1. */
static int batch_receive(unsigned most)
{
	unsigned ready = (unsigned)pcpa_refill(heap, 0, 0, rx.blocks, most);
	int n;

	if (ready == 0) {
		n = (int)packets_discard(most);
		received.packets += (unsigned)n;
		received.no_block += (unsigned)n;
		return n;
	}
	for (unsigned i = 0; i < ready; i++)
		message_prepare(i);
	n = recvmmsg(sock, rx.messages, ready, MSG_DONTWAIT, NULL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	received.packets += (unsigned)n;
	packets_hand_over((unsigned)n);
	return n;
}

/* From now on no packet gets into the socket. */
static void packets_refuse(void)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {.len = 1, .filter = &none};

	if (setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)))
		fail("cannot end the capture", errno);
}

static unsigned packets_wanted(void)
{
	unsigned long long left = opt.count - received.packets;

	return !opt.count || left > BATCH ? BATCH : (unsigned)left;
}

/* Until COUNT packets are there, or it is to stop and the socket is empty. */
static void *receive(void *arg)
{
	struct pollfd readable = {.fd = sock, .events = POLLIN};
	bool last = false;
	int n = 0;

	while (packets_wanted() > 0 && !(n == 0 && last)) {
		if (stopping && !last) {
			packets_refuse();
			last = true;
		}
		n = batch_receive(packets_wanted());
		if (n < 0) {
			fail(opt.iface, errno);
			break;
		}
		if (n == 0 && !last)
			poll(&readable, 1, 100);
	}
	pcpa_free_bulk(heap, rx.blocks, BATCH);
	close(batches[1]);
	stopped = true;
	kill(getpid(), SIGUSR1); /* wakes the main thread */
	return arg;
}

/* ---- Socket -------------------------------------------------------------- */

/* Its ARPHRD_*; ends the program where packets of such an interface aren't known. */
static int iface_type(void)
{
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), type;

	snprintf(request.ifr_name, IFNAMSIZ, "%s", opt.iface);
	if (strlen(opt.iface) >= IFNAMSIZ || ioctl(fd, SIOCGIFHWADDR, &request))
		errx(1, "no such interface: '%s'", opt.iface);
	close(fd);
	type = request.ifr_hwaddr.sa_family;
	has_link_header = type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK;
	if (!has_link_header && type != ARPHRD_NONE && type != ARPHRD_PPP &&
	    type != ARPHRD_TUNNEL && type != ARPHRD_TUNNEL6 &&
	    type != ARPHRD_SIT && type != ARPHRD_IPGRE)
		errx(1, "'%s': unknown type of link %d", opt.iface, type);
	return type;
}

static void socket_set(int level, int option, int value)
{
	if (setsockopt(sock, level, option, &value, sizeof(value)))
		err(1, "socket option %d of level %d", option, level);
}

static void socket_open(void)
{
	int type = iface_type(), bytes = (int)opt.buffer_bytes;

	/* Protocol 0: no packets before it is bound to the interface. */
	sock = socket(AF_PACKET, has_link_header ? SOCK_RAW : SOCK_DGRAM, 0);
	if (sock < 0)
		err(1, "no packet socket%s",
		    errno == EPERM ? " without CAP_NET_RAW: run it as root" : "");
	socket_set(SOL_SOCKET, SO_TIMESTAMPNS, 1);
	socket_set(SOL_PACKET, PACKET_AUXDATA, 1);
	if (type == ARPHRD_LOOPBACK) /* which each packet passes twice */
		socket_set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	/* The first needs CAP_NET_ADMIN, the second has a bound. */
	if (setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		socket_set(SOL_SOCKET, SO_RCVBUF, bytes);
}

/* Also without a filter: the program cuts packets to the snaplen. */
static void filter_attach(pcap_t *pcap)
{
	struct bpf_program program;
	struct sock_fprog attached;

	if (pcap_compile(pcap, &program, opt.filter, 1,
			 PCAP_NETMASK_UNKNOWN))
		errx(1, "filter '%s': %s", opt.filter, pcap_geterr(pcap));
	attached.len = (unsigned short)program.bf_len;
	attached.filter = (struct sock_filter *)(void *)program.bf_insns;
	if (program.bf_len > BPF_MAXINSNS ||
	    setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &attached,
		       sizeof(attached)))
		errx(1, "filter '%s': too much for the kernel", opt.filter);
	pcap_freecode(&program);
}

/* The capture begins. */
static void socket_bind(void)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(opt.iface),
	};
	struct packet_mreq all = {.mr_ifindex = address.sll_ifindex,
				  .mr_type = PACKET_MR_PROMISC};

	if (address.sll_ifindex == 0 ||
	    bind(sock, (struct sockaddr *)&address, sizeof(address)))
		err(1, "'%s'", opt.iface);
	if (!opt.not_promiscuous &&
	    setsockopt(sock, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
		       sizeof(all)))
		err(1, "'%s': not promiscuous (try -p)", opt.iface);
}

/* ---- A line each second -------------------------------------------------- */

enum count { PACKETS, BYTES, DROPPED, NO_BLOCK, ALLOCS, MISSES, LOCKS, NR_COUNTS };

/* The kernel's counters begin anew at each reading. */
static void kernel_read(void)
{
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof(stats);

	getsockopt(sock, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
	kernel.seen += stats.tp_packets;
	kernel.dropped += stats.tp_drops;
}

static void counts_read(unsigned long long *counts)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;

	kernel_read();
	pcpa_stats_read(heap, -1, &stats);
	counts[PACKETS] = received.packets;
	counts[BYTES] = received.bytes;
	counts[DROPPED] = kernel.dropped;
	counts[NO_BLOCK] = received.no_block;
	counts[ALLOCS] = stats.alloc_total;
	counts[MISSES] = stats.refills;
	for (unsigned order = 4; order < NR_ORDERS; order++)
		counts[MISSES] += received.orders[order]; /* never cached */
	counts[LOCKS] = stats.zone_locks;
}

static void line_print(unsigned line)
{
	static unsigned long long before[NR_COUNTS];
	unsigned long long now[NR_COUNTS], d[NR_COUNTS];
	double missed;

	counts_read(now);
	for (unsigned i = 0; i < NR_COUNTS; i++)
		d[i] = now[i] - before[i];
	memcpy(before, now, sizeof(before));
	missed = d[ALLOCS] ? 100.0 * (double)d[MISSES] / (double)d[ALLOCS] : 0.0;
	if (line % 20 == 1)
		fprintf(stderr, "second    packets     Mbit  kernel-drops  "
				"no-block  cache-hits  zone-locks\n");
	fprintf(stderr, "%6u %10llu %8.1f %13llu %9llu %10.2f%% %11llu\n", line,
		d[PACKETS], 8e-6 * (double)d[BYTES], d[DROPPED], d[NO_BLOCK],
		100.0 - missed, d[LOCKS]);
}

/* Until a signal comes, the time is over, or the receive thread has ended. */
static void lines_print(const sigset_t *signals)
{
	static const struct timespec second = {1, 0};
	unsigned line = 0;
	int got;

	while (!stopped && (!opt.seconds || line < opt.seconds)) {
		got = sigtimedwait(signals, NULL, &second);
		if (got == SIGINT || got == SIGTERM)
			break;
		if (got < 0 && errno == EAGAIN) {
			line_print(++line);
			pcpa_heap_tick(heap);
		}
	}
}

/* ---- The end ------------------------------------------------------------- */

/* Counts what is left in the socket, with packets that were on their way when the
 * filter shut it. */
static unsigned long long socket_empty(void)
{
	unsigned long long left = 0;

	packets_refuse();
	for (int tries = 0; tries < 100; tries++) {
		left += packets_discard(UINT_MAX);
		kernel_read();
		if (kernel.seen == received.packets + kernel.dropped + left)
			break;
		usleep(1000);
	}
	return left;
}

/* Whether all packets and blocks are accounted for. */
static bool summary_print(const struct worker *workers, unsigned long long left)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;
	unsigned long long packets = 0, bytes = 0;

	for (size_t i = 0; i < opt.workers; i++) {
		packets += workers[i].packets;
		bytes += workers[i].bytes;
	}
	pcpa_stats_read(heap, -1, &stats);
	fprintf(stderr,
		"%llu packets seen = %llu received + %llu dropped by the kernel "
		"+ %llu left unread\n"
		"%llu received = %llu processed + %llu without a block\n",
		kernel.seen, received.packets, kernel.dropped, left,
		received.packets, packets, received.no_block);
	if (output.dumper)
		fprintf(stderr, "%llu processed = %llu written + %llu not\n",
			packets, output.written, output.unwritten);
	fprintf(stderr, "blocks");
	for (unsigned order = 0; order < NR_ORDERS; order++)
		if (received.orders[order])
			fprintf(stderr, " of order %u: %llu,", order,
				received.orders[order]);
	fprintf(stderr, " not back: %llu\n", (unsigned long long)stats.used_blocks);
	return kernel.seen == received.packets + kernel.dropped + left &&
	       received.packets == packets + received.no_block &&
	       received.bytes == bytes && stats.used_blocks == 0 &&
	       (!output.dumper || packets == output.written + output.unwritten);
}

/* ---- Main ---------------------------------------------------------------- */

static void heap_open(void)
{
	struct pcpa_heap_options options = PCPA_HEAP_OPTIONS_INIT;
	int error;

	options.max_bytes = opt.heap_bytes;
	options.initial_bytes = opt.heap_bytes < 16u << 20 ? opt.heap_bytes : 16u << 20;
	error = pcpa_heap_create(&options, &heap);
	if (error)
		errx(1, "no heap of %llu bytes: %s", opt.heap_bytes,
		     strerror(-error));
	page_bytes = pcpa_heap_page_bytes(heap);
	rx.rest = calloc(BATCH, opt.snaplen);
	if (!rx.rest)
		err(1, "no memory");
}

static void capture_open(void)
{
	pcap_t *pcap;

	socket_open();
	pcap = pcap_open_dead_with_tstamp_precision(
		has_link_header ? DLT_EN10MB : DLT_RAW, (int)opt.snaplen,
		PCAP_TSTAMP_PRECISION_NANO);
	filter_attach(pcap);
	heap_open();
	if (pipe2(batches, O_CLOEXEC))
		err(1, "pipe");
	fcntl(batches[1], F_SETPIPE_SZ, 1 << 20);
	if (opt.file)
		output_open(pcap);
	socket_bind();
}

static pthread_t thread_start(void *(*run)(void *), void *arg)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, arg);

	if (error)
		errx(1, "no thread: %s", strerror(error));
	return thread;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		argp_options, option_parse, "['FILTER']",
		"Captures packets.  FILTER is one of pcap-filter(7), quoted.",
		NULL, NULL, NULL};
	static struct worker workers[MAX_WORKERS];
	pthread_t receiver;
	sigset_t signals;
	bool good;

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* in all threads */
	signal(SIGPIPE, SIG_IGN);
	capture_open();

	receiver = thread_start(receive, NULL);
	for (size_t i = 0; i < opt.workers; i++)
		workers[i].thread = thread_start(work, &workers[i]);
	warnx("capturing on %s", opt.iface);
	lines_print(&signals);
	stopping = true;
	sigdelset(&signals, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* a second one kills */
	pthread_join(receiver, NULL);
	for (size_t i = 0; i < opt.workers; i++)
		pthread_join(workers[i].thread, NULL);

	good = summary_print(workers, socket_empty());
	if (output.dumper && fclose(pcap_dump_file(output.dumper)))
		fail(opt.file, errno);
	if (!good || pcpa_heap_destroy(heap))
		errx(1, "packets or blocks are missing");
	return failed;
}

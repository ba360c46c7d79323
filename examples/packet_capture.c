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
 * smallest block that holds it, behind a struct packet and some headroom.  Workers
 * take batches, look at the packets, write them in the order of arrival, and free
 * them with one bulk call: the blocks come back to the receive thread in batches,
 * through the heap's depot.
 *
 * Nothing is lost without being counted: by the kernel, when its queue is full, or
 * here, when the heap has no block.  At the end each packet must be accounted for and
 * each block be back; else the exit status is 1.  docs/af_packet.md has the rest.
 */
#define _GNU_SOURCE
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include <argp.h>
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
} opt = {
	.filter = "",
	.workers = 2,
	.snaplen = MAX_SNAPLEN,
	.heap_bytes = 256u << 20,
	.buffer_bytes = 32u << 20,
};

static const struct argp_option argp_options[] = {
	{"interface", 'i', "IFACE", 0, "Capture on this interface", 0},
	{"write", 'w', "FILE", 0, "Write to FILE (-: stdout) as pcap", 0},
	{"workers", 'n', "WORKERS", 0, "Number of worker threads (2)", 0},
	{"count", 'c', "COUNT", 0, "End after COUNT packets", 0},
	{"time", 't', "SECONDS", 0, "End after so many seconds", 0},
	{"snaplen", 's', "BYTES", 0, "Keep the first BYTES (262144)", 0},
	{"heap-size", 'H', "SIZE", 0, "Bound of the blocks' memory (256M)", 0},
	{"buffer-size", 'B', "SIZE", 0, "Bound of the kernel's queue (32M)", 0},
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

static error_t number_parse(const struct number *n, const char *text,
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
	return 0;
}

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].key == key)
			return number_parse(&numbers[i], arg, state);
	if (key == 'i')
		opt.iface = arg;
	else if (key == 'w')
		opt.file = arg;
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

struct thread {
	_Alignas(64) pthread_t id;
	unsigned long long packets, bytes; /* that it has processed */
};

static struct pcpa_heap *heap;
static size_t page_bytes;
static int sock;
static bool has_link_header; /* else packets begin with that of IP */
static atomic_bool stopping; /* the capture is to end */
static atomic_bool failed;   /* which has been said */

/* Written by the receive thread. */
static struct {
	_Atomic unsigned long long packets;	      /* that were received */
	_Atomic unsigned long long bytes;	      /* of those with a block */
	_Atomic unsigned long long no_block;	      /* those without */
	_Atomic unsigned long long orders[NR_ORDERS]; /* those with, by order */
} received;

/* Ends the capture; what is there is kept. */
static void fail(const char *what, int error)
{
	warnx("%s: %s", what, strerror(error));
	failed = true;
	stopping = true;
}

struct batch {
	unsigned long long number;
	size_t n;
	void *blocks[BATCH];
};
_Static_assert(sizeof(struct batch) <= PIPE_BUF, "a pipe keeps it whole");

/* A pipe: a write waits while it is full of batches, so that packets wait in the
 * kernel's queue; when its end is closed, reads return 0. */
static int batches[2];

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
	if (pcap_dump_flush(output.dumper) || ferror(pcap_dump_file(output.dumper)))
		return errno ? errno : EIO;
	return 0;
}

/* Waits for the batch's turn.  They are taken in order, so whoever has the next one
 * waits for nobody. */
static void batch_write(const struct batch *batch)
{
	int error;

	pthread_mutex_lock(&output.lock);
	while (output.turn != batch->number)
		pthread_cond_wait(&output.changed, &output.lock);
	error = output.unwritten ? 0 : packets_write(batch);
	if (error)
		fail(opt.file, error);
	if (error || output.unwritten)
		output.unwritten += batch->n;
	else
		output.written += batch->n;
	output.turn++;
	pthread_cond_broadcast(&output.changed);
	pthread_mutex_unlock(&output.lock);
}

/* What your program does with a packet goes here. */
static void packet_process(struct thread *thread, const struct packet *packet)
{
	thread->packets++;
	thread->bytes += packet->length;
}

static void *work(void *arg)
{
	struct batch batch;

	while (read(batches[0], &batch, sizeof(batch)) == sizeof(batch)) {
		for (size_t i = 0; i < batch.n; i++)
			packet_process(arg, batch.blocks[i]);
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
	char *block = rx.blocks[i];

	rx.pieces[i][0].iov_base = block ? block + HEADROOM : rx.rest;
	rx.pieces[i][0].iov_len = block ? page_bytes - HEADROOM : 0;
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
	const struct iovec *piece = rx.pieces[i];
	char *block = rx.blocks[i];
	unsigned order = 0;

	while (page_bytes << order < HEADROOM + bytes)
		order++;
	if (order > 0)
		block = pcpa_alloc(heap, order, 0);
	else
		rx.blocks[i] = NULL;
	if (!block)
		return NULL;
	if (order > 0) {
		memcpy(block + HEADROOM, piece[0].iov_base, piece[0].iov_len);
		memcpy(block + HEADROOM + piece[0].iov_len, piece[1].iov_base,
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
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
		if (c->cmsg_type == SCM_TIMESTAMPNS && c->cmsg_level == SOL_SOCKET)
			memcpy(&packet->time, CMSG_DATA(c), sizeof(packet->time));
		else if (c->cmsg_type == PACKET_AUXDATA && c->cmsg_level == SOL_PACKET)
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
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
		struct mmsghdr *message = &rx.messages[i];
		struct packet *packet = packet_block(i, message->msg_len);

		if (!packet) {
			received.no_block++;
			continue;
		}
		packet_describe(packet, message);
		received.bytes += packet->length;
		batch.blocks[batch.n++] = packet;
	}
	if (batch.n == 0)
		return;
	if (write(batches[1], &batch, sizeof(batch)) != sizeof(batch))
		err(1, "pipe");
	batch.number++;
}

/* Receives what is there, up to `most` packets.  Returns how many, or -1. */
static int batch_receive(unsigned most)
{
	int n;

	pcpa_refill(heap, 0, 0, rx.blocks, most); /* as far as there are any */
	for (unsigned i = 0; i < most; i++)
		message_prepare(i);
	n = recvmmsg(sock, rx.messages, most, MSG_DONTWAIT, NULL);
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

	setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Until COUNT packets are there, or it is to stop and the socket is empty. */
static void *receive(void *arg)
{
	struct pollfd readable = {.fd = sock, .events = POLLIN};
	unsigned long long wanted;
	bool last = false;
	int n = 0;

	do {
		if (n == 0 && !last)
			poll(&readable, 1, 100);
		if (stopping && !last) {
			packets_refuse();
			last = true;
		}
		wanted = opt.count ? opt.count - received.packets : BATCH;
		n = batch_receive(wanted < BATCH ? (unsigned)wanted : BATCH);
	} while (n > 0 || (n == 0 && !last && wanted > 0));
	if (n < 0)
		fail(opt.iface, errno);
	pcpa_free_bulk(heap, rx.blocks, BATCH);
	close(batches[1]);
	return arg;
}

/* ---- Socket -------------------------------------------------------------- */

/* Its ARPHRD_*; ends the program where there is none such, or unknown. */
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
		err(1, "no packet socket (it needs root, or CAP_NET_RAW)");
	socket_set(SOL_SOCKET, SO_TIMESTAMPNS, 1);
	socket_set(SOL_PACKET, PACKET_AUXDATA, 1);
	if (type == ARPHRD_LOOPBACK) /* which each packet passes twice */
		socket_set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	/* SO_RCVBUFFORCE needs CAP_NET_ADMIN, SO_RCVBUF has a bound. */
	if (setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		socket_set(SOL_SOCKET, SO_RCVBUF, bytes);
}

/* Also without a filter: the program cuts packets to the snaplen. */
static void filter_attach(pcap_t *pcap)
{
	struct bpf_program program;
	struct sock_fprog p;

	if (pcap_compile(pcap, &program, opt.filter, 1, PCAP_NETMASK_UNKNOWN))
		errx(1, "filter '%s': %s", opt.filter, pcap_geterr(pcap));
	p.len = (unsigned short)program.bf_len;
	p.filter = (struct sock_filter *)(void *)program.bf_insns;
	if (program.bf_len > BPF_MAXINSNS ||
	    setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)))
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
	if (setsockopt(sock, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)))
		warn("'%s' is not promiscuous", opt.iface);
}

/* ---- Numbers ------------------------------------------------------------- */

static unsigned long long kernel_seen, kernel_dropped;

/* The kernel's counters begin anew at each reading. */
static void kernel_read(void)
{
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof(stats);

	getsockopt(sock, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
	kernel_seen += stats.tp_packets;
	kernel_dropped += stats.tp_drops;
}

enum { PACKETS, BYTES, DROPPED, NO_BLOCK, ALLOCS, MISSES, LOCKS, NR_COUNTS };

static void counts_read(unsigned long long *counts)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;

	kernel_read();
	for (unsigned order = 4; order < NR_ORDERS; order++)
		counts[MISSES] += received.orders[order]; /* never cached */
	pcpa_stats_read(heap, -1, &stats);
	counts[PACKETS] = received.packets;
	counts[BYTES] = received.bytes;
	counts[DROPPED] = kernel_dropped;
	counts[NO_BLOCK] = received.no_block;
	counts[ALLOCS] = stats.alloc_total;
	counts[MISSES] += stats.refills;
	counts[LOCKS] = stats.zone_locks;
}

static void line_print(unsigned line)
{
	static unsigned long long before[NR_COUNTS];
	unsigned long long now[NR_COUNTS] = {0}, d[NR_COUNTS];

	counts_read(now);
	for (unsigned i = 0; i < NR_COUNTS; i++)
		d[i] = now[i] - before[i];
	memcpy(before, now, sizeof(before));
	if (line % 20 == 1)
		fprintf(stderr, "second    packets     Mbit  kernel-drops  "
				"no-block  cache-hits  zone-locks\n");
	fprintf(stderr, "%6u %10llu %8.1f %13llu %9llu %10.2f%% %11llu\n", line,
		d[PACKETS], 8e-6 * (double)d[BYTES], d[DROPPED], d[NO_BLOCK],
		d[ALLOCS] ? 100.0 - 100.0 * (double)d[MISSES] / (double)d[ALLOCS]
			  : 100.0,
		d[LOCKS]);
}

/* Until the receive thread has ended. */
static void lines_print(pthread_t receiver)
{
	struct timespec next;
	unsigned line = 0;

	clock_gettime(CLOCK_MONOTONIC, &next);
	next.tv_sec++;
	while (pthread_clockjoin_np(receiver, NULL, CLOCK_MONOTONIC, &next)) {
		line_print(++line);
		pcpa_heap_tick(heap);
		if (line == opt.seconds)
			stopping = true;
		next.tv_sec++;
	}
}

/* Counts what is left in the socket, with packets that were on their way when the
 * filter shut it. */
static unsigned long long socket_empty(void)
{
	unsigned long long left = 0;

	packets_refuse();
	for (int tries = 0; tries < 100; tries++) {
		while (recv(sock, NULL, 0, MSG_DONTWAIT) >= 0)
			left++;
		kernel_read();
		if (kernel_seen == received.packets + kernel_dropped + left)
			break;
		usleep(1000);
	}
	return left;
}

/* Whether all packets and blocks are accounted for. */
static bool summary_print(const struct thread *all, unsigned long long left)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;
	unsigned long long packets = 0, bytes = 0;

	for (size_t i = 0; i <= opt.workers; i++) {
		packets += all[i].packets;
		bytes += all[i].bytes;
	}
	pcpa_stats_read(heap, -1, &stats);
	fprintf(stderr, "%llu packets seen = %llu received + %llu dropped by the "
			"kernel + %llu left unread\n",
		kernel_seen, received.packets, kernel_dropped, left);
	fprintf(stderr, "%llu received = %llu processed + %llu without a block\n",
		received.packets, packets, received.no_block);
	if (output.dumper)
		fprintf(stderr, "%llu processed = %llu written + %llu not\n",
			packets, output.written, output.unwritten);
	fprintf(stderr, "blocks");
	for (unsigned i = 0; i < NR_ORDERS; i++)
		if (received.orders[i])
			fprintf(stderr, " of order %u: %llu,", i, received.orders[i]);
	fprintf(stderr, " not back: %llu\n", (unsigned long long)stats.used_blocks);
	return kernel_seen == received.packets + kernel_dropped + left &&
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
	options.initial_bytes = opt.heap_bytes / 16; /* it grows */
	error = pcpa_heap_create(&options, &heap);
	if (error)
		errx(1, "heap of %llu: %s", opt.heap_bytes, strerror(-error));
	page_bytes = pcpa_heap_page_bytes(heap);
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
	rx.rest = calloc(BATCH, opt.snaplen);
	if (!rx.rest || pipe(batches))
		err(1, "no memory or pipe");
	fcntl(batches[1], F_SETPIPE_SZ, 1 << 20);
	if (opt.file)
		output_open(pcap);
	pcap_close(pcap);
	socket_bind();
}

static void on_signal(int number)
{
	(void)number;
	stopping = true;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {argp_options, option_parse, "['FILTER']",
					 "FILTER is one of pcap-filter(7), quoted.",
					 NULL, NULL, NULL};
	static struct thread threads[1 + MAX_WORKERS]; /* receive, then work */
	struct sigaction once = {.sa_handler = on_signal,
				 .sa_flags = SA_RESTART | (int)SA_RESETHAND};

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	signal(SIGPIPE, SIG_IGN);
	capture_open();
	sigaction(SIGINT, &once, NULL);
	sigaction(SIGTERM, &once, NULL);
	for (size_t i = 0; i <= opt.workers; i++)
		if (pthread_create(&threads[i].id, NULL, i ? work : receive,
				   &threads[i]))
			errx(1, "cannot start %llu threads", 1 + opt.workers);
	warnx("capturing on %s", opt.iface);
	lines_print(threads[0].id);
	for (size_t i = 1; i <= opt.workers; i++)
		pthread_join(threads[i].id, NULL);

	if (output.dumper && fclose(pcap_dump_file(output.dumper)))
		fail(opt.file, errno);
	if (!summary_print(threads, socket_empty()) || pcpa_heap_destroy(heap))
		errx(1, "packets or blocks are missing");
	return failed;
}

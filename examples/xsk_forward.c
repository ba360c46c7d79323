/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xsk_forward.c - forwards packets between two network interfaces with AF_XDP,
 * on frames from a heap.
 *
 *     xsk_forward eth0 eth1       eth0 -> eth1 and eth1 -> eth0
 *     xsk_forward eth0            back to eth0, with the MAC addresses swapped
 *
 * The memory that is shared with the kernel (UMEM) is the one arena of a heap of
 * fixed size, a frame is a block of order 0, and its address in the rings is the
 * offset in the arena.  So the heap is all the bookkeeping there is:
 *
 *     pcpa_alloc_bulk() -> fill ring -> kernel -> rx ring of a port
 *        -> tx ring of the other -> kernel -> completion ring -> pcpa_free_bulk_sized()
 *
 * Nothing is copied here, and nothing dropped: no more is taken from an rx ring than
 * the other port's tx ring has room for.  The kernel drops, where a fill ring is empty
 * or an rx ring full, and counts it.  At the end, with the sockets closed and the
 * heap's caches drained, each block that still has an order is one that the kernel
 * had: it is freed, and their number must be what the counters of the rings say.
 *
 * The program that the kernel runs on each packet hangs on a bpf_link, which ends
 * with this process, however it ends.  Nothing is left on the interfaces.
 *
 * One thread, one queue of each interface.  For more queues give each thread ports of
 * its own on the same heap and UMEM.  Linux 5.11; docs/af_xdp.md has more.
 */
#define _GNU_SOURCE /* getcpu */
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include <argp.h>
#include <bpf/bpf.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <xdp/xsk.h>

#define PORTS 2
#define BATCH_MAX 512
/* What the kernel keeps free in front of a received packet. */
#define KERNEL_HEADROOM 256
#define VLAN_TAG 4
#define NS_PER_S 1000000000ull
/* Says what is wrong and is -1. */
#define fail(...) (warnx(__VA_ARGS__), -1)

#define for_each_port(f, p)                                                    \
	for (struct port *p = (f)->ports; p < (f)->ports + (f)->nr_ports; p++)

enum mode { MODE_AUTO, MODE_ZERO_COPY, MODE_COPY, MODE_SKB, MODES };
static const char *const modes[MODES] = {"auto", "zero-copy", "copy", "skb"};

/* The command line. */
static struct {
	unsigned mode;	   /* enum mode */
	uint32_t queue;	   /* of the interfaces */
	uint32_t ring;	   /* descriptors of each ring */
	uint32_t batch;	   /* frames moved at once */
	uint32_t heap_mib; /* 0: what the rings can hold */
	uint32_t node;	   /* of the heap */
	uint32_t seconds;
} opt = {.ring = 1024, .batch = 64, .seconds = UINT32_MAX};

/* An interface.  The kernel has filled - received frames to receive into, and
 * sent - completed frames to send. */
struct port {
	const char *name;
	struct port *out; /* where to what is received here goes */
	int ifindex;
	int map, link; /* of BPF, or -1 */
	bool native;   /* the program runs in the driver */
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons rx, comp;
	uint64_t filled, received, sent, completed;
	uint64_t reported; /* of received, when the last line was printed */
};

struct forwarder {
	uint64_t left; /* packets still to forward */
	struct pcpa_heap *heap;
	char *base; /* of its arena */
	size_t bytes;
	size_t frame_bytes;
	struct pcpa_stats stats; /* when the last line was printed */
	struct xsk_umem *umem;
	struct port ports[PORTS];
	unsigned nr_ports;
	uint32_t fill_level; /* frames that a fill ring is given at most */
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint32_t min_u32(uint32_t a, uint64_t b)
{
	return b < a ? (uint32_t)b : a;
}

/* ---- Frames ------------------------------------------------------------- */

/* The block around an address of a ring, which points to the packet in it. */
static void *frame_block(const struct forwarder *f, uint64_t address)
{
	return f->base + (address & ~((uint64_t)f->frame_bytes - 1));
}

/* Gives the kernel frames to receive into. */
static uint32_t port_fill(struct forwarder *f, struct port *p)
{
	uint32_t above = p->fill.size - f->fill_level;
	uint32_t room = xsk_prod_nb_free(&p->fill, above + opt.batch);
	void *blocks[BATCH_MAX];
	uint32_t n, at;

	if (room <= above)
		return 0;
	n = (uint32_t)pcpa_alloc_bulk(f->heap, 0, 0, blocks,
				      min_u32(opt.batch, room - above));
	/* Fewer where the heap is exhausted; the next round tries again. */
	if (!xsk_ring_prod__reserve(&p->fill, n, &at))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&p->fill, at + i) =
			(uint64_t)((char *)blocks[i] - f->base);
	xsk_ring_prod__submit(&p->fill, n);
	if (xsk_ring_prod__needs_wakeup(&p->fill))
		recvfrom(xsk_socket__fd(p->xsk), NULL, 0, MSG_DONTWAIT, NULL, NULL);
	p->filled += n;
	return n;
}

/* Frees the frames whose packets were sent. */
static uint32_t port_complete(struct forwarder *f, struct port *p)
{
	void *blocks[BATCH_MAX];
	uint32_t n, at;

	n = xsk_ring_cons__peek(&p->comp, opt.batch, &at);
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		blocks[i] = frame_block(f, *xsk_ring_cons__comp_addr(&p->comp,
								     at + i));
	xsk_ring_cons__release(&p->comp, n);
	pcpa_free_bulk_sized(f->heap, 0, blocks, n);
	p->completed += n;
	return n;
}

/* ---- Packets ------------------------------------------------------------ */

static void swap_macs(void *packet)
{
	struct ethhdr *eth = packet, old = *eth;

	memcpy(eth->h_dest, old.h_source, ETH_ALEN);
	memcpy(eth->h_source, old.h_dest, ETH_ALEN);
}

/* Moves up to n packets from the rx ring to the other port's tx ring. */
static uint32_t port_forward(struct forwarder *f, struct port *p, uint32_t n)
{
	struct port *out = p->out;
	uint32_t from, to;

	n = min_u32(n, xsk_prod_nb_free(&out->tx, n));
	n = xsk_ring_cons__peek(&p->rx, n, &from);
	if (n == 0 || !xsk_ring_prod__reserve(&out->tx, n, &to))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *rx = xsk_ring_cons__rx_desc(&p->rx, from + i);
		struct xdp_desc *tx = xsk_ring_prod__tx_desc(&out->tx, to + i);

		if (out == p)
			swap_macs(xsk_umem__get_data(f->base, rx->addr));
		tx->addr = rx->addr;
		tx->len = rx->len;
		tx->options = 0;
	}
	xsk_ring_cons__release(&p->rx, n);
	xsk_ring_prod__submit(&out->tx, n);
	p->received += n;
	out->sent += n;
	f->left -= n;
	return n;
}

/* Has the kernel send what is in the tx ring.  It does some of it, and says so by
 * errors that pass (EAGAIN, EBUSY, ENOBUFS, ENETDOWN); ports_wait() finds the other one. */
static void port_kick(struct port *p)
{
	if (xsk_prod_nb_free(&p->tx, p->tx.size) < p->tx.size &&
	    xsk_ring_prod__needs_wakeup(&p->tx))
		sendto(xsk_socket__fd(p->xsk), NULL, 0, MSG_DONTWAIT, NULL, 0);
}

/* Each port's turn; returns how many frames moved. */
static uint32_t ports_run(struct forwarder *f, bool fill)
{
	uint32_t moved = 0;

	for_each_port(f, p) {
		if (fill)
			moved += port_fill(f, p);
		moved += port_forward(f, p, min_u32(opt.batch, f->left));
		port_kick(p->out);
		moved += port_complete(f, p);
	}
	return moved;
}

/* Waits until there is something to do.  Completions don't wake anybody, so the
 * wait is short while some are due. */
static int ports_wait(struct forwarder *f)
{
	struct pollfd fds[PORTS], *fd = fds;
	int timeout_ms = 50;

	for_each_port(f, p) {
		fd->fd = xsk_socket__fd(p->xsk);
		fd++->events = xsk_prod_nb_free(&p->out->tx, 1) ? POLLIN : 0;
		if (p->sent != p->completed)
			timeout_ms = 1;
	}
	if (poll(fds, f->nr_ports, timeout_ms) != 0)
		return 0;
	for_each_port(f, p) {
		int err = 0; /* poll() doesn't tell of it */
		socklen_t len = sizeof(err);

		getsockopt(xsk_socket__fd(p->xsk), SOL_SOCKET, SO_ERROR, &err, &len);
		if (err == ENETDOWN)
			return fail("%s: the interface is gone", p->name);
	}
	return 0;
}

/* ---- Statistics --------------------------------------------------------- */

/* What the kernel dropped since the socket was made, with the reasons. */
static void print_drops(const struct port *p)
{
	struct xdp_statistics s = {0};
	socklen_t len = sizeof(s);

	getsockopt(xsk_socket__fd(p->xsk), SOL_XDP, XDP_STATISTICS, &s, &len);

	const struct {
		const char *what;
		uint64_t n;
	} reasons[] = {
		{"no frame or too long", s.rx_dropped},
		{"rx ring full", s.rx_ring_full},
		{"bad tx descriptor", s.tx_invalid_descs},
		/* These two aren't packets. */
		{"times fill ring empty", s.rx_fill_ring_empty_descs},
		{"bad fill address", s.rx_invalid_descs},
	};

	printf(" dropped %" PRIu64, reasons[0].n + reasons[1].n + reasons[2].n);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].n)
			printf(", %" PRIu64 " %s", reasons[i].n, reasons[i].what);
}

/* A line of what was since the last one; drops are those of the whole run. */
static void print_line(struct forwarder *f, double seconds)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;
	double blocks, refills;

	pcpa_stats_read(f->heap, -1, &stats);
	blocks = (double)(stats.alloc_total - f->stats.alloc_total);
	refills = (double)(stats.refills - f->stats.refills);
	printf("%5.1f s", seconds);
	for_each_port(f, p) {
		printf(" | %s -> %s %" PRIu64 " packets,", p->name,
		       p->out->name, p->received - p->reported);
		print_drops(p);
		p->reported = p->received;
	}
	printf(" | cache hits %.1f %%, zone locks %" PRIu64
	       ", frames in use %" PRIu64 "\n",
	       blocks > 0.0 ? 100.0 * (1.0 - refills / blocks) : 100.0,
	       stats.zone_locks - f->stats.zone_locks, stats.used_pages);
	fflush(stdout);
	f->stats = stats;
}

static void print_totals(struct forwarder *f)
{
	for_each_port(f, p) {
		printf("%s: received %" PRIu64 ", sent %" PRIu64 ",", p->name,
		       p->received, p->completed);
		print_drops(p);
		putchar('\n');
	}
}

/* ---- Running ------------------------------------------------------------ */

static int run(struct forwarder *f)
{
	uint64_t start = now_ns(), line = start + NS_PER_S;

	while (!stop && f->left > 0) {
		uint64_t now;

		if (ports_run(f, true) == 0 && ports_wait(f))
			return -1;
		now = now_ns();
		if (now >= line) {
			print_line(f, (double)(now - start) / (double)NS_PER_S);
			line += NS_PER_S;
		}
		if (now - start >= opt.seconds * NS_PER_S)
			break;
	}
	return 0;
}

/* What the kernel has, to send or to receive into as well. */
static uint64_t frames_held(struct forwarder *f, bool to_receive)
{
	uint64_t n = 0;

	for_each_port(f, p)
		n += p->sent - p->completed +
		     (to_receive ? p->filled - p->received : 0);
	return n;
}

/* Nothing more comes; sends what is on its way, within a second. */
static void finish(struct forwarder *f)
{
	uint64_t deadline = now_ns() + NS_PER_S;

	for_each_port(f, p) {
		close(p->link); /* takes the program off */
		p->link = -1;
	}
	while (now_ns() < deadline) {
		if (ports_run(f, false) > 0)
			continue;
		if (frames_held(f, false) == 0)
			return;
		poll(NULL, 0, 1);
	}
}

/*
 * Frees what the kernel had when the sockets were closed.  With the caches and the
 * depot empty, a page that is the start of a block is a block in use.
 */
static uint64_t frames_take_back(struct forwarder *f)
{
	uint64_t n = 0;

	pcpa_heap_drain(f->heap);
	for (size_t at = 0; at < f->bytes; at += f->frame_bytes) {
		if (pcpa_block_order(f->heap, f->base + at) != 0)
			continue;
		pcpa_free_sized(f->heap, f->base + at, 0);
		n++;
	}
	return n;
}

/* Every frame must be in the heap or with the kernel, and come back from there. */
static int account(struct forwarder *f)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;
	uint64_t held = frames_held(f, true), back;
	int err;

	pcpa_stats_read(f->heap, -1, &stats);
	back = frames_take_back(f);
	if (stats.used_pages != held || back != held || stats.bad_frees)
		return fail("frames are lost: %" PRIu64 " are out, the kernel had %"
			    PRIu64 ", %" PRIu64 " were taken back, %" PRIu64
			    " frees were refused",
			    stats.used_pages, held, back, stats.bad_frees);
	err = pcpa_heap_destroy(f->heap);
	if (err)
		return fail("heap: %s", strerror(-err));
	printf("all %" PRIu64 " frames accounted for: %" PRIu64 " were in the "
	       "heap, %" PRIu64 " taken back from the kernel\n",
	       stats.managed_pages, stats.managed_pages - held, held);
	return 0;
}

/* ---- Setting up --------------------------------------------------------- */

/* One line for what a failed call of BPF or AF_XDP most likely means. */
static int port_fail(const struct port *p, const char *what, int err)
{
	const char *hint = "";

	if (err == EPERM || err == EACCES)
		hint = " (it takes root, or the capabilities net_admin, net_raw "
		       "and bpf)";
	else if (err == EBUSY || err == EEXIST)
		hint = " (something else has the queue, or an XDP program is on "
		       "the interface, which `ip link show` names)";
	else if (err == EOPNOTSUPP)
		hint = " (not with this driver: try --mode copy or skb)";
	else if (err == EINVAL)
		hint = " (is there such a queue?)";
	else if (err == ERANGE)
		hint = " (the MTU is too large for the driver: lower it, or try "
		       "--mode skb)";
	return fail("%s: %s: %s%s", p->name, what, strerror(err), hint);
}

/* Whether each packet fits a frame. */
static int port_check_mtu(const struct forwarder *f, const struct port *p)
{
	int most = (int)f->frame_bytes - KERNEL_HEADROOM - ETH_HLEN - VLAN_TAG;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};
	int err;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", p->name);
	err = ioctl(fd, SIOCGIFMTU, &ifr) ? errno : 0;
	close(fd);
	if (err)
		return fail("%s: no MTU: %s", p->name, strerror(err));
	if (ifr.ifr_mtu > most)
		return fail("%s: its MTU is %d, but frames of %zu bytes have room "
			    "for one of %d: ip link set dev %s mtu %d",
			    p->name, ifr.ifr_mtu, f->frame_bytes, most, p->name,
			    most);
	return 0;
}

/* Called for each arena. */
static int see_arena(const struct pcpa_arena_info *arena, void *arg)
{
	struct forwarder *f = arg;

	if (f->base)
		return 1; /* a second one */
	f->base = arena->base;
	f->bytes = arena->bytes;
	return 0;
}

/* Makes the heap and finds its arena.  Returns how many it has, or -1. */
static int heap_create(struct forwarder *f, size_t bytes, size_t hugepage_bytes)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	char node[16];
	int err;

	snprintf(node, sizeof(node), "%u", opt.node);
	opts.flags = PCPA_HEAP_FIXED; /* a UMEM can't grow */
	opts.nodes = node;
	opts.initial_bytes = bytes;
	opts.hugepage_bytes = hugepage_bytes;
	err = pcpa_heap_create(&opts, &f->heap);
	if (err)
		return fail("no heap of %zu MiB on node %s: %s", bytes >> 20,
			    node, strerror(-err));
	f->base = NULL;
	return 1 + pcpa_for_each_arena(f->heap, see_arena, f);
}

static int heap_open(struct forwarder *f)
{
	unsigned rings = 2 * opt.ring * f->nr_ports;
	size_t needed = pcpa_heap_size_for(rings, rings, 1, opt.batch);
	size_t bytes = opt.heap_mib ? (size_t)opt.heap_mib << 20 : needed;
	int arenas = heap_create(f, bytes, 0);

	/* A UMEM is one piece of memory, and a pool of huge pages that is too
	 * small makes two. */
	if (arenas > 1) {
		pcpa_heap_destroy(f->heap);
		arenas = heap_create(f, bytes, (size_t)sysconf(_SC_PAGESIZE));
	}
	if (arenas < 0)
		return -1;
	if (arenas > 1)
		return fail("the heap's memory is in several pieces");
	f->frame_bytes = pcpa_heap_page_bytes(f->heap);
	if (f->bytes < needed)
		printf("the heap has %zu frames; %zu would do under any load\n",
		       f->bytes / f->frame_bytes, needed / f->frame_bytes);
	/* Half of the frames for the fill rings, or one port could have all. */
	f->fill_level =
		min_u32(opt.ring, f->bytes / f->frame_bytes / 2 / f->nr_ports);
	return 0;
}

/* The program: redirect to the queue's socket, or to the stack where it has none. */
static int port_load(struct port *p, uint32_t queues)
{
	p->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "xsk_forward", 4, 4,
				queues, NULL);
	if (p->map < 0)
		return port_fail(p, "no map for its sockets", errno);

	const struct bpf_insn insns[] = {
		/* r1 is the context: r2 = r1->rx_queue_index */
		{BPF_LDX | BPF_MEM | BPF_W, 2, 1,
		 offsetof(struct xdp_md, rx_queue_index), 0},
		/* r1 = map, in two slots; r3 = what to do without a socket */
		{BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, p->map},
		{0, 0, 0, 0, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS},
		{BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};

	int prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "xsk_forward", "Dual BSD/GPL",
				 insns, sizeof(insns) / sizeof(insns[0]), NULL);
	return prog < 0 ? port_fail(p, "its program was refused", errno) : prog;
}

/* Puts the program on the interface, into the driver if it can. */
static int port_attach(struct port *p)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	int prog = port_load(p, opt.queue + 1);

	if (prog < 0)
		return -1;
	if (opt.mode != MODE_SKB)
		p->link = bpf_link_create(prog, p->ifindex, BPF_XDP, &opts);
	p->native = p->link >= 0;
	if (opt.mode == MODE_SKB ||
	    (opt.mode == MODE_AUTO && p->link < 0 && errno != EBUSY)) {
		opts.flags = XDP_FLAGS_SKB_MODE;
		p->link = bpf_link_create(prog, p->ifindex, BPF_XDP, &opts);
	}
	if (p->link < 0)
		port_fail(p, "can't attach a program", errno);
	close(prog); /* the link has it */
	return p->link < 0 ? -1 : 0;
}

static int umem_open(struct forwarder *f)
{
	const struct xsk_umem_config config = {
		.fill_size = opt.ring,
		.comp_size = opt.ring,
		.frame_size = (uint32_t)f->frame_bytes,
	};
	int err;

	err = xsk_umem__create(&f->umem, f->base, f->bytes, &f->ports[0].fill,
			       &f->ports[0].comp, &config);
	if (err == -ENOBUFS)
		return fail("a UMEM of %zu MiB is above the limit of locked "
			    "memory: ulimit -l", f->bytes >> 20);
	return err ? port_fail(&f->ports[0], "no AF_XDP socket", -err) : 0;
}

/* The port's socket.  The first one binds the UMEM, the second shares it. */
static int port_open(struct forwarder *f, struct port *p, uint16_t bind_flags)
{
	const struct xsk_socket_config config = {
		.rx_size = opt.ring,
		.tx_size = opt.ring,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = bind_flags,
	};
	struct xdp_options used = {0};
	socklen_t len = sizeof(used);
	char what[40];
	int err;

	err = xsk_socket__create_shared(&p->xsk, p->name, opt.queue, f->umem,
					&p->rx, &p->tx, &p->fill, &p->comp, &config);
	if (err) {
		snprintf(what, sizeof(what), "no socket on queue %u", opt.queue);
		return port_fail(p, what, -err);
	}
	while (port_fill(f, p) > 0)
		;
	err = xsk_socket__update_xskmap(p->xsk, p->map); /* packets come now */
	if (err)
		return port_fail(p, "its socket got no place in the map", -err);
	getsockopt(xsk_socket__fd(p->xsk), SOL_XDP, XDP_OPTIONS, &used, &len);
	printf("%s: queue %u, %s, %s, %" PRIu64 " frames to receive into\n",
	       p->name, opt.queue, p->native ? "native" : "skb",
	       used.flags & XDP_OPTIONS_ZEROCOPY ? "zero-copy" : "copy", p->filled);
	return 0;
}

static int ports_open(struct forwarder *f)
{
	uint16_t bind_flags = XDP_USE_NEED_WAKEUP;
	bool copy = opt.mode == MODE_COPY;

	for_each_port(f, p) {
		if (port_check_mtu(f, p) || port_attach(p))
			return -1;
		copy |= !p->native;
	}
	if (copy)
		bind_flags |= XDP_COPY;
	else if (opt.mode == MODE_ZERO_COPY)
		bind_flags |= XDP_ZEROCOPY;
	if (umem_open(f))
		return -1;
	for_each_port(f, p)
		if (port_open(f, p, bind_flags))
			return -1;
	fflush(stdout);
	return 0;
}

/* The kernel has no frame any more when this returns. */
static void ports_close(struct forwarder *f)
{
	for_each_port(f, p) {
		xsk_socket__delete(p->xsk);
		if (p->link >= 0)
			close(p->link);
		if (p->map >= 0)
			close(p->map);
	}
	if (xsk_umem__delete(f->umem))
		warnx("the UMEM is still in use");
}

/* ---- The command line --------------------------------------------------- */

static const struct argp_option options[] = {
	{"queue", 'q', "N", 0, "queue of the interfaces (0)", 0},
	{"mode", 'm', "MODE", 0,
	 "zero-copy or copy: the program runs in the driver; skb: before the stack, "
	 "with any driver; auto: the first of these that works (auto)", 0},
	{"ring", 'r', "N", 0, "descriptors of a ring, a power of two (1024)", 0},
	{"batch", 'b', "N", 0, "frames moved at once, up to 512 (64)", 0},
	{"heap", 'H', "MIB", 0, "size of the heap (what the rings can hold)", 0},
	{"node", 'n', "N", 0,
	 "NUMA node of the heap (that of the processor where it starts)", 0},
	{"count", 'c', "N", 0, "end after N packets", 0},
	{"duration", 'd', "S", 0, "end after S seconds", 0},
	{0},
};

static const struct number {
	int key;
	const char *name;
	uint32_t *value, min, max;
} numbers[] = {
	{'q', "queue", &opt.queue, 0, 65535},
	{'r', "ring", &opt.ring, 16, 32768},
	{'b', "batch", &opt.batch, 1, BATCH_MAX},
	{'H', "heap", &opt.heap_mib, 1, 1u << 20},
	{'n', "node", &opt.node, 0, 65534},
	{'d', "duration", &opt.seconds, 1, 1u << 30},
	{0},
};

/* argp_error() ends the program. */
static uint64_t number(struct argp_state *state, const char *option,
		       const char *text, uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < min ||
	    value > max)
		argp_error(state, "--%s: '%s' is no number from %ju to %ju",
			   option, text, (uintmax_t)min, (uintmax_t)max);
	return value;
}

static void parse_port(struct argp_state *state, struct forwarder *f,
		       const char *name)
{
	if (f->nr_ports == PORTS)
		argp_error(state, "'%s' is a third interface", name);
	if (f->nr_ports == 1 && strcmp(f->ports[0].name, name) == 0)
		argp_error(state, "'%s' twice: give it once to send back", name);
	f->ports[f->nr_ports++] = (struct port){.name = name, .map = -1, .link = -1};
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct forwarder *f = state->input;

	for (const struct number *n = numbers; n->key; n++)
		if (n->key == key) {
			*n->value = (uint32_t)number(state, n->name, text, n->min,
						     n->max);
			return 0;
		}
	if (key == 'm') {
		for (opt.mode = 0; opt.mode < MODES; opt.mode++)
			if (strcmp(text, modes[opt.mode]) == 0)
				return 0;
		argp_error(state, "--mode: '%s' is none of auto, zero-copy, "
			   "copy, skb", text);
	} else if (key == 'c')
		f->left = number(state, "count", text, 1, UINT64_MAX);
	else if (key == ARGP_KEY_ARG)
		parse_port(state, f, text);
	else if (key == ARGP_KEY_NO_ARGS)
		argp_error(state, "which interfaces?");
	else if (key == ARGP_KEY_END && opt.ring & (opt.ring - 1))
		argp_error(state, "--ring: '%u' is no power of two", opt.ring);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "INTERFACE [INTERFACE]",
	.doc = "Forwards packets from each interface to the other one, or sends "
	       "those of one interface back with the MAC addresses swapped.  Ends "
	       "at SIGINT or SIGTERM.",
};

int main(int argc, char **argv)
{
	static struct forwarder f = {.left = UINT64_MAX, .stats = PCPA_STATS_INIT};
	int err;

	getcpu(NULL, &opt.node); /* taskset decides on several nodes */
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &f);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	for_each_port(&f, p) {
		p->out = p == f.ports && f.nr_ports == 2 ? p + 1 : f.ports;
		p->ifindex = (int)if_nametoindex(p->name);
		if (p->ifindex == 0)
			errx(1, "there is no interface '%s'", p->name);
	}
	if (heap_open(&f))
		return 1;
	err = ports_open(&f);
	if (!err) {
		err = run(&f);
		finish(&f);
		print_totals(&f);
	}
	ports_close(&f);
	return account(&f) || err ? 1 : 0;
}

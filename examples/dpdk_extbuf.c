/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dpdk_extbuf.c - packets of DPDK whose data lies in blocks of a heap: mbufs from
 * any mempool, each with a block attached as its external buffer.  The number of
 * buffers isn't fixed then, and jumbo frames take larger blocks from the same heap.
 *
 * Sends a million numbered packets through a port that gives back what it is sent
 * (net_ring), and looks at each.  The free callback runs on whichever thread frees
 * the mbuf, and a block may be freed by any.
 *
 * EAL knows the heap's memory, and VFIO maps it for devices (pcpalloc/dpdk.h).
 *
 *     dpdk_extbuf [EAL's options]
 */
#include <pcpalloc/dpdk.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS 1000000u
#define BURST 32u
#define PACKET_BYTES 1500u

static struct pcpa_heap *heap;
static unsigned order; /* of the blocks */

static void die(const char *what)
{
	fprintf(stderr, "dpdk_extbuf: %s\n", what);
	exit(1);
}

/* The last mbuf that had the block is freed. */
static void block_free(void *block, void *arg)
{
	pcpa_free_sized(arg, block, order);
}

/* The library's block becomes the mbuf's data; what counts its users lies at the
 * block's end. */
static void block_attach(struct rte_mbuf *m, void *block)
{
	uint16_t bytes = (uint16_t)RTE_MIN(pcpa_heap_page_bytes(heap) << order,
					   (size_t)UINT16_MAX);
	struct rte_mbuf_ext_shared_info *shared =
		rte_pktmbuf_ext_shinfo_init_helper(block, &bytes, block_free, heap);

	if (!shared)
		die("the block is too small");
	rte_pktmbuf_attach_extbuf(m, block, pcpa_dpdk_iova(block), bytes, shared);
	rte_pktmbuf_reset_headroom(m);
}

/* n packets, numbered from `first`; 0: no memory now. */
static unsigned packets_make(struct rte_mempool *pool, struct rte_mbuf **packets,
			     unsigned n, unsigned first)
{
	void *blocks[BURST];

	if (rte_pktmbuf_alloc_bulk(pool, packets, n))
		return 0;
	if (pcpa_alloc_bulk(heap, order, 0, blocks, n) < n)
		die("the heap is empty");
	for (unsigned i = 0; i < n; i++) {
		char *data;

		block_attach(packets[i], blocks[i]);
		data = rte_pktmbuf_append(packets[i], PACKET_BYTES);
		if (!data)
			die("no room for a packet");
		memset(data, (int)(first + i), PACKET_BYTES);
		memcpy(data, &(unsigned){first + i}, sizeof(unsigned));
	}
	return n;
}

static void packet_look(const struct rte_mbuf *m, unsigned number)
{
	const unsigned char *data = rte_pktmbuf_mtod(m, const unsigned char *);
	unsigned is;

	memcpy(&is, data, sizeof(is));
	if (is != number || m->pkt_len != PACKET_BYTES ||
	    data[PACKET_BYTES - 1] != (unsigned char)number)
		die("another packet came than was sent");
	if (pcpa_block_order(heap, m->buf_addr) != (int)order)
		die("a packet's data is no block of the heap");
}

static void port_start(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};

	if (rte_eth_dev_configure(port, 1, 1, &conf) ||
	    rte_eth_rx_queue_setup(port, 0, 512, rte_socket_id(), NULL, pool) ||
	    rte_eth_tx_queue_setup(port, 0, 512, rte_socket_id(), NULL) ||
	    rte_eth_dev_start(port))
		die("the port doesn't start");
}

static void forward(uint16_t port, struct rte_mempool *pool)
{
	unsigned sent = 0, seen = 0;

	while (seen < PACKETS) {
		struct rte_mbuf *packets[BURST];
		unsigned n = RTE_MIN(BURST, PACKETS - sent), i;

		n = packets_make(pool, packets, n, sent);
		for (i = 0; i < n;)
			i += rte_eth_tx_burst(port, 0, packets + i,
					      (uint16_t)(n - i));
		sent += n;
		n = rte_eth_rx_burst(port, 0, packets, BURST);
		for (i = 0; i < n; i++)
			packet_look(packets[i], seen++);
		rte_pktmbuf_free_bulk(packets, n); /* block_free() for each */
	}
}

int main(int argc, char **argv)
{
	char *own[] = {argv[0], "--no-huge", "-m", "64", "--no-shconf", "--no-pci",
		       "--no-telemetry", "--vdev", "net_ring0", NULL};
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct rte_mempool *pool;

	if (argc == 1) {
		argc = (int)RTE_DIM(own) - 1;
		argv = own;
	}
	if (rte_eal_init(argc, argv) < 0)
		die(rte_strerror(rte_errno));
	if (rte_eth_dev_count_avail() == 0)
		die("no port: --vdev net_ring0 makes one");

	opts.max_bytes = 64u << 20; /* grows up to this */
	if (pcpa_heap_create(&opts, &heap))
		die("no heap");
	if (pcpa_dpdk_register(heap))
		die("EAL doesn't take the heap's memory");
	/* These mbufs need little room for data of their own. */
	pool = rte_pktmbuf_pool_create("mbufs", 4095, 128, 0, RTE_PKTMBUF_HEADROOM,
				       SOCKET_ID_ANY);
	if (!pool)
		die("no mbufs");

	port_start(0, pool);
	forward(0, pool);
	printf("%u packets in blocks of %zu bytes\n", PACKETS,
	       pcpa_heap_page_bytes(heap) << order);

	rte_eth_dev_stop(0);
	rte_eth_dev_close(0);
	rte_mempool_free(pool);
	if (pcpa_heap_destroy(heap))
		die("a block wasn't freed");
	return rte_eal_cleanup() ? 1 : 0;
}

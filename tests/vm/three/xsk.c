/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xsk.c - examples/xsk_forward with its UMEM on each node in turn: where the kernel
 * says that the huge pages of the process are, while numbered packets go
 *
 *     a0 --veth--> a1 --AF_XDP--> xsk_forward --> a1 --> a0
 *
 * and come back, each once, with the addresses swapped.  Then all frames must be
 * accounted for.
 */
#include "../vm.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PROTOCOL 0x88B5 /* for experiments */
#define PACKETS 2000u
#define WINDOW 64u
#define PATIENCE_MS 20000

struct packet {
	struct ethhdr eth;
	uint32_t node, number;
	char rest[1000];
};

static const unsigned char one[ETH_ALEN] = {2, 0, 0, 0, 0, 1};
static const unsigned char other[ETH_ALEN] = {2, 0, 0, 0, 0, 2};

/* ---- The example ------------------------------------------------------------- */

struct forwarder {
	pid_t pid;
	FILE *out;
};

static void program_run(unsigned node, int out)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", node);
	dup2(out, 1);
	dup2(out, 2);
	execl("./xsk_forward", "xsk_forward", "--node", text, "a1", NULL);
	_exit(127);
}

/* Started on the node, or where that has no CPUs anywhere; returns when it is
 * ready. */
static struct forwarder forwarder_start(unsigned node)
{
	struct forwarder f;
	char line[512];
	int out[2];

	CHECK(pipe(out) == 0);
	vm_run_on(node == 2 ? 0 : node, 0);
	f.pid = fork();
	CHECK(f.pid >= 0);
	if (f.pid == 0)
		program_run(node, out[1]);
	close(out[1]);
	f.out = fdopen(out[0], "r");
	CHECK(f.out);
	do {
		CHECK(fgets(line, sizeof(line), f.out));
		fputs(line, stdout);
	} while (!strstr(line, "frames to receive into"));
	return f;
}

static void forwarder_end(struct forwarder *f)
{
	bool accounted = false;
	char line[512];
	int status;

	kill(f->pid, SIGTERM);
	while (fgets(line, sizeof(line), f->out)) {
		fputs(line, stdout);
		accounted |= strstr(line, "frames accounted for") != NULL;
	}
	fclose(f->out);
	CHECK(waitpid(f->pid, &status, 0) == f->pid);
	CHECK_EQ(status, 0);
	CHECK(accounted);
}

/* ---- Where it is ------------------------------------------------------------- */

static void count_page(pid_t pid, char *page, struct vm_where *w)
{
	void *pages[1] = {page};
	int node = -1;

	CHECK(syscall(SYS_move_pages, pid, 1ul, pages, NULL, &node, 0) == 0);
	if (node < 0)
		return; /* not populated: of the window, not of the heap */
	CHECK(node < (int)VM_NODES);
	w->on[node]++;
	w->all++;
}

/* The huge pages of another process. */
static struct vm_where hugepages_of(pid_t pid)
{
	struct vm_where w = {{0}, 0};
	char path[64], line[512];
	unsigned long from, to;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "anon_hugepage") ||
		    sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		for (; from < to; from += 2 * MIB)
			count_page(pid, (char *)from, &w);
	}
	fclose(f);
	return w;
}

/* ---- Packets ----------------------------------------------------------------- */

static int socket_open(void)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(PROTOCOL),
		.sll_ifindex = (int)if_nametoindex("a0"),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0);
	CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	return fd;
}

static void packet_make(struct packet *p, unsigned node, uint32_t number)
{
	memset(p, (int)(number & 255), sizeof(*p));
	memcpy(p->eth.h_dest, other, ETH_ALEN);
	memcpy(p->eth.h_source, one, ETH_ALEN);
	p->eth.h_proto = htons(PROTOCOL);
	p->node = node;
	p->number = number;
}

/* False: there is none now. */
static bool packet_take(int fd, unsigned node, bool *seen)
{
	struct packet p, want;

	if (recv(fd, &p, sizeof(p), 0) != (ssize_t)sizeof(p))
		return false;
	CHECK(p.number < PACKETS && !seen[p.number]);
	packet_make(&want, node, p.number);
	memcpy(want.eth.h_dest, one, ETH_ALEN);
	memcpy(want.eth.h_source, other, ETH_ALEN);
	CHECK(memcmp(&p, &want, sizeof(p)) == 0);
	seen[p.number] = true;
	return true;
}

/* Some at a time, fewer than any queue on the way holds, so that none is lost. */
static void exchange(unsigned node)
{
	bool seen[PACKETS] = {false};
	uint32_t sent = 0, back = 0;
	struct packet p;
	struct pollfd poller = {.fd = socket_open(), .events = POLLIN};

	while (back < PACKETS) {
		while (sent < PACKETS && sent - back < WINDOW) {
			packet_make(&p, node, sent);
			if (send(poller.fd, &p, sizeof(p), 0) < 0)
				break;
			sent++;
		}
		CHECK(poll(&poller, 1, PATIENCE_MS) == 1);
		while (packet_take(poller.fd, node, seen))
			back++;
	}
	close(poller.fd);
}

/* ---- */

static void interfaces_make(void)
{
	CHECK(system("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6\n"
		     "./ip link add a0 type veth peer name a1 &&\n"
		     "./ip link set a0 up && ./ip link set a1 up") == 0);
	/* Before, they drop. */
	while (system("./ip link show up | grep -q 'a0@.*state UP' &&\n"
		      "./ip link show up | grep -q 'a1@.*state UP'") != 0)
		usleep(20 * 1000);
}

static void forward_on(unsigned node)
{
	struct forwarder f = forwarder_start(node);
	struct vm_where w = hugepages_of(f.pid);

	CHECK(w.all > 0);
	CHECK_EQ(w.on[node], w.all);
	exchange(node);
	forwarder_end(&f);
	vm_row(&w, "huge pages of the UMEM of `xsk_forward --node %u`", node);
}

int main(void)
{
	if (access("./xsk_forward", X_OK) != 0) {
		puts("skipped: xsk_forward is not built: libxdp or libbpf is "
		     "missing (tools/setup xdp)");
		return 77;
	}
	interfaces_make();
	for (unsigned node = 0; node < 3; node++)
		forward_on(node);
	CHECK(system("./ip link delete a0") == 0);
	return 0;
}

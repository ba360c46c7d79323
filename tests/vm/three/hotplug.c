/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hotplug.c - a CPU goes offline and comes back: at the next tick the bounds of the
 * caches are those of the processors that there are, of its own node and of the node
 * without any.
 */
#include "../vm.h"

#include <fcntl.h>

static struct pcpa_heap *heap;

static void cpu_set_online(unsigned cpu, bool online)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online",
		 cpu);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && write(fd, online ? "1" : "0", 1) == 1);
	close(fd);
}

static void check_bounds(const char *when, unsigned on_node_1, unsigned all)
{
	const unsigned sharers[3] = {2, on_node_1, all};

	usleep(1050 * 1000);
	CHECK_EQ(pcpa_heap_tick(heap), 0);
	for (unsigned node = 0; node < 3; node++) {
		struct pcpa_stats s = vm_stats(heap, (int)node);

		CHECK_EQ(vm_text(heap, node, "high_min:"),
			 s.low_pages / sharers[node]);
		CHECK_EQ(vm_text(heap, node, "high_max:"),
			 s.managed_pages / 8 / sharers[node]);
	}
	printf("| a cache's bounds for nodes 0, 1 and 2, %s | %" PRIu64
	       ", %" PRIu64 ", %" PRIu64 " pages |\n",
	       when, vm_text(heap, 0, "high_min:"),
	       vm_text(heap, 1, "high_min:"), vm_text(heap, 2, "high_min:"));
}

int main(void)
{
	vm_run_on(0, 0);
	heap = vm_heap(160 * MIB, NULL, 0);
	for (unsigned node = 0; node < 3; node++)
		pcpa_free(heap, pcpa_alloc(heap, 0, PCPA_NODE(node)));
	check_bounds("all processors", 2, 4);
	cpu_set_online(3, false);
	check_bounds("one of node 1 offline", 1, 3);
	cpu_set_online(3, true);
	check_bounds("and online again", 2, 4);
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}

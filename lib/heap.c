/* SPDX-License-Identifier: BSD-2-Clause */
/* heap.c - creation and destruction; see heap.h. */
#include "heap.h"
#include "list.h"

#include <errno.h>
#include <pcpalloc/stats.h>
#include <unistd.h>

#include "annotate.h"
#include "bits.h"
#include "bulk.h"
#include "convert.h"

struct pcpi_lock pcpi_heaps_lock = PCPI_LOCK_INIT(PCPI_RANK_HEAPS);
CDS_LIST_HEAD(pcpi_heaps);
CDS_LIST_HEAD(pcpi_heaps_partial);


/* The first arena on demand is 1/64 of the maximum; see PCPI_GROWTH_BYTES_MAX. */
#define GROWTH_SHARE 64u

/* ---- The plan: sizes before anything is mapped ------------------------------- */

struct heap_plan {
	const struct pcpa_heap_options *opts;
	const struct pcpi_topo *topo;
	unsigned *positions; /* [nr_zones] in the topology, ascending */
	unsigned nr_zones;
	struct pcpi_space_node_spec *nodes; /* [nr_zones] */
	struct pcpi_space space;
};

static void nodes_say(const struct pcpa_heap_options *opts,
		      const struct pcpi_topo_error *err)
{
	if (opts->verbosity == 0)
		return;
	if (!opts->nodes)
		pcpi_sys_say("no allowed node has memory");
	else if (err->what == PCPI_TOPO_BAD_TEXT)
		pcpi_sys_say("nodes \"%s\": not a list of numbers, from \"%s\"",
			     opts->nodes, opts->nodes + err->where);
	else if (err->what == PCPI_TOPO_NO_NODE)
		pcpi_sys_say("nodes \"%s\": there is no node %zu here, or it "
			     "is not allowed", opts->nodes, err->where);
	else
		pcpi_sys_say("nodes \"%s\": node %zu has no memory",
			     opts->nodes, err->where);
}

/* max_bytes 0: what the node has, but not less than what is backed at once. */
static uint64_t node_max_bytes(const struct heap_plan *plan, unsigned position)
{
	const struct pcpa_heap_options *opts = plan->opts;
	uint64_t memory = plan->topo->nodes[position].memory_bytes;

	if (opts->max_bytes)
		return opts->max_bytes;
	return pcpi_max(memory, (uint64_t)opts->initial_bytes);
}

static int plan_nodes(struct heap_plan *plan)
{
	struct pcpi_topo_error why;
	unsigned i;
	int err = pcpi_topo_select(plan->topo, plan->opts->nodes, plan->positions,
				   &plan->nr_zones, &why);

	if (err) {
		nodes_say(plan->opts, &why);
		return err;
	}
	for (i = 0; i < plan->nr_zones; i++)
		plan->nodes[i] = (struct pcpi_space_node_spec){
			.os_node = plan->topo->nodes[plan->positions[i]].os_index,
			.max_bytes = node_max_bytes(plan, plan->positions[i]),
		};
	return 0;
}

/* Whether the kernel needn't be asked where memory is: there is one node, or the
 * nodes are of a machine that is only described. */
static bool is_alone(const struct pcpi_topo *topo)
{
	return (topo->nr_nodes == 1 && !topo->others) ||
	       (!topo->here && pcpi_sys->elsewhere == pcpi_sys_elsewhere_numa);
}

static int plan_space(struct heap_plan *plan)
{
	const struct pcpa_heap_options *opts = plan->opts;
	struct pcpi_space_spec spec = {
		.nodes = plan->nodes,
		.nr_nodes = plan->nr_zones,
		.max_is_default = opts->max_bytes == 0,
		.hugepage_bytes = opts->hugepage_bytes,
		.cow = opts->flags & PCPA_HEAP_COW,
		.dump = opts->flags & PCPA_HEAP_DUMP,
		.shared = opts->flags & PCPA_HEAP_SHARED,
		.contents = opts->flags & PCPA_HEAP_CONTENTS,
		.bound = opts->flags & PCPA_HEAP_BOUND,
		.one_node = plan->topo->nr_nodes == 1,
		.alone = is_alone(plan->topo),
		.verbosity = opts->verbosity,
	};

	return pcpi_space_create(&plan->space, &spec);
}

/* ---- Memory of a heap: one mapping --------------------------------------------- */

/*
 * heap | zones[] | topo_zone[] | fallback[][] | window_zone[] | order bytes |
 * metadata of each zone's buddy.  Only what describes backed memory is touched.
 */
struct layout {
	size_t zones, topo_zone, fallback, window_zone, orders, buddies, bytes;
};

static size_t layout_add(struct layout *l, size_t bytes)
{
	size_t at = l->bytes;

	l->bytes = pcpi_round_up(at + bytes, PCPI_CACHELINE);
	return at;
}

/* Of 2^32 pages the last chunk stays unused, see max_pages(). */
static uint32_t zone_pages(const struct pcpi_space *space, unsigned zone)
{
	uint64_t pages = (uint64_t)space->nodes[zone].nr_windows
			 << (space->window_shift - space->page_shift);
	uint64_t chunk = UINT64_C(1) << space->top_order;

	return (uint32_t)pcpi_min(pages, (UINT64_C(1) << 32) - chunk);
}

static size_t buddy_bytes(const struct pcpi_space *space, unsigned zone)
{
	return pcpi_round_up(
		pcpi_buddy_meta_bytes(zone_pages(space, zone) >> space->top_order,
				      space->top_order),
		PCPI_CACHELINE);
}

static struct layout layout_make(const struct heap_plan *plan)
{
	const struct pcpi_space *space = &plan->space;
	struct layout l = { .bytes = 0 };
	unsigned n = plan->nr_zones, z;

	layout_add(&l, sizeof(struct pcpa_heap));
	l.zones = layout_add(&l, n * sizeof(struct pcpi_zone));
	l.topo_zone = layout_add(&l, plan->topo->nr_nodes * sizeof(int));
	l.fallback = layout_add(&l, n * n * sizeof(unsigned));
	l.window_zone = layout_add(&l, space->nr_windows * sizeof(unsigned));
	l.orders = layout_add(&l, (size_t)(space->bytes >> space->page_shift));
	l.buddies = l.bytes;
	for (z = 0; z < n; z++)
		layout_add(&l, buddy_bytes(space, z));
	l.bytes = pcpi_round_up(l.bytes, pcpi_sys_page_bytes());
	return l;
}

/* ---- Parts ------------------------------------------------------------------------ */

/* Data caches of a CPU: its own and its part of the shared one. */
static uint64_t data_cache_bytes(void)
{
	long own = -1, shared = -1, cpus = sysconf(_SC_NPROCESSORS_ONLN);

#ifdef _SC_LEVEL3_CACHE_SIZE
	own = sysconf(_SC_LEVEL2_CACHE_SIZE);
	shared = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
	return (uint64_t)pcpi_max(own, 0L) +
	       (uint64_t)(pcpi_max(shared, 0L) / pcpi_max(cpus, 1L));
}

static void env_fill(struct pcpa_heap *h, const struct layout *l,
		     unsigned options_flags)
{
	char *memory = h->memory;
	unsigned *window_zone = (unsigned *)(void *)(memory + l->window_zone);
	unsigned w;

	for (w = 0; w < h->space.nr_windows; w++)
		window_zone[w] = h->space.windows[w].node;
	h->env.base = h->space.base;
	h->env.page_shift = h->space.page_shift;
	h->env.zones = (struct pcpi_zone *)(void *)(memory + l->zones);
	h->env.nr_zones = h->nr_zones;
	h->env.orders = (uint8_t *)(memory + l->orders);
	h->env.window_zone = window_zone;
	h->env.window_pfn_shift = h->space.window_shift - h->space.page_shift;
	pcpi_watch_init(&h->env.watch);
	h->env.watched = options_flags & PCPA_HEAP_CHECKS ||
			 pcpi_annotate_active();
	h->env.exchange = pcpi_sys->membarrier_register() != 0;
	h->env.rseq = pcpi_rseq_setup() && !h->env.exchange; /* RS1 */
	h->env.free_high_batch = pcpi_policy_free_high_batch(
		data_cache_bytes(), pcpi_sys_page_bytes(),
		pcpi_policy_batch(UINT64_C(1) << 18, pcpi_sys_page_bytes()));
}

/* Of a window of 2^32 pages the last chunk stays unused, which has the index
 * that means none (PCPI_NO_PFN). */
static uint64_t max_pages(const struct pcpi_space *space, unsigned zone)
{
	uint64_t pages = space->nodes[zone].max_bytes >> space->page_shift;
	uint64_t chunk = UINT64_C(1) << space->top_order;

	return pcpi_min(pages, (UINT64_C(1) << 32) - chunk);
}

static struct pcpi_zone_config zone_config(const struct heap_plan *plan,
					   unsigned zone,
					   struct pcpi_checks *watched,
					   struct pcpi_notify *notify)
{
	const struct pcpa_heap_options *opts = plan->opts;
	unsigned position = plan->positions[zone];

	return (struct pcpi_zone_config){
		.position = zone,
		.os_node = plan->nodes[zone].os_node,
		.node_cpus = plan->topo->nodes[position].nr_cpus,
		.all_cpus = plan->topo->nr_cpus,
		.batch_pages = opts->batch_pages,
		.high_pages = opts->high_pages,
		.high_fraction = opts->high_fraction,
		.reserve_pages = opts->reserve_pages,
		.legacy = opts->flags & PCPA_HEAP_LEGACY,
		.fixed = opts->flags & PCPA_HEAP_FIXED,
		.max_pages = max_pages(&plan->space, zone),
		.checks = watched,
		.notify = notify,
	};
}

static void zones_fini(struct pcpa_heap *h, unsigned n)
{
	while (n-- > 0)
		pcpi_zone_fini(&h->env.zones[n]);
}

static int zones_init(struct pcpa_heap *h, const struct heap_plan *plan,
		      const struct layout *l)
{
	char *meta = (char *)h->memory + l->buddies;
	struct pcpi_space *space = &h->space;
	unsigned z;
	int err;

	for (z = 0; z < h->nr_zones; z++) {
		struct pcpi_zone_config config = zone_config(
			plan, z, h->env.watched ? &h->checks : NULL, &h->notify);

		err = pcpi_zone_init(
			&h->env.zones[z], &config, space, h->hot.orders, meta,
			(uint32_t)((uint64_t)space->nodes[z].first_window
				   << h->env.window_pfn_shift),
			zone_pages(space, z));
		if (err) {
			zones_fini(h, z);
			return err;
		}
		meta += buddy_bytes(space, z);
	}
	return 0;
}

static size_t growth_bytes(const struct pcpi_space *space)
{
	uint64_t step = space->nodes[0].max_bytes / GROWTH_SHARE;

	step = pcpi_clamp(step, (uint64_t)space->granule_bytes, PCPI_GROWTH_BYTES_MAX);
	return (size_t)pcpi_max(pcpi_round_up(step, space->granule_bytes),
				(uint64_t)space->granule_bytes);
}

static int zones_back(struct pcpa_heap *h, size_t initial_bytes)
{
	uint64_t grown, managed, want, all;
	unsigned z;
	int err;

	if (__builtin_mul_overflow(initial_bytes, h->nr_zones, &all) ||
	    pcpi_space_can_back(&h->space, all) != 0)
		return -ENOMEM;
	for (z = 0; z < h->nr_zones; z++) {
		struct pcpi_zone *zone = &h->env.zones[z];

		for (;;) {
			managed = zone->managed_pages << h->hot.page_shift;
			if (managed >= initial_bytes)
				break;
			want = initial_bytes - managed;
			err = pcpi_zone_grow(zone, zone->managed_pages, want,
					     false, &grown);
			if (err)
				return -ENOMEM;
		}
	}
	return 0;
}

/* ---- Creation --------------------------------------------------------------------- */

static uint64_t last_id; /* heaps lock: E3 */

static unsigned slot_free(void)
{
	struct pcpa_heap *h;
	unsigned slot = 0;
	bool used;

	do {
		used = false;
		pcpi_list_each(h, &pcpi_heaps, link)
			used |= h->slot == slot;
		slot += used;
	} while (used);
	return slot;
}

/* On its way to the list, or from it. */
static void heap_note(struct pcpa_heap *h)
{
	pcpi_lock_take(&pcpi_heaps_lock);
	cds_list_add(&h->link, &pcpi_heaps_partial);
	pcpi_lock_drop(&pcpi_heaps_lock);
}

static void heap_forget(struct pcpa_heap *h)
{
	pcpi_lock_take(&pcpi_heaps_lock);
	cds_list_del(&h->link);
	pcpi_lock_drop(&pcpi_heaps_lock);
}

static void heap_publish(struct pcpa_heap *h)
{
	pcpi_lock_take(&pcpi_heaps_lock);
	cds_list_del(&h->link);
	h->slot = slot_free();
	h->id = ++last_id; /* E3 */
	h->hot.entry = (uint32_t)(h->slot % PCPI_ENTRIES *
				  sizeof(struct pcpi_entry));
	cds_list_add(&h->link, &pcpi_heaps); /* E1 */
	pcpi_lock_drop(&pcpi_heaps_lock);
}

static void checks_fill(struct pcpa_heap *h)
{
	h->checks.heap = h;
	h->checks.base = h->hot.base;
	h->checks.page_shift = h->hot.page_shift;
	h->checks.orders = h->hot.orders;
	h->checks.contents = h->options_flags & PCPA_HEAP_CONTENTS;
	pcpi_checks_init(&h->checks, h->space.bytes >> h->space.page_shift,
			 h->options_flags & PCPA_HEAP_CHECKS);
}

static void heap_fill(struct pcpa_heap *h, const struct heap_plan *plan,
		      const struct layout *l)
{
	char *memory = h->memory;

	h->space = plan->space;
	h->topo = plan->topo;
	h->nr_zones = plan->nr_zones;
	h->topo_zone = (int *)(void *)(memory + l->topo_zone);
	h->fallback = (unsigned *)(void *)(memory + l->fallback);
	h->options_flags = plan->opts->flags;
	h->verbosity = plan->opts->verbosity;
	h->arena_bytes = growth_bytes(&h->space);
	pcpi_heap_zones_fill(h, plan->positions);
	env_fill(h, l, plan->opts->flags);
	h->hot.base = h->space.base;
	h->hot.orders = h->env.orders;
	h->hot.page_shift = h->space.page_shift;
	h->hot.wide_span = PCPI_WIDE_SPAN(pcpi_convert_wide());
	pcpi_lock_init(&h->contig_lock, PCPI_RANK_CONTIG);
	pcpi_lock_init(&h->drain_lock, PCPI_RANK_DRAIN);
	pcpi_lock_init(&h->threads_lock, PCPI_RANK_THREADS);
	pcpi_lock_init(&h->trim_lock, PCPI_RANK_TRIM);
	pcpi_notify_init(&h->notify, &h->space);
	pcpi_pools_init(&h->pools);
	CDS_INIT_LIST_HEAD(&h->caches);
	if (h->env.watched)
		checks_fill(h);
}

static void heap_fini(struct pcpa_heap *h)
{
	pcpi_pools_fini(&h->pools);
	pcpi_notify_fini(&h->notify);
	pcpi_lock_fini(&h->trim_lock);
	pcpi_watch_fini(&h->env.watch);
	pcpi_checks_fini(&h->checks);
	pcpi_lock_fini(&h->threads_lock);
	pcpi_lock_fini(&h->drain_lock);
	pcpi_lock_fini(&h->contig_lock);
}

/* From a reserved space to a whole heap. */
static int heap_build(struct heap_plan *plan, struct pcpa_heap **out)
{
	struct layout l = layout_make(plan);
	struct pcpa_heap *h;
	void *memory;
	int err;

	err = pcpi_sys->map_meta(l.bytes, &memory);
	if (err)
		return err;
	pcpi_sys->name(memory, l.bytes, "pcpalloc:heap");
	h = memory;
	h->memory = memory;
	h->memory_bytes = l.bytes;
	heap_fill(h, plan, &l);
	heap_note(h);
	err = zones_init(h, plan, &l);
	if (err)
		goto unmap;
	err = zones_back(h, plan->opts->initial_bytes);
	if (err)
		goto unzone;
	h->space.near |= h->nr_zones > 1;
	pcpi_heap_tick_begin(h);
	if (plan->opts->flags & PCPA_HEAP_BACKGROUND)
		err = pcpi_background_start(&h->background,
					    pcpi_heap_tick_in_background, h);
	if (err)
		goto unzone;
	heap_publish(h);
	*out = h;
	return 0;

unzone:
	zones_fini(h, h->nr_zones);
unmap:
	heap_forget(h);
	heap_fini(h);
	plan->space = h->space;
	pcpi_sys->unmap(memory, l.bytes);
	return err;
}

/* The system's functions with libnuma's binding, once a heap needs it. */
static struct pcpi_sys sys_with_numa;

static void sys_setup(void)
{
	sys_with_numa = pcpi_sys_linux;
	sys_with_numa.bind = pcpi_sys_bind_numa;
	sys_with_numa.elsewhere = pcpi_sys_elsewhere_numa;
	if (pcpi_sys == &pcpi_sys_linux)
		pcpi_sys = &sys_with_numa;
}

struct pcpi_once pcpi_once = {
	.default_heap = PTHREAD_MUTEX_INITIALIZER,
	.process = PTHREAD_MUTEX_INITIALIZER,
};

static int setup_locked(void)
{
	static bool done;
	const struct pcpi_topo *topo;
	int err;

	if (done)
		return 0;
	sys_setup();
	pcpi_rseq_setup(); /* here, because of forks: its threads have ended then */
	err = pcpi_thread_setup();
	if (!err)
		err = pcpi_topo_load(&topo);
	done = !err;
	return err;
}

int pcpi_process_setup(void)
{
	int err = pcpi_fork_setup(); /* first: a fork waits for the rest */

	if (err)
		return err;
	pthread_mutex_lock(&pcpi_once.process);
	err = setup_locked();
	pthread_mutex_unlock(&pcpi_once.process);
	return err;
}

int pcpi_heap_create(const struct pcpa_heap_options *opts,
		     struct pcpa_heap **out)
{
	const struct pcpi_topo *topo;
	int err = pcpi_process_setup();

	if (!err)
		err = pcpi_topo_load(&topo);
	if (err)
		return err;
	unsigned positions[topo->nr_nodes];
	struct pcpi_space_node_spec nodes[topo->nr_nodes];
	struct heap_plan plan = {
		.opts = opts,
		.topo = topo,
		.positions = positions,
		.nodes = nodes,
	};

	if (opts->verbosity > 0)
		pcpi_topo_say(topo);
	err = plan_nodes(&plan);
	if (!err)
		err = plan_space(&plan);
	if (err)
		return err;
	err = heap_build(&plan, out);
	if (err)
		pcpi_space_destroy(&plan.space);
	return err;
}

/* ---- Destruction ---------------------------------------------------------------------- */

/* Blocks that are out; the callers rest, and a tick has nothing in its hand. */
static uint64_t blocks_out(struct pcpa_heap *h)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	pcpi_lock_take(&h->drain_lock);
	pcpi_deferred_look(&h->env);
	pcpi_stats_collect(h, NULL, &s);
	pcpi_lock_drop(&h->drain_lock);
	return s.used_pages;
}

static void caches_unmap(struct pcpa_heap *h)
{
	struct cds_list_head *at = h->caches.next, *next;

	for (; at != &h->caches; at = next) {
		struct pcpi_cache *c =
			pcpi_container_of(at, struct pcpi_cache, registry);

		next = at->next;
		pcpi_sys->unmap(c->memory, c->bytes);
	}
}

/* Takes the heaps lock at a moment when no ended thread tells of the heap. */
static void pins_wait_locked(const struct pcpa_heap *h)
{
	pcpi_lock_take(&pcpi_heaps_lock);
	while (h->pins > 0) {
		pcpi_lock_drop(&pcpi_heaps_lock);
		pcpi_sys->yield();
		pcpi_lock_take(&pcpi_heaps_lock);
	}
}

int pcpi_heap_destroy(struct pcpa_heap *h, bool with_blocks)
{
	void *memory = h->memory;
	size_t bytes = h->memory_bytes;
	bool busy;

	/* A thread that is ending, which is no call, has nothing in its hand. */
	pins_wait_locked(h);
	busy = (!with_blocks && blocks_out(h) > 0) || pcpi_pools_any(&h->pools);
	if (!busy) {
		pcpi_thread_forget(h); /* E3 */
		cds_list_del(&h->link);
		cds_list_add(&h->link, &pcpi_heaps_partial);
	}
	pcpi_lock_drop(&pcpi_heaps_lock);
	if (busy)
		return -EBUSY;
	pcpi_background_stop(&h->background);
	pcpi_heap_notify(h, NULL, NULL);
	caches_unmap(h);
	zones_fini(h, h->nr_zones);
	heap_fini(h);
	heap_forget(h);
	pcpi_space_destroy(&h->space);
	pcpi_sys->unmap(memory, bytes);
	return 0;
}

/* ---- Pins ------------------------------------------------------------------------------ */

static struct pcpa_heap *pin_locked(uint64_t above_id)
{
	struct pcpa_heap *h, *next = NULL;

	pcpi_list_each(h, &pcpi_heaps, link)
		/* relaxed: news from before the subscription may be told or not. */
		if (pcpi_load_relaxed(&h->env.watch.on) && h->id > above_id &&
		    (!next || h->id < next->id))
			next = h;
	if (next)
		next->pins++;
	return next;
}

struct pcpa_heap *pcpi_heap_pin(uint64_t above_id)
{
	struct pcpa_heap *h;

	pcpi_lock_take(&pcpi_heaps_lock);
	h = pin_locked(above_id);
	pcpi_lock_drop(&pcpi_heaps_lock);
	return h;
}

struct pcpa_heap *pcpi_heap_unpin(struct pcpa_heap *h)
{
	uint64_t id = h->id;

	pcpi_lock_take(&pcpi_heaps_lock);
	h->pins--;
	h = pin_locked(id);
	pcpi_lock_drop(&pcpi_heaps_lock);
	return h;
}

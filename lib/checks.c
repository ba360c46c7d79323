/* SPDX-License-Identifier: BSD-2-Clause */
/* checks.c - see checks.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#endif
#include "checks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
#define backtrace(frames, n) ((void)(frames), (void)(n), 0)
#endif

#include "annotate.h"
#include "bits.h"
#include "page.h"
#include "sys/sys.h"

#define PATTERN 0xa5u
#define PATTERN_WORD (PATTERN * UINT64_C(0x0101010101010101))
#define SHOWN_BYTES 8u
/* Frames of the library's own, before those of its caller. */
#define OWN_FRAMES 8u

/* ---- Modules ----------------------------------------------------------------- */

struct module {
	uintptr_t at; /* an address that is looked for */
	unsigned seen;
	bool main;
	uintptr_t bias, code, code_end;
};

static int module_match(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module *m = arg;
	int i;

	(void)size;
	m->main = m->seen++ == 0; /* the program comes first */
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || m->at - start >= ph->p_memsz)
			continue;
		m->bias = info->dlpi_addr;
		m->code = start;
		m->code_end = start + ph->p_memsz;
		return 1;
	}
	return 0;
}

static bool module_find(struct module *m, uintptr_t at)
{
	*m = (struct module){ .at = at };
	return dl_iterate_phdr(module_match, m) == 1;
}

/* ---- Sites --------------------------------------------------------------------- */

/* The frames of the library itself say nothing; where it is part of the program
 * they can't be told from its. */
static void site_note(const struct pcpi_checks *k, struct pcpi_site *site)
{
	void *raw[OWN_FRAMES + PCPI_SITE_FRAMES];
	int n = backtrace(raw, OWN_FRAMES + PCPI_SITE_FRAMES), i = 0;

	while (i < n && (uintptr_t)raw[i] - k->code < k->code_end - k->code)
		i++;
	site->tid = pcpi_sys->tid();
	site->nr_frames = 0;
	while (i < n && site->nr_frames < PCPI_SITE_FRAMES)
		site->frames[site->nr_frames++] = raw[i++];
}

/* What addr2line takes: the module, and the address as in its file, of the call
 * and not of what follows it. */
static void frame_say(const void *frame)
{
	uintptr_t at = (uintptr_t)frame - 1;
	struct module m;
	Dl_info info;

	if (!module_find(&m, at) || !dladdr((void *)at, &info) || !info.dli_fname)
		pcpi_sys_say("    [0x%zx]", (size_t)at);
	else
		pcpi_sys_say("    %s(+0x%zx)%s%s", info.dli_fname,
			     (size_t)(at - m.bias), info.dli_sname ? " " : "",
			     info.dli_sname ? info.dli_sname : "");
}

static void site_say(const struct pcpi_site *site, const char *what)
{
	unsigned i;

	if (site->tid == 0)
		return;
	pcpi_sys_say("  %s by thread %d:", what, site->tid);
	for (i = 0; i < site->nr_frames; i++)
		frame_say(site->frames[i]);
}

/* ---- The table ------------------------------------------------------------------ */

static void table_map(struct pcpi_checks *k, uint64_t pages)
{
	size_t notes = (size_t)pages * sizeof(*k->notes);

	k->memory_bytes = pcpi_round_up(notes + (size_t)pages,
					pcpi_sys_page_bytes());
	if (pcpi_sys->map_meta(k->memory_bytes, &k->memory) != 0) {
		k->memory = NULL;
		pcpi_sys_say("heap %p: %zu MiB of address space for its checks "
			     "are not to be had: it finds bad frees only, and "
			     "doesn't say who had a block; a smaller max_bytes "
			     "helps", k->heap, k->memory_bytes >> 20);
		return;
	}
	pcpi_sys->name(k->memory, k->memory_bytes, "pcpalloc:checks");
	k->notes = k->memory;
	k->filled = (uint8_t *)k->memory + notes;
}

void pcpi_checks_init(struct pcpi_checks *k, uint64_t pages, bool notes)
{
	struct module own;
	void *frame;

	if (!notes)
		return;
	if (module_find(&own, (uintptr_t)&pcpi_checks_init) && !own.main) {
		k->code = own.code;
		k->code_end = own.code_end;
	}
	(void)backtrace(&frame, 1); /* its first call loads a library: CK2 */
	table_map(k, pages);
}

void pcpi_checks_fini(struct pcpi_checks *k)
{
	if (k->memory)
		pcpi_sys->unmap(k->memory, k->memory_bytes);
}

void pcpi_checks_add(struct pcpi_checks *k, uint32_t pfn, uint32_t pages)
{
	if (k->filled)
		memset(k->filled + pfn, 0, pages);
}

/* ---- Which block? ---------------------------------------------------------------- */

static void *addr_of(const struct pcpi_checks *k, uint32_t pfn)
{
	return k->base + ((size_t)pfn << k->page_shift);
}

/* Order of the block that a page was part of when it was freed, or that it is
 * part of; -1: of none, or of a contiguous range, of which nothing is noted. */
static int order_of(const struct pcpi_checks *k, uint32_t pfn)
{
	unsigned byte = pcpi_page_read(k->orders, pfn), o;

	if (k->filled[pfn])
		return (int)k->filled[pfn] - 1;
	for (o = 1; byte & PCPI_PAGE_TAIL && o <= PCPI_MAX_ORDER; o++)
		byte = pcpi_page_read(k->orders, pfn >> o << o);
	if (byte & PCPI_PAGE_TAIL)
		return -1;
	return (int)(byte & ~PCPI_PAGE_HELD) - 1;
}

void pcpi_checks_say_here(const struct pcpi_checks *k, const char *now)
{
	struct pcpi_site here;

	site_note(k, &here);
	site_say(&here, now);
}

void pcpi_checks_say(const struct pcpi_checks *k, uint32_t pfn,
		     unsigned os_node, const char *now)
{
	int order = order_of(k, pfn);
	uint32_t head = pfn >> (order < 0 ? 0 : order) << (order < 0 ? 0 : order);

	if (order < 0)
		pcpi_sys_say("  page %p, in no block now, node %u, heap %p",
			     addr_of(k, pfn), os_node, k->heap);
	else
		pcpi_sys_say("  block %p, order %d (%zu bytes), node %u, heap %p",
			     addr_of(k, head), order,
			     (size_t)1 << (order + (int)k->page_shift), os_node,
			     k->heap);
	pcpi_checks_say_here(k, now);
	if (k->filled[pfn] && !k->filled[head]) {
		/* Its last allocation isn't known any more. */
		pcpi_sys_say("  a part of it has been handed out again");
		site_say(&k->notes[head].given, "last freed");
		return;
	}
	site_say(&k->notes[head].given, "last freed");
	site_say(&k->notes[head].taken, "last allocated");
}

/* ---- Pattern ----------------------------------------------------------------------- */

static void block_fill(struct pcpi_checks *k, uint32_t pfn, unsigned order)
{
	memset(addr_of(k, pfn), PATTERN, (size_t)1 << (order + k->page_shift));
	memset(k->filled + pfn, (int)order + 1, (size_t)1 << order);
}

/* Offset of the first byte that isn't the pattern's; a page's length: none. */
static size_t page_differs(const struct pcpi_checks *k, uint32_t pfn)
{
	const uint8_t *bytes = addr_of(k, pfn);
	const uint64_t *words = addr_of(k, pfn);
	size_t page = (size_t)1 << k->page_shift, i = 0;

	while (i < page / sizeof(*words) && words[i] == PATTERN_WORD)
		i++;
	for (i *= sizeof(*words); i < page && bytes[i] == PATTERN;)
		i++;
	return i;
}

static PCPI_COLD void pattern_fail(const struct pcpi_checks *k, uint32_t pfn,
				   size_t at, unsigned os_node)
{
	unsigned order = k->filled[pfn] - 1u;
	const uint8_t *found = (uint8_t *)addr_of(k, pfn) + at;
	size_t left = ((size_t)1 << k->page_shift) - at, i;
	size_t first = (size_t)(pfn & ((1u << order) - 1)) << k->page_shift;
	char text[3 * SHOWN_BYTES + 1] = "";

	for (i = 0; i < pcpi_min(left, (size_t)SHOWN_BYTES); i++) {
		text[3 * i] = ' ';
		text[3 * i + 1] = "0123456789abcdef"[found[i] >> 4];
		text[3 * i + 2] = "0123456789abcdef"[found[i] & 15];
	}
	pcpi_sys_say("heap %p: %p was written after it was freed: at byte %zu of "
		     "its block is%s, not %x", k->heap, (const void *)found,
		     first + at, text, PATTERN);
	pcpi_checks_say(k, pfn, os_node, "found when allocated");
	abort();
}

static void pattern_verify(struct pcpi_checks *k, uint32_t pfn, unsigned order,
			   unsigned os_node)
{
	size_t page = (size_t)1 << k->page_shift, at;
	uint32_t i;

	for (i = pfn; i < pfn + (1u << order); i++) {
		if (!k->filled[i])
			continue;
		pcpi_annotate_look(addr_of(k, i), page);
		at = page_differs(k, i);
		if (at < page)
			pattern_fail(k, i, at, os_node);
	}
	memset(k->filled + pfn, 0, (size_t)1 << order); /* CK1 */
}

/* ---- Hand-out and return ---------------------------------------------------------- */

static void take_tell(const struct pcpi_checks *k, uint32_t pfn, size_t bytes)
{
	if (k->contents)
		pcpi_annotate_take_order(addr_of(k, pfn));
	else
		pcpi_annotate_take(addr_of(k, pfn), bytes);
}

static void give_tell(const struct pcpi_checks *k, uint32_t pfn, size_t bytes)
{
	if (k->contents)
		pcpi_annotate_give_order(addr_of(k, pfn));
	else
		pcpi_annotate_give(addr_of(k, pfn), bytes);
}

bool pcpi_checks_hold(const struct pcpi_checks *k, uint32_t pfn, unsigned order)
{
	uint8_t seen = (uint8_t)(order + 1);

	/* acquire/release: pairs with itself; of two frees of a block one sees
	 * the other's mark. */
	return pcpi_cas_acq_rel(&k->orders[pfn], &seen,
				(uint8_t)(seen | PCPI_PAGE_HELD));
}

void pcpi_checks_give(struct pcpi_checks *k, uint32_t pfn, unsigned order)
{
	if (k->notes) {
		site_note(k, &k->notes[pfn].given);
		if (!k->contents)
			block_fill(k, pfn, order);
	}
	give_tell(k, pfn, (size_t)1 << (order + k->page_shift));
}

void pcpi_checks_take(struct pcpi_checks *k, uint32_t pfn, unsigned order,
		      unsigned os_node)
{
	if (k->notes) {
		pattern_verify(k, pfn, order, os_node);
		site_note(k, &k->notes[pfn].taken);
	}
	take_tell(k, pfn, (size_t)1 << (order + k->page_shift));
	pcpi_page_write(k->orders, pfn, order + 1);
}

void pcpi_checks_take_range(struct pcpi_checks *k, uint32_t pfn, uint32_t pages)
{
	pcpi_checks_add(k, pfn, pages);
	take_tell(k, pfn, (size_t)pages << k->page_shift);
}

void pcpi_checks_give_range(const struct pcpi_checks *k, uint32_t pfn,
			    uint32_t pages)
{
	give_tell(k, pfn, (size_t)pages << k->page_shift);
}

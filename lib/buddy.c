/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buddy.c - the bitmap core of the buddy.
 *
 * Owns which pages of a range are free.  Knows no address, lock, node or
 * watermark, and not what is done with a page that was taken.
 *
 * A bit a page, set while the page is free.  The free blocks are not stored:
 * they are the largest aligned runs of set bits.  So a give merges by setting
 * bits, a take splits by clearing them, and the outcome is that of a buddy
 * which always merges at once.
 *
 *   bits        1 1 1 1 0 1 1 1 0 0 0 0 1 1 0 1
 *   order 0               1                   1      blocks that are no part
 *   order 1                 1           1            of a larger one: what
 *   order 2     1                                    pick() chooses from
 *
 * A word of 64 bits is worked on as a whole.  With a = heads of all free
 * blocks of order j, those of order j + 1 are a & (a >> 2^j) at even places;
 * from order 6 on the same is done on a word that has a bit for each full word
 * of the chunk.
 *
 * Chunks that have free pages hang in buckets, circles through a node each:
 *
 *   row    = largest free order     node[row][class] <-> chunk <-> chunk <-> node
 *   class  = log2 of the free pages classes[row]: which circles aren't empty
 *
 * A take of n pages as blocks of order k looks in the rows k and up for the first
 * with a chunk that promises n pages, so that mostly one chunk serves it, and that
 * large blocks stay whole.  In a row it takes the fullest such chunk: fragments gather
 * in few, and the others become whole again.  Wholly free chunks are alone in the row
 * top_order and are broken last.  Inside a chunk the smallest block that fits goes
 * first.  A wholly taken chunk hangs nowhere.
 *
 * B1 chunk.free is the number of set bits of the chunk.
 * B2 chunk.top is 1 + the largest order of its free blocks, 0 without any.
 * B3 a chunk hangs in the bucket [top - 1][log2(free)] when free > 0, else
 *    nowhere.
 * B4 classes[r] has bit k iff the bucket [r][k] has a chunk; rows has bit r iff
 *    classes[r] is not 0.
 * B5 free_pages is the sum of chunk.free.
 * B6 a chunk of type ABSENT is all zero, its words too.
 *
 * Concurrency: none; the owner (zone) holds its lock around each call.
 * Cost: give: one word and one summary a page, and in one of about ten gives,
 * where a chunk changes its bucket, four neighbours; take: at most
 * PCPI_BUDDY_TAKE_CHUNKS chunks.  None depends on the number of free blocks.
 * Failure: no block: PCPI_NO_PFN or 0; freeing a free page: trap.
 * Proved by tests/unit/test_buddy.c and, against buddy_list.c and a naive
 * reference, by tests/model/model_buddy.c.
 */
#include "buddy.h"

#include "bits.h"
#include "buddy_bits.h"
#include "check.h"

#define WORDS_MAX (1u << (PCPI_MAX_ORDER - WORD_ORDER))

/* log2 of the free pages: 0..PCPI_MAX_ORDER. */
#define CLASSES (PCPI_MAX_ORDER + 1)
#define NODES ((PCPI_MAX_ORDER + 1) * CLASSES)

/* How many entries ahead of the work give_bulk fetches its lines: an entry
 * takes 3 ns, a third-level cache 20.  Costs 0.2 ns where all is in the first
 * level, gains 1 ns at 4 GiB. */
#define GIVE_AHEAD 8

/* ---- Chunks ------------------------------------------------------------- */

static inline uint32_t chunk_pages(const struct pcpi_buddy *b)
{
	return 1u << b->top_order;
}

static inline unsigned chunk_word_count(const struct pcpi_buddy *b)
{
	return 1u << (b->top_order - b->word_order);
}

static inline uint64_t *chunk_words(const struct pcpi_buddy *b, uint32_t c)
{
	return &b->words[(size_t)c << (b->top_order - b->word_order)];
}

/* A bit for each word of the chunk that is all ones. */
static uint64_t full_words(const uint64_t *x, unsigned words)
{
	uint64_t full = 0;

	for (unsigned w = 0; w < words; w++)
		full |= (uint64_t)(x[w] == ~UINT64_C(0)) << w;
	return full;
}

/* 1 + the largest order of a free block in x[words], 0 without any. */
static unsigned words_top(const uint64_t *x, unsigned words)
{
	uint64_t heads[WORDS_MAX], any = 0;
	unsigned j;

	for (unsigned w = 0; w < words; w++)
		any |= heads[w] = x[w];
	for (j = 0; any != 0 && j < WORD_ORDER; j++) {
		any = 0;
		for (unsigned w = 0; w < words; w++)
			any |= heads[w] = pair_up(heads[w], j);
	}
	return any != 0 ? j + word_top(full_words(x, words)) : j;
}

/* ---- Buckets ------------------------------------------------------------ */

/* Of a chunk with this many free pages, at least one. */
static inline unsigned class_of(uint32_t free)
{
	return pcpi_log2(free);
}

/* The node at which a bucket's circle of chunks begins and ends. */
static inline uint32_t bucket_node(const struct pcpi_buddy *b, unsigned row,
				   unsigned class)
{
	return b->chunks + row * CLASSES + class;
}

static void bucket_enter(struct pcpi_buddy *b, uint32_t c)
{
	struct pcpi_buddy_chunk *d = &b->chunk[c];
	unsigned row = d->top - 1u, class = class_of(d->free);
	uint32_t node = bucket_node(b, row, class);

	d->prev = node;
	d->next = b->chunk[node].next;
	b->chunk[d->next].prev = c;
	b->chunk[node].next = c;
	b->classes[row] |= (uint16_t)(1u << class);
	b->rows |= (uint16_t)(1u << row);
}

static void bucket_leave(struct pcpi_buddy *b, uint32_t c)
{
	struct pcpi_buddy_chunk *d = &b->chunk[c];
	unsigned row = d->top - 1u;

	b->chunk[d->next].prev = d->prev;
	b->chunk[d->prev].next = d->next;
	if (d->next != d->prev || d->next < b->chunks)
		return;
	b->classes[row] &= (uint16_t) ~(1u << class_of(d->free));
	if (b->classes[row] == 0)
		b->rows &= (uint16_t) ~(1u << row);
}

/* Notes what a chunk has free now, and moves it to the bucket for that. */
static inline void chunk_settle(struct pcpi_buddy *b, uint32_t c, uint32_t free,
				unsigned top)
{
	struct pcpi_buddy_chunk *d = &b->chunk[c];

	if (pcpi_likely(top != 0 && top == d->top &&
			class_of(free) == class_of(d->free))) {
		d->free = (uint16_t)free;
		return;
	}
	if (d->top != 0)
		bucket_leave(b, c);
	d->free = (uint16_t)free;
	d->top = (uint8_t)top;
	if (top != 0)
		bucket_enter(b, c);
}

/*
 * The chunk to take from, of those that have a block of the order: of those that
 * have `pages` free pages for sure one whose largest block is the smallest, and of
 * these the fullest; without any the emptiest; a wholly free one last.  Requires that
 * there is one.
 */
static uint32_t bucket_find(const struct pcpi_buddy *b, unsigned order,
			    uint32_t pages)
{
	unsigned few = class_of(2 * pages - 1), all = 0, enough = 0, row, class;

	for (row = order; row < b->top_order; row++) {
		all |= b->classes[row];
		enough = b->classes[row] & (~0u << few);
		if (enough != 0)
			break;
	}
	if (all == 0) {
		class = b->top_order;
	} else if (enough != 0) {
		class = lowest_bit(enough);
	} else {
		class = pcpi_log2(all);
		for (row = order; (b->classes[row] >> class & 1) == 0; row++)
			;
	}
	return b->chunk[bucket_node(b, row, class)].next;
}

/* ---- Take --------------------------------------------------------------- */

/* What a take cuts out of a chunk. */
struct cut {
	uint64_t heads[WORDS_MAX]; /* of the blocks chosen, by word       */
	uint32_t left;             /* blocks still wanted                 */
	unsigned hit;              /* largest order of a block cut into   */
};

/*
 * Cuts blocks of `order` out of the free blocks of orders below `end`, the
 * smallest first.  a[words] are the free bits; where blocks are left to want,
 * it ends as the heads of the free blocks of order `end`.
 */
static void cut_best_fit(struct cut *cut, uint64_t *a, unsigned words,
			 unsigned order, unsigned end)
{
	for (unsigned j = 0; j < order; j++)
		for (unsigned w = 0; w < words; w++)
			a[w] = pair_up(a[w], j);
	for (unsigned j = order; j < end && cut->left != 0; j++) {
		for (unsigned w = 0; w < words && cut->left != 0; w++) {
			uint64_t up = pair_up(a[w], j);
			uint64_t alone = a[w] & ~(up | up << (1u << j));

			if (alone != 0) {
				cut->heads[w] |=
					pick(alone, j, order, &cut->left);
				cut->hit = j;
			}
			a[w] = up;
		}
	}
}

/* Orders 6 and up: heads[0] has a bit for each word that begins a block. */
static void cut_words(struct cut *cut, uint64_t full, unsigned order)
{
	cut->heads[0] = 0;
	cut->hit = 0;
	cut_best_fit(cut, &full, 1, order - WORD_ORDER,
		     PCPI_MAX_ORDER - WORD_ORDER + 1);
	cut->hit += WORD_ORDER;
}

/* Orders below 6: from blocks inside words, then from blocks of full words. */
static void cut_pages(struct cut *cut, const uint64_t *x, unsigned words,
		      unsigned order)
{
	uint32_t per = 1u << (WORD_ORDER - order);
	uint64_t a[WORDS_MAX];
	struct cut whole;

	for (unsigned w = 0; w < words; w++) {
		a[w] = x[w];
		cut->heads[w] = 0;
	}
	cut->hit = 0;
	cut_best_fit(cut, a, words, order, WORD_ORDER);
	if (cut->left == 0)
		return;
	whole.left = (cut->left + per - 1) / per;
	cut_words(&whole, full_words(x, words), WORD_ORDER);
	for (uint64_t m = whole.heads[0]; m != 0; m &= m - 1) {
		uint32_t n = pcpi_min(per, cut->left);

		cut->heads[lowest_bit(m)] = starts[order] & low_bits(n << order);
		cut->left -= n;
		cut->hit = whole.hit;
	}
}

/* The chunk is used up: no need to look at its blocks. */
static void cut_all(struct cut *cut, const uint64_t *x, unsigned words,
		    const struct pcpi_buddy_chunk *d)
{
	for (unsigned w = 0; w < words; w++)
		cut->heads[w] = x[w];
	cut->left -= d->free;
	cut->hit = d->top - 1u;
}

/* Clears the blocks of the cut and writes their indices, counted from base. */
static void cut_out_pages(const struct cut *cut, uint64_t *x, unsigned words,
			  unsigned order, uint32_t base, uint32_t *pfns)
{
	for (unsigned w = 0; w < words; w++, base += 1u << WORD_ORDER) {
		x[w] &= ~spread(cut->heads[w], 0, order);
		for (uint64_t m = cut->heads[w]; m != 0; m &= m - 1)
			*pfns++ = base + lowest_bit(m);
	}
}

static void cut_out_words(const struct cut *cut, uint64_t *x, unsigned order,
			  uint32_t base, uint32_t *pfns)
{
	for (uint64_t m = cut->heads[0]; m != 0; m &= m - 1) {
		unsigned w = lowest_bit(m);

		*pfns++ = base + (w << WORD_ORDER);
		for (unsigned i = 0; i < 1u << (order - WORD_ORDER); i++)
			x[w + i] = 0;
	}
}

/* Takes up to n blocks out of a chunk that has at least one; returns how many. */
static uint32_t chunk_take(struct pcpi_buddy *b, uint32_t c, unsigned order,
			   uint32_t *pfns, uint32_t n)
{
	struct pcpi_buddy_chunk *d = &b->chunk[c];
	unsigned words = chunk_word_count(b), top = d->top;
	uint32_t base = b->first + (c << b->top_order), got, free;
	uint64_t *x = chunk_words(b, c);
	struct cut cut;

	cut.left = n;
	if (order == 0 && d->free <= n)
		cut_all(&cut, x, words, d);
	else if (order < WORD_ORDER)
		cut_pages(&cut, x, words, order);
	else
		cut_words(&cut, full_words(x, words), order);
	if (order < WORD_ORDER)
		cut_out_pages(&cut, x, words, order, base, pfns);
	else
		cut_out_words(&cut, x, order, base, pfns);
	got = n - cut.left;
	free = d->free - (got << order);
	b->splits += cut.hit > order;
	b->free_pages -= (uint64_t)got << order;
	if (free == 0)
		top = 0;
	else if (cut.hit + 1 == top) /* a largest block is gone */
		top = words_top(x, words);
	chunk_settle(b, c, free, top);
	return got;
}

uint32_t pcpi_buddy_take_bulk(struct pcpi_buddy *b, unsigned order,
			      uint32_t *pfns, uint32_t n)
{
	/* Looked for in one chunk: all, but no more than many chunks have. */
	uint32_t most = chunk_pages(b) / 4, got = 0, c;
	uint32_t pages = n < most >> order ? n << order : most;

	for (unsigned i = 0; i < PCPI_BUDDY_TAKE_CHUNKS; i++) {
		if (got == n || !pcpi_buddy_has(b, order))
			break;
		c = bucket_find(b, order, pages);
		got += chunk_take(b, c, order, pfns + got, n - got);
	}
	return got;
}

uint32_t pcpi_buddy_take(struct pcpi_buddy *b, unsigned order)
{
	uint32_t pfn;

	return pcpi_buddy_take_bulk(b, order, &pfn, 1) == 1 ? pfn : PCPI_NO_PFN;
}

/* ---- Give --------------------------------------------------------------- */

/* Is the block of this order around page `bit` of word w wholly free? */
static bool block_is_free(const struct pcpi_buddy *b, size_t w, unsigned bit,
			  unsigned order)
{
	uint64_t x = b->words[w];
	size_t n;

	if (order < WORD_ORDER)
		return (~x >> (bit & (~0u << order)) & blocks[order]) == 0;
	if (~x != 0)
		return false;
	n = (size_t)1 << (order - WORD_ORDER);
	w &= ~(n - 1);
	while (n-- > 0)
		if (~b->words[w + n] != 0)
			return false;
	return true;
}

/*
 * Accounts for `pages` pages that became free in word w and its successors,
 * `bit` the first; the largest block that they are part of within the word has
 * at least the order top - 1.  A new largest block of the chunk can only be
 * around them.
 */
static PCPI_NOINLINE void word_given(struct pcpi_buddy *b, size_t w,
				     unsigned bit, uint32_t pages, unsigned top)
{
	uint32_t c = (uint32_t)(w >> (b->top_order - b->word_order));
	struct pcpi_buddy_chunk *d = &b->chunk[c];

	PCPA_ASSERT(d->type != PCPI_BUDDY_ABSENT);
	top = pcpi_max(top, d->top);
	while (top <= b->top_order && block_is_free(b, w, bit, top))
		top++;
	chunk_settle(b, c, d->free + pages, top);
}

static void give_words(struct pcpi_buddy *b, uint32_t rel, unsigned order)
{
	size_t w = rel >> WORD_ORDER;

	for (unsigned i = 0; i < 1u << (order - WORD_ORDER); i++) {
		PCPA_TRAP(b->words[w + i] == 0);
		b->words[w + i] = ~UINT64_C(0);
	}
	word_given(b, w, 0, 1u << order, order + 1);
}

/* Gives the run of adjacent blocks that begins at pfns[0], as far as it stays
 * in one word; returns how many of the n they are. */
static PCPI_NOINLINE uint32_t give_run(struct pcpi_buddy *b, unsigned order,
				       const uint32_t *pfns, uint32_t n)
{
	uint32_t rel = pfns[0] - b->first, i = 1;
	unsigned bit = rel & ((1u << b->word_order) - 1);
	size_t w = rel >> b->word_order;
	uint64_t mask;

	n = pcpi_min(n, ((1u << b->word_order) - bit) >> order);
	while (i < n && pfns[i] == pfns[0] + (i << order))
		i++;
	mask = low_bits(i << order) << bit;
	PCPA_TRAP((b->words[w] & mask) == 0);
	b->words[w] |= mask;
	word_given(b, w, bit, i << order, word_top(b->words[w]));
	return i;
}

/*
 * Gives one block of an order below 6.  Mostly nothing changes but the bits
 * and the count: what is looked at is whether a block larger than the chunk's
 * largest came about, and whether the count reached the next power of two.
 */
PCPI_INLINE void give_block(struct pcpi_buddy *b, uint64_t *words,
			    struct pcpi_buddy_chunk *chunk, uint32_t rel,
			    unsigned order, unsigned word_order,
			    unsigned top_order)
{
	struct pcpi_buddy_chunk *d = &chunk[rel >> top_order];
	size_t w = rel >> word_order;
	unsigned bit = rel & ((1u << word_order) - 1), top = d->top;
	uint32_t old = d->free, now = old + (1u << order);
	uint64_t mask = blocks[order] << bit, x = words[w];

	PCPA_TRAP((x & mask) == 0);
	x |= mask;
	words[w] = x;
	/* old ^ now exceeds old iff now has a higher top bit: another class. */
	if (pcpi_unlikely((old ^ now) > old ||
			  (~x >> (bit & (~0u << top)) & blocks[top]) == 0))
		word_given(b, w, bit, 1u << order, order + 1);
	else
		d->free = (uint16_t)now;
}

void pcpi_buddy_give_bulk(struct pcpi_buddy *b, unsigned order,
			  const uint32_t *pfns, uint32_t n)
{
	struct pcpi_buddy_chunk *chunk = b->chunk;
	unsigned word_order = b->word_order, top_order = b->top_order;
	uint32_t first = b->first, i = 0;
	uint64_t *words = b->words;

	b->free_pages += (uint64_t)n << order;
	if (order >= WORD_ORDER) {
		for (; i < n; i++)
			give_words(b, pfns[i] - first, order);
		return;
	}
	while (i < n) {
		if (i + GIVE_AHEAD < n) {
			uint32_t rel = pfns[i + GIVE_AHEAD] - first;

			__builtin_prefetch(&words[rel >> word_order], 1);
			__builtin_prefetch(&chunk[rel >> top_order], 1);
		}
		if (i + 1 < n && pfns[i + 1] == pfns[i] + (1u << order)) {
			i += give_run(b, order, pfns + i, n - i);
			continue;
		}
		give_block(b, words, chunk, pfns[i++] - first, order,
			   word_order, top_order);
	}
}

void pcpi_buddy_give(struct pcpi_buddy *b, uint32_t pfn, unsigned order)
{
	pcpi_buddy_give_bulk(b, order, &pfn, 1);
}

/* ---- Set-up and queries ------------------------------------------------- */

void pcpi_buddy_recount(struct pcpi_buddy *b, uint32_t chunk)
{
	const uint64_t *x = chunk_words(b, chunk);
	unsigned words = chunk_word_count(b);
	uint32_t free = 0;

	PCPA_ASSERT(b->chunk[chunk].type != PCPI_BUDDY_ABSENT);
	for (unsigned w = 0; w < words; w++)
		free += count_bits(x[w]);
	b->free_pages += (uint64_t)free - b->chunk[chunk].free;
	chunk_settle(b, chunk, free, words_top(x, words));
}

static size_t words_bytes(uint32_t chunks, unsigned top_order)
{
	unsigned words =
		top_order > WORD_ORDER ? 1u << (top_order - WORD_ORDER) : 1u;

	return pcpi_round_up((size_t)chunks * words * sizeof(uint64_t),
			     PCPI_CACHELINE);
}

size_t pcpi_buddy_meta_bytes(uint32_t chunks, unsigned top_order)
{
	return words_bytes(chunks, top_order) +
	       pcpi_round_up(((size_t)chunks + NODES) *
				     sizeof(struct pcpi_buddy_chunk),
			     PCPI_CACHELINE);
}

void pcpi_buddy_init(struct pcpi_buddy *b, void *meta, uint32_t first,
		     uint32_t chunks, unsigned top_order)
{
	PCPA_ASSERT(top_order >= PCPI_BUDDY_MIN_TOP_ORDER);
	PCPA_ASSERT(top_order <= PCPI_MAX_ORDER);
	PCPA_ASSERT(first + ((uint64_t)chunks << top_order) <= UINT64_C(1)
								       << 32);
	*b = (struct pcpi_buddy){
		.words = meta,
		.chunk = (void *)((char *)meta + words_bytes(chunks, top_order)),
		.first = first,
		.chunks = chunks,
		.top_order = (uint8_t)top_order,
		.word_order = (uint8_t)pcpi_min(top_order, WORD_ORDER + 0u),
	};
	for (uint32_t i = chunks; i < chunks + NODES; i++)
		b->chunk[i].next = b->chunk[i].prev = i;
}

void pcpi_buddy_add(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages)
{
	uint32_t from = (pfn - b->first) >> b->top_order;
	uint32_t c = from + (pages >> b->top_order);
	uint64_t word = low_bits(1u << b->word_order);

	PCPA_ASSERT(((pfn - b->first) & (chunk_pages(b) - 1)) == 0);
	PCPA_ASSERT((pages & (chunk_pages(b) - 1)) == 0 && c <= b->chunks);
	PCPA_ASSERT((uint64_t)pfn + pages <= PCPI_NO_PFN);
	/* Downwards, so that takes begin with the lowest. */
	while (c-- > from) {
		struct pcpi_buddy_chunk *d = &b->chunk[c];

		PCPA_TRAP(d->type == PCPI_BUDDY_ABSENT);
		for (unsigned w = 0; w < chunk_word_count(b); w++)
			chunk_words(b, c)[w] = word;
		d->type = PCPI_BUDDY_NORMAL;
		d->free = (uint16_t)chunk_pages(b);
		d->top = (uint8_t)(b->top_order + 1);
		bucket_enter(b, c);
	}
	b->free_pages += pages;
}

bool pcpi_buddy_remove(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages)
{
	uint32_t from = (pfn - b->first) >> b->top_order;
	uint32_t end = from + (pages >> b->top_order), c;

	PCPA_ASSERT(((pfn - b->first) & (chunk_pages(b) - 1)) == 0);
	PCPA_ASSERT((pages & (chunk_pages(b) - 1)) == 0 && end <= b->chunks);
	for (c = from; c < end; c++)
		if (b->chunk[c].type != PCPI_BUDDY_NORMAL ||
		    b->chunk[c].free != chunk_pages(b))
			return false;
	for (c = from; c < end; c++) {
		bucket_leave(b, c);
		for (unsigned w = 0; w < chunk_word_count(b); w++)
			chunk_words(b, c)[w] = 0;
		b->chunk[c] = (struct pcpi_buddy_chunk){ 0 }; /* B6 */
	}
	b->free_pages -= pages;
	return true;
}

bool pcpi_buddy_is_free(const struct pcpi_buddy *b, uint32_t pfn)
{
	uint32_t rel = pfn - b->first;

	return pfn >= b->first && rel >> b->top_order < b->chunks &&
	       (b->words[rel >> b->word_order] >>
			(rel & ((1u << b->word_order) - 1)) &
		1) != 0;
}

bool pcpi_buddy_has(const struct pcpi_buddy *b, unsigned order)
{
	return b->rows >> order != 0;
}

uint64_t pcpi_buddy_free_pages(const struct pcpi_buddy *b)
{
	return b->free_pages;
}

/* Adds the blocks of one word, whose bits stand for blocks of order `unit`. */
static void word_counts(uint64_t x, unsigned unit, unsigned end,
			uint32_t *counts)
{
	for (unsigned j = 0; j < end && x != 0; j++) {
		uint64_t up = pair_up(x, j);

		counts[unit + j] += count_bits(x & ~(up | up << (1u << j)));
		x = up;
	}
}

void pcpi_buddy_chunk_counts(const struct pcpi_buddy *b, uint32_t chunk,
			     uint32_t counts[PCPI_MAX_ORDER + 1])
{
	const uint64_t *x = chunk_words(b, chunk);
	unsigned words = chunk_word_count(b);

	for (unsigned w = 0; w < words; w++)
		word_counts(x[w], 0, WORD_ORDER, counts);
	word_counts(full_words(x, words), WORD_ORDER,
		    PCPI_MAX_ORDER - WORD_ORDER + 1, counts);
}

/* ---- Check -------------------------------------------------------------- */

/* B1, B2, B6 of one chunk. */
static bool chunk_check(const struct pcpi_buddy *b, uint32_t c)
{
	const struct pcpi_buddy_chunk *d = &b->chunk[c];
	const uint64_t *x = chunk_words(b, c);
	unsigned words = chunk_word_count(b);
	uint32_t free = 0;

	for (unsigned w = 0; w < words; w++)
		free += count_bits(x[w]);
	if (d->type == PCPI_BUDDY_ABSENT)
		return free == 0 && d->free == 0 && d->top == 0 &&
		       d->next == 0 && d->prev == 0;
	return d->free == free && d->top == words_top(x, words);
}

/* B3 of one bucket; adds its length to *hanging. */
static bool bucket_check(const struct pcpi_buddy *b, unsigned row,
			 unsigned class, uint32_t *hanging)
{
	uint32_t node = bucket_node(b, row, class), prev = node;
	uint32_t c = b->chunk[node].next;

	if ((c != node) != (b->classes[row] >> class & 1)) /* B4 */
		return false;
	for (; c != node; prev = c, c = b->chunk[c].next) {
		const struct pcpi_buddy_chunk *d = &b->chunk[c];

		if (c >= b->chunks || *hanging == b->chunks)
			return false;
		if (d->prev != prev || d->top != row + 1 ||
		    class_of(d->free) != class)
			return false;
		++*hanging;
	}
	return b->chunk[node].prev == prev;
}

bool pcpi_buddy_check(const struct pcpi_buddy *b)
{
	uint32_t hanging = 0, with_free = 0;
	uint64_t free = 0;

	for (uint32_t c = 0; c < b->chunks; c++) {
		if (!chunk_check(b, c))
			return false;
		with_free += b->chunk[c].free != 0;
		free += b->chunk[c].free;
	}
	for (unsigned row = 0; row <= PCPI_MAX_ORDER; row++) {
		for (unsigned k = 0; k < CLASSES; k++)
			if (!bucket_check(b, row, k, &hanging))
				return false;
		if ((b->classes[row] != 0) != (b->rows >> row & 1)) /* B4 */
			return false;
	}
	return hanging == with_free && free == b->free_pages; /* B3, B5 */
}

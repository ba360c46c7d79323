/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_iova.c - which addresses have a physical one, on the invented machine.
 */
#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"

#define HUGE_PAGE (2 * MIB)
#define PRESENT (UINT64_C(1) << 63)
#define UNTOUCHED UINT64_C(77)

static uint64_t iova;

static void setup(void)
{
	fake_sys_install();
	iova = UNTOUCHED;
}

TestSuite(iova, .init = setup);

static struct pcpa_heap *heap_hugetlb(unsigned flags)
{
	fake_sys_pool(HUGE_PAGE, 0, 4);
	return heap_make(4 * MIB, 64 * MIB, flags);
}

Test(iova, frame_and_offset_make_the_address)
{
	struct pcpa_heap *heap = heap_hugetlb(0);
	char *block = pcpa_alloc(heap, 0, 0);

	fake.pagemap = PRESENT | UINT64_C(1) << 61 | UINT64_C(0x1234567);
	KEEPS_ERRNO(cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), 0));
	cr_expect_eq(iova, UINT64_C(0x1234567) * fake.page_bytes);
	cr_expect_eq(pcpa_virt_to_iova(heap, block + 321, &iova), 0);
	cr_expect_eq(iova, UINT64_C(0x1234567) * fake.page_bytes + 321);
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(iova, shared_hugetlb_has_one_too)
{
	struct pcpa_heap *heap = heap_hugetlb(PCPA_HEAP_SHARED);
	void *block = pcpa_alloc(heap, 0, 0);

	fake.pagemap = PRESENT | 5;
	cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), 0);
	cr_expect_eq(iova, 5 * fake.page_bytes);
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(iova, other_pages_are_never_stable)
{
	static const size_t asked[] = { 0, 4096 };

	fake.pagemap = PRESENT | 5;
	for (unsigned i = 0; i < 2; i++) {
		struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
		struct pcpa_heap *heap;
		void *block;

		o.initial_bytes = 4 * MIB;
		o.max_bytes = 4 * MIB;
		o.hugepage_bytes = asked[i] ? fake.page_bytes : 0;
		o.verbosity = 0;
		cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
		block = pcpa_alloc(heap, 0, 0);
		cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), -ENOTSUP);
		cr_expect_eq(iova, UNTOUCHED);
		pcpa_free(heap, block);
		heap_end(heap);
	}
}

Test(iova, hidden_frames_are_eperm)
{
	struct pcpa_heap *heap = heap_hugetlb(0);
	void *block = pcpa_alloc(heap, 0, 0);

	fake.pagemap = PRESENT;
	cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), -EPERM);
	fake.pagemap_rc = -EACCES;
	cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), -EPERM);
	fake.pagemap_rc = -EMFILE;
	cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), -EMFILE);
	fake.pagemap_rc = 0;
	fake.pagemap = UINT64_C(1) << 62 | 5;
	cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), -EAGAIN, "moving");
	cr_expect_eq(iova, UNTOUCHED);
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(iova, addresses_without_memory_are_einval)
{
	struct pcpa_heap *heap = heap_hugetlb(0);
	char *block = pcpa_alloc(heap, 9, 0), *given;

	fake.pagemap = PRESENT | 5;
	cr_expect_eq(pcpa_virt_to_iova(NULL, block, &iova), -EINVAL);
	cr_expect_eq(pcpa_virt_to_iova(heap, block, NULL), -EINVAL);
	cr_expect_eq(pcpa_virt_to_iova(heap, NULL, &iova), -EINVAL);
	cr_expect_eq(pcpa_virt_to_iova(heap, &iova, &iova), -EINVAL);
	cr_expect_eq(pcpa_virt_to_iova(heap, block + 32 * MIB, &iova), -EINVAL);
	given = pcpa_alloc(heap, 9, 0);
	pcpa_free(heap, given);
	cr_expect_eq(pcpa_heap_trim(heap, 0), HUGE_PAGE);
	cr_expect_eq(pcpa_virt_to_iova(heap, given, &iova), -EINVAL);
	cr_expect_eq(pcpa_virt_to_iova(heap, block, &iova), 0);
	pcpa_free(heap, block);
	heap_end(heap);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* convert.c - see convert.h. */
#include "convert.h"

#if defined(__x86_64__)

#include "convert_wide.h"

bool pcpi_convert_wide(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

static PCPI_WIDE void to_addrs_wide(const struct pcpi_range *r,
				    const uint32_t *pfns, void **out, uint32_t n)
{
	pcpi_wide_to_addrs(r, pfns, out, n);
}

static PCPI_WIDE bool to_pfns_wide(const struct pcpi_range *r,
				   void *const *blocks, uint32_t *out, uint32_t n)
{
	bool exact = (r->nr_pfns & (r->nr_pfns - 1)) == 0;

	return pcpi_wide_to_pfns(r, blocks, out, n) ||
	       (!exact && pcpi_plain_to_pfns(r, blocks, out, n));
}

#else

bool pcpi_convert_wide(void)
{
	return false;
}

#define to_addrs_wide pcpi_plain_to_addrs
#define to_pfns_wide pcpi_plain_to_pfns

#endif

void pcpi_convert_to_addrs(const struct pcpi_range *r, bool wide,
			   const uint32_t *pfns, void **out, uint32_t n)
{
	if (wide && n >= PCPI_WIDE_STEP)
		to_addrs_wide(r, pfns, out, n);
	else
		pcpi_plain_to_addrs(r, pfns, out, n);
}

bool pcpi_convert_to_pfns(const struct pcpi_range *r, bool wide,
			  void *const *blocks, uint32_t *out, uint32_t n)
{
	return wide && n >= PCPI_WIDE_STEP
		       ? to_pfns_wide(r, blocks, out, n)
		       : pcpi_plain_to_pfns(r, blocks, out, n);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* refused.h - cases of the handler's test. */
#ifndef TESTS_DPDK_REFUSED_H
#define TESTS_DPDK_REFUSED_H

void case_full(void);	   /* DPDK's table of handlers */
void case_secondary(void); /* a secondary process */
void case_physical(void);  /* no physical addresses */
void case_table(void);	   /* EAL's table of memory */
void case_large(void);	   /* objects that no block has room for */
void case_short(void);	   /* memory */
void case_stays(void);	   /* the end, in a forked child */

#endif

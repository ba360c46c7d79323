/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - walking liburcu's lists.  Layer 0.
 *
 * liburcu's own macros compute an entry of the list head itself at the end of
 * the walk, a pointer that is not aligned as the entry's type demands.
 */
#ifndef PCPI_LIST_H
#define PCPI_LIST_H

#include <urcu/list.h>

#include "atomics.h"
#include "base.h"

/* For each entry e of the list, under the lock that guards it or, for an RCU
 * list, in a read-side section.  acquire: pairs with cds_list_add_rcu() and
 * cds_list_add_tail_rcu(). */
#define pcpi_list_each(e, list, member)                                        \
	for (struct cds_list_head *at_ = pcpi_load_acquire(&(list)->next);     \
	     at_ != (list) &&                                                  \
	     ((e) = pcpi_container_of(at_, __typeof__(*(e)), member), true);   \
	     at_ = pcpi_load_acquire(&at_->next))

#endif

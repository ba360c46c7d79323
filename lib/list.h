/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - adding to and walking liburcu's lists.  Layer 0.
 *
 * liburcu's own macros compute an entry of the list head itself at the end of
 * the walk, a pointer that is not aligned as the entry's type demands; and its
 * functions publish an entry by a barrier and a volatile store, which is no
 * release in C11 and unknown to ThreadSanitizer.
 */
#ifndef PCPI_LIST_H
#define PCPI_LIST_H

#include <urcu/list.h>

#include "atomics.h"
#include "base.h"

/* Adds a whole entry behind `before`, under the lock that guards the list;
 * readers of an RCU list walk forward only. */
static inline void pcpi_list_insert(struct cds_list_head *entry,
				    struct cds_list_head *before)
{
	entry->next = before->next;
	entry->prev = before;
	before->next->prev = entry;
	/* release: pairs with pcpi_list_each(). */
	pcpi_store_release(&before->next, entry);
}

static inline void pcpi_list_add(struct cds_list_head *entry,
				 struct cds_list_head *list)
{
	pcpi_list_insert(entry, list);
}

static inline void pcpi_list_add_tail(struct cds_list_head *entry,
				      struct cds_list_head *list)
{
	pcpi_list_insert(entry, list->prev);
}

/* Takes an entry out, under the lock that guards the list; a reader that is at
 * it still goes on to what followed it. */
static inline void pcpi_list_remove(struct cds_list_head *entry)
{
	entry->next->prev = entry->prev;
	/* release: pairs with pcpi_list_each(). */
	pcpi_store_release(&entry->prev->next, entry->next);
}

/* For each entry e of the list, under the lock that guards it or, for an RCU
 * list, in a read-side section.  acquire: pairs with pcpi_list_insert(). */
#define pcpi_list_each(e, list, member)                                        \
	for (struct cds_list_head *at_ = pcpi_load_acquire(&(list)->next);     \
	     at_ != (list) &&                                                  \
	     ((e) = pcpi_container_of(at_, __typeof__(*(e)), member), true);   \
	     at_ = pcpi_load_acquire(&at_->next))

#endif

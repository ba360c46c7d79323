/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sanitized.h - whether the test runs under a sanitizer, which reserves
 * terabytes of address space for itself and so can't live under RLIMIT_AS.
 */
#ifndef SANITIZED_H
#define SANITIZED_H

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||           \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

#endif

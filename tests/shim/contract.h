/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contract.h - what the probes of the contract share.
 *
 * A probe is a function that runs in a child process of its own.  It returns when
 * the calls of mmap's family did what the kernel does; otherwise it says what it saw
 * (probe_fail(), and the macros below) or that the machine can't show it
 * (probe_skip()); neither returns.  Both write into a page that the runner shares
 * with all children of a probe, so a probe's own children may call them, too.
 *
 * The names have the rule's number: rule07_unmap_twice.
 *
 * What is mapped anew after it had been written and freed is what tells a cache of
 * mappings from the kernel.  map_reused() gives such memory; expect_clean() looks at
 * what the next mappings of a size are like, after one had been in an odd state.
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define SOIL 0xa5
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

struct probe {
	const char *name;
	void (*run)(void);
};

#define PROBE(fn)                                                              \
	{                                                                      \
#fn, fn                                                        \
	}
#define PROBES_END                                                             \
	{                                                                      \
		NULL, NULL                                                     \
	}

/* One table a file; PROBES_END closes it. */
extern const struct probe probes_zero[], probes_args[], probes_hint[],
	probes_fixed[], probes_flags[], probes_limits[], probes_unmap[],
	probes_freed[], probes_protect[], probes_remap[], probes_advice[],
	probes_cleared[], probes_lock[], probes_fork[], probes_odd[],
	probes_direct[], probes_others[], probes_process[];

/* ---- Verdicts ------------------------------------------------------------------ */

_Noreturn void probe_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
_Noreturn void probe_skip(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

const char *error_name(int error);
void check_true(bool holds, const char *text, const char *file, int line);
void check_ok(long result, int error, const char *text, const char *file,
	      int line);
void check_fails(long result, int error, int wanted, const char *text,
		 const char *file, int line);

/* The condition is true on the kernel. */
#define EXPECT(cond) check_true((cond), #cond, __FILE__, __LINE__)

/* The call succeeds on the kernel (isn't -1). */
#define OK(call)                                                               \
	do {                                                                   \
		long result_ = (long)(call);                                   \
		check_ok(result_, errno, #call, __FILE__, __LINE__);           \
	} while (0)

/* The kernel says -1 (MAP_FAILED) and this errno. */
#define FAILS(call, wanted)                                                    \
	do {                                                                   \
		errno = 0;                                                     \
		long result_ = (long)(call);                                   \
		check_fails(result_, errno, (wanted), #call, __FILE__,         \
			    __LINE__);                                         \
	} while (0)

/* ---- Memory -------------------------------------------------------------------- */

/* Private anonymous, readable and writable; never fails. */
unsigned char *map(size_t bytes);
unsigned char *map_with(size_t bytes, int flags);
void unmap(void *p, size_t bytes);

/* Maps, writes all of and frees memory of that size, some rounds. */
void soil(size_t bytes);
/* So often that a library is past what it does for the first ones. */
void soil_often(size_t bytes);
unsigned char *map_reused(size_t bytes);
unsigned char *map_soiled(size_t bytes); /* all of it written with SOIL */

void expect_zero(const void *p, size_t bytes, const char *what);
void expect_bytes(const void *p, size_t bytes, unsigned char value,
		  const char *what);
/* In the environment: memory may be from the kernel's pool of huge pages. */
#define POOL_ALLOWED "CONTRACT_POOL"

/* Some mappings of that size: zero, rw-, anonymous, no odd flags, writable. */
void expect_clean(size_t bytes);

/* Memory without a mapping; by mincore(). */
bool is_hole(const void *p);
bool is_resident(const void *p);
/* A range without a mapping, aligned to 2 MiB, that nothing else will take soon. */
unsigned char *free_range(size_t bytes);

/* A deleted file of these bytes, each `value`; the descriptor. */
int file_of(size_t bytes, unsigned char value);

/* ---- Faults -------------------------------------------------------------------- */

struct fault {
	int signal, code; /* 0, 0: none */
};

struct fault fault_read(const volatile void *p);
struct fault fault_write(volatile void *p);
struct fault fault_call(const void *p);
/* The access raises SIGSEGV with this si_code. */
void expect_segv(struct fault f, int code, const char *what);

/* ---- What the kernel says of a page --------------------------------------------- */

/* The two letters of a VmFlag in smaps, as "dd". */
bool has_vm_flag(const void *p, const char *flag);
/* The field in KiB, as "Rss:"; of the area with p, or of the process (p NULL). */
long smaps_kib(const void *p, const char *field);
/* In KiB, as "VmLck:". */
long status_kib(const char *field);
/* "rw-p", or "" for a page that isn't in maps. */
const char *maps_mode(const void *p);
/* The last column of maps. */
bool maps_name_is(const void *p, const char *name);

/* A quarter of so many times; all of them with CONC_WHOLE in the environment. */
unsigned scaled(unsigned times);

/* ---- Processes ------------------------------------------------------------------ */

/* A child that ended with _exit(0), or this probe fails. */
void child_await(pid_t pid);
/* Runs fn in a child; false where fork is refused. */
void in_child(void (*fn)(void *), void *arg);
/* Gives up root, for good, if there is any to give up; false: refused. */
bool become_nobody(void);
/* This program again: contract --helper NAME; its verdict is the probe's. */
void run_helper(const char *name);
void run_program(const char *path, const char *name);
void helper_before_main(void);
void helper_refused_advice(void);
void helper_small_space(void);
void helper_thp_disable(void);
void helper_without_huge_pages(void);
void helper_secure(void);

/* ---- Threads that map, write and free all the time ------------------------------- */

void churn_start(unsigned threads);
void churn_stop(void); /* fails when one of them saw a byte that isn't zero */
/* A round: sizes from 4 KiB to 2 MiB; false when a byte wasn't zero. */
bool churn_round(unsigned *random);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sandbox.h - system calls that the kernel refuses to the process from now on, as in
 * a container.  Each refusal is a filter of its own; one of them is enough.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

/* op: what the argument's lower half is to value, BPF_JEQ, BPF_JGE or BPF_JSET. */
static inline bool sandbox_refuse_if(unsigned call, unsigned arg, unsigned op,
				     unsigned value, unsigned error)
{
	unsigned low = (unsigned)offsetof(struct seccomp_data, args[arg]) +
		       (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4u : 0u);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (unsigned)offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low),
		BPF_JUMP((unsigned short)(BPF_JMP | op | BPF_K), value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

static inline bool sandbox_refuse(unsigned call, unsigned error)
{
	return sandbox_refuse_if(call, 0, BPF_JGE, 0, error);
}

#endif

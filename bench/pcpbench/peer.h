/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer.h - the second thread of a two-thread measurement.
 *
 * Owns: one thread, pinned to the second CPU, that sleeps until it is given a
 * job; and the gate at which both sides meet before the clock starts.
 * Failure: a thread that can't be started or pinned is reported by its errno.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Both parties spin here until the other has come.  Used again and again. */
struct bench_gate {
	_Atomic unsigned come;
};

void bench_gate_pass(struct bench_gate *g);

struct bench_peer {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	void (*job)(void *); /* mutex; NULL: none */
	void *arg;           /* mutex */
	bool busy;           /* mutex */
	bool leave;          /* mutex */
};

/* Pins the calling thread.  Returns 0 or an errno. */
int bench_pin(int cpu);

/* How often the calling thread has lost its CPU to another so far.  Cost: a
 * system call. */
long bench_cpu_losses(void);

/* Starts the thread on the given CPU.  Returns 0 or an errno. */
int bench_peer_start(struct bench_peer *p, int cpu);

/* Has job(arg) run over there; returns at once. */
void bench_peer_run(struct bench_peer *p, void (*job)(void *), void *arg);

/* Sleeps until the job is done. */
void bench_peer_wait(struct bench_peer *p);

void bench_peer_stop(struct bench_peer *p);

#endif

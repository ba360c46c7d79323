/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_replay.c - the parts of pcpreplay: headers and digests of packets,
 * captures good and bad, the blocking hand-over, the command line, and the
 * pipeline's verification (C1, C2, H1-H3, L3, N1, N2).
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pcap/dlt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "handover.h"
#include "options.h"
#include "packet.h"
#include "pipeline.h"

#define PAGE 4096u

/* ---- Helpers ------------------------------------------------------------- */

/* Bytes of a file being made; large enough for every case here. */
struct maker {
	uint8_t data[1 << 20];
	size_t bytes;
};

static struct maker maker;
static char error[REPLAY_ERROR_BYTES];

static void bytes_add(const void *bytes, size_t n)
{
	cr_assert_leq(maker.bytes + n, sizeof(maker.data));
	memcpy(maker.data + maker.bytes, bytes, n);
	maker.bytes += n;
}

static void word_add(uint32_t v)
{
	bytes_add(&v, sizeof(v));
}

static void pcap_begin(uint32_t link_type)
{
	static const uint16_t version[2] = {2, 4};

	maker.bytes = 0;
	word_add(0xa1b2c3d4);
	bytes_add(version, sizeof(version));
	word_add(0);
	word_add(0);
	word_add(262144);
	word_add(link_type);
}

static void pcap_frame(uint32_t captured, uint32_t length)
{
	word_add(1);
	word_add(2);
	word_add(captured);
	word_add(length);
	for (uint32_t i = 0; i < captured; i++)
		bytes_add(&(uint8_t){(uint8_t)(i + length)}, 1);
}

static void pcapng_block(uint32_t type, const uint32_t *body, size_t words)
{
	uint32_t length = (uint32_t)(12 + 4 * words);

	word_add(type);
	word_add(length);
	bytes_add(body, 4 * words);
	word_add(length);
}

static void pcapng_begin(void)
{
	maker.bytes = 0;
	pcapng_block(0x0a0d0d0a,
		     (uint32_t[]){0x1a2b3c4d, 1, 0xffffffff, 0xffffffff}, 4);
}

/* A packet of 8 bytes seen by an interface. */
static void pcapng_packet(uint32_t interface)
{
	pcapng_block(6, (uint32_t[]){interface, 0, 0, 8, 8, 0x45, 0}, 7);
}

static int made_load(struct capture *c)
{
	char path[] = "/tmp/test_replay.XXXXXX";
	int fd = mkstemp(path);
	int rc;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, maker.data, maker.bytes), (ssize_t)maker.bytes);
	close(fd);
	error[0] = 0;
	rc = capture_load(path, c, error);
	unlink(path);
	return rc;
}

/* Sum of the header's 16-bit words, folded: 0xffff when the checksum fits. */
static unsigned header_sum(const uint8_t *ip)
{
	unsigned sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (unsigned)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void header_make(uint8_t *ip, uint8_t ttl, uint16_t id)
{
	unsigned sum;

	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[4] = (uint8_t)(id >> 8);
	ip[5] = (uint8_t)id;
	ip[8] = ttl;
	ip[9] = 17;
	ip[12] = 192;
	ip[14] = 2;
	sum = 0xffff & ~header_sum(ip);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static int parse(struct options *o, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return options_parse(argc, argv, o, error);
}

#define PARSE(o, ...)                                                          \
	parse(o, (char *[]){(char *)"pcpreplay", __VA_ARGS__, NULL})

/* ---- Packets ------------------------------------------------------------- */

Test(packet, forwarded_ipv4_keeps_a_true_checksum)
{
	uint8_t frame[34] = {[12] = 0x08};

	/* Every identification: the sum takes all values and both wraps. */
	for (unsigned id = 0; id <= UINT16_MAX; id++) {
		header_make(frame + 14, 64, (uint16_t)id);
		cr_assert_eq(packet_forward(frame, 34, DLT_EN10MB), PACKET_IPV4);
		cr_assert_eq(frame[14 + 8], 63);
		cr_assert_eq(header_sum(frame + 14), 0xffff, "id %u", id);
	}
}

Test(packet, expired_ttl_is_left_alone)
{
	uint8_t frame[34] = {[12] = 0x08};
	uint8_t before[34];

	header_make(frame + 14, 1, 7);
	memcpy(before, frame, sizeof(frame));
	cr_assert_eq(packet_forward(frame, 34, DLT_EN10MB), PACKET_IPV4);
	cr_assert_arr_eq(frame, before, sizeof(frame));
}

Test(packet, tagged_and_cooked_headers_are_found)
{
	uint8_t tagged[38] = {[12] = 0x81, [16] = 0x08};
	uint8_t cooked[36] = {[14] = 0x08};
	uint8_t raw6[40] = {[0] = 0x60, [7] = 9};

	header_make(tagged + 18, 64, 1);
	header_make(cooked + 16, 64, 1);
	cr_assert_eq(packet_forward(tagged, 38, DLT_EN10MB), PACKET_IPV4);
	cr_assert_eq(packet_forward(cooked, 36, DLT_LINUX_SLL), PACKET_IPV4);
	cr_assert_eq(packet_forward(raw6, 40, DLT_RAW), PACKET_IPV6);
	cr_assert_eq(raw6[7], 8);
}

Test(packet, cut_headers_are_never_read_beyond)
{
	uint8_t *frame;

	for (uint32_t n = 1; n < 60; n++) {
		frame = malloc(n); /* the sanitizer watches its end */
		cr_assert_not_null(frame);
		memset(frame, 0x81, n);
		if (n > 13)
			frame[13] = 0;
		packet_forward(frame, n, DLT_EN10MB);
		packet_digest(frame, n);
		free(frame);
	}
}

Test(packet, digest_sees_changed_moved_and_missing_bytes)
{
	uint8_t a[64], b[64];

	for (int i = 0; i < 64; i++)
		a[i] = (uint8_t)(i * 7);
	memcpy(b, a, 64);
	for (unsigned i = 0; i < 64; i++) {
		b[i] ^= 1;
		cr_assert_neq(packet_digest(a, 64), packet_digest(b, 64));
		b[i] ^= 1;
	}
	memcpy(b, a + 8, 8);
	memcpy(b + 8, a, 8);
	cr_assert_neq(packet_digest(a, 64), packet_digest(b, 64));
	cr_assert_neq(packet_digest(a, 64), packet_digest(a, 63));
}

/* ---- Captures ------------------------------------------------------------ */

Test(capture, frames_take_the_smallest_order_with_headroom)
{
	struct capture c;

	pcap_begin(DLT_EN10MB);
	pcap_frame(64, 64);
	pcap_frame(PAGE - HEADROOM_BYTES, PAGE - HEADROOM_BYTES);
	pcap_frame(PAGE - HEADROOM_BYTES + 1, PAGE - HEADROOM_BYTES + 1);
	pcap_frame(65549, 65549);
	cr_assert_eq(made_load(&c), 0, "%s", error);
	cr_assert_eq(capture_fit(&c, PAGE, HEADROOM_BYTES, 10), 4);
	cr_assert_eq(c.frames[0].order, 0);
	cr_assert_eq(c.frames[1].order, 0);
	cr_assert_eq(c.frames[2].order, 1);
	cr_assert_eq(c.frames[3].order, 5);
	capture_free(&c);
}

Test(capture, frame_above_the_largest_order_is_counted_and_left_out)
{
	struct capture c;

	pcap_begin(DLT_EN10MB);
	pcap_frame(9000, 9000);
	pcap_frame(60, 60);
	cr_assert_eq(made_load(&c), 0, "%s", error);
	cr_assert_eq(capture_fit(&c, PAGE, HEADROOM_BYTES, 1), 1);
	cr_assert_eq(c.nr_large, 1);
	cr_assert_eq(c.nr_read, 2);
	cr_assert_eq(c.frames[0].bytes, 60);
	capture_free(&c);
}

Test(capture, empty_and_short_frames_are_counted)
{
	struct capture c;

	pcap_begin(DLT_EN10MB);
	pcap_frame(0, 60);
	pcap_frame(40, 60);
	cr_assert_eq(made_load(&c), 0, "%s", error);
	cr_assert_eq(c.nr_frames, 1);
	cr_assert_eq(c.nr_empty, 1);
	cr_assert_eq(c.nr_short, 1);
	capture_free(&c);
}

Test(capture, cut_file_gives_what_was_read)
{
	struct capture c;

	pcap_begin(DLT_EN10MB);
	pcap_frame(60, 60);
	pcap_frame(61, 61);
	pcap_frame(62, 62);
	maker.bytes -= 5;
	cr_assert_eq(made_load(&c), 0, "%s", error);
	cr_assert_eq(c.nr_frames, 2);
	cr_assert_neq(c.cut[0], 0);
	capture_free(&c);
}

Test(capture, unusable_files_are_refused_by_name)
{
	struct capture c;

	pcap_begin(DLT_EN10MB);
	cr_assert_eq(made_load(&c), -1);
	cr_assert_not_null(strstr(error, "test_replay."));
	cr_assert_not_null(strstr(error, "empty"), "%s", error);
	pcap_frame(60, 60);
	maker.bytes -= 5;
	cr_assert_eq(made_load(&c), -1);
	cr_assert_not_null(strstr(error, "no whole frame"), "%s", error);
	maker.data[0] ^= 0xff;
	cr_assert_eq(made_load(&c), -1);
	cr_assert_not_null(strstr(error, "not a capture"), "%s", error);
	maker.bytes = 0;
	cr_assert_eq(made_load(&c), -1);
	cr_assert_not_null(strstr(error, "the file is empty"), "%s", error);
	cr_assert_eq(capture_load("/nowhere/x.pcap", &c, error), -1);
	cr_assert_not_null(strstr(error, "/nowhere/x.pcap"));
}

Test(capture, pcapng_interfaces_of_different_kinds_are_read)
{
	struct capture c;

	pcapng_begin();
	pcapng_block(1, (uint32_t[]){DLT_EN10MB, 65535}, 2);
	pcapng_block(1, (uint32_t[]){101, 96}, 2);
	pcapng_packet(1);
	pcapng_packet(0);
	/* A new section counts its interfaces anew. */
	bytes_add(maker.data, 28);
	pcapng_block(1, (uint32_t[]){DLT_LINUX_SLL, 0}, 2);
	pcapng_packet(0);
	cr_assert_eq(made_load(&c), 0, "%s", error);
	cr_assert_eq(c.nr_frames, 3, "%s", c.cut);
	cr_assert_eq(c.frames[0].link_type, 101);
	cr_assert_eq(c.frames[1].link_type, DLT_EN10MB);
	cr_assert_eq(c.frames[2].link_type, DLT_LINUX_SLL);
	capture_free(&c);
}

Test(capture, expected_digest_is_that_of_a_prefix_repeated)
{
	struct capture c;
	uint64_t sum = 0;

	pcap_begin(DLT_EN10MB);
	for (uint32_t n = 60; n < 67; n++)
		pcap_frame(n, n);
	cr_assert_eq(made_load(&c), 0, "%s", error);
	cr_assert_eq(capture_fit(&c, PAGE, HEADROOM_BYTES, 10), 7);
	cr_assert_eq(capture_digest(&c), 0);
	for (uint64_t n = 0; n < 30; n++) {
		const struct frame *f = &c.frames[n % 7];

		/* Bytes 0, 1, 2... are no packet of IP: unchanged. */
		cr_assert_eq(capture_digest_expect(&c, n), sum);
		sum += packet_digest(f->data, f->bytes);
	}
	capture_free(&c);
}

/* ---- Hand-over ----------------------------------------------------------- */

Test(handover, items_come_oldest_or_newest_first)
{
	void *in[3] = {&in[0], &in[1], &in[2]};
	void *out[4];
	struct handover h;

	for (int newest = 0; newest < 2; newest++) {
		cr_assert_eq(handover_init(&h, 3, newest), 0);
		cr_assert(handover_put(&h, in, 3));
		cr_assert_eq(handover_try_take(&h, out, 4), 3);
		cr_assert_eq(out[0], in[newest ? 2 : 0]);
		cr_assert_eq(out[2], in[newest ? 0 : 2]);
		cr_assert_eq(handover_try_take(&h, out, 4), 0);
		handover_destroy(&h);
	}
}

Test(handover, closed_one_gives_what_is_left_then_nothing)
{
	void *item = &item;
	struct handover h;

	cr_assert_eq(handover_init(&h, 4, false), 0);
	cr_assert(handover_put(&h, &item, 1));
	handover_close(&h);
	cr_assert_not(handover_put(&h, &item, 1));
	cr_assert_eq(handover_take(&h, &item, 1), 1);
	cr_assert_eq(handover_take(&h, &item, 1), 0);
	handover_destroy(&h);
}

static void *taker_main(void *arg)
{
	struct handover *h = arg;
	uintptr_t next = 1;
	void *items[3];
	size_t n;

	while ((n = handover_take(h, items, 3)))
		for (size_t i = 0; i < n; i++)
			if ((uintptr_t)items[i] == next)
				next++;
	return (void *)next;
}

Test(handover, sleeping_sides_wake_and_lose_nothing, .timeout = 60)
{
	for (size_t room = 1; room < 9; room++) {
		struct handover h;
		pthread_t taker;
		void *seen;

		cr_assert_eq(handover_init(&h, room, false), 0);
		cr_assert_eq(pthread_create(&taker, NULL, taker_main, &h), 0);
		for (uintptr_t i = 1; i <= 20000; i++) {
			void *item = (void *)i;

			cr_assert(handover_put(&h, &item, 1));
			if (i % 97 == 0)
				handover_flush(&h);
		}
		handover_close(&h);
		pthread_join(taker, &seen);
		cr_assert_eq((uintptr_t)seen, 20001, "room %zu", room);
		handover_destroy(&h);
	}
}

Test(handover, flush_wakes_for_less_than_half, .timeout = 20)
{
	void *item = (void *)1;
	struct handover h;
	pthread_t taker;
	void *seen;

	cr_assert_eq(handover_init(&h, 100, false), 0);
	cr_assert_eq(pthread_create(&taker, NULL, taker_main, &h), 0);
	cr_assert(handover_put(&h, &item, 1));
	handover_flush(&h);
	for (;;) {
		pthread_mutex_lock(&h.lock);
		size_t left = h.count;
		pthread_mutex_unlock(&h.lock);
		if (!left)
			break;
		usleep(1000);
	}
	handover_close(&h);
	pthread_join(taker, &seen);
	cr_assert_eq((uintptr_t)seen, 2);
	handover_destroy(&h);
}

/* ---- Command line -------------------------------------------------------- */

Test(options, good_values_are_taken)
{
	struct options o;

	cr_assert_eq(PARSE(&o, "--capture=x", "--seconds", "1.5", "--rounds",
			   "3", "--backends", "glibc,pcpalloc", "--heap-mib",
			   "16", "--max-order", "0", "--single", "--json"),
		     0, "%s", error);
	cr_assert_str_eq(o.capture, "x");
	cr_assert_float_eq(o.seconds, 1.5, 1e-9);
	cr_assert_eq(o.rounds, 3);
	cr_assert_eq(o.heap_mib, 16);
	cr_assert_eq(o.max_order, 0);
	cr_assert(o.backends[BACKEND_GLIBC] && o.backends[BACKEND_PCPALLOC]);
	cr_assert_not(o.backends[BACKEND_NONE] || o.backends[BACKEND_MMAP]);
	cr_assert(o.single && o.json);
}

Test(options, bad_values_are_named)
{
	static const char *const bad[][2] = {
		{"--seconds", "nan"},
		{"--seconds", "1x"},
		{"--seconds", "0"},
		{"--rounds", "0"},
		{"--rounds", ""},
		{"--heap-mib", "-1"},
		{"--heap-mib", "99999999999999999999"},
		{"--backends", "none,"},
		{"--backends", "jemalloc"},
		{"--depth", "1e3"},
		{"--max-order", "11"},
	};
	struct options o;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(PARSE(&o, "--capture=x", (char *)bad[i][0],
				   (char *)bad[i][1]),
			     -1, "%s %s", bad[i][0], bad[i][1]);
		cr_assert_not_null(strstr(error, bad[i][0]), "%s", error);
		cr_assert_not_null(strstr(error, bad[i][1]), "%s", error);
	}
	cr_assert_eq(PARSE(&o, "--bogus"), -1);
	cr_assert_not_null(strstr(error, "--bogus"));
	cr_assert_eq(PARSE(&o, "--capture"), -1);
	cr_assert_eq(PARSE(&o, "--json"), -1, "no capture");
}

/* ---- Pipeline ------------------------------------------------------------ */

static void mixed_capture_load(struct capture *c)
{
	pcap_begin(DLT_EN10MB);
	for (uint32_t i = 0; i < 50; i++) {
		uint32_t n = i % 5 ? 60 + i : 9000 + i;

		pcap_frame(n, n);
	}
	cr_assert_eq(made_load(c), 0, "%s", error);
	cr_assert_eq(capture_fit(c, PAGE, HEADROOM_BYTES, 9), 50);
	cr_assert_eq(capture_digest(c), 0);
}

static int short_run(const struct capture *c, struct backend *b,
		     struct pipeline_result *r)
{
	struct pipeline_setup setup = {.capture = c,
				       .backend = b,
				       .depth = 3,
				       .warm_ns = 1000000,
				       .run_ns = 20000000};
	int rc;

	cr_assert_eq(backend_prepare(b, c, pipeline_nr_batches(3)), 0);
	rc = pipeline_run(&setup, r);
	backend_release(b);
	return rc;
}

Test(pipeline, every_backend_delivers_every_byte, .timeout = 60)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	struct capture c;

	mixed_capture_load(&c);
	o.initial_bytes = o.max_bytes = 16u << 20;
	o.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
	for (int k = 0; k < BACKEND_NR_KINDS * 2; k++) {
		struct backend b = {.kind = (enum backend_kind)(k / 2),
				    .page_bytes = PAGE,
				    .single = k % 2,
				    .heap = heap};
		struct pipeline_result r;

		cr_assert_eq(short_run(&c, &b, &r), 0, "%s", r.error);
		cr_assert_gt(r.packets, 0);
		cr_assert_eq(r.packets, r.blocks[0] + r.blocks[2]);
	}
	cr_assert_eq(pcpa_heap_destroy(heap), 0);
	capture_free(&c);
}

Test(pipeline, changed_contents_are_an_error, .timeout = 60)
{
	struct backend b = {.kind = BACKEND_NONE, .page_bytes = PAGE};
	struct pipeline_result r;
	struct capture c;

	mixed_capture_load(&c);
	c.data[100] ^= 1; /* after the digest was taken */
	cr_assert_eq(short_run(&c, &b, &r), -1);
	cr_assert_not_null(strstr(r.error, "contents changed"), "%s", r.error);
	capture_free(&c);
}

Test(pipeline, tight_heap_makes_receive_wait_and_loses_nothing, .timeout = 60)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct backend b = {.kind = BACKEND_PCPALLOC, .page_bytes = PAGE};
	struct pipeline_setup setup = {.backend = &b,
				       .depth = 64,
				       .warm_ns = 1000000,
				       .run_ns = 50000000};
	struct pipeline_result r;
	struct capture c;

	mixed_capture_load(&c);
	/* 128 batches of 6.4 blocks of 16 KiB and 25.6 of 4 KiB: 26 MiB. */
	o.initial_bytes = o.max_bytes = 4u << 20;
	o.verbosity = 0;
	setup.capture = &c;
	cr_assert_eq(pcpa_heap_create(&o, &b.heap), 0);
	cr_assert_eq(pipeline_run(&setup, &r), 0, "%s", r.error);
	cr_assert_gt(r.stalls, 0);
	cr_assert_eq(pcpa_heap_destroy(b.heap), 0);
	capture_free(&c);
}

Test(pipeline, frame_that_the_heap_can_not_hold_is_an_error, .timeout = 60)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct backend b = {.kind = BACKEND_PCPALLOC, .page_bytes = PAGE};
	struct pipeline_result r;
	struct capture c;

	/* A batch is 32 blocks of 128 KiB; the heap has 2 MiB. */
	pcap_begin(DLT_EN10MB);
	pcap_frame(70000, 70000);
	cr_assert_eq(made_load(&c), 0, "%s", error);
	cr_assert_eq(capture_fit(&c, PAGE, HEADROOM_BYTES, 9), 1);
	cr_assert_eq(capture_digest(&c), 0);
	o.initial_bytes = o.max_bytes = 2u << 20;
	o.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&o, &b.heap), 0);
	cr_assert_eq(short_run(&c, &b, &r), -1);
	cr_assert_not_null(strstr(r.error, "order 5"), "%s", r.error);
	cr_assert_eq(pcpa_heap_destroy(b.heap), 0);
	capture_free(&c);
}

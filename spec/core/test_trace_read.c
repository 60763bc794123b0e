/* SPDX-License-Identifier: MIT */
/*
 * test_trace_read.c: each format of traces as it is recognised and read, wrong
 * lines, which are refused with their number, and what the reader does with
 * lines of any length. Samples are made here.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "trace.h"

static char path[4096];

static void put(const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

/* All events of the file, as text; or the error. */
static const char *read_all(const char *format, char action)
{
	static char out[1 << 16];
	struct brim_trace_options o = { .struct_bytes = sizeof(o),
					.format = format,
					.blkparse_action = action };
	struct brim_trace_event x;
	struct brim_trace *t;
	struct brim_err e = { 0 };
	size_t n = 0;
	int ret = brim_trace_open(&t, path, &o, &e);

	if (ret == 0)
		n = (size_t)sprintf(out, "%s", brim_trace_format(t));
	while (!ret && (ret = brim_trace_next(t, &x, &e)) > 0) {
		n += (size_t)snprintf(out + n, 200, "; %llu %u %s %s %llu %llu",
				      (unsigned long long)x.at_ns, x.stream,
				      x.path ? x.path : "-",
				      brim__trace_op_names[x.op],
				      (unsigned long long)x.off_bytes,
				      (unsigned long long)x.len_bytes);
		if (x.to)
			n += (size_t)snprintf(out + n, 200, " %s", x.to);
		ret = n > sizeof(out) - 1000;
	}
	if (ret < 0)
		snprintf(out, sizeof(out), "%d %s", ret,
			 e.msg + (strncmp(e.msg, path, strlen(path))
					  ? 0
					  : strlen(path)));
	brim_trace_close(t);
	return out;
}

static void check(const char *name, const char *text, const char *want)
{
	const char *got;

	put(text);
	got = read_all(NULL, 0);
	ok(!strcmp(got, want), name, "%s", got);
}

static void test_iolog(void)
{
	check("iolog2, with waits",
	      "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n"
	      "/dev/sda write 4096 8192\n/dev/sda wait 250 0\n"
	      "/dev/sda read 0 512\n/dev/sda sync 0 0\n\n"
	      "/dev/sda wait 1000 0\n/dev/sda trim 0 4096\n/dev/sda close",
	      "iolog2; 0 0 /dev/sda add 0 0; 0 0 /dev/sda open 0 0; "
	      "0 0 /dev/sda write 4096 8192; 250000 0 /dev/sda read 0 512; "
	      "250000 0 /dev/sda sync 0 0; 1250000 0 /dev/sda trim 0 4096; "
	      "1250000 0 /dev/sda close 0 0");
	check("iolog3, with times",
	      "fio version 3 iolog\r\n0 f add\r\n23 f open\r\n"
	      "1000 f datasync 7 7\r\n2000 f read 5 6\r\n",
	      "iolog3; 0 0 f add 0 0; 23000 0 f open 0 0; "
	      "1000000 0 f datasync 0 0; 2000000 0 f read 5 6");
	check("iolog: a wait has no place in version 3",
	      "fio version 3 iolog\n0 f add\n1 f wait 5 0\n",
	      "-22 :3: version 3 has no wait");
	check("iolog: no such action",
	      "fio version 2 iolog\nf add\nf eat 0 1\n",
	      "-22 :3: an action is add, open, close, read, write, trim, sync, "
	      "datasync or wait");
	check("iolog: a word too few", "fio version 2 iolog\nf read 0\n",
	      "-22 :2: the action has an offset and a length");
	check("iolog: a negative offset", "fio version 2 iolog\nf read -1 5\n",
	      "-22 :2: the action has an offset and a length");
	check("iolog: past 2^63-1",
	      "fio version 2 iolog\nf read 9223372036854775807 1\n",
	      "-22 :2: it ends past 2^63-1");
	check("iolog: a number too large",
	      "fio version 2 iolog\nf read 99999999999999999999 1\n",
	      "-22 :2: the action has an offset and a length");
}

static void test_jsonl(void)
{
	check("jsonl",
	      "{\"format\":\"brim-trace\",\"version\":1}\n"
	      "{\"at_ns\":5,\"stream\":2,\"op\":\"create\",\"path\":\"a b\"}\n"
	      "{ \"note\" : [1",
	      "-22 :3: a value is not what its member has");
	check("jsonl: members in any order, unknown ones, escapes",
	      "{\"op\":\"rename\",\"x\":-1.5e3,\"to\":\"b\\u00e9\\\"\\/\","
	      "\"path\":\"\\u20ac\",\"at_ns\":7,\"y\":\"z\",\"w\":null}\n"
	      "{\"op\":\"write\",\"off_bytes\":1,\"len_bytes\":2}\n",
	      "jsonl; 7 0 \u20ac rename 0 0 b\u00e9\"/; 0 0 - write 1 2");
	check("jsonl: another version",
	      "{\"format\":\"brim-trace\",\"version\":2}\n",
	      "-22 :1: not a brim-trace of version 1");
	check("jsonl: no op", "{\"path\":\"a\"}\n", "-22 :1: no such op");
	check("jsonl: no end", "{\"op\":\"open\",\"path\":\"a\"\n",
	      "-22 :1: the object does not end");
	check("jsonl: a name in the middle", "{\"op\":\"read\"} {}\n",
	      "-22 :1: something follows the object");
	check("jsonl: a byte of 0 in a path",
	      "{\"op\":\"open\",\"path\":\"a\\u0000\"}\n",
	      "-22 :1: a value is not what its member has");
	check("jsonl: half of a pair",
	      "{\"op\":\"open\",\"path\":\"\\ud800\"}\n",
	      "-22 :1: a value is not what its member has");
	check("jsonl: a rename to nothing",
	      "{\"op\":\"rename\",\"path\":\"a\"}\n",
	      "-22 :1: a rename has a path and a to");
	check("jsonl: a path that is missing", "{\"op\":\"open\"}\n",
	      "-22 :1: the op has a path");
}

#define BLK(rest) "  8,16  1        7     3.000000500   697  " rest "\n"

static void test_blkparse(void)
{
	static const char text[] =
		"  8,0    3        1     0.000001000   697  G   W 223490 + 8 "
		"[kjournald]\n"
		"  8,0    3        2     0.000002000   697  Q  WS 223490 + 8 "
		"[kjournald]\n" BLK("Q   R 0 + 1 [dd]") BLK(
			"D   R 0 + 1 [dd]") BLK("Q  FN [f]") BLK("Q FWFS 8 + 8 [f]")
			BLK("Q  DS 16 + 4 [fstrim]") BLK("P   N [x]") BLK(
				"Q   N 0 (36 00) [x]") "CPU0 (8,0):\n Reads Queued:           1,        4KiB\n";

	check("blkparse", text,
	      "blkparse; 0 3 8,0 write 114426880 4096; "
	      "2999998500 1 8,16 read 0 512; 2999998500 1 8,16 sync 0 0; "
	      "2999998500 1 8,16 write 4096 4096; "
	      "2999998500 1 8,16 trim 8192 2048");
	ok(!strcmp(read_all("blkparse", 'D'), "blkparse; 0 1 8,16 read 0 512"),
	   "blkparse: another action", "%s", read_all("blkparse", 'D'));
	check("blkparse: no plus",
	      BLK("Q   R 0 + 1 [dd]") BLK("Q   R 0 1 [dd]"),
	      "-22 :2: no '+' after the sector");
	check("blkparse: half a line", BLK("Q   R 0 + 1 [dd]") "  8,16  1  \n",
	      "-22 :2: no line of blkparse: maj,min cpu seq time pid action "
	      "rwbs sector + n");
	check("blkparse: a sector too large",
	      BLK("Q   R 99999999999999999 + 1 [dd]"),
	      "-22 :1: no number of sectors");
}

static void test_csv(void)
{
	check("msr",
	      "128166372003061629,hm,1,Read,383496192,32768,413\n"
	      "128166372016382155,hm,1,Write,2822144,4096,1109\n"
	      "128166372003061628,web,0,Write,0,512,1\n",
	      "msr; 0 1 hm read 383496192 32768; "
	      "1332052600 1 hm write 2822144 4096; 0 0 web write 0 512");
	check("msr: no such type",
	      "128166372003061629,hm,1,Read,383496192,32768,413\n"
	      "128166372003061629,hm,1,Eat,383496192,32768,413\n",
	      "-22 :2: a type is Read or Write");
	check("alibaba",
	      "device_id,opcode,offset,length,timestamp\n"
	      "419,W,8792731648,16384,1577808144360767\n"
	      "725,R,59110326272,360448,1577808144360813\n",
	      "alibaba; 0 419 - write 8792731648 16384; "
	      "46000 725 - read 59110326272 360448");
	check("alibaba: a field too many",
	      "419,W,1,2,3\n419,W,8792731648,16384,1577808144360767,1\n",
	      "-22 :2: no line of an Alibaba trace: device_id,opcode,offset,"
	      "length,timestamp");
	check("tencent",
	      "1538323200,12910952,128,0,1063\n1538323201,6160447,1,1,1074\n",
	      "tencent; 0 1063 - read 6610407424 65536; "
	      "1000000000 1074 - write 3154148864 512");
	check("tencent: no such type", "1538323200,12910952,128,2,1063\n",
	      "-22 :1: an IOType is 0 or 1");
}

static void test_lines(void)
{
	static char text[200000];
	size_t n;

	check("an empty file", "", "-22 :0: the trace is empty");
	check("something else", "hello\n",
	      "-22 :1: no trace that is known: iolog2, iolog3, jsonl, "
	      "blkparse, msr, alibaba, tencent");
	n = (size_t)sprintf(text, "fio version 2 iolog\n");
	memset(text + n, 'x', 5000);
	strcpy(text + n + 5000, " add\n");
	check("a path that is too long", text,
	      "-22 :2: a path of more than 4095 bytes");
	memset(text + n, 'x', 70000);
	strcpy(text + n + 70000, " add\n");
	check("a line that is too long", text,
	      "-22 :2: a line of more than 64 KiB");
	memset(text, 'x', 70000);
	text[70000] = 0;
	check("a file of one long line", text,
	      "-22 :1: a line of more than 64 KiB");
	put("a");
	ok(strstr(read_all("csv", 0), "-22 format 'csv'"), "no such format",
	   "%s", read_all("csv", 0));
	unlink(path);
	ok(strstr(read_all(NULL, 0), "-2 "), "no such file", "%s",
	   read_all(NULL, 0));
}

/* Over many buffers, and whatever the last line's end. */
static void test_long(void)
{
	FILE *f = fopen(path, "w");
	struct brim_trace_info i = { .struct_bytes = sizeof(i) };
	struct brim_trace *t;
	struct brim_err e = { 0 };
	uint64_t k, bytes = 0, n = 150000;
	int ret, steps = 0;

	fputs("fio version 3 iolog\n", f);
	for (k = 0; k < n; k++) {
		fprintf(f, "%llu dev %s %llu %llu%s", (unsigned long long)k,
			k % 3 ? "read" : "write",
			(unsigned long long)(k * 4096),
			(unsigned long long)(512 * (k % 7)),
			k + 1 < n ? "\n" : "");
		bytes += 512 * (k % 7);
	}
	fclose(f);
	brim_trace_open(&t, path, NULL, &e);
	while ((ret = brim_trace_step(t, 1000, &i, NULL, &e)) == 1)
		steps++;
	ok(ret == 0 && steps > 5 && i.events == n && i.ops[1] == n / 3 &&
		   i.ops[0] + i.ops[1] == n &&
		   i.bytes[0] + i.bytes[1] == bytes &&
		   i.last_ns == (n - 1) * 1000 && i.from_bytes == 4096 &&
		   i.to_bytes == (n - 1) * 4096 + 512 * ((n - 1) % 7) &&
		   i.read_sizes[9] + i.write_sizes[9] == (n + 5) / 7,
	   "a long trace adds up", "%d %s: %llu events, %llu", ret, e.msg,
	   (unsigned long long)i.events,
	   (unsigned long long)(i.read_sizes[9] + i.write_sizes[9]));
	brim_trace_close(t);
}

/* What is written is read: all operations, in brim's own format. */
static void test_round_trip(void)
{
	struct brim_trace_event x = { .path = "a\x01\"b", .to = "c\\" }, y;
	struct brim__trace *w;
	struct brim_trace *t;
	struct brim_err e = { 0 };
	int k, right = 0;

	brim__trace_open(&w, path, "jsonl", &e);
	for (k = 0; k < BRIM_TRACE_OPS; k++) {
		x.op = (enum brim_trace_op)k;
		x.stream = (uint32_t)k;
		x.at_ns = (uint64_t)k * 1000000007;
		x.off_bytes = 1ull << (k + 40);
		x.len_bytes = 77;
		brim__trace_op(w, &x);
	}
	brim__trace_close(w, &e);
	brim_trace_open(&t, path, NULL, &e);
	for (k = 0; k < BRIM_TRACE_OPS && brim_trace_next(t, &y, &e) == 1; k++)
		right += y.op == (enum brim_trace_op)k &&
			 y.stream == (uint32_t)k &&
			 y.at_ns == (uint64_t)k * 1000000007 &&
			 !strcmp(y.path, x.path) &&
			 (k != BRIM_TRACE_RENAME || !strcmp(y.to, x.to)) &&
			 (k > BRIM_TRACE_TRIM ||
			  (y.off_bytes == 1ull << (k + 40) &&
			   y.len_bytes == 77));
	ok(right == BRIM_TRACE_OPS && brim_trace_next(t, &y, &e) == 0,
	   "what was written is read", "%d of %d: %s", right, BRIM_TRACE_OPS,
	   e.msg);
	brim_trace_close(t);
}

int main(void)
{
	const char *dir = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/trace.%ld", dir ? dir : "/tmp",
		 (long)getpid());
	test_iolog();
	test_jsonl();
	test_blkparse();
	test_csv();
	test_lines();
	test_long();
	test_round_trip();
	unlink(path);
	return tap_end();
}

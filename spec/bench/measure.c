/* SPDX-License-Identifier: MIT */
/*
 * measure.c: runs a command and writes what it took as one line of JSON: wall
 * time, CPU time in user and system, peak of resident memory, what it read, how
 * it ended. Lua has no wait4(2), and time(1) counts in hundredths of a second.
 * Built and called by process.lua:  measure RESULT LIMIT_S COMMAND [ARGUMENTS]
 * A command that runs for longer than LIMIT_S (0: any) is killed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As proc_pid_io(5) counts; -1: not known. */
struct io {
	long long read_bytes; /* by system calls, cached or not */
	long long read_calls;
	long long disk_read_bytes; /* by the storage below */
};

struct took {
	int status;
	int is_stopped;
	double wall_s;
	struct rusage ru;
	struct io io;
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double of_timeval(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

/* As a shell has it: 128 and the signal, where one ended the command. */
static int status_of(int wstatus)
{
	return WIFSIGNALED(wstatus) ? 128 + WTERMSIG(wstatus)
				    : WEXITSTATUS(wstatus);
}

/* Of a process that has ended and is not yet waited for. */
static struct io io_of(pid_t pid)
{
	struct io io = { -1, -1, -1 };
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "rchar: %lld", &io.read_bytes);
		sscanf(line, "syscr: %lld", &io.read_calls);
		sscanf(line, "read_bytes: %lld", &io.disk_read_bytes);
	}
	if (f)
		fclose(f);
	return io;
}

/* It is there to interrupt a wait. */
static void on_alarm(int signal_number)
{
	(void)signal_number;
}

static int await(pid_t pid, unsigned int limit_s, struct took *t)
{
	struct sigaction alarmed = { .sa_handler = on_alarm };
	siginfo_t info;

	sigaction(SIGALRM, &alarmed, NULL);
	alarm(limit_s);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0) {
		if (errno != EINTR)
			return -errno;
		kill(pid, SIGKILL);
		t->is_stopped = 1;
	}
	return 0;
}

static int run(char **argv, unsigned int limit_s, struct took *t)
{
	double begun_s = now_s();
	int wstatus, ret;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		execvp(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	ret = await(pid, limit_s, t);
	t->wall_s = now_s() - begun_s;
	if (ret < 0)
		return ret;
	t->io = io_of(pid);
	if (wait4(pid, &wstatus, 0, &t->ru) < 0)
		return -errno;
	t->status = status_of(wstatus);
	return 0;
}

static int write_result(const char *path, const struct took *t)
{
	FILE *f = fopen(path, "we");

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	fprintf(f,
		"{\"status\":%d,\"is_stopped\":%s,\"wall_s\":%.9f,"
		"\"user_s\":%.6f,\"system_s\":%.6f,\"peak_rss_bytes\":%lld,"
		"\"read_bytes\":%lld,\"read_calls\":%lld,"
		"\"disk_read_bytes\":%lld}\n",
		t->status, t->is_stopped ? "true" : "false", t->wall_s,
		of_timeval(t->ru.ru_utime), of_timeval(t->ru.ru_stime),
		(long long)t->ru.ru_maxrss * 1024, t->io.read_bytes,
		t->io.read_calls, t->io.disk_read_bytes);
	return fclose(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct took t = { 0 };
	int ret;

	if (argc < 4)
		return 2;
	/* The command is to hear of an interrupt; this tells what it did. */
	signal(SIGINT, SIG_IGN);
	ret = run(argv + 3, (unsigned int)atoi(argv[2]), &t);
	if (ret < 0) {
		fprintf(stderr, "measure: %s\n", strerror(-ret));
		return 1;
	}
	return write_result(argv[1], &t);
}

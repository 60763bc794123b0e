/* SPDX-License-Identifier: MIT */
/*
 * measure.c: runs a command and writes what it took as one line of JSON: wall
 * time, CPU time in user and system, peak of resident memory, how it ended.
 * Lua has no wait4(2), and time(1) counts in hundredths of a second. Built and
 * called by process.lua:  measure RESULT COMMAND [ARGUMENTS]
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

static int run(char **argv, int *status, double *wall_s, struct rusage *ru)
{
	double begun_s = now_s();
	int wstatus;
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
	while (wait4(pid, &wstatus, 0, ru) < 0)
		if (errno != EINTR)
			return -errno;
	*wall_s = now_s() - begun_s;
	*status = status_of(wstatus);
	return 0;
}

int main(int argc, char **argv)
{
	struct rusage ru;
	double wall_s;
	FILE *f;
	int status, ret;

	if (argc < 3)
		return 2;
	/* The command is to hear of an interrupt; this tells what it did. */
	signal(SIGINT, SIG_IGN);
	ret = run(argv + 2, &status, &wall_s, &ru);
	if (ret < 0) {
		fprintf(stderr, "measure: %s\n", strerror(-ret));
		return 1;
	}
	f = fopen(argv[1], "we");
	if (!f) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fprintf(f,
		"{\"status\":%d,\"wall_s\":%.9f,\"user_s\":%.6f,"
		"\"system_s\":%.6f,\"peak_rss_bytes\":%lld}\n",
		status, wall_s, of_timeval(ru.ru_utime),
		of_timeval(ru.ru_stime), (long long)ru.ru_maxrss * 1024);
	return fclose(f) == 0 ? 0 : 1;
}

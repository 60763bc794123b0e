/* SPDX-License-Identifier: MIT */
/*
 * killafter.c: runs a program that writes a target and kills it with SIGKILL
 * at a moment, nothing else ever: until it is waited for here, its process id
 * is nobody else's.
 *
 *   killafter TARGET start|gone SECONDS PROGRAM [ARGS...]
 *
 * SECONDS count from its start, or from when the target no longer begins with
 * "XFSB"; below 0: it is left alone. Prints the exit status as a shell has it,
 * and when the signature was gone and when it ended, in seconds.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 100000

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool is_gone(const char *target)
{
	char magic[4] = "";
	int fd = open(target, O_RDONLY | O_CLOEXEC);
	bool gone;

	gone = fd < 0 || pread(fd, magic, sizeof(magic), 0) != 4 ||
	       memcmp(magic, "XFSB", sizeof(magic)) != 0;
	if (fd >= 0)
		close(fd);
	return gone;
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv)
{
	struct timespec pause = { .tv_nsec = POLL_NS };
	double begun_s = now_s(), gone_s = -1, after_s, from_s;
	bool from_gone;
	int status = 0;
	pid_t pid;

	if (argc < 5)
		return 2;
	from_gone = !strcmp(argv[2], "gone");
	after_s = atof(argv[3]);
	pid = start(argv + 4);
	if (pid < 0)
		return 2;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		double s = now_s() - begun_s;

		if (gone_s < 0 && (from_gone || after_s < 0) &&
		    is_gone(argv[1]))
			gone_s = s;
		from_s = from_gone ? gone_s : 0;
		if (after_s >= 0 && from_s >= 0 && s - from_s >= after_s) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			break;
		}
		nanosleep(&pause, NULL);
	}
	printf("%d %.6f %.6f\n",
	       WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status),
	       gone_s, now_s() - begun_s);
	return 0;
}

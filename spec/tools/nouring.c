/* SPDX-License-Identifier: MIT */
/*
 * nouring.c: runs a program that may not set up io_uring: a seccomp filter
 * answers for the kernel, as containers have it.
 *
 *   nouring EPERM|ENOSYS PROGRAM [ARGS...]
 *
 * Exit 125 where the filter cannot be had; else the program's own status.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TROUBLE 125

int main(int argc, char **argv)
{
	unsigned int error;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		/* The number is the same on every architecture. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]),
				      filter };

	if (argc < 3 ||
	    (strcmp(argv[1], "EPERM") && strcmp(argv[1], "ENOSYS"))) {
		fprintf(stderr, "usage: nouring EPERM|ENOSYS PROGRAM ...\n");
		return TROUBLE;
	}
	error = strcmp(argv[1], "EPERM") ? ENOSYS : EPERM;
	filter[2].k = SECCOMP_RET_ERRNO | error;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("nouring: seccomp");
		return TROUBLE;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return TROUBLE;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error numbers of the Linux system call interface (generic architectures). */
#ifndef KERNEL_ERRNO_H
#define KERNEL_ERRNO_H

#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENXIO 6
#define E2BIG 7
#define ENOEXEC 8
#define EBADF 9
#define ECHILD 10
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define EXDEV 18
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENFILE 23
#define EMFILE 24
#define ENOTTY 25
#define EFBIG 27
#define ENOSPC 28
#define ESPIPE 29
#define EROFS 30
#define EMLINK 31
#define EPIPE 32
#define ERANGE 34
#define EDEADLK 35
#define ENAMETOOLONG 36
#define ENOSYS 38
#define ENOTEMPTY 39
#define ELOOP 40
#define ENODATA 61
#define EPROTO 71
#define EOVERFLOW 75
#define EOPNOTSUPP 95
#define ETIMEDOUT 110

/* Inside the kernel only: what an interrupted system call says of itself. */
#define ERESTARTSYS 512    /* again if SA_RESTART, or no handler ran */
#define ERESTARTNOINTR 513 /* again in any case */
#define ERESTARTNOHAND 514 /* again only if no handler ran */
#define ERESTART_BLOCK 516 /* the same, through restart_syscall */

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of kernel/ that are not declared elsewhere, and helpers. */
#ifndef KERNEL_SYSCALLS_H
#define KERNEL_SYSCALLS_H

#include "kernel/types.h"

/* CLOCK_REALTIME without a clock chip: monotonic time from 2020-01-01. */
#define REALTIME_OFFSET_NS (1577836800UL * 1000000000UL)

/* sys_file.c */
int64_t sys_openat(int64_t dirfd, uint64_t path_va, uint64_t flags);
int64_t sys_close(uint64_t fd);
int64_t sys_read(uint64_t fd, uint64_t buf_va, uint64_t size);
int64_t sys_pread64(uint64_t fd, uint64_t buf_va, uint64_t size,
                    uint64_t offset);
int64_t sys_write(uint64_t fd, uint64_t buf_va, uint64_t size);
int64_t sys_readv(uint64_t fd, uint64_t iov_va, uint64_t count);
int64_t sys_writev(uint64_t fd, uint64_t iov_va, uint64_t count);
int64_t sys_lseek(uint64_t fd, int64_t offset, uint64_t whence);
int64_t sys_fstat(uint64_t fd, uint64_t stat_va);
int64_t sys_newfstatat(int64_t dirfd, uint64_t path_va, uint64_t stat_va,
                       uint64_t flags);
int64_t sys_faccessat(int64_t dirfd, uint64_t path_va);
int64_t sys_readlinkat(int64_t dirfd, uint64_t path_va, uint64_t buf_va,
                       uint64_t size);
int64_t sys_getdents64(uint64_t fd, uint64_t buf_va, uint64_t size);
int64_t sys_ioctl(uint64_t fd, uint64_t request, uint64_t arg);
int64_t sys_fcntl(uint64_t fd, uint64_t cmd, uint64_t arg);
int64_t sys_dup(uint64_t fd);
int64_t sys_dup3(uint64_t old_fd, uint64_t new_fd, uint64_t flags);
int64_t sys_getcwd(uint64_t buf_va, uint64_t size);

/* sys_time.c */
int64_t timespec_from_user(uint64_t va, uint64_t *out_ns);
int64_t sys_clock_gettime(uint64_t clock, uint64_t ts_va);
int64_t sys_clock_getres(uint64_t clock, uint64_t ts_va);
int64_t sys_gettimeofday(uint64_t tv_va);
int64_t sys_ppoll(uint64_t fds_va, uint64_t count, uint64_t timeout_va);
int64_t sys_nanosleep(uint64_t request_va, uint64_t remain_va);
int64_t sys_clock_nanosleep(uint64_t clock, uint64_t flags, uint64_t request_va,
                            uint64_t remain_va);

/* sys_misc.c */
int64_t sys_uname(uint64_t buf_va);
int64_t sys_sysinfo(uint64_t buf_va);
int64_t sys_getrandom(uint64_t buf_va, uint64_t size);
int64_t sys_prlimit64(uint64_t pid, uint64_t resource, uint64_t new_va,
                      uint64_t old_va);
int64_t sys_getrusage(uint64_t who, uint64_t buf_va);
int64_t sys_getcpu(uint64_t cpu_va, uint64_t node_va);
int64_t sys_getppid(void);
int64_t sys_sched_setaffinity(uint64_t pid, uint64_t size, uint64_t mask_va);
int64_t sys_sched_getaffinity(uint64_t pid, uint64_t size, uint64_t mask_va);
int64_t sys_membarrier(uint64_t cmd, uint64_t flags);
int64_t sys_set_tid_address(uint64_t va);
int64_t sys_prctl(uint64_t option, uint64_t arg);

/* sys_scenario.c: SYS_SD_*, abi/syscalls.h */
int64_t sys_scenario(uint64_t nr, uint64_t arg);

#endif

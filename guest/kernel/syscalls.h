/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of kernel/ that are not declared elsewhere, and helpers. */
#ifndef KERNEL_SYSCALLS_H
#define KERNEL_SYSCALLS_H

#include "kernel/types.h"

/* CLOCK_REALTIME without a clock chip: monotonic time from 2020-01-01. */
#define REALTIME_OFFSET_NS (1577836800UL * 1000000000UL)

/* sys_open.c */
int64_t sys_openat(int64_t dirfd, uint64_t path_va, uint64_t flags,
                   uint64_t mode);
int64_t sys_close(uint64_t fd);
int64_t sys_close_range(uint64_t first, uint64_t last, uint64_t flags);
int64_t sys_dup(uint64_t fd);
int64_t sys_dup3(uint64_t old_fd, uint64_t new_fd, uint64_t flags);
int64_t sys_pipe2(uint64_t fds_va, uint64_t flags);
int64_t sys_fcntl(uint64_t fd, uint64_t cmd, uint64_t arg);
int64_t sys_ioctl(uint64_t fd, uint64_t request, uint64_t arg);
int64_t sys_umask(uint64_t mask);

/* sys_rw.c */
int64_t sys_read(uint64_t fd, uint64_t buf_va, uint64_t size);
int64_t sys_write(uint64_t fd, uint64_t buf_va, uint64_t size);
int64_t sys_readv(uint64_t fd, uint64_t iov_va, uint64_t count);
int64_t sys_writev(uint64_t fd, uint64_t iov_va, uint64_t count);
int64_t sys_pread64(uint64_t fd, uint64_t buf_va, uint64_t size,
                    int64_t offset);
int64_t sys_pwrite64(uint64_t fd, uint64_t buf_va, uint64_t size,
                     int64_t offset);
int64_t sys_preadv(uint64_t fd, uint64_t iov_va, uint64_t count,
                   int64_t offset);
int64_t sys_pwritev(uint64_t fd, uint64_t iov_va, uint64_t count,
                    int64_t offset);
int64_t sys_lseek(uint64_t fd, int64_t offset, uint64_t whence);
int64_t sys_ftruncate(uint64_t fd, int64_t size);
int64_t sys_truncate(uint64_t name_va, int64_t size);
int64_t sys_fsync(uint64_t fd);

/* sys_stat.c */
int64_t sys_fstat(uint64_t fd, uint64_t stat_va);
int64_t sys_newfstatat(int64_t dirfd, uint64_t path_va, uint64_t stat_va,
                       uint64_t flags);
int64_t sys_statx(int64_t dirfd, uint64_t path_va, uint64_t flags,
                  uint64_t mask, uint64_t statx_va);
int64_t sys_faccessat(int64_t dirfd, uint64_t path_va, uint64_t mode,
                      uint64_t flags);
int64_t sys_readlinkat(int64_t dirfd, uint64_t path_va, uint64_t buf_va,
                       uint64_t size);
int64_t sys_fchmod(uint64_t fd, uint64_t mode);
int64_t sys_fchmodat(int64_t dirfd, uint64_t path_va, uint64_t mode);
int64_t sys_fchownat(int64_t dirfd, uint64_t path_va, uint64_t uid,
                     uint64_t gid, uint64_t flags);
int64_t sys_utimensat(int64_t dirfd, uint64_t path_va, uint64_t times_va,
                      uint64_t flags);
int64_t sys_statfs(uint64_t path_va, uint64_t buf_va);
int64_t sys_fstatfs(uint64_t fd, uint64_t buf_va);

/* sys_dir.c */
int64_t sys_getdents64(uint64_t fd, uint64_t buf_va, uint64_t size);
int64_t sys_mkdirat(int64_t dirfd, uint64_t name_va, uint64_t mode);
int64_t sys_mknodat(int64_t dirfd, uint64_t name_va, uint64_t mode,
                    uint64_t rdev);
int64_t sys_symlinkat(uint64_t target_va, int64_t dirfd, uint64_t name_va);
int64_t sys_linkat(int64_t from_dirfd, uint64_t from_va, int64_t to_dirfd,
                   uint64_t to_va, uint64_t flags);
int64_t sys_unlinkat(int64_t dirfd, uint64_t name_va, uint64_t flags);
int64_t sys_renameat2(int64_t from_dirfd, uint64_t from_va, int64_t to_dirfd,
                      uint64_t to_va, uint64_t flags);

/* sys_path.c */
int64_t sys_chdir(uint64_t name_va);
int64_t sys_fchdir(uint64_t fd);
int64_t sys_getcwd(uint64_t buf_va, uint64_t size);

/* sys_poll.c */
int64_t sys_ppoll(uint64_t fds_va, uint64_t n, uint64_t timeout_va,
                  uint64_t mask_va, uint64_t mask_size);
int64_t sys_pselect6(uint64_t n, const uint64_t va[3], uint64_t timeout_va,
                     uint64_t mask_pair_va);

/* sys_group.c */
int64_t sys_getpgid(int64_t pid);
int64_t sys_setpgid(int64_t pid, int64_t pgid);
int64_t sys_getsid(int64_t pid);
int64_t sys_setsid(void);

/* sys_time.c */
int64_t timespec_from_user(uint64_t va, uint64_t *out_ns);
int64_t timespec_to_user(uint64_t va, uint64_t ns);
int64_t sys_clock_gettime(uint64_t clock, uint64_t ts_va);
int64_t sys_clock_getres(uint64_t clock, uint64_t ts_va);
int64_t sys_gettimeofday(uint64_t tv_va);
int64_t sys_restart_syscall(void);
int64_t sys_nanosleep(uint64_t request_va, uint64_t remain_va);
int64_t sys_clock_nanosleep(uint64_t clock, uint64_t flags, uint64_t request_va,
                            uint64_t remain_va);

/* itimer.c */
int64_t sys_getitimer(uint64_t which, uint64_t value_va);
int64_t sys_setitimer(uint64_t which, uint64_t value_va, uint64_t old_va);

/* sys_misc.c */
int64_t sys_uname(uint64_t buf_va);
int64_t sys_sysinfo(uint64_t buf_va);
int64_t sys_getrandom(uint64_t buf_va, uint64_t size);
int64_t sys_prlimit64(uint64_t pid, uint64_t resource, uint64_t new_va,
                      uint64_t old_va);
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

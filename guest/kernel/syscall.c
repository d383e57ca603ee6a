/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System call dispatch: Linux numbers and argument orders of arm64 (the generic
 * table). x8 = number, x0..x5 = arguments, x0 = result or negative errno. What
 * is not listed answers -ENOSYS.
 */
#include "abi/syscalls.h"
#include "arch/barrier.h"
#include "kernel/errno.h"
#include "kernel/futex.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/signal.h"
#include "kernel/sys_path.h"
#include "kernel/syscalls.h"
#include "kernel/trap.h"
#include "mm/counters.h"
#include "mm/mm.h"
#include "mm/numa.h"

/* Memory management and processes. */
static bool syscall_memory(uint64_t nr, const uint64_t *a, int64_t *out)
{
    switch (nr) {
    case 214:
        *out = sys_brk(a[0]);
        break;
    case 215:
        *out = sys_munmap(a[0], a[1]);
        break;
    case 216:
        *out = sys_mremap(a[0], a[1], a[2], a[3], a[4]);
        break;
    case 222:
        *out = sys_mmap(a[0], a[1], a[2], a[3], a[4], a[5]);
        break;
    case 226:
        *out = sys_mprotect(a[0], a[1], a[2]);
        break;
    case 228: /* mlock: nothing is taken from an mm that it still needs */
    case 229: /* munlock */
        *out = 0;
        break;
    case 232:
        *out = sys_mincore(a[0], a[1], a[2]);
        break;
    case 233:
        *out = sys_madvise(a[0], a[1], a[2]);
        break;
    case 235:
        *out = sys_mbind(a[0], a[1], a[2], a[3], a[4], a[5]);
        break;
    case 236:
        *out = sys_get_mempolicy(a[0], a[1], a[2], a[3], a[4]);
        break;
    case 237:
        *out = sys_set_mempolicy(a[0], a[1], a[2]);
        break;
    case 238:
        *out = sys_migrate_pages(a[0], a[1], a[2], a[3]);
        break;
    case 239:
        *out = sys_move_pages(a[0], a[1], a[2], a[3], a[4], a[5]);
        break;
    default:
        return false;
    }
    return true;
}

static int64_t to_int(uint64_t arg)
{
    return (int32_t)arg;
}

static bool syscall_process(uint64_t nr, const uint64_t *a, int64_t *out)
{
    switch (nr) {
    case 93: /* exit */
        process_exit_thread((int)(a[0] & 0xff) << 8);
    case 94: /* exit_group */
        process_exit_group((int)(a[0] & 0xff) << 8);
    case 95:
        *out = sys_waitid(a[0], to_int(a[1]), a[2], a[3], a[4]);
        break;
    case 96:
        *out = sys_set_tid_address(a[0]);
        break;
    case 98:
        *out = sys_futex(a[0], a[1], a[2], a[3], a[4], a[5]);
        break;
    case 99: /* set_robust_list */
        current()->robust_list = a[0];
        *out = 0;
        break;
    case 153:
        *out = sys_times(a[0]);
        break;
    case 154:
        *out = sys_setpgid(to_int(a[0]), to_int(a[1]));
        break;
    case 155:
        *out = sys_getpgid(to_int(a[0]));
        break;
    case 156:
        *out = sys_getsid(to_int(a[0]));
        break;
    case 157:
        *out = sys_setsid();
        break;
    case 166:
        *out = sys_umask(a[0]);
        break;
    case 167:
        *out = sys_prctl(a[0], a[1]);
        break;
    case 172: /* getpid */
        *out = current()->process->pid;
        break;
    case 173:
        *out = sys_getppid();
        break;
    case 143: /* setregid ... setresgid: to 0 from 0 */
    case 144:
    case 145:
    case 146:
    case 147:
    case 149:
        *out = (uint32_t)a[0] + 1 <= 1 ? 0 : -EPERM;
        break;
    case 158: /* getgroups: none */
    case 174: /* getuid, geteuid, getgid, getegid */
    case 175:
    case 176:
    case 177:
        *out = 0;
        break;
    case 178: /* gettid */
        *out = current()->tid;
        break;
    case 220:
        *out = sys_clone(a[0], a[1], a[2], a[3], a[4]);
        break;
    case 221:
        *out = sys_execve(AT_FDCWD, a[0], a[1], a[2], 0);
        break;
    case 260:
        *out = sys_wait4(to_int(a[0]), a[1], a[2], a[3]);
        break;
    case 281:
        *out = sys_execve(to_int(a[0]), a[1], a[2], a[3], a[4]);
        break;
    default:
        return false;
    }
    return true;
}

static bool syscall_signal(uint64_t nr, const uint64_t *a, int64_t *out)
{
    switch (nr) {
    case 128:
        *out = sys_restart_syscall();
        break;
    case 129:
        *out = sys_kill(to_int(a[0]), to_int(a[1]));
        break;
    case 130: /* tkill */
        *out = sys_tgkill(0, to_int(a[0]), to_int(a[1]));
        break;
    case 131:
        *out = to_int(a[0]) <= 0
                   ? -EINVAL
                   : sys_tgkill(to_int(a[0]), to_int(a[1]), to_int(a[2]));
        break;
    case 132:
        *out = sys_sigaltstack(a[0], a[1]);
        break;
    case 133:
        *out = sys_rt_sigsuspend(a[0], a[1]);
        break;
    case 134:
        *out = sys_rt_sigaction(to_int(a[0]), a[1], a[2], a[3]);
        break;
    case 135:
        *out = sys_rt_sigprocmask(a[0], a[1], a[2], a[3]);
        break;
    case 136:
        *out = sys_rt_sigpending(a[0], a[1]);
        break;
    case 137:
        *out = sys_rt_sigtimedwait(a[0], a[1], a[2], a[3]);
        break;
    case 138:
        *out = sys_rt_sigqueueinfo(to_int(a[0]), to_int(a[1]), a[2]);
        break;
    case 139:
        *out = sys_rt_sigreturn(task_regs(current()));
        break;
    default:
        return false;
    }
    return true;
}

/* Names. */
static bool syscall_path(uint64_t nr, const uint64_t *a, int64_t *out)
{
    int64_t dirfd = to_int(a[0]);

    switch (nr) {
    case 17:
        *out = sys_getcwd(a[0], a[1]);
        break;
    case 33:
        *out = sys_mknodat(dirfd, a[1], a[2], a[3]);
        break;
    case 34:
        *out = sys_mkdirat(dirfd, a[1], a[2]);
        break;
    case 35:
        *out = sys_unlinkat(dirfd, a[1], a[2]);
        break;
    case 36:
        *out = sys_symlinkat(a[0], to_int(a[1]), a[2]);
        break;
    case 37:
        *out = sys_linkat(dirfd, a[1], to_int(a[2]), a[3], a[4]);
        break;
    case 38:
        *out = sys_renameat2(dirfd, a[1], to_int(a[2]), a[3], 0);
        break;
    case 43:
        *out = sys_statfs(a[0], a[1]);
        break;
    case 44:
        *out = sys_fstatfs(a[0], a[1]);
        break;
    case 45:
        *out = sys_truncate(a[0], (int64_t)a[1]);
        break;
    case 46:
        *out = sys_ftruncate(a[0], (int64_t)a[1]);
        break;
    case 48:
        *out = sys_faccessat(dirfd, a[1], a[2], 0);
        break;
    case 49:
        *out = sys_chdir(a[0]);
        break;
    case 50:
        *out = sys_fchdir(a[0]);
        break;
    case 52:
        *out = sys_fchmod(a[0], a[1]);
        break;
    case 53:
        *out = sys_fchmodat(dirfd, a[1], a[2]);
        break;
    case 54:
        *out = sys_fchownat(dirfd, a[1], a[2], a[3], a[4]);
        break;
    case 78:
        *out = sys_readlinkat(dirfd, a[1], a[2], a[3]);
        break;
    case 79:
        *out = sys_newfstatat(dirfd, a[1], a[2], a[3]);
        break;
    case 80:
        *out = sys_fstat(a[0], a[1]);
        break;
    case 88:
        *out = sys_utimensat(dirfd, a[1], a[2], a[3]);
        break;
    case 276:
        *out = sys_renameat2(dirfd, a[1], to_int(a[2]), a[3], a[4]);
        break;
    case 291:
        *out = sys_statx(dirfd, a[1], a[2], a[3], a[4]);
        break;
    case 439: /* faccessat2 */
        *out = sys_faccessat(dirfd, a[1], a[2], a[3]);
        break;
    default:
        return false;
    }
    return true;
}

/* Descriptors. */
static bool syscall_file(uint64_t nr, const uint64_t *a, int64_t *out)
{
    switch (nr) {
    case 23:
        *out = sys_dup(a[0]);
        break;
    case 24:
        *out = sys_dup3(a[0], a[1], a[2]);
        break;
    case 25:
        *out = sys_fcntl(a[0], a[1], a[2]);
        break;
    case 29:
        *out = sys_ioctl(a[0], a[1], a[2]);
        break;
    case 56:
        *out = sys_openat(to_int(a[0]), a[1], a[2], a[3]);
        break;
    case 57:
        *out = sys_close((uint32_t)a[0]);
        break;
    case 59:
        *out = sys_pipe2(a[0], a[1]);
        break;
    case 61:
        *out = sys_getdents64(a[0], a[1], a[2]);
        break;
    case 62:
        *out = sys_lseek(a[0], (int64_t)a[1], a[2]);
        break;
    case 63:
        *out = sys_read(a[0], a[1], a[2]);
        break;
    case 64:
        *out = sys_write(a[0], a[1], a[2]);
        break;
    case 65:
        *out = sys_readv(a[0], a[1], a[2]);
        break;
    case 66:
        *out = sys_writev(a[0], a[1], a[2]);
        break;
    case 67:
        *out = sys_pread64(a[0], a[1], a[2], (int64_t)a[3]);
        break;
    case 68:
        *out = sys_pwrite64(a[0], a[1], a[2], (int64_t)a[3]);
        break;
    case 69:
        *out = sys_preadv(a[0], a[1], a[2], (int64_t)a[3]);
        break;
    case 70:
        *out = sys_pwritev(a[0], a[1], a[2], (int64_t)a[3]);
        break;
    case 72:
        *out = sys_pselect6(a[0], &a[1], a[4], a[5]);
        break;
    case 73:
        *out = sys_ppoll(a[0], a[1], a[2], a[3], a[4]);
        break;
    case 81: /* sync */
        *out = 0;
        break;
    case 82: /* fsync, fdatasync */
    case 83:
        *out = sys_fsync(a[0]);
        break;
    case 436:
        *out = sys_close_range((uint32_t)a[0], (uint32_t)a[1], a[2]);
        break;
    default:
        return false;
    }
    return true;
}

static bool syscall_system(uint64_t nr, const uint64_t *a, int64_t *out)
{
    switch (nr) {
    case 101:
        *out = sys_nanosleep(a[0], a[1]);
        break;
    case 102:
        *out = sys_getitimer(a[0], a[1]);
        break;
    case 103:
        *out = sys_setitimer(a[0], a[1], a[2]);
        break;
    case 113:
        *out = sys_clock_gettime(a[0], a[1]);
        break;
    case 114:
        *out = sys_clock_getres(a[0], a[1]);
        break;
    case 115:
        *out = sys_clock_nanosleep(a[0], a[1], a[2], a[3]);
        break;
    case 122:
        *out = sys_sched_setaffinity(a[0], a[1], a[2]);
        break;
    case 123:
        *out = sys_sched_getaffinity(a[0], a[1], a[2]);
        break;
    case 124:
        sched_yield();
        cpu_relax(); /* whoever yields waits: a hint to the machine too */
        *out = 0;
        break;
    case 160:
        *out = sys_uname(a[0]);
        break;
    case 163: /* getrlimit, setrlimit */
    case 164:
        *out =
            sys_prlimit64(0, a[0], nr == 164 ? a[1] : 0, nr == 163 ? a[1] : 0);
        break;
    case 165:
        *out = sys_getrusage(a[0], a[1]);
        break;
    case 168:
        *out = sys_getcpu(a[0], a[1]);
        break;
    case 169:
        *out = sys_gettimeofday(a[0]);
        break;
    case 179:
        *out = sys_sysinfo(a[0]);
        break;
    case 261:
        *out = sys_prlimit64(a[0], a[1], a[2], a[3]);
        break;
    case 278:
        *out = sys_getrandom(a[0], a[1]);
        break;
    case 283:
        *out = sys_membarrier(a[0], a[1]);
        break;
    default:
        return false;
    }
    return true;
}

void syscall_dispatch(struct pt_regs *regs)
{
    uint64_t nr = regs->x[8];
    int64_t result = -ENOSYS;
    const uint64_t *args = regs->x;

    counter_inc(syscalls);
    if (unlikely(nr >= SYS_SD_FIRST)) {
        regs->x[0] = (uint64_t)sys_scenario(nr, args[0]);
        return;
    }
    /* The groups are ordered by how hot they are in the benchmarks. */
    (void)(syscall_process(nr, args, &result) ||
           syscall_memory(nr, args, &result) ||
           syscall_file(nr, args, &result) || syscall_path(nr, args, &result) ||
           syscall_signal(nr, args, &result) ||
           syscall_system(nr, args, &result));
    regs->x[0] = (uint64_t)result;
}

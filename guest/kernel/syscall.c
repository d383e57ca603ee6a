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

static bool syscall_process(uint64_t nr, const uint64_t *a, int64_t *out)
{
    switch (nr) {
    case 93: /* exit */
        process_exit_thread((int)(a[0] & 0xff) << 8);
    case 94: /* exit_group */
        process_exit_group((int)(a[0] & 0xff) << 8);
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
    case 129:
        *out = sys_kill((int64_t)(int32_t)a[0], (int64_t)(int32_t)a[1]);
        break;
    case 130: /* tkill */
        *out = sys_tgkill(0, (int64_t)(int32_t)a[0], (int64_t)(int32_t)a[1]);
        break;
    case 131:
        *out = sys_tgkill((int64_t)(int32_t)a[0], (int64_t)(int32_t)a[1],
                          (int64_t)(int32_t)a[2]);
        break;
    case 132: /* sigaltstack: no handler ever runs */
        *out = 0;
        break;
    case 134:
        *out = sys_rt_sigaction((int64_t)(int32_t)a[0], a[1], a[2], a[3]);
        break;
    case 135:
        *out = sys_rt_sigprocmask(a[0], a[1], a[2], a[3]);
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
        *out = sys_execve(a[0], a[1], a[2]);
        break;
    case 260:
        *out = sys_wait4((int64_t)(int32_t)a[0], a[1], a[2], a[3]);
        break;
    default:
        return false;
    }
    return true;
}

static bool syscall_file(uint64_t nr, const uint64_t *a, int64_t *out)
{
    int64_t dirfd = (int32_t)a[0];

    switch (nr) {
    case 17:
        *out = sys_getcwd(a[0], a[1]);
        break;
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
    case 48:
    case 439: /* faccessat2 */
        *out = sys_faccessat(dirfd, a[1]);
        break;
    case 56:
        *out = sys_openat(dirfd, a[1], a[2]);
        break;
    case 57:
        *out = sys_close(a[0]);
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
        *out = sys_pread64(a[0], a[1], a[2], a[3]);
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
    default:
        return false;
    }
    return true;
}

static bool syscall_system(uint64_t nr, const uint64_t *a, int64_t *out)
{
    switch (nr) {
    case 73:
        *out = sys_ppoll(a[0], a[1], a[2]);
        break;
    case 101:
        *out = sys_nanosleep(a[0], a[1]);
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
    case 163: /* getrlimit */
        *out = sys_prlimit64(0, a[0], 0, a[1]);
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
           syscall_file(nr, args, &result) ||
           syscall_system(nr, args, &result));
    regs->x[0] = (uint64_t)result;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The private system calls of scenario programs; see abi/syscalls.h. */
#include "abi/syscalls.h"
#include "kernel/annot.h"
#include "kernel/errno.h"
#include "kernel/syscalls.h"

int64_t sys_scenario(uint64_t nr, uint64_t arg)
{
    switch (nr) {
    case SYS_SD_MARK:
        annot_mark(arg);
        return 0;
    case SYS_SD_CHOOSE:
        if (arg == 0 || arg > ANNOT_CHOOSE_MAX) {
            return -EINVAL;
        }
        return (int64_t)annot_choose(arg);
    case SYS_SD_FINDING:
        annot_finding(arg);
        return 0;
    default:
        return -ENOSYS;
    }
}

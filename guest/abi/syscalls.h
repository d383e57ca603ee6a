/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/*
 * System calls that only the bundled kernel has: how a scenario program speaks
 * to the annotation device (annot.h). Their numbers are far above Linux's,
 * which answers ENOSYS; without the device they answer 0 and do nothing.
 */
#ifndef ABI_SYSCALLS_H
#define ABI_SYSCALLS_H

#define SYS_SD_MARK 0x5d00    /* (value): ANNOT_REG_MARK */
#define SYS_SD_CHOOSE 0x5d01  /* (n), 1..1024: 0..n-1, or -EINVAL */
#define SYS_SD_FINDING 0x5d02 /* (code): ANNOT_REG_FINDING */

#define SYS_SD_FIRST SYS_SD_MARK
#define SYS_SD_LAST SYS_SD_FINDING

#endif

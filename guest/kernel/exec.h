/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading static ELF programs from the initramfs into a new address space. */
#ifndef KERNEL_EXEC_H
#define KERNEL_EXEC_H

#include "kernel/task.h"
#include "kernel/types.h"

struct exec_args {
    const char *path;
    int argc;
    const char *const *argv;
    int envc;
    const char *const *envp;
};

struct exec_image {
    struct mm *mm;
    va_t entry;
    va_t sp;
    char name[16];
};

/* 0 or -errno; touches nothing of the current task. */
int exec_build(const struct exec_args *args, struct exec_image *out);
/* The user registers of a program's first instruction. */
void exec_set_regs(struct task *task, const struct exec_image *image);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading static ELF programs and scripts into a new address space. */
#ifndef KERNEL_EXEC_H
#define KERNEL_EXEC_H

#include "kernel/task.h"
#include "kernel/types.h"

struct inode;

/* argv and envp, one string behind the other. */
struct exec_strings {
    char *path; /* what was asked for: AT_EXECFN */
    char *buf;
    size_t len, size;
    int argc, envc;
};

struct exec_image {
    struct mm *mm;
    va_t entry, sp;
    va_t arg_start, arg_end, env_end;
    char *exe; /* absolute name of the ELF file, kmalloc()ed */
    char name[16];
};

/* --- exec_args.c; 0 or -errno --- */
int exec_strings_set(struct exec_strings *out, const char *path, int argc,
                     const char *const *argv, int envc,
                     const char *const *envp);
int exec_strings_from_user(struct exec_strings *out, const char *path,
                           uint64_t argv_va, uint64_t envp_va);
/*
 * If the file begins with "#!": *interpreter is the program's name,
 * kmalloc()ed, and the arguments become its own. first_one: the file is what
 * execve was given, not the interpreter of another script.
 */
int exec_strings_script(struct exec_strings *strings, struct inode *file,
                        bool first_one, char **interpreter);
size_t exec_strings_args_len(const struct exec_strings *strings);
void exec_strings_free(struct exec_strings *strings);

/* 0 or -errno; touches nothing of the current task. */
int exec_build(struct inode *start, struct exec_strings *strings,
               struct exec_image *out);
/* The user registers of a program's first instruction. */
void exec_set_regs(struct task *task, const struct exec_image *image);
/* What /proc tells of it; takes over image->exe. */
void exec_set_process(struct process *process, struct exec_image *image);

#endif

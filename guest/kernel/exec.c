/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * execve: find the program (of a script: its interpreter), map the segments of
 * a static ELF file as anonymous private memory, copy them in, and build the
 * initial stack. exec_args.c keeps the strings.
 *
 *   high  path, strings of envp, strings of argv
 *         platform, 16 random bytes
 *         auxv ... AT_NULL
 *         envp ... NULL
 *         argv ... NULL
 *   sp -> argc
 */
#include "kernel/exec.h"

#include "arch/sysreg.h"
#include "kernel/elf.h"
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/random.h"
#include "kernel/sched.h"
#include "kernel/sys_path.h"
#include "mm/mm.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define EXEC_DYN_BASE 0x0000555500000000UL
#define EXEC_STACK_TOP MM_SIGPAGE
#define EXEC_STACK_SIZE (8UL << 20)
#define EXEC_MAX_SEGMENTS 16
#define EXEC_AUXV 22
#define SIGNAL_FRAME_SIZE 4720 /* AT_MINSIGSTKSZ */

#define HWCAP_FP BIT(0)
#define HWCAP_ASIMD BIT(1)
#define HWCAP_ATOMICS BIT(8)

void fp_load(const struct fp_state *fp); /* boot/switch.S */

struct loaded_elf {
    va_t entry, phdr, end;
    uint16_t phnum;
};

/* A program file: read where it lies if it is of the initramfs. */
struct exec_file {
    struct inode *inode;
    const char *direct; /* or NULL */
    uint64_t size;
};

static bool file_read(const struct exec_file *file, void *buf, uint64_t size,
                      uint64_t offset)
{
    return offset <= file->size && size <= file->size - offset &&
           tmpfile_peek(file->inode, buf, size, offset) == size;
}

static int elf_check(const struct exec_file *file, struct elf_header *out)
{
    static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};

    if (!file_read(file, out, sizeof(*out), 0)) {
        return -ENOEXEC;
    }
    if (memcmp(out->ident, ident, sizeof(ident)) != 0 ||
        out->machine != ELF_MACHINE_AARCH64 ||
        (out->type != ELF_TYPE_EXEC && out->type != ELF_TYPE_DYN) ||
        out->phentsize != sizeof(struct elf_segment) || out->phnum == 0 ||
        out->phnum > EXEC_MAX_SEGMENTS || out->phoff > file->size ||
        out->phnum * sizeof(struct elf_segment) > file->size - out->phoff) {
        return -ENOEXEC;
    }
    return 0;
}

static int elf_copy(struct mm *mm, const struct exec_file *file, va_t to,
                    uint64_t size, uint64_t offset)
{
    char *buf;
    int error = 0;

    if (file->direct != NULL) {
        return mm_poke(mm, to, file->direct + offset, size);
    }
    buf = kmalloc(PAGE_SIZE);
    if (buf == NULL) {
        return -ENOMEM;
    }
    for (uint64_t done = 0; done < size && error == 0;) {
        uint64_t n = min_u64(PAGE_SIZE, size - done);

        error = file_read(file, buf, n, offset + done)
                    ? mm_poke(mm, to + done, buf, n)
                    : -EIO;
        done += n;
    }
    kfree(buf);
    return error;
}

static int elf_map_segment(struct mm *mm, const struct exec_file *file,
                           const struct elf_segment *seg, va_t bias)
{
    va_t start = bias + seg->vaddr;
    va_t first = ALIGN_DOWN(start, PAGE_SIZE);
    va_t end = ALIGN_UP(start + seg->memsz, PAGE_SIZE);
    unsigned prot = 0;
    int error;

    if (seg->offset > file->size || seg->filesz > file->size - seg->offset ||
        seg->filesz > seg->memsz || start < bias || seg->memsz > USER_END ||
        end > EXEC_STACK_TOP - EXEC_STACK_SIZE || first >= end) {
        return -ENOEXEC;
    }
    prot |= (seg->flags & ELF_PF_R) ? PROT_READ : 0;
    prot |= (seg->flags & ELF_PF_W) ? PROT_WRITE : 0;
    prot |= (seg->flags & ELF_PF_X) ? PROT_EXEC : 0;
    error = mm_map(mm, first, end - first, prot);
    if (error == 0 && seg->filesz > 0) {
        error = elf_copy(mm, file, start, seg->filesz, seg->offset);
    }
    return error;
}

static int elf_load(struct mm *mm, const struct exec_file *file,
                    struct loaded_elf *out)
{
    struct elf_header header;
    va_t bias;
    int error = elf_check(file, &header);

    if (error != 0) {
        return error;
    }
    bias = header.type == ELF_TYPE_DYN ? EXEC_DYN_BASE : 0;
    *out = (struct loaded_elf){.entry = bias + header.entry,
                               .phnum = header.phnum};
    for (unsigned i = 0; i < header.phnum; i++) {
        struct elf_segment seg;

        if (!file_read(file, &seg, sizeof(seg),
                       header.phoff + i * sizeof(seg))) {
            return -ENOEXEC;
        }
        if (seg.type == ELF_PT_INTERP) {
            return -ENOEXEC; /* only static programs */
        }
        if (seg.type != ELF_PT_LOAD || seg.memsz == 0) {
            continue;
        }
        error = elf_map_segment(mm, file, &seg, bias);
        if (error != 0) {
            return error;
        }
        if (header.phoff >= seg.offset &&
            header.phoff - seg.offset < seg.filesz) {
            out->phdr = bias + seg.vaddr + (header.phoff - seg.offset);
        }
        out->end = max_u64(out->end, bias + seg.vaddr + seg.memsz);
    }
    return out->end == 0 ? -ENOEXEC : 0;
}

static uint64_t exec_hwcap(void)
{
    uint64_t isar0 = read_id_aa64isar0_el1();

    return HWCAP_FP | HWCAP_ASIMD |
           ((isar0 >> 20 & 0xf) >= 2 ? HWCAP_ATOMICS : 0);
}

/* Where things are on the stack, from the top down. */
struct stack_plan {
    va_t path, strings, platform, random, words;
};

static void stack_plan(const struct exec_strings *strings, uint64_t words,
                       struct stack_plan *out)
{
    out->path = EXEC_STACK_TOP - 8 - (strlen(strings->path) + 1);
    out->strings = out->path - strings->len;
    out->platform = ALIGN_DOWN(out->strings - 8, 16UL);
    out->random = out->platform - 16;
    /* SP must be 16-aligned and point at argc. */
    out->words = ALIGN_DOWN(out->random - words * 8, 16UL);
}

/* The words from argc to AT_NULL; returns how many. */
static unsigned stack_words(uint64_t *words, const struct exec_strings *strings,
                            const struct loaded_elf *elf,
                            const struct stack_plan *plan)
{
    const uint64_t auxv[2 * EXEC_AUXV] = {
        AT_PHDR,        elf->phdr,
        AT_PHENT,       sizeof(struct elf_segment),
        AT_PHNUM,       elf->phnum,
        AT_PAGESZ,      PAGE_SIZE,
        AT_BASE,        0,
        AT_FLAGS,       0,
        AT_ENTRY,       elf->entry,
        AT_UID,         0,
        AT_EUID,        0,
        AT_GID,         0,
        AT_EGID,        0,
        AT_SECURE,      0,
        AT_HWCAP,       exec_hwcap(),
        AT_HWCAP2,      0,
        AT_CLKTCK,      100,
        AT_PLATFORM,    plan->platform,
        AT_RANDOM,      plan->random,
        AT_EXECFN,      plan->path,
        AT_MINSIGSTKSZ, SIGNAL_FRAME_SIZE,
        AT_NULL,        0,
    };
    const char *string = strings->buf;
    unsigned n = 0;

    words[n++] = (uint64_t)strings->argc;
    for (int i = 0; i < strings->argc + strings->envc; i++) {
        if (i == strings->argc) {
            words[n++] = 0;
        }
        words[n++] = plan->strings + (uint64_t)(string - strings->buf);
        string += strlen(string) + 1;
    }
    if (strings->envc == 0) {
        words[n++] = 0;
    }
    words[n++] = 0;
    memcpy(&words[n], auxv, sizeof(auxv));
    return n + ARRAY_SIZE(auxv);
}

static int exec_map_stack(const struct exec_strings *strings,
                          const struct loaded_elf *elf, struct exec_image *out)
{
    uint64_t max =
        3 + 2 * EXEC_AUXV + (uint64_t)strings->argc + (uint64_t)strings->envc;
    uint64_t random[2] = {random_u64(), random_u64()};
    uint64_t *words = kmalloc(max * 8);
    struct stack_plan plan;
    unsigned n;
    int error;

    if (words == NULL) {
        return -ENOMEM;
    }
    stack_plan(strings, max, &plan);
    n = stack_words(words, strings, elf, &plan);
    error = mm_map(out->mm, EXEC_STACK_TOP - EXEC_STACK_SIZE, EXEC_STACK_SIZE,
                   PROT_READ | PROT_WRITE);
    error = error != 0 ? error : mm_map_sigpage(out->mm);
    if (error == 0) {
        error = mm_poke(out->mm, plan.path, strings->path,
                        strlen(strings->path) + 1);
    }
    if (error == 0) {
        error = mm_poke(out->mm, plan.strings, strings->buf, strings->len);
    }
    if (error == 0) {
        error = mm_poke(out->mm, plan.platform, "aarch64", 8);
    }
    if (error == 0) {
        error = mm_poke(out->mm, plan.random, random, sizeof(random));
    }
    if (error == 0) {
        error = mm_poke(out->mm, plan.words, words, n * 8);
    }
    out->sp = plan.words;
    out->arg_start = plan.strings;
    out->arg_end = plan.strings + exec_strings_args_len(strings);
    out->env_end = plan.strings + strings->len;
    kfree(words);
    return error;
}

static int exec_load(struct exec_file *file, const struct exec_strings *strings,
                     struct exec_image *out)
{
    struct text exe = {0};
    struct loaded_elf elf;
    int error;

    out->mm = mm_new();
    if (out->mm == NULL) {
        return -ENOMEM;
    }
    error = elf_load(out->mm, file, &elf);
    if (error == 0) {
        mm_set_brk(out->mm, elf.end);
        error = exec_map_stack(strings, &elf, out);
    }
    if (error == 0) {
        error = path_of(file->inode, &exe);
        text_append(&exe, "", 1);
        error = error == 0 && exe.failed ? -ENOMEM : error;
    }
    if (error != 0) {
        text_free(&exe);
        mm_put(out->mm);
        return error;
    }
    out->exe = exe.buf;
    out->entry = elf.entry;
    return 0;
}

/* May this be executed? Takes over the inode's reference when it may not. */
static int exec_open(struct inode *inode, struct exec_file *out)
{
    if (inode_type(inode) != S_IFREG || (inode->mode & 0111) == 0) {
        inode_put(inode);
        return -EACCES;
    }
    out->inode = inode;
    mutex_lock(&inode->lock);
    out->direct = inode->data;
    out->size = inode->size;
    mutex_unlock(&inode->lock);
    return inode->ops != NULL ? -EACCES : 0;
}

int exec_build(struct inode *start, struct exec_strings *strings,
               struct exec_image *out)
{
    struct inode *inode;
    const char *base = strings->path;
    int error = path_lookup(start, strings->path, 0, &inode);

    memset(out, 0, sizeof(*out));
    for (const char *p = strings->path; *p != '\0'; p++) {
        base = *p == '/' && p[1] != '\0' ? p + 1 : base;
    }
    strlcpy(out->name, base, sizeof(out->name));
    for (unsigned depth = 0; error == 0; depth++) {
        struct exec_file file;
        char *interpreter = NULL;

        error = exec_open(inode, &file);
        if (error != 0) {
            break;
        }
        error = exec_strings_script(strings, inode, depth == 0, &interpreter);
        if (interpreter == NULL) {
            error = error != 0 ? error : exec_load(&file, strings, out);
            inode_put(inode);
            break;
        }
        inode_put(inode);
        if (error == 0) {
            error = depth >= 5 ? -ELOOP
                               : path_lookup(start, interpreter, 0, &inode);
        }
        kfree(interpreter);
    }
    return error;
}

void exec_set_regs(struct task *task, const struct exec_image *image)
{
    struct pt_regs *regs = task_regs(task);

    memset(regs, 0, sizeof(*regs));
    regs->pc = image->entry;
    regs->sp = image->sp;
    task->tls = 0;
}

void exec_set_process(struct process *process, struct exec_image *image)
{
    char *old;

    spin_lock(&process->files.lock);
    old = process->exe;
    process->exe = image->exe;
    spin_unlock(&process->files.lock);
    kfree(old);
    process->arg_start = image->arg_start;
    process->arg_end = image->arg_end;
    process->env_end = image->env_end;
}

/* The current task takes the new image; there is no way back. */
static void exec_install(struct exec_image *image)
{
    struct task *task = current();
    struct process *process = task->process;
    struct mm *old = task->mm;
    uint64_t flags = local_irq_save();

    spin_lock(&process_lock); /* as in exit_mm() */
    task->mm = image->mm;
    spin_unlock(&process_lock);
    mm_switch(old, image->mm);
    mm_switch_finish();
    local_irq_restore(flags);
    mm_put(old);
    process_vfork_release(process);
    file_table_close_all(&process->files, true);
    exec_set_process(process, image);
    strlcpy(task->name, image->name, sizeof(task->name));
    flags = spin_lock_irqsave(&process->signal_lock);
    for (unsigned i = 0; i <= SIGNALS; i++) {
        bool ignored = process->actions[i].handler == SIG_IGN;

        process->actions[i] =
            (struct signal_action){.handler = ignored ? SIG_IGN : SIG_DFL};
    }
    spin_unlock_irqrestore(&process->signal_lock, flags);
    memset(&task->altstack, 0, sizeof(task->altstack));
    task->clear_child_tid = 0;
    task->robust_list = 0;
    exec_set_regs(task, image);
    write_tpidr_el0(0);
    memset(&task->fp, 0, sizeof(task->fp));
    fp_load(&task->fp);
}

static int64_t exec_run(struct inode *start, struct exec_strings *strings)
{
    struct exec_image image;
    int64_t error = exec_build(start, strings, &image);

    if (error == 0 && process_leave_alone() != 0) {
        kfree(image.exe);
        mm_put(image.mm);
        return -EINTR; /* this thread is about to end */
    }
    if (error == 0) {
        exec_install(&image);
    }
    return error;
}

int64_t sys_execve(int64_t dirfd, uint64_t path_va, uint64_t argv_va,
                   uint64_t envp_va, uint64_t flags)
{
    struct exec_strings strings = {0};
    struct user_path path;
    int64_t error;

    if (flags != 0) {
        return -EINVAL;
    }
    error = user_path_get(dirfd, path_va, &path);
    if (error != 0) {
        return error;
    }
    error = exec_strings_from_user(&strings, path.name, argv_va, envp_va);
    if (error == 0) {
        error = exec_run(path.start, &strings);
    }
    exec_strings_free(&strings);
    user_path_put(&path);
    return error;
}

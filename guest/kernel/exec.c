/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * execve: map the segments of a static ELF program as anonymous private memory,
 * copy them in, and build the initial stack.
 *
 *   high  strings, platform, 16 random bytes, path
 *         auxv ... AT_NULL
 *         envp ... NULL
 *         argv ... NULL
 *   sp -> argc
 */
#include "kernel/exec.h"

#include "arch/sysreg.h"
#include "kernel/elf.h"
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/random.h"
#include "kernel/sched.h"
#include "mm/mm.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define EXEC_DYN_BASE 0x0000555500000000UL
#define EXEC_STACK_TOP 0x0000fffffffff000UL
#define EXEC_STACK_SIZE (8UL << 20)
#define EXEC_MAX_SEGMENTS 16
#define EXEC_MAX_STRINGS 128
#define EXEC_STRINGS_SIZE (64UL << 10)

#define HWCAP_FP BIT(0)
#define HWCAP_ASIMD BIT(1)
#define HWCAP_ATOMICS BIT(8)

void fp_load(const struct fp_state *fp); /* boot/switch.S */

struct loaded_elf {
    va_t entry, phdr, end;
    uint16_t phnum;
};

static int elf_check(const struct file_node *file, struct elf_header *out)
{
    static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};

    if (file->size < sizeof(*out)) {
        return -ENOEXEC;
    }
    memcpy(out, file->data, sizeof(*out));
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

static int elf_map_segment(struct mm *mm, const struct file_node *file,
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
        error = mm_poke(mm, start, file->data + seg->offset, seg->filesz);
    }
    return error;
}

static int elf_load(struct mm *mm, const struct file_node *file,
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

        memcpy(&seg, file->data + header.phoff + i * sizeof(seg), sizeof(seg));
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

/* The stack's contents, built in a kernel buffer and copied once. */
struct stack_image {
    uint64_t used; /* bytes, from the top */
    /* argc, argv + NULL, envp + NULL, auxv: pushed last */
    uint64_t words[1 + EXEC_MAX_STRINGS + 2 + 2 * 20];
    uint8_t buf[EXEC_STRINGS_SIZE]; /* its end is at EXEC_STACK_TOP */
};

static va_t stack_push(struct stack_image *stack, const void *data,
                       uint64_t size)
{
    if (size > EXEC_STRINGS_SIZE - stack->used) {
        return 0;
    }
    stack->used += size;
    memcpy(stack->buf + EXEC_STRINGS_SIZE - stack->used, data, size);
    return EXEC_STACK_TOP - stack->used;
}

static uint64_t exec_hwcap(void)
{
    uint64_t isar0 = read_id_aa64isar0_el1();

    return HWCAP_FP | HWCAP_ASIMD |
           ((isar0 >> 20 & 0xf) >= 2 ? HWCAP_ATOMICS : 0);
}

static int stack_build(struct stack_image *stack, const struct exec_args *args,
                       const struct loaded_elf *elf)
{
    uint64_t *words = stack->words;
    uint64_t random[2] = {random_u64(), random_u64()};
    va_t path, random_va, platform;
    unsigned n = 0;
    bool full = false;

    if (args->argc + args->envc > EXEC_MAX_STRINGS) {
        return -E2BIG;
    }
    path = stack_push(stack, args->path, strlen(args->path) + 1);
    platform = stack_push(stack, "aarch64", 8);
    random_va = stack_push(stack, random, sizeof(random));
    words[n++] = (uint64_t)args->argc;
    for (int i = 0; i < args->argc; i++) {
        words[n] = stack_push(stack, args->argv[i], strlen(args->argv[i]) + 1);
        full |= words[n++] == 0;
    }
    words[n++] = 0;
    for (int i = 0; i < args->envc; i++) {
        words[n] = stack_push(stack, args->envp[i], strlen(args->envp[i]) + 1);
        full |= words[n++] == 0;
    }
    words[n++] = 0;

    const uint64_t auxv[] = {
        AT_PHDR,     elf->phdr,
        AT_PHENT,    sizeof(struct elf_segment),
        AT_PHNUM,    elf->phnum,
        AT_PAGESZ,   PAGE_SIZE,
        AT_BASE,     0,
        AT_FLAGS,    0,
        AT_ENTRY,    elf->entry,
        AT_UID,      0,
        AT_EUID,     0,
        AT_GID,      0,
        AT_EGID,     0,
        AT_SECURE,   0,
        AT_HWCAP,    exec_hwcap(),
        AT_HWCAP2,   0,
        AT_CLKTCK,   100,
        AT_PLATFORM, platform,
        AT_RANDOM,   random_va,
        AT_EXECFN,   path,
        AT_NULL,     0,
    };
    _Static_assert(ARRAY_SIZE(auxv) <= 2 * 20, "room in words");
    memcpy(&words[n], auxv, sizeof(auxv));
    n += ARRAY_SIZE(auxv);

    /* SP must be 16-aligned and point at argc. */
    stack->used = ALIGN_UP(stack->used + n * 8, 16UL) - n * 8;
    full |= path == 0 || platform == 0 || random_va == 0 ||
            stack_push(stack, words, n * 8) == 0;
    return full ? -E2BIG : 0;
}

static int exec_map_stack(struct mm *mm, const struct exec_args *args,
                          const struct loaded_elf *elf, va_t *out_sp)
{
    struct stack_image *stack = kmalloc(sizeof(*stack));
    int error = stack == NULL ? -ENOMEM : stack_build(stack, args, elf);

    if (error == 0) {
        error = mm_map(mm, EXEC_STACK_TOP - EXEC_STACK_SIZE, EXEC_STACK_SIZE,
                       PROT_READ | PROT_WRITE);
    }
    if (error == 0) {
        *out_sp = EXEC_STACK_TOP - stack->used;
        error =
            mm_poke(mm, *out_sp, stack->buf + EXEC_STRINGS_SIZE - stack->used,
                    stack->used);
    }
    kfree(stack);
    return error;
}

int exec_build(const struct exec_args *args, struct exec_image *out)
{
    struct file_node *file = kmalloc(sizeof(*file));
    struct loaded_elf elf;
    const char *base = args->path;
    int error;

    if (file == NULL) {
        return -ENOMEM;
    }
    error = initramfs_lookup(args->path, file);
    if (error == 0 && file->kind != FILE_DATA) {
        error = -EACCES;
    }
    if (error == 0) {
        out->mm = mm_new();
        error = out->mm == NULL ? -ENOMEM : 0;
    }
    if (error != 0) {
        kfree(file);
        return error;
    }
    error = elf_load(out->mm, file, &elf);
    kfree(file);
    if (error == 0) {
        mm_set_brk(out->mm, elf.end);
        error = exec_map_stack(out->mm, args, &elf, &out->sp);
    }
    if (error != 0) {
        mm_put(out->mm);
        return error;
    }
    out->entry = elf.entry;
    for (const char *p = args->path; *p != '\0'; p++) {
        base = *p == '/' ? p + 1 : base;
    }
    strlcpy(out->name, base, sizeof(out->name));
    return 0;
}

void exec_set_regs(struct task *task, const struct exec_image *image)
{
    struct pt_regs *regs = task_regs(task);

    memset(regs, 0, sizeof(*regs));
    regs->pc = image->entry;
    regs->sp = image->sp;
    task->tls = 0;
}

/* The current task takes the new image; there is no way back. */
static void exec_install(const struct exec_args *args,
                         const struct exec_image *image)
{
    struct task *task = current();
    struct process *process = task->process;
    struct mm *old = task->mm;
    uint64_t flags = local_irq_save();

    task->mm = image->mm;
    mm_switch(old, image->mm);
    mm_switch_finish();
    local_irq_restore(flags);
    mm_put(old);
    process_vfork_release(process);
    file_table_close_all(&process->files, true);
    strlcpy(process->exe, args->path, sizeof(process->exe));
    strlcpy(task->name, image->name, sizeof(task->name));
    spin_lock(&process->signal_lock);
    for (unsigned i = 0; i <= SIGNALS; i++) {
        if (process->actions[i].handler > 1) {
            process->actions[i].handler = 0;
        }
    }
    spin_unlock(&process->signal_lock);
    task->clear_child_tid = 0;
    task->robust_list = 0;
    exec_set_regs(task, image);
    write_tpidr_el0(0);
    memset(&task->fp, 0, sizeof(task->fp));
    fp_load(&task->fp);
}

/* Copies a user string vector: pointers into strings, *used bytes of it. */
static int exec_copy_vector(uint64_t vector_va, const char **vector, int max,
                            char *strings, uint64_t *used)
{
    for (int n = 0;; n++) {
        uint64_t va;
        int64_t len;

        if (vector_va == 0) {
            return 0;
        }
        if (get_user_u64(&va, vector_va + (uint64_t)n * 8) != 0) {
            return -EFAULT;
        }
        if (va == 0) {
            return n;
        }
        if (n == max) {
            return -E2BIG;
        }
        len = strncpy_from_user(strings + *used, va, EXEC_STRINGS_SIZE - *used);
        if (len < 0) {
            return (int)len;
        }
        if ((uint64_t)len >= EXEC_STRINGS_SIZE - *used) {
            return -E2BIG;
        }
        vector[n] = strings + *used;
        *used += (uint64_t)len + 1;
    }
}

struct exec_request {
    char path[PATH_MAX_LEN];
    const char *argv[EXEC_MAX_STRINGS];
    const char *envp[EXEC_MAX_STRINGS];
    char strings[EXEC_STRINGS_SIZE];
};

static int64_t exec_request_run(struct exec_request *request, uint64_t path_va,
                                uint64_t argv_va, uint64_t envp_va)
{
    struct exec_args args = {
        .path = request->path, .argv = request->argv, .envp = request->envp};
    struct exec_image image;
    uint64_t used = 0;
    int64_t len =
        strncpy_from_user(request->path, path_va, sizeof(request->path));
    int error;

    if (len < 0 || len == (int64_t)sizeof(request->path)) {
        return len < 0 ? len : -ENAMETOOLONG;
    }
    args.argc = exec_copy_vector(argv_va, request->argv, EXEC_MAX_STRINGS,
                                 request->strings, &used);
    if (args.argc < 0) {
        return args.argc;
    }
    args.envc = exec_copy_vector(envp_va, request->envp, EXEC_MAX_STRINGS,
                                 request->strings, &used);
    if (args.envc < 0) {
        return args.envc;
    }
    error = exec_build(&args, &image);
    if (error == 0) {
        exec_install(&args, &image);
    }
    return error;
}

int64_t sys_execve(uint64_t path_va, uint64_t argv_va, uint64_t envp_va)
{
    struct exec_request *request;
    int64_t error;

    if (current()->process->thread_count > 1) {
        return -EBUSY; /* of several threads: not supported */
    }
    request = kmalloc(sizeof(*request));
    if (request == NULL) {
        return -ENOMEM;
    }
    error = exec_request_run(request, path_va, argv_va, envp_va);
    kfree(request);
    return error;
}

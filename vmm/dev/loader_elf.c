/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF kernels, read by libelf from memory. Segments go to their physical
 * addresses. Every field is checked here again: libelf hands out what the
 * file says.
 */
#include "dev/loader_priv.h"

#include <gelf.h>

#include "dev/dev_error.h"

#define ELF_SEGMENTS_MAX 128

static bool header_check(const struct loader_file *file,
                         const GElf_Ehdr *header, GError **error)
{
    const char *what = NULL;
    unsigned seen = 0, wanted = 0;

    if (header->e_ident[EI_CLASS] != ELFCLASS64) {
        what = "ELF class";
        seen = header->e_ident[EI_CLASS];
        wanted = ELFCLASS64;
    } else if (header->e_ident[EI_DATA] != ELFDATA2LSB) {
        what = "ELF data encoding";
        seen = header->e_ident[EI_DATA];
        wanted = ELFDATA2LSB;
    } else if (header->e_machine != EM_AARCH64) {
        what = "ELF machine";
        seen = header->e_machine;
        wanted = EM_AARCH64;
    } else if (header->e_type != ET_EXEC) {
        what = "ELF type";
        seen = header->e_type;
        wanted = ET_EXEC;
    }
    if (what != NULL) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s': %s is %u, must be %u: a kernel is a 64-bit "
                    "little-endian AArch64 executable linked at a fixed "
                    "address",
                    file->name, what, seen, wanted);
        return false;
    }
    return true;
}

static bool segment_check(const struct loader_file *file, size_t index,
                          const GElf_Phdr *phdr, GError **error)
{
    if (phdr->p_filesz > phdr->p_memsz) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s': program header %zu has p_filesz " HEX64
                    ", more than its p_memsz " HEX64 ": the file is damaged",
                    file->name, index, phdr->p_filesz, phdr->p_memsz);
        return false;
    }
    if (phdr->p_offset > file->size ||
        phdr->p_filesz > file->size - phdr->p_offset) {
        g_set_error(
            error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
            "'%s': program header %zu names " HEX64 " bytes at offset " HEX64
            " of a file of %zu bytes: the file is cut short, copy "
            "or link it again",
            file->name, index, phdr->p_filesz, phdr->p_offset, file->size);
        return false;
    }
    return true;
}

/*
 * e_entry is a virtual address where the kernel is linked high and loaded
 * low. It is looked for among the virtual ranges first, then among the
 * physical ones; the MMU is off at entry, so the physical one is used.
 */
static bool entry_find(const GElf_Phdr *phdr, uint64_t entry,
                       uint64_t *out_entry)
{
    if (entry >= phdr->p_vaddr && entry - phdr->p_vaddr < phdr->p_memsz) {
        *out_entry = phdr->p_paddr + (entry - phdr->p_vaddr);
        return true;
    }
    if (entry >= phdr->p_paddr && entry - phdr->p_paddr < phdr->p_memsz) {
        *out_entry = entry;
        return true;
    }
    return false;
}

static bool segments_plan(struct loader_plan *plan, const struct ram *ram,
                          const struct loader_file *file, Elf *elf,
                          const GElf_Ehdr *header, GError **error)
{
    bool has_entry = false;
    GElf_Phdr phdr;
    size_t count;

    /* The copying calls of libelf: tables in a file need not be aligned. */
    if (elf_getphdrnum(elf, &count) != 0 || count == 0 ||
        count > ELF_SEGMENTS_MAX || gelf_getphdr(elf, 0, &phdr) == NULL) {
        g_set_error(
            error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
            "'%s': the ELF header names %u program headers at offset " HEX64
            ", and 1 to %d that lie within its %zu bytes are "
            "needed: give a linked executable",
            file->name, header->e_phnum, header->e_phoff, ELF_SEGMENTS_MAX,
            file->size);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct loader_segment segment;

        if (gelf_getphdr(elf, (int)i, &phdr) == NULL) {
            g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                        "'%s': program header %zu of %zu cannot be read (%s):"
                        " the file is damaged",
                        file->name, i, count, elf_errmsg(-1));
            return false;
        }
        if (phdr.p_type != PT_LOAD || phdr.p_memsz == 0) {
            continue;
        }
        if (!segment_check(file, i, &phdr, error)) {
            return false;
        }
        segment = (struct loader_segment){
            .guest = phdr.p_paddr,
            .bytes = file->bytes + phdr.p_offset,
            .file_size = phdr.p_filesz,
            .mem_size = phdr.p_memsz,
        };
        if (!loader_plan_add(plan, ram, file, &segment, error)) {
            return false;
        }
        has_entry =
            has_entry || entry_find(&phdr, header->e_entry, &plan->entry);
    }
    if (!has_entry || plan->entry % 4 != 0) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s': the entry point is " HEX64 ", not a multiple of 4 "
                    "within one of its %u loaded segments: set ENTRY() in "
                    "the linker script",
                    file->name, header->e_entry, plan->segments->len);
        return false;
    }
    return true;
}

bool loader_plan_elf(struct loader_plan *plan, const struct ram *ram,
                     const struct loader_file *file, GError **error)
{
    GElf_Ehdr header;
    bool ok = false;
    Elf *elf;

    plan->kind = LOADER_ELF;
    (void)elf_version(EV_CURRENT); /* cannot fail for the version of elf.h */
    /* libelf reads only: the descriptor is never written back. */
    elf = elf_memory((char *)file->bytes, file->size);
    if (elf == NULL || elf_kind(elf) != ELF_K_ELF) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s' has an ELF magic number, but libelf refuses it "
                    "(%s) at %zu bytes: the file is cut short or damaged",
                    file->name, elf_errmsg(-1), file->size);
        goto out;
    }
    if (gelf_getehdr(elf, &header) == NULL) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s' of %zu bytes has no ELF header (%s): give an "
                    "AArch64 kernel",
                    file->name, file->size, elf_errmsg(-1));
        goto out;
    }
    ok = header_check(file, &header, error) &&
         segments_plan(plan, ram, file, elf, &header, error);
out:
    (void)elf_end(elf); /* a reference count */
    return ok;
}

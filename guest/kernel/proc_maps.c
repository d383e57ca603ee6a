/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/PID/maps and smaps. The lines are Linux's; programs were copied to
 * anonymous memory, so none of their areas has a file's name. */
#include "kernel/inode.h"
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/procfs.h"
#include "mm/mm.h"
#include "mm/report.h"

#define NAME_COLUMN 73

static const char *area_name(const struct mm_area *area)
{
    return area->sigpage             ? "[sigpage]"
           : area->end == MM_SIGPAGE ? "[stack]"
           : area->shared            ? "/dev/zero (deleted)"
           : area->heap              ? "[heap]"
                                     : "";
}

static void maps_line(const struct mm_area *area, struct text *text)
{
    size_t start = text->len;
    const char *name = area_name(area);
    const struct inode *file = area->file;

    text_printf(text, "%08lx-%08lx %c%c%c%c %08lx 00:%02x %lu ", area->start,
                area->end, (area->prot & PROT_READ) ? 'r' : '-',
                (area->prot & PROT_WRITE) ? 'w' : '-',
                (area->prot & PROT_EXEC) ? 'x' : '-', area->shared ? 's' : 'p',
                area->offset, area->shared || file != NULL ? 1U : 0U,
                file != NULL ? file->ino : area->object_id);
    if (name[0] != '\0' || file != NULL) {
        text_pad_to(text, start, NAME_COLUMN);
    }
    if (file != NULL && path_of(area->file, text) == -ENOENT) {
        name = "(deleted)";
    }
    text_printf(text, "%s\n", name);
}

void proc_maps_text(struct mm *mm, struct text *text)
{
    struct mm_area area;

    for (uint64_t va = 0; mm != NULL && mm_report_area(mm, va, false, &area);
         va = area.end) {
        maps_line(&area, text);
        inode_put(area.file);
    }
}

static void amount(struct text *text, const char *label, uint64_t bytes)
{
    size_t start = text->len;

    text_printf(text, "%s:", label);
    text_pad_to(text, start, 16);
    text_printf(text, "%8lu kB\n", bytes / 1024);
}

static void smaps_amounts(const struct mm_area_pages *p, struct text *text)
{
    amount(text, "Rss", p->rss);
    amount(text, "Pss", p->pss >> 12);
    amount(text, "Pss_Dirty", p->pss_dirty >> 12);
    amount(text, "Shared_Clean", p->shared_clean);
    amount(text, "Shared_Dirty", p->shared_dirty);
    amount(text, "Private_Clean", p->private_clean);
    amount(text, "Private_Dirty", p->private_dirty);
    amount(text, "Referenced", p->referenced);
    amount(text, "Anonymous", p->anonymous);
    amount(text, "KSM", 0);
    amount(text, "LazyFree", p->lazyfree);
    amount(text, "AnonHugePages", p->huge);
    amount(text, "ShmemPmdMapped", 0);
    amount(text, "FilePmdMapped", 0);
    amount(text, "Shared_Hugetlb", 0);
    amount(text, "Private_Hugetlb", 0);
    amount(text, "Swap", p->swap);
    amount(text, "SwapPss", p->swap);
    amount(text, "Locked", 0);
}

static void smaps_area(const struct mm_area *area, struct text *text)
{
    maps_line(area, text);
    amount(text, "Size", area->end - area->start);
    amount(text, "KernelPageSize", PAGE_SIZE);
    amount(text, "MMUPageSize", PAGE_SIZE);
    smaps_amounts(&area->pages, text);
    text_printf(text, "THPeligible:           0\nVmFlags:%s%s%s%s mr mw me\n",
                (area->prot & PROT_READ) ? " rd" : "",
                (area->prot & PROT_WRITE) ? " wr" : "",
                (area->prot & PROT_EXEC) ? " ex" : "",
                area->shared ? " sh" : "");
}

static void add_pages(struct mm_area_pages *to,
                      const struct mm_area_pages *from)
{
    /* All members are uint64_t. */
    for (unsigned i = 0; i < sizeof(*to) / sizeof(uint64_t); i++) {
        ((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
    }
}

void proc_smaps_text(struct mm *mm, struct text *text, bool rollup)
{
    struct mm_area area, all = {0};

    for (uint64_t va = 0; mm != NULL && mm_report_area(mm, va, true, &area);
         va = area.end) {
        if (!rollup) {
            smaps_area(&area, text);
        }
        inode_put(area.file);
        add_pages(&all.pages, &area.pages);
        all.start = va == 0 ? area.start : all.start;
        all.end = area.end;
    }
    if (rollup && mm != NULL) {
        size_t start = text->len;

        text_printf(text, "%08lx-%08lx ---p 00000000 00:00 0 ", all.start,
                    all.end);
        text_pad_to(text, start, NAME_COLUMN);
        text_printf(text, "[rollup]\n");
        smaps_amounts(&all.pages, text);
    }
}

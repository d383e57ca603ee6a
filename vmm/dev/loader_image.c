/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The arm64 Image format (Linux, Documentation/arch/arm64/booting): a 64-byte
 * header of little-endian fields, then a flat image.
 *
 *   0 code0, code1   8 text_offset   16 image_size   24 flags
 *   32 reserved      56 magic "ARM\x64"
 */
#include "dev/loader_priv.h"

#include <string.h>

#include "dev/dev_error.h"

#define IMAGE_HEADER_SIZE 64
#define IMAGE_TEXT_OFFSET 8
#define IMAGE_IMAGE_SIZE 16
#define IMAGE_FLAGS 24
#define IMAGE_MAGIC 56

#define IMAGE_FLAG_BIG_ENDIAN 1u
#define IMAGE_PAGE_SIZE_SHIFT 1 /* 0 unspecified, 1 4K, 2 16K, 3 64K */
#define IMAGE_PAGE_SIZE_4K 1

/* Before Linux 3.17 the header did not say, and this was the offset. */
#define IMAGE_OLD_TEXT_OFFSET 0x80000u

static uint64_t le64(const uint8_t *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
    return GUINT64_FROM_LE(value);
}

bool loader_is_image(const struct loader_file *file)
{
    return file->size >= IMAGE_HEADER_SIZE &&
           memcmp(file->bytes + IMAGE_MAGIC, "ARM\x64", 4) == 0;
}

static bool flags_check(const struct loader_file *file, uint64_t flags,
                        GError **error)
{
    unsigned page_size = flags >> IMAGE_PAGE_SIZE_SHIFT & 3;

    if ((flags & IMAGE_FLAG_BIG_ENDIAN) != 0) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s': Image header flags are " HEX64 ", a big-endian "
                    "kernel: build it little-endian",
                    file->name, flags);
        return false;
    }
    if (page_size > IMAGE_PAGE_SIZE_4K) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s': Image header flags are " HEX64 ", a kernel with "
                    "%s KiB pages: build it with 4 KiB pages",
                    file->name, flags, page_size == 2 ? "16" : "64");
        return false;
    }
    return true;
}

bool loader_plan_image(struct loader_plan *plan, const struct ram *ram,
                       const struct loader_file *file, GError **error)
{
    uint64_t text_offset = le64(file->bytes + IMAGE_TEXT_OFFSET);
    uint64_t image_size = le64(file->bytes + IMAGE_IMAGE_SIZE);
    struct loader_segment segment = {
        .bytes = file->bytes,
        .file_size = file->size,
    };

    if (!flags_check(file, le64(file->bytes + IMAGE_FLAGS), error)) {
        return false;
    }
    if (image_size == 0) {
        text_offset = IMAGE_OLD_TEXT_OFFSET;
    }
    if (text_offset % 4 != 0) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s': Image header text_offset is " HEX64 ", not a "
                    "multiple of 4: the file is damaged",
                    file->name, text_offset);
        return false;
    }
    /* Bound both before adding: neither sum can wrap afterwards. */
    if (text_offset >= ram->size || image_size > ram->size - text_offset) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_TOO_BIG,
                    "'%s': the kernel needs " HEX64
                    " bytes at RAM offset " HEX64
                    " (Image header), but RAM has " HEX64 " bytes: "
                    "give the machine more memory",
                    file->name, image_size, text_offset, ram->size);
        return false;
    }
    /* image_size includes .bss; a file longer than it is loaded whole. */
    segment.mem_size = MAX(image_size, segment.file_size);
    segment.guest = ram->base + text_offset;
    plan->kind = LOADER_IMAGE;
    plan->entry = segment.guest;
    return loader_plan_add(plan, ram, file, &segment, error);
}

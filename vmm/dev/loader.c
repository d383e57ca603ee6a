/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loader: reads files, tells their kinds apart, places kernel, initrd and
 * device tree. Runs before the machine does, on one thread.
 *
 *   base            kernel_start..kernel_end   initrd        dtb
 *   |----------------|=========|---------------|=====|-------|==|-------|
 *
 * The initrd goes above the kernel, and not below base + 128 MiB (or half of
 * a smaller RAM) while there is room, so that a kernel may move itself. The
 * device tree follows, 2 MiB aligned while there is room: early Linux maps
 * the 2 MiB block that it begins in.
 */
#include "dev/loader_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dev/dev_error.h"

#define MIB (1024ull * 1024)
#define INITRD_DISTANCE (128 * MIB)
#define PAGE 4096ull

/* --- files --- */

static bool file_read_all(int fd, uint8_t *buffer, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = read(fd, buffer + done, size - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool file_stat_check(const char *name, const struct stat *st,
                            uint64_t max, GError **error)
{
    if (!S_ISREG(st->st_mode)) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_IO,
                    "'%s' is not a regular file (mode 0%o): name a file", name,
                    (unsigned)st->st_mode);
        return false;
    }
    if (st->st_size == 0) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                    "'%s' is empty (0 bytes): make it again", name);
        return false;
    }
    if ((uint64_t)st->st_size > max) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_TOO_BIG,
                    "'%s' has %" G_GINT64_FORMAT
                    " bytes, more than the %" G_GUINT64_FORMAT
                    " that fit: strip it or give the machine more memory",
                    name, (gint64)st->st_size, max);
        return false;
    }
    return true;
}

/* Not mapped: a file that shrinks under a mapping would kill us. */
static GBytes *file_bytes_new(const char *name, uint64_t max, GError **error)
{
    GBytes *bytes = NULL;
    uint8_t *buffer;
    struct stat st;
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_IO,
                    "cannot open '%s': %s: check the name", name,
                    g_strerror(errno));
        return NULL;
    }
    if (fstat(fd, &st) != 0) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_IO, "cannot stat '%s': %s",
                    name, g_strerror(errno));
        goto out;
    }
    if (!file_stat_check(name, &st, max, error)) {
        goto out;
    }
    buffer = g_try_malloc((size_t)st.st_size);
    if (buffer == NULL || !file_read_all(fd, buffer, (size_t)st.st_size)) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_IO,
                    "cannot read the %" G_GINT64_FORMAT
                    " bytes of '%s': %s: check that nothing is changing it",
                    (gint64)st.st_size, name,
                    buffer == NULL ? "out of memory" : "it ended early");
        g_free(buffer);
        goto out;
    }
    bytes = g_bytes_new_take(buffer, (gsize)st.st_size);
out:
    (void)close(fd); /* only read from */
    return bytes;
}

/* --- planning --- */

bool loader_plan_add(struct loader_plan *plan, const struct ram *ram,
                     const struct loader_file *file,
                     const struct loader_segment *segment, GError **error)
{
    if (!loader_ram_has(ram, segment->guest, segment->mem_size)) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_TOO_BIG,
                    "'%s' wants " HEX64 " bytes at " HEX64 ", but RAM is " HEX64
                    " bytes at " HEX64
                    ": link it there or give the machine more memory",
                    file->name, segment->mem_size, segment->guest, ram->size,
                    ram->base);
        return false;
    }
    for (unsigned i = 0; i < plan->segments->len; i++) {
        const struct loader_segment *other =
            &g_array_index(plan->segments, struct loader_segment, i);

        if (segment->guest < other->guest + other->mem_size &&
            other->guest < segment->guest + segment->mem_size) {
            g_set_error(error, DEV_ERROR, DEV_ERROR_OVERLAP,
                        "'%s': the segment of " HEX64 " bytes at " HEX64
                        " overlaps the one of " HEX64 " bytes at " HEX64
                        ": correct the linker script",
                        file->name, segment->mem_size, segment->guest,
                        other->mem_size, other->guest);
            return false;
        }
    }
    if (plan->segments->len == 0 || segment->guest < plan->start) {
        plan->start = segment->guest;
    }
    plan->end = MAX(plan->end, segment->guest + segment->mem_size);
    g_array_append_val(plan->segments, *segment);
    return true;
}

static bool refuse_kind(const struct loader_file *file, GError **error)
{
    const uint8_t *b = file->bytes;
    const char *hint = "give an ELF executable or an arm64 Image; raw binaries "
                       "are not loaded, because they do not say where to";

    if (file->size >= 2 && b[0] == 0x1f && b[1] == 0x8b) {
        hint = "this is gzip data: unpack it with gunzip first";
    } else if (file->size >= 8 && memcmp(b + 4, "zimg", 4) == 0) {
        hint = "this is a compressed EFI image: give the Image it was made "
               "from";
    } else if (file->size < 64) {
        hint = "this is too short to be a kernel";
    }
    g_set_error(error, DEV_ERROR, DEV_ERROR_BAD_IMAGE,
                "'%s' (%zu bytes, the first are %02x %02x %02x %02x) is "
                "neither ELF nor an arm64 Image: %s",
                file->name, file->size, file->size > 0 ? b[0] : 0,
                file->size > 1 ? b[1] : 0, file->size > 2 ? b[2] : 0,
                file->size > 3 ? b[3] : 0, hint);
    return false;
}

static bool plan_kernel(struct loader_plan *plan, const struct ram *ram,
                        const struct loader_file *file, GError **error)
{
    if (file->size >= 4 && memcmp(file->bytes, "\177ELF", 4) == 0) {
        return loader_plan_elf(plan, ram, file, error);
    }
    if (loader_is_image(file)) {
        return loader_plan_image(plan, ram, file, error);
    }
    return refuse_kind(file, error);
}

/* --- placing --- */

/* [start, end) of RAM that is still free, all above the kernel. */
struct hole {
    uint64_t start, end;
};

/* Takes size bytes at the first aligned address from at least `from`. */
static bool hole_take(struct hole *hole, uint64_t from, uint64_t align,
                      uint64_t size, uint64_t *out_at)
{
    uint64_t at = MAX(hole->start, from);

    if (at > UINT64_MAX - (align - 1)) {
        return false;
    }
    at = (at + align - 1) & ~(align - 1);
    if (at >= hole->end || size > hole->end - at) {
        return false;
    }
    *out_at = at;
    hole->start = at + size;
    return true;
}

static bool place_after_kernel(const struct ram *ram,
                               const struct loader_file *initrd,
                               struct loaded_image *image, GError **error)
{
    struct hole hole = {image->kernel_end, ram->base + ram->size};
    uint64_t far = ram->base + MIN(ram->size / 2, INITRD_DISTANCE);
    struct hole saved = hole;

    if (initrd != NULL) {
        /* With room for a device tree behind it, or else tight. */
        uint64_t both = initrd->size + 2 * MIB + LOADER_DTB_MAX;

        if (!hole_take(&hole, far, PAGE, both, &image->initrd_start) &&
            !hole_take(&hole, 0, PAGE, initrd->size, &image->initrd_start)) {
            g_set_error(error, DEV_ERROR, DEV_ERROR_TOO_BIG,
                        "the initrd '%s' of %zu bytes does not fit between "
                        "the kernel's end at " HEX64 " and RAM's end at " HEX64
                        ": give the machine more memory",
                        initrd->name, initrd->size, saved.start, saved.end);
            return false;
        }
        image->initrd_end = image->initrd_start + initrd->size;
        hole.start = image->initrd_end;
    }
    if (!hole_take(&hole, 0, 2 * MIB, LOADER_DTB_MAX, &image->dtb) &&
        !hole_take(&hole, 0, PAGE, LOADER_DTB_MAX, &image->dtb)) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_TOO_BIG,
                    "no %u bytes for the device tree between " HEX64
                    " and RAM's end at " HEX64 ": give the machine more memory",
                    LOADER_DTB_MAX, hole.start, hole.end);
        return false;
    }
    return true;
}

static void carry_out(const struct ram *ram, const struct loader_plan *plan,
                      const struct loader_file *initrd,
                      const struct loaded_image *image)
{
    for (unsigned i = 0; i < plan->segments->len; i++) {
        const struct loader_segment *s =
            &g_array_index(plan->segments, struct loader_segment, i);
        uint8_t *to = ram->host + (s->guest - ram->base);

        if (s->file_size != 0) {
            memcpy(to, s->bytes, s->file_size);
        }
        memset(to + s->file_size, 0, s->mem_size - s->file_size);
    }
    if (initrd != NULL) {
        memcpy(ram->host + (image->initrd_start - ram->base), initrd->bytes,
               initrd->size);
    }
}

static void hash_bytes(GBytes *bytes, char out[65])
{
    g_autofree char *hex =
        g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, bytes);

    g_strlcpy(out, hex, 65);
}

static struct loader_file file_of_bytes(GBytes *bytes, const char *name)
{
    struct loader_file file = {.name = name};

    file.bytes = g_bytes_get_data(bytes, &file.size);
    return file;
}

bool loader_load_bytes(const struct ram *ram, GBytes *kernel,
                       const char *kernel_name, GBytes *initrd,
                       const char *initrd_name, struct loaded_image *out_image,
                       GError **error)
{
    g_autoptr(GArray) segments =
        g_array_new(FALSE, FALSE, sizeof(struct loader_segment));
    struct loader_file kernel_file = file_of_bytes(kernel, kernel_name);
    struct loader_file initrd_file = {0};
    struct loader_plan plan = {.segments = segments};
    struct loaded_image image = {0};

    if (ram->size == 0 || ram->base > UINT64_MAX - ram->size) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_CONFIG,
                    "RAM of " HEX64 " bytes at " HEX64 " is impossible",
                    ram->size, ram->base);
        return false;
    }
    if (initrd != NULL) {
        initrd_file = file_of_bytes(initrd, initrd_name);
        if (initrd_file.size == 0 || initrd_file.size > ram->size) {
            g_set_error(error, DEV_ERROR, DEV_ERROR_TOO_BIG,
                        "the initrd '%s' has %zu bytes, must have 1 to "
                        "%" G_GUINT64_FORMAT
                        ": give the machine more memory or a real initrd",
                        initrd_name, initrd_file.size, ram->size);
            return false;
        }
    }
    if (!plan_kernel(&plan, ram, &kernel_file, error)) {
        return false;
    }
    image.kind = plan.kind;
    image.entry = plan.entry;
    image.kernel_start = plan.start;
    image.kernel_end = plan.end;
    if (!place_after_kernel(ram, initrd != NULL ? &initrd_file : NULL, &image,
                            error)) {
        return false;
    }
    carry_out(ram, &plan, initrd != NULL ? &initrd_file : NULL, &image);
    hash_bytes(kernel, image.kernel_sha256);
    if (initrd != NULL) {
        hash_bytes(initrd, image.initrd_sha256);
    }
    *out_image = image;
    return true;
}

bool loader_load(const struct ram *ram, const char *kernel, const char *initrd,
                 struct loaded_image *out_image, GError **error)
{
    g_autoptr(GBytes) kernel_bytes = NULL;
    g_autoptr(GBytes) initrd_bytes = NULL;

    kernel_bytes = file_bytes_new(kernel, LOADER_KERNEL_FILE_MAX, error);
    if (kernel_bytes == NULL) {
        g_prefix_error(error, "kernel: ");
        return false;
    }
    if (initrd != NULL) {
        initrd_bytes = file_bytes_new(initrd, ram->size, error);
        if (initrd_bytes == NULL) {
            g_prefix_error(error, "initrd: ");
            return false;
        }
    }
    return loader_load_bytes(ram, kernel_bytes, kernel, initrd_bytes, initrd,
                             out_image, error);
}

bool loader_place_dtb(const struct ram *ram, const struct loaded_image *image,
                      GBytes *dtb, GError **error)
{
    size_t size;
    const void *bytes = g_bytes_get_data(dtb, &size);

    if (size == 0 || size > LOADER_DTB_MAX ||
        !loader_ram_has(ram, image->dtb, size)) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_TOO_BIG,
                    "the device tree has %zu bytes for " HEX64
                    ", must have 1 to %u within RAM",
                    size, image->dtb, LOADER_DTB_MAX);
        return false;
    }
    memcpy(ram->host + (image->dtb - ram->base), bytes, size);
    return true;
}

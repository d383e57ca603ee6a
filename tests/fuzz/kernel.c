/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loader: the input is a kernel, ELF or arm64 Image, and again the initrd
 * behind a kernel that is fine. Whatever is refused must have left RAM alone;
 * whatever is accepted must lie where loaded_image says, apart from each other.
 */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>

#include "dev/loader.h"

#define RAM_BASE UINT64_C(0x40000000)
#define RAM_SIZE ((size_t)2 << 20)
#define IMAGE_SIZE 4096u

static struct ram ram = {.base = RAM_BASE, .size = RAM_SIZE};

/* Plain loads: instrumented ones would take most of the time. */
__attribute__((no_sanitize("address", "undefined", "coverage"))) static bool
ram_is_zero(void)
{
    const uint64_t *words = (const uint64_t *)(const void *)ram.host;
    uint64_t any = 0;

    for (size_t i = 0; i < RAM_SIZE / 8; i++) {
        any |= words[i];
    }
    return any == 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    ram.host = mmap(NULL, 2 * RAM_SIZE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FUZZ_CHECK(ram.host != MAP_FAILED, "no memory");
    /* Beyond RAM nothing may be touched. */
    FUZZ_CHECK(mprotect(ram.host + RAM_SIZE, RAM_SIZE, PROT_NONE) == 0,
               "guard");
    return 0;
}

static void check_image(const struct loaded_image *image, size_t initrd_size)
{
    uint64_t end = ram.base + ram.size;

    FUZZ_CHECK(image->kernel_start >= ram.base &&
                   image->kernel_start < image->kernel_end &&
                   image->kernel_end <= end,
               "the kernel is not in RAM");
    FUZZ_CHECK(image->entry >= image->kernel_start &&
                   image->entry < image->kernel_end && image->entry % 4 == 0,
               "the entry point is not in the kernel");
    FUZZ_CHECK(image->initrd_end - image->initrd_start == initrd_size,
               "the initrd's size");
    if (initrd_size) {
        FUZZ_CHECK(image->initrd_start >= image->kernel_end &&
                       image->initrd_end <= image->dtb,
                   "the initrd lies between kernel and device tree");
    }
    FUZZ_CHECK(image->dtb % 8 == 0 && image->dtb >= image->kernel_end &&
                   image->dtb <= end - LOADER_DTB_MAX,
               "the device tree's place");
}

static void load(GBytes *kernel, GBytes *initrd)
{
    struct loaded_image image;
    GError *error = NULL;
    bool ok = loader_load_bytes(&ram, kernel, "kernel", initrd, "initrd",
                                &image, &error);

    FUZZ_CHECK_ERROR(ok, error);
    if (ok) {
        check_image(&image, initrd ? g_bytes_get_size(initrd) : 0);
        memset(ram.host + (image.kernel_start - RAM_BASE), 0,
               image.kernel_end - image.kernel_start);
        memset(ram.host + (initrd ? image.initrd_start - RAM_BASE : 0), 0,
               image.initrd_end - image.initrd_start);
    } else {
        FUZZ_CHECK(ram_is_zero(), "refused, but RAM was written: %s",
                   error->message);
        g_error_free(error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t fine[64];
    GBytes *input = g_bytes_new(data, size), *kernel;

    load(input, NULL);
    memcpy(fine + 56, "ARM\x64", 4);
    fine[17] = IMAGE_SIZE >> 8; /* image_size */
    kernel = g_bytes_new_static(fine, sizeof(fine));
    load(kernel, input);
    g_bytes_unref(kernel);
    g_bytes_unref(input);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Symbol table of a guest's ELF file through libelf. The file is not trusted:
 * libelf checks the section bounds, names are copied, counts are bounded.
 * Immutable after symbols_load(); look-ups from any thread.
 */
#include "obs/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <libelf.h>
#include <gelf.h>

#include "error.h"

/* A file that claims more symbols than this is cut off here. */
#define SYMBOLS_MAX 1000000
/* What a symbol without size (a label of assembly) covers at most. */
#define SYMBOL_UNSIZED_SPAN 0x1000

struct symbols {
    GArray *by_address; /* struct symbol, sorted, one per start */
    GHashTable *by_name;
    GStringChunk *names;
};

/* Functions and untyped labels (assembly); data only confuses a PC look-up. */
static bool symbol_is_code(const GElf_Sym *sym, const char *name)
{
    unsigned type = GELF_ST_TYPE(sym->st_info);

    if (type != STT_FUNC && type != STT_NOTYPE) {
        return false;
    }
    /* $x and $d are the Arm ELF ABI's mapping symbols, .L local labels. */
    return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS && name &&
           name[0] != '\0' && name[0] != '$' && !g_str_has_prefix(name, ".L");
}

static void symbols_read_section(struct symbols *s, Elf *elf, Elf_Scn *scn)
{
    GElf_Shdr shdr;
    Elf_Data *data;
    size_t n;

    if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_SYMTAB ||
        shdr.sh_entsize == 0 || !(data = elf_getdata(scn, NULL))) {
        return;
    }
    n = MIN(data->d_size / shdr.sh_entsize, (size_t)SYMBOLS_MAX);
    for (size_t i = 0; i < n; i++) {
        GElf_Sym sym;
        const char *name;
        struct symbol one;

        if (!gelf_getsym(data, (int)i, &sym)) {
            break;
        }
        name = elf_strptr(elf, shdr.sh_link, sym.st_name);
        if (!symbol_is_code(&sym, name)) {
            continue;
        }
        one.name = g_string_chunk_insert_const(s->names, name);
        one.start = sym.st_value;
        one.size = sym.st_size;
        g_array_append_val(s->by_address, one);
    }
}

static gint symbol_compare(gconstpointer a, gconstpointer b)
{
    const struct symbol *x = a, *y = b;

    if (x->start != y->start) {
        return x->start < y->start ? -1 : 1;
    }
    /* The sized one first: it is the function, the other a label at it. */
    if (x->size != y->size) {
        return x->size > y->size ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

/*
 * After this, starts differ, no symbol has size 0, none runs into the next and
 * none wraps around: a binary search for the last start <= pc finds it.
 */
static void symbols_finish(struct symbols *s)
{
    GArray *a = s->by_address;
    guint kept = 0;

    g_array_sort(a, symbol_compare);
    for (guint i = 0; i < a->len; i++) {
        struct symbol one = g_array_index(a, struct symbol, i);

        if (kept &&
            g_array_index(a, struct symbol, kept - 1).start == one.start) {
            continue;
        }
        g_array_index(a, struct symbol, kept++) = one;
    }
    g_array_set_size(a, kept);
    for (guint i = 0; i < kept; i++) {
        struct symbol *one = &g_array_index(a, struct symbol, i);
        uint64_t room = i + 1 < kept ? (one + 1)->start - one->start
                                     : UINT64_MAX - one->start;

        if (one->size == 0) {
            one->size = MIN(room, SYMBOL_UNSIZED_SPAN);
        }
        one->size = MAX(MIN(one->size, room), 1);
        g_hash_table_insert(s->by_name, (gpointer)one->name, one);
    }
}

static bool symbols_check_header(Elf *elf, const char *path, GError **error)
{
    GElf_Ehdr ehdr;

    if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr)) {
        g_set_error(error, VM_ERROR, VM_ERROR_BAD_IMAGE,
                    "'%s' is no ELF file: symbols need the kernel's ELF, not "
                    "its flat image",
                    path);
        return false;
    }
    if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_machine != EM_AARCH64 ||
        ehdr.e_ident[EI_DATA] != ELFDATA2LSB) {
        g_set_error(error, VM_ERROR, VM_ERROR_BAD_IMAGE,
                    "'%s' is an ELF file for machine %u, class %u; symbols "
                    "need a little-endian AArch64 (183) ELF64 file",
                    path, ehdr.e_machine, ehdr.e_ident[EI_CLASS]);
        return false;
    }
    return true;
}

struct symbols *symbols_load(const char *path, GError **error)
{
    struct symbols *s = NULL;
    Elf *elf = NULL;
    Elf_Scn *scn = NULL;
    int fd;

    (void)elf_version(EV_CURRENT); /* cannot fail for the linked version */
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "cannot open '%s' for its symbols: %s", path,
                    g_strerror(errno));
        return NULL;
    }
    /* Not mapped: a file cut short while we read it must not raise SIGBUS. */
    elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!elf) {
        g_set_error(error, VM_ERROR, VM_ERROR_BAD_IMAGE,
                    "cannot read '%s' as ELF: %s", path, elf_errmsg(-1));
        goto out;
    }
    if (!symbols_check_header(elf, path, error)) {
        goto out;
    }
    s = g_new0(struct symbols, 1);
    s->by_address = g_array_new(FALSE, FALSE, sizeof(struct symbol));
    s->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    s->names = g_string_chunk_new(4096);
    while ((scn = elf_nextscn(elf, scn)) != NULL) {
        symbols_read_section(s, elf, scn);
    }
    symbols_finish(s);
out:
    if (elf) {
        (void)elf_end(elf); /* a reference count */
    }
    (void)close(fd); /* opened for reading */
    return s;
}

void symbols_free(struct symbols *symbols)
{
    if (symbols) {
        g_hash_table_unref(symbols->by_name);
        g_array_unref(symbols->by_address);
        g_string_chunk_free(symbols->names);
        g_free(symbols);
    }
}

bool symbols_find(const struct symbols *symbols, uint64_t pc,
                  struct symbol *out)
{
    const struct symbol *found = NULL;
    guint low = 0, high = symbols ? symbols->by_address->len : 0;

    while (low < high) {
        guint mid = low + (high - low) / 2;
        const struct symbol *one =
            &g_array_index(symbols->by_address, struct symbol, mid);

        if (one->start <= pc) {
            found = one;
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (!found || pc - found->start >= found->size) {
        return false;
    }
    *out = *found;
    return true;
}

bool symbols_by_name(const struct symbols *symbols, const char *name,
                     struct symbol *out)
{
    const struct symbol *found =
        symbols ? g_hash_table_lookup(symbols->by_name, name) : NULL;

    if (!found) {
        return false;
    }
    *out = *found;
    return true;
}

size_t symbols_count(const struct symbols *symbols)
{
    return symbols ? symbols->by_address->len : 0;
}

char *symbols_format(const struct symbols *symbols, uint64_t pc, char *buf,
                     size_t size)
{
    struct symbol s;

    if (!symbols_find(symbols, pc, &s)) {
        g_snprintf(buf, size, "0x%" G_GINT64_MODIFIER "x", pc);
    } else if (pc == s.start) {
        g_strlcpy(buf, s.name, size);
    } else {
        g_snprintf(buf, size, "%s+0x%" G_GINT64_MODIFIER "x", s.name,
                   pc - s.start);
    }
    return buf;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A reader for the flattened device tree (Devicetree Specification 0.4, chapter
 * 5). Our own because libfdt is not available freestanding. It makes one pass
 * and understands only the nodes of board.h; everything is bounds-checked.
 */
#include "abi/annot.h"
#include "kernel/board.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/printk.h"

#define FDT_MAGIC 0xd00dfeedU
#define FDT_BEGIN_NODE 1
#define FDT_END_NODE 2
#define FDT_PROP 3
#define FDT_NOP 4
#define FDT_END 9
#define DTB_MAX_DEPTH 8
#define DTB_MAX_SIZE (2UL << 20)

struct fdt_header {
    uint32_t magic, totalsize, off_dt_struct, off_dt_strings, off_mem_rsvmap;
    uint32_t version, last_comp_version, boot_cpuid_phys, size_dt_strings;
    uint32_t size_dt_struct;
};

struct property {
    const uint8_t *data; /* NULL: absent */
    uint32_t size;
};

/* A node whose properties are being read. */
struct node {
    const char *name;
    uint32_t address_cells, size_cells; /* of its children */
    struct property compatible, reg, device_type, method, numa_node;
    bool disabled, handled;
};

struct reader {
    const uint8_t *blob;
    uint32_t struct_off, struct_end, strings_off, strings_size;
    struct node stack[DTB_MAX_DEPTH];
    unsigned depth; /* nodes open */
    struct board *board;
};

struct board board;

static uint32_t be32(const void *p)
{
    const uint8_t *b = p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 |
           b[3];
}

static uint64_t be_cells(const uint8_t *p, uint32_t cells)
{
    uint64_t value = 0;

    for (; cells > 0; cells--, p += 4) {
        value = value << 32 | be32(p);
    }
    return value;
}

static bool string_list_has(const struct property *prop, const char *text)
{
    for (uint32_t at = 0; at < prop->size;) {
        const char *s = (const char *)prop->data + at;
        size_t len = strnlen(s, prop->size - at);

        if (len == prop->size - at) {
            return false;
        }
        if (strcmp(s, text) == 0) {
            return true;
        }
        at += (uint32_t)len + 1;
    }
    return false;
}

/* Entry index of reg, by the parent's cell counts. */
static bool reg_entry(const struct reader *r, const struct node *node,
                      unsigned index, struct board_range *out)
{
    const struct node *parent = node - 1;
    uint32_t ac = r->depth > 1 ? parent->address_cells : 2;
    uint32_t sc = r->depth > 1 ? parent->size_cells : 1;
    uint32_t stride = 4 * (ac + sc);

    if (ac > 2 || sc > 2 || stride == 0 ||
        (uint64_t)(index + 1) * stride > node->reg.size) {
        return false;
    }
    out->start = be_cells(node->reg.data + index * stride, ac);
    out->end =
        out->start + be_cells(node->reg.data + index * stride + 4 * ac, sc);
    return true;
}

static uint32_t numa_node(const struct node *node)
{
    return node->numa_node.size == 4 ? be32(node->numa_node.data) : 0;
}

static void node_cpu(struct reader *r, const struct node *node)
{
    struct board_range reg;

    if (r->board->cpus < MAX_CPUS && reg_entry(r, node, 0, &reg)) {
        r->board->cpu_node[r->board->cpus] = numa_node(node);
        r->board->mpidr[r->board->cpus++] = reg.start;
    }
}

/* Keeps the ranges sorted: the tree may list them in any order. */
static void add_memory(struct board *b, const struct board_range *range,
                       uint32_t node)
{
    unsigned at = b->memory_count;

    if (at == BOARD_MAX_RANGES || range->end <= range->start) {
        return;
    }
    for (; at > 0 && b->memory[at - 1].start > range->start; at--) {
        b->memory[at] = b->memory[at - 1];
        b->memory_node[at] = b->memory_node[at - 1];
    }
    b->memory[at] = *range;
    b->memory_node[at] = node;
    b->memory_count++;
}

static void node_memory(struct reader *r, const struct node *node)
{
    struct board_range range;

    for (unsigned i = 0; reg_entry(r, node, i, &range); i++) {
        add_memory(r->board, &range, numa_node(node));
    }
}

static void node_gic(struct reader *r, const struct node *node)
{
    struct board_range range;

    if (reg_entry(r, node, 0, &range)) {
        r->board->gicd = range.start;
    }
    for (unsigned i = 0; i < 2 && reg_entry(r, node, i + 1, &range); i++) {
        r->board->gicr[i] = range;
        r->board->gicr_count = i + 1;
    }
}

/* All properties of the innermost open node are known. */
static void node_done(struct reader *r)
{
    struct node *node = &r->stack[r->depth - 1];
    struct board_range range;

    if (node->handled) {
        return;
    }
    node->handled = true;
    if (node->disabled) {
        return;
    }
    if (string_list_has(&node->device_type, "cpu")) {
        node_cpu(r, node);
    } else if (string_list_has(&node->device_type, "memory")) {
        node_memory(r, node);
    } else if (string_list_has(&node->compatible, "arm,gic-v3")) {
        node_gic(r, node);
    } else if (string_list_has(&node->compatible, "arm,pl011")) {
        if (r->board->uart == 0 && reg_entry(r, node, 0, &range)) {
            r->board->uart = range.start;
        }
    } else if (string_list_has(&node->compatible, ANNOT_COMPATIBLE)) {
        if (reg_entry(r, node, 0, &range)) {
            r->board->annot = range.start;
        }
    } else if (strncmp(node->name, "psci", 4) == 0) {
        r->board->psci = string_list_has(&node->method, "hvc")   ? PSCI_HVC
                         : string_list_has(&node->method, "smc") ? PSCI_SMC
                                                                 : PSCI_NONE;
    }
}

static void chosen_property(struct reader *r, const char *name,
                            const struct property *prop)
{
    struct board *b = r->board;

    if (strcmp(name, "bootargs") == 0) {
        if (prop->size > 0 && prop->data[prop->size - 1] == '\0') {
            b->bootargs = (const char *)prop->data;
        }
    } else if (prop->size == 4 || prop->size == 8) {
        uint64_t value = be_cells(prop->data, prop->size / 4);

        if (strcmp(name, "linux,initrd-start") == 0) {
            b->initrd = value;
        } else if (strcmp(name, "linux,initrd-end") == 0) {
            b->initrd_end = value;
        }
    }
}

static void node_property(struct reader *r, const char *name,
                          const struct property *prop)
{
    struct node *node = &r->stack[r->depth - 1];

    if (strcmp(name, "#address-cells") == 0 && prop->size == 4) {
        node->address_cells = be32(prop->data);
    } else if (strcmp(name, "#size-cells") == 0 && prop->size == 4) {
        node->size_cells = be32(prop->data);
    } else if (strcmp(name, "compatible") == 0) {
        node->compatible = *prop;
    } else if (strcmp(name, "reg") == 0) {
        node->reg = *prop;
    } else if (strcmp(name, "device_type") == 0) {
        node->device_type = *prop;
    } else if (strcmp(name, "method") == 0) {
        node->method = *prop;
    } else if (strcmp(name, "numa-node-id") == 0) {
        node->numa_node = *prop;
    } else if (strcmp(name, "status") == 0) {
        node->disabled = string_list_has(prop, "disabled");
    } else if (r->depth == 2 && strcmp(node->name, "chosen") == 0) {
        chosen_property(r, name, prop);
    }
}

static bool read_string(const struct reader *r, uint32_t *at, const char **out)
{
    const char *s = (const char *)r->blob + *at;
    uint32_t left = r->struct_end - *at;
    size_t len = strnlen(s, left);

    if (len == left) {
        return false;
    }
    *out = s;
    *at += (uint32_t)ALIGN_UP(len + 1, 4UL);
    return true;
}

static bool read_property(struct reader *r, uint32_t *at)
{
    struct property prop;
    uint32_t name_off;
    const char *name;

    if (r->depth == 0 || r->struct_end - *at < 8) {
        return false;
    }
    prop.size = be32(r->blob + *at);
    name_off = be32(r->blob + *at + 4);
    *at += 8;
    if (prop.size > r->struct_end - *at || name_off >= r->strings_size) {
        return false;
    }
    prop.data = r->blob + *at;
    *at += (uint32_t)ALIGN_UP((uint64_t)prop.size, 4UL);
    name = (const char *)r->blob + r->strings_off + name_off;
    if (strnlen(name, r->strings_size - name_off) ==
        r->strings_size - name_off) {
        return false;
    }
    node_property(r, name, &prop);
    return true;
}

static bool read_tree(struct reader *r)
{
    uint32_t at = r->struct_off;

    while (at <= r->struct_end && r->struct_end - at >= 4) {
        uint32_t token = be32(r->blob + at);

        at += 4;
        switch (token) {
        case FDT_BEGIN_NODE:
            if (r->depth > 0) {
                node_done(r);
            }
            if (r->depth == DTB_MAX_DEPTH) {
                return false;
            }
            r->stack[r->depth] =
                (struct node){.address_cells = 2, .size_cells = 1};
            if (!read_string(r, &at, &r->stack[r->depth].name)) {
                return false;
            }
            r->depth++;
            break;
        case FDT_END_NODE:
            if (r->depth == 0) {
                return false;
            }
            node_done(r);
            r->depth--;
            break;
        case FDT_PROP:
            if (!read_property(r, &at)) {
                return false;
            }
            break;
        case FDT_NOP:
            break;
        case FDT_END:
            return r->depth == 0;
        default:
            return false;
        }
    }
    return false;
}

static void read_reserve_map(const uint8_t *blob, uint32_t off, uint32_t size,
                             struct board *out)
{
    for (; off <= size && size - off >= 16; off += 16) {
        uint64_t start = be_cells(blob + off, 2);
        uint64_t len = be_cells(blob + off + 8, 2);

        if (start == 0 && len == 0) {
            return;
        }
        if (out->reserved_count < BOARD_MAX_RANGES) {
            out->reserved[out->reserved_count++] =
                (struct board_range){start, start + len};
        }
    }
}

bool dtb_parse(const void *blob, struct board *out)
{
    const struct fdt_header *h = blob;
    static struct reader r; /* too big for the boot stack, used once */
    uint32_t size = be32(&h->totalsize);

    if (be32(&h->magic) != FDT_MAGIC || size > DTB_MAX_SIZE ||
        size < sizeof(*h)) {
        return false;
    }
    r = (struct reader){.blob = blob, .board = out};
    r.struct_off = be32(&h->off_dt_struct);
    r.struct_end = r.struct_off + be32(&h->size_dt_struct);
    r.strings_off = be32(&h->off_dt_strings);
    r.strings_size = be32(&h->size_dt_strings);
    if (r.struct_off > r.struct_end || r.struct_end > size ||
        r.strings_off > size || r.strings_size > size - r.strings_off) {
        return false;
    }
    out->dtb_end = out->dtb + size;
    read_reserve_map(blob, be32(&h->off_mem_rsvmap), size, out);
    return read_tree(&r) && out->memory_count > 0 && out->cpus > 0;
}

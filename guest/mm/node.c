/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nodes of the machine; all of it is settled at boot. */
#include "mm/node.h"

#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/printk.h"

static unsigned n_nodes = 1;          /* [init] */
static uint8_t cpu_nodes[MAX_CPUS];   /* [init] */
static unsigned node_cpus[MAX_NODES]; /* [init] */

/* The tree may number nodes as it likes; those above are of the last. */
static uint8_t node_of_id(uint32_t id)
{
    return (uint8_t)(id < MAX_NODES ? id : MAX_NODES - 1);
}

/* numa=fake=N: N, or 0 if it does not say. */
static unsigned fake_nodes(void)
{
    char buf[16];
    const char *value = bootargs_get("numa", buf, sizeof(buf));
    uint64_t n;

    if (value == NULL) {
        return 0;
    }
    if (strncmp(value, "fake=", 5) == 0 && str_to_u64(value + 5, &n) &&
        n >= 1 && n <= MAX_NODES) {
        return (unsigned)n;
    }
    printk("node: numa=%s is not known, the device tree's nodes stay\n", value);
    return 0;
}

static bool cpus_split(void)
{
    char buf[16];
    const char *value = bootargs_get("numa_cpus", buf, sizeof(buf));

    return value != NULL && strcmp(value, "split") == 0;
}

/* Cuts all of RAM into n nodes, at whole blocks of the largest order. */
static unsigned cut(const struct board *b, unsigned n, struct page_range *out)
{
    uint64_t unit = PAGE_SIZE << PAGE_MAX_ORDER;
    uint64_t start = b->memory[0].start;
    uint64_t end = b->memory[b->memory_count - 1].end;
    uint64_t share = ALIGN_UP((end - start) / n, unit);

    for (unsigned i = 0; i < n; i++) {
        uint64_t stop = ALIGN_UP(start, unit) + share;

        out[i].start = ALIGN_UP(start, BLOCK_SIZE);
        out[i].end =
            i + 1 < n && stop < end ? stop : ALIGN_DOWN(end, BLOCK_SIZE);
        out[i].node = (uint8_t)i;
        start = out[i].end;
    }
    return n;
}

unsigned node_init(const struct board *b, struct page_range *ranges)
{
    unsigned fake = fake_nodes();
    unsigned n = b->memory_count;

    if (fake != 0) {
        n = cut(b, fake, ranges);
        n_nodes = fake;
    } else {
        for (unsigned i = 0; i < n; i++) {
            ranges[i].start = ALIGN_UP(b->memory[i].start, BLOCK_SIZE);
            ranges[i].end = ALIGN_DOWN(b->memory[i].end, BLOCK_SIZE);
            ranges[i].node = node_of_id(b->memory_node[i]);
            if (ranges[i].node >= n_nodes) {
                n_nodes = ranges[i].node + 1U;
            }
        }
    }
    for (unsigned cpu = 0; cpu < b->cpus; cpu++) {
        unsigned node = 0;

        if (fake == 0) {
            node = node_of_id(b->cpu_node[cpu]);
        } else if (cpus_split()) {
            node = cpu * fake / b->cpus;
        }
        if (node < n_nodes) {
            cpu_nodes[cpu] = (uint8_t)node;
        }
        node_cpus[cpu_nodes[cpu]]++;
    }
    return n;
}

unsigned nodes_count(void)
{
    return n_nodes;
}

unsigned node_of_cpu(unsigned cpu)
{
    return cpu_nodes[cpu];
}

bool node_has_cpus(unsigned node)
{
    return node_cpus[node] != 0;
}

int node_demotion_target(unsigned node)
{
    if (!node_has_cpus(node)) {
        return -1;
    }
    for (unsigned i = 0; i < n_nodes; i++) {
        if (!node_has_cpus(i)) {
            return (int)i;
        }
    }
    return -1;
}

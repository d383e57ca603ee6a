/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory nodes: which memory and which CPUs are near each other. They come from
 * the device tree (numa-node-id), or `numa=fake=N` cuts RAM into N equal nodes.
 * With fake nodes all CPUs are of node 0, unless `numa_cpus=split` deals them
 * out in equal shares; a node without CPUs is where cold pages may be demoted.
 */
#ifndef MM_NODE_H
#define MM_NODE_H

#include "kernel/board.h"
#include "kernel/types.h"
#include "mm/page.h"

#define NODE_MAX_RANGES (BOARD_MAX_RANGES + MAX_NODES)

/*
 * Boot: fills nodes and the ranges of RAM, each of one node, in whole 2 MiB
 * blocks. ranges has room for NODE_MAX_RANGES; returns how many there are.
 */
unsigned node_init(const struct board *b, struct page_range *ranges);

unsigned nodes_count(void);
unsigned node_of_cpu(unsigned cpu);
bool node_has_cpus(unsigned node);
/* Where the pages of a node with CPUs are demoted to, or -1: nowhere. */
int node_demotion_target(unsigned node);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What vmscan.c and kswapd.c share. */
#ifndef MM_VMSCAN_PRIV_H
#define MM_VMSCAN_PRIV_H

struct scan_control;

#define VMSCAN_PRIORITY 12U /* the first round's */

/* One round: a share of the group's pages on the node. */
void vmscan_node(unsigned node, struct scan_control *sc);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost tables; see cost.h. */
#include "cost.h"

#define NS(n) (UINT64_C(1000) * (n))

const struct cost_table cost_constant = {
    .name = "constant",
    .instruction = NS(1),
    .event =
        {
            [EVENT_walk] = NS(20),
            [EVENT_tlbi] = NS(20),
            [EVENT_dsb] = NS(10),
            [EVENT_isb] = NS(10),
            [EVENT_root_load] = NS(10),
            [EVENT_fault] = NS(50),
            [EVENT_irq_take] = NS(50),
            [EVENT_ipi_send] = NS(50),
            [EVENT_ipi_take] = NS(20),
            [EVENT_ipi_ack] = NS(20),
        },
    .spin = NS(20),
    .tlbi_latency = NS(200),
    .irq_latency = NS(1000),
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace: one JSON object a line, a header first, then one per event.
 * Written under one lock in the order of the seq numbers' dispatch.
 */
#ifndef OBS_TRACE_H
#define OBS_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>
#include "obs/events.h"

struct trace;
struct vm_config;

/*
 * Opens path ("-": standard output), writes the header, subscribes to
 * config->trace_events. NULL and error if the file cannot be written.
 */
struct trace *trace_open(const struct vm_config *config, struct events *ev,
                         GError **error);
/* After the vCPU threads ended. False: something could not be written. */
bool trace_close(struct trace *trace, GError **error);

#endif

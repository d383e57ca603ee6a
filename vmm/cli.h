/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line from the first word on. */
#ifndef VMM_CLI_H
#define VMM_CLI_H

/* The exit status. */
int cli_main(int argc, char **argv);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program. Nothing but this file exits. */
#include "cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}

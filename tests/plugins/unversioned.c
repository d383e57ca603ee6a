/* SPDX-License-Identifier: MIT */
/* A shared object that says nothing about a version. */
#include <shootdown/plugin.h>

int shootdown_plugin_install(const struct shootdown_host *host, int argc,
                             char **argv)
{
    (void)host;
    (void)argc;
    (void)argv;
    return 0;
}

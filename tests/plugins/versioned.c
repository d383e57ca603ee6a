/* SPDX-License-Identifier: MIT */
/* A plugin built against another version of the header: TEST_VERSION. */
#include <stdio.h>
#include <stdlib.h>
#include <shootdown/plugin.h>

SHOOTDOWN_EXPORT extern const uint32_t shootdown_plugin_version;
const uint32_t shootdown_plugin_version = TEST_VERSION;

int shootdown_plugin_install(const struct shootdown_host *host, int argc,
                             char **argv)
{
    (void)host;
    (void)argc;
    (void)argv;
    fprintf(stderr, "install of a plugin of another version was called\n");
    abort();
}

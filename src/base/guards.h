/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that may not be used, as build errors. Included last by every .c file. */
#pragma once

#undef sprintf /* macros in fortified builds of some compilers */
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets
#pragma GCC poison atoi atol strtol strtoul strtoll strtoull sscanf /* use parse.h */
#pragma GCC poison system popen tmpnam mktemp
#pragma GCC poison creat epoll_create inotify_init /* no close-on-exec at creation */

/* SPDX-License-Identifier: Apache-2.0 */
/* The program of resolve (src/resolve), embedded by resolve_image.S. */
#pragma once

#include <stdint.h>

extern const uint8_t resolve_image_start[] __attribute__((visibility("hidden")));
extern const uint8_t resolve_image_end[] __attribute__((visibility("hidden")));

/* SPDX-License-Identifier: Apache-2.0 */
/* The program of init, embedded by init_image.S. */
#pragma once

#include <stdint.h>

extern const uint8_t init_image_start[] __attribute__((visibility("hidden")));
extern const uint8_t init_image_end[] __attribute__((visibility("hidden")));

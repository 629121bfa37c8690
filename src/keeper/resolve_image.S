/* SPDX-License-Identifier: Apache-2.0 */
/* The program of resolve, carried in read-only data. The build defines RESOLVE_IMAGE as its path. */
    .section .rodata.resolve_image, "a", %progbits
    .balign 16
    .globl resolve_image_start
    .hidden resolve_image_start
    .type resolve_image_start, %object
resolve_image_start:
    .incbin RESOLVE_IMAGE
    .size resolve_image_start, . - resolve_image_start
    .globl resolve_image_end
    .hidden resolve_image_end
resolve_image_end:

    .section .note.GNU-stack, "", %progbits

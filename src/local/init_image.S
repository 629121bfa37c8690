/* SPDX-License-Identifier: Apache-2.0 */
/* The program of init, carried in read-only data. The build defines INIT_IMAGE as its path. */
    .section .rodata.init_image, "a", %progbits
    .balign 16
    .globl init_image_start
    .hidden init_image_start
    .type init_image_start, %object
init_image_start:
    .incbin INIT_IMAGE
    .size init_image_start, . - init_image_start
    .globl init_image_end
    .hidden init_image_end
init_image_end:

    .section .note.GNU-stack, "", %progbits

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls without errno, for a process that shares its memory with another that is running:
 * both would write the same errno.
 */
#pragma once

#include <stdint.h>

/* For functions that run in such a process: AddressSanitizer would mark their stack in the memory
 * that is shared, and the marks would stay when the process ends. */
#define _shared_memory_ __attribute__((no_sanitize_address))

/** raw_syscall() - the kernel's own answer: a result, or a negative errno */
_shared_memory_ static inline long raw_syscall(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;

    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#else
#error "raw_syscall() is not written for this architecture"
#endif
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rest.h"

#include <link.h>
#include <malloc.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guards.h"

/* The first object is the program itself (dl_iterate_phdr(3)); no other is looked at. */
static int unmap_segments(struct dl_phdr_info *program, size_t size, void *arg)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)arg;
    for (unsigned i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &program->dlpi_phdr[i];
        uintptr_t from = (program->dlpi_addr + h->p_vaddr + page - 1) & ~(page - 1);
        uintptr_t to = (program->dlpi_addr + h->p_vaddr + h->p_memsz) & ~(page - 1);

        if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) && from < to)
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 1;
}

void rest_memory(void)
{
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(unmap_segments, NULL);
}

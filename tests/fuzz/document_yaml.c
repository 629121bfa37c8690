/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as a document: a sound tree, or an error with a place. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "document_check.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)document_check(DOCUMENT_YAML, (const char *)data, size);
    return 0;
}

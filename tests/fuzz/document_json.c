/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as a document: a sound tree, and accepted or refused as another reader does. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "document_check.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    int r = document_check(DOCUMENT_JSON, text, size);
    json_error_t error;

    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* which jansson does not know */
        text += 3;
        size -= 3;
    }
    if (size > 0 && memchr(text, '\0', size)) /* which it may take as the end */
        return 0;
    json_t *theirs =
        json_loadb(size > 0 ? text : "", size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (theirs)
        check(r == 0 || r == -E2BIG); /* its ceilings are higher */
    else if (r == 0)
        check(json_error_code(&error) == json_error_numeric_overflow); /* it computes numbers */
    json_decref(theirs);
    return 0;
}

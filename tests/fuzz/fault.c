/* SPDX-License-Identifier: Apache-2.0 */
/* Errors from a peer: always terminated and printable, and stable on a second trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/fault.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t nothing = 0;
    struct error e = ERROR_INIT, again = ERROR_INIT;
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);
    char text[2048];

    if (fault_decode(reader_over(data ? data : &nothing, size), &e) < 0) {
        check(e.code == 0); /* results are written on success only */
        return 0;
    }
    check(e.code > 0 && e.code < 4096 && e.cls < ERROR_CLASS__MAX);
    error_format(&e, text, sizeof text);
    check(text_is_utf8(text, strlen(text)));
    for (const char *p = text; *p; p++)
        check((unsigned char)*p >= 0x20 && *p != 0x7F);
    fault_encode(&w, &e);
    check(!w.bad);
    check(fault_decode(reader_over(buf, writer_len(&w)), &again) == 0);
    check(again.code == e.code && again.cls == e.cls);
    check(strcmp(again.context, e.context) == 0 && strcmp(again.message, e.message) == 0 &&
          strcmp(again.remedy, e.remedy) == 0);
    return 0;
}

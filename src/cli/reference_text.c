/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages of the reference share: Markdown texts, and looking up options. */
#include <ctype.h>
#include <string.h>

#include "cli/reference.h"
#include "base/guards.h"

/* An underscore between letters is none of Markdown's. */
static bool is_markup(const char *text, size_t i)
{
    if (text[i] == '_')
        return i == 0 || !isalnum((unsigned char)text[i - 1]) ||
               !isalnum((unsigned char)text[i + 1]);
    return strchr("\\*<>|`[]", text[i]);
}

void reference_text(FILE *f, const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (is_markup(text, i))
            putc('\\', f);
        putc(text[i], f);
    }
}

void reference_sentence(FILE *f, const char *text)
{
    size_t len = strlen(text);

    if (len == 0)
        return;
    putc(toupper((unsigned char)text[0]), f);
    reference_text(f, text + 1);
    if (text[len - 1] != '.')
        putc('.', f);
}

const struct option *reference_option(const struct command *c, const char *name)
{
    for (size_t i = 0; !c->hidden && i < c->n_options; i++)
        if (!c->options[i].hidden && strcmp(c->options[i].name, name) == 0)
            return &c->options[i];
    return NULL;
}
